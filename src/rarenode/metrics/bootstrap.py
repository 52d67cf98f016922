"""How far figures would be off with other rows of the same kind: the bootstrap.

Rows are drawn anew, as many as there are and with replacement, a few hundred times; a figure's standard deviation over
these draws is the estimate. It tells nothing of what another training would give.

A draw is a weight for each row, so all draws together are one matrix product with the rows' hits and claims. AP needs
cells in the order of their probabilities; for its deviation they are sorted into at most `AP_BINS` bins, with edges
at probabilities that positive cells have. With fewer such probabilities than bins that is AP itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
AP_BINS = 512
CELLS_AT_A_TIME = 1 << 23


@dataclass(frozen=True)
class Deviations:
    """Standard deviations of the figures of the same names in `Summary`."""

    f1: float
    precision: float
    recall: float
    bin_ap: float
    ap: float
    nodes_found: float


def deviations_over_rows(
    Y: Bools, probs: NDArray[Any], decided: Bools, *, draws: int = 200, seed: int = 0
) -> Deviations:
    """The deviations of what is decided, and of AP, over draws of rows.

    Args:
        Y: labels (rows, nodes) of the nodes that count.
        probs: their probabilities.
        decided: their decisions.
        draws: how often rows are drawn.
        seed: decides the draws.
    """
    rows, nodes = Y.shape
    if rows == 0 or nodes == 0:
        return Deviations(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    weights = np.random.default_rng(seed).multinomial(rows, np.full(rows, 1 / rows), size=draws).astype(np.float32)
    f1, precision, recall, found, hits, claims = (np.zeros(draws) for _ in range(6))
    positives = np.zeros(draws)
    width = max(1, CELLS_AT_A_TIME // max(draws, rows))
    for first in range(0, nodes, width):
        y, d = Y[:, first : first + width], decided[:, first : first + width]
        hit, claimed, support = ((weights @ part.astype(np.float32)).astype(np.float64) for part in (y & d, d, y))
        f1 += _ratio(2 * hit, claimed + support).sum(axis=1)
        precision += _ratio(hit, claimed).sum(axis=1)
        recall += _ratio(hit, support).sum(axis=1)
        found += (hit > 0).sum(axis=1)
        hits, claims, positives = hits + hit.sum(axis=1), claims + claimed.sum(axis=1), positives + support.sum(axis=1)
    share = _ratio(hits, positives)
    bin_ap = share * _ratio(hits, claims) + (1 - share) * (positives / Y.size)
    return Deviations(
        f1=float((f1 / nodes).std()),
        precision=float((precision / nodes).std()),
        recall=float((recall / nodes).std()),
        bin_ap=float(np.where(positives > 0, bin_ap, 0.0).std()),
        ap=float(_average_precisions(Y, probs, weights).std()),
        nodes_found=float(found.std()),
    )


def _average_precisions(Y: Bools, probs: NDArray[Any], weights: NDArray[np.float32]) -> Floats:
    """AP of each draw."""
    edges = np.unique(probs[Y])
    if not len(edges):
        return np.zeros(len(weights))
    if len(edges) > AP_BINS:
        edges = edges[np.linspace(0, len(edges) - 1, AP_BINS).round().astype(np.int64)]
    bins = len(edges) + 1  # the first holds what is below all positive cells
    claimed, hits = np.zeros((len(Y), bins)), np.zeros((len(Y), bins))
    for row, (p, y) in enumerate(zip(probs, Y, strict=True)):
        place = np.searchsorted(edges, p, side="right")
        claimed[row] = np.bincount(place, minlength=bins)
        hits[row] = np.bincount(place[y], minlength=bins)
    # From the highest bin down: what is at or above each edge.
    claimed_above, hits_above = (np.cumsum((weights @ part)[:, :0:-1], axis=1) for part in (claimed, hits))
    steps = np.diff(hits_above, axis=1, prepend=0.0)
    return np.asarray((steps * _ratio(hits_above, claimed_above)).sum(axis=1) / np.maximum(hits_above[:, -1], 1))


def _ratio(over: Floats, under: Floats) -> Floats:
    return np.divide(over, under, out=np.zeros(over.shape), where=under > 0)
