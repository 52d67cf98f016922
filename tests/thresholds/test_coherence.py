"""`make_coherent`: a decided node comes with all its ancestors, by either rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode import Hierarchy
from rarenode.errors import ArgumentError, LabelError
from rarenode.thresholds import Rule, make_coherent
from tests.strategies import hierarchies, label_matrices
from tests.thresholds import oracles

RULES: tuple[Rule, ...] = ("add_ancestors", "drop_orphans")
both_rules = pytest.mark.parametrize("rule", RULES)

DIAMOND = Hierarchy.from_edges([("top", "left"), ("top", "right"), ("left", "low"), ("right", "low"), ("low", "leaf")])
"""Columns: top, left, right, low, leaf."""


@given(data=st.data())
def test_both_rules_match_their_oracles(data: st.DataObject) -> None:
    hierarchy = data.draw(hierarchies())
    decided = data.draw(label_matrices(hierarchy, data.draw(st.integers(0, 4))))
    before = decided.copy()
    added, dropped = make_coherent(decided, hierarchy), make_coherent(decided, hierarchy, "drop_orphans")
    assert np.array_equal(added, oracles.add_ancestors(decided, hierarchy))
    assert np.array_equal(dropped, oracles.drop_orphans(decided, hierarchy))
    assert np.array_equal(decided, before)
    assert added.dtype == dropped.dtype == np.bool_
    assert hierarchy.is_closed(added)
    assert hierarchy.is_closed(dropped)
    assert (dropped <= decided).all()
    assert (decided <= added).all()


@both_rules
@given(data=st.data())
def test_what_is_coherent_stays_as_it_is(rule: Rule, data: st.DataObject) -> None:
    hierarchy = data.draw(hierarchies())
    coherent = make_coherent(data.draw(label_matrices(hierarchy, 3)), hierarchy, rule)
    for again in RULES:
        assert np.array_equal(make_coherent(coherent, hierarchy, again), coherent)


def test_one_missing_parent_of_two_drops_the_child_and_what_is_below() -> None:
    decided = np.array([[1, 1, 0, 1, 1], [1, 0, 1, 1, 1], [1, 1, 1, 1, 1], [0, 1, 1, 1, 1]], dtype=bool)
    dropped = make_coherent(decided, DIAMOND, "drop_orphans")
    assert dropped.astype(int).tolist() == [[1, 1, 0, 0, 0], [1, 0, 1, 0, 0], [1, 1, 1, 1, 1], [0, 0, 0, 0, 0]]


def test_a_leaf_brings_both_its_parents_lines() -> None:
    decided = np.array([[0, 0, 0, 0, 1], [0, 0, 1, 0, 0]], dtype=bool)
    assert make_coherent(decided, DIAMOND).astype(int).tolist() == [[1, 1, 1, 1, 1], [1, 0, 1, 0, 0]]


@both_rules
def test_the_input_is_not_handed_back(rule: Rule) -> None:
    decided = np.ones((1, 5), dtype=bool)
    make_coherent(decided, DIAMOND, rule)[:] = False
    assert decided.all()


@both_rules
def test_a_hierarchy_without_edges_changes_nothing(rule: Rule) -> None:
    flat = Hierarchy.from_edges([], nodes=["a", "b"])
    assert make_coherent([[0, 1]], flat, rule).tolist() == [[False, True]]


def test_an_unknown_rule_names_the_known_ones() -> None:
    with pytest.raises(ArgumentError, match=r"'prune'.*add_ancestors, drop_orphans"):
        make_coherent([[0] * 5], DIAMOND, "prune")  # type: ignore[arg-type]


@both_rules
def test_another_number_of_columns_is_refused(rule: Rule) -> None:
    with pytest.raises(LabelError, match=r"\(rows, 5\)"):
        make_coherent([[0] * 4], DIAMOND, rule)
