"""Labels that are unknown add nothing to a step: both engines agree, with each other and with the formula."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rarenode import Hierarchy
from rarenode.data.dataset import DatasetSplits
from rarenode.engines import Objective
from rarenode.engines.engine import Engine
from rarenode.engines.fused_engine import FusedEngine
from rarenode.engines.torch_engine import TorchEngine
from rarenode.errors import LabelError
from rarenode.hierarchy.three_valued import complete_labels
from rarenode.models import MlpEnsemble, initial_parameters
from rarenode.objective.loss import Reduction
from tests import oracles
from tests.engines.problem import ADAM, SEED, assert_same_state, make_both, shape_of
from tests.strategies import hierarchies, three_valued

both_engines = pytest.mark.parametrize("engine", [0, 1])


def some_known(data: DatasetSplits, rows: NDArray[np.int64], seed: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    rng = np.random.default_rng(seed)
    Y = data.train.Y[rows]
    Y, known = complete_labels(data.hierarchy, Y, unknown=rng.random(Y.shape) < 0.3, below=bool(seed % 2))
    assert known is not None
    return Y, known


@pytest.mark.parametrize("reduction", ["sum", "mean"])
@pytest.mark.parametrize("focus", [None, "focal", "gmu", "epistemic_js"])
def test_the_engines_agree(data: DatasetSplits, focus: str | None, reduction: str) -> None:
    engines = make_both(data, shape_of(data, members=3), focus=focus, reduction=reduction)
    for step in range(8):
        rng = np.random.default_rng(step)
        rows = rng.integers(len(data.train), size=6)
        weights = rng.exponential(size=6).astype(np.float32)
        Y, known = some_known(data, rows, step)
        losses = [engine.step(data.train.X[rows], Y, None, weights, known) for engine in engines]
        np.testing.assert_allclose(losses[0], losses[1], rtol=2e-5)
    assert_same_state(engines, tolerance=5e-4)


@settings(max_examples=40)
@given(
    hierarchies(),
    st.integers(1, 4),
    st.sampled_from([None, "focal", "bbma", "gmu"]),
    st.sampled_from(["sum", "mean"]),
    st.data(),
)
def test_the_loss_is_that_of_the_formula(
    hierarchy: Hierarchy, rows: int, focus: str | None, reduction: Reduction, data: st.DataObject
) -> None:
    Y, known = data.draw(three_valued(hierarchy, rows))
    scored = np.arange(len(hierarchy)) % 3 != 1
    X = np.random.default_rng(rows).standard_normal((rows, 3), dtype=np.float32)
    shape = MlpEnsemble(3, len(hierarchy), hidden=4, members=2, dropout=0.0)
    parameters = initial_parameters(shape, SEED)
    objective = Objective(hierarchy, focus=focus, scored=scored, reduction=reduction)
    engines: list[Engine] = [E(shape, parameters, objective, ADAM, SEED) for E in (TorchEngine, FusedEngine)]
    logits = engines[0].logits(X).astype(np.float64)
    loss = oracles.max_constraint_loss_of_logits(logits, Y, hierarchy)
    loss *= oracles.focal_weight(logits, Y, focus, 0.25, 1.0, float(np.finfo(np.float32).eps))
    expected = oracles.reduce(loss, scored, reduction, known)
    for engine in engines:
        assert engine.step(X, Y, known=known) == pytest.approx(expected, rel=2e-5, abs=1e-6)
    assert_same_state(engines, tolerance=5e-4)


@both_engines
def test_a_mask_of_what_is_known_everywhere_changes_nothing(data: DatasetSplits, engine: int) -> None:
    plain, masked = (make_both(data, shape_of(data, members=2), focus="gmu", reduction="mean")[engine] for _ in "ab")
    for step in range(5):
        rows = np.random.default_rng(step).integers(len(data.train), size=5)
        X, Y = data.train.X[rows], data.train.Y[rows]
        assert plain.step(X, Y) == pytest.approx(masked.step(X, Y, known=np.ones_like(Y)), rel=1e-6)
    assert_same_state([plain, masked], tolerance=1e-6)


@both_engines
def test_a_row_of_which_nothing_is_known_is_no_row(data: DatasetSplits, engine: int) -> None:
    """Without dropout, which depends on the place of a row."""
    shape = shape_of(data, dropout=0.0, members=2)
    fewer, masked = (make_both(data, shape, focus="gmu", reduction="mean")[engine] for _ in "ab")
    for step in range(5):
        rows = np.random.default_rng(step).integers(len(data.train), size=5)
        known = np.repeat(np.array([[True], [False], [True], [True], [False]]), len(data.hierarchy), axis=1)
        kept = rows[known[:, 0]]
        losses = [
            fewer.step(data.train.X[kept], data.train.Y[kept]),
            masked.step(data.train.X[rows], data.train.Y[rows] & known, known=known),
        ]
        np.testing.assert_allclose(losses[0], losses[1], rtol=2e-5)
    assert_same_state([fewer, masked], tolerance=5e-4)


@both_engines
@pytest.mark.parametrize("known", [np.ones((3, 2), dtype=np.bool_), np.ones(4, dtype=np.bool_)])
def test_what_is_known_must_fit(data: DatasetSplits, engine: int, known: Any) -> None:
    made = make_both(data, shape_of(data))[engine]
    with pytest.raises(LabelError, match="known must be boolean of the shape"):
        made.step(data.train.X[:4], data.train.Y[:4], known=known)
