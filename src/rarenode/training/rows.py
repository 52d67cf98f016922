"""`TrainingRows`: the rows that a model learns from, checked once, with a fingerprint to know them by."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rarenode.data.dataset import Dataset
from rarenode.errors import ArgumentError, DataError, LabelError
from rarenode.hierarchy import Hierarchy


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
    weight_Y: NDArray[np.bool_] | None = None  # noqa: N815 (Y is the field's name for labels)
    """The labels that node weights are computed from; None is Y. The paper counts the training split only, and then
    trains on training and validation rows."""

    def __post_init__(self) -> None:
        nodes = len(self.hierarchy)
        check_features(self.X, None)
        for name, labels in (("Y", self.Y), ("weight_Y", self.weight_Y)):
            if labels is not None and np.asarray(labels).dtype != np.bool_:
                raise LabelError(f"{name} must be boolean, got {np.asarray(labels).dtype}")
            if labels is not None:
                self.hierarchy.require_closed(labels)
        if len(self.X) != len(self.Y):
            raise DataError(f"X has {len(self.X)} rows and Y {len(self.Y)}")
        if not len(self.Y):
            raise DataError("training needs at least one row")
        if self.scored.dtype != np.bool_ or self.scored.shape != (nodes,) or not self.scored.any():
            raise ArgumentError(f"scored must be a boolean mask of {nodes} nodes with at least one set")

    @classmethod
    def from_dataset(cls, dataset: Dataset, *, with_valid: bool = True) -> Self:
        """The training rows of a dataset, and as in the paper its validation rows too; weights come from the former."""
        train, valid = dataset.train, dataset.valid
        if valid is None or not with_valid:
            return cls(train.X, train.Y, dataset.hierarchy, dataset.scored)
        return cls(
            X=np.concatenate([train.X, valid.X]),
            Y=np.concatenate([train.Y, valid.Y]),
            hierarchy=dataset.hierarchy,
            scored=dataset.scored,
            weight_Y=train.Y,
        )

    def __len__(self) -> int:
        return len(self.Y)

    @property
    def features(self) -> int:
        """Columns of X."""
        return int(self.X.shape[1])

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of everything but the hierarchy, which has its own."""
        return fingerprint_arrays(self.X, self.Y, self.scored, self.weight_Y)


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
