"""`ranked`: each node's rows from the likeliest to the least likely, for a few nodes at a time.

What a threshold of p does to a node follows from the rows at or above p, so all strategies walk a node's rows in
falling order of probability. With 4,000 nodes and 100,000 rows, arrays of every cell would not fit; a block of nodes
does.

Labels travel with their probabilities through one sort of whole numbers, several times faster than sorting indices: a
number that is not negative is ordered as its bits are, and its sign bit, always 0, makes room for the label.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

CELLS_AT_A_TIME = 1 << 20


@dataclass(frozen=True, eq=False)
class Ranked:
    """A block of nodes with their rows in falling order of probability."""

    columns: slice
    """Which nodes."""
    probs: NDArray[np.floating[Any]]
    """(nodes, rows), falling."""
    labels: NDArray[np.bool_] | None
    """(nodes, rows), in the order of ``probs``."""

    @cached_property
    def sums(self) -> NDArray[np.float64]:
        """(nodes, rows): at k - 1 the sum of the k largest probabilities."""
        return np.cumsum(self.probs, axis=1, dtype=np.float64)

    @cached_property
    def hits(self) -> NDArray[np.int64]:
        """(nodes, rows): at k - 1 how many of the k likeliest rows carry the node."""
        assert self.labels is not None  # noqa: S101 (`Strategy.fit` has asked for them)
        return np.cumsum(self.labels, axis=1, dtype=np.int64)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """(rows,): 1, 2, 3 and so on."""
        return np.arange(1, self.probs.shape[1] + 1)

    @cached_property
    def ends(self) -> NDArray[np.bool_]:
        """Where a threshold can lie: at the last of equal probabilities, as it takes them all, and never at 0."""
        ends = self.probs > 0
        ends[:, :-1] &= self.probs[:, :-1] > self.probs[:, 1:]
        return ends

    def at(self, place: NDArray[np.int64]) -> NDArray[np.float64]:
        """The probability at one place of each node."""
        return np.take_along_axis(self.probs, place[:, None], axis=1)[:, 0].astype(np.float64)


def ranked(probs: NDArray[np.floating[Any]], labels: NDArray[np.bool_] | None = None) -> Iterator[Ranked]:
    """All nodes of (rows, nodes), block by block."""
    rows, nodes = probs.shape
    step = max(1, CELLS_AT_A_TIME // max(1, rows))
    for first in range(0, nodes, step):
        columns = slice(first, min(first + step, nodes))
        block = probs[:, columns].T.copy()
        if labels is None:
            block.sort(axis=1)
            yield Ranked(columns, block[:, ::-1], None)
        else:
            keys: NDArray[np.unsignedinteger[Any]] = block.view(np.uint32 if block.itemsize == 4 else np.uint64)
            np.left_shift(keys, 1, out=keys)
            np.bitwise_or(keys, labels[:, columns].T, out=keys)
            keys.sort(axis=1)
            carried = (keys & 1).astype(np.bool_)
            np.right_shift(keys, 1, out=keys)
            yield Ranked(columns, block[:, ::-1], carried[:, ::-1])
