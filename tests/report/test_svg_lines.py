"""`line_chart`: points where their values are, by the ticks of the chart itself."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode.errors import ArgumentError
from rarenode.report.svg import Line, line_chart
from tests.report.svg_reading import SVG, Axis, at, axes, numbers, path, read, texts, tooltip, with_class


def drawn(*lines: Line, **options: Any) -> ElementTree.Element:
    return read(line_chart("Curves", lines, x_axis="recall", y_axis="precision", **options))


def lines_of(root: ElementTree.Element, series: int = 1) -> list[list[tuple[float, float]]]:
    """The pieces of a line; the first path is that of the legend."""
    paths = with_class(root, "rn-line", f"rn-s{series}")[1:]
    return [piece for each in paths for piece in path(each)]


def marks(root: ElementTree.Element) -> list[tuple[float, float]]:
    """Circles with a tooltip, which those of the legend do not have."""
    return [(at(each, "cx"), at(each, "cy")) for each in root.iter(f"{SVG}circle") if tooltip(each)]


def both(root: ElementTree.Element) -> tuple[Axis, Axis]:
    across, upright = axes(root)
    assert across is not None
    return across, upright


def test_points_are_where_the_ticks_say() -> None:
    root = drawn(Line("a", (0.0, 13.0, 40.0), (5.0, -2.5, 30.0)), Line("b", (1.0, 2.0), (3.0, 4.0)))
    across, upright = both(root)
    assert across.values == (0, 40)
    assert upright.values == (-10, 30)
    for series, values in ((1, [(0, 5), (13, -2.5), (40, 30)]), (2, [(1, 3), (2, 4)])):
        (piece,) = lines_of(root, series)
        for (x, y), (value_x, value_y) in zip(piece, values, strict=True):
            assert (x, y) == pytest.approx((across.place(value_x), upright.place(value_y)), abs=0.05)


def test_logarithmic_axes_have_decades_and_leave_out_what_is_not_positive() -> None:
    line = Line("a", (0.0, 0.001, 0.02, -1.0, 0.5), (0.1, 0.01, 0.03, 0.5, 0.9))
    root = drawn(line, log=True)
    assert {"0.001", "0.01", "0.1", "1"} <= set(texts(root))
    across, upright = both(root)
    (piece,) = lines_of(root)
    for (x, y), values in zip(piece, [(0.001, 0.01), (0.02, 0.03), (0.5, 0.9)], strict=True):
        expected = [
            axis.places[0]
            + (axis.places[1] - axis.places[0])
            * math.log(value / axis.values[0])
            / math.log(axis.values[1] / axis.values[0])
            for axis, value in zip((across, upright), values, strict=True)
        ]
        assert (x, y) == pytest.approx(expected, abs=0.05)


@pytest.mark.parametrize("gap", [math.nan, math.inf, -math.inf, 1e200])
def test_a_value_that_is_not_finite_interrupts_the_line(gap: float) -> None:
    root = drawn(Line("a", (0.0, 1.0, 2.0, 3.0, 4.0, 5.0), (1.0, 2.0, gap, 3.0, gap, 4.0)))
    across, upright = both(root)
    assert [len(piece) for piece in lines_of(root)] == [2]
    alone = [(across.place(x), upright.place(y)) for x, y in ((3, 3), (5, 4))]
    assert marks(root) == [pytest.approx(place, abs=0.05) for place in alone]


def test_what_is_outside_the_range_is_cut_off_at_its_border() -> None:
    line = Line("a", (0.0, 10.0), (0.0, 10.0), points=((1.0, 1.0), (7.0, 7.0), (5.0, 5.0)))
    root = drawn(line, x_range=(0, 5), y_range=(0, 20))
    across, upright = both(root)
    ((start, end),) = lines_of(root)
    assert start == pytest.approx((across.place(0), upright.place(0)), abs=0.05)
    assert end == pytest.approx((across.place(5), upright.place(5)), abs=0.05)
    expected = [(across.place(value), upright.place(value)) for value in (1, 5)]  # one of them on the border
    assert marks(root) == [pytest.approx(place, abs=0.05) for place in expected]


def test_marked_points_are_above_all_lines_and_say_their_values() -> None:
    root = drawn(
        Line("a", (0.0, 1.0), (0.0, 1.0), ((0.25, 0.5),)),
        Line("b", (0.0, 1.0), (1.0, 0.0), ((0.5, 0.123456),)),
    )
    said = [tooltip(each) for each in with_class(root, "rn-mark") if tooltip(each)]
    assert said == ["a: recall 0.25, precision 0.5", "b: recall 0.5, precision 0.1235"]
    order = [each.get("class", "").split()[:1] for each in root.iter() if tooltip(each) and each is not root]
    assert order == [["rn-line"], ["rn-line"], ["rn-mark"], ["rn-mark"]]


def test_the_diagonal_is_where_both_axes_have_the_same_value() -> None:
    root = drawn(Line("a", (0.0, 1.0), (0.2, 0.4)), diagonal=True, x_range=(0, 1), y_range=(0.2, 0.8))
    across, upright = both(root)
    (diagonal,) = with_class(root, "rn-diagonal")
    ((start, end),) = path(diagonal)
    assert start == pytest.approx((across.place(0.2), upright.place(0.2)), abs=0.05)
    assert end == pytest.approx((across.place(0.8), upright.place(0.8)), abs=0.05)
    assert not with_class(drawn(Line("a", (0.0,), (0.0,))), "rn-diagonal")
    apart = drawn(Line("a", (0.0,), (0.0,)), diagonal=True, x_range=(0, 1), y_range=(2, 3))
    assert not with_class(apart, "rn-diagonal")


def test_markers_are_at_the_values_unless_they_would_touch() -> None:
    few = Line("a", (0.0, 1.0, 2.0), (1.0, 0.0, math.nan))
    assert marks(drawn(few, markers=True)) == [place for piece in lines_of(drawn(few)) for place in piece]
    assert not marks(drawn(few))
    many = Line("a", tuple(k / 1000 for k in range(1000)), (0.5,) * 1000)
    places = marks(drawn(many, markers=True))
    assert 20 < len(places) < 60
    assert all(math.dist(a, b) >= 9.9 for a, b in pairwise(places))


def test_a_long_line_is_thinned_without_losing_its_extremes() -> None:
    x = tuple(k / 50_000 for k in range(50_000))
    y = tuple(1.0 if k == 31_234 else 0.25 + 0.2 * math.sin(k / 7) for k in range(50_000))
    root = drawn(Line("a", x, y), x_range=(0, 1), y_range=(0, 1))
    across, upright = both(root)
    (piece,) = lines_of(root)
    assert len(piece) < 5000
    highest = min(piece, key=lambda place: place[1])
    assert highest == pytest.approx((across.place(x[31_234]), upright.place(1)), abs=0.1)


def test_series_differ_in_class_and_mark() -> None:
    lines = [Line(f"run {k}", (0.0, 1.0), (k, k + 1.0)) for k in range(8)]
    root = drawn(*lines, markers=True)
    shapes = set()
    for series in range(1, 9):
        first, second, third = with_class(root, "rn-mark", f"rn-s{series}")  # in the legend, and on the line
        middle = numbers(first.get("points"))
        shapes.add((first.tag, *(round(value - middle[0], 1) for value in middle[::2])))
        assert first.tag == second.tag == third.tag
        assert tooltip(second).startswith(f"run {series - 1}: ")
    assert len(shapes) >= 7


@pytest.mark.parametrize("values", [(), (math.nan,), (0.0, -1.0)])
def test_lines_without_values_say_so(values: tuple[float, ...]) -> None:
    root = drawn(Line("a", values, values), log=True)
    assert "no values to show" in texts(root)
    assert "no values to show" not in texts(drawn(Line("a", (1.0,), (1.0,)), log=True))


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ArgumentError, match="without lines"):
        drawn()
    with pytest.raises(ArgumentError, match="these are 9, and 'run 8' is"):
        drawn(*(Line(f"run {k}", (), ()) for k in range(9)))
    with pytest.raises(ArgumentError, match="'b' has 2 values x, but 1 values y"):
        drawn(Line("a", (), ()), Line("b", (1.0, 2.0), (1.0,)))
    with pytest.raises(ArgumentError, match="from 1 to 0 has no length"):
        drawn(Line("a", (), ()), x_range=(1, 0))
    with pytest.raises(ArgumentError, match="cannot begin at 0"):
        drawn(Line("a", (), ()), y_range=(0, 1), log=True)


ANY_FLOAT = st.floats()


@given(st.data())
def test_any_values_are_drawn_inside_the_chart(data: st.DataObject) -> None:
    lines = []
    for run in range(data.draw(st.integers(1, 3))):
        pairs = data.draw(st.lists(st.tuples(ANY_FLOAT, ANY_FLOAT), max_size=8))
        points = data.draw(st.lists(st.tuples(ANY_FLOAT, ANY_FLOAT), max_size=2))
        lines.append(Line(f"r{run}", tuple(x for x, _ in pairs), tuple(y for _, y in pairs), tuple(points)))
    ranges = st.sampled_from((None, (0.001, 1.0), (1e-30, 1e30)))
    log, diagonal, markers = (data.draw(st.booleans()) for _ in range(3))
    root = drawn(
        *lines, log=log, diagonal=diagonal, markers=markers, x_range=data.draw(ranges), y_range=data.draw(ranges)
    )
    _, _, wide, tall = numbers(root.get("viewBox"))
    for each in with_class(root, "rn-line") + with_class(root, "rn-mark"):
        values = numbers(each.get("d")) or numbers(each.get("points")) or [at(each, "cx"), at(each, "cy")]
        assert all(-1 <= value <= max(wide, tall) + 1 for value in values)
    assert "nan" not in ElementTree.tostring(root, "unicode").replace("not a finite", "")
