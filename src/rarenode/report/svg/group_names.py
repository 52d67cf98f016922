"""`group_names`: what stands under the groups of a bar chart, flat if it can be, turned if groups are narrow."""

from __future__ import annotations

import math
from collections.abc import Sequence

from rarenode.report.svg.element import Markup, element, joined, number
from rarenode.report.svg.frame import Part
from rarenode.report.svg.stylesheet import SMALL, TEXT
from rarenode.report.svg.text import cut, halved, label, plain, tooltip, width, wrapped, written

NARROW = 60.0
"""Groups with less room have their texts turned, if these do not fit; wider ones have them cut."""
TURN, TURNED = 70.0, 170.0
"""The angle of turned texts, and the room along them."""


def group_names(names: Sequence[str], notes: Sequence[str], middles: Sequence[float], room: float, base: float) -> Part:
    """Names under the base line, in the middle of their groups, and notes (or none at all) below them."""
    lines, look = [wrapped(name, room, TEXT, 2) for name in names], "rn-text"
    if not _whole(lines, names):
        lines, look = [wrapped(name, room, SMALL, 3) for name in names], "rn-small"
    if room < NARROW and not _whole(lines, names):
        with_notes = [f"{name} · {note}" for name, note in zip(names, notes, strict=True)] if notes else names
        return _turned(with_notes, "rn-small", middles, base)
    upper = _flat(names, lines, look, middles, base + 20, 18)
    if not notes:
        return upper
    lines, look = [wrapped(note, room, SMALL, 1) for note in notes], "rn-small rn-muted"
    if not _whole(lines, notes):  # if one needs two lines, all have them
        lines = [tuple(cut(line, room, SMALL) for line in halved(note)) for note in notes]
    if room < NARROW and not _whole(lines, notes):
        lower = _turned(notes, look, middles, upper.bottom)
    else:
        lower = _flat(notes, lines, look, middles, upper.bottom + 13, 16)
    return Part(joined(upper.markup, lower.markup), lower.bottom)


def _whole(lines: Sequence[Sequence[str]], texts: Sequence[str]) -> bool:
    return all(" ".join(some) == plain(text) for some, text in zip(lines, texts, strict=True))


def _flat(
    texts: Sequence[str], lines: Sequence[Sequence[str]], look: str, middles: Sequence[float], y: float, apart: float
) -> Part:
    """Lines one below the other; a tooltip has the whole text where they do not."""
    drawn: list[Markup] = []
    for text, some, x in zip(texts, lines, middles, strict=True):
        shown = [written(line, look, x, y + apart * row, "middle") for row, line in enumerate(some)]
        drawn += shown if _whole([some], [text]) else [element("g", tooltip(plain(text)), *shown)]
    return Part(joined(*drawn), y + apart * (max(map(len, lines)) - 1) + 5)


def _turned(texts: Sequence[str], look: str, middles: Sequence[float], top: float) -> Part:
    """Texts that rise from the lower left and end under the middle of their group."""
    drawn, longest, y = [], 0.0, top + 14
    across, down = math.cos(math.radians(TURN)), math.sin(math.radians(TURN))
    for text, middle in zip(texts, middles, strict=True):
        x = middle + 4
        room = min(TURNED, (x - SMALL) / across)  # the left border is near
        longest = max(longest, width(cut(text, room, SMALL), SMALL))
        turn = f"rotate(-{number(TURN)} {number(x)} {number(y)})"
        drawn.append(label(text, room, SMALL, class_=look, x=x, y=y, text_anchor="end", transform=turn))
    return Part(joined(*drawn), y + 4 + down * longest)
