"""`Carried`: the cells (row, node) in which a missed node is carried.

Nearly all evidence is about these cells. Missed nodes are mostly rare, so the cells are few beside rows x nodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode.diagnosis.lists import Ints
from rarenode.thresholds.probabilities import row_blocks


@dataclass(frozen=True, eq=False)
class Carried:
    """Cells, sorted by node, then row."""

    nodes: Ints
    rows: Ints

    def __len__(self) -> int:
        return len(self.nodes)

    def where(self, mask: NDArray[np.bool_]) -> Carried:
        """The cells that a mask of them chooses."""
        return Carried(self.nodes[mask], self.rows[mask])

    def values(self, of: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
        """What (rows, nodes) values say of each cell."""
        return of[self.rows, self.nodes]

    def count(self, mask: NDArray[np.bool_], nodes: int) -> Ints:
        """For each of the hierarchy's nodes, how many of its cells a mask chooses."""
        return np.bincount(self.nodes[mask], minlength=nodes)


def carried_cells(labels: NDArray[np.bool_], missed: NDArray[np.bool_]) -> Carried:
    """The cells of labels (rows, nodes) in which one of the missed nodes is carried."""
    rows, nodes = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for block in row_blocks(labels.shape):
        row, node = np.nonzero(labels[block] & missed)
        rows.append(row + block.start)
        nodes.append(node)
    all_rows, all_nodes = np.concatenate(rows), np.concatenate(nodes)
    by_node = np.argsort(all_nodes, kind="stable")
    return Carried(all_nodes[by_node], all_rows[by_node])
