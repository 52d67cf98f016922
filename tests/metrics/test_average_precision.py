from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.metrics import average_precision_score

from rarenode.metrics.average_precision import POINTS, macro_average_precision, precision_at_recalls


def oracle(truth: list[bool], scores: list[float]) -> list[float]:
    """From the definition: every threshold, and for each recall the best precision of those that reach it."""
    reached = []
    for threshold in scores:
        decided = [positive for positive, score in zip(truth, scores, strict=True) if score >= threshold]
        reached.append((Fraction(sum(decided), sum(truth)), sum(decided) / len(decided)))
    return [
        max(precision for recall, precision in reached if recall >= Fraction(point, POINTS))
        for point in range(1, POINTS + 1)
    ]


@given(st.data(), st.tuples(st.integers(1, 6), st.integers(1, 4)))
def test_against_every_threshold(data: st.DataObject, shape: tuple[int, int]) -> None:
    truth = data.draw(arrays(np.bool_, shape))
    scores = data.draw(arrays(np.float32, shape, elements=st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75, 1.0])))
    curve = precision_at_recalls(truth, scores)
    if not truth.any():
        assert curve is None
    else:
        assert curve is not None
        assert curve.tolist() == pytest.approx(oracle(truth.ravel().tolist(), scores.ravel().tolist()))


def test_a_recall_that_is_just_reached_counts() -> None:
    """29 of 100 positives is a recall of 0.29, though 0.29 * 100 is 28.999... in binary."""
    truth = np.array([[True] * 29 + [False] * 71 + [True] * 71])
    scores = np.linspace(1, 0, 171)[np.newaxis]
    curve = precision_at_recalls(truth, scores)
    assert curve is not None
    assert curve[28] == 1
    assert curve[29] < 1


@given(st.data(), st.tuples(st.integers(1, 8), st.integers(1, 5)))
def test_the_macro_average_is_that_of_scikit_learn(data: st.DataObject, shape: tuple[int, int]) -> None:
    truth = data.draw(arrays(np.bool_, shape))
    scores = data.draw(arrays(np.float32, shape, elements=st.sampled_from([0.0, 0.125, 0.25, 0.5, 0.75, 1.0])))
    known = data.draw(arrays(np.bool_, shape))
    for mask in (None, known):
        each = []
        for node in range(shape[1]):
            rows = np.ones(shape[0], dtype=np.bool_) if mask is None else mask[:, node]
            if truth[rows, node].any():
                each.append(average_precision_score(truth[rows, node], scores[rows, node]))
        expected = np.mean(each) if each else 0.0
        assert macro_average_precision(truth, scores, mask) == pytest.approx(expected)
