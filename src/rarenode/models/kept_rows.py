"""`draw_rows`: which training rows `Neighbours` keeps if there are many, with weights that make up for the others.

Rows of rare nodes are drawn before others:

    P(a row is kept) = min(1, c / sqrt(n)),    n: how many rows have its rarest node

where c is such that as many rows are kept as wanted. All rows are kept whose rarest node at most c^2 rows have. A row
that is kept counts 1 / P times, so that the expected weight of every set of rows, such as those with a node, is what it
was (Horvitz and Thompson, 1952).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rarenode.models.training_labels import Lists

Indices = NDArray[np.int64]
Floats = NDArray[np.float64]


def draw_rows(labels: Lists, nodes: int, most: int, rng: np.random.Generator) -> tuple[Indices, Floats]:
    """The places of the rows that are kept, rising, and how many times each counts.

    Args:
        labels: the nodes of each row. Rows without any are treated as if they had one in common.
        nodes: how many nodes there are.
        most: how many rows to keep; fewer than there are.
        rng: decides which.
    """
    rarest = _rarest_nodes(labels, nodes)
    sizes = np.bincount(labels.columns, minlength=nodes + 1)
    sizes[nodes] = np.count_nonzero(rarest == nodes)
    chances = _chances(1 / np.sqrt(sizes[rarest]), most)
    certain, others = np.flatnonzero(chances == 1), np.flatnonzero(chances < 1)
    # Systematic sampling: rows form a line, each as long as its chance, and those are kept in which the points u,
    # u + 1, u + 2 and so on lie. Rows with the same rarest node are side by side, so that each node gets its part.
    others = others[np.lexsort((rng.random(len(others)), rarest[others]))]
    ends = np.cumsum(chances[others])
    points = rng.random() + np.arange(most - len(certain))
    drawn = others[np.searchsorted(ends[:-1], points, side="right")]
    kept = np.union1d(certain, drawn)
    return kept, 1 / chances[kept]


def _rarest_nodes(labels: Lists, nodes: int) -> Indices:
    """(rows,): of the nodes of each row, the one that the fewest rows have; ``nodes`` for a row without any."""
    by_size = np.argsort(np.bincount(labels.columns, minlength=nodes), kind="stable")
    ranks = np.empty(nodes, dtype=np.int64)
    ranks[by_size] = np.arange(nodes)
    some = np.diff(labels.starts) > 0
    rarest = np.full(len(some), nodes)
    if some.any():
        rarest[some] = by_size[np.minimum.reduceat(ranks[labels.columns], labels.starts[:-1][some])]
    return rarest


def _chances(importance: Floats, most: int) -> Floats:
    """In proportion to the importance, 1 at most, and together ``most``."""
    falling = np.sort(importance)[::-1]
    left = np.cumsum(falling[::-1])[::-1]  # the sum of what is not more important
    factors = (most - np.arange(len(falling))) / left  # if so many of the most important are certain
    certain = int(np.argmax(factors * falling < 1))
    return np.where(importance > falling[certain], 1.0, importance * factors[certain])
