"""`Resampler`: what LP-ROS and HROS-PD have in common. From labels to rows; features only follow."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode.errors import ArgumentError, DataError


@dataclass(frozen=True, eq=False)
class Resampled:
    """What a resampler makes of labels: every row once, in its order, then the clones."""

    rows: NDArray[np.int64]
    """(rows + clones,): which row of the input each row is."""
    Y: NDArray[np.bool_]
    """(rows + clones, nodes): its labels, which a resampler may have thinned out in clones."""


class Resampler(ABC):
    """Adds clones of rows that carry what is rare. The same seed and labels give the same clones."""

    sample_indices_: NDArray[np.int64]
    """After `fit_resample`: which row of its input each row of its output is."""

    @abstractmethod
    def resample(self, Y: Any) -> Resampled:
        """Choose rows for closed labels (rows, nodes)."""

    def fit_resample(self, X: Any, Y: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        """Features and labels with the clones after the rows that were given; ``sample_indices_`` says which is which.

        Raises:
            DataError: features and labels differ in their number of rows.
        """
        features = np.asarray(X)
        chosen = self.resample(Y)
        rows = len(np.asarray(Y))
        if features.shape[:1] != (rows,):
            raise DataError(f"X must have a row for each of the {rows} rows of Y; its shape is {features.shape}")
        self.sample_indices_ = chosen.rows
        return features[chosen.rows], chosen.Y


def check_share(share: float) -> float:
    """``share`` if it says how many rows to create for each row that is there."""
    if isinstance(share, bool) or not (isinstance(share, Real) and 0 <= share < np.inf):
        raise ArgumentError(f"share must be a number of at least 0, got {share!r}")
    return float(share)


def check_seed(seed: int) -> int:
    """``seed`` if it can decide what is drawn."""
    if isinstance(seed, bool) or not (isinstance(seed, int | np.integer) and seed >= 0):
        raise ArgumentError(f"seed must be a whole number of at least 0, got {seed!r}")
    return int(seed)


def share_of(share: float, count: int) -> Fraction:
    """``share * count``, where 0.29 is 29 hundredths and not the binary fraction next to it."""
    return Fraction(repr(share)) * count
