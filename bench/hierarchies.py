"""Hierarchies of the size and depth of the real ones, drawn, so that the benchmark needs no data."""

from __future__ import annotations

import numpy as np

from rarenode import Hierarchy

SIZES = {
    "FUN": (500, 499, 6),
    "GO": (4120, 5821, 13),
    "45k": (45_000, 100_000, 16),
}
"""name -> nodes, edges, depth. FUN and GO have the sizes of derisi_FUN and derisi_GO."""


def draw(name: str) -> Hierarchy:
    """A random DAG (a tree if it has one edge fewer than nodes) with a single root."""
    nodes, edges, depth = SIZES[name]
    rng = np.random.default_rng(0)
    level = np.minimum(1 + rng.binomial(depth, 0.45, size=nodes), depth)
    level[0] = 0
    level[1 : depth + 1] = np.arange(1, depth + 1)  # no level is empty
    by_level = [np.flatnonzero(level == d) for d in range(depth + 1)]
    pairs = {(int(rng.choice(by_level[level[node] - 1])), node) for node in range(1, nodes)}
    while len(pairs) < edges:
        child = int(rng.integers(1, nodes))
        pairs.add((int(rng.choice(by_level[rng.integers(level[child])])), child))
    return Hierarchy.from_edges((f"n{parent:05}", f"n{child:05}") for parent, child in pairs)
