"""Evidence about missed nodes: blocking ancestors, confused siblings, disagreeing members, and uncertainty.

Nearly all evidence is about the positives of missed nodes. Missed nodes are mostly rare, so their positives are few
compared with rows x nodes, and everything here works on lists of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rarenode.diagnosis.ranks import chance_of_hits
from rarenode.hierarchy import Hierarchy
from rarenode.thresholds.probabilities import row_blocks

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Probs = NDArray[np.floating[Any]]

MATCHES_PER_BLOCK = 1 << 20
NODES_PER_BATCH = 128


@dataclass(frozen=True, eq=False)
class Positives:
    """Cells (row, node) in which a missed node is labelled, sorted by node, then row."""

    nodes: Ints
    rows: Ints

    @classmethod
    def of(cls, labels: Bools, missed: Bools) -> Positives:
        """The positives of the missed nodes in labels (rows, nodes)."""
        rows, nodes = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
        for block in row_blocks(labels.shape):
            row, node = np.nonzero(labels[block] & missed)
            rows.append(row + block.start)
            nodes.append(node)
        all_rows, all_nodes = np.concatenate(rows), np.concatenate(nodes)
        by_node = np.argsort(all_nodes, kind="stable")
        return cls(all_nodes[by_node], all_rows[by_node])

    def __len__(self) -> int:
        return len(self.nodes)

    def where(self, mask: Bools) -> Positives:
        """Those that a mask selects."""
        return Positives(self.nodes[mask], self.rows[mask])

    def values(self, of: Probs) -> Probs:
        """The entries of an array (rows, nodes) at these cells."""
        return of[self.rows, self.nodes]

    def count(self, mask: Bools, nodes: int) -> Ints:
        """For each of the hierarchy's nodes, how many of its positives a mask selects."""
        return np.bincount(self.nodes[mask], minlength=nodes)


# --- ancestors -----------------------------------------------------------------------------------------------------


def blocking_ancestors(probs: Probs, thresholds: Floats, hierarchy: Hierarchy, blocked: Positives) -> Ints:
    """For each node, the column of the ancestor that is below its threshold in most of the node's blocked cells.

    With the rule ``drop_orphans`` a node is kept only where all its ancestors are. In a blocked cell the node reaches
    its threshold, and at least one ancestor does not. Of equal ancestors the one with the lowest column is returned;
    -1 for a node without blocked cells.

    Nodes that share rows and ancestors are treated together: their table of rows x ancestors is looked up once, and a
    matrix product counts.
    """
    by = np.full(len(hierarchy), -1)
    for batch in _batches(hierarchy, blocked, len(probs)):
        rows = np.unique(np.concatenate([node.rows for node in batch]))
        ancestors = np.unique(np.concatenate([node.ancestors for node in batch]))
        is_blocked = np.zeros((len(batch), len(rows)), dtype=np.float32)
        for place, node in enumerate(batch):
            is_blocked[place, np.searchsorted(rows, node.rows)] = 1
        counts = np.zeros((len(batch), len(ancestors)))
        for block in row_blocks((len(rows), len(ancestors))):
            below = probs[rows[block, np.newaxis], ancestors] < thresholds[ancestors]
            counts += is_blocked[:, block] @ below.astype(np.float32)
        for node, count in zip(batch, counts, strict=True):
            # Columns rise, and argmax returns the first of equal counts.
            by[node.column] = node.ancestors[np.argmax(count[np.searchsorted(ancestors, node.ancestors)])]
    return by


class _Blocked(NamedTuple):
    """A blocked node."""

    column: int
    rows: Ints
    ancestors: Ints


def _batches(hierarchy: Hierarchy, blocked: Positives, rows: int) -> Iterator[list[_Blocked]]:
    """All blocked nodes, from the roots down, in batches that share rows and ancestors.

    The cells (row, ancestor) of a batch are at most twice those that its nodes have one by one.
    """
    nodes, first = np.unique(blocked.nodes, return_index=True)
    rows_of = dict(zip(nodes.tolist(), np.split(blocked.rows, first[1:]), strict=False))
    batch: list[_Blocked] = []
    in_rows, in_ancestors = np.zeros(rows, dtype=np.bool_), np.zeros(len(hierarchy), dtype=np.bool_)
    height = width = one_by_one = 0  # of the batch: distinct rows, distinct ancestors, cells of its nodes
    for column, ancestors in _walk_down(hierarchy) if rows_of else ():
        if column not in rows_of:
            continue
        node = _Blocked(column, rows_of[column], ancestors)
        one_by_one += len(node.rows) * len(ancestors)
        height += int(np.count_nonzero(~in_rows[node.rows]))
        width += int(np.count_nonzero(~in_ancestors[ancestors]))
        if batch and (len(batch) == NODES_PER_BATCH or height * width > 2 * one_by_one):
            yield batch
            batch, height, width, one_by_one = [], len(node.rows), len(ancestors), len(node.rows) * len(ancestors)
            in_rows[:], in_ancestors[:] = False, False
        batch.append(node)
        in_rows[node.rows], in_ancestors[ancestors] = True, True
    if batch:
        yield batch


