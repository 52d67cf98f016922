"""`diagnose` against loops, edge cases, and invalid arguments."""

from __future__ import annotations

import dataclasses
import math
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rarenode import Hierarchy, RarenodeError
from rarenode.diagnosis import NodeDiagnosis, diagnose
from rarenode.diagnosis.evidence import NODES_PER_BATCH, Lists, Positives, blocking_ancestors
from rarenode.errors import ArgumentError, LabelError
from rarenode.metrics import node_scores
from rarenode.thresholds import Thresholds
from tests.diagnosis import oracles
from tests.diagnosis.oracles import Case

PETS = Hierarchy.from_edges([("pet", "cat"), ("pet", "dog")])
"""Columns: pet, cat, dog."""
HALF = Thresholds(np.full(3, 0.5))
Y = np.array([[1, 1, 0], [1, 0, 1], [0, 0, 0]], dtype=bool)
PROBS = np.array([[0.9, 0.2, 0.7], [0.9, 0.1, 0.8], [0.1, 0.0, 0.1]])


def diagnosis_of(case: Case) -> NodeDiagnosis:
    return diagnose(
        case.Y,
        case.probs,
        case.hierarchy,
        case.thresholds,
        case.training,
        scored=case.scored,
        highest_member_probs=case.highest_member_probs,
        uncertainty=case.uncertainty,
        known=case.known,
    )


def or_nan(value: Any) -> float:
    return np.nan if value is None else float(value)


def compare(case: Case, cells: int, matches: int) -> None:
    """Compare `diagnose`, working in blocks of so many cells and matches, with the loops."""
    for given_array in (case.Y, case.probs, case.training, case.scored, case.highest_member_probs, case.uncertainty):
        if given_array is not None:
            given_array.flags.writeable = False
    with (
        patch("rarenode.thresholds.probabilities.CELLS_PER_BLOCK", cells),
        patch("rarenode.diagnosis.evidence.MATCHES_PER_BLOCK", matches),
        patch("rarenode.diagnosis.evidence.NODES_PER_BATCH", matches),
    ):
        result = diagnosis_of(case)
    expected = oracles.diagnose(case)
    assert result.hierarchy is case.hierarchy
    known = np.ones(case.Y.shape, dtype=bool) if case.known is None else case.known
    assert result.known_rows.tolist() == known.sum(axis=0).tolist()
    assert result.rule == case.thresholds.rule
    assert result.thresholds.tolist() == case.thresholds.values.tolist()
    assert result.training_rows.tolist() == case.training.tolist()
    assert result.scored.tolist() == (np.ones(len(expected), bool) if case.scored is None else case.scored).tolist()
    assert result.reasons == tuple(node.reasons for node in expected)
    assert result.reason == tuple(node.reasons[0] if node.reasons else "" for node in expected)
    for name in (
        *("state", "best_rank", "cut_rank", "cut_hits", "blocked_rows", "blocked_by"),
        *("confused_rows", "confused_with", "member_rows", "member_all_rows"),
    ):
        assert getattr(result, name).tolist() == [getattr(node, name) for node in expected], name
    for name in ("cut_prob", "cut_next"):
        np.testing.assert_array_equal(getattr(result, name), [or_nan(getattr(node, name)) for node in expected], name)
    for name in ("rank_chance", "auc", "uncertainty"):
        np.testing.assert_allclose(
            getattr(result, name), [or_nan(getattr(node, name)) for node in expected], rtol=1e-9, atol=1e-12
        )
    predicted = oracles.predict(case.probs, case.thresholds.values, case.thresholds.rule, case.hierarchy)
    scores = node_scores(case.Y, predicted, known)
    for field in dataclasses.fields(scores):
        assert getattr(result.scores, field.name).tolist() == getattr(scores, field.name).tolist()
    for column, node in enumerate(expected):
        assert bool(result.explain(column)) == (node.state == "missed")


SMALL_AND_LARGE = (1, 5, 1 << 20)


@settings(max_examples=150)
@given(oracles.cases(), st.sampled_from(SMALL_AND_LARGE), st.sampled_from(SMALL_AND_LARGE))
def test_everything_is_as_counted_by_loops(case: Case, cells: int, matches: int) -> None:
    compare(case, cells, matches)


@pytest.mark.parametrize("cells", SMALL_AND_LARGE)
@pytest.mark.parametrize("matches", SMALL_AND_LARGE)
def test_and_where_much_is_missed_whatever_the_size_of_blocks(cells: int, matches: int) -> None:
    for seed in range(100):
        compare(oracles.crowded_case(seed * len(SMALL_AND_LARGE) + SMALL_AND_LARGE.index(cells)), cells, matches)


