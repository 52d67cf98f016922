"""`Lists`: many lists of columns or rows, of any lengths, end to end in one array.

What is above a node, which rows carry it, what is decided beside it: joins of such lists cost as many steps as there
are matches, where a table of all pairs would cost nodes x nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode.hierarchy import Hierarchy

Ints = NDArray[np.int64]

MATCHES_AT_ONCE = 1 << 20


@dataclass(frozen=True, eq=False)
class Lists:
    """List i is ``values[starts[i]:starts[i + 1]]``."""

    starts: Ints
    values: NDArray[np.integer[Any]]

    @classmethod
    def by_key(cls, keys: Ints, values: NDArray[np.integer[Any]], count: int) -> Lists:
        """``count`` lists, where list i holds the values whose key is i; the keys never fall."""
        return cls(np.searchsorted(keys, np.arange(count + 1)), values)

    @property
    def lengths(self) -> Ints:
        """How many values each list has."""
        return np.diff(self.starts)

    def of(self, which: Ints) -> tuple[Ints, Ints]:
        """The chosen lists end to end: for each value its place in ``which``, and the value.

        >>> letters = Lists.by_key(np.array([0, 0, 2]), np.array([7, 8, 9]), 3)
        >>> letters.of(np.array([2, 1, 0]))
        (array([0, 2, 2]), array([9, 7, 8]))
        """
        lengths = self.lengths[which]
        owner = np.repeat(np.arange(len(which)), lengths)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return owner, self.values[self.starts[which][owner] + within].astype(np.int64, copy=False)


def parents_of(hierarchy: Hierarchy) -> Lists:
    """The parents' columns of each node."""
    by_child = np.argsort(hierarchy.edge_children, kind="stable")
    return Lists.by_key(hierarchy.edge_children[by_child], hierarchy.edge_parents[by_child], len(hierarchy))


def parents_or_unseen_root(hierarchy: Hierarchy) -> Lists:
    """The same, with one unseen node above all roots, whose column is that after the last."""
    roots = np.flatnonzero(hierarchy.depth == 0)
    children = np.append(hierarchy.edge_children, roots)
    parents = np.append(hierarchy.edge_parents, np.full(len(roots), len(hierarchy)))
    by_child = np.argsort(children, kind="stable")
    return Lists.by_key(children[by_child], parents[by_child], len(hierarchy))


def slices_by_cost(costs: Ints) -> Iterator[slice]:
    """Items in slices that cost `MATCHES_AT_ONCE` at most, or hold a single item."""
    ends = np.cumsum(costs)
    first = 0
    while first < len(costs):
        spent = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, spent + MATCHES_AT_ONCE, side="right")))
        yield slice(first, last)
        first = last
