"""From raw features to network input, against plain loops; dense and sparse."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_array, csc_matrix, csr_array, csr_matrix
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from rarenode import Preparation
from rarenode.data import preparation as module
from rarenode.data.preparation import Categories, as_float32
from rarenode.errors import DataError

Matrix = NDArray[np.float64]
SPARSE: list[Callable[[Matrix], Any]] = [csr_array, csc_array, csr_matrix, csc_matrix, coo_array]


def matrices(columns: int | None = None) -> st.SearchStrategy[Matrix]:
    """Numbers of which many are 0 and some are missing."""
    eighths, decimals = st.integers(-8000, 8000).map(lambda n: n / 8), st.floats(-1e6, 1e6).map(lambda x: round(x, 4))
    numbers = st.one_of(st.just(0.0), st.just(np.nan), eighths, decimals)
    width = st.integers(1, 7) if columns is None else st.just(columns)
    return arrays(np.float64, st.tuples(st.integers(1, 12), width), elements=numbers)


def by_loops(train: Matrix) -> tuple[list[float], list[float], list[float]]:
    """Fill, mean and deviation of each column."""
    fills, means, deviations = [], [], []
    for column in train.T.tolist():
        known = [value for value in column if not math.isnan(value)]
        fill = math.fsum(known) / len(known) if known else 0.0
        filled = [fill if math.isnan(value) else value for value in column]
        mean = math.fsum(filled) / len(filled)
        fills.append(fill)
        means.append(mean)
        deviations.append(math.sqrt(math.fsum((value - mean) ** 2 for value in filled) / len(filled)))
    return fills, means, deviations


@given(train=matrices(3), other=matrices(3))
def test_the_formula(train: Matrix, other: Matrix) -> None:
    preparation = Preparation.fit(train)
    fills, means, deviations = by_loops(train)
    size = 1e-12 * np.maximum(1, np.nanmax(np.abs(train), axis=0, initial=0))
    assert (np.abs(preparation.fill - fills) <= size).all()
    assert (np.abs(preparation.mean - means) <= size).all()
    prepared = preparation.apply(other)
    assert prepared.dtype == np.float32
    for column, deviation in enumerate(deviations):
        spread = 1.0 if preparation.deviation[column] == 1 and deviation < 1e-6 else deviation
        assert preparation.deviation[column] == pytest.approx(spread, rel=1e-6)
        for row, value in enumerate(other[:, column].tolist()):
            filled = fills[column] if math.isnan(value) else value
            expected = (filled - means[column]) / spread
            assert prepared[row, column] == pytest.approx(expected, rel=1e-5, abs=1e-5 * (1 + size[column] / spread))


def test_it_agrees_with_scikit_learn() -> None:
    train, other = (np.random.default_rng(seed).normal(3, [1, 10, 1e-3, 1e5], (50, 4)) for seed in (0, 1))
    expected = StandardScaler().fit(train).transform(other)
    np.testing.assert_allclose(Preparation.fit(train).apply(other), expected, rtol=1e-5, atol=1e-6)


def test_statistics_are_those_of_training_rows_alone() -> None:
    preparation = Preparation.fit(np.array([[1.0, 7.0], [3.0, 7.0], [np.nan, 7.0]]))
    np.testing.assert_allclose(preparation.fill, [2, 7])
    np.testing.assert_allclose(preparation.deviation, [np.sqrt(2 / 3), 1])
    prepared = preparation.apply(np.array([[np.nan, np.nan], [100.0, 8.0]]))
    np.testing.assert_allclose(prepared, [[0, 0], [98 / np.sqrt(2 / 3), 1]], rtol=1e-6)


@pytest.mark.parametrize("value", [0.0, 0.1, 1e8 / 3, -1e-8 / 3])
def test_a_constant_feature_becomes_zero(value: float) -> None:
    """Though its deviation, with rounding, may not be 0."""
    preparation = Preparation.fit(np.full((1001, 1), value))
    assert preparation.deviation.tolist() == [1.0]
    np.testing.assert_allclose(preparation.apply(np.array([[value], [np.nan]])), 0, atol=1e-6)


def test_a_feature_that_is_never_known_becomes_zero() -> None:
    preparation = Preparation.fit(np.array([[np.nan], [np.nan]]))
    np.testing.assert_array_equal(preparation.apply(np.array([[np.nan], [0.0]])), [[0], [0]])


@given(train=matrices(3), other=matrices(3))
def test_a_row_does_not_depend_on_the_others(train: Matrix, other: Matrix) -> None:
    preparation = Preparation.fit(train)
    together = preparation.apply(other)
    assert np.isfinite(together).all()
    alone = np.concatenate([preparation.apply(row[None]) for row in other])
    np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("cells", [1, 7, 1 << 24])
@pytest.mark.parametrize("kind", SPARSE)
@given(train=matrices(), draw=st.data())
def test_dense_and_sparse_features_give_the_same_bits(
    kind: Callable[[Matrix], Any], cells: int, train: Matrix, draw: st.DataObject
) -> None:
    """However small the blocks are in which a sparse matrix becomes dense."""
    other = draw.draw(matrices(train.shape[1]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "CELLS_AT_A_TIME", cells)
        dense, sparse = Preparation.fit(train), Preparation.fit(kind(train))
        for name in ("fill", "mean", "deviation"):
            np.testing.assert_array_equal(getattr(sparse, name), getattr(dense, name))
        np.testing.assert_array_equal(dense.apply(kind(other)), dense.apply(other))


def test_many_rows_give_the_same_bits_too() -> None:
    """Sums of many rows may be taken in another order."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((3000, 41)) < 0.7, 0, rng.normal(size=(3000, 41)) * 1e3)
    X[rng.random(X.shape) < 0.05] = np.nan
    dense = Preparation.fit(X)
    for other in (csr_array(X), csc_array(X), np.asfortranarray(X), X[::-1][::-1]):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "CELLS_AT_A_TIME", 10_000)
            found = Preparation.fit(other)
        for name in ("fill", "mean", "deviation"):
            np.testing.assert_array_equal(getattr(found, name), getattr(dense, name))
        np.testing.assert_array_equal(dense.apply(other), dense.apply(X))


