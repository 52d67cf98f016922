"""Projections of sparse features, against plain loops and scikit-learn's truncated singular value decomposition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.sparse import csr_array
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import maxabs_scale, normalize

from rarenode import Preparation
from rarenode.data.projection import Projection
from rarenode.errors import DataError

Matrix = NDArray[np.float64]


def words(rows: int, columns: int, seed: int = 0) -> Matrix:
    """Few numbers above 0 in each row, and some rows of zeros."""
    rng = np.random.default_rng(seed)
    X: Matrix = rng.poisson(0.1, (rows, columns)) * rng.choice([1.0, 7.5], columns)
    X[:2] = 0
    return X


def by_loops(X: Matrix, largest: list[float], directions: Matrix) -> list[list[float]]:
    found = []
    for row in X.tolist():
        scaled = [value / most for value, most in zip(row, largest, strict=True)]
        length = sum(value**2 for value in scaled) ** 0.5 or 1.0
        found.append([sum(v / length * d for v, d in zip(scaled, way, strict=True)) for way in directions.T.tolist()])
    return found


def test_the_formula() -> None:
    train, other = words(40, 12), words(9, 12, 1)
    projection = Projection.fit(csr_array(train), 5)
    largest = [max(abs(column).tolist()) or 1.0 for column in train.T]
    assert projection.largest.tolist() == largest
    expected = by_loops(other, largest, projection.directions.astype(np.float64))
    np.testing.assert_allclose(projection.apply(csr_array(other)), expected, atol=1e-12)


def test_no_directions_keep_more_and_scikit_learns_keep_as_much() -> None:
    X = words(200, 60)
    projection = Projection.fit(csr_array(X), 10)
    np.testing.assert_allclose(projection.directions.T @ projection.directions, np.eye(10), atol=1e-5)
    scaled = normalize(maxabs_scale(X))
    kept = np.square(projection.apply(csr_array(X))).sum()
    most = np.square(np.linalg.svd(scaled, compute_uv=False)[:10]).sum()
    assert kept == pytest.approx(most, rel=1e-3)
    theirs = TruncatedSVD(10, algorithm="arpack").fit_transform(scaled)
    assert kept == pytest.approx(np.square(theirs).sum(), rel=1e-3)
    # Not only as much: the same.
    np.testing.assert_allclose(
        projection.apply(csr_array(X)) @ projection.apply(csr_array(X)).T, theirs @ theirs.T, atol=0.02
    )


@given(X=arrays(np.float64, (6, 9), elements=st.sampled_from([0.0, 0.0, 1.0, -2.0, 1e-3, 1e6])))
def test_distances_stay_where_there_are_as_many_directions_as_rows(X: Matrix) -> None:
    projected = Projection.fit(csr_array(X), 6).apply(csr_array(X))
    scaled = normalize(maxabs_scale(X))
    np.testing.assert_allclose(projected @ projected.T, scaled @ scaled.T, atol=1e-5)


@pytest.mark.parametrize("size", [1e-140, 1e140])
def test_numbers_whose_squares_would_overflow_or_vanish(size: float) -> None:
    X = np.array([[3.0, 4.0, 0.0], [0.0, 0.0, 1.0], [size, 0.0, 0.0]])
    projected = Projection.fit(csr_array(X), 3).apply(csr_array(X * size))
    assert np.isfinite(projected).all()
    np.testing.assert_allclose(np.linalg.norm(projected[:2], axis=1), 1, atol=1e-5)


def test_it_does_not_depend_on_what_else_is_there() -> None:
    train, other = words(50, 30), words(20, 30, 1)
    preparation = Preparation.fit(csr_array(train), 8)
    together = preparation.apply(csr_array(other))
    for row in range(20):
        alone = preparation.apply(csr_array(other[row : row + 1]))
        assert alone.tobytes() == together[row : row + 1].tobytes()
    assert preparation.apply(other).tobytes() == together.tobytes()  # dense
    assert Preparation.fit(csr_array(train), 8).apply(other).tobytes() == together.tobytes()


def test_a_preparation_has_one_scale_for_all_directions() -> None:
    X = csr_array(words(100, 40))
    preparation = Preparation.fit(X, 8)
    prepared = preparation.apply(X)
    assert (preparation.n_features, preparation.width, prepared.shape) == (40, 8, (100, 8))
    np.testing.assert_allclose(prepared.mean(axis=0), 0, atol=1e-5)
    assert prepared.var() == pytest.approx(1, rel=1e-5)
    assert len(set(preparation.deviation.tolist())) == 1
    assert prepared.var(axis=0).max() > 2 * prepared.var(axis=0).min()


def test_which_features_are_projected() -> None:
    X = words(30, 12)
    assert Preparation.fit(csr_array(X), 12).projection is None
    assert Preparation.fit(csr_array(X)).projection is None
    assert Preparation.fit(X, 5).projection is None
    assert Preparation.fit(csr_array(X), 11).width == 11
    assert Preparation.fit(csr_array(words(6, 12)), 11).width == 6  # fewer rows


def test_missing_values_are_filled() -> None:
    X = words(30, 12)
    X[5, 3] = X[6, 3] = X[7, 0] = np.nan
    means = np.nanmean(X, axis=0)
    filled = np.where(np.isnan(X), means, X)
    preparation = Preparation.fit(csr_array(X), 5)
    np.testing.assert_allclose(preparation.fill, means)
    expected = Preparation.fit(csr_array(filled), 5)
    np.testing.assert_allclose(preparation.apply(csr_array(X)), expected.apply(csr_array(filled)), atol=1e-6)


def test_rows_of_zeros_only() -> None:
    prepared = Preparation.fit(csr_array((4, 6)), 2).apply(csr_array((3, 6)))
    assert not prepared.any()


def test_another_number_of_columns_is_refused() -> None:
    with pytest.raises(DataError, match=r"shape \(rows, 12\)"):
        Preparation.fit(csr_array(words(30, 12)), 5).apply(csr_array(words(3, 11)))


@pytest.mark.parametrize(("trained", "applied"), [(1e-200, 1e140), (1e-310, 1.0), (5e-324, 1e148), (1e148, 5e-324)])
def test_values_far_from_those_of_the_training(trained: float, applied: float) -> None:
    X = words(30, 12)
    prepared = Preparation.fit(csr_array(X * trained), 5).apply(csr_array(X * applied))
    assert np.isfinite(prepared).all()


@pytest.mark.parametrize("n_components", [None, 2])
def test_cells_that_are_given_twice_are_summed_first(n_components: int | None) -> None:
    values, columns = np.array([np.nan, 3.0, 1.0, 2e150, -2e150, 1.0]), np.array([0, 0, 1, 2, 2, 3])
    X = csr_array((values, columns, [0, 3, 5, 6]), (3, 4))
    assert X.nnz == 6
    ours, dense = Preparation.fit(X, n_components), Preparation.fit(csr_array(X.toarray()), n_components)
    assert ours.apply(X).tobytes() == dense.apply(X.toarray()).tobytes()


@pytest.mark.parametrize("n_components", [None, 2])
def test_a_number_that_is_too_large_is_named_without_making_all_dense(n_components: int | None) -> None:
    huge = csr_array(([1.0, 1e151], ([0, 150_000], [7, 190_000])), shape=(200_000, 200_000))
    with pytest.raises(DataError, match=r"row 150000, feature 190000: expected a number up to 1e\+150"):
        Preparation.fit(huge, n_components)
    twice = csr_array((np.array([9e149, 9e149]), np.array([1, 1]), [0, 2]), (1, 3))
    with pytest.raises(DataError, match=r"row 0, feature 1: .*; got 1\.8e\+150"):
        Preparation.fit(twice, n_components)
