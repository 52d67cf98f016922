"""`StoredFeatures`: features that stay in a file on disk, as those of more rows than fit into memory.

The file has no name and is gone with the object, however the process ends. Parts of it are read when they are needed;
what was read is kept by the operating system as long as there is room. A subset of the rows is a list of their numbers.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rarenode._io.text import counted
from rarenode.errors import DataError

CELLS_AT_A_TIME = 1 << 24
"""Features are read and written in blocks of about so many cells."""


@dataclass(frozen=True, eq=False)
class StoredFeatures:
    """Features (rows, features) in a file. Indexing reads them, `take` does not."""

    file: NDArray[Any]
    """All rows of the file, as numpy maps it into memory."""
    rows: NDArray[np.int64] | None = None
    """Which rows these are; None: all of them."""
    names: tuple[str, ...] | None = None
    """Of the columns."""
    levels: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    """Of each column of categories, by its place, their names; the file has the numbers of these, NaN where missing."""

    @classmethod
    def create(cls, rows: int, features: int, dtype: Any = np.float64) -> Self:
        """Room for features, which the caller writes into ``file``.

        Raises:
            DataError: the disk with the temporary files has not enough room.
        """
        size = rows * features * np.dtype(dtype).itemsize
        try:
            with tempfile.TemporaryFile(prefix="rarenode-") as file:
                _reserve(file.fileno(), size)
                made = np.memmap(file, dtype=dtype, mode="r+", shape=(rows, features)) if size else None
        except OSError as error:
            what = f"{counted(rows, 'row')} of {counted(features, 'feature')} need {size / 2**30:,.1f} GiB on disk"
            raise DataError(
                f"{what}, in {tempfile.gettempdir()}: {error.strerror or error}; the environment variable TMPDIR names "
                "another folder"
            ) from None
        return cls(np.empty((rows, features), dtype) if made is None else made)

    def __len__(self) -> int:
        return len(self.file) if self.rows is None else len(self.rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return len(self), self.file.shape[1]

    @property
    def ndim(self) -> int:
        """Two, as arrays of this shape have."""
        return 2

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the numbers."""
        return self.file.dtype

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        """Some rows, in memory; categories are numbers."""
        return np.array(self.file[rows if self.rows is None else self.rows[rows]], order="C")

    def take(self, rows: NDArray[np.int64]) -> Self:
        """The same features of some of the rows; nothing is read."""
        return replace(self, rows=np.asarray(rows) if self.rows is None else self.rows[rows])

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """The rows, some at a time: arrays or, if there are categories, polars data frames; of no rows, one block."""
        step = max(1, CELLS_AT_A_TIME // max(1, self.shape[1]))
        for first in range(0, max(1, len(self)), step):
            rows = slice(first, min(first + step, len(self)))
            yield rows, self._features(self[rows])

    def in_memory(self) -> Any:
        """All rows: an array or, if there are categories, a polars data frame."""
        return self._features(self[:])

    def _features(self, values: NDArray[Any]) -> Any:
        if not self.levels:
            return values
        import polars as pl  # noqa: PLC0415 (only data frames need it)

        names = self.names or tuple(map(str, range(values.shape[1])))
        columns = [pl.Series(name, values[:, place]) for place, name in enumerate(names)]
        for place, levels in self.levels.items():
            numbers = columns[place].fill_nan(None).cast(pl.UInt32)
            columns[place] = pl.Series(names[place], levels, dtype=pl.String).gather(numbers)
        return pl.DataFrame(columns)

    def map(self, function: Callable[[Any], NDArray[np.float32]]) -> StoredFeatures:
        """What a function computes of the rows, block by block, in a file too."""
        made: StoredFeatures | None = None
        for rows, block in self.blocks():
            values = function(block)
            if made is None:
                made = StoredFeatures.create(len(self), values.shape[1], values.dtype)
            made.file[rows] = values
        assert made is not None  # noqa: S101 (there is a block)
        return made


def store_columns(
    rows: int, names: Sequence[str], load: Callable[[Sequence[str]], Sequence[Any]], at_a_time: int
) -> StoredFeatures:
    """Write columns into a file, some at a time.

    Args:
        rows: how many there are.
        names: of the columns.
        load: from names of columns to polars series of numbers or texts.
        at_a_time: columns that are loaded together.
    """
    import polars as pl  # noqa: PLC0415

    stored = StoredFeatures.create(rows, len(names))
    levels: dict[int, tuple[str, ...]] = {}
    for first in range(0, len(names), at_a_time):
        values = np.empty((rows, len(names[first : first + at_a_time])))
        for place, column in enumerate(load(names[first : first + at_a_time])):
            if column.dtype == pl.String:
                levels[first + place] = tuple(column.drop_nulls().unique().sort().to_list())
                column = column.cast(pl.Enum(levels[first + place])).to_physical()  # noqa: PLW2901
            values[:, place] = column.cast(pl.Float64).fill_null(float("nan")).to_numpy()
        for begin in range(0, rows, CELLS_AT_A_TIME):
            part = slice(begin, begin + CELLS_AT_A_TIME)
            stored.file[part, first : first + values.shape[1]] = values[part]
    return replace(stored, names=tuple(names), levels=levels)


def _reserve(descriptor: int, size: int) -> None:
    """Claim the room now: without it, a full disk would be found while writing, by a signal that ends the process."""
    if size and hasattr(os, "posix_fallocate"):
        os.posix_fallocate(descriptor, 0, size)
