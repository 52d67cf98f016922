"""A run in numbers (`RunReport`), groups of its nodes, and several runs over one hierarchy (`Report`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rarenode._io.text import counted, printable
from rarenode.diagnosis import NodeDiagnosis
from rarenode.diagnosis.examination import Examination
from rarenode.errors import ArgumentError, DataError
from rarenode.hierarchy import Hierarchy
from rarenode.metrics import CafaScores, HierarchicalScores, Summary, rarity_masks
from rarenode.metrics.bootstrap import Deviations
from rarenode.report.pictures import RunPictures
from rarenode.thresholds import GuaranteedRecall
from rarenode.thresholds.calibration_error import Reliability
from rarenode.training import EpochRecord
from rarenode.training.model_card import Card

MOST_RUNS = 8
"""As many series as a chart can tell apart."""
LONGEST_TITLE = 120
Columns = NDArray[np.int64]


@dataclass(frozen=True)
class BandCurve:
    """Precision and recall over all cells of the nodes of a rarity band."""

    precision: tuple[float, ...]
    """The best at a recall of at least 0.01, 0.02, ..., 1.00; empty without a positive cell."""
    decided: tuple[float, float] | None
    """Recall and precision of the decisions; None if nothing was decided."""


@dataclass(frozen=True)
class UnsureNode:
    """A node of a row that the model is unsure of."""

    column: int
    probability: float
    decided: bool
    labelled: bool


@dataclass(frozen=True)
class UnsureRow:
    """A row that the model is unsure of, numbered from 0 in the order of the data."""

    row: int
    bits: float
    """The sum of the binary entropies of its scored nodes, as far as their labels are known."""
    wrong: int
    """How many of them have a wrong decision."""
    nodes: tuple[UnsureNode, ...]
    """The most uncertain first."""
    id: str | None = None
    """Its name, if rows have any."""


@dataclass(frozen=True, eq=False)
class GuaranteedSets:
    """The guaranteed sets of a model, and how well they do on the rows of a report."""

    promise: GuaranteedRecall
    size: NDArray[np.float64]
    """(nodes,): the share of the rows that are in the set of each node; NaN without a guarantee."""
    recall: NDArray[np.float64]
    """(nodes,): the share of its own rows that are in its set; NaN also if no row has the node."""


@dataclass(frozen=True, eq=False)
class RunReport:
    """One run. What is not known of it is empty."""

    name: str
    about: str
    """Which rows were evaluated, and how nodes were decided."""
    summary: Summary
    deviations: Deviations | None
    deviations_of: str
    """What the deviations are over."""
    nodes: NodeDiagnosis
    card: Card
    curves: Mapping[str, BandCurve]
    """For each rarity band with scored nodes."""
    reliability: Mapping[str, Reliability]
    """For ``all`` scored nodes, and for each rarity band with scored nodes."""
    history: tuple[EpochRecord, ...]
    unsure_rows: tuple[UnsureRow, ...]
    examination: Examination | None = None
    """Of the training rows, if they were examined."""
    hierarchical: Mapping[str, HierarchicalScores] = field(default_factory=dict)
    """By aspect, hierarchical precision, recall and F1 of the decisions."""
    cafa: Mapping[str, CafaScores] = field(default_factory=dict)
    """By aspect, F-max and S-min of the probabilities."""
    pictures: RunPictures | None = None
    """If its rows are pictures."""
    guaranteed: GuaranteedSets | None = None
    """If the model has any."""

    @property
    def hierarchy(self) -> Hierarchy:
        """The hierarchy of its nodes."""
        return self.nodes.hierarchy

    @property
    def nodes_with_rows(self) -> int:
        """How many scored nodes have at least one row, and so can be found."""
        return int(np.count_nonzero(self.nodes.scored & (self.nodes.scores.support > 0)))


@dataclass(frozen=True, eq=False)
class Report:
    """One run, or several over the same hierarchy; the others are compared with the first."""

    runs: tuple[RunReport, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.runs) <= MOST_RUNS:
            raise ArgumentError(f"a report is about 1 to {MOST_RUNS} runs, got {len(self.runs)}")
        first = self.runs[0]
        for run in self.runs[1:]:
            if run.hierarchy != first.hierarchy:
                raise DataError(
                    f"{run.name} and {first.name} have different hierarchies ({len(run.hierarchy)} and "
                    f"{counted(len(first.hierarchy), 'node')}), so their nodes cannot be compared"
                )
        names = [run.name for run in self.runs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ArgumentError(f"two runs are named {twice!r}; names must differ")

    @property
    def hierarchy(self) -> Hierarchy:
        """The hierarchy of all runs."""
        return self.runs[0].hierarchy

    @property
    def title(self) -> str:
        """The title of the page."""
        names = ", ".join(printable(run.name) for run in self.runs)
        if len(self.runs) > 1 and len(names) > LONGEST_TITLE:
            return f"rarenode: {len(self.runs)} runs"
        return f"rarenode: {names if len(names) <= LONGEST_TITLE else names[: LONGEST_TITLE - 1] + '…'}"


# --- groups of nodes -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Group:
    """Some of the scored nodes, with the means of their scores.

    They are those of `rarenode.metrics.summary_by_depth` and `summary_by_rarity`, from the scores of nodes alone.
    """

    by: Literal["depth", "training rows"]
    name: str
    nodes: int
    with_rows: int
    """Nodes with at least one row; the others cannot be found."""
    found: int
    f1: float
    precision: float
    recall: float


def by_depth(nodes: NodeDiagnosis) -> tuple[Group, ...]:
    """A group for each depth that has scored nodes."""
    depths = nodes.hierarchy.depth
    return tuple(
        _group(nodes, "depth", str(depth), nodes.scored & (depths == depth))
        for depth in np.unique(depths[nodes.scored]).tolist()
    )


def by_rarity(nodes: NodeDiagnosis) -> tuple[Group, ...]:
    """A group for each rarity band that has scored nodes."""
    return tuple(_group(nodes, "training rows", band, mask) for band, mask in rarity_bands(nodes))


def rarity_bands(nodes: NodeDiagnosis) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """The scored nodes of each rarity band that has some, the rarest first."""
    for band, of_band in rarity_masks(nodes.training_rows).items():
        mask = nodes.scored & of_band
        if mask.any():
            yield band, mask


def _group(nodes: NodeDiagnosis, by: Literal["depth", "training rows"], name: str, mask: NDArray[np.bool_]) -> Group:
    scores = nodes.scores
    return Group(
        by=by,
        name=name,
        nodes=int(mask.sum()),
        with_rows=int(np.count_nonzero(scores.support[mask])),
        found=int(np.count_nonzero(scores.true_positives[mask])),
        f1=float(scores.f1[mask].mean()),
        precision=float(scores.precision[mask].mean()),
        recall=float(scores.recall[mask].mean()),
    )


# --- changes between runs --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Changes:
    """From one run to another: columns of scored nodes."""

    gained: Columns
    """Found only after."""
    lost: Columns
    """Found only before."""
    kept: Columns
    """Found in both."""


def compare_runs(before: RunReport, after: RunReport) -> Changes:
    """What changed between two runs over the same hierarchy."""
    then, now = (run.nodes.scored & (run.nodes.scores.true_positives > 0) for run in (before, after))
    return Changes(np.flatnonzero(now & ~then), np.flatnonzero(then & ~now), np.flatnonzero(then & now))


def same_support(before: RunReport, after: RunReport) -> bool:
    """Whether each node has as many rows in both runs, as it has if they were evaluated on the same rows."""
    return bool((before.nodes.scores.support == after.nodes.scores.support).all())


def most_changed(before: RunReport, after: RunReport, most: int) -> Columns:
    """Up to ``most`` nodes: those whose F1 changed most, with their ancestors as far as there is room for them.

    A node and its ancestors enter together or not at all, so that the chosen nodes are a tree from its roots. Equal
    changes go by column. If the hierarchy has no more nodes than that, all are chosen.
    """
    hierarchy = before.hierarchy
    if len(hierarchy) <= most:
        return np.arange(len(hierarchy))
    scored = before.nodes.scored & after.nodes.scored
    change = np.where(scored, np.abs(after.nodes.scores.f1 - before.nodes.scores.f1), 0.0)
    chosen: set[int] = set()
    for column in np.argsort(-change, kind="stable").tolist():
        if change[column] == 0 or len(chosen) == most:
            break
        name = hierarchy.nodes[column]
        wanted = {column, *(hierarchy.index[above] for above in hierarchy.ancestors(name))} - chosen
        if len(chosen) + len(wanted) <= most:
            chosen |= wanted
    return np.array(sorted(chosen), dtype=np.int64)
