"""The report on a model, against loops over all cells."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from rarenode import Preparation
from rarenode.diagnosis import NodeDiagnosis
from rarenode.errors import ArgumentError
from rarenode.metrics import summarize_groups, summary
from rarenode.metrics.bootstrap import deviations_over_rows
from rarenode.models import Mlp, Output
from rarenode.report import Report, RunReport, report_on_model, report_on_predictions
from rarenode.report.html import headline
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


def test_nodes_are_diagnosed_with_every_member(model: TrainedModel, rows: Rows, run: RunReport) -> None:
    assert_same(run.nodes, model.diagnose(*rows))
    assert run.nodes.rule == "drop_orphans"
    assert np.isfinite(run.nodes.uncertainty).any()
    alone = report_on_predictions(
        model, rows.Y, Output(model.predict_proba(rows.X)), name="mine", rows="rows", thresholds=model.decides_with
    )
    assert run.nodes.member_rows.any()
    assert not alone.nodes.member_rows.any()
    assert np.isnan(alone.nodes.uncertainty).all()


def test_figures_are_of_decisions_and_ap_is_of_probabilities(model: TrainedModel, rows: Rows, run: RunReport) -> None:
    probs, decided = model.predict_proba(rows.X), model.predict(rows.X)
    of_decisions = summary(rows.Y, decided.astype(float), scored=SCORED)
    of_probabilities = summary(rows.Y, probs, scored=SCORED)
    assert of_decisions.ap != of_probabilities.ap
    assert run.summary == replace(of_decisions, ap=of_probabilities.ap)
    in_all = deviations_over_rows(rows.Y[:, SCORED], probs[:, SCORED], decided[:, SCORED], draws=200)
    assert run.deviations == in_all
    assert run.deviations_of == "200 draws of these rows, with replacement"


def test_what_else_it_contains(model: TrainedModel, run: RunReport) -> None:
    assert (run.name, run.history, run.card) == ("mine", HISTORY, model.card())
    assert run.about == "rows of mine: 40 rows; thresholds: by hand; drop orphans"
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
    assert all(SCORED[node.column] for unsure in run.unsure_rows for node in unsure.nodes)


@pytest.mark.parametrize("strategy", ["fixed:0.3", "expected_f2"])
def test_other_thresholds(model: TrainedModel, rows: Rows, strategy: str) -> None:
    run = report_on_model(model, *rows, name="mine", rows="rows", thresholds=strategy)
    thresholds = model.thresholds_for(model.predict_proba(rows.X), strategy)
    assert np.array_equal(run.nodes.thresholds, thresholds.values)
    together = model.predict_together(rows.X, strategy)
    assert run.nodes.scores.predicted.tolist() == together.sum(axis=0).tolist()
    words = {"fixed:0.3": "fixed at 0.3"}.get(strategy, f"{strategy}, fitted to these rows without their labels")
    assert run.about == f"rows: 40 rows; thresholds: {words}; drop orphans"
    with pytest.raises(ArgumentError, match="tuned"):
        report_on_model(model, *rows, name="mine", rows="rows", thresholds="tuned")


def test_a_model_without_thresholds_decides_at_one_half(rows: Rows) -> None:
    model = model_over(DAG)
    run = report_on_model(model, *rows, name="mine", rows="rows")
    assert set(run.nodes.thresholds.tolist()) == {0.5}
    assert run.nodes.scores.predicted.tolist() == (model.predict_proba(rows.X) >= 0.5).sum(axis=0).tolist()
    assert run.about.endswith("; thresholds: fixed at 0.5; add ancestors")


def test_raw_features_are_prepared(model: TrainedModel, rows: Rows, run: RunReport) -> None:
    knowing = replace(model, preparation=Preparation(np.full(4, 5.0), np.full(4, 5.0), np.full(4, 2.0)))
    raw = report_on_model(knowing, rows.X.astype(np.float64) * 2 + 5, rows.Y, name="mine", rows="rows")
    np.testing.assert_allclose(raw.nodes.uncertainty, run.nodes.uncertainty, rtol=1e-4)
    assert raw.summary.ap == pytest.approx(run.summary.ap, rel=1e-6)
    unprepared = report_on_model(knowing, rows.X, rows.Y, name="mine", rows="rows")
    assert unprepared.summary.ap != pytest.approx(run.summary.ap, rel=1e-3)


def test_the_model_is_computed_once(model: TrainedModel, rows: Rows, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    logits = Mlp.logits

    def count(self: Mlp, X: NDArray[np.float32]) -> NDArray[np.float32]:
        calls.append(len(X))
        return logits(self, X)

    monkeypatch.setattr(Mlp, "logits", count)
    report_on_model(model, *rows, name="mine", rows="rows")
    assert calls == [len(rows.X)]


def test_headline_scores_are_those_of_evaluate(model: TrainedModel, rows: Rows, run: RunReport) -> None:
    """Both are means over all scored nodes, with or without rows."""
    Y = rows.Y.copy()
    Y[:, DAG.index["g"]] = False
    probs = model.predict_proba(rows.X)
    grouped = summarize_groups(Y, probs, model.decide(probs), DAG, model.training_positives, SCORED)
    run = report_on_model(model, rows.X, Y, name="mine", rows="rows")
    assert run.summary == grouped.all
    assert run.summary.nodes == SCORED.sum() == run.nodes_with_rows + 1
    page, *_ = headline(Report((run,))).split("</div>")
    assert f"{run.summary.nodes_found} of {SCORED.sum()}<" in page


def test_a_band_without_rows_and_one_that_is_never_decided(model: TrainedModel, rows: Rows) -> None:
    nobody = rows.Y.copy()
    nobody[:, columns_of("1-4", model)] = False
    never = Thresholds(np.full(len(DAG), np.inf))
    probs = model.predict_proba(rows.X)
    run = report_on_predictions(model, nobody, Output(probs), name="mine", rows="rows", thresholds=never)
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
        output = Output(model.predict_proba(rows.X))
        return report_on_predictions(
            model, rows.Y, output, name="mine", rows="rows", thresholds=model.decides_with, **more
        )

    def test_the_training_rows_of_those_models(self, model: TrainedModel, rows: Rows) -> None:
        """Nodes are in other bands then, and a missed node without training rows has that reason."""
        usual = self.report(model, rows)
        assert usual.nodes.training_rows.tolist() == model.training_positives.tolist()
        training = np.array([0, 0, 3, 0, 50, 0, 3, 3])
        run = self.report(model, rows, training_rows=training)
        assert run.nodes.training_rows.tolist() == training.tolist()
        assert list(run.curves) == ["0", "1-4", "20-99"]
        assert list(run.reliability) == ["all", "0", "1-4", "20-99"]
        for column in range(len(DAG)):
            missed = run.nodes.state[column] == "missed"
            assert (run.nodes.reason[column] == "no_training_rows") == (missed and training[column] == 0)
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
        ("strategy", "words"),
        [
            ("expected_f1", "expected_f1, fitted to these rows without their labels"),
            ("tuned", "tuned, fitted to these rows with their labels"),
            ("fixed:0.3", "fixed at 0.3"),
        ],
    )
    def test_whether_they_were_fitted_to_these_rows(
        self, model: TrainedModel, rows: Rows, strategy: str, words: str
    ) -> None:
        deciding = model.with_thresholds(Thresholds(VALUES, "add_ancestors", strategy))
        plain, _, _ = words.partition(",")
        assert self.report(deciding, rows).about == f"rows: 40 rows; thresholds: {plain}; add ancestors"
        here = self.report(deciding, rows, fitted_here=True)
        assert here.about == f"rows: 40 rows; thresholds: {words}; add ancestors"
