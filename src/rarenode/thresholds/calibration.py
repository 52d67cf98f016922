"""Calibration: probabilities that match frequencies. `rarenode.thresholds.calibration_error` measures how well.

Of the cells (row, node) to which a calibrated model assigns a probability p, a share of p is positive. Strategies that
rely on probabilities (expected F, expected precision) are as good as their calibration. There are three corrections,
all monotone for a node and all fitted on held-out rows:

* `Temperature`: sigmoid(logit(p) / T). T minimises the log loss of all held-out cells. With slope a = 1 / T the
  derivative of the loss is ``sum of z (sigmoid(a z) - y)`` over cells of logit z and label y. It rises with a, so there
  is one minimum. T above 1 corrects an overconfident model. No T moves a probability across 1/2, so the shift of all
  logits that weights on one side of the loss cause cannot be corrected this way.
* `TemperatureByDepth`: one T for each depth.
* `Isotonic`: for each node with enough positives, isotonic regression: the nondecreasing step function of p with the
  least squared error, interpolated linearly. It corrects any monotone distortion, and is 0 below the lowest positive.

A correction that differs between nodes may put a child above its parent. `Calibration.apply` raises every parent to
the maximum of its children, from the leaves up. This can only raise, which costs some calibration of inner nodes.

Fitting a temperature evaluates the logits of all cells repeatedly. One pass counts them in narrow bins (1/128 wide)
instead; a bin is represented by the mean logit of its cells, while the term with the labels stays exact.

Cells whose label is unknown take no part in a fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit

from rarenode._io.text import counted
from rarenode.errors import ArgumentError, LabelError
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.labels import as_known
from rarenode.thresholds.probabilities import (
    as_probabilities,
    as_probabilities_and_labels,
    lines_per_block,
    row_blocks,
)

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE = 0.1, 10.0
"""Labels that the probabilities separate, or contradict, would give 0 or infinity."""
LARGEST_LOGIT = 17.0
"""Where a float32 probability becomes 1. One wrong cell of probability 0 or 1 must not determine a temperature."""
BINS_PER_LOGIT = 128


class Calibration(ABC):
    """A correction of probabilities, fitted on held-out rows."""

    @classmethod
    @abstractmethod
    def fit(cls, probs: Any, Y: Any, hierarchy: Hierarchy, *, known: Any = None) -> Self:
        """Fit to held-out rows.

        Args:
            probs: the model's probabilities (rows, nodes).
            Y: labels (rows, nodes) of the same rows, 0 or 1.
            hierarchy: its node order is the order of the columns.
            known: (rows, nodes), boolean: where labels are known; None: everywhere.
        """

    def apply(self, probs: Any, hierarchy: Hierarchy) -> NDArray[Any]:
        """Corrected probabilities (rows, nodes), coherent: no child is above its parent.

        The dtype float32 is kept; the hierarchy must be the one it was fitted with.
        """
        given = as_probabilities(probs)
        _check_width(given, hierarchy)
        self._check(hierarchy)
        corrected = np.empty_like(given)
        for rows in row_blocks(given.shape):
            block = self._correct(given[rows].T.astype(np.float64, order="C"), hierarchy)
            for parents, starts, children in hierarchy.levels_upwards:
                block[parents] = np.maximum(block[parents], np.maximum.reduceat(block[children], starts, axis=0))
            corrected[rows] = block.T
        return corrected

    @abstractmethod
    def _check(self, hierarchy: Hierarchy) -> None:
        """Raise ArgumentError if this was fitted to a hierarchy of another shape."""

    @abstractmethod
    def _correct(self, block: Floats, hierarchy: Hierarchy) -> Floats:
        """Corrected probabilities (nodes, rows), before they are made coherent, as a new array."""


@dataclass(frozen=True)
class Temperature(Calibration):
    """One temperature for all nodes.

    >>> hierarchy = Hierarchy.from_edges([("animal", "cat")])
    >>> Temperature(2.0).apply(np.array([[0.9, 0.2]]), hierarchy).round(3)
    array([[0.75 , 0.333]])
    """

    value: float

    def __post_init__(self) -> None:
        _check_temperature(self.value)

    @classmethod
    def fit(cls, probs: Any, Y: Any, hierarchy: Hierarchy, *, known: Any = None) -> Self:
        """See `Calibration.fit`. Without a positive or without a negative cell the temperature is 1."""
        counts = _count_logits(*_check_pair(probs, Y, hierarchy, known), hierarchy)
        return cls(counts.temperature())

    def _check(self, hierarchy: Hierarchy) -> None:
        """One temperature fits every hierarchy."""

    def _correct(self, block: Floats, hierarchy: Hierarchy) -> Floats:
        return _tempered(block, self.value)


@dataclass(frozen=True)
class TemperatureByDepth(Calibration):
    """One temperature for each depth of the hierarchy, from the roots down."""

    values: tuple[float, ...]

    def __post_init__(self) -> None:
        for value in self.values:
            _check_temperature(value)

    @classmethod
    def fit(cls, probs: Any, Y: Any, hierarchy: Hierarchy, least: int = 20, *, known: Any = None) -> Self:
        """See `Calibration.fit`.

        Args:
            probs: the model's probabilities (rows, nodes).
            Y: labels (rows, nodes) of the same rows, 0 or 1.
            hierarchy: its node order is the order of the columns.
            least: a depth with fewer positive, or fewer negative, cells gets the temperature of all nodes. Without
                positive cells the fit would give the lowest temperature, which hides nodes without positives.
            known: (rows, nodes), boolean: where labels are known; None: everywhere.
        """
        _check_least(least)
        counts = _count_logits(*_check_pair(probs, Y, hierarchy, known), hierarchy)
        overall = counts.temperature()
        rarer_side = np.minimum(counts.positives, counts.cells.sum(axis=1) - counts.positives).tolist()
        return cls(
            tuple(counts.temperature(depth) if side >= least else overall for depth, side in enumerate(rarer_side))
        )

    def _check(self, hierarchy: Hierarchy) -> None:
        depths = _depths(hierarchy)
        if depths != len(self.values):
            raise ArgumentError(
                f"the calibration has temperatures for {counted(len(self.values), 'depth')} and the hierarchy has "
                f"{depths}; it must be the one it was fitted with"
            )

    def _correct(self, block: Floats, hierarchy: Hierarchy) -> Floats:
        return _tempered(block, np.array(self.values)[hierarchy.depth][:, np.newaxis])


@dataclass(frozen=True, eq=False)
class Curve:
    """The isotonic correction of one node: linear between points, constant beyond the first and the last."""

    column: int
    probs: Floats
    """Rising probabilities of the model."""
    frequencies: Floats
    """The corrected probability of each; nondecreasing."""


@dataclass(frozen=True, eq=False)
class Isotonic(Calibration):
    """Isotonic regression for each node with enough positives; the temperature of its depth for any other node."""

    by_depth: TemperatureByDepth
    curves: tuple[Curve, ...]
    nodes: int
    """Columns of the probabilities that it was fitted to."""

    @classmethod
    def fit(cls, probs: Any, Y: Any, hierarchy: Hierarchy, least: int = 20, *, known: Any = None) -> Self:
        """See `Calibration.fit`.

        Args:
            probs: the model's probabilities (rows, nodes).
            Y: labels (rows, nodes) of the same rows, 0 or 1.
            hierarchy: its node order is the order of the columns.
            least: positives that a node needs for isotonic regression; also as in `TemperatureByDepth.fit`.
            known: (rows, nodes), boolean: where labels are known; None: everywhere.
        """
        by_depth = TemperatureByDepth.fit(probs, Y, hierarchy, least, known=known)
        given, truth, mask = _check_pair(probs, Y, hierarchy, known)
        columns = np.flatnonzero(np.count_nonzero(truth, axis=0) >= least)
        step = lines_per_block(len(given))
        curves: list[Curve] = []
        for first in range(0, len(columns), step):
            some = columns[first : first + step]
            # Nodes first: single columns of a large matrix are slow to read.
            ps, ys = given[:, some].T.astype(np.float64, order="C"), np.ascontiguousarray(truth[:, some].T)
            for column, p, y in zip(some.tolist(), ps, ys, strict=True):
                here = slice(None) if mask is None else mask[:, column]
                curves.append(_curve(column, p[here], y[here]))
        return cls(by_depth, tuple(curves), len(hierarchy))

    def _check(self, hierarchy: Hierarchy) -> None:
        if len(hierarchy) != self.nodes:
            raise ArgumentError(
                f"the calibration was fitted to {counted(self.nodes, 'node')} and the hierarchy has {len(hierarchy)}; "
                "it must be the one it was fitted with"
            )
        self.by_depth._check(hierarchy)

    def _correct(self, block: Floats, hierarchy: Hierarchy) -> Floats:
        corrected = self.by_depth._correct(block, hierarchy)
        for curve in self.curves:
            corrected[curve.column] = np.interp(block[curve.column], curve.probs, curve.frequencies)
        return corrected


# --- fitting -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class _LogitCounts:
    """Counts and sums of logits, for each depth: all that the fit of a temperature needs."""

    cells: NDArray[np.int64]
    """(depths, bins)"""
    sums: Floats
    """(depths, bins): sum of the cells' logits."""
    positives: NDArray[np.int64]
    """(depths,)"""
    pull: Floats
    """(depths,): sum of the positive cells' logits."""

    def temperature(self, depth: int | None = None) -> float:
        """The temperature with the least log loss on the cells of a depth, or on all."""
        which = slice(None) if depth is None else slice(depth, depth + 1)
        cells, sums = self.cells[which].sum(axis=0), self.sums[which].sum(axis=0)
        positives, pull = int(self.positives[which].sum()), float(self.pull[which].sum())
        if positives in (0, int(cells.sum())):
            return 1.0
        full = cells > 0
        mean, weight = sums[full] / cells[full], sums[full]

        def slope_of_loss(a: float) -> float:
            return float(weight @ expit(a * mean)) - pull

        lowest, highest = 1 / HIGHEST_TEMPERATURE, 1 / LOWEST_TEMPERATURE
        always_falls, always_rises = slope_of_loss(highest) <= 0, slope_of_loss(lowest) >= 0
        if always_falls and always_rises:  # every probability is 1/2
            return 1.0
        if always_falls:
            return LOWEST_TEMPERATURE
        if always_rises:
            return HIGHEST_TEMPERATURE
        return 1 / float(brentq(slope_of_loss, lowest, highest))


