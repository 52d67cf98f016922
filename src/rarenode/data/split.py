"""`HierarchicalSplit` and `folds`: rows set aside so that rare nodes are on both sides.

Of a node with three rows a random fifth of the rows holds none about half of the time: what is then fitted to the rows
set aside knows nothing of the node. Here rows are dealt by iterative stratification (Sechidis, Tsoumakas, Vlahavas,
ECML PKDD 2011). A side wants its share of each node's rows, and at least one:

    want = max(share * rows of the node, 1) - rows of the node that the side has

The node with the fewest rows that are not dealt yet has its turn: each of these rows goes to the side that wants the
node most, of equal sides to the one that is shortest of rows. Then the next node has its turn, until all rows are
dealt; rows that no turn reaches come last, as if all rows had one more node.

Why this suits a hierarchy. Labels are closed, so the rows of a node are among those of each of its parents, and rarest
first is from the bottom upwards, in a DAG as in a tree, without walking a path. A parent can tie with its child, and
the deeper node then goes first: the parent, if its want was met elsewhere, could deal all rows of the child to one
side. A row whose labels end half-way is dealt when the turn comes to where they end. A node with one row has no turn,
as it would only pull its row away from where its parents need it.

Rows have many nodes, so the rows of a node may all be dealt in the turns of others, to one side. While moving one row
leaves fewer nodes of two rows or more on a single side, the row is moved. That ends where no such row is left. It need
not be the fewest nodes that any split could leave: whether all can be on both sides is the problem of set splitting,
which is NP-complete. Where every row is one path of a tree, none is left.

Shares of rows are aims. Where many nodes are rare, the smaller side gets more than its share of rows. A label that is
unknown is one that the row does not have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix

from rarenode.errors import ArgumentError, DataError
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.labels import Labels

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class HierarchicalSplit:
    """Sets rows aside so that nodes with two rows or more are on both sides, but for the few that the module speaks of.

    >>> tree = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat")])
    >>> Y = tree.close(tree.encode([["dog"]] * 7 + [["cat"]] * 3))
    >>> kept, held_out = HierarchicalSplit(share=0.2).split(Y, tree)
    >>> Y[kept].sum(axis=0), Y[held_out].sum(axis=0)
    (array([8, 2, 6]), array([2, 1, 1]))
    """

    share: float = 0.2
    """How much to hold out of the rows, and of the rows of each node: an aim, as the module says."""
    seed: int = 0
    """Decides which rows of a node are held out."""

    def __post_init__(self) -> None:
        if isinstance(self.share, bool) or not (isinstance(self.share, Real) and 0 < self.share < 1):
            raise ArgumentError(f"share must be a number between 0 and 1, both excluded; got {self.share!r}")
        _check_seed(self.seed)

    def split(self, Y: Any, hierarchy: Hierarchy) -> tuple[Rows, Rows]:
        """The rows to keep and the rows to hold out, each sorted, for closed labels (rows, nodes).

        Raises:
            NotClosedError: a row has a node but not one of the node's parents.
            DataError: there are fewer than two rows.
        """
        labels = hierarchy.require_closed(Y)
        if labels.shape[0] < 2:
            raise DataError(f"a split needs at least 2 rows, got {labels.shape[0]}")
        side = _deal(labels, (self.share, 1 - self.share), self.seed)
        return np.flatnonzero(side == 1), np.flatnonzero(side == 0)


def folds(Y: Any, hierarchy: Hierarchy, k: int, seed: int = 0) -> list[tuple[Rows, Rows]]:
    """``k`` pairs of rows to keep and rows to hold out, each sorted; every row is held out once.

    The aim is to spread the rows of each node evenly. A node in two folds or more is among the rows kept of every pair;
    one with fewer rows than there are folds is not among the rows held out of every pair.

    Raises:
        NotClosedError: a row has a node but not one of the node's parents.
        ArgumentError: ``k`` is less than 2 or more than there are rows.
    """
    labels = hierarchy.require_closed(Y)
    _check_seed(seed)
    if isinstance(k, bool) or not (isinstance(k, int | np.integer) and 2 <= k <= labels.shape[0]):
        raise ArgumentError(f"k must be a whole number from 2 to the number of rows, {labels.shape[0]}; got {k!r}")
    side = _deal(labels, (1 / k,) * k, seed)
    return [(np.flatnonzero(side != fold), np.flatnonzero(side == fold)) for fold in range(k)]


def _check_seed(seed: int) -> None:
    if isinstance(seed, bool) or not (isinstance(seed, int | np.integer) and seed >= 0):
        raise ArgumentError(f"seed must be a whole number of at least 0, got {seed!r}")


def _deal(labels: Labels, shares: Sequence[float], seed: int) -> NDArray[np.int64]:
    """The side of each row."""
    order = np.random.default_rng(seed).permutation(labels.shape[0])
    deal = _Deal(csr_matrix(labels)[order], np.array(shares))
    deal.take_turns()
    deal.mend()
    side = np.empty(len(order), dtype=np.int64)
    side[order] = deal.side
    return side


class _Deal:
    """Assigns rows to sides, in the given order; the caller shuffles them."""

    def __init__(self, matrix: Any, shares: NDArray[np.float64]) -> None:
        rows, nodes = matrix.shape
        by_node = matrix.tocsc()
        self.nodes_of_row = np.split(matrix.indices, matrix.indptr[1:-1])
        self.rows_of_node = np.split(by_node.indices, by_node.indptr[1:-1])
        self.counts = np.diff(by_node.indptr).astype(np.int64)
        self.wanted = np.maximum(shares[:, None] * self.counts, 1)
        self.wanted_rows = np.maximum(shares * rows, 1)
        self.side = np.full(rows, -1, dtype=np.int64)
        self.dealt = np.zeros((len(shares), nodes), dtype=np.int64)
        self.dealt_rows = np.zeros(len(shares), dtype=np.int64)

    def take_turns(self) -> None:
        """Deal every row."""
        never = len(self.side) + 1
        while True:
            left = self.counts - self.dealt.sum(axis=0)
            left[(left == 0) | (self.counts < 2)] = never
            if left.min(initial=never) == never:
                break
            # Columns are sorted by depth: the last of the rarest is the deepest.
            node = len(left) - 1 - int(np.argmin(left[::-1]))
            rows = self.rows_of_node[node]
            for row in rows[self.side[rows] < 0].tolist():
                want = self.wanted[:, node] - self.dealt[:, node]
                self._put(row, self._neediest(want))
        for row in np.flatnonzero(self.side < 0).tolist():
            self._put(row, self._neediest(np.zeros(len(self.wanted_rows))))

    def mend(self) -> None:
        """Move rows, one at a time, as long as fewer nodes are then on a single side.

        No side is emptied: a row is moved for a node of which others stay behind.
        """
        moved = True
        while moved:
            moved = False
            single = np.flatnonzero((self.dealt.max(axis=0, initial=0) == self.counts) & (self.counts > 1))
            for node in single[np.argsort(self.counts[single], kind="stable")].tolist():
                moved |= self._move_best(node)

    def _move_best(self, node: int) -> bool:
        """Move the row of a node with which the most is won, if anything is; say whether one was moved."""
        rows = self.rows_of_node[node]
        fewer = np.stack([self._won_by_moving(row) for row in rows.tolist()])
        place, to = np.unravel_index(np.argmax(fewer), fewer.shape)
        if fewer[place, to] <= 0:
            return False
        self._put(int(rows[place]), int(to))
        return True

    def _won_by_moving(self, row: int) -> NDArray[np.int64]:
        """For each side, by how many the nodes on a single side would be fewer if the row were there."""
        here, nodes = self.side[row], self.nodes_of_row[row]
        counts, dealt = self.counts[nodes], self.dealt[:, nodes]
        # A node with one row counts in both of these, which cancels.
        freed = np.count_nonzero(dealt[here] == counts)
        trapped = np.count_nonzero(dealt == counts - 1, axis=1)
        won: NDArray[np.int64] = freed - trapped
        won[here] = 0
        return won

    def _neediest(self, want: NDArray[np.float64]) -> int:
        short = self.wanted_rows - self.dealt_rows
        return int(np.lexsort((-short, -want))[0])

    def _put(self, row: int, to: int) -> None:
        nodes, before = self.nodes_of_row[row], self.side[row]
        if before >= 0:
            self.dealt[before, nodes] -= 1
            self.dealt_rows[before] -= 1
        self.side[row] = to
        self.dealt[to, nodes] += 1
        self.dealt_rows[to] += 1
