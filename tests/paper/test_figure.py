"""Records written by hand, the numbers that a figure takes from them, and the files it becomes."""

from __future__ import annotations

import math
import struct
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from rarenode.cli.paper import figure as figure_command
from rarenode.errors import ArgumentError, FileFormatError, MissingFileError, RarenodeError
from rarenode.metrics import Summary
from rarenode.paper.comparison.scores import Estimate
from rarenode.paper.figures import figure_of
from rarenode.paper.figures.charts import Chart, FigureData, Line
from rarenode.paper.figures.drawing import draw
from rarenode.paper.figures.scores import MOST_CHARTS, MOST_MARKS
from rarenode.paper.figures.text import plain
from rarenode.paper.grid import cell
from rarenode.paper.record import DatasetNodes, PredictedNodes
from rarenode.paper.spec import Spec, load_spec, spec_names
from rarenode.paper.store import record_path, write_record
from tests.paper.small_grid import made_up, small_spec

CELLCYCLE, SPO, SEQ = "cellcycle_FUN", "spo_FUN", "seq_FUN"
NODES = DatasetNodes(
    hierarchy="h",
    names=("root", "rare", "most", "tie", "tied", "unscored"),
    scored=(False, True, True, True, True, False),
    training_rows=(99, 2, 50, 7, 7, 60),
    test_rows=(40, 0, 20, 5, 4, 30),
)
NOTHING = PredictedNodes(column=(), predicted=(), true_positives=())
PANEL: dict[str, Any] = {"title": "A panel", "measures": ["f1"]}
SWEEP: dict[str, Any] = {"kind": "sweep", "setting": "n_members"} | PANEL
SVG = "{http://www.w3.org/2000/svg}"


def scores(**given: float) -> Summary:
    """In percent, as figures show them."""
    fractions: dict[str, Any] = dict.fromkeys(("f1", "precision", "recall", "bin_ap", "ap"), 0.0)
    fractions |= {name: value / 100 for name, value in given.items()}
    return Summary(**fractions, nodes=4, nodes_predicted=1, nodes_found=1)


def keep(folder: Path, spec: Spec, dataset: str, method: str, f1: Sequence[float | None] = (), **changes: Any) -> None:
    """Write a record with an F1 for each seed; None leaves the seed out."""
    for seed, value in enumerate(f1):
        if value is not None:
            wanted = cell(spec, dataset, method, seed)
            record, _ = made_up(wanted, **({"summary": scores(f1=value), "nodes": NOTHING} | changes))
            write_record(folder, record, NODES)


def members(*values: int, series: str = "GMU", **changes: Any) -> dict[str, Any]:
    return {"series": series, "setting": "n_members", "label": "members", "values": list(values)} | changes


def means(points: Sequence[Estimate | None]) -> list[Any]:
    return [None if point is None else pytest.approx(point.mean) for point in points]


def only(figure: FigureData) -> Chart:
    (chart,) = figure.charts
    return chart


