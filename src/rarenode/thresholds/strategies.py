"""Strategies: from probabilities of held-out rows to one threshold for each node.

On training rows a model is more confident than on any others, so thresholds fitted there are too high: fit a strategy
on rows that the model was not trained on. Strategies that need no labels can be fitted on the rows to be predicted.

A node's threshold is fitted to the rows where its label is known. No threshold is 0 but a fixed one, so a row with the
probability 0 is never predicted and changes no choice but by being counted among the rows: that is what a row becomes
for a node that is unknown in it. A node that is unknown in all rows is never predicted, like one whose probabilities
are all 0.

====================  ============================================================  ==============
strategy              threshold of a node                                           needs
====================  ============================================================  ==============
`Fixed`               a constant
`GlobalThreshold`     the same for all nodes, with the best F1 on labelled rows     labels
`ExpectedF`           maximises the F-score expected from the probabilities
`PriorMatched`        predicts the node as often as it occurs in training rows      training prior
`Midpoint`            half-way between `ExpectedF` and `PriorMatched`              training prior
`TunedPerNode`        the best F1 on labelled rows, shrunk towards `ExpectedF`      labels
`PrecisionGuarantee`  the lowest that keeps a precision, with a probability of 0.9  labels
`RecallGuarantee`     the highest that keeps a recall, with a probability of 0.9    labels
====================  ============================================================  ==============
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rarenode.config.choices import Metric, check_strategy_argument, parse_strategy, strategy_text
from rarenode.errors import ArgumentError
from rarenode.thresholds.guarantees import GUARANTEED, PrecisionGuarantee, RecallGuarantee
from rarenode.thresholds.probabilities import Ranked, ranked
from rarenode.thresholds.strategy import HeldOut, Strategy

Floats = NDArray[np.float64]

MOST_CANDIDATES = 1024
ROUNDING = 1e-12
"""Scores that differ by less are equal: the order in which floats are added must not change a threshold."""
BELOW_1 = 1 - np.finfo(np.float64).epsneg


def make_strategy(text: str) -> Strategy:
    """The strategy of a name such as ``expected_f1``, ``prior``, ``tuned:5`` or ``fixed:0.3``.

    Raises:
        ArgumentError: there is no such strategy, or its argument is missing or out of range.

    >>> make_strategy("expected_f2")
    ExpectedF(beta=2.0)
    """
    name, argument = parse_strategy(text)
    return _MAKE[name](argument)


# --- the same threshold for all nodes ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fixed(Strategy):
    """A constant threshold for all nodes.

    The conventional 0.5, which the paper uses, hides rare nodes: their probabilities seldom reach it.

    Args:
        threshold: from 0 to 1.
    """

    threshold: float = 0.5

    def __post_init__(self) -> None:
        check_strategy_argument("fixed", self.threshold)

    @property
    def name(self) -> str:
        """``fixed``, or ``fixed:0.3``."""
        return strategy_text("fixed", self.threshold)

    def choose(self, rows: HeldOut) -> Floats:
        """The constant."""
        return np.full(rows.nodes, float(self.threshold))


@dataclass(frozen=True)
class GlobalThreshold(Strategy):
    """One threshold for all nodes, the best on labelled rows.

    Between the probabilities of two positive cells (row, node) a lower threshold adds only false positives, so only
    probabilities of positive cells are candidates: all distinct ones up to 1,024, or that many at even spacing in
    their order. Of equally good thresholds the highest is chosen.

    Args:
        metric: ``f1``, the mean over nodes of their F1 (0 where undefined), or ``micro_f1``, the F1 of all cells.
    """

    metric: Metric = "f1"
    needs_labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_strategy_argument("global", self.metric)

    @property
    def name(self) -> str:
        """``global``, or ``global:micro_f1``."""
        return strategy_text("global", self.metric)

    def choose(self, rows: HeldOut) -> Floats:
        """The best threshold, repeated for each node."""
        assert rows.labels is not None  # noqa: S101 (`Strategy.fit` requires them)
        candidates = np.unique(rows.probs[rows.labels])
        candidates = candidates[candidates > 0]
        if not len(candidates):
            raise ArgumentError(f"{self.name} needs a positive cell (row, node) with a probability above 0")
        if len(candidates) > MOST_CANDIDATES:
            candidates = candidates[np.linspace(0, len(candidates) - 1, MOST_CANDIDATES).round().astype(np.int64)]
        f1 = np.zeros(len(candidates))
        all_hits, all_predicted = np.zeros((2, len(candidates)), dtype=np.int64)
        for block in ranked(rows.probs, rows.labels):
            for falling, hits_of_first in zip(block.probs, block.hits, strict=True):
                predicted = len(falling) - np.searchsorted(falling[::-1], candidates, side="left")
                hits = np.append(0, hits_of_first)[predicted]
                f1 += 2 * hits / np.maximum(predicted + hits_of_first[-1], 1)
                all_hits += hits
                all_predicted += predicted
        micro_f1 = 2 * all_hits / (all_predicted + np.count_nonzero(rows.labels))
        score = f1 / rows.nodes if self.metric == "f1" else micro_f1
        best = candidates[np.flatnonzero(score >= score.max() - ROUNDING)[-1]]
        return np.full(rows.nodes, float(best))


# --- a threshold for each node -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExpectedF(Strategy):
    """For each node, the threshold with the best F-score that the probabilities themselves predict. Needs no labels.

    The F-score of predicting the k rows with the highest probabilities, of which ``hits`` are among P positives, is
    (1 + b^2) hits / (b^2 P + k). Its expectation has no simple form, as hits and P vary together; it is approximated by
    the ratio of the expectations. With probabilities p_(1) >= p_(2) >= ... and their sum S,

        F(k) = (1 + b^2) (p_(1) + ... + p_(k)) / (b^2 S + k)

    For probabilities of 0 and 1 this is exact. F(k) rises as long as p_(k + 1) > F(k) / (1 + b^2), so it has one
    maximum, and the rows predicted there are those with a probability above F / (1 + b^2). For F1 that is half of the
    best F1: 0.5 only for a node that is predicted perfectly, and far less for a rare one. A node with any probability
    above 0 is predicted at least once.

    Its weakness is a node with fewer than one expected positive: as S goes to 0, the exact expectation prefers more
    rows than the ratio does. Fitting on more rows raises S.

    Args:
        beta: how many times as important recall is as precision; above 0.

    >>> ExpectedF().fit([[0.9], [0.4], [0.3], [0.02]]).values
    array([0.4])
    """

    beta: float = 1.0

    def __post_init__(self) -> None:
        check_strategy_argument("expected_f", self.beta)

    @property
    def name(self) -> str:
        """``expected_f1`` for a beta of 1."""
        return strategy_text("expected_f", self.beta)

    def choose(self, rows: HeldOut) -> Floats:
        """The lowest probability that is predicted at the maximum; infinity where all are 0."""
        return np.concatenate([np.empty(0), *(_best_expected_f(block, self.beta) for block in ranked(rows.probs))])


def _best_expected_f(block: Ranked, beta: float) -> Floats:
    # The factor 1 + b^2 is the same for all k. The maximum may lie among equal probabilities: the threshold is their
    # common value.
    f = block.sums / (beta**2 * block.sums[:, -1:] + block.counts)
    values = block.at(np.argmax(f, axis=1))
    return np.where(values > 0, values, np.inf)


@dataclass(frozen=True)
class PriorMatched(Strategy):
    """For each node, as many predictions as its share of the training rows suggests. Needs the training prior.

    With N rows and a prior q the n = factor q N rows with the highest probabilities are predicted: n is rounded to the
    nearest whole number (a half upwards), at least 1 where q > 0, and 0 where q = 0. The threshold is the n-th largest
    probability, so rows equal to it are predicted too; a row of probability 0 never is.

    Only the order of the probabilities matters, so they need no calibration.

    Args:
        factor: how many times as many predictions; above 0.

    >>> PriorMatched().fit([[0.9], [0.4], [0.3], [0.02]], prior=[0.5]).values
    array([0.4])
    """

    factor: float = 1.0
    needs_prior: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_strategy_argument("prior", self.factor)

    @property
    def name(self) -> str:
        """``prior``, or ``prior:1.5``."""
        return strategy_text("prior", self.factor)

    def choose(self, rows: HeldOut) -> Floats:
        """The n-th largest probability, or the smallest above 0; infinity where all are 0 or the prior is."""
        assert rows.prior is not None  # noqa: S101 (`Strategy.fit` requires it)
        expected = self.factor * rows.prior * rows.known_rows
        n = np.clip(np.floor(expected + 0.5), 1, rows.known_rows).astype(np.int64)
        values = np.empty(rows.nodes)
        for block in ranked(rows.probs):
            above_0 = np.count_nonzero(block.probs, axis=1)
            nth_largest = block.at(np.maximum(np.minimum(n[block.columns], above_0), 1) - 1)
            values[block.columns] = np.where(above_0 > 0, nth_largest, np.inf)
        values[rows.prior == 0] = np.inf
        return values


@dataclass(frozen=True)
class Midpoint(Strategy):
    """For each node, half-way between the thresholds of `ExpectedF` and `PriorMatched`, on the logit scale.

    Out-of-fold predictions come from models with fewer rows than the one that decides in the end, which is more
    confident: thresholds for the best expected F1 are then too low, and predict a rare node several times too often.
    As many predictions as the prior suggests are too few for the best F1, as some of them are wrong. The truth is in
    between. A node that one of the two never predicts is never predicted.

    Args:
        towards_prior: how far, from 0 (`ExpectedF`) to 1 (`PriorMatched`).
    """

    towards_prior: float = 0.5
    needs_prior: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_strategy_argument("midpoint", self.towards_prior)

    @property
    def name(self) -> str:
        """``midpoint``, or ``midpoint:0.3``."""
        return strategy_text("midpoint", self.towards_prior)

    def choose(self, rows: HeldOut) -> Floats:
        """The threshold between the two; infinity where one of them is."""
        return _between(ExpectedF().choose(rows), PriorMatched().choose(rows), self.towards_prior)


def _between(start: Floats, end: Floats, share: NDArray[np.float64] | float) -> Floats:
    """The thresholds that are a share of the way from the first to the second, on the logit scale."""
    values = np.full(len(start), np.inf)
    finite = np.flatnonzero(np.isfinite(start) & np.isfinite(end))
    a, b, share = start[finite], end[finite], np.broadcast_to(share, len(start))[finite]
    # A threshold is the probability of a row that it includes, so rounding must not raise it above: the mean of equal
    # thresholds is that threshold, and each end is itself.
    mixed = np.clip(1 / (1 + np.exp((share - 1) * _logit(a) - share * _logit(b))), np.minimum(a, b), np.maximum(a, b))
    values[finite] = np.where(share == 0, a, np.where(share == 1, b, mixed))
    return values


@dataclass(frozen=True)
class TunedPerNode(Strategy):
    """For each node, the threshold with the best F1 on labelled rows, shrunk towards that of `ExpectedF`.

    A threshold tuned on three positives overfits them, and rare nodes have few positives. The threshold t0 of
    `ExpectedF` needs no labels. With n positives, t the threshold of the best F1 and s the shrinkage, on the logit
    scale:

        logit(threshold) = (n logit(t) + s logit(t0)) / (n + s)

    This gives t0 the weight of s positives: without positives it is t0, with n = s it is half-way, with many it is t.
    On the logit scale 0.001 and 0.01 are as far apart as 0.1 and 0.53; a mean of probabilities would all but ignore the
    smaller one.

    Args:
        shrinkage: the weight of t0, in positives; 0 uses the labels alone.
    """

    shrinkage: float = 10.0
    needs_labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_strategy_argument("tuned", self.shrinkage)

    @property
    def name(self) -> str:
        """``tuned``, or ``tuned:5``."""
        return strategy_text("tuned", self.shrinkage)

    def choose(self, rows: HeldOut) -> Floats:
        """The shrunken threshold; that of `ExpectedF` for a node without a positive of a probability above 0."""
        values = np.empty(rows.nodes)
        for block in ranked(rows.probs, rows.labels):
            f1 = np.where(block.ends, 2 * block.hits / (block.counts + block.hits[:, -1:]), 0.0)
            tuned = block.at(np.argmax(f1, axis=1))  # the highest of equally good ones
            positives = np.where(f1.max(axis=1) > 0, block.hits[:, -1], 0)
            expected = _best_expected_f(block, 1.0)
            share = np.divide(positives, positives + self.shrinkage, out=np.zeros(len(positives)), where=positives > 0)
            values[block.columns] = np.where(positives > 0, _between(expected, tuned, share), expected)
        return values


def depends_on_rows(thresholds: str | None) -> bool:
    """Whether thresholds that replace a model's own are fitted to the rows that are decided; None replaces nothing.

    >>> [depends_on_rows(each) for each in (None, "guaranteed", "fixed:0.3", "expected_f1")]
    [False, False, False, True]
    """
    if thresholds is None or thresholds == GUARANTEED:
        return False
    return not isinstance(make_strategy(thresholds), Fixed)


def _logit(p: Floats) -> Floats:
    p = np.minimum(p, BELOW_1)
    return np.asarray(np.log(p) - np.log1p(-p), dtype=np.float64)


_MAKE: Mapping[str, Callable[[Any], Strategy]] = MappingProxyType(
    {
        "fixed": Fixed,
        "global": GlobalThreshold,
        "expected_f": ExpectedF,
        "prior": PriorMatched,
        "midpoint": Midpoint,
        "tuned": TunedPerNode,
        "precision": PrecisionGuarantee,
        "recall": RecallGuarantee,
    }
)
