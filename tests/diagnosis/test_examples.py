"""Examples of nodes, against sorting all rows of all nodes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rarenode import Hierarchy
from rarenode.diagnosis import diagnose
from rarenode.diagnosis.examples import Example, Examples, NodeExamples, choose_examples
from rarenode.thresholds import Thresholds
from tests.diagnosis.oracles import Case, cases, crowded_case, predict

PETS = Hierarchy.from_edges([("pet", "cat"), ("pet", "dog")])
"""Columns: pet, cat, dog."""


def examples_of(case: Case, most_nodes: int = 24, most_rows: int = 3) -> Examples:
    nodes = diagnose(case.Y, case.probs, case.hierarchy, case.thresholds, case.training, scored=case.scored,
                     known=case.known)  # fmt: skip
    decided = case.thresholds.decide(case.probs, case.hierarchy)
    return choose_examples(
        case.Y, case.probs, decided, nodes, known=case.known, most_nodes=most_nodes, most_rows=most_rows
    )


def by_loops(case: Case, most_nodes: int = 24, most_rows: int = 3) -> Examples:
    decided = predict(case.probs, case.thresholds.values, case.thresholds.rule, case.hierarchy)
    every: dict[int, NodeExamples] = {}
    for column in range(len(case.hierarchy)):
        if case.scored is not None and not case.scored[column]:
            continue
        kinds: dict[tuple[bool, bool], list[Example]] = {}
        for row in range(len(case.Y)):
            if case.known is None or case.known[row, column]:
                kind = bool(case.Y[row, column]), bool(decided[row, column])
                kinds.setdefault(kind, []).append(Example(row, float(case.probs[row, column])))
        falling = {kind: sorted(rows, key=lambda e: (-e.probability, e.row)) for kind, rows in kinds.items()}
        rising = sorted(kinds.get((True, False), []), key=lambda e: (e.probability, e.row))
        every[column] = NodeExamples(
            column,
            tuple(falling.get((True, True), [])[:most_rows]),
            tuple(rising[:most_rows]),
            tuple(falling.get((False, True), [])[:most_rows]),
        )

    def rarity(column: int) -> tuple[int, int, int]:
        return int(case.training[column]), -int(case.hierarchy.depth[column]), column

    missed = sorted((c for c, e in every.items() if e.missed and not e.found), key=rarity)
    others = sorted((c for c, e in every.items() if (e.found or e.wrongly_found) and c not in missed), key=rarity)
    turns = []
    for place in range(len(every)):
        turns += missed[place : place + 1] + others[place : place + 1]
    return Examples(tuple(every[c] for c in turns[:most_nodes]), max(0, len(turns) - most_nodes))


@given(cases(), st.integers(0, 8), st.integers(1, 4))
def test_they_are_those_of_the_loop(case: Case, most_nodes: int, most_rows: int) -> None:
    assert examples_of(case, most_nodes, most_rows) == by_loops(case, most_nodes, most_rows)


@given(st.integers(0, 2**32 - 1))
def test_they_are_those_of_the_loop_where_much_is_missed(seed: int) -> None:
    case = crowded_case(seed)
    assert examples_of(case) == by_loops(case)


def test_the_clearest_rows_of_each_kind() -> None:
    """Five cats, of which the model is less and less sure; the last two are no cats."""
    Y = np.array([[1, 1, 0], [1, 1, 0], [1, 1, 0], [1, 0, 1], [1, 0, 1]], dtype=bool)
    cat = np.array([0.875, 0.25, 0.125, 0.5, 0.75])
    probs = np.stack([np.ones(5), cat, np.zeros(5)], axis=1)
    case = Case(Y, probs, PETS, Thresholds(np.full(3, 0.5)), np.array([9, 5, 1]), None, None, None)
    dog, of_cat, pet = examples_of(case).nodes
    assert of_cat == NodeExamples(
        1,
        found=(Example(0, 0.875),),
        missed=(Example(2, 0.125), Example(1, 0.25)),
        wrongly_found=(Example(4, 0.75), Example(3, 0.5)),
    )
    assert (dog.column, dog.missed) == (2, (Example(3, 0.0), Example(4, 0.0)))  # missed, and so it has the first turn
    assert pet.column == 0
    assert examples_of(case, most_nodes=2) == Examples((dog, of_cat), left_out=1)


def test_a_node_that_is_unknown_everywhere_has_no_examples() -> None:
    Y, probs = np.ones((2, 3), dtype=bool), np.ones((2, 3))
    known = np.array([[True, False, True]] * 2)
    case = Case(Y, probs, PETS, Thresholds(np.full(3, 0.5)), np.array([9, 5, 1]), None, None, None, known)
    assert [node.column for node in examples_of(case).nodes] == [2, 0]
