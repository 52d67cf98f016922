"""Guaranteed recall beside a model's thresholds: against its definition, in loops, on random hierarchies."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy.stats import binom

from rarenode import Hierarchy
from rarenode.errors import ArgumentError
from rarenode.thresholds import GuaranteedRecall, Thresholds, make_strategy
from rarenode.thresholds.guarantees import most_left_out
from tests import oracles
from tests.strategies import closed_labels, hierarchies, three_valued
from tests.thresholds.oracles import EIGHTHS

Bools = NDArray[np.bool_]
RECALLS = (0.3, 0.5, 0.6)
"""They take 2, 4 and 5 rows."""


def thresholds_by_definition(recall: float, probs: NDArray[Any], has: Bools) -> list[float]:
    """The r-th smallest probability for the largest r that keeps the promise."""
    own = []
    for column in range(probs.shape[1]):
        rising = sorted(float(p) for p in probs[has[:, column], column])
        kept = [r for r in range(1, len(rising) + 1) if binom.sf(r - 1, len(rising), 1 - recall) >= 0.9]
        own.append((rising[max(kept) - 1] if kept else 0.0) or math.inf)
    return own


@st.composite
def cases(draw: st.DrawFn, positive: bool = False) -> tuple[Hierarchy, NDArray[np.float64], Bools]:
    """Closed labels, and coherent probabilities with many ties, 0 among them unless they are to be ``positive``."""
    hierarchy = draw(hierarchies(6))
    count = draw(st.integers(1, 14))
    probs = oracles.constrain(draw(hnp.arrays(np.float64, (count, len(hierarchy)), elements=EIGHTHS)), hierarchy)
    return hierarchy, np.maximum(probs, 0.01) if positive else probs, draw(closed_labels(hierarchy, count))


@given(cases(), st.sampled_from(RECALLS))
def test_thresholds_are_those_of_the_definition(
    case: tuple[Hierarchy, NDArray[np.float64], Bools], recall: float
) -> None:
    _, probs, labels = case
    found = GuaranteedRecall.fit(recall, probs, labels)
    assert found.thresholds.values.tolist() == thresholds_by_definition(recall, probs, labels)
    assert found.rows.tolist() == [sum(labels[:, column].tolist()) for column in range(probs.shape[1])]
    assert (found.thresholds.rule, found.thresholds.strategy) == (None, f"guaranteed, recall:{recall}")
    assert found.is_guaranteed.tolist() == [not math.isinf(value) for value in found.thresholds.values.tolist()]


@given(cases(), st.sampled_from(RECALLS), st.data())
def test_a_set_has_the_rows_that_reach_the_own_threshold_of_the_node_and_no_others(
    case: tuple[Hierarchy, NDArray[np.float64], Bools], recall: float, data: st.DataObject
) -> None:
    hierarchy, probs, labels = case
    found = GuaranteedRecall.fit(recall, probs, labels)
    new = oracles.constrain(data.draw(hnp.arrays(np.float64, (5, len(hierarchy)), elements=EIGHTHS)), hierarchy)
    for some in (probs, new):
        sets = found.thresholds.decide(some, hierarchy)
        for row, column in np.ndindex(some.shape):
            assert sets[row, column] == (some[row, column] >= found.thresholds.values[column])
        assert not sets[:, ~found.is_guaranteed].any()
    # As many of its own held-out rows are left out as the promise allows, at most.
    missed = (labels & ~found.thresholds.decide(probs, hierarchy)).sum(axis=0)
    for column in np.flatnonzero(found.is_guaranteed).tolist():
        assert binom.cdf(missed[column], labels[:, column].sum(), 1 - recall) <= 0.1


@given(cases(positive=True), st.sampled_from(RECALLS))
def test_where_all_is_possible_enough_rows_are_a_guarantee(
    case: tuple[Hierarchy, NDArray[np.float64], Bools], recall: float
) -> None:
    _, probs, labels = case
    found = GuaranteedRecall.fit(recall, probs, labels)
    assert found.is_guaranteed.tolist() == (found.rows >= found.rows_needed).tolist()


@given(st.data(), st.sampled_from(RECALLS))
def test_unknown_labels_do_not_count(data: st.DataObject, recall: float) -> None:
    hierarchy = data.draw(hierarchies(5))
    labels, known = data.draw(three_valued(hierarchy, 10))
    probs = oracles.constrain(data.draw(hnp.arrays(np.float64, labels.shape, elements=EIGHTHS)), hierarchy)
    spoilt = np.where(known, labels, data.draw(hnp.arrays(np.bool_, labels.shape)))
    found = GuaranteedRecall.fit(recall, probs, spoilt, known=known)
    assert found.thresholds.values.tolist() == thresholds_by_definition(recall, probs, labels & known)
    assert found.rows.tolist() == (labels & known).sum(axis=0).tolist()


@pytest.mark.parametrize("recall", [1e-20, 0.05, 0.3, 0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
def test_rows_that_a_guarantee_takes(recall: float) -> None:
    """The least n with which none of n rows is below the threshold with a probability of 0.1 at most."""
    needed = GuaranteedRecall(recall, Thresholds(np.zeros(1)), np.zeros(1, dtype=np.int64)).rows_needed
    assert needed == next(n for n in range(1, 5000) if binom.cdf(0, n, 1 - recall) <= 0.1)
    assert most_left_out(needed, recall) == 0
    assert recall != 0.9 or needed == 22


def test_a_node_below_one_without_a_guarantee_has_its_own() -> None:
    """The child is found in all its rows, but the model gives a probability of 0 to half the rows of its parent."""
    chain = Hierarchy.from_edges([("a", "b")])
    probs = np.repeat([[0.9, 0.8], [0.0, 0.0]], 5, axis=0)
    labels = np.repeat([[True, True], [True, False]], 5, axis=0)
    found = GuaranteedRecall.fit(0.5, probs, labels)
    assert found.is_guaranteed.tolist() == [False, True]
    assert found.thresholds.decide(probs, chain).tolist() == [[False, True]] * 5 + [[False, False]] * 5
    assert found.in_words(np.ones(2, dtype=np.bool_)) == (
        "1 of 2 nodes has a guaranteed recall of 0.5 (with a probability of 0.9); left out: 1 whose probability is 0 "
        "in held-out rows that have them"
    )
    assert (found.reason(0), found.reason(1)) == ("its probability is 0 in held-out rows that have it", "")


def test_a_set_does_not_grow_with_that_of_a_descendant() -> None:
    """The child's only threshold lets in all rows; its parent's own is high."""
    chain = Hierarchy.from_edges([("a", "b")])
    labels = np.array([[True, True]] * 4 + [[False, False]] * 6)
    probs = np.array([[0.8, 0.01]] * 4 + [[0.1, 0.01]] * 6)
    sets = GuaranteedRecall.fit(0.5, probs, labels).thresholds.decide(probs, chain)
    assert sets.sum(axis=0).tolist() == [4, 10]


def test_in_words() -> None:
    values = np.array([0.1, 0.2, np.inf, np.inf, np.inf])
    found = GuaranteedRecall(0.9, Thresholds(values), np.array([4000, 22, 21, 0, 30]))
    every = np.ones(5, dtype=np.bool_)
    assert found.in_words(every) == (
        "2 of 5 nodes have a guaranteed recall of 0.9 (with a probability of 0.9); left out: 2 with fewer than 22 "
        "held-out rows and 1 whose probability is 0 in held-out rows that have them"
    )
    assert found.in_words(np.arange(5) == 1) == (
        "1 of 1 node has a guaranteed recall of 0.9 (with a probability of 0.9)"
    )


def test_guaranteed_is_no_strategy_to_train_with() -> None:
    with pytest.raises(ArgumentError, match="unknown threshold strategy 'guaranteed'"):
        make_strategy("guaranteed")
