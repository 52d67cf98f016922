"""`Run`: the run folder from Python, and its equality with the command line."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import tomllib
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

from rarenode import Dataset, Hierarchy, Run, Settings, load_dataset, make_hierarchical, read_arff
from rarenode._io.files import sole_use
from rarenode.data.catalogue import CatalogueEntry, catalogue, data_root
from rarenode.errors import (
    ArgumentError,
    DataError,
    FileFormatError,
    FolderInUseError,
    Interrupted,
    MissingFileError,
    ResumeError,
    TrainingError,
    UnknownDatasetError,
)
from rarenode.hierarchy import Terms
from rarenode.metrics import cafa_scores, hierarchical_scores, summary
from rarenode.run.evaluation import TRAINED_ON
from rarenode.run.files import STARTED
from rarenode.training import Callback, Plan, TrainedModel, fit_model
from tests.commands import on_training_rows, succeed, write_arff
from tests.training.problem import with_labels

SMALL: dict[str, Any] = {
    "hidden_size": 8, "epochs": 2, "batch_size": 8, "dropout": 0.0, "learning_rate": 0.01, "n_trees": 3, "cv": 2,
    "engine": "torch",
}  # fmt: skip
FILES = {
    "model.safetensors",
    "model.json",
    "README.md",
    "settings.toml",
    "table.json",
    "examination.json",
    "held_out.safetensors",
}


def settings(**changes: Any) -> Settings:
    return Settings(**SMALL).changed(**changes)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_arff(tmp_path / "small.arff")


@pytest.fixture
def run(data: Path, tmp_path: Path) -> Run:
    return Run.fit(data, tmp_path / "run", settings(), report=False)


def _is_free(folder: Path) -> bool:
    try:
        with sole_use(folder):
            return True
    except FolderInUseError:
        return False


class StopAt(Callback):
    """Ctrl-C at one batch of the training with one title."""

    def __init__(self, title: str, epoch: int, batch: int) -> None:
        self.at = title, epoch, batch

    def on_start(self, plan: Plan) -> None:
        self.title = plan.title

    def on_batch(self, epoch: int, batch: int, loss: float) -> None:
        if (self.title, epoch, batch) == self.at:
            raise KeyboardInterrupt


def assert_same(ours: TrainedModel, theirs: TrainedModel) -> None:
    """The same model, bit for bit."""
    assert ours.settings == theirs.settings
    assert ours.thresholds == theirs.thresholds
    assert [(r.epoch, r.loss) for r in ours.history] == [(r.epoch, r.loss) for r in theirs.history]
    there = theirs.model.arrays()
    assert all(np.array_equal(array, there[name]) for name, array in ours.model.arrays().items())


class TestFit:
    def test_the_folder(self, run: Run, data: Path) -> None:
        assert {path.name for path in run.folder.iterdir()} == FILES
        assert run.model.source == str(data)
        assert run.model.feature_names == ("a", "b", "c")
        assert [run.model.hierarchy.nodes[column] for column in np.flatnonzero(~run.model.scored)] == ["root"]
        assert tomllib.loads((run.folder / "settings.toml").read_text())["hidden_size"] == 8
        assert run.settings == run.files.settings() == settings()
        assert len(run.history) <= 2

    def test_it_is_the_training_of_the_training_layer(self, run: Run, data: Path) -> None:
        assert_same(run.model, fit_model(read_arff(data), settings()).model)

    def test_rows_and_files_are_the_same(self, run: Run, data: Path, tmp_path: Path) -> None:
        assert_same(Run.fit(read_arff(data), tmp_path / "rows", settings(), report=False).model, run.model)

    @pytest.mark.parametrize("title", ["fold 1 of 2", "fold 2 of 2", "all rows"])
    def test_a_stopped_run_resumes_to_the_same_result(self, run: Run, data: Path, tmp_path: Path, title: str) -> None:
        out = tmp_path / "stopped"
        with pytest.raises(Interrupted, match="--resume"):
            Run.fit(data, out, settings(), callback=StopAt(title, 1, 2))
        stored = (out / "settings.toml").read_text()
        with pytest.raises(ResumeError, match="unfinished"):
            Run.fit(data, out, settings())
        for changes, problem in (
            ({"seed": 1}, "seed was 0 and is now 1"),
            ({"holdout": 0.3}, "cv was 2 and is now None"),
        ):
            with pytest.raises(ResumeError, match=problem):
                Run.fit(data, out, settings(**changes), resume=True)
        assert (out / "settings.toml").read_text() == stored
        assert_same(Run.fit(data, out, resume=True, report=False).model, run.model)
        assert {path.name for path in out.iterdir()} == FILES

    def test_a_finished_run_is_kept(self, run: Run, data: Path) -> None:
        before = (run.folder / "model.json").stat().st_mtime_ns
        with pytest.raises(ResumeError, match="finished model; choose another folder"):
            Run.fit(data, run.folder, settings())
        Run.fit(data, run.folder, resume=True)
        assert (run.folder / "model.json").stat().st_mtime_ns == before
        with pytest.raises(ResumeError, match="epochs was 2 and is now 9"):
            Run.fit(data, run.folder, settings(epochs=9), resume=True)
        write_arff(data, seed=9)
        with pytest.raises(ResumeError, match="rows are not the same"):
            Run.fit(data, run.folder, resume=True)

    def test_leftovers_of_a_kill_are_removed(self, run: Run, data: Path) -> None:
        run.model.save(run.folder / ".fold-1")
        Run.fit(data, run.folder, resume=True, report=False)
        assert {path.name for path in run.folder.iterdir()} == FILES

    def test_a_folder_in_use(self, data: Path, tmp_path: Path) -> None:
        class Second(Callback):
            def on_epoch(self, record: object) -> None:
                seen: list[BaseException] = []

                def fit() -> None:
                    try:
                        Run.fit(data, tmp_path / "run", settings(seed=1))
                    except BaseException as error:
                        seen.append(error)

                thread = threading.Thread(target=fit)
                thread.start()
                thread.join()
                errors.extend(seen)

        errors: list[BaseException] = []
        Run.fit(data, tmp_path / "run", settings(), callback=Second(), report=False)
        assert errors
        assert all(isinstance(error, FolderInUseError) for error in errors)
        assert Run(tmp_path / "run").files.settings() == settings()
        with sole_use(tmp_path / "run"):
            assert Run(tmp_path / "run").model is not None  # reading needs no lock

    def test_what_a_refusal_removes_is_removed_within_the_lock(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Otherwise it could be what another process has begun to write."""
        data, free = write_arff(tmp_path / "small.arff"), []
        unlink = Path.unlink

        def watched(self: Path, missing_ok: bool = False) -> None:
            if self.parent == tmp_path / "run" and self.name in STARTED:
                thread = threading.Thread(target=lambda: free.append(_is_free(self.parent)))
                thread.start()
                thread.join()
            unlink(self, missing_ok=missing_ok)

        def refuse(*_: object, **__: object) -> None:
            raise DataError("cannot be used")

        monkeypatch.setattr(Path, "unlink", watched)
        monkeypatch.setattr("rarenode.run.fitting.fit_model", refuse)
        with pytest.raises(DataError, match="cannot be used"):
            Run.fit(data, tmp_path / "run", settings())
        assert free
        assert not any(free)
        assert not (tmp_path / "run").exists()

    def test_half_a_character_in_a_name_or_an_id_is_stored(self, data: Path, tmp_path: Path) -> None:
        rows = read_arff(data)
        rows = replace(rows, name="a\ud800", ids=tuple(f"{row}\ud800" for row in range(len(rows))))
        run = Run.fit(rows, tmp_path / "run", settings())
        assert run.files.examination() is not None
        for suffix in (".csv", ".parquet"):
            run.predict_to_file(rows, tmp_path / f"p{suffix}")
        assert polars.read_parquet(tmp_path / "p.parquet")["id"][0] == "0\\ud800"

    def test_ctrl_c_while_the_forest_grows(self, run: Run, data: Path, tmp_path: Path) -> None:
        class Stop(Callback):
            def on_forest(self, trees: int) -> None:
                signal.raise_signal(signal.SIGINT)

        # Python raises KeyboardInterrupt at the next line, within the growing of the forest or just before.
        with pytest.raises((Interrupted, KeyboardInterrupt)):
            Run.fit(data, tmp_path / "stopped", settings(), callback=Stop())
        assert_same(Run.fit(data, tmp_path / "stopped", resume=True, report=False).model, run.model)

    def test_names_that_cannot_be_saved_are_refused_before_training(self, data: Path, tmp_path: Path) -> None:
        rows = replace(read_arff(data), feature_names=("a", "b", "c\udce9"))
        with pytest.raises(DataError, match=r"feature.*cannot be saved"):
            Run.fit(rows, tmp_path / "run", settings())
        named = replace(read_arff(data), name="caf\udce9.arff")
        found = Run.fit(named, tmp_path / "other", settings(), report=False)
        assert Run(found.folder).model.source == "caf\\udce9.arff"

    def test_no_folder_is_left_by_data_that_cannot_be_used(self, data: Path, tmp_path: Path) -> None:
        rows = read_arff(data)
        with pytest.raises(DataError, match="no row has labels"):
            Run.fit(with_labels(rows, np.zeros(len(rows), dtype=np.bool_)), tmp_path / "run", settings())
        assert not (tmp_path / "run").exists()

    def test_arguments_that_mean_nothing(self, run: Run, data: Path, tmp_path: Path) -> None:
        for given in ({}, {"epochs": 2}, "best"):
            with pytest.raises(ArgumentError, match="settings must be Settings or None, got"):
                Run.fit(data, tmp_path / "new", given)  # type: ignore[arg-type]
        for kind in (None, "zz", ["gmu"]):
            with pytest.raises(ArgumentError, match=r"unknown uncertainty .* choose one of bbma, gmu"):
                run.predict(data, uncertainty=kind)  # type: ignore[arg-type]
            with pytest.raises(ArgumentError, match=r"unknown uncertainty .* choose one of bbma, gmu"):
                run.model.uncertainty(read_arff(data).X, kind)  # type: ignore[arg-type]
        splits = make_hierarchical(rows=60, nodes=6, depth=2, features=3)
        for split in ("zz", "name"):
            with pytest.raises(ArgumentError, match=f"unknown split '{split}'; choose one of train, valid, test"):
                run.evaluate(splits, split=split)  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match="folder is empty"):
            Run("")

    def test_names_that_are_too_long(self, data: Path, tmp_path: Path) -> None:
        long = tmp_path / ("x" * 300)
        with pytest.raises(MissingFileError, match="no such file"):
            Run.fit(long, tmp_path / "run")
        with pytest.raises(TrainingError, match="cannot be created: File name too long"):
            Run.fit(data, long, resume=True)
        with pytest.raises(MissingFileError, match="no such folder"):
            Run(long).evaluate(data)
        with pytest.raises(MissingFileError, match="does not contain a complete model"):
            TrainedModel.load(long)
        with pytest.raises(MissingFileError, match="cellcycle_FUN"):
            load_dataset("cellcycle_FUN", long)

    def test_data_that_do_not_exist(self, tmp_path: Path) -> None:
        with pytest.raises(MissingFileError, match=r"no\.arff"):
            Run.fit(tmp_path / "no.arff", tmp_path / "run")
        with pytest.raises(UnknownDatasetError, match="cellcycle_FUN"):
            Run.fit("celcycle_FUN", tmp_path / "run")
        assert not (tmp_path / "run").exists()

    def test_rows_without_labels_are_left_out_with_a_warning(self, data: Path, tmp_path: Path) -> None:
        lines = data.read_text().splitlines()
        some = [line if place % 5 else ",".join([*line.split(",")[:-1], "?"]) for place, line in enumerate(lines[6:])]
        (tmp_path / "some.arff").write_text("\n".join([*lines[:6], *some]))
        rows = read_arff(tmp_path / "some.arff")
        assert rows.known is not None
        with pytest.warns(RuntimeWarning, match=r"5 of 24 rows have no labels and are not used for training"):
            found = Run.fit(rows, tmp_path / "run", settings(), report=False)
        assert_same(found.model, fit_model(rows.take(np.flatnonzero(rows.known.any(axis=1))), settings()).model)