def _count_logits(given: NDArray[Any], truth: Bools, known: Bools | None, hierarchy: Hierarchy) -> _LogitCounts:
    depths, bins = _depths(hierarchy), int(2 * LARGEST_LOGIT * BINS_PER_LOGIT) + 1
    # Columns are sorted by depth, so each depth is one slice of them.
    bounds = np.searchsorted(hierarchy.depth, np.arange(depths + 1)).tolist()
    cells, sums = np.zeros((depths, bins), dtype=np.int64), np.zeros((depths, bins))
    positives, pull = np.zeros(depths, dtype=np.int64), np.zeros(depths)
    for rows in row_blocks(given.shape):
        z = np.clip(logit(given[rows].astype(np.float64)), -LARGEST_LOGIT, LARGEST_LOGIT)
        place = ((z + LARGEST_LOGIT) * BINS_PER_LOGIT).astype(np.int64)
        y = truth[rows]
        for depth in range(depths):
            columns = slice(bounds[depth], bounds[depth + 1])
            counted = slice(None) if known is None else known[rows, columns].ravel()
            here, where, there = (values[:, columns].ravel()[counted] for values in (z, place, y))
            cells[depth] += np.bincount(where, minlength=bins)
            sums[depth] += np.bincount(where, weights=here, minlength=bins)
            positives[depth] += np.count_nonzero(there)
            pull[depth] += here[there].sum()
    return _LogitCounts(cells, sums, positives, pull)


