"""`line_chart`: lines over a linear or a logarithmic plane, with marked points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rarenode.errors import ArgumentError
from rarenode.report.svg.clipping import Box, Point, inside, pieces
from rarenode.report.svg.element import Markup, element, joined, number
from rarenode.report.svg.frame import (
    WIDTH,
    Swatch,
    axis_name,
    chart,
    heading,
    legend,
    room_for_ticks,
    upright_axis,
)
from rarenode.report.svg.scale import Scale, linear, logarithmic, short, usable, usable_logarithm
from rarenode.report.svg.series import check_series, mark, series_class
from rarenode.report.svg.stylesheet import SMALL
from rarenode.report.svg.text import isolated, plain, tooltip, width, written
from rarenode.report.svg.thinning import thinned

HEIGHT = 290.0
"""Of the plot."""
MARK, POINT = 3.6, 6.0
"""Sizes of the marks on a line and of marked points."""
MARKS_APART = 10.0
SWATCH = 30.0
ABOVE = 14.0
EDGE = 0.01
"""What rounding puts this far outside the plot is still in it."""


@dataclass(frozen=True)
class Line:
    """Values y over x, and points of it that are marked, as where a model decides."""

    label: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    points: tuple[tuple[float, float], ...] = ()


def line_chart(
    title: str,
    lines: Sequence[Line],
    *,
    x_axis: str,
    y_axis: str,
    x_range: tuple[float, float] | None = None,
    y_range: tuple[float, float] | None = None,
    log: bool = False,
    diagonal: bool = False,
    markers: bool = False,
) -> str:
    """Lines through their values. A value that is not finite interrupts its line.

    Args:
        title: what the chart shows.
        lines: 1 to 8.
        x_axis: what x is.
        y_axis: what y is.
        x_range: where the axis begins and ends; around the values unless told. What is outside is cut off.
        y_range: the same for y.
        log: both axes are logarithmic; values at or below 0 are left out.
        diagonal: draw where x and y are equal.
        markers: mark the values on the lines too, where they are not too close.

    Raises:
        ArgumentError: x and y of a line differ in length, there are too few or too many lines, or a range is empty.
    """
    check_series("lines", [line.label for line in lines])
    for line in lines:
        if len(line.x) != len(line.y):
            raise ArgumentError(
                f"the line '{plain(line.label)}' has {len(line.x)} values x, but {len(line.y)} values y"
            )
    values = [_values(line, log) for line in lines]
    points = [[point for point in line.points if _drawable(point, log)] for line in lines]
    known = [point for line in values for point in line if point] + [point for line in points for point in line]
    make = logarithmic if log else linear
    across = make([x for x, _ in known], x_range)
    upright = make([y for _, y in known], y_range)
    head = heading(title)
    swatches = [(line.label, _swatch(index, markers, bool(line.points))) for index, line in enumerate(lines)]
    key = legend(swatches, SWATCH, head.bottom)
    top = key.bottom + 20 + ABOVE
    outer = [width(text, SMALL) / 2 for text in (across.tick_labels()[0], across.tick_labels()[-1])]
    left, right = max(room_for_ticks(upright), outer[0]), WIDTH - max(12.0, outer[1])
    across, upright = across.moved(left, right), upright.moved(top + HEIGHT, top)
    box = left - EDGE, top - EDGE, right + EDGE, top + HEIGHT + EDGE
    drawn = [upright_axis(upright, y_axis, left, right, ABOVE), _lower_axis(across, top, top + HEIGHT)]
    if diagonal:
        drawn.append(_diagonal(across, upright))
    for index, line in enumerate(lines):
        drawn.append(_drawn(index, line, values[index], across, upright, box, markers))
    for index, line in enumerate(lines):  # above all lines
        for x, y in points[index]:
            said = f"{isolated(line.label)}: {isolated(x_axis)} {short(x)}, {isolated(y_axis)} {short(y)}"
            if inside(place := (across(x), upright(y)), box):
                drawn.append(mark(index, *place, POINT, tooltip(said)))
    if not known:
        middle = (left + right) / 2, top + HEIGHT / 2
        drawn.append(written("no values to show", "rn-text rn-muted rn-halo", *middle, "middle"))
    drawn.append(axis_name(x_axis, top + HEIGHT + 40, left, right))
    names = ", ".join(isolated(line.label) for line in lines)
    summary = f"Line chart: {isolated(y_axis)} over {isolated(x_axis)}; lines: {names}."
    return chart("lines", title, summary, top + HEIGHT + 48, head.markup, key.markup, *drawn)


def _drawable(point: Point, log: bool) -> bool:
    return all(map(usable_logarithm if log else usable, point))


def _values(line: Line, log: bool) -> list[Point | None]:
    """The points of a line; None where it is interrupted."""
    found: list[Point | None] = []
    for x, y in zip(map(float, line.x), map(float, line.y), strict=True):
        if not _drawable((x, y), log=False):
            found.append(None)
        elif _drawable((x, y), log):
            found.append((x, y))
    return found


def _drawn(
    index: int, line: Line, values: Sequence[Point | None], across: Scale, upright: Scale, box: Box, markers: bool
) -> Markup:
    places = [None if value is None else (across(value[0]), upright(value[1])) for value in values]
    parts = pieces(places, box)
    paths = "".join(_path(thinned(part)) for part in parts if len(part) > 1)
    alone = {part[0] for part in parts if len(part) == 1}  # no line would show them
    drawn = []
    if paths:
        drawn.append(element("path", tooltip(plain(line.label)), class_=f"rn-line {series_class(index)}", d=paths))
    last: Point | None = None
    for value, place in zip(values, places, strict=True):
        if value is None or place is None or not inside(place, box):
            continue
        if place in alone or (markers and (last is None or math.dist(last, place) >= MARKS_APART)):
            said = f"{isolated(line.label)}: {short(value[0])}, {short(value[1])}"
            drawn.append(mark(index, *place, MARK, tooltip(said)))
            last = place
    return element("g", *drawn) if drawn else Markup("")


def _path(points: Sequence[Point]) -> str:
    start, *rest = (f"{number(x)} {number(y)}" for x, y in points)
    return f"M{start}L{' '.join(rest)}"


def _lower_axis(scale: Scale, top: float, base: float) -> Markup:
    drawn = []
    for tick, value in zip(scale.ticks, scale.tick_labels(), strict=True):
        x = scale(tick)
        drawn.append(element("path", class_="rn-grid", d=f"M{number(x)} {number(top)}V{number(base)}"))
        drawn.append(written(value, "rn-small rn-muted", x, base + 19, "middle"))
    line = f"M{number(scale.start)} {number(base)}H{number(scale.end)}"
    return joined(*drawn, element("path", class_="rn-axis", d=line))


def _diagonal(across: Scale, upright: Scale) -> Markup:
    low, high = max(across.low, upright.low), min(across.high, upright.high)
    if low >= high:
        return Markup("")
    ends = [f"{number(across(value))} {number(upright(value))}" for value in (low, high)]
    return element("path", class_="rn-diagonal", d=f"M{ends[0]}L{ends[1]}")


def _swatch(index: int, markers: bool, points: bool) -> Swatch:
    def drawn(x: float, y: float) -> Markup:
        line = element(
            "path", class_=f"rn-line {series_class(index)}", d=f"M{number(x + 1)} {number(y)}h{number(SWATCH - 2)}"
        )
        size = POINT if points else MARK
        return joined(line, mark(index, x + SWATCH / 2, y, size)) if markers or points else line

    return drawn
