"""Decisions that respect the hierarchy: where a node is decided, all its ancestors are.

Each node has a threshold of its own, so a child may pass where its parent does not. There are two ways out:

* ``add_ancestors``: what is decided stays, and its ancestors are decided with it. No rare node is lost.
* ``drop_orphans``: a node stays only if all its parents stay, from the top downwards. No decision is added.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.labels import as_label_matrix

Rule = Literal["add_ancestors", "drop_orphans"]


def make_coherent(decided: Any, hierarchy: Hierarchy, rule: Rule = "add_ancestors") -> NDArray[np.bool_]:
    """Decisions (rows, nodes), 0 or 1, made coherent by a rule; a new array.

    >>> chain = Hierarchy.from_edges([("a", "b"), ("b", "c")])
    >>> make_coherent([[1, 0, 1]], chain).astype(int)
    array([[1, 1, 1]])
    >>> make_coherent([[1, 0, 1]], chain, "drop_orphans").astype(int)
    array([[1, 0, 0]])
    """
    check_rule(rule)
    decisions = as_label_matrix(decided, hierarchy.nodes)
    if rule == "add_ancestors":
        return hierarchy.close(decisions)
    kept = decisions.T.copy()  # nodes first: a level is then a few contiguous rows
    for children, starts, parents in _levels_downwards(hierarchy):
        kept[children] &= np.logical_and.reduceat(kept[parents], starts, axis=0)
    return np.ascontiguousarray(kept.T)


def check_rule(rule: object) -> None:
    """Refuse what is not a rule."""
    if rule not in get_args(Rule):
        raise ArgumentError(f"unknown rule {rule!r}; choose one of {', '.join(get_args(Rule))}")


def _levels_downwards(
    hierarchy: Hierarchy,
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
    """(children, starts, parents) for each depth of children, the highest first.

    ``parents[starts[i]:starts[i + 1]]`` are the parents of ``children[i]``. All of them lie higher, so they are done.
    """
    by_child = np.argsort(hierarchy.edge_children, kind="stable")
    above = hierarchy.edge_parents[by_child]
    children, starts = np.unique(hierarchy.edge_children[by_child], return_index=True)
    starts = np.append(starts, len(above))
    # Columns are sorted by depth, so each level is one slice of the children and one slice of their edges.
    bounds = np.append(np.unique(hierarchy.depth[children], return_index=True)[1], len(children)).tolist()
    for first, last in pairwise(bounds):
        begin, end = starts[first], starts[last]
        yield children[first:last], starts[first:last] - begin, above[begin:end]
