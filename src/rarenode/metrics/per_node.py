"""Precision, recall and F1 of each node.

An undefined score (the precision of a node that is never predicted, the recall of one without positives) is 0, so that
a mean over nodes reflects how many of them are found at all. A row where it is unknown whether it has a node is left
out of all that is counted for the node.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode.errors import LabelError
from rarenode.hierarchy.labels import as_indicator, as_known


@dataclass(frozen=True, eq=False)
class NodeScores:
    """One value for each node, in column order."""

    precision: NDArray[np.float64]
    recall: NDArray[np.float64]
    f1: NDArray[np.float64]
    true_positives: NDArray[np.int64]
    """Rows where the node is predicted and labelled."""
    predicted: NDArray[np.int64]
    """Rows where the node is predicted."""
    support: NDArray[np.int64]
    """Rows where the node is labelled."""


def node_scores(Y: Any, predicted: Any, known: Any = None) -> NodeScores:
    """Precision, recall and F1 per node.

    Args:
        Y: labels (rows, nodes), 0 or 1.
        predicted: predictions (rows, nodes), 0 or 1.
        known: (rows, nodes), boolean: where labels are known; None: everywhere.

    >>> scores = node_scores([[1, 1], [1, 0]], [[1, 0], [0, 0]])
    >>> scores.recall, scores.precision
    (array([0.5, 0. ]), array([1., 0.]))
    """
    truth = as_indicator(Y, "labels")
    predictions = as_indicator(predicted, "predictions")
    if truth.shape != predictions.shape:
        raise LabelError(f"labels {truth.shape} and predictions {predictions.shape} must have the same shape")
    mask = as_known(known, truth.shape)
    if mask is not None:
        truth, predictions = truth & mask, predictions & mask
    hits = np.count_nonzero(truth & predictions, axis=0)
    n_predicted = np.count_nonzero(predictions, axis=0)
    support = np.count_nonzero(truth, axis=0)
    return NodeScores(
        precision=divide(hits, n_predicted),
        recall=divide(hits, support),
        f1=divide(2 * hits, n_predicted + support),
        true_positives=hits,
        predicted=n_predicted,
        support=support,
    )


def divide(numerator: NDArray[np.int64], denominator: NDArray[np.int64]) -> NDArray[np.float64]:
    """``numerator / denominator``, and 0 where that is undefined."""
    return np.divide(numerator, denominator, out=np.zeros(len(numerator)), where=denominator > 0)
