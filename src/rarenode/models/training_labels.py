"""Labels of training rows as a model keeps them that predicts by rows: lists of columns, and a weight for each row.

The nodes of a row are ``columns[starts[row]:starts[row + 1]]``, rising. The arrays may come from a file of anyone's, so
they are checked before they are used.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rarenode._io.compiled import compiled
from rarenode._io.text import counted
from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.labels import Labels, dense_rows, is_sparse

Integers = NDArray[np.int32]
MOST = 2**31 - 1
"""What an index of 32 bits can reach."""
CELLS_AT_A_TIME = 1 << 25
"""Cells of which `weighted_sums` makes a copy of 8 bytes each."""


class Lists(NamedTuple):
    """Some nodes of each row."""

    starts: NDArray[np.int64]
    columns: NDArray[np.int64]

    @classmethod
    def of(cls, cells: Labels) -> Self:
        """Where (rows, nodes), dense or sparse, are True."""
        if is_sparse(cells):
            return cls(cells.indptr.astype(np.int64), cells.indices.astype(np.int64))
        return cls(starts_of(np.count_nonzero(cells, axis=1)), np.nonzero(cells)[1])

    def times(self, directions: NDArray[np.float64]) -> NDArray[np.float64]:
        """For each row, the sum of what its nodes have in (nodes, targets)."""
        from scipy.sparse import csr_array  # noqa: PLC0415 (only training needs it)

        ones, shape = np.ones(len(self.columns)), (len(self.starts) - 1, len(directions))
        product: NDArray[np.float64] = csr_array((ones, self.columns, self.starts), shape=shape) @ directions
        return product


def starts_of(lengths: Any) -> NDArray[np.int64]:
    """Where spans of these lengths begin that follow one another, and where the last one ends."""
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts


def checked_weights(sample_weight: NDArray[np.float32], rows: int) -> NDArray[np.float64]:
    """How much each row counts, as float64.

    Raises:
        ArgumentError: they are not numbers of at least 0, or all 0.
    """
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.shape != (rows,) or not ((weights >= 0) & (weights < np.inf)).all() or not weights.any():
        raise ArgumentError(f"sample_weight must be {counted(rows, 'number')} of at least 0, not all of them 0")
    return weights


def weighted_sums(weights: NDArray[np.float64], cells: Labels) -> NDArray[np.float64]:
    """(nodes,): the weight of the rows in which (rows, nodes) is True."""
    rows, nodes = cells.shape
    sums, step = np.zeros(nodes), max(CELLS_AT_A_TIME // nodes, 1)
    for first in range(0, rows, step):
        sums += weights[first : first + step] @ dense_rows(cells, slice(first, first + step))
    return sums


def overall_share(
    nodes: int, row_weights: NDArray[np.float64], labels: tuple[Integers, Integers], unknown: tuple[Integers, Integers]
) -> NDArray[np.float64]:
    """(nodes,): the share that has each node, of the rows where it is known; 0 where it is known in none.

    Args:
        nodes: how many there are.
        row_weights: (rows,), how much each row counts.
        labels: starts and columns of the nodes that rows have,
        unknown: and of those that are unknown.
    """
    of_labels, of_unknown = (
        np.bincount(columns, np.repeat(row_weights, np.diff(starts)), minlength=nodes)
        for starts, columns in (labels, unknown)
    )
    of_known = np.maximum(row_weights.sum() - of_unknown, of_labels)
    shares: NDArray[np.float64] = np.divide(of_labels, of_known, out=np.zeros(nodes), where=of_known > 0)
    return shares


def refuse(name: str, array: NDArray[Any], wrong: NDArray[np.bool_], problem: str) -> None:
    """Raise if anything is wrong; the message shows the first such value."""
    if wrong.any():
        at = int(wrong.argmax())
        raise ArgumentError(f"the array {name!r} has {array[at]} at {at}: {problem}")


def check_lists(starts_name: str, starts: Integers, name: str, values: Integers, end: int) -> None:
    """Spans follow one another from the first value to the last. Within each, values rise and lie in [0, end)."""
    if starts[0] != 0 or starts[-1] != values.size:
        raise ArgumentError(
            f"the array {starts_name!r} goes from {starts[0]} to {starts[-1]}; "
            f"it must go from 0 to {values.size}, the length of {name!r}"
        )
    refuse(starts_name, starts[1:], starts[1:] < starts[:-1], "it must not fall (counted from the second value)")
    refuse(name, values, (values < 0) | (values >= end), f"it must be from 0 to {end - 1}")
    begins = np.zeros(values.size + 1, dtype=np.bool_)
    begins[starts] = True
    falls = np.zeros(values.size, dtype=np.bool_)
    falls[1:] = values[1:] <= values[:-1]
    refuse(name, values, falls & ~begins[:-1], f"it must be more than the value before, as {starts_name!r} joins them")


def check_closed(label_starts: Integers, label_columns: Integers, hierarchy: Hierarchy) -> None:
    """A training row has the parents of all its nodes."""
    by_child = np.argsort(hierarchy.edge_children, kind="stable")
    starts = np.searchsorted(hierarchy.edge_children[by_child], np.arange(len(hierarchy) + 1))
    parents = hierarchy.edge_parents[by_child]
    row, child, parent = _first_gap(label_starts, label_columns, starts, parents, len(hierarchy))
    if row >= 0:
        raise ArgumentError(
            f"the array 'label_columns' is not closed: training row {row} has "
            f"{hierarchy.nodes[child]!r} but not its parent {hierarchy.nodes[parent]!r}"
        )


@compiled()
def _first_gap(
    label_starts: Integers,
    label_columns: Integers,
    starts: NDArray[np.int64],
    parents: NDArray[np.int64],
    nodes: int,
) -> tuple[int, int, int]:
    """The first (row, child, parent) where a row has the child only; (-1, -1, -1) if there is none.

    The parents of a node are ``parents[starts[node]:starts[node + 1]]``.
    """
    last_row = np.full(nodes, -1, np.int64)  # the last row that has a node; a parent has the lower column
    for row in range(label_starts.shape[0] - 1):
        for label in range(label_starts[row], label_starts[row + 1]):
            child = label_columns[label]
            last_row[child] = row
            for edge in range(starts[child], starts[child + 1]):
                if last_row[parents[edge]] != row:
                    return row, child, parents[edge]
    return -1, -1, -1
