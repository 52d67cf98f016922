"""Which ancestor stands in the way of a missed node that reaches its own threshold.

By the rule ``drop_orphans`` a node stays only where all its ancestors do. In a row that carries the node, and where it
reaches its own threshold in vain, at least one ancestor is below its own; the one that is so in most of these rows
blocks the node.

Ancestors are visited from the deepest upwards, all nodes at once, so a pair (node, ancestor) comes up once, however
many paths join the two, and only one level of pairs is held. Other than for siblings, all pairs of a blocked node and
an ancestor are looked at: in the hierarchies that there are, depth is small.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode.diagnosis.carried import Carried
from rarenode.diagnosis.lists import Ints, Lists, parents_of, slices_by_cost
from rarenode.diagnosis.most_common import most_common
from rarenode.hierarchy import Hierarchy

Pairs = tuple[Ints, Ints]
"""Columns of nodes, and of an ancestor of each."""


def find_blocking(
    probs: NDArray[np.floating[Any]], thresholds: NDArray[np.float64], hierarchy: Hierarchy, blocked: Carried
) -> Ints:
    """For each node of the blocked cells, the column of the ancestor below its threshold in most of them; else -1.

    Of equal ancestors it is the one of the lowest column.
    """
    parents = parents_of(hierarchy)
    rows = Lists.by_key(blocked.nodes, blocked.rows, len(hierarchy))
    most, by = np.zeros(len(hierarchy), dtype=np.int64), np.full(len(hierarchy), -1)

    waiting: defaultdict[int, list[Pairs]] = defaultdict(list)
    each = np.unique(blocked.nodes)
    _wait_for_parents(waiting, each, each, parents, hierarchy.depth)
    while waiting:
        level = waiting.pop(max(waiting))
        nodes, above = _distinct(level, len(hierarchy))
        counts = _rows_below(probs, thresholds, rows, nodes, above)
        node, column, count = most_common(nodes, above, counts)
        # Columns fall on the way up, so an equal count is one of a lower column.
        better = (count > 0) & (count >= most[node])
        most[node[better]], by[node[better]] = count[better], column[better]
        _wait_for_parents(waiting, nodes, above, parents, hierarchy.depth)
    return by


def _wait_for_parents(
    waiting: defaultdict[int, list[Pairs]], nodes: Ints, above: Ints, parents: Lists, depth: Ints
) -> None:
    """Put the pairs of each node and the parents of what is above it where their depth will look for them."""
    owner, further = parents.of(above)
    for level in np.unique(depth[further]).tolist():
        here = depth[further] == level
        waiting[level].append((nodes[owner[here]], further[here]))


def _distinct(pairs: list[Pairs], width: int) -> Pairs:
    keys = np.unique(np.concatenate([nodes * width + above for nodes, above in pairs]))
    return keys // width, keys % width


def _rows_below(
    probs: NDArray[np.floating[Any]], thresholds: NDArray[np.float64], rows: Lists, nodes: Ints, above: Ints
) -> Ints:
    """For each pair, in how many of the node's rows the ancestor is below its own threshold."""
    counts = np.zeros(len(nodes), dtype=np.int64)
    for some in slices_by_cost(rows.lengths[nodes]):
        pair, row = rows.of(nodes[some])
        column = above[some][pair]
        below = probs[row, column] < thresholds[column]
        counts[some] = np.bincount(pair[below], minlength=len(nodes[some]))
    return counts