class TestSweep:
    def test_a_point_is_the_mean_over_seeds_with_their_sample_deviation(self, tmp_path: Path) -> None:
        spec = small_spec(datasets=[CELLCYCLE], seeds=3, sweeps=[members(1, 2)], panels=[SWEEP])
        keep(tmp_path, spec, CELLCYCLE, "GMU, members=1", [3.0, 4.0, 8.0])
        keep(tmp_path, spec, CELLCYCLE, "GMU, members=2", [7.0])
        chart = only(figure_of(spec, tmp_path))
        (line,) = chart.lines
        one, two = line.ours
        assert (chart.positions, chart.names, chart.axis, chart.scale) == ((1.0, 2.0), None, "members", "F1 (%)")
        assert one is not None and two is not None
        assert (one.mean, one.deviation) == pytest.approx((5.0, np.std([3, 4, 8], ddof=1)))
        assert two.mean == pytest.approx(7.0)
        assert two.deviation is None

    def test_values_are_in_order_whatever_the_order_in_the_spec(self, tmp_path: Path) -> None:
        sweeps = [members(10, 2), members(4, series="bBMA", settings={"focus": "bbma"})]
        spec = small_spec(datasets=[CELLCYCLE], sweeps=sweeps, panels=[SWEEP])
        for name, value in (("GMU, members=10", 10.0), ("GMU, members=2", 2.0), ("bBMA, members=4", 4.0)):
            keep(tmp_path, spec, CELLCYCLE, name, [value])
        chart = only(figure_of(spec, tmp_path))
        assert chart.positions == (2.0, 4.0, 10.0)
        assert {line.label: means(line.ours) for line in chart.lines} == {
            "GMU": [2.0, None, 10.0],
            "bBMA": [None, 4.0, None],
        }

    def test_two_sweeps_of_one_series_are_one_line(self, tmp_path: Path) -> None:
        spec = small_spec(datasets=[CELLCYCLE], sweeps=[members(1), members(3, seeds=1)], panels=[SWEEP])
        keep(tmp_path, spec, CELLCYCLE, "GMU, members=1", [1.0])
        keep(tmp_path, spec, CELLCYCLE, "GMU, members=3", [3.0])
        (line,) = only(figure_of(spec, tmp_path)).lines
        assert means(line.ours) == [1.0, 3.0]

    def test_sweeps_of_other_settings_and_methods_not_chosen_are_left_out(self, tmp_path: Path) -> None:
        other = {"series": "Other", "setting": "k", "values": [1.0, 2.0]}
        panel = SWEEP | {"methods": ["GMU, members=1", "GMU, members=3"]}
        spec = small_spec(datasets=[CELLCYCLE], sweeps=[members(1, 2, 3), other], panels=[panel])
        for method in spec.all_methods:
            keep(tmp_path, spec, CELLCYCLE, method.name, [5.0])
        chart = only(figure_of(spec, tmp_path))
        assert [line.label for line in chart.lines] == ["GMU"]
        assert chart.positions == (1.0, 3.0)

    def test_values_that_are_no_numbers_stand_side_by_side(self, tmp_path: Path) -> None:
        sweep = {"series": "S", "setting": "schedule", "values": ["linear", "constant"]}
        spec = small_spec(datasets=[CELLCYCLE], sweeps=[sweep], panels=[SWEEP | {"setting": "schedule"}])
        keep(tmp_path, spec, CELLCYCLE, "S, schedule=linear", [1.0])
        keep(tmp_path, spec, CELLCYCLE, "S, schedule=constant", [2.0])
        chart = only(figure_of(spec, tmp_path))
        assert (chart.positions, chart.names) == ((0.0, 1.0), ("linear", "constant"))
        assert means(chart.lines[0].ours) == [1.0, 2.0]
        draw(figure_of(spec, tmp_path), tmp_path / "out", "schedule")

    def test_a_single_dataset_is_drawn_with_gaps(self, tmp_path: Path) -> None:
        spec = small_spec(datasets=[CELLCYCLE, SPO], sweeps=[members(1, 2, 3)], panels=[SWEEP])
        keep(tmp_path, spec, CELLCYCLE, "GMU, members=1", [1.0])
        keep(tmp_path, spec, CELLCYCLE, "GMU, members=3", [3.0])
        figure = figure_of(spec, tmp_path, [CELLCYCLE])
        assert means(only(figure).lines[0].ours) == [1.0, None, 3.0]
        assert only(figure).note == CELLCYCLE

    def test_the_mean_is_over_datasets_where_the_sweep_is_complete(self, tmp_path: Path) -> None:
        spec = small_spec(datasets=[CELLCYCLE, SPO, SEQ], seeds=2, sweeps=[members(1, 2)], panels=[SWEEP])
        for dataset, method, values in (
            (CELLCYCLE, "GMU, members=1", [2.0, 4.0]),
            (CELLCYCLE, "GMU, members=2", [6.0, 7.0]),
            (SPO, "GMU, members=1", [10.0, 14.0]),
            (SPO, "GMU, members=2", [20.0]),
            (SEQ, "GMU, members=1", [90.0, 95.0]),
        ):
            keep(tmp_path, spec, dataset, method, values)
        chart = only(figure_of(spec, tmp_path))
        one, two = chart.lines[0].ours
        assert one is not None and two is not None
        assert one.mean == pytest.approx((3 + 12) / 2)
        assert one.deviation == pytest.approx(math.sqrt(np.var([2, 4], ddof=1) + np.var([10, 14], ddof=1)) / 2)
        assert two.mean == pytest.approx((6.5 + 20) / 2)
        assert two.deviation is None
        assert chart.note == f"mean over 2 datasets: {CELLCYCLE}, {SPO}; 1 more not complete"

    def test_all_lines_are_over_the_same_datasets_and_a_line_without_any_is_named(self, tmp_path: Path) -> None:
        sweeps = [
            members(1, 2, series=series, settings={"w0": w0}) for series, w0 in (("A", 0.1), ("B", 0.2), ("C", 0.3))
        ]
        spec = small_spec(datasets=[CELLCYCLE, SPO], sweeps=sweeps, panels=[SWEEP])
        for series, dataset, value in (("A", CELLCYCLE, 1.0), ("A", SPO, 9.0), ("B", SPO, 5.0)):
            for value_of_setting in (1, 2):
                keep(tmp_path, spec, dataset, f"{series}, members={value_of_setting}", [value])
        keep(tmp_path, spec, SPO, "C, members=1", [50.0])
        chart = only(figure_of(spec, tmp_path))
        assert {line.label: means(line.ours) for line in chart.lines} == {"A": [9.0, 9.0], "B": [5.0, 5.0]}
        assert chart.note == f"{SPO}; 1 more not complete; not complete: C"

    def test_measures_of_one_unit_share_a_chart_and_others_get_their_own(self, tmp_path: Path) -> None:
        panel = SWEEP | {"measures": ["f1", "memory_mb", "recall"]}
        spec = small_spec(datasets=[CELLCYCLE], sweeps=[members(1)], panels=[panel])
        keep(tmp_path, spec, CELLCYCLE, "GMU, members=1", [0], summary=scores(f1=3, recall=4), training_bytes=2_500_000)
        percent, memory = figure_of(spec, tmp_path).charts
        assert [(line.label, means(line.ours)) for line in percent.lines] == [("F1", [3.0]), ("Recall", [4.0])]
        assert [(line.label, means(line.ours)) for line in memory.lines] == [("GMU", [2.5])]
        assert (percent.scale, memory.scale) == ("F1, Recall (%)", "Memory (MB)")
        assert memory.title == "A panel: Memory"

    def test_lines_of_several_series_and_measures_say_both(self, tmp_path: Path) -> None:
        sweeps = [members(1), members(1, series="B", settings={"u0": 0.5})]
        spec = small_spec(datasets=[CELLCYCLE], sweeps=sweeps, panels=[SWEEP | {"measures": ["f1", "ap"]}])
        for method in spec.all_methods:
            keep(tmp_path, spec, CELLCYCLE, method.name, [1.0])
        labels = [line.label for line in only(figure_of(spec, tmp_path)).lines]
        assert labels == ["GMU, F1", "GMU, AP", "B, F1", "B, AP"]


