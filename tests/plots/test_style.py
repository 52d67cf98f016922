"""The palette, for people with and without colour blindness, in light and in dark; and the style as a context."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from itertools import combinations

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from rarenode import Hierarchy
from rarenode.errors import ArgumentError
from rarenode.metrics import summary_by_rarity
from rarenode.plots import plot_icicle, plot_precision_recall, plot_scores_by_rarity, plot_training_curve
from rarenode.plots.node_scores import STRONGEST, WEAKEST
from rarenode.plots.style import DARK, DASHES, LIGHT, MARKERS, SERIES, STYLE, chart_style, check_series, legend_height

NAMES = ("baseline", "a method with a name that is much longer than the chart is wide")
Colour = npt.NDArray[np.float64]
SEEN = {
    "by most": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "without red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "without green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "without blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}
"""What becomes of linear RGB: Machado, Oliveira and Fernandes (2009), severity 1."""
LMS = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
LAB = (
    (0.2104542553, 0.793617785, -0.0040720468),
    (1.9779984951, -2.428592205, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.808675766),
)
"""From linear RGB to Oklab, where distances are about those that are seen (Ottosson, 2020)."""

themes = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


def rgb(name: str) -> Colour:
    return np.array([int(name[at : at + 2], 16) / 255 for at in (1, 3, 5)])


def linear(colour: Colour) -> Colour:
    return np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)


def oklab(colour: Colour) -> Colour:
    return np.asarray(np.array(LAB) @ np.cbrt(np.array(LMS) @ np.clip(colour, 0, 1)))


def contrast(one: Colour, other: Colour) -> float:
    """WCAG 2: the ratio of luminances, with a little light added to both."""
    first, second = (float(linear(colour) @ (0.2126, 0.7152, 0.0722)) + 0.05 for colour in (one, other))
    return max(first, second) / min(first, second)


@themes
@pytest.mark.parametrize("eyes", SEEN)
def test_everyone_can_distinguish_series(theme: Mapping[str, str], eyes: str) -> None:
    seen = {index: oklab(np.array(SEEN[eyes]) @ linear(rgb(theme[str(index)]))) for index in range(1, 9)}
    for (one, first), (other, second) in combinations(seen.items(), 2):
        distance = float(np.linalg.norm(first - second))
        assert distance > (0.12 if other <= 4 else 0.075), (one, other)


@themes
def test_colours_stand_out_from_the_paper(theme: Mapping[str, str]) -> None:
    paper = rgb(theme["paper"])
    for name in ("ink", "muted"):
        assert contrast(rgb(theme[name]), paper) >= 4.5, name  # letters
    for index in range(1, 9):
        assert contrast(rgb(theme[str(index)]), paper) >= 3, index  # lines and bars


@themes
def test_letters_in_tinted_boxes_and_on_the_map_stay_readable(theme: Mapping[str, str]) -> None:
    paper, tint, ink = (rgb(theme[name]) for name in ("paper", "tint", "ink"))
    for opacity in np.linspace(WEAKEST, STRONGEST, 20):
        assert contrast(ink, opacity * tint + (1 - opacity) * paper) >= 4.5
    for index in range(9):
        assert contrast(rgb(theme[f"on-r{index}"]), rgb(theme[f"r{index}"])) >= 4.4, index


def test_each_colour_has_one_role_and_each_role_two_colours() -> None:
    """A page replaces a light colour by the property of its role."""
    assert len(set(LIGHT.values())) == len(LIGHT)
    assert list(LIGHT) == list(DARK)
    assert {LIGHT[str(number)] for number in range(1, 9)} == set(SERIES)


def test_markers_and_dashes_differ_too() -> None:
    assert len(set(DASHES)) == len(set(MARKERS)) == len(SERIES) == 8


def test_the_style_is_that_of_the_palette_and_ends_with_its_context() -> None:
    before = dict(mpl.rcParams)
    with mpl.rc_context({"lines.linewidth": 9.0, "figure.dpi": 33.0}):
        with chart_style(**{"font.size": 5.0}):
            assert mpl.rcParams["text.color"] == STYLE["text.color"]
            assert mpl.rcParams["lines.linewidth"] == STYLE["lines.linewidth"]
            assert mpl.rcParams["figure.dpi"] == mpl.rcParamsDefault["figure.dpi"]  # not the user's
            assert mpl.rcParams["font.size"] == 5.0
        assert mpl.rcParams["lines.linewidth"] == 9.0
    assert dict(mpl.rcParams) == before


def test_one_thread_at_a_time_has_the_style() -> None:
    inside = threading.Event()

    def enter() -> None:
        with chart_style():
            inside.set()

    with chart_style():
        thread = threading.Thread(target=enter)
        thread.start()
        assert not inside.wait(0.1)
    thread.join(10)
    assert inside.is_set()


@pytest.mark.parametrize("count", [0, 9])
def test_a_chart_has_one_to_eight_series(count: int) -> None:
    with pytest.raises(ArgumentError, match=f"1 to 8 runs, got {count}"):
        check_series([str(number) for number in range(count)], "runs")


def test_longer_labels_need_more_lines_of_a_legend() -> None:
    short, long = legend_height(["a", "b", "c"]), legend_height(["a" * 40, "b" * 40, "c" * 40])
    assert long == 3 * short


def pets(ax: Axes) -> Axes:
    return plot_icicle(Hierarchy.from_edges([("pet", "cat"), ("pet", "dog")]), [1.0, 0.5, 0.0], ax=ax)


def curves(ax: Axes) -> Axes:
    return plot_precision_recall({name: [1.0, 0.5] for name in NAMES}, ax=ax)


def losses(ax: Axes) -> Axes:
    return plot_training_curve({name: ([1, 2], [0.9, 0.5]) for name in NAMES}, ax=ax)


def bars(ax: Axes) -> Axes:
    return plot_scores_by_rarity({name: summary_by_rarity([[1, 0]], [[1, 0]], [5, 2]) for name in NAMES}, ax=ax)


@pytest.mark.parametrize("plot", [pets, curves, losses, bars])
def test_nothing_is_cut_off_in_axes_of_the_user(plot: Callable[[Axes], Axes]) -> None:
    figure = Figure(figsize=(6, 7))
    axes = [figure.add_subplot(2, 2, place) for place in (1, 2, 3, 4)]
    for ax in axes:
        plot(ax)
    figure.draw_without_rendering()
    boxes = [ax.get_tightbbox() for ax in axes]
    for box in boxes:
        assert box is not None
        assert box.x0 >= figure.bbox.x0 - 1
        assert box.x1 <= figure.bbox.x1 + 1
        assert box.y0 >= figure.bbox.y0 - 1
        assert box.y1 <= figure.bbox.y1 + 1
    for one, other in combinations(boxes, 2):
        assert one is not None
        assert other is not None
        assert not one.padded(-1).overlaps(other.padded(-1))


def test_the_layout_of_a_figure_is_left_alone_if_the_user_chose_it() -> None:
    constrained, free = Figure(layout="constrained"), Figure()
    curves(constrained.add_subplot())
    assert isinstance(constrained.get_layout_engine(), ConstrainedLayoutEngine)
    curves(free.add_axes((0.2, 0.2, 0.5, 0.5)))
    assert free.get_layout_engine() is None
