"""The paper's five figures, and the count it never gives: how many nodes are predicted, and found, at all.

``f1``, ``precision`` and ``recall`` are means over scored nodes of the node-wise scores (0 where undefined); ``ap``
and ``bin_ap`` are micro-averaged over scored nodes, ``bin_ap`` from the 0/1 predictions. All are fractions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarenode.errors import ArgumentError, LabelError
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.labels import as_array, as_indicator
from rarenode.metrics.average_precision import average_precision, binary_average_precision
from rarenode.metrics.node_scores import node_scores

RARITY_BANDS: Mapping[str, tuple[int, float]] = MappingProxyType(
    {"0": (0, 0), "1-4": (1, 4), "5-19": (5, 19), "20-99": (20, 99), "100+": (100, np.inf)}
)
"""Bands of positive training rows of a node: name -> (fewest, most)."""


@dataclass(frozen=True)
class Summary:
    """How well the scored nodes are predicted. Fractions, not percent."""

    f1: float
    precision: float
    recall: float
    bin_ap: float
    ap: float
    nodes: int
    """Scored nodes."""
    nodes_predicted: int
    """Nodes predicted in at least one row."""
    nodes_found: int
    """Nodes predicted in at least one row that carries them."""


def summary(Y: Any, probs: Any, threshold: float = 0.5, scored: ArrayLike | None = None) -> Summary:
    """Summarise predictions: a node is predicted where its probability is at least the threshold.

    Args:
        Y: labels (rows, nodes), 0 or 1.
        probs: constrained probabilities (rows, nodes).
        threshold: for f1, precision, recall, bin_ap and the counts of nodes.
        scored: boolean mask of the nodes that count; None counts all.

    >>> result = summary([[1, 1], [1, 0]], [[0.9, 0.4], [0.8, 0.1]])
    >>> result.recall, result.ap, result.nodes_found
    (0.5, 1.0, 1)
    """
    truth, probabilities = _check(Y, probs, threshold)
    return _summarise(truth, probabilities, threshold, _mask(scored, truth.shape[1]))


def summary_by_depth(
    Y: Any, probs: Any, hierarchy: Hierarchy, threshold: float = 0.5, scored: ArrayLike | None = None
) -> dict[int, Summary]:
    """`summary` of the nodes of each depth that has scored nodes."""
    truth, probabilities = _check(Y, probs, threshold)
    if truth.shape[1] != len(hierarchy):
        raise LabelError(f"labels have {truth.shape[1]} columns and the hierarchy {len(hierarchy)} nodes")
    mask = _mask(scored, truth.shape[1])
    depths = np.unique(hierarchy.depth[mask]).tolist()
    return {depth: _summarise(truth, probabilities, threshold, mask & (hierarchy.depth == depth)) for depth in depths}


def summary_by_rarity(
    Y: Any, probs: Any, training_positives: ArrayLike, threshold: float = 0.5, scored: ArrayLike | None = None
) -> dict[str, Summary]:
    """`summary` of the nodes of each rarity band, by the number of training rows that carry the node.

    All five bands of `RARITY_BANDS` are there, the rarest first; one without nodes has ``nodes == 0``.
    """
    truth, probabilities = _check(Y, probs, threshold)
    mask = _mask(scored, truth.shape[1])
    count = np.asarray(training_positives)
    if count.shape != (truth.shape[1],):
        raise ArgumentError(
            f"training_positives must have one count for each of {truth.shape[1]} nodes; got {count.shape}"
        )
    return {
        band: _summarise(truth, probabilities, threshold, mask & of_band)
        for band, of_band in rarity_masks(count).items()
    }


def rarity_masks(training_positives: NDArray[Any]) -> dict[str, NDArray[np.bool_]]:
    """Which nodes are in each of `RARITY_BANDS`, the rarest first.

    >>> rarity_masks(np.array([0, 3, 150]))["1-4"]
    array([False,  True, False])
    """
    count = training_positives
    return {band: (count >= fewest) & (count <= most) for band, (fewest, most) in RARITY_BANDS.items()}


def _summarise(truth: NDArray[np.bool_], probs: NDArray[Any], threshold: float, mask: NDArray[np.bool_]) -> Summary:
    if not mask.any():
        return Summary(0.0, 0.0, 0.0, 0.0, 0.0, nodes=0, nodes_predicted=0, nodes_found=0)
    if not mask.all():
        truth, probs = truth[:, mask], probs[:, mask]
    scores = node_scores(truth, probs >= threshold)
    hits, claimed, positives = (int(v.sum()) for v in (scores.true_positives, scores.predicted, scores.support))
    return Summary(
        f1=float(scores.f1.mean()),
        precision=float(scores.precision.mean()),
        recall=float(scores.recall.mean()),
        bin_ap=binary_average_precision(hits, claimed, positives, truth.size),
        ap=average_precision(truth, probs),
        nodes=truth.shape[1],
        nodes_predicted=int(np.count_nonzero(scores.predicted)),
        nodes_found=int(np.count_nonzero(scores.true_positives)),
    )


def _check(Y: Any, probs: Any, threshold: float) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    if not isinstance(threshold, Real) or np.isnan(threshold):
        raise ArgumentError(f"the threshold must be a number, got {threshold!r}")
    truth = as_indicator(Y, "labels")
    probabilities = as_array(probs)
    if probabilities.shape != truth.shape:
        raise LabelError(f"labels {truth.shape} and probabilities {probabilities.shape} must have the same shape")
    if np.isnan(probabilities).any():
        row, node = np.argwhere(np.isnan(probabilities))[0].tolist()
        raise ArgumentError(f"probabilities must be numbers; row {row}, column {node} is NaN")
    return truth, probabilities


def _mask(scored: ArrayLike | None, nodes: int) -> NDArray[np.bool_]:
    mask = np.ones(nodes, dtype=np.bool_) if scored is None else np.asarray(scored)
    if mask.dtype != np.bool_ or mask.shape != (nodes,):
        raise ArgumentError(
            f"scored must be a boolean mask of {nodes} nodes; got {mask.dtype} of the shape {mask.shape}"
        )
    return mask
