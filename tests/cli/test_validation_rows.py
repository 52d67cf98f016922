"""Tables that have validation rows: what doctor says of them, what fit does with them, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from rarenode import Run
from rarenode.errors import ArgumentError
from tests.commands import fail, run, succeed

SURVEY = ("--labels", "taxa", "--id", "image", "--partition", "split")
SMALL = ("--n-trees", "5", "--epochs", "2", "--hidden-size", "16")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """180 rows for training, 20 for validation, of which none is a sponge, and 100 for testing."""
    rng = np.random.default_rng(0)
    kinds = np.arange(300) % 3
    split = np.array(["train"] * 180 + ["valid"] * 20 + ["test"] * 100)
    kinds[(split == "valid") & (kinds == 1)] = 0
    frame = pl.DataFrame(
        {
            "image": [f"i{row}" for row in range(300)],
            "depth": rng.normal(size=300) + kinds,
            "taxa": np.array(["Biota > Corals", "Biota > Sponges", "Rock"])[kinds],
            "split": split,
        }
    )
    path = tmp_path_factory.mktemp("survey") / "survey.csv"
    frame.write_csv(path)
    return path


@pytest.fixture(scope="module")
def fitted(table: Path) -> Path:
    succeed("fit", table, *SURVEY, *SMALL, "--quiet", "--out", table.parent / "run")
    return table.parent / "run"


def test_doctor_warns_of_few_validation_rows(table: Path) -> None:
    result = run("doctor", table, *SURVEY, "--no-time")
    assert result.exit_code == 3
    assert "1 of 4 nodes has no validation row, and thresholds are fitted to 20 validation rows" in result.stdout
    assert "(Sponges); without validation rows, thresholds would be fitted to folds" in result.stdout
    assert "A fit with the default settings: one training, about" in result.stdout


def test_fit_says_so_too(table: Path, tmp_path: Path) -> None:
    told = run("fit", table, *SURVEY, *SMALL, "--no-report", "--out", tmp_path / "run").stderr
    assert told.startswith("one training, about")
    assert "1 of 4 nodes has no validation row, and thresholds are fitted to 20 validation rows alone\n" in told
    fixed = ("--thresholds", "fixed", "--no-report", "--out", tmp_path / "fixed")
    assert "validation row" not in run("fit", table, *SURVEY, *SMALL, *fixed).stderr


def test_the_report_says_so_too(fitted: Path) -> None:
    assert "1 of 4 nodes has no validation row" in (fitted / "report.html").read_text()


@pytest.mark.parametrize("option", [("--holdout", "0.2"), ("--cv", "5")])
def test_what_validation_rows_replace_is_refused(table: Path, tmp_path: Path, option: tuple[str, str]) -> None:
    name, value = option[0].removeprefix("--"), option[1]
    told = fail(ArgumentError, "fit", table, *SURVEY, *SMALL, *option, "--out", tmp_path / "run")
    assert told.startswith(f"{name}={value} would be ignored: there are validation rows")
    assert f"leave out {name} ({option[0]})" in told
    assert not (tmp_path / "run").exists()
    frame = pl.read_csv(table).drop("split")
    for part, rows in (("train", frame[:180]), ("valid", frame[180:200])):
        rows.write_csv(tmp_path / f"{part}.csv")
    two = ("fit", tmp_path / "train.csv", tmp_path / "valid.csv", *SURVEY[:4], *SMALL, "--out", tmp_path / "run")
    assert fail(ArgumentError, *two, *option) == told


def test_the_default_of_cv_is_not_refused(table: Path, tmp_path: Path) -> None:
    (tmp_path / "all.toml").write_text(succeed("settings"))
    options = (*SMALL, "--settings", tmp_path / "all.toml", "--no-report", "--quiet")
    succeed("fit", table, *SURVEY, *options, "--out", tmp_path / "run")
    assert Run(tmp_path / "run").settings.cv == 3
    assert "cv" in json.loads((tmp_path / "run" / "model.json").read_text())["settings"]


def test_what_validation_rows_were_used_for(fitted: Path) -> None:
    note = "early stopping and thresholds used these rows; scores on new rows may be a little lower"
    assert f"\n{note}\n" in succeed("evaluate", fitted, "--split", "valid")
    found = json.loads(succeed("evaluate", fitted, "--split", "valid", "--json"))
    assert (found["rows"], found["trained_on"], found["note"]) == (20, False, note)
    assert "these rows" not in succeed("evaluate", fitted)
    succeed("report", fitted, "--split", "valid", "--out", fitted / "valid.html", "--quiet")
    assert f"survey.csv (valid rows) ({note}): 20 rows" in (fitted / "valid.html").read_text()
    assert "or of a table with --partition" in " ".join(succeed("evaluate", "--help").split())


def test_doctor_suggests_a_column_of_parts(table: Path, tmp_path: Path) -> None:
    told = "column 'split' says which rows are for training and testing; --partition split divides them"
    plain = ("doctor", table, "--labels", "taxa", "--id", "image", "--no-time")
    assert told in run(*plain).stdout
    for options in (("--partition", "split"), ("--ignore", "split")):
        assert "divides them" not in run(*plain, *options).stdout
    frame = pl.read_csv(table)
    for name, values in (("few", ["train"] * 300), ("other", ["train", "test", "sand"] * 100)):
        frame.with_columns(split=pl.Series(values)).write_csv(tmp_path / f"{name}.csv")
        assert "divides them" not in run("doctor", tmp_path / f"{name}.csv", *plain[2:]).stdout
