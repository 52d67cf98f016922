"""Sparse label matrices: what is done with them is what is done with dense ones."""

from __future__ import annotations

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray
from scipy.sparse import coo_array, csc_matrix, csr_array

from rarenode import Hierarchy
from rarenode.errors import LabelError, NotClosedError
from rarenode.hierarchy.labels import (
    as_sparse_labels,
    count_labels,
    dense_rows,
    row_blocks,
    sparse_labels,
    stack_labels,
)
from tests.strategies import hierarchies

Bools = NDArray[np.bool_]
PETS = Hierarchy.from_edges([("pet", "cat"), ("pet", "dog")])


@st.composite
def labelled(draw: st.DrawFn) -> tuple[Hierarchy, Bools]:
    """A hierarchy and labels that need not be closed."""
    hierarchy = draw(hierarchies())
    return hierarchy, draw(hnp.arrays(np.bool_, (draw(st.integers(0, 6)), len(hierarchy))))


def outcome(hierarchy: Hierarchy, Y: object) -> str | None:
    """What is said about labels that are not closed."""
    try:
        hierarchy.require_closed(Y)
    except NotClosedError as error:
        return str(error)
    return None


@given(labelled())
def test_closing_and_checking_are_those_of_dense_labels(case: tuple[Hierarchy, Bools]) -> None:
    hierarchy, Y = case
    sparse = csr_array(Y)
    closed = hierarchy.close(sparse)
    assert np.array_equal(closed.toarray(), hierarchy.close(Y))
    assert closed.dtype == np.bool_
    assert closed.has_canonical_format
    assert hierarchy.is_closed(sparse) == hierarchy.is_closed(Y)
    assert outcome(hierarchy, sparse) == outcome(hierarchy, Y)
    assert outcome(hierarchy, closed) is None


@given(labelled(), st.data())
def test_rows_counts_blocks_and_stacks_are_those_of_dense_labels(
    case: tuple[Hierarchy, Bools], data: st.DataObject
) -> None:
    _, Y = case
    sparse = csr_array(Y)
    rows = np.array(data.draw(st.lists(st.integers(0, len(Y) - 1), max_size=8)) if len(Y) else [], dtype=np.int64)
    assert np.array_equal(dense_rows(sparse, rows), Y[rows])
    assert np.array_equal(dense_rows(sparse), Y)
    assert np.array_equal(count_labels(sparse), Y.sum(axis=0))
    assert np.array_equal(stack_labels([sparse, sparse[rows]]).toarray(), np.concatenate([Y, Y[rows]]))
    assert np.array_equal(stack_labels([Y, sparse]).toarray(), np.concatenate([Y, Y]))


def test_blocks_are_all_rows_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rarenode.hierarchy.labels.CELLS_PER_BLOCK", 7)
    Y = np.random.default_rng(0).random((11, 3)) < 0.5
    for given_as in (Y, csr_array(Y)):
        blocks = list(row_blocks(given_as))
        assert len(blocks) == 6
        assert np.array_equal(np.concatenate([rows for _, rows in blocks]), Y)
        assert all(np.array_equal(Y[place], rows) for place, rows in blocks)


def test_encoding_is_that_of_dense_labels() -> None:
    sets = [["cat"], [], ["dog", "cat", "dog"]]
    sparse = PETS.encode(sets, sparse=True)
    assert np.array_equal(sparse.toarray(), PETS.encode(sets))
    assert PETS.decode(sparse) == PETS.decode(PETS.encode(sets))


@pytest.mark.parametrize("make", [csr_array, csc_matrix, coo_array])
@pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.float64])
def test_any_sparse_matrix_is_brought_into_one_form(make: type, dtype: type) -> None:
    made = as_sparse_labels(make(np.array([[1, 0, 1], [0, 0, 0]], dtype=dtype)), PETS.nodes)
    assert made.format == "csr"
    assert made.dtype == np.bool_
    assert made.indices.tolist() == [0, 2]
    assert made.indptr.tolist() == [0, 2, 2]


def test_zeros_that_are_stored_are_no_labels() -> None:
    stored = csr_array((np.array([False, True, False]), np.array([0, 2, 1]), np.array([0, 2, 3])), shape=(2, 3))
    assert as_sparse_labels(stored, PETS.nodes).toarray().tolist() == [[False, False, True], [False, False, False]]
    assert count_labels(as_sparse_labels(stored, PETS.nodes)).tolist() == [0, 0, 1]


def test_a_label_that_is_given_twice_counts_once() -> None:
    twice = sparse_labels(np.array([1, 1]), np.array([2, 2]), (3, 3))
    assert count_labels(twice).tolist() == [0, 0, 1]


def test_other_numbers_are_refused_by_row_and_node() -> None:
    with pytest.raises(LabelError, match=re.escape(f"row 1, node {PETS.nodes[2]!r}: a label must be 0 or 1, got 2.0")):
        PETS.close(csr_array([[0.0, 1.0, 0.0], [0.0, 0.0, 2.0]]))


def test_other_shapes_are_refused() -> None:
    with pytest.raises(LabelError, match=re.escape("labels must have the shape (rows, 3)")):
        PETS.close(csr_array(np.zeros((2, 4))))
