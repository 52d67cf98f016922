"""`hierarchical_scores`, `information_accretion` and `cafa_scores` against loops over rows and sets of nodes."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

import rarenode.metrics.hierarchical
from rarenode import Hierarchy
from rarenode.errors import ArgumentError, LabelError
from rarenode.hierarchy import Terms
from rarenode.metrics import (
    CafaScores,
    HierarchicalScores,
    accretion_from_counts,
    aspect_masks,
    cafa_scores,
    count_parents_together,
    hierarchical_scores,
    information_accretion,
)
from tests import oracles
from tests.strategies import closed_labels, hierarchies, label_matrices

Bools = NDArray[np.bool_]
PETS = Hierarchy.from_edges([("pet", "cat"), ("pet", "dog")])


class Case(NamedTuple):
    hierarchy: Hierarchy
    Y: Bools
    decided: Bools
    probs: NDArray[np.float64]
    scored: Bools
    known: Bools | None
    accretion: NDArray[np.float64]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    hierarchy = draw(hierarchies())
    nodes, rows = len(hierarchy), draw(st.integers(0, 5))
    namespaces = draw(st.none() | st.tuples(*[st.sampled_from(("F", "P", ""))] * nodes))
    scores = st.one_of(st.sampled_from((0.0, 1.0, 0.06, 0.0595, 0.06049, 0.0094999, 0.0095)), st.floats(0, 1))
    thousandths = st.integers(0, 2000).map(lambda n: n / 2000)
    return Case(
        hierarchy=hierarchy.with_terms(Terms(hierarchy.nodes, namespaces)),
        Y=draw(closed_labels(hierarchy, rows)),
        decided=draw(label_matrices(hierarchy, rows)),
        probs=draw(hnp.arrays(np.float64, (rows, nodes), elements=st.one_of(scores, thousandths))),
        scored=draw(hnp.arrays(np.bool_, nodes)),
        known=draw(st.none() | hnp.arrays(np.bool_, (rows, nodes))),
        accretion=draw(hnp.arrays(np.float64, nodes, elements=st.floats(0, 16))),
    )


# --- loops -----------------------------------------------------------------------------------------------------------


def labels_of(case: Case, matrix: Bools, row: int) -> set[int]:
    """The columns of a row's labels and of their ancestors, as far as they are known."""
    names = case.hierarchy.nodes
    found = {c for c in range(len(names)) if matrix[row, c]}
    found |= {case.hierarchy.index[a] for c in found for a in case.hierarchy.ancestors(names[c])}
    return {c for c in found if case.known is None or case.known[row, c]}


def columns_of_aspects(case: Case) -> dict[str, set[int]]:
    assert case.hierarchy.terms is not None
    namespaces = case.hierarchy.terms.namespaces
    everything = set(range(len(case.hierarchy)))
    if namespaces is None or set(namespaces) == {""}:
        return {"all": everything}
    names = {"": "without namespace", "F": "F", "P": "P"}
    found = {names[n]: {c for c in everything if namespaces[c] == n} for n in sorted(set(namespaces))}
    return found


def slow_cafa(case: Case, aspect: set[int]) -> CafaScores | None:
    scored = {c for c in aspect if case.scored[c]}
    truths = [(row, labels_of(case, case.Y, row)) for row in range(len(case.Y))]
    truths = [(row, labels) for row, labels in truths if labels & aspect]
    if not truths or not scored:
        return None

    def bits(columns: set[int]) -> float:
        return sum(float(case.accretion[c]) for c in columns)

    rounded = np.array([[float(f"{p:.3f}") for p in row] for row in case.probs.tolist()])
    curve = []
    for step in range(99):
        threshold = 0.01 + step * 0.01
        precisions, recalls, missed, wrong = [], [], 0.0, 0.0
        for row, labels in truths:
            predicted = labels_of(case, rounded >= threshold, row) & scored
            true = labels & scored
            if predicted:
                precisions.append(len(predicted & true) / len(predicted))
            recalls.append(len(predicted & true) / len(true) if true else 0.0)
            missed += bits(true - predicted)
            wrong += bits(predicted - true)
        if precisions:
            p, r = sum(precisions) / len(precisions), sum(recalls) / len(truths)
            f = 2 * p * r / (p + r) if p + r else 0.0
            s = math.hypot(missed / len(truths), wrong / len(truths))
            curve.append((round(threshold, 2), f, s, len(precisions) / len(truths)))
    if not curve:
        return CafaScores(len(truths), 0.0, None, 0.0, sum(bits(t & scored) for _, t in truths) / len(truths), None)
    f_max, s_min = max(f for _, f, _, _ in curve), min(s for _, _, s, _ in curve)
    at, coverage = next((t, c) for t, f, _, c in curve if f > f_max - 1e-9)
    return CafaScores(len(truths), f_max, at, coverage, s_min, next(t for t, _, s, _ in curve if s < s_min + 1e-9))


