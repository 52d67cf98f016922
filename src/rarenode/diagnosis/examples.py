"""`choose_examples`: for a few nodes, the rows in which they are found, missed and wrongly found most clearly.

Of a node's true positives and false positives those with the highest probability are chosen: what the model takes for
typical. Of its false negatives those with the lowest: there the model is most wrong, or else the label is.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain, zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode.diagnosis.node_diagnosis import NodeDiagnosis

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Probs = NDArray[np.floating[Any]]

MOST_NODES, MOST_ROWS = 24, 3


@dataclass(frozen=True)
class Example:
    """A row, and the probability that the model gives a node in it."""

    row: int
    """Its position, from 0."""
    probability: float


@dataclass(frozen=True)
class NodeExamples:
    """The rows chosen for a node; in each tuple the most telling first."""

    column: int
    found: tuple[Example, ...]
    """True positives, by falling probability."""
    missed: tuple[Example, ...]
    """False negatives, by rising probability."""
    wrongly_found: tuple[Example, ...]
    """False positives, by falling probability."""


@dataclass(frozen=True)
class Examples:
    """What `choose_examples` returns."""

    nodes: tuple[NodeExamples, ...]
    left_out: int
    """How many further nodes have rows to show."""


def choose_examples(
    Y: Bools,
    probs: Probs,
    decided: Bools,
    nodes: NodeDiagnosis,
    *,
    known: Bools | None = None,
    most_nodes: int = MOST_NODES,
    most_rows: int = MOST_ROWS,
) -> Examples:
    """Choose nodes, and for each of them rows.

    Scored nodes that are missed and those that are predicted somewhere take turns, so that neither crowds out the
    other. Among each the rarest in training comes first, then the deepest, then the one with the lowest column. Of rows
    with equal probabilities the earlier comes first.

    Args:
        Y: labels (rows, nodes).
        probs: probabilities (rows, nodes).
        decided: decisions (rows, nodes).
        nodes: the diagnosis of these rows.
        known: (rows, nodes), where labels are known; None: everywhere. Other cells are no examples.
        most_nodes: how many nodes at most.
        most_rows: how many rows of each kind at most.
    """
    missed = nodes.state == "missed"
    predicted = nodes.scored & (nodes.scores.predicted > 0) & ~missed
    turns = zip_longest(_rarest_first(nodes, missed), _rarest_first(nodes, predicted))
    columns = [column for column in chain.from_iterable(turns) if column is not None]
    chosen = []
    for column in columns[:most_nodes]:
        y, d, p = Y[:, column], decided[:, column], probs[:, column]
        k = True if known is None else known[:, column]
        chosen.append(
            NodeExamples(
                column,
                found=highest(p, np.flatnonzero(y & d & k), most_rows),
                missed=_lowest(p, np.flatnonzero(y & ~d & k), most_rows),
                wrongly_found=highest(p, np.flatnonzero(~y & d & k), most_rows),
            )
        )
    return Examples(tuple(chosen), left_out=len(columns) - len(chosen))


def _rarest_first(nodes: NodeDiagnosis, mask: Bools) -> list[int]:
    columns = np.flatnonzero(mask)
    order = np.lexsort((columns, -nodes.hierarchy.depth[columns], nodes.training_rows[columns]))
    return [int(column) for column in columns[order]]


def highest(p: Probs, rows: Ints, most: int) -> tuple[Example, ...]:
    """Of some rows those with the highest probabilities; of equal ones the earlier first.

    >>> highest(np.array([0.5, 0.25, 0.5]), np.arange(3), 2)
    (Example(row=0, probability=0.5), Example(row=2, probability=0.5))
    """
    return _examples(p, rows[np.argsort(-p[rows], kind="stable")[:most]])


def _lowest(p: Probs, rows: Ints, most: int) -> tuple[Example, ...]:
    return _examples(p, rows[np.argsort(p[rows], kind="stable")[:most]])


def _examples(p: Probs, rows: Ints) -> tuple[Example, ...]:
    return tuple(Example(row, float(p[row])) for row in rows.tolist())
