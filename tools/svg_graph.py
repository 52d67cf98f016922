"""Small graphs as SVG: boxes at given places of a grid, and arrows between them."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

INK, MUTED, FILL, PAPER = "#1b1f24", "#5b6470", "#eef3f8", "#ffffff"
MARGIN, LINE = 12, 15
ROOM = 1.45
"""The height of a row, in heights of a box."""


@dataclass(frozen=True)
class Box:
    """A box whose middle is in a column and a row, which need not be whole."""

    text: str
    column: float
    row: float


@dataclass(frozen=True)
class Arrow:
    """An arrow from a box to a lower one, by their numbers; through the middles of ``via``, (column, row)."""

    start: int
    end: int
    label: str = ""
    via: tuple[tuple[float, float], ...] = ()


def draw_graph(boxes: Sequence[Box], arrows: Sequence[Arrow], *, title: str, box: tuple[int, int]) -> str:
    """The graph as the content of an SVG file.

    Args:
        boxes: in no particular order.
        arrows: downwards.
        title: what readers know who do not see it.
        box: width and height of each.
    """
    wide, high = box
    across, down = wide + 24, round(high * ROOM) + 16

    def place(column: float, row: float) -> tuple[float, float]:
        return round(MARGIN + wide / 2 + column * across, 1), round(MARGIN + high / 2 + row * down, 1)

    drawn = []
    for arrow in arrows:
        first, last = (boxes[end] for end in (arrow.start, arrow.end))
        points = [place(first.column, first.row), *(place(*middle) for middle in arrow.via)]
        points.append(place(last.column, last.row))
        drawn.append(_arrow(points, high / 2, arrow.label))
    for each in boxes:
        x, y = place(each.column, each.row)
        drawn.append(
            f'<rect x="{x - wide / 2:g}" y="{y - high / 2:g}" width="{wide}" height="{high}" rx="5" '
            f'fill="{FILL}" stroke="{MUTED}"/>'
        )
        drawn.append(_text(each.text, x, y, max(8, wide // 8)))
    columns = [each.column for each in boxes] + [column for arrow in arrows for column, _ in arrow.via]
    width = 2 * MARGIN + wide + across * max(columns)
    height = 2 * MARGIN + high + down * max(each.row for each in boxes)
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
        f'height="{height:g}" font-family="system-ui,sans-serif" font-size="13" fill="{INK}" role="img">'
    )
    marker = (
        '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        f'<path d="M0 0 8 4 0 8z" fill="{MUTED}"/></marker></defs>'
    )
    paper = f'<rect width="{width:g}" height="{height:g}" fill="{PAPER}"/>'
    return "\n".join([head, f"<title>{escape(title)}</title>", marker, paper, *drawn, "</svg>", ""])


def _arrow(points: list[tuple[float, float]], half: float, label: str) -> str:
    (x, y), (end_x, end_y) = points[0], points[-1]
    points = [(x, y + half), *points[1:-1], (end_x, end_y - half)]
    path = f"M{points[0][0]:g} {points[0][1]:g}"
    for (from_x, from_y), (to_x, to_y) in pairwise(points):
        bend = (to_y - from_y) / 2
        path += f"C{from_x:g} {from_y + bend:g} {to_x:g} {to_y - bend:g} {to_x:g} {to_y:g}"
    line = f'<path d="{path}" fill="none" stroke="{MUTED}" marker-end="url(#head)"/>'
    middle_x, middle_y = (points[0][0] + points[-1][0]) / 2, (points[0][1] + points[-1][1]) / 2
    return line + (_text(label, middle_x, middle_y, 60, small=True) if label else "")


def _text(text: str, x: float, y: float, width: int, *, small: bool = False) -> str:
    lines = textwrap.wrap(text, width)
    top = y - LINE * (len(lines) - 1) / 2 + 4
    halo = f' font-size="11" stroke="{PAPER}" stroke-width="4" paint-order="stroke"' if small else ""
    return "".join(
        f'<text x="{x:g}" y="{top + LINE * number:g}" text-anchor="middle"{halo}>{escape(line)}</text>'
        for number, line in enumerate(lines)
    )
