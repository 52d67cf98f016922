"""`RunReport`: all that a report tells of one run, in numbers; and `Report`: several runs over one hierarchy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rarenode._io.text import printable
from rarenode.diagnosis import NodeDiagnosis
from rarenode.errors import ArgumentError, DataError
from rarenode.hierarchy import Hierarchy
from rarenode.metrics import Summary
from rarenode.metrics.bootstrap import Deviations
from rarenode.report.unsure_rows import UnsureRow
from rarenode.thresholds.calibration_error import Reliability
from rarenode.training.card import Card
from rarenode.training.history import EpochRecord

MOST_RUNS = 8
"""More series than that no chart can tell apart."""
LONGEST_TITLE = 120


@dataclass(frozen=True)
class BandCurve:
    """Precision and recall over all cells of the nodes of a rarity band."""

    precision: tuple[float, ...]
    """The best at a recall of at least 0.01, 0.02, ..., 1.00; empty without a positive cell."""
    decided: tuple[float, float] | None
    """Recall and precision of what was decided; None if nothing was."""


@dataclass(frozen=True, eq=False)
class RunReport:
    """One run. What is not known of it is empty."""

    name: str
    about: str
    """Which rows were looked at, and how nodes were decided."""
    summary: Summary
    deviations: Deviations | None
    deviations_of: str
    """What the deviations are over."""
    nodes: NodeDiagnosis
    card: Card
    curves: Mapping[str, BandCurve]
    """For each rarity band with scored nodes."""
    reliability: Mapping[str, Reliability]
    """For ``all`` scored nodes, and for each rarity band that has some."""
    history: tuple[EpochRecord, ...]
    unsure_rows: tuple[UnsureRow, ...]

    @property
    def hierarchy(self) -> Hierarchy:
        """What its nodes are nodes of."""
        return self.nodes.hierarchy


@dataclass(frozen=True, eq=False)
class Report:
    """One run, or several over the same hierarchy; the first is what others are compared with."""

    runs: tuple[RunReport, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.runs) <= MOST_RUNS:
            raise ArgumentError(f"a report is about 1 to {MOST_RUNS} runs, got {len(self.runs)}")
        first = self.runs[0]
        for run in self.runs[1:]:
            if run.hierarchy != first.hierarchy:
                raise DataError(
                    f"{run.name} and {first.name} have different hierarchies ({len(run.hierarchy)} and "
                    f"{len(first.hierarchy)} nodes), so their nodes cannot be compared"
                )
        names = [run.name for run in self.runs]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ArgumentError(f"two runs are named {twice!r}; each must have a name of its own")

    @property
    def hierarchy(self) -> Hierarchy:
        """That of all runs."""
        return self.runs[0].hierarchy

    @property
    def title(self) -> str:
        """What the page is called."""
        names = ", ".join(printable(run.name) for run in self.runs)
        if len(self.runs) > 1 and len(names) > LONGEST_TITLE:
            return f"rarenode: {len(self.runs)} runs"
        return f"rarenode: {names if len(names) <= LONGEST_TITLE else names[: LONGEST_TITLE - 1] + '…'}"
