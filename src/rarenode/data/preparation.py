"""From raw features to what a network is fed: missing values filled, columns standardised, float32.

Two ways. `Preparation` takes every statistic from training rows and applies it unchanged to whatever comes later; it
is the right one for your own data. `prepare_as_published` repeats what produced the paper's tables: each file's
missing values are filled with the means *of that file*, test file included, and the scale comes from training and
validation rows together. That leaks a little of the test distribution into its features, and is here only so that the
tables can be reproduced.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rarenode.errors import DataError

LARGEST = 1e150
"""Squares of larger numbers overflow, and with them the deviation."""


@dataclass(frozen=True, eq=False)
class Preparation:
    """Statistics of training rows, one of each for every feature.

    >>> preparation = Preparation.fit(np.array([[1.0, 5.0], [3.0, np.nan]]))
    >>> preparation.apply(np.array([[2.0, np.nan], [5.0, 5.0]]))
    array([[0., 0.],
           [3., 0.]], dtype=float32)
    """

    fill: NDArray[np.float64]
    """What a missing value becomes: the mean of the known ones, or 0 if none is known."""
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    """1 for a constant feature."""

    @classmethod
    def fit(cls, X: NDArray[Any]) -> Self:
        """Take the statistics from training rows."""
        raw = _check(X, None)
        if not len(raw):
            raise DataError("statistics need at least one training row")
        fill = known_means(raw)
        mean, deviation = standardisation(np.where(np.isnan(raw), fill, raw))
        return cls(fill, mean, deviation)

    def apply(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Fill missing values and standardise, with the training rows' statistics."""
        raw = _check(X, len(self.fill))
        return as_float32((np.where(np.isnan(raw), self.fill, raw) - self.mean) / self.deviation)


def prepare_as_published(
    train: NDArray[Any], valid: NDArray[Any] | None, test: NDArray[Any]
) -> tuple[NDArray[np.float32], NDArray[np.float32] | None, NDArray[np.float32]]:
    """Prepare the three splits as the paper's tables had them."""
    filled = [_fill_from_itself(split) for split in (train, valid, test) if split is not None]
    mean, deviation = standardisation(np.concatenate(filled[:-1]))
    prepared = [as_float32((split - mean) / deviation) for split in filled]
    return prepared[0], None if valid is None else prepared[1], prepared[-1]


def as_float32(X: NDArray[np.float64]) -> NDArray[np.float32]:
    """``X`` in single precision; a number that is too large for it is refused."""
    too_large = np.abs(X) > np.finfo(np.float32).max
    if too_large.any():
        row, column = np.argwhere(too_large)[0].tolist()
        raise DataError(f"row {row}, feature {column}: {X[row, column]:.3g} is too large for single precision")
    return X.astype(np.float32)


def _fill_from_itself(X: NDArray[Any]) -> NDArray[np.float64]:
    raw = _check(X, None)
    return np.where(np.isnan(raw), known_means(raw), raw)


def known_means(X: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of each column's known values; 0 where none is known."""
    known = ~np.isnan(X)
    count = known.sum(axis=0)
    means: NDArray[np.float64] = np.where(known, X, 0.0).sum(axis=0) / np.maximum(count, 1)
    return means


def standardisation(X: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and deviation of each column; a deviation that is no more than rounding is taken as 1."""
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    rounding = 10 * np.finfo(np.float64).eps * np.abs(mean)
    return mean, np.where(deviation <= rounding, 1.0, deviation)


def _check(X: NDArray[Any], features: int | None) -> NDArray[np.float64]:
    raw = np.asarray(X, dtype=np.float64)
    if raw.ndim != 2 or (features is not None and raw.shape[1] != features):
        raise DataError(f"features must have the shape (rows, {features or 'features'}); got {raw.shape}")
    too_large = np.abs(raw) > LARGEST
    if too_large.any():
        row, column = np.argwhere(too_large)[0].tolist()
        raise DataError(
            f"row {row}, feature {column}: expected a number up to {LARGEST:.0e}, or NaN for a missing one; "
            f"got {raw[row, column]}"
        )
    return raw
