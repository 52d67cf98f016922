"""Rows that neighbours keep of many: rare nodes keep all, and shares of nodes are right on average."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rarenode import make_hierarchical
from rarenode.models import Neighbours, fit_neighbours, neighbour_fitting, training_labels
from rarenode.models.kept_rows import draw_rows
from rarenode.models.training_labels import Lists
from tests.strategies import closed_labels, hierarchies

Bools = NDArray[np.bool_]


def long_tail(rows: int, seed: int = 0) -> Bools:
    """Nodes that half of the rows have, and ever fewer; some rows have none."""
    return np.random.default_rng(seed).random((rows, 6)) < np.array([0.5, 0.3, 0.1, 0.03, 0.01, 0.0])


def chances_by_loops(Y: Bools, most: int) -> list[float]:
    """The chance of each row, with the factor found by bisection."""
    counts = Y.sum(axis=0)
    without = int((~Y.any(axis=1)).sum())
    sizes = [min((int(counts[node]) for node in np.flatnonzero(row)), default=without) for row in Y]
    low, high = 0.0, math.sqrt(len(Y))
    for _ in range(200):
        middle = (low + high) / 2
        if sum(min(1.0, middle / math.sqrt(size)) for size in sizes) < most:
            low = middle
        else:
            high = middle
    return [min(1.0, high / math.sqrt(size)) for size in sizes]


@given(data=st.data())
def test_as_many_rows_are_kept_as_wanted_and_each_counts_as_often_as_it_is_rarely_kept(data: st.DataObject) -> None:
    hierarchy = data.draw(hierarchies())
    rows = data.draw(st.integers(2, 40))
    Y, most = data.draw(closed_labels(hierarchy, rows)), data.draw(st.integers(1, rows - 1))
    seed = data.draw(st.integers(0, 2**32))
    kept, times = draw_rows(Lists.of(Y), Y.shape[1], most, np.random.default_rng(seed))
    assert len(kept) == most
    assert (np.diff(kept) > 0).all()
    np.testing.assert_allclose(1 / times, np.array(chances_by_loops(Y, most))[kept], rtol=1e-9)
    again = draw_rows(Lists.of(Y), Y.shape[1], most, np.random.default_rng(seed))
    np.testing.assert_array_equal(kept, again[0])


def test_every_row_is_kept_as_often_as_its_chance_says() -> None:
    Y = long_tail(150)
    chances = np.array(chances_by_loops(Y, 60))
    drawn: Counter[int] = Counter()
    for seed in range(1500):
        drawn.update(draw_rows(Lists.of(Y), Y.shape[1], 60, np.random.default_rng(seed))[0].tolist())
    found = np.array([drawn[row] for row in range(len(Y))]) / 1500
    assert (found[chances == 1] == 1).all()
    assert (np.abs(found - chances) < 4.5 * np.sqrt(chances * (1 - chances) / 1500) + 1e-12).all()


def test_shares_of_nodes_are_right_on_average_and_rare_nodes_keep_all_rows() -> None:
    Y = long_tail(3000)
    counts, weights = Y.sum(axis=0), np.random.default_rng(1).choice([0.5, 1.0, 4.0], size=len(Y))
    found = []
    for seed in range(300):
        kept, times = draw_rows(Lists.of(Y), Y.shape[1], 800, np.random.default_rng(seed))
        rare = Y[:, 4]
        assert counts[4] < 50
        assert np.isin(np.flatnonzero(rare), kept).all()
        assert (times[Y[kept, 4]] == 1).all()
        found.append([*((weights[kept] * times) @ Y[kept]), (weights[kept] * times).sum()])
    expected, deviation = np.array([*(weights @ Y), weights.sum()]), np.std(found, axis=0) / math.sqrt(300)
    assert (np.abs(np.mean(found, axis=0) - expected) <= 4 * deviation + 1e-9 * expected).all()


def problem(rows: int) -> dict[str, Any]:
    data = make_hierarchical(2 * rows, nodes=20, features=4, depth=3, tail=2.0).train
    rng = np.random.default_rng(0)
    known = data.Y | (rng.random(data.Y.shape) < 0.8)
    Y = data.Y.copy()
    Y[::7] = False  # rows without labels
    weights = rng.choice([0.0, 0.5, 2.0], size=rows).astype(np.float32)
    return {
        "X": data.X.astype(np.float32), "Y": Y, "known": known, "sample_weight": weights, "hierarchy": data.hierarchy
    }  # fmt: skip


def as_bytes(model: Neighbours) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in model.arrays().items()}


def test_up_to_the_limit_all_rows_are_kept_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    given = problem(200)
    counting = given["sample_weight"] > 0
    without_limit = fit_neighbours(**given)
    np.testing.assert_array_equal(without_limit.row_weights, given["sample_weight"][counting])
    monkeypatch.setattr(neighbour_fitting, "MOST_KEPT", int(counting.sum()))
    monkeypatch.setattr(neighbour_fitting, "draw_rows", None)
    assert as_bytes(fit_neighbours(**given)) == as_bytes(without_limit)


@pytest.mark.parametrize("left_out", [(), ("known",), ("sample_weight",), ("known", "sample_weight")])
def test_beyond_the_limit_rows_of_rare_nodes_are_kept(
    monkeypatch: pytest.MonkeyPatch, left_out: tuple[str, ...]
) -> None:
    monkeypatch.setattr(neighbour_fitting, "MOST_KEPT", 120)
    given = {name: value for name, value in problem(400).items() if name not in left_out}
    model = fit_neighbours(**given, seed=3)
    assert model.sizes.training_rows == 120
    assert as_bytes(fit_neighbours(**given, seed=3)) == as_bytes(model)
    counting = given.get("sample_weight", np.ones(400)) > 0
    counts = given["Y"][counting].sum(axis=0)
    rare = (counts > 0) & (counts <= 3)
    assert rare.any()
    np.testing.assert_array_equal(np.bincount(model.label_columns, minlength=20)[rare], counts[rare])
    probs = model.predict_proba(given["X"])
    assert ((probs >= 0) & (probs <= 1)).all()
    hierarchy = given["hierarchy"]
    assert (probs[:, hierarchy.edge_parents] >= probs[:, hierarchy.edge_children]).all()


def test_rows_without_any_label(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbour_fitting, "MOST_KEPT", 10)
    X = np.random.default_rng(0).normal(size=(30, 2)).astype(np.float32)
    model = fit_neighbours(X, np.zeros((30, 3), dtype=np.bool_))
    assert model.sizes.training_rows == 10
    np.testing.assert_allclose(model.row_weights, 3.0)
    np.testing.assert_array_equal(model.predict_proba(X), np.zeros((30, 3)))


def test_weighted_sums_in_blocks_are_those_of_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    Y, weights = long_tail(50), np.random.default_rng(0).random(50)
    expected = [sum(weights[row] for row in range(50) if Y[row, node]) for node in range(6)]
    for cells in (1, 40, 10_000):
        monkeypatch.setattr(training_labels, "CELLS_AT_A_TIME", cells)
        np.testing.assert_allclose(training_labels.weighted_sums(weights, Y), expected, rtol=1e-12)
