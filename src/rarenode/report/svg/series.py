"""What tells the series of a chart apart: a colour and a dash, by class, and a mark, by shape."""

from __future__ import annotations

from collections.abc import Sequence

from rarenode.errors import ArgumentError
from rarenode.report.svg.element import Markup, element, number
from rarenode.report.svg.stylesheet import DASHES
from rarenode.report.svg.text import plain

MOST_SERIES = len(DASHES)

SHAPES: tuple[tuple[tuple[float, float], ...], ...] = (
    (),  # a circle
    ((-0.88, -0.88), (0.88, -0.88), (0.88, 0.88), (-0.88, 0.88)),
    ((0, -1.15), (1.1, 0.8), (-1.1, 0.8)),
    ((0, -1.25), (1.25, 0), (0, 1.25), (-1.25, 0)),
    ((0, 1.15), (1.1, -0.8), (-1.1, -0.8)),
    (
        *((-0.4, -1.2), (0.4, -1.2), (0.4, -0.4), (1.2, -0.4), (1.2, 0.4), (0.4, 0.4)),
        *((0.4, 1.2), (-0.4, 1.2), (-0.4, 0.4), (-1.2, 0.4), (-1.2, -0.4), (-0.4, -0.4)),
    ),
    ((-1.15, 0), (0.8, -1.1), (0.8, 1.1)),
    ((-0.5, -1.05), (0.5, -1.05), (1.1, 0), (0.5, 1.05), (-0.5, 1.05), (-1.1, 0)),
)
"""Corners of the marks, about one unit from their middle."""


def check_series(what: str, labels: Sequence[str]) -> None:
    """There are 1 to `MOST_SERIES` of them.

    Raises:
        ArgumentError: there are none, or more; it names the first one too many.
    """
    if not labels:
        raise ArgumentError(f"a chart without {what} shows nothing")
    if len(labels) > MOST_SERIES:
        raise ArgumentError(
            f"a chart tells {MOST_SERIES} {what} apart; these are {len(labels)}, "
            f"and '{plain(labels[MOST_SERIES])}' is the first one too many"
        )


def series_class(index: int) -> str:
    """The class that has the colour of a series."""
    return f"rn-s{index + 1}"


def mark(index: int, x: float, y: float, size: float, *inside: Markup) -> Markup:
    """The mark of a series, with its middle at a place."""
    look = f"rn-mark {series_class(index)}"
    if not SHAPES[index]:
        return element("circle", *inside, class_=look, cx=x, cy=y, r=size)
    corners = " ".join(f"{number(x + size * dx)},{number(y + size * dy)}" for dx, dy in SHAPES[index])
    return element("polygon", *inside, class_=look, points=corners)