def _walk_down(hierarchy: Hierarchy) -> Iterator[tuple[int, Ints]]:
    """Each node and the rising columns of its ancestors, from the roots down.

    They are the parents and the parents' ancestors, which are kept only until the last child has been visited.
    """
    parents = parents_of(hierarchy)
    children_left = np.bincount(hierarchy.edge_parents, minlength=len(hierarchy)).tolist()
    held: dict[int, Ints] = {}
    for node in range(len(hierarchy)):
        above = parents.values[parents.starts[node] : parents.starts[node + 1]].tolist()
        ancestors = np.empty(0, dtype=np.int64)
        for parent in above:
            # An ancestor's column is below its descendant's, so the parent is the last of its own list.
            own = np.append(held[parent], parent)
            ancestors = np.union1d(ancestors, own) if len(ancestors) else own
            children_left[parent] -= 1
            if not children_left[parent]:
                del held[parent]
        if children_left[node]:
            held[node] = ancestors
        yield node, ancestors


# --- siblings ------------------------------------------------------------------------------------------------------


def confused_siblings(
    labels: Bools, predicted: Bools, hierarchy: Hierarchy, positives: Positives
) -> tuple[Ints, Ints]:
    """For each missed node, its most frequent false positive sibling: in how many of its positives, and the column.

    A sibling is another child of one of the node's parents; roots are siblings of each other, as if they had a common
    parent. Of equally frequent siblings the one with the lowest column is returned; 0 and -1 if there is none.

    The false positive siblings of a node in a row are those with the same key (row, parent), so the two sides are
    joined by that key. The cost grows with the number of triples (row, missed node, false positive sibling), so one
    parent with 45,000 children costs no more than many parents with a few.
    """
    width = len(hierarchy)
    rows, sibling = np.zeros(width, dtype=np.int64), np.full(width, -1)
    if not len(positives):
        return rows, sibling
    parents = parents_of(hierarchy, root_parent=width)
    # Each positive has a key for each parent of its node.
    cell, parent = parents.of(positives.nodes)
    keys, place = np.unique(positives.rows[cell] * (width + 1) + parent, return_inverse=True)
    false_positives = _false_positives_by_key(labels, predicted, parents, positives, keys)

    def settle(pairs: Ints, counts: Ints) -> None:
        node, column, count = most_common(pairs // width, pairs % width, counts)
        rows[node], sibling[node] = count, column

    # Positives are sorted by node: a node's count is complete when the next node begins.
    begin = np.searchsorted(cell, np.arange(len(positives) + 1))
    costs = np.append(0, np.cumsum(false_positives.lengths[place]))[begin]
    pairs = counts = np.empty(0, dtype=np.int64)
    for some in slices_by_cost(np.diff(costs)):
        under = slice(begin[some.start], begin[some.stop])
        owner, column = false_positives.of(place[under])
        of_cell = cell[under][owner]
        if not hierarchy.is_tree:  # a sibling by two common parents counts once
            _, once = np.unique(of_cell * width + column, return_index=True)
            of_cell, column = of_cell[once], column[once]
        found = positives.nodes[of_cell] * width + column
        pairs, counts = sum_by_pair(np.append(pairs, found), np.append(counts, np.ones_like(found)))
        complete = pairs < positives.nodes[some.stop - 1] * width
        settle(pairs[complete], counts[complete])
        pairs, counts = pairs[~complete], counts[~complete]
    settle(pairs, counts)
    return rows, sibling


def _false_positives_by_key(
    labels: Bools, predicted: Bools, parents: Lists, positives: Positives, keys: Ints
) -> Lists:
    """For each key (row, parent), the children of the parent that are false positives in the row."""
    width = labels.shape[1]
    with_missed = np.zeros(len(labels), dtype=np.bool_)  # other rows need not be searched
    with_missed[positives.rows] = True
    places, children = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int32)]
    for block in row_blocks(labels.shape):
        row, child = np.nonzero(predicted[block] & ~labels[block] & with_missed[block, np.newaxis])
        owner, parent = parents.of(child)
        key = (row + block.start)[owner] * (width + 1) + parent
        place = np.searchsorted(keys[:-1], key)  # what is beyond the last key is compared with the last
        known = np.flatnonzero(keys[place] == key)
        order = known[np.argsort(place[known], kind="stable")]
        places.append(place[order])
        children.append(child[owner[order]].astype(np.int32))
    # Keys are sorted by row first, so the blocks follow one another in their order.
    return Lists.by_key(np.concatenate(places), np.concatenate(children), len(keys))


def most_common(nodes: Ints, columns: Ints, counts: Ints) -> tuple[Ints, Ints, Ints]:
    """For each distinct node, its column with the largest count, the lowest of equal ones, and the count.

    The input is sorted by node, then column.

    >>> most_common(np.array([5, 5, 5]), np.array([1, 2, 3]), np.array([1, 2, 2]))
    (array([5]), array([2]), array([2]))
    """
    _, first, lengths = np.unique(nodes, return_index=True, return_counts=True)
    largest = np.maximum.reduceat(counts, first) if len(first) else counts
    best = np.flatnonzero(counts == np.repeat(largest, lengths))
    best = best[np.unique(nodes[best], return_index=True)[1]]
    return nodes[best], columns[best], counts[best]


