"""The plots of a report: which there are, and what they show."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from rarenode.metrics import RARITY_BANDS
from rarenode.report.comparison import most_changed
from rarenode.report.groups import Group, by_depth, by_rarity
from rarenode.report.layout import drawn_parents
from rarenode.report.run_report import MOST_RUNS, Report, RunReport
from rarenode.report.svg import Bars, BoxedNode, Line, MapNode, bar_chart, icicle, line_chart, node_boxes
from rarenode.report.svg.text import plain

Section = Literal["map", "by depth and rarity", "precision and recall", "reliability", "training", "comparison"]
"""Where it stands in the page; the map has a better one there, and is a file only."""
MOST_BOXES, SOME_BOXES = 60, 30
"""A hierarchy of at most so many nodes is drawn whole; of a larger one so many nodes are."""
MOST_GROUPS = 20
RECALLS = tuple((np.arange(1, 101) / 100).tolist())


@dataclass(frozen=True)
class Plot:
    """One plot: an SVG element, and what to know when looking at it."""

    name: str
    """Of its file, without the ending."""
    section: Section
    svg: str
    caption: str


def plot_names() -> tuple[str, ...]:
    """Of all plots that some report has."""
    by_group = (f"{score}_by_{by}" for score in ("recall", "f1") for by in ("depth", "rarity"))
    by_band = (f"precision_recall_{_in_file_name(band)}" for band in RARITY_BANDS)
    maps = ("map", *(f"map_{number}" for number in range(1, MOST_RUNS + 1)))
    others = ("precision_recall", "reliability", "training_loss", "training_validation", "node_scores")
    return *maps, *by_group, *by_band, *others


def make_plots(report: Report) -> tuple[Plot, ...]:
    """All plots for which the runs have numbers."""
    return (
        *_maps(report),
        *_by_groups(report),
        *_precision_recall(report),
        *_reliability(report),
        *_training(report),
        *_comparison(report),
    )


def _maps(report: Report) -> Iterator[Plot]:
    hierarchy = report.hierarchy
    above = drawn_parents(hierarchy).tolist()
    for number, run in enumerate(report.runs, start=1):
        known = (run.nodes.scored & (run.nodes.scores.support > 0)).tolist()
        nodes = [
            MapNode(name, depth, parent, 100 * recall if knows else None)
            for name, depth, parent, recall, knows in zip(
                hierarchy.nodes, hierarchy.depth.tolist(), above, run.nodes.scores.recall.tolist(), known, strict=True
            )
        ]
        yield Plot(
            name="map" if len(report.runs) == 1 else f"map_{number}",
            section="map",
            svg=icicle(f"Recall of each node: {plain(run.name)}", nodes),
            caption="Each column is one level deeper; the height of a node is the number of leaves below it.",
        )


def _by_groups(report: Report) -> Iterator[Plot]:
    for by, groups_of, axis in (("depth", by_depth, "depth"), ("rarity", by_rarity, "training rows that carry a node")):
        groups = [groups_of(run.nodes) for run in report.runs]
        all_names = list(dict.fromkeys(group.name for run in groups for group in run))
        all_names.sort(key=int if by == "depth" else list(RARITY_BANDS).index)
        names = all_names[:MOST_GROUPS]
        if not names:  # no node is scored
            continue
        for score, title in (("recall", "Recall"), ("f1", "F1")):
            bars = [
                Bars(run.name, tuple(_of_group(found, name, score) for name in names))
                for run, found in zip(report.runs, groups, strict=True)
            ]
            notes = [_how_many(groups, name) for name in names]
            yield Plot(
                name=f"{score}_by_{by}",
                section="by depth and rarity",
                svg=bar_chart(
                    f"{title} by {axis}", names, bars, axis=f"{title}, percent", groups_axis=axis, notes=notes
                ),
                caption="Means over the scored nodes of each group; a node that no row carries counts as 0."
                + (f" Only the first {MOST_GROUPS} groups are drawn." if len(all_names) > MOST_GROUPS else ""),
            )


def _how_many(groups: list[tuple[Group, ...]], name: str) -> str:
    """How many nodes a group has; runs that were trained on different rows may differ."""
    counts = [next((group.nodes for group in run if group.name == name), 0) for run in groups]
    told = " / ".join(f"{count:,}" for count in counts) if len(set(counts)) > 1 else f"{counts[0]:,}"
    return f"{told} {'node' if told == '1' else 'nodes'}"


def _of_group(groups: tuple[Group, ...], name: str, score: str) -> float | None:
    return next((100 * float(getattr(group, score)) for group in groups if group.name == name), None)


def _precision_recall(report: Report) -> Iterator[Plot]:
    known = [run for run in report.runs if run.curves]
    caption = (
        "The best precision that a common threshold reaches at each recall, over all cells of a band's nodes. The "
        "points are where the thresholds of the run decide."
    )
    for bands, runs in _pairs_to_draw(known, [band for band in RARITY_BANDS if any(band in r.curves for r in known)]):
        lines = []
        for run in runs:
            for band in bands:
                curve = run.curves.get(band)
                if curve is None or not curve.precision:
                    continue
                label = f"{band} training rows" if len(bands) > 1 else run.name
                points = () if curve.decided is None else (_percent(curve.decided),)
                precision = tuple(100 * value for value in curve.precision)
                lines.append(Line(label, tuple(100 * recall for recall in RECALLS), precision, points))
        if lines:
            which = "by rarity" if len(bands) > 1 else f"of nodes with {bands[0]} training rows"
            yield Plot(
                name="precision_recall" if len(bands) > 1 else f"precision_recall_{_in_file_name(bands[0])}",
                section="precision and recall",
                svg=line_chart(
                    f"Precision and recall {which}",
                    lines,
                    x_axis="recall, percent",
                    y_axis="precision, percent",
                    x_range=(0, 100),
                    y_range=(0, 100),
                ),
                caption=caption,
            )


def _reliability(report: Report) -> Iterator[Plot]:
    known = [run for run in report.runs if run.reliability]
    if not known:
        return
    bands = [band for band in ("all", *RARITY_BANDS) if band in known[0].reliability] if len(known) == 1 else ["all"]
    lines = []
    for run in known:
        for band in bands:
            bins = run.reliability[band]
            full = (bins.count > 0) & (bins.frequency > 0) & (bins.mean_probability > 0)
            label = run.name if len(known) > 1 else "all nodes" if band == "all" else f"{band} training rows"
            x, y = (tuple(values[full].tolist()) for values in (bins.mean_probability, bins.frequency))
            if x:
                lines.append(Line(label, x, y))
    if not lines:
        return
    off = "; ".join(
        f"{plain(run.name)} {100 * run.reliability['all'].ece:.2f} %"
        for run in known
        if np.isfinite(run.reliability["all"].ece)
    )
    yield Plot(
        name="reliability",
        section="reliability",
        svg=line_chart(
            "How far probabilities can be believed",
            lines,
            x_axis="mean probability",
            y_axis="share of cells that carry the node",
            log=True,
            diagonal=True,
            markers=True,
        ),
        caption="Cells sorted into bins by probability; on the dashed line a probability is what it says, below it is "
        "too high. Bins where either is 0 cannot be drawn; reliability.csv has them. Expected calibration error over "
        f"all cells: {off}.",
    )


def _training(report: Report) -> Iterator[Plot]:
    known = [run for run in report.runs if run.history]
    losses = [
        Line(run.name, tuple(float(e.epoch) for e in run.history), tuple(e.loss for e in run.history)) for run in known
    ]
    if losses:
        yield Plot(
            name="training_loss",
            section="training",
            svg=line_chart("Loss of each epoch", losses, x_axis="epoch", y_axis="mean loss of its batches"),
            caption="On the rows that were trained on. Different weights or ensembles make losses of different size.",
        )
    valid = []
    for run in known:
        measured = [(float(e.epoch), 100 * e.valid.ap) for e in run.history if e.valid is not None]
        if measured:
            x, y = zip(*measured, strict=True)
            valid.append(Line(run.name, x, y))
    if valid:
        yield Plot(
            name="training_validation",
            section="training",
            svg=line_chart("AP on validation rows", valid, x_axis="epoch", y_axis="AP, percent"),
            caption="Early stopping keeps the epoch where this is highest.",
        )


def _comparison(report: Report) -> Iterator[Plot]:
    if len(report.runs) == 1:
        return
    hierarchy = report.hierarchy
    most = MOST_BOXES if len(hierarchy) <= MOST_BOXES else SOME_BOXES
    columns = most_changed(report.runs[0], report.runs[-1], most).tolist()
    if not columns:
        return
    place = {column: index for index, column in enumerate(columns)}
    above = drawn_parents(hierarchy)
    boxes = [
        BoxedNode(
            name=hierarchy.nodes[column],
            depth=int(hierarchy.depth[column]),
            parent=place.get(int(above[column]), -1),
            values=tuple(_node_f1(run, column) for run in report.runs),
        )
        for column in columns
    ]
    everything = len(columns) == len(hierarchy)
    yield Plot(
        name="node_scores",
        section="comparison",
        svg=node_boxes(
            "F1 of each node" if everything else f"F1 of {len(columns)} nodes: what changed most, and what is above it",
            boxes,
            [run.name for run in report.runs],
            columns=2 if len(report.runs) in (2, 4) else len(report.runs),
        ),
        caption="A box for each run, in percent. + marks a node that the last run finds and the first does not, "
        "− one that is lost.",  # noqa: RUF001 (a minus sign)
    )


def _node_f1(run: RunReport, column: int) -> float | None:
    counts = bool(run.nodes.scored[column]) and int(run.nodes.scores.support[column]) > 0
    return 100 * float(run.nodes.scores.f1[column]) if counts else None


def _pairs_to_draw(known: list[RunReport], bands: list[str]) -> Iterator[tuple[list[str], list[RunReport]]]:
    """One run has its bands in one plot; several runs have a plot for each band."""
    if len(known) == 1:
        yield bands, known
    elif known:
        for band in bands:
            yield [band], known


def _in_file_name(band: str) -> str:
    return band.replace("+", "_or_more").replace("-", "_to_")


def _percent(point: tuple[float, float]) -> tuple[float, float]:
    return 100 * point[0], 100 * point[1]