def test_and_where_members_disagree_among_many_rows() -> None:
    seen = {True: 0, False: 0}
    for seed in range(16):
        case = oracles.disagreeing_case(seed)
        compare(case, SMALL_AND_LARGE[seed % 3], 1 << 20)
        for node in oracles.diagnose(case):
            if node.member_rows:
                seen["members_disagree" in node.reasons] += 1
    assert min(seen.values()) > 8


def test_nodes_that_are_not_scored_have_scores() -> None:
    result = diagnose(Y, PROBS, PETS, HALF, [2, 1, 1], scored=np.array([True, True, False]))
    assert result.state.tolist() == ["found", "missed", "not_scored"]
    assert result.scores.true_positives.tolist() == [2, 0, 1]
    assert result.reasons == ((), ("confused_with_sibling",), ())


def test_rows_where_a_node_is_unknown_count_nowhere_for_it() -> None:
    known = np.ones((3, 3), dtype=bool)
    known[[1, 2], [2, 1]] = False  # the dog of row 1 and whether row 2 has a cat
    result = diagnose(Y & known, PROBS, PETS, HALF, [2, 1, 1], known=known)
    assert result.known_rows.tolist() == [3, 2, 2]
    assert result.state.tolist() == ["found", "missed", "no_rows"]
    assert result.scores.predicted.tolist() == [2, 0, 1]
    shy = Thresholds(np.array([0.5, 0.5, 0.9]))
    explanation = diagnose(Y & known, PROBS, PETS, shy, [2, 1, 1], known=known).explain(1)
    assert explanation.startswith("Too few rows to tell: its only positive ranks 1st of 2 rows")
    with pytest.raises(LabelError, match="known must be boolean"):
        diagnose(Y, PROBS, PETS, HALF, [2, 1, 1], known=known[:2])


def test_roots_are_siblings() -> None:
    flat = Hierarchy.from_edges([], nodes=["a", "b", "c"])
    result = diagnose([[1, 0, 0]], [[0.1, 0.2, 0.9]], flat, HALF, [1, 1, 1])
    assert (result.confused_with[0], result.confused_rows[0]) == (2, 1)


def test_a_child_of_another_parent_is_no_sibling() -> None:
    edges = [("a", "x"), ("b", "y")]
    hierarchy = Hierarchy.from_edges(edges)  # a, b, x, y
    probs = [[0.9, 0.9, 0.1, 0.9]]
    result = diagnose([[1, 0, 1, 0]], probs, hierarchy, Thresholds(np.full(4, 0.5)), [1] * 4)
    assert result.confused_with[2] == -1
    joined = Hierarchy.from_edges([*edges, ("b", "x")])
    result = diagnose([[1, 1, 1, 0]], probs, joined, Thresholds(np.full(4, 0.5)), [1] * 4)
    assert result.confused_with[2] == 3


def test_a_sibling_by_two_parents_counts_a_row_once_and_the_lowest_of_equals_is_named() -> None:
    two = Hierarchy.from_edges([("p", "x"), ("q", "x"), ("p", "y"), ("q", "y"), ("p", "z")])  # p, q, x, y, z
    Y = np.array([[1, 1, 1, 0, 0]] * 3, dtype=bool)
    probs = np.full((3, 5), 0.9)
    probs[:, 2] = 0.1
    probs[2, 3] = 0.1
    result = diagnose(Y, probs, two, Thresholds(np.full(5, 0.5)), [1] * 5)
    assert (result.confused_with[2], result.confused_rows[2]) == (4, 3)
    probs[2, 4] = 0.1
    result = diagnose(Y, probs, two, Thresholds(np.full(5, 0.5)), [1] * 5)
    assert (result.confused_with[2], result.confused_rows[2]) == (3, 2)


def test_the_ancestor_that_blocks_most_rows_is_named_and_the_lowest_of_equals() -> None:
    chain = Hierarchy.from_edges([("a", "b"), ("b", "c")])
    probs = np.array([[0.4, 0.9, 0.9], [0.9, 0.4, 0.9], [0.9, 0.4, 0.9], [0.9, 0.9, 0.2]])
    drop = Thresholds(np.full(3, 0.5), "drop_orphans")
    result = diagnose(np.ones((4, 3), dtype=bool), probs, chain, drop, [4] * 3)
    assert (result.blocked_rows[2], result.blocked_by[2]) == (3, 1)
    result = diagnose(np.ones((2, 3), dtype=bool), probs[:2], chain, drop, [4] * 3)
    assert (result.blocked_rows[2], result.blocked_by[2]) == (2, 0)
    added = diagnose(np.ones((2, 3), dtype=bool), probs[:2], chain, Thresholds(np.full(3, 0.5)), [4] * 3)
    assert added.state.tolist() == ["found"] * 3


def test_one_node() -> None:
    only = Hierarchy.from_edges([], nodes=["only"])
    result = diagnose([[1], [0]], [[0.2], [0.1]], only, Thresholds(np.array([0.5])), [3])
    assert result.reasons == (("too_few_rows",),)
    assert (result.best_rank[0], result.rank_chance[0], result.confused_with[0]) == (1, 0.5, -1)


