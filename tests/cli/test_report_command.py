"""`rarenode report` on run folders, on records, and on both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from numpy.typing import NDArray

import rarenode
from rarenode.config import Settings
from rarenode.data.catalogue import CatalogueEntry
from rarenode.data.sources import load_dataset
from rarenode.errors import ArgumentError, DataError, FileFormatError, MissingFileError
from rarenode.paper.grid import Cell
from rarenode.paper.record import DatasetNodes, PredictedNodes
from rarenode.paper.store import record_path, write_record
from rarenode.run.evaluation import TRAINED_ON
from rarenode.training import TrainedModel
from tests.commands import CLASSES, fail, run, succeed, write_arff
from tests.paper.small_grid import made_up

RECORDS = Path(__file__).parents[2] / "results"
FIT = ("--engine", "torch", "--quiet", "--no-report", "--preset", "paper", "--epochs", "2")
FOREST = ("--model", "mlp+forest", "--n-trees", "3")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def data(folder: Path) -> Path:
    return write_arff(folder / "small.arff")


@pytest.fixture(scope="module")
def runs(folder: Path, data: Path) -> tuple[Path, Path]:
    """Two runs on a file."""
    settings = folder / "small.toml"
    settings.write_text("hidden_size = 8\nbatch_size = 8\nlearning_rate = 0.01\n")
    for name, more in (("plain", ("--weighting", "none")), ("members", ("--n-members", "3", *FOREST))):
        succeed("fit", data, "--out", folder / name, "--settings", settings, *FIT, *more)
    return folder / "plain", folder / "members"


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Path]:
    """Where to write; a page is always whole."""
    path = tmp_path / "page.html"
    yield path
    assert not path.exists() or path.read_text(encoding="utf-8").endswith("</html>\n")


def nodes_of(page: Path) -> polars.DataFrame:
    return polars.read_csv(page.with_name(f"{page.stem}_files") / "nodes.csv")


def names_in(page: Path) -> list[str]:
    return nodes_of(page)["run"].unique(maintain_order=True).to_list()


def about(page: Path) -> list[str]:
    headline = polars.read_csv(page.with_name(f"{page.stem}_files") / "headline.csv")
    return headline["about"].to_list()


def counts(Y: NDArray[Any], decided: NDArray[np.bool_]) -> list[int]:
    return [*(decided & Y).sum(axis=0).tolist(), *decided.sum(axis=0).tolist()]


def told(page: Path, name: str) -> list[int]:
    table = nodes_of(page).filter(polars.col("run") == name)
    return table["found"].to_list() + table["decided"].to_list()


class TestFolders:
    def test_one_run(self, runs: tuple[Path, Path], data: Path, page: Path) -> None:
        said = succeed("report", runs[1], "--data", data, "--out", page)
        beside = list(page.with_name("page_files").iterdir())
        assert said == f"{page}, and {len(beside)} files in {page.with_name('page_files')}\n"
        assert names_in(page) == [str(runs[1])]
        content, model = rarenode.read_arff(data), TrainedModel.load(runs[1])
        assert told(page, str(runs[1])) == counts(content.Y, model.predict(content.X))
        assert about(page) == [f"{data} ({TRAINED_ON}): 24 rows; thresholds: fixed at 0.5; add ancestors"]

    def test_it_says_so_if_the_model_was_trained_on_the_rows(
        self, runs: tuple[Path, Path], data: Path, tmp_path: Path, page: Path
    ) -> None:
        copy = tmp_path / "copy.arff"
        copy.write_bytes(data.read_bytes())
        succeed("report", *runs, "--data", copy, "--out", page)
        assert about(page) == [f"{copy} ({TRAINED_ON}): 24 rows; thresholds: fixed at 0.5; add ancestors"] * 2
        assert TRAINED_ON in page.read_text(encoding="utf-8")
        other = write_arff(tmp_path / "other.arff", seed=1)
        succeed("report", *runs, "--data", other, "--out", page)
        assert about(page) == [f"{other}: 24 rows; thresholds: fixed at 0.5; add ancestors"] * 2
        assert TRAINED_ON not in page.read_text(encoding="utf-8")

    def test_a_file_without_rows(self, runs: tuple[Path, Path], data: Path, tmp_path: Path, page: Path) -> None:
        path = tmp_path / "empty.arff"
        path.write_text(data.read_text().split("@DATA")[0] + "@DATA\n")
        assert "no row has labels" in fail(DataError, "report", runs[0], "--data", path, "--out", page)

    def test_two_runs_are_compared(self, runs: tuple[Path, Path], data: Path, page: Path) -> None:
        succeed("report", *runs, "--data", data, "--out", page, "--name", "one", "--name", "<two>")
        assert names_in(page) == ["one", "<two>"]
        content = rarenode.read_arff(data)
        for name, folder in zip(("one", "<two>"), runs, strict=True):
            assert told(page, name) == counts(content.Y, TrainedModel.load(folder).predict(content.X))
        assert (page.with_name("page_files") / "node_scores.svg").exists()
        assert "Compared with <bdi>one</bdi>, the first run" in page.read_text(encoding="utf-8")

    def test_other_thresholds(self, runs: tuple[Path, Path], data: Path, page: Path) -> None:
        content, model = rarenode.read_arff(data), TrainedModel.load(runs[1])
        for thresholds in ("fixed:0.1", "expected_f2"):
            succeed("report", runs[1], "--data", data, "--out", page, "--thresholds", thresholds, "--name", "x")
            assert told(page, "x") == counts(content.Y, model.predict_together(content.X, thresholds))
            assert f"thresholds: {thresholds.replace(':', ' at ')}" in about(page)[0]
        assert "tuned" in fail(ArgumentError, "report", runs[1], "--data", data, "--out", page, "--thresholds", "tuned")

    def test_quietly(self, runs: tuple[Path, Path], data: Path, page: Path) -> None:
        assert run("report", runs[0], "--data", data, "--out", page, "--quiet").output == ""
        assert page.exists()

    def test_where_the_page_is_unless_told_otherwise(
        self, runs: tuple[Path, Path], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path)
        succeed("report", runs[0], "--data", data)
        assert {path.name for path in tmp_path.iterdir()} == {"report.html", "report_files"}

    def test_a_run_on_all_rows_of_a_file_needs_others(self, runs: tuple[Path, Path], page: Path) -> None:
        assert "all rows of" in fail(ArgumentError, "report", runs[0], "--out", page)
        assert not page.exists()

    def test_a_file_has_no_split(self, runs: tuple[Path, Path], data: Path, page: Path) -> None:
        message = fail(ArgumentError, "report", runs[0], "--data", data, "--split", "test", "--out", page)
        assert "not divided into parts" in message

    def test_rows_that_do_not_fit(self, runs: tuple[Path, Path], tmp_path: Path, page: Path) -> None:
        other = write_arff(tmp_path / "other.arff", features=("a", "b", "d"))
        assert "'c'" in fail(DataError, "report", runs[0], "--data", other, "--out", page)

    def test_rows_must_fit_every_run(self, runs: tuple[Path, Path], tmp_path: Path, page: Path) -> None:
        other = write_arff(tmp_path / "other.arff", classes=f"{CLASSES},3")
        succeed("fit", other, "--out", tmp_path / "other", *FIT)
        message = fail(DataError, "report", tmp_path / "other", runs[0], "--data", other, "--out", page)
        assert "nodes that the model does not have: '3'" in message
        assert not page.exists()

    @pytest.mark.parametrize("names", [("one",), ("one", "two", "three")])
    def test_a_name_for_each_or_none(
        self, runs: tuple[Path, Path], data: Path, page: Path, names: tuple[str, ...]
    ) -> None:
        options = [word for name in names for word in ("--name", name)]
        message = fail(ArgumentError, "report", *runs, "--data", data, "--out", page, *options)
        assert f"there are 2 runs and {len(names)} names" in message

    @pytest.mark.parametrize("name", ["", "  ", "\t"])
    def test_a_name_is_not_empty(self, tmp_path: Path, page: Path, name: str) -> None:
        """Nothing is asked of any model: there is none."""
        message = fail(ArgumentError, "report", tmp_path, "--out", page, "--name", name)
        assert "give each run a name" in message

    def test_more_runs_than_a_chart_can_show(self, tmp_path: Path, page: Path) -> None:
        folders = [tmp_path / str(number) for number in range(9)]
        for folder in folders:
            folder.mkdir()
        assert fail(ArgumentError, "report", *folders, "--out", page) == (
            "these are 9 runs; a report is about at most 8"
        )
        assert "model.json is missing" in fail(MissingFileError, "report", *folders[:8], "--out", page)

    def test_the_same_run_twice(self, runs: tuple[Path, Path], data: Path, page: Path) -> None:
        message = fail(ArgumentError, "report", runs[0], runs[0], "--data", data, "--out", page)
        assert message.startswith(f"two runs are named {str(runs[0])!r}; ")
        succeed("report", runs[0], runs[0], "--data", data, "--out", page, "--name", "a", "--name", "b")
        assert names_in(page) == ["a", "b"]

    def test_names_that_are_equal_are_refused_before_a_model_is_asked(self, tmp_path: Path, page: Path) -> None:
        (tmp_path / "empty").mkdir()
        names = "--name", "a", "--name", "a"
        message = fail(ArgumentError, "report", tmp_path, tmp_path / "empty", "--out", page, *names)
        assert message.startswith("two runs are named 'a'; ")

    def test_it_says_which_run_it_looks_at(self, runs: tuple[Path, Path], data: Path, page: Path) -> None:
        told = run("report", *runs, "--data", data, "--out", page)
        assert told.stderr.splitlines() == [f"[1/2] {runs[0]}", f"[2/2] {runs[1]}"]
        assert run("report", *runs, "--data", data, "--out", page, "--quiet").stderr == ""

    def test_what_is_not_there_or_is_no_run(
        self, runs: tuple[Path, Path], data: Path, tmp_path: Path, page: Path
    ) -> None:
        missing = tmp_path / "missing"
        message = fail(MissingFileError, "report", runs[0], missing, "--data", data, "--out", page)
        assert f"{missing} is neither a folder of `rarenode fit` nor a record" in message
        assert "model.json is missing" in fail(MissingFileError, "report", tmp_path, "--data", data, "--out", page)
        assert "not a record" in fail(FileFormatError, "report", data, "--out", page)
        assert run("report", "--out", page).exit_code == 2

    def test_names_of_pages_are_looked_at_first(self, tmp_path: Path) -> None:
        message = fail(ArgumentError, "report", tmp_path / "missing", "--out", tmp_path / "page.pdf")
        assert "must end in .html" in message

    def test_a_place_that_cannot_be_written(self, runs: tuple[Path, Path], data: Path, tmp_path: Path) -> None:
        message = fail(ArgumentError, "report", runs[0], "--data", data, "--out", data / "page.html")
        assert "cannot be written" in message


class TestCatalogue:
    @pytest.fixture
    def trained(self, catalogued: CatalogueEntry, tmp_path: Path) -> Path:
        succeed("fit", "tiny", "--out", tmp_path / "run", *FIT)
        return tmp_path / "run"

    @pytest.mark.parametrize("split", [None, "test", "valid"])
    def test_rows_are_those_of_the_dataset(self, trained: Path, page: Path, split: str | None) -> None:
        succeed("report", trained, "--out", page, "--name", "x", *(() if split is None else ("--split", split)))
        rows = getattr(load_dataset("tiny"), split or "test")
        assert told(page, "x") == counts(rows.Y, TrainedModel.load(trained).predict(rows.X))
        warning = f" ({TRAINED_ON})" if split == "valid" else ""
        assert about(page)[0].startswith(f"tiny, {split or 'test'} rows{warning}: {len(rows)} rows; ")

    def test_a_file_is_raw(self, trained: Path, page: Path, tmp_path: Path) -> None:
        path = tmp_path / "tiny.test.arff"
        succeed("report", trained, "--data", path, "--out", page, "--name", "x")
        content = rarenode.read_arff(path)
        assert told(page, "x") == counts(content.Y, TrainedModel.load(trained).predict(content.X))

    def test_the_folder_of_the_data(self, trained: Path, page: Path, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        message = fail(MissingFileError, "report", trained, "--out", page, "--root", tmp_path / "empty")
        assert "tiny.train.arff is not there" in message


class TestRecords:
    def write(self, entry: CatalogueEntry, folder: Path, **changes: Any) -> Path:
        cell = Cell("tiny", Settings.preset("paper", **changes))
        dataset = load_dataset("tiny")
        test = dataset.test.Y.sum(axis=0)
        found = (test[:3] - cell.settings.seed).tolist()
        record, _ = made_up(cell, nodes=PredictedNodes(column=(0, 1, 2), predicted=(16, 16, 16), true_positives=found))
        nodes = DatasetNodes(
            hierarchy=dataset.hierarchy.fingerprint,
            names=dataset.hierarchy.nodes,
            scored=tuple(dataset.scored.tolist()),
            training_rows=(9,) * 6,
            test_rows=tuple(test.tolist()),
        )
        write_record(folder, record, nodes)
        return record_path(folder, cell)

    @pytest.fixture
    def records(self, catalogued: CatalogueEntry, tmp_path: Path) -> list[Path]:
        """Two seeds of one training, between them one of another."""
        ways: list[dict[str, Any]] = [{"seed": 0}, {"seed": 0, "w0": 0.5}, {"seed": 1}]
        return [self.write(catalogued, tmp_path / "results", **way) for way in ways]

    def test_seeds_of_one_training_are_one_run(self, records: list[Path], page: Path) -> None:
        succeed("report", *records, "--out", page)
        assert names_in(page) == ["as in the paper", "w0=0.5"]
        assert [text.rsplit("; ", 1)[1] for text in about(page)] == ["seeds 0, 1", "seed 0"]
        test = load_dataset("tiny").test.Y.sum(axis=0)[:3]
        for name in ("as in the paper", "w0=0.5"):  # the higher of two counts
            assert told(page, name) == [*test, 0, 0, 0, 16, 16, 16, 0, 0, 0]
        for name, found in (("as in the paper", (2 * test - 1) / 2), ("w0=0.5", test)):
            of_run = nodes_of(page).filter(polars.col("run") == name)
            assert of_run["recall"].to_list()[:3] == pytest.approx((found / test).tolist())
            assert of_run["precision"].to_list()[:3] == pytest.approx((found / 16).tolist())

    def test_many_seeds_are_not_many_runs(self, catalogued: CatalogueEntry, tmp_path: Path, page: Path) -> None:
        """With each seed one row fewer is found."""
        test = load_dataset("tiny").test.Y.sum(axis=0)[:3]
        ways = [{"seed": seed, "w0": w0} for w0 in (0.25, 0.5) for seed in range(5)]
        records = [self.write(catalogued, tmp_path / "results", **way) for way in ways]
        succeed("report", *records, "--out", page)
        assert about(page) == ["tiny, test rows; nodes decided at 0.5; seeds 0, 1, 2, 3, 4"] * 2
        assert told(page, "w0=0.5")[:3] == (test - 2).tolist()
        trainings = [self.write(catalogued, tmp_path / "results", seed=0, w0=n / 10) for n in range(1, 10)]
        assert "these are 9 runs" in fail(ArgumentError, "report", *trainings, "--out", page)

    def test_the_same_training_twice(self, records: list[Path], page: Path) -> None:
        copy = records[2].with_name("copy.json")
        copy.write_bytes(records[2].read_bytes())
        message = fail(ArgumentError, "report", *records, copy, "--out", page)
        assert message == f"{copy} and {records[2]} are of the same training; give one of them"
        assert not page.exists()

    def test_names_are_for_trainings_and_not_for_files(self, records: list[Path], page: Path) -> None:
        succeed("report", *records, "--out", page, "--name", "a", "--name", "b")
        assert names_in(page) == ["a", "b"]
        message = fail(ArgumentError, "report", *records, "--out", page, "--name", "a", "--name", "b", "--name", "c")
        assert "there are 2 runs and 3 names" in message

    @pytest.mark.parametrize("option", [("--data", "tiny"), ("--split", "test"), ("--thresholds", "fixed:0.3")])
    def test_what_they_are_of_cannot_be_chosen(
        self, records: list[Path], page: Path, option: tuple[str, str]
    ) -> None:
        message = fail(ArgumentError, "report", *records, "--out", page, *option)
        assert "records have scores of the test rows at 0.5" in message

    def test_with_folders_the_order_is_that_of_the_command_line(
        self, records: list[Path], tmp_path: Path, page: Path
    ) -> None:
        """The first is what others are compared with, whatever it is; a training stands where its first record does."""
        run = tmp_path / "run"
        succeed("fit", "tiny", "--out", run, *FIT)
        succeed("report", records[0], run, records[1], records[2], "--out", page)
        assert names_in(page) == ["as in the paper", str(run), "w0=0.5"]
        data, model = load_dataset("tiny"), TrainedModel.load(run)
        expected = counts(data.test.Y, model.predict(data.test.X))
        assert told(page, str(run)) == expected
        names = [word for name in "abc" for word in ("--name", name)]
        succeed("report", records[0], run, records[1], "--out", page, *names)
        assert names_in(page) == ["a", "b", "c"]
        assert told(page, "b") == expected
        succeed("report", run, *records, "--out", page)
        assert names_in(page) == [str(run), "as in the paper", "w0=0.5"]

    def test_the_dataset_must_be_there(self, records: list[Path], page: Path, tmp_path: Path) -> None:
        (tmp_path / "empty").mkdir()
        message = fail(MissingFileError, "report", records[0], "--out", page, "--root", tmp_path / "empty")
        assert "rarenode data fetch tiny" in message

    def test_the_nodes_beside_records_are_not_a_record(self, records: list[Path], page: Path) -> None:
        succeed("report", *sorted(records[0].parent.glob("*.json")), "--out", page)
        assert sorted(names_in(page)) == ["as in the paper", "w0=0.5"]
        assert "none of the files is a record" in fail(
            ArgumentError, "report", records[0].with_name("nodes.json"), "--out", page
        )

    @pytest.mark.skipif(not RECORDS.is_dir(), reason="the records of the paper's trainings are in the repository only")
    def test_a_record_of_decisions_has_no_nodes(self, page: Path) -> None:
        path = next(iter(sorted(RECORDS.glob("cellcycle_FUN/decisions/*.json"))))
        message = fail(ArgumentError, "report", path, "--out", page)
        assert "has scores of decisions, and none of single nodes" in message
        assert "rarenode fit cellcycle_FUN --out RUN" in message

    def test_damaged_ones(self, records: list[Path], page: Path) -> None:
        records[0].write_text("{")
        assert str(records[0]) in fail(FileFormatError, "report", *records, "--out", page)
        records[1].with_name("nodes.json").unlink()
        assert "nodes.json" in fail(FileFormatError, "report", records[1], "--out", page)
        assert not page.exists()


def test_help_says_what_a_run_is_and_shows_examples() -> None:
    told = succeed("report", "--help")
    for words in ("RUN...", "Folders of `rarenode fit`", "rarenode report runs/best --out best.html", "seed=?-*.json"):
        assert words in told
