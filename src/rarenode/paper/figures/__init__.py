"""Figures of specs: `figure_of` finds the numbers to draw, chart by chart, and `drawing.draw` draws them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rarenode.errors import ArgumentError
from rarenode.paper.figures.charts import Chart, FigureData, Line
from rarenode.paper.figures.decisions import decision_charts
from rarenode.paper.figures.scores import score_charts
from rarenode.paper.spec import Spec
from rarenode.paper.store import gather

__all__ = ["Chart", "FigureData", "Line", "figure_of"]


def figure_of(spec: Spec, folder: Path, datasets: Sequence[str] | None = None) -> FigureData:
    """The numbers of the figure of a spec.

    Args:
        spec: the experiment.
        folder: of results.
        datasets: only these; None shows all of the spec's.

    Raises:
        ArgumentError: the spec has no such dataset, there are no records, too few for any chart, or too much to draw.
        FileFormatError: a record, or a dataset's ``nodes.json``, is damaged.
    """
    records = gather(spec, folder, datasets)
    if not any(records.values()):
        raise ArgumentError(f"{folder} has no record of this spec yet; `rarenode paper run` makes them")
    if spec.decisions:
        return decision_charts(spec, records, datasets)
    return score_charts(spec, records, folder, datasets)
