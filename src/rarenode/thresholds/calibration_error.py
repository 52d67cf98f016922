"""Calibration error: how far probabilities are from frequencies.

`reliability` compares, in bins of p, the mean probability with the share of positive cells; `ece`, the expected
calibration error, is the mean distance of the two over cells. Cells of many nodes share a bin, where one node's excess
may cancel another's deficit: look at bands of similar nodes (`ece_by_rarity`). Bins of equal width put nearly every
cell of a rare node into the first; edges such as `BINS` resolve small probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarenode._io.text import counted
from rarenode.errors import ArgumentError
from rarenode.hierarchy.labels import as_known
from rarenode.metrics import rarity_masks
from rarenode.thresholds.probabilities import as_probabilities_and_labels, row_blocks

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
BINS = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
"""Edges for mostly rare nodes, whose probabilities are close to 0."""


@dataclass(frozen=True, eq=False)
class Reliability:
    """The numbers of a reliability diagram: one value for each bin of probabilities. Means of an empty bin are NaN."""

    edges: Floats
    """(bins + 1,): a bin holds its lower edge but not its upper one; the last bin holds both."""
    mean_probability: Floats
    frequency: Floats
    """Share of the bin's cells that are positive."""
    count: NDArray[np.int64]
    """Cells (row, node)."""

    @property
    def ece(self) -> float:
        """The mean over cells of the distance between mean probability and frequency of their bins.

        NaN if there are no cells.
        """
        total = int(self.count.sum())
        if not total:
            return float("nan")
        full = self.count > 0
        distance = np.abs(self.mean_probability[full] - self.frequency[full])
        return float((self.count[full] * distance).sum() / total)


def reliability(probs: Any, Y: Any, bins: int | Sequence[float] = 10, *, known: Any = None) -> Reliability:
    """Mean probability and share of positive cells, bin by bin, over all cells whose label is known.

    Args:
        probs: probabilities (rows, nodes) of the nodes that count.
        Y: labels (rows, nodes), 0 or 1.
        bins: number of bins of equal width, or their edges, rising from 0 to 1.
        known: (rows, nodes), boolean: where labels are known; None: everywhere.

    >>> reliability([[0.2, 0.9], [0.4, 0.7]], [[0, 1], [1, 1]], bins=2).frequency
    array([0.5, 1. ])
    """
    given, truth = as_probabilities_and_labels(probs, Y)
    everything = np.ones(given.shape[1], dtype=np.bool_)
    return _reliability(given, truth, _edges(bins), everything, as_known(known, truth.shape))


def ece(probs: Any, Y: Any, bins: int | Sequence[float] = 10, *, known: Any = None) -> float:
    """The expected calibration error over all cells; arguments as for `reliability`.

    >>> round(ece([[0.2, 0.9], [0.4, 0.7]], [[0, 1], [1, 1]], bins=2), 3)
    0.2
    """
    return reliability(probs, Y, bins, known=known).ece


def ece_by_rarity(
    probs: Any, Y: Any, training_positives: ArrayLike, bins: int | Sequence[float] = 10, *, known: Any = None
) -> dict[str, float]:
    """`ece` of the nodes of each of `RARITY_BANDS`, by the node's number of training positives.

    All bands are included, the rarest first; one without nodes has NaN.
    """
    given, truth = as_probabilities_and_labels(probs, Y)
    edges = _edges(bins)
    count = np.asarray(training_positives)
    if count.shape != (given.shape[1],):
        raise ArgumentError(
            f"training_positives must have one count for each of {counted(given.shape[1], 'node')}; got {count.shape}"
        )
    cells = as_known(known, truth.shape)
    return {band: _reliability(given, truth, edges, mask, cells).ece for band, mask in rarity_masks(count).items()}


def _reliability(given: NDArray[Any], truth: Bools, edges: Floats, mask: Bools, known: Bools | None) -> Reliability:
    bins = len(edges) - 1
    count, sums, hits = np.zeros(bins, dtype=np.int64), np.zeros(bins), np.zeros(bins, dtype=np.int64)
    for rows in row_blocks(given.shape):
        p, y = given[rows][:, mask].ravel().astype(np.float64), truth[rows][:, mask].ravel()
        if known is not None:
            counted = known[rows][:, mask].ravel()
            p, y = p[counted], y[counted]
        place = np.searchsorted(edges[1:-1], p, side="right")
        count += np.bincount(place, minlength=bins)
        sums += np.bincount(place, weights=p, minlength=bins)
        hits += np.bincount(place[y], minlength=bins)
    nothing = np.full(bins, np.nan)
    return Reliability(
        edges=edges,
        mean_probability=np.divide(sums, count, out=nothing.copy(), where=count > 0),
        frequency=np.divide(hits, count, out=nothing.copy(), where=count > 0),
        count=count,
    )


def _edges(bins: int | Sequence[float]) -> Floats:
    if isinstance(bins, int | np.integer) and not isinstance(bins, bool):
        if bins < 1:
            raise ArgumentError(f"there must be at least 1 bin, got {bins}")
        return np.arange(bins + 1) / bins  # correctly rounded, which linspace does not promise
    if np.ndim(bins) != 1 or np.asarray(bins).dtype.kind not in "iuf":
        raise ArgumentError(f"bins must be a whole number or edges that rise from 0 to 1, got {bins!r}")
    edges = np.array(bins, dtype=np.float64)
    if len(edges) < 2 or edges[0] != 0 or edges[-1] != 1 or not (np.diff(edges) > 0).all():
        raise ArgumentError(f"edges of bins must rise from 0 to 1, got {bins!r}")
    return edges
