"""`figure_of`: the numbers that the figure of a spec shows, before anything is drawn.

A point is the mean over the seeds that have a record, with their sample deviation where there are two or more. Where a
chart averages over datasets, the point is the mean of the datasets' means m_d. Trainings are independent, so one
training on each of D datasets has, on average, the mean and the deviation

    mean = sum m_d / D        deviation = sqrt(sum s_d^2) / D

The datasets' differences from each other are no part of it: they say how hard a dataset is, not how sure a mean is.
What was published is averaged by the same rule, and only where it is known for each of those datasets.

All that a chart compares is averaged over the same datasets. A line that went over three datasets at one value and over
eight at the next would show the datasets, not the setting.

A spec without panels gets one chart for each dataset: F1 of every method, published and ours. A spec with decisions has
other charts: see `decision_charts`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from rarenode._io.text import counted
from rarenode.errors import ArgumentError, FileFormatError
from rarenode.paper.comparison.scores import Estimate, compare, estimate
from rarenode.paper.comparison.scores import measures as measures_of
from rarenode.paper.figures.charts import Chart, FigureData, Line
from rarenode.paper.record import DatasetNodes, Record
from rarenode.paper.spec import Measure, Panel, Spec
from rarenode.paper.store import NODES, Records, read_nodes, record_path

MOST_CHARTS = 26
"""As many as there are letters to name them."""
MOST_MARKS = 100
"""Nodes or methods along an axis, or lines in a chart; more would not be readable, and the image too large."""
MOST_VALUE = 1e9
"""Above any score, time or memory; far larger numbers overflow when they are averaged or drawn."""


@dataclass(frozen=True)
class Quantity:
    """How a measure is called, and in what it is measured."""

    name: str
    unit: str


QUANTITIES: Mapping[Measure, Quantity] = {
    "f1": Quantity("F1", "%"),
    "precision": Quantity("Precision", "%"),
    "recall": Quantity("Recall", "%"),
    "bin_ap": Quantity("Bin. AP", "%"),
    "ap": Quantity("AP", "%"),
    "seconds_per_epoch": Quantity("Time of an epoch", "s"),
    "steps_per_second": Quantity("Speed", "steps/s"),
    "memory_mb": Quantity("Memory", "MB"),
}


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
    for panel in spec.panels:
        if panel.kind == "sweep":
            for unit in dict.fromkeys(QUANTITIES[measure].unit for measure in panel.measures):
                measures = [measure for measure in panel.measures if QUANTITIES[measure].unit == unit]
                several = len(measures) < len(panel.measures)
                yield _sweep(spec, panel, _title(panel, measures[0], several), measures, found, datasets)
        for measure in panel.measures if panel.kind != "sweep" else ():
            title = _title(panel, measure, len(panel.measures) > 1)
            if panel.kind == "methods":
                yield _methods(spec, panel, title, measure, found, datasets)
            else:
                for dataset in datasets:
                    yield _nodes(spec, panel, title, measure, found, dataset, folder)


def _title(panel: Panel, measure: Measure, several: bool) -> str:
    return f"{panel.title}: {QUANTITIES[measure].name}" if several else panel.title


def _sweep(
    spec: Spec, panel: Panel, title: str, measures: Sequence[Measure], found: Records, datasets: Sequence[str]
) -> Chart:
    """Measures of one unit over a swept setting."""
    series: dict[str, dict[float | int | str, str]] = {}
    for sweep in spec.sweeps:
        for value in sweep.values:
            method = sweep.method(value).name
            if sweep.setting == panel.setting and method in (panel.methods or (method,)):
                series.setdefault(sweep.series, {})[value] = method
    values = list(dict.fromkeys(value for methods in series.values() for value in methods))
    numbers = [float(value) for value in values if not isinstance(value, str) and abs(value) <= MOST_VALUE]
    if len(numbers) == len(values):
        values.sort(key=float)
    # over a single dataset, gaps in a line hide nothing
    enough = any if len(datasets) == 1 else all
    at_hand = {
        label: {name for name in datasets if enough((name, method) in found for method in methods.values())}
        for label, methods in series.items()
    }
    drawn, common = _comparable(at_hand, datasets)
    lines = tuple(
        Line(
            _line_label(label, measure, len(series), len(measures)),
            tuple(_ours(found, common, series[label].get(value), measure) for value in values),
            tuple(_published(spec, common, series[label].get(value), measure) for value in values),
        )
        for label in drawn
        for measure in measures
    )
    return Chart(
        kind="sweep",
        title=title,
        note=_note(common, datasets, [label for label in series if label not in drawn]),
        axis=next(sweep.label or sweep.setting for sweep in spec.sweeps if sweep.setting == panel.setting),
        scale=_scale(measures),
        positions=tuple(sorted(numbers)) if len(numbers) == len(values) else tuple(map(float, range(len(values)))),
        names=None if len(numbers) == len(values) else tuple(map(str, values)),
        lines=lines,
    )


def _methods(spec: Spec, panel: Panel, title: str, measure: Measure, found: Records, datasets: Sequence[str]) -> Chart:
    """A measure of each method, averaged over the datasets that have records of all of them."""
    names = [name for name in _names(spec) if name in (panel.methods or (name,))]
    at_hand = {method: {name for name in datasets if (name, method) in found} for method in names}
    drawn, common = _comparable(at_hand, datasets)
    line = Line(
        QUANTITIES[measure].name,
        tuple(_ours(found, common, method, measure) for method in drawn),
        tuple(_published(spec, common, method, measure) for method in drawn),
    )
    return Chart(
        kind="methods",
        title=title,
        note=_note(common, datasets, [name for name in names if name not in drawn]),
        axis="",
        scale=_scale([measure]),
        positions=tuple(map(float, range(len(drawn)))),
        names=tuple(drawn),
        lines=(line,) if drawn else (),
    )


def _published_and_ours(spec: Spec, found: Records, datasets: Sequence[str]) -> Iterable[Chart]:
    """F1 of each method, a chart for each dataset that has records; the same methods in all of them."""
    shown = [dataset for dataset in datasets if any((dataset, method) in found for method in _names(spec))]
    names = tuple(
        method
        for method in _names(spec)
        if any((dataset, method) in found or "f1" in spec.published_for(dataset, method) for dataset in shown)
    )
    for dataset in shown:
        line = Line(
            QUANTITIES["f1"].name,
            tuple(_ours(found, (dataset,), method, "f1") for method in names),
            tuple(_published(spec, (dataset,), method, "f1") for method in names),
        )
        yield Chart("methods", dataset, "", "", _scale(["f1"]), tuple(map(float, range(len(names)))), names, (line,))


def _nodes(spec: Spec, panel: Panel, title: str, measure: Measure, found: Records, dataset: str, folder: Path) -> Chart:
    """A measure of the nodes that most training rows have."""
    names = [name for name in _names(spec) if name in (panel.methods or (name,))]
    drawn = [method for method in names if (dataset, method) in found]
    absent = [method for method in names if method not in drawn]
    chosen: list[int] = []
    lines: list[Line] = []
    node_names: tuple[str, ...] = ()
    if drawn:
        nodes = read_nodes(folder, dataset)
        scored = [column for column, counts in enumerate(nodes.scored) if counts]
        chosen = sorted(scored, key=lambda column: -nodes.training_rows[column])[: panel.nodes]
        node_names = tuple(nodes.names[column] for column in chosen)
        for method in drawn:
            scores = [_node_values(record, nodes, chosen, measure, folder) for record in found[dataset, method]]
            points = tuple(_over_seeds(values) for values in zip(*scores, strict=True))
            lines.append(Line(method, points, (None,) * len(points)))
    return Chart(
        kind="nodes",
        title=title,
        note=_note((dataset,) if drawn else (), (dataset,), absent),
        axis="nodes, the most frequent first",
        scale=_scale([measure]),
        positions=tuple(map(float, range(len(chosen)))),
        names=node_names,
        lines=tuple(lines),
    )


def _node_values(
    record: Record, nodes: DatasetNodes, columns: Sequence[int], measure: Measure, folder: Path
) -> list[float]:
    """A score of nodes in one record, in percent; 0 where it is undefined, or the node is not predicted."""
    listed = record.at_half.nodes
    path = record_path(folder, record.cell)
    if max(listed.column, default=-1) >= len(nodes.names):
        raise FileFormatError(path, None, f"it has columns beyond the {counted(len(nodes.names), 'node')} of {NODES}")
    counts = dict(zip(listed.column, zip(listed.predicted, listed.true_positives, strict=True), strict=True))
    values = []
    for column in columns:
        predicted, hits = counts.get(column, (0, 0))
        labelled = nodes.test_rows[column]
        if not hits <= min(predicted, labelled):
            raise FileFormatError(path, None, f"column {column} has more true positives than rows to find them in")
        of = {"precision": 2 * predicted, "recall": 2 * labelled, "f1": predicted + labelled}[measure]
        values.append(100 * (2 * hits / of) if of else 0.0)
    return values


def _comparable(at_hand: Mapping[str, Collection[str]], datasets: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """What has any dataset at hand, and the datasets that all of these have; nothing if they have none in common."""
    drawn = [label for label, names in at_hand.items() if names]
    common = tuple(name for name in datasets if drawn and all(name in at_hand[label] for label in drawn))
    return (drawn, common) if common else ([], ())


def _note(common: Sequence[str], datasets: Sequence[str], absent: Sequence[str]) -> str:
    if not common:
        return "no dataset has all the trainings that this needs yet"
    parts = [common[0] if len(common) == 1 else f"mean over {len(common)} datasets: {', '.join(common)}"]
    if len(common) < len(datasets):
        parts.append(f"{len(datasets) - len(common)} more not complete")
    if absent:
        parts.append(f"not complete: {', '.join(absent)}" if len(absent) < 4 else f"{len(absent)} others not complete")
    return "; ".join(parts)


def _line_label(series: str, measure: Measure, all_series: int, measures: int) -> str:
    if measures == 1:
        return series
    name = QUANTITIES[measure].name
    return name if all_series == 1 else f"{series}, {name}"


def _scale(measures: Sequence[Measure]) -> str:
    return f"{', '.join(QUANTITIES[measure].name for measure in measures)} ({QUANTITIES[measures[0]].unit})"


def _names(spec: Spec) -> list[str]:
    return [method.name for method in spec.all_methods]


def _ours(found: Records, datasets: Sequence[str], method: str | None, measure: Measure) -> Estimate | None:
    if method is None:
        return None
    return _over_datasets(
        [_over_seeds([measures_of(record)[measure] for record in found.get((name, method), ())]) for name in datasets]
    )


def _published(spec: Spec, datasets: Sequence[str], method: str | None, measure: Measure) -> Estimate | None:
    if method is None:
        return None
    printed = [spec.published_for(dataset, method).get(measure) for dataset in datasets]
    return _over_datasets([None if value is None else _checked(*value) for value in printed])


def _checked(mean: float, deviation: float | None) -> Estimate:
    return Estimate(_drawable(mean), None if deviation is None else _drawable(deviation))


def _drawable(value: float) -> float:
    if not 0 <= value <= MOST_VALUE:
        raise ArgumentError(f"what is drawn must be in 0..{MOST_VALUE:g}; a record or the spec has {value}")
    return value


def _over_seeds(values: Sequence[float]) -> Estimate | None:
    return estimate([_drawable(value) for value in values])


def _over_datasets(means: Sequence[Estimate | None]) -> Estimate | None:
    """None unless it is known for all of them."""
    known = [each for each in means if each is not None]
    if len(known) < len(means) or not known:
        return None
    deviations = [each.deviation for each in known if each.deviation is not None]
    deviation = math.hypot(*deviations) / len(known) if len(deviations) == len(known) else None
    return Estimate(fmean(each.mean for each in known), deviation)
