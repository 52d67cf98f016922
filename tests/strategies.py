"""Hypothesis strategies: random trees and DAGs, closed labels, logits with every kind of trouble, ensembles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from rarenode import Hierarchy
from tests import oracles

Floats = NDArray[np.floating[Any]]

MOST_NODES = 9
TROUBLESOME_LOGITS = (0.0, -0.0, 1.0, -1.0, 17.0, -17.0, 80.0, -80.0, 104.0, -104.0, 800.0, -800.0, 1e4, -1e4)
TROUBLESOME_PROBS = (0.0, 1.0, 0.5, 1e-12, 1.0 - 1e-12, 1e-30, 0.25, 0.75)
TROUBLESOME_NAMES = (
    "a > b", "01/01/03", " ", "\n", "\t x", "%", "@", "?", ",", "'", '"', "\\", "{", "null", "0", "-1", "é",
    "e\u0301", "ß", "海星", "🐚", "\u202e", "\u0000", "A", "a", "root", "a" * 300,
)  # fmt: skip


class Graph(NamedTuple):
    """Names and (parent, child) pairs, in no particular order. Some names may stand in no edge."""

    nodes: tuple[str, ...]
    edges: tuple[tuple[str, str], ...]

    def build(self) -> Hierarchy:
        return Hierarchy.from_edges(self.edges, nodes=self.nodes)


class Problem(NamedTuple):
    """A hierarchy with logits (members, rows, nodes) and closed labels (rows, nodes)."""

    hierarchy: Hierarchy
    logits: NDArray[np.float64]
    labels: NDArray[np.bool_]


def plain_names(count: int) -> tuple[str, ...]:
    return tuple(f"n{number:02d}" for number in range(count))


odd_names: st.SearchStrategy[str] = st.one_of(st.sampled_from(TROUBLESOME_NAMES), st.text(min_size=1, max_size=6))


@st.composite
def graphs(
    draw: st.DrawFn, most_parents: int = 3, most_nodes: int = MOST_NODES, names: st.SearchStrategy[str] | None = None
) -> Graph:
    """A DAG whose names say nothing about who is above whom, with nodes and edges shuffled."""
    count = draw(st.integers(1, most_nodes))
    if names is None:
        called = list(draw(st.permutations(plain_names(count))))
    else:
        called = draw(st.lists(names, min_size=count, max_size=count, unique=True))
    edges: list[tuple[str, str]] = []
    for child in range(1, count):
        above = draw(st.sets(st.integers(0, child - 1), max_size=min(most_parents, child)))
        edges.extend((called[parent], called[child]) for parent in sorted(above))
    return Graph(tuple(draw(st.permutations(called))), tuple(draw(st.permutations(edges))))


def trees(most_nodes: int = MOST_NODES) -> st.SearchStrategy[Graph]:
    """Forests, strictly: there may be several roots."""
    return graphs(most_parents=1, most_nodes=most_nodes)


def oddly_named_graphs() -> st.SearchStrategy[Graph]:
    return graphs(names=odd_names, most_nodes=6)


def hierarchies(most_nodes: int = MOST_NODES) -> st.SearchStrategy[Hierarchy]:
    """Trees and DAGs."""
    return st.one_of(trees(most_nodes), graphs(most_nodes=most_nodes)).map(Graph.build)


def label_matrices(hierarchy: Hierarchy, rows: int) -> st.SearchStrategy[NDArray[np.bool_]]:
    """Any 0/1 matrix, closed or not."""
    return hnp.arrays(np.bool_, (rows, len(hierarchy)))


def closed_labels(hierarchy: Hierarchy, rows: int) -> st.SearchStrategy[NDArray[np.bool_]]:
    return label_matrices(hierarchy, rows).map(lambda Y: oracles.close(Y, hierarchy))


@st.composite
def three_valued(draw: st.DrawFn, hierarchy: Hierarchy, rows: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Labels that are present, absent or unknown: closed labels, and where they are known."""
    Y = draw(closed_labels(hierarchy, rows))
    absent, unknown = draw(label_matrices(hierarchy, rows)) & ~Y, draw(label_matrices(hierarchy, rows))
    completed = oracles.complete_labels(hierarchy, Y, absent, unknown, draw(st.booleans()))
    assert completed is not None
    return completed


tame_logits: st.SearchStrategy[float] = st.floats(-12.0, 12.0, width=32)
"""Where the probability keeps its digits, so that formulas in probabilities are exact enough to compare with."""

any_logits: st.SearchStrategy[float] = st.one_of(st.sampled_from(TROUBLESOME_LOGITS), st.floats(-1e4, 1e4, width=32))

tied_logits: st.SearchStrategy[float] = st.sampled_from((-1.0, 0.0, 0.5, 2.0))


def arrays_of(elements: st.SearchStrategy[float], shape: Sequence[int]) -> st.SearchStrategy[NDArray[np.float64]]:
    return hnp.arrays(np.float64, tuple(shape), elements=elements)


@st.composite
def distinct_logits(draw: st.DrawFn, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """No two cells are equal, nor so close that a finite difference could change their order."""
    size = int(np.prod(shape))
    order = draw(st.permutations(range(size)))
    return ((np.array(order, dtype=np.float64) - size / 2) / 4 + 0.0625).reshape(shape)


@st.composite
def problems(
    draw: st.DrawFn,
    elements: st.SearchStrategy[float] = any_logits,
    most_members: int = 3,
    most_rows: int = 3,
    distinct: bool = False,
    most_nodes: int = 7,
) -> Problem:
    hierarchy = draw(hierarchies(most_nodes))
    shape = draw(st.integers(1, most_members)), draw(st.integers(1, most_rows)), len(hierarchy)
    logits = draw(distinct_logits(shape) if distinct else arrays_of(elements, shape))
    return Problem(hierarchy, logits, draw(closed_labels(hierarchy, shape[1])))


def probabilities() -> st.SearchStrategy[float]:
    return st.one_of(st.sampled_from(TROUBLESOME_PROBS), st.floats(0.0, 1.0, width=32))


@st.composite
def ensembles(draw: st.DrawFn, most_members: int = 4, dtype: type[np.floating[Any]] = np.float64) -> Floats:
    """Probabilities (members, rows, nodes), exactly 0 and exactly 1 among them."""
    shape = draw(st.integers(1, most_members)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    return draw(arrays_of(probabilities(), shape)).astype(dtype)


@st.composite
def node_weight_pairs(draw: st.DrawFn, nodes: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Weights of positive and of negative annotations, from none at all to very much."""
    weights = arrays_of(st.one_of(st.sampled_from((0.0, 1.0, 0.25)), st.floats(0.0, 50.0, width=32)), (nodes,))
    return draw(weights), draw(weights)