@pytest.mark.parametrize("kind", [np.asarray, csr_array, csc_array])
def test_bad_features_are_named(kind: Callable[[Any], Any]) -> None:
    preparation = Preparation.fit(np.ones((2, 2)))
    with pytest.raises(DataError, match=r"\(rows, 2\); got \(2, 3\)"):
        preparation.apply(kind(np.ones((2, 3))))
    with pytest.raises(DataError, match=r"row 1, feature 0.*got inf"):
        preparation.apply(kind(np.array([[0.0, 0.0], [np.inf, 0.0]])))
    with pytest.raises(DataError, match="row 0, feature 1: 1e\\+100 is too large"):
        preparation.apply(kind(np.array([[0.0, 1e100]])))
    with pytest.raises(DataError, match="row 0, feature 1: expected a number up to 1e\\+150"):
        Preparation.fit(kind(np.array([[0.0, -1e200]])))
    with pytest.raises(DataError, match="at least one"):
        Preparation.fit(kind(np.ones((0, 2))))


def test_features_that_are_no_matrix() -> None:
    for wrong in (np.ones(3), np.ones((2, 2, 2))):
        with pytest.raises(DataError, match=r"\(rows, features\)"):
            Preparation.fit(wrong)


def test_single_precision() -> None:
    X = np.array([[1.0, np.nan], [-2.5, 3e38]])
    found = as_float32(X)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, X.astype(np.float32))
    assert as_float32(found) is found
    np.testing.assert_array_equal(as_float32(csr_array(X)), found)
    np.testing.assert_array_equal(as_float32([[1, 2]]), [[1, 2]])
    with pytest.raises(DataError, match="row 1, feature 0: 4e\\+38 is too large"):
        as_float32(np.array([[0.0], [4e38]]))


# --- categories ------------------------------------------------------------------------------------------------------

GROUNDS = ["sand"] * 6 + ["mud"] * 4 + ["rock"] * 3 + ["reef", "reef", "shell"] + [None] * 2
DEPTHS = [*np.linspace(0, 50, len(GROUNDS) - 1), None]
FRAME = pl.DataFrame({"ground": GROUNDS, "depth": DEPTHS})


def test_categories_agree_with_scikit_learn() -> None:
    """Frequent levels have a column each, sorted, rare ones share one; then all columns are standardised."""
    new = pl.DataFrame({"ground": ["mud", "reef", "never seen", "rock"], "depth": [3.0, -1.0, 99.0, 25.0]})
    known = FRAME.filter(pl.col("ground").is_not_null() & pl.col("depth").is_not_null())
    names = sorted({ground for ground in GROUNDS if ground is not None and GROUNDS.count(ground) >= 3})
    encoder = OneHotEncoder(
        categories=[[*names, "(other)"]], handle_unknown="error", sparse_output=False, dtype=np.float64
    )

    def encoded(frame: pl.DataFrame) -> Matrix:
        pooled = [[each if each in names else "(other)"] for each in frame["ground"].to_list()]
        return np.hstack([encoder.fit_transform(pooled), frame["depth"].to_numpy()[:, None]])

    expected = StandardScaler().fit(encoded(known)).transform(encoded(new))
    preparation = Preparation.fit(known)
    assert preparation.categories == (Categories(tuple(names), pooled=True), None)
    assert preparation.n_features == 2
    np.testing.assert_allclose(preparation.apply(new), expected, rtol=1e-5, atol=1e-6)