class TestOneWay:
    """The same row gets the same prediction by every route."""

    def test_name_file_python_one_by_one(self, catalogued: CatalogueEntry, tmp_path: Path) -> None:
        run = Run.fit("tiny", tmp_path / "run", settings(), report=False)
        test_file = tmp_path / "tiny.test.arff"
        by_name = run.predict("tiny").probs
        rows = read_arff(test_file)
        assert np.isnan(rows.X).any()  # missing values, which test rows must not fill from themselves
        scored = run.model.scored
        assert np.array_equal(run.predict(test_file).probs, by_name)
        assert np.array_equal(run.predict(rows).probs, by_name)
        assert np.array_equal(run.model.predict_proba(rows.X)[:, scored], by_name)
        assert np.array_equal(TrainedModel.load(run.folder).predict_proba(rows.X)[:, scored], by_name)
        one_by_one = np.concatenate([run.model.predict_proba(row[None])[:, scored] for row in rows.X])
        assert np.array_equal(one_by_one, by_name)

    @pytest.mark.real_data
    def test_on_real_data(self, tmp_path: Path) -> None:
        run = Run.fit("cellcycle_FUN", tmp_path / "run", settings(holdout=0.2, epochs=1), report=False)
        file = catalogue()["cellcycle_FUN"].file("test")
        assert file is not None
        by_name, by_file = run.predict("cellcycle_FUN"), run.predict(data_root() / file.path)
        assert len(by_name) == 1281
        assert np.array_equal(by_name.probs, by_file.probs)
        assert np.array_equal(by_name.decided, by_file.decided)

    def test_statistics_come_from_training_rows_alone(self, catalogued: CatalogueEntry, tmp_path: Path) -> None:
        run = Run.fit("tiny", tmp_path / "run", settings(), report=False)
        X = load_dataset("tiny").train_and_valid.X
        assert run.model.preparation is not None
        np.testing.assert_allclose(run.model.preparation.fill, np.nanmean(X, axis=0))


