"""Bars: the mean score of the nodes of each group, by depth or by rarity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, Protocol, TypeVar

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from rarenode.errors import ArgumentError
from rarenode.metrics import RARITY_BANDS
from rarenode.plots.style import SERIES, add_legend, axes_of, check_series, font_size, size_in_points
from rarenode.plots.text import percent, plain, text_width

Score = Literal["f1", "precision", "recall"]
TITLES: Mapping[Score, str] = {"f1": "F1", "precision": "Precision", "recall": "Recall"}
FILLED = 0.8
"""The part of a group's room that its bars take."""


class GroupScores(Protocol):
    """The scores of a group of nodes, as fractions; `rarenode.metrics.Summary` is one."""

    @property
    def nodes(self) -> int:
        """How many nodes the group has."""

    @property
    def f1(self) -> float:
        """Their mean F1."""

    @property
    def precision(self) -> float:
        """Their mean precision."""

    @property
    def recall(self) -> float:
        """Their mean recall."""


Key = TypeVar("Key", int, str)


def plot_scores_by_depth(
    runs: Mapping[str, Mapping[int, GroupScores]], *, score: Score = "recall", ax: Axes | None = None
) -> Axes:
    """Draw the mean score of the nodes of each depth, one bar per run.

    Args:
        runs: name of a run -> what `rarenode.metrics.summary_by_depth` returns for it. At most 8 runs.
        score: ``recall``, ``f1`` or ``precision``.
        ax: where to draw; by default the axes of a new figure. Show it with ``ax.figure``.

    Returns:
        The axes.

    Raises:
        ArgumentError: there is no run, no group with nodes, or more than 8 runs.

    >>> from rarenode import Hierarchy
    >>> from rarenode.metrics import summary_by_depth
    >>> animals = Hierarchy.from_edges([("animal", "cat"), ("animal", "dog")])
    >>> Y, probs = [[1, 1, 0], [1, 0, 1]], [[0.9, 0.8, 0.1], [0.9, 0.2, 0.3]]
    >>> ax = plot_scores_by_depth({"mine": summary_by_depth(Y, probs, animals)})
    >>> [float(bar.get_height()) for bar in ax.patches]
    [100.0, 50.0]
    """
    depths = sorted({depth for groups in runs.values() for depth, group in groups.items() if group.nodes})
    return _plot_groups(runs, depths, "depth", score, ax)


def plot_scores_by_rarity(
    runs: Mapping[str, Mapping[str, GroupScores]], *, score: Score = "recall", ax: Axes | None = None
) -> Axes:
    """Draw the mean score of the nodes of each rarity band, one bar per run.

    Args:
        runs: name of a run -> what `rarenode.metrics.summary_by_rarity` returns for it. At most 8 runs.
        score: ``recall``, ``f1`` or ``precision``.
        ax: where to draw; by default the axes of a new figure. Show it with ``ax.figure``.

    Returns:
        The axes.

    Raises:
        ArgumentError: there is no run, no band with nodes, or more than 8 runs.

    >>> from rarenode.metrics import summary_by_rarity
    >>> Y, probs = [[1, 1, 0], [1, 0, 1]], [[0.9, 0.8, 0.1], [0.9, 0.2, 0.3]]
    >>> ax = plot_scores_by_rarity({"mine": summary_by_rarity(Y, probs, [150, 30, 2])}, score="f1")
    >>> [label.get_text() for label in ax.get_xticklabels()]
    ['1-4', '20-99', '100+']
    """
    bands = [band for band in RARITY_BANDS if any(band in groups and groups[band].nodes for groups in runs.values())]
    return _plot_groups(runs, bands, "training rows of a node", score, ax)


def _plot_groups(
    runs: Mapping[str, Mapping[Key, GroupScores]], groups: Sequence[Key], axis: str, score: Score, ax: Axes | None
) -> Axes:
    check_series(runs, "runs")
    if score not in TITLES:
        raise ArgumentError(f"score must be one of {', '.join(TITLES)}, got {score!r}")
    if not groups:
        raise ArgumentError("no group has nodes")
    ax = axes_of(ax)
    wide = FILLED / len(runs)
    handles = []
    bars: list[tuple[float, float]] = []
    for index, found in enumerate(runs.values()):
        known = [(place, found[group]) for place, group in enumerate(groups) if group in found and found[group].nodes]
        x = [place + (index - (len(runs) - 1) / 2) * wide for place, _ in known]
        values = [100 * float(getattr(scores, score)) for _, scores in known]
        handles.append(ax.bar(x, values, wide * 0.94, color=SERIES[index], linewidth=0))
        bars += zip(x, values, strict=True)
    _write_values(ax, bars, wide / len(groups))
    highest = max(value for _, value in bars)
    ax.set_xlim(-0.5, len(groups) - 0.5)
    ax.set_ylim(0, 1.06 * highest if highest else 100)
    ax.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    ax.grid(visible=True, axis="y")
    ax.set_ylabel(f"{TITLES[score]}, percent")
    label = f"{axis}; below, the number of nodes"
    fits = text_width(label, font_size("xtick.labelsize")) <= size_in_points(ax)[0]
    ax.set_xlabel(label if fits else label.replace("; ", ";\n"))
    ax.set_xticks(range(len(groups)), [plain(group) for group in groups], parse_math=False)
    _write_counts(ax, [_count(runs, group) for group in groups])
    if len(runs) > 1:
        add_legend(ax, handles, list(runs), gap=1.4 * font_size("xtick.labelsize"))
    return ax


def _write_values(ax: Axes, bars: Sequence[tuple[float, float]], part: float) -> None:
    """The value above each bar, with as many digits as fit for all; none where even whole numbers do not."""
    size = font_size("xtick.labelsize")
    room = part * size_in_points(ax)[0]
    for write in (percent, _whole_percent):
        if max(text_width(write(value), size) for _, value in bars) <= room:
            for x, value in bars:
                ax.annotate(write(value), (x, value), (0, 3), textcoords="offset points", ha="center", fontsize=size)
            return


def _whole_percent(value: float) -> str:
    return "<1" if 0 < value < 0.5 else f"{value:.0f}"


def _count(runs: Mapping[str, Mapping[Key, GroupScores]], group: Key) -> str:
    """How many nodes a group has; runs that were trained on different rows may differ."""
    counts = {found[group].nodes if group in found else 0 for found in runs.values()}
    return f"{min(counts):,}" if len(counts) == 1 else f"{min(counts):,}\u2013{max(counts):,}"


def _write_counts(ax: Axes, counts: Sequence[str]) -> None:
    """A second line below the names of the groups, upright where groups are narrow."""
    size = font_size("xtick.labelsize")
    slot = size_in_points(ax)[0] / len(counts)
    upright = max(text_width(count, size) for count in counts) > 0.95 * slot
    below = size * 1.35 + mpl.rcParams["xtick.major.pad"]
    longest = 0.0
    for place, count in enumerate(counts):
        ax.annotate(
            count,
            (place, 0),
            (0, -below - (4 if upright else 0)),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="right" if upright else "center",
            va="center" if upright else "top",
            rotation=90 if upright else 0,
            rotation_mode="anchor",
            fontsize=size,
            color=mpl.rcParams["xtick.color"],
        )
        longest = max(longest, text_width(count, size) if upright else size)
    ax.xaxis.labelpad = longest + size * 0.8
