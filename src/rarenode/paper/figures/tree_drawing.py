"""`draw_tree`: a hierarchy from left to right, a box for each node, with a cell for each method in it.

Everything is measured in inches, which are the units of the axes. The colours of cells are those of the map of nodes in
the report (`rarenode.plots.plot_icicle`): orange is 0, and the darker the blue, the higher the score.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from rarenode._io.text import counted
from rarenode.paper.comparison.scores import Estimate
from rarenode.paper.figures.charts import Chart, Tree
from rarenode.paper.figures.text import GREY, INK, plain
from rarenode.plots.icicle import BOUNDS, MISSED, UNKNOWN
from rarenode.plots.style import LIGHT

NAME_WIDTH, CELL_WIDTH, CELL_HEIGHT, PADDING = 1.5, 0.4, 0.22, 0.06
BETWEEN_LEVELS, BETWEEN_ROWS = 0.36, 0.13
LETTER, SMALL = 7.5, 7.0
"""Font sizes."""
LINE, PER_LINE, MOST_LINES = 0.135, 21, 3
"""The height of a line of a name, its characters, and how many there may be."""
KEY_HEIGHT, KEY_GAP, BELOW = 0.22, 0.2, 0.2
SCALE = ("0", "above 0", *(f"{round(100 * bound)}" for bound in BOUNDS))
"""What the colours of cells begin at."""


def tree_size(chart: Chart) -> tuple[float, float]:
    """Width and height of a chart in inches, with its key; of one without a tree, room for the note."""
    if chart.tree is None:
        return 0.0, 0.2
    levels, leaves = max(_depths(chart.tree)) + 1, sum(count == 0 for count in _children(chart.tree))
    width = levels * _box_width(chart) + (levels - 1) * BETWEEN_LEVELS
    rows, _ = _grid(len(chart.lines))
    return width, leaves * _pitch(chart) + KEY_GAP + KEY_HEIGHT * (rows + 1) + BELOW


def draw_tree(axes: Axes, chart: Chart, tree: Tree) -> None:
    """Draw the boxes, what joins them, and below them what the cells and colours mean."""
    width, height = tree_size(chart)
    places = _places(chart, tree)
    for (left, middle), parent in zip(places, tree.parents, strict=True):
        if parent is not None:
            right, above = places[parent][0] + _width_of(chart, tree, parent), places[parent][1]
            bend = left - BETWEEN_LEVELS / 2
            axes.plot([right, bend, bend, left], [above, above, middle, middle], color=GREY, linewidth=0.8, zorder=1)
    for node, (left, middle) in enumerate(places):
        _draw_box(axes, chart, tree, node, left, middle)
    _draw_key(axes, chart, height - BELOW - KEY_HEIGHT * (_grid(len(chart.lines))[0] + 1), width)
    axes.set_xlim(-0.02, width + 0.02)
    axes.set_ylim(height, -0.02)
    axes.set_aspect("equal", anchor="NW")
    axes.set_axis_off()


def wrapped(name: str) -> list[str]:
    """A name in a few short lines, broken after spaces, underscores, slashes and hyphens where it has any.

    >>> wrapped("echinoderm_larva_seastar_bipinnaria")
    ['echinoderm_larva_', 'seastar_bipinnaria']
    """
    lines = [""]
    for word in re.findall(r"[^\s_/-]*[\s_/-]*", plain(name, 200)):
        for start in range(0, len(word), PER_LINE):
            piece = word[start : start + PER_LINE]
            if len((lines[-1] + piece).rstrip()) > PER_LINE:
                lines.append("")
            lines[-1] += piece
    shown = [line.rstrip() for line in lines if line.strip()]
    return shown if len(shown) <= MOST_LINES else [*shown[: MOST_LINES - 1], plain("".join(lines[2:]), PER_LINE)]


def _draw_box(axes: Axes, chart: Chart, tree: Tree, node: int, left: float, middle: float) -> None:
    """The name of a node and its training rows, and the cells on the right."""
    high = _box_height(chart)
    top = middle - high / 2
    _draw_rectangle(axes, (left, top), (_width_of(chart, tree, node), high), LIGHT["paper"], GREY)
    lines = wrapped((chart.names or ())[node])
    first = middle - LINE * len(lines) / 2
    for number, text in enumerate([*lines, counted(tree.rows[node], "row")]):
        is_name = number < len(lines)
        axes.text(
            left + PADDING,
            first + number * LINE,
            text,
            fontsize=LETTER if is_name else SMALL,
            color=INK if is_name else GREY,
            va="center",
        )
    if not tree.scored[node]:
        return
    rows, columns = _grid(len(chart.lines))
    start = top + (high - rows * CELL_HEIGHT) / 2
    for number, line in enumerate(chart.lines):
        x = left + NAME_WIDTH + number % columns * CELL_WIDTH
        _draw_cell(axes, line.ours[node], x, start + number // columns * CELL_HEIGHT)


def _draw_cell(axes: Axes, score: Estimate | None, left: float, top: float) -> None:
    which = _colour(score)
    _draw_rectangle(axes, (left, top), (CELL_WIDTH, CELL_HEIGHT), LIGHT[f"r{which}"], LIGHT["paper"])
    text = "-" if score is None else f"{score.mean:.1f}"
    at = left + CELL_WIDTH / 2, top + CELL_HEIGHT / 2
    axes.text(*at, text, fontsize=SMALL, color=LIGHT[f"on-r{which}"], ha="center", va="center_baseline")


def _draw_key(axes: Axes, chart: Chart, top: float, width: float) -> None:
    """The methods, placed as the cells are, and the scores at which colours begin."""
    _, columns = _grid(len(chart.lines))
    across = (width - NAME_WIDTH / 2) / columns
    at = top + KEY_HEIGHT / 2
    axes.text(0, at, "cells:", fontsize=SMALL, color=GREY, va="center")
    for number, line in enumerate(chart.lines):
        left, upper = NAME_WIDTH / 2 + number % columns * across, top + number // columns * KEY_HEIGHT
        _draw_rectangle(axes, (left, upper), (across, KEY_HEIGHT), LIGHT["paper"], LIGHT["grid"])
        name = plain(line.label, max(8, int(across * 18)))
        axes.text(left + PADDING, upper + KEY_HEIGHT / 2, name, fontsize=SMALL, color=INK, va="center")
    rows, _ = _grid(len(chart.lines))
    lower = top + rows * KEY_HEIGHT + 0.04
    at = lower + KEY_HEIGHT / 2
    axes.text(0, at, plain(chart.scale), fontsize=SMALL, color=GREY, va="center")
    step = (width - NAME_WIDTH / 2) / len(SCALE)
    for number, begin in enumerate(SCALE):
        left = NAME_WIDTH / 2 + number * step
        _draw_rectangle(axes, (left, lower), (step, KEY_HEIGHT), LIGHT[f"r{number}"], LIGHT["paper"])
        letters = LIGHT[f"on-r{number}"]
        axes.text(left + step / 2, at, begin, fontsize=SMALL, color=letters, ha="center", va="center_baseline")


def _draw_rectangle(
    axes: Axes, place: tuple[float, float], size: tuple[float, float], fill: str, edge: str
) -> None:
    axes.add_patch(Rectangle(place, *size, facecolor=fill, edgecolor=edge, linewidth=0.8, zorder=2))


def _colour(score: Estimate | None) -> int:
    """The class of a score in percent, as in the map of nodes."""
    if score is None:
        return UNKNOWN
    return 1 + bisect_right(BOUNDS, score.mean / 100) if score.mean > 0 else MISSED


# --- where everything is -------------------------------------------------------------------------------------------


def _grid(methods: int) -> tuple[int, int]:
    """Rows and columns of the cells: 2 x 2 for four methods."""
    columns = math.ceil(math.sqrt(methods))
    return math.ceil(methods / columns), columns


def _box_width(chart: Chart) -> float:
    return NAME_WIDTH + _grid(len(chart.lines))[1] * CELL_WIDTH + PADDING


def _width_of(chart: Chart, tree: Tree, node: int) -> float:
    return _box_width(chart) if tree.scored[node] else NAME_WIDTH


def _box_height(chart: Chart) -> float:
    lines = 1 + max(len(wrapped(name)) for name in chart.names or ("",))
    return max(_grid(len(chart.lines))[0] * CELL_HEIGHT, lines * LINE) + PADDING


def _pitch(chart: Chart) -> float:
    return _box_height(chart) + BETWEEN_ROWS


def _places(chart: Chart, tree: Tree) -> list[tuple[float, float]]:
    """The left edge and the middle of each box: leaves equally far apart, a parent in the middle of its children."""
    below: list[list[int]] = [[] for _ in tree.parents]
    for node, parent in enumerate(tree.parents):
        if parent is not None:
            below[parent].append(node)
    order: list[int] = []
    waiting = [node for node, parent in reversed(list(enumerate(tree.parents))) if parent is None]
    while waiting:
        order.append(waiting.pop())
        waiting += reversed(below[order[-1]])
    middle, leaves = [0.0] * len(order), 0
    for node in order:
        if not below[node]:
            middle[node] = (leaves + 0.5) * _pitch(chart) - BETWEEN_ROWS / 2
            leaves += 1
    for node in reversed(order):
        if below[node]:
            middle[node] = (middle[below[node][0]] + middle[below[node][-1]]) / 2
    step = _box_width(chart) + BETWEEN_LEVELS
    return [(depth * step, at) for depth, at in zip(_depths(tree), middle, strict=True)]


def _depths(tree: Tree) -> list[int]:
    depths: list[int] = []
    for parent in tree.parents:  # parents come before children
        depths.append(0 if parent is None else depths[parent] + 1)
    return depths


def _children(tree: Tree) -> Sequence[int]:
    """How many children each node has."""
    counts = [0] * len(tree.parents)
    for parent in tree.parents:
        if parent is not None:
            counts[parent] += 1
    return counts