def test_no_rows() -> None:
    nothing = np.zeros((0, 3))
    result = diagnose(nothing, nothing, PETS, HALF, [1, 1, 1], highest_member_probs=nothing, uncertainty=nothing)
    assert result.state.tolist() == ["no_rows"] * 3
    assert np.isnan(result.uncertainty).all()
    assert len(result.to_frame()) == 3


def test_no_nodes() -> None:
    empty = Hierarchy.from_edges([])
    result = diagnose(np.zeros((2, 0)), np.zeros((2, 0)), empty, Thresholds(np.zeros(0)), np.zeros(0, dtype=int))
    assert result.reason == ()
    frame = result.to_frame()
    assert frame.height == 0
    assert {frame[name].dtype.is_(frame["node"].dtype) for name in ("reason", "blocked_by")} == {True}


def test_tensors_and_whole_floats_are_welcome() -> None:
    probs = torch.tensor(PROBS, requires_grad=True)
    result = diagnose(torch.tensor(Y), probs, PETS, HALF, torch.tensor([2.0, 1.0, 1.0]), uncertainty=probs)
    assert result.state.tolist() == ["found", "missed", "found"]
    assert result.training_rows.dtype == np.int64


def test_the_mask_is_kept_as_it_was() -> None:
    mine = np.ones(3, dtype=bool)
    result = diagnose(Y, PROBS, PETS, HALF, [1, 1, 1], scored=mine)
    mine[:] = False
    assert result.scored.all()


def test_a_star_costs_what_occurs_and_not_leaves_squared() -> None:
    leaves, rows = 3_000, 60
    star = Hierarchy.from_edges([("root", f"leaf {number:04d}") for number in range(leaves)])
    labels = np.zeros((rows, leaves + 1), dtype=bool)
    labels[:, 0] = True
    for leaf in range(1, leaves + 1):  # each leaf in one row, and missed there
        labels[leaf % rows, leaf] = True
    probs = np.where(labels, 0.0, 0.1)
    probs[:, 0] = 0.9
    for row in range(rows):
        probs[row, (row + 1) % rows + 1] = 0.9  # a leaf of another row: one wrong sibling for each leaf
    with counted_matches() as matches:
        result = diagnose(labels, probs, star, Thresholds(np.full(leaves + 1, 0.5)), np.ones(leaves + 1, dtype=int))
    assert (result.state[1:] == "missed").all()
    assert (result.confused_rows[1:] == 1).all()
    expected = [(leaf % rows + 1) % rows + 1 for leaf in range(1, leaves + 1)]
    assert result.confused_with[1:].tolist() == expected
    assert leaves <= sum(matches) <= 4 * leaves


def test_ancestors_by_many_paths_are_visited_once() -> None:
    rungs = 60  # 2 ** 60 paths from the top to the bottom
    ladder = Hierarchy.from_edges(
        [(f"{n:02d}", f"{n:02d} {side}") for n in range(rungs) for side in "lr"]
        + [(f"{n:02d} {side}", f"{n + 1:02d}") for n in range(rungs) for side in "lr"]
    )
    width = len(ladder)
    probs, bottom = np.full((1, width), 0.4), ladder.index[f"{rungs:02d}"]
    probs[0, bottom] = 0.9
    drop = Thresholds(np.full(width, 0.5), "drop_orphans")
    result = diagnose(np.ones((1, width)), probs, ladder, drop, np.ones(width, dtype=int))
    assert result.blocked_by[bottom] == 0


class Lookups(np.ndarray[Any, np.dtype[np.float64]]):
    """Counts the values that indexing returns."""

    count = 0

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        Lookups.count += np.size(found)
        return found


@pytest.mark.parametrize("apart", [1, 300])
def test_a_deep_hierarchy_costs_rows_times_ancestors_for_a_batch_of_nodes(apart: int) -> None:
    """With 3,000 levels there are 4.5 million pairs of a node and an ancestor; not each is looked up in each row."""
    levels, rows = 3_000, 5
    chain = Hierarchy.from_edges([(f"{n:04d}", f"{n + 1:04d}") for n in range(levels - 1)])
    probs = np.random.default_rng(0).random((rows, levels))
    nodes = np.arange(apart, levels, apart)
    cells = Positives(np.repeat(nodes, rows), np.tile(np.arange(rows), len(nodes)))
    Lookups.count = 0
    found = blocking_ancestors(probs.view(Lookups), np.full(levels, 0.5), chain, cells)
    for node in nodes.tolist():
        below = (probs[:, :node] < 0.5).sum(axis=0)
        assert found[node] == np.flatnonzero(below == below.max())[0]
    assert (np.delete(found, nodes) == -1).all()
    assert 0 < Lookups.count <= rows * levels * math.ceil(len(nodes) / NODES_PER_BATCH)


