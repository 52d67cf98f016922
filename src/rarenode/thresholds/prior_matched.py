"""`PriorMatched`: as many decisions for a node as its share of the training rows makes one expect.

With N rows and a prior share q, the n = factor q N likeliest rows are decided: rounded to the nearest whole number (a
half upwards), at least one where q > 0, none where q = 0. The threshold is the n-th largest probability, so rows equal
to it are decided too; a row of probability 0 never is.

The model's order of the rows counts and the size of its probabilities does not, so they need no calibration.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rarenode.thresholds.ranking import Ranked, ranked
from rarenode.thresholds.strategy import HeldOut, Strategy, check_number, with_number


@dataclass(frozen=True)
class PriorMatched(Strategy):
    """As many positives as the prior says, or ``factor`` times as many.

    >>> PriorMatched().fit([[0.9], [0.4], [0.3], [0.02]], prior=[0.5]).values
    array([0.4])
    """

    factor: float = 1.0
    needs_prior: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number(self.factor, "factor", most=1e6, open_below=True)

    @property
    def name(self) -> str:
        """``prior``, or ``prior:1.5``."""
        return "prior" if self.factor == 1 else with_number("prior:", self.factor)

    def choose(self, rows: HeldOut) -> NDArray[np.float64]:
        """The probability of the last row that is wanted."""
        assert rows.prior is not None  # noqa: S101 (`Strategy.fit` has asked for it)
        expected = self.factor * rows.prior * len(rows.probs)
        wanted = np.clip(np.floor(expected + 0.5), 1, len(rows.probs)).astype(np.int64)
        values = np.empty(rows.nodes)
        for block in ranked(rows.probs):
            values[block.columns] = _nth_largest(block, wanted[block.columns])
        values[rows.prior == 0] = np.inf
        return values


def _nth_largest(block: Ranked, n: NDArray[np.int64]) -> NDArray[np.float64]:
    """The n-th largest probability of each node, or the smallest above 0; infinite where all are 0."""
    above_0 = np.count_nonzero(block.probs, axis=1)
    values = block.at(np.maximum(np.minimum(n, above_0), 1) - 1)
    return np.where(above_0 > 0, values, np.inf)
