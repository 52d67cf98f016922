"""`diagnose`: from labels and probabilities to the state of each node, and the reasons why nodes are missed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarenode._io.text import counted
from rarenode.diagnosis.evidence import (
    Positives,
    blocking_ancestors,
    confused_siblings,
    mean_uncertainty,
    member_predictions,
)
from rarenode.diagnosis.node_diagnosis import NodeDiagnosis
from rarenode.diagnosis.ranks import are_too_few, rank_positives
from rarenode.diagnosis.reasons import UNLIKELY, Reason, reasons_that_apply, states_of
from rarenode.errors import ArgumentError, LabelError
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.labels import as_array, as_known, as_label_matrix
from rarenode.metrics import NodeScores, node_scores
from rarenode.thresholds.probabilities import as_probabilities
from rarenode.thresholds.thresholds import Thresholds

Bools = NDArray[np.bool_]
MOST_ROWS = 2**53
"""Floats represent all whole numbers up to this one."""


def diagnose(
    Y: Any,
    probs: Any,
    hierarchy: Hierarchy,
    thresholds: Thresholds,
    training_positives: ArrayLike,
    *,
    scored: ArrayLike | None = None,
    highest_member_probs: Any = None,
    uncertainty: Any = None,
    known: Any = None,
) -> NodeDiagnosis:
    """Determine for each node whether it is found, and for each missed node why it may be missed.

    Args:
        Y: labels (rows, nodes), 0 or 1, of rows that the model was not trained on.
        probs: the model's probabilities (rows, nodes).
        hierarchy: its node order is the order of the columns.
        thresholds: which turn the probabilities into predictions.
        training_positives: for each node, its number of positives among the training rows.
        scored: boolean mask of the nodes that count; None counts all.
        highest_member_probs: (rows, nodes), the highest probability of any single member, or the forest; None for a
            model with one member.
        uncertainty: (rows, nodes), the uncertainty of the model; None if unknown.
        known: (rows, nodes), boolean: where labels are known; None: everywhere. A row counts nowhere for a node that is
            unknown in it.

    Raises:
        ArgumentError: an argument is invalid; the message says which, and where.
        LabelError: the labels are not 0 or 1, or do not have the shape of the probabilities.

    >>> pets = Hierarchy.from_edges([("pet", "cat"), ("pet", "dog")])
    >>> Y, probs = [[1, 1, 0], [1, 0, 1]], [[0.9, 0.2, 0.7], [0.9, 0.1, 0.8]]
    >>> result = diagnose(Y, probs, pets, Thresholds(np.full(3, 0.5)), training_positives=[9, 4, 5])
    >>> result.state.tolist()
    ['found', 'missed', 'found']
    >>> result.explain(1)
    "Confused with 'dog', which is predicted instead in its only positive."
    """
    labels = as_label_matrix(Y, hierarchy.nodes)
    probabilities = as_probabilities(probs)
    if labels.shape != probabilities.shape:
        raise LabelError(f"labels {labels.shape} and probabilities {probabilities.shape} must have the same shape")
    predicted = thresholds.decide(probabilities, hierarchy)
    cells = as_known(known, labels.shape)
    if cells is not None:
        labels, predicted = labels & cells, predicted & cells
    known_rows = np.full(len(hierarchy), len(labels)) if cells is None else np.count_nonzero(cells, axis=0)
    training_rows = _as_counts(training_positives, len(hierarchy))
    mask = _as_mask(scored, len(hierarchy))
    highest = None if highest_member_probs is None else _as_member_probs(highest_member_probs, labels.shape)
    unsure = None if uncertainty is None else _as_uncertainty(uncertainty, labels.shape)

    scores = node_scores(labels, predicted)
    state = states_of(scores, mask)
    missed = state == "missed"
    positives = Positives.of(labels, missed)
    # A missed node is predicted in none of its positives: where it reaches its threshold, it is blocked.
    blocked = positives.values(probabilities) >= thresholds.values[positives.nodes]
    blocked_rows = positives.count(blocked, len(hierarchy))
    members = member_predictions(highest, thresholds.values, positives, cells)
    ranks = rank_positives(probabilities, positives.nodes, positives.rows, cells)
    confused_rows, confused_with = confused_siblings(labels, predicted, hierarchy, positives)
    return NodeDiagnosis(
        hierarchy=hierarchy,
        known_rows=known_rows,
        rule=thresholds.rule,
        promise=thresholds.promise,
        state=state,
        scored=mask,
        training_rows=training_rows,
        scores=scores,
        thresholds=thresholds.values,
        uncertainty=np.full(len(hierarchy), np.nan) if unsure is None else mean_uncertainty(unsure, labels, predicted),
        reasons=reasons_that_apply(
            missed,
            training_rows=training_rows,
            given_up=np.isinf(thresholds.values) & bool(thresholds.promise),
            blocked_rows=blocked_rows,
            rank_chance=ranks.rank_chance,
            member_chance=members.chance,
            confused_rows=confused_rows,
            rows=scores.support,
            too_few=missed & are_too_few(known_rows, np.where(missed, scores.support, 0), UNLIKELY),
        ),
        best_rank=ranks.best_rank,
        rank_chance=ranks.rank_chance,
        auc=ranks.auc,
        cut_prob=ranks.cut_prob,
        cut_next=ranks.cut_next,
        cut_rank=ranks.cut_rank,
        cut_hits=ranks.cut_hits,
        blocked_rows=blocked_rows,
        blocked_by=blocking_ancestors(probabilities, thresholds.values, hierarchy, positives.where(blocked)),
        confused_rows=confused_rows,
        confused_with=confused_with,
        member_rows=members.positives,
        member_all_rows=members.rows,
    )


def diagnose_counts(
    hierarchy: Hierarchy,
    scores: NodeScores,
    thresholds: Thresholds,
    training_rows: NDArray[np.int64],
    scored: NDArray[np.bool_],
) -> NodeDiagnosis:
    """A diagnosis without probabilities, for runs of which only the counts of each node were kept.

    Of the reasons only ``no_training_rows`` can be known; other missed nodes have none.
    """
    nodes = len(hierarchy)
    state = states_of(scores, scored)
    without_training = (state == "missed") & (training_rows == 0)
    reasons: tuple[tuple[Reason, ...], ...] = tuple(
        ("no_training_rows",) if applies else () for applies in without_training.tolist()
    )
    zeros, unknown = np.zeros(nodes, dtype=np.int64), np.full(nodes, np.nan)
    return NodeDiagnosis(
        hierarchy=hierarchy,
        known_rows=zeros,
        rule=thresholds.rule,
        promise=thresholds.promise,
        state=state,
        scored=scored,
        training_rows=training_rows,
        scores=scores,
        thresholds=thresholds.values,
        uncertainty=unknown,
        reasons=reasons,
        best_rank=zeros,
        rank_chance=unknown,
        auc=unknown,
        cut_prob=unknown,
        cut_next=unknown,
        cut_rank=zeros,
        cut_hits=zeros,
        blocked_rows=zeros,
        blocked_by=zeros - 1,
        confused_rows=zeros,
        confused_with=zeros - 1,
        member_rows=zeros,
        member_all_rows=zeros,
    )


# --- checks --------------------------------------------------------------------------------------------------------


def _as_counts(training_positives: ArrayLike, nodes: int) -> NDArray[np.int64]:
    counts = as_array(training_positives)
    if counts.shape != (nodes,) or counts.dtype.kind not in "iuf":
        raise ArgumentError(
            f"training_positives must have one count for each of {counted(nodes, 'node')}; "
            f"got {counts.dtype} {counts.shape}"
        )
    wrong = ~((counts >= 0) & (counts <= MOST_ROWS) & (counts == np.floor(counts)))
    if wrong.any():
        node = int(np.argmax(wrong))
        raise ArgumentError(f"training_positives, column {node}: a count must be a whole number, got {counts[node]}")
    return counts.astype(np.int64)


def _as_mask(scored: ArrayLike | None, nodes: int) -> Bools:
    mask = np.ones(nodes, dtype=np.bool_) if scored is None else as_array(scored).copy()
    if mask.dtype != np.bool_ or mask.shape != (nodes,):
        raise ArgumentError(
            f"scored must be a boolean mask of {counted(nodes, 'node')}; got {mask.dtype} of the shape {mask.shape}"
        )
    return mask


def _as_member_probs(highest_member_probs: Any, shape: tuple[int, ...]) -> NDArray[np.floating[Any]]:
    try:
        highest = as_probabilities(highest_member_probs)
    except ArgumentError as error:
        raise ArgumentError(f"highest_member_probs: {error}") from None
    if highest.shape != shape:
        raise ArgumentError(f"highest_member_probs {highest.shape} and labels {shape} must have the same shape")
    return highest


def _as_uncertainty(uncertainty: Any, shape: tuple[int, ...]) -> NDArray[np.floating[Any]]:
    values = as_array(uncertainty)
    if values.shape != shape or values.dtype.kind not in "iuf":
        raise ArgumentError(f"uncertainty must be numbers of the shape {shape}; got {values.dtype} {values.shape}")
    # Minimum and maximum need no temporary array, and are NaN if any value is.
    if values.size and not (np.isfinite(values.min()) and np.isfinite(values.max())):
        row, node = np.argwhere(~np.isfinite(values))[0].tolist()
        raise ArgumentError(f"row {row}, column {node}: an uncertainty must be finite, got {values[row, node]}")
    return values
