"""`NodeDiagnosis`: how each node fares, and for each missed one the evidence and the reasons."""

from __future__ import annotations

import operator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from rarenode._io.text import storable
from rarenode.diagnosis.explanation import Evidence, explain
from rarenode.diagnosis.reasons import Reason
from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy
from rarenode.metrics import NodeScores
from rarenode.thresholds.names import Rule

if TYPE_CHECKING:
    import polars

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class NodeDiagnosis:
    """Arrays have one value for each node, in column order. What `diagnose` returns.

    Evidence (from ``best_rank`` on) is there for missed nodes; for others it is 0, -1 for a column, or NaN.
    """

    hierarchy: Hierarchy
    all_rows: int
    """Rows of the labels."""
    rule: Rule
    """How decisions were made coherent."""
    state: NDArray[np.str_]
    """One of `rarenode.diagnosis.STATES` each."""
    scored: NDArray[np.bool_]
    training_rows: Ints
    """Rows that carry the node among those the model was trained on."""
    scores: NodeScores
    """Of the decided nodes."""
    thresholds: Floats
    """Infinity for never."""
    uncertainty: Floats
    """The mean over the rows where the node is carried or decided; NaN where it is unknown."""
    reasons: tuple[tuple[Reason, ...], ...]
    """All that apply, in order of precedence; empty unless the node is missed."""

    best_rank: Ints
    """How many rows have at least the highest probability of the node in a row that carries it."""
    rank_chance: Floats
    """At most how likely a random order of the rows has those that carry the node as far up as the model."""
    auc: Floats
    """How often a row that carries the node has a higher probability than one that does not; a tie is half."""
    cut_prob: Floats
    """The threshold with the best F1 on these rows, the highest of equal ones: a hint, as it comes from the labels."""
    cut_next: Floats
    """The node's highest probability in any row that is below ``cut_prob``; -1 if all have at least that."""
    cut_rank: Ints
    """Rows that have at least ``cut_prob``."""
    cut_hits: Ints
    """Those of them that carry the node."""
    blocked_rows: Ints
    """Rows that carry the node, where it reaches its threshold, and is not decided as an ancestor is not."""
    blocked_by: Ints
    """The column of the ancestor that is below its threshold in most of these rows."""
    confused_rows: Ints
    """Rows that carry the node, where the sibling ``confused_with`` is decided and not carried."""
    confused_with: Ints
    """The column of the sibling for which these rows are most."""
    voice_rows: Ints
    """Rows that carry the node, where a single voice of the model reaches the node's threshold."""
    voice_all_rows: Ints
    """All such rows, whether they carry it or not; counted where some do."""

    @property
    def reason(self) -> tuple[Reason | Literal[""], ...]:
        """The first reason of each node, or nothing."""
        return tuple(some[0] if some else "" for some in self.reasons)

    def explain(self, column: int) -> str:
        """Why the node of a column is missed, with the evidence for its first reason; nothing if it is not missed.

        Raises:
            ArgumentError: there is no such column.
        """
        place = operator.index(column)
        if not 0 <= place < len(self.hierarchy):
            raise ArgumentError(f"there is no column {place}; columns are from 0 to {len(self.hierarchy) - 1}")
        return explain(self.reasons[place][0], self._evidence(place)) if self.reasons[place] else ""

    def to_frame(self) -> polars.DataFrame:
        """One row for each node, with names in place of columns, and null for what there is not."""
        import polars  # noqa: PLC0415 (slow to import, and it takes Ctrl-C for itself)

        nodes = len(self.hierarchy)
        texts = ("node", "state", "reason", "explanation", "also", "blocked_by", "confused_with")
        # Where all values are null, or there are no nodes, polars could not know.
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
                "voice_rows": self.voice_rows,
            },
            schema_overrides=types,
        )

    def _name(self, column: int) -> str:
        """The name of a column, none for -1; a node's name is never empty."""
        return "" if column < 0 else self.hierarchy.nodes[column]

    def _evidence(self, column: int) -> Evidence:
        return Evidence(
            rows=int(self.scores.support[column]),
            all_rows=self.all_rows,
            threshold=float(self.thresholds[column]),
            drops_orphans=self.rule == "drop_orphans",
            best_rank=int(self.best_rank[column]),
            auc=float(self.auc[column]),
            cut_prob=float(self.cut_prob[column]),
            cut_next=float(self.cut_next[column]),
            cut_rank=int(self.cut_rank[column]),
            cut_hits=int(self.cut_hits[column]),
            blocked_rows=int(self.blocked_rows[column]),
            blocked_by=self._name(int(self.blocked_by[column])),
            voice_rows=int(self.voice_rows[column]),
            voice_all_rows=int(self.voice_all_rows[column]),
            confused_rows=int(self.confused_rows[column]),
            confused_with=self._name(int(self.confused_with[column])),
        )


_REALS = ("threshold", "uncertainty", "auc", "cut")


def _or_null(values: Floats) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values.tolist()]
