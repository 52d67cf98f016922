"""Which runs a report can be about, and what it is called."""

from __future__ import annotations

import pytest

from rarenode import Hierarchy
from rarenode.errors import ArgumentError, DataError
from rarenode.report import Report
from tests.report.runs import DAG, Counts, nodes_with, run_of

NODES = nodes_with(DAG, [Counts(1, 2, 3)] * 8)


@pytest.mark.parametrize("count", [0, 9])
def test_neither_none_nor_more_than_a_chart_can_show(count: int) -> None:
    with pytest.raises(ArgumentError, match=f"1 to 8 runs, got {count}"):
        Report(tuple(run_of(NODES, f"run {number}") for number in range(count)))


def test_eight_runs() -> None:
    report = Report(tuple(run_of(NODES, f"run {number}") for number in range(8)))
    assert report.hierarchy is DAG


def test_runs_over_different_hierarchies_are_named() -> None:
    other = Hierarchy.from_edges([("a", "b")])
    runs = run_of(NODES, "mine"), run_of(NODES, "also"), run_of(nodes_with(other, [Counts(1, 1, 1)] * 2), "yours")
    with pytest.raises(DataError, match=r"yours and mine have different hierarchies \(2 and 8 nodes\)"):
        Report(runs)


def test_equal_hierarchies_need_not_be_one_object() -> None:
    again = Hierarchy.from_edges(list(reversed(DAG.edges)), nodes=["z"])
    assert again is not DAG
    Report((run_of(NODES, "one"), run_of(nodes_with(again, [Counts(0, 0, 0)] * 8), "two")))


def test_a_name_for_each() -> None:
    with pytest.raises(ArgumentError, match="two runs are named 'same'"):
        Report((run_of(NODES, "other"), run_of(NODES, "same"), run_of(NODES, "same")))


def test_the_title_names_the_runs_while_they_fit() -> None:
    assert Report((run_of(NODES, "one"),)).title == "rarenode: one"
    assert Report((run_of(NODES, "one"), run_of(NODES, "two"))).title == "rarenode: one, two"
    assert Report((run_of(NODES, "o\nn\u202ee"),)).title == "rarenode: o n e"
    assert Report((run_of(NODES, "x" * 60), run_of(NODES, "y" * 58))).title == f"rarenode: {'x' * 60}, {'y' * 58}"
    assert Report((run_of(NODES, "x" * 60), run_of(NODES, "y" * 59))).title == "rarenode: 2 runs"


def test_the_name_of_a_single_run_is_cut_if_it_is_very_long() -> None:
    assert Report((run_of(NODES, "x" * 120),)).title == f"rarenode: {'x' * 120}"
    assert Report((run_of(NODES, "a" + "x" * 10_000),)).title == f"rarenode: a{'x' * 118}…"
