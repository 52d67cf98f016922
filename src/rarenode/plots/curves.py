"""Lines: precision over recall, reliability diagrams, and what was measured after each epoch."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from numpy.typing import ArrayLike, NDArray

from rarenode._io.text import counted
from rarenode.errors import ArgumentError
from rarenode.plots.style import DASHES, MARKERS, SERIES, add_legend, axes_of, check_series
from rarenode.plots.text import plain
from rarenode.thresholds.calibration_error import Reliability

RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
POINT = 1.7
"""How much larger the mark of a decision is than a mark on a line."""
NO_POINTS: Mapping[str, tuple[float, float]] = MappingProxyType({})


def plot_precision_recall(
    precisions: Mapping[str, ArrayLike],
    *,
    points: Mapping[str, tuple[float, float]] = NO_POINTS,
    ax: Axes | None = None,
) -> Axes:
    """Draw precision over recall, in percent.

    Args:
        precisions: name of a curve -> its precision at evenly spaced recalls that end at 1, such as
            `rarenode.metrics.average_precision.precision_at_recalls` returns. At most 8 curves.
        points: name of a curve -> the (recall, precision) of the decisions, which is marked.
        ax: where to draw; by default the axes of a new figure. Show it with ``ax.figure``.

    Returns:
        The axes.

    Raises:
        ArgumentError: there is no curve, or there are more than 8.

    >>> ax = plot_precision_recall({"mine": [1.0, 0.8, 0.5, 0.25]}, points={"mine": (0.6, 0.75)})
    >>> ax.lines[0].get_xdata().tolist(), ax.lines[0].get_ydata().tolist()
    ([25.0, 50.0, 75.0, 100.0], [100.0, 80.0, 50.0, 25.0])
    """
    check_series(precisions, "curves")
    ax = axes_of(ax)
    handles = []
    for index, values in enumerate(precisions.values()):
        precision = 100 * np.asarray(values, dtype=np.float64)
        recall = 100 * np.arange(1, len(precision) + 1) / len(precision)
        handles.append(_plot_line(ax, recall, precision, index, marked=False))
    for index, name in enumerate(precisions):  # above all lines
        if name in points:
            handles[index] = _with_point(ax, 100 * points[name][0], 100 * points[name][1], index)
    for axis, label in ((ax.xaxis, "recall, percent"), (ax.yaxis, "precision, percent")):
        axis.set_label_text(label)
        axis.set_ticks(range(0, 101, 20))
    ax.set_xlim(0, 100)
    ax.set_ylim(0, 100)
    ax.grid(visible=True)
    add_legend(ax, handles, list(precisions))
    return ax


def plot_reliability(bins: Mapping[str, Reliability], *, ax: Axes | None = None) -> Axes:
    """Draw how often cells are positive over their mean probability, on logarithmic axes.

    On the diagonal, probabilities are what they say; below it they are too high. Bins in which either value is 0
    cannot be drawn on logarithmic axes.

    Args:
        bins: name of a line -> what `rarenode.thresholds.calibration_error.reliability` returns. At most 8 lines.
        ax: where to draw; by default the axes of a new figure. Show it with ``ax.figure``.

    Returns:
        The axes.

    Raises:
        ArgumentError: there is no line, there are more than 8, or no bin can be drawn.

    >>> from rarenode.thresholds.calibration_error import reliability
    >>> ax = plot_reliability({"mine": reliability([[0.2, 0.9], [0.4, 0.7]], [[0, 1], [1, 1]], bins=2)})
    >>> ax.lines[1].get_xdata().round(3).tolist(), ax.lines[1].get_ydata().tolist()
    ([0.3, 0.8], [0.5, 1.0])
    """
    drawable = {name: points for name, some in bins.items() if len((points := drawable_bins(some))[0])}
    check_series(drawable, "lines with bins that can be drawn")
    ax = axes_of(ax)
    left, bottom = (_decade_below(min(points[axis].min() for points in drawable.values())) for axis in (0, 1))
    ends = [max(left, bottom), 1]
    ax.plot(ends, ends, color=mpl.rcParams["axes.edgecolor"], linewidth=1, dashes=(4, 4))
    handles = [_plot_line(ax, x, y, index, marked=True) for index, (x, y) in enumerate(drawable.values())]
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlim(left, 1)
    ax.set_ylim(bottom, 1)
    for axis in (ax.xaxis, ax.yaxis):
        _use_decades(axis)
    ax.set_xlabel("mean probability")
    ax.set_ylabel("share of positive cells")
    ax.grid(visible=True)
    add_legend(ax, handles, list(drawable))
    return ax


def plot_training_curve(
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]], *, ylabel: str = "loss", ax: Axes | None = None
) -> Axes:
    """Draw what was measured after each epoch, such as the loss or the average precision on validation rows.

    Args:
        curves: name of a run -> its epochs and the values measured after them. At most 8 runs. A value that is not
            finite interrupts the line.
        ylabel: what the values are.
        ax: where to draw; by default the axes of a new figure. Show it with ``ax.figure``.

    Returns:
        The axes.

    Raises:
        ArgumentError: there is no run, there are more than 8, or epochs and values of a run differ in length.

    >>> ax = plot_training_curve({"mine": ([1, 2, 3], [0.9, 0.5, 0.4])})
    >>> ax.lines[0].get_ydata().tolist(), ax.get_ylabel()
    ([0.9, 0.5, 0.4], 'loss')
    """
    check_series(curves, "runs")
    lines = {name: _as_line(name, *values) for name, values in curves.items()}
    ax = axes_of(ax)
    handles = [_plot_line(ax, x, y, index, marked=len(x) == 1) for index, (x, y) in enumerate(lines.values())]
    ax.xaxis.set_major_locator(MaxNLocator(6, integer=True))
    ax.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    ax.set_xlabel("epoch")
    ax.set_ylabel(plain(ylabel), parse_math=False)
    ax.grid(visible=True)
    if len(lines) > 1:
        add_legend(ax, handles, list(lines))
    return ax


def drawable_bins(bins: Reliability) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean probability and frequency of the bins that logarithmic axes can show."""
    known = (bins.count > 0) & (bins.frequency > 0) & (bins.mean_probability > 0)
    return bins.mean_probability[known], bins.frequency[known]