class TestPublished:
    def test_it_is_beside_ours_where_it_is_known(self, tmp_path: Path) -> None:
        published = {CELLCYCLE: {"GMU, members=2": {"f1": [7.3, 0.2], "recall": 8.0}}}
        panel = SWEEP | {"measures": ["f1", "recall"]}
        spec = small_spec(datasets=[CELLCYCLE], sweeps=[members(1, 2)], panels=[panel], published=published)
        keep(tmp_path, spec, CELLCYCLE, "GMU, members=1", [1.0])
        f1, recall = only(figure_of(spec, tmp_path)).lines
        assert f1.published == (None, Estimate(7.3, 0.2))
        assert recall.published == (None, Estimate(8.0, None))

    def test_over_datasets_it_is_averaged_only_if_known_for_all(self, tmp_path: Path) -> None:
        published = {
            CELLCYCLE: {"None": {"f1": [2.0, 0.3]}, "Other": {"f1": [5.0, 0.1]}},
            SPO: {"None": {"f1": [4.0, 0.4]}},
        }
        methods: list[dict[str, Any]] = [{"name": "None", "settings": {"weighting": "none"}}, {"name": "Other"}]
        spec = small_spec(
            *methods, datasets=[CELLCYCLE, SPO], panels=[{"kind": "methods"} | PANEL], published=published
        )
        for dataset in (CELLCYCLE, SPO):
            for name in ("None", "Other"):
                keep(tmp_path, spec, dataset, name, [1.0])
        none, other = only(figure_of(spec, tmp_path)).lines[0].published
        assert none is not None
        assert none.mean == 3.0
        assert none.deviation == pytest.approx(0.25)
        assert other is None

    def test_a_rebuilt_dataset_has_that_of_the_original(self, tmp_path: Path) -> None:
        published = {"expr_FUN": {"None": {"f1": [5.84, 0.26]}}}
        spec = small_spec({"name": "None"}, datasets=["expr_FUN_rebuilt"], published=published)
        keep(tmp_path, spec, "expr_FUN_rebuilt", "None", [1.0])
        assert only(figure_of(spec, tmp_path)).lines[0].published == (Estimate(5.84, 0.26),)


