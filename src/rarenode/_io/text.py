"""Text that people see: made safe to print or to store, numbers with nouns, sentences about invalid values.

Names of nodes, datasets and methods come from anywhere. A control character among them could move the cursor, change
the title of a terminal, or break the line of a table.
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ValidationError

LONG = 200
"""Characters of a name in a message, at most."""


def printable(text: object) -> str:
    r"""The text, with a blank for each character that cannot be shown.

    >>> printable("a\x1b[2Jb\n")
    'a [2Jb '
    """
    return "".join(character if character.isprintable() else " " for character in str(text))


def shortened(text: object) -> str:
    """Printable text without the middle, if it is longer than the path of a file usually is.

    >>> shortened("a.png"), len(shortened("a" * 10_000))
    ('a.png', 203)
    """
    plain = printable(text)
    return plain if len(plain) <= LONG else f"{plain[: LONG // 2]}...{plain[-LONG // 2 :]}"


def storable(text: str) -> str:
    r"""The text as it is, but for halves of characters, which no file can hold.

    >>> storable("a\ud800")
    'a\\ud800'
    """
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def all_storable(value: Any) -> Any:
    r"""A value of JSON with all its text `storable`.

    >>> all_storable({"a\ud800": ["b", 1]})
    {'a\\ud800': ['b', 1]}
    """
    match value:
        case str():
            return storable(value)
        case dict():
            return {all_storable(name): all_storable(each) for name, each in value.items()}
        case list() | tuple():
            return [all_storable(each) for each in value]
    return value


def normal_form(text: str) -> str:
    r"""The text in the form in which accents are parts of letters (Unicode NFC); it looks the same.

    >>> normal_form("Ka\u0308fer") == "K\u00e4fer"
    True
    """
    return unicodedata.normalize("NFC", text)


def by_normal_form(names: Iterable[str]) -> dict[str, str]:
    """Names by their `normal_form`, without those of which several have the same one."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(normal_form(name), []).append(name)
    return {form: several[0] for form, several in found.items() if len(several) == 1}


def counted(number: int, singular: str, plural: str = "") -> str:
    """A number and its noun.

    >>> counted(1, "row"), counted(1200, "row"), counted(0, "batch", "batches")
    ('1 row', '1,200 rows', '0 batches')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"


def explain(error: ValidationError, record: type[BaseModel]) -> str:
    """The first thing that is wrong with a record's values, in a sentence."""
    problem = error.errors(include_url=False)[0]
    place = shortened(".".join(map(str, problem["loc"])))  # among them may be names from the file
    if problem["type"] == "extra_forbidden":
        near = difflib.get_close_matches(place, record.model_fields, n=1)
        return f"unknown setting {place!r}" + (f"; did you mean {near[0]!r}?" if near else "")
    message = problem["msg"].removeprefix("Value error, ")
    is_said = problem["type"] == "missing" or message.endswith("?")  # "did you mean ...?" names it
    given = "" if is_said else f"; got {_short(problem['input'])}"
    return f"{place}: {message}{given}" if place else message  # of all values together, which would be no help


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
