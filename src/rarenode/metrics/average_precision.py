"""Average precision and the precision-recall curve. Micro-averaged, all cells (row, node) are ranked together.

A threshold predicts every cell whose score is at least the threshold. Between two scores of positive cells a lower
threshold adds only false positives, so both functions look at scores of positive cells alone: with all scores and the
positive ones sorted, two binary searches count what lies at or above each. Cells whose label is not ``known`` are left
out; None means that all are.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]

POINTS = 100
"""Points of the precision-recall curve: recalls of 1/100, 2/100, up to 1."""


def average_precision(truth: Bools, scores: NDArray[Any], known: Bools | None = None) -> float:
    """The sum, over falling distinct scores, of the increase in recall times the precision; 0 without positive cells.

    >>> average_precision(np.array([[True, False, True]]), np.array([[0.9, 0.5, 0.1]]))
    0.8333333333333333
    """
    if known is not None:
        truth, scores = truth[known], scores[known]
    positives = np.sort(scores[truth])
    if not len(positives):
        return 0.0
    everything = np.sort(scores, axis=None)
    thresholds, first, count = np.unique(positives, return_index=True, return_counts=True)
    hits = len(positives) - first
    predicted = everything.size - np.searchsorted(everything, thresholds, side="left")
    return float((count * (hits / predicted)).sum() / len(positives))


def macro_average_precision(truth: Bools, scores: NDArray[Any], known: Bools | None = None) -> float:
    """The mean of the average precision of each node (column) that has positive rows; 0 if none has.

    >>> macro_average_precision(np.array([[True, False], [False, False], [True, False]]), np.eye(3)[:, :2])
    0.8333333333333333
    """
    each = [
        average_precision(truth[:, [node]], scores[:, [node]], None if known is None else known[:, [node]])
        for node in np.flatnonzero((truth if known is None else truth & known).any(axis=0)).tolist()
    ]
    return float(np.mean(each)) if each else 0.0


def binary_average_precision(hits: int, predicted: int, positives: int, cells: int) -> float:
    """Average precision of 0/1 predictions, from counts of cells: the thresholds are 1 and 0, which predicts all."""
    if not positives:
        return 0.0
    recall = hits / positives
    precision = hits / predicted if predicted else 0.0
    return recall * precision + (1 - recall) * (positives / cells)


def precision_at_recalls(
    truth: Bools, scores: NDArray[Any], known: Bools | None = None
) -> NDArray[np.float64] | None:
    """The best precision at a recall of at least 0.01, 0.02, ..., 1.00; None without positive cells.

    >>> truth, scores = np.array([[True, False, True]]), np.array([[0.9, 0.5, 0.1]])
    >>> precision_at_recalls(truth, scores)[[0, 49, 50, 99]].round(3)
    array([1.   , 1.   , 0.667, 0.667])
    """
    if known is not None:
        truth, scores = truth[known], scores[known]
    positives = np.sort(scores[truth])
    if not len(positives):
        return None
    everything = np.sort(scores, axis=None)
    thresholds, first = np.unique(positives, return_index=True)
    hits = len(positives) - first  # falling, as thresholds rise
    precision = hits / (everything.size - np.searchsorted(everything, thresholds, side="left"))
    best_up_to = np.maximum.accumulate(precision)
    # In whole numbers, as 0.29 * 100 is a little less than 29: the highest threshold with hits / positives >= recall.
    wanted = np.arange(1, POINTS + 1) * len(positives)
    enough = np.searchsorted(-hits * POINTS, -wanted, side="right") - 1
    return np.asarray(best_up_to[enough], dtype=np.float64)