def sum_by_pair(pairs: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Each distinct pair, with the sum of its counts."""
    each, place = np.unique(pairs, return_inverse=True)
    return each, np.bincount(place, weights=counts, minlength=len(each)).astype(np.int64)


# --- members and uncertainty ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class MemberPredictions:
    """Rows in which a single member reaches a missed node's threshold; one value for each node of the hierarchy."""

    positives: Ints
    """How many of the node's positives are among these rows."""
    rows: Ints
    """How many such rows there are; 0 where none is a positive."""
    chance: Floats
    """The probability of at least as many positives in a random choice of so many rows; 1 where there are none."""


def member_predictions(
    highest: Probs | None, thresholds: Floats, positives: Positives, known: Bools | None = None
) -> MemberPredictions:
    """Count them, from the highest probability of any member (rows, nodes); None for a model with one member.

    That a member reaches the threshold in some rows of any kind means nothing. What counts is whether more of them are
    positives than chance explains. A row does not count for a node that is not ``known`` in it.
    """
    nodes = len(thresholds)
    hits, everywhere, chance = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64), np.ones(nodes)
    if highest is not None and len(positives):
        hits = positives.count(positives.values(highest) >= thresholds[positives.nodes], nodes)
        some = np.flatnonzero(hits)
        for block in row_blocks((len(highest), len(some))):
            reached = highest[block][:, some] >= thresholds[some]
            everywhere[some] += np.count_nonzero(reached if known is None else reached & known[block][:, some], axis=0)
        support = np.bincount(positives.nodes, minlength=nodes)
        rows = np.full(len(some), len(highest)) if known is None else np.count_nonzero(known[:, some], axis=0)
        chance[some] = chance_of_hits(rows, support[some], everywhere[some], hits[some])
    return MemberPredictions(hits, everywhere, chance)


def mean_uncertainty(uncertainty: Probs, labels: Bools, predicted: Bools) -> Floats:
    """For each node, the mean of (rows, nodes) over its positives and the rows where it is predicted; else NaN.

    There are so many other rows, and the model is so certain of most, that a mean over all rows would be close to 0
    for every rare node.
    """
    nodes = labels.shape[1]
    sums, count = np.zeros(nodes), np.zeros(nodes, dtype=np.int64)
    for block in row_blocks(labels.shape):
        row, node = np.nonzero(labels[block] | predicted[block])
        sums += np.bincount(node, weights=uncertainty[block][row, node], minlength=nodes)
        count += np.bincount(node, minlength=nodes)
    means = np.full(nodes, np.nan)
    np.divide(sums, count, out=means, where=count > 0)
    return means


# --- lists of columns or rows --------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Lists:
    """Many lists of any lengths, concatenated: list i is ``values[starts[i]:starts[i + 1]]``.

    Joining such lists costs as many steps as there are matches; a table of all pairs would cost nodes x nodes.
    """

    starts: Ints
    values: NDArray[np.integer[Any]]

    @classmethod
    def by_key(cls, keys: Ints, values: NDArray[np.integer[Any]], count: int) -> Lists:
        """``count`` lists, where list i holds the values whose key is i; the keys are sorted."""
        return cls(np.searchsorted(keys, np.arange(count + 1)), values)

    @property
    def lengths(self) -> Ints:
        """The length of each list."""
        return np.diff(self.starts)

    def of(self, which: Ints) -> tuple[Ints, Ints]:
        """The chosen lists, concatenated: for each value its place in ``which``, and the value.

        >>> letters = Lists.by_key(np.array([0, 0, 2]), np.array([7, 8, 9]), 3)
        >>> letters.of(np.array([2, 1, 0]))
        (array([0, 2, 2]), array([9, 7, 8]))
        """
        lengths = self.lengths[which]
        owner = np.repeat(np.arange(len(which)), lengths)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return owner, self.values[self.starts[which][owner] + within].astype(np.int64, copy=False)


def parents_of(hierarchy: Hierarchy, root_parent: int | None = None) -> Lists:
    """The columns of each node's parents; ``root_parent`` is an additional column that is the parent of all roots."""
    children, parents = hierarchy.edge_children, hierarchy.edge_parents
    if root_parent is not None:
        roots = np.flatnonzero(hierarchy.depth == 0)
        children, parents = np.append(children, roots), np.append(parents, np.full(len(roots), root_parent))
    by_child = np.argsort(children, kind="stable")
    return Lists.by_key(children[by_child], parents[by_child], len(hierarchy))


def slices_by_cost(costs: Ints) -> Iterator[slice]:
    """Slices of items that cost at most `MATCHES_PER_BLOCK` together, or hold a single item."""
    ends = np.cumsum(costs)
    first = 0
    while first < len(costs):
        spent = int(ends[first - 1]) if first else 0
        last = max(first + 1, int(np.searchsorted(ends, spent + MATCHES_PER_BLOCK, side="right")))
        yield slice(first, last)
        first = last