class TestBothWays:
    """The command line and Python do the same."""

    def test_fit_evaluate_predict_report(self, catalogued: CatalogueEntry, tmp_path: Path) -> None:
        toml = tmp_path / "small.toml"
        toml.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in SMALL.items()))
        succeed("fit", "tiny", "--out", tmp_path / "shell", "--settings", toml, "--seed", "3", "--quiet")
        python = Run.fit("tiny", tmp_path / "python", settings(seed=3))
        shell = Run(tmp_path / "shell")
        assert_same(shell.model, python.model)
        assert {p.name for p in shell.folder.iterdir()} == {p.name for p in python.folder.iterdir()}
        nodes = [polars.read_csv(r.folder / "report_files" / "nodes.csv").drop("run") for r in (shell, python)]
        assert nodes[0].equals(nodes[1])

        printed = json.loads(succeed("evaluate", tmp_path / "shell", "--json"))
        scores = python.evaluate().scores.all
        assert (printed["f1"], printed["ap"], printed["nodes"]) == (scores.f1, scores.ap, scores.nodes)
        by_aspect = {name: asdict(best) for name, best in python.evaluate().cafa.items()}
        assert printed["cafa"] == by_aspect
        assert printed["hierarchical"] == {"all": asdict(python.evaluate().hierarchical["all"])}
        options = ("--thresholds", "fixed:0.2", "--split", "valid", "--json")
        with on_training_rows():
            printed = json.loads(succeed("evaluate", shell.folder, *options))
        with on_training_rows():
            other = python.evaluate(split="valid", thresholds="fixed:0.2")
        assert other.trained_on
        assert (printed["f1"], printed["trained_on"]) == (other.scores.all.f1, True)

        for name in ("p.csv", "p.parquet"):
            succeed("predict", shell.folder, "tiny", "--out", tmp_path / name, "--decided-only")
            python.predict("tiny").write(tmp_path / f"python_{name}", decided_only=True)
            assert (tmp_path / name).read_bytes() == (tmp_path / f"python_{name}").read_bytes()

        succeed("report", shell.folder, "--out", tmp_path / "shell.html", "--name", "it", "--quiet")
        python.report(tmp_path / "python.html", name="it")
        pages = [(tmp_path / name).read_text(encoding="utf-8") for name in ("shell.html", "python.html")]
        assert pages[0] == pages[1]


