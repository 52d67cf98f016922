"""Hierarchy against the oracles, on random trees and DAGs."""

from __future__ import annotations

import copy
import pickle
import random
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode import Hierarchy
from rarenode.errors import CycleError, HierarchyError, NotClosedError, UnknownLabelError
from tests import oracles
from tests.strategies import Graph, graphs, hierarchies, label_matrices, oddly_named_graphs, trees

any_graph = st.one_of(trees(), graphs(), oddly_named_graphs())


@given(any_graph)
def test_relatives_and_depths_match_the_oracle(graph: Graph) -> None:
    hierarchy = graph.build()
    assert set(hierarchy.nodes) == set(graph.nodes)
    assert sorted(hierarchy.edges) == sorted(graph.edges)
    for column, name in enumerate(hierarchy.nodes):
        assert hierarchy.index[name] == column
        assert hierarchy.depth[column] == oracles.depth(graph.edges, name)
        assert set(hierarchy.ancestors(name)) == oracles.ancestors(graph.edges, name)
        assert set(hierarchy.descendants(name)) == oracles.descendants(graph.edges, name)
        assert set(hierarchy.parents(name)) == {p for p, c in graph.edges if c == name}
        assert set(hierarchy.children(name)) == {c for p, c in graph.edges if p == name}
        for relatives in (hierarchy.parents, hierarchy.children, hierarchy.ancestors, hierarchy.descendants):
            columns = [hierarchy.index[relative] for relative in relatives(name)]
            assert columns == sorted(set(columns))
    assert set(hierarchy.roots) == {n for n in graph.nodes if not oracles.ancestors(graph.edges, n)}
    assert set(hierarchy.leaves) == {n for n in graph.nodes if not oracles.descendants(graph.edges, n)}
    assert hierarchy.is_tree == all(len(hierarchy.parents(n)) <= 1 for n in graph.nodes)


@given(any_graph, st.randoms(use_true_random=False))
def test_the_order_of_the_input_does_not_matter(graph: Graph, shuffler: random.Random) -> None:
    nodes, edges = list(graph.nodes), list(graph.edges)
    shuffler.shuffle(nodes)
    shuffler.shuffle(edges)
    one, other = graph.build(), Hierarchy.from_edges(edges, nodes=nodes)
    assert one == other
    assert hash(one) == hash(other)
    assert one.fingerprint == other.fingerprint
    assert (one.nodes, one.edges) == (other.nodes, other.edges)
    assert one.depth.tolist() == other.depth.tolist()


@given(any_graph)
def test_columns_are_sorted_by_depth_then_name(graph: Graph) -> None:
    hierarchy = graph.build()
    expected = sorted(graph.nodes, key=lambda name: (oracles.depth(graph.edges, name), name))
    assert list(hierarchy.nodes) == expected
    assert all(hierarchy.index[parent] < hierarchy.index[child] for parent, child in hierarchy.edges)


@given(any_graph, any_graph)
def test_equality_is_equality_of_content(one: Graph, other: Graph) -> None:
    same = set(one.nodes) == set(other.nodes) and set(one.edges) == set(other.edges)
    assert (one.build() == other.build()) is same
    assert (one.build().fingerprint == other.build().fingerprint) is same


@given(graphs(most_nodes=6), st.data())
def test_the_printed_cycle_is_a_real_one(graph: Graph, data: st.DataObject) -> None:
    """Add an edge from a node to one of its ancestors, and read the cycle off the message."""
    pairs = [(name, above) for name in graph.nodes for above in sorted(oracles.ancestors(graph.edges, name))]
    if not pairs:
        return
    back = data.draw(st.sampled_from(pairs))
    edges = data.draw(st.permutations([*graph.edges, back]))
    with pytest.raises(CycleError) as caught:
        Hierarchy.from_edges(edges, nodes=graph.nodes)
    cycle = str(caught.value).rpartition(": ")[2].split(" -> ")
    assert len(cycle) >= 3
    assert cycle[0] == cycle[-1]
    assert set(pairwise(cycle)) <= set(edges)


@given(graphs(), st.data())
def test_a_duplicate_or_a_self_loop_names_its_place(graph: Graph, data: st.DataObject) -> None:
    loop = data.draw(st.sampled_from(graph.nodes))
    place = data.draw(st.integers(0, len(graph.edges)))
    edges = list(graph.edges)
    edges.insert(place, (loop, loop))
    with pytest.raises(HierarchyError, match=rf"\bedge {place}\b"):
        Hierarchy.from_edges(edges)
    if graph.edges:
        edges = [*graph.edges, data.draw(st.sampled_from(graph.edges))]
        with pytest.raises(HierarchyError, match=rf"\bedge {len(graph.edges)}\b"):
            Hierarchy.from_edges(edges)


