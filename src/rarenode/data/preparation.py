"""`Preparation`: from raw features to network input. Categories become indicator columns, missing values are filled,
columns standardised, float32. Sparse features with many columns are projected on fewer directions first.

Every statistic comes from training rows, and is applied unchanged to whatever comes later. A preparation is part of
the model that it was fitted for, so a row is prepared in the same way wherever it comes from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rarenode.data.features import LARGEST, as_features, is_frame, number_as_text
from rarenode.data.projection import Projection
from rarenode.data.stored import StoredFeatures
from rarenode.errors import DataError

CELLS_AT_A_TIME = 1 << 24
"""A sparse matrix becomes dense in blocks of so many cells."""
LEAST_ROWS, MOST_LEVELS = 3, 200
"""A level of a category has a column of its own if so many training rows have it and it is among the most frequent."""
OTHER = "(other)"


@dataclass(frozen=True)
class Categories:
    """How a categorical feature becomes columns. A missing value is 0 in all of them."""

    levels: tuple[str, ...]
    """The levels with a column of their own, sorted."""
    pooled: bool
    """Whether one more column stands for all other levels, also for those that training rows did not have. Without it,
    these are 0 in all columns."""

    @classmethod
    def fit(cls, values: Sequence[str | None]) -> Self:
        """The levels of training rows; rare ones are pooled."""
        return cls.of_counts(Counter(value for value in values if value is not None))

    @classmethod
    def of_counts(cls, count: Counter[str]) -> Self:
        """The levels, from how many training rows have each."""
        by_frequency = sorted(count, key=lambda level: (-count[level], level))
        kept = [level for level in by_frequency[:MOST_LEVELS] if count[level] >= LEAST_ROWS]
        return cls(tuple(sorted(kept)), len(kept) < len(count))

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.levels) + self.pooled

    def encode(self, values: Sequence[str | None]) -> NDArray[np.float64]:
        """Indicators (rows, columns)."""
        result = np.zeros((len(values), self.width))
        other = len(self.levels) if self.pooled else -1
        place = {level: column for column, level in enumerate(self.levels)}
        columns = np.array([-1 if value is None else place.get(value, other) for value in values], dtype=np.int64)
        known = np.flatnonzero(columns >= 0)
        result[known, columns[known]] = 1.0
        return result


@dataclass(frozen=True, eq=False)
class Preparation:
    """Statistics of training rows, one of each for every column of the network's input.

    With a ``projection`` there is one ``fill`` for every feature, and columns are components.

    >>> preparation = Preparation.fit(np.array([[1.0, 5.0], [3.0, np.nan]]))
    >>> preparation.apply(np.array([[2.0, np.nan], [5.0, 5.0]]))
    array([[0., 0.],
           [3., 0.]], dtype=float32)
    """

    fill: NDArray[np.float64]
    """What a missing value becomes: the mean of the known ones, or 0 if none is known."""
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    """1 for a constant column."""
    categories: tuple[Categories | None, ...] | None = None
    """For each feature, how its categories become columns, or None for a number; None: all features are numbers."""
    projection: Projection | None = None

    @classmethod
    def fit(cls, X: Any, n_components: int | None = None) -> Self:
        """Compute the statistics of training rows, (rows, features), missing values allowed; see `as_features`.

        Args:
            X: the rows.
            n_components: project sparse features with more columns on so many directions; None: do not.
        """
        features, _ = as_features(X)
        if isinstance(features, StoredFeatures):
            return cls._fit_in_blocks(features)
        categories = None
        if is_frame(features):
            columns = list(features.iter_columns())
            categories = tuple(
                None if column.dtype.is_numeric() else Categories.fit(column.to_list()) for column in columns
            )
        raw = _check(_encode(features, categories), None)
        if not raw.shape[0]:
            raise DataError("a preparation needs at least one training row")
        if _is_sparse(raw) and n_components is not None and raw.shape[1] > n_components:
            return cls._fit_projection(raw, n_components)
        if _is_sparse(raw):
            # Blocks of several columns are summed in the order in which a dense matrix would be.
            blocks = max(1, min(raw.shape[1] // 2, raw.shape[0] * raw.shape[1] // CELLS_AT_A_TIME))
            columns = np.array_split(np.arange(raw.shape[1]), blocks)
            by_column = raw.tocsc()
            parts = [cls._statistics(by_column[:, block].toarray(order="C")) for block in columns]
            fill, mean, deviation = (np.concatenate(values) for values in zip(*parts, strict=True))
        else:
            fill, mean, deviation = cls._statistics(raw)
        return cls(fill, mean, deviation, categories)

    @classmethod
    def _fit_projection(cls, raw: Any, n_components: int) -> Self:
        missing = np.isnan(raw.data)
        total = np.bincount(raw.indices[~missing], raw.data[~missing], minlength=raw.shape[1])
        known = raw.shape[0] - np.bincount(raw.indices[missing], minlength=raw.shape[1])
        fill = total / np.maximum(known, 1)
        projection = Projection.fit(_filled(raw, fill), n_components)
        columns = projection.apply(_filled(raw, fill))
        # All columns have the same scale, so that directions in which rows vary little count little.
        mean, square = columns.mean(axis=0), float(columns.var(axis=0).mean())
        deviation = at_least_rounding(np.full(len(mean), np.sqrt(square)), np.full(len(mean), 1.0))
        return cls(fill, mean, deviation, projection=projection)

    @classmethod
    def _fit_in_blocks(cls, X: StoredFeatures) -> Self:
        """The same statistics, but for rounding, of rows that are read three times, some at a time."""
        if not len(X):
            raise DataError("a preparation needs at least one training row")
        categories = None
        if X.levels:
            counts = {place: Counter[str]() for place in X.levels}
            for _, block in X.blocks():
                for place, count in counts.items():
                    column = block.to_series(place).drop_nulls()
                    count.update(dict(column.value_counts().iter_rows()))
            categories = tuple(
                Categories.of_counts(counts[place]) if place in counts else None for place in range(X.shape[1])
            )
        known, total = np.zeros(()), np.zeros(())
        for _, block in X.blocks():
            raw = _check(_encode(block, categories), None)
            known = known + np.count_nonzero(~np.isnan(raw), axis=0)
            total = total + np.nansum(raw, axis=0)
        mean: NDArray[np.float64] = total / np.maximum(known, 1)
        square = np.zeros(len(mean))
        for _, block in X.blocks():
            square += np.nansum((_check(_encode(block, categories), None) - mean) ** 2, axis=0)
        return cls(mean, mean, at_least_rounding(np.sqrt(square / len(X)), mean), categories)

    @property
    def n_features(self) -> int:
        """Features, before categories become columns."""
        return len(self.fill) if self.categories is None else len(self.categories)

    @property
    def width(self) -> int:
        """Columns of the network's input."""
        return len(self.mean)

    @staticmethod
    def _statistics(raw: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        fill = known_means(raw)
        return fill, *standardisation(np.where(np.isnan(raw), fill, raw))

    def apply(self, X: Any) -> Any:
        """Fill missing values and standardise, with the training rows' statistics: float32, on disk if X is."""
        if isinstance(X, StoredFeatures):
            return X.map(self.apply)
        raw = _check(_encode(as_features(X)[0], self.categories), len(self.fill))
        if self.projection is not None:
            coordinates = self.projection.apply(_filled(csr_array(raw), self.fill))
            return as_float32((coordinates - self.mean) / self.deviation)
        if not _is_sparse(raw):
            return as_float32((np.where(np.isnan(raw), self.fill, raw) - self.mean) / self.deviation)
        result = np.empty(raw.shape, dtype=np.float32)
        rows = max(1, CELLS_AT_A_TIME // max(1, raw.shape[1]))
        for first in range(0, raw.shape[0], rows):
            result[first : first + rows] = self.apply(raw[first : first + rows].toarray())
        return result


def _filled(X: Any, fill: NDArray[np.float64]) -> Any:
    """Sparse rows with missing values filled."""
    filled = X.copy()
    missing = np.isnan(filled.data)
    filled.data[missing] = fill[filled.indices[missing]]
    return filled


def _encode(X: Any, categories: tuple[Categories | None, ...] | None) -> Any:
    """Features as numbers: those of a data frame with categories as indicators."""
    if categories is None:
        if is_frame(X):
            text = next(column.name for column in X.iter_columns() if not column.dtype.is_numeric())
            raise DataError(f"column {text!r} contains text, but the model was trained with numbers in it")
        return X
    if _is_sparse(X) or getattr(X, "ndim", 2) != 2 or X.shape[1] != len(categories):
        raise DataError(f"features must be a data frame of {len(categories)} columns, as in training")
    # A data frame without text is an array by now, also if all values of its categories are missing, or numbers.
    columns = list(X.iter_columns()) if is_frame(X) else list(np.asarray(X).T)
    return np.hstack([_encode_column(column, each) for column, each in zip(columns, categories, strict=True)])


def _encode_column(column: Any, categories: Categories | None) -> NDArray[np.float64]:
    is_text = hasattr(column, "to_list") and not column.dtype.is_numeric()
    if is_text and categories is None:
        raise DataError(f"column {column.name!r} contains text, but the model was trained with numbers in it")
    if is_text and categories is not None:
        return categories.encode(column.to_list())
    numbers = np.asarray(column, dtype=np.float64)
    if categories is None:
        return numbers[:, None]
    return categories.encode([None if np.isnan(number) else number_as_text(number) for number in numbers.tolist()])


def as_float32(X: Any) -> Any:
    """``X`` in single precision and dense, on disk if it is there; a number that is too large for it is refused."""
    if isinstance(X, StoredFeatures):
        return X.map(as_float32)
    dense = X.toarray() if _is_sparse(X) else np.asarray(X)
    if dense.dtype == np.float32:
        return dense
    too_large = np.abs(dense) > np.finfo(np.float32).max
    if too_large.any():
        row, column = np.argwhere(too_large)[0].tolist()
        raise DataError(f"row {row}, feature {column}: {dense[row, column]:.3g} is too large for single precision")
    return dense.astype(np.float32)


def known_means(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of each column's known values; 0 where none is known."""
    known = ~np.isnan(X)
    count = known.sum(axis=0)
    means: NDArray[np.float64] = np.where(known, X, 0.0).sum(axis=0) / np.maximum(count, 1)
    return means


def standardisation(X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and standard deviation of each column; a deviation that is no more than rounding counts as 1."""
    mean = X.mean(axis=0)
    return mean, at_least_rounding(X.std(axis=0), mean)


def at_least_rounding(deviation: NDArray[np.float64], mean: NDArray[np.float64]) -> NDArray[np.float64]:
    """Standard deviations of columns; one that is no more than rounding counts as 1."""
    rounding = 10 * np.finfo(np.float64).eps * np.abs(mean)
    return np.where(deviation <= rounding, 1.0, deviation)


def _is_sparse(X: Any) -> bool:
    return hasattr(X, "tocsr")


def _check(X: Any, features: int | None) -> Any:
    # Sums over rows depend on the order in memory, to the last bit.
    raw: Any = _summed(X) if _is_sparse(X) else np.asarray(X, dtype=np.float64, order="C")
    if raw.ndim != 2 or (features is not None and raw.shape[1] != features):
        raise DataError(f"features must have the shape (rows, {features or 'features'}); got {raw.shape}")
    values = raw.data if _is_sparse(raw) else raw
    wrong = np.argwhere(np.abs(values) > LARGEST)
    if len(wrong):
        place = tuple(wrong[0].tolist())
        row, column = place if not _is_sparse(raw) else _cell(raw, *place)
        raise DataError(
            f"row {row}, feature {column}: expected a number up to {LARGEST:.0e}, or NaN for a missing one; "
            f"got {values[place]}"
        )
    return raw


def _cell(X: Any, place: int) -> tuple[int, int]:
    """Row and column of a number of a sparse matrix."""
    return int(np.searchsorted(X.indptr, place, side="right")) - 1, int(X.indices[place])


def _summed(X: Any) -> Any:
    """A copy as CSR in double precision, each cell once."""
    raw = X.tocsr().astype(np.float64, copy=True)
    raw.sum_duplicates()
    return raw
