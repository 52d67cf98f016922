"""Textures of bars for black and white print, where colours of equal darkness look the same.

SVG has patterns for this, but a pattern needs an identifier, and identifiers of charts in one page could collide. So
the strokes are drawn one by one. The stylesheet shows them in print only.
"""

from __future__ import annotations

import math

from rarenode.report.svg.clipping import Box, Point, clipped
from rarenode.report.svg.element import Markup, element, number

DIRECTIONS: tuple[tuple[Point, ...], ...] = (
    (),
    ((1, -1),),
    ((1, 0),),
    ((1, 1),),
    ((1, -1), (1, 1)),
    ((0, 1),),
    ((1, 0), (0, 1)),
    ((2, -1),),
)
"""Of the strokes, for each series."""
APART = 4.0


def texture(index: int, box: Box) -> Markup:
    """The strokes of a series, clipped to its bar."""
    strokes = "".join(_strokes(direction, box) for direction in DIRECTIONS[index])
    return element("path", class_="rn-texture", d=strokes) if strokes else Markup("")


def _strokes(direction: Point, box: Box) -> str:
    """Parallels x·n = k·apart, for every k for which they meet the box; n is the unit vector across the direction."""
    length = math.hypot(*direction)
    along = direction[0] / length, direction[1] / length
    across = -along[1], along[0]
    corners = [(x, y) for x in (box[0], box[2]) for y in (box[1], box[3])]
    offsets = [x * across[0] + y * across[1] for x, y in corners]
    reach = math.hypot(*corners[-1]) + math.hypot(box[2] - box[0], box[3] - box[1])
    drawn = []
    for k in range(math.ceil(min(offsets) / APART), math.floor(max(offsets) / APART) + 1):
        foot = k * APART * across[0], k * APART * across[1]
        ends = [(foot[0] + sign * reach * along[0], foot[1] + sign * reach * along[1]) for sign in (-1, 1)]
        if part := clipped(ends[0], ends[1], box):
            (x1, y1), (x2, y2) = part
            drawn.append(f"M{number(x1)} {number(y1)}L{number(x2)} {number(y2)}")
    return "".join(drawn)
