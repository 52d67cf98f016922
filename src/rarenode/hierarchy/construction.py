"""From edges or paths, in any order, to nodes in one canonical order.

A node's *depth* is the length of the longest path from a root to it. Nodes are sorted by depth, then by name, so two
hierarchies with the same content have the same columns. It follows that every edge goes from a lower column to a
higher one: walking the columns backwards visits every child before its parents, at the cost of the edges.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarenode.errors import CycleError, HierarchyError

DEFAULT_SEPARATOR = " > "
COMMON_SEPARATORS = (">", "/", "|", "::", ";", "\\", "→", ".")
LONGEST_PRINTED_CYCLE = 12


class Order(NamedTuple):
    """Nodes in canonical order; edges as pairs of columns, sorted by parent, then child."""

    nodes: tuple[str, ...]
    depth: NDArray[np.int64]
    parents: NDArray[np.int64]
    children: NDArray[np.int64]


def order_paths(paths: Iterable[str], separator: str | None = None) -> tuple[Order, tuple[str, ...]]:
    """Put every prefix of every path into canonical order, each joined to the prefix that is one step shorter.

    Returns:
        The order, and for each node the last step of its path.

    Raises:
        HierarchyError: a path is not text or has an empty step; or no separator is given, no path contains the
            default one, and some contain another common one.
    """
    if isinstance(paths, str):
        raise HierarchyError("paths must be a collection of paths, not a single string")
    if separator == "":
        raise HierarchyError("the separator must not be empty")
    texts = list(paths)
    for place, path in enumerate(texts):
        if not isinstance(path, str):
            raise HierarchyError(f"path {place}: expected text, got {type(path).__name__} {path!r}")
    if separator is None:
        _check_default_separator(texts)
        separator = DEFAULT_SEPARATOR
    nodes: dict[str, str] = {}
    edges: dict[tuple[str, str], None] = {}
    for place, path in enumerate(texts):
        steps = path.split(separator)
        if not all(steps):
            raise HierarchyError(f"path {place} {path!r}: a step is empty")
        prefixes = [steps[0]]
        for step in steps[1:]:
            prefixes.append(f"{prefixes[-1]}{separator}{step}")
        nodes.update(zip(prefixes, steps, strict=True))
        edges.update(dict.fromkeys(pairwise(prefixes)))
    order = order_nodes(edges, nodes)
    return order, tuple(nodes[node] for node in order.nodes)


def _check_default_separator(paths: list[str]) -> None:
    """Refuse paths that the default separator leaves whole and another one would split: the tree would be flat."""
    if any(DEFAULT_SEPARATOR in path for path in paths):
        return
    count: Counter[str] = Counter()
    for path in paths:
        count.update(separator for separator in COMMON_SEPARATORS if _splits(path, separator))
    if not count:
        return
    found, times = count.most_common(1)[0]
    examples = [path for path in paths if _splits(path, found)]
    spaced = f" {found} "
    suggested = spaced if all(path.count(spaced) == path.count(found) for path in examples) else found
    raise HierarchyError(
        f"no path contains the default separator {DEFAULT_SEPARATOR!r}, but {times:,} of {len(paths):,} contain "
        f"{suggested!r}, for example {examples[0][:80]!r}. Pass separator={suggested!r} to split them there, or "
        f"separator={DEFAULT_SEPARATOR!r} if {suggested!r} is part of the names"
    )


def _splits(path: str, separator: str) -> bool:
    """Whether a text looks like a path of several steps."""
    steps = path.split(separator)
    # "Acropora sp. 1" is a name with a full stop, "1.14.13" a path.
    return len(steps) > 1 and all(step.strip() and (separator != "." or step == step.strip()) for step in steps)


def order_nodes(edges: Iterable[tuple[str, str]], nodes: Iterable[str] = ()) -> Order:
    """Put the ends of ``edges``, and ``nodes`` that need not have edges, into canonical order.

    Raises:
        HierarchyError: an edge is not a pair of names, joins a node to itself, or is repeated.
        CycleError: the edges form a cycle.
    """
    names: dict[str, int] = {}
    for place, node in enumerate(nodes):
        _check_name(node, f"node {place}")
        names.setdefault(node, len(names))
    pairs = _number_edges(edges, names)
    depth = _depths(len(names), pairs, list(names))

    unordered = list(names)
    by_depth_then_name = sorted(range(len(unordered)), key=lambda old: (depth[old], unordered[old]))
    column = np.empty(len(unordered), dtype=np.int64)
    column[by_depth_then_name] = np.arange(len(unordered))

    old = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    new = column[old]
    new = new[np.lexsort((new[:, 1], new[:, 0]))]
    return Order(
        nodes=tuple(unordered[i] for i in by_depth_then_name),
        depth=np.array([depth[i] for i in by_depth_then_name], dtype=np.int64),
        parents=np.ascontiguousarray(new[:, 0]),
        children=np.ascontiguousarray(new[:, 1]),
    )


def _number_edges(edges: Iterable[tuple[str, str]], names: dict[str, int]) -> list[tuple[int, int]]:
    """Check each edge and replace names by numbers; new names are added to ``names``."""
    seen: dict[tuple[int, int], int] = {}
    for place, edge in enumerate(edges):
        if isinstance(edge, str | Set | Mapping) or not hasattr(edge, "__len__") or len(edge) != 2:
            raise HierarchyError(f"edge {place}: expected a (parent, child) pair of names, got {edge!r}")
        parent, child = edge
        _check_name(parent, f"edge {place} {edge!r}")
        _check_name(child, f"edge {place} {edge!r}")
        if parent == child:
            raise HierarchyError(f"edge {place} {edge!r}: a node cannot be its own parent")
        pair = names.setdefault(parent, len(names)), names.setdefault(child, len(names))
        if pair in seen:
            raise HierarchyError(f"edge {place} {edge!r} repeats edge {seen[pair]}")
        seen[pair] = place
    return list(seen)


def _check_name(name: object, place: str) -> None:
    if not isinstance(name, str):
        raise HierarchyError(f"{place}: a node's name must be text, got {type(name).__name__} {name!r}")
    if not name:
        raise HierarchyError(f"{place}: a node's name must not be empty")


def _depths(count: int, pairs: list[tuple[int, int]], names: list[str]) -> list[int]:
    """Longest path from a root, for each node; a node is visited after all its parents (Kahn's algorithm)."""
    children: defaultdict[int, list[int]] = defaultdict(list)
    waiting = [0] * count
    for parent, child in pairs:
        children[parent].append(child)
        waiting[child] += 1
    depth = [0] * count
    ready = [node for node in range(count) if not waiting[node]]
    for node in ready:  # grows during the loop
        below = depth[node] + 1
        for child in children.get(node, ()):
            depth[child] = max(depth[child], below)
            waiting[child] -= 1
            if not waiting[child]:
                ready.append(child)
    if len(ready) < count:
        raise CycleError(f"the edges form a cycle: {_describe_cycle(pairs, waiting, names)}")
    return depth


def _describe_cycle(pairs: list[tuple[int, int]], waiting: list[int], names: list[str]) -> str:
    """One cycle among the nodes that were never ready. Each has a parent among them, so walking up repeats a node."""
    parent_of = {child: parent for parent, child in pairs if waiting[parent] and waiting[child]}
    node = min(parent_of, key=lambda n: names[n])
    trail: dict[int, None] = {}
    while node not in trail:
        trail[node] = None
        node = parent_of[node]
    upwards = list(trail)[list(trail).index(node) :]
    cycle = [names[n] for n in reversed(upwards)]
    start = cycle.index(min(cycle))
    cycle = [*cycle[start:], *cycle[: start + 1]]
    if len(cycle) > LONGEST_PRINTED_CYCLE:
        half = LONGEST_PRINTED_CYCLE // 2
        cycle = [*cycle[:half], f"... {len(cycle) - 2 * half} more ...", *cycle[-half:]]
    return " -> ".join(cycle)
