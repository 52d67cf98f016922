"""Text files of records: decoding, decompression, and delimited records with their line numbers."""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from rarenode._io.cells import unguarded
from rarenode._io.text import counted
from rarenode.errors import FileFormatError, MissingFileError

DELIMITERS = (",", ";", "\t", "|")
MOST_BYTES = 1 << 32
"""A compressed file may not be larger than this when unpacked."""
BYTES_AT_A_TIME = 1 << 20
LONGEST_FIELD = 1 << 20
SAMPLE, SAMPLE_SIZE = 20, 1 << 20
"""Records and characters from which the delimiter is guessed."""


@dataclass(frozen=True)
class Dialect:
    """How a CSV file is written; that of a spreadsheet depends on its country."""

    delimiter: str = ","
    decimal_comma: bool = False
    byte_order_mark: bool = False


COMMA_SEPARATED = Dialect()


@dataclass(frozen=True)
class Records:
    """A delimited file: its header, and records with the line each begins in."""

    path: Path
    delimiter: str
    header: tuple[str, ...]
    rows: list[tuple[int, list[str]]]

    def column(self, name: str) -> int:
        """Where a column is."""
        return self.header.index(name)


def read_text(path: Path | str) -> str:
    """The text of a file, gzipped or not: UTF-8, or UTF-16 with a byte-order mark.

    Raises:
        MissingFileError: there is no such file.
        FileFormatError: it is a folder, empty, damaged, or not such text; the message says what to do.
    """
    path = Path(path)
    content = read_bytes(path)
    encoding = "utf-16" if content.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        line = _line_of(content[: error.start].decode(encoding, "replace"))
        problem = "expected UTF-8 text; in Excel, save as 'CSV UTF-8', or convert the file with iconv"
        raise FileFormatError(path, line, problem) from None
    if "\0" in text:
        line = _line_of(text[: text.index("\0")])
        problem = "it contains a null character; if it is UTF-16, save it as UTF-8 ('CSV UTF-8' in Excel)"
        raise FileFormatError(path, line, problem)
    if not text.strip():
        raise FileFormatError(path, None, "the file is empty")
    return text


def _line_of(before: str) -> int:
    """The number of the line in which something is, from what is before it."""
    return before.replace("\r\n", "\n").replace("\r", "\n").count("\n") + 1