def same(ours: CafaScores, theirs: CafaScores) -> bool:
    """Equal but for rounding, and thus for the choice between thresholds whose scores differ by as much."""
    pairs = (ours.f_max, theirs.f_max), (ours.s_min, theirs.s_min)
    return ours.rows == theirs.rows and all(a is not None and a == pytest.approx(b, abs=1e-9) for a, b in pairs)


# --- agreement -------------------------------------------------------------------------------------------------------


@given(cases())
def test_hierarchical_scores_are_those_of_sets(case: Case) -> None:
    hits = predicted = true = 0
    scored = {c for c in range(len(case.hierarchy)) if case.scored[c]}
    for row in range(len(case.Y)):
        y, d = (labels_of(case, matrix, row) & scored for matrix in (case.Y, case.decided))
        hits, predicted, true = hits + len(y & d), predicted + len(d), true + len(y)
    precision, recall = hits / predicted if predicted else 0.0, hits / true if true else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    found = hierarchical_scores(case.Y, case.decided, case.hierarchy, scored=case.scored, known=case.known)
    assert (found.precision, found.recall, found.f1) == pytest.approx((precision, recall, f1))


@given(cases())
def test_information_accretion_is_that_of_counted_rows(case: Case) -> None:
    expected = []
    for column, node in enumerate(case.hierarchy.nodes):
        parents = [case.hierarchy.index[parent] for parent in case.hierarchy.parents(node)]
        rows = [r for r in range(len(case.Y)) if case.known is None or case.known[r, column]]
        together = [r for r in rows if all(case.Y[r, parent] for parent in parents)]
        positives = [r for r in rows if case.Y[r, column]]
        expected.append(-math.log2((1 + len(positives)) / (1 + len(together))))
    found = information_accretion(case.Y, case.hierarchy, known=case.known)
    np.testing.assert_allclose(found, expected, atol=1e-12)
    assert (found >= 0).all()


@given(cases())
def test_cafa_scores_are_those_of_sets(case: Case) -> None:
    found = cafa_scores(
        case.Y, case.probs, case.hierarchy, case.accretion, scored=case.scored, known=case.known
    )
    expected = {aspect: slow_cafa(case, columns) for aspect, columns in columns_of_aspects(case).items()}
    assert list(found) == [aspect for aspect, scores in expected.items() if scores is not None]
    for aspect, ours in found.items():
        theirs = expected[aspect]
        assert theirs is not None
        assert same(ours, theirs), (ours, theirs)
        if ours.f_max_threshold == theirs.f_max_threshold:
            assert ours.coverage == theirs.coverage
    without = cafa_scores(case.Y, case.probs, case.hierarchy, scored=case.scored, known=case.known)
    assert {name: (s.f_max, s.f_max_threshold, s.coverage) for name, s in found.items()} == {
        name: (s.f_max, s.f_max_threshold, s.coverage) for name, s in without.items()
    }
    assert all(s.s_min is None and s.s_min_threshold is None for s in without.values())


