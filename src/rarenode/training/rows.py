"""`TrainingRows`: the rows that a model learns from, checked once, with a fingerprint to know them by."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rarenode.data.dataset import Dataset
from rarenode.errors import ArgumentError, DataError, LabelError
from rarenode.hierarchy import Hierarchy
from rarenode.resampling import Resampler


@dataclass(frozen=True, eq=False)
class TrainingRows:
    """Features and labels to learn from, over one hierarchy."""

    X: NDArray[np.float32]
    """(rows, features), prepared: finite, and of a size that a network can be fed."""
    Y: NDArray[np.bool_]
    """(rows, nodes), closed under ancestors."""
    hierarchy: Hierarchy
    scored: NDArray[np.bool_]
    """(nodes,): which nodes count in the loss."""
    split: int | None = None
    """How many of the rows, the first ones, are the training split, which is resampled and from which node weights are
    computed; None is all. The paper trains on training and validation rows, but counts and clones only the former."""

    def __post_init__(self) -> None:
        nodes = len(self.hierarchy)
        check_features(self.X, None)
        if np.asarray(self.Y).dtype != np.bool_:
            raise LabelError(f"Y must be boolean, got {np.asarray(self.Y).dtype}")
        self.hierarchy.require_closed(self.Y)
        if len(self.X) != len(self.Y):
            raise DataError(f"X has {len(self.X)} rows and Y {len(self.Y)}")
        if not len(self.Y):
            raise DataError("training needs at least one row")
        if self.split is not None and not 0 < self.split <= len(self.Y):
            raise ArgumentError(f"split must lie between 1 and the {len(self.Y)} rows, got {self.split}")
        if self.scored.dtype != np.bool_ or self.scored.shape != (nodes,) or not self.scored.any():
            raise ArgumentError(f"scored must be a boolean mask of {nodes} nodes with at least one set")

    @classmethod
    def from_dataset(cls, dataset: Dataset, *, with_valid: bool = True) -> Self:
        """The training rows of a dataset, and as in the paper its validation rows too, outside the split."""
        train, valid = dataset.train, dataset.valid
        if valid is None or not with_valid:
            return cls(train.X, train.Y, dataset.hierarchy, dataset.scored)
        return cls(
            X=np.concatenate([train.X, valid.X]),
            Y=np.concatenate([train.Y, valid.Y]),
            hierarchy=dataset.hierarchy,
            scored=dataset.scored,
            split=len(train.Y),
        )

    def resampled(self, resampler: Resampler) -> Self:
        """These rows with clones of some of the training split at its end; other rows stay as they are."""
        chosen = resampler.resample(self.split_Y)
        rest = slice(len(self.split_Y), None)
        return replace(
            self,
            X=np.concatenate([self.X[chosen.rows], self.X[rest]]),
            Y=np.concatenate([chosen.Y, self.Y[rest]]),
            split=len(chosen.rows),
        )

    def take(self, rows: NDArray[np.int64]) -> Self:
        """Some of these rows, in their order; of the training split, those that are taken, or all if none of it is."""
        chosen = np.sort(rows)
        split = None if self.split is None else int(np.count_nonzero(chosen < self.split)) or None
        return replace(self, X=self.X[chosen], Y=self.Y[chosen], split=split)

    @property
    def split_Y(self) -> NDArray[np.bool_]:  # noqa: N802 (Y is the field's name for labels)
        """Labels of the training split."""
        return self.Y[: self.split]

    def __len__(self) -> int:
        return len(self.Y)

    @property
    def features(self) -> int:
        """Columns of X."""
        return int(self.X.shape[1])

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of everything but the hierarchy, which has its own."""
        return fingerprint_arrays(self.X, self.Y, self.scored, np.array(len(self.split_Y)))


def check_features(X: NDArray[Any], features: int | None) -> None:
    """Make sure that a network can be fed with ``X``: float32 (rows, features), every number finite."""
    if X.dtype != np.float32 or X.ndim != 2 or X.shape[1] != (features or X.shape[1]) or not X.shape[1]:
        raise DataError(f"X must be float32 of the shape (rows, {features or 'features'}); got {X.dtype} {X.shape}")
    if not np.isfinite(X).all():
        row, column = np.argwhere(~np.isfinite(X))[0].tolist()
        raise DataError(
            f"row {row}, feature {column} is {X[row, column]}; fill missing values first, as Preparation does"
        )


def fingerprint_arrays(*arrays: NDArray[Any] | None) -> str:
    """sha256 of arrays with their types and shapes."""
    digest = hashlib.sha256()
    for array in arrays:
        if array is None:
            digest.update(b"none;")
        else:
            digest.update(f"{array.dtype.str}{array.shape};".encode("ascii"))
            digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()
