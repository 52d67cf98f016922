"""The look of all charts: one palette for light and dark backgrounds, and one matplotlib style.

Charts take the colours of their series from `SERIES`, and everything else (text, grid, background) from matplotlib's
rcParams, so that a notebook's own style is respected. `chart_style` is the style of the report and of the paper's
figures. The series can be distinguished with any common kind of colour blindness; markers and dashes differ as well.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Collection, Container, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Literal

import matplotlib as mpl
import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from rarenode.errors import ArgumentError
from rarenode.plots.text import cut, legend_label, text_width

HEADING, TEXT, SMALL = 18.0, 16.0, 14.0
"""Font sizes in points for a chart that is `WIDTH` points wide: large, as a narrow screen shows it smaller."""
WIDTH = 560.0
LEGEND_LINE = 1.45
"""The height of a line of a legend, in font sizes."""
LEGEND_MARK = 3.4
"""The width of a legend's mark and of the space around its label, in font sizes."""


def _map_colours(fills: str, white_letters: Container[int], white: str, dark: str) -> dict[str, str]:
    """Fills of the map of recall and of the letters on them.

    0 is missed, 1 to 7 go up to 100 %, and 8 has no rows. Letters of equal colour differ in their last digit, so that
    each colour of the palette stands for one role.
    """
    found = {f"r{index}": fill for index, fill in enumerate(fills.split())}
    letters = {f"on-r{index}": f"{white if index in white_letters else dark}{index}" for index in range(len(found))}
    return found | letters


LIGHT: Mapping[str, str] = MappingProxyType(
    {
        "ink": "#1b1f24",
        "muted": "#5b6470",
        "grid": "#dfe3e8",
        "paper": "#ffffff",
        "tint": "#1f6fb5",
        "1": "#005bb4",
        "2": "#bf5709",
        "3": "#02a685",
        "4": "#6d2b69",
        "5": "#a89239",
        "6": "#3581a8",
        "7": "#303338",
        "8": "#ad2751",
        **_map_colours(
            "#eb5520 #aae3ef #8fc5dd #74a9cb #5a8dba #4271a8 #2a5695 #153a83 #ebedef", (5, 6, 7), "#fffff", "#11161"
        ),
    }
)
DARK: Mapping[str, str] = MappingProxyType(
    {
        "ink": "#e8eaed",
        "muted": "#a3acb8",
        "grid": "#2c323a",
        "paper": "#14171c",
        "tint": "#2f7fc4",
        "1": "#49a0ff",
        "2": "#fb8850",
        "3": "#4fe8bd",
        "4": "#b64a8d",
        "5": "#fbc94a",
        "6": "#93c3ea",
        "7": "#8b95a5",
        "8": "#dc4e55",
        **_map_colours(
            "#f96e31 #293b64 #36547b #436d91 #5187a9 #5fa2c0 #6dbed9 #7cdbf1 #2b2e32", (1, 2, 3, 8), "#fffff", "#11161"
        ),
    }
)
SERIES = tuple(LIGHT[str(number)] for number in range(1, 9))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "h")
Dash = Literal["-"] | tuple[float, tuple[float, ...]]
DASHES: tuple[Dash, ...] = (
    "-",
    (0, (3.5, 2)),
    (0, (1, 1.5)),
    (0, (5, 1.5, 1, 1.5)),
    (0, (7, 2)),
    (0, (2.5, 1, 0.75, 1, 0.75, 1)),
    (0, (2, 1)),
    (0, (0.75, 2)),
)
STYLE: Mapping[str, Any] = MappingProxyType(
    {
        "svg.fonttype": "none",  # text stays text
        "svg.hashsalt": "rarenode",
        "text.parse_math": False,
        "text.color": LIGHT["ink"],
        "figure.facecolor": LIGHT["paper"],
        "axes.facecolor": LIGHT["paper"],
        "axes.edgecolor": LIGHT["muted"],
        "axes.labelcolor": LIGHT["muted"],
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.spines.left": False,
        "axes.axisbelow": True,
        "axes.linewidth": 1.0,
        "axes.unicode_minus": True,
        "grid.color": LIGHT["grid"],
        "grid.linewidth": 1.0,
        "lines.linewidth": 2.0,
        "lines.markersize": 7.0,
        "lines.solid_capstyle": "round",
        "legend.frameon": False,
        "xtick.color": LIGHT["muted"],
        "ytick.color": LIGHT["muted"],
        "xtick.major.size": 0.0,
        "ytick.major.size": 0.0,
        "xtick.major.pad": 7.0,
        "ytick.major.pad": 7.0,
        "font.size": SMALL,
        "axes.labelsize": SMALL,
        "axes.titlesize": HEADING,
        "xtick.labelsize": SMALL,
        "ytick.labelsize": SMALL,
        "legend.fontsize": TEXT,
    }
)
_one_at_a_time = threading.RLock()


