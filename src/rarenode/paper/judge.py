"""`judge`: the scores of one training's probabilities under many decisions.

Thresholds are fitted to held-out rows, or to the probabilities of the test rows without their labels; labels of the
test rows serve only for scoring. Strategies see all nodes, scores count the scored ones.

Each strategy is scored with both rules of coherence, without calibration, fitted to the held-out rows. If
``expected_f1`` is among them, it is also fitted to calibrated probabilities. The strategies of `ON_TEST_ROWS`, which
need no labels, are also fitted to the test rows themselves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from rarenode.data.dataset import Dataset
from rarenode.metrics import (
    Summary,
    macro_average_precision,
    rarity_masks,
    summary,
    summary_by_depth,
    summary_by_rarity,
)
from rarenode.metrics.average_precision import precision_at_recalls
from rarenode.paper.measure import DividedRows
from rarenode.paper.record import (
    CalibrationName,
    CalibrationShown,
    Decided,
    DecisionScores,
    FittedOn,
    NodesFound,
    Record,
    RowsDecided,
)
from rarenode.paper.store import Probabilities
from rarenode.thresholds import (
    Calibration,
    Isotonic,
    Rule,
    Temperature,
    TemperatureByDepth,
    Thresholds,
    ece_by_rarity,
    make_strategy,
    reliability,
)
from rarenode.thresholds.calibration_error import BINS

CALIBRATED = "expected_f1"
"""The strategy that is tried with each calibration."""
ON_TEST_ROWS = ("expected_f1", "prior")
"""Strategies that are also fitted to the test rows, without labels."""
CALIBRATIONS: Mapping[CalibrationName, type[Calibration]] = MappingProxyType(
    {"temperature": Temperature, "temperature_by_depth": TemperatureByDepth, "isotonic": Isotonic}
)


def judge(rows: DividedRows, probabilities: Probabilities, decisions: Sequence[str]) -> Record:
    """Score probabilities under decisions.

    Args:
        rows: as the training's protocol divides them.
        probabilities: of held-out and test rows.
        decisions: threshold strategies, as in a spec.

    Raises:
        ArgumentError: a decision is not possible; the message says which and why.
    """
    scoring = _Judge(rows, _calibrated(rows, probabilities))
    return Record(
        **dict(probabilities.training),
        decisions=DecisionScores(
            epochs=probabilities.epochs,
            ap=_rounded(scoring.ap(rows.splits.test, probabilities.test)),
            ap_held_out=_rounded(scoring.ap(rows.held_out, probabilities.held_out)),
            macro_ap=_rounded(scoring.macro_ap(rows.splits.test, probabilities.test)),
            macro_ap_held_out=_rounded(scoring.macro_ap(rows.held_out, probabilities.held_out)),
            reliability={name: scoring.reliability(name) for name in get_args(CalibrationName)},
            curves=scoring.curves(),
            decided=tuple(scoring.decided(decisions)),
        ),
    )


@dataclass(frozen=True, eq=False)
class _Pair:
    held_out: NDArray[Any]
    test: NDArray[Any]


@dataclass(frozen=True, eq=False)
class _Judge:
    """Rows, and their probabilities under each calibration."""

    rows: DividedRows
    probs: Mapping[CalibrationName, _Pair]

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
        scored = self.rows.splits.scored
        probs, Y = self.probs[calibration].test[:, scored], self.rows.splits.test.Y[:, scored]
        known = _of_nodes(self.rows.splits.test.known, scored)
        bins = reliability(probs, Y, BINS, known=known)
        by_rarity = ece_by_rarity(probs, Y, self.rows.training_positives[scored], BINS, known=known)
        return CalibrationShown(
            mean_probability=tuple(map(_known, bins.mean_probability.tolist())),
            frequency=tuple(map(_known, bins.frequency.tolist())),
            cells=tuple(bins.count.tolist()),
            ece=_rounded(bins.ece),
            ece_by_rarity={band: _known(error) for band, error in by_rarity.items()},
        )

    def curves(self) -> dict[str, tuple[float, ...] | None]:
        """Of the test rows, without calibration."""
        count, found, test = self.rows.training_positives, {}, self.rows.splits.test
        for band, mask in rarity_masks(count).items():
            nodes = self.rows.splits.scored & mask
            known = _of_nodes(test.known, nodes)
            curve = precision_at_recalls(test.Y[:, nodes], self.probs["none"].test[:, nodes], known)
            found[band] = None if curve is None else tuple(map(_rounded, curve.tolist()))
        return found

    def ap(self, rows: Dataset, probs: NDArray[Any]) -> float:
        return summary(rows.Y, probs, scored=self.rows.splits.scored, known=rows.known).ap

    def macro_ap(self, rows: Dataset, probs: NDArray[Any]) -> float:
        scored = self.rows.splits.scored
        return macro_average_precision(rows.Y[:, scored], probs[:, scored], _of_nodes(rows.known, scored))

    def _by(
        self, decision: str, calibration: CalibrationName, fitted_on: FittedOn, rules: Sequence[Rule]
    ) -> Iterator[Decided]:
        probs = self.probs[calibration]
        thresholds = self._fit(decision, probs, fitted_on)
        hierarchy, scored, test = self.rows.splits.hierarchy, self.rows.splits.scored, self.rows.splits.test
        unseen = self.rows.held_out
        for rule in rules:
            ruled = replace(thresholds, rule=rule)
            # 0 and 1 are probabilities too, so `summary` scores decisions as well.
            on_test = ruled.decide(probs.test, hierarchy)
            positives = self.rows.training_positives
            by_rarity = summary_by_rarity(test.Y, on_test, positives, scored=scored, known=test.known)
            by_depth = summary_by_depth(test.Y, on_test, hierarchy, scored=scored, known=test.known)
            yield Decided(
                strategy=decision,
                rule=rule,
                calibration=calibration,
                fitted_on=fitted_on,
                test=_all_nodes(summary(test.Y, on_test, scored=scored, known=test.known)),
                held_out=_all_nodes(
                    summary(unseen.Y, ruled.decide(probs.held_out, hierarchy), scored=scored, known=unseen.known)
                ),
                by_rarity={band: _nodes(each) for band, each in by_rarity.items()},
                by_depth={depth: _nodes(each) for depth, each in by_depth.items()},
            )

    def _fit(self, decision: str, probs: _Pair, fitted_on: FittedOn) -> Thresholds:
        strategy = make_strategy(decision)
        if fitted_on == "test_without_labels":
            return strategy.fit(probs.test, prior=self.rows.prior)
        held_out = self.rows.held_out
        return strategy.fit(probs.held_out, held_out.Y, known=held_out.known, prior=self.rows.prior)


def _calibrated(rows: DividedRows, given: Probabilities) -> dict[CalibrationName, _Pair]:
    found: dict[CalibrationName, _Pair] = {"none": _Pair(given.held_out, given.test)}
    hierarchy = rows.splits.hierarchy
    for name, kind in CALIBRATIONS.items():
        fitted = kind.fit(given.held_out, rows.held_out.Y, hierarchy, known=rows.held_out.known)
        found[name] = _Pair(fitted.apply(given.held_out, hierarchy), fitted.apply(given.test, hierarchy))
    return found


def _of_nodes(known: NDArray[np.bool_] | None, nodes: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
    return None if known is None else known[:, nodes]


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
