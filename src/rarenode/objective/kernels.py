"""The compiled loop over edges that serves CPU tensors and arrays.

Nodes are ordered so that every edge leads to a higher column. Walking the parents backwards therefore finishes each
child before any of its parents is looked at: one pass over the edges of a row is all the work there is.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rarenode._io.compiled import compiled


@compiled()
def find_maximisers(
    scores: NDArray[np.floating],
    labels: NDArray[np.bool_],
    parents: NDArray[np.int64],
    starts: NDArray[np.int64],
    children: NDArray[np.int64],
    best: NDArray[np.int64],
) -> bool:
    """Write into ``best`` the column of the largest score among each node and its descendants with the same label.

    ``scores`` and ``best`` are (rows, nodes). ``labels`` (label rows, nodes) is used again from its start when it has
    fewer rows, as the members of an ensemble share them. The children of ``parents[i]`` are
    ``children[starts[i]:starts[i + 1]]``. Of equal scores the lowest column wins; NaN wins over every number.

    Returns whether the labels are closed; it stops at the first labelled child of a parent that is not.
    """
    highest = np.empty(scores.shape[1], scores.dtype)
    for row in range(scores.shape[0]):
        label = labels[row % labels.shape[0]]
        winner = best[row]
        for node in range(scores.shape[1]):
            winner[node] = node
            highest[node] = scores[row, node]
        for family in range(parents.shape[0] - 1, -1, -1):
            parent = parents[family]
            a = highest[parent]
            mine = winner[parent]
            for edge in range(starts[family], starts[family + 1]):
                child = children[edge]
                if label[child] != label[parent]:
                    if label[child]:
                        return False
                    continue
                b = highest[child]
                theirs = winner[child]
                # Selected rather than branched on: which of two scores is larger cannot be predicted.
                better = (b > a) | ((b == a) & (theirs < mine)) | ((b != b) & ((a == a) | (theirs < mine)))
                a = b if better else a
                mine = theirs if better else mine
            highest[parent] = a
            winner[parent] = mine
    return True