@given(cases())
def test_aspects_share_out_the_nodes(case: Case) -> None:
    masks = aspect_masks(case.hierarchy)
    assert {name: set(np.flatnonzero(mask).tolist()) for name, mask in masks.items()} == columns_of_aspects(case)


# --- conventions -----------------------------------------------------------------------------------------------------


def test_blocks_of_rows_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    Y = PETS.close(rng.random((50, 3)) < 0.4)
    probs, known = rng.random((50, 3)), rng.random((50, 3)) < 0.8

    def everything() -> tuple[HierarchicalScores, list[float], dict[str, CafaScores]]:
        bits = information_accretion(Y, PETS, known=known)
        return (
            hierarchical_scores(Y, probs > 0.5, PETS, known=known),
            bits.tolist(),
            cafa_scores(Y, probs, PETS, bits, known=known),
        )

    whole = everything()
    monkeypatch.setattr(rarenode.metrics.hierarchical, "CELLS_PER_BLOCK", 400)
    parts = everything()
    assert parts[:2] == whole[:2]
    assert same(parts[2]["all"], whole[2]["all"])


def test_scores_are_rounded_as_in_a_file() -> None:
    """The highest threshold that a score reaches is that of the number in the file."""
    scores = [k / 2000 for k in range(2001)]
    for score in (*scores, *np.nextafter(scores, 0).tolist(), *np.nextafter(scores, 1).tolist()):
        reached = np.searchsorted(rarenode.metrics.hierarchical.LEAST_SCORES, score, side="right")
        assert reached == sum(float(f"{score:.3f}") >= 0.01 + k * 0.01 for k in range(99)), score


def test_nothing_predicted() -> None:
    Y = np.array([[1, 1, 0], [1, 0, 1], [0, 0, 0]])
    found = cafa_scores(Y, np.full((3, 3), 0.009), PETS, [0.5, 1, 3])
    assert found == {"all": CafaScores(2, 0.0, None, 0.0, 2.5, None)}
    assert hierarchical_scores(Y, np.zeros((3, 3)), PETS) == HierarchicalScores(0.0, 0.0, 0.0)


def test_no_rows_no_labels_no_scored_nodes() -> None:
    none = np.zeros((0, 3), dtype=np.bool_)
    assert cafa_scores(none, none.astype(float), PETS) == {}
    assert cafa_scores(np.zeros((2, 3)), np.ones((2, 3)), PETS) == {}
    assert cafa_scores(np.ones((2, 3)), np.ones((2, 3)), PETS, scored=np.zeros(3, dtype=np.bool_)) == {}
    assert information_accretion(none, PETS).tolist() == [0, 0, 0]


def test_roots_that_every_row_has_say_nothing() -> None:
    Y = oracles.close(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 1]], dtype=np.bool_), PETS)
    assert count_parents_together(Y, PETS).tolist() == [3, 3, 3]
    assert information_accretion(Y, PETS).tolist() == pytest.approx([0, 1, math.log2(4 / 3)])


def test_what_cannot_be_used() -> None:
    Y, probs = np.ones((2, 3), dtype=np.bool_), np.ones((2, 3))
    for wrong in (np.ones((2, 2), dtype=np.bool_), np.ones((2, 3))):
        with pytest.raises(LabelError, match="known must be boolean"):
            hierarchical_scores(Y, Y, PETS, known=wrong)
    with pytest.raises(LabelError, match=r"labels \(2, 3\) and decided labels \(1, 3\)"):
        hierarchical_scores(Y, Y[:1], PETS)
    with pytest.raises(LabelError, match="one column for each node"):
        cafa_scores(Y[:, :2], probs[:, :2], PETS)
    with pytest.raises(ArgumentError, match="row 0, column 0 is NaN"):
        cafa_scores(Y, probs * np.nan, PETS)
    for bits in ([1, 2], [0, 1, np.inf]):
        with pytest.raises(ArgumentError, match="one finite number for each of 3 nodes"):
            cafa_scores(Y, probs, PETS, bits)
    with pytest.raises(ArgumentError, match="more rows than all its parents"):
        accretion_from_counts([3, 4], [3, 3])
