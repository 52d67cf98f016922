"""`decide`: judge one training's probabilities under many decisions.

Every threshold comes from held-out rows, or from the probabilities of the test rows without their labels; the labels of
the test rows are looked at only to score what was decided. Strategies see all nodes, scores count the scored ones.

For each strategy: both rules of coherence, no calibration, fitted on the held-out rows. Where ``expected_f1`` is among
the strategies, it is fitted to probabilities under each calibration as well. Strategies that can do without labels and
are worth it, `ON_TEST_ROWS`, are also fitted on the test rows themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, get_args

from numpy.typing import NDArray

from rarenode.data.dataset import Split
from rarenode.errors import ArgumentError
from rarenode.metrics import Summary, rarity_masks, summary, summary_by_depth, summary_by_rarity
from rarenode.metrics.precision_recall import precision_at_recalls
from rarenode.paper.decided import (
    CalibrationName,
    CalibrationShown,
    Decided,
    DecidedRecord,
    FittedOn,
    NodesFound,
    RowsDecided,
)
from rarenode.paper.held_out import DividedRows
from rarenode.paper.published import best_published
from rarenode.paper.scores import Scores
from rarenode.paper.spec import PRECISION_OF_PAPER
from rarenode.thresholds import (
    Calibration,
    Isotonic,
    PrecisionFloor,
    Rule,
    Strategy,
    Temperature,
    TemperatureByDepth,
    Thresholds,
    ece_by_rarity,
    make_strategy,
    reliability,
)
from rarenode.thresholds.calibration_error import BINS

CALIBRATED = "expected_f1"
"""The strategy that is tried under each calibration."""
ON_TEST_ROWS = ("expected_f1", "prior")
"""Strategies that are also fitted on the test rows, without labels."""
CALIBRATIONS: Mapping[CalibrationName, type[Calibration]] = MappingProxyType(
    {"temperature": Temperature, "temperature_by_depth": TemperatureByDepth, "isotonic": Isotonic}
)


def decide(rows: DividedRows, scores: Scores, decisions: Sequence[str]) -> DecidedRecord:
    """Judge probabilities under decisions.

    Args:
        rows: what the training was given, and what it was not.
        scores: what it said of the latter.
        decisions: names of strategies, as in a spec.

    Raises:
        ArgumentError: a decision cannot be made; the message says which and why.
    """
    judge = _Judge(rows, _probabilities(rows, scores))
    return DecidedRecord(
        **dict(scores.training),
        ap=_rounded(judge.ap(rows.dataset.test, scores.test)),
        ap_held_out=_rounded(judge.ap(rows.held_out, scores.held_out)),
        reliability={name: judge.reliability(name) for name in get_args(CalibrationName)},
        curves=judge.curves(),
        decided=tuple(judge.decided(decisions)),
    )


def strategy_of(decision: str, dataset: str) -> Strategy:
    """The strategy of a decision that a spec names.

    Raises:
        ArgumentError: there is none of that name, or the paper has no precision for the dataset.
    """
    if decision != PRECISION_OF_PAPER:
        return make_strategy(decision)
    best = best_published(dataset, "precision")
    if best is None:
        raise ArgumentError(f"{decision}: the paper has no precision for {dataset}")
    return PrecisionFloor(best.means["precision"] / 100)


@dataclass(frozen=True, eq=False)
class _Probabilities:
    held_out: NDArray[Any]
    test: NDArray[Any]


@dataclass(frozen=True, eq=False)
class _Judge:
    """Rows, and their probabilities under each calibration."""

    rows: DividedRows
    probs: Mapping[CalibrationName, _Probabilities]

    def decided(self, decisions: Sequence[str]) -> Iterator[Decided]:
        for decision in decisions:
            yield from self._by(decision, "none", "held_out", get_args(Rule))
            if decision == CALIBRATED:
                for calibration in CALIBRATIONS:
                    yield from self._by(decision, calibration, "held_out", ("add_ancestors",))
            if decision in ON_TEST_ROWS:
                yield from self._by(decision, "none", "test_without_labels", get_args(Rule))

    def reliability(self, calibration: CalibrationName) -> CalibrationShown:
        """On the cells of test rows and scored nodes."""
        scored = self.rows.dataset.scored
        probs, Y = self.probs[calibration].test[:, scored], self.rows.dataset.test.Y[:, scored]
        bins = reliability(probs, Y, BINS)
        by_rarity = ece_by_rarity(probs, Y, self.rows.training_positives[scored], BINS)
        return CalibrationShown(
            mean_probability=tuple(map(_known, bins.mean_probability.tolist())),
            frequency=tuple(map(_known, bins.frequency.tolist())),
            cells=tuple(bins.count.tolist()),
            ece=_rounded(bins.ece),
            ece_by_rarity={band: _known(error) for band, error in by_rarity.items()},
        )

    def curves(self) -> dict[str, tuple[float, ...] | None]:
        """Of the probabilities of test rows as the model gave them."""
        count, found = self.rows.training_positives, {}
        for band, mask in rarity_masks(count).items():
            nodes = self.rows.dataset.scored & mask
            curve = precision_at_recalls(self.rows.dataset.test.Y[:, nodes], self.probs["none"].test[:, nodes])
            found[band] = None if curve is None else tuple(map(_rounded, curve.tolist()))
        return found

    def ap(self, split: Split, probs: NDArray[Any]) -> float:
        return summary(split.Y, probs, scored=self.rows.dataset.scored).ap

    def _by(
        self, decision: str, calibration: CalibrationName, fitted_on: FittedOn, rules: Sequence[Rule]
    ) -> Iterator[Decided]:
        probs = self.probs[calibration]
        thresholds = self._fit(decision, probs, fitted_on)
        hierarchy, scored, test = self.rows.dataset.hierarchy, self.rows.dataset.scored, self.rows.dataset.test
        for rule in rules:
            ruled = replace(thresholds, rule=rule)
            # 0 and 1 are probabilities too: a summary of them is that of the decisions.
            on_test = ruled.decide(probs.test, hierarchy)
            by_rarity = summary_by_rarity(test.Y, on_test, self.rows.training_positives, scored=scored)
            by_depth = summary_by_depth(test.Y, on_test, hierarchy, scored=scored)
            yield Decided(
                strategy=decision,
                rule=rule,
                calibration=calibration,
                fitted_on=fitted_on,
                test=_all_nodes(summary(test.Y, on_test, scored=scored)),
                held_out=_all_nodes(
                    summary(self.rows.held_out.Y, ruled.decide(probs.held_out, hierarchy), scored=scored)
                ),
                by_rarity={band: _nodes(each) for band, each in by_rarity.items()},
                by_depth={depth: _nodes(each) for depth, each in by_depth.items()},
            )

    def _fit(self, decision: str, probs: _Probabilities, fitted_on: FittedOn) -> Thresholds:
        strategy = strategy_of(decision, self.rows.dataset.name)
        if fitted_on == "test_without_labels":
            return strategy.fit(probs.test, prior=self.rows.prior)
        return strategy.fit(probs.held_out, self.rows.held_out.Y, prior=self.rows.prior)


def _probabilities(rows: DividedRows, scores: Scores) -> dict[CalibrationName, _Probabilities]:
    found: dict[CalibrationName, _Probabilities] = {"none": _Probabilities(scores.held_out, scores.test)}
    hierarchy = rows.dataset.hierarchy
    for name, kind in CALIBRATIONS.items():
        fitted = kind.fit(scores.held_out, rows.held_out.Y, hierarchy)
        found[name] = _Probabilities(fitted.apply(scores.held_out, hierarchy), fitted.apply(scores.test, hierarchy))
    return found


def _nodes(scores: Summary) -> NodesFound:
    return NodesFound(
        nodes=scores.nodes,
        nodes_found=scores.nodes_found,
        f1=_rounded(scores.f1),
        precision=_rounded(scores.precision),
        recall=_rounded(scores.recall),
    )


def _all_nodes(scores: Summary) -> RowsDecided:
    return RowsDecided(**dict(_nodes(scores)), nodes_predicted=scores.nodes_predicted, bin_ap=_rounded(scores.bin_ap))


def _known(value: float) -> float | None:
    return None if math.isnan(value) else _rounded(value)


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
