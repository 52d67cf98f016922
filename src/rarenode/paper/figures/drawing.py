"""`draw`: a figure's numbers as an SVG and a PNG.

One image, charts side by side, one legend for all of them: a label has the same colour and marker in every chart. The
colours are those of Okabe and Ito, which people with any common kind of colour blindness can tell apart.

The same numbers give the same bytes: no date, fixed identifiers, and matplotlib's own defaults rather than the user's.
Names come from files that anyone may have written. They are drawn as plain text, never as formulas, without characters
that do not print, and shortened where they would push the drawing aside.
"""

from __future__ import annotations

import math
import string
import textwrap
import warnings
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import matplotlib.style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from rarenode._io.files import replacing
from rarenode._io.text import counted
from rarenode.errors import ArgumentError
from rarenode.paper.comparison.scores import Estimate
from rarenode.paper.figures.charts import Chart, FigureData
from rarenode.paper.figures.text import GREY, INK, plain
from rarenode.paper.figures.tree_drawing import draw_tree, tree_size
from rarenode.paper.panel import COMPARED, SWEPT

Dash = Literal["-", "--", "-.", ":"]

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, without the yellow, which is too pale for a line on white."""
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">")
"""Their number and that of the colours have no common divisor, so that pairs repeat late."""
DASHES: tuple[Dash, ...] = ("-", "--", "-.", ":")
STYLE: dict[str, Any] = {
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "rarenode",
    "text.parse_math": False,
    "figure.constrained_layout.w_pad": 0.1,
    "figure.constrained_layout.h_pad": 0.1,
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "lines.markersize": 4.5,
}
UNMARKED, LOGARITHMIC = frozenset({"curves"}), frozenset({"reliability"})
"""Kinds of charts whose lines have too many points for marks, and whose axes are logarithmic."""
TREE = "hierarchy"
UNLABELLED = frozenset({"methods", TREE})
"""Kinds of charts whose lines are not in the legend."""
DECADES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0)
"""The ticks of logarithmic axes, which begin at the first; a share of 0 is below them."""
DPI = 150
DEVIATION = "± one deviation"
LONGEST_TITLE, LONGEST_NOTE = 90, 500
NARROWEST_TICKS = 1 / 16
"""Swept values get ticks of their own, unless two are closer than this part of the axis: labels would touch."""
NOTE_SIZE, LINE_SPACING = 7.5, 1.35
ROOM_FOR_NAMES, ROOM_FOR_NUMBERS = 2.3, 0.7
"""Inches beside a chart."""
ROOM_BESIDE_TREE, ROOM_ABOVE_TREE = 0.3, 0.75
"""Inches; the latter with the title."""


def draw(figure: FigureData, folder: Path, stem: str) -> tuple[Path, Path]:
    """Write ``FOLDER/STEM.svg`` and ``FOLDER/STEM.png``; return their paths.

    Raises:
        ArgumentError: they cannot be written.
    """
    svg, png = folder / f"{stem}.svg", folder / f"{stem}.png"
    with matplotlib.style.context(["default", STYLE]), warnings.catch_warnings():
        # a PNG shows a box for what the font lacks; the text of the SVG is whole
        for problem in ("Glyph .* missing from font", "Matplotlib currently does not support .* natively"):
            warnings.filterwarnings("ignore", message=problem, category=UserWarning)
        drawn = _drawn(figure)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            with replacing(svg, png) as (new_svg, new_png):
                metadata = {"Date": None, "Title": plain(figure.title, LONGEST_TITLE)}
                drawn.savefig(new_svg, format="svg", metadata=metadata)
                drawn.savefig(new_png, format="png", dpi=DPI)
        except OSError as error:
            raise ArgumentError(f"the figure cannot be kept in {folder}: {error}") from None
    return svg, png


def _drawn(figure: FigureData) -> Figure:
    charts = figure.charts
    others = [chart for chart in charts if chart.kind != TREE]
    columns = min(max(1, len(others)), 2 if {TREE, "nodes"} & {chart.kind for chart in charts} else 4)
    if len(others) > columns and len(others) % columns == 1:
        columns = min(3, columns)  # rather 3 + 2 than 4 + 1
    # methods need naming only once where all charts show the same
    shared = columns > 1 and len({(chart.kind, chart.names) for chart in charts}) == 1 and charts[0].kind == "methods"
    across = max((_across(chart) for chart in others), default=0.0)
    margin = ROOM_FOR_NAMES if any(chart.kind == "methods" for chart in charts) else ROOM_FOR_NUMBERS
    width = columns * across + margin * (1 if shared else columns) if others else 0.0
    width = max([width, *(tree_size(chart)[0] + ROOM_BESIDE_TREE for chart in charts if chart.kind == TREE)])
    heads = [
        _head(chart, width if chart.kind == TREE else across, index if len(charts) > 1 else None)
        for index, chart in enumerate(charts)
    ]
    handles = _legend(charts)
    legend_rows = math.ceil(len(handles) / max(1, int(width / 1.7)))
    rows = _rows(charts, columns)
    heights = _heights(charts, [note for _, note in heads], rows)
    drawn = Figure(figsize=(width, sum(heights) + 0.45 + 0.2 * legend_rows), layout="constrained")
    are = "is" if figure.missing == 1 else "are"
    total = counted(figure.trainings, "training")
    missing = f" ({figure.missing} of {total} {are} missing)" if figure.missing else ""
    title = textwrap.wrap(plain(figure.title, LONGEST_TITLE) + missing, int(width * 11))
    drawn.suptitle("\n".join(title), fontsize=11, color=INK)
    labels = _labels(charts)
    places = GridSpec(len(rows), columns, figure=drawn, height_ratios=heights)
    for place, index in ((place, index) for place, row in enumerate(rows) for index in row):
        chart, (head, note), column = charts[index], heads[index], index - rows[place][0]
        axes = drawn.add_subplot(places[place, :] if chart.kind == TREE else places[place, column])
        _draw_head(axes, head, note)
        if not chart.lines:
            axes.set_axis_off()
        elif chart.tree is not None:
            draw_tree(axes, chart, chart.tree)
        elif chart.kind == "methods":
            _draw_rows(axes, chart, named=column == 0 or not shared)
        elif chart.kind in UNMARKED | LOGARITHMIC:
            _draw_curves(axes, chart, labels)
        else:
            _draw_lines(axes, chart, labels)
    if handles:
        legend_columns = math.ceil(len(handles) / legend_rows)
        drawn.legend(handles=handles, loc="outside lower center", ncols=legend_columns, fontsize=8.5)
    return drawn


def _rows(charts: Sequence[Chart], columns: int) -> list[list[int]]:
    """Charts side by side; a tree has a row of its own."""
    rows: list[list[int]] = []
    for index, chart in enumerate(charts):
        alone = TREE in (chart.kind, charts[max(0, index - 1)].kind)
        if not rows or alone or len(rows[-1]) == columns:
            rows.append([])
        rows[-1].append(index)
    return rows


def _heights(charts: Sequence[Chart], notes: Sequence[Sequence[str]], rows: Sequence[Sequence[int]]) -> list[float]:
    """The height of each row in inches: that of its tree, or of the tallest of all other charts."""
    line = NOTE_SIZE * LINE_SPACING / 72
    upright = [_upright(chart) + line * len(note) for chart, note in zip(charts, notes, strict=True)]
    tallest = max((high for chart, high in zip(charts, upright, strict=True) if chart.kind != TREE), default=0.0)
    return [upright[first] if charts[first].kind == TREE else tallest for first, *_ in rows]


def _across(chart: Chart) -> float:
    """The width of a chart in inches, without names and numbers beside it."""
    if chart.kind in SWEPT:
        return 3.8
    return max(3.8, 0.27 * len(chart.positions)) if chart.kind == "nodes" else 2.9 if chart.kind == "methods" else 2.8


def _upright(chart: Chart) -> float:
    """The height of a chart in inches, with what is above and below it."""
    if chart.kind == TREE:
        return tree_size(chart)[1] + ROOM_ABOVE_TREE
    if chart.kind == "methods":
        return 1.2 + 0.27 * max(3, len(chart.positions))
    return 3.4 if chart.kind in SWEPT else 4.2 if chart.kind == "nodes" else 3.0


def panel_letter(index: int) -> str:
    """The letter of a panel, or letters beyond the alphabet.

    >>> panel_letter(0), panel_letter(25), panel_letter(26)
    ('a', 'z', 'aa')
    """
    rounds, place = divmod(index, len(string.ascii_lowercase))
    return (panel_letter(rounds - 1) if rounds else "") + string.ascii_lowercase[place]


def _head(chart: Chart, across: float, index: int | None) -> tuple[str, list[str]]:
    """The title with its letter, and the note in lines."""
    letter = "" if index is None else f"{panel_letter(index)}) "
    title = textwrap.wrap(letter + plain(chart.title, LONGEST_TITLE), int(across * 13))
    return "\n".join(title), textwrap.wrap(plain(chart.note, LONGEST_NOTE), int(across * 17))


def _draw_head(axes: Axes, title: str, note: Sequence[str]) -> None:
    axes.set_title(title, loc="left", fontsize=10, color=INK, pad=6 + len(note) * NOTE_SIZE * LINE_SPACING)
    below = axes.annotate(
        "\n".join(note),
        xy=(0, 1),
        xycoords="axes fraction",
        xytext=(0, 5),
        textcoords="offset points",
        fontsize=NOTE_SIZE,
        color=GREY,
        va="bottom",
        linespacing=1.2,
    )
    below.set_in_layout(False)  # the title keeps its room, and its width must not narrow the chart


def _draw_lines(axes: Axes, chart: Chart, labels: Sequence[str]) -> None:
    """Values upwards over positions: a sweep, or nodes."""
    for line in chart.lines:
        colour, marker, dash = _look(labels.index(line.label))
        x, means, deviations = _known(chart, line.ours, gaps=True)
        lower = [mean - deviation for mean, deviation in zip(means, deviations, strict=True)]
        upper = [mean + deviation for mean, deviation in zip(means, deviations, strict=True)]
        if chart.kind in SWEPT and _has_deviation(line.ours):
            axes.fill_between(x, lower, upper, color=colour, alpha=0.15, linewidth=0)
        axes.plot(
            x, means, color=colour, marker=marker, linestyle=dash, linewidth=0.9 if chart.kind == "nodes" else None
        )
        if any(line.published):
            x, means, deviations = _known(chart, line.published, gaps=False)
            bars = deviations if _has_deviation(line.published) else None
            axes.errorbar(x, means, yerr=bars, zorder=3, **_open(colour, marker))
    axes.set_ylabel(chart.scale)
    axes.grid(visible=True)
    lowest, highest = axes.get_ylim()
    if chart.kind in COMPARED:
        axes.axhline(0, color=GREY, linewidth=1.0, zorder=1)
    elif chart.kind == "nodes" or lowest < 0:
        axes.set_ylim(-0.02 * highest, highest)  # marks at 0, which rare nodes have, stay whole
    axes.set_xlabel(plain(chart.axis))
    if chart.names is not None:
        axes.set_xticks(chart.positions, [plain(name, 24) for name in chart.names], rotation=90)
        axes.tick_params(axis="x", length=0)
        return
    logarithms = [math.log(position) for position in chart.positions] if min(chart.positions) > 0 else []
    apart = _far_apart(chart.positions)
    if not apart and logarithms and _far_apart(logarithms):
        axes.set_xscale("log")
        axes.minorticks_off()
        apart = True
    if apart:
        axes.set_xticks(chart.positions, [f"{position:g}" for position in chart.positions])


def _draw_curves(axes: Axes, chart: Chart, labels: Sequence[str]) -> None:
    """Lines that begin and end where they like: precision over recall, or shares over probabilities."""
    logarithmic = chart.kind in LOGARITHMIC
    for line in chart.lines:
        colour, marker, dash = _look(labels.index(line.label))
        x = chart.positions if line.positions is None else line.positions
        y = [math.nan if point is None else point.mean for point in line.ours]
        axes.plot(x, y, color=colour, linestyle=dash, marker=marker if logarithmic else None, markersize=3)
    if logarithmic:
        axes.loglog([DECADES[0], 1], [DECADES[0], 1], color=GREY, linewidth=0.8, zorder=1)  # as good as can be
        axes.minorticks_off()
        labels_of_ticks = [f"{decade:g}" for decade in DECADES]
        axes.set_xticks(DECADES, labels_of_ticks)
        axes.set_yticks(DECADES, labels_of_ticks)
        axes.set_xlim(DECADES[0], 1)
        axes.set_ylim(DECADES[0], 1)
    else:
        axes.set_xlim(0, 100)
        axes.set_ylim(0, None)
    axes.set_xlabel(plain(chart.axis))
    axes.set_ylabel(chart.scale)
    axes.grid(visible=True)


def _draw_rows(axes: Axes, chart: Chart, named: bool) -> None:
    """Values to the right, a row for each method: names of methods are long, and this way nothing is rotated."""
    (line,) = chart.lines
    aside = [0.14 if published and ours else 0.0 for published, ours in zip(line.published, line.ours, strict=True)]
    filled: dict[str, Any] = {"color": COLOURS[0], "fmt": "o", "markersize": 5, "elinewidth": 1.2}
    for points, side, look in ((line.published, -1, _open(GREY, "D")), (line.ours, 1, filled)):
        rows, means, deviations = _known(chart, points, gaps=False)
        shifted = [row + side * aside[int(row)] for row in rows]
        axes.errorbar(means, shifted, xerr=deviations if _has_deviation(points) else None, **look)
    count = len(chart.positions)
    axes.set_ylim(count - 0.5, -0.5)
    axes.set_yticks(chart.positions, [plain(name) for name in chart.names or ()] if named else [""] * count)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel(chart.scale)
    axes.margins(x=0.08)
    axes.grid(visible=True)


def _far_apart(positions: Sequence[float]) -> bool:
    gaps = [after - before for before, after in pairwise(positions)]
    return not gaps or min(gaps) >= NARROWEST_TICKS * (positions[-1] - positions[0])


def _known(chart: Chart, points: Sequence[Estimate | None], gaps: bool) -> tuple[list[float], list[float], list[float]]:
    """Positions, means and deviations, with NaN for what is not there, or without it."""
    pairs = [(at, point) for at, point in zip(chart.positions, points, strict=True) if gaps or point is not None]
    return (
        [at for at, _ in pairs],
        [math.nan if point is None else point.mean for _, point in pairs],
        [math.nan if point is None or point.deviation is None else point.deviation for _, point in pairs],
    )


def _has_deviation(points: Sequence[Estimate | None]) -> bool:
    return any(point is not None and point.deviation is not None for point in points)


def _look(index: int) -> tuple[str, str, Dash]:
    dash = DASHES[index // len(COLOURS) % len(DASHES)]
    return COLOURS[index % len(COLOURS)], MARKERS[index % len(MARKERS)], dash


def _open(colour: str, marker: str) -> dict[str, Any]:
    """How a published value looks."""
    return {"color": colour, "fmt": marker, "markerfacecolor": "white", "markersize": 6, "elinewidth": 0.9}


def _labels(charts: Sequence[Chart]) -> list[str]:
    return list(dict.fromkeys(line.label for chart in charts if chart.kind not in UNLABELLED for line in chart.lines))


def _legend(charts: Sequence[Chart]) -> list[Artist]:
    """Every label once, and what open marks and deviations look like, where there are any."""
    handles: list[Artist] = []
    unmarked = {line.label for chart in charts if chart.kind in UNMARKED for line in chart.lines}
    for index, label in enumerate(_labels(charts)):
        colour, marker, dash = _look(index)
        shape = "" if label in unmarked else marker
        handles.append(Line2D([], [], color=colour, marker=shape, linestyle=dash, label=_legend_label(label)))
    swept = [line for chart in charts if chart.kind in SWEPT for line in chart.lines]
    methods = [line for chart in charts if chart.kind == "methods" for line in chart.lines]
    if any(point for line in swept + methods for point in line.published):
        if methods:
            handles.append(Line2D([], [], color=COLOURS[0], marker="o", linestyle="", label="ours"))
        look: dict[str, Any] = {"marker": "D" if methods else "o", "markerfacecolor": "white", "linestyle": ""}
        handles.append(Line2D([], [], color=GREY, label="published", **look))
    if any(_has_deviation(line.ours) for line in swept):
        handles.append(Patch(color=GREY, alpha=0.25, linewidth=0, label=DEVIATION))
    elif any(_has_deviation(points) for line in methods for points in (line.ours, line.published)):
        handles.append(Line2D([], [], color=GREY, label=DEVIATION))
    return handles


def _legend_label(label: str) -> str:
    """matplotlib leaves labels out that begin with an underscore; a space without width before it prevents that."""
    return plain(label) if not label.startswith("_") else f"\u200b{plain(label)}"
