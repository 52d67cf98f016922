"""Weights of rows mean the same in both engines: a factor of the row's loss."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from rarenode.data.dataset import DatasetSplits
from rarenode.errors import ArgumentError
from tests.engines.problem import assert_same_state, make_both, shape_of


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("focus", [None, "focal", "gmu"])
def test_the_engines_agree_with_row_weights(data: DatasetSplits, focus: str | None, reduction: str) -> None:
    engines = make_both(data, shape_of(data, members=3), focus=focus, reduction=reduction)
    for step in range(8):
        rng = np.random.default_rng(step)
        rows = rng.integers(len(data.train), size=6)
        weights = (rng.exponential(size=6) * (rng.random(6) < 0.8)).astype(np.float32)
        losses = [engine.step(data.train.X[rows], data.train.Y[rows], None, weights) for engine in engines]
        np.testing.assert_allclose(losses[0], losses[1], rtol=2e-5)
    assert_same_state(engines, tolerance=5e-4)


@pytest.mark.parametrize("engine", [0, 1])
def test_a_row_of_weight_k_is_a_row_k_times(data: DatasetSplits, engine: int) -> None:
    """With a sum and without dropout: 0 removes a row, 3 repeats it."""
    shape = shape_of(data, dropout=0.0, members=2)
    weighted, repeated = (make_both(data, shape, focus="gmu")[engine] for _ in range(2))
    counts = np.array([1, 0, 3, 2, 0])
    for step in range(5):
        rows = np.random.default_rng(step).integers(len(data.train), size=5)
        again = np.repeat(rows, counts)
        losses = [
            weighted.step(data.train.X[rows], data.train.Y[rows], row_weights=counts.astype(np.float32)),
            repeated.step(data.train.X[again], data.train.Y[again]),
        ]
        np.testing.assert_allclose(losses[0], losses[1], rtol=2e-5)
    assert_same_state([weighted, repeated], tolerance=5e-4)


@pytest.mark.parametrize("engine", [0, 1])
def test_weights_of_one_change_no_bit(data: DatasetSplits, engine: int) -> None:
    plain, weighted = (make_both(data, shape_of(data, members=2), focus="gmu")[engine] for _ in range(2))
    for step in range(5):
        rows = np.random.default_rng(step).integers(len(data.train), size=5)
        X, Y = data.train.X[rows], data.train.Y[rows]
        assert plain.step(X, Y) == weighted.step(X, Y, row_weights=np.ones(5, dtype=np.float32))
    assert_same_state([plain, weighted], tolerance=0)


@pytest.mark.parametrize("engine", [0, 1])
@pytest.mark.parametrize(
    ("weights", "problem"),
    [
        ([1, 1, 1], r"shape \(4,\)"),
        ([[1, 1, 1, 1]], r"shape \(4,\)"),
        ([1, 1, -1, 1], "row 2"),
        ([1, np.nan, 1, 1], "row 1"),
        (["a", "b", "c", "d"], "numbers"),
    ],
)
def test_row_weights_that_mean_nothing_are_refused(
    data: DatasetSplits, engine: int, weights: Any, problem: str
) -> None:
    made = make_both(data, shape_of(data))[engine]
    with pytest.raises(ArgumentError, match=problem):
        made.step(data.train.X[:4], data.train.Y[:4], row_weights=weights)
