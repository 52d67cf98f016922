"""Lines inside a rectangle: what leaves it is cut off at its border, as a clip path would, but without identifiers."""

from __future__ import annotations

from collections.abc import Iterable

Point = tuple[float, float]
Box = tuple[float, float, float, float]
"""Left, top, right, bottom."""


def inside(point: Point, box: Box) -> bool:
    """Whether a point is in the rectangle or on its border."""
    return box[0] <= point[0] <= box[2] and box[1] <= point[1] <= box[3]


def clipped(a: Point, b: Point, box: Box) -> tuple[Point, Point] | None:
    """The part of the segment from a to b that is in the rectangle.

    A point of the segment is a + t (b - a). Each border allows the t on one side of a value; the part that all four
    allow is what is seen (Liang and Barsky).
    """
    first, last = 0.0, 1.0
    for axis, (low, high) in enumerate(((box[0], box[2]), (box[1], box[3]))):
        along = b[axis] - a[axis]
        for towards, gap in ((-along, a[axis] - low), (along, high - a[axis])):
            if towards == 0:
                if gap < 0:
                    return None
            elif towards > 0:
                last = min(last, gap / towards)
            else:
                first = max(first, gap / towards)
    if first > last:
        return None
    return a if first == 0 else _between(a, b, first, box), b if last == 1 else _between(a, b, last, box)


def pieces(points: Iterable[Point | None], box: Box) -> list[list[Point]]:
    """A line through points, in the pieces that are inside; None interrupts it. A lone point is a piece of its own."""
    found: list[list[Point]] = []
    previous: Point | None = None
    for point in points:
        if point is not None:
            if previous is None:
                if inside(point, box):
                    found.append([point])
            elif part := clipped(previous, point, box):
                if found and found[-1][-1] == part[0]:
                    found[-1].append(part[1])
                else:
                    found.append(list(part))
        previous = point
    return found


def _between(a: Point, b: Point, t: float, box: Box) -> Point:
    """a + t (b - a), which is in the box, but may be rounded out of it where a and b are far away."""
    x, y = a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])
    return min(max(x, box[0]), box[2]), min(max(y, box[1]), box[3])
