"""Metrics leave out cells whose label is unknown: against scikit-learn, node by node, on the rows that are known."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from sklearn.metrics import average_precision_score, f1_score, precision_score, recall_score

from rarenode import Hierarchy
from rarenode.errors import LabelError
from rarenode.metrics import node_scores, summarize_groups, summary, summary_by_depth, summary_by_rarity
from rarenode.metrics.average_precision import average_precision, precision_at_recalls
from rarenode.metrics.bootstrap import deviations_over_rows
from tests import oracles
from tests.metrics.test_bootstrap import SCORES
from tests.metrics.test_summary import check
from tests.strategies import hierarchies, three_valued

Bools = NDArray[np.bool_]
EIGHTHS = st.integers(0, 8).map(lambda n: n / 8)


class Case(NamedTuple):
    hierarchy: Hierarchy
    Y: Bools
    known: Bools
    probs: NDArray[np.float64]
    scored: Bools

    @property
    def columns(self) -> list[int]:
        return np.flatnonzero(self.scored).tolist()


@st.composite
def cases(draw: st.DrawFn) -> Case:
    hierarchy, rows = draw(hierarchies()), draw(st.integers(1, 6))
    Y, known = draw(three_valued(hierarchy, rows))
    probs = draw(hnp.arrays(np.float64, Y.shape, elements=EIGHTHS))
    return Case(hierarchy, Y, known, probs, draw(hnp.arrays(np.bool_, len(hierarchy))))


@given(cases())
def test_scores_of_a_node_are_those_of_scikit_learn_on_its_rows(case: Case) -> None:
    predicted = case.probs >= 0.5
    found = node_scores(case.Y, predicted, case.known)
    for node in range(len(case.hierarchy)):
        rows = case.known[:, node]
        y, p = case.Y[rows, node], predicted[rows, node]
        assert found.support[node] == y.sum()
        assert found.predicted[node] == p.sum()
        if len(y):
            for name, score in (("precision", precision_score), ("recall", recall_score), ("f1", f1_score)):
                assert getattr(found, name)[node] == pytest.approx(score(y, p, zero_division=0)), name
        if y.any():
            ap = average_precision(case.Y[:, node], case.probs[:, node], rows)
            assert ap == pytest.approx(average_precision_score(y, case.probs[rows, node]))


@given(cases())
def test_the_average_precision_of_all_cells_is_that_of_scikit_learn_on_known_ones(case: Case) -> None:
    y, p = case.Y[case.known], case.probs[case.known]
    expected = average_precision_score(y, p) if y.any() else 0.0
    assert average_precision(case.Y, case.probs, case.known) == pytest.approx(expected)
    curve = precision_at_recalls(case.Y, case.probs, case.known)
    of_list = precision_at_recalls(y, p)
    assert (curve is None) == (of_list is None)
    if curve is not None and of_list is not None:
        assert curve.tolist() == of_list.tolist()


@given(cases())
def test_summaries_match_the_oracle(case: Case) -> None:
    hierarchy, Y, known, probs, scored = case
    check(summary(Y, probs, scored=scored, known=known), oracles.summary(Y, probs, 0.5, case.columns, known))
    for depth, found in summary_by_depth(Y, probs, hierarchy, scored=scored, known=known).items():
        columns = [j for j in case.columns if hierarchy.depth[j] == depth]
        check(found, oracles.summary(Y, probs, 0.5, columns, known))
    training = np.arange(len(hierarchy)) * 3
    bands = summary_by_rarity(Y, probs, training, scored=scored, known=known)
    check(bands["1-4"], oracles.summary(Y, probs, 0.5, [j for j in case.columns if j == 1], known))


@given(cases())
def test_groups_are_summaries(case: Case) -> None:
    hierarchy, Y, known, probs, scored = case
    training, decided = np.arange(len(hierarchy)) * 3, probs >= 0.25
    found = summarize_groups(Y, probs, decided, hierarchy, training, scored, known)
    expected = oracles.summary(Y, decided.astype(float), 0.5, case.columns, known)
    check(found.all, expected._replace(ap=oracles.summary(Y, probs, 0.5, case.columns, known).ap))
    scores = node_scores(Y, decided, known)
    assert sum(found.recall_histograms["all"]) == (scored & (scores.support > 0)).sum()
    assert found.recall_histograms["all"][0] == (scored & (scores.support > 0) & (scores.true_positives == 0)).sum()


@given(cases(), st.integers(0, 99))
def test_deviations_are_those_of_drawn_rows(case: Case, seed: int) -> None:
    Y, known, probs = case.Y, case.known, case.probs
    predicted, rows = probs >= 0.5, len(Y)
    found = deviations_over_rows(Y, probs, predicted, draws=10, seed=seed, known=known)
    values: dict[str, list[float]] = {name: [] for name in SCORES}
    for counts in np.random.default_rng(seed).multinomial(rows, np.full(rows, 1 / rows), size=10):
        drawn = np.repeat(np.arange(rows), counts)
        decided = summary(Y[drawn], predicted[drawn].astype(float), known=known[drawn])
        for name in SCORES:
            ap = summary(Y[drawn], probs[drawn], known=known[drawn]).ap
            values[name].append(ap if name == "ap" else getattr(decided, name))
    for name in SCORES:
        assert getattr(found, name) == pytest.approx(np.std(values[name]), abs=1e-6), name


@given(cases(), st.data())
def test_what_is_predicted_at_unknown_cells_does_not_matter(case: Case, data: st.DataObject) -> None:
    hierarchy, Y, known, probs, scored = case
    other = np.where(known, probs, data.draw(hnp.arrays(np.float64, Y.shape, elements=EIGHTHS)))
    training = np.zeros(len(hierarchy), dtype=np.int64)
    groups = [summarize_groups(Y, p, p >= 0.5, hierarchy, training, scored, known) for p in (probs, other)]
    assert groups[0] == groups[1]
    deviations = [deviations_over_rows(Y, p, p >= 0.5, draws=5, known=known) for p in (probs, other)]
    assert deviations[0] == deviations[1]


@given(cases())
def test_a_mask_of_what_is_known_everywhere_is_none(case: Case) -> None:
    everywhere = np.ones_like(case.known)
    assert summary(case.Y, case.probs, known=everywhere) == summary(case.Y, case.probs)


def test_what_is_known_must_fit() -> None:
    with pytest.raises(LabelError, match="known must be boolean"):
        node_scores([[1, 0]], [[1, 1]], [[1, 1]])
    with pytest.raises(LabelError, match="known must be boolean"):
        summary([[1, 0]], [[0.5, 0.5]], known=np.ones((2, 2), dtype=np.bool_))
