"""`Resampler`: what LP-ROS and HROS-PD have in common, and resamplers by the names that settings use.

A resampler looks at labels only and returns indices of rows; features follow the indices. A label that is unknown is
one that the row does not have.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from rarenode._io.text import counted
from rarenode.config.choices import Resampling
from rarenode.errors import ArgumentError, DataError
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.labels import Labels, is_sparse

RESAMPLING: tuple[str, ...] = tuple(name for name in get_args(Resampling) if name != "none")
"""Names of resamplers."""


@dataclass(frozen=True, eq=False)
class Resampled:
    """The outcome of resampling: every row once, in order, then the clones."""

    rows: NDArray[np.int64]
    """(rows + clones,): the index of the input row that each output row is a copy of."""
    Y: Labels
    """(rows + clones, nodes): labels, sparse if those that were given are. A clone may have fewer labels than its
    original."""


class Resampler(ABC):
    """Adds clones of rows with rare labels. The same seed and labels give the same clones."""

    sample_indices_: NDArray[np.int64]
    """After `fit_resample`: the index of the input row that each output row is a copy of."""

    @abstractmethod
    def resample(self, Y: Any) -> Resampled:
        """Choose rows for closed labels (rows, nodes)."""

    def fit_resample(self, X: Any, Y: Any) -> tuple[NDArray[Any], Labels]:
        """Features and labels of all rows, followed by those of the clones; sets ``sample_indices_``.

        Raises:
            DataError: features and labels differ in their number of rows.
        """
        features = np.asarray(X)
        chosen = self.resample(Y)
        rows = Y.shape[0] if is_sparse(Y) else len(np.asarray(Y))
        if features.shape[:1] != (rows,):
            raise DataError(
                f"X must have a row for each of the {counted(rows, 'row')} of Y; its shape is {features.shape}"
            )
        self.sample_indices_ = chosen.rows
        return features[chosen.rows], chosen.Y


def make_resampler(name: str, hierarchy: Hierarchy, seed: int) -> Resampler | None:
    """The resampler of that name, with the paper's parameters; None for ``none``.

    Raises:
        ArgumentError: there is no resampler of that name.
    """
    from rarenode.resampling.hros_pd import HROSPD  # noqa: PLC0415 (both derive from `Resampler`)
    from rarenode.resampling.lp_ros import LPROS  # noqa: PLC0415

    makers: dict[str, Callable[[], Resampler | None]] = {
        "none": lambda: None,
        "lpros": lambda: LPROS(seed=seed),
        "lpros-textbook": lambda: LPROS(rounding="textbook", seed=seed),
        "hros-pd": lambda: HROSPD(hierarchy, seed=seed),
        "hros-pd-published": lambda: HROSPD(hierarchy, variant="as_published", seed=seed),
    }
    if name not in makers:
        raise ArgumentError(f"unknown resampling {name!r}; choose one of {', '.join(makers)}")
    return makers[name]()


# --- arguments -----------------------------------------------------------------------------------------------------


def check_share(share: float) -> float:
    """``share``, the number of clones for each row, if it is a number of at least 0."""
    if isinstance(share, bool) or not (isinstance(share, Real) and 0 <= share < np.inf):
        raise ArgumentError(f"share must be a number of at least 0, got {share!r}")
    return float(share)


def check_seed(seed: int) -> int:
    """``seed`` if it is a whole number of at least 0."""
    if isinstance(seed, bool) or not (isinstance(seed, int | np.integer) and seed >= 0):
        raise ArgumentError(f"seed must be a whole number of at least 0, got {seed!r}")
    return int(seed)


def share_of(share: float, count: int) -> Fraction:
    """``share * count``, where 0.29 is 29 hundredths and not the nearest binary fraction."""
    return Fraction(repr(share)) * count
