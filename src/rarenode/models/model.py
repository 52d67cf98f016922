"""`Model`: what all kinds of model have in common once they are trained.

A model maps prepared features to coherent probabilities: a parent's probability is never below its child's. It is
stored as a description (plain numbers and text) and named arrays. The description comes first: from it follow the
names, types and shapes of all arrays, so a file can be checked before anything is read or allocated.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from rarenode.errors import ArgumentError, DataError
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.labels import row_blocks

Floats = NDArray[np.float32]
Layout = dict[str, tuple[np.dtype[Any], tuple[int, ...]]]
"""Name -> type and shape of an array."""


@dataclass(frozen=True, eq=False)
class Output:
    """What a model computes for some rows, in one pass."""

    probs: Floats
    """(rows, nodes): coherent probabilities."""
    highest: Floats | None = None
    """(rows, nodes): the highest probability of any member; None for a single member, or if not requested."""
    uncertainty: Floats | None = None
    """(rows, nodes): the requested uncertainty; None if none was requested."""

    @classmethod
    def joined(cls, rows: int, parts: Iterable[tuple[slice, Self]]) -> Self:
        """The output for so many rows, of which each part is for some; there is at least one part."""
        whole: dict[str, Floats] = {}
        for place, part in parts:
            for name in ("probs", "highest", "uncertainty"):
                values = getattr(part, name)
                if values is not None:
                    whole.setdefault(name, np.empty((rows, values.shape[1]), dtype=np.float32))[place] = values
        return cls(whole["probs"], whole.get("highest"), whole.get("uncertainty"))


class Model(Protocol):
    """A trained model."""

    kind: ClassVar[str]
    """Its name in files and settings."""

    @property
    def n_features(self) -> int:
        """Columns of the input."""
        ...

    @property
    def n_nodes(self) -> int:
        """Columns of the output."""
        ...

    def compute(self, X: Floats, *, highest: bool = False, uncertainty: str | None = None) -> Output:
        """Probabilities of prepared rows (rows, features) and, if requested, what else one pass yields.

        Args:
            X: float32, finite.
            highest: also the highest probability of any member.
            uncertainty: also this uncertainty, a name of `rarenode.uncertainty`.
        """
        ...

    def describe(self) -> dict[str, Any]:
        """Everything but the arrays, as JSON can hold it, without the kind."""
        ...

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays, by name."""
        ...

    @classmethod
    def layout(cls, description: Mapping[str, Any]) -> Layout:
        """The arrays that belong to a description, which may come from an untrusted file.

        Raises:
            ArgumentError: it does not describe such a model.
        """
        ...

    @classmethod
    def from_arrays(
        cls, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], hierarchy: Hierarchy
    ) -> Self:
        """The inverse of `describe` and `arrays`, which may come from an untrusted file.

        Raises:
            ArgumentError: the arrays are not such a model over the hierarchy.
        """
        ...


def check_arrays(arrays: Mapping[str, NDArray[Any]], layout: Layout) -> None:
    """Make sure that arrays have the names, types and shapes of a layout.

    Raises:
        ArgumentError: they do not; names the first that is missing, or should not be there, or differs.
    """
    odd = min(arrays.keys() ^ layout.keys(), default=None)
    if odd is not None:
        raise ArgumentError(f"the array {odd!r} {'should not be there' if odd in arrays else 'is missing'}")
    for name, expected in layout.items():
        found = (arrays[name].dtype, arrays[name].shape)
        if found != expected:
            raise ArgumentError(
                f"the array {name!r} is {found[0]} {found[1]}; {expected[0]} {expected[1]} was expected"
            )


def check_input(X: Any, features: int | None) -> None:
    """Make sure that a model can be computed for ``X``: float32 (rows, features), every number finite.

    X is an array or, for training, on disk.
    """
    if X.dtype != np.float32 or X.ndim != 2 or X.shape[1] != (features or X.shape[1]) or not X.shape[1]:
        raise DataError(f"X must be float32 of the shape (rows, {features or 'features'}); got {X.dtype} {X.shape}")
    for rows, block in row_blocks(X):
        finite = np.isfinite(block)
        if not finite.all():
            row, column = np.argwhere(~finite)[0].tolist()
            value = block[row, column]
            raise DataError(f"row {rows.start + row}, feature {column} is {value}; fill missing values first")
