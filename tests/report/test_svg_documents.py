"""All charts: well-formed with any text, without styles and identifiers of their own, and the same every time."""

from __future__ import annotations

import re
from collections.abc import Callable
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarenode.errors import ArgumentError
from rarenode.report.svg import CSS, Bars, BoxedNode, Line, bar_chart, line_chart, node_boxes, standalone
from tests.report.svg_reading import HOSTILE, SVG, numbers, read, texts, with_class
from tests.report.test_svg_text import ANY_TEXT

TAGS = {"svg", "title", "g", "text", "path", "rect", "circle", "polygon"}
ATTRIBUTES = {
    *("class", "viewBox", "role", "aria-label", "x", "y", "width", "height", "rx", "cx", "cy", "r", "d", "points"),
    *("text-anchor", "transform", "fill-opacity"),
}


def bars(texts: list[str]) -> str:
    some = [texts[k % len(texts)] for k in range(6)]
    series = [Bars(some[0], (1.0, None, 90.0), (3.0, 1.0, None)), Bars(some[1], (0.0, 5.0, 6.0))]
    return bar_chart(some[2], some[:3], series, axis=some[3], groups_axis=some[4], notes=some[3:])


def many_bars(texts: list[str]) -> str:
    some = [texts[k % len(texts)] for k in range(20)]
    series = [Bars(text, (30.0,) * 20) for text in some[:8]]
    return bar_chart(some[0], some, series, axis=some[1], groups_axis=some[2], notes=some)


def lines(texts: list[str]) -> str:
    some = [texts[k % len(texts)] for k in range(5)]
    both = [Line(some[0], (0.1, 0.2, 1.0), (0.3, 0.2, 0.5), ((0.2, 0.2),)), Line(some[1], (0.5,), (0.5,))]
    return line_chart(some[2], both, x_axis=some[3], y_axis=some[4], diagonal=True, markers=True)


def boxes(texts: list[str]) -> str:
    some = [texts[k % len(texts)] for k in range(6)]
    nodes = [BoxedNode(some[0], 0, -1, (0.0, 5.0)), BoxedNode(some[1], 1, 0, (2.0, 0.0))]
    return node_boxes(some[2], [*nodes, BoxedNode(some[3], 2, 1, (None, 3.0))], some[4:], columns=2)


CHARTS = (bars, many_bars, lines, boxes)
every_chart = pytest.mark.parametrize("chart", CHARTS)
Chart = Callable[[list[str]], str]


def check(svg: str) -> ElementTree.Element:
    """What holds for every chart, whatever its texts are."""
    root = read(svg)
    assert root.tag == f"{SVG}svg"
    for each in root.iter():
        assert each.tag.removeprefix(SVG) in TAGS
        assert set(each.attrib) <= ATTRIBUTES
        assert each.tag != f"{SVG}title" or not len(each)
    assert root.get("role") == "img"
    assert root[0].tag == f"{SVG}title"
    assert (root.get("aria-label") or "").startswith(f"\u2068{root[0].text or ''}\u2069. ")
    read(standalone(svg))
    return root


@every_chart
@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_stays_text(chart: Chart, text: str) -> None:
    root = check(chart([text]))
    assert len(list(root.iter())) < 2000
    assert max(len(each.text or "") for each in root.iter()) <= 4 * 520


@every_chart
@settings(max_examples=25)
@given(some=st.lists(ANY_TEXT, min_size=1, max_size=6))
def test_any_text_makes_a_chart_of_the_same_elements(chart: Chart, some: list[str]) -> None:
    marks = ("rn-bar", "rn-line", "rn-mark", "rn-box", "rn-grid")
    root, usual = check(chart(some)), read(chart(["a"]))
    assert [len(with_class(root, mark)) for mark in marks] == [len(with_class(usual, mark)) for mark in marks]


@every_chart
def test_text_does_not_leave_the_chart(chart: Chart) -> None:
    """By a generous estimate: no letter that is drawn is wider than its size."""
    root = read(chart(["WWWWWWWWWW mmmm " * 60]))
    wide = numbers(root.get("viewBox"))[2]
    assert max(map(len, texts(root))) * 11 <= 1.6 * wide


@every_chart
def test_the_same_arguments_give_the_same_text(chart: Chart) -> None:
    assert chart(["a", "b"]) == chart(["a", "b"])
    assert chart(["a", "b"]) != chart(["a", "c"])


@every_chart
def test_every_class_is_in_the_stylesheet(chart: Chart) -> None:
    known = set(re.findall(r"\.(rn-[a-z0-9-]+)", CSS))
    used = {name for each in read(chart(["a"])).iter() for name in each.get("class", "").split()}
    assert used - known <= {"rn-bars", "rn-lines", "rn-nodes"}  # for the page to tell kinds of charts apart


@every_chart
def test_a_file_of_its_own_has_the_stylesheet_a_margin_and_a_size(chart: Chart) -> None:
    inside = chart(['viewBox="0 0 1 1" <a>'])
    text = standalone(inside)
    assert text.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<svg ')
    root = read(text)
    assert root[0].tag == f"{SVG}style"
    assert (root[0].text or "").startswith(CSS)
    _, _, wide, tall = numbers(read(inside).get("viewBox"))
    assert numbers(root.get("viewBox")) == pytest.approx([-16, -16, wide + 32, tall + 32], abs=0.01)
    assert [float(root.attrib[name]) for name in ("width", "height")] == pytest.approx([wide + 32, tall + 32], abs=0.01)
    without = [each.tag for each in root.iter() if each is not root[0]]
    assert without == [each.tag for each in read(inside).iter()]


@pytest.mark.parametrize("text", ["", "<svg></svg>", "<html>", '<svg viewBox="0 0 a b">'])
def test_only_charts_become_files(text: str) -> None:
    with pytest.raises(ArgumentError, match="only charts of rarenode"):
        standalone(text)