class TestEvaluate:
    @pytest.fixture
    def unseen(self, tmp_path: Path) -> Path:
        return write_arff(tmp_path / "unseen.arff", 40, seed=5)

    def test_the_scores_are_those_of_the_decisions(self, run: Run, unseen: Path) -> None:
        rows, model = read_arff(unseen), run.model
        found = run.evaluate(unseen)
        expected = summary(rows.Y, model.predict(rows.X), scored=model.scored)
        assert (found.scores.all.f1, found.scores.all.nodes, found.rows) == (expected.f1, 5, 40)
        assert found.scores.all.ap == summary(rows.Y, model.predict_proba(rows.X), scored=model.scored).ap
        assert not found.trained_on

    def test_its_repr_has_the_scores(self, run: Run, unseen: Path) -> None:
        found = run.evaluate(unseen)
        shown = repr(found)
        assert shown.startswith(f"<Evaluation on {unseen}: 40 rows, F1 {found.scores.all.f1:.3f}, precision ")
        assert shown.endswith(f"{found.scores.all.nodes_found} of 5 nodes found, thresholds {found.thresholds}>")

    def test_the_measures_of_the_field(self, run: Run, unseen: Path) -> None:
        rows, model = read_arff(unseen), run.model
        found = run.evaluate(unseen)
        expected = hierarchical_scores(rows.Y, model.predict(rows.X), model.hierarchy, scored=model.scored)
        assert found.hierarchical == {"all": expected}
        bits = model.information_accretion
        assert found.cafa == cafa_scores(
            rows.Y, model.predict_proba(rows.X), model.hierarchy, bits, scored=model.scored
        )
        assert found.cafa["all"].s_min is not None

    def test_unknown_labels_are_left_out_of_them(self, run: Run, unseen: Path) -> None:
        rows, model = read_arff(unseen), run.model
        known = rows.Y | (np.random.default_rng(0).random(rows.Y.shape) < 0.5)
        found = run.evaluate(replace(rows, known=known))
        decided, probs = model.predict(rows.X), model.predict_proba(rows.X)
        given: dict[str, Any] = {"scored": model.scored, "known": known}
        assert found.hierarchical["all"] == hierarchical_scores(rows.Y, decided, model.hierarchy, **given)
        assert found.cafa == cafa_scores(rows.Y, probs, model.hierarchy, model.information_accretion, **given)
        assert found.cafa != run.evaluate(rows).cafa

    def test_each_aspect_of_an_ontology(self, tmp_path: Path) -> None:
        rows = make_hierarchical(rows=80, nodes=20, depth=3).train
        aspects = tuple("process" if column % 2 else "function" for column in range(20))
        ontology = rows.hierarchy.with_terms(Terms(rows.hierarchy.nodes, aspects))
        run = Run.fit(replace(rows, hierarchy=ontology), tmp_path / "run", settings(), report=False)
        with on_training_rows():
            found = Run(run.folder).evaluate(rows)
        assert list(found.cafa) == list(found.hierarchical) == ["function", "process"]

    def test_the_report_has_the_same_numbers(self, run: Run, unseen: Path) -> None:
        part, found = run.report_part(unseen), run.evaluate(unseen)
        assert (part.summary, part.hierarchical, part.cafa) == (found.scores.all, found.hierarchical, found.cafa)

    def test_rows_that_were_trained_on_are_recognised(self, run: Run, data: Path, tmp_path: Path) -> None:
        copy = tmp_path / "copy.arff"
        copy.write_bytes(data.read_bytes())
        held = Run.fit(data, tmp_path / "held", settings(holdout=0.3), report=False)
        for each, rows in ((run, data), (run, copy), (held, copy), (held, read_arff(data))):
            with on_training_rows():
                found = each.evaluate(rows)
            assert found.trained_on
            assert repr(found).endswith(f"; {TRAINED_ON}>")

    def test_a_part_of_the_training_rows_is_recognised(self, catalogued: CatalogueEntry, tmp_path: Path) -> None:
        run = Run.fit("tiny", tmp_path / "run", settings(), report=False)
        other = read_arff(tmp_path / "tiny.train.arff").take(np.arange(3))
        assert not run.evaluate(other).note  # a part of the file, which the model need not have seen
        for part in ("train", "valid"):
            with on_training_rows():
                assert run.evaluate(tmp_path / f"tiny.{part}.arff").trained_on
        assert not run.evaluate(tmp_path / "tiny.test.arff").note

    def test_validation_rows_of_the_catalogue(self, catalogued: CatalogueEntry, tmp_path: Path) -> None:
        """They are trained on, unless early stopping needs them."""
        changes: dict[str, Any] = {"thresholds": "fixed", "holdout": None, "cv": None}
        run = Run.fit("tiny", tmp_path / "run", settings(**changes, patience=2), report=False)
        note = "early stopping used these rows; scores on new rows may be a little lower"
        for found in (run.evaluate(split="valid"), run.evaluate(tmp_path / "tiny.valid.arff")):
            assert (found.trained_on, found.note) == (False, note)
        with on_training_rows():
            assert run.evaluate(split="train").trained_on

    def test_rows_without_labels_cannot_be_evaluated(self, run: Run, data: Path) -> None:
        rows = read_arff(data)
        nothing = with_labels(rows, np.zeros(len(rows), dtype=np.bool_))
        with pytest.raises(DataError, match="no row has labels"):
            run.evaluate(nothing)
        some = with_labels(rows, np.arange(len(rows)) % 2 == 0)
        assert run.evaluate(some).rows == len(rows) / 2

    def test_strategies_that_need_labels_are_refused(self, run: Run, unseen: Path) -> None:
        with pytest.raises(ArgumentError, match="tuned needs the labels"):
            run.evaluate(unseen, thresholds="tuned")

    def test_arrays_are_not_data(self, run: Run) -> None:
        with pytest.raises(ArgumentError, match="must be a Dataset, a file, a pandas or polars data frame"):
            run.predict(np.zeros((2, 3)))

    def test_data_that_do_not_fit(self, run: Run, tmp_path: Path) -> None:
        other = write_arff(tmp_path / "other.arff", features=("a", "b", "x"))
        with pytest.raises(DataError, match=r"other\.arff lacks features of the model: 'c'"):
            run.evaluate(other)
        classes = write_arff(tmp_path / "classes.arff", classes="1,1/1,1/2,2,2/1,3")
        with pytest.raises(DataError, match="nodes that the model does not have: '3'"):
            run.evaluate(classes)

    def test_a_run_that_is_not_there(self, data: Path, tmp_path: Path) -> None:
        with pytest.raises(MissingFileError, match="no such folder"):
            Run(tmp_path / "none").evaluate("cellcycle_FUN")
        with pytest.raises(Interrupted):
            Run.fit(data, tmp_path / "stopped", settings(), callback=StopAt("all rows", 1, 1))
        with pytest.raises(MissingFileError, match="unfinished training"):
            Run(tmp_path / "stopped").evaluate(data)
        with pytest.raises(MissingFileError, match="complete model"):
            Run(tmp_path).evaluate("cellcycle_FUN")

    def test_what_to_evaluate_must_be_known(self, run: Run, data: Path) -> None:
        assert run.evaluate().data == f"{data}, out-of-fold predictions"
        data.rename(data.with_suffix(".old"))
        with pytest.raises(MissingFileError, match=r"trained with .*small\.arff, which is no longer there; name it"):
            run.evaluate()
        data.with_suffix(".old").rename(data)
        with pytest.raises(ArgumentError, match="not divided into parts"):
            run.evaluate(data, split="test")


