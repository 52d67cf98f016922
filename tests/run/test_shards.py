"""Predictions of several files against those of each file alone; what is done is not done again."""

from __future__ import annotations

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from rarenode import Run, Settings
from rarenode._io.progress import Progress
from rarenode.errors import ArgumentError, DataError, FileFormatError, Interrupted
from rarenode.run import shards as module
from rarenode.run.predicting import predict_into_file
from rarenode.run.predictions import Choice
from rarenode.run.shards import MANIFEST
from tests.commands import run as command
from tests.commands import succeed

LABELS = ("a", "a > b", "a > c", "d")
SUFFIXES = (".csv", ".tsv", ".parquet")


def rows(number: int, seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    label = rng.integers(len(LABELS), size=number)
    columns: dict[str, Any] = {"id": [f"{seed}-{row}" for row in range(number)]}
    columns |= {f"x{place}": rng.normal(size=number) + label * (place + 1) for place in range(3)}
    return pl.DataFrame(columns | {"taxa": [LABELS[each] for each in label]})


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("run")
    rows(60, 0).write_csv(folder / "train.csv")
    small = Settings(hidden_size=4, epochs=2, model="mlp", holdout=0.3, batch_size=16, engine="torch", n_jobs=1)
    options = {"labels": "taxa", "id": "id"}
    return Run.fit(folder / "train.csv", folder / "run", small, options=options, report=False)


@pytest.fixture
def data(tmp_path: Path) -> list[Path]:
    """A file of each format, of different lengths."""
    folder = tmp_path / "data"
    folder.mkdir()
    for seed, suffix in enumerate(SUFFIXES, start=1):
        part = rows(5 * seed, seed).drop("taxa")
        if suffix == ".parquet":
            part.write_parquet(folder / f"part-{seed}{suffix}")
        else:
            part.write_csv(folder / f"part-{seed}{suffix}", separator="\t" if suffix == ".tsv" else ",")
    return sorted(folder.iterdir())


@pytest.fixture
def predicted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that are predicted in this process."""
    found: list[str] = []
    plain = predict_into_file

    def predict(run: Run, source: Path, *arguments: Any, **options: Any) -> Any:
        found.append(source.name)
        return plain(run, source, *arguments, **options)

    monkeypatch.setattr(module, "predict_into_file", predict)
    return found


def assert_as_alone(run: Run, data: list[Path], out: Path, tmp_path: Path, **how: Any) -> None:
    assert {path.name for path in out.iterdir()} == {path.name for path in data} | {MANIFEST}
    for path in data:
        run.predict_to_file(path, alone := tmp_path / f"alone{path.suffix}", **how)
        assert (out / path.name).read_bytes() == alone.read_bytes()


def test_each_file_is_predicted_as_if_it_were_alone(run: Run, data: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out" / "below"
    how: dict[str, Any] = {"choice": Choice(decided_only=True), "min_confidence": 0.3}
    written = run.predict_to_folder(data, out, **how)
    assert_as_alone(run, data, out, tmp_path, **how)
    assert (written.files, written.skipped) == (3, 0)
    alone = [run.predict_to_file(path, tmp_path / "p.csv", **how) for path in data]
    assert written.total == tuple(map(sum, zip(*alone, strict=True)))
    assert written.total.rows == 5 + 10 + 15


def test_a_pattern_and_other_suffixes(run: Run, data: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copy(data[0], data[0].with_suffix(".txt"))
    assert run.predict_to_folder(data[0].parent / "*.txt", out).files == 1
    assert {path.name for path in out.iterdir()} == {"part-1.csv", MANIFEST}
    with pytest.warns(RuntimeWarning, match=r"part-1.csv: made by another model or with other options"):
        assert run.predict_to_folder(str(data[0].parent / "part-[23].*"), out, choice=Choice("cafa")).files == 2
    assert {path.name for path in out.iterdir()} == {"part-1.csv", "part-2.tsv", "part-3.tsv", MANIFEST}


def test_another_process_opens_the_same_run(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """From any folder, on the same device."""
    monkeypatch.chdir(run.folder.parent)
    other = pickle.loads(pickle.dumps(Run("run", device="cpu")))
    monkeypatch.chdir("/")
    assert (other.folder, other.device) == (run.folder, "cpu")
    assert other.model.fingerprints == run.model.fingerprints


class TestAgain:
    def test_what_is_done_is_left_out(self, run: Run, data: list[Path], tmp_path: Path, predicted: list[str]) -> None:
        out = tmp_path / "out"
        first = run.predict_to_folder(data[:2], out)
        assert run.predict_to_folder(data, out) == (1, 2, run.predict_to_folder(data, out).total)
        assert predicted == [path.name for path in data]
        assert first.total.rows == 15
        assert_as_alone(run, data, out, tmp_path)

    def test_what_has_changed_is_done_again(
        self, run: Run, data: list[Path], tmp_path: Path, predicted: list[str]
    ) -> None:
        out = tmp_path / "out"
        run.predict_to_folder(data, out)
        data[0].write_text(data[0].read_text().replace("1-0", "9-0"))  # as long as it was
        (out / data[1].name).write_text("cut")
        predicted.clear()
        run.predict_to_folder(data, out)
        assert predicted == [data[0].name, data[1].name]
        assert_as_alone(run, data, out, tmp_path)

    @pytest.mark.parametrize("how", [{"choice": Choice("wide")}, {"min_confidence": 0.1}, {"thresholds": "fixed:0.1"}])
    def test_other_options(
        self, run: Run, data: list[Path], tmp_path: Path, predicted: list[str], how: dict[str, Any]
    ) -> None:
        out = tmp_path / "out"
        run.predict_to_folder(data, out)
        assert run.predict_to_folder(data, out, **how).skipped == 0
        assert_as_alone(run, data, out, tmp_path, **how)

    def test_another_model(self, run: Run, data: list[Path], tmp_path: Path) -> None:
        out, other = tmp_path / "out", tmp_path / "run"
        run.predict_to_folder(data, out)
        run.model.save(other)
        assert Run(other).predict_to_folder(data, out).skipped == 3
        model = run.model.with_thresholds(
            run.model.thresholds_for(np.zeros((1, len(run.model.hierarchy))), "fixed:0.2")
        )
        shutil.rmtree(other)
        model.save(other)
        assert Run(other).predict_to_folder(data, out).skipped == 0

    def test_ctrl_c_keeps_what_is_done(self, run: Run, data: list[Path], tmp_path: Path, predicted: list[str]) -> None:
        class CtrlC(Progress):
            def update(self, done: float, text: str, *_: Any, **__: Any) -> None:
                if text == "2 of 3 files":
                    raise KeyboardInterrupt

        out = tmp_path / "out"
        with pytest.raises(Interrupted, match="the same command continues"):
            run.predict_to_folder(data, out, progress=CtrlC(quiet=True))
        assert predicted == [data[0].name, data[1].name]
        assert run.predict_to_folder(data, out).skipped == 2
        assert_as_alone(run, data, out, tmp_path)

    @pytest.mark.parametrize("content", ["", "{}", "[", '{"format": "rarenode predictions", "files": {}}'])
    def test_a_damaged_manifest(self, run: Run, data: list[Path], tmp_path: Path, content: str) -> None:
        out = tmp_path / "out"
        out.mkdir()
        (out / MANIFEST).write_text(content)
        with pytest.raises(FileFormatError, match="remove it to predict all files again"):
            run.predict_to_folder(data, out)
        assert (out / MANIFEST).read_text() == content


class TestFailures:
    def test_others_are_done(self, run: Run, data: list[Path], tmp_path: Path) -> None:
        out, good = tmp_path / "out", data[1].read_text()
        data[1].write_text("id\tother\na\t1\n")
        with pytest.raises(
            DataError, match=r"^1 of 3 files could not be predicted; all others are done\. .*part-2\.tsv: "
        ):
            run.predict_to_folder(data, out)
        assert set(json.loads((out / MANIFEST).read_text())["files"]) == {data[0].name, data[2].name}
        data[1].write_text(good)
        assert run.predict_to_folder(data, out).skipped == 2
        assert_as_alone(run, data, out, tmp_path)

    def test_what_is_refused(self, run: Run, data: list[Path], tmp_path: Path) -> None:
        out = tmp_path / "out"
        with pytest.raises(ArgumentError, match="would be fitted to each file alone"):
            run.predict_to_folder(data, out, thresholds="expected_f1")
        with pytest.raises(ArgumentError, match="the predictions would replace the data"):
            run.predict_to_folder(data, data[0].parent)
        with pytest.raises(ArgumentError, match=r"part-1\.csv and .*part-1\.csv would have the same output"):
            run.predict_to_folder([*data, data[0]], out)
        for wrong in ("nowhere.csv", str(data[0].parent), "*.nothing"):
            with pytest.raises(ArgumentError, match="is no file"):
                run.predict_to_folder(wrong, out)
        odd = data[0].with_name(os.fsdecode(b"part-\xff.csv"))
        odd.write_bytes(data[0].read_bytes())
        with pytest.raises(ArgumentError, match=r"part-.*udcff\.csv: the name is not valid UTF-8"):
            run.predict_to_folder(odd, out)
        assert not out.exists()


@pytest.mark.parametrize(("on", "jobs"), [("local", 2), ("ray", 2), ("ray", None)])
def test_side_by_side(
    run: Run, data: list[Path], tmp_path: Path, on: str, jobs: int | None, request: pytest.FixtureRequest
) -> None:
    if on == "ray":
        request.getfixturevalue("ray_cluster")
    out = tmp_path / "out"
    run.predict_to_folder(data[:1], out)
    assert run.predict_to_folder(data, out, on=on, jobs=jobs)[:2] == (2, 1)
    assert_as_alone(run, data, out, tmp_path)


class TestCommand:
    def test_a_folder(self, run: Run, data: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)
        printed = succeed("predict", run.folder, *data, "--out", "out/", "--quiet")
        assert printed == ""
        assert_as_alone(run, data, tmp_path / "out", tmp_path)
        printed = succeed("predict", run.folder, *data, "--out", "out")
        assert printed.startswith("out: 0 files predicted, 3 done before\nout: 30 rows x ")

    def test_options_without_effect(self, run: Run, data: list[Path], tmp_path: Path) -> None:
        for options in (["--on", "ray"], ["--jobs", "2"]):
            result = command("predict", run.folder, data[0], "--out", tmp_path / "p.csv", *options)
            assert "--out must be a folder and end in /" in str(result.exception)
        result = command("predict", run.folder, data[0], "--out", f"{tmp_path}/out/", "--split", "test")
        assert "--split is for datasets of the catalogue" in str(result.exception)


class TestOldOutputs:
    def test_one_that_was_edited_is_made_again(
        self, run: Run, data: list[Path], tmp_path: Path, predicted: list[str]
    ) -> None:
        """Also if it is as long as it was."""
        out = tmp_path / "out"
        run.predict_to_folder(data, out)
        content = bytearray((out / data[0].name).read_bytes())
        content[-3] ^= 1
        (out / data[0].name).write_bytes(content)
        predicted.clear()
        run.predict_to_folder(data, out)
        assert predicted == [data[0].name]
        assert_as_alone(run, data, out, tmp_path)

    def test_none_stays_whose_input_is_no_longer_usable(self, run: Run, data: list[Path], tmp_path: Path) -> None:
        out = tmp_path / "out"
        run.predict_to_folder(data, out)
        data[1].write_text("id\tother\na\t1\n")
        with pytest.raises(DataError, match="1 of 3 files"):
            run.predict_to_folder(data, out)
        assert {path.name for path in out.iterdir()} == {data[0].name, data[2].name, MANIFEST}

    def test_those_with_other_options_are_named(
        self, run: Run, data: list[Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        out = tmp_path / "out"
        run.predict_to_folder(data, out)
        with pytest.warns(RuntimeWarning, match=rf"{data[2].name}: made by another model or with other options"):
            run.predict_to_folder(data[:2], out, min_confidence=0.1, progress=Progress())
        assert f"2 files in {out} made from other input, by another model or with other" in capsys.readouterr().err