class TestMethods:
    def spec(self) -> Spec:
        names = {"A": 0.1, "B": 0.2, "C": 0.3, "D": 0.4}
        methods = [{"name": name, "settings": {"w0": w0}} for name, w0 in names.items()]
        panel = {"kind": "methods", "methods": ["C", "A", "B"]} | PANEL
        return small_spec(*methods, datasets=[CELLCYCLE, SPO, SEQ], seeds=2, panels=[panel])

    def test_methods_are_compared_on_the_datasets_that_all_of_them_have(self, tmp_path: Path) -> None:
        spec = self.spec()
        for dataset, method, values in (
            (CELLCYCLE, "A", [1.0, 2.0]),
            (SPO, "A", [3.0, 7.0]),
            (SEQ, "A", [50.0, 60.0]),
            (CELLCYCLE, "B", [4.0, 4.0]),
            (SPO, "B", [6.0, 8.0]),
            (SEQ, "D", [99.0, 99.0]),
        ):
            keep(tmp_path, spec, dataset, method, values)
        chart = only(figure_of(spec, tmp_path))
        a, b = chart.lines[0].ours
        assert a is not None and b is not None
        assert chart.names == ("A", "B")
        assert (a.mean, b.mean) == pytest.approx(((1.5 + 5) / 2, (4 + 7) / 2))
        assert a.deviation == pytest.approx(math.sqrt(np.var([1, 2], ddof=1) + np.var([3, 7], ddof=1)) / 2)
        assert chart.note == f"mean over 2 datasets: {CELLCYCLE}, {SPO}; 1 more not complete; not complete: C"

    def test_without_a_common_dataset_nothing_is_compared(self, tmp_path: Path) -> None:
        spec = self.spec()
        keep(tmp_path, spec, CELLCYCLE, "A", [1.0])
        keep(tmp_path, spec, SPO, "B", [2.0])
        with pytest.raises(ArgumentError, match="too few records to draw anything: no dataset has all"):
            figure_of(spec, tmp_path)

    def test_each_measure_has_a_chart(self, tmp_path: Path) -> None:
        panel = {"kind": "methods", "title": "P", "measures": ["recall", "steps_per_second"]}
        spec = small_spec({"name": "A"}, datasets=[CELLCYCLE], panels=[panel])
        keep(tmp_path, spec, CELLCYCLE, "A", [0], summary=scores(recall=12.0), steps_per_second=321.0)
        recall, speed = figure_of(spec, tmp_path).charts
        assert (recall.title, recall.scale, means(recall.lines[0].ours)) == ("P: Recall", "Recall (%)", [12.0])
        assert (speed.title, speed.scale, means(speed.lines[0].ours)) == ("P: Speed", "Speed (steps/s)", [321.0])


class TestNodes:
    def spec(self, measure: str, nodes: int = 20, datasets: Sequence[str] = (CELLCYCLE,)) -> Spec:
        panel = {"kind": "nodes", "title": "Top", "measures": [measure], "nodes": nodes}
        methods: list[dict[str, Any]] = [{"name": "A"}, {"name": "B", "settings": {"w0": 0.5}}]
        return small_spec(*methods, datasets=datasets, seeds=2, panels=[panel])

    def test_the_most_frequent_scored_nodes_come_first(self, tmp_path: Path) -> None:
        spec = self.spec("f1", nodes=3)
        keep(tmp_path, spec, CELLCYCLE, "A", [0])
        assert only(figure_of(spec, tmp_path)).names == ("most", "tie", "tied")
        assert only(figure_of(self.spec("f1"), tmp_path)).names == ("most", "tie", "tied", "rare")

    @pytest.mark.parametrize(
        ("measure", "first", "second"),
        [
            ("precision", [9 / 10, 0, 1 / 4, 0], [5 / 30, 3 / 3, 0, 0]),
            ("recall", [9 / 20, 0, 1 / 4, 0], [5 / 20, 3 / 5, 0, 0]),
            ("f1", [18 / 30, 0, 2 / 8, 0], [10 / 50, 6 / 8, 0, 0]),
        ],
    )
    def test_a_value_is_the_mean_over_seeds_and_what_is_undefined_counts_0(
        self, tmp_path: Path, measure: str, first: list[float], second: list[float]
    ) -> None:
        spec = self.spec(measure)
        # in the second seed "tied" is not listed, and "rare" is predicted where no test row carries it
        runs = (((2, 4), (10, 4), (9, 1)), ((1, 2, 3), (2, 30, 3), (0, 5, 3)))
        for seed, (columns, predicted, hits) in enumerate(runs):
            nodes = PredictedNodes(column=columns, predicted=predicted, true_positives=hits)
            keep(tmp_path, spec, CELLCYCLE, "A", [None] * seed + [0.0], nodes=nodes)
        chart = only(figure_of(spec, tmp_path))
        (line,) = chart.lines
        assert (line.label, chart.names) == ("A", ("most", "tie", "tied", "rare"))
        for point, *values in zip(line.ours, first, second, strict=True):
            assert point is not None
            assert point.mean == pytest.approx(100 * np.mean(values))
            assert point.deviation == pytest.approx(100 * np.std(values, ddof=1))
        assert chart.note == f"{CELLCYCLE}; not complete: B"

    def test_each_dataset_has_its_own_chart(self, tmp_path: Path) -> None:
        spec = self.spec("recall", datasets=[CELLCYCLE, SPO, SEQ])
        keep(tmp_path, spec, CELLCYCLE, "A", [0])
        keep(tmp_path, spec, SEQ, "B", [0])
        cellcycle, spo, seq = figure_of(spec, tmp_path).charts
        assert [line.label for line in cellcycle.lines] == ["A"]
        assert spo.lines == () and "no dataset has" in spo.note
        assert [line.label for line in seq.lines] == ["B"]
        assert seq.note == f"{SEQ}; not complete: A"

    @pytest.mark.parametrize(
        ("nodes", "fault"),
        [
            (PredictedNodes(column=(6,), predicted=(1,), true_positives=(0,)), "beyond the 6 nodes"),
            (PredictedNodes(column=(2,), predicted=(3,), true_positives=(4,)), "column 2 has more true positives"),
            (PredictedNodes(column=(2,), predicted=(30,), true_positives=(21,)), "column 2 has more true positives"),
        ],
    )
    def test_impossible_counts_name_the_record(self, tmp_path: Path, nodes: PredictedNodes, fault: str) -> None:
        spec = self.spec("f1")
        keep(tmp_path, spec, CELLCYCLE, "A", [0], nodes=nodes)
        with pytest.raises(FileFormatError, match=fault) as caught:
            figure_of(spec, tmp_path)
        assert caught.value.path == record_path(tmp_path, cell(spec, CELLCYCLE, "A", 0))


