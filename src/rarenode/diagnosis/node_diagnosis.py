"""`NodeDiagnosis`: the state and scores of each node, and for missed nodes evidence, reasons and an explanation.

Names of nodes come from users: in explanations, characters that cannot be shown become blanks and long names are cut.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from rarenode._io.text import printable, storable
from rarenode.config.choices import Rule
from rarenode.diagnosis.reasons import UNLIKELY, Reason
from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy
from rarenode.metrics import NodeScores

if TYPE_CHECKING:
    import polars

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_CHARACTERS = 80
DIGITS = 3
ALL_DIGITS = 17
"""Enough to distinguish any two floats."""


@dataclass(frozen=True, eq=False)
class NodeDiagnosis:
    """What `diagnose` returns. Arrays have one value for each node, in column order.

    Evidence (from ``best_rank`` on) is about missed nodes; for others it is 0, -1 for a column, or NaN.
    """

    hierarchy: Hierarchy
    known_rows: Ints
    """The number of rows of which it is known whether they have the node; all else is about these rows."""
    rule: Rule | None
    """How predictions were made coherent; None: not at all."""
    promise: str
    """What the thresholds promise, such as ``precision:0.5``; empty if nothing."""
    state: NDArray[np.str_]
    """One of `rarenode.diagnosis.STATES` each."""
    scored: NDArray[np.bool_]
    training_rows: Ints
    """The node's number of positives among the training rows."""
    scores: NodeScores
    """Of the predictions."""
    thresholds: Floats
    """Infinity for a node that is never predicted."""
    uncertainty: Floats
    """The mean over the node's positives and the rows where it is predicted; NaN if unknown."""
    reasons: tuple[tuple[Reason, ...], ...]
    """All that apply, in order of precedence; empty unless the node is missed."""

    best_rank: Ints
    """How many rows have at least the highest probability of a positive."""
    rank_chance: Floats
    """An upper bound of the probability that a random order ranks the positives as high as the model does."""
    auc: Floats
    """Area under the ROC curve: how often a positive has a higher probability than a negative; a tie counts half."""
    cut_prob: Floats
    """The threshold with the best F1 on these rows, the highest of equal ones. A hint: it is fitted to the labels."""
    cut_next: Floats
    """The node's highest probability in any row that is below ``cut_prob``; -1 if there is none."""
    cut_rank: Ints
    """How many rows have at least ``cut_prob``."""
    cut_hits: Ints
    """How many of them are positives."""
    blocked_rows: Ints
    """Positives in which the node reaches its threshold and is dropped, as an ancestor does not reach its own."""
    blocked_by: Ints
    """The column of the ancestor that is below its threshold in most of these rows."""
    confused_rows: Ints
    """Positives in which the sibling ``confused_with`` is a false positive."""
    confused_with: Ints
    """The column of the sibling that is a false positive in most positives."""
    member_rows: Ints
    """Positives in which a single member of the model, or the forest, reaches the node's threshold."""
    member_all_rows: Ints
    """All rows in which a single member does; 0 where none is a positive."""

    @property
    def reason(self) -> tuple[Reason | Literal[""], ...]:
        """The first reason of each node; empty unless it is missed."""
        return tuple(some[0] if some else "" for some in self.reasons)

    def explain(self, column: int) -> str:
        """Why the node of a column is missed, with the evidence for its first reason; empty unless it is missed.

        Raises:
            ArgumentError: there is no such column.
        """
        place = operator.index(column)
        if not 0 <= place < len(self.hierarchy):
            raise ArgumentError(f"there is no column {place}; columns are from 0 to {len(self.hierarchy) - 1}")
        return explain(self.reasons[place][0], self._evidence(place)) if self.reasons[place] else ""

    def to_frame(self) -> polars.DataFrame:
        """A data frame with one row for each node; other nodes are given by name, and missing values are null."""
        import polars  # noqa: PLC0415 (slow to import, and it replaces the handler of Ctrl-C)

        nodes = len(self.hierarchy)
        texts = ("node", "state", "reason", "explanation", "also", "blocked_by", "confused_with")
        # polars cannot infer a type where all values are null or there are no nodes.
        types = dict.fromkeys(texts, polars.String()) | dict.fromkeys(_REALS, polars.Float64())
        return polars.DataFrame(
            {
                "node": [storable(name) for name in self.hierarchy.nodes],
                "depth": self.hierarchy.depth,
                "state": self.state.tolist(),
                "training_rows": self.training_rows,
                "rows": self.scores.support,
                "decided": self.scores.predicted,
                "found": self.scores.true_positives,
                "precision": self.scores.precision,
                "recall": self.scores.recall,
                "f1": self.scores.f1,
                "threshold": _or_null(self.thresholds),
                "uncertainty": _or_null(self.uncertainty),
                "reason": self.reason,
                "explanation": [self.explain(column) for column in range(nodes)],
                "also": ["; ".join(some[1:]) for some in self.reasons],
                "best_rank": self.best_rank,
                "auc": _or_null(self.auc),
                "cut": _or_null(self.cut_prob),
                "decided_at_cut": self.cut_rank,
                "found_at_cut": self.cut_hits,
                "blocked_by": [storable(self._name(column)) or None for column in self.blocked_by.tolist()],
                "confused_with": [storable(self._name(column)) or None for column in self.confused_with.tolist()],
                "member_rows": self.member_rows,
            },
            schema_overrides=types,
        )

    def _name(self, column: int) -> str:
        """The name of a column; empty for -1, as no name of a node is."""
        return "" if column < 0 else self.hierarchy.nodes[column]

    def _evidence(self, column: int) -> Evidence:
        return Evidence(
            rows=int(self.scores.support[column]),
            all_rows=int(self.known_rows[column]),
            threshold=float(self.thresholds[column]),
            promise=self.promise,
            drops_orphans=self.rule == "drop_orphans",
            best_rank=int(self.best_rank[column]),
            rank_chance=float(self.rank_chance[column]),
            auc=float(self.auc[column]),
            cut_prob=float(self.cut_prob[column]),
            cut_next=float(self.cut_next[column]),
            cut_rank=int(self.cut_rank[column]),
            cut_hits=int(self.cut_hits[column]),
            blocked_rows=int(self.blocked_rows[column]),
            blocked_by=self._name(int(self.blocked_by[column])),
            member_rows=int(self.member_rows[column]),
            member_all_rows=int(self.member_all_rows[column]),
            confused_rows=int(self.confused_rows[column]),
            confused_with=self._name(int(self.confused_with[column])),
        )


