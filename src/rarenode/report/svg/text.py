"""Untrusted text in a chart: made printable, measured, cut to the room there is, and kept from turning its neighbours.

An SVG does not wrap or cut text, and the reader's font is not known here. So widths are estimated, on the generous
side, from a few classes of letters; a chart that is drawn with a narrower font has a little more air.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

from rarenode._io.text import printable
from rarenode.report.svg.element import Markup, element, escaped

LONGEST = 500
"""Characters of a text that a tooltip shows; nobody reads more of a name."""
ELLIPSIS = "…"
NARROW, WIDE = frozenset("iIjlt!|.,:;'`()[]{}/\\ frJ-"), frozenset("mwMW@%&+=<>±—…\u2212")


@lru_cache(maxsize=256)  # a chart asks for the same names again for every bar and box
def plain(text: str) -> str:
    r"""One line of characters that XML allows, at most `LONGEST` of them.

    `printable` puts a blank for control characters, lone surrogates and the marks that turn the direction of text.

    >>> plain("a\x00\ud800  b\n")
    'a b'
    """
    shown = " ".join(printable(text[: 4 * LONGEST]).split())
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + ELLIPSIS


def isolated(text: str) -> str:
    """Text to stand among other words: letters that are read from the right do not take them along."""
    return f"\u2068{plain(text)}\u2069"


def width(text: str, size: float) -> float:
    """About how wide plain text is, in units of the size of its letters."""
    return size * sum(map(_em, text))


def cut(text: str, room: float, size: float) -> str:
    """As much of a text as fits, with an ellipsis where something is missing.

    >>> cut("Escherichia", 1000, 10), cut("Escherichia", 45, 10)
    ('Escherichia', 'Escher…')
    """
    shown = plain(text)
    if width(shown, size) <= room:
        return shown
    left, used = room - width(ELLIPSIS, size), 0.0
    for index, character in enumerate(shown):
        used += size * _em(character)
        if used > left:
            return shown[:index].rstrip() + ELLIPSIS
    return shown


def wrapped(text: str, room: float, size: float, most: int) -> tuple[str, ...]:
    """A text in at most so many lines, broken at blanks; the last one is cut where more would be needed.

    >>> wrapped("less than ten rows", 60, 10, 2)
    ('less than', 'ten rows')
    """
    words, lines = plain(text).split(), [""]
    for index, word in enumerate(words):
        longer = f"{lines[-1]} {word}".strip()
        if width(longer, size) <= room or not lines[-1]:
            lines[-1] = longer
        elif len(lines) < most:
            lines.append(word)
        else:
            lines[-1] = " ".join([lines[-1], *words[index:]])
            break
    return tuple(cut(line, room, size) for line in lines)


def halved(text: str) -> tuple[str, ...]:
    """A text in two lines that are about as long, or in one if it has no blank.

    >>> halved("1,213 nodes"), halved("nodes")
    (('1,213', 'nodes'), ('nodes',))
    """
    words = plain(text).split()
    ways = [(" ".join(words[:index]), " ".join(words[index:])) for index in range(1, len(words))]
    return min(ways, key=lambda way: max(width(line, 1) for line in way), default=(" ".join(words),))


def tooltip(text: str) -> Markup:
    """What a browser shows when the pointer rests on the element around it."""
    return element("title", escaped(text))


def written(text: str, look: str, x: float, y: float, anchor: str | None = None) -> Markup:
    """Text of our own, with its foot (or its middle, or its end, as the anchor says) at a place."""
    return element("text", escaped(text), class_=look, x=x, y=y, text_anchor=anchor)


def label(text: str, room: float, size: float, **attributes: str | float | None) -> Markup:
    """A text on one line, cut to its room. Where it is cut, a tooltip has the whole of it."""
    shown, whole = cut(text, room, size), plain(text)
    more = () if shown == whole else (tooltip(whole),)
    return element("text", *more, escaped(shown), **attributes)


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
