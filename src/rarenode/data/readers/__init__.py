"""Readers of data files, one module per format, behind one function: `read`.

To add a format, write one module in this package and add one line to `READERS`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from rarenode.data.dataset import Dataset
from rarenode.data.readers.arff import Kind, read_arff
from rarenode.errors import FileFormatError


class Reader(Protocol):
    """A function that reads one file format."""

    def __call__(self, path: Path | str, kind: Kind) -> Dataset:
        """Read the file at ``path``; ``kind`` is as in `read`."""


READERS: Mapping[str, Reader] = MappingProxyType({".arff": read_arff})
"""From the suffix of a file name, in lower case, to the reader of that format."""


def read(path: Path | str, kind: Kind = "auto") -> Dataset:
    """Read a data file in any known format. The suffix of its name, in upper or lower case, selects the format.

    Args:
        path: the file to read.
        kind: whether the labels form a ``tree`` or a ``dag``; ``auto`` lets the reader decide.

    Raises:
        MissingFileError: the file does not exist.
        FileFormatError: the suffix is not that of a known format, or the file is malformed.
    """
    suffix = Path(path).suffix
    reader = READERS.get(suffix.lower())
    if reader is None:
        given = f"the suffix {suffix[:20]!r}" if suffix else "no suffix"
        raise FileFormatError(path, None, f"cannot tell the file format from {given}; known: {', '.join(READERS)}")
    return reader(path, kind)