class TestTables:
    def spec(self) -> Spec:
        methods = [{"name": name, "settings": {"w0": w0}} for name, w0 in (("A", 0.1), ("B", 0.2), ("C", 0.3))]
        published = {CELLCYCLE: {"A": {"f1": [2.5, 0.5]}, "B": {"recall": 1.0}}, SEQ: {"C": {"f1": [1.0, 0.1]}}}
        return small_spec(*methods, datasets=[CELLCYCLE, SPO, SEQ], seeds=2, published=published)

    def test_a_spec_without_panels_shows_f1_published_and_ours_on_each_dataset(self, tmp_path: Path) -> None:
        spec = self.spec()
        keep(tmp_path, spec, CELLCYCLE, "B", [3.0, 5.0])
        keep(tmp_path, spec, SPO, "A", [7.0])
        cellcycle, spo = figure_of(spec, tmp_path).charts
        assert (cellcycle.title, spo.title) == (CELLCYCLE, SPO)
        assert cellcycle.names == spo.names == ("A", "B")  # of C nothing is known where there are records
        (line,) = cellcycle.lines
        assert line.published == (Estimate(2.5, 0.5), None)
        a, b = line.ours
        assert a is None and b is not None
        assert (b.mean, b.deviation) == pytest.approx((4.0, math.sqrt(2)))
        assert means(spo.lines[0].ours) == [7.0, None]
        assert spo.lines[0].published == (None, None)

    def test_missing_trainings_are_counted_once(self, tmp_path: Path) -> None:
        other: dict[str, Any] = {"name": "B", "settings": {"w0": 0.5}}
        spec = small_spec({"name": "A"}, {"name": "the same as A"}, other, datasets=[CELLCYCLE, SPO], seeds=2)
        keep(tmp_path, spec, CELLCYCLE, "A", [1.0])
        figure = figure_of(spec, tmp_path)
        assert (figure.trainings, figure.missing) == (8, 7)
        figure = figure_of(spec, tmp_path, [CELLCYCLE])
        assert (figure.trainings, figure.missing) == (4, 3)


