"""`most_common`: of what was counted beside a node, that which was counted most."""

from __future__ import annotations

import numpy as np

from rarenode.diagnosis.lists import Ints


def most_common(nodes: Ints, columns: Ints, counts: Ints) -> tuple[Ints, Ints, Ints]:
    """For each node that occurs, its column with the largest count, the lowest of equal ones, and the count.

    The input is sorted by node, then column.

    >>> most_common(np.array([5, 5, 5]), np.array([1, 2, 3]), np.array([1, 2, 2]))
    (array([5]), array([2]), array([2]))
    """
    _, first, lengths = np.unique(nodes, return_index=True, return_counts=True)
    largest = np.maximum.reduceat(counts, first) if len(first) else counts
    best = np.flatnonzero(counts == np.repeat(largest, lengths))
    best = best[np.unique(nodes[best], return_index=True)[1]]
    return nodes[best], columns[best], counts[best]
