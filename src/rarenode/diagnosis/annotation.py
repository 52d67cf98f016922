"""`suggest`: which rows and which nodes to annotate next, so that a model learns most from it.

Rows without labels are ranked by how much a label would tell about rare nodes. A node's label is worth its entropy, in
bits, divided by one more than the number of training rows that have the node:

    score(row) = sum over nodes of H(p(node | row)) / (1 + training rows of the node)

Only the 20 nodes of a row that are worth most count. Rows are chosen one after the other. The three nodes that a chosen
row would tell most about are then worth half as much in the rest, so that not all rows are about the same few nodes.

To find rows of a node that needs some, look where it is most probable. A model knows nothing about a node that no
training row has, but its rows have its parents as well, so for such a node look where these are most probable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode.diagnosis.node_diagnosis import NodeDiagnosis
from rarenode.diagnosis.titles import distinct_titles
from rarenode.hierarchy import Hierarchy

NODES_OF_A_ROW = 20
"""Only the nodes of a row that count most are looked at."""
NODES_NAMED = 3
ROWS_NAMED = 3
FEW_ROWS = 5


@dataclass(frozen=True)
class RowToAnnotate:
    """A row whose labels would teach much."""

    name: str
    """Its id, or its number."""
    score: float
    why: str


@dataclass(frozen=True)
class LikelyRow:
    """A row that may have a node."""

    name: str
    """Its id, or its number."""
    probability: float
    """Of the node or, if no training row has it, of its least probable parent."""

    def __str__(self) -> str:
        return f"{self.name} ({self.probability:.2g})"


@dataclass(frozen=True)
class NodeToAnnotate:
    """A node of which more rows are needed."""

    node: str
    title: str
    """With a part of its path, or its id, where other nodes have the same title."""
    training_rows: int
    why: str
    look_in: tuple[LikelyRow, ...] = ()
    """Rows without labels that are most likely to have it, the likeliest first."""


@dataclass(frozen=True)
class Suggestions:
    """What `suggest` returns."""

    judged: int
    """Scored nodes that labelled rows have; 0 if no row has labels."""
    missed: int
    """Those that are never found."""
    nodes: tuple[NodeToAnnotate, ...]
    rows: tuple[RowToAnnotate, ...]
    data: str = ""
    """Which rows this is about, in words; empty if there are none but those of the training."""

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)


def suggest(
    hierarchy: Hierarchy,
    training_rows: NDArray[np.int64],
    scored: NDArray[np.bool_],
    *,
    diagnosis: NodeDiagnosis | None = None,
    probs: NDArray[np.float32] | None = None,
    ids: Sequence[str] | None = None,
    most: int = 10,
) -> Suggestions:
    """Rank nodes by what is known about them, and rows without labels by what their labels would tell.

    Nodes that are missed in labelled rows come first, then those that none of these have and few training rows.

    Args:
        hierarchy: of the model.
        training_rows: (nodes,), how many training rows have each node.
        scored: (nodes,), which nodes count.
        diagnosis: of labelled rows, if there are any.
        probs: (rows, nodes), the model's probabilities for rows without labels, if there are any.
        ids: names of these rows.
        most: how many of each.
    """
    missed, judged = np.zeros((2, len(hierarchy)), dtype=np.bool_)
    support = np.zeros(len(hierarchy), dtype=np.int64)
    if diagnosis is not None:
        support = diagnosis.scores.support
        judged = diagnosis.scored & (support > 0)
        missed = diagnosis.state == "missed"
    wanted = np.flatnonzero(missed | (scored & ~judged & (training_rows < FEW_ROWS)))
    order = wanted[np.lexsort((training_rows[wanted], -support[wanted]))]
    titles = distinct_titles(hierarchy)
    nodes = tuple(
        NodeToAnnotate(
            node=hierarchy.nodes[column],
            title=titles[column],
            training_rows=int(training_rows[column]),
            why=diagnosis.explain(column)
            if diagnosis is not None and missed[column]
            else _rarity(int(training_rows[column])),
            look_in=() if probs is None else _likeliest(hierarchy, training_rows, probs, ids, column),
        )
        for column in order[:most].tolist()
    )
    rows = () if probs is None else _rank_rows(hierarchy, training_rows, scored, probs, ids, most)
    return Suggestions(int(judged.sum()), int(missed.sum()), nodes, rows)


def _rarity(rows: int) -> str:
    return "few training rows" if rows else "no training rows: look where its parents are"


def _likeliest(
    hierarchy: Hierarchy,
    training_rows: NDArray[np.int64],
    probs: NDArray[np.float32],
    ids: Sequence[str] | None,
    node: int,
) -> tuple[LikelyRow, ...]:
    """The rows in which a node is most probable or, where nothing is known about it, its least probable parent."""
    columns = [node]
    while columns and not training_rows[columns].any():
        above = np.isin(hierarchy.edge_children, columns)
        columns = np.unique(hierarchy.edge_parents[above]).tolist()
    if not columns:
        return ()
    score = probs[:, columns].min(axis=1)
    order = np.argsort(-score, kind="stable")[:ROWS_NAMED]
    return tuple(
        LikelyRow(str(row) if ids is None else ids[row], float(score[row])) for row in order.tolist() if score[row] > 0
    )


def _rank_rows(
    hierarchy: Hierarchy,
    training_rows: NDArray[np.int64],
    scored: NDArray[np.bool_],
    probs: NDArray[np.float32],
    ids: Sequence[str] | None,
    most: int,
) -> tuple[RowToAnnotate, ...]:
    if not len(probs):
        return ()
    worth = np.where(scored, 1 / (1 + training_rows), 0.0)
    p = np.clip(probs.astype(np.float64), 1e-12, 1 - 1e-12)
    bits = -(p * np.log2(p) + (1 - p) * np.log2(1 - p)) * worth
    width = min(NODES_OF_A_ROW, bits.shape[1])
    top = np.argpartition(-bits, width - 1, axis=1)[:, :width]
    value = np.take_along_axis(bits, top, axis=1)
    left = np.ones(len(hierarchy))
    titles = distinct_titles(hierarchy)
    chosen = []
    free = np.ones(len(probs), dtype=np.bool_)
    for _ in range(min(most, len(probs))):
        score = np.where(free, (value * left[top]).sum(axis=1), -1.0)
        row = int(score.argmax())
        free[row] = False
        columns = top[row][np.argsort(-value[row] * left[top[row]], kind="stable")][:NODES_NAMED]
        named = ", ".join(f"{titles[column]} {probs[row, column]:.2f}" for column in columns.tolist())
        name = str(row) if ids is None else ids[row]
        chosen.append(RowToAnnotate(name, float(score[row]), f"uncertain about {named}"))
        left[columns] /= 2
    return tuple(chosen)