@given(any_graph, st.data())
def test_encode_and_decode_are_inverse(graph: Graph, data: st.DataObject) -> None:
    hierarchy = graph.build()
    label_sets = data.draw(st.lists(st.frozensets(st.sampled_from(graph.nodes)), max_size=5))
    Y = hierarchy.encode(label_sets)
    assert Y.dtype == np.bool_
    assert hierarchy.decode(Y) == label_sets
    again = data.draw(label_matrices(hierarchy, 3))
    assert np.array_equal(hierarchy.encode(hierarchy.decode(again)), again)


@given(any_graph, st.data())
def test_an_unknown_label_names_row_and_label(graph: Graph, data: st.DataObject) -> None:
    hierarchy = graph.build()
    label_sets = data.draw(st.lists(st.lists(st.sampled_from(graph.nodes), max_size=3), min_size=1, max_size=4))
    row = data.draw(st.integers(0, len(label_sets) - 1))
    label_sets[row] = [*label_sets[row], "not a node of it"]
    with pytest.raises(UnknownLabelError) as caught:
        hierarchy.encode(label_sets)
    assert f"row {row}" in str(caught.value)
    assert "not a node of it" in str(caught.value)


@given(hierarchies(), st.data())
def test_close_matches_the_oracle_and_is_idempotent(hierarchy: Hierarchy, data: st.DataObject) -> None:
    Y = data.draw(label_matrices(hierarchy, 4))
    closed = hierarchy.close(Y)
    assert np.array_equal(closed, oracles.close(Y, hierarchy))
    assert np.array_equal(hierarchy.close(closed), closed)
    assert hierarchy.is_closed(closed)
    assert hierarchy.is_closed(Y) is np.array_equal(Y, closed)


@given(hierarchies(), st.data())
def test_require_closed_names_a_real_gap(hierarchy: Hierarchy, data: st.DataObject) -> None:
    Y = data.draw(label_matrices(hierarchy, 3))
    gaps = [
        (row, child, parent)
        for row in range(3)
        for parent, child in hierarchy.edges
        if Y[row, hierarchy.index[child]] and not Y[row, hierarchy.index[parent]]
    ]
    if not gaps:
        assert np.array_equal(hierarchy.require_closed(Y), Y)
        return
    with pytest.raises(NotClosedError) as caught:
        hierarchy.require_closed(Y)
    message = str(caught.value)
    assert any(f"row {r} " in message and repr(c) in message and repr(p) in message for r, c, p in gaps)


@given(hierarchies(), st.data())
def test_sum_over_descendants_matches_the_oracle(hierarchy: Hierarchy, data: st.DataObject) -> None:
    values = np.array(data.draw(st.lists(st.integers(-50, 50), min_size=len(hierarchy), max_size=len(hierarchy))))
    assert hierarchy.sum_over_descendants(values).tolist() == oracles.sum_over_descendants(values, hierarchy).tolist()
    halves = values / 2
    assert np.allclose(hierarchy.sum_over_descendants(halves), oracles.sum_over_descendants(halves, hierarchy))


@given(any_graph)
def test_pickle_and_copies(graph: Graph) -> None:
    hierarchy = graph.build()
    for again in (pickle.loads(pickle.dumps(hierarchy)), copy.copy(hierarchy), copy.deepcopy(hierarchy)):
        assert again == hierarchy
        assert (again.nodes, again.edges) == (hierarchy.nodes, hierarchy.edges)
        assert again.fingerprint == hierarchy.fingerprint


@given(hierarchies())
def test_levels_upwards_visit_each_edge_once_children_before_parents(hierarchy: Hierarchy) -> None:
    seen: list[tuple[int, int]] = []
    finished: set[int] = set()
    for parents, starts, children in hierarchy.levels_upwards:
        bounds = [*starts.tolist(), len(children)]
        for i, parent in enumerate(parents.tolist()):
            mine = children[bounds[i] : bounds[i + 1]].tolist()
            assert mine
            assert parent not in finished
            seen.extend((parent, child) for child in mine)
        finished |= set(parents.tolist())
        for child in set(children.tolist()):  # a child with children of its own must be finished
            assert child in finished or hierarchy.nodes[child] in hierarchy.leaves
    columns = [(hierarchy.index[p], hierarchy.index[c]) for p, c in hierarchy.edges]
    assert sorted(seen) == sorted(columns)
