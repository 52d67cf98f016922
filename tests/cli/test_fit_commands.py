from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

import rarenode
import rarenode.cli.demo
import rarenode.data.catalogue
import rarenode.training
from rarenode._io.files import sole_use
from rarenode.cli import app, run_folder
from rarenode.cli.predicting import TAUGHT
from rarenode.cli.run_folder import choose_settings, write_settings
from rarenode.cli.sources import load_training_data, published_preparation
from rarenode.cli.sparkline import sparkline
from rarenode.data.catalogue import CatalogueEntry
from rarenode.data.sources import load_dataset
from rarenode.data.preparation import known_means
from rarenode.data.split import HierarchicalSplit, folds
from rarenode.errors import (
    ArgumentError,
    DataError,
    FileFormatError,
    Interrupted,
    MissingFileError,
    ResumeError,
    TrainingError,
    UnknownDatasetError,
)
from rarenode.metrics import summarize_groups
from rarenode.thresholds import ExpectedF
from rarenode.training import Outlook, Settings, Silent, TrainedModel, fit_and_ask
from rarenode.training.fit import Fitted
from rarenode.training.presets import preset
from tests.cli.commands import CLASSES, fail, run, succeed, write_arff

SMALL = ("--engine", "torch", "--quiet", "--no-report")
PAPER = ("--preset", "paper")
BEST = ("--preset", "best", "--trees", "3", "--folds", "2")


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text("hidden = 8\nepochs = 2\nbatch_size = 8\ndropout = 0.0\nlearning_rate = 0.01\n")
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_arff(tmp_path / "small.arff")


@pytest.fixture
def trained(data: Path, settings: Path, tmp_path: Path) -> Path:
    succeed("fit", data, "--out", tmp_path / "run", "--settings", settings, *PAPER, *SMALL)
    return tmp_path / "run"


@pytest.fixture
def best(data: Path, settings: Path, tmp_path: Path) -> Path:
    succeed("fit", data, "--out", tmp_path / "best", "--settings", settings, *BEST, *SMALL)
    return tmp_path / "best"


def stop_training(monkeypatch: pytest.MonkeyPatch, title: str, epoch: int, batch: int) -> None:
    """From now on Ctrl-C comes at this place of the training that has this title."""

    class Stopping(Silent):
        def started(self, outlook: Outlook) -> None:
            self.title = outlook.title

        def batch(self, at_epoch: int, at_batch: int, loss: float) -> None:
            if (self.title, at_epoch, at_batch) == (title, epoch, batch):
                raise KeyboardInterrupt

    monkeypatch.setattr(rarenode.training, "choose_progress", lambda _quiet: Stopping())


def assert_same(ours: TrainedModel, theirs: TrainedModel) -> None:
    """The same model, bit for bit."""
    assert ours.settings == theirs.settings
    assert ours.thresholds == theirs.thresholds
    assert [(r.epoch, r.loss) for r in ours.history] == [(r.epoch, r.loss) for r in theirs.history]
    assert all(np.array_equal(ours.parameters[name], theirs.parameters[name]) for name in theirs.parameters)
    X = np.random.default_rng(0).normal(size=(9, ours.shape.features))
    assert np.array_equal(ours.predict_proba(X), theirs.predict_proba(X))


