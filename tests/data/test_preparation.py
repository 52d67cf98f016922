from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.preprocessing import StandardScaler

from rarenode import Preparation
from rarenode.data.preparation import prepare_as_published
from rarenode.errors import DataError

MATRIX = arrays(
    np.float64,
    st.tuples(st.integers(1, 8), st.just(3)),
    elements=st.one_of(st.integers(-8000, 8000).map(lambda number: number / 8), st.just(np.nan)),
)


def test_statistics_are_those_of_training_rows_alone() -> None:
    preparation = Preparation.fit(np.array([[1.0, 7.0], [3.0, 7.0], [np.nan, 7.0]]))
    np.testing.assert_allclose(preparation.fill, [2, 7])
    np.testing.assert_allclose(preparation.deviation, [np.sqrt(2 / 3), 1])
    prepared = preparation.apply(np.array([[np.nan, np.nan], [100.0, 8.0]]))
    np.testing.assert_allclose(prepared, [[0, 0], [98 / np.sqrt(2 / 3), 1]], rtol=1e-6)
    assert prepared.dtype == np.float32


def test_a_feature_that_is_never_known_becomes_zero() -> None:
    preparation = Preparation.fit(np.array([[np.nan], [np.nan]]))
    np.testing.assert_array_equal(preparation.apply(np.array([[np.nan], [0.0]])), [[0], [0]])


@given(train=MATRIX, other=MATRIX)
def test_prepared_features_are_finite_and_rows_do_not_see_each_other(
    train: np.ndarray[tuple[int, int], np.dtype[np.float64]], other: np.ndarray[tuple[int, int], np.dtype[np.float64]]
) -> None:
    preparation = Preparation.fit(train)
    together = preparation.apply(other)
    assert np.isfinite(together).all()
    alone = np.concatenate([preparation.apply(row[None]) for row in other])
    np.testing.assert_array_equal(together, alone)


@given(train=MATRIX, valid=MATRIX, test=MATRIX)
def test_as_published_fills_each_split_from_itself_and_scales_by_train_and_valid(
    train: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    valid: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    test: np.ndarray[tuple[int, int], np.dtype[np.float64]],
) -> None:
    def filled(X: np.ndarray[tuple[int, int], np.dtype[np.float64]]) -> list[list[float]]:
        columns = []
        for column in X.T:
            known = [value for value in column if not np.isnan(value)]
            mean = sum(known) / len(known) if known else 0.0
            columns.append([mean if np.isnan(value) else value for value in column])
        return [list(row) for row in zip(*columns, strict=True)]

    # The oracle's own idea of "constant" differs by rounding; such columns are not what this test is about.
    rows = np.array(filled(train) + filled(valid))
    varied = rows.std(axis=0) > 1e-6
    scaler = StandardScaler().fit(rows)
    for ours, split in zip(prepare_as_published(train, valid, test), (train, valid, test), strict=True):
        assert ours is not None
        assert np.isfinite(ours).all()
        expected = scaler.transform(np.array(filled(split)))
        np.testing.assert_allclose(ours[:, varied], expected[:, varied], rtol=1e-5, atol=1e-5)


def test_without_validation_rows_the_training_rows_give_the_scale() -> None:
    train, valid, test = prepare_as_published(np.array([[0.0], [2.0]]), None, np.array([[4.0]]))
    assert valid is None
    np.testing.assert_allclose(train, [[-1], [1]])
    np.testing.assert_allclose(test, [[3]])


def test_bad_features_are_named() -> None:
    preparation = Preparation.fit(np.ones((2, 2)))
    with pytest.raises(DataError, match=r"\(rows, 2\)"):
        preparation.apply(np.ones((2, 3)))
    with pytest.raises(DataError, match="row 1, feature 0"):
        preparation.apply(np.array([[0.0, 0.0], [np.inf, 0.0]]))
    with pytest.raises(DataError, match="row 0, feature 1: 1e\\+100 is too large"):
        preparation.apply(np.array([[0.0, 1e100]]))
    with pytest.raises(DataError, match="at least one"):
        Preparation.fit(np.ones((0, 2)))
