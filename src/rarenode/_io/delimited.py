"""Text files of records: decoding, decompression, and delimited records with their line numbers."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rarenode.errors import FileFormatError, MissingFileError

DELIMITERS = (",", ";", "\t", "|")
MOST_BYTES = 1 << 32
"""A compressed file may not be larger than this when unpacked."""
LONGEST_FIELD = 1 << 20
SAMPLE, SAMPLE_SIZE = 20, 1 << 20
"""Lines and characters from which the delimiter is guessed."""


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
        line = content.count(b"\n", 0, error.start) + 1
        problem = "expected UTF-8 text; in Excel, save as 'CSV UTF-8', or convert the file with iconv"
        raise FileFormatError(path, line, problem) from None
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise FileFormatError(path, line, "it contains a null character, so it is not text")
    if not text.strip():
        raise FileFormatError(path, None, "the file is empty")
    return text


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
    try:
        with gzip.open(path) as unpacked:
            content = unpacked.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise FileFormatError(path, None, f"it cannot be unpacked: {error}") from None
    if len(content) > MOST_BYTES:
        raise FileFormatError(path, None, f"it has more than {MOST_BYTES:,} bytes when unpacked")
    return content


def suffix_of(path: Path | str) -> str:
    """The suffix that tells the format, in lower case and without ``.gz``.

    >>> suffix_of("go-basic.obo.gz"), suffix_of("a.CSV")
    ('.obo', '.csv')
    """
    name = Path(path).name.lower().removesuffix(".gz")
    return Path(name).suffix


def read_records(path: Path | str, delimiter: str | None = None) -> Records:
    """Read a delimited file with a header; blank lines are skipped.

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
    _, header = next(records)
    names = tuple(name.strip() for name in header)
    while names and not names[-1]:  # spreadsheets leave blank cells behind a row
        names = names[:-1]
    check_header(path, names)
    rows = []
    for line, fields in records:
        while len(fields) > len(names) and not fields[-1].strip():
            del fields[-1]
        if len(fields) != len(names):
            problem = f"expected {len(names)} fields as in the header, got {len(fields)}"
            raise FileFormatError(path, line, problem)
        rows.append((line, [field.strip() for field in fields]))
    return Records(path, delimiter, names, rows)


def check_header(path: Path, names: tuple[str, ...]) -> None:
    """Refuse columns without a name, and names that appear twice."""
    seen: dict[str, int] = {}
    for place, name in enumerate(names, start=1):
        if not name:
            raise FileFormatError(path, 1, f"column {place} has no name")
        if name in seen:
            raise FileFormatError(path, 1, f"columns {seen[name]} and {place} have the same name {name!r}; rename one")
        seen[name] = place


def _records(path: Path, text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Each record that is not blank, with the line it begins in."""
    lines = iter(text.splitlines(keepends=True) if "\r" in text else text.split("\n"))
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    csv.field_size_limit(LONGEST_FIELD)
    while True:
        begins = reader.line_num + 1
        try:
            fields = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            what = f"a field has more than {LONGEST_FIELD:,} characters" if "limit" in str(error) else str(error)
            raise FileFormatError(path, begins, f"{what}; check that quotes are closed") from None
        if any(field.strip() for field in fields):
            yield begins, fields


def guess_delimiter(text: str, suffix: str = "") -> str:
    """What separates fields: that which splits the first records into equally many fields, the most of them.

    >>> guess_delimiter("a;b;c" + chr(10) + "1,5;2;3")
    ';'
    """
    if suffix in (".tsv", ".tab"):
        return "\t"
    lines = (text if len(text) <= SAMPLE_SIZE else text[: text.rfind("\n", 0, SAMPLE_SIZE)]).splitlines()
    sample = [line for line in lines[:SAMPLE] if line.strip()]
    best, most = ",", 1
    for delimiter in DELIMITERS:
        try:
            widths = {len(fields) for fields in csv.reader(sample, delimiter=delimiter)}
        except csv.Error:
            continue
        header = len(next(csv.reader(sample[:1], delimiter=delimiter)))
        if len(widths) == 1 and header > most:
            best, most = delimiter, header
    if most == 1:  # ragged: go by the header
        best = max(DELIMITERS, key=sample[0].count)
        return best if best in sample[0] else ","
    return best