def _curve(column: int, p: Floats, y: Bools) -> Curve:
    """Isotonic regression of the labels on the probabilities; rows of equal probability count as one point."""
    from sklearn.isotonic import isotonic_regression  # noqa: PLC0415 (takes a second to import)

    points, place, weights = np.unique(p, return_inverse=True, return_counts=True)
    share = np.bincount(place, weights=y, minlength=len(points)) / weights
    fitted = isotonic_regression(share, sample_weight=weights.astype(np.float64), y_min=0.0, y_max=1.0)
    # Inside a constant stretch all points but its ends are redundant.
    inside = np.zeros(len(points), dtype=np.bool_)
    inside[1:-1] = (fitted[1:-1] == fitted[:-2]) & (fitted[1:-1] == fitted[2:])
    return Curve(column, points[~inside], fitted[~inside])


def _tempered(p: Floats, temperature: float | Floats) -> Floats:
    tempered: Floats = expit(logit(p) / temperature)  # 0 and 1 have infinite logits, and stay 0 and 1
    return tempered


# --- checks --------------------------------------------------------------------------------------------------------


def _depths(hierarchy: Hierarchy) -> int:
    return int(hierarchy.depth.max(initial=-1)) + 1


def _check_pair(probs: Any, Y: Any, hierarchy: Hierarchy, known: Any) -> tuple[NDArray[Any], Bools, Bools | None]:
    """Probabilities, labels that are known, and where labels are known."""
    given, truth = as_probabilities_and_labels(probs, Y)
    _check_width(given, hierarchy)
    if not len(given):
        raise ArgumentError("a calibration must be fitted on at least one row")
    mask = as_known(known, truth.shape)
    return given, truth if mask is None else truth & mask, mask


def _check_width(given: NDArray[Any], hierarchy: Hierarchy) -> None:
    if given.shape[1] != len(hierarchy):
        raise LabelError(
            f"probabilities have {counted(given.shape[1], 'column')} "
            f"and the hierarchy {counted(len(hierarchy), 'node')}"
        )


def _check_temperature(value: float) -> None:
    if isinstance(value, bool) or not (isinstance(value, Real) and 0 < value < np.inf):
        raise ArgumentError(f"a temperature must be a number above 0, got {value!r}")


def _check_least(least: int) -> None:
    if isinstance(least, bool) or not (isinstance(least, int | np.integer) and least >= 1):
        raise ArgumentError(f"least must be a whole number of at least 1, got {least!r}")
