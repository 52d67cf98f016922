"""`suggest`: rows against the formula of its module, node by node; nodes by what a diagnosis says."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from rarenode import Hierarchy, diagnose
from rarenode.diagnosis.annotation import LikelyRow, suggest
from rarenode.diagnosis.titles import distinct_titles
from rarenode.hierarchy.dag import Terms
from rarenode.thresholds import Thresholds
from tests.strategies import hierarchies


def bits(p: float) -> float:
    return 0.0 if p in (0.0, 1.0) else -(p * math.log2(p) + (1 - p) * math.log2(1 - p))


def rank_slowly(
    probs: list[list[float]], training: list[int], scored: list[bool], most: int
) -> list[tuple[int, float]]:
    nodes = range(len(training))
    share = [1.0 for _ in nodes]
    chosen: list[tuple[int, float]] = []
    for _ in range(min(most, len(probs))):
        best: tuple[float, int] | None = None
        for row, p in enumerate(probs):
            if row in [done for done, _ in chosen]:
                continue
            score = sum(share[node] * bits(p[node]) / (1 + training[node]) for node in nodes if scored[node])
            if best is None or score > best[0] + 1e-9:
                best = score, row
        assert best is not None
        score, row = best
        chosen.append((row, score))
        told = [share[node] * bits(probs[row][node]) / (1 + training[node]) if scored[node] else 0.0 for node in nodes]
        for node in sorted(nodes, key=lambda node: -told[node])[:3]:
            share[node] /= 2
    return chosen


@st.composite
def problems(draw: st.DrawFn) -> tuple[list[list[float]], list[int], list[bool], int]:
    """No two cells are worth the same, so that the order is determined."""
    rows, nodes = draw(st.integers(1, 6)), draw(st.integers(1, 8))
    order = draw(st.permutations(range(rows * nodes)))
    probs = (np.array(order).reshape(rows, nodes) + 1) / (2.2 * rows * nodes + 2) + 0.003 * math.pi
    training = draw(st.lists(st.integers(0, 50), min_size=nodes, max_size=nodes))
    scored = draw(st.lists(st.booleans(), min_size=nodes, max_size=nodes).filter(any))
    return probs.astype(np.float32).tolist(), training, scored, draw(st.integers(1, 8))


@given(problems())
def test_rows_by_the_formula(problem: tuple[list[list[float]], list[int], list[bool], int]) -> None:
    probs, training, scored, most = problem
    flat = Hierarchy.from_edges([], nodes=[f"n{node}" for node in range(len(training))])
    array = np.array(probs, dtype=np.float32)
    found = suggest(flat, np.array(training), np.array(scored), probs=array, most=most)
    expected = rank_slowly(probs, training, scored, most)
    assert [int(row.name) for row in found.rows] == [row for row, _ in expected]
    np.testing.assert_allclose([row.score for row in found.rows], [score for _, score in expected], rtol=1e-5)
    assert (found.judged, found.missed) == (0, 0)


@given(hnp.arrays(np.float32, (3, 30), elements=st.floats(0, 1, width=32)))
def test_of_many_nodes_the_twenty_that_are_worth_most(probs: NDArray[np.float32]) -> None:
    flat = Hierarchy.from_edges([], nodes=[f"n{node:02d}" for node in range(30)])
    training = np.arange(30)
    found = suggest(flat, training, np.ones(30, dtype=np.bool_), probs=probs, most=1)
    worth = [sorted((bits(float(p)) / (1 + n) for n, p in enumerate(row)), reverse=True)[:20] for row in probs]
    assert found.rows[0].score == pytest.approx(max(map(sum, worth)), rel=1e-5, abs=1e-8)


def test_what_is_said_of_a_row() -> None:
    tree = Hierarchy.from_paths(["Biota > Corals", "Biota > Sponges"])
    probs = np.array([[1.0, 0.5, 0.01], [1.0, 0.01, 0.02]], dtype=np.float32)
    found = suggest(tree, np.array([90, 2, 40]), np.ones(3, dtype=np.bool_), probs=probs, ids=["a", "b"])
    assert [row.name for row in found.rows] == ["a", "b"]
    assert found.rows[0].why == "uncertain about Corals 0.50, Sponges 0.01, Biota 1.00"


def test_nodes_without_a_diagnosis_are_those_with_few_training_rows() -> None:
    flat = Hierarchy.from_edges([], nodes=list("abcd"))
    found = suggest(flat, np.array([4, 5, 0, 1]), np.array([True, True, True, False]))
    assert [(node.node, node.training_rows, node.why) for node in found.nodes] == [
        ("c", 0, "no training rows: look where its parents are"), ("a", 4, "few training rows"),
    ]  # fmt: skip
    assert found.rows == ()


def test_nodes_with_a_diagnosis_are_those_that_are_missed() -> None:
    """First those with most rows to find, then those with fewest to learn from."""
    flat = Hierarchy.from_edges([], nodes=list("abcd"))
    Y = np.array([[1, 1, 0, 1], [1, 0, 1, 1], [1, 0, 0, 1]], dtype=bool)
    probs = np.array([[0.1, 0.2, 0.1, 0.9]] * 3)
    training = np.array([9, 8, 2, 9])
    diagnosis = diagnose(Y, probs, flat, Thresholds(np.full(4, 0.5)), training)
    found = suggest(flat, training, np.ones(4, dtype=np.bool_), diagnosis=diagnosis, most=2)
    assert (found.judged, found.missed) == (4, 3)
    assert [node.node for node in found.nodes] == ["a", "c"]
    assert all(node.why == diagnosis.explain(flat.index[node.node]) for node in found.nodes)


def test_rare_nodes_that_no_labelled_row_has_come_after_those_that_are_missed() -> None:
    """A label in one of the new rows must not make doctor forget the rest."""
    flat = Hierarchy.from_edges([], nodes=list("abcde"))
    Y = np.array([[1, 1, 0, 0, 0]] * 3, dtype=bool)
    probs = np.array([[0.1, 0.9, 0.1, 0.2, 0.3]] * 3, dtype=np.float32)
    training = np.array([9, 2, 4, 1, 9])
    diagnosis = diagnose(Y, probs, flat, Thresholds(np.full(5, 0.5)), training)
    found = suggest(flat, training, np.ones(5, dtype=np.bool_), diagnosis=diagnosis, probs=probs)
    assert (found.judged, found.missed) == (2, 1)
    assert [node.node for node in found.nodes] == ["a", "d", "c"]
    assert [node.why for node in found.nodes[1:]] == ["few training rows"] * 2
    assert all(node.look_in for node in found.nodes)


def test_titles_that_several_nodes_have() -> None:
    reef = "Reef > " + "Very long name of a group of organisms > " * 2
    tree = Hierarchy.from_paths(["Algae > Brown", f"{reef}Sponges > Brown"])
    found = suggest(tree, np.zeros(len(tree), dtype=np.int64), np.ones(len(tree), dtype=np.bool_))
    titles = {node.node: node.title for node in found.nodes}
    assert titles["Algae > Brown"] == "Algae > Brown"
    shown = titles[f"{reef}Sponges > Brown"]
    assert shown.startswith("...")
    assert shown.endswith("> Sponges > Brown")
    assert len(shown) == 60
    probs = np.full((1, len(tree)), 0.5, dtype=np.float32)
    training = np.array([0 if node.endswith("Brown") else 99 for node in tree.nodes])
    why = suggest(tree, training, np.ones(len(tree), dtype=np.bool_), probs=probs).rows[0].why
    assert why.startswith(f"uncertain about Algae > Brown 0.50, {shown} 0.50, ")


def test_titles_of_nodes_that_have_ids() -> None:
    tree = Hierarchy.from_edges([("g1", "g2"), ("g1", "g3")]).with_terms(Terms(("life", "leg", "leg")))
    assert distinct_titles(tree) == ("life", "leg (g2)", "leg (g3)")


def test_titles_that_differ_only_where_they_would_be_cut() -> None:
    ends = " > ".join(["Very long name of a group of organisms"] * 2)
    tree = Hierarchy.from_paths([f"A > {ends}", f"B > {ends}"])
    assert len(set(distinct_titles(tree))) == len(tree)


@given(hierarchies(), st.data())
def test_where_to_look_for_a_node(dag: Hierarchy, data: st.DataObject) -> None:
    """By the node itself or, going up from nodes that no training row has, by the parents met first."""
    rows = data.draw(st.integers(1, 6))
    probs = data.draw(hnp.arrays(np.float32, (rows, len(dag)), elements=st.sampled_from([0.0, 0.25, 0.5, 0.75])))
    training = data.draw(hnp.arrays(np.int64, len(dag), elements=st.integers(0, 1)))
    found = suggest(dag, training, np.ones(len(dag), dtype=np.bool_), probs=probs, most=len(dag))
    assert len(found.nodes) == len(dag)
    for each in found.nodes:
        level = {each.node}
        while level and not any(training[dag.index[node]] for node in level):
            level = {parent for parent, child in dag.edges if child in level}
        scores = [min((float(probs[row, dag.index[node]]) for node in level), default=0.0) for row in range(rows)]
        expected = sorted((row for row in range(rows) if scores[row] > 0), key=lambda row: (-scores[row], row))[:3]
        assert each.look_in == tuple(LikelyRow(str(row), scores[row]) for row in expected)


def test_nowhere_to_look_without_rows() -> None:
    flat = Hierarchy.from_edges([], nodes=["a"])
    assert suggest(flat, np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.bool_)).nodes[0].look_in == ()
