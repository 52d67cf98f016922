"""Which charts a report has, and which numbers they show; how they are drawn is tested with `rarenode.plots`."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from rarenode import Hierarchy
from rarenode.metrics import RARITY_BANDS
from rarenode.report import Report, RunReport, charts, report_on_model
from rarenode.report.charts import Chart, chart_names, make_charts
from rarenode.report.run_report import BandCurve
from rarenode.thresholds.calibration_error import Reliability
from tests.report.runs import DAG, HISTORY, Counts, model_over, nodes_with, rows_over, run_of

BY_GROUP = ("recall_by_depth", "f1_by_depth", "recall_by_rarity", "f1_by_rarity")
SVG = "{http://www.w3.org/2000/svg}"
SOME = nodes_with(DAG, [Counts(1, 2, 2)] * 8)


@pytest.fixture(scope="module")
def full() -> tuple[RunReport, RunReport]:
    """Two runs with everything, of which the second decides more."""
    model, rows = model_over(DAG), rows_over(DAG)
    one = report_on_model(model, *rows, name="one", rows="rows")
    return one, report_on_model(model, *rows, name="two", rows="rows", thresholds="fixed:0.1")


def charts_of(*runs: RunReport) -> dict[str, Chart]:
    made = make_charts(Report(runs))
    assert len({chart.name for chart in made}) == len(made)
    assert {chart.name for chart in made} <= set(chart_names())
    return {chart.name: chart for chart in made}


def texts(chart: Chart) -> list[str]:
    """What is written in a chart."""
    return [each.text or "" for each in ElementTree.fromstring(chart.svg).iter(f"{SVG}text")]


def marks(chart: Chart) -> int:
    """How many marks there are, with those of the legend."""
    return chart.svg.count('transform="translate(')


def test_one_run_has_its_bands_in_one_chart(full: tuple[RunReport, RunReport]) -> None:
    names = tuple(charts_of(full[0]))
    assert names == ("map", *BY_GROUP, "precision_recall", "reliability", "training_loss", "training_validation")


def test_several_runs_have_a_chart_for_each_band_and_one_of_nodes(full: tuple[RunReport, RunReport]) -> None:
    bands = [f"precision_recall_{band}" for band in ("0", "1_to_4", "5_to_19", "20_to_99", "100_or_more")]
    assert tuple(charts_of(*full)) == (
        *("map_1", "map_2"),
        *BY_GROUP,
        *bands,
        *("reliability", "training_loss", "training_validation", "node_scores"),
    )


def test_records_have_maps_and_bars_alone() -> None:
    assert tuple(charts_of(run_of(SOME))) == ("map", *BY_GROUP)
    two = charts_of(run_of(SOME, "one"), run_of(SOME, "two"))
    assert tuple(two) == ("map_1", "map_2", *BY_GROUP, "node_scores")


def test_nothing_scored_has_no_groups() -> None:
    assert set(charts_of(run_of(nodes_with(DAG, [Counts(0, 0, 0)] * 8, [False] * 8)))) == {"map"}


def test_the_same_report_gives_the_same_charts(full: tuple[RunReport, RunReport]) -> None:
    assert make_charts(Report(full)) == make_charts(Report(full))


def test_maps_have_the_recall_of_each_run() -> None:
    """b has no rows, z is not scored in the first run, and d is missed."""
    scored = [node != "z" for node in DAG.nodes]
    counts = [Counts(1, 1, 4), Counts(1, 1, 1), Counts(0, 2, 0), Counts(0, 0, 3), *[Counts(1, 2, 2)] * 4]
    drawn = charts_of(run_of(nodes_with(DAG, counts, scored), "one"), run_of(nodes_with(DAG, counts), "t\nwo"))
    one, two = texts(drawn["map_1"]), texts(drawn["map_2"])
    assert one[0] == "Recall of each node: one"
    assert two[0] == "Recall of each node: t wo"
    assert {"missed: 1", "no score: 2"} <= set(one)
    assert {"missed: 1", "no score: 1"} <= set(two)
    assert set(DAG.nodes) <= set(one)
    assert (one.count("25.0 %"), one.count("100 %"), two.count("100 %")) == (1, 0, 1)


def test_bars_are_percent_of_groups() -> None:
    counts = [Counts(1, 2, 3)] * 4 + [Counts(0, 1, 1)] * 4
    one = run_of(nodes_with(DAG, counts, training=[500, 30, 30, 30, 0, 0, 0, 7]), "one")
    deepest = [node != "g" for node in DAG.nodes]
    two = run_of(nodes_with(DAG, counts, deepest, training=[500, 500, 2, 2, 0, 0, 0, 7]), "two")
    drawn = charts_of(one, two)
    depth = texts(drawn["recall_by_depth"])
    assert depth[0] == "Recall by depth"
    assert {"0", "1", "2", "3", "one", "two"} <= set(depth)
    # a third in both roots and in both nodes of depth 1; 0 below; depth 3 is scored in one run alone
    assert depth.count("33.3") == 4
    assert "0\u20131" in depth
    rarity = texts(drawn["f1_by_rarity"])
    assert {"0", "1-4", "5-19", "20-99", "100+"} <= set(rarity)
    assert rarity.count("40.0") == 4  # 2 / (2 + 3): 20-99 and 100+ of one, 1-4 and 100+ of two


def test_one_run_needs_no_legend() -> None:
    assert "run" not in texts(charts_of(run_of(SOME, "run"))["recall_by_depth"])


@pytest.mark.parametrize(("depths", "is_cut"), [(20, False), (21, True), (25, True)])
def test_depths_are_sorted_as_numbers_and_the_first_twenty_shown(depths: int, is_cut: bool) -> None:
    chain = Hierarchy.from_edges([(f"n{n:02d}", f"n{n + 1:02d}") for n in range(depths - 1)])
    drawn = charts_of(run_of(nodes_with(chain, [Counts(1, 1, 2)] * depths)))
    for score in ("recall", "f1"):
        shown = texts(drawn[f"{score}_by_depth"])
        at = shown.index("10")
        assert shown[at : at + 10] == [str(depth) for depth in range(10, 20)]
        assert drawn[f"{score}_by_depth"].caption.endswith(" Only the first 20 depths are drawn.") == is_cut
        assert "Only the first" not in drawn[f"{score}_by_rarity"].caption


def test_curves_with_the_point_that_was_decided() -> None:
    rare, common = BandCurve(tuple(1 - n / 200 for n in range(100)), (0.25, 0.5)), BandCurve((0.5,) * 100, None)
    one = run_of(SOME, "one", curves={"0": BandCurve((), None), "1-4": rare, "100+": common})
    alone = charts_of(one)["precision_recall"]
    assert {"1-4 training rows", "100+ training rows"} <= set(texts(alone))
    assert "0 training rows" not in texts(alone)
    assert marks(alone) == 2  # the point and its legend
    several = charts_of(one, run_of(SOME, "two", curves={"1-4": common}), run_of(SOME, "three"))
    of_bands = {name: set(texts(chart)) for name, chart in several.items() if name.startswith("precision_recall")}
    assert set(of_bands) == {"precision_recall_1_to_4", "precision_recall_100_or_more"}
    assert {"one", "two"} <= of_bands["precision_recall_1_to_4"]
    assert "one" in of_bands["precision_recall_100_or_more"]
    assert not {"two", "three"} & of_bands["precision_recall_100_or_more"]


def test_a_run_with_one_band_alone_has_the_chart_of_one_run() -> None:
    only = run_of(SOME, "one", curves={"1-4": BandCurve((0.5,) * 100, None)})
    assert "1-4 training rows" in texts(charts_of(only)["precision_recall"])


BINS = Reliability(
    edges=np.array([0, 0.1, 0.3, 0.5, 1.0]),
    mean_probability=np.array([0.05, 0.2, np.nan, 0.75]),
    frequency=np.array([0.0, 0.25, np.nan, 0.5]),
    count=np.array([90, 8, 0, 2]),
)


def test_bins_of_reliability_that_a_logarithm_can_show() -> None:
    other = replace(BINS, mean_probability=np.array([0.0, 0.2, 0.4, 0.75]), frequency=np.array([0.5, 1, 1, 1]))
    one = run_of(SOME, "one", reliability={"all": BINS, "1-4": other})
    chart = charts_of(one)["reliability"]
    assert {"all nodes", "1-4 training rows"} <= set(texts(chart))
    assert marks(chart) == 2 * (2 + 1)  # two bins of each line, and the legend
    assert chart.caption.endswith(f"over all cells: one {100 * (90 * 0.05 + 8 * 0.05 + 2 * 0.25) / 100:.2f} %.")
    several = charts_of(one, run_of(SOME, "two", reliability={"all": other}), run_of(SOME, "three"))
    assert {"one", "two"} <= set(texts(several["reliability"]))
    assert "three" not in texts(several["reliability"])


def test_reliability_without_a_bin_that_can_be_shown() -> None:
    """No cell of a band is positive; then a run has none either; then it has no cells at all."""
    bins = Reliability(
        edges=np.array([0, 0.5, 1.0]),
        mean_probability=np.array([0.25, 0.75]),
        frequency=np.array([0.5, 1.0]),
        count=np.array([4, 4]),
    )
    never = replace(bins, frequency=np.zeros(2))
    empty = replace(bins, count=np.zeros(2, dtype=int), frequency=np.full(2, np.nan))
    drawn = charts_of(run_of(SOME, reliability={"all": bins, "0": never, "1-4": empty, "5-19": bins}))
    named = {text for text in texts(drawn["reliability"]) if "nodes" in text or "rows" in text}
    assert named == {"all nodes", "5-19 training rows"}
    runs = [run_of(SOME, name, reliability={"all": of}) for name, of in (("a", never), ("b", bins), ("c", empty))]
    chart = charts_of(*runs)["reliability"]
    assert set("abc") & set(texts(chart)) == {"b"}
    assert chart.caption.endswith("over all cells: a 50.00 %; b 25.00 %.")
    assert "reliability" not in charts_of(runs[0], runs[2])
    assert "reliability" not in charts_of(runs[2])


def test_training() -> None:
    watched = run_of(SOME, "watched", history=HISTORY)
    blind = run_of(SOME, "blind", history=tuple(epoch.model_copy(update={"valid": None}) for epoch in HISTORY))
    drawn = charts_of(watched, blind, run_of(SOME, "no history"))
    assert {"watched", "blind", "epoch", "1", "2", "3"} <= set(texts(drawn["training_loss"]))
    assert "no history" not in texts(drawn["training_loss"])
    assert "AP, percent" in texts(drawn["training_validation"])
    assert "blind" not in texts(drawn["training_validation"])
    assert set(charts_of(blind)) == {"map", *BY_GROUP, "training_loss"}


def test_losses_of_different_scales_are_drawn_relative_to_the_first_epoch() -> None:
    sums = tuple(epoch.model_copy(update={"loss": 1000 * epoch.loss}) for epoch in HISTORY)
    both = charts_of(run_of(SOME, "mean", history=HISTORY), run_of(SOME, "sum", history=sums))["training_loss"]
    assert {"loss, percent of the first epoch's", "100"} <= set(texts(both))
    assert "different scales" in both.caption
    alone = charts_of(run_of(SOME, "mean", history=HISTORY))["training_loss"]
    assert "mean loss of the batches" in texts(alone)


def test_boxes_have_the_f1_of_each_run() -> None:
    scored = [node != "z" for node in DAG.nodes]
    counts = [Counts(1, 1, 3), Counts(1, 1, 1), Counts(0, 2, 0), *[Counts(2, 2, 2)] * 5]
    runs = [run_of(nodes_with(DAG, counts, scored), name) for name in ("one", "two", "three")]
    shown = texts(charts_of(*runs)["node_scores"])
    assert shown[0] == "F1 of each node"
    assert {*DAG.nodes, "one", "two", "three"} <= set(shown)
    assert (shown.count("50.0"), shown.count("100"), shown.count("\u2013")) == (3, 15, 6)  # b and z are unknown


def test_of_many_nodes_those_that_changed_most_between_first_and_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "MOST_BOXES", 7)
    monkeypatch.setattr(charts, "SOME_BOXES", 5)
    nothing = [Counts(0, 0, 4)] * 8
    now = [Counts(4, 4, 4) if node == "g" else Counts(0, 0, 4) for node in DAG.nodes]
    between = [Counts(4, 4, 4) if node == "f" else Counts(0, 0, 4) for node in DAG.nodes]
    runs = [run_of(nodes_with(DAG, counts), name) for name, counts in (("1", nothing), ("2", between), ("3", now))]
    shown = texts(charts_of(*runs)["node_scores"])
    assert [text for text in shown if text in DAG.nodes] == list("abdg")
    assert " ".join(shown[:2]) == "F1 of 4 nodes: the largest changes and their ancestors"
    assert (shown.count("100"), shown.count("+")) == (1, 1)
    assert "node_scores" not in charts_of(runs[0], run_of(nodes_with(DAG, nothing), "same"))


@pytest.mark.parametrize(("leaves", "shown"), [(59, 60), (60, 30)])
def test_a_hierarchy_that_is_too_large_is_shown_in_part(leaves: int, shown: int) -> None:
    star = Hierarchy.from_edges([("root", f"leaf {number}") for number in range(leaves)])
    before, after = (run_of(nodes_with(star, [Counts(n, n, 1)] * (leaves + 1)), str(n)) for n in (0, 1))
    found = texts(charts_of(before, after)["node_scores"])
    assert sum(text in star.index for text in found) == shown


def test_names_of_charts_are_names_of_files() -> None:
    assert len(set(chart_names())) == len(chart_names()) == 9 + 4 + len(RARITY_BANDS) + 5
    assert all(re.fullmatch("[a-z0-9_]+", name) for name in chart_names())


def test_long_and_hostile_names_leave_charts_in_their_frame() -> None:
    runs = [run_of(SOME, f"{number} $x_{{{number}}}$ <b>{'x' * 500}", history=HISTORY) for number in range(8)]
    for chart in charts_of(*runs).values():
        root = ElementTree.fromstring(chart.svg)
        _, _, wide, tall = map(float, root.attrib["viewBox"].split())
        assert wide == 560
        for text in root.iter(f"{SVG}text"):
            assert len(text.text or "") < 100
            if text.get("x"):
                assert 0 <= float(text.attrib["x"]) <= wide
                assert 0 <= float(text.attrib["y"]) <= tall
        assert any("$x_{0}$ <b>" in (text.text or "") for text in root.iter(f"{SVG}text")) or "map" in chart.name