class TestPredict:
    def test_a_line_for_each_row_and_scored_node(self, run: Run, data: Path, tmp_path: Path) -> None:
        found, model, X = run.predict(data), run.model, read_arff(data).X
        assert found.nodes == tuple(node for node in model.hierarchy.nodes if node != "root")
        assert np.array_equal(found.decided, model.predict(X)[:, model.scored])
        assert np.array_equal(found.uncertainty, model.uncertainty(X)[:, model.scored])
        for name in ("p.csv", "p.parquet"):
            assert found.write(tmp_path / name) == 24 * 5
        table = polars.read_parquet(tmp_path / "p.parquet")
        assert table.columns == ["row", "node", "probability", "decided", "uncertainty"]
        assert table["row"].to_list() == [row for row in range(24) for _ in range(5)]
        assert table["node"].to_list() == list(found.nodes) * 24
        assert np.array_equal(table["probability"].to_numpy(), found.probs.ravel())
        assert "root" not in (tmp_path / "p.csv").read_text()

    def test_raw_names_are_written_as_they_are(self, run: Run, data: Path, tmp_path: Path) -> None:
        names = ("=1+1", "+a", "-b", "@c", 'd,"e"\n')
        found = replace(
            run.predict(data), hierarchy=Hierarchy.from_edges([], nodes=names), scored=np.ones(5, dtype=np.bool_)
        )
        found.write(tmp_path / "p.csv", raw=True)
        assert polars.read_csv(tmp_path / "p.csv")["node"].to_list() == sorted(names) * 24

    def test_its_repr_has_its_size(self, run: Run, data: Path) -> None:
        found = run.predict(data)
        decided = int(found.decided.sum())
        assert repr(found) == f"<Predictions of 24 rows x 5 nodes: {decided} decided, thresholds {found.thresholds}>"

    def test_decided_only(self, run: Run, data: Path) -> None:
        found = run.predict(data)
        table = found.to_frame(decided_only=True)
        assert table["decided"].to_list() == [1] * int(found.decided.sum())
        rows, columns = np.nonzero(found.decided)
        assert table["row"].to_list() == rows.tolist()
        assert table["node"].to_list() == [found.nodes[column] for column in columns]

    def test_labels_are_ignored(self, run: Run, data: Path, tmp_path: Path) -> None:
        without = tmp_path / "without.arff"
        lines = data.read_text().splitlines()
        without.write_text("\n".join([*lines[:6], *(",".join([*line.split(",")[:-1], "?"]) for line in lines[6:])]))
        assert np.array_equal(run.predict(without).probs, run.predict(data).probs)

    def test_a_file_name_that_is_not_unicode(self, run: Run, data: Path, tmp_path: Path) -> None:
        for suffix in (b".csv", b".parquet"):
            path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/p\xe9" + suffix))
            run.predict(data).write(path)
            assert path.stat().st_size > 0

    def test_files_that_cannot_be_written(self, run: Run, data: Path, tmp_path: Path) -> None:
        with pytest.raises(ArgumentError, match=r"must end in \.csv, \.tsv, \.parquet, \.jsonl"):
            run.predict(data).write(tmp_path / "p.txt")
        with pytest.raises(ArgumentError, match="cannot be written"):
            run.predict(data).write(tmp_path / "no" / "p.csv")


