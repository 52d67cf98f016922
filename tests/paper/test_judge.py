"""Decisions on rows that are made up, against what the definitions say."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import get_args

import numpy as np
import pytest

from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.hierarchy import Hierarchy
from rarenode.paper.judge import judge
from rarenode.paper.measure import DividedRows, divide
from rarenode.paper.record import CalibrationName, Record
from rarenode.paper.store import Probabilities
from rarenode.thresholds import ExpectedF, Isotonic, PriorMatched, Rule, Temperature, ece
from rarenode.thresholds.calibration_error import BINS
from tests.paper.test_probabilities import training

DECISIONS = ("fixed", "expected_f1", "prior", "tuned", "midpoint")
TREE = Hierarchy.from_edges([("root", "1"), ("root", "2"), ("1", "1/1"), ("1", "1/2"), ("1/1", "1/1/1")])
ROWS = {"train": 150, "valid": 40, "test": 60}


def made_up_rows(name: str = "cellcycle_FUN") -> tuple[DividedRows, Probabilities]:
    rng = np.random.default_rng(5)
    likely = {"root": 1.0, "1": 0.7, "2": 0.4, "1/1": 0.12, "1/2": 0.05, "1/1/1": 0.02}
    splits, probs = {}, {}
    for split, count in ROWS.items():
        Y = TREE.close(rng.random((count, 6)) < np.array([likely[node] for node in TREE.nodes]))
        noisy = np.where(Y, 0.4, 0.1) + rng.normal(scale=0.2, size=Y.shape)
        coherent = np.clip(noisy, 0.01, 0.99)
        for node in reversed(range(6)):
            below = [
                child for parent, child in zip(TREE.edge_parents, TREE.edge_children, strict=True) if parent == node
            ]
            coherent[:, node] = coherent[:, [node, *below]].max(axis=1)
        X = rng.random((count, 2), dtype=np.float32)
        splits[split], probs[split] = Dataset.from_arrays(X, Y, TREE), coherent.astype(np.float32)
    whole = DatasetSplits(name, splits["train"], splits["valid"], splits["test"])
    return divide(whole, "held_out"), Probabilities(training(), 106, probs["valid"], probs["test"])


@pytest.fixture(scope="module")
def given() -> tuple[DividedRows, Probabilities]:
    return made_up_rows()


@pytest.fixture(scope="module")
def record(given: tuple[DividedRows, Probabilities]) -> Record:
    return judge(*given, DECISIONS)


def f1_by_hand(truth: np.ndarray, claimed: np.ndarray, nodes: np.ndarray) -> float:
    values = []
    for node in np.flatnonzero(nodes):
        hits = sum(bool(t and c) for t, c in zip(truth[:, node], claimed[:, node], strict=True))
        total = int(truth[:, node].sum()) + int(claimed[:, node].sum())
        values.append(2 * hits / total if total else 0.0)
    return sum(values) / len(values)


class TestWays:
    def test_all_that_were_requested_and_no_other(self, record: Record) -> None:
        made = [(d.strategy, d.rule, d.calibration, d.fitted_on) for d in record.decided.decided]
        rules = ("add_ancestors", "drop_orphans")
        wanted = {(strategy, rule, "none", "held_out") for strategy, rule in product(DECISIONS, rules)}
        wanted |= {(s, rule, "none", "test_without_labels") for s, rule in product(("expected_f1", "prior"), rules)}
        wanted |= {
            ("expected_f1", "add_ancestors", name, "held_out")
            for name in ("temperature", "temperature_by_depth", "isotonic")
        }
        assert set(made) == wanted
        assert len(made) == len(wanted)
        assert record.decided.strategies == DECISIONS

    def test_what_was_not_asked_for_is_not_made(self, given: tuple[DividedRows, Probabilities]) -> None:
        assert judge(*given, ["fixed"]).decided.strategies == ("fixed",)

    def test_what_is_known_of_the_training_stays(
        self, record: Record, given: tuple[DividedRows, Probabilities]
    ) -> None:
        assert {name: value for name, value in record if name in type(given[1].training).model_fields} == dict(
            given[1].training
        )



class TestScores:
    @pytest.mark.parametrize("rule", ["add_ancestors", "drop_orphans"])
    def test_expected_f1_on_test_and_held_out_rows(
        self, record: Record, given: tuple[DividedRows, Probabilities], rule: Rule
    ) -> None:
        rows, scores = given
        thresholds = replace(ExpectedF().fit(scores.held_out), rule=rule)
        told = record.decided.find("expected_f1", rule)
        assert told is not None
        for split, probs, found in (
            (rows.splits.test, scores.test, told.test),
            (rows.held_out, scores.held_out, told.held_out),
        ):
            claimed = thresholds.decide(probs, TREE)
            assert found.f1 == pytest.approx(f1_by_hand(split.Y, claimed, rows.splits.scored), rel=1e-5)
            assert found.nodes == 5
            assert found.nodes_found == np.count_nonzero((split.Y & claimed)[:, 1:].sum(axis=0))
            assert found.nodes_predicted == np.count_nonzero(claimed[:, 1:].sum(axis=0))

    def test_bands_are_of_the_rows_trained_on(self, record: Record, given: tuple[DividedRows, Probabilities]) -> None:
        rows, scores = given
        told = record.decided.find("fixed")
        assert told is not None
        claimed = scores.test >= 0.5
        for band, (fewest, most) in {"1-4": (1, 4), "5-19": (5, 19), "20-99": (20, 99), "100+": (100, 1e9)}.items():
            positives = rows.splits.train.Y.sum(axis=0)
            nodes = (positives >= fewest) & (positives <= most) & rows.splits.scored
            assert told.by_rarity[band].nodes == nodes.sum()
            if nodes.any():
                by_hand = f1_by_hand(rows.splits.test.Y, claimed, nodes)
                assert told.by_rarity[band].f1 == pytest.approx(by_hand, rel=1e-5)
        assert sum(each.nodes for each in told.by_rarity.values()) == 5

    def test_depths(self, record: Record, given: tuple[DividedRows, Probabilities]) -> None:
        told = record.decided.find("fixed")
        assert told is not None
        assert {depth: each.nodes for depth, each in told.by_depth.items()} == {1: 2, 2: 2, 3: 1}
        claimed, truth = given[1].test >= 0.5, given[0].splits.test.Y
        assert told.by_depth[2].f1 == pytest.approx(f1_by_hand(truth, claimed, TREE.depth == 2), rel=1e-5)

    def test_prior_is_of_the_rows_trained_on(self, record: Record, given: tuple[DividedRows, Probabilities]) -> None:
        rows, scores = given
        prior = rows.splits.train.Y.mean(axis=0)
        for fitted_on, fit in (("held_out", scores.held_out), ("test_without_labels", scores.test)):
            claimed = replace(PriorMatched().fit(fit, prior=prior), rule="add_ancestors").decide(scores.test, TREE)
            told = record.decided.find("prior", fitted_on=fitted_on)  # type: ignore[arg-type]
            assert told is not None
            assert told.test.f1 == pytest.approx(
                f1_by_hand(rows.splits.test.Y, claimed, rows.splits.scored), rel=1e-5
            )

    def test_a_calibration_is_fitted_on_held_out_rows_and_used_on_both(
        self, record: Record, given: tuple[DividedRows, Probabilities]
    ) -> None:
        rows, scores = given
        for name, kind in (("temperature", Temperature), ("isotonic", Isotonic)):
            fitted = kind.fit(scores.held_out, rows.held_out.Y, TREE)
            thresholds = replace(ExpectedF().fit(fitted.apply(scores.held_out, TREE)), rule="add_ancestors")
            claimed = thresholds.decide(fitted.apply(scores.test, TREE), TREE)
            told = record.decided.find("expected_f1", calibration=name)  # type: ignore[arg-type]
            assert told is not None
            assert told.test.f1 == pytest.approx(
                f1_by_hand(rows.splits.test.Y, claimed, rows.splits.scored), rel=1e-5
            )
            corrected = fitted.apply(scores.test, TREE)[:, rows.splits.scored]
            error = ece(corrected, rows.splits.test.Y[:, rows.splits.scored], BINS)
            assert record.decided.reliability[name].ece == pytest.approx(error, rel=1e-5)  # type: ignore[index]

    def test_reliability_is_of_scored_cells(self, record: Record) -> None:
        assert set(record.decided.reliability) == set(get_args(CalibrationName))
        for shown in record.decided.reliability.values():
            assert sum(shown.cells) == ROWS["test"] * 5
            assert [mean is None for mean in shown.mean_probability] == [count == 0 for count in shown.cells]

    def test_curves_are_of_bands_with_positive_cells(
        self, record: Record, given: tuple[DividedRows, Probabilities]
    ) -> None:
        rows, scores = given
        positives = rows.splits.train.Y.sum(axis=0)
        assert record.decided.curves["0"] is None
        for band, curve in record.decided.curves.items():
            assert curve is None or list(curve) == sorted(curve, reverse=True), band
        common = np.flatnonzero((positives >= 100) & rows.splits.scored)
        cells, truth = scores.test[:, common], rows.splits.test.Y[:, common]
        curve = record.decided.curves["100+"]
        assert curve is not None
        everything = max(
            truth[cells >= t].mean() for t in np.unique(cells) if (truth & (cells >= t)).sum() == truth.sum()
        )
        assert curve[-1] == pytest.approx(everything, rel=1e-5)

    def test_unscored_nodes_do_not_count(self, given: tuple[DividedRows, Probabilities]) -> None:
        """Labels of the root are part of no score; every row carries it, so scores with it would differ."""
        rows, scores = given
        Y = rows.splits.test.Y.copy()
        Y[:, 0] = False
        without = replace(rows, splits=replace(rows.splits, test=replace(rows.splits.test, Y=Y)))
        assert judge(without, scores, DECISIONS) == judge(rows, scores, DECISIONS)


def test_no_label_of_the_test_rows_is_looked_at(given: tuple[DividedRows, Probabilities]) -> None:
    """With other labels the same nodes are decided, and held-out rows are scored the same."""
    rows, scores = given
    other = replace(rows.splits.test, Y=TREE.close(np.random.default_rng(1).random((60, 6)) < 0.3))
    shuffled = judge(replace(rows, splits=replace(rows.splits, test=other)), scores, DECISIONS)
    before = judge(rows, scores, DECISIONS)
    assert shuffled.decided.ap_held_out == before.decided.ap_held_out
    for one, two in zip(before.decided.decided, shuffled.decided.decided, strict=True):
        assert one.held_out == two.held_out
        assert one.test.nodes_predicted == two.test.nodes_predicted
    assert [one.test.f1 for one in before.decided.decided] != [two.test.f1 for two in shuffled.decided.decided]
