"""`compare`: what was published and what was measured here, side by side.

A measure of a method on a dataset is published as a mean m with a deviation s, in most cases. Ours are the mean x and
the sample deviation d over seeds. The difference is in combined deviations,

    (x - m) / sqrt(s^2 + d^2).

Fewer than three seeds say next to nothing about d; then s stands in for it, and the divisor is sqrt(2) s. Without a
published deviation, or where the divisor is 0, the relative difference (x - m) / m takes its place: `Difference.kind`
keeps the two apart. A row is within, if F1, recall, Bin. AP and AP, as far as they are published with a deviation, are
all at most two combined deviations away. Precision does not decide: it is a mean over nodes that mostly have none.

The paper marks "means significantly (>2 sigma) greater than all others", or than the baselines, and does not say whose
sigma that is. It is the deviation of the marked mean itself: m_i - m_j > 2 s_i for every j. This agrees with the print
in 790 of the 792 cells of its six tables that may have a mark: it gives 133 of the 135 marks, and no other. The larger
of the two deviations gives 119, the combined one 109. Ours are marked by the same rule, among the methods that the
paper compares.

All of it is arithmetic on records that `rarenode.paper.store.gather` has read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median, pstdev, stdev
from typing import Literal

from rarenode.paper.as_published import REBUILT
from rarenode.paper.grid import tasks
from rarenode.paper.panel import Measure
from rarenode.paper.record import Record
from rarenode.paper.spec import Spec
from rarenode.paper.store import Records

SCORES: tuple[Measure, ...] = ("f1", "precision", "recall", "bin_ap", "ap")
"""In percent. The greater the better, so only these are marked."""
COSTS: tuple[Measure, ...] = ("seconds_per_epoch", "steps_per_second", "memory_mb")
DECISIVE: tuple[Measure, ...] = ("f1", "recall", "bin_ap", "ap")
"""What a row is judged by."""
FAR = 2.0
"""A difference of more combined deviations is a miss."""
ENOUGH_SEEDS = 3
"""So many seeds have a meaningful deviation."""
ROUNDING = 1e-9
"""Printed means may differ by exactly two printed deviations, which binary fractions do not show."""



@dataclass(frozen=True)
class Estimate:
    """A mean, and its deviation if there is one."""

    mean: float
    deviation: float | None


@dataclass(frozen=True)
class Difference:
    """Ours minus published, in combined deviations or as a fraction of what was published."""

    value: float
    kind: Literal["deviations", "relative"]

    @property
    def far(self) -> bool:
        """Whether it is a miss. A relative difference has no scale to judge it by."""
        return self.kind == "deviations" and abs(self.value) > FAR


@dataclass(frozen=True)
class Figure:
    """One measure of a row."""

    published: Estimate | None
    ours: Estimate | None
    difference: Difference | None
    published_mark: bool | None
    """Whether the paper's rule marks it; None where that cannot be known."""
    mark: bool | None
    """The same of ours: None as long as it may still lose to a method that has no records."""


@dataclass(frozen=True)
class Row:
    """A method on a dataset."""

    dataset: str
    method: str
    seeds: int
    """That have a record."""
    figures: Mapping[Measure, Figure]
    nodes_found: float | None
    """Mean over seeds."""
    steps_per_second: float | None
    """Median over seeds; None without steps."""

    @property
    def rebuilt(self) -> bool:
        """Whether the dataset was put together again; what was published is of the original."""
        return self.dataset.endswith(REBUILT)

    @property
    def within(self) -> bool | None:
        """Whether no decisive measure is a miss; None if none can be judged."""
        return _all_near(self.figures[measure].difference for measure in DECISIVE)


@dataclass(frozen=True)
class Tally:
    """How many of those that can be judged are no miss."""

    within: int
    of: int


@dataclass(frozen=True)
class Reduction:
    """By how many percent one method exceeds another, over datasets; negative is less."""

    of: str
    against: str
    measure: Measure
    published: Estimate | None
    published_datasets: int
    ours: Estimate | None
    datasets: int
    """Where both have records."""


