"""Datasets that a spec describes itself: what it may say of them, and that their content makes the training."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from rarenode.data.preparation import Preparation
from rarenode.errors import DataError, FileFormatError, TrainingError
from rarenode.paper.grid import tasks
from rarenode.paper.measure import load_rows, measure
from rarenode.paper.own_data import read_own_data
from rarenode.paper.report import report_on_records
from rarenode.paper.spec import Spec, load_spec
from rarenode.paper.store import read_nodes, record_path
from rarenode.paper.tables import write_table as table_of
from tests.paper.own_files import DATA, DECIDED, HEAD, LEAVES, PLAIN, load, records, train, write_data, write_table


@pytest.fixture
def folder(tmp_path: Path, one_thread: None) -> Path:
    write_data(tmp_path)
    return tmp_path


def fingerprint(spec: Spec) -> str:
    return tasks(spec)[0].cell.fingerprint


class TestSection:
    def test_paths_begin_in_the_folder_of_the_spec(
        self, folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
        spec = load(folder, HEAD, DATA, PLAIN)
        splits = load_rows(tasks(spec)[0].cell, None)
        assert (len(splits.train), splits.valid, len(splits.test)) == (40, None, 16)
        assert splits.train.ids is not None and splits.train.ids[0] == "0-0"
        assert splits.feature_names == ("a", "b")

    def test_rows_for_validation(self, folder: Path) -> None:
        splits = load_rows(tasks(load(folder, HEAD, DATA, 'valid = "valid.csv"\n', PLAIN))[0].cell, None)
        assert splits.valid is not None and len(splits.valid) == 12

    def test_a_column_of_parts(self, folder: Path) -> None:
        write_table(folder / "all.csv", 40, 3, part=True)
        section = '[data.mine]\ntrain = "all.csv"\nlabels = "taxa"\nid = "name"\npartition = "part"\n'
        splits = load_rows(tasks(load(folder, HEAD, section, PLAIN))[0].cell, None)
        assert splits.valid is not None and (len(splits.train), len(splits.valid), len(splits.test)) == (24, 8, 8)

    def test_files_of_labels_and_of_the_hierarchy(self, folder: Path) -> None:
        (folder / "labels.csv").write_text("id,label\n" + "".join(f"0-{row},b\n1-{row},b\n" for row in range(40)))
        (folder / "tree.csv").write_text("parent,child\na,b\na,c\n")
        for name, seed in (("train", 0), ("test", 1)):
            write_table(folder / f"{name}.csv", 40, seed)
        section = DATA.replace('"taxa"', '"labels.csv"') + 'hierarchy = "tree.csv"\nignore = ["taxa"]\n'
        splits = load_rows(tasks(load(folder, HEAD, section, PLAIN))[0].cell, None)
        assert splits.hierarchy.nodes == ("a", "b", "c")
        assert splits.train.Y.tolist() == splits.test.Y.tolist() == [[True, True, False]] * 40

    def test_beside_a_dataset_of_the_catalogue(self, folder: Path) -> None:
        spec = load(folder, HEAD.replace('["mine"]', '["mine", "spo_FUN"]'), DATA, PLAIN)
        mine, other = (task.cell for task in tasks(spec))
        assert (other.own, other.sources, other.place) == ({}, None, "spo_FUN")
        assert mine.place.startswith("mine-") and mine.own.keys() == {"data"}

    def test_it_is_trained_with_the_hyperparameters_that_all_share(self, folder: Path) -> None:
        (task,) = tasks(load(folder, HEAD.split("settings")[0], DATA, "[[methods]]\nname = 'plain'\n"))
        settings = task.cell.settings
        assert (settings.n_layers, settings.dropout, settings.learning_rate) == (3, 0.7, 1e-4)


class TestErrors:
    @pytest.mark.parametrize(
        ("old", "new", "problem"),
        [
            ("labels =", "lables =", r"spec.toml: \[data.mine\]: unknown key 'lables'; did you mean 'labels'\?"),
            ('train = "train.csv"', "", r"\[data.mine\]: train: Field required"),
            ('test = "test.csv"', "", r"\[data.mine\]: there are no test rows; .* partition"),
            ("train.csv", "trian.csv", r"\[data.mine\]: train: there is no file 'trian.csv' in "),
            ('"taxa"', "3", r"\[data.mine\]: labels: .*got 3"),
            ('id = "name"', 'partition = "part"', r"\[data.mine\]: partition .* leave out one or the other"),
            ('id = "name"', 'images = "photos"', r"\[data.mine\]: images: there is no file 'photos'"),
            ("[data.mine]", '[data."a/b"]', r"\[data.a/b\]: a name consists of"),
            ("[data.mine]", "[data.spo_FUN]", r"\[data.spo_FUN\]: rarenode has a dataset of this name"),
            ("[data.mine]", "[data.reef]", r"\[data.reef\]: rarenode has a dataset of this name"),
            ("[data.mine]", "[data.yours]", r"no dataset is named 'mine'|'mine'"),
        ],
    )
    def test_what_is_wrong_is_said_with_spec_and_section(self, folder: Path, old: str, new: str, problem: str) -> None:
        assert old in DATA
        with pytest.raises(FileFormatError, match=problem) as raised:
            load(folder, HEAD, DATA.replace(old, new), PLAIN)
        assert raised.value.path == folder / "spec.toml" and "\n" not in str(raised.value)

    def test_a_section_that_no_dataset_uses(self, folder: Path) -> None:
        with pytest.raises(FileFormatError, match=r"\[data.\*\]: 'mine' is not one of spo_FUN"):
            load(folder, HEAD.replace('["mine"]', '["spo_FUN"]'), DATA, PLAIN)

    def test_a_column_that_is_not_there(self, folder: Path) -> None:
        spec = load(folder, HEAD, DATA.replace('"name"', '"nmae"'), PLAIN)
        with pytest.raises(TrainingError, match=r"mine, plain, seed 0: .*spec.toml, \[data.mine\]: .*'nmae'") as raised:
            train(spec, folder / "results")
        assert "train.csv" in str(raised.value)

    def test_a_file_that_changes_before_it_is_read(self, folder: Path) -> None:
        cell = tasks(load(folder, HEAD, DATA, PLAIN))[0].cell
        write_table(folder / "test.csv", 16, seed=9)
        with pytest.raises(DataError, match=r"spec.toml, \[data.mine\]: its files have changed"):
            load_rows(cell, None)


class TestIdentity:
    def test_it_is_the_content_of_every_file_and_every_option(self, folder: Path) -> None:
        (folder / "tree.csv").write_text("parent,child\n" + "coral,coral > hard\n")
        section = DATA + 'valid = "valid.csv"\nhierarchy = "tree.csv"\n'
        seen = [fingerprint(load(folder, HEAD, section, PLAIN))]
        for name in ("train.csv", "test.csv", "valid.csv", "tree.csv"):
            with (folder / name).open("a") as file:
                file.write("\n")
            seen.append(fingerprint(load(folder, HEAD, section, PLAIN)))
        seen.append(fingerprint(load(folder, HEAD, section, 'unknown = "below"\n', PLAIN)))
        assert len(set(seen)) == len(seen) == 6

    def test_it_is_not_where_the_files_are(self, folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
        other = tmp_path_factory.mktemp("moved")
        for name in ("train", "test"):
            shutil.copy(folder / f"{name}.csv", other / f"a_{name}.csv")
        moved = DATA.replace('"train.csv"', '"a_train.csv"').replace('"test.csv"', '"a_test.csv"')
        assert fingerprint(load(folder, HEAD, DATA, PLAIN)) == fingerprint(load(other, HEAD, moved, PLAIN))

    def test_pictures_count(self, folder: Path) -> None:
        photos = folder / "photos"
        photos.mkdir()
        (photos / "a.png").write_bytes(b"1")
        section = DATA + 'images = "photos"\nimage = "name"\n'
        before = fingerprint(load(folder, HEAD, section, PLAIN))
        (photos / "notes.md").write_text("not a picture")
        assert fingerprint(load(folder, HEAD, section, PLAIN)) == before
        (photos / "a.png").write_bytes(b"2")
        assert fingerprint(load(folder, HEAD, section, PLAIN)) != before

    def test_records_of_other_content_are_neither_read_nor_lost(self, folder: Path) -> None:
        results = folder / "results"
        before = load(folder, HEAD, DATA, PLAIN)
        train(before, results)
        write_table(folder / "train.csv", 36, seed=7)
        after = load(folder, HEAD, DATA, PLAIN)
        assert not records(after, results)
        train(after, results)
        paths = [record_path(results, tasks(spec)[0].cell) for spec in (before, after)]
        assert all(path.exists() for path in paths) and paths[0].parent != paths[1].parent
        assert len(train(after, results).finished) == 0


class TestTraining:
    def test_features_are_prepared_as_fit_does(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """With statistics of the training rows alone: the test rows may be anything."""
        seen: list[tuple[int, ...]] = []
        fit = Preparation.fit

        def watched(X: Any, n_components: int | None = None) -> Preparation:
            seen.append(X.shape)
            return fit(X, n_components)

        monkeypatch.setattr(Preparation, "fit", watched)
        measure(tasks(load(folder, HEAD, DATA, PLAIN))[0].cell)
        assert seen == [(40, 2)]

    def test_record_table_and_report(self, folder: Path) -> None:
        spec, results = load(folder, HEAD, DATA, PLAIN), folder / "results"
        train(spec, results)
        record = records(spec, results)["plain"]
        cell = tasks(spec)[0].cell
        assert record.own == cell.own and record.cell.fingerprint == cell.fingerprint
        assert record.cell.name == cell.name
        assert record.at_half.summary.f1 > 0
        assert "| mine | plain | 1 |" in table_of(spec, results)
        path = record_path(results, cell)
        part = report_on_records([path])
        assert part.about.startswith("mine, test rows") and part.nodes.hierarchy.nodes == read_nodes(
            results, cell.place
        ).names
        assert "coral > hard > table" in part.nodes.hierarchy

    def test_a_dag_is_reported_too(self, folder: Path) -> None:
        """Names of nodes do not tell their hierarchy there."""
        edges = ["parent,child", "all,coral", "all,sponge", "coral,x", "sponge,x"]
        (folder / "tree.csv").write_text("\n".join(edges) + "\n")
        for name in ("train", "test"):
            path = folder / f"{name}.csv"
            text = path.read_text()
            for old, new in zip(sorted(LEAVES, key=len, reverse=True), ("x", "coral", "x", "sponge"), strict=True):
                text = text.replace(f",{old}\n", f",{new}\n")
            path.write_text(text)
        spec = load(folder, HEAD, DATA, 'hierarchy = "tree.csv"\n', PLAIN)
        train(spec, folder / "results")
        part = report_on_records([record_path(folder / "results", tasks(spec)[0].cell)])
        assert part.nodes.hierarchy.parents("x") == ("coral", "sponge")

    def test_decisions(self, folder: Path) -> None:
        spec, results = load(folder, DECIDED, DATA, PLAIN), folder / "results"
        train(spec, results)
        assert "#### mine" in table_of(spec, results)

    def test_unknown_labels_do_not_count(self, folder: Path) -> None:
        """A row labelled to coral says nothing about hard and soft ones."""
        path = folder / "test.csv"
        path.write_text(path.read_text().replace(",coral > soft\n", ",coral\n"))
        for start in (HEAD, DECIDED):
            spec = load(folder, start, DATA, 'unknown = "below"\n', PLAIN)
            train(spec, folder / "results")
        cell = tasks(load(folder, HEAD, DATA, 'unknown = "below"\n', PLAIN))[0].cell
        rows = load_rows(cell, None).test
        assert rows.known is not None
        counted = int((rows.Y & rows.known).sum())
        assert sum(read_nodes(folder / "results", cell.place).test_rows) == counted

    def test_nothing_is_read_twice(self, folder: Path) -> None:
        cell = tasks(load(folder, HEAD, DATA, PLAIN))[0].cell
        read_own_data.cache_clear()
        assert load_rows(cell, None) is load_rows(tasks(load_spec(str(folder / "spec.toml")))[0].cell, None)
