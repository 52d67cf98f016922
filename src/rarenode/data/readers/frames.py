"""Tables as polars data frames: CSV, TSV, Parquet and Arrow files, with an error that names file, line and column.

Text files may come from a spreadsheet: with a byte-order mark, in UTF-16, separated by semicolons, with decimal commas.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from polars.selectors import by_name

from rarenode._io.cells import has_guards
from rarenode._io.delimited import check_header, guess_delimiter, header_names, read_records, read_text, suffix_of
from rarenode._io.files import identity, is_dir, is_file, require_unchanged
from rarenode._io.text import counted, storable
from rarenode.data.features import frame_from_pandas
from rarenode.errors import DataError, FileFormatError, MissingFileError

TEXT = (".csv", ".tsv", ".tab", ".txt")
BINARY = (".parquet", ".pq", ".arrow", ".feather", ".ipc")
MISSING = ("", "NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "?")
"""What a cell of text contains where a value is missing; ids and labels may have such names, but for a blank."""
THOUSANDS = r"^[+-]?[1-9]\d{0,2}(,\d{3})+$"
"""A number whose commas may separate thousands."""
NEWLINE = ord("\n")
MOST_CELLS, CELLS_BY_BYTE = 1 << 29, 128
"""A compressed table may have so many cells or, if it is larger, so many for each of its bytes."""
UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError)
"""What polars raises for a damaged file."""


@dataclass(frozen=True, eq=False)
class Table:
    """A data frame, and the files that its rows come from."""

    frame: pl.DataFrame
    files: tuple[tuple[Path, int], ...] = ()
    """Each file with the number of its rows, in order; none for a data frame."""
    ids: tuple[str, ...] | None = None
    """The index of a data frame that has one."""
    index_name: str | None = None
    """What that index is called."""
    decimal_commas: frozenset[str] = frozenset()
    """The columns in which a comma of a number is the decimal point for certain, and separates no thousands."""
    first_row: int = 0
    """Which row of the files is the first of the frame, if it is a part of them."""

    @property
    def name(self) -> str:
        """Where the rows come from, for messages."""
        if not self.files:
            return "the data frame"
        first = str(self.files[0][0])
        return first if len(self.files) == 1 else f"{first} and {len(self.files) - 1} more"

    def error(self, row: int, problem: str) -> DataError:
        """An error about a row, which names its file and line."""
        row += self.first_row
        for path, rows in self.files:
            if row < rows:
                line = line_of_row(path, row)
                return FileFormatError(path, line, problem if line is not None else f"row {row + 1}: {problem}")
            row -= rows
        return DataError(f"{self.name}, row {row}: {problem}")

    def places(self, rows: Sequence[int]) -> list[str]:
        """Where rows are, such as ``survey.csv, line 7``; they are in ascending order."""
        found: list[str] = []
        first = -self.first_row
        for path, count in self.files:
            here = [row - first for row in rows if first <= row < first + count]
            lines = lines_of_rows(path) if here else None
            found += [f"{path}, row {row + 1}" if lines is None else f"{path}, line {lines[row]}" for row in here]
            first += count
        return found if self.files else [f"{self.name}, row {row}" for row in rows]


def line_of_row(path: Path, row: int) -> int | None:
    """The line in which a row of a text file begins; None for a file without lines."""
    lines = lines_of_rows(path)
    return None if lines is None else lines[row]


def lines_of_rows(path: Path) -> list[int] | None:
    """The lines in which the rows of a text file begin; None for a file without lines."""
    return [line for line, _ in read_records(path).rows] if suffix_of(path) in TEXT else None


TextColumns = Callable[[list[str]], Mapping[str, bool]]
"""From the columns of a table to those that are never numbers, even if they look like it, such as ids and labels; and
whether a word such as NA is missing in them, or may be a name, so that only a blank cell is missing."""


def read_table(sources: Sequence[Any], text_columns: TextColumns, columns: Sequence[str] | None = None) -> Table:
    """Read files with the same columns as one table.

    Args:
        sources: CSV, TSV, Parquet or Arrow files, of which text files may be gzipped; or one data frame.
        text_columns: which columns are never numbers, and in which of them only blanks are missing.
        columns: of Parquet and Arrow files, the only ones to read; None: all.

    Raises:
        MissingFileError: there is no such file.
        FileFormatError: a file is malformed.
        DataError: the files have different columns.
    """
    if not isinstance(sources[0], str | Path):
        if len(sources) > 1:
            raise DataError("only one data frame can be read; concatenate several")
        return _from_frame(sources[0], text_columns)
    paths = [Path(source) for source in sources]
    read = [_read(path, text_columns, columns) for path in paths]
    frames = [frame for frame, _ in read]
    for path, frame in zip(paths[1:], frames[1:], strict=True):
        _check_same_columns(paths[0], frames[0].columns, path, frame.columns)
    files = tuple((path, len(frame)) for path, frame in zip(paths, frames, strict=True))
    with_rows = [frame for frame in frames if len(frame)]  # a file without rows says nothing of its columns' types
    if not with_rows:
        raise FileFormatError(paths[0], None, "it has no rows")
    joined = _joined(paths, with_rows)
    by_semicolons = all(delimiter == ";" for _, delimiter in read)
    return Table(joined, files, decimal_commas=frozenset(joined.columns) if by_semicolons else _decimal_commas(joined))


def _joined(paths: list[Path], frames: list[pl.DataFrame]) -> pl.DataFrame:
    if len(frames) == 1:
        return frames[0]
    columns = []
    for name in frames[0].columns:
        try:
            columns.append(pl.concat([frame[name].to_frame() for frame in frames], how="vertical_relaxed")[name])
        except pl.exceptions.PolarsError:
            kinds = " and ".join(dict.fromkeys(str(frame[name].dtype) for frame in frames))
            raise DataError(f"{paths[0]} and the other files: column {name!r} contains {kinds}") from None
    return pl.DataFrame(columns)


def scan_table(sources: Sequence[Any], text_columns: TextColumns, rows: int) -> Iterator[Table]:
    """The same table in parts of at most so many rows; Parquet and Arrow files are never in memory as a whole."""
    if not all(isinstance(source, str | Path) and suffix_of(source) in BINARY for source in sources):
        table = read_table(sources, text_columns)
        for first in range(0, len(table.frame), rows):
            ids = None if table.ids is None else table.ids[first : first + rows]
            yield replace(table, frame=table.frame[first : first + rows], ids=ids, first_row=first)
        return
    paths = [Path(source) for source in sources]
    known = {path: identity(path) for path in paths if is_file(path)}
    counts = [_collect(path, _scan(path).select(pl.len())).item() for path in paths]
    files = tuple(zip(paths, counts, strict=True))
    if not any(counts):
        raise FileFormatError(paths[0], None, "it has no rows")
    names = _scan(paths[0]).collect_schema().names()
    before = 0
    for path, count in files:
        _check_same_columns(paths[0], names, path, _scan(path).collect_schema().names())
        for first in range(0, count, rows):
            part = _without_missing(_collect(path, _scan(path).slice(first, rows)), text_columns)
            require_unchanged(path, known[path])
            yield Table(part, files, first_row=before + first, decimal_commas=_decimal_commas(part))
        before += count


def _from_frame(source: Any, text_columns: TextColumns) -> Table:
    if isinstance(source, pl.DataFrame):
        table = Table(source)
    elif hasattr(source, "columns") and hasattr(source, "index"):
        index = source.index
        name = None if index.name is None else storable(str(index.name))
        numbered = type(index).__name__ == "RangeIndex" and (index.start, index.step, name) == (0, 1, None)
        ids = None if numbered else tuple(storable(str(key)) for key in index)
        table = Table(frame_from_pandas(source), ids=ids, index_name=name)
    else:
        raise DataError(f"expected a file, or a pandas or polars data frame, got {type(source).__name__}")
    if not len(table.frame):
        raise DataError("the data frame has no rows")
    frame = _without_missing(table.frame, text_columns)
    return replace(table, frame=frame, decimal_commas=_decimal_commas(frame))


def _decimal_commas(frame: pl.DataFrame) -> frozenset[str]:
    """The text columns in which some comma cannot separate thousands."""
    found = []
    for name in (name for name, kind in frame.schema.items() if kind == pl.String):
        commas = frame[name].filter(frame[name].str.contains(",", literal=True))
        if not commas.str.contains(THOUSANDS).all():
            found.append(name)
    return frozenset(found)


def _check_same_columns(first: Path, expected: list[str], path: Path, columns: list[str]) -> None:
    if columns != expected:
        odd = sorted(set(columns) ^ set(expected))
        what = f"{odd[0]!r} is a column of only one of them" if odd else "their order differs"
        raise DataError(f"{path}: its columns are not those of {first}: {what}")


def schema_of(sources: Sequence[Any]) -> Table:
    """The columns of Parquet or Arrow files, without a row.

    Raises:
        MissingFileError, FileFormatError, DataError: as `read_table`; also if the files are text.
    """
    paths = [Path(source) for source in sources if isinstance(source, str | Path)]
    other = next((path for path in paths if suffix_of(path) not in BINARY), None)
    if len(paths) < len(sources) or other is not None:
        what = "the data frame" if other is None else other
        raise DataError(f"{what}: only Parquet and Arrow files can be streamed (--stream); convert it to Parquet")
    frames = [pl.DataFrame(schema=_scan(path).collect_schema()) for path in paths]
    _refuse_patterns(frames[0].columns)
    for path, frame in zip(paths[1:], frames[1:], strict=True):
        _check_same_columns(paths[0], frames[0].columns, path, frame.columns)
    return Table(frames[0], tuple((path, 0) for path in paths))


def _read(path: Path, text_columns: TextColumns, columns: Sequence[str] | None) -> tuple[pl.DataFrame, str | None]:
    """The rows of a file, and what separates its fields, if it is text."""
    if suffix_of(path) in TEXT:
        frame, delimiter = _read_text_frame(path, text_columns)
        return _without_missing(frame, text_columns), delimiter
    scanned = _scan(path)
    if columns is not None:
        scanned = scanned.select(by_name(*columns))
    _check_size(path, scanned)
    return _without_missing(_collect(path, scanned), text_columns), None


def _check_size(path: Path, scanned: pl.LazyFrame) -> None:
    """Refuse a small file of which compression makes billions of cells."""
    rows, columns = _collect(path, scanned.select(pl.len())).item(), len(scanned.collect_schema())
    if rows * columns > max(MOST_CELLS, CELLS_BY_BYTE * path.stat().st_size):
        what = f"{rows:,} rows of {counted(columns, 'column')} in {path.stat().st_size:,} bytes"
        raise FileFormatError(path, None, f"it has {what}, which take too much memory; leave out columns, or split it")


def _without_missing(frame: pl.DataFrame, text_columns: TextColumns) -> pl.DataFrame:
    """The frame with text columns stripped of blanks, and null where a value is missing."""
    _refuse_patterns(frame.columns)
    only_blanks = text_columns(frame.columns)
    text = [frame[name] for name, kind in frame.schema.items() if kind in (pl.String, pl.Categorical, pl.Enum)]
    stripped = [column.cast(pl.String).str.strip_chars() for column in text]
    missing = [("",) if only_blanks.get(column.name) else MISSING for column in text]
    return frame.with_columns(null_where(column, words) for column, words in zip(stripped, missing, strict=True))


def null_where(column: pl.Series, words: Collection[str]) -> pl.Series:
    """A column of text with null in place of some words."""
    return column.set(column.is_in(list(words)), None)


def _refuse_patterns(names: Sequence[str]) -> None:
    """Refuse names such as ^a.*$, which polars takes for patterns wherever it expects the name of a column."""
    odd = next((name for name in names if name.startswith("^") and name.endswith("$")), None)
    if odd is not None:
        raise DataError(f"column {odd!r}: a name that begins with ^ and ends with $ cannot be used; rename the column")


def _collect(path: Path, scanned: pl.LazyFrame) -> pl.DataFrame:
    try:
        return scanned.collect()
    except UNREADABLE as error:
        raise _unreadable(path, error) from None


def _scan(path: Path) -> pl.LazyFrame:
    if is_dir(path):
        raise FileFormatError(path, None, "it is a folder; expected a file")
    if not is_file(path):
        raise MissingFileError(f"{path}: no such file")
    if path.suffix.lower() == ".gz":
        raise FileFormatError(path, None, "only text may be gzipped; unpack it, as such files are compressed inside")
    scan = pl.scan_parquet if suffix_of(path) in (".parquet", ".pq") else pl.scan_ipc
    try:
        frame = scan(path, glob=False)
        frame.collect_schema()
    except UNREADABLE as error:
        raise _unreadable(path, error) from None
    return frame


def _unreadable(path: Path, error: BaseException) -> FileFormatError:
    what = "Parquet" if suffix_of(path) in (".parquet", ".pq") else "Arrow IPC"
    return FileFormatError(path, None, f"it is damaged, or no {what} file: {str(error).partition(chr(10))[0][:200]}")


def _read_text_frame(path: Path, text_columns: TextColumns) -> tuple[pl.DataFrame, str]:
    content, delimiter, names = _clean(path)
    place = {name: number for number, name in enumerate(names)}
    text = {name: only_blanks for name, only_blanks in text_columns(list(names)).items() if name in place}
    known_text = {_number(place[name]): pl.String for name in text}
    try:
        frame = _parsed(content, delimiter, schema_overrides=known_text)
    except UNREADABLE:  # digits that polars takes for a number and cannot read; as text they are looked at one by one
        try:
            frame = _parsed(content, delimiter, infer_schema=False)
        except UNREADABLE as error:
            raise FileFormatError(path, None, f"it cannot be read: {str(error).partition(chr(10))[0][:200]}") from None
    frame.columns = list(names)
    lost = [name for name, only_blanks in text.items() if only_blanks and frame[name].null_count()]
    if lost:  # words that are missing in other columns
        columns = [place[name] for name in lost]
        again = _parsed(content, delimiter, missing=(), infer_schema=False, columns=columns)
        frame = frame.with_columns(again[_number(place[name])].alias(name) for name in lost)
    return frame, delimiter


def _parsed(content: bytes, delimiter: str, missing: Sequence[str] = MISSING, **how: Any) -> pl.DataFrame:
    file = io.BytesIO(content)
    return pl.read_csv(file, separator=delimiter, infer_schema_length=None, null_values=list(missing), **how)


def _number(place: int) -> str:
    """What a column is called while polars parses it, which leaves quotes in a header as they are."""
    return f"column {place}"


def _header(names: Sequence[str], delimiter: str) -> str:
    return delimiter.join(map(_number, range(len(names)))) + "\n"


def _clean(path: Path) -> tuple[bytes, str, tuple[str, ...]]:
    """The content of a delimited file without blank rows and with as many fields in each; its delimiter and header.

    In the content columns are called by `_number`.

    Raises:
        FileFormatError: a row has too many or too few fields; polars would fill in the missing ones.
    """
    text = read_text(path)
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    delimiter = guess_delimiter(text, suffix_of(path))
    if '"' in text or has_guards(text, delimiter):  # fields may contain delimiters and line breaks
        return _rewritten(path, delimiter)
    first, _, rest = text.partition("\n")
    names = header_names(first.split(delimiter))
    if not names:
        return _rewritten(path, delimiter)
    check_header(path, names)
    content = rest.rstrip("\n").encode("utf-8")
    data = np.frombuffer(content, dtype=np.uint8)
    ends = np.append(np.flatnonzero(data == NEWLINE), len(data))
    fields = np.diff(np.searchsorted(np.flatnonzero(data == ord(delimiter)), ends), prepend=0) + 1
    if len(content) and ((fields != len(names)).any() or _has_blank_row(data, ends, content, delimiter)):
        return _rewritten(path, delimiter)
    return _header(names, delimiter).encode() + content, delimiter, names


def _has_blank_row(data: Any, ends: Any, content: bytes, delimiter: str) -> bool:
    """Whether a row has nothing but blanks; such a row begins with one, or with a delimiter."""
    starts = np.concatenate([[0], ends[:-1] + 1])
    nothing = b" \t\x0b\x0c\x1c\x1d\x1e\x1f" + delimiter.encode()
    odd = np.flatnonzero(np.isin(data[np.minimum(starts, len(data) - 1)], np.frombuffer(nothing + b"\n", np.uint8)))
    return any(not content[starts[row] : ends[row]].strip(nothing) for row in odd.tolist())


def _rewritten(path: Path, delimiter: str) -> tuple[bytes, str, tuple[str, ...]]:
    """As `_clean`, by a parser that is slow, knows quotes, and says in which line something is wrong."""
    records = read_records(path, delimiter)
    file = io.StringIO()
    file.write(_header(records.header, delimiter))
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerows(fields for _, fields in records.rows)
    return file.getvalue().encode("utf-8"), delimiter, records.header
