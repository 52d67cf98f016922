"""What a report says of a model, cell by cell."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rarenode import Preparation, summary
from rarenode.diagnosis import NodeDiagnosis
from rarenode.errors import ArgumentError
from rarenode.metrics.bootstrap import deviations_over_rows
from rarenode.report import RunReport, report_on_model, report_on_probabilities
from rarenode.thresholds import Thresholds
from rarenode.thresholds.calibration_error import BINS
from rarenode.training import TrainedModel
from tests import oracles
from tests.report.runs import DAG, HISTORY, Rows, model_over, rows_over

BANDS = {"0": (0, 0), "1-4": (1, 4), "5-19": (5, 19), "20-99": (20, 99), "100+": (100, 10**9)}
SCORED = np.array([node != "a" for node in DAG.nodes])
VALUES = np.array([0.3, 0.5, 0.2, 0.4, 0.1, np.inf, 0.3, 0.2])


@pytest.fixture(scope="module")
def model() -> TrainedModel:
    return model_over(DAG, scored=SCORED).with_thresholds(Thresholds(VALUES, "drop_orphans", "by hand"))


@pytest.fixture(scope="module")
def rows() -> Rows:
    return rows_over(DAG)


@pytest.fixture(scope="module")
def run(model: TrainedModel, rows: Rows) -> RunReport:
    return report_on_model(model, *rows, name="mine", rows="rows of mine")


def assert_same(ours: NodeDiagnosis, theirs: NodeDiagnosis) -> None:
    for field in fields(NodeDiagnosis):
        one, other = (getattr(nodes, field.name) for nodes in (ours, theirs))
        if field.name == "scores":
            assert all(np.array_equal(getattr(one, part.name), getattr(other, part.name)) for part in fields(one))
        elif isinstance(one, np.ndarray):
            np.testing.assert_array_equal(one, other, field.name)
        else:
            assert one == other, field.name


def columns_of(band: str, model: TrainedModel) -> list[int]:
    least, most = BANDS[band]
    return [c for c in range(len(DAG)) if SCORED[c] and least <= model.training_positives[c] <= most]


def cells_of(array: NDArray[Any], columns: Sequence[int]) -> list[Any]:
    return [array[row, column].item() for row in range(len(array)) for column in columns]


def test_nodes_are_diagnosed_with_every_voice(model: TrainedModel, rows: Rows, run: RunReport) -> None:
    assert_same(run.nodes, model.diagnose(*rows))
    assert run.nodes.rule == "drop_orphans"
    assert np.isfinite(run.nodes.uncertainty).any()
    silent = report_on_probabilities(
        model, rows.Y, model.predict_proba(rows.X), name="mine", rows="rows", thresholds=model.decides_with
    )
    assert run.nodes.member_rows.any()
    assert not silent.nodes.member_rows.any()
    assert np.isnan(silent.nodes.uncertainty).all()


def test_figures_are_of_decisions_and_ap_is_of_probabilities(model: TrainedModel, rows: Rows, run: RunReport) -> None:
    probs, decided = model.predict_proba(rows.X), model.predict(rows.X)
    of_decisions = summary(rows.Y, decided.astype(float), scored=SCORED)
    of_probabilities = summary(rows.Y, probs, scored=SCORED)
    assert of_decisions.ap != of_probabilities.ap
    assert run.summary == replace(of_decisions, ap=of_probabilities.ap)
    in_all = deviations_over_rows(rows.Y[:, SCORED], probs[:, SCORED], decided[:, SCORED], draws=200)
    assert run.deviations == in_all
    assert run.deviations_of == "200 draws of these rows, with replacement"


def test_what_is_told_of_it(model: TrainedModel, run: RunReport) -> None:
    assert (run.name, run.history, run.card) == ("mine", HISTORY, model.card())
    assert run.about == "rows of mine: 40 rows; nodes decided by by hand; drop orphans"
    assert run.hierarchy is DAG


def test_the_decided_point_of_each_band(model: TrainedModel, rows: Rows, run: RunReport) -> None:
    decided = model.predict(rows.X)
    points = {}
    for band in BANDS:
        columns = columns_of(band, model)
        if not columns:
            continue
        pairs = list(zip(cells_of(rows.Y, columns), cells_of(decided, columns), strict=True))
        hits, claims, positives = (sum(map(which, pairs)) for which in (all, lambda p: p[1], lambda p: p[0]))
        points[band] = (hits / positives, hits / claims) if positives and claims else None
    assert {band: curve.decided for band, curve in run.curves.items()} == points
    assert sum(point is not None for point in points.values()) >= 3


def test_the_curve_of_each_band(model: TrainedModel, rows: Rows, run: RunReport) -> None:
    """At each recall the best precision of all thresholds that reach it."""
    probs = model.predict_proba(rows.X)
    for band, curve in run.curves.items():
        columns = columns_of(band, model)
        truth, p = cells_of(rows.Y, columns), cells_of(probs, columns)
        ways = []
        for threshold in set(p):
            chosen = [t for t, value in zip(truth, p, strict=True) if value >= threshold]
            ways.append((sum(chosen), sum(chosen) / len(chosen)))
        expected = [max(way for hits, way in ways if 100 * hits >= percent * sum(truth)) for percent in range(1, 101)]
        assert curve.precision == pytest.approx(expected)


def test_the_reliability_of_each_band(model: TrainedModel, rows: Rows, run: RunReport) -> None:
    probs = model.predict_proba(rows.X)
    every = [c for c in range(len(DAG)) if SCORED[c]]
    bands = {"all": every} | {band: columns for band in BANDS if (columns := columns_of(band, model))}
    assert list(run.reliability) == list(bands)
    for band, columns in bands.items():
        bins = run.reliability[band]
        assert bins.edges.tolist() == list(BINS)
        pairs = list(zip(cells_of(probs, columns), cells_of(rows.Y, columns), strict=True))
        for place, (low, high) in enumerate(pairwise(BINS)):
            here = [(p, t) for p, t in pairs if low <= p and (p < high or high == 1.0)]
            assert bins.count[place] == len(here)
            if here:
                assert bins.mean_probability[place] == pytest.approx(sum(p for p, _ in here) / len(here))
                assert bins.frequency[place] == pytest.approx(sum(t for _, t in here) / len(here))


def test_the_unsure_rows_are_those_of_the_decisions(model: TrainedModel, rows: Rows, run: RunReport) -> None:
    decided = model.predict(rows.X)
    doubt = [sum(map(oracles.entropy, row)) for row in model.predict_proba(rows.X)[:, SCORED].tolist()]
    expected = sorted(range(len(doubt)), key=lambda row: -doubt[row])[:20]
    assert [unsure.row for unsure in run.unsure_rows] == expected
    assert [unsure.wrong for unsure in run.unsure_rows] == [
        int((decided != rows.Y)[unsure.row, SCORED].sum()) for unsure in run.unsure_rows
    ]
    assert all(SCORED[doubt.column] for unsure in run.unsure_rows for doubt in unsure.doubts)


@pytest.mark.parametrize("decision", ["fixed:0.3", "expected_f2"])
def test_another_decision(model: TrainedModel, rows: Rows, decision: str) -> None:
    run = report_on_model(model, *rows, name="mine", rows="rows", decision=decision)
    thresholds = model.thresholds_for(model.predict_proba(rows.X), decision)
    assert np.array_equal(run.nodes.thresholds, thresholds.values)
    together = model.predict_together(rows.X, decision)
    assert run.nodes.scores.predicted.tolist() == together.sum(axis=0).tolist()
    here = "" if decision.startswith("fixed") else ", fitted to these rows without their labels"
    assert run.about == f"rows: 40 rows; nodes decided by {decision}{here}; drop orphans"
    with pytest.raises(ArgumentError, match="tuned"):
        report_on_model(model, *rows, name="mine", rows="rows", decision="tuned")


def test_a_model_without_thresholds_decides_at_one_half(rows: Rows) -> None:
    model = model_over(DAG)
    run = report_on_model(model, *rows, name="mine", rows="rows")
    assert set(run.nodes.thresholds.tolist()) == {0.5}
    assert run.nodes.scores.predicted.tolist() == (model.predict_proba(rows.X) >= 0.5).sum(axis=0).tolist()
    assert run.about.endswith("; nodes decided by fixed; add ancestors")


def test_raw_features_are_prepared_unless_they_are_already(model: TrainedModel, rows: Rows, run: RunReport) -> None:
    preparation = Preparation(np.full(4, 5.0), np.full(4, 5.0), np.full(4, 2.0))
    knowing = model.with_source("somewhere", preparation)
    raw = report_on_model(knowing, rows.X.astype(np.float64) * 2 + 5, rows.Y, name="mine", rows="rows")
    ready = report_on_model(knowing, rows.X, rows.Y, name="mine", rows="rows", prepared=True)
    assert_same(ready.nodes, run.nodes)
    assert ready.card == knowing.card() != run.card
    np.testing.assert_allclose(raw.nodes.uncertainty, run.nodes.uncertainty, rtol=1e-4)
    assert raw.summary.ap == pytest.approx(run.summary.ap, rel=1e-6)
    wrongly = report_on_model(knowing, rows.X, rows.Y, name="mine", rows="rows")
    assert wrongly.summary.ap != pytest.approx(run.summary.ap, rel=1e-3)


def test_a_band_that_no_row_carries_or_that_is_never_decided(model: TrainedModel, rows: Rows) -> None:
    nobody = rows.Y.copy()
    nobody[:, columns_of("1-4", model)] = False
    never = Thresholds(np.full(len(DAG), np.inf))
    probs = model.predict_proba(rows.X)
    run = report_on_probabilities(model, nobody, probs, name="mine", rows="rows", thresholds=never)
    assert {band: len(curve.precision) for band, curve in run.curves.items()} == {
        "1-4": 0, "5-19": 100, "20-99": 100, "100+": 100,
    }  # fmt: skip
    assert {curve.decided for curve in run.curves.values()} == {None}
    assert run.summary.nodes_found == 0


def test_no_rows(model: TrainedModel, rows: Rows) -> None:
    run = report_on_model(model, rows.X[:0], rows.Y[:0], name="mine", rows="none")
    assert set(run.nodes.state[SCORED]) == {"no_rows"}
    assert run.reliability == {}
    assert run.unsure_rows == ()
    assert {curve.precision for curve in run.curves.values()} == {()}


class TestProbabilitiesOfOtherModels:
    def report(self, model: TrainedModel, rows: Rows, **more: Any) -> RunReport:
        probs = model.predict_proba(rows.X)
        return report_on_probabilities(
            model, rows.Y, probs, name="mine", rows="rows", thresholds=model.decides_with, **more
        )

    def test_the_rows_that_taught_them(self, model: TrainedModel, rows: Rows) -> None:
        """Nodes stand in other bands then, and what no model was taught is missed for that."""
        usual = self.report(model, rows)
        assert usual.nodes.training_rows.tolist() == model.training_positives.tolist()
        taught = np.array([0, 0, 3, 0, 50, 0, 3, 3])
        run = self.report(model, rows, training_rows=taught)
        assert run.nodes.training_rows.tolist() == taught.tolist()
        assert list(run.curves) == ["0", "1-4", "20-99"]
        assert list(run.reliability) == ["all", "0", "1-4", "20-99"]
        for column in range(len(DAG)):
            missed = run.nodes.state[column] == "missed"
            assert (run.nodes.reason[column] == "no_training_rows") == (missed and taught[column] == 0)
        assert "no_training_rows" in run.nodes.reason
        assert run.nodes.reasons != usual.nodes.reasons
        assert run.card == usual.card == model.card()

    def test_what_rows_are_called(self, model: TrainedModel, rows: Rows) -> None:
        usual = self.report(model, rows).unsure_rows
        numbers = np.random.default_rng(0).permutation(1000)[: len(rows.Y)]
        named = self.report(model, rows, row_numbers=numbers).unsure_rows
        assert [unsure.row for unsure in named] == [numbers[unsure.row] for unsure in usual]
        assert all(type(unsure.row) is int for unsure in named)
        assert [replace(unsure, row=0) for unsure in named] == [replace(unsure, row=0) for unsure in usual]

    @pytest.mark.parametrize(
        ("strategy", "told"),
        [
            ("expected_f1", "expected_f1, fitted to these rows without their labels"),
            ("tuned", "tuned, fitted to these rows with their labels"),
            ("fixed:0.3", "fixed:0.3"),
        ],
    )
    def test_whether_they_were_decided_on_these_rows(
        self, model: TrainedModel, rows: Rows, strategy: str, told: str
    ) -> None:
        deciding = model.with_thresholds(Thresholds(VALUES, "add_ancestors", strategy))
        assert self.report(deciding, rows).about == f"rows: 40 rows; nodes decided by {strategy}; add ancestors"
        here = self.report(deciding, rows, decided_here=True)
        assert here.about == f"rows: 40 rows; nodes decided by {told}; add ancestors"
