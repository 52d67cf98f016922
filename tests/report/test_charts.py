"""Which plots there are, and the numbers they are given; how they are drawn is tested with the charts themselves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rarenode import Hierarchy
from rarenode.metrics import RARITY_BANDS
from rarenode.report import Report, RunReport, charts, report_on_model
from rarenode.report.charts import Plot, make_plots, plot_names
from rarenode.report.groups import by_depth, by_rarity
from rarenode.report.run_report import BandCurve
from rarenode.thresholds.calibration_error import Reliability
from tests.report.runs import DAG, HISTORY, SUMMARY, Counts, model_over, nodes_with, rows_over, run_of

BY_GROUP = ("recall_by_depth", "f1_by_depth", "recall_by_rarity", "f1_by_rarity")


class Drawn:
    """What the charts were told to draw, in order."""

    def __init__(self) -> None:
        self.bars: list[dict[str, Any]] = []
        self.lines: list[dict[str, Any]] = []
        self.boxes: list[dict[str, Any]] = []
        self.maps: list[dict[str, Any]] = []

    def bar_chart(self, title: str, groups: Any, bars: Any, **how: Any) -> str:
        self.bars.append({"title": title, "groups": list(groups), "bars": list(bars)} | how)
        return f"<bars {len(self.bars)}>"

    def line_chart(self, title: str, lines: Any, **how: Any) -> str:
        self.lines.append({"title": title, "lines": list(lines)} | how)
        return f"<lines {len(self.lines)}>"

    def node_boxes(self, title: str, nodes: Any, runs: Any, columns: int) -> str:
        self.boxes.append({"title": title, "nodes": list(nodes), "runs": list(runs), "columns": columns})
        return f"<boxes {len(self.boxes)}>"

    def icicle(self, title: str, nodes: Any) -> str:
        self.maps.append({"title": title, "nodes": list(nodes)})
        return f"<map {len(self.maps)}>"


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> Drawn:
    listener = Drawn()
    for name in ("bar_chart", "line_chart", "node_boxes", "icicle"):
        monkeypatch.setattr(charts, name, getattr(listener, name))
    return listener


@pytest.fixture(scope="module")
def full() -> tuple[RunReport, RunReport]:
    """Two runs with everything, of which the second decides more."""
    model, rows = model_over(DAG), rows_over(DAG)
    one = report_on_model(model, *rows, name="one", rows="rows")
    return one, report_on_model(model, *rows, name="two", rows="rows", decision="fixed:0.1")


def plots_of(*runs: RunReport) -> dict[str, Plot]:
    plots = make_plots(Report(runs))
    assert len({plot.name for plot in plots}) == len(plots)
    assert {plot.name for plot in plots} <= set(plot_names())
    return {plot.name: plot for plot in plots}


def test_one_run_has_its_bands_in_one_plot(full: tuple[RunReport, RunReport]) -> None:
    names = tuple(plots_of(full[0]))
    assert names == ("map", *BY_GROUP, "precision_recall", "reliability", "training_loss", "training_validation")


def test_several_runs_have_a_plot_for_each_band_and_one_of_nodes(full: tuple[RunReport, RunReport]) -> None:
    bands = [f"precision_recall_{band}" for band in ("0", "1_to_4", "5_to_19", "20_to_99", "100_or_more")]
    maps, *names = (tuple(plots_of(*full))[:2], *tuple(plots_of(*full))[2:])
    assert maps == ("map_1", "map_2")
    assert names == [*BY_GROUP, *bands, "reliability", "training_loss", "training_validation", "node_scores"]


def test_records_have_maps_and_bars_alone() -> None:
    nodes = nodes_with(DAG, [Counts(1, 2, 2)] * 8)
    assert tuple(plots_of(run_of(nodes))) == ("map", *BY_GROUP)
    two = plots_of(run_of(nodes, "one"), run_of(nodes, "two"))
    assert tuple(two) == ("map_1", "map_2", *BY_GROUP, "node_scores")


def test_nothing_scored_has_no_groups() -> None:
    assert set(plots_of(run_of(nodes_with(DAG, [Counts(0, 0, 0)] * 8, [False] * 8)))) == {"map"}


def test_maps_have_the_recall_of_each_run_under_drawn_parents(drawn: Drawn) -> None:
    scored = [node != "z" for node in DAG.nodes]
    counts = [Counts(1, 1, 4), Counts(1, 1, 1), Counts(0, 2, 0), Counts(0, 0, 3), *[Counts(1, 2, 2)] * 4]
    plots = plots_of(run_of(nodes_with(DAG, counts, scored), "one"), run_of(nodes_with(DAG, counts), "t\nwo"))
    assert [chart["title"] for chart in drawn.maps] == ["Recall of each node: one", "Recall of each node: t wo"]
    assert [plots[name].svg for name in ("map_1", "map_2")] == ["<map 1>", "<map 2>"]
    for chart in drawn.maps:
        assert [(node.name, node.depth) for node in chart["nodes"]] == list(
            zip(DAG.nodes, DAG.depth.tolist(), strict=True)
        )
        above = {node.name: "" if node.parent == -1 else DAG.nodes[node.parent] for node in chart["nodes"]}
        assert above == {"a": "", "z": "", "b": "a", "c": "a", "d": "b", "e": "b", "f": "c", "g": "d"}
    first, second = ([node.value for node in chart["nodes"]] for chart in drawn.maps)
    assert DAG.nodes[:2] == ("a", "z")
    assert second == [25.0, 100.0, None, 0.0, *[50.0] * 4]  # no row carries b
    assert first == [25.0, None, *second[2:]]  # z is not scored


def test_bars_are_percent_of_groups_and_none_where_a_run_has_no_such_group(drawn: Drawn) -> None:
    counts = [Counts(1, 2, 3)] * 4 + [Counts(0, 1, 1)] * 4
    one = run_of(nodes_with(DAG, counts, training=[500, 30, 30, 30, 0, 0, 0, 7]), "one")
    deepest = [node != "g" for node in DAG.nodes]
    two = run_of(nodes_with(DAG, counts, deepest, training=[500, 500, 2, 2, 0, 0, 0, 7]), "two")
    plots_of(one, two)
    depth, _, rarity, _ = drawn.bars
    assert depth["groups"] == ["0", "1", "2", "3"]
    assert depth["notes"] == ["2 nodes", "2 nodes", "3 nodes", "1 / 0 nodes"]
    assert rarity["groups"] == ["0", "1-4", "5-19", "20-99", "100+"]
    assert rarity["notes"] == ["3 nodes", "0 / 2 nodes", "1 / 0 nodes", "3 / 0 nodes", "1 / 2 nodes"]
    for chart, score, groups_of in zip(
        drawn.bars, ("recall", "f1", "recall", "f1"), (by_depth, by_depth, by_rarity, by_rarity), strict=True
    ):
        assert [bars.label for bars in chart["bars"]] == ["one", "two"]
        for bars, run in zip(chart["bars"], (one, two), strict=True):
            known = {group.name: 100 * getattr(group, score) for group in groups_of(run.nodes)}
            assert list(bars.values) == [known.get(name) for name in chart["groups"]]
    assert depth["bars"][1].values[3] is None
    assert rarity["bars"][0].values[1] is None


def test_a_group_of_one_node_and_one_of_thousands(drawn: Drawn) -> None:
    star = Hierarchy.from_edges([("root", f"leaf {number}") for number in range(1234)])
    nodes = nodes_with(star, [Counts(1, 1, 1)] * 1235)
    plots_of(run_of(nodes, "one"), run_of(nodes, "two"))
    assert drawn.bars[0]["notes"] == ["1 node", "1,234 nodes"]
    assert drawn.bars[2]["notes"] == ["1,235 nodes"]


@pytest.mark.parametrize(("depths", "is_cut"), [(20, False), (21, True), (25, True)])
def test_depths_are_sorted_as_numbers_and_the_first_twenty_shown(drawn: Drawn, depths: int, is_cut: bool) -> None:
    chain = Hierarchy.from_edges([(f"n{n:02d}", f"n{n + 1:02d}") for n in range(depths - 1)])
    plots = plots_of(run_of(nodes_with(chain, [Counts(1, 1, 1)] * depths)))
    assert drawn.bars[0]["groups"] == [str(depth) for depth in range(20)]
    for score in ("recall", "f1"):
        assert plots[f"{score}_by_depth"].caption.endswith(" Only the first 20 groups are drawn.") == is_cut
        assert "Only the first" not in plots[f"{score}_by_rarity"].caption


def test_curves_with_the_point_that_was_decided(drawn: Drawn) -> None:
    nodes = nodes_with(DAG, [Counts(1, 2, 2)] * 8)
    rare, common = BandCurve(tuple(1 - n / 200 for n in range(100)), (0.25, 0.5)), BandCurve((0.5,) * 100, None)
    one = run_of(nodes, "one", curves={"0": BandCurve((), None), "1-4": rare, "100+": common})
    plots_of(one)
    (chart,) = drawn.lines
    lines = chart["lines"]
    assert [line.label for line in lines] == ["1-4 training rows", "100+ training rows"]
    assert [line.points for line in lines] == [((25.0, 50.0),), ()]
    assert lines[0].x == pytest.approx(range(1, 101))
    assert lines[0].y == pytest.approx([100 - n / 2 for n in range(100)])
    assert (chart["x_range"], chart["y_range"]) == ((0, 100), (0, 100))

    drawn.lines.clear()
    names = plots_of(one, run_of(nodes, "two", curves={"1-4": common}), run_of(nodes, "three"))
    of_bands = {chart["title"]: [line.label for line in chart["lines"]] for chart in drawn.lines}
    assert of_bands == {
        "Precision and recall of nodes with 1-4 training rows": ["one", "two"],
        "Precision and recall of nodes with 100+ training rows": ["one"],
    }
    assert "precision_recall_0" not in names


def test_bins_of_reliability_that_a_logarithm_can_show(drawn: Drawn) -> None:
    nodes = nodes_with(DAG, [Counts(1, 2, 2)] * 8)
    nan = np.nan
    bins = Reliability(
        edges=np.array([0, 0.1, 0.3, 0.5, 1.0]),
        mean_probability=np.array([0.05, 0.2, nan, 0.75]),
        frequency=np.array([0.0, 0.25, nan, 0.5]),
        count=np.array([90, 8, 0, 2]),
    )
    other = replace(bins, mean_probability=np.array([0.0, 0.2, 0.4, 0.75]), frequency=np.array([0.5, 1, 1, 1]))
    one = run_of(nodes, "one", reliability={"all": bins, "1-4": other})
    caption = plots_of(one)["reliability"].caption
    (chart,) = drawn.lines
    assert [(line.label, line.x, line.y) for line in chart["lines"]] == [
        ("all nodes", (0.2, 0.75), (0.25, 0.5)),
        ("1-4 training rows", (0.2, 0.75), (1.0, 1.0)),
    ]
    assert chart["log"]
    assert chart["diagonal"]
    assert caption.endswith(f"over all cells: one {100 * (90 * 0.05 + 8 * 0.05 + 2 * 0.25) / 100:.2f} %.")

    drawn.lines.clear()
    plots_of(one, run_of(nodes, "two", reliability={"all": other}), run_of(nodes, "three"))
    assert [line.label for line in drawn.lines[0]["lines"]] == ["one", "two"]


def test_reliability_without_a_bin_that_can_be_shown(drawn: Drawn) -> None:
    """No cell of a band carries its nodes; then a run has none either; then it has no cells at all."""
    nodes = nodes_with(DAG, [Counts(1, 2, 2)] * 8)
    bins = Reliability(
        edges=np.array([0, 0.5, 1.0]),
        mean_probability=np.array([0.25, 0.75]),
        frequency=np.array([0.5, 1.0]),
        count=np.array([4, 4]),
    )
    never = replace(bins, frequency=np.zeros(2))
    empty = replace(bins, count=np.zeros(2, dtype=int), frequency=np.full(2, np.nan))
    plots_of(run_of(nodes, reliability={"all": bins, "0": never, "1-4": empty, "5-19": bins}))
    assert [line.label for line in drawn.lines.pop()["lines"]] == ["all nodes", "5-19 training rows"]
    runs = [run_of(nodes, name, reliability={"all": of}) for name, of in (("a", never), ("b", bins), ("c", empty))]
    caption = plots_of(*runs)["reliability"].caption
    assert [line.label for line in drawn.lines.pop()["lines"]] == ["b"]
    assert caption.endswith("over all cells: a 50.00 %; b 25.00 %.")
    assert "reliability" not in plots_of(runs[0], runs[2])
    assert "reliability" not in plots_of(runs[2])
    assert not drawn.lines


def test_training(drawn: Drawn) -> None:
    nodes = nodes_with(DAG, [Counts(1, 2, 2)] * 8)
    watched = run_of(nodes, "watched", history=HISTORY)
    blind = run_of(nodes, "blind", history=tuple(epoch.model_copy(update={"valid": None}) for epoch in HISTORY))
    plots_of(watched, blind, run_of(nodes, "no history"))
    loss, valid = drawn.lines
    assert [(line.label, line.x) for line in loss["lines"]] == [("watched", (1, 2, 3)), ("blind", (1, 2, 3))]
    assert loss["lines"][0].y == (1, 1 / 2, 1 / 3)
    assert [(line.label, line.x, line.y) for line in valid["lines"]] == [
        ("watched", (2, 3), (100 * SUMMARY.ap, 100 * SUMMARY.ap))
    ]
    assert set(plots_of(blind)) == {"map", *BY_GROUP, "training_loss"}


def test_boxes_have_the_f1_of_each_run_under_drawn_parents(drawn: Drawn) -> None:
    scored = [node != "z" for node in DAG.nodes]
    counts = [Counts(1, 1, 3), Counts(1, 1, 1), Counts(0, 2, 0), *[Counts(2, 2, 2)] * 5]
    runs = [run_of(nodes_with(DAG, counts, scored), name) for name in ("one", "two", "three")]
    plots_of(*runs)
    (chart,) = drawn.boxes
    assert chart["title"] == "F1 of each node"
    assert (chart["runs"], chart["columns"]) == (["one", "two", "three"], 3)
    boxes = {box.name: box for box in chart["nodes"]}
    assert [box.name for box in chart["nodes"]] == list(DAG.nodes)
    assert boxes["a"].values == (50.0,) * 3
    assert boxes["z"].values == (None,) * 3  # not scored
    assert boxes["b"].values == (None,) * 3  # no row carries it
    above = {name: "" if box.parent == -1 else chart["nodes"][box.parent].name for name, box in boxes.items()}
    assert above == {"a": "", "z": "", "b": "a", "c": "a", "d": "b", "e": "b", "f": "c", "g": "d"}
    assert [box.depth for box in chart["nodes"]] == DAG.depth.tolist()


@pytest.mark.parametrize(("count", "columns"), [(2, 2), (3, 3), (4, 2), (5, 5)])
def test_boxes_of_two_or_four_runs_are_pairs(drawn: Drawn, count: int, columns: int) -> None:
    nodes = nodes_with(DAG, [Counts(1, 1, 3)] * 8)
    plots_of(*(run_of(nodes, f"run {number}") for number in range(count)))
    assert drawn.boxes[0]["columns"] == columns


def test_of_many_nodes_those_that_changed_most_between_first_and_last(
    drawn: Drawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(charts, "MOST_BOXES", 7)
    monkeypatch.setattr(charts, "SOME_BOXES", 5)
    nothing = [Counts(0, 0, 4)] * 8
    now = [Counts(4, 4, 4) if node == "g" else Counts(0, 0, 4) for node in DAG.nodes]
    between = [Counts(4, 4, 4) if node == "f" else Counts(0, 0, 4) for node in DAG.nodes]
    runs = [run_of(nodes_with(DAG, counts), name) for name, counts in (("1", nothing), ("2", between), ("3", now))]
    plots_of(*runs)
    (chart,) = drawn.boxes
    assert [(box.name, box.parent) for box in chart["nodes"]] == [("a", -1), ("b", 0), ("d", 1), ("g", 2)]
    assert [box.values for box in chart["nodes"]][3] == (0.0, 0.0, 100.0)
    assert chart["title"] == "F1 of 4 nodes: what changed most, and what is above it"
    assert "node_scores" not in plots_of(runs[0], run_of(nodes_with(DAG, nothing), "same"))


@pytest.mark.parametrize(("leaves", "shown"), [(59, 60), (60, 30)])
def test_a_hierarchy_that_is_too_large_is_shown_in_part(drawn: Drawn, leaves: int, shown: int) -> None:
    star = Hierarchy.from_edges([("root", f"leaf {number}") for number in range(leaves)])
    before, after = (run_of(nodes_with(star, [Counts(n, n, 1)] * (leaves + 1)), str(n)) for n in (0, 1))
    plots_of(before, after)
    assert len(drawn.boxes[0]["nodes"]) == shown


def test_names_of_plots_are_names_of_files() -> None:
    assert len(set(plot_names())) == len(plot_names()) == 9 + 4 + len(RARITY_BANDS) + 5
    assert all(name.replace("_", "").isalnum() and name.isascii() for name in plot_names())
