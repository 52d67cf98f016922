"""Checks of label matrices: (rows, nodes), values 0 and 1, every label with all its ancestors; and what is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from rarenode.errors import LabelError

CELLS_PER_BLOCK = 1 << 25


def as_array(values: Any) -> NDArray[Any]:
    """The values as a numpy array; a tensor is detached and moved to the CPU."""
    return np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)


def as_indicator(values: Any, what: str) -> NDArray[np.bool_]:
    """``values`` as booleans (rows, nodes), or an error that calls them ``what``."""
    array = as_array(values)
    if array.ndim != 2:
        raise LabelError(f"{what} must have the shape (rows, nodes); got {array.shape}")
    if array.dtype == np.bool_:
        return array
    if array.dtype.kind not in "iuf" or not np.isin(array, (0, 1)).all():
        raise LabelError(f"{what} must be 0 or 1")
    indicator: NDArray[np.bool_] = array == 1
    return indicator


def as_known(known: Any, shape: tuple[int, ...]) -> NDArray[np.bool_] | None:
    """Where labels of a shape (rows, nodes) are known, checked; None if they are everywhere."""
    if known is None:
        return None
    mask = as_array(known)
    if mask.dtype != np.bool_ or mask.shape != shape:
        raise LabelError(
            f"known must be boolean and have the shape of the labels, {shape}; got {mask.dtype} {mask.shape}"
        )
    return None if mask.all() else mask


def as_label_matrix(Y: Any, nodes: Sequence[str]) -> NDArray[np.bool_]:
    """``Y`` as booleans (rows, nodes), or an error that says what is wrong and where."""
    array = as_array(Y)
    if array.ndim != 2 or array.shape[1] != len(nodes):
        raise LabelError(
            f"labels must have the shape (rows, {len(nodes)}), one column for each node; got {array.shape}. "
            "Hierarchy.encode turns label sets into such a matrix"
        )
    if array.dtype == np.bool_:
        return array
    if array.dtype.kind not in "iuf":
        raise LabelError(f"labels must be 0 or 1 (boolean, integer or float), got {array.dtype}")
    labels: NDArray[np.bool_] = array == 1
    wrong = ~labels & (array != 0)
    if wrong.any():
        row, column = (int(i) for i in np.argwhere(wrong)[0])
        raise LabelError(f"row {row}, node {nodes[column]!r}: a label must be 0 or 1, got {array[row, column]}")
    return labels


def first_gap(
    labels: NDArray[np.bool_], parents: NDArray[np.int64], children: NDArray[np.int64]
) -> tuple[int, int, int] | None:
    """The first (row, child, parent) where the child is labelled and its parent is not, or None."""
    step = max(1, CELLS_PER_BLOCK // max(1, len(labels)))  # bounds the memory, whatever the number of edges
    for start in range(0, len(parents), step):
        edges = slice(start, start + step)
        gaps = labels[:, children[edges]] & ~labels[:, parents[edges]]
        if gaps.any():
            row, edge = (int(i) for i in np.argwhere(gaps)[0])
            return row, int(children[start + edge]), int(parents[start + edge])
    return None


def as_label_sets(given: Any) -> list[Iterable[str]] | None:
    """The rows, if they are collections of text. Rows of numbers are a matrix, rows that are text are labels.

    >>> as_label_sets([["cat"], ["cat", "dog"]])
    [['cat'], ['cat', 'dog']]
    >>> as_label_sets([[0, 1], [1, 1]]) is None
    True
    """
    if isinstance(given, np.ndarray) and given.dtype != object:
        return None
    if hasattr(given, "dtype") and hasattr(given, "to_list"):  # a column of a data frame
        given = given.to_list()
    if not isinstance(given, list | tuple | np.ndarray):
        return None
    rows = list(given)
    if not all(_is_collection(row) for row in rows):
        return None
    unordered = any(isinstance(row, set | frozenset) for row in rows)
    return rows if unordered or all(isinstance(label, str) for row in rows for label in row) else None


def _is_collection(row: object) -> TypeGuard[Iterable[Any]]:
    return isinstance(row, set | frozenset | list | tuple) or (isinstance(row, np.ndarray) and row.ndim == 1)
