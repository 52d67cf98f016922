"""Probabilities and labels (rows, nodes): checked, and in blocks so that working copies stay small.

With 4,000 nodes and 100,000 rows, several arrays with a value for every cell (row, node) would not fit into memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode._io.text import counted
from rarenode.errors import ArgumentError, LabelError
from rarenode.hierarchy.labels import as_array, as_indicator

CELLS_PER_BLOCK = 1 << 20


def as_probabilities(probs: Any) -> NDArray[np.floating[Any]]:
    """``probs`` as (rows, nodes) of float32 or float64, without a copy if possible, or an error that says where."""
    array = as_array(probs)
    if array.ndim != 2 or array.dtype.kind not in "iuf":
        raise ArgumentError(f"probabilities must be numbers (rows, nodes); got {array.dtype} {array.shape}")
    single = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    # Minimum and maximum need no temporary array, and are NaN if any value is.
    if array.size and not (array.min() >= 0 and array.max() <= 1):
        row, node = np.argwhere(~((array >= 0) & (array <= 1)))[0].tolist()
        raise ArgumentError(f"row {row}, column {node}: a probability must be from 0 to 1, got {array[row, node]}")
    return array.astype(np.float32 if single else np.float64, copy=False)


def as_probabilities_and_labels(probs: Any, Y: Any) -> tuple[NDArray[np.floating[Any]], NDArray[np.bool_]]:
    """Probabilities and labels of the same shape, or an error that says what does not fit."""
    probabilities, labels = as_probabilities(probs), as_indicator(Y, "labels")
    if probabilities.shape != labels.shape:
        raise LabelError(f"labels {labels.shape} and probabilities {probabilities.shape} must have the same shape")
    return probabilities, labels


def as_prior(prior: Any, nodes: int) -> NDArray[np.float64]:
    """The share of positives of each node, checked."""
    shares = as_array(prior)
    if shares.shape != (nodes,) or shares.dtype.kind not in "iuf" or not ((shares >= 0) & (shares <= 1)).all():
        raise ArgumentError(f"prior must be one share from 0 to 1 for each of {counted(nodes, 'node')}")
    return shares.astype(np.float64)


def lines_per_block(cells: int) -> int:
    """How many rows, or columns, of so many cells make a block."""
    return max(1, CELLS_PER_BLOCK // max(1, cells))


def row_blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    """Slices of rows, one for each block."""
    rows, nodes = shape
    step = lines_per_block(nodes)
    return (slice(first, first + step) for first in range(0, rows, step))


@dataclass(frozen=True, eq=False)
class Ranked:
    """A block of nodes, each with its rows sorted by falling probability.

    What a threshold p means for a node follows from the rows at or above p, which are the first rows here.
    """

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
        """(nodes, rows): at k - 1 the number of positives among the first k rows."""
        assert self.labels is not None  # noqa: S101 (`Strategy.fit` requires them)
        return np.cumsum(self.labels, axis=1, dtype=np.int64)

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """(rows,): 1, 2, 3 and so on."""
        return np.arange(1, self.probs.shape[1] + 1)

    @cached_property
    def ends(self) -> NDArray[np.bool_]:
        """Where a threshold can lie: at the last of equal probabilities, as it includes them all, and never at 0."""
        ends = self.probs > 0
        ends[:, :-1] &= self.probs[:, :-1] > self.probs[:, 1:]
        return ends

    def at(self, place: NDArray[np.int64]) -> NDArray[np.float64]:
        """The probability at one place of each node."""
        return np.take_along_axis(self.probs, place[:, None], axis=1)[:, 0].astype(np.float64)


def ranked(probs: NDArray[np.floating[Any]], labels: NDArray[np.bool_] | None = None) -> Iterator[Ranked]:
    """All nodes of (rows, nodes), block by block.

    Labels travel with their probabilities through one sort of integers, several times faster than sorting indices: the
    bits of a nonnegative float have the order of its value, and its sign bit, always 0, makes room for the label.
    """
    rows, nodes = probs.shape
    step = lines_per_block(rows)
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
            sorted_labels = (keys & 1).astype(np.bool_)
            np.right_shift(keys, 1, out=keys)
            yield Ranked(columns, block[:, ::-1], sorted_labels[:, ::-1])
