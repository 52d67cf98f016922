"""Precision, recall and F1 of each node by itself.

A score that is undefined (a node never predicted has no precision, one without a positive row no recall) counts as 0,
so that a mean over nodes says how many of them are found at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode.errors import LabelError
from rarenode.hierarchy.labels import as_indicator


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


def node_scores(Y: Any, predicted: Any) -> NodeScores:
    """Precision, recall and F1 per node.

    Args:
        Y: labels (rows, nodes), 0 or 1.
        predicted: predictions (rows, nodes), 0 or 1.

    >>> scores = node_scores([[1, 1], [1, 0]], [[1, 0], [0, 0]])
    >>> scores.recall, scores.precision
    (array([0.5, 0. ]), array([1., 0.]))
    """
    truth = as_indicator(Y, "labels")
    claims = as_indicator(predicted, "predictions")
    if truth.shape != claims.shape:
        raise LabelError(f"labels {truth.shape} and predictions {claims.shape} must have the same shape")
    hits = np.count_nonzero(truth & claims, axis=0)
    claimed = np.count_nonzero(claims, axis=0)
    support = np.count_nonzero(truth, axis=0)
    return NodeScores(
        precision=divide(hits, claimed),
        recall=divide(hits, support),
        f1=divide(2 * hits, claimed + support),
        true_positives=hits,
        predicted=claimed,
        support=support,
    )


def divide(over: NDArray[np.int64], under: NDArray[np.int64]) -> NDArray[np.float64]:
    """``over / under``, and 0 where that is undefined."""
    return np.divide(over, under, out=np.zeros(len(over)), where=under > 0)
