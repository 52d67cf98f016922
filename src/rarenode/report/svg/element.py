"""`element`: XML elements as text. Whatever is not `Markup` is escaped on its way in, so no chart can forget it."""

from __future__ import annotations

from typing import NewType
from xml.sax.saxutils import escape

Markup = NewType("Markup", str)
"""Well-formed XML. Only this module makes it; joining pieces of it is `joined`'s work."""

QUOTES = {'"': "&quot;", "'": "&#39;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}


def element(tag: str, *children: Markup, **attributes: str | float | None) -> Markup:
    """An element. In names of attributes ``_`` stands for ``-``; a last one is left out, and so is what is None.

    >>> element("text", escaped("a < b"), class_="rn-text", text_anchor="end", x=1.0, dy=None)
    '<text class="rn-text" text-anchor="end" x="1">a &lt; b</text>'
    """
    named = "".join(
        f' {name.removesuffix("_").replace("_", "-")}="{escape(_written(value), QUOTES)}"'
        for name, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{tag}{named}>{joined(*children)}</{tag}>" if children else f"<{tag}{named}/>")


def escaped(text: str) -> Markup:
    """Text as the content of an element."""
    return Markup(escape(text))


def joined(*pieces: Markup) -> Markup:
    """Pieces one after the other."""
    return Markup("".join(pieces))


def number(value: float) -> str:
    """A coordinate, to a hundredth of a unit, which no screen can show.

    >>> number(12.0), number(1 / 3), number(-0.001)
    ('12', '0.33', '0')
    """
    short = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if short == "-0" else short


def _written(value: str | float) -> str:
    return value if isinstance(value, str) else number(value)
