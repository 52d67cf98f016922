"""`diagnose`: from labels and probabilities to what became of each node."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarenode.diagnosis.blocking import find_blocking
from rarenode.diagnosis.carried import carried_cells
from rarenode.diagnosis.confusion import find_confusion
from rarenode.diagnosis.mean_uncertainty import mean_uncertainty
from rarenode.diagnosis.node_diagnosis import NodeDiagnosis
from rarenode.diagnosis.ranks import rank_rows
from rarenode.diagnosis.reasons import reasons_that_apply, states_of
from rarenode.diagnosis.voices import find_voices
from rarenode.errors import ArgumentError, LabelError
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.labels import as_array, as_label_matrix
from rarenode.metrics import node_scores
from rarenode.thresholds.probabilities import as_probabilities
from rarenode.thresholds.thresholds import Thresholds

Bools = NDArray[np.bool_]
MOST_ROWS = 2**53
"""Beyond this a float, which a count may come as, has no room for 1 more."""


def diagnose(
    Y: Any,
    probs: Any,
    hierarchy: Hierarchy,
    thresholds: Thresholds,
    training_positives: ArrayLike,
    *,
    scored: ArrayLike | None = None,
    highest_voice: Any = None,
    uncertainty: Any = None,
) -> NodeDiagnosis:
    """Say of each node whether it is found, and of a missed one why it may be missed.

    Args:
        Y: labels (rows, nodes), 0 or 1, of rows that the model was not trained on.
        probs: the model's probabilities (rows, nodes).
        hierarchy: its node order is the order of the columns.
        thresholds: what decides.
        training_positives: for each node, how many of the rows that the model was trained on carry it.
        scored: boolean mask of the nodes that count; None counts all.
        highest_voice: (rows, nodes), the highest probability that a member, or the forest, gives by itself; None if
            the model has a single voice.
        uncertainty: (rows, nodes), how unsure the model is; None if that is unknown.

    Raises:
        ArgumentError: an argument is not what it should be; the message says which, and where.
        LabelError: the labels are not 0 or 1, or not of the shape of the probabilities.

    >>> pets = Hierarchy.from_edges([("pet", "cat"), ("pet", "dog")])
    >>> Y, probs = [[1, 1, 0], [1, 0, 1]], [[0.9, 0.2, 0.7], [0.9, 0.1, 0.8]]
    >>> result = diagnose(Y, probs, pets, Thresholds(np.full(3, 0.5)), training_positives=[9, 4, 5])
    >>> result.state.tolist()
    ['found', 'missed', 'found']
    >>> result.explain(1)
    "Confused with 'dog': it is decided instead in the only row that carries the node."
    """
    labels = as_label_matrix(as_array(Y), hierarchy.nodes)
    probabilities = as_probabilities(probs)
    if labels.shape != probabilities.shape:
        raise LabelError(f"labels {labels.shape} and probabilities {probabilities.shape} must have the same shape")
    decided = thresholds.decide(probabilities, hierarchy)
    training_rows = _as_counts(training_positives, len(hierarchy))
    counts = _as_mask(scored, len(hierarchy))
    voices = None if highest_voice is None else _as_voices(highest_voice, labels.shape)
    unsure = None if uncertainty is None else _as_uncertainty(uncertainty, labels.shape)

    scores = node_scores(labels, decided)
    state = states_of(scores, counts)
    missed = state == "missed"
    cells = carried_cells(labels, missed)
    at_least = thresholds.values[cells.nodes]
    # Nothing of a missed node is decided where it is carried: what passes there is blocked.
    passes = cells.values(probabilities) >= at_least
    blocked_rows = cells.count(passes, len(hierarchy))
    heard = find_voices(voices, thresholds.values, cells)
    ranks = rank_rows(probabilities, cells)
    confused_rows, confused_with = find_confusion(labels, decided, hierarchy, cells)
    return NodeDiagnosis(
        hierarchy=hierarchy,
        all_rows=len(labels),
        rule=thresholds.rule,
        state=state,
        scored=counts,
        training_rows=training_rows,
        scores=scores,
        thresholds=thresholds.values,
        uncertainty=np.full(len(hierarchy), np.nan) if unsure is None else mean_uncertainty(unsure, labels, decided),
        reasons=reasons_that_apply(
            missed,
            training_rows=training_rows,
            blocked_rows=blocked_rows,
            rank_chance=ranks.rank_chance,
            voice_chance=heard.chance,
            confused_rows=confused_rows,
            rows=scores.support,
        ),
        best_rank=ranks.best_rank,
        rank_chance=ranks.rank_chance,
        auc=ranks.auc,
        cut_prob=ranks.cut_prob,
        cut_next=ranks.cut_next,
        cut_rank=ranks.cut_rank,
        cut_hits=ranks.cut_hits,
        blocked_rows=blocked_rows,
        blocked_by=find_blocking(probabilities, thresholds.values, hierarchy, cells.where(passes)),
        confused_rows=confused_rows,
        confused_with=confused_with,
        voice_rows=heard.carried_rows,
        voice_all_rows=heard.all_rows,
    )


# --- what may be given ---------------------------------------------------------------------------------------------


def _as_counts(training_positives: ArrayLike, nodes: int) -> NDArray[np.int64]:
    counts = as_array(training_positives)
    if counts.shape != (nodes,) or counts.dtype.kind not in "iuf":
        raise ArgumentError(
            f"training_positives must have one count for each of {nodes} nodes; got {counts.dtype} {counts.shape}"
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
            f"scored must be a boolean mask of {nodes} nodes; got {mask.dtype} of the shape {mask.shape}"
        )
    return mask


def _as_voices(highest_voice: Any, shape: tuple[int, ...]) -> NDArray[np.floating[Any]]:
    try:
        voices = as_probabilities(highest_voice)
    except ArgumentError as error:
        raise ArgumentError(f"highest_voice: {error}") from None
    if voices.shape != shape:
        raise ArgumentError(f"highest_voice {voices.shape} and labels {shape} must have the same shape")
    return voices


def _as_uncertainty(uncertainty: Any, shape: tuple[int, ...]) -> NDArray[np.floating[Any]]:
    values = as_array(uncertainty)
    if values.shape != shape or values.dtype.kind not in "iuf":
        raise ArgumentError(f"uncertainty must be numbers of the shape {shape}; got {values.dtype} {values.shape}")
    # The smallest and the largest need no array of their own, and are NaN where one is.
    if values.size and not (np.isfinite(values.min()) and np.isfinite(values.max())):
        row, node = np.argwhere(~np.isfinite(values))[0].tolist()
        raise ArgumentError(f"row {row}, column {node}: an uncertainty must be finite, got {values[row, node]}")
    return values
