"""Runs on tables: the same model from every format, what a run remembers of its table, and resuming."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from rarenode import Dataset, Run, Settings, read_arff
from rarenode.errors import ArgumentError, DataError, FileFormatError, Interrupted, ResumeError
from rarenode.hierarchy import write_hierarchy
from rarenode.training import TrainedModel
from tests.commands import LABELS, on_training_rows, run, succeed, write_arff
from tests.run.test_predictions import rows
from tests.run.test_run import StopAt

SMALL: dict[str, Any] = {
    "hidden_size": 8, "epochs": 3, "n_trees": 5, "holdout": 0.3, "batch_size": 16, "engine": "torch",
}  # fmt: skip
IN_SHELL = [str(word) for name, value in SMALL.items() for word in (f"--{name.replace('_', '-')}", value)]
SURVEY = {"labels": "taxa", "id": "image"}


def settings(**changes: Any) -> Settings:
    return Settings(**SMALL).changed(**changes)


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    rows(90, 0).write_csv(tmp_path / "train.csv")
    return tmp_path / "train.csv"


def weights(run: Path | Run) -> bytes:
    folder = run.folder if isinstance(run, Run) else run
    return (folder / "model.safetensors").read_bytes()


# --- formats ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("changes", [{}, {"cv": 2}])
def test_arff_csv_and_parquet_give_the_same_model(tmp_path: Path, changes: dict[str, Any]) -> None:
    """Bit for bit, from Python and from the shell; values are missing in some cells."""
    arff = write_arff(tmp_path / "small.arff", 60)
    data = read_arff(arff)
    assert np.isnan(data.X).any()
    write_hierarchy(data.hierarchy, tmp_path / "classes.csv")
    frame = pl.DataFrame({name: data.X[:, place] for place, name in enumerate("abc")}).fill_nan(None)
    frame = frame.with_columns(kind=pl.Series([LABELS[row % len(LABELS)] for row in range(60)]))
    frame.write_csv(tmp_path / "small.csv")
    frame.write_csv(tmp_path / "excel.csv", separator=";", decimal_comma=True, include_bom=True, line_terminator="\r\n")
    frame.write_parquet(tmp_path / "small.parquet")
    frame.write_ipc(tmp_path / "small.arrow")
    data = replace(data, scored=np.ones(len(data.hierarchy), dtype=np.bool_))  # only ARFF has an artificial root
    expected = weights(Run.fit(data, tmp_path / "arff", settings(**changes), report=False))
    options = {"labels": "kind", "separator": "@"}
    how: dict[str, Any] = {"options": options, "hierarchy": tmp_path / "classes.csv", "report": False}
    for name in ("small.csv", "excel.csv", "small.parquet", "small.arrow"):
        run = Run.fit(tmp_path / name, tmp_path / f"run {name}", settings(**changes), **how)
        assert weights(run) == expected, name
        assert np.array_equal(run.model.predict_proba(data.X), Run(tmp_path / "arff").model.predict_proba(data.X))
    shell = [*IN_SHELL, *(str(word) for name, value in changes.items() for word in (f"--{name}", value))]
    if "cv" in changes:
        shell = [word for place, word in enumerate(shell) if "--holdout" not in shell[max(0, place - 1) : place + 1]]
    for name in ("small.csv", "small.parquet"):
        table = ("--labels", "kind", "--separator", "@", "--hierarchy", tmp_path / "classes.csv")
        out = tmp_path / f"shell {name}"
        succeed("fit", tmp_path / name, *table, "--out", out, *shell, "--quiet", "--no-report")
        assert weights(out) == expected, name


def test_a_model_with_categories_is_saved_whole(survey: Path, tmp_path: Path) -> None:
    run = Run.fit(survey, tmp_path / "run", settings(), options=SURVEY, report=False)
    new = rows(20, 5).with_columns(ground=pl.Series(["sand", "never seen", None, "mud"] * 5))
    features = new.select("depth", "ground")
    loaded = TrainedModel.load(run.folder)
    assert np.array_equal(loaded.predict_proba(features), run.model.predict_proba(features))
    assert loaded.reading == run.model.reading
    assert loaded.reading is not None
    assert (loaded.reading.labels, loaded.reading.id, loaded.reading.path_separator) == (("taxa",), "image", " > ")
    new.drop("taxa").write_csv(tmp_path / "new.csv")
    assert np.array_equal(Run(run.folder).predict(tmp_path / "new.csv").probs, loaded.predict_proba(features))
    again = Run.fit(survey, tmp_path / "again", settings(), options=SURVEY, report=False)
    assert weights(again) == weights(run)


def test_new_rows_that_do_not_fit_are_named(survey: Path, tmp_path: Path) -> None:
    run = Run.fit(survey, tmp_path / "run", settings(), options=SURVEY, report=False)
    new = rows(5, 5)
    for frame, told in (
        (new.rename({"depth": "Depth"}), r"lacks columns that the model needs: 'depth' \(is it 'Depth' here\?"),
        (new.with_columns(depth=pl.lit("deep")), "line 2: column 'depth': expected a number, got 'deep'"),
        (new.with_columns(image=pl.lit("same")), "line 3: the id 'same' in column 'image' appears twice"),
    ):
        frame.write_csv(tmp_path / "new.csv")
        with pytest.raises(DataError, match=rf"new\.csv.*{told}"):
            run.predict(tmp_path / "new.csv")
        with pytest.raises(DataError, match=rf"new\.csv.*{told}"):
            run.predict_to_file(tmp_path / "new.csv", tmp_path / "p.csv")
    new.drop("taxa").write_csv(tmp_path / "new.csv")
    with pytest.raises(ArgumentError, match="has no column 'taxa'"):
        run.evaluate(tmp_path / "new.csv")
    new.drop("image").write_csv(tmp_path / "new.csv")
    with pytest.raises(ArgumentError, match=r"new\.csv has no column 'image' \(--id\)"):
        run.predict(tmp_path / "new.csv")


def test_weights_are_not_needed_for_new_rows(survey: Path, tmp_path: Path) -> None:
    frame = pl.read_csv(survey).with_columns(w=pl.Series(np.linspace(0.5, 2, 90)))
    frame.write_csv(survey)
    run = Run.fit(survey, tmp_path / "run", settings(), options=SURVEY | {"weight": "w"}, report=False)
    rows(5, 5).write_csv(tmp_path / "new.csv")
    assert run.evaluate(tmp_path / "new.csv").rows == 5
    assert len(run.predict(tmp_path / "new.csv")) == 5


def test_labels_in_a_file_of_their_own(survey: Path, tmp_path: Path) -> None:
    frame = pl.read_csv(survey)
    frame.select("image", "taxa").write_csv(tmp_path / "labels.csv")
    frame.drop("taxa").write_csv(tmp_path / "bare.csv")
    expected = Run.fit(survey, tmp_path / "run", settings(), options=SURVEY, report=False)
    options = {"labels": tmp_path / "labels.csv", "id": "image"}
    found = Run.fit(tmp_path / "bare.csv", tmp_path / "long", settings(), options=options, report=False)
    assert weights(found) == weights(expected)
    with pytest.raises(ArgumentError, match="say where the labels of"):
        found.evaluate(tmp_path / "bare.csv")
    with on_training_rows():
        assert found.evaluate(tmp_path / "bare.csv", options={"labels": str(tmp_path / "labels.csv")}).rows == 90


def test_own_data_are_found_from_any_folder(survey: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pl.read_csv(survey)
    frame.select("image", "taxa").write_csv(tmp_path / "labels.csv")
    for number, part in enumerate((frame[:50], frame[50:])):
        part.drop("taxa").write_csv(tmp_path / f"part-{number}.csv")
    (tmp_path / "elsewhere").mkdir()
    for labels, data in (("labels.csv", "part-*.csv"), ("labels.csv", ["part-0.csv", "part-1.csv"]), ("taxa", survey)):
        monkeypatch.chdir(tmp_path)
        out = tmp_path / f"run {labels} {type(data).__name__}"
        run = Run.fit(data, out, settings(), options={"labels": labels, "id": "image"}, report=False)
        expected = run.evaluate()
        monkeypatch.chdir("elsewhere")
        assert Run(out).evaluate().scores == expected.scores


def test_validation_rows_from_a_table(survey: Path, tmp_path: Path) -> None:
    rows(40, 1).write_csv(tmp_path / "valid.csv")
    run = Run.fit(
        survey,
        tmp_path / "run",
        settings(holdout=None, cv=3),
        valid=tmp_path / "valid.csv",
        options=SURVEY,
        report=False,
    )
    assert run.history[0].valid is not None
    how: dict[str, Any] = SURVEY
    train = Dataset.read(survey, **how)
    again = Run.fit(
        train,
        tmp_path / "python",
        settings(holdout=None, cv=3),
        valid=Dataset.read(tmp_path / "valid.csv", hierarchy=train.hierarchy, **how),
        report=False,
    )
    assert weights(again) == weights(run)
    rows(9, 2).rename({"depth": "deep"}).write_csv(tmp_path / "valid.csv")
    with pytest.raises(DataError, match=r"valid\.csv lacks columns that the model needs: 'depth'"):
        Run.fit(survey, tmp_path / "x", settings(holdout=None, cv=3), valid=tmp_path / "valid.csv", options=SURVEY)
    assert not (tmp_path / "x").exists()


def test_several_files_and_patterns(survey: Path, tmp_path: Path) -> None:
    expected = weights(Run.fit(survey, tmp_path / "run", settings(), options=SURVEY, report=False))
    frame = pl.read_csv(survey)
    parts = [tmp_path / f"part-{place}.csv" for place in (1, 2)]
    frame[:50].write_csv(parts[0])
    frame[50:].write_csv(parts[1])
    ways: list[Any] = [parts, str(tmp_path / "part-*.csv")]
    for place, data in enumerate(ways):
        run = Run.fit(data, tmp_path / f"run {place}", settings(), options=SURVEY, report=False)
        assert weights(run) == expected


# --- resuming --------------------------------------------------------------------------------------------------------


def test_a_stopped_run_remembers_its_table(survey: Path, tmp_path: Path) -> None:
    write_hierarchy(Dataset.read(survey, labels="taxa", id="image").hierarchy, tmp_path / "taxa.csv")
    how: dict[str, Any] = {"options": SURVEY | {"ignore": ("ground",)}, "hierarchy": tmp_path / "taxa.csv"}
    expected = Run.fit(survey, tmp_path / "whole", settings(cv=2), report=False, **how)
    for name in ("run", "shell"):
        with pytest.raises(Interrupted, match="--resume"):
            Run.fit(survey, tmp_path / name, settings(cv=2), callback=StopAt("all rows", 1, 2), **how)
        assert not (tmp_path / name / "model.json").exists()
    run = Run.fit(survey, tmp_path / "run", resume=True, report=False)
    succeed("fit", survey, "--out", tmp_path / "shell", "--resume", "--quiet", "--no-report")
    assert weights(run) == weights(expected) == weights(tmp_path / "shell")
    assert run.model.feature_names == ("depth",)
    with pytest.raises(ResumeError, match="not the same"):
        Run.fit(survey, tmp_path / "run", resume=True, options=SURVEY, hierarchy=tmp_path / "taxa.csv")
    for damaged in ("{", "[" * 100_000 + "]" * 100_000, f'{{"a": {"9" * 5_001}}}', "[]"):
        (tmp_path / "run" / "table.json").write_text(damaged)
        with pytest.raises(FileFormatError, match=r"table\.json: it is damaged; remove it, and repeat the options"):
            Run.fit(survey, tmp_path / "run", resume=True)
    rows(20, 5).write_csv(tmp_path / "other.csv")
    assert not Run(tmp_path / "run").evaluate(tmp_path / "other.csv").trained_on


def test_a_stopped_run_remembers_its_validation_rows(survey: Path, tmp_path: Path) -> None:
    rows(40, 1).write_csv(tmp_path / "valid.csv")
    how: dict[str, Any] = {"options": SURVEY, "valid": tmp_path / "valid.csv"}
    expected = Run.fit(survey, tmp_path / "whole", settings(holdout=None, cv=3), report=False, **how)
    with pytest.raises(Interrupted):
        Run.fit(survey, tmp_path / "run", settings(holdout=None, cv=3), callback=StopAt("", 2, 1), **how)
    assert weights(Run.fit(survey, tmp_path / "run", resume=True, report=False)) == weights(expected)


HEARING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"


DEAF = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"


@pytest.mark.skipif(sys.platform == "win32", reason="Ctrl-C is another thing there")
@pytest.mark.parametrize(
    ("begin", "number", "code"),
    [(HEARING, signal.SIGINT, 130), (HEARING, signal.SIGTERM, 143), (DEAF, signal.SIGTERM, 143)],
)
def test_ctrl_c_in_the_shell(survey: Path, tmp_path: Path, begin: str, number: signal.Signals, code: int) -> None:
    """polars, which reads the table, has its own way with Ctrl-C; a checkpoint is saved all the same.

    So it is at the request of a scheduler, also in the background.
    """
    out = tmp_path / "run"
    program = f"{begin}; from rarenode.cli import main; main()"
    small = [word if word != "3" else "5000" for word in IN_SHELL]  # epochs
    rare = ["--patience", "5000", "--checkpoint-epochs", "5000", "--checkpoint-minutes", "60"]
    command = ["fit", survey, "--labels", "taxa", "--id", "image", "--out", out, *small, *rare]
    python = [sys.executable, "-c", program]
    with subprocess.Popen([*python, *map(str, command)], stderr=subprocess.PIPE, text=True) as under_way:
        assert under_way.stderr is not None
        line = ""
        while not re.search("training (up to )?5,?000 epochs", line):
            line = under_way.stderr.readline()
            assert line, "it ended"
        time.sleep(1)
        os.kill(under_way.pid, number)
        told = under_way.communicate(timeout=60)[1]
    assert under_way.returncode == code
    assert "--resume" in told
    assert "Traceback" not in told
    assert (out / "checkpoint.safetensors").exists()
    assert json.loads((out / "table.json").read_text())["options"] == {"labels": ["taxa"], "id": "image"}


def test_names_of_columns_that_are_patterns_to_polars(tmp_path: Path) -> None:
    odd = rows(60, 0).with_columns([pl.Series("x1", np.arange(60.0)), pl.Series("*", np.arange(60.0) ** 2)])
    odd.write_parquet(tmp_path / "odd.parquet")
    odd.rename({"*": "star"}).write_parquet(tmp_path / "plain.parquet")
    for stream in (False, True):
        how: dict[str, Any] = {"options": SURVEY | {"stream": stream}, "report": False}
        run = Run.fit(tmp_path / "odd.parquet", tmp_path / f"{stream}", settings(), **how)
        expected = Run.fit(tmp_path / "plain.parquet", tmp_path / f"plain {stream}", settings(), **how)
        assert weights(run) == weights(expected)
    odd.rename({"*": "^x.*$"}).write_parquet(tmp_path / "pattern.parquet")
    for stream in (False, True):
        with pytest.raises(DataError, match=r"begins with \^ and ends with \$ cannot be used; rename"):
            Run.fit(tmp_path / "pattern.parquet", tmp_path / "no", settings(), options=SURVEY | {"stream": stream})


def test_a_second_file_is_of_validation_rows_and_said_to_be(survey: Path, tmp_path: Path) -> None:
    for number in (1, 2):
        rows(40, number).write_csv(tmp_path / f"part-{number}.csv")
    small = [word for word in IN_SHELL if word not in ("--holdout", "0.3")]
    options = ["--labels", "taxa", "--id", "image", *small, "--no-report"]
    done = run("fit", tmp_path / "part-1.csv", tmp_path / "part-2.csv", "--out", tmp_path / "run", *options)
    assert f"validation rows: {tmp_path / 'part-2.csv'} (to train on both, name them together" in done.output
    done = run("fit", survey, tmp_path / "part-1.csv", "--out", tmp_path / "other", *options)
    assert f"validation rows: {tmp_path / 'part-1.csv'}\n" in done.output


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks for processes in /proc")
def test_a_fold_whose_process_is_killed_continues_from_its_checkpoint(survey: Path, tmp_path: Path) -> None:
    small = ["--model", "mlp", "--cv", "2", "--patience", "0", "--hidden-size", "8", "--epochs", "3000"]
    small += ["--engine", "torch", "--checkpoint-epochs", "1"]
    options = ["--labels", "taxa", "--id", "image", *small, "--no-report"]
    program = f"{HEARING}; from rarenode.cli import main; main()"
    command = [sys.executable, "-c", program, "fit", survey, "--out", tmp_path / "run", *options, "--jobs", "2"]
    with subprocess.Popen([*map(str, command)], stderr=subprocess.PIPE, text=True) as under_way:
        while not (found := list((tmp_path / "run").glob(".fold-*/checkpoint.safetensors"))):
            assert under_way.poll() is None
            time.sleep(0.05)
        assert found
        children = Path(f"/proc/{under_way.pid}/task/{under_way.pid}/children").read_text().split()
        os.kill(int(children[0]), signal.SIGKILL)
        assert under_way.stderr is not None
        lines = [next(line for line in under_way.stderr if "it is begun again" in line)]
        time.sleep(3)
        os.kill(under_way.pid, signal.SIGINT)
        lines += under_way.stderr.readlines()
    assert under_way.returncode == 130, lines
    assert "stopped while folds were trained" in lines[-1]
