"""How unsure the model is of a node where the node matters: in rows that carry it, and in rows where it is decided.

Of the other rows there are so many, and most are so sure, that a mean over all would be close to 0 for every rare node.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode.thresholds.probabilities import row_blocks

Bools = NDArray[np.bool_]


def mean_uncertainty(uncertainty: NDArray[np.floating[Any]], labels: Bools, decided: Bools) -> NDArray[np.float64]:
    """For each node, the mean over these rows of (rows, nodes); NaN where there are none."""
    nodes = labels.shape[1]
    sums, count = np.zeros(nodes), np.zeros(nodes, dtype=np.int64)
    for block in row_blocks(labels.shape):
        row, node = np.nonzero(labels[block] | decided[block])
        sums += np.bincount(node, weights=uncertainty[block][row, node], minlength=nodes)
        count += np.bincount(node, minlength=nodes)
    means = np.full(nodes, np.nan)
    np.divide(sums, count, out=means, where=count > 0)
    return means