def test_nodes_without_rows_in_common_cost_what_each_of_them_does() -> None:
    leaves = 400
    forest = Hierarchy.from_edges([(f"top {n:03d}", f"leaf {n:03d}") for n in range(leaves)])
    cells = Positives(np.arange(leaves, 2 * leaves), np.arange(leaves))
    Lookups.count = 0
    probs = np.full((leaves, 2 * leaves), 0.4)
    found = blocking_ancestors(probs.view(Lookups), np.full(2 * leaves, 0.5), forest, cells)
    assert found[leaves:].tolist() == list(range(leaves))
    assert leaves <= Lookups.count <= 2 * leaves


def test_ancestors_are_held_only_until_their_children_are_visited() -> None:
    levels = 2_000
    chain = Hierarchy.from_edges([(f"{n:04d}", f"{n + 1:04d}") for n in range(levels - 1)])
    last = Positives(np.array([levels - 1]), np.array([0]))
    tracemalloc.start()
    blocking_ancestors(np.zeros((1, levels)), np.full(levels, 0.5), chain, last)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8 * levels**2 / 8  # an eighth of what all lists of ancestors need together, twice


@contextmanager
def counted_matches() -> Iterator[list[int]]:
    """How many values each look into lists of columns or rows gave."""
    look, matches = Lists.of, []

    def counting(self: Lists, which: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        owner, values = look(self, which)
        matches.append(len(values))
        return owner, values

    with patch.object(Lists, "of", counting):
        yield matches


GOOD: dict[str, Any] = {
    "Y": Y, "probs": PROBS, "hierarchy": PETS, "thresholds": HALF, "training_positives": [1, 1, 1], "scored": None,
    "highest_member_probs": PROBS, "uncertainty": PROBS,
}  # fmt: skip


def changed(array: NDArray[Any], value: float) -> NDArray[Any]:
    other = array.astype(np.float64)
    other[1, 2] = value
    return other


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"Y": Y[:, :2]}, LabelError, r"\(rows, 3\)"),
        ({"Y": Y[:2]}, LabelError, r"labels \(2, 3\) and probabilities \(3, 3\)"),
        ({"Y": changed(Y, 0.5)}, LabelError, "row 1, node 'dog'.*0.5"),
        ({"Y": changed(Y, np.nan)}, LabelError, "row 1, node 'dog'"),
        ({"probs": changed(PROBS, np.nan)}, ArgumentError, "row 1, column 2.*nan"),
        ({"probs": changed(PROBS, 1.5)}, ArgumentError, "row 1, column 2.*from 0 to 1"),
        ({"probs": PROBS[0]}, ArgumentError, "rows, nodes"),
        ({"thresholds": Thresholds(np.full(2, 0.5))}, ArgumentError, "thresholds for 2 nodes"),
        ({"training_positives": [1, 1]}, ArgumentError, "each of 3 nodes"),
        ({"training_positives": [True, True, True]}, ArgumentError, "each of 3 nodes; got bool"),
        ({"training_positives": [1, -1, 1]}, ArgumentError, "column 1.*-1"),
        ({"training_positives": [1, 1, 1.5]}, ArgumentError, "column 2.*1.5"),
        ({"training_positives": [1, 1, np.nan]}, ArgumentError, "column 2.*nan"),
        ({"training_positives": [np.inf, 1, 1]}, ArgumentError, "column 0.*inf"),
        ({"scored": [1, 1, 0]}, ArgumentError, "boolean mask of 3 nodes; got int64"),
        ({"scored": [True, False]}, ArgumentError, "boolean mask of 3 nodes"),
        ({"highest_member_probs": PROBS[:2]}, ArgumentError, "highest_member_probs.*same shape"),
        ({"highest_member_probs": changed(PROBS, -0.5)}, ArgumentError, "highest_member_probs: row 1, column 2"),
        ({"uncertainty": PROBS.T[:2]}, ArgumentError, r"uncertainty.*\(3, 3\)"),
        ({"uncertainty": PROBS.astype(str)}, ArgumentError, "uncertainty must be numbers"),
        ({"uncertainty": changed(PROBS, np.nan)}, ArgumentError, "row 1, column 2: an uncertainty.*nan"),
        ({"uncertainty": changed(PROBS, -np.inf)}, ArgumentError, "row 1, column 2: an uncertainty.*-inf"),
    ],
)
def test_what_does_not_fit_is_refused_with_its_place(
    change: dict[str, Any], error: type[RarenodeError], message: str
) -> None:
    assert diagnose(**GOOD).state.tolist() == ["found", "missed", "found"]
    with pytest.raises(error, match=message):
        diagnose(**{**GOOD, **change})