class TestRefusals:
    def test_no_records(self, tmp_path: Path) -> None:
        with pytest.raises(ArgumentError, match="has no record of this spec yet"):
            figure_of(small_spec({"name": "A"}), tmp_path)

    def test_records_of_other_datasets_only(self, tmp_path: Path) -> None:
        spec = small_spec({"name": "A"}, datasets=[CELLCYCLE, SPO])
        keep(tmp_path, spec, CELLCYCLE, "A", [1.0])
        with pytest.raises(ArgumentError, match="has no record of this spec yet"):
            figure_of(spec, tmp_path, [SPO])

    def test_an_unknown_dataset(self, tmp_path: Path) -> None:
        with pytest.raises(ArgumentError, match="no dataset 'nope'"):
            figure_of(small_spec({"name": "A"}), tmp_path, ["nope"])

    def test_more_nodes_than_fit(self, tmp_path: Path) -> None:
        panel = {"kind": "nodes", "title": "Top", "measures": ["f1"], "nodes": MOST_MARKS + 1}
        spec = small_spec({"name": "A"}, datasets=[CELLCYCLE], panels=[panel])
        count = MOST_MARKS + 1
        many = DatasetNodes(
            hierarchy="h",
            names=tuple(map(str, range(count))),
            scored=(True,) * count,
            training_rows=(1,) * count,
            test_rows=(1,) * count,
        )
        wanted = cell(spec, CELLCYCLE, "A", 0)
        write_record(tmp_path, made_up(wanted, nodes=NOTHING)[0], many)
        with pytest.raises(ArgumentError, match=f"would show {count} lines or names; at most {MOST_MARKS}"):
            figure_of(spec, tmp_path)

    def test_more_charts_than_letters(self, tmp_path: Path) -> None:
        panels = [{"kind": "methods"} | PANEL] * (MOST_CHARTS + 1)
        spec = small_spec({"name": "A"}, datasets=[CELLCYCLE], panels=panels)
        keep(tmp_path, spec, CELLCYCLE, "A", [1.0])
        with pytest.raises(ArgumentError, match=f"would have {MOST_CHARTS + 1} charts; at most {MOST_CHARTS}"):
            figure_of(spec, tmp_path)

    @pytest.mark.parametrize("published", [1e300, [1.0, 1e300]])
    def test_published_values_that_cannot_be_drawn(self, tmp_path: Path, published: object) -> None:
        spec = small_spec({"name": "A"}, datasets=[CELLCYCLE], published={CELLCYCLE: {"A": {"f1": published}}})
        keep(tmp_path, spec, CELLCYCLE, "A", [1.0])
        with pytest.raises(ArgumentError, match="what is drawn must be in"):
            figure_of(spec, tmp_path)


HOSTILE = (
    r"$\frac{1}{0}$ and $x_", "</text><script>alert(1)</script>&", "_begins with an underscore",
    "two\nlines\x1b[31m\x00\x7f", "right to left \u202e evil", "\ud800 lone", "long " * 38,
    "漢字 🧬", r"\usepackage{x}", "%s {0} {x.__class__}",
)  # fmt: skip


def line(label: str, *ours: float | None, published: Sequence[float | None] = ()) -> Line:
    def points(values: Sequence[float | None]) -> tuple[Estimate | None, ...]:
        return tuple(None if value is None else Estimate(value, value / 10) for value in values)

    return Line(label, points(ours), points(published or [None] * len(ours)))


def sweep_chart(lines: Sequence[Line], title: str = "Sweep", note: str = "a dataset") -> Chart:
    return Chart("sweep", title, note, "members", "F1 (%)", (1.0, 2.0, 5.0), None, tuple(lines))


def nodes_chart(names: Sequence[str]) -> Chart:
    count = len(names)
    return Chart(
        "nodes", "Nodes", "", "nodes", "F1 (%)", tuple(map(float, range(count))), tuple(names),
        (line("one", *([5.0] * count)), line("two", *([0.0] * count))),
    )  # fmt: skip


def methods_chart(names: Sequence[str], title: str = "Methods") -> Chart:
    count = len(names)
    values = line("F1", *([4.0, None] * count)[:count], published=([3.0, 2.0] * count)[:count])
    return Chart("methods", title, "", "", "F1 (%)", tuple(map(float, range(count))), tuple(names), (values,))


EACH_KIND: Mapping[str, Callable[[], tuple[Chart, ...]]] = {
    "sweep": lambda: (sweep_chart([line("A", 1.0, None, 3.0, published=[None, 2.0, None]), line("B", 2.0, 3.0, 4.0)]),),
    "nodes": lambda: (nodes_chart(["01", "01/02"]), nodes_chart(["01", "01/02"])),
    "methods": lambda: tuple(methods_chart(["A", "B", "C"], title) for title in "pqrst"),
    "mixed": lambda: (methods_chart(["A"]), sweep_chart([line("A", 1, 2, 3)]), nodes_chart(["x"]), sweep_chart([])),
}


def texts(svg: Path) -> list[str]:
    return ["".join(element.itertext()) for element in ET.parse(svg).getroot().iter(f"{SVG}text")]


def png_size(png: Path) -> tuple[int, int]:
    head = png.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    width, height = struct.unpack(">II", head[16:24])
    return int(width), int(height)