def page_without_times(page: Path) -> str:
    return re.sub(r"[0-9.]+ (seconds|s\\b|steps/s)", "", page.read_text(encoding="utf-8"))


class TestReport:
    def nodes(self, out: Path) -> dict[str, list[Any]]:
        return polars.read_csv(out / "report_files" / "nodes.csv").to_dict(as_series=False)

    @pytest.mark.parametrize("changes", [{}, {"holdout": 0.3}])
    def test_a_file_is_reported_on_by_held_out_predictions(
        self, data: Path, tmp_path: Path, changes: dict[str, Any]
    ) -> None:
        run = Run.fit(data, tmp_path / "run", settings(**changes))
        again = fit_model(read_arff(data), settings(**changes))
        assert again.held_out is not None
        decided = again.model.decide(again.held_out.probs)
        found = self.nodes(run.folder)
        assert found["decided"] == decided.sum(axis=0).tolist()
        page = (run.folder / "report.html").read_text(encoding="utf-8")
        assert ("out-of-fold predictions" if not changes else "held-out rows") in page

    def test_a_dataset_is_reported_on_by_its_test_rows(self, catalogued: CatalogueEntry, tmp_path: Path) -> None:
        run = Run.fit("tiny", tmp_path / "run", settings())
        test = load_dataset("tiny").test
        assert self.nodes(run.folder)["decided"] == run.model.predict(test.X).sum(axis=0).tolist()
        (run.folder / "report.html").unlink()
        Run.fit("tiny", run.folder, resume=True)
        assert (run.folder / "report.html").exists()

    @pytest.mark.parametrize("changes", [{}, {"holdout": 0.3}, {"model": "forest"}])
    def test_it_is_written_again_as_it_was(
        self, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, Any]
    ) -> None:
        expected = Run.fit(data, tmp_path / "a" / "run", settings(**changes))
        run = Run(tmp_path / "b" / "run")
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr("rarenode.run.fitting.write_report", lambda *_: signal.raise_signal(signal.SIGINT))
            Run.fit(data, run.folder, settings(**changes))
        assert not (run.folder / "report.html").exists()
        begun: list[str] = []
        callback = Callback()
        monkeypatch.setattr(callback, "on_start", lambda plan: begun.append(plan.title))
        for _ in ("stopped", "removed"):
            Run.fit(data, run.folder, resume=True, callback=callback)
            pages = [page_without_times(each.folder / "report.html") for each in (run, expected)]
            assert pages[0] == pages[1]
            (run.folder / "report.html").unlink()
        assert begun == []

    def test_predictions_of_another_model_are_refused(self, run: Run, data: Path, tmp_path: Path) -> None:
        other = Run.fit(data, tmp_path / "other", settings(seed=1), report=False)
        kept = (other.folder / "held_out.safetensors").read_bytes()
        (run.folder / "held_out.safetensors").write_bytes(kept)
        with pytest.raises(FileFormatError, match=r"held_out\.safetensors: it belongs to another model"):
            Run.fit(data, run.folder, resume=True)
        (other.folder / "held_out.safetensors").write_bytes(kept[:-1] + bytes([kept[-1] ^ 1]))
        with pytest.raises(FileFormatError, match=r"held_out\.safetensors: its checksum"):
            Run.fit(data, other.folder, resume=True)

    def test_without_held_out_rows_there_is_none(self, data: Path, tmp_path: Path) -> None:
        run = Run.fit(data, tmp_path / "run", settings(thresholds="fixed", patience=0, model="mlp"))
        assert not (run.folder / "report.html").exists()

    def test_validation_rows_stop_early(self, catalogued: CatalogueEntry, tmp_path: Path) -> None:
        run = Run.fit("tiny", tmp_path / "run", settings(cv=0, thresholds="fixed", patience=1), report=False)
        assert run.history[0].valid is not None

    def test_synthetic_data_need_no_file(self, tmp_path: Path) -> None:
        splits = make_hierarchical(rows=120, nodes=12, depth=3, features=4)
        run = Run.fit(splits, tmp_path / "run", settings(holdout=0.3, model="forest"))
        assert run.evaluate(splits).rows == 30
        assert isinstance(splits.test, Dataset)
        assert (run.folder / "report.html").exists()


