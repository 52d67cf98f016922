"""Readers of data files, one module per format, behind one function: `read`.

To add a format, write one module in this package and add one line to `READERS`. Tables in any format share a reader:
`frames` makes data frames of files, and `tables` finds out what their columns are.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

from rarenode._io.delimited import suffix_of
from rarenode._io.files import is_dir
from rarenode.data.dataset import Dataset
from rarenode.data.decoding import SUFFIXES
from rarenode.data.readers.arff import Kind, read_arff_files
from rarenode.data.table_options import Expected, TableOptions
from rarenode.errors import ArgumentError, FileFormatError
from rarenode.hierarchy import HierarchyLike


class Reader(Protocol):
    """A function that reads files of one format; arguments are those of `read`."""

    def __call__(
        self,
        sources: Sequence[Any],
        *,
        options: TableOptions,
        hierarchy: HierarchyLike | None,
        kind: Kind,
        expected: Expected | None,
        labels: bool,
    ) -> Dataset:
        """Read the files as one dataset."""


def _read_tables(sources: Sequence[Any], *, kind: Kind, **how: Any) -> Dataset:
    from rarenode.data.readers.tables import read_tables  # noqa: PLC0415 (polars takes a tenth of a second to load)

    return read_tables(sources, **how)


def _read_images(sources: Sequence[Any], *, kind: Kind, **how: Any) -> Dataset:
    from rarenode.data.readers.images import read_images  # noqa: PLC0415

    return read_images(sources, **how)


TABLES = (".csv", ".tsv", ".tab", ".txt", ".parquet", ".pq", ".arrow", ".feather", ".ipc")
FOLDER = "/"
READERS: Mapping[str, Reader] = MappingProxyType(
    {
        ".arff": read_arff_files,
        **dict.fromkeys(TABLES, _read_tables),
        **dict.fromkeys((".zip", FOLDER, *SUFFIXES), _read_images),
    }
)
"""From the suffix of a file name, in lower case and without ``.gz``, to the reader of that format; folders have one."""


def read(
    sources: Sequence[Any] | Path | str,
    *,
    options: TableOptions | None = None,
    hierarchy: HierarchyLike | None = None,
    kind: Kind = "auto",
    expected: Expected | None = None,
    labels: bool = True,
) -> Dataset:
    """Read files in any known format as one dataset. The suffix of the first selects the format.

    Args:
        sources: a file, several files with the same columns, a data frame, or a folder or zip archive of pictures.
        options: which columns of a table are what; None: as the model's table was read, or else the defaults.
        hierarchy: of the labels of a table, in any form that `as_hierarchy` takes.
        kind: whether the labels of an ARFF file form a ``tree`` or a ``dag``; ``auto`` lets the reader decide.
        expected: what the model expects that the rows are for.
        labels: whether to read labels; rows that are only to be predicted need none.

    Raises:
        MissingFileError: a file does not exist.
        FileFormatError: the suffix is not that of a known format, or a file is malformed.
        DataError, ArgumentError: columns cannot be used, or are not there.
    """
    given = [sources] if isinstance(sources, str | Path) else list(sources)
    if not given:
        raise ArgumentError("no file is given")
    if options is None:
        options = expected.reading if expected is not None and expected.reading is not None else TableOptions()
    suffix = _suffix(given[0])
    reader = READERS.get(suffix)
    if reader is None:
        what = f"the suffix {suffix[:20]!r}" if suffix else "no suffix"
        hint = "; save the sheet as 'CSV UTF-8'" if suffix in (".xlsx", ".xls", ".ods") else ""
        known = ", ".join(suffix for suffix in READERS if suffix != FOLDER)
        raise FileFormatError(given[0], None, f"cannot tell the file format from {what}; known: {known}{hint}")
    for each in given:
        if READERS.get(_suffix(each)) is not reader:
            raise FileFormatError(each, None, f"its format cannot be joined with that of {given[0]}")
    return reader(given, options=options, hierarchy=hierarchy, kind=kind, expected=expected, labels=labels)


def _suffix(source: Any) -> str:
    if not isinstance(source, str | Path):
        return TABLES[0]  # a data frame
    return FOLDER if is_dir(source) else suffix_of(source)