class TestDrawing:
    @pytest.mark.parametrize("kind", EACH_KIND)
    def test_files_are_a_whole_svg_and_png_of_one_shape(self, tmp_path: Path, kind: str) -> None:
        svg, png = draw(FigureData("A title", EACH_KIND[kind](), 5, 0), tmp_path / "new" / "folder", "name")
        assert sorted(tmp_path.rglob("*.*")) == sorted([svg, png])
        root = ET.parse(svg).getroot()
        width, height = png_size(png)
        points = [float(root.attrib[side].removesuffix("pt")) for side in ("width", "height")]
        assert [points[0] / 72 * 150, points[1] / 72 * 150] == pytest.approx([width, height], abs=1)
        assert min(width, height) > 300

    @pytest.mark.parametrize("kind", EACH_KIND)
    def test_drawing_twice_gives_the_same_bytes(self, tmp_path: Path, kind: str) -> None:
        figure = FigureData("A title", EACH_KIND[kind](), 5, 1)
        first = [path.read_bytes() for path in draw(figure, tmp_path / "first", "x")]
        second = [path.read_bytes() for path in draw(figure, tmp_path / "second", "x")]
        assert first == second

    def test_the_users_settings_of_matplotlib_neither_matter_nor_change(self, tmp_path: Path) -> None:
        figure = FigureData("A title", EACH_KIND["sweep"](), 5, 1)
        first = [path.read_bytes() for path in draw(figure, tmp_path / "first", "x")]
        with mpl.rc_context({"font.size": 30, "lines.linewidth": 9, "svg.fonttype": "path"}):
            before = dict(mpl.rcParams)
            second = [path.read_bytes() for path in draw(figure, tmp_path / "second", "x")]
            assert dict(mpl.rcParams) == before
        assert first == second

    def test_what_there_is_to_read_is_text(self, tmp_path: Path) -> None:
        charts = (*EACH_KIND["sweep"](), methods_chart(["Method one", "Method two"]))
        svg, _ = draw(FigureData("A title", charts, 30, 7), tmp_path, "x")
        shown = texts(svg)
        for text in (
            *("A title (7 of 30 trainings are missing)", "a) Sweep", "b) Methods", "a dataset", "members", "F1 (%)"),
            *("A", "B", "1", "2", "5", "ours", "published", "± one deviation", "Method one", "Method two"),
        ):
            assert text in shown, text

    def test_a_single_chart_has_no_letter_and_the_legend_only_what_is_there(self, tmp_path: Path) -> None:
        bare = Line("A", (Estimate(1.0, None), None, Estimate(2.0, None)), (None, None, None))
        shown = texts(draw(FigureData("A title", (sweep_chart([bare]),), 30, 0), tmp_path, "x")[0])
        assert {"A title", "Sweep", "A"} <= set(shown)
        assert not {"published", "± one deviation", "ours"} & set(shown)

    def test_methods_are_named_once_in_each_row_of_charts_that_show_the_same(self, tmp_path: Path) -> None:
        charts = [methods_chart(["Same", "Other"], title) for title in "pqrs"]
        assert texts(draw(FigureData("T", tuple(charts), 1, 0), tmp_path, "x")[0]).count("Same") == 1
        charts[1] = methods_chart(["Same", "Different"])
        assert texts(draw(FigureData("T", tuple(charts), 1, 0), tmp_path, "x")[0]).count("Same") == 4

    def test_a_chart_without_lines_says_why(self, tmp_path: Path) -> None:
        charts = (sweep_chart([line("A", 1, 2, 3)]), sweep_chart([], note="nothing yet"))
        assert "nothing yet" in texts(draw(FigureData("T", charts, 1, 0), tmp_path, "x")[0])

    def test_values_close_together_do_not_get_labels_that_touch(self, tmp_path: Path) -> None:
        crowded = Chart("sweep", "S", "", "u0", "F1 (%)", (0.0, 0.201, 0.202, 1.5), None, (line("A", 1, 2, 3, 4),))
        shown = texts(draw(FigureData("T", (crowded,), 1, 0), tmp_path, "x")[0])
        assert "0.201" not in shown and "0.202" not in shown

    def test_the_names_of_the_specs_are_not_cut(self) -> None:
        methods = {method.name for name in spec_names() for method in load_spec(name).methods}
        assert not [name for name in methods if plain(name) != name]

    @pytest.mark.parametrize("name", HOSTILE)
    def test_names_are_only_ever_text(self, tmp_path: Path, name: str) -> None:
        charts = (
            sweep_chart([line(name, 1, 2, 3), line("B", 1, 2, 3)], title=name, note=name),
            nodes_chart([name, "x"]),
            methods_chart([name, "x"], title=name),
        )
        svg, png = draw(FigureData(name, charts, 3, 1), tmp_path, "x")
        png_size(png)
        allowed = {element.tag for element in ET.parse(svg).getroot().iter()}
        assert not {tag for tag in allowed if "script" in tag.lower()}
        shown = [text.removeprefix("\u200b") for text in texts(svg)]
        assert shown.count(plain(name)) >= 2  # in the legend and beside the axis of methods
        assert shown.count(plain(name, 24)) >= 1
        assert all(len(text) < 130 for text in shown)

    def test_an_image_stays_within_bounds_at_the_limits(self, tmp_path: Path) -> None:
        names = [f"node {index} of a hundred" for index in range(MOST_MARKS)]
        charts = (nodes_chart(names), sweep_chart([line(name, 1, 2, 3) for name in names]))
        width, height = png_size(draw(FigureData("T", charts, 1, 0), tmp_path, "x")[1])
        assert max(width, height) < 15_000

    def test_a_folder_that_cannot_be_written_to_is_one_clear_error(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(ArgumentError, match="cannot be kept in"):
            draw(FigureData("T", EACH_KIND["sweep"](), 1, 0), tmp_path / "file", "x")

    def test_a_failure_leaves_the_old_files(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        svg, png = draw(FigureData("Old", EACH_KIND["sweep"](), 1, 0), tmp_path, "x")
        before = svg.read_bytes(), png.read_bytes()
        monkeypatch.setattr("matplotlib.backends.backend_agg.FigureCanvasAgg.print_png", _full_disk)
        with pytest.raises(ArgumentError, match="the disk is full"):
            draw(FigureData("New", EACH_KIND["sweep"](), 1, 0), tmp_path, "x")
        assert (svg.read_bytes(), png.read_bytes()) == before
        assert sorted(tmp_path.iterdir()) == sorted([svg, png])


def _full_disk(*_: object, **__: object) -> None:
    raise OSError("the disk is full")


class TestPlain:
    @given(st.text(), st.integers(2, 40))
    def test_it_prints_on_one_line_and_is_short(self, text: str, longest: int) -> None:
        made = plain(text, longest)
        assert made.isprintable() and len(made) <= longest
        assert "\n" not in made

    def test_what_is_short_and_printable_stays(self) -> None:
        assert plain("w0=0.25, as described") == "w0=0.25, as described"


SPEC = """
title = "Mine"
datasets = ["cellcycle_FUN", "spo_FUN"]
seeds = 2
[[methods]]
name = "A"
"""


class TestCommand:
    def run(self, *arguments: str | Path) -> str:
        app = typer.Typer()
        app.command()(figure_command)
        result = CliRunner().invoke(app, [str(argument) for argument in arguments])
        if isinstance(result.exception, RarenodeError):
            raise result.exception
        assert result.exit_code == 0, result.output + repr(result.exception)
        return result.stdout

    def test_it_writes_both_files_and_says_what_is_missing(self, tmp_path: Path) -> None:
        path, results, out = tmp_path / "mine.toml", tmp_path / "results", tmp_path / "out"
        path.write_text(SPEC)
        spec = small_spec({"name": "A"}, datasets=[CELLCYCLE, SPO], seeds=2)
        keep(results, spec, CELLCYCLE, "A", [1.0, 2.0])
        keep(results, spec, SPO, "A", [1.0])
        printed = self.run(path, "--results", results, "--out", out).splitlines()
        assert printed[:2] == [str(out / "mine.svg"), str(out / "mine.png")]
        assert printed[2:] == ["Missing: 1 of 4 trainings; `rarenode paper run` adds them"]
        assert "a) cellcycle_FUN" in texts(out / "mine.svg")
        printed = self.run(path, "--results", results, "--out", out, "--datasets", CELLCYCLE).splitlines()
        assert printed == [str(out / "mine.svg"), str(out / "mine.png")]
        assert "cellcycle_FUN" in texts(out / "mine.svg")

    def test_the_default_folder_is_figures(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        Path("mine.toml").write_text(SPEC)
        keep(Path("results"), small_spec({"name": "A"}, datasets=[CELLCYCLE]), CELLCYCLE, "A", [1.0])
        self.run("mine.toml")
        assert sorted(path.name for path in Path("figures").iterdir()) == ["mine.png", "mine.svg"]

    def test_without_records_nothing_is_written(self, tmp_path: Path) -> None:
        path = tmp_path / "mine.toml"
        path.write_text(SPEC)
        with pytest.raises(ArgumentError, match="has no record of this spec yet"):
            self.run(path, "--results", tmp_path / "none", "--out", tmp_path / "out")
        assert not (tmp_path / "out").exists()

    def test_a_spec_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(MissingFileError, match="neither a spec of rarenode nor a file"):
            self.run("no_such_spec", "--results", tmp_path)
