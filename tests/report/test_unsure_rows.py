"""The rows of which a model is least sure, against a loop over all cells."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from rarenode.report.from_model import MOST_UNSURE_NODES, MOST_UNSURE_ROWS, find_unsure_rows
from rarenode.report.run_report import UnsureNode, UnsureRow
from tests import oracles
from tests.thresholds.oracles import ANY_PROBABILITY, EIGHTHS

Bools = NDArray[np.bool_]


class Case(NamedTuple):
    Y: Bools
    probs: NDArray[Any]
    decided: Bools
    scored: Bools

    @property
    def known(self) -> Bools:
        """Some cells, as a function of the case."""
        return (np.cumsum(self.Y + 2 * self.decided, axis=0) + np.arange(self.Y.shape[1])) % 3 > 0


@st.composite
def cases(draw: st.DrawFn, elements: st.SearchStrategy[float]) -> Case:
    """Decisions that need not follow from the probabilities: an ancestor may be added, an orphan dropped."""
    shape = draw(st.integers(0, 7)), draw(st.integers(1, 7))
    probs = draw(hnp.arrays(np.float64, shape, elements=elements))
    Y, decided = (draw(hnp.arrays(np.bool_, shape)) for _ in range(2))
    return Case(Y, probs.astype(np.float32), decided, draw(hnp.arrays(np.bool_, shape[1])))


def by_loops(case: Case, known: Bools | None = None) -> list[UnsureRow]:
    """All rows, in their order."""
    found = []
    for row in range(len(case.Y)):
        columns = [c for c in range(case.Y.shape[1]) if case.scored[c] and (known is None or known[row, c])]
        bits = {column: oracles.entropy(float(case.probs[row, column])) for column in columns}
        uncertain = sorted((c for c in columns if bits[c] > 0), key=lambda c: (-bits[c], c))[:4]
        found.append(
            UnsureRow(
                row=row,
                bits=sum(bits.values()),
                wrong=sum(bool(case.Y[row, c]) != bool(case.decided[row, c]) for c in columns),
                nodes=tuple(
                    UnsureNode(c, float(case.probs[row, c]), bool(case.decided[row, c]), bool(case.Y[row, c]))
                    for c in uncertain
                ),
            )
        )
    return found


@given(cases(EIGHTHS), st.integers(1, 8), st.sampled_from((1, 2, 256)))
def test_they_are_those_of_the_loop_whatever_the_size_of_blocks(case: Case, most: int, at_a_time: int) -> None:
    with patch("rarenode.report.from_model.ROWS_AT_A_TIME", at_a_time):
        found = find_unsure_rows(*case, most=most)
    every = by_loops(case)
    assert len(found) == min(most, len(every))
    for unsure in found:
        expected = every[unsure.row]
        assert unsure.bits == pytest.approx(expected.bits, abs=1e-9)
        assert replace(unsure, bits=expected.bits) == expected
    chosen = [every[unsure.row].bits for unsure in found]
    assert chosen == pytest.approx(sorted((row.bits for row in every), reverse=True)[:most], abs=1e-9)


@given(cases(EIGHTHS))
def test_cells_whose_label_is_unknown_do_not_count(case: Case) -> None:
    found = find_unsure_rows(*case, known=case.known)
    every = by_loops(case, case.known)
    assert [replace(unsure, bits=0.0) for unsure in found] == [replace(every[row.row], bits=0.0) for row in found]
    assert [unsure.bits for unsure in found] == pytest.approx([every[row.row].bits for row in found], abs=1e-9)


@given(cases(ANY_PROBABILITY))
def test_the_sums_of_any_probabilities(case: Case) -> None:
    found = {unsure.row: unsure.bits for unsure in find_unsure_rows(*case)}
    assert found == pytest.approx({unsure.row: unsure.bits for unsure in by_loops(case)}, abs=1e-6)


def test_of_equal_rows_and_nodes_the_earlier_come_first() -> None:
    probs = np.array([[0.25, 0.75, 0.25], [0.5, 0.5, 0.5], [0.75, 0.25, 0.75], [0.5, 0.5, 0.5]])
    found = find_unsure_rows(probs > 2, probs, probs >= 0.5, np.ones(3, dtype=np.bool_), most=3)
    assert [unsure.row for unsure in found] == [1, 3, 0]
    assert [node.column for node in found[2].nodes] == [0, 1, 2]


@given(cases(EIGHTHS), st.data())
def test_rows_may_have_numbers_of_their_own(case: Case, data: st.DataObject) -> None:
    numbers = np.array(data.draw(st.permutations(range(100, 100 + len(case.Y)))), dtype=np.int64)
    named, usual = find_unsure_rows(*case, numbers), find_unsure_rows(*case)
    assert [unsure.row for unsure in named] == [numbers[unsure.row] for unsure in usual]
    assert [replace(unsure, row=0) for unsure in named] == [replace(unsure, row=0) for unsure in usual]

    ids = [f"id {row}" for row in range(len(case.Y))]
    assert [each.id for each in find_unsure_rows(*case, ids=ids)] == [ids[each.row] for each in usual]


def test_how_many_there_are() -> None:
    rng = np.random.default_rng(0)
    shape = 300, 30
    found = find_unsure_rows(rng.random(shape) < 0.5, rng.random(shape), rng.random(shape) < 0.5, np.ones(30, bool))
    assert len(found) == MOST_UNSURE_ROWS == 20
    assert {len(unsure.nodes) for unsure in found} == {MOST_UNSURE_NODES} == {4}
    expected = [unsure.bits for unsure in found]
    assert expected == sorted(expected, reverse=True)


def test_certain_and_unscored_nodes_are_left_out() -> None:
    """A decided node at 1, one at 0 that is not decided, and one that does not count."""
    probs, decided = np.array([[1.0, 0.0, 0.25, 0.5]]), np.array([[True, False, True, False]])
    (unsure,) = find_unsure_rows(~decided, probs, decided, np.array([True, True, False, True]))
    assert unsure == UnsureRow(0, 1.0, 3, (UnsureNode(3, 0.5, decided=False, labelled=True),))
