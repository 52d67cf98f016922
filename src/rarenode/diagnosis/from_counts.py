"""A diagnosis without probabilities, for trainings of which only the nodes' counts were kept."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rarenode.diagnosis.node_diagnosis import NodeDiagnosis
from rarenode.diagnosis.reasons import Reason, states_of
from rarenode.hierarchy import Hierarchy
from rarenode.metrics import NodeScores
from rarenode.thresholds.thresholds import Thresholds


def diagnose_counts(
    hierarchy: Hierarchy,
    scores: NodeScores,
    thresholds: Thresholds,
    training_rows: NDArray[np.int64],
    scored: NDArray[np.bool_],
) -> NodeDiagnosis:
    """How each node fares. Of the reasons only ``no_training_rows`` can be known; other missed nodes have none."""
    nodes = len(hierarchy)
    state = states_of(scores, scored)
    untaught = (state == "missed") & (training_rows == 0)
    reasons: tuple[tuple[Reason, ...], ...] = tuple(
        ("no_training_rows",) if applies else () for applies in untaught.tolist()
    )
    zeros, unknown = np.zeros(nodes, dtype=np.int64), np.full(nodes, np.nan)
    return NodeDiagnosis(
        hierarchy=hierarchy,
        all_rows=0,
        rule=thresholds.rule,
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
        voice_rows=zeros,
        voice_all_rows=zeros,
    )