_REALS = ("threshold", "uncertainty", "auc", "cut")


def _or_null(values: Floats) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values.tolist()]


# --- explanations: one sentence for each reason --------------------------------------------------------------------


@dataclass(frozen=True)
class Evidence:
    """The evidence about one missed node; see `NodeDiagnosis` for the fields of the same names."""

    rows: int
    """Its number of positives."""
    all_rows: int
    threshold: float
    promise: str
    drops_orphans: bool
    best_rank: int
    rank_chance: float
    auc: float
    cut_prob: float
    cut_next: float
    cut_rank: int
    cut_hits: int
    blocked_rows: int
    blocked_by: str
    member_rows: int
    member_all_rows: int
    confused_rows: int
    confused_with: str


def explain(reason: Reason, evidence: Evidence) -> str:
    """The sentence for a reason that applies."""
    return _SENTENCES[reason](evidence)


def _no_training_rows(e: Evidence) -> str:
    have = "1 row here has" if e.rows == 1 else f"{e.rows:,} rows here have"
    return f"No training rows: {have} this label, and none of the training rows."


def _no_guarantee(e: Evidence) -> str:
    if e.promise.startswith("recall"):
        why = f"too few held-out rows have it for {e.promise}, or the model gives too many of them a probability of 0"
    else:
        why = f"held-out rows do not prove {e.promise} for its band, nodes that are about as rare"
    return f"No guarantee: {why}, so it is never predicted."


def _blocked(e: Evidence) -> str:
    return (
        f"Blocked by {short_name(e.blocked_by)}: in {_share(e.blocked_rows, e.rows)} it reaches its threshold of "
        f"{e.threshold:.{DIGITS}g} but is dropped, most often because that ancestor is below its own threshold."
    )