@contextmanager
def chart_style(**changes: Any) -> Iterator[None]:
    """matplotlib's defaults with `STYLE`, and with these changes of it, whatever the user's own style is.

    matplotlib's rcParams belong to the whole process: one thread at a time is inside, and meanwhile no other thread
    should draw in another style.
    """
    with _one_at_a_time, mpl.style.context(["default", dict(STYLE) | changes]), warnings.catch_warnings():
        # The text of an SVG is whole even if matplotlib's font, which only measures it, lacks a character.
        for problem in ("Glyph .* missing from font", "Matplotlib currently does not support .* natively"):
            warnings.filterwarnings("ignore", message=problem, category=UserWarning)
        yield


def axes_of(ax: Axes | None, height: float = 0.65) -> Axes:
    """``ax``, or the axes of a new figure, ``height`` as high as it is wide, that pyplot knows nothing about.

    A legend above ``ax`` and the labels beside it need room, so a figure of subplots without a layout gets a tight one.
    """
    if ax is not None:
        figure = ax.figure if isinstance(ax.figure, Figure) else ax.figure.figure  # of a subfigure
        if figure.get_layout_engine() is None and all(each.get_subplotspec() for each in figure.axes):
            figure.set_layout_engine("tight")
        return ax
    width = mpl.rcParams["figure.figsize"][0]
    return Figure(figsize=(width, width * height), layout="constrained").add_subplot()


def lay_out(ax: Axes) -> None:
    """Put the axes where the layout of the figure puts them now, for charts whose text must fit into their boxes."""
    engine = ax.figure.get_layout_engine()
    if engine is not None:
        with warnings.catch_warnings():  # of too little room or missing glyphs; drawing warns again
            warnings.simplefilter("ignore", UserWarning)
            engine.execute(ax.figure if isinstance(ax.figure, Figure) else ax.figure.figure)


def size_in_points(ax: Axes) -> tuple[float, float]:
    """The width and height of the axes; about so, before a layout has moved them."""
    points = 72 / ax.figure.dpi
    return float(ax.bbox.width * points), float(ax.bbox.height * points)


def font_size(name: Literal["font.size", "legend.fontsize", "xtick.labelsize"]) -> float:
    """A size from rcParams in points, whether it is a number there or a word such as ``large``."""
    return float(FontProperties(size=mpl.rcParams[name]).get_size_in_points())


def check_series(names: Collection[str], what: str) -> None:
    """Require 1 to 8 series, which is how many a chart can tell apart.

    Raises:
        ArgumentError: there are none, or more.
    """
    if not 1 <= len(names) <= len(SERIES):
        raise ArgumentError(f"a chart shows 1 to {len(SERIES)} {what}, got {len(names)}")


def legend_columns(labels: list[str], width: float, size: float) -> int:
    """How many labels stand side by side in a legend."""
    widest = max(text_width(label, size) for label in labels) + LEGEND_MARK * size
    return max(1, min(len(labels), int(width / widest)))


def legend_height(names: list[str], width: float = WIDTH, size: float = TEXT) -> float:
    """How high the legend of these names is above the axes, in points."""
    labels = [legend_label(name) for name in names]
    return -(-len(labels) // legend_columns(labels, width, size)) * size * LEGEND_LINE


def add_legend(ax: Axes, handles: list[Any], names: list[str], gap: float = 8.0) -> None:
    """A legend ``gap`` points above the axes, in as many columns as the labels leave room for."""
    wide, high = size_in_points(ax)
    size = font_size("legend.fontsize")
    labels = [cut(legend_label(name), wide - LEGEND_MARK * size, size) for name in names]
    legend = ax.legend(
        handles,
        labels,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0 + gap / high),
        ncols=legend_columns(labels, wide, size),
        borderaxespad=0.0,
        borderpad=0.0,
        columnspacing=1.0,
        handlelength=1.9,
        handletextpad=0.5,
        labelspacing=LEGEND_LINE - 1.0,
        frameon=False,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)
