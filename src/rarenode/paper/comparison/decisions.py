"""`compare_decisions`: trainings under decisions, beside the best published row of their datasets.

A row is a method on a dataset under one decision. Its scores are in percent, with mean and sample deviation over seeds.
Published rows were decided at 0.5. Each row is compared with the published row that has the best F1, whatever its
method, and its recall also with that of the paper's single model without weights.

`average` is the mean over datasets of the means over seeds, so that a dataset with more seeds does not count more than
another. Nodes found are a share of all nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import get_args

from rarenode.paper.as_published import Family, family_of
from rarenode.paper.comparison.scores import Estimate, estimate
from rarenode.paper.grid import tasks
from rarenode.paper.published import best_published, published_none
from rarenode.paper.record import CalibrationName, Decided, FittedOn, NodesFound, Record
from rarenode.paper.spec import Spec
from rarenode.paper.store import Records
from rarenode.thresholds import Rule


@dataclass(frozen=True)
class Way:
    """A decision: threshold strategy, rule of coherence, calibration, and the rows that thresholds are fitted to."""

    strategy: str
    rule: Rule = "add_ancestors"
    calibration: CalibrationName = "none"
    fitted_on: FittedOn = "held_out"

    def in_records(self, records: Iterable[Record]) -> list[Decided]:
        """Its scores, for each record that has them."""
        found = (record.decided.find(self.strategy, self.rule, self.calibration, self.fitted_on) for record in records)
        return [each for each in found if each is not None]


@dataclass(frozen=True)
class DecisionRow:
    """A method on a dataset under a decision; scores in percent."""

    dataset: str
    method: str
    way: Way
    seeds: int
    """That have a record."""
    f1: Estimate
    precision: Estimate
    recall: Estimate
    nodes_found: Estimate
    nodes: int
    best_published: float | None
    """F1."""
    published_precision: float | None
    """Of the published row with the best F1 among those that have a precision."""
    f1_with_precision: float | None
    """The F1 of that row: less than ``best_published`` where the best row has no precision."""
    published_recall: float | None
    """Of the paper's single model without weights."""

    @property
    def f1_ratio(self) -> float | None:
        """To the best published F1."""
        return ratio(self.f1.mean, self.best_published)

    @property
    def is_as_precise(self) -> bool | None:
        """Whether its precision is at least the published one; None without one."""
        return None if self.published_precision is None else self.precision.mean >= self.published_precision

    @property
    def recall_ratio(self) -> float | None:
        """To the recall of the paper's single model without weights."""
        return ratio(self.recall.mean, self.published_recall)


@dataclass(frozen=True)
class DecisionComparison:
    """A spec with decisions, and its results so far."""

    title: str
    about: str
    rows: tuple[DecisionRow, ...]
    """Each decision of the spec with the rule ``add_ancestors``, where there are records."""
    trainings: int
    missing: int
    """Trainings without a record of every decision."""


@dataclass(frozen=True)
class Average:
    """Scores over datasets, in percent."""

    f1: float
    precision: float
    recall: float
    found: float
    """Share of the nodes that are found."""
    datasets: int
    nodes: float
    """Mean number over datasets."""


def compare_decisions(
    spec: Spec, records: Records, datasets: Sequence[str] | None = None, methods: Sequence[str] | None = None
) -> DecisionComparison:
    """Compare all of a spec, or some of its datasets and methods.

    Raises:
        ArgumentError: the spec has no such dataset or method.
    """
    wanted = tasks(spec, datasets, methods)
    shown = dict.fromkeys((task.cell.dataset, task.method) for task in wanted)
    there: dict[str, bool] = {}
    for task in wanted:
        its = records.get((task.cell.dataset, task.method), ())
        done = any(
            record.settings.seed == task.cell.settings.seed and not record.decided.lacks(task.decisions)
            for record in its
        )
        there[task.cell.fingerprint] = there.get(task.cell.fingerprint, True) and done
    rows = (
        row_of(dataset, method, Way(strategy), records.get((dataset, method), ()))
        for dataset, method in shown
        for strategy in spec.decisions_of(method)
    )
    return DecisionComparison(
        title=spec.title,
        about=spec.about,
        rows=tuple(row for row in rows if row is not None),
        trainings=len(there),
        missing=len(there) - sum(there.values()),
    )


def row_of(dataset: str, method: str, way: Way, records: Sequence[Record]) -> DecisionRow | None:
    """A row; None where no record has the decision."""
    seeds = [each.test for each in way.in_records(records)]
    f1 = estimate([100 * each.f1 for each in seeds])
    precision = estimate([100 * each.precision for each in seeds])
    recall = estimate([100 * each.recall for each in seeds])
    found = estimate([each.nodes_found for each in seeds])
    if f1 is None or precision is None or recall is None or found is None:
        return None
    best, precise, none = best_published(dataset), best_published(dataset, "precision"), published_none(dataset)
    return DecisionRow(
        dataset=dataset,
        method=method,
        way=way,
        seeds=len(seeds),
        f1=f1,
        precision=precision,
        recall=recall,
        nodes_found=found,
        nodes=seeds[0].nodes,
        best_published=None if best is None else best.means["f1"],
        published_precision=None if precise is None else precise.means["precision"],
        f1_with_precision=None if precise is None else precise.means["f1"],
        published_recall=None if none is None else none.means.get("recall"),
    )


def average(by_dataset: Iterable[Sequence[NodesFound]]) -> Average | None:
    """Average over datasets, each with the scores of its seeds; those without nodes or without seeds do not count.

    >>> half = NodesFound(nodes=4, nodes_found=2, f1=0.5, precision=0.5, recall=0.5)
    >>> average([[half, half], []])
    Average(f1=50.0, precision=50.0, recall=50.0, found=50.0, datasets=1, nodes=4.0)
    """
    known = [seeds for seeds in by_dataset if seeds and all(each.nodes for each in seeds)]
    if not known:
        return None

    def mean(values: Iterator[list[float]]) -> float:
        return fmean(100 * fmean(seeds) for seeds in values)

    return Average(
        f1=mean([each.f1 for each in seeds] for seeds in known),
        precision=mean([each.precision for each in seeds] for seeds in known),
        recall=mean([each.recall for each in seeds] for seeds in known),
        found=mean([each.nodes_found / each.nodes for each in seeds] for seeds in known),
        datasets=len(known),
        nodes=fmean(seeds[0].nodes for seeds in known),
    )


def families(records: Records) -> Iterator[tuple[Family, str, list[Sequence[Record]]]]:
    """Family, method, and the records of each of the family's datasets that has any."""
    for family in get_args(Family):
        for method in dict.fromkeys(method for _, method in records):
            its = [
                found
                for (dataset, name), found in records.items()
                if name == method and family_of(dataset) == family and found
            ]
            if its:
                yield family, method, its


def ratio(ours: float, published: float | None) -> float | None:
    """Ours in multiples of the published value; None without one."""
    return ours / published if published else None
