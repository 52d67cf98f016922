"""Guaranteed sets of a run: predicted, streamed into files, evaluated and reported, in Python and in the shell."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from rarenode import Run, Settings
from rarenode.errors import ArgumentError
from rarenode.run import predicting as module
from rarenode.run.predictions import Choice, Predictions
from tests.commands import fail, succeed
from tests.run.test_predictions import rows

OPTIONS = {"labels": "taxa", "id": "image"}
SMALL: dict[str, Any] = {
    "hidden_size": 8, "epochs": 3, "n_trees": 20, "batch_size": 16, "engine": "torch", "guaranteed_recall": 0.8,
}  # fmt: skip


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The rarest of its nodes has too few rows for a guarantee."""
    folder = tmp_path_factory.mktemp("run")
    some = rows(90, 0)
    soft = some["taxa"].str.ends_with("Soft")
    rare = soft & (soft.cast(pl.Int64).cum_sum() > 5)
    some.filter(~rare).write_csv(folder / "train.csv")
    return Run.fit(folder / "train.csv", folder / "run", Settings(**SMALL, cv=2), options=OPTIONS, report=False)


@pytest.fixture
def new(tmp_path: Path) -> Path:
    rows(23, 1).drop("taxa").write_parquet(tmp_path / "new.parquet")
    rows(23, 1).write_csv(tmp_path / "new.csv")
    return tmp_path / "new.csv"


def test_predictions_are_the_sets_of_the_model(run: Run, new: Path) -> None:
    model, found, usual = run.model, run.predict(new, thresholds="guaranteed"), run.predict(new)
    assert model.guaranteed is not None
    assert 0 < model.guaranteed.is_guaranteed.sum() < len(model.hierarchy)
    expected = model.predict_proba(pl.read_csv(new)) >= model.guaranteed.thresholds.values
    assert np.array_equal(found.decided, expected[:, model.scored])
    assert (found.decided != usual.decided).any()
    assert found.thresholds == "guaranteed, recall:0.8"  # fitted to other rows than these


@pytest.mark.parametrize("all_labels", [False, True])
def test_sets_have_all_their_nodes_in_every_layout(run: Run, new: Path, all_labels: bool) -> None:
    """The deepest of them do not imply the others."""
    found = run.predict(new, thresholds="guaranteed")
    sets = found.to_frame(layout="sets", all_labels=all_labels)["labels"].to_list()
    of_row: dict[str, set[str]] = {name: set() for name in found.ids or ()}
    for line in found.to_frame(decided_only=True).iter_rows(named=True):
        of_row[line["image"]].add(line["node"])
    assert [set(filter(None, each.split(";"))) for each in sets] == list(of_row.values())
    assert any(found.decided.sum(axis=1) > found.deepest.sum(axis=1))
    page = run.report(new.with_suffix(".html"), new, thresholds="guaranteed")
    assert "each node by its own threshold" in page.read_text()


