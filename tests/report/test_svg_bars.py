"""`bar_chart`: bars where their values are, by the ticks of the chart itself."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode.errors import ArgumentError
from rarenode.report.svg import Bars, bar_chart
from tests.report.svg_reading import SVG, at, axes, numbers, read, texts, tooltip, with_class


def drawn(groups: list[str], *bars: Bars, notes: tuple[str, ...] = ()) -> ElementTree.Element:
    return read(bar_chart("Recall", groups, bars, axis="recall, %", groups_axis="depth", notes=notes))


def rects(root: ElementTree.Element, series: int) -> list[ElementTree.Element]:
    """The bars of a series; the first rectangle is that of the legend."""
    return [each for each in with_class(root, "rn-bar", f"rn-s{series}") if each.tag == f"{SVG}rect"][1:]


def test_bars_stand_on_zero_and_end_at_their_values() -> None:
    root = drawn(["1", "2", "3"], Bars("plain", (80.0, 31.5, 12.25)), Bars("weighted", (85.0, 44.0, None)))
    _, upright = axes(root)
    for series, values in ((1, (80.0, 31.5, 12.25)), (2, (85.0, 44.0))):
        for rect, value in zip(rects(root, series), values, strict=True):
            assert at(rect, "y") == pytest.approx(upright.place(value), abs=0.02)
            assert at(rect, "y") + at(rect, "height") == pytest.approx(upright.place(0), abs=0.02)


def test_bars_of_a_group_are_side_by_side_around_its_name() -> None:
    root = drawn(["one", "two"], *(Bars(label, (50.0, 60.0)) for label in "abc"))
    names = [at(each, "x") for each in root.iter(f"{SVG}text") if each.text in ("one", "two")]
    for group, middle in enumerate(names):
        bars = [rects(root, series)[group] for series in (1, 2, 3)]
        edges = [(at(bar, "x"), at(bar, "x") + at(bar, "width")) for bar in bars]
        assert edges[0][1] <= edges[1][0] < edges[1][1] <= edges[2][0]
        assert (edges[0][0] + edges[2][1]) / 2 == pytest.approx(middle, abs=0.02)


def test_whiskers_reach_one_deviation_and_stay_in_the_plot() -> None:
    root = drawn(["a", "b", "c"], Bars("x", (50.0, 2.0, 99.0), (5.0, 4.0, 3.0)))
    _, upright = axes(root)
    whiskers = [each for each in with_class(root, "rn-whisker") if "rn-under" not in each.attrib["class"]]
    for whisker, (low, high) in zip(whiskers, ((45, 55), (0, 6), (96, 100)), strict=True):
        _, start, end, *_ = numbers(whisker.attrib["d"])
        assert (start, end) == pytest.approx((upright.place(low), upright.place(high)), abs=0.02)


def test_the_scale_ends_at_a_round_value_above_bars_and_whiskers() -> None:
    assert axes(drawn(["a"], Bars("x", (33.0,))))[1].values == (0, 40)
    assert axes(drawn(["a"], Bars("x", (33.0,), (9.0,))))[1].values == (0, 50)
    assert axes(drawn(["a"], Bars("x", (97.0,), (8.0,))))[1].values == (0, 100)
    assert axes(drawn(["a"], Bars("x", (130.0,))))[1].values == (0, 150)


@pytest.mark.parametrize("nothing", [None, math.nan, math.inf])
def test_no_value_is_no_bar_but_zero_is_a_thin_one(nothing: float | None) -> None:
    root = drawn(["a", "b"], Bars("x", (nothing, 0.0), (1.0, None)))
    (rect,) = rects(root, 1)
    assert 0 < at(rect, "height") <= 2
    assert not with_class(root, "rn-whisker")
    assert tooltip(rect) == "b, x: 0 (recall, %)"
    assert axes(root)[1].values == (0, 100)


def test_values_are_written_where_there_is_room_and_always_in_the_tooltip() -> None:
    wide = drawn(["a"], Bars("x", (12.34,), (1.5,)))
    assert "12.3" in texts(wide)
    assert tooltip(rects(wide, 1)[0]) == "a, x: 12.3 ± 1.5 (recall, %)"
    narrow = drawn([f"{group}" for group in range(20)], *(Bars(f"{run}", (43.21,) * 20) for run in range(8)))
    assert not any(text.startswith("43") for text in texts(narrow))
    assert len(with_class(narrow, "rn-bar")) == 8 * 20 + 8
    assert tooltip(rects(narrow, 8)[19]) == "19, 7: 43.2 (recall, %)"


def test_a_value_is_above_its_whisker_and_below_the_name_of_the_axis() -> None:
    root = drawn(["a"], Bars("x", (100.0,), (3.0,)))
    (value,) = [each for each in with_class(root, "rn-halo") if each.text == "100"]
    (name,) = [each for each in root.iter(f"{SVG}text") if each.text == "recall, %"]
    assert at(name, "y") + 8 < at(value, "y") < axes(root)[1].place(100)


def test_notes_stand_below_names_all_in_as_many_lines() -> None:
    flat = drawn(["a", "b"], Bars("x", (1.0, 2.0)), notes=("7 nodes", "1,213 nodes"))
    assert {"7 nodes", "1,213 nodes"} <= set(texts(flat))
    depths = [str(depth) for depth in range(7)]
    halved = drawn(depths, Bars("x", (1.0,) * 7), notes=("7 nodes",) * 6 + ("1,213 nodes",))
    assert [text for text in texts(halved) if text == "7"] == ["7"] * 6
    assert texts(halved).count("nodes") == 7


def test_names_and_notes_that_do_not_fit_narrow_groups_are_turned() -> None:
    names = [f"group number {group}" for group in range(20)]
    turned = [each for each in drawn(names, Bars("x", (1.0,) * 20)).iter(f"{SVG}text") if each.get("transform")]
    assert len(turned) == 20
    depths = [str(depth) for depth in range(1, 14)]
    root = drawn(depths, Bars("x", (1.0,) * 13), notes=("1,213 nodes",) * 13)
    assert [each.text for each in root.iter(f"{SVG}text") if each.get("transform")] == ["1,213 nodes"] * 13
    assert texts(root).count("7") == 1  # names that fit stay flat


def test_long_names_of_few_groups_are_cut_and_whole_in_a_tooltip() -> None:
    name = "a name that goes on and on and on and on and on and does not end"
    root = drawn([name, "b", "c", "d", "e"], Bars("x", (1.0,) * 5))
    assert [tooltip(group) for group in root.iter(f"{SVG}g") if tooltip(group)] == [name]
    assert any(text.endswith("…") for text in texts(root))


BAR = Bars("x", (1.0, 2.0))


@pytest.mark.parametrize(
    ("groups", "bars", "notes", "message"),
    [
        ([], [Bars("x", ())], (), "without groups"),
        (["a"] * 21, [Bars("x", (1.0,) * 21)], (), "20 groups; these are 21"),
        (["a", "b"], [], (), "without series of bars"),
        (["a", "b"], [Bars(f"run {k}", (1.0, 2.0)) for k in range(9)], (), "these are 9, and 'run 8' is"),
        (["a", "b"], [BAR, Bars("y", (1.0,))], (), "'y' have 1 values for 2 groups"),
        (["a", "b"], [Bars("y", (1.0, 2.0), (1.0,))], (), "'y' have 1 deviations for 2 groups"),
        (["a", "b"], [BAR], ("n",), "1 notes do not fit 2 groups"),
        (["a", "b"], [BAR, Bars("y", (1.0, -2.0))], (), "'y' have -2 among their values, at 'b'"),
        (["a", "b"], [Bars("y", (1.0, 2.0), (-1.0, 0.0))], (), "'y' have -1 among their deviations, at 'a'"),
    ],
)
def test_what_does_not_fit_is_refused(
    groups: list[str], bars: list[Bars], notes: tuple[str, ...], message: str
) -> None:
    with pytest.raises(ArgumentError, match=message):
        bar_chart("t", groups, bars, axis="a", groups_axis="g", notes=notes)


VALUE = st.one_of(st.none(), st.floats(0, 1e300), st.floats(0, 100), st.sampled_from((math.nan, math.inf, 5e-324)))


@given(st.data())
def test_any_values_are_drawn_inside_the_chart(data: st.DataObject) -> None:
    groups, runs = data.draw(st.integers(1, 20)), data.draw(st.integers(1, 8))
    row = st.lists(VALUE, min_size=groups, max_size=groups).map(tuple)
    bars = [Bars(f"r{run}", data.draw(row), data.draw(st.one_of(st.none(), row))) for run in range(runs)]
    root = drawn([f"{group}" for group in range(groups)], *bars)
    _, _, wide, tall = numbers(root.get("viewBox"))
    for rect in root.iter(f"{SVG}rect"):
        assert 0 <= at(rect, "x") <= at(rect, "x") + at(rect, "width") <= wide
        assert 0 <= at(rect, "y") <= at(rect, "y") + at(rect, "height") <= tall
    expected = sum(value is not None and value <= 1e100 for series in bars for value in series.values)
    assert len(with_class(root, "rn-bar")) == expected + runs