def test_a_report_about_validation_rows_has_their_labels(tmp_path: Path) -> None:
    """Their predictions were once compared with the labels of as many training rows."""
    parts = make_hierarchical(rows=200, nodes=12, depth=3, features=6)
    assert parts.valid is not None
    Run.fit(parts.train, tmp_path / "run", settings(holdout=None, cv=3), valid=parts.valid)
    page = (tmp_path / "run" / "report.html").read_text()
    found = re.search(r'"training":\[[^]]*\],"rows":\[([^]]*)\]', page)
    assert found is not None
    assert json.loads(f"[{found[1]}]") == parts.valid.Y.sum(axis=0).tolist()
    assert "validation rows: 50 rows" in page


@pytest.mark.parametrize("change", [{"focus": "epistemic_kl"}, {"device": "nowhere"}])
def test_a_fit_that_is_refused_leaves_nothing(data: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        Run.fit(data, tmp_path / "runs" / "run", settings(**change))
    assert not (tmp_path / "runs").exists()
    own = tmp_path / "own"
    own.mkdir()
    (own / "notes.txt").write_text("mine")
    with pytest.raises(ArgumentError):
        Run.fit(data, own, settings(**change))
    assert [path.name for path in own.iterdir()] == ["notes.txt"]


def test_a_model_is_not_saved_into_the_folder_of_a_run(run: Run, tmp_path: Path) -> None:
    """Its report, its table and its held-out predictions would be those of another model."""
    content = {path.name: path.read_bytes() for path in run.folder.iterdir() if path.is_file()}
    with pytest.raises(ArgumentError, match=r"run contains a run of `rarenode fit`; save the model in another folder"):
        run.model.save(run.folder)
    assert {path.name: path.read_bytes() for path in run.folder.iterdir() if path.is_file()} == content
    run.model.save(tmp_path / "elsewhere")
    run.model.save(tmp_path / "elsewhere")
