"""Under which of its parents a node is drawn."""

from __future__ import annotations

from hypothesis import given

from rarenode import Hierarchy
from rarenode.report.layout import drawn_parents
from tests import oracles
from tests.strategies import graphs, hierarchies


@given(hierarchies())
def test_the_first_of_the_deepest_parents(hierarchy: Hierarchy) -> None:
    above = drawn_parents(hierarchy)
    for column, name in enumerate(hierarchy.nodes):
        parents = [place for place, other in enumerate(hierarchy.nodes) if (other, name) in hierarchy.edges]
        depths = [oracles.depth(hierarchy.edges, hierarchy.nodes[parent]) for parent in parents]
        expected = parents[depths.index(max(depths))] if parents else -1
        assert above[column] == expected


@given(graphs(most_parents=4).map(lambda graph: graph.build()))
def test_a_level_of_the_drawing_is_a_depth(hierarchy: Hierarchy) -> None:
    above = drawn_parents(hierarchy).tolist()
    assert len(above) == len(hierarchy)
    for column, parent in enumerate(above):
        assert (parent == -1) == (hierarchy.depth[column] == 0)
        if parent >= 0:
            assert hierarchy.depth[parent] + 1 == hierarchy.depth[column]
            assert parent < column


def test_of_equally_deep_parents_the_first() -> None:
    hierarchy = Hierarchy.from_edges([("a", "x"), ("b", "x"), ("c", "x"), ("a", "d"), ("d", "y"), ("c", "y")])
    drawn = {
        node: hierarchy.nodes[parent]
        for node, parent in zip(hierarchy.nodes, drawn_parents(hierarchy).tolist(), strict=True)
        if parent >= 0
    }
    assert drawn == {"d": "a", "x": "a", "y": "d"}
