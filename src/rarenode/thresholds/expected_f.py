"""`ExpectedF`: for each node, the threshold that maximises the expected F under the model's own probabilities.

F_b of predicting the k likeliest of a node's rows, if hits of them and P rows in all carry the node, is
(1 + b^2) hits / (b^2 P + k). Its expectation has no simple form, as hits and P vary together. It is approximated by the
ratio of the expectations: with probabilities p_(1) >= p_(2) >= ... and their sum S,

    F(k) = (1 + b^2) (p_(1) + ... + p_(k)) / (b^2 S + k)

For probabilities that are all 0 or 1 this is exact. Otherwise it errs to both sides, and which k it prefers matters
more than its value. Its weakness is a node that less than one row is expected to carry: as S goes to 0, the exact
expectation goes to (1 + b^2) (p_(1) + ... + p_(k)) / (b^2 + k), which prefers more rows. Fitting on more rows raises S.

F(k) rises exactly as long as p_(k + 1) > F(k) / (1 + b^2). So it has one summit, and never within equal probabilities.
The rows predicted at the summit are those whose probability exceeds F / (1 + b^2). For F1 that is half of the best F1:
0.5 only for a node that is predicted perfectly, and far less for a rare one. The threshold is the lowest of their
probabilities.

A node whose probabilities sum to anything is predicted at least once: predicting nothing has an F of 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rarenode.thresholds.ranking import Ranked, ranked
from rarenode.thresholds.strategy import HeldOut, Strategy, check_number, with_number


@dataclass(frozen=True)
class ExpectedF(Strategy):
    """The best threshold for expected F, node by node. It needs no labels.

    Args:
        beta: how many times as much recall counts as precision; above 0.

    >>> ExpectedF().fit([[0.9], [0.4], [0.3], [0.02]]).values
    array([0.4])
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        check_number(self.beta, "beta", most=1e6, open_below=True)

    @property
    def name(self) -> str:
        """``expected_f1`` for a beta of 1."""
        return with_number("expected_f", self.beta)

    def choose(self, rows: HeldOut) -> NDArray[np.float64]:
        """The threshold at the summit; never, for a node whose probabilities are all 0."""
        return np.concatenate([np.empty(0), *(best_expected_f(block, self.beta) for block in ranked(rows.probs))])


def best_expected_f(block: Ranked, beta: float) -> NDArray[np.float64]:
    """The threshold of each node of a block."""
    # 1 + b^2 is the same for all k. Where the summit lies among equal probabilities does not matter: the threshold is
    # their common value.
    f = block.sums / (beta**2 * block.sums[:, -1:] + block.counts)
    values = block.at(np.argmax(f, axis=1))
    return np.where(values > 0, values, np.inf)
