"""Precision that can be had at a recall, over all cells (row, node) together.

A threshold decides every cell at or above it. At recall r the curve has the best precision of all thresholds whose
recall is at least r. Between two scores that positive cells have, a lower threshold adds nothing but mistakes: only
these scores are tried. Whether a recall is reached is decided in whole numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

POINTS = 100
"""Recalls are 1/100, 2/100, up to 1."""


def precision_at_recalls(truth: NDArray[np.bool_], scores: NDArray[Any]) -> NDArray[np.float64] | None:
    """The best precision at a recall of at least 0.01, 0.02, ..., 1.00; None if no cell is positive.

    >>> truth, scores = np.array([[True, False, True]]), np.array([[0.9, 0.5, 0.1]])
    >>> precision_at_recalls(truth, scores)[[0, 49, 50, 99]].round(3)
    array([1.   , 1.   , 0.667, 0.667])
    """
    positives = np.sort(scores[truth])
    if not len(positives):
        return None
    everything = np.sort(scores, axis=None)
    thresholds, first = np.unique(positives, return_index=True)
    hits = len(positives) - first  # falling, as thresholds rise
    precision = hits / (everything.size - np.searchsorted(everything, thresholds, side="left"))
    best_up_to = np.maximum.accumulate(precision)
    wanted = np.arange(1, POINTS + 1) * len(positives)
    # the highest threshold whose hits are enough: hits * POINTS >= wanted
    enough = np.searchsorted(-hits * POINTS, -wanted, side="right") - 1
    return np.asarray(best_up_to[enough], dtype=np.float64)
