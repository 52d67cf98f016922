"""`confused_pairs`: which node is predicted instead of which, over all rows.

A row counts for the pair (A, B) if it is labelled with A, which is missed in it, and B is predicted in it, wrongly. Of
mistakes that lie above one another only the most specific count: who misses a species misses its genus as well, and
one mistake should not be counted once for each level. Of a row with many mistakes only the `MISTAKES_OF_A_ROW` gravest
of each kind count, so that the cost of a row is bounded, and because such a row says little about any pair.

Unlike `rarenode.diagnosis.evidence.confused_siblings` this is about all nodes, also those that are found elsewhere, and
about predictions anywhere in the hierarchy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode.diagnosis.evidence import Lists, parents_of, sum_by_pair
from rarenode.diagnosis.examples import Example, highest
from rarenode.diagnosis.node_diagnosis import NodeDiagnosis
from rarenode.hierarchy import Hierarchy
from rarenode.thresholds.probabilities import row_blocks

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Probs = NDArray[np.floating[Any]]

MOST_PAIRS, MOST_ROWS = 6, 3
MISTAKES_OF_A_ROW = 16
PAIRS_AT_A_TIME = 1 << 20


@dataclass(frozen=True)
class ConfusedPair:
    """A node that is missed where another is wrongly predicted; neither is an ancestor of the other."""

    labelled: int
    """The column of the node that is missed."""
    predicted: int
    """The column of the node that is predicted instead."""
    rows: int
    """In how many rows."""
    positives: int
    """How many rows have the node that is missed."""
    confused: tuple[Example, ...]
    """Of these rows, those where the predicted node has the highest probability."""
    found: tuple[Example, ...]
    """True positives of the predicted node with the highest probability, to compare with."""


def confused_pairs(
    Y: Bools,
    probs: Probs,
    decided: Bools,
    nodes: NodeDiagnosis,
    *,
    known: Bools | None = None,
    most_pairs: int = MOST_PAIRS,
    most_rows: int = MOST_ROWS,
) -> tuple[ConfusedPair, ...]:
    """The pairs of scored nodes that are confused in most rows.

    Of equally frequent pairs the one whose missed node has fewer positives comes first, then the one with the lower
    columns. Of rows with equal probabilities the earlier comes first.

    Args:
        Y: labels (rows, nodes).
        probs: probabilities (rows, nodes).
        decided: decisions (rows, nodes).
        nodes: the diagnosis of these rows.
        known: (rows, nodes), where labels are known; None: everywhere. Other cells are no mistakes.
        most_pairs: how many pairs at most.
        most_rows: how many rows of each kind at most.
    """
    hierarchy, width = nodes.hierarchy, len(nodes.hierarchy)
    mistakes = _Mistakes(Y, probs, decided, nodes.scored, known, parents_of(hierarchy))
    pairs, counts = _count(pairs for _, pairs in mistakes.by_block())
    order = np.lexsort((pairs, nodes.scores.support[pairs // width], -counts))
    chosen: list[int] = []
    for place in order.tolist():
        if len(chosen) == most_pairs:
            break
        if not _related(hierarchy, *divmod(int(pairs[place]), width)):
            chosen.append(place)
    rows_of = mistakes.rows_of(pairs[chosen])
    found = []
    for place in chosen:
        labelled, predicted = divmod(int(pairs[place]), width)
        p, right = probs[:, predicted], Y[:, predicted] & decided[:, predicted]
        if known is not None:
            right = right & known[:, predicted]
        found.append(
            ConfusedPair(
                labelled,
                predicted,
                rows=int(counts[place]),
                positives=int(nodes.scores.support[labelled]),
                confused=highest(p, rows_of[int(pairs[place])], most_rows),
                found=highest(p, np.flatnonzero(right), most_rows),
            )
        )
    return tuple(found)


def _related(hierarchy: Hierarchy, one: int, other: int) -> bool:
    """Whether one is an ancestor of the other. With labels and decisions that are closed no pair is."""
    above, below = hierarchy.nodes[min(one, other)], hierarchy.nodes[max(one, other)]
    return above in hierarchy.ancestors(below)  # an ancestor's column is the lower


def _count(blocks: Iterator[Ints]) -> tuple[Ints, Ints]:
    """Each distinct pair, and how often it occurs."""
    pairs = counts = np.empty(0, dtype=np.int64)
    waiting: list[Ints] = []
    for block in blocks:
        waiting.append(block)
        # Sorted in only when they are as many as those that are sorted already, which is not often.
        if sum(map(len, waiting)) > max(PAIRS_AT_A_TIME, len(pairs)):
            pairs, counts = _add(pairs, counts, waiting)
            waiting = []
    return _add(pairs, counts, waiting)


def _add(pairs: Ints, counts: Ints, waiting: list[Ints]) -> tuple[Ints, Ints]:
    new = np.concatenate([np.empty(0, dtype=np.int64), *waiting])
    return sum_by_pair(np.append(pairs, new), np.append(counts, np.ones_like(new)))


@dataclass(frozen=True, eq=False)
class _Mistakes:
    """The arguments of `confused_pairs`; a pair (A, B) is the number A x nodes + B."""

    Y: Bools
    probs: Probs
    decided: Bools
    scored: Bools
    known: Bools | None
    parents: Lists

    def by_block(self) -> Iterator[tuple[Ints, Ints]]:
        """Rows and pairs, for one block of rows after the other."""
        width = self.Y.shape[1]
        for block in row_blocks(self.Y.shape):
            y, p = self.Y[block], self.probs[block]
            wrong = (y != self.decided[block]) & self.scored
            if self.known is not None:
                wrong &= self.known[block]
            missed_row, missed = self._gravest(wrong & y, p)
            false_row, false = self._gravest(wrong & ~y, -p)
            owner, predicted = Lists.by_key(false_row, false, len(y)).of(missed_row)
            yield missed_row[owner] + block.start, missed[owner] * width + predicted

    def _gravest(self, wrong: Bools, order: Probs) -> tuple[Ints, Ints]:
        """The most specific cells of a mask, of each row some that are lowest in an order; sorted by row."""
        specific = wrong.copy()
        row, node = np.nonzero(wrong)
        owner, parent = self.parents.of(node)
        specific[row[owner], parent] = False
        row, node = np.nonzero(specific)
        by = np.lexsort((node, order[row, node], row))
        row, node = row[by], node[by]
        some = np.arange(len(row)) - np.searchsorted(row, row) < MISTAKES_OF_A_ROW
        return row[some], node[some]

    def rows_of(self, pairs: Ints) -> dict[int, Ints]:
        """The rows that count for some pairs. It looks at all rows again: to keep them all would take too much room."""
        rows: dict[int, list[Ints]] = {pair: [] for pair in pairs.tolist()}
        for row, pair in self.by_block() if rows else ():
            for one, of_one in rows.items():
                of_one.append(row[pair == one])
        return {pair: np.concatenate(parts) for pair, parts in rows.items()}
