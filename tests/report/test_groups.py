"""Groups of nodes, against summaries of the rows that their scores come from."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode.diagnosis import NodeDiagnosis, diagnose
from rarenode.metrics import Summary, summary_by_depth, summary_by_rarity
from rarenode.report.run_report import Group, by_depth, by_rarity, rarity_bands
from tests import oracles
from tests.diagnosis.oracles import Case, cases
from tests.report.runs import COUNTS_AT_EDGES, DAG, Counts, nodes_with


def diagnosed(case: Case) -> NodeDiagnosis:
    return diagnose(case.Y, case.probs, case.hierarchy, case.thresholds, case.training, scored=case.scored)


@st.composite
def any_rarity(draw: st.DrawFn) -> Case:
    case = draw(cases())
    size = len(case.hierarchy)
    training = draw(st.lists(st.sampled_from(COUNTS_AT_EDGES), min_size=size, max_size=size))
    return case._replace(training=np.array(training, dtype=np.int64))


def check(groups: tuple[Group, ...], summaries: dict[str, Summary]) -> None:
    assert [group.name for group in groups] == [name for name, summary in summaries.items() if summary.nodes]
    for group in groups:
        expected = summaries[group.name]
        assert (group.nodes, group.found) == (expected.nodes, expected.nodes_found)
        for figure in ("f1", "precision", "recall"):
            assert getattr(group, figure) == pytest.approx(getattr(expected, figure), abs=1e-12)


@given(any_rarity())
def test_they_are_the_summaries_of_the_decided_rows(case: Case) -> None:
    nodes, decided = diagnosed(case), case.thresholds.decide(case.probs, case.hierarchy)
    depths = summary_by_depth(case.Y, decided, case.hierarchy, scored=case.scored)
    check(by_depth(nodes), {str(depth): summary for depth, summary in depths.items()})
    check(by_rarity(nodes), summary_by_rarity(case.Y, decided, case.training, scored=case.scored))
    assert {group.by for group in by_depth(nodes)} <= {"depth"}
    assert {group.by for group in by_rarity(nodes)} <= {"training rows"}


@given(any_rarity())
def test_nodes_with_rows_are_counted(case: Case) -> None:
    nodes = diagnosed(case)
    for group in by_depth(nodes):
        with_rows = 0
        for column, name in enumerate(case.hierarchy.nodes):
            counts = case.scored is None or case.scored[column]
            here = str(oracles.depth(case.hierarchy.edges, name)) == group.name
            with_rows += bool(counts and here and any(row[column] for row in case.Y))
        assert group.with_rows == with_rows


def test_bands_come_from_the_rarest_and_hold_scored_nodes_alone() -> None:
    training = [100, 99, 20, 19, 5, 4, 0, 0]
    nodes = nodes_with(DAG, [Counts(0, 0, 1)] * 8, [True] * 7 + [False], training)
    bands = {band: np.flatnonzero(mask).tolist() for band, mask in rarity_bands(nodes)}
    assert bands == {"0": [6], "1-4": [5], "5-19": [3, 4], "20-99": [1, 2], "100+": [0]}
    assert list(bands) == ["0", "1-4", "5-19", "20-99", "100+"]
    only = replace(nodes, training_rows=np.full(8, 7))
    assert [band for band, _ in rarity_bands(only)] == ["5-19"]


def test_nothing_scored_makes_no_group() -> None:
    nodes = nodes_with(DAG, [Counts(1, 1, 1)] * 8, [False] * 8)
    assert (by_depth(nodes), by_rarity(nodes)) == ((), ())