def parts_of(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows are predicted at a time."""
    seen: list[int] = []
    plain = module.predict_rows

    def noting(model: Any, part: Any, how: Any) -> Predictions:
        seen.append(len(part))
        return plain(model, part, how)

    monkeypatch.setattr(module, "predict_rows", noting)
    return seen


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize(
    ("thresholds", "parts"), [("guaranteed", [4] * 5 + [3]), ("fixed:0.3", [4] * 5 + [3]), ("expected_f1", [23])]
)
def test_they_are_streamed_as_they_do_not_depend_on_the_rows(
    run: Run, new: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, thresholds: str, parts: list[int]
) -> None:
    data, whole, divided = new.with_suffix(suffix), tmp_path / "whole.csv", tmp_path / "divided.csv"
    choice = Choice(decided_only=True)
    run.predict_to_file(data, whole, choice=choice, thresholds=thresholds)
    monkeypatch.setattr(module, "CELLS_AT_A_TIME", 4 * len(run.model.hierarchy))
    seen = parts_of(monkeypatch)
    assert run.predict_to_file(data, divided, choice=choice, thresholds=thresholds).rows == 23
    assert seen == parts
    assert divided.read_bytes() == whole.read_bytes()
    assert run.predict(data, thresholds=thresholds).decided.sum() == len(pl.read_csv(divided)) > 0


def test_a_least_confidence_would_break_the_promise(run: Run, new: Path, tmp_path: Path) -> None:
    for call in (
        lambda: run.predict(new, thresholds="guaranteed", min_confidence=0.1),
        lambda: run.predict_to_file(new, tmp_path / "p.csv", thresholds="guaranteed", min_confidence=0.1),
    ):
        with pytest.raises(ArgumentError, match=r"with min_confidence .--min-confidence. there would be no guarantee"):
            call()
    assert not (tmp_path / "p.csv").exists()


def test_evaluation(run: Run, new: Path) -> None:
    found = run.evaluate(new, thresholds="guaranteed")
    assert found.thresholds == "guaranteed, recall:0.8"
    assert found.scores.all.recall != run.evaluate(new).scores.all.recall
    here = run.evaluate(thresholds="guaranteed").thresholds
    assert here == "guaranteed, recall:0.8, fitted to these rows with their labels"
    assert run.evaluate(new, thresholds="fixed:0.3").thresholds == "fixed at 0.3"


def test_a_report_decides_with_them_and_tells_of_them(run: Run, new: Path, tmp_path: Path) -> None:
    page = run.report(tmp_path / "sets.html", new, thresholds="guaranteed")
    assert "thresholds: guaranteed, recall:0.8;" in page.read_text()
    nodes = pl.read_csv(tmp_path / "sets_files" / "nodes.csv")
    assert nodes["guaranteed_threshold"].to_list() == nodes["threshold"].to_list()
    assert nodes["guaranteed_threshold"].null_count() > 0
    sure = nodes.filter(pl.col("guaranteed_threshold").is_not_null() & (pl.col("rows") > 0))
    assert sure["guaranteed_recall"].to_list() == pytest.approx(sure["recall"].to_list())
    assert sure["guaranteed_size"].to_list() == pytest.approx((sure["decided"] / 23).to_list())


# --- in the shell ----------------------------------------------------------------------------------------------------


@pytest.fixture
def without(tmp_path: Path) -> Iterator[Path]:
    """A run that held out no rows."""
    rows(90, 0).write_csv(tmp_path / "train.csv")
    settings = Settings(**SMALL, cv=None, thresholds="fixed", patience=None)
    yield Run.fit(tmp_path / "train.csv", tmp_path / "without", settings, options=OPTIONS, report=False).folder


def test_predict(run: Run, new: Path, tmp_path: Path) -> None:
    out = tmp_path / "sets.csv"
    told = succeed("predict", run.folder, new, "--out", out, "--thresholds", "guaranteed", "--decided-only")
    assert run.model.guaranteed is not None
    line = run.model.guaranteed.in_words(run.model.scored)
    assert told.splitlines()[-1] == line
    number = int(np.count_nonzero(run.model.guaranteed.is_guaranteed & run.model.scored))
    assert line.startswith(f"{number} of {int(run.model.scored.sum())} nodes have a guaranteed recall of 0.8")
    assert "1 with fewer than 11 held-out rows" in line
    assert len(pl.read_csv(out)) == run.predict(new, thresholds="guaranteed").decided.sum()
    assert "guaranteed" not in succeed("predict", run.folder, new, "--out", out, "--decided-only")
    assert not succeed("predict", run.folder, new, "--out", out, "--thresholds", "guaranteed", "--quiet")


def test_evaluate_and_report(run: Run, new: Path, tmp_path: Path) -> None:
    told = json.loads(succeed("evaluate", run.folder, new, "--thresholds", "guaranteed", "--json"))
    assert told["thresholds"] == "guaranteed, recall:0.8"
    assert told["recall"] == pytest.approx(run.evaluate(new, thresholds="guaranteed").scores.all.recall)
    page = tmp_path / "page.html"
    succeed("report", run.folder, "--data", new, "--thresholds", "guaranteed", "--out", page, "--quiet")
    assert "thresholds: guaranteed, recall:0.8;" in page.read_text()


def test_a_run_without_held_out_rows_says_why_it_has_none(without: Path, new: Path, tmp_path: Path) -> None:
    out = tmp_path / "sets.csv"
    why = "the model has no guaranteed sets: no rows were held out"
    assert why in fail(ArgumentError, "predict", without, new, "--out", out, "--thresholds", "guaranteed")
    assert why in fail(ArgumentError, "evaluate", without, new, "--thresholds", "guaranteed")
    assert not out.exists()


@pytest.mark.parametrize("command", ["predict", "evaluate", "report"])
def test_help(command: str) -> None:
    assert "guaranteed" in succeed(command, "--help")


@pytest.mark.parametrize("choice", [Choice(min_probability=0.5), Choice("cafa")])
def test_what_would_leave_out_improbable_nodes_is_refused(run: Run, new: Path, tmp_path: Path, choice: Choice) -> None:
    with pytest.raises(ArgumentError, match="there would be no guarantee"):
        run.predict_to_file(new, tmp_path / "sets.tsv", choice=choice, thresholds="guaranteed")
    assert not (tmp_path / "sets.tsv").exists()


def test_nodes_that_no_promise_covers_are_named_by_every_command(new: Path, tmp_path: Path) -> None:
    rows(90, 0).write_csv(tmp_path / "train.csv")
    folder, out = tmp_path / "promise", tmp_path / "found.csv"
    small = [f"--{name.replace('_', '-')}={value}" for name, value in (SMALL | {"cv": 2}).items()]
    columns = ["--labels", "taxa", "--id", "image", "--thresholds", "precision:0.9"]
    printed = succeed("fit", tmp_path / "train.csv", "--out", folder, *columns, *small, "--no-report")
    names = Run(folder).model.given_up
    assert "never predicted, as held-out rows do not prove precision:0.9" in names
    assert printed.splitlines()[1] == names
    assert names in succeed("predict", folder, new, "--out", out)
    assert names in succeed("evaluate", folder, new)
    assert names not in succeed("evaluate", folder, new, "--thresholds", "expected_f1")
    assert names in (folder / "README.md").read_text()
    found = Run(folder).model.diagnose(pl.read_csv(new), np.ones((23, len(Run(folder).model.hierarchy)), dtype=bool))
    assert "no_guarantee" in found.reason


def test_thresholds_of_the_model_that_promise_a_recall_are_not_thinned_out_either(new: Path, tmp_path: Path) -> None:
    rows(90, 0).write_csv(tmp_path / "train.csv")
    settings = Settings(model="forest", n_trees=3, thresholds="recall:0.8", cv=2, patience=None)
    its = Run.fit(tmp_path / "train.csv", tmp_path / "run", settings, options=OPTIONS, report=False)
    says = "recall:0.8, decide improbable nodes too: with min_confidence .--min-confidence. there would be no"
    with pytest.raises(ArgumentError, match=says):
        its.predict(new, min_confidence=0.1)
    with pytest.raises(ArgumentError, match="with the layout cafa there would be no guarantee"):
        its.predict_to_file(new, tmp_path / "sets.tsv", choice=Choice("cafa"))
    assert its.predict(new, min_confidence=0.1, thresholds="fixed:0.3").decided.any()
    assert its.predict(new).decided.any()


@pytest.mark.parametrize("layout", ["wide", "cafa"])
def test_thresholds_that_would_change_nothing_are_refused(run: Run, new: Path, tmp_path: Path, layout: Any) -> None:
    with pytest.raises(ArgumentError, match=f"fixed:0.3 would change nothing: the layout {layout} has probabilities"):
        run.predict_to_file(new, tmp_path / "p.tsv", choice=Choice(layout), thresholds="fixed:0.3")
    assert not (tmp_path / "p.tsv").exists()
    run.predict_to_file(new, tmp_path / "p.tsv", choice=Choice(layout, decided_only=True), thresholds="fixed:0.3")