@dataclass(frozen=True)
class Comparison:
    """A spec, and its results so far."""

    title: str
    about: str
    measures: tuple[Measure, ...]
    """To show: those that the spec publishes, or the five scores if it publishes none."""
    rows: tuple[Row, ...]
    """Also those without records."""
    trainings: int
    """That the rows need; methods may share one."""
    missing: int
    """Trainings without a record."""
    reductions: tuple[Reduction, ...]

    @property
    def tally(self) -> Tally:
        """Rows within."""
        return _tally(row.within for row in self.rows)

    def tally_of(self, measure: Measure) -> Tally:
        """Rows where one measure is no miss."""
        return _tally(_all_near([row.figures[measure].difference]) for row in self.rows)


def compare(
    spec: Spec, records: Records, datasets: Sequence[str] | None = None, methods: Sequence[str] | None = None
) -> Comparison:
    """Compare all of a spec, or some of its datasets and methods.

    Marks and reductions are of all methods, whichever are shown.

    Raises:
        ArgumentError: the spec has no such dataset or method.
    """
    wanted = tasks(spec, datasets, methods)
    shown = {(task.cell.dataset, task.method) for task in wanted}
    there: dict[str, bool] = {}
    for task in wanted:
        trained = {record.settings.seed for record in records.get((task.cell.dataset, task.method), ())}
        there[task.cell.fingerprint] = task.cell.settings.seed in trained
    by_dataset: dict[str, list[str]] = {}
    for dataset, method in dict.fromkeys((task.cell.dataset, task.method) for task in tasks(spec, datasets)):
        by_dataset.setdefault(dataset, []).append(method)
    rows = [row for dataset, its in by_dataset.items() for row in _rows(spec, dataset, its, records)]
    published = {measure for by_method in spec.published.values() for row in by_method.values() for measure in row}
    return Comparison(
        title=spec.title,
        about=spec.about,
        measures=tuple(m for m in SCORES + COSTS if m in published) if published & set(COSTS) else SCORES,
        rows=tuple(row for row in rows if (row.dataset, row.method) in shown),
        trainings=len(there),
        missing=len(there) - sum(there.values()),
        reductions=_reductions(spec, rows),
    )


def measures(record: Record) -> dict[Measure, float]:
    """The measures of a record, in the units of what is published: scores in percent, memory in megabytes."""
    fixed = record.at_half
    scores = fixed.summary
    return {
        "f1": 100 * scores.f1,
        "precision": 100 * scores.precision,
        "recall": 100 * scores.recall,
        "bin_ap": 100 * scores.bin_ap,
        "ap": 100 * scores.ap,
        "seconds_per_epoch": fixed.seconds_per_epoch,
        "steps_per_second": fixed.steps_per_second,
        "memory_mb": fixed.training_bytes / 1e6,
    }


def estimate(values: Sequence[float]) -> Estimate | None:
    """Mean and sample deviation; None of no values.

    >>> estimate([1.0, 3.0])
    Estimate(mean=2.0, deviation=1.4142135623730951)
    """
    if not values:
        return None
    return Estimate(fmean(values), stdev(values) if len(values) > 1 else None)


def difference(published: Estimate | None, ours: Estimate | None, seeds: int) -> Difference | None:
    """How far ours is from what was published; None where either is not there, or 0 would divide.

    >>> difference(Estimate(10.0, 0.3), Estimate(11.0, 0.4), seeds=3)
    Difference(value=2.0, kind='deviations')
    >>> difference(Estimate(10.0, None), Estimate(11.0, 0.4), seeds=3)
    Difference(value=0.1, kind='relative')
    """
    if published is None or ours is None:
        return None
    excess = ours.mean - published.mean
    if published.deviation is not None:
        sigma = _sigma(ours, published, seeds)
        combined = math.hypot(published.deviation, 0.0 if sigma is None else sigma)
        if combined > 0:
            return Difference(excess / combined, "deviations")
    return Difference(excess / published.mean, "relative") if published.mean else None


def marks(bold: Literal["others"] | Sequence[str], means: Mapping[str, Estimate | None]) -> dict[str, bool | None]:
    """Which means exceed all others, or every baseline, by more than two of their own deviations.

    Args:
        bold: "others", or the baselines, which are never marked themselves.
        means: of all methods that are compared; None where a mean is yet to come.

    Returns:
        True, False, or None where a mean or a deviation that would decide is not there.
    """
    marked: dict[str, bool | None] = {}
    for method, own in means.items():
        rivals = means if bold == "others" else {name: means[name] for name in bold if name in means}
        others = [rival for name, rival in rivals.items() if name != method]
        if not others or (bold != "others" and method in bold):
            marked[method] = False
        elif own is None:
            marked[method] = None
        else:
            decided = [_exceeds(own, other) for other in others]
            marked[method] = False if False in decided else None if None in decided else True
    return marked


