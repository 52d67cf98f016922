"""The syntax of ARFF: parses the text of a file into a header and rows. Errors name the line.

One-hot encoding and the hierarchy of the classes are built from these in `arff`.
"""

from __future__ import annotations

import math
import re
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path

from rarenode._io.delimited import read_bytes
from rarenode._io.text import counted
from rarenode.errors import FileFormatError, MissingFileError

MISSING = "?"
NUMERIC = ("numeric", "real", "integer")

MAX_IMPLIED_CELLS, IMPLIED_BY_CHARACTER = 2**26, 256
"""Limit on the cells that sparse rows leave out: so many, or for each character of the rows so many, if that is more.
They cost 8 bytes each (half a GiB), and a file of a few hundred kilobytes can imply billions of them."""

_ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<bare>[^\s{]+))\s*(?P<type>.*)""", re.I | re.S
)
# A % starts a comment, except inside quotes or inside a name: the benchmark has "0point02%_MMS".
_COMMENT = re.compile(r"""('[^']*'|"[^"]*")|(?:^|(?<=\s))%.*""", re.S)
# Only a quote at the start of a value is a quote: 5'UTR is a plain name.
_VALUE = r"""(?:'(?P<single>[^']*)'\s*(?=,|$)|"(?P<double>[^"]*)"\s*(?=,|$)|(?P<bare>[^,]*))"""
_FIELD = re.compile(rf"\s*{_VALUE}", re.S)
_SPARSE_FIELD = re.compile(rf"\s*(?P<index>[0-9]{{1,9}})\s+{_VALUE}", re.S)
_PLAIN_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


# --- header ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attribute:
    """An attribute other than the class."""

    name: str
    categories: tuple[str, ...] | None
    """None for a numeric attribute."""
    codes: dict[str, int]
    """From a category to its index; a missing value has the code -1."""


@dataclass(frozen=True)
class Header:
    """The part of the file above ``@data``."""

    attributes: tuple[Attribute, ...]
    """All attributes except the class, in file order."""
    class_position: int | None
    """Index of the class among all attributes; None if there is none."""
    class_line: int
    entries: tuple[str, ...]
    """Paths or parent/child pairs that the class attribute declares."""


