"""What changed between two runs, against sets of names."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rarenode import Hierarchy
from rarenode.report import RunReport
from rarenode.report.run_report import compare_runs, most_changed
from tests import oracles
from tests.report.runs import DAG, Counts, nodes_over, nodes_with, run_of
from tests.strategies import hierarchies


@st.composite
def pairs(draw: st.DrawFn) -> tuple[RunReport, RunReport]:
    hierarchy = draw(hierarchies())
    before, after = (run_of(draw(nodes_over(hierarchy)), name) for name in ("before", "after"))
    return before, after


def found_by(run: RunReport) -> set[str]:
    rows = zip(run.hierarchy.nodes, run.nodes.scored, run.nodes.scores.true_positives, strict=True)
    return {name for name, counts, hits in rows if counts and hits > 0}


def f1_of(run: RunReport, column: int) -> float:
    scores = run.nodes.scores
    hits, claims, rows = (int(v[column]) for v in (scores.true_positives, scores.predicted, scores.support))
    return 2 * hits / (claims + rows) if claims + rows else 0.0


@given(pairs())
def test_gained_lost_and_kept_are_differences_of_sets(runs: tuple[RunReport, RunReport]) -> None:
    before, after = runs
    changes = compare_runs(before, after)
    then, now = found_by(before), found_by(after)
    for columns, expected in ((changes.gained, now - then), (changes.lost, then - now), (changes.kept, now & then)):
        assert {before.hierarchy.nodes[column] for column in columns.tolist()} == expected
        assert columns.tolist() == sorted(set(columns.tolist()))


@given(pairs(), st.integers(1, 10))
def test_the_most_changed_nodes_enter_with_their_ancestors_while_there_is_room(
    runs: tuple[RunReport, RunReport], most: int
) -> None:
    before, after = runs
    hierarchy: Hierarchy = before.hierarchy
    chosen = most_changed(before, after, most).tolist()
    if len(hierarchy) <= most:
        assert chosen == list(range(len(hierarchy)))
        return
    both = before.nodes.scored & after.nodes.scored
    change = {c: abs(f1_of(after, c) - f1_of(before, c)) for c in range(len(hierarchy)) if both[c]}
    room: set[str] = set()
    for column in sorted(change, key=lambda c: (-change[c], c)):
        name = hierarchy.nodes[column]
        with_it = room | {name} | oracles.ancestors(hierarchy.edges, name)
        if change[column] > 0 and len(with_it) <= most:
            room = with_it
    assert [hierarchy.nodes[column] for column in chosen] == [name for name in hierarchy.nodes if name in room]
    assert len(chosen) <= most
    for parent, child in hierarchy.edges:
        assert child not in room or parent in room


def test_a_small_change_goes_in_where_a_large_one_finds_no_room() -> None:
    """g has three ancestors: four places. z changed less, and takes one."""
    nothing = [Counts(0, 0, 4)] * 8
    columns = DAG.index
    now = list(nothing)
    now[columns["g"]], now[columns["z"]] = Counts(4, 4, 4), Counts(1, 1, 4)
    before, after = run_of(nodes_with(DAG, nothing)), run_of(nodes_with(DAG, now))
    assert most_changed(before, after, 3).tolist() == [columns["z"]]
    assert most_changed(before, after, 4).tolist() == sorted(columns[name] for name in "abdg")
    assert most_changed(before, after, 5).tolist() == sorted(columns[name] for name in "abdgz")
    assert most_changed(before, after, 7).tolist() == sorted(columns[name] for name in "abdgz")


def test_a_node_must_be_scored_in_both_runs_to_have_changed() -> None:
    nothing, everything = [Counts(0, 0, 4)] * 8, [Counts(4, 4, 4)] * 8
    all_but = {name: [node != name for node in DAG.nodes] for name in "az"}
    before = run_of(nodes_with(DAG, nothing, all_but["a"]))
    after = run_of(nodes_with(DAG, everything, all_but["z"]))
    for runs in ((before, after), (after, before)):
        assert most_changed(*runs, 1).tolist() == []  # a and z are the only ones that would fit
    assert most_changed(before, after, 2).tolist() == [DAG.index["a"], DAG.index["b"]]


def test_without_any_change_there_is_nothing_to_choose() -> None:
    run = run_of(nodes_with(DAG, [Counts(1, 2, 3)] * 8))
    chosen = most_changed(run, run, 3)
    assert chosen.tolist() == []
    assert chosen.dtype == np.int64
