"""Differences and advantages over a setting, and charts by dataset: numbers from records written by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rarenode.paper.figures import figure_of
from rarenode.paper.figures.charts import Chart, FigureData
from rarenode.paper.figures.drawing import draw
from rarenode.paper.spec import Spec
from tests.paper.small_grid import small_spec
from tests.paper.test_figure import CELLCYCLE, SPO, keep, line, means, only, png_size, texts

PAIR = {"label": "A over B", "of": "A", "against": "B"}


def spec_of(kind: str, datasets: tuple[str, ...] = (CELLCYCLE,), seeds: int = 3, **changes: Any) -> Spec:
    sweeps = [
        {"series": series, "setting": "w0", "values": [0.1, 0.2, 0.3], "settings": {"n_members": members}}
        for series, members in (("A", 1), ("B", 2), ("C", 3))
    ]
    panel = {"kind": kind, "title": "P", "measures": ["f1"], "setting": "w0", "pairs": [PAIR]} | changes
    return small_spec(datasets=datasets, seeds=seeds, sweeps=sweeps, panels=[panel])


def write(folder: Path, spec: Spec, dataset: str, **f1: Sequence[float | None]) -> None:
    """F1 by series and value, such as A1 for the first value of A."""
    for name, values in f1.items():
        keep(folder, spec, dataset, f"{name[0]}, w0=0.{name[1]}", values)


class TestDifference:
    def test_it_is_paired_by_seed(self, tmp_path: Path) -> None:
        """The deviation is that of the differences, which is far smaller than that of either series."""
        spec = spec_of("difference")
        write(tmp_path, spec, CELLCYCLE, A1=[10.0, 30.0, 50.0], B1=[8.0, 27.0, 48.0])
        chart = only(figure_of(spec, tmp_path))
        (drawn,) = chart.lines
        point = drawn.ours[0]
        assert point is not None
        assert (drawn.label, chart.kind, chart.axis) == ("A over B", "difference", "w0")
        assert (point.mean, point.deviation) == pytest.approx((7 / 3, np.std([2, 3, 2], ddof=1)))
        assert drawn.ours[1:] == (None, None)
        assert chart.positions == (0.1, 0.2, 0.3)
        assert chart.scale == "Difference in F1 (percentage points)"

    def test_only_seeds_that_both_have_count(self, tmp_path: Path) -> None:
        spec = spec_of("difference")
        write(tmp_path, spec, CELLCYCLE, A1=[10.0, None, 90.0], B1=[12.0, 50.0])
        point = only(figure_of(spec, tmp_path)).lines[0].ours[0]
        assert point is not None
        assert point.mean == pytest.approx(-2.0)
        assert point.deviation is None

    def test_without_a_seed_in_common_the_means_are_compared(self, tmp_path: Path) -> None:
        spec = spec_of("difference")
        write(tmp_path, spec, CELLCYCLE, A1=[None, 10.0, 14.0], B1=[5.0], A2=[None, 10.0], B2=[5.0])
        first, second, _ = only(figure_of(spec, tmp_path)).lines[0].ours
        assert first is not None and second is not None
        assert first.mean == pytest.approx(7.0)
        assert first.deviation is None
        assert second.mean == pytest.approx(5.0)

    def test_a_deviation_of_two_means(self, tmp_path: Path) -> None:
        spec = spec_of("difference", seeds=4)
        write(tmp_path, spec, CELLCYCLE, A1=[None, None, 10.0, 14.0], B1=[5.0, 6.0])
        point = only(figure_of(spec, tmp_path)).lines[0].ours[0]
        assert point is not None
        assert point.deviation == pytest.approx(np.hypot(np.std([10, 14], ddof=1), np.std([5, 6], ddof=1)))

    def test_over_datasets_it_is_the_mean_of_those_that_are_complete(self, tmp_path: Path) -> None:
        spec = spec_of("difference", (CELLCYCLE, SPO))
        complete = {"A1": [3.0], "A2": [4.0], "A3": [5.0], "B1": [1.0], "B2": [1.0], "B3": [1.0]}
        write(tmp_path, spec, CELLCYCLE, **complete)
        write(tmp_path, spec, SPO, **{name: [2 * value for value in values] for name, values in complete.items()})
        chart = only(figure_of(spec, tmp_path))
        assert means(chart.lines[0].ours) == [3.0, 4.5, 6.0]
        assert chart.note == f"mean over 2 datasets: {CELLCYCLE}, {SPO}"
        assert chart.lines[0].published == (None, None, None)

    def test_pairs_without_trainings_are_named(self, tmp_path: Path) -> None:
        other = {"label": "C over B", "of": "C", "against": "B"}
        spec = spec_of("difference", pairs=[PAIR, other])
        write(tmp_path, spec, CELLCYCLE, A1=[3.0], B1=[1.0])
        chart = only(figure_of(spec, tmp_path))
        assert [each.label for each in chart.lines] == ["A over B"]
        assert chart.note == f"{CELLCYCLE}; not complete: C over B"


class TestAdvantage:
    def test_twice_as_much_more_is_two(self, tmp_path: Path) -> None:
        """The mean of what the seeds say, and its deviation."""
        spec = spec_of("advantage")
        write(tmp_path, spec, CELLCYCLE, A1=[30.0, 10.0], B1=[10.0, 10.0], A2=[5.0], B2=[10.0])
        chart = only(figure_of(spec, tmp_path))
        first, second, third = chart.lines[0].ours
        assert first is not None and second is not None
        assert (first.mean, first.deviation) == pytest.approx((1.0, np.std([2, 0], ddof=1)))
        assert second.mean == pytest.approx(-0.5)
        assert third is None
        assert chart.scale == "Advantage in F1 (1 = 100 % higher)"

    def test_over_nothing_it_is_not_defined_and_the_note_says_so(self, tmp_path: Path) -> None:
        spec = spec_of("advantage")
        write(tmp_path, spec, CELLCYCLE, A1=[30.0, 10.0], B1=[0.0, 10.0], A2=[5.0], B2=[10.0], A3=[0.0], B3=[0.0])
        chart = only(figure_of(spec, tmp_path))
        assert means(chart.lines[0].ours) == [None, -0.5, None]
        told = "not defined, as it would divide by 0: A over B at 0.1, A over B at 0.3"
        assert chart.note == f"{CELLCYCLE}; {told}"

    def test_many_points_that_are_not_defined_are_counted(self, tmp_path: Path) -> None:
        spec = spec_of("advantage", pairs=[PAIR, {"label": "C over B", "of": "C", "against": "B"}])
        nothing: dict[str, Sequence[float | None]] = {f"B{value}": [0.0] for value in (1, 2, 3)}
        more: dict[str, Sequence[float | None]] = {f"{series}{value}": [5.0] for series in "AC" for value in (1, 2, 3)}
        write(tmp_path, spec, CELLCYCLE, **nothing, **more)
        assert only(figure_of(spec, tmp_path)).note.endswith("divide by 0: 6 points")


class TestByDataset:
    @pytest.mark.parametrize("kind", ["sweep", "difference", "advantage"])
    def test_each_dataset_with_records_has_its_chart(self, tmp_path: Path, kind: str) -> None:
        pairs = [] if kind == "sweep" else [PAIR]
        spec = spec_of(kind, (CELLCYCLE, SPO, "seq_FUN"), by_dataset=True, pairs=pairs)
        write(tmp_path, spec, CELLCYCLE, A1=[3.0], B1=[1.0])
        write(tmp_path, spec, SPO, A1=[3.0], C1=[2.0])
        first, second = figure_of(spec, tmp_path).charts
        assert (first.title, second.title) == (f"P, {CELLCYCLE}", f"P, {SPO}")
        value = {"sweep": 3.0, "difference": 2.0, "advantage": 2.0}[kind]
        assert means(first.lines[0].ours) == [value, None, None]
        if kind == "sweep":
            assert [each.label for each in second.lines] == ["A", "C"]
            assert second.note == "not complete: B"
        else:
            assert (second.lines, second.note) == ((), "this dataset has not all the trainings that this needs yet")
            assert first.note == ""

    def test_what_is_not_meant_for_a_dataset_is_not_missing_there(self, tmp_path: Path) -> None:
        sweeps = [
            {"series": "A", "setting": "w0", "values": [0.1]},
            {"series": "B", "setting": "w0", "values": [0.1], "settings": {"n_members": 2}, "datasets": [CELLCYCLE]},
        ]
        usual: dict[str, Any] = {"title": "P", "measures": ["f1"], "setting": "w0", "by_dataset": True}
        panels = [usual | {"kind": "sweep"}, usual | {"kind": "difference", "pairs": [PAIR]}]
        spec = small_spec(datasets=[CELLCYCLE, SPO], sweeps=sweeps, panels=panels)
        for dataset in (CELLCYCLE, SPO):
            write(tmp_path, spec, dataset, A1=[3.0])
        first, second, *differences = figure_of(spec, tmp_path).charts
        assert (first.note, second.note) == ("not complete: B", "")
        assert [chart.lines for chart in differences] == [(), ()]

    def test_methods_too(self, tmp_path: Path) -> None:
        panel = {"kind": "methods", "title": "P", "measures": ["f1"], "by_dataset": True}
        spec = small_spec({"name": "A"}, datasets=[CELLCYCLE, SPO], panels=[panel])
        keep(tmp_path, spec, CELLCYCLE, "A", [1.0])
        keep(tmp_path, spec, SPO, "A", [3.0])
        charts = figure_of(spec, tmp_path).charts
        assert [(chart.title, means(chart.lines[0].ours)) for chart in charts] == [
            (f"P, {CELLCYCLE}", [1.0]),
            (f"P, {SPO}", [3.0]),
        ]


def chart(kind: Any, positions: tuple[float, ...], *values: float | None) -> Chart:
    return Chart(kind, "T", "", "fraction", "Difference", positions, None, (line("A", *values),))


class TestDrawing:
    @pytest.mark.parametrize("kind", ["difference", "advantage"])
    def test_zero_and_what_is_below_it_are_in_the_picture(self, tmp_path: Path, kind: str) -> None:
        figure = FigureData("T", (chart(kind, (0.0, 0.5, 1.0), -9.0, None, -3.0),), 1, 0)
        svg, png = draw(figure, tmp_path, "x")
        png_size(png)
        shown = texts(svg)
        assert {"0", "\N{MINUS SIGN}8"} <= set(shown)

    def test_values_that_double_are_on_a_logarithmic_axis(self, tmp_path: Path) -> None:
        doubling = chart("advantage", (0.01, 0.02, 0.05, 0.1, 0.2, 0.3), 1.0, 2.0, 1.0, 0.5, 0.2, 0.1)
        shown = texts(draw(FigureData("T", (doubling,), 1, 0), tmp_path, "x")[0])
        assert {"0.01", "0.02", "0.05", "0.1", "0.2", "0.3"} <= set(shown)
