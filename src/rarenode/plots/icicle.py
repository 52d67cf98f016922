"""A whole hierarchy as a map: levels from left to right, and each node as high as its leaves are many."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Patch, PathPatch
from matplotlib.path import Path
from numpy.typing import ArrayLike, NDArray

from rarenode._io.text import counted
from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy
from rarenode.plots.style import LIGHT, add_legend, axes_of, font_size, lay_out, size_in_points
from rarenode.plots.text import ELLIPSIS, cut, percent, text_width

BOUNDS = (0.1, 0.25, 0.4, 0.6, 0.75, 0.9)
"""Scores at which the classes 2 to 7 begin; class 1 begins just above 0."""
MISSED, UNKNOWN = 0, len(BOUNDS) + 2
"""The class of a score of 0, and that of nodes without a score."""
THIN = 0.8
"""Points: a node that is lower has no box, but a share of a bar."""
MOST_BARS = 6_000
"""Of all levels together; with more levels, bars are higher."""
SHORTEST = 4
"""Characters of a name that is cut, with the ellipsis; less would say nothing."""
LINE, PADDING, NARROWEST = 1.1, 0.3, 2.0
"""Height of a line, space beside a name and width of the narrowest box with a name, in font sizes."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def plot_icicle(hierarchy: Hierarchy, scores: ArrayLike, *, name: str = "recall", ax: Axes | None = None) -> Axes:
    """Draw a map of all nodes, coloured by a score such as recall.

    Each column is one level deeper; a node is as high as the leaves below it are many, and stands beside its parent
    (beside the deepest, if it has several). Nodes too thin to draw are gathered in bars that show the shares of their
    colours. Any hierarchy gives a small drawing.

    Args:
        hierarchy: the nodes.
        scores: (nodes,), fractions; NaN for a node without a score. A score of 0 is shown as missed.
        name: what the score is called.
        ax: where to draw; by default the axes of a new figure. Show it with ``ax.figure``.

    Returns:
        The axes.

    Raises:
        ArgumentError: there is not one score per node, or a score is not a fraction.

    >>> animals = Hierarchy.from_edges([("animal", "cat"), ("animal", "dog")])
    >>> ax = plot_icicle(animals, [1.0, 0.5, 0.0])
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['missed: 1', 'no score: 0', 'recall above 0', '10 %', '25 %', '40 %', '60 %', '75 %', '90 % to 100 %']
    """
    values = np.asarray(scores, dtype=np.float64)
    if values.shape != (len(hierarchy),):
        raise ArgumentError(
            f"scores must have one value for each of {counted(len(hierarchy), 'node')}; got {values.shape}"
        )
    if ((values < 0) | (values > 1)).any():
        raise ArgumentError("scores must be fractions from 0 to 1, or NaN")
    is_own, ax = ax is None, axes_of(ax)
    classes = np.where(np.isnan(values), UNKNOWN, np.where(values > 0, 1 + np.searchsorted(BOUNDS, values, "right"), 0))
    _add_key(ax, classes, name)
    ax.set_xlim(0, 1)
    ax.set_ylim(1, 0)
    ax.set_yticks([])
    for spine in ax.spines.values():
        spine.set_visible(False)
    if not is_own:
        lay_out(ax)
    wide, high = size_in_points(ax)
    partition = _partition(hierarchy, high)
    columns = _columns(hierarchy, partition, font_size("font.size") * LINE)
    boxes, bars = _boxes(partition, columns), _bars(partition, classes, columns)
    for which in range(UNKNOWN + 1):
        rectangles = np.concatenate([bars[which], boxes[(classes == which) & ~np.isnan(boxes[:, 0])]])
        if len(rectangles):
            ax.add_artist(PathPatch(_path(rectangles), facecolor=LIGHT[f"r{which}"], linewidth=0))
    _write_names(ax, hierarchy, values, classes, boxes, (wide, high))
    _label_depths(ax, columns, wide)
    return ax


