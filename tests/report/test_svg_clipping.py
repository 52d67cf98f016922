"""Clipping, thinning and textures: lines inside a rectangle, and no more points than pixels show."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode.report.svg.clipping import Point, clipped, inside, pieces
from rarenode.report.svg.series import MOST_SERIES
from rarenode.report.svg.textures import texture
from rarenode.report.svg.thinning import COLUMN, thinned
from tests.report.svg_reading import path, read

BOX = (0.0, 0.0, 10.0, 6.0)
PLACE = st.integers(-40, 60).map(lambda value: value / 4)
POINT = st.tuples(PLACE, PLACE)


def sampled(a: Point, b: Point, count: int = 2001) -> list[Point]:
    return [(a[0] + k / (count - 1) * (b[0] - a[0]), a[1] + k / (count - 1) * (b[1] - a[1])) for k in range(count)]


def along(a: Point, b: Point, point: Point) -> float:
    """Which part of the way from a to b a point of the segment is."""
    axis = 0 if abs(b[0] - a[0]) >= abs(b[1] - a[1]) else 1
    return (point[axis] - a[axis]) / (b[axis] - a[axis])


@given(POINT, POINT)
def test_what_is_clipped_is_what_many_samples_find_inside(a: Point, b: Point) -> None:
    seen = [k / 2000 for k, point in enumerate(sampled(a, b)) if inside(point, BOX)]
    part = clipped(a, b, BOX)
    if part is None:
        assert len(seen) <= 1  # at most a corner
        return
    grown = -1e-9, -1e-9, 10 + 1e-9, 6 + 1e-9
    assert all(inside(end, grown) for end in part)
    if a != b and seen:
        assert along(a, b, part[0]) == pytest.approx(seen[0], abs=1 / 2000 + 1e-9)
        assert along(a, b, part[1]) == pytest.approx(seen[-1], abs=1 / 2000 + 1e-9)


def test_a_line_that_leaves_and_comes_back_is_in_two_pieces() -> None:
    line = [(1.0, 1.0), (5.0, 3.0), (5.0, 9.0), (7.0, 9.0), (7.0, 3.0), None, (9.0, 1.0), None, (50.0, 50.0)]
    assert pieces(line, BOX) == [[(1, 1), (5, 3), (5, 6)], [(7, 6), (7, 3)], [(9, 1)]]


@given(st.lists(st.tuples(PLACE, PLACE), max_size=80))
def test_thinning_keeps_the_reach_of_every_stretch_in_a_column(points: list[Point]) -> None:
    kept = thinned(points)
    remaining = iter(points)
    assert all(any(point is other for other in remaining) for point in kept)  # in order, none invented

    def stretches(line: list[Point]) -> list[tuple[Point, Point, float, float]]:
        found: list[list[Point]] = []
        for point in line:
            if found and math.floor(found[-1][-1][0] / COLUMN) == math.floor(point[0] / COLUMN):
                found[-1].append(point)
            else:
                found.append([point])
        return [(s[0], s[-1], min(y for _, y in s), max(y for _, y in s)) for s in found]

    assert stretches(kept) == stretches(points)


def test_thinning_bounds_the_number_of_points() -> None:
    points = [(k / 1000, math.sin(k)) for k in range(100_000)]
    assert len(thinned(points)) <= 4 * (100 / COLUMN + 1)


@pytest.mark.parametrize("index", range(MOST_SERIES))
def test_strokes_of_a_texture_are_inside_their_bar_and_differ_by_series(index: int) -> None:
    box = (30.0, 100.0, 48.0, 190.0)
    drawn = texture(index, box)
    if index == 0:
        assert drawn == ""
        return
    strokes = path(read(drawn))
    assert all(29.99 <= x <= 48.01 and 99.99 <= y <= 190.01 for stroke in strokes for x, y in stroke)
    assert len(strokes) >= 4
    assert all(texture(other, box) != drawn for other in range(MOST_SERIES) if other != index)


def test_strokes_of_a_texture_have_equal_distances() -> None:
    strokes = path(read(texture(1, (0.0, 0.0, 20.0, 20.0))))  # from the lower left to the upper right
    offsets = sorted((x + y) / math.sqrt(2) for ((x, y), _) in strokes)
    assert all(after - before == pytest.approx(4.0, abs=0.02) for before, after in pairwise(offsets))
