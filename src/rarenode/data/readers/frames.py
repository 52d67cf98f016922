"""Tables as polars data frames: CSV, TSV, Parquet and Arrow files, with an error that names file, line and column.

Text files may come from a spreadsheet: with a byte-order mark, in UTF-16, separated by semicolons, with decimal commas.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from rarenode._io.delimited import check_header, guess_delimiter, read_records, read_text, suffix_of
from rarenode.errors import DataError, FileFormatError, MissingFileError

TEXT = (".csv", ".tsv", ".tab", ".txt")
BINARY = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
SUFFIXES = (*TEXT, *BINARY)
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "?")
"""What a cell of a text file contains where a value is missing."""
NEWLINE = ord("\n")


@dataclass(frozen=True, eq=False)
class Table:
    """A data frame, and the files that its rows come from."""

    frame: pl.DataFrame
    files: tuple[tuple[Path, int], ...]
    """Each file with the number of its rows, in order."""

    @property
    def name(self) -> str:
        """The files, for messages."""
        first = str(self.files[0][0])
        return first if len(self.files) == 1 else f"{first} and {len(self.files) - 1} more"

    def error(self, row: int, problem: str) -> FileFormatError:
        """An error about a row, which names its file and line."""
        for path, rows in self.files:
            if row < rows:
                line = line_of_row(path, row)
                return FileFormatError(path, line, problem if line is not None else f"row {row + 1}: {problem}")
            row -= rows
        raise IndexError(row)


def line_of_row(path: Path, row: int) -> int | None:
    """The line in which a row of a text file begins; None for a file without lines."""
    if suffix_of(path) not in TEXT:
        return None
    return read_records(path).rows[row][0]


def read_table(paths: Sequence[Path | str], text_columns: Sequence[str] = ()) -> Table:
    """Read files with the same columns as one table.

    Args:
        paths: CSV, TSV, Parquet or Arrow files; text files may be gzipped.
        text_columns: columns that are never numbers, even if they look like it, such as ids and labels.

    Raises:
        MissingFileError: there is no such file.
        FileFormatError: a file is malformed.
        DataError: the files have different columns.
    """
    if not paths:
        raise DataError("no file is given")
    frames = [_read(Path(path), text_columns) for path in paths]
    first = frames[0]
    for path, frame in zip(paths[1:], frames[1:], strict=True):
        if frame.columns != first.columns:
            odd = sorted(set(frame.columns) ^ set(first.columns))
            what = f"{odd[0]!r} is a column of only one of them" if odd else "their order differs"
            raise DataError(f"{path}: its columns are not those of {paths[0]}: {what}")
    files = tuple((Path(path), len(frame)) for path, frame in zip(paths, frames, strict=True))
    return Table(pl.concat(frames, how="vertical_relaxed") if len(frames) > 1 else first, files)


def column_names(path: Path | str) -> list[str]:
    """The columns of a file, without reading its rows where that is possible."""
    path = Path(path)
    if suffix_of(path) in TEXT:
        return _read_text_frame(path, (), rows=0).columns
    return list(_scan(path).collect_schema().names())


def _read(path: Path, text_columns: Sequence[str]) -> pl.DataFrame:
    suffix = suffix_of(path)
    if suffix in TEXT:
        return _read_text_frame(path, text_columns)
    if suffix in BINARY:
        try:
            return _scan(path).collect()
        except (pl.exceptions.PolarsError, OSError) as error:
            raise FileFormatError(path, None, f"it cannot be read: {str(error).splitlines()[0]}") from None
    hint = "; save the sheet as 'CSV UTF-8'" if suffix in (".xlsx", ".xls", ".ods") else ""
    given = f"the suffix {suffix[:20]!r}" if suffix else "no suffix"
    raise FileFormatError(path, None, f"cannot tell the file format from {given}; known: {', '.join(SUFFIXES)}{hint}")


def _scan(path: Path) -> pl.LazyFrame:
    if not path.is_file():
        raise MissingFileError(f"{path}: no such file")
    if suffix_of(path) in (".parquet", ".pq"):
        return pl.scan_parquet(path, glob=False)
    return pl.scan_ipc(path, glob=False)


def _read_text_frame(path: Path, text_columns: Sequence[str], rows: int | None = None) -> pl.DataFrame:
    content, delimiter, names = _clean(path)
    try:
        return pl.read_csv(
            io.BytesIO(content),
            separator=delimiter,
            n_rows=rows,
            infer_schema_length=None,
            schema_overrides={name: pl.String for name in text_columns if name in names},
            null_values=list(MISSING),
        )
    except pl.exceptions.PolarsError as error:
        raise FileFormatError(path, None, f"it cannot be read: {str(error).splitlines()[0]}") from None


def _clean(path: Path) -> tuple[bytes, str, tuple[str, ...]]:
    """The content of a delimited file without blank rows and with as many fields in each; its delimiter and header.

    Raises:
        FileFormatError: a row has too many or too few fields; polars would fill in the missing ones.
    """
    text = read_text(path)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    delimiter = guess_delimiter(text, suffix_of(path))
    if '"' in text:  # fields may contain delimiters and line breaks
        return _rewritten(path, delimiter)
    first, _, rest = text.partition("\n")
    names = tuple(name.strip() for name in first.split(delimiter))
    while names and not names[-1]:  # spreadsheets leave blank cells behind a row
        names = names[:-1]
    check_header(path, names)
    content = rest.rstrip("\n").encode("utf-8")
    data = np.frombuffer(content, dtype=np.uint8)
    ends = np.append(np.flatnonzero(data == NEWLINE), len(data))
    fields = np.diff(np.searchsorted(np.flatnonzero(data == ord(delimiter)), ends), prepend=0) + 1
    shortest = np.diff(ends, prepend=-1).min() - 1
    if len(content) and ((fields != len(names)).any() or shortest < len(names)):  # perhaps a blank row
        return _rewritten(path, delimiter)
    return f"{delimiter.join(names)}\n".encode() + content, delimiter, names


def _rewritten(path: Path, delimiter: str) -> tuple[bytes, str, tuple[str, ...]]:
    """As `_clean`, by a parser that is slow, knows quotes, and says in which line something is wrong."""
    records = read_records(path, delimiter)
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(records.header)
    writer.writerows(fields for _, fields in records.rows)
    return file.getvalue().encode("utf-8"), delimiter, records.header
