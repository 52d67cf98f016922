"""Label matrices: (rows, nodes), values 0 and 1, every label with all its ancestors; and what is known.

A matrix is dense, an array of booleans, or sparse, a scipy CSR array with rising columns and nothing stored that is not
a label. Sparse ones cost labels and not cells: 100,000 rows over 40,000 nodes are 4 GB dense, and 50 MB sparse.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeGuard

import numpy as np
from numpy.typing import NDArray

from rarenode.errors import LabelError

CELLS_PER_BLOCK = 1 << 25
MOST_DENSE_CELLS = 1 << 28
"""Labels with more cells are made sparse where they are read."""

Labels = Any
"""A dense or a sparse label matrix."""


def as_array(values: Any) -> NDArray[Any]:
    """The values as a numpy array; a tensor is detached and moved to the CPU, and a sparse matrix becomes dense."""
    if is_sparse(values):
        return np.asarray(values.toarray())
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
    labels: Labels, parents: NDArray[np.int64], children: NDArray[np.int64]
) -> tuple[int, int, int] | None:
    """The first (row, child, parent) where the child is labelled and its parent is not, or None."""
    if is_sparse(labels):
        return _first_gap_in_sparse(labels, parents, children)
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


# --- sparse or dense -------------------------------------------------------------------------------------------------


def is_sparse(Y: Any) -> bool:
    """Whether Y is a scipy sparse matrix or array."""
    return hasattr(Y, "tocsr")


def sparse_labels(rows: NDArray[np.int64], columns: NDArray[np.int64], shape: tuple[int, int]) -> Any:
    """A sparse label matrix from the places of labels, in any order; one that is given twice counts once."""
    from scipy.sparse import csr_array  # noqa: PLC0415 (only large data need it)

    keys = np.unique(np.asarray(rows, dtype=np.int64) * shape[1] + columns)
    starts = np.searchsorted(keys, np.arange(shape[0] + 1) * shape[1])
    return csr_array((np.ones(len(keys), dtype=np.bool_), keys % max(shape[1], 1), starts), shape=shape)


def as_sparse_labels(Y: Any, nodes: Sequence[str]) -> Any:
    """A sparse matrix of 0 and 1 in the form that this module describes, or an error that says what is wrong."""
    if Y.ndim != 2 or Y.shape[1] != len(nodes):
        raise LabelError(
            f"labels must have the shape (rows, {len(nodes)}), one column for each node; got {Y.shape}. "
            "Hierarchy.encode turns label sets into such a matrix"
        )
    if Y.format == "csr" and Y.dtype == np.bool_ and Y.has_canonical_format and Y.data.all():
        return Y
    given = Y.tocoo()
    wrong = (given.data != 0) & (given.data != 1)
    if wrong.any():
        at = int(wrong.argmax())
        row, column = int(given.coords[0][at]), int(given.coords[1][at])
        raise LabelError(f"row {row}, node {nodes[column]!r}: a label must be 0 or 1, got {given.data[at]}")
    return _canonical(given)


def _canonical(given: Any) -> Any:
    """The labels that are stored and not 0, from coordinates."""
    present = given.data != 0
    return sparse_labels(given.coords[0][present], given.coords[1][present], given.shape)


def close_sparse(Y: Any, parents: NDArray[np.int64], children: NDArray[np.int64]) -> Any:
    """Sparse labels with their ancestors, of which (parents, children) are the edges.

    Each turn adds the parents of what the turn before has added, so there are as many as the hierarchy has levels.
    """
    upwards = sparse_labels(children, parents, (Y.shape[1], Y.shape[1]))
    closed = added = Y
    while added.nnz:
        above = (added @ upwards).tocsr()
        added = (above > closed).tocsr()
        closed = (closed + added).tocsr()
    return _canonical(closed.tocoo())


def _first_gap_in_sparse(
    labels: Any, parents: NDArray[np.int64], children: NDArray[np.int64]
) -> tuple[int, int, int] | None:
    upwards = sparse_labels(children, parents, (labels.shape[1], labels.shape[1]))
    lacking = ((labels @ upwards) > labels).tocoo()
    if not lacking.nnz:
        return None
    at = int(np.lexsort((lacking.coords[1], lacking.coords[0]))[0])
    row, parent = int(lacking.coords[0][at]), int(lacking.coords[1][at])
    has = set(labels.indices[labels.indptr[row] : labels.indptr[row + 1]].tolist())
    child = next(node for node in children[parents == parent].tolist() if node in has)
    return row, child, parent


def dense_rows(Y: Labels, rows: NDArray[np.int64] | slice = slice(None)) -> NDArray[np.bool_]:
    """Some rows of a label matrix, dense.

    >>> dense_rows(sparse_labels(np.array([0, 2]), np.array([1, 0]), (3, 2)), np.array([2, 0]))
    array([[ True, False],
           [False,  True]])
    """
    if not is_sparse(Y):
        taken: NDArray[np.bool_] = Y[rows]
        return taken
    chosen = np.arange(Y.shape[0])[rows]
    result = np.zeros((len(chosen), Y.shape[1]), dtype=np.bool_)
    lengths = Y.indptr[chosen + 1] - Y.indptr[chosen]
    ends = np.cumsum(lengths)
    places = np.repeat(Y.indptr[chosen] - (ends - lengths), lengths) + np.arange(ends[-1] if len(ends) else 0)
    result[np.repeat(np.arange(len(chosen)), lengths), Y.indices[places]] = True
    return result


def row_blocks(Y: Labels) -> Iterator[tuple[slice, NDArray[np.bool_]]]:
    """The rows of a label matrix, dense and some at a time."""
    step = max(1, CELLS_PER_BLOCK // max(1, Y.shape[1]))
    for first in range(0, Y.shape[0], step):
        rows = slice(first, first + step)
        yield rows, dense_rows(Y, rows)


def count_labels(Y: Labels) -> NDArray[np.int64]:
    """(nodes,): how many rows have each node."""
    if is_sparse(Y):
        return np.bincount(Y.indices, minlength=Y.shape[1])
    counts: NDArray[np.int64] = Y.sum(axis=0, dtype=np.int64)
    return counts


def stack_labels(parts: Sequence[Labels]) -> Labels:
    """The rows of several label matrices, all of which are dense or all sparse."""
    if not any(is_sparse(each) for each in parts):
        return np.concatenate(parts)
    from scipy.sparse import csr_array, vstack  # noqa: PLC0415

    return vstack([csr_array(each) for each in parts], format="csr")


def take_known(known: NDArray[np.bool_], rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Some rows of a mask; one that is the same for all nodes stays so, and takes no memory for them."""
    if known.shape[1] and known.strides[1] == 0:
        return np.broadcast_to(known[rows, :1], (len(rows), known.shape[1]))
    return known[rows]
