"""`thinned`: a line of a hundred thousand points, as few of them as look the same."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rarenode.report.svg.clipping import Point

COLUMN = 0.5
"""Units; about a pixel of a dense screen."""


def thinned(points: Sequence[Point]) -> list[Point]:
    """Of each stretch of points in one column of pixels: the first, the lowest, the highest and the last, in order.

    The line then passes every row of pixels that it passed before, wherever it is as dense as the columns are.
    """
    kept: list[Point] = []
    for _, group in groupby(points, key=lambda point: point[0] // COLUMN):
        stretch = list(group)
        heights = [point[1] for point in stretch]
        chosen = {0, heights.index(min(heights)), heights.index(max(heights)), len(stretch) - 1}
        kept += [stretch[index] for index in sorted(chosen)]
    return kept
