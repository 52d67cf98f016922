"""The syntax of ARFF: from the text of a file to its header and its rows, or an error that names the line.

What the values mean, one-hot columns and the hierarchy of the classes, is the business of `arff`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path

from rarenode.errors import FileFormatError, MissingFileError

MISSING = "?"
NUMERIC = ("numeric", "real", "integer")

_ATTRIBUTE = re.compile(
    r"""@attribute\s+(?:'(?P<single>[^']*)'|"(?P<double>[^"]*)"|(?P<bare>[^\s{]+))\s*(?P<type>.*)""", re.I | re.S
)
# What follows a % is a comment, but not inside quotes, nor inside a name of the header: the benchmark has
# "0point02%_MMS".
_COMMENT_IN_HEADER = re.compile(r"""('[^']*'|"[^"]*")|(?:^|(?<=\s))%.*""", re.S)
_COMMENT_IN_ROW = re.compile(r"""('[^']*'|"[^"]*")|%.*""", re.S)
# A quote is one only at the start of a value: 5'UTR is a plain name.
_VALUE = r"""(?:'(?P<single>[^']*)'\s*(?=,|$)|"(?P<double>[^"]*)"\s*(?=,|$)|(?P<bare>[^,]*))"""
_FIELD = re.compile(rf"\s*{_VALUE}", re.S)
_SPARSE_FIELD = re.compile(rf"\s*(?P<place>[0-9]{{1,9}})\s+{_VALUE}", re.S)
_PLAIN_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


# --- header ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Attribute:
    """One feature of the file."""

    name: str
    categories: tuple[str, ...] | None
    """None for a numeric attribute."""
    codes: dict[str, int]
    """From a category to its number; a missing value is -1."""


@dataclass(frozen=True)
class Header:
    """What stands above ``@data``."""

    attributes: tuple[Attribute, ...]
    """All attributes but the class, in the order of the file."""
    class_position: int
    class_line: int
    entries: tuple[str, ...]


