"""Bootstrap standard deviations of scores over test rows.

Rows are drawn with replacement, as many as there are, a few hundred times; the standard deviation of a score over these
draws estimates how much it depends on the choice of test rows. It does not cover the variation between trainings.

A draw is a weight for each row, so all draws together are one matrix product with the rows' true positives and
predictions. AP needs cells in the order of their probabilities; for its deviation they are sorted into at most
`AP_BINS` bins, with edges at probabilities of positive cells. With fewer such probabilities than bins this is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
AP_BINS = 512
CELLS_PER_BLOCK = 1 << 23


@dataclass(frozen=True)
class Deviations:
    """Standard deviations of the scores of the same names in `Summary`."""

    f1: float
    precision: float
    recall: float
    bin_ap: float
    ap: float
    nodes_found: float


def deviations_over_rows(
    Y: Bools,
    probs: NDArray[Any],
    predicted: Bools,
    *,
    draws: int = 200,
    seed: int = 0,
    known: Bools | None = None,
) -> Deviations:
    """Standard deviations over draws of rows; ``ap`` comes from the probabilities, all else from the predictions.

    Args:
        Y: labels (rows, nodes) of the scored nodes.
        probs: their probabilities.
        predicted: their predictions.
        draws: number of bootstrap samples.
        seed: of the random numbers.
        known: (rows, nodes), where labels are known; None: everywhere. Other cells are left out.
    """
    rows, nodes = Y.shape
    if rows == 0 or nodes == 0:
        return Deviations(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
    if known is not None:
        Y, predicted = Y & known, predicted & known
    weights = np.random.default_rng(seed).multinomial(rows, np.full(rows, 1 / rows), size=draws).astype(np.float32)
    f1, precision, recall, found, hits, all_predicted, positives = (np.zeros(draws) for _ in range(7))
    width = max(1, CELLS_PER_BLOCK // max(draws, rows))
    for first in range(0, nodes, width):
        y, p = Y[:, first : first + width], predicted[:, first : first + width]
        hit, n_predicted, support = ((weights @ part.astype(np.float32)).astype(np.float64) for part in (y & p, p, y))
        f1 += _ratio(2 * hit, n_predicted + support).sum(axis=1)
        precision += _ratio(hit, n_predicted).sum(axis=1)
        recall += _ratio(hit, support).sum(axis=1)
        found += (hit > 0).sum(axis=1)
        hits += hit.sum(axis=1)
        all_predicted += n_predicted.sum(axis=1)
        positives += support.sum(axis=1)
    micro_recall = _ratio(hits, positives)
    cells = np.full(draws, float(Y.size)) if known is None else weights @ np.count_nonzero(known, axis=1)
    bin_ap = micro_recall * _ratio(hits, all_predicted) + (1 - micro_recall) * _ratio(positives, cells)
    return Deviations(
        f1=float((f1 / nodes).std()),
        precision=float((precision / nodes).std()),
        recall=float((recall / nodes).std()),
        bin_ap=float(np.where(positives > 0, bin_ap, 0.0).std()),
        ap=float(_average_precisions(Y, probs, weights, known).std()),
        nodes_found=float(found.std()),
    )


def _average_precisions(
    Y: Bools, probs: NDArray[Any], weights: NDArray[np.float32], known: Bools | None
) -> Floats:
    """AP of each draw."""
    edges = np.unique(probs[Y])
    if not len(edges):
        return np.zeros(len(weights))
    if len(edges) > AP_BINS:
        edges = edges[np.linspace(0, len(edges) - 1, AP_BINS).round().astype(np.int64)]
    bins = len(edges) + 1  # the first holds what is below all positive cells
    n_predicted, hits = np.zeros((len(Y), bins)), np.zeros((len(Y), bins))
    for row, (p, y) in enumerate(zip(probs, Y, strict=True)):
        place = np.searchsorted(edges, p, side="right")
        n_predicted[row] = np.bincount(place if known is None else place[known[row]], minlength=bins)
        hits[row] = np.bincount(place[y], minlength=bins)
    # From the highest bin down: what is at or above each edge.
    n_predicted_above, hits_above = (np.cumsum((weights @ part)[:, :0:-1], axis=1) for part in (n_predicted, hits))
    steps = np.diff(hits_above, axis=1, prepend=0.0)
    return np.asarray((steps * _ratio(hits_above, n_predicted_above)).sum(axis=1) / np.maximum(hits_above[:, -1], 1))


def _ratio(numerator: Floats, denominator: Floats) -> Floats:
    return np.divide(numerator, denominator, out=np.zeros(numerator.shape), where=denominator > 0)
