"""`node_boxes`: a hierarchy as an indented tree, and beside each node a grid of boxes, one for each run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rarenode.errors import ArgumentError
from rarenode.report.svg.element import Markup, element, joined, number
from rarenode.report.svg.frame import WIDTH, Part, chart, heading
from rarenode.report.svg.scale import percent, usable
from rarenode.report.svg.series import MOST_SERIES, check_series
from rarenode.report.svg.stylesheet import SMALL, TEXT
from rarenode.report.svg.text import cut, isolated, label, plain, tooltip, width, written

BOX_WIDTH, BOX_HEIGHT, BETWEEN = 42.0, 22.0, 2.0
LINE_GAP = 8.0
INDENT = 16.0
DEEPEST = 0.35
"""Part of the room for names that all indentation takes at most; deeper trees have shorter steps."""
WEAKEST, STRONGEST = 0.07, 0.75
"""How opaque the boxes just above 0 and at 100 % are; letters in them stay readable in light and in dark."""
SIGN = 20.0
PLUS, MINUS, DASH = "+", "\u2212", "\u2013"
ICON, ICON_GAP = 7.0, 1.5


@dataclass(frozen=True)
class BoxedNode:
    """A node, below its parent in the same list (-1: none), and its percentage in each run (None: not known)."""

    name: str
    depth: int
    parent: int
    values: tuple[float | None, ...]


def node_boxes(title: str, nodes: Sequence[BoxedNode], runs: Sequence[str], *, columns: int) -> str:
    """One line for each node, parents above their children.

    Boxes are tinted by their value; one of 0 is empty, and a dash stands where nothing is known. A node that the first
    run does not find and the last one does has a plus sign, one that is lost a minus sign.

    Args:
        title: what the boxes show.
        nodes: in any order; children of a node are drawn in theirs.
        runs: 1 to 8 names, one for each value of a node.
        columns: how many boxes stand side by side; the next ones stand below them.

    Raises:
        ArgumentError: a node has not one value for each run, or is not deeper than its parent; or there is no node.
    """
    _check(nodes, runs, columns)
    head = heading(title)
    key = _key(runs, columns, head.bottom)
    rows = -(-len(runs) // columns)
    tall = rows * BOX_HEIGHT + (rows - 1) * BETWEEN + LINE_GAP
    wide = min(columns, len(runs)) * (BOX_WIDTH + BETWEEN) - BETWEEN
    shallowest, deepest = min(node.depth for node in nodes), max(node.depth for node in nodes)
    order = _from_the_top(nodes)
    y = {index: key.bottom + tall * (line + 0.5) for line, index in enumerate(order)}
    left = WIDTH - wide - 1
    step = min(INDENT, DEEPEST * (left - SIGN) / max(1, deepest - shallowest))
    drawn, branches = [], []
    for index in order:
        node = nodes[index]
        x = step * (node.depth - shallowest)
        if node.parent >= 0:
            stem = step * (nodes[node.parent].depth - shallowest) + 5
            branches.append(f"M{number(stem)} {number(y[node.parent] + 9)}V{number(y[index])}H{number(x - 2)}")
        room = left - SIGN - x - 4
        drawn.append(label(node.name, room, TEXT, class_="rn-text", x=x, y=y[index] + 5))
        end = x + width(cut(node.name, room, TEXT), TEXT) + 8
        if end < left - SIGN:
            drawn.append(
                element("path", class_="rn-leader", d=f"M{number(end)} {number(y[index])}H{number(left - SIGN)}")
            )
        drawn.append(_sign(node, left - SIGN / 2 - 2, y[index]))
        corner = y[index] - (tall - LINE_GAP) / 2
        for run, value in enumerate(node.values):
            place = left + run % columns * (BOX_WIDTH + BETWEEN), corner + run // columns * (BOX_HEIGHT + BETWEEN)
            drawn.append(_box(value, *place, f"{isolated(node.name)}, {isolated(runs[run])}"))
    tree = element("path", class_="rn-branch", d="".join(branches)) if branches else Markup("")
    foot = _signs_explained(nodes, key.bottom + tall * len(nodes) + 8)
    summary = f"{len(nodes)} nodes in a tree, each with a percentage for {', '.join(map(isolated, runs))}."
    return chart("nodes", title, summary, foot.bottom, head.markup, key.markup, tree, *drawn, foot.markup)


def _check(nodes: Sequence[BoxedNode], runs: Sequence[str], columns: int) -> None:
    check_series("runs", runs)
    if not 1 <= columns <= MOST_SERIES:
        raise ArgumentError(f"there is room for 1 to {MOST_SERIES} columns of boxes, not for {columns}")
    if not nodes:
        raise ArgumentError("a chart without nodes shows nothing")
    for node in nodes:
        name = plain(node.name)
        if len(node.values) != len(runs):
            raise ArgumentError(f"the node '{name}' has {len(node.values)} values for {len(runs)} runs")
        if not -1 <= node.parent < len(nodes):
            raise ArgumentError(f"the parent of the node '{name}' is number {node.parent} of {len(nodes)} nodes")
        if node.parent >= 0 and nodes[node.parent].depth >= node.depth:
            raise ArgumentError(f"the node '{name}' is not deeper than its parent '{plain(nodes[node.parent].name)}'")


def _from_the_top(nodes: Sequence[BoxedNode]) -> list[int]:
    """Every node after its parent, and before all that is not below it."""
    children: dict[int, list[int]] = {}
    for index, node in enumerate(nodes):
        children.setdefault(node.parent, []).append(index)
    order, waiting = [], children.get(-1, [])[::-1]
    while waiting:
        index = waiting.pop()
        order.append(index)
        waiting += children.get(index, [])[::-1]
    return order


def _box(value: float | None, x: float, y: float, whose: str) -> Markup:
    place: dict[str, float] = {"x": x, "y": y, "width": BOX_WIDTH, "height": BOX_HEIGHT, "rx": 2.0}
    middle = x + BOX_WIDTH / 2, y + BOX_HEIGHT / 2 + 4.5
    if value is None or not usable(value):
        return element("g", tooltip(f"{whose}: not known"), written(DASH, "rn-small rn-muted", *middle, "middle"))
    if value <= 0:
        box = element("rect", class_="rn-box rn-empty", **place)
        return element("g", tooltip(f"{whose}: 0 %"), box, written("0", "rn-small rn-muted", *middle, "middle"))
    box = element("rect", class_="rn-box", fill_opacity=_tint(value), **place)
    share = percent(value)
    return element("g", tooltip(f"{whose}: {share} %"), box, written(share, "rn-small", *middle, "middle"))


def _tint(value: float) -> float:
    return WEAKEST + (STRONGEST - WEAKEST) * min(value, 100.0) / 100


def _change(node: BoxedNode) -> int:
    """1 for a node that is gained from the first run to the last, -1 for one that is lost, else 0."""
    first, last = node.values[0], node.values[-1]
    if first is None or last is None or not (usable(first) and usable(last)):
        return 0
    return int(first <= 0 < last) - int(last <= 0 < first)


def _sign(node: BoxedNode, x: float, y: float) -> Markup:
    change = _change(node)
    if not change:
        return Markup("")
    look, sign = ("rn-gained", PLUS) if change > 0 else ("rn-lost", MINUS)
    return written(sign, f"rn-heading {look}", x, y + 6, "middle")


def _key(runs: Sequence[str], columns: int, top: float) -> Part:
    """The grid of boxes in small for each run, with its own box filled, and the run's name; in as many columns."""
    drawn, shown = [], min(columns, len(runs), 2)
    rows = -(-len(runs) // columns)
    small = min(columns, len(runs)) * (ICON + ICON_GAP), rows * (ICON + ICON_GAP)
    tall, room = max(24.0, small[1] + 8), WIDTH / shown
    for run, name in enumerate(runs):
        x, y = room * (run % shown), top + tall * (run // shown + 0.5)
        for other in range(len(runs)):
            place = {
                "x": x + 1 + other % columns * (ICON + ICON_GAP),
                "y": y - small[1] / 2 + other // columns * (ICON + ICON_GAP),
                "width": ICON,
                "height": ICON,
            }
            drawn.append(element("rect", class_="rn-box" if other == run else "rn-box rn-empty", **place))
        text = x + small[0] + 8
        drawn.append(label(name, room - small[0] - 16, TEXT, class_="rn-text", x=text, y=y + 5))
    return Part(joined(*drawn), top + tall * -(-len(runs) // shown) + 10)


def _signs_explained(nodes: Sequence[BoxedNode], top: float) -> Part:
    """What the signs mean that are there."""
    changes = {_change(node) for node in nodes}
    words = [
        (PLUS, "rn-gained", "0 in the first run, above 0 in the last", 1 in changes),
        (MINUS, "rn-lost", "above 0 in the first run, 0 in the last", -1 in changes),
    ]
    drawn, y = [], top
    for sign, look, meaning, there in words:
        if there:
            y += 20
            drawn.append(written(sign, f"rn-heading {look}", 0.0, y))
            drawn.append(label(meaning, WIDTH - 18, SMALL, class_="rn-small rn-muted", x=18.0, y=y))
    return Part(joined(*drawn), y + 6)
