"""`FallingCells`: the cells (row, node) of some nodes by falling probability, a chunk at a time.

Sorting them all at once would take tens of bytes for each cell, and a search from the top seldom goes far.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarenode.thresholds.probabilities import row_blocks

FIRST_CHUNK, GROWTH, MOST_CELLS = 1 << 16, 4, 1 << 22
"""Cells of the first chunk, how many times as many the next may have, and how many a chunk has at most. Equal
probabilities are in one chunk, however many they are."""
DROPPED_BITS = 12
"""Of the bits of a float32, as many as do not matter for a histogram. The bits of numbers from 0 have their order."""
BINS = (int(np.float32(1).view(np.uint32)) >> DROPPED_BITS) + 1


class Chunk(NamedTuple):
    """Cells by falling probability; all equal ones are in the same chunk."""

    first: int
    """How many cells are more probable than these."""
    rows: NDArray[np.int64]
    probs: NDArray[np.float64]
    right: NDArray[np.bool_]
    """Whether the row has the node."""

    @property
    def last(self) -> int:
        """How many cells this chunk and those before have."""
        return self.first + len(self.rows)


@dataclass(frozen=True, eq=False)
class FallingCells:
    """Cells of some nodes that are at least so probable, and above 0."""

    probs: NDArray[np.floating[Any]]
    """(rows, nodes)."""
    labels: NDArray[np.bool_]
    nodes: NDArray[np.int64]
    """The nodes whose cells these are."""
    least: float
    """The smallest probability."""

    def __len__(self) -> int:
        return int(self._histogram.sum())

    def chunks(self) -> Iterator[Chunk]:
        """From the most probable cells on. Each chunk takes a pass over all cells."""
        before = np.append(np.cumsum(self._histogram[::-1])[::-1], 0)  # cells in a bin and above; falling
        top, size = BINS, FIRST_CHUNK
        while before[0] > (done := int(before[top])):
            # The lowest bin with which the chunk is not too large, but at least one that has cells.
            fits = int(np.searchsorted(-before, -(done + size)))
            bottom = min(fits, int(np.searchsorted(-before, -done)) - 1)
            yield self._chunk(done, bottom, top)
            top, size = bottom, min(GROWTH * size, MOST_CELLS)

    @cached_property
    def _histogram(self) -> NDArray[np.int64]:
        counts = np.zeros(BINS, dtype=np.int64)
        for _, cells, wanted in self._blocks():
            bits = cells[wanted].astype(np.float32, copy=False).view(np.uint32)
            counts += np.bincount(bits >> DROPPED_BITS, minlength=BINS)
        return counts

    def _chunk(self, first: int, bottom: int, top: int) -> Chunk:
        """The cells of bins from ``bottom`` to below ``top``."""
        low, high = (np.uint32(edge << DROPPED_BITS).view(np.float32) for edge in (bottom, top))
        rows, probs, right = [], [], []
        for block, cells, wanted in self._blocks():
            single = cells.astype(np.float32, copy=False)  # as the histogram has them
            row, column = np.nonzero(wanted & (single >= low) & (single < high))
            rows.append(block.start + row)
            probs.append(cells[row, column])
            right.append(self.labels[block.start + row, self.nodes[column]])
        found = np.concatenate(probs)
        order = np.argsort(-found)
        return Chunk(first, np.concatenate(rows)[order], found[order].astype(np.float64), np.concatenate(right)[order])

    def _blocks(self) -> Iterator[tuple[slice, NDArray[np.floating[Any]], NDArray[np.bool_]]]:
        """Rows, the probabilities of their cells, and which of them are wanted."""
        least = max(self.least, np.nextafter(0, 1))
        for block in row_blocks((len(self.probs), len(self.nodes))):
            cells = self.probs[block][:, self.nodes]
            yield block, cells, cells >= least
