"""`figure_of`: the numbers that the figure of a spec shows, before anything is drawn.

All that a chart compares is averaged over the same datasets. A line that went over three datasets at one value and over
eight at the next would show the datasets, not the setting.

A spec without panels gets one chart for each dataset: F1 of every method, published and ours. A spec with decisions has
other charts: see `decision_charts`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from rarenode.errors import ArgumentError
from rarenode.paper.comparison.scores import compare
from rarenode.paper.figures.charts import Chart, FigureData, Line
from rarenode.paper.figures.points import (
    QUANTITIES,
    comparable,
    method_names,
    node_values,
    note_on,
    ours,
    over_seeds,
    published,
    scale_of,
    title_of,
    titles_and_datasets,
)
from rarenode.paper.figures.swept import swept_charts
from rarenode.paper.figures.trees import tree_chart
from rarenode.paper.panel import SWEPT, Measure, Panel
from rarenode.paper.spec import Spec
from rarenode.paper.store import Records, read_nodes

MOST_CHARTS = 26
"""As many as there are letters to name them."""
MOST_MARKS = 100
"""Nodes or methods along an axis, or lines in a chart; more would not be readable, and the image too large."""


def score_charts(spec: Spec, records: Records, folder: Path, datasets: Sequence[str] | None = None) -> FigureData:
    """The numbers of a figure.

    Args:
        spec: the experiment.
        records: those that were found.
        folder: of results.
        datasets: only these; None shows all of the spec's.

    Raises:
        ArgumentError: there are too few records for any chart, or too much to draw.
        FileFormatError: a record, or a dataset's ``nodes.json``, is damaged.
    """
    found = {place: its for place, its in records.items() if its}
    shown = tuple(name for name in dict.fromkeys(spec.datasets) if name in (datasets or spec.datasets))
    charts = tuple(_charts(spec, found, shown, folder))
    if len(charts) > MOST_CHARTS:
        raise ArgumentError(f"the figure would have {len(charts)} charts; at most {MOST_CHARTS} can be drawn")
    for chart in charts:
        most = max(len(chart.names or ()), len(chart.lines))
        if most > MOST_MARKS:
            raise ArgumentError(f"the chart {chart.title!r} would show {most} lines or names; at most {MOST_MARKS} fit")
    if not any(chart.lines for chart in charts):
        raise ArgumentError(f"there are too few records to draw anything: {charts[0].note}")
    state = compare(spec, found, datasets)
    return FigureData(spec.title, charts, state.trainings, state.missing)


def _charts(spec: Spec, found: Records, datasets: Sequence[str], folder: Path) -> Iterable[Chart]:
    if not spec.panels:
        yield from _published_and_ours(spec, found, datasets)
    begun = [dataset for dataset in datasets if any(dataset == name for name, _ in found)]
    for panel in spec.panels:
        shown = begun if panel.by_dataset else datasets
        if panel.kind in SWEPT:
            yield from swept_charts(spec, panel, found, shown)
            continue
        for measure in panel.measures:
            title = title_of(panel, measure, len(panel.measures) > 1)
            if panel.kind == "methods":
                for named, some in titles_and_datasets(panel, title, shown):
                    yield _methods(spec, panel, named, measure, found, some)
            elif panel.kind == "nodes":
                for dataset in datasets:
                    yield _nodes(spec, panel, title, measure, found, dataset, folder)
            else:
                for dataset in begun:
                    yield tree_chart(panel, f"{title}, {dataset}", measure, found, dataset, folder)


def _methods(spec: Spec, panel: Panel, title: str, measure: Measure, found: Records, datasets: Sequence[str]) -> Chart:
    """A measure of each method, averaged over the datasets that have records of all of them."""
    names = method_names(spec, panel)
    at_hand = {method: {name for name in datasets if (name, method) in found} for method in names}
    drawn, common = comparable(at_hand, datasets)
    line = Line(
        QUANTITIES[measure].name,
        tuple(ours(found, common, method, measure) for method in drawn),
        tuple(published(spec, common, method, measure) for method in drawn),
    )
    return Chart(
        kind="methods",
        title=title,
        note=note_on(common, datasets, [name for name in names if name not in drawn], titled=panel.by_dataset),
        axis="",
        scale=scale_of([measure]),
        positions=tuple(map(float, range(len(drawn)))),
        names=tuple(drawn),
        lines=(line,) if drawn else (),
    )


def _published_and_ours(spec: Spec, found: Records, datasets: Sequence[str]) -> Iterable[Chart]:
    """F1 of each method, a chart for each dataset that has records; the same methods in all of them."""
    methods = [method.name for method in spec.all_methods]
    shown = [dataset for dataset in datasets if any((dataset, method) in found for method in methods)]
    names = tuple(
        method
        for method in methods
        if any((dataset, method) in found or "f1" in spec.published_for(dataset, method) for dataset in shown)
    )
    for dataset in shown:
        line = Line(
            QUANTITIES["f1"].name,
            tuple(ours(found, (dataset,), method, "f1") for method in names),
            tuple(published(spec, (dataset,), method, "f1") for method in names),
        )
        yield Chart("methods", dataset, "", "", scale_of(["f1"]), tuple(map(float, range(len(names)))), names, (line,))


def _nodes(spec: Spec, panel: Panel, title: str, measure: Measure, found: Records, dataset: str, folder: Path) -> Chart:
    """A measure of the nodes that most training rows have."""
    names = method_names(spec, panel)
    drawn = [method for method in names if (dataset, method) in found]
    absent = [method for method in names if method not in drawn]
    chosen: list[int] = []
    lines: list[Line] = []
    node_names: tuple[str, ...] = ()
    if drawn:
        nodes = read_nodes(folder, found[dataset, drawn[0]][0].cell.place)
        scored = [column for column, counts in enumerate(nodes.scored) if counts]
        chosen = sorted(scored, key=lambda column: -nodes.training_rows[column])[: panel.nodes]
        node_names = tuple(nodes.names[column] for column in chosen)
        for method in drawn:
            scores = [node_values(record, nodes, chosen, measure, folder) for record in found[dataset, method]]
            points = tuple(over_seeds(values) for values in zip(*scores, strict=True))
            lines.append(Line(method, points, (None,) * len(points)))
    return Chart(
        kind="nodes",
        title=title,
        note=note_on((dataset,) if drawn else (), (dataset,), absent),
        axis="nodes, the most frequent first",
        scale=scale_of([measure]),
        positions=tuple(map(float, range(len(chosen)))),
        names=node_names,
        lines=tuple(lines),
    )
