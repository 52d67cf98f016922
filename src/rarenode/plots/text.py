"""Untrusted text in a chart: made printable, shortened, and measured.

Names of nodes and runs come from files that anyone may have written. They are drawn as plain text, never as formulas.
In a web page the reader's font is not known, so widths are estimated, generously, from a few classes of letters.
"""

from __future__ import annotations

import unicodedata

from rarenode._io.text import printable

LONGEST = 48
"""Characters of a name in a legend or a title."""
ELLIPSIS = "…"
NARROW, WIDE = frozenset("iIjlt!|.,:;'`()[]{}/\\ frJ-"), frozenset("mwMW@%&+=<>±—…\u2212")


def plain(text: object, longest: int = LONGEST) -> str:
    r"""One line of printable characters, at most ``longest`` of them.

    >>> plain("two\nlines\x00"), plain("abcdefgh", 5)
    ('two lines', 'abcd…')
    """
    shown = " ".join(printable(str(text)[: 4 * longest]).split())
    return shown if len(shown) <= longest else shown[: longest - 1] + ELLIPSIS


def legend_label(text: object) -> str:
    """A plain label. matplotlib leaves labels out that begin with an underscore; a space before it prevents that.

    >>> legend_label("_private")
    ' _private'
    """
    label = plain(text)
    return f" {label}" if label.startswith("_") else label


def text_width(text: str, size: float) -> float:
    """The estimated width of plain text, in the unit of the font size."""
    return size * sum(map(_em, text))


def cut(text: object, room: float, size: float) -> str:
    """As much of a text as fits, with an ellipsis where something is missing.

    >>> cut("Escherichia", 1000, 10), cut("Escherichia", 45, 10)
    ('Escherichia', 'Escher…')
    """
    shown = plain(text, 4 * LONGEST)
    if text_width(shown, size) <= room:
        return shown
    left, used = room - text_width(ELLIPSIS, size), 0.0
    for index, character in enumerate(shown):
        used += size * _em(character)
        if used > left:
            return shown[:index].rstrip() + ELLIPSIS
    return shown


def percent(value: float) -> str:
    """A percentage with one digit. A small value is not shown as 0.

    >>> percent(12.34), percent(100.0), percent(0.0), percent(0.01)
    ('12.3', '100', '0', '<0.1')
    """
    if 0 < value < 0.05:
        return "<0.1"
    return "0" if value == 0 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def _em(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WF":
        return 1.05
    if unicodedata.combining(character):
        return 0.0
    if character in NARROW:
        return 0.36
    if character in WIDE:
        return 0.98
    return 0.7 if character.isupper() else 0.64 if character.isdigit() else 0.6
