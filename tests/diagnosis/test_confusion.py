"""Confused pairs, against a loop over all rows and all pairs of nodes."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode import Hierarchy
from rarenode.diagnosis import diagnose
from rarenode.diagnosis.confusion import MISTAKES_OF_A_ROW, ConfusedPair, confused_pairs
from rarenode.diagnosis.examples import Example
from rarenode.thresholds import Thresholds
from tests import oracles
from tests.diagnosis.oracles import Bools, Case, cases, crowded_case, predict

REEF = Hierarchy.from_paths(
    ["algae > brown", "algae > red", "sponge > barrel", "sponge > vase"], separator=" > "
)  # fmt: skip


def pairs_of(case: Case, most_pairs: int = 6, most_rows: int = 3) -> tuple[ConfusedPair, ...]:
    nodes = diagnose(case.Y, case.probs, case.hierarchy, case.thresholds, case.training, scored=case.scored,
                     known=case.known)  # fmt: skip
    decided = case.thresholds.decide(case.probs, case.hierarchy)
    return confused_pairs(
        case.Y, case.probs, decided, nodes, known=case.known, most_pairs=most_pairs, most_rows=most_rows
    )


def by_loops(case: Case, most_pairs: int = 6, most_rows: int = 3, gravest: int = 16) -> list[ConfusedPair]:
    hierarchy, every = case.hierarchy, range(len(case.hierarchy))
    decided = predict(case.probs, case.thresholds.values, case.thresholds.rule, hierarchy)
    above = [oracles.ancestors(hierarchy.edges, name) for name in hierarchy.nodes]

    def counts(row: int, column: int) -> bool:
        scored = case.scored is None or bool(case.scored[column])
        return scored and (case.known is None or bool(case.known[row, column]))

    def mistakes(row: int, labelled: bool) -> list[int]:
        wrong = [c for c in every if counts(row, c) and bool(case.Y[row, c]) == labelled != bool(decided[row, c])]
        children = {p: [c for q, c in hierarchy.edges if q == p] for p in hierarchy.nodes}
        names = {hierarchy.nodes[c] for c in wrong}
        specific = [c for c in wrong if not names & set(children[hierarchy.nodes[c]])]
        sign = 1 if labelled else -1
        return sorted(specific, key=lambda c: (sign * float(case.probs[row, c]), c))[:gravest]

    rows: dict[tuple[int, int], list[int]] = {}
    for row in range(len(case.Y)):
        for a in mistakes(row, labelled=True):
            for b in mistakes(row, labelled=False):
                if hierarchy.nodes[a] not in above[b] and hierarchy.nodes[b] not in above[a]:
                    rows.setdefault((a, b), []).append(row)

    def positives(column: int) -> int:
        known = [case.known is None or bool(case.known[row, column]) for row in range(len(case.Y))]
        return sum(bool(y) and k for y, k in zip(case.Y[:, column], known, strict=True))

    def shown(some: list[int], column: int) -> tuple[Example, ...]:
        of_rows = [Example(row, float(case.probs[row, column])) for row in some]
        return tuple(sorted(of_rows, key=lambda e: (-e.probability, e.row))[:most_rows])

    order = sorted(rows, key=lambda pair: (-len(rows[pair]), positives(pair[0]), pair))
    found = []
    for a, b in order[:most_pairs]:
        right = [
            row for row in range(len(case.Y))
            if case.Y[row, b] and decided[row, b] and (case.known is None or case.known[row, b])
        ]  # fmt: skip
        found.append(ConfusedPair(a, b, len(rows[a, b]), positives(a), shown(rows[a, b], b), shown(right, b)))
    return found


@given(cases(), st.integers(0, 8), st.integers(1, 4), st.sampled_from((1, 1 << 20)))
def test_they_are_those_of_the_loop_whatever_the_size_of_blocks(
    case: Case, most_pairs: int, most_rows: int, cells: int
) -> None:
    with (
        patch("rarenode.thresholds.probabilities.CELLS_PER_BLOCK", cells),
        patch("rarenode.diagnosis.confusion.PAIRS_AT_A_TIME", cells),
    ):
        found = pairs_of(case, most_pairs, most_rows)
    assert list(found) == by_loops(case, most_pairs, most_rows)


@given(st.integers(0, 2**32 - 1), st.sampled_from((1, 2, 16)))
def test_they_are_those_of_the_loop_where_much_is_missed(seed: int, gravest: int) -> None:
    case = crowded_case(seed)
    with patch("rarenode.diagnosis.confusion.MISTAKES_OF_A_ROW", gravest):
        assert list(pairs_of(case)) == by_loops(case, gravest=gravest)


def labels(*sets: str) -> Bools:
    return REEF.close(REEF.encode([names.split(", ") if names else [] for names in sets]))


BROWN, RED, BARREL = "algae > brown", "algae > red", "sponge > barrel"


def reef_case(Y: Bools, decided: Bools, known: Bools | None = None) -> Case:
    half = Thresholds(np.full(len(REEF), 0.5))
    probs = decided * (1 - np.arange(len(decided)) / 16)[:, np.newaxis]  # each row is less sure than the one before
    return Case(Y, probs, REEF, half, np.ones(len(REEF), dtype=np.int64), None, None, None, known)


def test_of_mistakes_above_one_another_the_most_specific_count() -> None:
    """Twice a brown alga is taken for a barrel sponge and once for a red alga; one barrel sponge is found."""
    case = reef_case(labels(BROWN, BROWN, BROWN, BARREL), labels(BARREL, RED, BARREL, BARREL))
    brown, red, barrel = (REEF.index[name] for name in (BROWN, RED, BARREL))
    assert pairs_of(case) == (
        ConfusedPair(brown, barrel, 2, 3, (Example(0, 1.0), Example(2, 0.875)), (Example(3, 0.8125),)),
        ConfusedPair(brown, red, 1, 3, (Example(1, 0.9375),), ()),
    )


@pytest.mark.parametrize("column", ["labelled", "predicted"])
def test_unknown_labels_are_no_mistakes(column: str) -> None:
    Y, decided = labels(BROWN), labels(RED)
    known = np.ones(Y.shape, dtype=np.bool_)
    known[0, REEF.index[BROWN if column == "labelled" else RED]] = False
    assert len(pairs_of(reef_case(Y, decided))) == 1
    assert pairs_of(reef_case(Y, decided, known)) == ()


def test_ancestors_are_not_confused_with_their_descendants() -> None:
    """Labels that are not closed: brown without algae, which is predicted."""
    Y = np.zeros((1, len(REEF)), dtype=np.bool_)
    Y[0, REEF.index[BROWN]] = True
    assert pairs_of(reef_case(Y, labels("algae"))) == ()
    assert len(pairs_of(reef_case(Y, labels("sponge")))) == 1


def test_a_row_with_very_many_mistakes_costs_no_more_than_its_gravest() -> None:
    nodes = 4000
    flat = Hierarchy.from_edges([], nodes=[f"n{number:04d}" for number in range(nodes)])
    Y = np.arange(nodes)[np.newaxis] % 2 == 0
    probs = np.where(Y, 0.25, 0.75)
    probs[0, [10, 11]] = 0.0, 1.0
    case = Case(Y, probs, flat, Thresholds(np.full(nodes, 0.5)), np.ones(nodes, dtype=np.int64), None, None, None)
    found = pairs_of(case, most_pairs=nodes)
    assert len(found) == MISTAKES_OF_A_ROW**2
    assert {(pair.labelled, pair.predicted) for pair in found} >= {(10, 11), (0, 1), (10, 1), (0, 11)}