def test_missing_categories_are_zero_in_every_column() -> None:
    preparation = Preparation.fit(FRAME)
    raw = np.array([[0, 0, 0, 0, np.nanmean(FRAME["depth"].cast(float).to_numpy())]])
    row = pl.DataFrame({"ground": [None], "depth": [None]}, schema={"ground": pl.String, "depth": pl.Float64})
    np.testing.assert_allclose(preparation.apply(row), (raw - preparation.mean) / preparation.deviation, rtol=1e-5)
    assert preparation.fill[-1] == pytest.approx(raw[0, -1])


def test_a_level_that_training_did_not_have() -> None:
    """It counts as a rare one, if there are any, and else as missing."""
    pooled, plain = Categories.fit(["a"] * 3 + ["b"]), Categories.fit(["a"] * 3 + ["b"] * 3)
    assert pooled.encode(["a", "b", "c", None]).tolist() == [[1, 0], [0, 1], [0, 1], [0, 0]]
    assert plain.encode(["a", "b", "c", None]).tolist() == [[1, 0], [0, 1], [0, 0], [0, 0]]
    assert Categories.fit([None, None]).encode(["x", None]).shape == (2, 0)


def test_many_levels_are_pooled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_LEVELS", 2)
    found = Categories.fit(["b"] * 5 + ["a"] * 4 + ["d"] * 4 + ["c"] * 3)
    assert found == Categories(("a", "b"), pooled=True)


@pytest.mark.parametrize("as_pandas", [False, True])
def test_the_kind_of_data_frame_does_not_matter(as_pandas: bool) -> None:
    given_frame: Any = pd.DataFrame({"ground": GROUNDS, "depth": DEPTHS}) if as_pandas else FRAME
    if as_pandas:
        given_frame["ground"] = given_frame["ground"].astype("category")
    found, expected = Preparation.fit(given_frame), Preparation.fit(FRAME)
    assert found.categories == expected.categories
    np.testing.assert_array_equal(found.apply(given_frame), expected.apply(FRAME))


def test_booleans_and_whole_numbers_are_numbers() -> None:
    frame = pl.DataFrame({"a": [True, False, None], "b": [1, 2, 3]})
    np.testing.assert_array_equal(
        Preparation.fit(frame).apply(frame), Preparation.fit(np.array([[1, 1], [0, 2], [np.nan, 3]])).apply(frame)
    )


def test_numbers_in_a_category_are_levels() -> None:
    words = pl.DataFrame({"code": ["3", "3", "3", "0.1", "0.1", "0.1", "x", "x", "x"], "y": range(9)})
    preparation = Preparation.fit(words)
    for values in ([3.0, 0.1], [3, None]):
        texts = [None if value is None else f"{value:g}" for value in values]
        as_text = pl.DataFrame({"code": texts, "y": [1, 2]})
        as_numbers = pl.DataFrame({"code": values, "y": [1, 2]}, strict=False)
        np.testing.assert_array_equal(preparation.apply(as_numbers), preparation.apply(as_text))


def test_features_that_do_not_fit_the_categories() -> None:
    preparation = Preparation.fit(FRAME)
    with pytest.raises(DataError, match="column 'depth' contains text, but the model was trained with numbers in it"):
        preparation.apply(pl.DataFrame({"ground": ["mud"], "depth": ["deep"]}))
    with pytest.raises(DataError, match="must be a data frame of 2 columns"):
        preparation.apply(FRAME.select("ground"))
    with pytest.raises(DataError, match="column 'a' contains text, but the model was trained with numbers"):
        Preparation.fit(np.ones((2, 1))).apply(pl.DataFrame({"a": ["x"]}))
    with pytest.raises(DataError, match="column 'when' contains dates or times; replace it by numbers"):
        Preparation.fit(pd.DataFrame({"when": pd.to_datetime(["2024-01-01"])}))
    with pytest.raises(DataError, match="column 'mixed' mixes values of several types"):
        Preparation.fit(pd.DataFrame({"mixed": ["a", 3]}, dtype=object))