class TestFit:
    def test_the_run_folder(self, trained: Path, data: Path) -> None:
        assert {path.name for path in trained.iterdir()} == {
            "model.safetensors", "model.json", "README.md", "settings.toml",
        }  # fmt: skip
        model = TrainedModel.load(trained)
        assert model.source == str(data)
        assert model.feature_names == ("a", "b", "c")
        assert model.preparation is not None
        assert [node for node, counts in zip(model.hierarchy.nodes, model.scored, strict=True) if not counts] == [
            "root"
        ]
        ran = tomllib.loads((trained / "settings.toml").read_text())
        assert ran["hidden"] == 8
        assert ran["engine"] == "torch"

    def test_options_go_before_the_file(self, data: Path, settings: Path, tmp_path: Path) -> None:
        out = tmp_path / "run"
        options = ("--members", "2", "--weighting", "none", "--focus", "gmu", "--u0", "0.5", "--k", "2", "--w0", "0.3")
        more = ("--ensemble", "dropout", "--epochs", "1", "--seed", "7", "--resample", "lpros", "--trees", "2")
        decide = ("--decision", "expected_f2", "--rule", "drop_orphans", "--holdout", "0.3", "--early-stopping", "4")
        succeed("fit", data, "--out", out, "--settings", settings, *options, *more, *decide, *SMALL)
        ran = TrainedModel.load(out).settings.to_dict()
        assert ran | {
            "members": 2, "weighting": "none", "focus": "gmu", "u0": 0.5, "k": 2.0, "w0": 0.3, "ensemble": "dropout",
            "epochs": 1, "seed": 7, "hidden": 8, "resample": "lpros", "trees": 2, "decision": "expected_f2",
            "rule": "drop_orphans", "holdout": 0.3, "folds": None, "early_stopping": 4,
        } == ran  # fmt: skip

    def test_what_ran_can_run_again(self, trained: Path, data: Path, tmp_path: Path) -> None:
        succeed("fit", data, "--out", tmp_path / "again", "--settings", trained / "settings.toml", "--quiet")
        first, again = TrainedModel.load(trained), TrainedModel.load(tmp_path / "again")
        assert first.settings == again.settings
        assert all(np.array_equal(first.parameters[name], again.parameters[name]) for name in first.parameters)

    def test_it_says_what_it_did(self, data: Path, settings: Path, tmp_path: Path) -> None:
        result = run("fit", data, "--out", tmp_path / "run", "--settings", settings, *PAPER, "--engine", "torch")
        assert "2 epochs with the torch engine" in result.stdout
        assert "decided by fixed" in result.stdout
        assert "epoch 2/2: loss" in result.stderr
        assert "evaluate" not in result.stdout

    def test_quiet(self, data: Path, settings: Path, tmp_path: Path) -> None:
        assert run("fit", data, "--out", tmp_path / "run", "--settings", settings, *PAPER, *SMALL).output == ""

    def test_no_run_is_written_over(self, trained: Path, data: Path) -> None:
        assert "choose another folder" in fail(ResumeError, "fit", data, "--out", trained, *SMALL)

    def test_a_finished_run_needs_no_resuming(self, trained: Path, data: Path) -> None:
        before = (trained / "model.json").stat().st_mtime_ns
        assert "finished model already" in succeed("fit", data, "--out", trained, "--resume")
        assert (trained / "model.json").stat().st_mtime_ns == before
        told = fail(ResumeError, "fit", data, "--out", trained, "--resume", "--epochs", "9", *SMALL)
        assert "epochs was 2 and is now 9" in told
        write_arff(data, seed=9)
        assert "rows are not the same" in fail(ResumeError, "fit", data, "--out", trained, "--resume", *SMALL)

    def test_a_stopped_run_goes_on_with_its_own_settings(
        self, trained: Path, data: Path, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        out = tmp_path / "stopped"
        stop_training(monkeypatch, "", epoch=2, batch=1)
        command = ("fit", data, "--out", out)
        told = fail(Interrupted, *command, "--settings", settings, *PAPER, *SMALL)
        assert "--resume" in told
        monkeypatch.undo()

        assert "--resume" in fail(ResumeError, *command, "--settings", settings, *SMALL)
        assert "seed was 0 and is now 1" in fail(ResumeError, *command, "--resume", "--seed", "1", "--quiet")
        succeed(*command, "--resume", "--quiet")
        assert not (out / "checkpoint.safetensors").exists()
        assert_same(TrainedModel.load(out), TrainedModel.load(trained))

    def test_what_is_not_there(self, tmp_path: Path) -> None:
        out = tmp_path / "run"
        assert "no dataset" in fail(MissingFileError, "fit", tmp_path / "no.arff", "--out", out)
        assert "cellcycle_FUN" in fail(UnknownDatasetError, "fit", "celcycle_FUN", "--out", out)
        assert not out.exists()

    def test_settings_that_mean_nothing(self, data: Path, settings: Path, tmp_path: Path) -> None:
        out = tmp_path / "run"
        assert "epochs" in fail(ArgumentError, "fit", data, "--out", out, "--epochs", "0")
        settings.write_text("hiden = 8\n")
        assert "did you mean 'hidden'" in fail(FileFormatError, "fit", data, "--out", out, "--settings", settings)
        assert "validation rows" in fail(ArgumentError, "fit", data, "--out", out, *PAPER, "--early-stopping", "3")
        assert "'most'" in fail(ArgumentError, "fit", data, "--out", out, "--decision", "most")
        for wrong in (("--weighting", "some"), ("--preset", "worst"), ("--rule", "none")):
            assert run("fit", data, "--out", out, *wrong).exit_code == 2

    def test_decisions_need_rows_to_be_found_on(self, data: Path, tmp_path: Path) -> None:
        asked = ("fit", data, "--out", tmp_path / "run", "--decision", "expected_f1")
        for without in (PAPER, ("--folds", "0")):
            assert "set holdout or folds" in fail(ArgumentError, *asked, *without)
        assert "set one of them" in fail(ArgumentError, *asked, "--folds", "2", "--holdout", "0.2")
        assert not (tmp_path / "run").exists()

    def test_a_folder_that_cannot_be(self, data: Path, settings: Path) -> None:
        told = fail(TrainingError, "fit", data, "--out", data / "run", "--settings", settings)
        assert "cannot be kept" in told


class TestFolds:
    FILES = frozenset({"model.safetensors", "model.json", "README.md", "settings.toml"})

    def test_the_run_folder(self, best: Path) -> None:
        assert {path.name for path in best.iterdir()} == self.FILES
        model = TrainedModel.load(best)
        small = {"hidden": 8, "epochs": 2, "batch_size": 8, "dropout": 0.0, "learning_rate": 0.01}
        assert model.settings == preset("best", **small, trees=3, folds=2, engine="torch")
        assert model.forest is not None
        assert model.thresholds is not None
        assert model.thresholds.strategy == "expected_f1"

    @pytest.mark.parametrize("title", ["fold 1 of 2", "fold 2 of 2", "all rows"])
    def test_stopped_in_any_training_it_goes_on_to_the_same_result(
        self, best: Path, data: Path, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, title: str
    ) -> None:
        out = tmp_path / "stopped"
        command = ("fit", data, "--out", out)
        whole = ("--settings", settings, *BEST, *SMALL)
        stop_training(monkeypatch, title, epoch=1, batch=2)
        assert "--resume" in fail(Interrupted, *command, *whole)
        monkeypatch.undo()
        ran = (out / "settings.toml").read_text()

        assert "unfinished" in fail(ResumeError, *command, *whole, "--seed", "3")
        for other, told in (
            (("--seed", "1"), "seed was 0 and is now 1"),
            (("--holdout", "0.3"), "folds was 2 and is now None"),
            (("--folds", "3"), "folds was 2 and is now 3"),
        ):
            assert told in fail(ResumeError, *command, "--resume", *other, "--quiet")
        assert (out / "settings.toml").read_text() == ran

        succeed(*command, "--resume", "--quiet", "--no-report")
        assert {path.name for path in out.iterdir()} == self.FILES
        assert_same(TrainedModel.load(out), TrainedModel.load(best))

    @pytest.mark.parametrize("way", [("--folds", "2"), ("--holdout", "0.3")])
    def test_a_finished_run_needs_no_resuming(
        self, data: Path, settings: Path, tmp_path: Path, way: tuple[str, str]
    ) -> None:
        command = ("fit", data, "--out", tmp_path / "run")
        succeed(*command, "--settings", settings, "--trees", "3", *way, *SMALL)
        before = (tmp_path / "run" / "model.json").stat().st_mtime_ns
        assert "finished model already" in succeed(*command, "--resume")
        assert (tmp_path / "run" / "model.json").stat().st_mtime_ns == before
        told = fail(ResumeError, *command, "--resume", "--decision", "prior", "--quiet")
        assert "decision was 'expected_f1' and is now 'prior'" in told
        write_arff(data, seed=9)
        assert "rows are not the same" in fail(ResumeError, *command, "--resume", "--quiet")

    def test_what_a_kill_left_beside_the_model_is_taken_away(self, best: Path, data: Path) -> None:
        TrainedModel.load(best).save(best / ".fold-1")
        assert "choose another folder" in fail(ResumeError, "fit", data, "--out", best, *SMALL)
        assert "finished model already" in succeed("fit", data, "--out", best, "--resume")
        assert {path.name for path in best.iterdir()} == self.FILES

    def test_what_is_merely_called_like_a_fold_is_no_training(self, data: Path, tmp_path: Path) -> None:
        out = tmp_path / "run"
        (out / ".fold-of-mine").mkdir(parents=True)
        (out / ".fold-of-mine" / "model.json").write_text("{}")
        (out / ".fold-1.txt").write_text("notes")
        (out / ".fold-7").write_text("a file")
        rows = load_training_data(str(data), None, keep_validation=False).rows
        with run_folder.nobody_else(out):
            assert not run_folder.is_finished(out, rows, Settings(), resume=False)

    def test_a_training_under_way_keeps_its_folder(self, data: Path, settings: Path, tmp_path: Path) -> None:
        out = tmp_path / "run"
        with sole_use(out / ".fold-2"):
            told = fail(TrainingError, "fit", data, "--out", out, "--settings", settings, *BEST, *SMALL)
        assert "another process is training" in told
        assert not (out / "settings.toml").exists()


def nodes_of(out: Path) -> dict[str, list[Any]]:
    """What the report of a run tells of its nodes."""
    return polars.read_csv(out / "report_files" / "nodes.csv").to_dict(as_series=False)


def assert_reported(out: Path, Y: NDArray[np.bool_], decided: NDArray[np.bool_]) -> None:
    """The report of a run is on these rows, and on these decisions."""
    told = nodes_of(out)
    assert told["rows"] == Y.sum(axis=0).tolist()
    assert told["decided"] == decided.sum(axis=0).tolist()
    assert told["found"] == (Y & decided).sum(axis=0).tolist()


class TestReport:
    def fit(self, data: Path, settings: Path, out: Path, *options: str) -> str:
        return succeed("fit", data, "--out", out, "--settings", settings, "--engine", "torch", *options)

    def fitted(self, data: Path, out: Path) -> Fitted:
        """The same training once more, in Python."""
        rows = load_training_data(str(data), None, keep_validation=False).rows
        return fit_and_ask(rows, TrainedModel.load(out).settings)

    def test_a_file_of_ones_own_is_judged_fold_by_fold(self, data: Path, settings: Path, tmp_path: Path) -> None:
        out = tmp_path / "run"
        told = self.fit(data, settings, out, *BEST)
        assert told.endswith(f"{out / 'report.html'}: which nodes are found, which are missed, and why\n")
        assert {path.name for path in out.iterdir()} == {*TestFolds.FILES, "report.html", "report_files"}
        again = self.fitted(data, out)
        assert again.unseen is not None
        assert_reported(out, again.unseen.Y, again.model.decide(again.unseen.probs))
        seen = again.model.predict(load_training_data(str(data), None, keep_validation=False).rows.X)
        assert nodes_of(out)["decided"] != seen.sum(axis=0).tolist()
        page = (out / "report.html").read_text(encoding="utf-8")
        assert f"{data}, each judged by a model trained without it: 24 rows" in page
        assert "<title>rarenode: run</title>" in page
        assert nodes_of(out)["run"] == ["run"] * 6

    def test_a_file_of_ones_own_with_rows_held_out(self, data: Path, settings: Path, tmp_path: Path) -> None:
        out = tmp_path / "run"
        self.fit(data, settings, out, "--holdout", "0.3", "--trees", "3", "--quiet")
        again = self.fitted(data, out)
        assert again.unseen is not None
        assert_reported(out, again.unseen.Y, again.model.decide(again.unseen.probs))
        rows = len(again.unseen.Y)
        assert 0 < rows < 12
        assert f"{data}, held out: {rows} rows" in (out / "report.html").read_text(encoding="utf-8")

    @pytest.mark.parametrize("way", [PAPER, ("--decision", "fixed", "--early-stopping", "0", "--trees", "3")])
    def test_where_all_rows_trained_there_is_none(
        self, data: Path, settings: Path, tmp_path: Path, way: tuple[str, ...]
    ) -> None:
        out = tmp_path / "run"
        told = self.fit(data, settings, out, *way)
        assert f"no report, as all rows trained; `rarenode report {out} --data FILE` makes one on others" in told
        assert {path.name for path in out.iterdir()} == TestFolds.FILES
        other = write_arff(tmp_path / "other.arff", seed=4)
        succeed("report", out, "--data", other, "--out", tmp_path / "page.html")

    def test_a_dataset_is_judged_on_its_test_rows(
        self, catalogued: CatalogueEntry, settings: Path, tmp_path: Path
    ) -> None:
        for out, way in ((tmp_path / "paper", PAPER), (tmp_path / "best", BEST)):
            succeed("fit", "tiny", "--out", out, "--settings", settings, *way, "--engine", "torch", "--quiet")
            data, model = load_dataset("tiny"), TrainedModel.load(out)
            decided = replace(model, preparation=None).predict(data.test.X)
            assert_reported(out, data.test.Y, decided)
            assert "tiny, test rows: 16 rows" in (out / "report.html").read_text(encoding="utf-8")

    def test_only_if_wanted_and_nothing_is_said_quietly(self, data: Path, settings: Path, tmp_path: Path) -> None:
        assert "report" not in self.fit(data, settings, tmp_path / "none", *BEST, "--no-report")
        assert {path.name for path in (tmp_path / "none").iterdir()} == TestFolds.FILES
        assert self.fit(data, settings, tmp_path / "quiet", *BEST, "--quiet") == ""
        assert (tmp_path / "quiet" / "report.html").exists()
        assert self.fit(data, settings, tmp_path / "paper", *PAPER, "--quiet") == ""

    def test_a_run_that_went_on_has_the_same(
        self, data: Path, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole, stopped = tmp_path / "whole", tmp_path / "stopped"
        self.fit(data, settings, whole, *BEST, "--quiet")
        stop_training(monkeypatch, "fold 2 of 2", epoch=1, batch=2)
        command = ("fit", data, "--out", stopped)
        fail(Interrupted, *command, "--settings", settings, *BEST, "--engine", "torch", "--quiet")
        monkeypatch.undo()
        assert not (stopped / "report.html").exists()
        assert "report.html" in succeed(*command, "--resume")
        assert nodes_of(stopped) == nodes_of(whole) | {"run": ["stopped"] * 6}

    def test_a_report_that_cannot_be_written_is_written_later_from_what_was_kept(
        self, data: Path, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole, out = tmp_path / "whole", tmp_path / "run"
        self.fit(data, settings, whole, *BEST, "--quiet")
        (out / "report.html").mkdir(parents=True)
        command = ("fit", data, "--out", out)
        told = fail(ArgumentError, *command, "--settings", settings, *BEST, "--engine", "torch", "--quiet")
        assert f"{out / 'report.html'} cannot be written" in told
        assert_same(TrainedModel.load(out), TrainedModel.load(whole))
        kept = {path.name for path in out.iterdir()}
        assert kept >= {*TestFolds.FILES, "checkpoint.safetensors", ".fold-1", ".fold-2"}
        succeed("report", out, "--data", data, "--out", tmp_path / "elsewhere.html")

        (out / "report.html").rmdir()
        batches = count_batches(monkeypatch)
        assert succeed(*command, "--resume").endswith(
            f"{out / 'report.html'}: which nodes are found, which are missed, and why\n"
        )
        assert batches == []
        assert nodes_of(out) == nodes_of(whole) | {"run": ["run"] * 6}
        assert {path.name for path in out.iterdir()} == {*TestFolds.FILES, "report.html", "report_files"}
        assert_same(TrainedModel.load(out), TrainedModel.load(whole))

    def test_so_it_is_with_rows_held_out(
        self, data: Path, settings: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        out = tmp_path / "run"
        (out / "report.html").mkdir(parents=True)
        way = ("--settings", settings, "--holdout", "0.3", "--trees", "3", "--engine", "torch", "--quiet")
        fail(ArgumentError, "fit", data, "--out", out, *way)
        assert (out / "checkpoint.safetensors").exists()
        (out / "report.html").rmdir()
        batches = count_batches(monkeypatch)
        succeed("fit", data, "--out", out, "--resume", "--quiet")
        assert batches == []
        again = self.fitted(data, out)
        assert again.unseen is not None
        assert_reported(out, again.unseen.Y, again.model.decide(again.unseen.probs))
        assert not (out / "checkpoint.safetensors").exists()

    def test_a_finished_run_on_a_dataset_gets_the_report_that_it_lacks(
        self, catalogued: CatalogueEntry, settings: Path, tmp_path: Path
    ) -> None:
        whole, out = tmp_path / "whole", tmp_path / "run"
        way = ("--settings", settings, *BEST, "--engine", "torch", "--quiet")
        succeed("fit", "tiny", "--out", whole, *way)
        succeed("fit", "tiny", "--out", out, *way, "--no-report")
        finished = f"{out} holds the finished model already"
        assert succeed("fit", "tiny", "--out", out, "--resume", "--no-report") == f"{finished}\n"
        assert {path.name for path in out.iterdir()} == TestFolds.FILES
        told = succeed("fit", "tiny", "--out", out, "--resume")
        assert told == f"{finished}; {out / 'report.html'}: which nodes are found, which are missed, and why\n"
        assert nodes_of(out) == nodes_of(whole) | {"run": ["run"] * 6}
        (out / "report.html").write_text("mine")
        assert succeed("fit", "tiny", "--out", out, "--resume") == f"{finished}\n"
        assert (out / "report.html").read_text() == "mine"

    def test_a_finished_run_on_a_file_says_how_to_get_one(self, best: Path, data: Path) -> None:
        told = succeed("fit", data, "--out", best, "--resume")
        assert told == (
            f"{best} holds the finished model already; it has no report; `rarenode report {best} --data FILE` makes "
            "one, on rows that it was not trained on\n"
        )
        assert succeed("fit", data, "--out", best, "--resume", "--quiet") == ""
        assert {path.name for path in best.iterdir()} == TestFolds.FILES

    def test_rows_held_out_are_called_by_their_number_in_the_file(
        self, data: Path, settings: Path, tmp_path: Path
    ) -> None:
        out = tmp_path / "run"
        self.fit(data, settings, out, "--holdout", "0.3", "--trees", "3", "--quiet")
        lines = polars.read_csv(out / "report_files" / "unsure_rows.csv", schema_overrides={"node": polars.String})
        numbers = lines["row"].unique().to_list()
        rows = load_training_data(str(data), None, keep_validation=False).rows
        _, aside = HierarchicalSplit(0.3).split(rows.Y, rows.hierarchy)
        assert sorted(numbers) == aside.tolist() != list(range(len(aside)))
        written = data.read_text().split("@DATA\n")[1].splitlines()
        for line in lines.iter_rows(named=True):
            label = written[line["row"]].rsplit(",", 1)[1]
            carried = {"root"} | {above for path in label.split("@") for above in (path, path.split("/")[0])}
            assert line["carried"] == (line["node"] in carried), (line, label)

    def test_how_unsure_it_is_is_known_of_rows_held_out(self, data: Path, settings: Path, tmp_path: Path) -> None:
        """The models of folds are gone when the report is made, and the model itself has seen the rows."""
        out = tmp_path / "run"
        self.fit(data, settings, out, "--holdout", "0.3", "--members", "2", "--trees", "3", "--quiet")
        model, rows = TrainedModel.load(out), load_training_data(str(data), None, keep_validation=False).rows
        _, aside = HierarchicalSplit(0.3).split(rows.Y, rows.hierarchy)
        X, Y = rarenode.read_arff(data).X[aside], rows.Y[aside]
        unsure, decided = model.uncertainty(X), model.predict(X)
        told = nodes_of(out)["uncertainty"]
        for column, value in enumerate(told):
            concerned = Y[:, column] | decided[:, column]
            expected = unsure[concerned, column].mean() if concerned.any() else None
            assert value == (None if expected is None else pytest.approx(expected, rel=1e-5))
        assert any(told)
        assert about(out).startswith(f"{data}, held out: {len(aside)} rows; nodes decided by expected_f1, fitted to ")
        self.fit(data, settings, tmp_path / "folds", *BEST, "--members", "2", "--quiet")
        assert set(nodes_of(tmp_path / "folds")["uncertainty"]) == {None}

    def test_a_node_of_a_single_row_taught_no_model_that_was_asked_about_it(
        self, data: Path, settings: Path, tmp_path: Path
    ) -> None:
        content = data.read_text().replace(CLASSES, f"{CLASSES},3")
        *others, last = content.splitlines()
        data.write_text("\n".join([*others, f"{last.rsplit(',', 1)[0]},3"]) + "\n")
        out = tmp_path / "run"
        self.fit(data, settings, out, *BEST, "--decision", "fixed:0.9", "--quiet")
        told, model = nodes_of(out), TrainedModel.load(out)
        node = told["node"].index("3")
        assert model.training_positives[node] == told["rows"][node] == 1
        assert (told["state"][node], told["training_rows"][node]) == ("missed", 0)
        assert told["reason"][node] == "no_training_rows"
        assert told["explanation"][node] == (
            "No training rows: 1 row here carries it, and none that the model was trained on."
        )
        assert told["reason"].count("no_training_rows") == 1
        Y = rarenode.read_arff(data).Y
        of_fold: dict[int, NDArray[np.int64]] = {}
        for kept, aside in folds(Y, model.hierarchy, 2, 0):
            of_fold |= dict.fromkeys(aside.tolist(), Y[kept].sum(axis=0))
        for column, taught in enumerate(told["training_rows"]):
            known = [int(of_fold[row][column]) for row in range(len(Y)) if Y[row, column]]
            assert taught == sum(known) // len(known)
        judged = f"{data}, each judged by a model trained without it: 24 rows"
        assert about(out) == f"{judged}; nodes decided by fixed:0.9; add ancestors"


def about(out: Path) -> str:
    """What the report of a run says of its rows."""
    (text,) = polars.read_csv(out / "report_files" / "headline.csv")["about"].to_list()
    return str(text)


def count_batches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """From now on trainings add each of their batches to this list."""
    batches: list[int] = []

    class Counting(Silent):
        def batch(self, epoch: int, batch: int, loss: float) -> None:
            batches.append(batch)

    monkeypatch.setattr(rarenode.training, "choose_progress", lambda _quiet: Counting())
    return batches


class TestChoosingSettings:
    def choose(self, tmp_path: Path, text: str = "", name: str = "best", **options: Any) -> Settings:
        file = tmp_path / "given.toml"
        file.write_text(text)
        return choose_settings("mine.arff", tmp_path / "run", name, file, False, options)

    def test_options_before_the_file_before_the_preset(self, tmp_path: Path) -> None:
        chosen = self.choose(tmp_path, "trees = 7\nmembers = 2\n", members=3)
        assert chosen == preset("best", trees=7, members=3)
        assert self.choose(tmp_path, "members = 2\n", "paper") == Settings(members=2)

    def test_a_file_may_leave_to_others_how_rows_are_held_out(self, tmp_path: Path) -> None:
        text = 'decision = "tuned"\n'
        assert self.choose(tmp_path, text) == preset("best", decision="tuned")
        assert self.choose(tmp_path, text, "paper", holdout=0.2) == Settings(decision="tuned", holdout=0.2)
        with pytest.raises(ArgumentError, match="set holdout or folds"):
            self.choose(tmp_path, text, "paper")

    def test_holdout_and_folds_take_each_others_place(self, tmp_path: Path) -> None:
        assert self.choose(tmp_path, "holdout = 0.3\n") == preset("best", holdout=0.3)
        assert self.choose(tmp_path, "holdout = 0.3\n", folds=4) == preset("best", folds=4)
        assert self.choose(tmp_path, "folds = 4\n", holdout=0.3) == preset("best", holdout=0.3)
        with pytest.raises(ArgumentError, match="set one of them"):
            self.choose(tmp_path, "holdout = 0.3\nfolds = 4\n")

    @pytest.mark.parametrize(
        "ran",
        [
            Settings(),
            Settings(focus="gmu", early_stopping=2),
            preset("best"),
            preset("best", holdout=0.2, early_stopping=0),
            preset("best", decision="fixed", folds=0),
        ],
        ids=["paper", "paper changed", "best", "best with holdout", "best without folds"],
    )
    @pytest.mark.parametrize("name", ["best", "paper"])
    def test_what_ran_is_what_its_file_says_under_any_preset(self, tmp_path: Path, ran: Settings, name: str) -> None:
        write_settings(tmp_path / "run", "mine.arff", ran)
        text = (tmp_path / "run" / "settings.toml").read_text()
        assert self.choose(tmp_path, text, name) == ran

    def test_a_resumed_run_has_its_own(self, tmp_path: Path) -> None:
        out = tmp_path / "run"
        write_settings(out, "mine.arff", Settings(members=2))
        assert choose_settings("mine.arff", out, "best", None, True, {}) == Settings(members=2)
        assert choose_settings("mine.arff", out, "best", None, True, {"trees": 5}) == Settings(members=2, trees=5)
        assert choose_settings("mine.arff", out, "best", None, False, {}) == preset("best")
        assert choose_settings("mine.arff", tmp_path / "other", "best", None, True, {}) == preset("best")


class TestCatalogue:
    def test_it_is_trained_on_as_in_the_paper(self, catalogued: CatalogueEntry, tmp_path: Path) -> None:
        out = tmp_path / "run"
        succeed("fit", "tiny", "--out", out, *PAPER, *SMALL)
        model = TrainedModel.load(out)
        assert model.source == "tiny"
        assert (model.settings.epochs, model.settings.layers, model.settings.dropout) == (3, 2, 0.1)
        assert model.training_positives[0] == 36
        assert model.scored.tolist() == [False, True, True, True, True, True]

    def test_weights_come_from_training_rows_alone(self, catalogued: CatalogueEntry) -> None:
        rows = load_training_data("tiny", None, keep_validation=False).rows
        assert len(rows) == 36
        assert rows.split == 24

    def test_the_best_preset_has_settings_of_its_own(
        self, catalogued: CatalogueEntry, settings: Path, tmp_path: Path
    ) -> None:
        assert choose_settings("tiny", tmp_path, "best", None, False, {}) == preset("best")
        succeed("fit", "tiny", "--out", tmp_path / "run", "--settings", settings, *BEST, *SMALL)
        assert TrainedModel.load(tmp_path / "run").training_positives[0] == 36

    def test_validation_rows_are_kept_for_early_stopping(self, catalogued: CatalogueEntry, tmp_path: Path) -> None:
        succeed("fit", "tiny", "--out", tmp_path / "run", *PAPER, "--early-stopping", "1", *SMALL)
        model = TrainedModel.load(tmp_path / "run")
        assert model.training_positives[0] == 24
        assert model.history[0].valid is not None

    def test_preparation_of_new_rows_is_that_of_the_published_one(
        self, catalogued: CatalogueEntry, tmp_path: Path
    ) -> None:
        raw = rarenode.read_arff(tmp_path / "tiny.test.arff").X
        filled = np.where(np.isnan(raw), known_means(raw), raw)
        prepared = published_preparation("tiny", None).apply(filled)
        assert np.array_equal(prepared, load_dataset("tiny").test.X)

    def test_evaluate_knows_the_data(self, catalogued: CatalogueEntry, tmp_path: Path) -> None:
        out = tmp_path / "run"
        succeed("fit", "tiny", "--out", out, *PAPER, *SMALL)
        told = json.loads(succeed("evaluate", out, "--json"))
        data, model = load_dataset("tiny"), TrainedModel.load(out)
        probs = replace(model, preparation=None).predict_proba(data.test.X)
        expected = rarenode.summary(data.test.Y, probs, scored=data.scored)
        assert told["rows"] == 16
        assert {name: told[name] for name in ("f1", "precision", "recall", "bin_ap", "ap", "nodes_found")} == {
            name: getattr(expected, name) for name in ("f1", "precision", "recall", "bin_ap", "ap", "nodes_found")
        }
        assert json.loads(succeed("evaluate", out, "--json", "--split", "valid"))["rows"] == 12
        for split, taught in (("train", True), ("valid", True), ("test", False)):
            assert (TAUGHT in succeed("evaluate", out, "--split", split)) == taught
        assert TAUGHT not in succeed("evaluate", out)
        assert json.loads(succeed("evaluate", out, "--split", "train", "--json"))["trained_on"] is True
        assert json.loads(succeed("evaluate", out, "--json"))["trained_on"] is False
        assert json.loads(succeed("evaluate", out, tmp_path / "tiny.test.arff", "--json"))["rows"] == 16

    def test_predict(self, catalogued: CatalogueEntry, tmp_path: Path) -> None:
        out = tmp_path / "run"
        succeed("fit", "tiny", "--out", out, *PAPER, *SMALL)
        succeed("predict", out, "tiny", "--split", "train", "--out", tmp_path / "p.parquet")
        assert len(polars.read_parquet(tmp_path / "p.parquet")) == 24 * 6


class TestEvaluate:
    def test_tables_in_percent(self, trained: Path, data: Path) -> None:
        told = succeed("evaluate", trained, data)
        for group in ("all", "5-19 training rows", "depth 1", "depth 2"):
            assert group in told
        assert "\n 0 training rows" not in told
        assert "24 rows, nodes decided by fixed; percent" in told

    def test_small_bars_of_recalls(self, trained: Path, data: Path) -> None:
        model, content = TrainedModel.load(trained), rarenode.read_arff(data)
        decided = model.predict(content.X)
        figures = summarize_groups(
            content.Y, model.predict_proba(content.X), decided, model.hierarchy, model.training_positives, model.scored
        )
        lines = {" ".join(line.split()): line for line in succeed("evaluate", trained, data).splitlines()}
        assert any("recalls, 0 to 100" in line for line in lines)
        for group in figures.groups():
            begins = f"{group.group} {group.summary.nodes} "
            (line,) = [line for words, line in lines.items() if words.startswith(begins)]
            assert line.rstrip().endswith(f" {group.summary.nodes_found}  {sparkline(group.recall_histogram).rstrip()}")
            assert sum(group.recall_histogram) == group.summary.nodes

    @pytest.mark.parametrize(("charset", "bar"), [("ascii", "@"), ("utf-8", "█")])
    def test_bars_that_the_terminal_can_show(self, trained: Path, data: Path, charset: str, bar: str) -> None:
        done = CliRunner(charset=charset).invoke(app, ["evaluate", str(trained), str(data)])
        assert done.exit_code == 0, repr(done.exception)
        assert bar in done.stdout

    def test_json_has_fractions(self, trained: Path, data: Path) -> None:
        told = json.loads(succeed("evaluate", trained, data, "--json"))
        assert all(0 <= told[name] <= 1 for name in ("f1", "precision", "recall", "bin_ap", "ap"))
        assert told["nodes"] == 5
        assert sum(group["nodes"] for group in told["by_depth"].values()) == 5
        assert sum(group["nodes"] for group in told["by_training_rows"].values()) == 5

    def scores(self, model: TrainedModel, data: Path, values: Any) -> dict[str, float]:
        """Means over scored nodes, cell by cell, where a node is decided with a threshold or a decided descendant."""
        content = rarenode.read_arff(data)
        probs, hierarchy = model.predict_proba(content.X), model.hierarchy
        nodes = [name for name, counts in zip(hierarchy.nodes, model.scored, strict=True) if counts]
        f1, recall, found = [], [], 0
        for node in nodes:
            below = [c for c, name in enumerate(hierarchy.nodes) if name == node or node in hierarchy.ancestors(name)]
            decided = [any(row[c] >= values[c] for c in below) for row in probs]
            truth = content.Y[:, hierarchy.index[node]].tolist()
            hits = sum(d and t for d, t in zip(decided, truth, strict=True))
            f1.append(2 * hits / max(sum(decided) + sum(truth), 1))
            recall.append(hits / max(sum(truth), 1))
            found += hits > 0
        ap = rarenode.summary(content.Y, probs, scored=model.scored).ap
        return {"f1": sum(f1) / len(nodes), "recall": sum(recall) / len(nodes), "nodes_found": found, "ap": ap}

    @pytest.fixture
    def unseen(self, tmp_path: Path) -> Path:
        return write_arff(tmp_path / "unseen.arff", rows=40, seed=5)

    def test_the_models_thresholds_decide(self, best: Path, unseen: Path) -> None:
        told = json.loads(succeed("evaluate", best, unseen, "--json"))
        model = TrainedModel.load(best)
        assert model.thresholds is not None
        assert told["decision"] == "expected_f1"
        expected = self.scores(model, unseen, model.thresholds.values)
        assert {name: told[name] for name in expected} == pytest.approx(expected)
        assert expected["f1"] != pytest.approx(self.scores(model, unseen, np.full(6, 0.5))["f1"])
        assert "nodes decided by expected_f1; percent" in succeed("evaluate", best, unseen)

    @pytest.mark.parametrize("threshold", [0.2, 0.5])
    def test_another_threshold(self, best: Path, unseen: Path, threshold: float) -> None:
        told = json.loads(succeed("evaluate", best, unseen, "--json", "--decision", f"fixed:{threshold}"))
        expected = self.scores(TrainedModel.load(best), unseen, np.full(6, threshold))
        assert {name: told[name] for name in expected} == pytest.approx(expected)

    def test_another_expected_f_is_fitted_to_the_rows_without_labels(self, best: Path, unseen: Path) -> None:
        model = TrainedModel.load(best)
        values = ExpectedF(2).fit(model.predict_proba(rarenode.read_arff(unseen).X)).values
        told = json.loads(succeed("evaluate", best, unseen, "--json", "--decision", "expected_f2"))
        expected = self.scores(model, unseen, values)
        assert {name: told[name] for name in expected} == pytest.approx(expected)
        assert told["decision"] == "expected_f2, fitted to these rows without their labels"

    @pytest.mark.parametrize("decision", ["tuned", "global", "prior", "precision_floor:0.2", "most"])
    def test_decisions_that_would_need_labels_are_refused(self, trained: Path, data: Path, decision: str) -> None:
        told = fail(ArgumentError, "evaluate", trained, data, "--decision", decision)
        assert decision in told
        assert "expected_f1" in told

    def test_it_says_so_if_the_model_was_trained_on_the_rows(
        self, trained: Path, best: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        copy, link = tmp_path / "copy.arff", tmp_path / "link.arff"
        copy.write_bytes(data.read_bytes())
        link.symlink_to(data)
        other = write_arff(tmp_path / "other.arff", seed=1)
        fewer = write_arff(tmp_path / "fewer.arff", rows=23)
        for out in (trained, best):
            for taught in (data, copy, link):
                assert succeed("evaluate", out, taught).splitlines()[1] == TAUGHT
            for others in (other, fewer):
                assert "trained on these rows" not in succeed("evaluate", out, others)
        monkeypatch.chdir(tmp_path)
        assert TAUGHT in succeed("evaluate", trained, data.name)
        assert "rows" in json.loads(succeed("evaluate", trained, data, "--json"))

    def test_a_file_of_which_rows_were_held_out_taught_the_model_too(
        self, data: Path, settings: Path, tmp_path: Path
    ) -> None:
        succeed("fit", data, "--out", tmp_path / "run", "--settings", settings, "--holdout", "0.3", *SMALL)
        assert TAUGHT in succeed("evaluate", tmp_path / "run", data)

    @pytest.mark.parametrize("source", ["x" * 5000, "a\0b", "", "~/\n", "/nowhere/at/all.arff"])
    def test_a_model_may_say_anything_of_its_source(
        self, trained: Path, data: Path, tmp_path: Path, source: str
    ) -> None:
        record = json.loads((trained / "model.json").read_text(encoding="utf-8"))
        (trained / "model.json").write_text(json.dumps(record | {"source": source}), encoding="utf-8")
        assert TAUGHT in succeed("evaluate", trained, data)
        assert TAUGHT not in succeed("evaluate", trained, write_arff(tmp_path / "other.arff", seed=1))

    def test_a_file_without_rows(self, trained: Path, data: Path, tmp_path: Path) -> None:
        path = tmp_path / "empty.arff"
        path.write_text(data.read_text().split("@DATA")[0] + "@DATA\n")
        told = succeed("evaluate", trained, path)
        assert " 0 rows, nodes decided by fixed; percent" in told
        assert TAUGHT not in told

    def test_a_file_has_no_test_rows_of_its_own(self, trained: Path, data: Path) -> None:
        assert "name the DATA" in fail(ArgumentError, "evaluate", trained)
        assert "no split 'test'" in fail(ArgumentError, "evaluate", trained, data, "--split", "test")

    @pytest.mark.parametrize(
        ("changes", "told"),
        [
            (
                {"features": ("a", "b", "d")},
                ("features that the model has not: 'd'", "lacks features of the model: 'c'"),
            ),
            ({"features": ("b", "a", "c")}, ("another order; number 1 is 'b' and the model's is 'a'",)),
            ({"classes": f"{CLASSES},3,4,5,6"}, ("nodes that the model has not: '3', '4', '5' and 1 more",)),
        ],
    )
    def test_data_that_do_not_fit(
        self, trained: Path, tmp_path: Path, changes: dict[str, Any], told: tuple[str, ...]
    ) -> None:
        other = write_arff(tmp_path / "other.arff", **changes)
        for command in (("evaluate", trained, other), ("predict", trained, other, "--out", tmp_path / "p.csv")):
            message = fail(DataError, *command)
            assert all(part in message for part in told)

    def test_what_is_no_run(self, tmp_path: Path, data: Path) -> None:
        assert "model.json" in fail(MissingFileError, "evaluate", tmp_path, data)


class TestPredict:
    def expected(self, trained: Path, data: Path) -> tuple[NDArray[np.float32], NDArray[np.float32], TrainedModel]:
        model, X = TrainedModel.load(trained), rarenode.read_arff(data).X
        return model.predict_proba(X), model.uncertainty(X, "gmu"), model

    @pytest.mark.parametrize("name", ["p.parquet", "p.csv"])
    def test_one_line_for_each_row_and_node(self, trained: Path, data: Path, tmp_path: Path, name: str) -> None:
        told = succeed("predict", trained, data, "--out", tmp_path / name)
        assert "24 rows x 6 nodes = 144 lines" in told
        read = polars.read_csv if name.endswith("csv") else polars.read_parquet
        table = read(tmp_path / name)
        probs, unsure, model = self.expected(trained, data)
        assert table.columns == ["row", "node", "probability", "decided", "uncertainty"]
        assert table["row"].to_list() == np.repeat(np.arange(24), 6).tolist()
        assert table["node"].cast(polars.String).to_list() == list(model.hierarchy.nodes) * 24
        assert np.allclose(table["probability"].to_numpy().reshape(probs.shape), probs, rtol=1e-6)
        assert np.array_equal(table["decided"].to_numpy().reshape(probs.shape), (probs >= 0.5).astype(int))
        assert np.allclose(table["uncertainty"].to_numpy().reshape(probs.shape), unsure, rtol=1e-6)
        assert [path.name for path in tmp_path.glob(f"*{name}*")] == [name]

    @pytest.mark.parametrize("name", ["p.parquet", "p.csv"])
    def test_only_what_is_decided(self, best: Path, data: Path, tmp_path: Path, name: str) -> None:
        told = succeed("predict", best, data, "--out", tmp_path / name, "--decided-only")
        probs, _, model = self.expected(best, data)
        decided = np.argwhere(model.predict(rarenode.read_arff(data).X))
        read = polars.read_csv if name.endswith("csv") else polars.read_parquet
        table = read(tmp_path / name)
        assert f"{len(decided)} lines, decided of 24 rows x 6 nodes" in told
        assert 0 < len(decided) < 144
        assert table["row"].to_list() == decided[:, 0].tolist()
        assert table["node"].cast(polars.String).to_list() == [model.hierarchy.nodes[c] for c in decided[:, 1]]
        assert np.allclose(table["probability"].to_numpy(), probs[tuple(decided.T)], rtol=1e-6)
        assert table["decided"].to_list() == [1] * len(decided)

    def test_thresholds_of_the_rows_themselves(self, best: Path, data: Path, tmp_path: Path) -> None:
        succeed("predict", best, data, "--out", tmp_path / "p.csv", "--decision", "expected_f2")
        together = TrainedModel.load(best).predict_together(rarenode.read_arff(data).X, "expected_f2")
        assert polars.read_csv(tmp_path / "p.csv")["decided"].to_list() == together.ravel().astype(int).tolist()
        told = fail(ArgumentError, "predict", best, data, "--out", tmp_path / "q.csv", "--decision", "tuned")
        assert "tuned is found on training rows or labels" in told

    def test_rows_need_no_labels(self, trained: Path, tmp_path: Path) -> None:
        path = tmp_path / "new.arff"
        attributes = "".join(f"@ATTRIBUTE {name} numeric\n" for name in "abc")
        path.write_text(f"@RELATION new\n{attributes}@ATTRIBUTE class hierarchical {CLASSES}\n@DATA\n1,?,2,?\n")
        assert "1 rows" in succeed("predict", trained, path, "--out", tmp_path / "p.csv", "--uncertainty", "predictive")

    def test_files_that_cannot_be_written(self, trained: Path, data: Path, tmp_path: Path) -> None:
        assert ".parquet or .csv" in fail(ArgumentError, "predict", trained, data, "--out", tmp_path / "p.xlsx")
        told = fail(ArgumentError, "predict", trained, data, "--out", tmp_path / "no" / "p.csv")
        assert "cannot be written" in told


class TestDemo:
    @pytest.fixture(autouse=True)
    def small(self, monkeypatch: pytest.MonkeyPatch) -> None:
        small = {"hidden": 8, "epochs": 1, "batch_size": 250, "engine": "torch"}
        monkeypatch.setattr(rarenode.cli.demo, "DATA", {"rows": 800, "nodes": 60})
        monkeypatch.setattr(rarenode.cli.demo, "TRAINING", rarenode.cli.demo.TRAINING | small)
        runs = rarenode.cli.demo.RUNS | {"best": ("best", {"trees": 2})}
        monkeypatch.setattr(rarenode.cli.demo, "RUNS", runs)

    def test_a_table_by_rarity_and_depth_and_a_page(self, tmp_path: Path) -> None:
        path = tmp_path / "out" / "demo.html"
        told = succeed("demo", "--quiet", "--out", path)
        for words in ("plain", "weights", "GMU", "best", "100+ training rows", "depth 4"):
            assert words in told
        assert told.endswith(f"{path}: open it in a browser to see which nodes appear, which are lost, and why\n")
        headline = polars.read_csv(path.with_name("demo_files") / "headline.csv")
        assert headline["run"].to_list() == list(rarenode.cli.demo.RUNS)
        (all_nodes,) = [line.split() for line in told.splitlines() if line.split()[:1] == ["all"]]
        assert all_nodes[2::2] == [str(found) for found in headline["nodes_found"]]
        assert all_nodes[3::2] == [f"{100 * f1:.2f}" for f1 in headline["f1"]]

    def test_where_the_page_is_unless_told_otherwise(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(rarenode.cli.demo, "RUNS", {"plain": rarenode.cli.demo.RUNS["plain"]})
        assert "rarenode_demo.html: open it" in succeed("demo", "--quiet")
        assert {path.name for path in tmp_path.iterdir()} == {"rarenode_demo.html", "rarenode_demo_files"}

    def test_a_name_that_no_page_has_is_refused_before_any_training(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(rarenode.training, "fit", None)
        assert "must end in .html" in fail(ArgumentError, "demo", "--out", tmp_path / "demo.pdf")


@pytest.mark.parametrize("command", ["fit", "evaluate", "predict", "report", "demo"])
def test_help_teaches_by_examples(command: str) -> None:
    told = succeed(command, "--help")
    assert "Examples:\n" in told
    assert f"  rarenode {command}" in told


def test_help_needs_no_torch() -> None:
    code = """if True:
        import sys
        from rarenode.cli import main
        sys.argv[1:] = ["fit", "--help"]
        try:
            main()
        finally:
            assert "torch" not in sys.modules
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
