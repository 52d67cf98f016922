"""Scores of all nodes together, and of groups of nodes: by rarity and by depth.

``f1``, ``precision`` and ``recall`` are means over scored nodes of the node-wise scores (0 where undefined); ``ap``
and ``bin_ap`` are micro-averaged over scored nodes, ``bin_ap`` from the 0/1 predictions. All are fractions. These are
the five measures of the paper. ``nodes_found``, the number of nodes with a true positive, is added here. Cells (row,
node) whose label is unknown are left out of everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from numbers import Real
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarenode._io.text import counted
from rarenode.errors import ArgumentError, LabelError
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.labels import as_known
from rarenode.metrics.average_precision import average_precision, binary_average_precision
from rarenode.metrics.checks import as_node_mask, as_truth_and_probs
from rarenode.metrics.per_node import NodeScores, node_scores

RARITY_BANDS: Mapping[str, tuple[int, float]] = MappingProxyType(
    {"0": (0, 0), "1-4": (1, 4), "5-19": (5, 19), "20-99": (20, 99), "100+": (100, np.inf)}
)
"""Bands of the number of training positives of a node: name -> (fewest, most)."""
RECALL_BINS = 11
"""Bins of a recall histogram: a recall of 0, then each tenth above it, upper edge included."""


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
    """Nodes with at least one true positive."""


def summary(
    Y: Any, probs: Any, threshold: float = 0.5, scored: ArrayLike | None = None, known: Any = None
) -> Summary:
    """Score predictions: a node is predicted where its probability is at least the threshold.

    Args:
        Y: labels (rows, nodes), 0 or 1.
        probs: constrained probabilities (rows, nodes).
        threshold: for f1, precision, recall, bin_ap and the counts of nodes.
        scored: boolean mask of the nodes that count; None counts all.
        known: (rows, nodes), boolean: where labels are known; None: everywhere.

    >>> result = summary([[1, 1], [1, 0]], [[0.9, 0.4], [0.8, 0.1]])
    >>> result.recall, result.ap, result.nodes_found
    (0.5, 1.0, 1)
    """
    truth, probabilities = _check(Y, probs, threshold)
    mask = as_node_mask(scored, truth.shape[1])
    return _summarize(truth, probabilities, threshold, mask, as_known(known, truth.shape))


def summary_by_depth(
    Y: Any,
    probs: Any,
    hierarchy: Hierarchy,
    threshold: float = 0.5,
    scored: ArrayLike | None = None,
    known: Any = None,
) -> dict[int, Summary]:
    """`summary` of the nodes of each depth that has scored nodes."""
    truth, probabilities = _check(Y, probs, threshold)
    if truth.shape[1] != len(hierarchy):
        raise LabelError(
            f"labels have {counted(truth.shape[1], 'column')} and the hierarchy {counted(len(hierarchy), 'node')}"
        )
    mask, cells = as_node_mask(scored, truth.shape[1]), as_known(known, truth.shape)
    return {
        depth: _summarize(truth, probabilities, threshold, mask & (hierarchy.depth == depth), cells)
        for depth in np.unique(hierarchy.depth[mask]).tolist()
    }


def summary_by_rarity(
    Y: Any,
    probs: Any,
    training_positives: ArrayLike,
    threshold: float = 0.5,
    scored: ArrayLike | None = None,
    known: Any = None,
) -> dict[str, Summary]:
    """`summary` of the nodes of each rarity band, by the node's number of training positives.

    All five bands of `RARITY_BANDS` are included, the rarest first; one without nodes has ``nodes == 0``.
    """
    truth, probabilities = _check(Y, probs, threshold)
    mask, cells = as_node_mask(scored, truth.shape[1]), as_known(known, truth.shape)
    count = np.asarray(training_positives)
    if count.shape != (truth.shape[1],):
        raise ArgumentError(
            f"training_positives must have one count for each of {counted(truth.shape[1], 'node')}; got {count.shape}"
        )
    return {
        band: _summarize(truth, probabilities, threshold, mask & of_band, cells)
        for band, of_band in rarity_masks(count).items()
    }


def rarity_masks(training_positives: NDArray[Any]) -> dict[str, NDArray[np.bool_]]:
    """Which nodes are in each of `RARITY_BANDS`, the rarest first.

    >>> rarity_masks(np.array([0, 3, 150]))["1-4"]
    array([False,  True, False])
    """
    count = training_positives
    return {band: (count >= fewest) & (count <= most) for band, (fewest, most) in RARITY_BANDS.items()}


# --- groups --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class GroupSummary:
    """The scores of one group of nodes."""

    group: str
    """``all``, ``5-19 training rows``, ``depth 3``."""
    summary: Summary
    recall_histogram: tuple[int, ...]
    """How many of its nodes with positives have a recall in each of `RECALL_BINS` bins."""
    ends_section: bool
    """Whether it is the last group of its kind."""


@dataclass(frozen=True)
class GroupedSummary:
    """Scores of all scored nodes, of each rarity band and of each depth. What `summarize_groups` returns."""

    all: Summary
    by_rarity: dict[str, Summary]
    by_depth: dict[int, Summary]
    recall_histograms: dict[str, tuple[int, ...]]
    """By name of the group; see `GroupSummary.recall_histogram`."""

    def groups(self) -> Iterator[GroupSummary]:
        """All nodes, then the rarity bands that have nodes, then the depths."""
        rarity = {_band_name(band): part for band, part in self.by_rarity.items() if part.nodes}
        depth = {_depth_name(level): part for level, part in self.by_depth.items()}
        for kind in ({"all": self.all}, rarity, depth):
            for place, (group, part) in enumerate(kind.items(), start=1):
                yield GroupSummary(group, part, self.recall_histograms[group], place == len(kind))


def summarize_groups(
    Y: NDArray[np.bool_],
    probs: NDArray[Any],
    predicted: NDArray[np.bool_],
    hierarchy: Hierarchy,
    training_positives: NDArray[np.int64],
    scored: NDArray[np.bool_],
    known: NDArray[np.bool_] | None = None,
) -> GroupedSummary:
    """Score predictions that were made with any thresholds, by group of nodes; ``ap`` comes from the probabilities.

    Args:
        Y: labels (rows, nodes).
        probs: probabilities (rows, nodes).
        predicted: predictions (rows, nodes).
        hierarchy: its node order is the order of the columns.
        training_positives: for each node, its number of positives among the training rows.
        scored: boolean mask of the nodes that count.
        known: (rows, nodes), boolean: where labels are known; None: everywhere.
    """

    def by_group(values: NDArray[Any]) -> tuple[Summary, dict[str, Summary], dict[int, Summary]]:
        return (
            summary(Y, values, scored=scored, known=known),
            summary_by_rarity(Y, values, training_positives, scored=scored, known=known),
            summary_by_depth(Y, values, hierarchy, scored=scored, known=known),
        )

    # Predictions of 0 and 1 at a threshold of 0.5 are themselves.
    (every, rarity, depth), (every_p, rarity_p, depth_p) = by_group(predicted), by_group(probs)
    return GroupedSummary(
        all=replace(every, ap=every_p.ap),
        by_rarity={name: replace(s, ap=rarity_p[name].ap) for name, s in rarity.items()},
        by_depth={level: replace(s, ap=depth_p[level].ap) for level, s in depth.items()},
        recall_histograms=_recall_histograms(node_scores(Y, predicted, known), hierarchy, training_positives, scored),
    )


def _recall_histograms(
    scores: NodeScores,
    hierarchy: Hierarchy,
    training_positives: NDArray[np.int64],
    scored: NDArray[np.bool_],
) -> dict[str, tuple[int, ...]]:
    counted = scored & (scores.support > 0)
    # In whole numbers, so that a recall of exactly three tenths belongs to the third.
    bins = -(-10 * scores.true_positives // np.maximum(scores.support, 1))
    groups = {"all": counted}
    groups |= {_band_name(band): counted & mask for band, mask in rarity_masks(training_positives).items()}
    levels = np.unique(hierarchy.depth).tolist()
    groups |= {_depth_name(level): counted & (hierarchy.depth == level) for level in levels}
    return {group: tuple(np.bincount(bins[mask], minlength=RECALL_BINS).tolist()) for group, mask in groups.items()}


def _band_name(band: str) -> str:
    return f"{band} training rows"


def _depth_name(level: int) -> str:
    return f"depth {level}"


# --- one group -----------------------------------------------------------------------------------------------------


def _summarize(
    truth: NDArray[np.bool_],
    probs: NDArray[Any],
    threshold: float,
    mask: NDArray[np.bool_],
    known: NDArray[np.bool_] | None,
) -> Summary:
    if not mask.any():
        return Summary(0.0, 0.0, 0.0, 0.0, 0.0, nodes=0, nodes_predicted=0, nodes_found=0)
    if not mask.all():
        truth, probs, known = truth[:, mask], probs[:, mask], None if known is None else known[:, mask]
    scores = node_scores(truth, probs >= threshold, known)
    cells = truth.size if known is None else int(np.count_nonzero(known))
    hits, predicted, positives = (int(v.sum()) for v in (scores.true_positives, scores.predicted, scores.support))
    return Summary(
        f1=float(scores.f1.mean()),
        precision=float(scores.precision.mean()),
        recall=float(scores.recall.mean()),
        bin_ap=binary_average_precision(hits, predicted, positives, cells),
        ap=average_precision(truth, probs, known),
        nodes=truth.shape[1],
        nodes_predicted=int(np.count_nonzero(scores.predicted)),
        nodes_found=int(np.count_nonzero(scores.true_positives)),
    )


def _check(Y: Any, probs: Any, threshold: float) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    if not isinstance(threshold, Real) or np.isnan(threshold):
        raise ArgumentError(f"the threshold must be a number, got {threshold!r}")
    return as_truth_and_probs(Y, probs)