def read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked if it is gzipped."""
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise MissingFileError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise FileFormatError(path, None, "it is a folder; expected a file") from None
    except OSError as error:
        raise FileFormatError(path, None, f"it cannot be read: {error.strerror}") from None
    except ValueError:  # a null character, which no file name can contain
        raise MissingFileError(f"{str(path)!r}: no such file") from None
    if not content.startswith(b"\x1f\x8b"):
        if path.suffix.lower() == ".gz":
            raise FileFormatError(path, None, "the name ends in .gz, but the file is not gzipped")
        return content
    parts, size = [], 0
    try:
        with gzip.open(path) as unpacked:
            while part := unpacked.read(BYTES_AT_A_TIME):  # which makes room for all that it is to read, at once
                parts.append(part)
                size += len(part)
                if size > MOST_BYTES:
                    raise FileFormatError(path, None, f"it has more than {MOST_BYTES:,} bytes when unpacked")
    except (OSError, EOFError, zlib.error) as error:
        raise FileFormatError(path, None, f"it cannot be unpacked: {error}") from None
    return b"".join(parts)


def suffix_of(path: Path | str) -> str:
    """The suffix that tells the format, in lower case and without ``.gz``.

    >>> suffix_of("go-basic.obo.gz"), suffix_of("a.CSV")
    ('.obo', '.csv')
    """
    name = Path(path).name.lower().removesuffix(".gz")
    return Path(name).suffix


def read_records(path: Path | str, delimiter: str | None = None) -> Records:
    """Read a delimited file with a header; blank lines are skipped, and cells `unguarded`.

    Args:
        path: the file.
        delimiter: what separates the fields; None guesses it from the first records.

    Raises:
        MissingFileError: there is no such file.
        FileFormatError: it is not such a file; the message names the line.
    """
    path = Path(path)
    text = read_text(path)
    if delimiter is None:
        delimiter = guess_delimiter(text, suffix_of(path))
    records = _records(path, text, delimiter)
    first, header = next(records, (1, []))
    names = header_names(header)
    check_header(path, names, first)
    rows = []
    for line, given in records:
        fields = _without_blanks(given, len(names))
        if len(fields) != len(names):
            problem = f"expected {counted(len(names), 'field')} as in the header, got {len(fields)}"
            more = f"; if a value contains {delimiter!r}, put it in quotes" if len(fields) > len(names) else ""
            raise FileFormatError(path, line, problem + more)
        rows.append((line, [unguarded(field.strip()) for field in fields]))
    return Records(path, delimiter, names, rows)


def header_names(fields: list[str]) -> tuple[str, ...]:
    """The names in a header, without the blank cells that spreadsheets leave behind a row."""
    return tuple(unguarded(name.strip()) for name in _without_blanks(fields, 0))


def _without_blanks(fields: list[str], width: int) -> list[str]:
    """The fields without the blank ones that are left over behind so many."""
    end = len(fields)
    while end > width and not fields[end - 1].strip():
        end -= 1
    return fields[:end]


def check_header(path: Path, names: tuple[str, ...], line: int = 1) -> None:
    """Refuse a header without columns, columns without a name, and names that appear twice."""
    if not names:
        raise FileFormatError(path, line, "expected a header with the names of the columns")
    seen: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        if not name:
            raise FileFormatError(path, line, f"column {place} has no name; give it one in the header")
        if name in seen:
            problem = f"columns {seen[name]} and {place} have the same name {name[:80]!r}; rename one"
            raise FileFormatError(path, line, problem)
        seen[name] = place


def _records(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Each record that is not blank, with the line it begins in."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    while True:
        begins = reader.line_num + 1
        # The limit holds for the whole process, so it is changed for no longer than it takes.
        before = csv.field_size_limit(LONGEST_FIELD)
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            what = f"a field has more than {LONGEST_FIELD:,} characters" if "limit" in str(error) else str(error)
            raise FileFormatError(path, begins, f"{what}; check that quotes are closed") from None
        finally:
            csv.field_size_limit(before)
        if any(field.strip() for field in fields):
            yield begins, fields


def dialect_of(path: Path | str) -> Dialect:
    """The dialect of a CSV file, from its first records; that of any other file is the usual one."""
    if suffix_of(path) != ".csv":
        return COMMA_SEPARATED
    text = read_text(path)
    delimiter = guess_delimiter(text, ".csv")
    sample = [fields for _, fields in islice(_records(Path(path), text, delimiter), SAMPLE)]
    cells = [cell.strip() for fields in sample[1:] for cell in fields]
    commas = sum(re.fullmatch(r"[+-]?\d+,\d+", cell) is not None for cell in cells)
    points = sum(re.fullmatch(r"[+-]?\d+\.\d+", cell) is not None for cell in cells)
    mark = Path(path).read_bytes()[:3] == codecs.BOM_UTF8
    return Dialect(delimiter, delimiter != "," and commas > points, mark)


def guess_delimiter(text: str, suffix: str = "") -> str:
    """What separates fields: that which splits the first records into equally many fields, the most of them.

    >>> guess_delimiter("a;b;c" + chr(10) + "1,5;2;3")
    ';'
    """
    if suffix in (".tsv", ".tab"):
        return "\t"
    sample = text if len(text) <= SAMPLE_SIZE else text[: text.rfind("\n", 0, SAMPLE_SIZE) + 1 or SAMPLE_SIZE]
    best, most = ",", 1
    for delimiter in DELIMITERS:
        try:
            records = [each for _, each in islice(_records(Path(), sample, delimiter), SAMPLE)]
        except FileFormatError:
            continue
        width = len(header_names(records[0])) if records else 0
        if width > most and all(len(_without_blanks(fields, width)) == width for fields in records):
            best, most = delimiter, width
    if most > 1:
        return best
    header = next(line for line in sample.splitlines() if line.strip())  # ragged: go by the header
    best = max(DELIMITERS, key=header.count)
    return best if best in header else ","
