"""Where a node with several parents is drawn: under the deepest, so that its level in a drawing is its depth."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rarenode.hierarchy import Hierarchy


def drawn_parents(hierarchy: Hierarchy) -> NDArray[np.int64]:
    """(nodes,): the column of the parent that a node is drawn under; -1 for a root.

    The deepest parent; of equally deep ones the first. A depth is the longest way from a root, so that parent is one
    level above.

    >>> drawn_parents(Hierarchy.from_edges([("a", "b"), ("a", "c"), ("b", "c")])).tolist()
    [-1, 0, 1]
    """
    above = np.full(len(hierarchy), -1, dtype=np.int64)
    # Written backwards, so that of equally deep parents the first stays.
    one_level = hierarchy.depth[hierarchy.edge_parents] + 1 == hierarchy.depth[hierarchy.edge_children]
    parents, children = hierarchy.edge_parents[one_level][::-1], hierarchy.edge_children[one_level][::-1]
    above[children] = parents
    return above