def _exceeds(own: Estimate, other: Estimate | None) -> bool | None:
    if other is None:
        return None
    if own.deviation is None:
        return None if own.mean > other.mean else False
    return own.mean - other.mean > 2 * own.deviation + ROUNDING


def _sigma(ours: Estimate, published: Estimate | None, seeds: int) -> float | None:
    """The deviation of ours, or of what was published where there are too few seeds to tell."""
    if seeds >= ENOUGH_SEEDS:
        return ours.deviation
    return None if published is None else published.deviation


def _rows(spec: Spec, dataset: str, methods: Sequence[str], records: Records) -> list[Row]:
    """The rows of a dataset; marks need all of its methods."""
    its = {method: records.get((dataset, method), ()) for method in methods}
    figures: dict[str, dict[Measure, Figure]] = {method: {} for method in methods}
    for measure in SCORES + COSTS:
        published: dict[str, Estimate] = {}
        ours: dict[str, Estimate | None] = {}
        judged: dict[str, Estimate | None] = {}
        for method in methods:
            printed = spec.published_for(dataset, method).get(measure)
            if printed is not None:
                published[method] = Estimate(*printed)
            mine = ours[method] = estimate([measures(record)[measure] for record in its[method]])
            sigma = None if mine is None else _sigma(mine, published.get(method), len(its[method]))
            judged[method] = None if mine is None else Estimate(mine.mean, sigma)
        rivals = {method: judged[method] for method in methods if spec.published_for(dataset, method)} or judged
        marked, published_marked = (
            marks(spec.bold if measure in SCORES else (), means) for means in (rivals, published)
        )
        for method in methods:
            figures[method][measure] = Figure(
                published=published.get(method),
                ours=ours[method],
                difference=difference(published.get(method), ours[method], len(its[method])),
                published_mark=published_marked.get(method),
                mark=marked.get(method, False),
            )
    return [
        Row(
            dataset=dataset,
            method=method,
            seeds=len(runs),
            figures=figures[method],
            nodes_found=fmean(record.at_half.summary.nodes_found for record in runs) if runs else None,
            steps_per_second=median(record.at_half.steps_per_second for record in runs) or None if runs else None,
        )
        for method, runs in its.items()
    ]


def _reductions(spec: Spec, rows: Iterable[Row]) -> tuple[Reduction, ...]:
    wanted = spec.reductions
    if wanted is None:
        return ()
    by_place = {(row.dataset, row.method): row for row in rows}
    pairs = [
        (by_place[dataset, wanted.of], by_place[dataset, wanted.against])
        for dataset in dict.fromkeys(dataset for dataset, _ in by_place)
        if {(dataset, wanted.of), (dataset, wanted.against)} <= by_place.keys()
    ]
    made = []
    for measure in wanted.measures:
        figures = [(of.figures[measure], against.figures[measure]) for of, against in pairs]
        published = _changes((of.published, against.published) for of, against in figures)
        ours = _changes((of.ours, against.ours) for of, against in figures)
        numbers = _over_datasets(published), len(published), _over_datasets(ours), len(ours)
        made.append(Reduction(wanted.of, wanted.against, measure, *numbers))
    return tuple(made)


def _over_datasets(changes: Sequence[float]) -> Estimate | None:
    """Their mean and, as in the paper, the deviation of a population, which these datasets are."""
    return Estimate(fmean(changes), pstdev(changes)) if changes else None


def _changes(pairs: Iterable[tuple[Estimate | None, Estimate | None]]) -> list[float]:
    """In percent, where both are there and the second is not 0."""
    return [
        100 * (of.mean - against.mean) / against.mean
        for of, against in pairs
        if of is not None and against is not None and against.mean
    ]


def _all_near(differences: Iterable[Difference | None]) -> bool | None:
    judged = [not each.far for each in differences if each is not None and each.kind == "deviations"]
    return all(judged) if judged else None


def _tally(verdicts: Iterable[bool | None]) -> Tally:
    judged = [verdict for verdict in verdicts if verdict is not None]
    return Tally(sum(judged), len(judged))