def drawn_parents(hierarchy: Hierarchy) -> Ints:
    """(nodes,): the column of the parent that a node is drawn under, the first of the deepest; -1 for a root.

    A depth is the longest way from a root, so this parent is one level above.

    >>> drawn_parents(Hierarchy.from_edges([("a", "b"), ("a", "c"), ("b", "c")])).tolist()
    [-1, 0, 1]
    """
    above = np.full(len(hierarchy), -1, dtype=np.int64)
    # Written backwards, so that of equally deep parents the first stays.
    one_level = hierarchy.depth[hierarchy.edge_parents] + 1 == hierarchy.depth[hierarchy.edge_children]
    parents, children = hierarchy.edge_parents[one_level][::-1], hierarchy.edge_children[one_level][::-1]
    above[children] = parents
    return above


@dataclass(frozen=True)
class _Partition:
    """For each node its level, and where it begins and ends, as parts of the height of the map."""

    depth: Ints
    start: Floats
    end: Floats
    height: float
    """Of the map, in points."""


def _partition(hierarchy: Hierarchy, height: float) -> _Partition:
    """Upwards each node adds its leaves to its parent's; downwards each takes the next ones of its parent's."""
    above = drawn_parents(hierarchy).tolist()
    size = len(above)
    leaves = [0] * size
    for node in range(size - 1, -1, -1):
        leaves[node] = leaves[node] or 1
        if above[node] >= 0:
            leaves[above[node]] += leaves[node]
    free = [0] * (size + 1)  # the last one is for roots
    start = [0] * size
    for node, parent in enumerate(above):
        start[node] = free[node] = free[parent]
        free[parent] += leaves[node]
    total = max(free[-1], 1)
    begin = np.array(start, dtype=np.float64) / total
    return _Partition(hierarchy.depth.astype(np.int64), begin, begin + np.array(leaves) / total, height)


def _columns(hierarchy: Hierarchy, partition: _Partition, line: float) -> Floats:
    """(levels + 1,): where the columns begin and end; the more of a column can have names, the wider it is."""
    tall = (partition.end - partition.start) * partition.height >= line
    levels = int(hierarchy.depth.max()) + 1 if len(hierarchy) else 1
    named = np.bincount(partition.depth[tall], weights=(partition.end - partition.start)[tall], minlength=levels)
    wanted = 0.3 + named
    if np.count_nonzero(partition.depth == 0) == 1:
        wanted[0] = min(wanted[0], 0.9)  # one root needs no more than its name
    return np.array(list(accumulate(wanted / wanted.sum(), initial=0.0)))


def _is_boxed(partition: _Partition, bar: float) -> NDArray[np.bool_]:
    return (partition.end - partition.start) * (1 + 1e-9) >= bar


def _bar_height(partition: _Partition, levels: int) -> float:
    """The height of a bar of thin nodes, as a part of the map."""
    return max(THIN / partition.height, levels / MOST_BARS)


def _boxes(partition: _Partition, columns: Floats) -> Floats:
    """(nodes, 4): left, top, right and bottom of nodes with a box; NaN for the others."""
    bar = _bar_height(partition, len(columns) - 1)
    tall = (partition.end - partition.start) * partition.height
    gap = np.where(tall > 4, 1.0, np.where(tall > 2, 0.5, 0.0)) / partition.height
    places = np.stack(
        [columns[partition.depth], partition.start, _right(columns)[partition.depth], partition.end - gap], axis=1
    )
    places[~_is_boxed(partition, bar)] = np.nan
    return places


