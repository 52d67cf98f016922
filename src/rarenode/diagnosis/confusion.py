"""Which sibling is decided in the place of a missed node.

A sibling is another child of one of the node's parents; roots are siblings of each other, as if one unseen node were
above them. It is *wrong* in a row where it is decided and not carried. What is counted are rows that carry the missed
node and where the sibling is wrong.

The wrong siblings of a node in a row are those with the same (row, parent) key, so the two sides are joined by that
key. The cost grows with the triples (row, missed node, wrong sibling) that there are, and a parent with 45,000
children is no harder than many parents with a few.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rarenode.diagnosis.carried import Carried
from rarenode.diagnosis.lists import Ints, Lists, parents_or_unseen_root, slices_by_cost
from rarenode.diagnosis.most_common import most_common
from rarenode.hierarchy import Hierarchy
from rarenode.thresholds.probabilities import row_blocks

Bools = NDArray[np.bool_]


def find_confusion(labels: Bools, decided: Bools, hierarchy: Hierarchy, cells: Carried) -> tuple[Ints, Ints]:
    """For each node of the cells, in how many of them its most frequent wrong sibling is decided, and its column.

    Of equally frequent siblings it is the one of the lowest column; 0 and -1 where there is none.
    """
    width = len(hierarchy)
    rows, sibling = np.zeros(width, dtype=np.int64), np.full(width, -1)
    if not len(cells):
        return rows, sibling
    families = parents_or_unseen_root(hierarchy)
    # Each cell stands under the key of each parent.
    cell, parent = families.of(cells.nodes)
    keys, place = np.unique(cells.rows[cell] * (width + 1) + parent, return_inverse=True)
    wrong = _wrong_by_key(labels, decided, families, cells, keys)

    def settle(pairs: Ints, counts: Ints) -> None:
        node, column, count = most_common(pairs // width, pairs % width, counts)
        rows[node], sibling[node] = count, column

    # Cells are sorted by node: with the next node's first cell a node's count is complete.
    begin = np.searchsorted(cell, np.arange(len(cells) + 1))
    costs = np.append(0, np.cumsum(wrong.lengths[place]))[begin]
    pairs = counts = np.empty(0, dtype=np.int64)
    for some in slices_by_cost(np.diff(costs)):
        under = slice(begin[some.start], begin[some.stop])
        owner, column = wrong.of(place[under])
        carrier = cell[under][owner]
        if not hierarchy.is_tree:  # two parents in common make a sibling no more wrong than one
            _, once = np.unique(carrier * width + column, return_index=True)
            carrier, column = carrier[once], column[once]
        found = cells.nodes[carrier] * width + column
        pairs, counts = _add_up(np.append(pairs, found), np.append(counts, np.ones_like(found)))
        complete = pairs < cells.nodes[some.stop - 1] * width
        settle(pairs[complete], counts[complete])
        pairs, counts = pairs[~complete], counts[~complete]
    settle(pairs, counts)
    return rows, sibling


def _wrong_by_key(labels: Bools, decided: Bools, families: Lists, cells: Carried, keys: Ints) -> Lists:
    """For each (row, parent) key, the children of the parent that are decided and not carried in the row."""
    width = labels.shape[1]
    asked_rows = np.zeros(len(labels), dtype=np.bool_)  # spares the rows in which nothing is missed
    asked_rows[cells.rows] = True
    places, children = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int32)]
    for block in row_blocks(labels.shape):
        wrong = decided[block] & ~labels[block] & asked_rows[block, np.newaxis]
        row, child = np.nonzero(wrong)
        owner, parent = families.of(child)
        key = (row + block.start)[owner] * (width + 1) + parent
        place = np.searchsorted(keys[:-1], key)  # what is beyond the last key is compared with the last
        asked = np.flatnonzero(keys[place] == key)
        order = asked[np.argsort(place[asked], kind="stable")]
        places.append(place[order])
        children.append(child[owner[order]].astype(np.int32))
    # Keys are sorted by row first, so block after block is in their order.
    return Lists.by_key(np.concatenate(places), np.concatenate(children), len(keys))


def _add_up(pairs: Ints, counts: Ints) -> tuple[Ints, Ints]:
    """Each pair once, with the sum of its counts."""
    each, place = np.unique(pairs, return_inverse=True)
    return each, np.bincount(place, weights=counts, minlength=len(each)).astype(np.int64)
