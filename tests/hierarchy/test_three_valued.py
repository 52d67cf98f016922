"""`complete_labels`: what is present, absent and unknown follows from what data state."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rarenode import Hierarchy
from rarenode.errors import LabelError
from rarenode.hierarchy.three_valued import complete_labels
from tests import oracles
from tests.strategies import hierarchies, label_matrices

Bools = NDArray[np.bool_]

# Columns: life, animal, plant, cat, dog, rose.
LIFE = Hierarchy.from_edges(
    [("life", "animal"), ("life", "plant"), ("animal", "cat"), ("animal", "dog"), ("plant", "rose")]
)


class Stated(NamedTuple):
    hierarchy: Hierarchy
    present: Bools
    absent: Bools
    unknown: Bools
    below: bool


@st.composite
def statements(draw: st.DrawFn) -> Stated:
    hierarchy, rows = draw(hierarchies()), draw(st.integers(0, 4))
    present, absent, unknown = (draw(label_matrices(hierarchy, rows)) for _ in range(3))
    if draw(st.booleans()):  # else nearly every row contradicts itself
        absent &= ~oracles.close(present, hierarchy)
    return Stated(hierarchy, present, absent, unknown, draw(st.booleans()))


@given(statements())
def test_it_is_what_loops_find(stated: Stated) -> None:
    hierarchy, present, absent, unknown, below = stated
    expected = oracles.complete_labels(hierarchy, present, absent, unknown, below)
    if expected is None:
        with pytest.raises(LabelError, match="is both present and absent"):
            complete_labels(hierarchy, present, absent, unknown, below=below)
        return
    Y, known = complete_labels(hierarchy, present, absent, unknown, below=below)
    assert Y.tolist() == expected[0].tolist()
    assert (known is None) == bool(expected[1].all())
    if known is not None:
        assert known.tolist() == expected[1].tolist()
        assert known.dtype == np.bool_


@given(statements())
def test_what_follows_is_stated_too(stated: Stated) -> None:
    """Present nodes have present ancestors, absent ones absent descendants; completing again changes nothing."""
    hierarchy, present, absent, unknown, below = stated
    absent &= ~oracles.close(present, hierarchy)
    Y, known = complete_labels(hierarchy, present, absent, unknown, below=below)
    if known is None:
        return
    assert not (Y & ~known).any()
    for parent, child in zip(hierarchy.edge_parents, hierarchy.edge_children, strict=True):
        assert not (Y[:, child] & ~Y[:, parent]).any()
        is_absent = known & ~Y
        assert not (is_absent[:, parent] & ~is_absent[:, child]).any()
    again = complete_labels(hierarchy, Y, known & ~Y, ~known)
    assert again[0].tolist() == Y.tolist()
    assert again[1] is not None
    assert again[1].tolist() == known.tolist()


@given(hierarchies(), st.data())
def test_without_statements_of_what_is_not_there_all_is_known(hierarchy: Hierarchy, data: st.DataObject) -> None:
    present = data.draw(label_matrices(hierarchy, 3))
    Y, known = complete_labels(hierarchy, present)
    assert known is None
    assert Y.tolist() == oracles.close(present, hierarchy).tolist()


def complete(below: bool = False, **stated: list[str]) -> tuple[list[int], list[int]]:
    given_rows = {name: LIFE.encode([nodes]) for name, nodes in stated.items()}
    Y, known = complete_labels(LIFE, given_rows.pop("present", np.zeros((1, 6))), **given_rows, below=below)
    return Y[0].astype(int).tolist(), [1] * 6 if known is None else known[0].astype(int).tolist()


def test_what_is_below_the_deepest_labels_is_unknown() -> None:
    assert complete(present=["animal"], below=True) == ([1, 1, 0, 0, 0, 0], [1, 1, 1, 0, 0, 1])
    assert complete(present=["animal"]) == ([1, 1, 0, 0, 0, 0], [1] * 6)


def test_another_child_excludes_it() -> None:
    assert complete(present=["cat"], below=True) == ([1, 1, 0, 1, 0, 0], [1] * 6)


def test_a_row_that_is_only_at_the_root_leaves_all_else_open() -> None:
    assert complete(present=["life"], below=True) == ([1, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0])
    assert complete(present=["life"], absent=["plant"], below=True)[1] == [1, 0, 1, 0, 0, 1]


def test_a_row_that_only_says_what_is_not_there() -> None:
    assert complete(absent=["animal"], below=True) == ([0] * 6, [0, 1, 0, 1, 1, 0])
    assert complete(absent=["animal"]) == ([0] * 6, [1] * 6)


def test_an_unknown_node_leaves_its_descendants_unknown() -> None:
    assert complete(present=["cat"], unknown=["plant"]) == ([1, 1, 0, 1, 0, 0], [1, 1, 0, 1, 1, 0])
    assert complete(present=["cat"], unknown=["animal", "cat"])[1] == [1] * 6  # a present descendant settles it


def test_an_unknown_node_leaves_its_ancestors_open() -> None:
    assert complete(unknown=["cat"]) == ([0] * 6, [0, 0, 1, 0, 1, 1])
    assert complete(present=["plant"], unknown=["cat"])[1] == [1, 0, 1, 0, 1, 1]
    assert complete(unknown=["cat"], absent=["animal"])[1] == [1] * 6
    assert complete(unknown=["cat"], absent=["dog"])[1] == [0, 0, 1, 0, 1, 1]


def test_a_contradiction_is_named() -> None:
    with pytest.raises(LabelError, match="row 0: 'cat' is both present and absent"):
        complete(present=["cat"], absent=["cat"])
    with pytest.raises(LabelError, match="row 0: 'animal' is both present and absent"):
        complete(present=["cat"], absent=["animal"])
