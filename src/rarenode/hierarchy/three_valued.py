"""Labels with three values: present, absent and unknown.

A label that is present makes its ancestors present; one that is absent makes its descendants absent. One that is stated
to be unknown, and is neither by its relatives, leaves its ancestors open: those that are not present are unknown too.
What the data do not state follows from the top of the hierarchy downwards, for a node that is none of these:

* absent, if a parent is absent;
* unknown, if a parent is stated to be unknown, or is so by this rule;
* otherwise, with ``below=False``, absent: what is not named is not there. With ``below=True`` it is unknown if a parent
  is, or if the labels of the row end at all of its parents, and absent if one of them has another child that is
  present: a row labelled to genus leaves its species unknown, but one labelled with a species of that genus excludes
  the others. Of a row in which nothing is stated to be present, the roots are unknown as well.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode.errors import LabelError
from rarenode.hierarchy.dag import Hierarchy

Bools = NDArray[np.bool_]


def complete_labels(
    hierarchy: Hierarchy, present: Any, absent: Any = None, unknown: Any = None, *, below: bool = False
) -> tuple[Bools, Bools | None]:
    """Labels and which of them are known, from what data state.

    Args:
        hierarchy: of the labels.
        present: (rows, nodes), stated labels.
        absent: (rows, nodes), labels that are stated not to be there; None: none.
        unknown: (rows, nodes), labels that are stated to be unknown; None: none.
        below: whether the nodes below a row's deepest labels are unknown, rather than absent.

    Returns:
        Closed labels (rows, nodes), and where they are known (rows, nodes), or None if they are everywhere.

    Raises:
        LabelError: a node is present and absent in one row, itself or by what its relatives say.

    >>> tree = Hierarchy.from_edges([("genus", "species 1"), ("genus", "species 2")])
    >>> Y, known = complete_labels(tree, [[1, 0, 0], [0, 1, 0]], below=True)
    >>> Y.astype(int), known.astype(int)
    (array([[1, 0, 0],
           [1, 1, 0]]), array([[1, 0, 0],
           [1, 1, 1]]))
    """
    Y = hierarchy.close(np.asarray(present, dtype=np.bool_))
    shape = Y.T.shape
    stated_absent = np.zeros(shape, dtype=np.bool_) if absent is None else np.asarray(absent, dtype=np.bool_).T
    stated_unknown = np.zeros(shape, dtype=np.bool_) if unknown is None else np.asarray(unknown, dtype=np.bool_).T
    if not below and not stated_unknown.any() and not stated_absent.any():
        return Y, None
    there = np.ascontiguousarray(Y.T)  # nodes first: a level is then a few contiguous rows
    ends = np.array(there)
    """Present, and without a child that is."""
    parents, starts = hierarchy.families
    if len(parents):
        ends[parents] &= ~np.logical_or.reduceat(there[hierarchy.edge_children], starts[:-1], axis=0)
    levels = _levels_downwards(hierarchy)
    excluded = np.array(stated_absent)
    for nodes, firsts, above in levels[1:]:
        excluded[nodes] |= np.logical_or.reduceat(excluded[above], firsts, axis=0)
    clash = there & excluded
    if clash.any():
        node, row = np.argwhere(clash)[0].tolist()
        raise LabelError(f"row {row}: {hierarchy.nodes[node]!r} is both present and absent")
    spreads = stated_unknown & ~there & ~excluded
    """Unknown, and so is what is below and not stated."""
    no, maybe = np.empty(shape, dtype=np.bool_), hierarchy.close(spreads.T).T & ~there
    for nodes, firsts, above in levels:
        open_ = ~there[nodes] & ~excluded[nodes] & ~maybe[nodes]
        if above is None:
            spreads[nodes] |= open_ & below & ~there.any(axis=0)
        else:
            open_ &= ~np.logical_or.reduceat(no[above], firsts, axis=0)
            inherited = np.logical_or.reduceat((maybe if below else spreads)[above], firsts, axis=0)
            if below:
                inherited |= np.logical_and.reduceat(ends[above], firsts, axis=0)
            spreads[nodes] |= open_ & inherited
        maybe[nodes] |= spreads[nodes]
        no[nodes] = ~there[nodes] & ~maybe[nodes]
    known = np.ascontiguousarray((there | no).T)
    return Y, None if known.all() else known


def _levels_downwards(hierarchy: Hierarchy) -> list[tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]]:
    """(nodes, starts, parents) for each depth, roots first; a node's parents begin at its start and end at the next."""
    order = np.argsort(hierarchy.edge_children, kind="stable")
    children, above = hierarchy.edge_children[order], hierarchy.edge_parents[order]
    levels: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]] = []
    for depth in range(int(hierarchy.depth.max(initial=0)) + 1):
        nodes = np.flatnonzero(hierarchy.depth == depth)
        if depth == 0:
            levels.append((nodes, nodes, None))
            continue
        first, last = np.searchsorted(children, [nodes[0], nodes[-1] + 1])
        starts = np.searchsorted(children[first:last], nodes)
        levels.append((nodes, starts, above[first:last]))
    return levels
