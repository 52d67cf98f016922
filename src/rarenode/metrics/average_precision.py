"""Micro-averaged average precision: all (row, node) cells ranked together.

AP is the sum, over the distinct scores s in falling order, of (recall at s - recall before) x (precision at s), where
a cell counts as predicted if its score is at least s. Recall only rises at scores that a positive cell has, so the
sum runs over those alone: with all scores and the positive ones sorted, two binary searches count what lies at or
above each.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def average_precision(truth: NDArray[np.bool_], scores: NDArray[Any]) -> float:
    """AP of ``scores`` over all cells; 0 if no cell is positive."""
    positives = np.sort(scores[truth])
    if not len(positives):
        return 0.0
    everything = np.sort(scores, axis=None)
    thresholds, first, count = np.unique(positives, return_index=True, return_counts=True)
    hits = len(positives) - first
    claimed = everything.size - np.searchsorted(everything, thresholds, side="left")
    return float((count * (hits / claimed)).sum() / len(positives))


def binary_average_precision(hits: int, claimed: int, positives: int, cells: int) -> float:
    """AP of 0/1 predictions, which have two thresholds only: "predicted" and "everything"."""
    if not positives:
        return 0.0
    recall = hits / positives
    precision = hits / claimed if claimed else 0.0
    return recall * precision + (1 - recall) * (positives / cells)
