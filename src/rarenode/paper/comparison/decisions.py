"""`compare_decisions`: trainings under decisions, beside the best that was published for their datasets.

A row is a method on a dataset under one way to decide. Its scores are in percent, as the mean and the sample deviation
over seeds. What was published was decided at 0.5. A row is held against the published row with the best F1, whatever
its method, and its recall also against that of the paper's single model without weights.

`average` goes over datasets: the mean over datasets of the means over seeds, so that a dataset with more seeds counts
no more than another. Nodes found are told as a share of the nodes there.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from statistics import fmean
from typing import Literal, get_args

from rarenode.errors import ArgumentError
from rarenode.paper.comparison import Estimate, estimate
from rarenode.paper.decided import CalibrationName, Decided, DecidedRecord, FittedOn, NodesFound, read_decided
from rarenode.paper.grid import cell, tasks
from rarenode.paper.published import best_published, published_none
from rarenode.paper.spec import REBUILT, Spec
from rarenode.thresholds import Rule

Family = Literal["FUN", "GO", "others"]
ENDINGS: Mapping[str, Family] = {"FUN": "FUN", "GO": "GO"}
"""How the names of the datasets of a family end."""
DecidedRecords = Mapping[tuple[str, str], Sequence[DecidedRecord]]
"""(dataset, method) -> a record for each seed that was trained."""


@dataclass(frozen=True)
class Way:
    """A way to decide."""

    strategy: str
    rule: Rule = "add_ancestors"
    calibration: CalibrationName = "none"
    fitted_on: FittedOn = "held_out"

    def in_records(self, records: Iterable[DecidedRecord]) -> list[Decided]:
        """What came of it, for each record that has it."""
        found = (record.find(self.strategy, self.rule, self.calibration, self.fitted_on) for record in records)
        return [each for each in found if each is not None]


@dataclass(frozen=True)
class DecisionRow:
    """A method on a dataset under a way to decide; scores in percent."""

    dataset: str
    method: str
    way: Way
    seeds: int
    """That were decided so."""
    f1: Estimate
    precision: Estimate
    recall: Estimate
    nodes_found: Estimate
    nodes: int
    best_published: float | None
    """F1."""
    published_recall: float | None
    """Of the paper's single model without weights."""

    @property
    def f1_ratio(self) -> float | None:
        """To the best published F1."""
        return ratio(self.f1.mean, self.best_published)

    @property
    def recall_ratio(self) -> float | None:
        """To the recall of the paper's single model without weights."""
        return ratio(self.recall.mean, self.published_recall)


@dataclass(frozen=True)
class DecisionComparison:
    """A spec with decisions, and what came of it so far."""

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


def gather_decided(
    spec: Spec, folder: Path, datasets: Sequence[str] | None = None
) -> dict[tuple[str, str], list[DecidedRecord]]:
    """The records of a spec with decisions; also of seeds beyond the spec's, up to the first gap.

    Raises:
        ArgumentError: the spec has no such dataset, or the folder is a file.
        FileFormatError: a file is no record, or one of another training.
    """
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"records are in a folder, and {folder} is a file")
    found: dict[tuple[str, str], list[DecidedRecord]] = {}
    for row, planned in Counter((task.cell.dataset, task.method) for task in tasks(spec, datasets)).items():
        found[row] = []
        for seed in count():
            record = read_decided(folder, cell(spec, *row, seed))
            if record is not None:
                found[row].append(record)
            elif seed >= planned:
                break
    return found


def compare_decisions(
    spec: Spec, records: DecidedRecords, datasets: Sequence[str] | None = None, methods: Sequence[str] | None = None
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
        there[task.cell.fingerprint] = any(
            record.settings.seed == task.cell.settings.seed and not record.lacks(spec.decisions) for record in its
        )
    rows = (
        row_of(dataset, method, Way(strategy), records.get((dataset, method), ()))
        for dataset, method in shown
        for strategy in spec.decisions
    )
    return DecisionComparison(
        title=spec.title,
        about=spec.about,
        rows=tuple(row for row in rows if row is not None),
        trainings=len(there),
        missing=len(there) - sum(there.values()),
    )


def row_of(dataset: str, method: str, way: Way, records: Sequence[DecidedRecord]) -> DecisionRow | None:
    """A row; None where no record has the way to decide."""
    seeds = [each.test for each in way.in_records(records)]
    f1 = estimate([100 * each.f1 for each in seeds])
    precision = estimate([100 * each.precision for each in seeds])
    recall = estimate([100 * each.recall for each in seeds])
    found = estimate([each.nodes_found for each in seeds])
    if f1 is None or precision is None or recall is None or found is None:
        return None
    best, none = best_published(dataset), published_none(dataset)
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
        published_recall=None if none is None else none.means.get("recall"),
    )


def average(by_dataset: Iterable[Sequence[NodesFound]]) -> Average | None:
    """Average over datasets, each with what its seeds came to; those without nodes or without seeds do not count.

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


def families(records: DecidedRecords) -> Iterator[tuple[Family, str, list[Sequence[DecidedRecord]]]]:
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


def family_of(dataset: str) -> Family:
    """Which datasets it belongs with.

    >>> family_of("expr_FUN_rebuilt"), family_of("enron")
    ('FUN', 'others')
    """
    return ENDINGS.get(dataset.removesuffix(REBUILT).rpartition("_")[2], "others")


def ratio(ours: float, published: float | None) -> float | None:
    """How many times what was published; None where nothing was."""
    return ours / published if published else None
