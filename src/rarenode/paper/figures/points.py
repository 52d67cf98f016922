"""How records become the points of a figure.

A point is the mean over the seeds that have a record, with their sample deviation where there are two or more. Where a
chart averages over datasets, the point is the mean of the datasets' means m_d. Trainings are independent, so one
training on each of D datasets has, on average, the mean and the deviation

    mean = sum m_d / D        deviation = sqrt(sum s_d^2) / D

The datasets' differences from each other are no part of it: they say how hard a dataset is, not how sure a mean is.
What was published is averaged by the same rule, and only where it is known for each of those datasets.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from rarenode._io.text import counted
from rarenode.errors import ArgumentError, FileFormatError
from rarenode.paper.comparison.scores import Estimate, estimate
from rarenode.paper.comparison.scores import measures as measures_of
from rarenode.paper.panel import Measure, Panel
from rarenode.paper.record import DatasetNodes, Record
from rarenode.paper.spec import Spec
from rarenode.paper.store import NODES, Records, record_path

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


# --- words ---------------------------------------------------------------------------------------------------------


def scale_of(measures: Sequence[Measure]) -> str:
    """The label of an axis with these measures, which have one unit."""
    return f"{', '.join(QUANTITIES[measure].name for measure in measures)} ({QUANTITIES[measures[0]].unit})"


def title_of(panel: Panel, measure: Measure, several: bool) -> str:
    """The title of a chart; it names the measure if the panel has charts of several."""
    return f"{panel.title}: {QUANTITIES[measure].name}" if several else panel.title


def titles_and_datasets(panel: Panel, title: str, datasets: Sequence[str]) -> list[tuple[str, tuple[str, ...]]]:
    """The title and the datasets of each chart: one over all of them, or one for each."""
    if panel.by_dataset:
        return [(f"{title}, {name}", (name,)) for name in datasets]
    return [(title, tuple(datasets))]


def note_on(common: Sequence[str], datasets: Sequence[str], absent: Sequence[str], *, titled: bool = False) -> str:
    """Which datasets a chart shows, unless its title says so, and what it leaves out."""
    if not common:
        return f"{'this dataset has not' if titled else 'no dataset has'} all the trainings that this needs yet"
    over = common[0] if len(common) == 1 else f"mean over {len(common)} datasets: {', '.join(common)}"
    parts = [] if titled else [over]
    if len(common) < len(datasets):
        parts.append(f"{len(datasets) - len(common)} more not complete")
    if absent:
        parts.append(f"not complete: {', '.join(absent)}" if len(absent) < 4 else f"{len(absent)} others not complete")
    return "; ".join(parts)


# --- what to draw --------------------------------------------------------------------------------------------------


def method_names(spec: Spec, panel: Panel) -> list[str]:
    """The methods of a panel, in the order of the spec."""
    names = [method.name for method in spec.all_methods]
    return [name for name in names if name in (panel.methods or (name,))]


def comparable(at_hand: Mapping[str, Collection[str]], datasets: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """What has any dataset at hand, and the datasets that all of these have; nothing if they have none in common."""
    drawn = [label for label, names in at_hand.items() if names]
    common = tuple(name for name in datasets if drawn and all(name in at_hand[label] for label in drawn))
    return (drawn, common) if common else ([], ())


# --- points --------------------------------------------------------------------------------------------------------


def ours(found: Records, datasets: Sequence[str], method: str | None, measure: Measure) -> Estimate | None:
    """A measure of a method, averaged over datasets; None unless it is known for all of them."""
    if method is None:
        return None
    return over_datasets(
        [over_seeds([measures_of(record)[measure] for record in found.get((name, method), ())]) for name in datasets]
    )


def published(spec: Spec, datasets: Sequence[str], method: str | None, measure: Measure) -> Estimate | None:
    """The same of what was published."""
    if method is None:
        return None
    printed = [spec.published_for(dataset, method).get(measure) for dataset in datasets]
    return over_datasets([None if value is None else _checked(*value) for value in printed])


def over_seeds(values: Sequence[float]) -> Estimate | None:
    """Mean and sample deviation; None of no values.

    Raises:
        ArgumentError: a value is too large to be drawn.
    """
    return estimate([_drawable(value) for value in values])


def over_datasets(means: Sequence[Estimate | None]) -> Estimate | None:
    """None unless it is known for all of them."""
    known = [each for each in means if each is not None]
    if len(known) < len(means) or not known:
        return None
    deviations = [each.deviation for each in known if each.deviation is not None]
    deviation = math.hypot(*deviations) / len(known) if len(deviations) == len(known) else None
    return Estimate(fmean(each.mean for each in known), deviation)


def node_values(
    record: Record, nodes: DatasetNodes, columns: Sequence[int], measure: Measure, folder: Path
) -> list[float]:
    """A score of nodes in one record, in percent; 0 where it is undefined, or the node is not predicted.

    Raises:
        FileFormatError: the counts in the record are impossible.
    """
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


def _checked(mean: float, deviation: float | None) -> Estimate:
    return Estimate(_drawable(mean), None if deviation is None else _drawable(deviation))


def _drawable(value: float) -> float:
    if not abs(value) <= MOST_VALUE:
        raise ArgumentError(f"what is drawn must be in ±{MOST_VALUE:g}; a record or the spec has {value}")
    return value
