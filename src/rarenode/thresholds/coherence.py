"""Coherent predictions: where a node is predicted, all its ancestors are.

With a threshold for each node, a child may reach its threshold where its parent does not. There are two remedies:

* ``add_ancestors``: all ancestors of a predicted node are predicted too. No rare node is lost.
* ``drop_orphans``: a node is kept only if all its parents are, from the roots down. No prediction is added.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode.config.choices import Rule, check_rule
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.labels import as_label_matrix


def make_coherent(predicted: Any, hierarchy: Hierarchy, rule: Rule = "add_ancestors") -> NDArray[np.bool_]:
    """Predictions (rows, nodes), 0 or 1, made coherent by a rule, as a new array.

    >>> chain = Hierarchy.from_edges([("a", "b"), ("b", "c")])
    >>> make_coherent([[1, 0, 1]], chain).astype(int)
    array([[1, 1, 1]])
    >>> make_coherent([[1, 0, 1]], chain, "drop_orphans").astype(int)
    array([[1, 0, 0]])
    """
    check_rule(rule)
    predictions = as_label_matrix(predicted, hierarchy.nodes)
    if rule == "add_ancestors":
        return hierarchy.close(predictions)
    kept = predictions.T.copy()  # nodes first: a level is then a few contiguous rows
    for children, starts, parents in _levels_downwards(hierarchy):
        kept[children] &= np.logical_and.reduceat(kept[parents], starts, axis=0)
    return np.ascontiguousarray(kept.T)


def _levels_downwards(
    hierarchy: Hierarchy,
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]]:
    """(children, starts, parents) for each depth of children, from the roots down.

    ``parents[starts[i]:starts[i + 1]]`` are the parents of ``children[i]``. All of them come before.
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
