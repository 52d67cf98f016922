"""`PrecisionFloor`: the most recall with an estimated precision of at least a floor, node by node.

The threshold is the lowest at which the estimate reaches the floor; a node that never reaches it is never decided. With
q the mean probability of the k rows at or above a threshold, the model's own word on its precision, the estimate is

    without labels   q
    with labels      (hits + m q) / (k + m)

where m = `PSEUDO_ROWS` rows stand for the model's word. A few labelled rows can then not promise more than they know:
one hit of one row, at q = 0.1, is a precision of 0.18 and not of 1. Many rows outweigh it.

Without labels the estimate falls as the threshold does. With labels it may fall and rise again; the lowest threshold
counts, as it has the most recall.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rarenode.thresholds.ranking import Ranked, ranked
from rarenode.thresholds.strategy import HeldOut, Strategy, check_number, with_number

PSEUDO_ROWS = 10.0
ROUNDING = 1e-12
"""The mean of rows of 0.2 reaches a floor of 0.2, whatever the last digit of their sum."""


@dataclass(frozen=True)
class PrecisionFloor(Strategy):
    """The lowest threshold of each node with at least that precision, as far as can be told.

    >>> PrecisionFloor(0.5).fit([[0.9], [0.4], [0.3], [0.02]]).values
    array([0.3])
    """

    precision: float

    def __post_init__(self) -> None:
        check_number(self.precision, "precision", most=1.0, open_below=True)

    @property
    def name(self) -> str:
        """For example ``precision_floor:0.2``."""
        return with_number("precision_floor:", self.precision)

    def choose(self, rows: HeldOut) -> NDArray[np.float64]:
        """The lowest threshold that reaches the floor; never, where none does."""
        values = np.empty(rows.nodes)
        for block in ranked(rows.probs, rows.labels):
            enough = block.ends & (_precision(block) >= self.precision - ROUNDING)
            last = enough.shape[1] - 1 - np.argmax(enough[:, ::-1], axis=1)
            values[block.columns] = np.where(enough.any(axis=1), block.at(last), np.inf)
        return values


def _precision(block: Ranked) -> NDArray[np.float64]:
    """(nodes, rows): at k - 1 the estimate for the k likeliest rows."""
    model = block.sums / block.counts
    if block.labels is None:
        return model
    estimate: NDArray[np.float64] = (block.hits + PSEUDO_ROWS * model) / (block.counts + PSEUDO_ROWS)
    return estimate
