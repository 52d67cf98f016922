"""Commands on people's own files: samples, fit, predict, evaluate, doctor and hierarchy."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from sklearn.metrics import average_precision_score
from typer.testing import Result

import rarenode.training.estimate
from rarenode import Dataset, RareNodeClassifier, Run
from rarenode.errors import ArgumentError, DataError, FileFormatError, Interrupted, MissingFileError
from rarenode.hierarchy import read_hierarchy
from rarenode.metrics import summary
from rarenode.run.evaluation import TRAINED_ON
from tests.commands import fail, on_training_rows, run, succeed

SMALL = ("--n-trees", "5", "--epochs", "2", "--hidden-size", "16", "--quiet")
TINY = (*SMALL, "--holdout", "0.3")
SURVEY = ("--labels", "taxa", "--id", "image")


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("survey")
    shown = succeed("data", "sample", "survey", "--out", folder)
    assert shown.split() == [str(folder / name) for name in ("train.csv", "test.csv", "new.csv", "taxonomy.csv")]
    return folder


@pytest.fixture(scope="module")
def trained(survey: Path) -> Path:
    hierarchy = ("--hierarchy", survey / "taxonomy.csv")
    succeed("fit", survey / "train.csv", *SURVEY, *hierarchy, "--out", survey / "run", *TINY)
    return survey / "run"


# --- fit, predict, evaluate ------------------------------------------------------------------------------------------


class TestSurvey:
    def test_the_run(self, trained: Path) -> None:
        assert (trained / "report.html").exists()
        model = Run(trained).model
        assert model.feature_names is not None
        assert {"depth_m", "substrate"} < set(model.feature_names)
        assert not {"image", "taxa"} & set(model.feature_names)

    def test_evaluate(self, survey: Path, trained: Path) -> None:
        found = json.loads(succeed("evaluate", trained, survey / "test.csv", "--json"))
        assert found["rows"] == 500
        assert found["trained_on"] is False
        assert found["f1"] == Run(trained).evaluate(survey / "test.csv").scores.all.f1
        with on_training_rows():  # which a reader of the JSON might overlook
            assert json.loads(succeed("evaluate", trained, survey / "train.csv", "--json"))["trained_on"] is True
        assert f"\n{TRAINED_ON}\n" in succeed("evaluate", trained, survey / "train.csv")

    def test_rows_that_are_known_to_have_no_label(self, survey: Path, trained: Path, tmp_path: Path) -> None:
        """They count as rows, but not in F-max and S-min."""
        frame = pl.read_csv(survey / "test.csv")[:20]
        data = Dataset.read(frame, labels="taxa", id="image", hierarchy=Run(trained).model.hierarchy)
        nodes = data.hierarchy.nodes
        Y = data.Y.astype(np.int8) * (np.arange(20) >= 3)[:, None]
        columns = [pl.Series(node, Y[:, place]) for place, node in enumerate(nodes)]
        frame.drop("taxa").with_columns(columns).write_csv(tmp_path / "t.csv")
        shown = succeed("evaluate", trained, tmp_path / "t.csv", "--labels", ",".join(nodes))
        assert ", 20 rows, thresholds" in shown
        assert shown.splitlines()[-3].split()[:2] == ["all", "17"]
        assert shown.splitlines()[-1] == "rows: with a label in the aspect, of 20; F-max and S-min are over these alone"

    def test_what_counts_in_an_evaluation(self, survey: Path, trained: Path, tmp_path: Path) -> None:
        frame = pl.read_csv(survey / "test.csv")[:20]
        frame.with_columns(taxa=pl.when(pl.int_range(pl.len()) > 2).then(pl.col("taxa"))).write_csv(tmp_path / "t.csv")
        model = Run(trained).model
        data = Dataset.read(tmp_path / "t.csv", labels="taxa", id="image", hierarchy=model.hierarchy)
        nodes = int((data.Y.any(axis=0) & model.scored).sum())
        shown = " ".join(succeed("evaluate", trained, tmp_path / "t.csv").split())
        assert f"{nodes} of {model.scored.sum()} scored nodes have rows here; the others count as 0" in shown
        assert "; 3 rows without labels are left out" in shown
        found = json.loads(succeed("evaluate", trained, tmp_path / "t.csv", "--json"))
        assert (found["rows"], found["rows_without_labels"], found["nodes_with_rows"]) == (17, 3, nodes)
        assert "rows: with a label in the aspect" not in shown
        labelled = data.with_labels_only()
        mask = labelled.Y.any(axis=0) & model.scored
        expected = summary(labelled.Y, model.predict(labelled.X), scored=mask, known=labelled.known)
        over = found["over_nodes_with_rows"]
        assert over == asdict(expected) | {"ap": over["ap"]}
        assert over["recall"] * nodes == pytest.approx(found["recall"] * found["nodes"])
        probs = model.predict_proba(labelled.X)
        each = [average_precision_score(labelled.Y[:, node], probs[:, node]) for node in np.flatnonzero(mask)]
        assert found["macro_ap"] == pytest.approx(np.mean(each))
        assert f"(macro AP) is {100 * found['macro_ap']:.2f}" in shown
        means = " ".join(f"{100 * over[name]:.2f}" for name in ("f1", "precision", "recall"))
        assert f" with rows {nodes} {means} " in shown

    @pytest.mark.parametrize("layout", ["long", "wide", "sets", "cafa"])
    def test_predict(self, survey: Path, trained: Path, tmp_path: Path, layout: str) -> None:
        out = tmp_path / "p.tsv"
        options = ("--format", layout, "--decided-only", "--min-probability", "0.3")
        shown = succeed("predict", trained, survey / "new.csv", "--out", out, *options)
        found = Run(trained).predict(survey / "new.csv")
        frame = found.to_frame(layout=layout, decided_only=True, min_probability=0.3)
        assert f"{out}: 200 rows x {len(found.nodes)} nodes, {len(frame):,} lines\n" == shown
        lines = out.read_text().splitlines()
        assert len(lines) == len(frame) + (layout != "cafa")
        assert lines[-1].split("\t")[0] == frame[-1, 0]

    def test_any_separator(self, survey: Path, trained: Path, tmp_path: Path) -> None:
        for name, options in (("a.csv", ()), ("b.csv", ("--separator", " | "))):
            succeed("predict", trained, survey / "new.csv", "--out", tmp_path / name, "--format", "sets", *options)
        cells = [pl.read_csv(tmp_path / name)["labels"].fill_null("").to_list() for name in ("a.csv", "b.csv")]
        assert [cell.replace(";", " | ") for cell in cells[0]] == cells[1] != cells[0]

    def test_back_off(self, survey: Path, trained: Path, tmp_path: Path) -> None:
        everything = Run(trained).predict(survey / "new.csv")
        limit = round(float(np.median(everything.probs[everything.decided])), 2)
        options = ("--format", "sets", "--min-confidence", str(limit))
        succeed("predict", trained, survey / "new.csv", "--out", tmp_path / "p.csv", *options)
        found = pl.read_csv(tmp_path / "p.csv")
        chances = [float(each) for cell in found["probabilities"] for each in str(cell or "").split(";") if each]
        assert chances
        assert min(chances) >= limit > everything.probs[everything.decided].min()

    def test_several_files_are_one_table(self, survey: Path, trained: Path, tmp_path: Path) -> None:
        frame = pl.read_csv(survey / "new.csv")
        frame[:150].write_csv(tmp_path / "1.csv")
        frame[150:].write_parquet(tmp_path / "2.parquet")
        succeed("predict", trained, tmp_path / "1.csv", tmp_path / "2.parquet", "--out", tmp_path / "parts.csv")
        succeed("predict", trained, survey / "new.csv", "--out", tmp_path / "whole.csv")
        assert (tmp_path / "parts.csv").read_bytes() == (tmp_path / "whole.csv").read_bytes()

    def test_what_is_refused(self, survey: Path, trained: Path, tmp_path: Path) -> None:
        train, out = survey / "train.csv", tmp_path / "run"
        assert "say where the labels of" in fail(ArgumentError, "fit", train, "--out", out)
        assert "has no column 'taxon'" in fail(ArgumentError, "fit", train, "--labels", "taxon", "--out", out)
        assert "id or free text" in fail(DataError, "fit", train, "--labels", "taxa", "--out", out)
        text = survey / "taxonomy.csv"
        assert "no column is left" in fail(ArgumentError, "fit", text, "--labels", "taxon", "--out", out)
        told = fail(ArgumentError, "evaluate", trained, survey / "new.csv")
        assert "has no column 'taxa'" in told
        assert not out.exists()


def test_levels_and_what_is_below(survey: Path, tmp_path: Path) -> None:
    frame = pl.read_csv(survey / "train.csv")[:300]
    first = [cell.split("; ")[0].split(" > ") for cell in frame["taxa"].to_list()]
    levels = [pl.Series(f"level_{d}", [path[d] if d < len(path) else None for path in first]) for d in range(6)]
    frame.drop("taxa", "substrate").with_columns(levels).write_csv(tmp_path / "levels.csv")
    options = ("--labels", "level_*", "--id", "image", "--unknown", "below", "--no-report")
    succeed("fit", tmp_path / "levels.csv", *options, "--out", tmp_path / "run", *TINY)
    expected = {" > ".join(path[: d + 1]) for path in first for d in range(len(path))}
    assert set(Run(tmp_path / "run").model.hierarchy.nodes) == expected


def test_genes(tmp_path: Path) -> None:
    folder = tmp_path / "genes"
    succeed("data", "sample", "genes", "--out", folder, "--seed", "2")
    options = ("--id", "gene", "--labels", folder / "annotations.gaf", "--hierarchy", folder / "functions.obo")
    more = ("--exclude-evidence", "IEA,ISS", "--namespaces", "biological_process", "--no-report")
    with pytest.warns(RuntimeWarning, match="have no labels and are not used for training"):
        succeed("fit", folder / "genes.csv", *options, *more, "--out", tmp_path / "run", *TINY)
    model = Run(tmp_path / "run").model
    assert model.hierarchy == read_hierarchy(folder / "functions.obo", namespaces=["biological_process"])
    out = tmp_path / "submission.tsv"
    new = folder / "new_genes.csv"
    succeed("predict", tmp_path / "run", new, "--out", out, "--format", "cafa", "--most-terms", "3")
    lines = [line.split("\t") for line in out.read_text().splitlines()]
    ids = pl.read_csv(new)["gene"].to_list()
    assert list(dict.fromkeys(line[0] for line in lines)) == ids
    assert len(lines) <= 3 * len(ids)
    assert all(line[1] in model.hierarchy and 0 < float(line[2]) <= 1 and len(line[2]) == 5 for line in lines)
    evaluated = succeed("evaluate", tmp_path / "run", folder / "genes.csv", "--labels", folder / "annotations.gaf")
    assert "rows" in evaluated


def test_topics_are_text_and_say_what_to_do(tmp_path: Path) -> None:
    succeed("data", "sample", "topics", "--out", tmp_path)
    options = ("--labels", "topics", "--id", "document", "--out", tmp_path / "run")
    told = fail(DataError, "fit", tmp_path / "train.csv", *options)
    assert "column 'text': " in told
    assert "TfidfVectorizer" in told


def test_a_sample_that_is_not_there(tmp_path: Path) -> None:
    assert run("data", "sample", "fish", "--out", tmp_path).exit_code == 2


# --- doctor ----------------------------------------------------------------------------------------------------------


class TestDoctorOnData:
    def write(self, folder: Path, rows: int = 120, **columns: object) -> Path:
        rng = np.random.default_rng(0)
        leaves = ["Biota > Corals", "Biota > Sponges", "Rock"]
        frame = pl.DataFrame(
            {
                "image": [f"i{row}" for row in range(rows)],
                "depth": rng.normal(size=rows),
                "taxa": [leaves[row % 3] for row in range(rows)],
            }
        )
        path = folder / "survey.csv"
        frame.with_columns(**columns).write_csv(path)  # type: ignore[arg-type]
        return path

    def doctor(self, *arguments: str | Path) -> Result:
        return run("doctor", *arguments, *SURVEY, "--no-time")

    def test_nothing_to_worry_about(self, tmp_path: Path) -> None:
        result = self.doctor(self.write(tmp_path))
        assert result.exit_code == 0
        assert "Nothing to worry about." in result.stdout
        assert "120 rows, 1 feature, 4 nodes, 4 of them with rows" in result.stdout
        assert "A fit with the default settings: 4 trainings, about" in result.stdout

    def test_findings_are_there_before_a_fit_is_timed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def interrupt(*_: object, **__: object) -> None:
            raise Interrupted("stopped in epoch 1; --resume continues")

        monkeypatch.setattr(rarenode.training.estimate, "estimate_fit", interrupt)
        result = run("doctor", self.write(tmp_path), *SURVEY)
        assert "Nothing to worry about." in result.stdout
        assert "timing a few steps of a fit (--no-time leaves that out)" in result.stderr
        assert isinstance(result.exception, Interrupted)
        assert str(result.exception) == "stopped while a fit was timed"

    def test_notes_are_nothing_to_worry_about(self, tmp_path: Path) -> None:
        (tmp_path / "taxa.csv").write_text("taxon\nBiota > Corals\nBiota > Sponges\nRock\nMud\n")
        result = self.doctor(self.write(tmp_path), "--hierarchy", tmp_path / "taxa.csv")
        assert result.exit_code == 0
        assert "note  nodes: 1 node of 5 has no row (Mud); a model cannot learn it" in result.stdout

    def test_warnings(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, zone=pl.lit(5))
        result = self.doctor(path)
        assert result.exit_code == 3
        assert "warning  features: 1 feature is constant (zone); it says nothing; leave it out" in result.stdout
        found = json.loads(self.doctor(path, "--json").stdout)
        assert [(each["severity"], each["examples"]) for each in found["findings"]] == [("warning", ["zone"])]
        assert found["fit"].startswith("4 trainings")
        assert [level["nodes"] for level in found["levels"]] == [2, 2]

    def test_rows_in_two_files(self, tmp_path: Path) -> None:
        train = self.write(tmp_path)
        pl.read_csv(train)[10:12].write_csv(tmp_path / "test.csv")
        result = self.doctor(train, tmp_path / "test.csv")
        assert result.exit_code == 3
        assert "2 rows of" in result.stdout
        assert "have the same features as a row of" in result.stdout
        assert "(i10 = i10, i11 = i11)" in result.stdout

    @pytest.mark.parametrize("as_json", [(), ("--json",)])
    def test_errors(self, tmp_path: Path, as_json: tuple[str, ...]) -> None:
        (tmp_path / "taxa.csv").write_text("taxon\nBiota > Coral\nBiota > Sponges\nRocks\n")
        path, hierarchy = self.write(tmp_path), ("--hierarchy", tmp_path / "taxa.csv")
        told = fail(DataError, "fit", path, *SURVEY, *hierarchy, "--out", tmp_path / "run")
        assert told.endswith("(1 more label is not in it either)")
        result = self.doctor(path, *hierarchy, *as_json)
        assert result.exit_code == 1
        assert "line 2: column 'taxa': the label 'Biota > Corals' is not in the hierarchy" in result.stdout
        assert "did you mean 'Biota > Coral'?" in result.stdout
        assert "did you mean 'Rocks'?" in result.stdout  # every label, not only the first
        if as_json:
            found = json.loads(result.stdout)
            assert [each["severity"] for each in found["findings"]] == ["error", "error"]
            assert found["fit"] is None

    def test_contradictions(self, tmp_path: Path) -> None:
        (tmp_path / "t.csv").write_text("x,Biota,Corals\n1,0,1\n")
        (tmp_path / "taxa.csv").write_text("taxon\nBiota > Corals\n")
        result = run("doctor", tmp_path / "t.csv", "--labels", "Biota,Corals", "--hierarchy", tmp_path / "taxa.csv")
        assert result.exit_code == 1
        assert "line 2: column 'Biota': 'Biota' is said to be absent, but" in result.stdout
        (tmp_path / "t.csv").write_text("x,Biota,Corals\n1,0,1\n2,1,1\n3,0,1\n")
        result = run("doctor", tmp_path / "t.csv", "--labels", "Biota,Corals", "--hierarchy", tmp_path / "taxa.csv")
        assert result.stdout.count("is said to be absent") == 2
        assert "line 4: column 'Biota'" in result.stdout

    def test_the_sample(self, survey: Path) -> None:
        options = ("--hierarchy", survey / "taxonomy.csv", "--json")
        result = self.doctor(survey / "train.csv", survey / "test.csv", *options)
        assert result.exit_code in (0, 3)
        assert json.loads(result.stdout)["rows"] == 1600

    def test_how_long_a_fit_takes(self, tmp_path: Path) -> None:
        result = run("doctor", self.write(tmp_path, 60), *SURVEY, "--json")
        assert "at most about" in json.loads(result.stdout)["fit"]

    def test_files_that_are_none(self, tmp_path: Path) -> None:
        for path, told in ((tmp_path / "no.csv", "there is no such file"), (tmp_path, "it is a folder")):
            result = run("doctor", path, *SURVEY)
            assert result.exit_code == 1
            assert f"{path}: it cannot be used yet" in result.stdout
            assert told in result.stdout

    def test_all_problems_in_one_go(self, tmp_path: Path) -> None:
        """Columns, weights and labels."""
        (tmp_path / "taxa.csv").write_text("taxon\nBiota > Coral\nBiota > Sponges\nRock\n")
        path = self.write(
            tmp_path,
            code=pl.format("c{}", pl.int_range(pl.len())),
            day=pl.lit("2024-05-01"),
            effort=pl.lit(-1),
        )
        options = ("--hierarchy", tmp_path / "taxa.csv", "--weight", "effort")
        result = self.doctor(path, *options)
        assert result.exit_code == 1
        assert f"{path}: 120 rows, which cannot be used yet" in result.stdout
        found = json.loads(self.doctor(path, *options, "--json").stdout)
        assert found["rows"] == 120
        told = [each["text"] for each in found["findings"]]
        columns = ["column 'code' has 120", "column 'day' contains dates", "column 'effort' must"]
        expected = [*columns, "did you mean 'Biota > Coral'"]
        assert len(told) == len(expected)
        assert all(part in text for part, text in zip(expected, told, strict=True)), told
        error = fail(DataError, "fit", path, *SURVEY, *options, "--out", tmp_path / "run")
        assert "column 'code' has 120" in error
        assert error.endswith("(3 more problems; `rarenode doctor` lists them all)")

    def test_labels_in_a_file_of_their_own(self, tmp_path: Path) -> None:
        train = self.write(tmp_path)
        frame = pl.read_csv(train)
        frame.select("image", "taxa").write_csv(tmp_path / "labels.csv")
        frame[:80].drop("taxa").write_csv(tmp_path / "a.csv")
        frame[79:].drop("taxa").write_csv(tmp_path / "b.csv")
        options = ("--labels", tmp_path / "labels.csv", "--id", "image")
        result = run("doctor", tmp_path / "a.csv", tmp_path / "b.csv", *options, "--no-time")
        assert "1 row of" in result.stdout
        assert "has the same features as a row of" in result.stdout
        assert result.exit_code == 3
        how = (*options, "--out", tmp_path / "run", "--no-report", *SMALL)
        succeed("fit", tmp_path / "a.csv", tmp_path / "b.csv", *how)

    @pytest.mark.parametrize(
        ("arguments", "told"),
        [
            (("no.csv", "--labels", "taxa"), "there is no such file"),
            (("survey.csv", "--labels", "taxon", "--id", "image"), "has no column 'taxon'"),
            (("survey.csv", "--labels", "no.csv", "--id", "image"), "no.csv: no such file"),
            (("survey.csv", *SURVEY, "--hierarchy", "no.csv"), "no.csv"),
            (("survey.csv", "ragged.csv", *SURVEY), "ragged.csv, line 2"),
        ],
    )
    def test_json_of_errors(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], told: str
    ) -> None:
        monkeypatch.chdir(tmp_path)
        self.write(tmp_path)
        Path("ragged.csv").write_text("image,depth,taxa\na,1,Rock,2\n")
        result = run("doctor", *arguments, "--no-time", "--json")
        assert result.exit_code == run("doctor", *arguments, "--no-time").exit_code == 1
        first = json.loads(result.stdout)["findings"][0]
        assert first["severity"] == "error"
        assert told in first["text"]

    def test_a_column_that_is_not_there(self, tmp_path: Path) -> None:
        columns: dict[str, Any] = {f"x{column}": pl.lit(1) for column in range(6)}
        path = self.write(tmp_path, **columns)
        assert self.doctor(path, "--weight", "effort").stdout.count("and 1 more column\n") == 1

    def test_what_fit_refuses(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, effort=pl.lit(0.0))
        told = f"{path}: all weights in column 'effort' are 0"
        result = self.doctor(path, "--weight", "effort")
        assert result.exit_code == 1
        assert told in result.stdout
        assert "A fit with" not in result.stdout
        out = ("--out", tmp_path / "run")
        assert told in fail(DataError, "fit", path, *SURVEY, "--weight", "effort", *out)
        path = self.write(tmp_path, 1)
        assert f"{path}: there is only 1 labelled row" in self.doctor(path).stdout
        assert f"{path}: there is only 1 labelled row" in fail(DataError, "fit", path, *SURVEY, *out)
        path = self.write(tmp_path, size=pl.when(pl.int_range(pl.len()) == 0).then(1e149).otherwise(0.0))
        assert f"{path}: column 'size' has values as large as 1e+149" in self.doctor(path).stdout
        assert f"{path}: row 0, feature 1" in fail(DataError, "fit", path, *SURVEY, *out, "--epochs", "1")


class TestDoctorOnARun:
    def test_labelled_rows(self, survey: Path, trained: Path) -> None:
        found = json.loads(succeed("doctor", trained, survey / "test.csv", "--json", "--most", "4"))
        assert 0 < found["missed"] <= found["judged"]
        assert len(found["nodes"]) == 4
        assert found["rows"] == []
        model, data = Run(trained).model, Dataset.read(
            survey / "test.csv", labels="taxa", id="image", hierarchy=Run(trained).model.hierarchy
        )  # fmt: skip
        decided = model.predict(data.X)
        missed = data.Y.any(axis=0) & ~(data.Y & decided).any(axis=0) & model.scored
        assert found["missed"] == missed.sum()
        assert found["judged"] == (data.Y.any(axis=0) & model.scored).sum()
        assert all(missed[model.hierarchy.index[node["node"]]] and node["why"] for node in found["nodes"])

    def test_rows_without_labels(self, survey: Path, trained: Path) -> None:
        shown = succeed("doctor", trained, survey / "new.csv")
        assert "Rows to annotate next" in shown
        assert "score: how much the labels of a row would tell" in shown
        found = json.loads(succeed("doctor", trained, survey / "new.csv", "--json"))
        assert (found["judged"], found["missed"], len(found["rows"])) == (0, 0, 10)
        ids = set(pl.read_csv(survey / "new.csv")["image"])
        assert {row["name"] for row in found["rows"]} <= ids
        assert all(row["why"].startswith("uncertain about ") for row in found["rows"])

    def test_rows_without_labels_for_a_model_that_was_saved_from_python(self, tmp_path: Path) -> None:
        X, Y = np.random.default_rng(0).normal(size=(40, 2)), np.ones((40, 2), dtype=np.bool_)
        RareNodeClassifier([("a", "b")], model="mlp", n_members=1, hidden_size=4, epochs=1, holdout=0.5).fit(X, Y).save(
            tmp_path / "run"
        )
        pl.DataFrame({"p": [0.1, 0.2], "q": [0.5, 0.6]}).write_csv(tmp_path / "new.csv")
        found = json.loads(succeed("doctor", tmp_path / "run", tmp_path / "new.csv", "--json"))
        assert {row["name"] for row in found["rows"]} <= {"row 0", "row 1"}
        assert found["judged"] == 0

    def test_some_rows_with_labels(self, survey: Path, trained: Path, tmp_path: Path) -> None:
        frame = pl.read_csv(survey / "test.csv")
        half = frame.with_columns(taxa=pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.col("taxa")))
        half.write_csv(tmp_path / "half.csv")
        found = json.loads(succeed("doctor", trained, tmp_path / "half.csv", "--json"))
        assert found["judged"] > 0
        assert {row["name"] for row in found["rows"]} <= set(frame["image"][1::2])
        frame.with_columns(taxa=pl.lit(None, dtype=pl.String)).write_csv(tmp_path / "none.csv")
        assert json.loads(succeed("doctor", trained, tmp_path / "none.csv", "--json"))["judged"] == 0

    def test_without_rows_it_looks_at_those_that_were_held_out(self, survey: Path, trained: Path) -> None:
        found = json.loads(succeed("doctor", trained, "--json"))
        evaluated = Run(trained).evaluate()
        assert found["data"] == f"{survey / 'train.csv'}, held-out rows, {evaluated.rows} rows"
        scores = evaluated.over_nodes_with_rows
        assert (found["judged"], found["missed"]) == (scores.nodes, scores.nodes - scores.nodes_found)
        assert succeed("doctor", trained).startswith(f"{trained} on {found['data']}: ")

    def test_without_held_out_rows_it_says_what_is_known_from_training(self, survey: Path, tmp_path: Path) -> None:
        table, out = tmp_path / "train.csv", tmp_path / "run"
        pl.read_csv(survey / "train.csv").write_csv(table)
        paper = ("--preset", "paper", "--n-members", "1", "--hidden-size", "8", "--epochs", "1", "--quiet")
        succeed("fit", table, *SURVEY, "--hierarchy", survey / "taxonomy.csv", *paper, "--out", out)
        found = json.loads(succeed("doctor", out, "--json"))
        assert (found["judged"], found["data"]) == (0, "")
        assert all(node["training_rows"] < 5 for node in found["nodes"])
        assert "Nodes to annotate next" in succeed("doctor", out)
        assert "Nodes to annotate next" in succeed("doctor", out, survey / "new.csv")
        table.unlink()
        with pytest.warns(RuntimeWarning, match=r"known from training is used: .*train\.csv.* no longer there"):
            assert json.loads(succeed("doctor", out, "--json"))["judged"] == 0

    def test_json_of_errors(self, trained: Path, tmp_path: Path) -> None:
        (tmp_path / "ragged.csv").write_text("image,depth_m\na,1,2\n")
        result = run("doctor", trained, tmp_path / "ragged.csv", "--json")
        assert result.exit_code == 1
        finding = json.loads(result.stdout)["findings"][0]
        assert finding["severity"] == "error"
        assert "ragged.csv, line 2" in finding["text"]
        assert "ragged.csv, line 2" in fail(FileFormatError, "doctor", trained, tmp_path / "ragged.csv")


def test_help() -> None:
    shown = succeed("doctor", "--help")
    assert "3    warnings" in shown
    assert "[default: (is_a)]" in " ".join(shown.split())
    assert "3    doctor has warnings" in succeed("--help")
    shown = " ".join(succeed("fit", "--help").split())
    assert "in the test rows, if DATA has some, as a dataset of the catalogue or a table with --partition" in shown


# --- hierarchy -------------------------------------------------------------------------------------------------------


class TestHierarchy:
    def write(self, folder: Path, content: str, name: str = "h.csv") -> Path:
        (folder / name).write_text(content)
        return folder / name

    def test_show(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, "taxon\nBiota > Corals > Black\nBiota > Sponges\n")
        assert succeed("hierarchy", "show", path) == "Biota\n├── Corals\n│   └── Black\n└── Sponges\n"
        assert succeed("hierarchy", "show", path, "--depth", "1", "--root", "Biota").splitlines() == [
            "Biota", "├── Corals  ... 1 below", "└── Sponges",
        ]  # fmt: skip
        data = self.write(tmp_path, "x,taxa\n1,Black\n2,Biota > Corals\n3,Sponges;Black\n", "t.csv")
        shown = succeed("hierarchy", "show", path, "--data", data, "--labels", "taxa")
        assert shown == "Biota  3\n├── Corals  3\n│   └── Black  2\n└── Sponges  1\n"

    def test_show_an_ontology(self, tmp_path: Path) -> None:
        path = self.write(
            tmp_path,
            "[Term]\nid: a\nname: life\nnamespace: n\n[Term]\nid: b\nname: leg\nnamespace: n\nrelationship: part_of a\n"
            "[Term]\nid: c\nname: rock\nnamespace: m\n",
            "h.obo",
        )
        assert succeed("hierarchy", "show", path) == "a life\nb leg\nc rock\n"
        options = ("--relations", "is_a,part_of", "--namespaces", "n")
        assert succeed("hierarchy", "show", path, *options) == "a life\n└── b leg\n"

    @pytest.mark.parametrize("name", ["h.csv", "h.obo"])
    def test_check(self, tmp_path: Path, name: str) -> None:
        good = {"h.csv": "parent,child\na,b\na,c\n", "h.obo": "[Term]\nid: a\n[Term]\nid: b\nis_a: a\n"}
        bad = {"h.csv": "parent,child\na,b\nb,a\n", "h.obo": "[Term]\nid: a\nis_a: b\n[Term]\nid: b\nis_a: a\n"}
        path = self.write(tmp_path, good[name], name)
        assert "no problems found" in succeed("hierarchy", "check", path)
        found = json.loads(succeed("hierarchy", "check", path, "--json"))
        assert found["problems"] == []
        assert found["hierarchy"]["roots"] == ["a"]
        path = self.write(tmp_path, bad[name], name)
        result = run("hierarchy", "check", path)
        assert result.exit_code == 1
        assert f"{path}: error: line {2 if name == 'h.csv' else 3}: a cycle: " in result.stdout
        found = json.loads(run("hierarchy", "check", path, "--json").stdout)
        assert found["hierarchy"] is None
        assert found["problems"][0]["line"] == (2 if name == "h.csv" else 3)

    def test_convert(self, tmp_path: Path) -> None:
        path = self.write(tmp_path, "taxon\nBiota/Corals/Black\nBiota/Sponges\n")
        expected = read_hierarchy(path)
        for name in ("a.json", "b.tsv", "c.csv", "d.obo"):
            shown = succeed("hierarchy", "convert", path, "--out", tmp_path / name, "--path-separator", "/")
            assert shown == f"{tmp_path / name}: {expected!r}\n"
            assert read_hierarchy(tmp_path / name) == expected
            assert read_hierarchy(tmp_path / name).titles == expected.titles
            path = tmp_path / name

    def test_files_that_are_refused(self, tmp_path: Path) -> None:
        for command in (("show",), ("check",), ("convert", "--out", tmp_path / "x.csv")):
            fail(MissingFileError, "hierarchy", command[0], tmp_path / "no.csv", *command[1:])
            fail(FileFormatError, "hierarchy", command[0], self.write(tmp_path, "a,a\n1,2\n"), *command[1:])
        path = self.write(tmp_path, "taxon\na > b\n")
        assert "must end in" in fail(ArgumentError, "hierarchy", "convert", path, "--out", tmp_path / "x.xlsx")


def test_the_usual_number_of_nodes_is_that_of_all_training_rows(tmp_path: Path) -> None:
    table = tmp_path / "t.csv"
    pl.DataFrame({"x": range(40), "taxa": ["a > b", "c > d", "e > f", "g > h"] * 10}).write_csv(table)
    quick = ("--thresholds", "fixed:0", "--cv", "0", "--patience", "0", "--epochs", "1", "--hidden-size", "8")
    succeed("fit", table, "--labels", "taxa", "--out", tmp_path / "run", "--model", "mlp", "--no-report", *quick)
    said = run("predict", tmp_path / "run", table, "--out", tmp_path / "found.csv")
    assert "8.0 nodes a row are decided, and training rows have about 2.0: rare nodes" in said.stderr
