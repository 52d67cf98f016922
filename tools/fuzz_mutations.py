"""Spoil valid files: bytes, lines, cells and tokens of any file, and fields of JSON, archives, tables and arrays.

`spoil` makes one new content of the files of a sample. All that happens is decided by the random numbers it is given.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
import warnings
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath
from random import Random
from typing import Any

import numpy as np
import polars as pl
from safetensors.numpy import load, save

from rarenode._io.arrays import KEY, _checksum

Files = dict[str, bytes]

NUMBERS = (
    "0", "-0.0", "-1", "1", "2", "3", "255", "65536", "2147483648", "-9223372036854775808", "18446744073709551616",
    "1e9", "1e38", "1e150", "1e308", "1e400", "-1e400", "5e-324", "NaN", "nan", "inf", "-Infinity", "0x10", "1_000",
    "1,5", "9" * 400, "9" * 5000, "0." + "0" * 400 + "1", "٣", "½", "1e", "+-1", "1e-400", "0.5000000001", "1.0000001",
)  # fmt: skip
TEXTS = (
    "", " ", "\t", "?", "NA", "null", "true", "[]", "{}", "()", "'", '"', '"""', "\\", "\\u0000", "\\ud800", "\r",
    "\r\n", "\n\n", "\0", "\x1b[2J", "\u2028", "\ufeff", "\u202e", "\u00a0", "é", "e\u0301", "\U0001f41f", "\U000e0001",
    "=1+1", "@SUM(A1)", "-", "#", "%", "!", "a" * 300, "a" * 70_000, "x," * 2000, "> ", " > ", ">", "/", "//", "@", "|",
    ";", "..", "../../etc/passwd", "/dev/zero", "C:\\", "*", "root", "__class__", "__proto__", "id", "parent", "nan",
    "${HOME}", "NOT", "[Term]", "is_a: ", "<script>", "%s", "{0}", "\ud7ff", "none",
)  # fmt: skip
DEEP = ("[", "{", '{"a":', "[[", "a > ", "a/", "(", "'", '"', "-", "a.", "[a]\n", "{'", "\\", "1,")
"""What is repeated many times."""
TIMES = (2, 50, 1000, 20_000)
JSON_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**31, 2**53 + 1, 2**63, 2**64, -(2**63) - 1, 10**30, 0.5, -0.5, 1e308, -1e308, 5e-324,
    float("nan"), float("inf"), "", "0", "nan", "a" * 1000, "\0", "\ud800", "../x", "/dev/zero", "é", [], [[]], [0], {},
    {"": {}}, [None], ["a"], [1, "a"], [[0, 0]], [[0, 1], [1, 0]], list(range(3000)), {"a": {"a": "a"}},
)  # fmt: skip
NESTED, ENDLESS = "@nested@", "@endless@"
"""Stand for what `json` would not write."""
TOKEN = re.compile(r"[^\W\d]\w*|[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
MOST_BYTES = 1 << 20
"""Inputs stay small: larger ones would cost more for a good reason."""


def spoil(files: Mapping[str, bytes], names: Sequence[str], chance: Random) -> Files:
    """The files, some of which are spoiled.

    Args:
        files: a sample.
        names: which of them may be spoiled.
        chance: decides what happens.
    """
    spoiled = dict(files)
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        name = chance.choice(names)
        other = files[chance.choice(names)]
        # What is spoiled may be of its format no more, and would harm us.
        changes = INSIDE.get(PurePosixPath(name).suffix) if spoiled[name] == files[name] else None
        if changes is not None and chance.random() < 0.7:
            spoiled[name] = changes(name, spoiled[name], other, chance)[:MOST_BYTES]
        else:
            spoiled[name] = _spoiled(spoiled[name], other, chance)[:MOST_BYTES]
    return spoiled


def _spoiled(content: bytes, other: bytes, chance: Random) -> bytes:
    """One change that knows nothing of the format but whether it is text."""
    if chance.random() < 0.7:
        with suppress(UnicodeDecodeError):
            text = content.decode("utf-8")
            return chance.choice(TEXT_CHANGES)(text, chance).encode("utf-8", "surrogatepass")
    return chance.choice(BYTE_CHANGES)(content, other, chance)


# --- bytes ---------------------------------------------------------------------------------------------------------


def _flip(content: bytes, _: bytes, chance: Random) -> bytes:
    changed = bytearray(content)
    for __ in range(chance.choice((1, 1, 2, 8, 64)) if changed else 0):
        changed[chance.randrange(len(changed))] = chance.choice((chance.randrange(256), 0, 255, 127, 128))
    return bytes(changed)


def _truncate(content: bytes, _: bytes, chance: Random) -> bytes:
    return content[: chance.randint(0, len(content))]


def _cut(content: bytes, _: bytes, chance: Random) -> bytes:
    begin, end = _span(len(content), chance)
    return content[:begin] + content[end:]


def _splice(content: bytes, other: bytes, chance: Random) -> bytes:
    begin, end = _span(len(other), chance)
    place = chance.randint(0, len(content))
    return content[:place] + other[begin:end] + content[place if chance.random() < 0.5 else place + end - begin :]


def _huge_size(content: bytes, _: bytes, chance: Random) -> bytes:
    """Somewhere, perhaps where a size is declared, a huge number."""
    place, width = chance.randint(0, min(len(content), 512)), chance.choice((2, 4, 8))
    if chance.random() < 0.3:
        place = max(0, len(content) - chance.randint(0, 64))
    value = chance.choice((1 << (8 * width - 1), (1 << 8 * width) - 1, (1 << (8 * width - 2)) - 1, 1 << 6 * width))
    return content[:place] + value.to_bytes(width, chance.choice(("little", "big"))) + content[place + width :]


def _marked(content: bytes, _: bytes, chance: Random) -> bytes:
    """As another program encodes text."""
    if chance.random() < 0.4:
        return chance.choice((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\x1f\x8b", b"PK\x03\x04", b"\0")) + content
    text = content.decode("utf-8", "replace")
    return text.encode(chance.choice(("utf-16", "utf-16-le", "utf-32", "latin-1", "utf-7")), "replace")


def _span(length: int, chance: Random) -> tuple[int, int]:
    begin = chance.randint(0, length)
    return begin, min(length, begin + chance.choice((1, 4, 16, 64, 1000)))


BYTE_CHANGES: tuple[Callable[[bytes, bytes, Random], bytes], ...] = (
    _flip,
    _truncate,
    _cut,
    _splice,
    _huge_size,
    _marked,
)


# --- text ----------------------------------------------------------------------------------------------------------


def _lines(text: str, chance: Random) -> str:
    lines = text.split("\n")
    at, to = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(5):
        case 0:
            del lines[at]
        case 1:
            lines.insert(to, lines[at])
        case 2:
            lines[at], lines[to] = lines[to], lines[at]
        case 3:
            lines[at:at] = [lines[at]] * chance.choice(TIMES[:3])
        case _:
            lines[at] = chance.choice(TEXTS)
    return chance.choice(("\n", "\n", "\n", "\r\n", "\r")).join(lines)


def _token(text: str, chance: Random) -> str:
    """A word or number in place of another: an odd one, or one from elsewhere in the text."""
    tokens = list(TOKEN.finditer(text))
    if not tokens:
        return chance.choice(TEXTS)
    found = chance.choice(tokens)
    odd = chance.choice(NUMBERS if found[0][-1].isdigit() and chance.random() < 0.7 else TEXTS)
    new = odd if chance.random() < 0.7 else chance.choice(tokens)[0]
    return text[: found.start()] + new + text[found.end() :]


def _insert(text: str, chance: Random) -> str:
    place = chance.randint(0, len(text))
    return text[:place] + chance.choice(TEXTS + NUMBERS) + text[place:]


def _deep(text: str, chance: Random) -> str:
    place = chance.choice((0, chance.randint(0, len(text)), len(text)))
    return text[:place] + chance.choice(DEEP) * chance.choice(TIMES) + text[place:]


def _cell(text: str, chance: Random) -> str:
    """A cell, or a whole column, of a table."""
    delimiter = "\t" if text.count("\t") > text.count(",") else ","
    rows: list[list[str]] = []
    with suppress(csv.Error):  # what is below does not count
        rows.extend(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    full = [row for row in rows if row]
    if not full:
        return _lines(text, chance)
    column = chance.randrange(len(chance.choice(full)))
    odd = chance.choice(NUMBERS + TEXTS)
    for row in full[chance.choice((0, 1)) :] if chance.random() < 0.3 else [chance.choice(full)]:
        if column < len(row):
            match chance.randrange(4):
                case 0:
                    row.pop(column)
                case 1:
                    row[column] = chance.choice(chance.choice(full) or [""])
                case _:
                    row[column] = odd
    file = io.StringIO()
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n", escapechar="\\")
    writer.writerows(rows)
    return file.getvalue()


TEXT_CHANGES: tuple[Callable[[str, Random], str], ...] = (_lines, _token, _token, _insert, _deep, _cell)


# --- formats -------------------------------------------------------------------------------------------------------


def _json(_: str, content: bytes, __: bytes, chance: Random) -> bytes:
    text = content.decode("utf-8")
    return spoiled_json(text, chance).encode("utf-8", "surrogatepass")


def spoiled_json(text: str, chance: Random) -> str:
    """One field removed, added, renamed, repeated, exchanged, or with another value."""
    whole = [json.loads(text)]
    places = list(_places(whole))
    holder, key = chance.choice(places)
    repeated = False
    match chance.randrange(8):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[chance.choice(TEXTS)] = holder.pop(key)
        case 1 | 2 if isinstance(holder, list):
            holder.insert(key, chance.choice((holder[key], chance.choice(JSON_VALUES))))
        case 3:
            theirs, place = chance.choice(places)
            holder[key], theirs[place] = theirs[place], holder[key]
        case 4 if isinstance(holder[key], int | float):
            holder[key] = chance.choice(
                (holder[key] + 1, holder[key] - 1, -holder[key], holder[key] * 2, holder[key] / 2)
            )
        case 5:
            holder[key] = chance.choice((NESTED, ENDLESS))
        case 6:
            repeated = True
        case _:
            holder[key] = chance.choice(JSON_VALUES)
    written = json.dumps(whole[0] if whole else None, ensure_ascii=chance.random() < 0.5)
    if repeated and written.startswith("{") and len(written) > 2:  # a name twice in one object
        written = "{" + written[1:-1] + ", " + written[1:]
    depth = chance.choice(TIMES)
    written = written.replace(f'"{NESTED}"', chance.choice(("[", '{"a":')) * depth + "1" + "]" * depth)
    return written.replace(f'"{ENDLESS}"', chance.choice(("9" * 5000, "1e400", "-1e999", "1" + "0" * 300)))


def _places(value: Any) -> Any:
    """Every (list or dict, index or key), the first with the whole value."""
    for key, inner in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(inner, dict | list):
            yield from _places(inner)


def _gzip(_: str, content: bytes, other: bytes, chance: Random) -> bytes:
    inner = _spoiled(gzip.decompress(content), other, chance)
    return gzip.compress(inner * chance.choice((1, 1, 1, 20)), mtime=0)


def _zip(_: str, content: bytes, other: bytes, chance: Random) -> bytes:
    """Files in an archive spoiled, renamed or repeated, in another archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        inside = [(each.filename, archive.read(each)) for each in archive.infolist()]
    place = chance.randrange(len(inside))
    name, data = inside[place]
    match chance.randrange(4):
        case 0:
            inside[place] = chance.choice(TEXTS)[:1000] + chance.choice(("", name)), data
        case 1:
            inside.insert(place, (chance.choice(inside)[0], chance.choice(inside)[1]))
        case 2:
            inside[place] = name, bytes(chance.choice((0, 1, 1_000_000)))
        case _:
            inside[place] = name, _spoiled(data, other, chance)
    packed = io.BytesIO()
    method = chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))
    with (
        warnings.catch_warnings(action="ignore"),
        zipfile.ZipFile(packed, "w", method) as made,
    ):  # names that come twice
        for name, data in inside:
            made.writestr(zipfile.ZipInfo(name), data)
    return packed.getvalue()


def _table(file: str, content: bytes, _: bytes, chance: Random) -> bytes:
    """A column of a Parquet or Arrow file of another type, with other values, or with another name."""
    is_parquet = file.endswith(".parquet")
    frame = pl.read_parquet(content) if is_parquet else pl.read_ipc(content)
    column = chance.choice(frame.columns)
    match chance.randrange(4):
        case 0:
            name = chance.choice(TEXTS)[:5000]
            frame = frame.rename({column: name + "2" * (name in frame.columns)})
        case 1:
            frame = frame.drop(column) if chance.random() < 0.5 else frame.head(chance.randint(0, 2))
        case 2:
            frame = frame.with_columns(chance.choice(_columns(frame.height, chance)).alias(column))
        case _:
            texts = [chance.choice(TEXTS + NUMBERS) for _ in range(frame.height)]
            keep = frame[column].to_list()
            mixed = [new if chance.random() < 0.3 else str(old) for new, old in zip(texts, keep, strict=True)]
            frame = frame.with_columns(pl.Series(column, mixed))
    made = io.BytesIO()
    if is_parquet:
        frame.write_parquet(made)
    else:
        frame.write_ipc(made)
    return made.getvalue()


def _columns(rows: int, chance: Random) -> list[pl.Series]:
    """Columns of types that a table seldom has."""
    numbers = [chance.choice((0.0, 1.0, -1.0, 1e200, 5e-324, float("nan"), float("inf"), None)) for _ in range(rows)]
    whole = [chance.choice((0, 1, None, 2**62, -(2**62))) for _ in range(rows)]
    texts = [chance.choice(TEXTS) for _ in range(rows)]
    return [
        pl.Series(numbers, dtype=pl.Float64),
        pl.Series(whole, dtype=pl.Int64),
        pl.Series([None] * rows, dtype=pl.Null),
        pl.Series(whole, dtype=pl.Int64).cast(pl.Datetime("us")),
        pl.Series(whole, dtype=pl.Int64).cast(pl.Duration("ns")),
        pl.Series([1] * rows).cast(pl.Date),
        pl.Series([value == 1 if value is not None else None for value in whole], dtype=pl.Boolean),
        pl.Series([[text] for text in texts], dtype=pl.List(pl.String)),
        pl.Series([[[1.5]]] * rows, dtype=pl.List(pl.List(pl.Float64))),
        pl.Series([{"a": 1}] * rows, dtype=pl.Struct({"a": pl.Int64})),
        pl.Series([text.encode() for text in texts], dtype=pl.Binary),
        pl.Series(texts, dtype=pl.Categorical),
        pl.Series([chance.choice(("1.5", None, "-7")) for _ in range(rows)]).cast(pl.Decimal(30, 5)),
        pl.Series(texts, dtype=pl.String),
    ]


def _arrays(_: str, content: bytes, __: bytes, chance: Random) -> bytes:
    """Arrays with other values, types or shapes, or another note; the checksum is right."""
    size = int.from_bytes(content[:8], "little")
    about = json.loads(content[8 : 8 + size]).get("__metadata__", {})
    arrays = load(content)
    note = about.get(KEY, "")[65:]
    if note and chance.random() < 0.5:
        note = spoiled_json(note, chance)
    elif arrays:
        name = chance.choice(list(arrays))
        _change_array(arrays, name, chance)
    with suppress(UnicodeEncodeError):
        return save(arrays, {KEY: f"{_checksum(arrays, note)} {note}" if note else ""})
    return content


def _change_array(arrays: dict[str, np.ndarray[Any, Any]], name: str, chance: Random) -> None:
    array = arrays[name].copy()
    match chance.randrange(6):
        case 0:
            del arrays[name]
            return
        case 1:
            array = array.reshape(-1)
        case 2:
            array = array.astype(chance.choice((np.float32, np.float64, np.int32, np.int64, np.uint8, np.bool_)))
        case 3:
            arrays[chance.choice(TEXTS)[:100]] = array
        case _ if array.size:
            flat = array.reshape(-1)
            some = [chance.randrange(array.size) for _ in range(chance.choice((1, 3, array.size)))]
            values = (0, 1, -1, 2, 1e30, np.nan, np.inf, -np.inf) if array.dtype.kind == "f" else (0, 1, 2, 10**6)
            limits = np.iinfo(array.dtype) if array.dtype.kind in "iu" else None
            extremes = () if limits is None else (limits.min, limits.max)
            value: Any = chance.choice((*values, *extremes))
            with np.errstate(all="ignore"):
                flat[some] = np.asarray(value).astype(array.dtype)
    arrays[name] = array


INSIDE: Mapping[str, Callable[[str, bytes, bytes, Random], bytes]] = {
    ".json": _json,
    ".gz": _gzip,
    ".zip": _zip,
    ".parquet": _table,
    ".arrow": _table,
    ".safetensors": _arrays,
}
"""By the suffix of a name: changes that keep the format."""