def meaningful_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text without comments) for each line that is not blank."""
    text = _read_text(path)
    for number, line in enumerate(text.split("\n"), start=1):
        kept = (_COMMENT.sub(lambda match: match[1] or "", line) if "%" in line else line).strip()
        if kept:
            yield number, kept


def _read_text(path: Path) -> str:
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError) as error:
        raise MissingFileError(f"{path}: no such file") from error
    except IsADirectoryError as error:
        raise FileFormatError(path, None, "is a directory; expected an ARFF file") from error
    except OSError as error:
        raise FileFormatError(path, None, f"cannot be read: {error.strerror}") from error
    except ValueError as error:  # a null character, which no file name can contain
        raise MissingFileError(f"{str(path)!r}: no such file") from error
    if content.startswith(b"\x1f\x8b") or path.suffix.lower() == ".gz":
        content = read_bytes(path)
    if not content.strip():
        raise FileFormatError(path, None, "is empty; expected @relation, @attribute and @data")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(path, content.count(b"\n", 0, error.start) + 1, "expected UTF-8 text") from error


def read_header(path: Path, lines: Iterator[tuple[int, str]], *, needs_class: bool = True) -> Header:
    """Read up to and including ``@data``."""
    attributes: list[Attribute] = []
    hierarchical: tuple[int, int, tuple[str, ...]] | None = None
    number = 0
    for number, line in lines:
        keyword = line.split(None, 1)[0].lower()
        if keyword == "@relation":
            continue
        if keyword == "@data":
            break
        if keyword != "@attribute":
            raise FileFormatError(path, number, f"expected @relation, @attribute or @data, got {line[:60]!r}")
        match = _ATTRIBUTE.fullmatch(line)
        if match is None or not match["type"]:
            raise FileFormatError(path, number, f"expected '@attribute name type', got {line[:60]!r}")
        name = _text(match)
        if not name:
            raise FileFormatError(path, number, "the name after @attribute is empty")
        kind, *rest = match["type"].split(None, 1)
        if kind.lower() == "hierarchical":
            if hierarchical is not None:
                raise FileFormatError(path, number, "a second hierarchical attribute; expected only one")
            entries = tuple(_split("".join(rest)))
            if not all(entries):
                raise FileFormatError(path, number, "expected 'hierarchical a,a/b,...'; an entry is empty")
            hierarchical = len(attributes), number, entries
        else:
            attributes.append(_feature(path, number, name, match["type"]))
    else:
        raise FileFormatError(path, number or None, "expected @data before the end of the file")
    if hierarchical is None and not needs_class:
        return Header(tuple(attributes), None, number, ())
    if hierarchical is None:
        raise FileFormatError(path, number, "expected one attribute of type hierarchical (the class) before @data")
    position, class_line, entries = hierarchical
    return Header(tuple(attributes), position, class_line, entries)


def _feature(path: Path, number: int, name: str, kind: str) -> Attribute:
    if kind.lower() in NUMERIC:
        return Attribute(name, None, {})
    if kind.startswith("{") and kind.endswith("}"):
        categories = tuple(_split(kind[1:-1]))
        if not all(categories) or len(set(categories)) < len(categories) or MISSING in categories:
            raise FileFormatError(
                path, number, f"attribute {name!r}: the values in {{...}} must be distinct, and neither empty nor ?"
            )
        codes = {category: code for code, category in enumerate(categories)}
        return Attribute(name, categories, codes | {MISSING: -1})
    raise FileFormatError(
        path,
        number,
        f"attribute {name!r}: expected numeric, real, integer, {{a,b,...}} or hierarchical, got {kind[:60]!r}",
    )


# --- rows --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rows:
    """The part of the file below ``@data``."""

    numeric: array[float] = field(default_factory=lambda: array("d"))
    """Numeric values, row after row, in the order of the attributes."""
    nominal: array[int] = field(default_factory=lambda: array("q"))
    """Codes of nominal values, row after row, in the order of the attributes."""
    labels: list[list[str]] = field(default_factory=list)
    """The labels of each row; none where the class is ``?``."""
    lines: list[int] = field(default_factory=list)
    """The line number of each row."""


def read_rows(path: Path, lines: Iterator[tuple[int, str]], header: Header) -> Rows:
    """Read the lines below ``@data``."""
    rows = Rows()
    width = len(header.attributes) + (header.class_position is not None)
    # The class may be anywhere among the attributes.
    positions = [position for position in range(width) if position != header.class_position]
    placed = list(zip(positions, header.attributes, strict=True))
    numeric = [(position, attribute) for position, attribute in placed if attribute.categories is None]
    nominal = [(position, attribute) for position, attribute in placed if attribute.categories is not None]
    pick_numeric = _picker([position for position, _ in numeric])
    pick_nominal = _picker([position for position, _ in nominal])
    omitted = ["0"] * width
    for position, attribute in nominal:
        omitted[position] = attribute.categories[0] if attribute.categories else MISSING
    if header.class_position is not None:
        omitted[header.class_position] = ""
    implied = characters = 0

    for number, line in lines:
        sparse = line.startswith("{")
        implied, characters = implied + (width if sparse else 0), characters + len(line)
        most = max(MAX_IMPLIED_CELLS, IMPLIED_BY_CHARACTER * characters)
        if implied > most:
            problem = f"sparse rows of {len(header.attributes):,} attributes take the rows up to here beyond"
            raise FileFormatError(path, number, f"{problem} {most:,} cells; split the file, or remove attributes")
        fields = _sparse_fields(path, number, line, omitted) if sparse else _split(line)
        if len(fields) != width:
            including = "" if header.class_position is None else " including the class"
            raise FileFormatError(path, number, f"expected {counted(width, 'value')}{including}, got {len(fields)}")
        try:
            # float() also accepts 1_000, nan and digits of other scripts; lines that may contain them are checked.
            plain = line.isascii() and "_" not in line and "n" not in line and "N" not in line
            parse = _number if plain else _plain_number
            rows.numeric.extend([parse(text) for text in pick_numeric(fields)])
            rows.nominal.extend(
                [attribute.codes[text] for (_, attribute), text in zip(nominal, pick_nominal(fields), strict=True)]
            )
        except (ValueError, KeyError):
            raise FileFormatError(path, number, _bad_value(placed, fields)) from None
        if header.class_position is not None:
            rows.labels.append(_row_labels(path, number, fields[header.class_position]))
        rows.lines.append(number)
    return rows


def _picker(positions: list[int]) -> Callable[[list[str]], tuple[str, ...]]:
    """Return a function that selects fields of a row; `itemgetter` is fast, but needs two to return a tuple."""
    if len(positions) > 1:
        return itemgetter(*positions)
    return lambda fields: tuple(fields[position] for position in positions)


def _split(line: str) -> list[str]:
    """Fields of a dense row. Parsing quotes is slow, so only lines that contain them take the slow path."""
    if "'" not in line and '"' not in line:
        return [text.strip() for text in line.split(",")] if " " in line or "\t" in line else line.split(",")
    fields = []
    position = 0
    while position <= len(line):
        match = _FIELD.match(line, position)
        assert match is not None, "a bare value may be empty, so every text matches"  # noqa: S101
        fields.append(_text(match))
        position = match.end() + 1
    return fields


def _text(match: re.Match[str]) -> str:
    """The matched text without its quotes."""
    return next(text for text in match.group("single", "double", "bare") if text is not None).strip()


def _sparse_fields(path: Path, number: int, line: str, omitted: list[str]) -> list[str]:
    """Fields of a row ``{index value, ...}``. Indices count from 0; ``omitted`` has the values that are left out."""
    if not line.endswith("}"):
        raise FileFormatError(path, number, "expected a sparse row to end with '}'")
    fields = list(omitted)
    seen: set[int] = set()
    inside = line[1:-1].strip()
    position = 0
    while inside and position <= len(inside):
        match = _SPARSE_FIELD.match(inside, position)
        if match is None or int(match["index"]) >= len(fields) or not _text(match):
            found = inside[position:].strip()[:60]
            raise FileFormatError(
                path, number, f"expected 'index value' with an index from 0 to {len(fields) - 1}, got {found!r}"
            )
        index = int(match["index"])
        if index in seen:
            raise FileFormatError(path, number, f"index {index} appears twice")
        seen.add(index)
        fields[index] = _text(match)
        position = match.end() + 1
    return fields


def _number(text: str) -> float:
    return math.nan if text == MISSING else float(text)


def _plain_number(text: str) -> float:
    if text != MISSING and not _PLAIN_NUMBER.fullmatch(text):
        raise ValueError
    return _number(text)


def _bad_value(placed: list[tuple[int, Attribute]], fields: list[str]) -> str:
    """Describe the first invalid field of a row."""
    for position, attribute in placed:
        text = fields[position]
        if attribute.categories is not None:
            if text not in attribute.codes:
                allowed = ", ".join(attribute.categories[:8]) + (", ..." if len(attribute.categories) > 8 else "")
                return f"attribute {attribute.name!r}: expected one of {{{allowed}}} or ?, got {text[:60]!r}"
            continue
        try:
            _plain_number(text)
        except ValueError:
            return f"attribute {attribute.name!r}: expected a number or ?, got {text[:60]!r}"
    raise AssertionError("a row was rejected although all of its values are valid")


def _unquoted(label: str) -> str:
    return label[1:-1].strip() if len(label) > 1 and label[0] == label[-1] and label[0] in "'\"" else label


def _row_labels(path: Path, number: int, text: str) -> list[str]:
    if text == MISSING:
        return []
    labels = [_unquoted(label.strip()) for label in text.split("@")]
    if not all(labels):
        raise FileFormatError(path, number, f"expected labels separated by @, or ? if unknown; got {text[:60]!r}")
    return labels
