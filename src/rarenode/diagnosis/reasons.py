"""The states of a node, and the reasons why one is missed.

Several reasons may hold for a node. They are ordered so that the first is the one to act on: without training rows
nothing else matters; what an ancestor blocks, no change at the node itself can find; a threshold is cheaper to change
than a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rarenode.diagnosis.lists import Ints
from rarenode.metrics import NodeScores

State = Literal["found", "missed", "no_rows", "not_scored"]
STATES: tuple[State, ...] = ("found", "missed", "no_rows", "not_scored")
"""``found``: decided in a row that carries it; ``missed``: carried, and decided in no such row; ``no_rows``: carried by
no row; ``not_scored``: left out of scoring, whatever else holds."""

Reason = Literal[
    "no_training_rows",
    "blocked_by_ancestor",
    "hidden_by_threshold",
    "members_disagree",
    "confused_with_sibling",
    "not_told_apart",
]
REASONS: Mapping[Reason, str] = MappingProxyType(
    {
        "no_training_rows": "No row that the model was trained on carries the node, so nothing could be learnt of it.",
        "blocked_by_ancestor": (
            "In a row that carries it the node reaches its own threshold, but an ancestor does not reach its own, and "
            "the node is dropped with it."
        ),
        "hidden_by_threshold": (
            "The model ranks rows that carry the node further up than chance would, but its threshold is above them "
            "all; a lower one finds some of them."
        ),
        "members_disagree": (
            "In rows that carry the node one member of the model, or its forest, reaches the threshold by itself, more "
            "often than chance would; together they do not decide it."
        ),
        "confused_with_sibling": (
            "In at least half of the rows that carry the node one and the same sibling is decided that they do not "
            "carry."
        ),
        "not_told_apart": (
            "None of the other reasons: the model does not tell the rows that carry the node from the others."
        ),
    }
)
"""What each reason means, in order of precedence."""

NAMES: Mapping[Reason, str] = MappingProxyType(
    {
        "no_training_rows": "no training rows",
        "blocked_by_ancestor": "blocked by an ancestor",
        "hidden_by_threshold": "hidden by the threshold",
        "members_disagree": "members disagree",
        "confused_with_sibling": "confused with a sibling",
        "not_told_apart": "not told apart",
    }
)
"""What each reason is called."""

UNLIKELY = 0.01
"""Ranks that a random order reaches at most this often are taken as learnt. Each missed node is a try: of a thousand
that the model knows nothing of, at most about ten are named by luck. With the usual 0.05 it would be fifty, as many as
are truly hidden; much below 0.01 a single row among a few hundred could not count even if it came first."""


def states_of(scores: NodeScores, scored: NDArray[np.bool_]) -> NDArray[np.str_]:
    """The state of each node."""
    holds = {"not_scored": ~scored, "no_rows": scores.support == 0, "found": scores.true_positives > 0}
    codes = np.select(list(holds.values()), [STATES.index(state) for state in holds], STATES.index("missed"))
    states: NDArray[np.str_] = np.array(STATES)[codes]
    return states


def reasons_that_apply(
    missed: NDArray[np.bool_],
    *,
    training_rows: Ints,
    blocked_rows: Ints,
    rank_chance: NDArray[np.float64],
    voice_chance: NDArray[np.float64],
    confused_rows: Ints,
    rows: Ints,
) -> tuple[tuple[Reason, ...], ...]:
    """For each node its reasons, the first in precedence first; none where it is not missed."""
    applies: dict[Reason, NDArray[np.bool_]] = {
        "no_training_rows": training_rows == 0,
        "blocked_by_ancestor": blocked_rows > 0,
        # What is blocked has reached its threshold, which then hides nothing.
        "hidden_by_threshold": (rank_chance <= UNLIKELY) & (blocked_rows == 0),
        "members_disagree": voice_chance <= UNLIKELY,
        "confused_with_sibling": 2 * confused_rows >= rows,
    }
    reasons: list[tuple[Reason, ...]] = [()] * len(missed)
    for node in np.flatnonzero(missed).tolist():
        some = tuple(reason for reason in REASONS if reason in applies and applies[reason][node])
        reasons[node] = some or ("not_told_apart",)
    return tuple(reasons)
