"""`icicle`: a whole hierarchy as a map, levels from left to right, coloured by the recall of its nodes."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from rarenode.errors import ArgumentError
from rarenode.report.svg.clipping import Box
from rarenode.report.svg.element import Markup, element, joined, number
from rarenode.report.svg.frame import WIDTH, Part, chart, heading, legend
from rarenode.report.svg.scale import percent, usable
from rarenode.report.svg.stylesheet import SMALL, TEXT
from rarenode.report.svg.text import ELLIPSIS, isolated, label, plain, tooltip, width, wrapped, written

HEIGHT = 318.0
"""Of the map."""
LEAST = 0.8
"""Units that a node is high to have a box of its own."""
COARSER = 1.5
"""How much higher boxes or strips have to be while there are too many."""
BETWEEN_BOXES = 8.0
"""Strips end at boxes, so boxes are at least this part of what strips have to be high."""
MOST_BOXES, MOST_PIECES, MOST_LEVELS = 2_400, 6_000, 200
"""A box is two elements, itself and its tooltip. The pieces of all strips are one element for each class."""
BOUNDS = (10.0, 25.0, 40.0, 60.0, 75.0, 90.0)
"""Percentages at which the classes 2 to 7 begin; class 1 begins just above 0."""
MISSED, NOTHING = 0, len(BOUNDS) + 2
"""The class of recall 0, and that of nodes that no row carries or that are not scored."""
LINE, NARROWEST, PADDING = 15.0, 28.0, 4.0
"""Height and width of a box that has room for letters, and what is left free at their sides."""
SHORTEST = 4
"""Characters of a cut name, with the ellipsis; less says nothing."""
LONE_ROOT = 0.9
"""Most that the column of one root takes, where one full of names takes 1.3: it needs no more than its name."""
HATCHES = {NOTHING: ("rn-hatch", -1), MISSED: ("rn-texture", 1)}
"""Look and slant of the strokes in boxes: rising ones where nothing is to find, falling ones, in print, in missed."""
HATCHED, APART = 7.0, 6.0
"""Units that a box is high and wide at least to be hatched, and between the strokes."""
STEP, SWATCH = 40.0, 16.0


@dataclass(frozen=True)
class MapNode:
    """A node, after its parent in the same list (-1: none), and its recall in percent (None: nothing to find)."""

    name: str
    depth: int
    parent: int
    value: float | None


@dataclass
class _Run:
    """Thin neighbours, from a leaf to another, and how many leaves each class has below its nodes."""

    start: int
    end: int
    parent: int
    shares: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Level:
    """The nodes of one depth from top to bottom, and where their column begins and ends."""

    depth: int
    nodes: list[int]
    left: float
    right: float


@dataclass(frozen=True)
class _Partition:
    """For each node the first of the leaves below it, and how many they are; a node without children is a leaf."""

    start: list[int]
    leaves: list[int]
    unit: float
    """Height of a leaf."""

    def height(self, node: int) -> float:
        return self.leaves[node] * self.unit


def icicle(title: str, nodes: Sequence[MapNode]) -> str:
    """A partition to the right: a column for each depth, and in it each node beside its parent.

    A node is as high as the leaves below it are many; siblings, and several roots, stand one below the other in their
    order. A column is the wider the more of it is high enough for names.

    A node gets a box of its own where that is at least 0.8 units high; where more than 2,400 are, it takes 1.5
    times as much, and so on. Thinner neighbours under one parent are gathered into a strip, which is split from left to
    right by the shares of the classes, missed nodes first. A strip lower than 0.8 units goes on under the next parent,
    over gaps lower than that; where strips have more than 6,000 pieces, this too takes 1.5 times as much, and so on,
    and boxes at least an eighth of it. A coloured area is always that of the nodes it stands for. At most 200 levels
    are drawn.

    All pieces of a class are one element. So any hierarchy is a chart of less than 6,000 elements, and the cost is
    linear in its nodes.

    Args:
        title: what the map shows.
        nodes: each after its parent and deeper than it.

    Raises:
        ArgumentError: there is no node, a parent does not come before its child or is not above it, or a recall is not
            a percentage.
    """
    _check(nodes)
    classes = [_class(node.value) for node in nodes]
    partition = _partition(nodes)
    levels = _levels(nodes, partition)
    own, runs = _gathered(nodes, classes, partition, levels)
    head = heading(title)
    top = head.bottom + 20
    drawn = [_depths(levels, top - 6), *_strips(runs, partition.unit, top)]
    places = [
        (node, _place(level, partition, node, top))
        for level in levels
        for node in level.nodes
        if partition.height(node) >= own
    ]
    drawn += [_cell(nodes[node], classes[node], place) for node, place in places]
    drawn += [_hatch(which, (place for node, place in places if classes[node] == which)) for which in HATCHES]
    drawn += [_letters(nodes[node], classes[node], place) for node, place in places]
    key = _key(Counter(classes), top + HEIGHT + 6)
    deepest = max(node.depth for node in nodes)
    said = _notes(bool(runs), levels[-1].depth if levels[-1].depth < deepest else None, key.bottom)
    summary = (
        f"Map of {len(nodes):,} nodes, depth {levels[0].depth} to {deepest}: {classes.count(MISSED):,} missed, "
        f"{classes.count(NOTHING):,} with nothing to find."
    )
    return chart("icicle", title, summary, said.bottom, head.markup, *drawn, key.markup, said.markup)


def _check(nodes: Sequence[MapNode]) -> None:
    if not nodes:
        raise ArgumentError("a map without nodes shows nothing")
    for index, node in enumerate(nodes):
        if not -1 <= node.parent < index:
            name = plain(node.name)
            raise ArgumentError(
                f"the parent of the node '{name}', number {index}, is number {node.parent}, not before it"
            )
        if node.parent >= 0 and nodes[node.parent].depth >= node.depth:
            above = plain(nodes[node.parent].name)
            raise ArgumentError(f"the node '{plain(node.name)}' is not deeper than its parent '{above}'")
        if node.value is not None and usable(node.value) and not 0 <= node.value <= 100:
            raise ArgumentError(f"the recall of the node '{plain(node.name)}' is {node.value:g}, not 0 to 100 percent")


def _class(value: float | None) -> int:
    if value is None or not usable(value):
        return NOTHING
    return 1 + bisect_right(BOUNDS, value) if value > 0 else MISSED


def _partition(nodes: Sequence[MapNode]) -> _Partition:
    """Upwards each node adds its leaves to its parent's; downwards each takes the next ones of its parent."""
    leaves = [0] * len(nodes)
    total = 0
    for index in range(len(nodes) - 1, -1, -1):
        leaves[index] = leaves[index] or 1
        if (parent := nodes[index].parent) >= 0:
            leaves[parent] += leaves[index]
        else:
            total += leaves[index]
    start, free, free_for_roots = [0] * len(nodes), [0] * len(nodes), 0
    for index, node in enumerate(nodes):
        if node.parent >= 0:
            start[index] = free[node.parent]
            free[node.parent] += leaves[index]
        else:
            start[index] = free_for_roots
            free_for_roots += leaves[index]
        free[index] = start[index]
    return _Partition(start, leaves, HEIGHT / total)


