"""`summary` and its splits: node-wise means, micro-averaged precision, and how many nodes are found at all."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, precision_recall_fscore_support

from rarenode import Hierarchy
from rarenode.errors import ArgumentError, LabelError
from rarenode.metrics import Summary, summary, summary_by_depth, summary_by_rarity
from tests import oracles
from tests.strategies import closed_labels, hierarchies

BANDS = ("0", "1-4", "5-19", "20-99", "100+")
NOTHING = oracles.Summary(0.0, 0.0, 0.0, 0.0, 0.0, 0, 0, 0)
# Few distinct values, so that ties within and between nodes are the rule.
quantised = st.integers(0, 8).map(lambda n: n / 8)
thresholds = st.sampled_from((0.0, 0.125, 0.5, 0.75, 1.0))


class Case(NamedTuple):
    hierarchy: Hierarchy
    Y: NDArray[np.bool_]
    probs: NDArray[np.float64]
    scored: NDArray[np.bool_] | None

    @property
    def columns(self) -> list[int]:
        return [j for j in range(len(self.hierarchy)) if self.scored is None or self.scored[j]]


@st.composite
def cases(draw: st.DrawFn) -> Case:
    hierarchy = draw(hierarchies())
    nodes, rows = len(hierarchy), draw(st.integers(1, 5))
    elements = draw(st.sampled_from((quantised, st.floats(0.0, 1.0, width=32))))
    scored = draw(st.one_of(st.none(), hnp.arrays(np.bool_, nodes)))
    probs = draw(hnp.arrays(np.float64, (rows, nodes), elements=elements))
    return Case(hierarchy, draw(closed_labels(hierarchy, rows)), probs, scored)


def check(result: Summary, expected: oracles.Summary) -> None:
    for name in ("f1", "precision", "recall", "bin_ap", "ap"):
        assert getattr(result, name) == pytest.approx(getattr(expected, name), abs=1e-12), name
        assert isinstance(getattr(result, name), float), name
    for name in ("nodes", "nodes_predicted", "nodes_found"):
        assert getattr(result, name) == getattr(expected, name), name
        assert isinstance(getattr(result, name), int), name


@given(cases(), thresholds)
def test_it_matches_the_oracle(case: Case, threshold: float) -> None:
    before = case.Y.copy(), case.probs.copy()
    result = summary(case.Y, case.probs, threshold=threshold, scored=case.scored)
    check(result, oracles.summary(case.Y, case.probs, threshold, case.columns))
    assert np.array_equal(case.Y, before[0])
    assert np.array_equal(case.probs, before[1])


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("ties", [False, True])
def test_it_matches_scikit_learn(seed: int, ties: bool) -> None:
    rng = np.random.default_rng(seed)
    Y = rng.random((60, 25)) < 0.1
    probs = np.clip(rng.normal(0.3 + 0.3 * Y, 0.2), 0, 1)
    if ties:
        probs = np.round(probs, 1)
    Y[:, 2] = False
    scored = rng.random(25) < 0.8
    scored[:2] = True
    result = summary(Y, probs, scored=scored)
    truth, chances = Y[:, scored], probs[:, scored]
    assert result.ap == pytest.approx(average_precision_score(truth, chances, average="micro"), abs=1e-12)
    assert result.bin_ap == pytest.approx(average_precision_score(truth, chances >= 0.5, average="micro"), abs=1e-12)
    precision, recall, f1, _ = precision_recall_fscore_support(truth, chances >= 0.5, average="macro", zero_division=0)
    assert (result.precision, result.recall, result.f1) == pytest.approx((precision, recall, f1), abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_the_oracle_matches_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    Y, probs = rng.random((20, 6)) < 0.3, np.round(rng.random((20, 6)), 1)
    assert oracles.average_precision(Y, probs) == pytest.approx(average_precision_score(Y, probs, average="micro"))


def test_single_precision_probabilities() -> None:
    rng = np.random.default_rng(9)
    Y, probs = rng.random((50, 8)) < 0.3, rng.random((50, 8)).astype(np.float32)
    check(summary(Y, probs), oracles.summary(Y, probs, 0.5, range(8)))


def test_predicted_means_at_least_the_threshold() -> None:
    Y = np.array([[True, True], [False, False]])
    probs = np.array([[0.5, np.nextafter(0.5, 0)], [0.0, 0.0]])
    result = summary(Y, probs)
    assert (result.nodes_predicted, result.nodes_found) == (1, 1)
    assert (result.recall, result.precision, result.f1) == (0.5, 0.5, 0.5)
    quarter = summary(Y, np.array([[0.25, 0.2], [0.0, 0.0]]), threshold=0.25)
    assert quarter.nodes_found == 1


def test_by_hand() -> None:
    """Three nodes: one found, one predicted where it is not, one never predicted."""
    Y = np.array([[1, 0, 1], [1, 0, 0], [0, 1, 0], [0, 0, 0]], dtype=bool)
    probs = np.array([[0.9, 0.1, 0.4], [0.6, 0.7, 0.2], [0.5, 0.3, 0.1], [0.2, 0.0, 0.0]])
    result = summary(Y, probs)
    assert (result.nodes, result.nodes_predicted, result.nodes_found) == (3, 2, 1)
    assert result.precision == pytest.approx((2 / 3) / 3)
    assert result.recall == pytest.approx(1 / 3)
    assert result.f1 == pytest.approx(0.8 / 3)
    # Sorted scores: .9+ .7- .6+ .5- .4+ .3+ ... with four positives
    assert result.ap == pytest.approx((1 + 2 / 3 + 3 / 5 + 4 / 6) / 4)
    # Four cells are predicted, two of them rightly; the rest comes at once, with 4 positives in 12 cells
    assert result.bin_ap == pytest.approx(2 / 4 * 2 / 4 + 4 / 12 * 2 / 4)


def test_without_any_positive_label_everything_is_zero() -> None:
    result = summary(np.zeros((4, 3), dtype=bool), np.full((4, 3), 0.9))
    check(result, oracles.Summary(0.0, 0.0, 0.0, 0.0, 0.0, 3, 3, 0))


def test_without_any_prediction() -> None:
    Y = np.eye(4, 3, dtype=bool)
    result = summary(Y, np.zeros((4, 3)))
    check(result, oracles.Summary(0.0, 0.0, 0.0, 3 / 12, 3 / 12, 3, 0, 0))


def test_perfect_predictions() -> None:
    Y = np.eye(4, 3, dtype=bool)
    check(summary(Y, Y.astype(float)), oracles.Summary(1.0, 1.0, 1.0, 1.0, 1.0, 3, 3, 3))


def test_no_scored_node_gives_nothing() -> None:
    result = summary(np.ones((2, 3), dtype=bool), np.ones((2, 3)), scored=np.zeros(3, dtype=bool))
    check(result, NOTHING)


@given(cases(), st.data())
def test_the_order_of_rows_and_nodes_does_not_matter(case: Case, data: st.DataObject) -> None:
    rows = data.draw(st.permutations(range(len(case.Y))))
    nodes = data.draw(st.permutations(range(len(case.hierarchy))))
    scored = None if case.scored is None else case.scored[nodes]
    one = summary(case.Y, case.probs, scored=case.scored)
    other = summary(case.Y[rows][:, nodes], case.probs[rows][:, nodes], scored=scored)
    check(other, oracles.Summary(*(getattr(one, name) for name in oracles.Summary._fields)))


@given(cases(), thresholds)
def test_by_depth_each_depth_is_a_summary_of_its_nodes(case: Case, threshold: float) -> None:
    result = summary_by_depth(case.Y, case.probs, case.hierarchy, threshold=threshold, scored=case.scored)
    depths = [oracles.depth(case.hierarchy.edges, name) for name in case.hierarchy.nodes]
    for depth in set(depths) | set(result):
        columns = [j for j in case.columns if depths[j] == depth]
        if columns or depth in result:  # a depth without scored nodes may be left out, or be empty
            check(result[depth], oracles.summary(case.Y, case.probs, threshold, columns))
    assert list(result) == sorted(result)
    assert sum(part.nodes for part in result.values()) == len(case.columns)


@given(cases(), thresholds, st.data())
def test_by_rarity_each_band_is_a_summary_of_its_nodes(case: Case, threshold: float, data: st.DataObject) -> None:
    counts = data.draw(
        hnp.arrays(np.int64, len(case.hierarchy), elements=st.sampled_from((0, 1, 4, 5, 19, 20, 99, 100, 10_000)))
    )
    result = summary_by_rarity(case.Y, case.probs, counts, threshold=threshold, scored=case.scored)
    assert tuple(result) == BANDS
    band_of = {0: "0", 1: "1-4", 4: "1-4", 5: "5-19", 19: "5-19", 20: "20-99", 99: "20-99", 100: "100+", 10_000: "100+"}
    for band in BANDS:
        columns = [j for j in case.columns if band_of[int(counts[j])] == band]
        check(result[band], oracles.summary(case.Y, case.probs, threshold, columns))


def test_empty_bands_are_there_and_empty() -> None:
    Y = np.eye(3, 2, dtype=bool)
    result = summary_by_rarity(Y, Y.astype(float), np.array([7, 8]))
    assert tuple(result) == BANDS
    check(result["5-19"], oracles.Summary(1.0, 1.0, 1.0, 1.0, 1.0, 2, 2, 2))
    for band in ("0", "1-4", "20-99", "100+"):
        check(result[band], NOTHING)


def test_a_large_matrix() -> None:
    """As large as a GO test split; against scikit-learn, not against the clock."""
    rng = np.random.default_rng(4)
    Y = rng.random((1300, 4100)) < 0.02
    probs = np.round(rng.random((1300, 4100)) * (0.5 + 0.5 * Y), 3)
    result = summary(Y, probs)
    assert result.ap == pytest.approx(average_precision_score(Y, probs, average="micro"), abs=1e-12)
    assert result.nodes == 4100


WRONG: list[tuple[Any, Any, dict[str, Any]]] = [
    (np.zeros((3, 2), dtype=bool), np.zeros((3, 3)), {}),
    (np.zeros((3, 2), dtype=bool), np.zeros((2, 2)), {}),
    (np.zeros(3, dtype=bool), np.zeros(3), {}),
    (np.full((2, 2), 0.5), np.zeros((2, 2)), {}),
    (np.full((2, 2), np.nan), np.zeros((2, 2)), {}),
    (np.zeros((2, 2), dtype=bool), np.array([[0.0, np.nan], [0.0, 0.0]]), {}),
    (np.zeros((2, 2), dtype=bool), np.zeros((2, 2)), {"scored": np.ones(3, dtype=bool)}),
]


@pytest.mark.parametrize(("Y", "probs", "options"), WRONG)
def test_what_does_not_fit_is_refused(Y: Any, probs: Any, options: dict[str, Any]) -> None:
    with pytest.raises((LabelError, ArgumentError)):
        summary(Y, probs, **options)
    hierarchy = Hierarchy.from_edges([("a", "b")])
    with pytest.raises((LabelError, ArgumentError)):
        summary_by_depth(Y, probs, hierarchy, **options)
    with pytest.raises((LabelError, ArgumentError)):
        summary_by_rarity(Y, probs, np.zeros(2, dtype=int), **options)


def test_splits_that_do_not_fit_the_nodes_are_refused() -> None:
    Y, probs = np.zeros((2, 2), dtype=bool), np.zeros((2, 2))
    with pytest.raises((LabelError, ArgumentError)):
        summary_by_rarity(Y, probs, np.zeros(3, dtype=int))
    with pytest.raises((LabelError, ArgumentError)):
        summary_by_depth(Y, probs, Hierarchy.from_edges([("a", "b"), ("b", "c")]))


def test_tensors_that_still_hang_on_a_graph_and_thresholds_that_are_no_number() -> None:
    probs = torch.tensor([[0.9, 0.1]], requires_grad=True)
    assert summary(torch.tensor([[1, 0]]), probs).f1 == 0.5
    for wrong in (float("nan"), [0.5, 0.5], None):
        with pytest.raises(ArgumentError, match="threshold"):
            summary([[1, 0]], [[0.9, 0.1]], threshold=wrong)  # type: ignore[arg-type]
