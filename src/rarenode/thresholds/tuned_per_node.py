"""`TunedPerNode`: the best threshold of each node on labelled rows, trusted as far as the node has positives.

A threshold fitted to three positive rows is where those three happened to lie; taken as it is, it overfits, and rare
nodes are those with few. What is known without labels is the threshold t0 of the best *expected* F1 (`ExpectedF`). With
n positives, t the threshold of the best F1 on the labels and s the shrinkage, on the scale of log-odds:

    logit(threshold) = (n logit(t) + s logit(t0)) / (n + s)

That is t0 with the weight of s positives that were seen before: no positives leave t0, ten of them (at s = 10) meet it
half-way, and many leave t. On the scale of log-odds 0.001 and 0.01 are as far apart as 0.1 and 0.53, as they are in the
rows they separate; a mean of probabilities would all but ignore the smaller one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from rarenode.thresholds.expected_f import best_expected_f
from rarenode.thresholds.ranking import Ranked, ranked
from rarenode.thresholds.strategy import HeldOut, Strategy, check_number, with_number

BELOW_1 = 1 - np.finfo(np.float64).epsneg


@dataclass(frozen=True)
class TunedPerNode(Strategy):
    """The best threshold for F1, node by node, shrunk towards `ExpectedF`'s.

    Args:
        shrinkage: how many positives the threshold without labels is worth; 0 trusts the labels alone.
    """

    shrinkage: float = 10.0
    needs_labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_number(self.shrinkage, "shrinkage", open_below=False)

    @property
    def name(self) -> str:
        """``tuned``, or ``tuned:5``."""
        return "tuned" if self.shrinkage == 10 else with_number("tuned:", self.shrinkage)

    def choose(self, rows: HeldOut) -> NDArray[np.float64]:
        """The shrunken threshold of each node; without a positive of a probability above 0, that of `ExpectedF`."""
        values = np.empty(rows.nodes)
        for block in ranked(rows.probs, rows.labels):
            tuned, without_labels = _best_f1(block), best_expected_f(block, beta=1.0)
            seen = np.where(np.isnan(tuned), 0, block.hits[:, -1])
            values[block.columns] = _shrink(tuned, without_labels, seen, self.shrinkage)
        return values


def _best_f1(block: Ranked) -> NDArray[np.float64]:
    """The threshold of the best F1 of each node, the highest of equally good ones; NaN where F1 is 0 at all."""
    f1 = np.where(block.ends, 2 * block.hits / (block.counts + block.hits[:, -1:]), 0.0)
    best = np.argmax(f1, axis=1)
    return np.where(f1.max(axis=1) > 0, block.at(best), np.nan)


def _shrink(
    tuned: NDArray[np.float64], towards: NDArray[np.float64], seen: NDArray[np.int64], shrinkage: float
) -> NDArray[np.float64]:
    values = towards.copy()
    some = np.flatnonzero(seen)
    t, t0, n = tuned[some], towards[some], seen[some]
    mean = (n * _logit(t) + shrinkage * _logit(t0)) / (n + shrinkage)
    # A threshold is the probability of a row that it takes. Rounding must not push it above: a mean of equal ones is
    # that one, and without shrinkage it is the tuned one.
    mixed = np.clip(1 / (1 + np.exp(-mean)), np.minimum(t, t0), np.maximum(t, t0))
    values[some] = t if shrinkage == 0 else mixed
    return values


def _logit(p: NDArray[np.float64]) -> NDArray[np.float64]:
    p = np.minimum(p, BELOW_1)
    return np.asarray(np.log(p) - np.log1p(-p), dtype=np.float64)
