"""Charts over a swept setting: measures themselves, and one series compared with another.

Two series are compared training by training, seed by seed: ``of - against``, or the advantage
``(of - against) / against``, where 2.0 means 200 % higher. The point is the mean over the seeds that both have, with
the sample deviation of what the seeds say. If they have no seed in common, the means are compared, and the deviation
of a difference is that of two independent means.

An advantage over 0 is not defined. Such a point is left out, and the note says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from rarenode._io.text import counted
from rarenode.paper.comparison.scores import Estimate
from rarenode.paper.comparison.scores import measures as measures_of
from rarenode.paper.figures.charts import Chart, Line
from rarenode.paper.figures.points import (
    MOST_VALUE,
    QUANTITIES,
    comparable,
    note_on,
    ours,
    over_datasets,
    over_seeds,
    published,
    scale_of,
    title_of,
    titles_and_datasets,
)
from rarenode.paper.panel import Measure, Panel
from rarenode.paper.record import Record
from rarenode.paper.spec import Spec
from rarenode.paper.store import Records

Value = float | int | str
Methods = dict[Value, str]
"""Value of a setting -> the method that has it."""


@dataclass(frozen=True)
class _Axis:
    """The values of a setting."""

    label: str
    values: tuple[Value, ...]
    positions: tuple[float, ...]
    names: tuple[str, ...] | None
    """Of values that are no numbers."""


def swept_charts(spec: Spec, panel: Panel, found: Records, datasets: Sequence[str]) -> Iterable[Chart]:
    """The charts of a panel: one for each unit that its measures have, and for each dataset if it asks for that."""
    units = dict.fromkeys(QUANTITIES[measure].unit for measure in panel.measures)
    for unit in units:
        measures = [measure for measure in panel.measures if QUANTITIES[measure].unit == unit]
        title = title_of(panel, measures[0], len(units) > 1)
        make = _sweep if panel.kind == "sweep" else _comparison
        for shown, some in titles_and_datasets(panel, title, datasets):
            yield make(spec, panel, shown, measures, found, some)


def _sweep(
    spec: Spec, panel: Panel, title: str, measures: Sequence[Measure], found: Records, datasets: Sequence[str]
) -> Chart:
    """Measures of one unit over a swept setting."""
    series = _series(spec, panel, datasets)
    axis = _axis(spec, panel, series.values())
    # over a single dataset, gaps in a line hide nothing
    enough = any if len(datasets) == 1 else all
    at_hand = {
        label: {name for name in datasets if enough((name, method) in found for method in methods.values())}
        for label, methods in series.items()
    }
    drawn, common = comparable(at_hand, datasets)
    lines = tuple(
        Line(
            _line_label(label, measure, len(series), len(measures)),
            tuple(ours(found, common, series[label].get(value), measure) for value in axis.values),
            tuple(published(spec, common, series[label].get(value), measure) for value in axis.values),
        )
        for label in drawn
        for measure in measures
    )
    return Chart(
        kind="sweep",
        title=title,
        note=note_on(common, datasets, [label for label in series if label not in drawn], titled=panel.by_dataset),
        axis=axis.label,
        scale=scale_of(measures),
        positions=axis.positions,
        names=axis.names,
        lines=lines,
    )


def _comparison(
    spec: Spec, panel: Panel, title: str, measures: Sequence[Measure], found: Records, datasets: Sequence[str]
) -> Chart:
    """One series against another over a swept setting, a line for each pair."""
    series = _series(spec, panel, datasets)
    both: dict[str, dict[Value, tuple[str, str]]] = {}
    for pair in panel.pairs:
        of, against = series.get(pair.of, {}), series.get(pair.against, {})
        if shared := [value for value in of if value in against]:
            both[pair.label] = {value: (of[value], against[value]) for value in shared}
    axis = _axis(spec, panel, both.values())
    enough = any if len(datasets) == 1 else all
    at_hand = {
        label: {
            name
            for name in datasets
            if enough((name, of) in found and (name, against) in found for of, against in methods.values())
        }
        for label, methods in both.items()
    }
    drawn, common = comparable(at_hand, datasets)
    lines, undefined = [], []
    for label in drawn:
        for measure in measures:
            points: list[Estimate | None] = []
            for value in axis.values:
                methods = both[label].get(value)
                try:
                    each = [_compare(panel.kind, found, name, methods, measure) for name in common]
                except ZeroDivisionError:
                    each = [None]
                    undefined.append(f"{label} at {value}")
                points.append(over_datasets(each))
            name = _line_label(label, measure, len(both), len(measures))
            lines.append(Line(name, tuple(points), (None,) * len(points)))
    note = note_on(common, datasets, [label for label in both if label not in drawn], titled=panel.by_dataset)
    return Chart(
        kind="advantage" if panel.kind == "advantage" else "difference",
        title=title,
        note="; ".join(filter(None, [note, _undefined(undefined)])),
        axis=axis.label,
        scale=_comparison_scale(panel, measures),
        positions=axis.positions,
        names=axis.names,
        lines=tuple(lines),
    )


def _compare(
    kind: str, found: Records, dataset: str, methods: tuple[str, str] | None, measure: Measure
) -> Estimate | None:
    """The point of two methods on a dataset; None where one of them has no record.

    Raises:
        ZeroDivisionError: an advantage over 0.
    """
    if methods is None:
        return None
    of, against = (_by_seed(found.get((dataset, method), ()), measure) for method in methods)
    if not of or not against:
        return None
    change = _advantage if kind == "advantage" else _difference
    shared = [seed for seed in of if seed in against]
    if shared:
        return over_seeds([change(of[seed], against[seed]) for seed in shared])
    mean = change(fmean(of.values()), fmean(against.values()))
    deviated = kind == "difference" and min(len(of), len(against)) > 1
    return Estimate(mean, math.hypot(stdev(of.values()), stdev(against.values())) if deviated else None)


def _difference(of: float, against: float) -> float:
    return of - against


def _advantage(of: float, against: float) -> float:
    return (of - against) / against


def _by_seed(records: Sequence[Record], measure: Measure) -> dict[int, float]:
    return {record.settings.seed: measures_of(record)[measure] for record in records}


def _undefined(points: Sequence[str]) -> str:
    if not points:
        return ""
    shown = ", ".join(points) if len(points) < 4 else counted(len(points), "point")
    return f"not defined, as it would divide by 0: {shown}"


def _comparison_scale(panel: Panel, measures: Sequence[Measure]) -> str:
    names = ", ".join(QUANTITIES[measure].name for measure in measures)
    if panel.kind == "advantage":
        return f"Advantage in {names} (1 = 100 % higher)"
    unit = QUANTITIES[measures[0]].unit
    return f"Difference in {names} ({'percentage points' if unit == '%' else unit})"


def _series(spec: Spec, panel: Panel, datasets: Sequence[str]) -> dict[str, Methods]:
    """The sweeps of a panel's setting that any of the datasets has; two of one series are one."""
    series: dict[str, Methods] = {}
    for sweep in spec.sweeps:
        if sweep.setting != panel.setting or not set(datasets) & set(sweep.datasets or datasets):
            continue
        for value in sweep.values:
            method = sweep.method(value).name
            if method in (panel.methods or (method,)):
                series.setdefault(sweep.series, {})[value] = method
    return series


def _axis(spec: Spec, panel: Panel, lines: Iterable[Iterable[Value]]) -> _Axis:
    """The values that any of the lines has, in order if they are numbers."""
    values = list(dict.fromkeys(value for line in lines for value in line))
    numbers = [float(value) for value in values if not isinstance(value, str) and abs(value) <= MOST_VALUE]
    label = next(sweep.label or sweep.setting for sweep in spec.sweeps if sweep.setting == panel.setting)
    if len(numbers) < len(values):
        return _Axis(label, tuple(values), tuple(map(float, range(len(values)))), tuple(map(str, values)))
    return _Axis(label, tuple(sorted(values, key=float)), tuple(sorted(numbers)), None)


def _line_label(series: str, measure: Measure, all_series: int, measures: int) -> str:
    if measures == 1:
        return series
    name = QUANTITIES[measure].name
    return name if all_series == 1 else f"{series}, {name}"
