"""The states of a node, and the reasons why a node is missed.

Several reasons may apply to a node. They are ordered so that the first is the one to act on: without training rows
nothing else matters; nor does it for a node that is never predicted, as nothing can be promised about it; a node that
an ancestor blocks cannot be found by changing the node alone; a threshold is easier
to change than a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rarenode.metrics import NodeScores

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

State = Literal["found", "missed", "no_rows", "not_scored"]
STATES: tuple[State, ...] = ("found", "missed", "no_rows", "not_scored")
"""``found``: at least one true positive; ``missed``: positives, but no true positive; ``no_rows``: no positives;
``not_scored``: excluded from scoring, whatever else applies."""

Reason = Literal[
    "no_training_rows",
    "no_guarantee",
    "blocked_by_ancestor",
    "hidden_by_threshold",
    "members_disagree",
    "confused_with_sibling",
    "too_few_rows",
    "not_separated",
]
REASONS: Mapping[Reason, str] = MappingProxyType(
    {
        "no_training_rows": "No training row has the node as a label, so nothing could be learnt about it.",
        "no_guarantee": (
            "The thresholds promise a precision or a recall, and held-out rows do not prove it for the node, or for "
            "nodes that are as rare. So it is never predicted."
        ),
        "blocked_by_ancestor": (
            "In one of its positive rows the node reaches its threshold, but an ancestor does not reach its own, and "
            "the node is dropped with it."
        ),
        "hidden_by_threshold": (
            "The model ranks positive rows of the node higher than chance would, but its threshold is above all of "
            "them; a lower one finds some."
        ),
        "members_disagree": (
            "In positive rows of the node a single member of the model, or its forest, reaches the threshold more "
            "often than chance would; the combined probability does not."
        ),
        "confused_with_sibling": (
            "In at least half of the node's positive rows the same sibling is predicted, and wrong."
        ),
        "too_few_rows": (
            "None of the reasons above, and so few rows that not even the best ranking of the node's positive rows "
            "would show that the model has learnt it."
        ),
        "not_separated": (
            "None of the other reasons: the model does not separate the node's positive rows from the others."
        ),
    }
)
"""What each reason means, in order of precedence."""

NAMES: Mapping[Reason, str] = MappingProxyType(
    {
        "no_training_rows": "no training rows",
        "no_guarantee": "no guarantee",
        "blocked_by_ancestor": "blocked by an ancestor",
        "hidden_by_threshold": "hidden by the threshold",
        "members_disagree": "members disagree",
        "confused_with_sibling": "confused with a sibling",
        "too_few_rows": "too few rows to tell",
        "not_separated": "not separated",
    }
)
"""A short name for each reason."""

UNLIKELY = 0.01
"""Significance level: ranks that a random order reaches at most this often are taken as learnt. Each missed node is a
test: of a thousand nodes about which the model knows nothing, at most about ten are reported by chance. At the usual
0.05 it would be fifty, as many as are truly hidden; much below 0.01 a single positive among a few hundred rows could
not be significant even if it ranked first."""


def states_of(scores: NodeScores, scored: Bools) -> NDArray[np.str_]:
    """The state of each node."""
    holds = {"not_scored": ~scored, "no_rows": scores.support == 0, "found": scores.true_positives > 0}
    codes = np.select(list(holds.values()), [STATES.index(state) for state in holds], STATES.index("missed"))
    states: NDArray[np.str_] = np.array(STATES)[codes]
    return states


def reasons_that_apply(
    missed: Bools,
    *,
    training_rows: Ints,
    given_up: Bools,
    blocked_rows: Ints,
    rank_chance: Floats,
    member_chance: Floats,
    confused_rows: Ints,
    rows: Ints,
    too_few: Bools,
) -> tuple[tuple[Reason, ...], ...]:
    """For each node its reasons, in order of precedence; none where it is not missed."""
    applies: dict[Reason, Bools] = {
        "no_training_rows": training_rows == 0,
        "no_guarantee": given_up,
        "blocked_by_ancestor": blocked_rows > 0,
        # A blocked node has reached its threshold, so the threshold does not hide it; nor does a promise.
        "hidden_by_threshold": (rank_chance <= UNLIKELY) & (blocked_rows == 0) & ~given_up,
        "members_disagree": member_chance <= UNLIKELY,
        "confused_with_sibling": 2 * confused_rows >= rows,
    }
    reasons: list[tuple[Reason, ...]] = [()] * len(missed)
    for node in np.flatnonzero(missed).tolist():
        some = tuple(reason for reason in REASONS if reason in applies and applies[reason][node])
        reasons[node] = some or ("too_few_rows" if too_few[node] else "not_separated",)
    return tuple(reasons)