def meaningful_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(line number from 1, text without comment), for the lines that hold something."""
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        raise MissingFileError(f"{path}: no such file") from error
    except OSError as error:
        raise FileFormatError(path, None, f"cannot be read: {error.strerror}") from error
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(path, content.count(b"\n", 0, error.start) + 1, "expected UTF-8 text") from error
    comment = _COMMENT_IN_HEADER
    for number, line in enumerate(text.split("\n"), start=1):
        kept = (comment.sub(lambda match: match[1] or "", line) if "%" in line else line).strip()
        if kept.lower() == "@data":
            comment = _COMMENT_IN_ROW
        if kept:
            yield number, kept


def read_header(path: Path, lines: Iterator[tuple[int, str]]) -> Header:
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
            raise FileFormatError(path, number, "expected a name after @attribute; it is empty")
        kind, *rest = match["type"].split(None, 1)
        if kind.lower() == "hierarchical":
            if hierarchical is not None:
                raise FileFormatError(path, number, "a second hierarchical attribute; expected one")
            entries = tuple(entry.strip() for entry in "".join(rest).split(","))
            if not all(entries):
                raise FileFormatError(path, number, "expected 'hierarchical a,a/b,...'; an entry is empty")
            hierarchical = len(attributes), number, entries
        else:
            attributes.append(_feature(path, number, name, match["type"]))
    else:
        raise FileFormatError(path, number or None, "expected a line @data before the end of the file")
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
    """What stands below ``@data``; every list has an item for each row."""

    numeric: list[list[float]] = field(default_factory=list)
    """Numeric values, in the order of the attributes."""
    nominal: list[list[int]] = field(default_factory=list)
    """Codes of nominal values, in the order of the attributes."""
    labels: list[list[str]] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)


def read_rows(path: Path, lines: Iterator[tuple[int, str]], header: Header) -> Rows:
    """Read the lines below ``@data``."""
    rows = Rows()
    width = len(header.attributes) + 1
    # The class may stand anywhere among the attributes.
    places = [*range(header.class_position), *range(header.class_position + 1, width)]
    placed = list(zip(places, header.attributes, strict=True))
    numeric = [(place, attribute) for place, attribute in placed if attribute.categories is None]
    nominal = [(place, attribute) for place, attribute in placed if attribute.categories is not None]
    pick_numeric = _picker([place for place, _ in numeric])
    pick_nominal = _picker([place for place, _ in nominal])
    absent = ["0"] * width
    for place, attribute in nominal:
        absent[place] = attribute.categories[0] if attribute.categories else MISSING
    absent[header.class_position] = ""

    for number, line in lines:
        fields = _sparse_fields(path, number, line, absent) if line.startswith("{") else _split(line)
        if len(fields) != width:
            raise FileFormatError(path, number, f"expected {width} values, the class included; got {len(fields)}")
        try:
            # Python's float also takes 1_000, nan and other scripts' digits; a line that may have any is read strictly.
            plain = line.isascii() and "_" not in line and "n" not in line and "N" not in line
            number_in = _number if plain else _plain_number
            rows.numeric.append([number_in(text) for text in pick_numeric(fields)])
            rows.nominal.append(
                [attribute.codes[text] for (_, attribute), text in zip(nominal, pick_nominal(fields), strict=True)]
            )
        except (ValueError, KeyError):
            raise FileFormatError(path, number, _bad_value(placed, fields)) from None
        rows.labels.append(_row_labels(path, number, fields[header.class_position]))
        rows.lines.append(number)
    return rows


def _picker(places: list[int]) -> Callable[[list[str]], tuple[str, ...]]:
    """Pick several fields of a row; `itemgetter` is fast, but answers with no tuple for fewer than two."""
    if len(places) > 1:
        return itemgetter(*places)
    return lambda fields: tuple(fields[place] for place in places)


def _split(line: str) -> list[str]:
    """Fields of a dense row. Quotes are rare and slow, so only a line that has any pays for them."""
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
    """What a match holds, without its quotes."""
    return next(text for text in match.group("single", "double", "bare") if text is not None).strip()


def _sparse_fields(path: Path, number: int, line: str, absent: list[str]) -> list[str]:
    """Fields of a row ``{place value, ...}``; places count from 0, and what is not named takes the ``absent`` field."""
    if not line.endswith("}"):
        raise FileFormatError(path, number, "expected a sparse row to end with '}'")
    fields = list(absent)
    named: set[int] = set()
    inside = line[1:-1].strip()
    position = 0
    while inside and position <= len(inside):
        match = _SPARSE_FIELD.match(inside, position)
        if match is None or int(match["place"]) >= len(fields) or not _text(match):
            wrong = inside[position:].strip()[:60]
            raise FileFormatError(
                path, number, f"expected 'place value' with a place from 0 to {len(fields) - 1}, got {wrong!r}"
            )
        place = int(match["place"])
        if place in named:
            raise FileFormatError(path, number, f"place {place} is named twice")
        named.add(place)
        fields[place] = _text(match)
        position = match.end() + 1
    return fields


def _number(text: str) -> float:
    return math.nan if text == MISSING else float(text)


def _plain_number(text: str) -> float:
    if text != MISSING and not _PLAIN_NUMBER.fullmatch(text):
        raise ValueError
    return _number(text)


def _bad_value(placed: list[tuple[int, Attribute]], fields: list[str]) -> str:
    """Say which field is at fault, in the order of the file."""
    for place, attribute in placed:
        text = fields[place]
        if attribute.categories is not None:
            if text not in attribute.codes:
                allowed = ", ".join(attribute.categories[:8]) + (", ..." if len(attribute.categories) > 8 else "")
                return f"attribute {attribute.name!r}: expected one of {{{allowed}}} or ?, got {text[:60]!r}"
            continue
        try:
            _plain_number(text)
        except ValueError:
            return f"attribute {attribute.name!r}: expected a number or ?, got {text[:60]!r}"
    raise AssertionError("a row was refused, and every value of it is good")


def _row_labels(path: Path, number: int, text: str) -> list[str]:
    if text == MISSING:
        return []
    labels = [label.strip() for label in text.split("@")]
    if not all(labels):
        raise FileFormatError(path, number, f"expected labels joined by @ (or ? for none known), got {text[:60]!r}")
    return labels
