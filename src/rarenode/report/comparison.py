"""Which nodes one run finds and another does not."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rarenode.report.run_report import RunReport

Columns = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Changes:
    """From one run to another: columns of scored nodes."""

    before: RunReport
    after: RunReport
    gained: Columns
    """Found only after."""
    lost: Columns
    """Found only before."""
    kept: Columns
    """Found in both."""


def compare_runs(before: RunReport, after: RunReport) -> Changes:
    """What changed between two runs over the same hierarchy."""
    then, now = (run.nodes.scored & (run.nodes.scores.true_positives > 0) for run in (before, after))
    return Changes(before, after, np.flatnonzero(now & ~then), np.flatnonzero(then & ~now), np.flatnonzero(then & now))


def of_the_same_rows(before: RunReport, after: RunReport) -> bool:
    """Whether each node is carried by as many rows in both, as it is if the rows are the same."""
    return bool((before.nodes.scores.support == after.nodes.scores.support).all())


def most_changed(before: RunReport, after: RunReport, most: int) -> Columns:
    """Up to ``most`` nodes: those whose F1 changed most, with their ancestors as far as there is room for them.

    A node and its ancestors enter together or not at all, so that what is chosen is a tree from its roots. Equal
    changes go by column. Where there are no more nodes than that, all are chosen.
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