def _levels(nodes: Sequence[MapNode], partition: _Partition) -> list[_Level]:
    depths = sorted({node.depth for node in nodes})[:MOST_LEVELS]
    members: dict[int, list[int]] = {depth: [] for depth in depths}
    readable = dict.fromkeys(depths, 0.0)
    by_start: dict[int, list[int]] = {}
    for index in range(len(nodes)):
        by_start.setdefault(partition.start[index], []).append(index)
    for leaf in range(len(by_start)):  # a node begins at every leaf: at least the leaf itself
        for index in by_start[leaf]:
            depth = nodes[index].depth
            if depth in members:
                members[depth].append(index)
                readable[depth] += partition.height(index) if partition.height(index) >= LINE else 0.0
    wanted = [0.3 + readable[depth] / HEIGHT for depth in depths]
    if len(members[depths[0]]) == 1:
        wanted[0] = min(wanted[0], LONE_ROOT)
    edges = [WIDTH * part / sum(wanted) for part in accumulate(wanted, initial=0.0)]
    return [_Level(depth, members[depth], *edges[at : at + 2]) for at, depth in enumerate(depths)]


def _least(levels: Sequence[_Level], partition: _Partition) -> float:
    """Height from which on not too many nodes have boxes."""
    alike = Counter(partition.leaves[node] for level in levels for node in level.nodes)
    least = LEAST
    while sum(nodes for leaves, nodes in alike.items() if leaves * partition.unit >= least) > MOST_BOXES:
        least *= COARSER
    return least


