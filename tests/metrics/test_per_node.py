"""`node_scores`: precision, recall and F1 of each node."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from sklearn.metrics import precision_recall_fscore_support

from rarenode import node_scores
from rarenode.errors import ArgumentError, LabelError
from tests import oracles

Bools = NDArray[np.bool_]


@st.composite
def pairs_of_matrices(draw: st.DrawFn) -> tuple[Bools, Bools]:
    shape = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    return draw(hnp.arrays(np.bool_, shape)), draw(hnp.arrays(np.bool_, shape))


@given(pairs_of_matrices())
def test_they_match_counting(case: tuple[Bools, Bools]) -> None:
    Y, predicted = case
    scores = node_scores(Y, predicted)
    expected = [oracles.scores_of_node(Y[:, j], predicted[:, j]) for j in range(Y.shape[1])]
    assert scores.precision == pytest.approx([e.precision for e in expected])
    assert scores.recall == pytest.approx([e.recall for e in expected])
    assert scores.f1 == pytest.approx([e.f1 for e in expected])
    assert scores.precision.shape == scores.recall.shape == scores.f1.shape == (Y.shape[1],)


@pytest.mark.parametrize("seed", range(5))
def test_they_match_scikit_learn(seed: int) -> None:
    rng = np.random.default_rng(seed)
    Y, predicted = rng.random((40, 30)) < 0.15, rng.random((40, 30)) < 0.2
    Y[:, 3], predicted[:, 5] = False, False  # undefined recall, undefined precision
    Y[:, 7], predicted[:, 7] = False, False  # both
    Y[:, 9], predicted[:, 9] = True, True
    precision, recall, f1, _ = precision_recall_fscore_support(Y, predicted, average=None, zero_division=0)
    scores = node_scores(Y, predicted)
    np.testing.assert_allclose(scores.precision, precision, atol=1e-12)
    np.testing.assert_allclose(scores.recall, recall, atol=1e-12)
    np.testing.assert_allclose(scores.f1, f1, atol=1e-12)


def test_by_hand() -> None:
    Y = np.array([[1, 0, 1, 0], [1, 0, 0, 0], [1, 1, 0, 0], [0, 1, 0, 0]], dtype=bool)
    predicted = np.array([[1, 0, 0, 1], [1, 1, 0, 0], [0, 1, 0, 0], [1, 0, 0, 0]], dtype=bool)
    scores = node_scores(Y, predicted)
    assert scores.precision == pytest.approx([2 / 3, 1 / 2, 0, 0])
    assert scores.recall == pytest.approx([2 / 3, 1 / 2, 0, 0])
    assert scores.f1 == pytest.approx([2 / 3, 1 / 2, 0, 0])


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float32])
def test_numbers_0_and_1_are_as_good_as_booleans(dtype: type) -> None:
    rng = np.random.default_rng(1)
    Y, predicted = rng.random((300, 4)) < 0.9, rng.random((300, 4)) < 0.9  # more than 255 of each
    one, other = node_scores(Y.astype(dtype), predicted.astype(dtype)), node_scores(Y, predicted)
    assert one.f1.tolist() == other.f1.tolist()
    assert one.recall.tolist() == other.recall.tolist()


def test_no_rows_give_zeros() -> None:
    scores = node_scores(np.zeros((0, 3), dtype=bool), np.zeros((0, 3), dtype=bool))
    assert scores.f1.tolist() == scores.precision.tolist() == scores.recall.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize(
    ("Y", "predicted"),
    [
        (np.zeros((3, 2)), np.zeros((3, 3))),
        (np.zeros((3, 2)), np.zeros((2, 2))),
        (np.zeros(3), np.zeros(3)),
        (np.full((2, 2), 2), np.zeros((2, 2))),
        (np.zeros((2, 2)), np.full((2, 2), 0.5)),
        (np.full((2, 2), np.nan), np.zeros((2, 2))),
        (np.zeros((2, 2)), np.full((2, 2), np.nan)),
    ],
)
def test_what_is_not_two_matrices_of_0_and_1_is_refused(Y: NDArray[np.float64], predicted: NDArray[np.float64]) -> None:
    with pytest.raises((LabelError, ArgumentError)):
        node_scores(Y, predicted)
