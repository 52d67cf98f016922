"""Nodes as an indented tree, and beside each node its score in every run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from numpy.typing import ArrayLike, NDArray

from rarenode._io.text import counted
from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy
from rarenode.plots.icicle import drawn_parents
from rarenode.plots.style import LIGHT, axes_of, check_series, font_size, lay_out, size_in_points
from rarenode.plots.text import cut, percent, plain, text_width

BOX = 3.1
"""Width of a box, in font sizes."""
WEAKEST, STRONGEST = 0.07, 0.75
"""How opaque the boxes just above 0 and at 100 % are; letters in them stay readable in light and in dark."""
HIGHEST = 0.85
"""The part of a line's height that letters take at most."""
GAP = 1.6
"""Between names and boxes, in font sizes: room for the mark of a change."""
INDENT, MOST_INDENT = 1.1, 0.35
"""The step of a level in font sizes, and the part of the room for names that all steps take at most."""
PLUS, MINUS, DASH = "+", "\u2212", "\u2013"
Floats = NDArray[np.float64]


def plot_node_scores(
    hierarchy: Hierarchy,
    scores: Mapping[str, ArrayLike],
    *,
    nodes: Sequence[int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw one line per node, parents above their children, with a box for each run, in percent.

    A box is tinted by its score; a score of 0 has an empty box, and an unknown one a dash. A node that the first run
    does not find and the last one does is marked with +, the opposite with \u2212.

    Args:
        hierarchy: the nodes.
        scores: name of a run -> its scores (nodes,), fractions, such as F1; NaN where unknown. At most 8 runs.
        nodes: the columns of the nodes to draw; by default all. Some dozens fit into one chart.
        ax: where to draw; by default the axes of a new figure. Show it with ``ax.figure``.

    Returns:
        The axes.

    Raises:
        ArgumentError: there is no run or no node, a run has not one score per node, or there are more than 8 runs.

    >>> animals = Hierarchy.from_edges([("animal", "cat"), ("animal", "dog")])
    >>> ax = plot_node_scores(animals, {"before": [1, 0, 0.5], "after": [1, 0.8, 0.5]})
    >>> [text.get_text() for text in ax.texts[:3]]
    ['animal', 'cat', 'dog']
    """
    check_series(scores, "runs")
    values = {name: np.asarray(some, dtype=np.float64) for name, some in scores.items()}
    for name, some in values.items():
        if some.shape != (len(hierarchy),):
            raise ArgumentError(
                f"{plain(name)!r} must have one score for each of {counted(len(hierarchy), 'node')}; got {some.shape}"
            )
    chosen = range(len(hierarchy)) if nodes is None else nodes
    if not len(chosen):
        raise ArgumentError("there is no node to draw")
    is_own, ax = ax is None, axes_of(ax, height=max(0.3, 0.05 * (len(chosen) + len(values))))
    above = drawn_parents(hierarchy).tolist()
    order = _from_the_top([int(node) for node in chosen], above)
    ax.set_axis_off()
    if not is_own:
        lay_out(ax)
    wide, high = size_in_points(ax)
    letters = min(font_size("font.size"), HIGHEST * high / (len(order) + len(values) + 1))
    names = _write_tree(ax, hierarchy, order, above, wide - (len(values) * BOX + GAP) * letters, letters)
    table = np.stack([100 * some[order] for some in values.values()], axis=1)
    _draw_boxes(ax, table, names + GAP * letters, letters)
    _write_key(ax, list(values), wide, names + GAP * letters, letters)
    ax.set_xlim(0, wide)
    ax.set_ylim(len(order) - 0.5, -1.5 - len(values))
    return ax


def _from_the_top(chosen: list[int], above: list[int]) -> list[int]:
    """Every node after its parent, and before all that is not below it."""
    present = set(chosen)
    children: dict[int, list[int]] = {}
    for node in sorted(present):
        children.setdefault(above[node] if above[node] in present else -1, []).append(node)
    order, waiting = [], children.get(-1, [])[::-1]
    while waiting:
        node = waiting.pop()
        order.append(node)
        waiting += children.get(node, [])[::-1]
    return order


def _write_tree(
    ax: Axes, hierarchy: Hierarchy, order: list[int], above: list[int], room: float, letters: float
) -> float:
    """Names, indented by depth, and the branches between them. Returns where the longest name ends."""
    depth = hierarchy.depth[order]
    step = min(INDENT * letters, MOST_INDENT * room / max(1, int(depth.max() - depth.min())))
    left = dict(zip(order, (step * (depth - depth.min())).tolist(), strict=True))
    line = {node: place for place, node in enumerate(order)}
    x: list[float] = []
    y: list[float] = []
    end = 0.0
    for node in order:
        name = cut(hierarchy.titles[node], room - left[node], letters)
        end = max(end, left[node] + text_width(name, letters))
        if (parent := above[node]) in line:
            stem = left[parent] + 0.35 * letters
            x += [stem, stem, left[node] - 2, np.nan]
            y += [line[parent] + 0.4, line[node], line[node], np.nan]
        ax.text(
            left[node],
            line[node],
            name,
            va="center_baseline",
            fontsize=letters,
            parse_math=False,
        )
    ax.plot(x, y, color=mpl.rcParams["grid.color"], linewidth=1, clip_on=False, solid_capstyle="butt")
    return end


def _draw_boxes(ax: Axes, table: Floats, left: float, letters: float) -> None:
    muted = mpl.rcParams["xtick.color"]
    for line, row in enumerate(table.tolist()):
        sign, colour = _change(row)
        if sign:
            ax.text(
                left - 0.7 * letters,
                line,
                sign,
                ha="center",
                va="center_baseline",
                fontsize=letters,
                fontweight="bold",
                color=colour,
            )
        for run, value in enumerate(row):
            corner = left + run * BOX * letters + 1, line - 0.42
            text, ink = (DASH, muted) if np.isnan(value) else (percent(value), muted if value <= 0 else None)
            if value <= 0:
                ax.add_artist(Rectangle(corner, BOX * letters - 2, 0.84, fill=False, edgecolor=muted, alpha=0.55))
            elif value > 0:
                tint = WEAKEST + (STRONGEST - WEAKEST) * min(value, 100.0) / 100
                ax.add_artist(
                    Rectangle(corner, BOX * letters - 2, 0.84, facecolor=LIGHT["tint"], alpha=tint, linewidth=0)
                )
            ax.text(
                left + (run + 0.5) * BOX * letters,
                line,
                text,
                ha="center",
                va="center_baseline",
                fontsize=letters,
                color=ink,
            )


def _change(row: Sequence[float]) -> tuple[str, str]:
    """The sign and its colour of a node that is found in the last run and not in the first, or the opposite."""
    first, last = row[0], row[-1]
    if first <= 0 < last:
        return PLUS, LIGHT["3"]
    return (MINUS, LIGHT["2"]) if last <= 0 < first else ("", "")


def _write_key(ax: Axes, names: list[str], wide: float, left: float, letters: float) -> None:
    """The numbers of the runs above their boxes, which begin at ``left``, and their names above those."""
    for run, name in enumerate(names):
        ax.text(0, run - len(names) - 1, f"{run + 1}", va="center_baseline", fontsize=letters, fontweight="bold")
        ax.text(
            1.2 * letters,
            run - len(names) - 1,
            cut(name, wide - 1.2 * letters, letters),
            va="center_baseline",
            fontsize=letters,
            parse_math=False,
        )
        middle = left + (run + 0.5) * BOX * letters
        ax.text(middle, -1, f"{run + 1}", ha="center", va="center_baseline", fontsize=letters, fontweight="bold")
