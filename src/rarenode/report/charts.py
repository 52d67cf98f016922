"""The charts of a report: which there are, what they show, and their place in the page."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rarenode._io.text import counted
from rarenode.metrics import RARITY_BANDS
from rarenode.metrics.average_precision import POINTS
from rarenode.plots import (
    plot_icicle,
    plot_node_scores,
    plot_precision_recall,
    plot_reliability,
    plot_scores_by_depth,
    plot_scores_by_rarity,
    plot_training_curve,
)
from rarenode.plots.curves import drawable_bins
from rarenode.plots.icicle import key_labels
from rarenode.plots.style import HEADING, SMALL, WIDTH, chart_style, legend_height
from rarenode.plots.svg import to_svg
from rarenode.plots.text import plain, text_width
from rarenode.report.run_report import MOST_RUNS, Report, RunReport, by_depth, by_rarity, most_changed

Section = Literal["map", "by depth and rarity", "precision and recall", "reliability", "training", "comparison"]
"""The place in the page; the map is a file only, as the page has an interactive one."""
MOST_BOXES, SOME_BOXES = 60, 30
"""A hierarchy of at most so many nodes is drawn whole; of a larger one so many nodes are."""
MOST_DEPTHS = 20
RECALLS = tuple((np.arange(1, POINTS + 1) / POINTS).tolist())
LEFT, RIGHT, BELOW = 64.0, 16.0, 46.0
"""Points beside and below the axes."""
BARS, LINES, MAP, LINE_OF_NODES = 215.0, 270.0, 330.0, 24.0
"""The heights of axes, and of one node in a list, in points."""
COUNTS_BELOW = 22.0
"""Points for a second line below the names of groups."""


@dataclass(frozen=True)
class Chart:
    """One chart: an SVG element, and what to know when looking at it."""

    name: str
    """Of its file, without the ending."""
    section: Section
    svg: str
    caption: str


def chart_names() -> tuple[str, ...]:
    """The names of all charts that some report has."""
    by_group = (f"{score}_by_{by}" for score in ("recall", "f1") for by in ("depth", "rarity"))
    by_band = (f"precision_recall_{_in_file_name(band)}" for band in RARITY_BANDS)
    maps = ("map", *(f"map_{number}" for number in range(1, MOST_RUNS + 1)))
    others = ("precision_recall", "reliability", "training_loss", "training_validation", "node_scores")
    return *maps, *by_group, *by_band, *others


def make_charts(report: Report) -> tuple[Chart, ...]:
    """All charts for which the runs have numbers."""
    with chart_style():
        return (
            *_maps(report),
            *_by_groups(report),
            *_precision_recall(report),
            *_reliability(report),
            *_training(report),
            *_comparison(report),
        )


def _maps(report: Report) -> Iterator[Chart]:
    for number, run in enumerate(report.runs, start=1):
        scores = run.nodes.scores
        recall = np.where(run.nodes.scored & (scores.support > 0), scores.recall, np.nan)
        missed, unknown = int(np.count_nonzero(recall == 0)), int(np.isnan(recall).sum())
        yield _chart(
            "map" if len(report.runs) == 1 else f"map_{number}",
            "map",
            f"Recall of each node: {plain(run.name)}",
            partial(plot_icicle, report.hierarchy, recall),
            description=f"Map of {counted(len(recall), 'node')}: {missed:,} missed, {unknown:,} without rows or not "
            "scored.",
            caption="Each column is one level deeper; the height of a node is the number of leaves below it. Nodes "
            "without rows, and nodes that are not scored, have no score.",
            height=MAP,
            legend=key_labels([], "recall"),
            left=1.0,
        )


def _by_groups(report: Report) -> Iterator[Chart]:
    depths = {run.name: {int(group.name): group for group in by_depth(run.nodes)} for run in report.runs}
    bands = {run.name: {group.name: group for group in by_rarity(run.nodes)} for run in report.runs}
    all_depths = sorted({depth for groups in depths.values() for depth in groups})
    if not all_depths:  # no node is scored
        return
    first = {run: {d: g for d, g in groups.items() if d in all_depths[:MOST_DEPTHS]} for run, groups in depths.items()}
    cut = f" Only the first {MOST_DEPTHS} depths are drawn." if len(all_depths) > MOST_DEPTHS else ""
    caption = "Means over the scored nodes of each group; an undefined score, as of a node without rows, counts as 0."
    drawn: tuple[tuple[str, str, Any, Any, str], ...] = (
        ("depth", "depth", plot_scores_by_depth, first, cut),
        ("rarity", "training rows", plot_scores_by_rarity, bands, ""),
    )
    for by, words, plot, groups, more in drawn:
        for score, title in (("recall", "Recall"), ("f1", "F1")):
            yield _chart(
                f"{score}_by_{by}",
                "by depth and rarity",
                f"{title} by {words}",
                partial(plot, groups, score=score),
                description=f"Bar chart: {title}, in percent, by {words}. {_series(groups)}",
                caption=caption + more,
                height=BARS,
                legend=list(groups) if len(groups) > 1 else [],
                below=BELOW + COUNTS_BELOW,
                above=24.0,
            )


def _precision_recall(report: Report) -> Iterator[Chart]:
    known = [run for run in report.runs if run.curves]
    bands = [band for band in RARITY_BANDS if any(band in run.curves for run in known)]
    for some, runs in _pairs_to_draw(known, bands):
        curves, points = {}, {}
        for run in runs:
            for band in some:
                curve = run.curves.get(band)
                if curve is None or not curve.precision:
                    continue
                name = f"{band} training rows" if len(runs) == 1 else run.name
                curves[name] = curve.precision
                if curve.decided is not None:
                    points[name] = curve.decided
        if curves:
            alone = len(known) == 1
            which = " by training rows" if alone else f", {some[0]} training rows"
            yield _chart(
                "precision_recall" if alone else f"precision_recall_{_in_file_name(some[0])}",
                "precision and recall",
                f"Precision and recall{which}",
                partial(plot_precision_recall, curves, points=points),
                description=f"Line chart: precision over recall, in percent. {_series(curves)}",
                caption="The best precision that a common threshold reaches at each recall, over all cells of a "
                "band's nodes. The points are the decisions at the thresholds of the run.",
                height=LINES,
                legend=list(curves),
            )


def _reliability(report: Report) -> Iterator[Chart]:
    known = [run for run in report.runs if run.reliability]
    if len(known) == 1:
        (run,) = known
        names = {"all": "all nodes"} | {band: f"{band} training rows" for band in RARITY_BANDS}
        lines = {name: run.reliability[band] for band, name in names.items() if band in run.reliability}
    else:
        lines = {run.name: run.reliability["all"] for run in known}
    lines = {name: bins for name, bins in lines.items() if len(drawable_bins(bins)[0])}
    if not lines:
        return
    errors = "; ".join(
        f"{plain(run.name)} {100 * run.reliability['all'].ece:.2f} %"
        for run in known
        if np.isfinite(run.reliability["all"].ece)
    )
    yield _chart(
        "reliability",
        "reliability",
        "Reliability of the probabilities",
        partial(plot_reliability, lines),
        description=f"Line chart: share of positive cells over mean probability. {_series(lines)}",
        caption="Cells sorted into bins by probability. On the dashed line probabilities are calibrated; below it they "
        "are too high. Bins where either value is 0 cannot be drawn; reliability.csv has them. Expected calibration "
        f"error over all cells: {errors}.",
        height=LINES,
        legend=list(lines),
    )


def _training(report: Report) -> Iterator[Chart]:
    known = [run for run in report.runs if run.history]
    losses = {run.name: ([e.epoch for e in run.history], [e.loss for e in run.history]) for run in known}
    if len(losses) == 1:
        yield _training_chart("training_loss", "Training loss", losses, "mean loss of the batches", "On training rows.")
    elif losses:
        yield _training_chart(
            "training_loss",
            "Training loss, relative to the first epoch",
            {name: (epochs, _relative(values)) for name, (epochs, values) in losses.items()},
            "loss, percent of the first epoch's",
            "On training rows. Losses with different weights or ensembles have different scales, so each run is drawn "
            "relative to its own first epoch.",
        )
    valid = {}
    for run in known:
        measured = [(epoch.epoch, 100 * epoch.valid.ap) for epoch in run.history if epoch.valid is not None]
        if measured:
            valid[run.name] = [epoch for epoch, _ in measured], [ap for _, ap in measured]
    if valid:
        yield _training_chart(
            "training_validation",
            "AP on validation rows",
            valid,
            "AP, percent",
            "Early stopping keeps the epoch where this is highest.",
        )


def _relative(losses: list[float]) -> list[float]:
    """Losses in percent of the first; NaN where that is 0."""
    return [100 * loss / losses[0] if losses[0] else math.nan for loss in losses]


def _training_chart(
    name: str, title: str, curves: Mapping[str, tuple[list[int], list[float]]], values: str, caption: str
) -> Chart:
    return _chart(
        name,
        "training",
        title,
        partial(plot_training_curve, curves, ylabel=values),
        description=f"Line chart: {values} over epochs. {_series(curves)}",
        caption=caption,
        height=LINES - 40,
        legend=list(curves) if len(curves) > 1 else [],
    )


def _comparison(report: Report) -> Iterator[Chart]:
    if len(report.runs) == 1:
        return
    hierarchy = report.hierarchy
    most = MOST_BOXES if len(hierarchy) <= MOST_BOXES else SOME_BOXES
    columns = most_changed(report.runs[0], report.runs[-1], most).tolist()
    if not columns:
        return
    scores = {run.name: _node_f1(run) for run in report.runs}
    whole = len(columns) == len(hierarchy)
    yield _chart(
        "node_scores",
        "comparison",
        "F1 of each node" if whole else f"F1 of {len(columns):,} nodes: the largest changes and their ancestors",
        partial(plot_node_scores, hierarchy, scores, nodes=columns),
        description=f"{counted(len(columns), 'node')} as a tree, each with its F1 in percent. {_series(scores)}",
        caption="One box per run, in percent. + marks a node that the last run finds and the first does not; "
        "\u2212 marks the opposite.",
        height=LINE_OF_NODES * (len(columns) + len(scores) + 1),
        legend=[],
        left=1.0,
        below=4.0,
    )


def _node_f1(run: RunReport) -> np.ndarray[Any, np.dtype[np.float64]]:
    scores = run.nodes.scores
    return np.where(run.nodes.scored & (scores.support > 0), scores.f1, np.nan)


def _chart(
    name: str,
    section: Section,
    title: str,
    plot: Callable[..., Axes],
    *,
    description: str,
    caption: str,
    height: float,
    legend: list[str],
    left: float = LEFT,
    below: float = BELOW,
    above: float = 12.0,
) -> Chart:
    """Draw a chart of the page's width, with a title above it and room for the legend."""
    lines = textwrap.wrap(plain(title, 90), 44) or [""]
    top = 22.0 * len(lines) + above + (legend_height(legend, WIDTH - left - RIGHT) + 6 if legend else 0.0)
    tall = top + height + below
    figure = Figure(figsize=(WIDTH / 72, tall / 72), dpi=72)
    for number, line in enumerate(lines):
        figure.text(0, 1 - (18 + 22 * number) / tall, line, fontsize=HEADING, fontweight="bold", zorder=-1)
    ax = figure.add_axes((left / WIDTH, below / tall, 1 - (left + RIGHT) / WIDTH, height / tall))
    plot(ax=ax)
    if left == LEFT:
        _fit_tick_labels(ax, below / tall, height / tall)
    return Chart(name, section, to_svg(figure, title, description), caption)


def _fit_tick_labels(ax: Axes, bottom: float, height: float) -> None:
    """Begin the axes where the labels of the upright axis, and its name, have room."""
    low, high = ax.get_ylim()
    ticks = [tick for tick in ax.get_yticks() if low <= tick <= high]
    labels = ax.yaxis.get_major_formatter().format_ticks(ticks)
    left = max((text_width(label, SMALL) for label in labels), default=0.0) + 2.2 * SMALL
    ax.set_position((left / WIDTH, bottom, 1 - (left + RIGHT) / WIDTH, height))


def _series(names: Mapping[str, Any]) -> str:
    return f"Series: {', '.join(plain(name) for name in names)}."


def _pairs_to_draw(known: list[RunReport], bands: list[str]) -> Iterator[tuple[list[str], list[RunReport]]]:
    """One run has its bands in one chart; several runs have a chart for each band."""
    if len(known) == 1:
        yield bands, known
    elif known:
        for band in bands:
            yield [band], known


def _in_file_name(band: str) -> str:
    return band.replace("+", "_or_more").replace("-", "_to_")
