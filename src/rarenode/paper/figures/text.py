"""Text in a figure: names come from files that anyone may have written, and are made plain and short."""

from __future__ import annotations

from rarenode._io.text import printable

INK, GREY = "#222222", "#6b6b6b"
LONGEST_NAME = 46


def plain(text: str, longest: int = LONGEST_NAME) -> str:
    r"""Text on one line that prints, shortened where it is longer.

    >>> plain("two\nlines"), plain("abcdefgh", 5)
    ('two lines', 'abcd…')
    """
    shown = printable(text).strip()
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"