def _as_line(name: str, x: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    epochs, values = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if epochs.ndim != 1 or epochs.shape != values.shape:
        raise ArgumentError(f"{plain(name)!r} has {counted(epochs.size, 'epoch')} and {counted(values.size, 'value')}")
    return epochs, np.where(np.isfinite(values), values, np.nan)


def _plot_line(ax: Axes, x: NDArray[Any], y: NDArray[Any], index: int, *, marked: bool) -> Line2D:
    colour, marker, dash = SERIES[index], MARKERS[index], DASHES[index]
    mark: dict[str, Any] = {"marker": marker, "markeredgecolor": mpl.rcParams["axes.facecolor"]} if marked else {}
    (line,) = ax.plot(x, y, color=colour, linestyle=dash, clip_on=False, **mark)
    return line


def _with_point(ax: Axes, x: float, y: float, index: int) -> Line2D:
    """Mark a point above all lines; the returned line with its mark is for the legend."""
    edge, size = mpl.rcParams["axes.facecolor"], POINT * mpl.rcParams["lines.markersize"]
    mark: dict[str, Any] = {"color": SERIES[index], "marker": MARKERS[index], "markeredgecolor": edge}
    ax.plot([x], [y], linestyle="", markersize=size, zorder=4, clip_on=False, **mark)
    return Line2D([], [], linestyle=DASHES[index], markersize=size, **mark)


def _decade_below(value: float) -> float:
    """The power of ten at or below a value, and at most 0.1, so that an axis that ends at 1 has a length."""
    return float(min(10.0 ** np.floor(np.log10(value) + 1e-9), 0.1))


def _use_decades(axis: Axis) -> None:
    axis.set_major_locator(LogLocator(numticks=8))
    axis.set_major_formatter(FuncFormatter(lambda value, _: _decade(value)))
    axis.set_minor_locator(NullLocator())


def _decade(value: float) -> str:
    """A power of ten, written out while it is short; matplotlib's own formatter would write a formula.

    >>> _decade(0.01), _decade(1e-6)
    ('0.01', '10⁻⁶')
    """
    power = round(np.log10(value))
    return f"{value:g}" if power >= -4 else f"10{str(power).translate(RAISED)}"
