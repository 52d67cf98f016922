"""The compiled loop over edges that serves CPU tensors and arrays.

Edges are sorted by the parent's column and every edge leads to a higher column, so walking them backwards finishes each
child before any of its parents is looked at. One pass over the edges of a row is all the work there is.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray


@numba.njit(cache=True, nogil=True)
def find_maximisers(
    scores: NDArray[np.floating],
    labels: NDArray[np.bool_],
    parents: NDArray[np.int64],
    children: NDArray[np.int64],
    best: NDArray[np.int64],
) -> int:
    """Write into ``best`` the column of the largest score among each node and its descendants with the node's own
    label.

    ``scores`` and ``best`` are (rows, nodes). ``labels`` (label rows, nodes) is used again from its start when it has
    fewer rows, as the members of an ensemble share them. Of equal scores the lowest column wins; NaN wins over every
    number.

    Returns the number of an edge whose child is labelled while its parent is not, or -1 where labels are closed.
    """
    for row in range(scores.shape[0]):
        label = labels[row % labels.shape[0]]
        score = scores[row]
        winner = best[row]
        for node in range(scores.shape[1]):
            winner[node] = node
        for edge in range(parents.shape[0] - 1, -1, -1):
            parent = parents[edge]
            child = children[edge]
            if label[parent] != label[child]:
                if label[child]:
                    return edge
                continue
            mine = winner[parent]
            theirs = winner[child]
            a = score[mine]
            b = score[theirs]
            if b > a or (b == a and theirs < mine) or (b != b and (a == a or theirs < mine)):
                winner[parent] = theirs
    return -1