def _gathered(
    nodes: Sequence[MapNode], classes: Sequence[int], partition: _Partition, levels: Sequence[_Level]
) -> tuple[float, list[tuple[_Level, _Run]]]:
    """Height from which on a node has a box of its own, and the runs of the others.

    Where even a node as high as the map has no box, each level is one run, so this ends.
    """
    own, least = _least(levels, partition), LEAST
    while True:
        runs: list[tuple[_Level, _Run]] = []
        pieces = 0
        for level in levels:
            found = _runs(level, nodes, classes, partition, own, least)
            runs += [(level, run) for run in found]
            pieces += sum(len(run.shares) for run in found)
            if pieces > MOST_PIECES:
                break
        else:
            return own, runs
        least *= COARSER
        own = max(own, least / BETWEEN_BOXES)


def _runs(
    level: _Level,
    nodes: Sequence[MapNode],
    classes: Sequence[int],
    partition: _Partition,
    own: float,
    least: float,
) -> list[_Run]:
    """A run ends at a box, at a gap that is at least so high, or if it is so high itself with its parent's children."""
    found: list[_Run] = []
    last: _Run | None = None
    for node in level.nodes:
        if partition.height(node) >= own:
            last = None
            continue
        start, leaves, parent = partition.start[node], partition.leaves[node], nodes[node].parent
        if (
            last is None
            or (start - last.end) * partition.unit >= least
            or (parent != last.parent and (last.end - last.start) * partition.unit >= least)
        ):
            last = _Run(start, start, parent)
            found.append(last)
        last.end, last.parent = start + leaves, parent
        last.shares[classes[node]] = last.shares.get(classes[node], 0) + leaves
    return found


def _right(level: _Level) -> float:
    """Where boxes of a column end: thin lines part the columns."""
    return level.right - min(1.0, (level.right - level.left) / 8)


def _place(level: _Level, partition: _Partition, node: int, top: float) -> Box:
    upper, tall = top + partition.start[node] * partition.unit, partition.height(node)
    gap = 1.0 if tall > 4 else 0.5 if tall > 2 else 0.0
    return level.left, upper, _right(level), upper + tall - gap


def _strips(runs: Iterable[tuple[_Level, _Run]], unit: float, top: float) -> list[Markup]:
    """All pieces of a class in one element: there may be thousands."""
    paths: dict[int, list[str]] = {}
    for level, run in runs:
        x, wide, tall = level.left, _right(level) - level.left, (run.end - run.start) * unit
        for which in sorted(run.shares):
            part = wide * run.shares[which] / (run.end - run.start)
            corner = f"M{_fine(x)} {_fine(top + run.start * unit)}"
            paths.setdefault(which, []).append(f"{corner}h{_fine(part)}v{_fine(tall)}h-{_fine(part)}z")
            x += part
    return [
        element("path", class_=f"rn-strip rn-r{which}", d="".join(pieces)) for which, pieces in sorted(paths.items())
    ]


def _fine(value: float) -> str:
    """To a thousandth: strips can be thinner than what `number` tells apart."""
    return f"{value:.3f}".rstrip("0").rstrip(".")


def _cell(node: MapNode, which: int, place: Box) -> Markup:
    left, upper, right, lower = place
    said = tooltip(f"{isolated(node.name)}: {_recall(node, which)}")
    return element(
        "rect", said, class_=f"rn-cell rn-r{which}", x=left, y=upper, width=right - left, height=lower - upper
    )


def _recall(node: MapNode, which: int) -> str:
    if node.value is None or which == NOTHING:
        return "nothing to find"
    return f"recall {percent(node.value)} %" if which != MISSED else "missed"