def _bars(partition: _Partition, classes: Ints, columns: Floats) -> list[Floats]:
    """For each class its pieces (left, top, right, bottom) of the bars that thin nodes share.

    The map is cut into bars of equal height. A node that crosses a cut is in both bars with its part. A bar reaches
    from its first thin node to its last.
    """
    levels = len(columns) - 1
    bar = _bar_height(partition, levels)
    count = int(np.ceil(1 / bar))
    thin = np.flatnonzero(~_is_boxed(partition, bar))
    start, end, depth, which = partition.start[thin], partition.end[thin], partition.depth[thin], classes[thin]
    shares = np.zeros((levels * count, UNKNOWN + 1))
    top, bottom = np.full(levels * count, np.inf), np.full(levels * count, -np.inf)
    first = np.minimum((start / bar).astype(np.int64), count - 1)
    for place in (first, first + 1):
        low, high = (
            np.maximum(start, place * bar),
            np.minimum(end, np.where(place < count - 1, place + 1, np.inf) * bar),
        )
        inside = (place < count) & (high - low > 1e-12)
        at = depth[inside] * count + place[inside]
        np.add.at(shares, (at, which[inside]), (high - low)[inside])
        np.minimum.at(top, at, low[inside])
        np.maximum.at(bottom, at, high[inside])
    used = np.flatnonzero(shares.sum(axis=1) > 0)
    parts = shares[used] / shares[used].sum(axis=1, keepdims=True)
    left = columns[used // count]
    wide = _right(columns)[used // count] - left
    ends = left[:, None] + wide[:, None] * np.cumsum(parts, axis=1)
    begins = ends - wide[:, None] * parts
    return [
        np.stack([begins[:, of], top[used], ends[:, of], bottom[used]], axis=1)[parts[:, of] > 0]
        for of in range(UNKNOWN + 1)
    ]


def _right(columns: Floats) -> Floats:
    """Where the boxes of each column end: thin gaps separate the columns."""
    return np.asarray(columns[1:] - np.minimum(0.002, np.diff(columns) / 8))


def _path(rectangles: Floats) -> Path:
    """All rectangles as one path: one element of a drawing, however many there are."""
    corners = rectangles[:, [0, 1, 2, 1, 2, 3, 0, 3, 0, 1]].reshape(-1, 2)
    codes = np.tile(
        np.array([Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY], dtype=np.uint8), len(rectangles)
    )
    return Path(corners, codes)


def _write_names(
    ax: Axes, hierarchy: Hierarchy, values: Floats, classes: Ints, boxes: Floats, size: tuple[float, float]
) -> None:
    """The name of a node where some of it fits into its box, and its score where there is room for a second line."""
    letters = font_size("font.size")
    wide, high = (boxes[:, 2] - boxes[:, 0]) * size[0], (boxes[:, 3] - boxes[:, 1]) * size[1]
    line, pad = LINE * letters, PADDING * letters
    for node in np.flatnonzero((high >= line - 1) & (wide >= NARROWEST * letters)).tolist():
        room = wide[node] - 2 * pad
        lines = [cut(hierarchy.titles[node], room, letters)]
        if lines[0].endswith(ELLIPSIS) and len(lines[0]) < SHORTEST:
            continue
        score = _score(values[node])
        if high[node] >= 2 * line + pad and text_width(score, letters) <= room:
            lines.append(score)
        left, top = boxes[node, :2]
        first = line / 2 if len(lines) > 1 else high[node] / 2
        for number, text in enumerate(lines):
            ax.text(
                left + pad / size[0],
                top + (first + number * line) / size[1],
                text,
                va="center_baseline",
                fontsize=letters,
                color=LIGHT[f"on-r{classes[node]}"],
                parse_math=False,
            )


def _score(value: float) -> str:
    if np.isnan(value):
        return "no score"
    return f"{percent(100 * value)} %" if value else "missed"


def _label_depths(ax: Axes, columns: Floats, wide: float) -> None:
    """The depths below their columns, as many as there is room for."""
    size = font_size("xtick.labelsize")
    ticks: list[float] = []
    depths: list[str] = []
    free = 0.0
    for depth, (left, right) in enumerate(pairwise(columns.tolist())):
        middle, half = (left + right) / 2 * wide, text_width(str(depth), size) / 2 + 1
        if middle - half >= free:
            ticks.append((left + right) / 2)
            depths.append(str(depth))
            free = middle + half
    ax.set_xticks(ticks, depths)
    ax.tick_params(axis="x", length=0)
    ax.set_xlabel("depth")


def key_labels(classes: Sequence[int] | Ints, name: str) -> list[str]:
    """The labels of the legend."""
    counts = np.bincount(np.asarray(classes, dtype=np.int64), minlength=UNKNOWN + 1)
    scale = [f"{name} above 0", *(f"{100 * bound:g} %" for bound in BOUNDS)]
    scale[-1] += " to 100 %"
    return [f"missed: {counts[MISSED]:,}", f"no score: {counts[UNKNOWN]:,}", *scale]


def _add_key(ax: Axes, classes: Ints, name: str) -> None:
    order = [MISSED, UNKNOWN, *range(1, UNKNOWN)]
    handles = [Patch(facecolor=LIGHT[f"r{which}"], linewidth=0) for which in order]
    add_legend(ax, handles, key_labels(classes, name))
