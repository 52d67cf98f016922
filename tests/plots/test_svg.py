"""SVG for a page: what it must not contain, that it is the same every time, and that the page's colours apply."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rarenode import Hierarchy, plots
from rarenode.plots import (
    plot_icicle,
    plot_node_scores,
    plot_precision_recall,
    plot_reliability,
    plot_scores_by_depth,
    plot_training_curve,
)
from rarenode.plots.style import DARK, HEADING, LIGHT, SMALL, STYLE, chart_style
from rarenode.plots.svg import CSS, standalone, to_svg
from rarenode.thresholds.calibration_error import Reliability
from tests.plots.hostile import HOSTILE
from tests.plots.test_bars import group

NAMES = [name for name in HOSTILE if name.strip()]
TREE = Hierarchy.from_edges([("root", name) for name in NAMES])
BINS = Reliability(np.array([0.0, 1e-3, 1.0]), np.array([1e-4, 0.5]), np.array([1e-3, 0.25]), np.array([4, 4]))
CHARTS: dict[str, Callable[[], Axes]] = {
    "bars": lambda: plot_scores_by_depth({name: {0: group(1), 1: group(3, recall=0.2)} for name in NAMES[:8]}),
    "precision and recall": lambda: plot_precision_recall(
        {n: [1, 0.5, 0.25] for n in NAMES[:8]}, points={NAMES[0]: (0.5, 0.5)}
    ),
    "reliability": lambda: plot_reliability(dict.fromkeys(NAMES[:8], BINS)),
    "training": lambda: plot_training_curve({name: ([1, 2, 3], [0.5, np.nan, 0.25]) for name in NAMES[:8]}),
    "map": lambda: plot_icicle(TREE, np.linspace(0, 1, len(TREE))),
    "node scores": lambda: plot_node_scores(TREE, {n: np.linspace(0, 1, len(TREE)) for n in NAMES[:8]}),
}
DRAWN = {"svg", "g", "path", "text", "title"}
ATTRIBUTES = {
    *("d", "x", "y", "class", "transform", "fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-dashoffset"),
    *("stroke-linecap", "stroke-linejoin", "stroke-opacity", "fill-opacity", "opacity", "text-anchor", "font-weight"),
    *("viewBox", "role", "aria-label"),
}


def svg_of(chart: str) -> str:
    with chart_style():
        figure = CHARTS[chart]().figure
        assert isinstance(figure, Figure)
        return to_svg(figure, NAMES[0], NAMES[1])


def read(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(svg.encode("utf-8"))


@pytest.mark.parametrize("chart", CHARTS)
class TestEveryChart:
    def test_it_has_nothing_that_a_strict_policy_forbids(self, chart: str) -> None:
        svg = svg_of(chart)
        for element in read(svg).iter():
            assert element.tag.removeprefix("{http://www.w3.org/2000/svg}") in DRAWN
            assert set(element.attrib) <= ATTRIBUTES
        assert not re.search(r"url\(|href|javascript:(?=[^<]*>)|<!|<\?", svg)
        assert svg.count("http") == 1  # the namespace

    def test_every_colour_is_one_that_the_page_replaces(self, chart: str) -> None:
        for element in read(svg_of(chart)).iter():
            for name in ("fill", "stroke"):
                value = element.get(name)
                if value not in (None, "none"):
                    role = next(role for role, colour in LIGHT.items() if colour == value)
                    assert f'.rn-chart [{name}="{value}"]{{{name}:var(--rn-{role})}}' in CSS
            if element.tag.endswith("text"):
                assert element.get("fill") not in (None, "none")

    def test_it_is_an_image_with_a_title_and_a_description(self, chart: str) -> None:
        root = read(svg_of(chart))
        assert root.get("role") == "img"
        assert root[0].tag.endswith("title")
        assert root[0].text == NAMES[0]
        assert root.get("aria-label") == f"{NAMES[0]}. {NAMES[1]}"

    def test_text_is_text_of_three_sizes(self, chart: str) -> None:
        texts = [each for each in read(svg_of(chart)).iter() if each.tag.endswith("}text")]
        assert len(texts) > 5
        assert {each.get("class") for each in texts} <= {"rn-heading", "rn-text", "rn-small"}
        assert all((each.text or "").isprintable() for each in texts)
        assert "$\\frac{1}{0}$" in " ".join(each.text or "" for each in texts) or chart in ("map", "node scores")

    def test_it_is_the_same_every_time(self, chart: str) -> None:
        assert svg_of(chart) == svg_of(chart)

    def test_the_file_of_its_own_has_a_style_sheet_and_a_size(self, chart: str) -> None:
        inside = svg_of(chart)
        alone = standalone(inside)
        assert alone.startswith('<?xml version="1.0" encoding="UTF-8"?>\n<svg ')
        root = read(alone)
        _, _, wide, tall = map(float, read(inside).attrib["viewBox"].split())
        assert [float(v) for v in root.attrib["viewBox"].split()] == pytest.approx([-16, -16, wide + 32, tall + 32])
        assert [float(root.attrib[name]) for name in ("width", "height")] == pytest.approx([wide + 32, tall + 32])
        title, style, paper, *drawn = root
        assert (title.text, (style.text or "").startswith(CSS)) == (NAMES[0], True)
        assert paper.get("fill") == LIGHT["paper"]
        assert len(drawn) == len(read(inside)) - 1


def test_positions_are_those_of_matplotlib() -> None:
    """A line from corner to corner and marks at its ends, in a figure whose points are known."""
    with chart_style():
        figure = Figure(figsize=(200 / 72, 100 / 72), dpi=72)
        ax = figure.add_axes((0.1, 0.2, 0.8, 0.6))
        ax.plot([0, 1], [0, 1], color=LIGHT["1"], marker="o", clip_on=False)
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1)
        ax.text(0.5, 0.5, "middle", ha="center", va="baseline")
        ax.text(0.5, 0.5, "turned", ha="right", va="center", rotation=90, rotation_mode="anchor")
        root = read(to_svg(figure, "title", ""))
    paths = [each for each in root.iter() if each.get("stroke") == LIGHT["1"]]
    assert paths[0].get("d") == "M20 80L180 20"
    assert [path.get("transform") for path in paths[1:]] == ["translate(20 80)", "translate(180 20)"]
    texts = {each.text: each for each in root.iter() if each.tag.endswith("}text")}
    assert (texts["middle"].get("x"), texts["middle"].get("y")) == ("100", "50")
    assert texts["middle"].get("text-anchor") == "middle"
    assert texts["middle"].get("transform") is None
    assert (texts["turned"].get("transform") or "").startswith("rotate(-90 ")
    assert root.get("viewBox") == "0 0 200 100"


def test_opacities_keep_two_digits() -> None:
    with chart_style():
        figure = Figure()
        figure.add_axes((0, 0, 1, 1)).plot([0, 1], [0, 1], alpha=0.07, color=LIGHT["2"])
        opacities = {each.get("stroke-opacity") for each in read(to_svg(figure, "title", "")).iter()}
    assert opacities == {None, "0.07"}


def test_sizes_that_have_no_class_stay() -> None:
    with chart_style():
        figure = Figure()
        figure.text(0.5, 0.5, "odd", fontsize=9)
        figure.text(0.5, 0.5, "small", fontsize=SMALL)
        figure.text(0.5, 0.5, "heading", fontsize=HEADING)
        texts = {e.text: e for e in read(to_svg(figure, "title", "")).iter() if e.tag.endswith("}text")}
    assert texts["odd"].get("font-size") == "9px"
    assert texts["small"].get("class") == "rn-small"
    assert texts["heading"].get("class") == "rn-heading"


def test_a_page_can_set_every_property_and_the_theme() -> None:
    assert CSS.count("{") == CSS.count("}")
    for name in LIGHT:
        assert f"--rn-{name}:{LIGHT[name]};" in CSS
        assert f"--rn-{name}:{DARK[name]};" in CSS
        assert f"fill:var(--rn-{name})" in CSS
    assert "@media (prefers-color-scheme:dark){:where(:root:not([data-theme=light])){" in CSS
    assert "\n:where(:root[data-theme=dark]){" in CSS
    assert "<" not in CSS  # it stands in a style element
    assert "url(" not in CSS


def test_the_style_uses_the_palette_alone() -> None:
    colours = {value for value in STYLE.values() if isinstance(value, str) and value.startswith("#")}
    assert colours <= set(LIGHT.values())


def test_the_library_is_imported_without_matplotlib_and_charts_without_pyplot() -> None:
    said = "import sys, rarenode; assert 'matplotlib' not in sys.modules; import rarenode.plots; "
    said += "assert 'matplotlib.pyplot' not in sys.modules"
    subprocess.run([sys.executable, "-c", said], check=True)


def test_public_names_are_pinned() -> None:
    assert set(plots.__all__) == {
        *("plot_icicle", "plot_node_scores", "plot_precision_recall", "plot_reliability"),
        *("plot_scores_by_depth", "plot_scores_by_rarity", "plot_training_curve"),
    }
    assert all(callable(getattr(plots, name)) for name in plots.__all__)