def _letters(node: MapNode, which: int, place: Box) -> Markup:
    """The name where there is room for some of it, in two lines if need be, and the recall where it fits below."""
    left, upper, right, lower = place
    room, high = right - left - 2 * PADDING, lower - upper
    if high < LINE - 1 or right - left < NARROWEST:
        return Markup("")
    lines = list(wrapped(node.name, room, SMALL, 2 if high >= 3 * LINE + 4 else 1))
    if len(lines[0]) < SHORTEST and lines[0].endswith(ELLIPSIS):
        return Markup("")
    recall = _recall(node, which).removeprefix("recall ")
    if high >= (len(lines) + 1) * LINE + 4 and width(recall, SMALL) <= room:
        lines.append(recall)
    first = upper + LINE if high >= 2 * LINE + 4 else (upper + lower) / 2 + 4.5
    look = f"rn-small rn-within rn-r{which}"
    return joined(*(written(line, look, left + PADDING, first + LINE * at) for at, line in enumerate(lines) if line))


def _hatch(which: int, places: Iterable[Box]) -> Markup:
    """Strokes in the boxes of a class: x + y = k·apart where they rise, x - y = k·apart where they fall."""
    (look, slant), strokes = HATCHES[which], []
    for left, upper, right, lower in places:
        if min(right - left, lower - upper) < HATCHED:
            continue
        low, high = (upper, lower) if slant < 0 else (-lower, -upper)
        for k in range(int((left + low) // APART) + 1, int((right + high) // APART) + 1):
            x, end = max(left, k * APART - high), min(right, k * APART - low)
            y = -slant * (k * APART - x)
            strokes.append(f"M{number(x)} {number(y)}l{number(end - x)} {number(slant * (end - x))}")
    return element("path", class_=look, d="".join(strokes)) if strokes else Markup("")


def _depths(levels: Sequence[_Level], y: float) -> Markup:
    """The depths above their columns, as many as there is room for."""
    drawn: list[Markup] = []
    free = 0.0
    for level in levels:
        text = str(level.depth) if drawn else f"depth {level.depth}"
        end = level.left + width(text, SMALL)
        if free <= level.left and end <= WIDTH:
            drawn.append(written(text, "rn-small rn-muted", level.left, y))
            free = end + 2
    return joined(*drawn)


def _key(counts: Counter[int], top: float) -> Part:
    """The two classes that are not on the scale, and the scale."""

    def swatch(which: int, x: float, y: float, wide: float = SWATCH) -> Markup:
        place = x, y - 7, x + wide, y + 7
        box = element("rect", class_=f"rn-cell rn-r{which}", x=x, y=place[1], width=wide, height=14.0)
        return joined(box, _hatch(which, [place])) if which in HATCHES else box

    alone = {MISSED: "missed", NOTHING: "nothing to find"}
    entries = [
        (f"{name}: {counts[which]:,}", lambda x, y, which=which: swatch(which, x, y)) for which, name in alone.items()
    ]
    others = legend(entries, SWATCH, top)
    found = [which for which in range(NOTHING) if which != MISSED]
    y = others.bottom + 6
    drawn = [swatch(which, STEP * at, y, STEP) for at, which in enumerate(found)]
    ticks = [">0", *(f"{bound:g}" for bound in BOUNDS), "100 %"]
    drawn += [
        written(tick, "rn-small rn-muted", STEP * at, y + 22, "middle" if at else None) for at, tick in enumerate(ticks)
    ]
    x = STEP * len(found) + 10
    words = f"found: {sum(counts[which] for which in found):,}, by recall"
    drawn.append(label(words, WIDTH - x, TEXT, class_="rn-text", x=x, y=y + 5))
    return Part(joined(others.markup, *drawn), y + 28)


def _notes(strips: bool, last: int | None, top: float) -> Part:
    lines = []
    if strips:
        lines.append("Nodes too thin to draw are gathered in bars of their shares.")
    if last is not None:
        lines.append(f"What is deeper than {last} is not drawn.")
    drawn = [
        label(line, WIDTH, SMALL, class_="rn-small rn-muted", x=0.0, y=top + 16 + 18 * at)
        for at, line in enumerate(lines)
    ]
    return Part(joined(*drawn), top + 18 * len(lines) + 4)
