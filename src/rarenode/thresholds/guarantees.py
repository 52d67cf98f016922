"""Strategies that keep a promise with a stated probability, whatever the model: precision and recall.

They are fitted to labelled rows that the model was not trained on, as all strategies are. If the rows to be predicted
come from the same source as these, the promise holds in at least 9 of 10 cases, where a case is a new set of such
labelled rows. Nothing is assumed about the probabilities. Out-of-fold predictions come from models with fewer rows than
the one that decides in the end, so there the promise is only as good as these resemble it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rarenode._io.text import counted
from rarenode.config.choices import check_strategy_argument, strategy_text
from rarenode.hierarchy.labels import as_known
from rarenode.thresholds.falling import FallingCells
from rarenode.thresholds.probabilities import as_probabilities_and_labels, ranked
from rarenode.thresholds.strategy import HeldOut, Strategy
from rarenode.thresholds.thresholds import Thresholds

Floats = NDArray[np.float64]

CONFIDENCE = 0.9
"""How often a promise holds."""
GUARANTEED = "guaranteed"
"""In the place of a strategy: the thresholds of `GuaranteedRecall` that a model keeps beside its own."""
BAND = 5
"""Nodes are in one band whose expected positives lie between two powers of this."""
STARTS = (16, 64, 256)
"""Predictions at the thresholds where a search begins."""
GROWTH = 1.1
"""How many times as many predictions the next threshold makes."""
BETS = np.linspace(0.05, 0.95, 19)
"""What is staked on each row, as a share of what may be lost."""


@dataclass(frozen=True)
class RecallGuarantee(Strategy):
    """For each node, the highest threshold that finds a share of its rows, with a probability of 0.9.

    Of n labelled rows with the node, let p be the r-th smallest probability. The share of all rows with the node that
    have at least p is larger than c with a probability of at least P(B >= r), where B is binomial with n draws of
    probability 1 - c (a tolerance limit, as Wilks found). The threshold is p for the largest r with which that is at
    least 0.9. For a recall of 0.9 that takes 22 rows. A node with fewer is never predicted: nothing can be promised
    about it.

    The promise is one for each node by its own threshold, and holds with the rule ``add_ancestors``, which only adds
    predictions.

    Args:
        recall: above 0, below 1.

    >>> RecallGuarantee(0.5).fit([[0.1], [0.5], [0.7], [0.9]], [[1], [1], [1], [1]]).values
    array([0.1])
    """

    recall: float
    needs_labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_strategy_argument("recall", self.recall)

    @property
    def name(self) -> str:
        """For example ``recall:0.9``."""
        return strategy_text("recall", self.recall)

    def choose(self, rows: HeldOut) -> Floats:
        """The highest threshold that keeps the promise; infinity where none does."""
        values = np.full(rows.nodes, np.inf)
        for block in ranked(rows.probs, rows.labels):
            positives = block.hits[:, -1]
            for place, n in enumerate(positives.tolist()):
                left_out = most_left_out(n, self.recall)
                if left_out is None:
                    continue
                # The last of the n - left_out positives with the highest probabilities.
                last = int(np.searchsorted(block.hits[place], n - left_out))
                value = float(block.probs[place, last])
                values[block.columns.start + place] = value if value > 0 else np.inf
        return values


def most_left_out(n: int, recall: float) -> int | None:
    """How many of n rows with a node may lie below a threshold that is to find a share of all; None if n is too small.

    >>> most_left_out(21, 0.9), most_left_out(22, 0.9), most_left_out(100, 0.9)
    (None, 0, 5)
    """
    # P(B <= r - 1) must be at most 0.1; r - 1 rows lie below the r-th.
    found, below = None, 0.0
    for left_out in range(n + 1):
        log_term = (
            math.lgamma(n + 1) - math.lgamma(left_out + 1) - math.lgamma(n - left_out + 1)
            + left_out * math.log1p(-recall) + (n - left_out) * math.log(recall)
        )  # fmt: skip
        below += math.exp(log_term)
        if below > 1 - CONFIDENCE or left_out == n:
            break
        found = left_out
    return found


@dataclass(frozen=True, eq=False)
class GuaranteedRecall:
    """For each node a set of rows that holds a share of all rows with the node, with a probability of 0.9.

    The thresholds are those of `RecallGuarantee`. A row is in the set of a node if its probability reaches the node's
    own threshold, whatever its other nodes: sets are not coherent, since a rare node far below would drag many rows
    into the sets of all its ancestors. A node has no guarantee if too few held-out rows have it, or if the model gives
    too many of these a probability of 0.
    """

    recall: float
    """The share, above 0 and below 1."""
    thresholds: Thresholds
    """Infinity for a node without a guarantee; without a rule of coherence."""
    rows: NDArray[np.int64]
    """(nodes,): how many held-out rows are known to have each node."""

    @classmethod
    def fit(cls, recall: float, probs: Any, Y: Any, *, known: Any = None) -> Self:
        """Choose the thresholds; the arguments are those of `Strategy.fit`.

        >>> found = GuaranteedRecall.fit(0.5, [[0.1, 0.1], [0.5, 0.2], [0.7, 0.2], [0.9, 0.8]], [[1, 0]] * 4)
        >>> found.thresholds.values, found.rows, found.rows_needed
        (array([0.1, inf]), array([4, 0]), 4)
        """
        strategy = RecallGuarantee(recall)
        values = strategy.fit(probs, Y, known=known).values
        labels = as_probabilities_and_labels(probs, Y)[1]
        cells = as_known(known, labels.shape)
        rows = np.count_nonzero(labels if cells is None else labels & cells, axis=0)
        return cls.of(recall, values, rows)

    @classmethod
    def of(cls, recall: float, values: Floats, rows: NDArray[np.int64]) -> Self:
        """From the values of the thresholds."""
        return cls(recall, Thresholds(values, None, f"{GUARANTEED}, {RecallGuarantee(recall).name}"), rows)

    @property
    def is_guaranteed(self) -> NDArray[np.bool_]:
        """(nodes,): which nodes have a guarantee."""
        return np.isfinite(self.thresholds.values)

    @cached_property
    def rows_needed(self) -> int:
        """How many held-out rows a node needs at least: 22 for a recall of 0.9."""
        return next(n for n in count(1) if most_left_out(n, self.recall) is not None)

    def reason(self, node: int) -> str:
        """Why a node (its column) has no guarantee; empty if it has one."""
        if self.is_guaranteed[node]:
            return ""
        if self.rows[node] < self.rows_needed:
            return f"{self.rows[node]:,} of {self.rows_needed:,} held-out rows that it takes"
        return "its probability is 0 in held-out rows that have it"

    def in_words(self, scored: NDArray[np.bool_]) -> str:
        """How many of the scored nodes have a guarantee, and why others have none."""
        has, few = self.is_guaranteed & scored, (self.rows < self.rows_needed) & scored
        nodes, without, too_few = (int(np.count_nonzero(mask)) for mask in (scored, scored & ~has & ~few, few))
        reasons = [f"{too_few:,} with fewer than {self.rows_needed:,} held-out rows"] if too_few else []
        if without:
            reasons.append(f"{without:,} whose probability is 0 in held-out rows that have them")
        left_out = f"; left out: {' and '.join(reasons)}" if reasons else ""
        number = int(np.count_nonzero(has))
        have = "has" if number == 1 else "have"
        recall = f"a guaranteed recall of {self.recall:g} (with a probability of {CONFIDENCE:g})"
        return f"{number:,} of {counted(nodes, 'node')} {have} {recall}{left_out}"


@dataclass(frozen=True)
class PrecisionGuarantee(Strategy):
    """The lowest thresholds whose predictions are right often enough, with a probability of 0.9.

    Rare nodes have too few rows for a promise of their own, so nodes that are expected about equally often (by the sum
    of their probabilities, in powers of 5) form a band and have one threshold, and the promise is about the band: of
    all its predictions, at least the share c is right. All bands keep it together.

    With D predictions and H right ones in a row, Z = H - c D is positive on average if the precision is above c.
    If it is not, then for any b >= 0 with 1 + b Z > 0 the product of 1 + b Z over independent rows is 1 on average at
    most, and so is the mean over several b; by Markov's inequality it exceeds 1/d with a probability of at most d. A
    threshold whose product exceeds that has the precision. Thresholds are tried from high to low until one fails, from
    three beginnings (learn then test, with a fixed sequence), and d is 0.1, shared by beginnings and bands.

    Bounding b takes the most predictions in any row, for which the most of any labelled row stands.

    A rarer band has no lower threshold than a more frequent one. As a parent is expected at least as often as its
    child, and is at least as probable, no ancestor is predicted only because of a descendant.

    Args:
        precision: above 0, below 1.
    """

    precision: float
    needs_labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_strategy_argument("precision", self.precision)

    @property
    def name(self) -> str:
        """For example ``precision:0.5``."""
        return strategy_text("precision", self.precision)

    def choose(self, rows: HeldOut) -> Floats:
        """The threshold of each node's band; infinity where none keeps the promise, and in all rarer bands."""
        assert rows.labels is not None  # noqa: S101 (`Strategy.fit` requires them)
        expected = rows.probs.sum(axis=0, dtype=np.float64)
        possible = expected > 0
        band = np.floor(np.log(np.maximum(expected, 1.0)) / math.log(BAND)).astype(np.int64)
        bands = sorted(set(band[possible].tolist()), reverse=True)
        values, least = np.full(rows.nodes, np.inf), 0.0
        for number in bands:
            nodes = np.flatnonzero(possible & (band == number))
            needed = len(STARTS) * len(bands) / (1 - CONFIDENCE)
            least = self._lowest(FallingCells(rows.probs, rows.labels, nodes, least), math.log(needed))
            values[nodes] = least
            if least == np.inf:
                break
        return values

    def _lowest(self, cells: FallingCells, needed: float) -> float:
        """The lowest threshold of a band whose evidence reaches what is needed; or infinity."""
        predicted, hits = np.zeros(len(cells.probs)), np.zeros(len(cells.probs))
        lowest, done, count = np.inf, 0, min(STARTS[0], len(cells))
        waiting, running = list(STARTS), False
        for chunk in cells.chunks():
            while done < chunk.last:
                end = chunk.last
                if count <= end:
                    value = chunk.probs[count - chunk.first - 1]
                    # A threshold includes all equal ones.
                    end = chunk.last - int(np.searchsorted(chunk.probs[::-1], value))
                new = slice(done - chunk.first, end - chunk.first)
                np.add.at(predicted, chunk.rows[new], 1.0)
                np.add.at(hits, chunk.rows[new], chunk.right[new])
                done = end
                if count > end:  # the next threshold is in another chunk
                    break
                begins = False
                while waiting and end >= waiting[0]:
                    begins = bool(waiting.pop(0))
                if running or begins:
                    running = self._evidence(predicted, hits) >= needed
                    lowest = value if running else lowest
                if not (waiting or running):
                    return float(lowest)
                count = min(max(end + 1, math.ceil(end * GROWTH)), len(cells))
        return float(lowest)

    def _evidence(self, predicted: Floats, hits: Floats) -> float:
        """The logarithm of the mean product."""
        some = predicted > 0
        gains = hits[some] - self.precision * predicted[some]
        stakes = BETS[:, None] / (self.precision * predicted.max())
        products = np.log1p(stakes * gains).sum(axis=1)
        top = products.max()
        return float(top + np.log(np.mean(np.exp(products - top))))