def _hidden(e: Evidence) -> str:
    if e.cut_hits > 1:
        ranked = f"{e.cut_hits:,} positives among the first {e.cut_rank:,} of {e.all_rows:,} rows"
    else:
        ranked = f"a positive {ordinal(e.cut_rank)} of {e.all_rows:,} rows"
    others = e.cut_rank - e.cut_hits
    false = f"{others:,} false positive{'' if others == 1 else 's'}" if others else "no false positives"
    where = ", in rows where its ancestors are predicted" if e.drops_orphans else ""
    return (
        f"Hidden by the threshold: the model ranks {ranked}; a threshold of {_between(e.cut_next, e.cut_prob)}"
        f"{_instead(e)} finds {_share(e.cut_hits, e.rows)}, with {false}{where}."
    )


def _disagree(e: Evidence) -> str:
    others = e.member_all_rows - e.member_rows
    return (
        f"The members disagree: in {_share(e.member_rows, e.rows)}, and in {others:,} other row"
        f"{'' if others == 1 else 's'}, a single member or the forest reaches the threshold of "
        f"{e.threshold:.{DIGITS}g}; the combined probability does not."
    )


def _confused(e: Evidence) -> str:
    where = _share(e.confused_rows, e.rows)
    return f"Confused with {short_name(e.confused_with)}, which is predicted instead in {where}."


def _too_few(e: Evidence) -> str:
    best = "its only positive" if e.rows == 1 else f"the best of its {e.rows:,} positives"
    return (
        f"Too few rows to tell: {best} ranks {ordinal(e.best_rank)} of {e.all_rows:,} rows; a random order does as "
        f"well with a probability of {e.rank_chance:.{DIGITS}g}, and with so few rows no ranking would be evidence "
        f"({UNLIKELY:g} or less)."
    )


def _not_separated(e: Evidence) -> str:
    best = "its only positive" if e.rows == 1 else f"the best of its {e.rows:,} positives"
    place = f"Not separated: {best} ranks {ordinal(e.best_rank)} of {e.all_rows:,} rows"
    if math.isnan(e.auc):
        return f"{place}, and there are no negatives to compare with."
    rank = "it ranks" if e.rows == 1 else "they rank"
    chance = f"a random order does as well with a probability of {e.rank_chance:.{DIGITS}g}"
    return (
        f"{place}, and {rank} above {100 * e.auc:.0f} % of the negatives; {chance} "
        f"(evidence would be {UNLIKELY:g} or less)."
    )


_SENTENCES: Mapping[Reason, Callable[[Evidence], str]] = MappingProxyType(
    {
        "no_training_rows": _no_training_rows,
        "no_guarantee": _no_guarantee,
        "blocked_by_ancestor": _blocked,
        "hidden_by_threshold": _hidden,
        "members_disagree": _disagree,
        "confused_with_sibling": _confused,
        "too_few_rows": _too_few,
        "not_separated": _not_separated,
    }
)


def short_name(name: str) -> str:
    """A name in quotes, safe to show, of at most `MOST_CHARACTERS` characters within them.

    >>> short_name("sea" + chr(10) + "star")
    "'sea star'"
    """
    cut = name if len(name) <= MOST_CHARACTERS else name[: MOST_CHARACTERS - 1] + "…"
    return f"'{printable(cut)}'"


def ordinal(number: int) -> str:
    """A place in a ranking.

    >>> [ordinal(n) for n in (1, 2, 3, 11, 1281)]
    ['1st', '2nd', '3rd', '11th', '1,281st']
    """
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def _share(some: int, positives: int) -> str:
    return "its only positive" if positives == 1 else f"{some:,} of its {positives:,} positives"


def _between(below: float, highest: float) -> str:
    """The shortest number above ``below`` and at most ``highest``: as a threshold it is equivalent to ``highest``."""
    for digits in range(2, ALL_DIGITS):
        number = float(Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(highest))
        if number > below:
            return f"{number:.{digits}g}"
    return repr(highest)


def _instead(e: Evidence) -> str:
    """The current threshold, in as few digits as still show that it is above the cut."""
    if math.isinf(e.threshold):
        return " (now it is never predicted)"
    texts = (f"{e.threshold:.{digits}g}" for digits in range(DIGITS, ALL_DIGITS))
    return f" instead of {next((text for text in texts if float(text) > e.cut_prob), repr(e.threshold))}"
