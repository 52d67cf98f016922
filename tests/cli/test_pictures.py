"""Pictures in the shell: fit, predict, evaluate, report and doctor, and what they say when something is wrong."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from rarenode.errors import ArgumentError, DataError, FileFormatError, MissingFileError
from tests.commands import fail, run, succeed
from tests.encoders import SIZE, encoder_folder, reef

__all__ = ["encoder_folder", "reef"]
SMALL = (
    "--image-size", str(SIZE), "--hidden-size", "12", "--n-trees", "5", "--epochs", "2", "--n-jobs", "1",
)  # fmt: skip
QUICK = (*SMALL, "--holdout", "0.3")


@pytest.fixture(autouse=True, scope="module")
def _all_with_one_thread(one_thread: None) -> None: ...


@pytest.fixture(scope="module")
def photos(reef: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table photos.csv, and a folder of its pictures elsewhere."""
    folder = tmp_path_factory.mktemp("shell")
    shutil.copytree(reef / "images", folder / "photos")
    frame = pl.read_csv(reef / "labels.csv").with_columns(pl.col("image").str.strip_prefix("images/"))
    frame.write_csv(folder / "photos.csv")
    return folder


@pytest.fixture(scope="module")
def fitted(photos: Path, encoder_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "run"
    said = succeed(
        "fit", photos / "photos.csv", "--images", photos / "photos", "--labels", "taxa", "--ignore", "partition",
        "--encoder", encoder_folder, "--out", out, *QUICK,
    )  # fmt: skip
    assert f"{out / 'report.html'}: which nodes are found" in said
    return out


def test_predict(fitted: Path, reef: Path, tmp_path: Path) -> None:
    said = succeed("predict", fitted, reef / "new", "--out", tmp_path / "found.csv")
    assert "12 rows x 13 nodes, 156 lines" in said
    found = pl.read_csv(tmp_path / "found.csv")
    assert found.columns[:2] == ["image", "node"]
    assert set(found["image"]) == {path.name for path in (reef / "new").iterdir()}
    table = tmp_path / "new.csv"
    pl.DataFrame({"image": sorted(path.name for path in (reef / "new").iterdir())}).write_csv(table)
    succeed("predict", fitted, table, "--images", reef / "new", "--out", tmp_path / "same.csv")
    assert (tmp_path / "same.csv").read_text() == (tmp_path / "found.csv").read_text()
    archive = shutil.make_archive(str(tmp_path / "new"), "zip", reef / "new")
    succeed("predict", fitted, archive, "--out", tmp_path / "again.csv")
    assert (tmp_path / "again.csv").read_text() == (tmp_path / "found.csv").read_text()
    succeed("predict", fitted, reef / "new", "--out", tmp_path / "sets.csv", "--format", "sets")
    assert len(pl.read_csv(tmp_path / "sets.csv")) == 12


def test_what_is_said_about_pictures(fitted: Path, reef: Path, tmp_path: Path) -> None:
    assert "--images photos/" in run("--help").output
    assert "zip archive of pictures" in " ".join(run("evaluate", "--help").output.split())
    shutil.copytree(reef / "new", tmp_path / "new")
    with Image.open(tmp_path / "new" / "0000.png") as image:
        image.transpose(Image.Transpose.ROTATE_90).save(tmp_path / "new" / "turned.png")
    succeed("predict", fitted, reef / "new", "--out", tmp_path / "found.csv")
    said = run("predict", fitted, tmp_path / "new", "--out", tmp_path / "found.csv")
    assert f"{tmp_path / 'new'}: encoded 13 pictures (12 from the cache)\n" in said.stderr
    said = run("predict", fitted, tmp_path / "new", "--out", tmp_path / "found.csv", "--quiet")
    assert "encoded" not in said.output


def test_evaluate_and_report(fitted: Path, photos: Path, tmp_path: Path) -> None:
    said = succeed("evaluate", fitted, photos / "photos.csv", "--images", photos / "photos")
    assert "60 rows" in said
    assert f"{fitted} on {photos / 'photos.csv'}, held-out rows, " in succeed("evaluate", fitted)
    page = tmp_path / "page.html"
    succeed("report", fitted, "--data", photos / "photos.csv", "--images", photos / "photos", "--out", page)
    assert "data:image/jpeg;base64," in page.read_text()
    assert "60 pictures, " in page.read_text()
    assert "features" not in page.read_text().partition("of 13 nodes with rows")[0][-200:]


def test_pictures_without_labels_cannot_be_evaluated(fitted: Path, reef: Path, tmp_path: Path) -> None:
    told = fail(ArgumentError, "evaluate", fitted, reef / "new")
    assert f"{reef / 'new'}: pictures have no column 'taxa' of labels. Name the table that has it" in told
    assert told == fail(ArgumentError, "report", fitted, "--data", reef / "new", "--out", tmp_path / "page.html")
    assert "0000.png: pictures have no column" in fail(ArgumentError, "evaluate", fitted, reef / "new" / "0000.png")
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label\n0000.png,Echinoderms\n")
    assert "1 row" in succeed("evaluate", fitted, reef / "new", "--labels", labels)


def test_parts_and_folders(reef: Path, encoder_folder: Path, tmp_path: Path) -> None:
    said = succeed(
        "fit", reef / "labels.csv", "--image", "image", "--labels", "taxa", "--partition", "partition",
        "--encoder", encoder_folder, "--out", tmp_path / "run", "--quiet", *SMALL,
    )  # fmt: skip
    assert said == ""
    tests = pl.read_csv(reef / "labels.csv").filter(pl.col("partition") == "test")
    said = run("doctor", tmp_path / "run", reef / "labels.csv").stdout
    assert said.startswith(f"{tmp_path / 'run'} on {reef / 'labels.csv'} (test rows), {len(tests)} rows: ")
    assert f"{len(tests)} rows" in succeed("evaluate", tmp_path / "run", reef / "labels.csv")
    folders = tmp_path / "folders"
    for number, path in enumerate(sorted((reef / "images").iterdir())):
        place = folders / "Biota" / ("Corals", "Sponges")[number % 2]
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, place)
    out = tmp_path / "by folders"
    succeed("fit", folders, "--encoder", encoder_folder, "--out", out, "--no-report", *QUICK)
    assert "60 rows" in succeed("evaluate", out, folders)
    succeed("predict", out, reef / "new", "--out", tmp_path / "found.csv")
    assert "Biota > Corals" in (tmp_path / "found.csv").read_text()


def spoil(photos: Path, folder: Path) -> Path:
    """A copy in which three pictures are bad, and one is there twice."""
    shutil.copytree(photos, folder)
    (folder / "photos" / "0003.png").write_bytes(b"no picture")
    (folder / "photos" / "0005.png").unlink()
    whole = (folder / "photos" / "0007.png").read_bytes()
    (folder / "photos" / "0007.png").write_bytes(whole[: len(whole) // 2])
    shutil.copy(folder / "photos" / "0010.png", folder / "photos" / "0011.png")
    return folder


def test_bad_pictures(photos: Path, encoder_folder: Path, tmp_path: Path, fitted: Path) -> None:
    folder = spoil(photos, tmp_path / "bad")
    command = (
        "fit", folder / "photos.csv", "--images", folder / "photos", "--labels", "taxa", "--encoder", encoder_folder,
        "--out", tmp_path / "run", *QUICK,
    )  # fmt: skip
    told = fail(DataError, *command)
    assert "2 pictures of 60 cannot be used" in told  # as their headers tell, before any is encoded
    assert all(name in told for name in ("0003.png", "0005.png", "--skip-bad-images"))
    assert not (tmp_path / "run" / "model.json").exists()
    with pytest.warns(RuntimeWarning, match=r"left out: 3 pictures of 60 .*0003\.png.*0005\.png.*0007\.png"):
        succeed(*command, "--skip-bad-images")
    page = (tmp_path / "run" / "report.html").read_text()
    assert "57 pictures" in page
    assert "left out: 3 pictures" in page
    rest = ("predict", fitted, folder / "photos.csv", "--images", folder / "photos", "--out", tmp_path / "found.csv")
    assert "2 pictures of 60 cannot be used" in fail(DataError, *rest)
    with pytest.warns(RuntimeWarning, match="left out: 3 pictures"):
        assert "57 rows" in succeed(*rest, "--skip-bad-images")


def test_bad_pictures_of_all_parts_are_named_together(reef: Path, encoder_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bad"
    shutil.copytree(reef, folder)
    frame = pl.read_csv(folder / "labels.csv")
    first = {part: frame.filter(pl.col("partition") == part)["image"][0] for part in ("train", "valid", "test")}
    for name in first.values():
        (folder / name).unlink()
    command = (
        "fit", folder / "labels.csv", "--image", "image", "--labels", "taxa", "--partition", "partition",
        "--encoder", encoder_folder, "--out", tmp_path / "run", *SMALL,
    )  # fmt: skip
    told = fail(DataError, *command)
    assert "3 pictures of 60 cannot be used" in told
    assert all(name in told for name in first.values())


def test_doctor(photos: Path, tmp_path: Path) -> None:
    how = ("--labels", "taxa", "--ignore", "partition", "--images")
    said = run("doctor", photos / "photos.csv", *how, photos / "photos")
    assert said.exit_code in (0, 3)
    assert ": 60 pictures, 13 nodes" in said.stdout
    assert "feature" not in said.stdout
    folder = spoil(photos, tmp_path / "bad")
    said = run("doctor", folder / "photos.csv", *how, folder / "photos")
    assert said.exit_code == 1
    words = " ".join(said.stdout.split())
    assert "3 pictures of 60 cannot be used" in words
    assert all(
        name in words for name in ("0003.png: it is not a picture", "0005.png: there is no such file", "0007.png")
    )
    assert "1 picture has the same content as another picture" in words
    assert "0011.png = 0010.png" in words
    found = json.loads(run("doctor", folder / "photos.csv", *how, folder / "photos", "--json").stdout)
    assert found["pictures"] is True
    assert any(each["topic"] == "pictures" and each["severity"] == "error" for each in found["findings"])
    one = tmp_path / "one.csv"
    one.write_text("image,taxa\n0001.png,a > b\n")
    assert ": 1 picture, 2 nodes" in run("doctor", one, *how[:2], "--images", photos / "photos").stdout


def test_doctor_says_how_long_encoding_takes(
    photos: Path, encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RARENODE_CACHE", str(tmp_path / "cache"))
    how = ("--labels", "taxa", "--images", photos / "photos", "--image-size", str(SIZE))

    def said(*options: str | Path) -> str:
        return run("doctor", photos / "photos.csv", *how, *options).stdout

    assert "cache" not in said()
    assert "0 of 60 pictures are in the cache\n" in said("--encoder", encoder_folder, "--no-time")
    takes = "pictures are in the cache, encoding the others takes less than a minute\n"
    assert f"0 of 60 {takes}" in said("--encoder", encoder_folder)
    assert f"0 of 60 {takes}" not in said("--encoder", encoder_folder)  # a few were encoded, and kept
    for _ in range(5):
        last = said("--encoder", encoder_folder)
    assert "60 of 60 pictures are in the cache\n" in last
    wrong = ("doctor", photos / "photos.csv", *how, "--encoder", tmp_path / "nowhere")
    assert "there is no such folder" in fail(MissingFileError, *wrong)
    assert "there is no such folder" in json.loads(run(*wrong, "--json").stdout)["findings"][0]["text"]


def test_doctor_of_a_run(fitted: Path, reef: Path, photos: Path) -> None:
    said = run("doctor", fitted, reef / "new")
    assert said.exit_code == 0, said.output
    assert said.stdout.startswith(f"{fitted} on {reef / 'new'}, 12 rows:\n")
    assert "0000.png" in said.stdout or "Rows to annotate next" in said.stdout
    assert run("doctor", fitted, photos / "photos.csv", "--images", photos / "photos").exit_code == 0


def test_wrong_folders_and_encoders(photos: Path, encoder_folder: Path, fitted: Path, tmp_path: Path) -> None:
    table, labels = photos / "photos.csv", ("--labels", "taxa", "--out", tmp_path / "run", *QUICK)
    told = fail(MissingFileError, "fit", table, "--images", tmp_path / "nowhere", *labels)
    assert "nowhere: there is no such folder" in told
    told = fail(DataError, "fit", table, "--images", encoder_folder, *labels, "--encoder", encoder_folder)
    assert "none of its 60 pictures is there" in told
    told = fail(ArgumentError, "fit", table, "--images", photos / "photos", *labels, "--encoder", photos / "photos")
    assert "photos contains no encoder" in told
    told = fail(MissingFileError, "fit", table, "--images", photos / "photos", *labels, "--encoder", "someone/nothing")
    assert "--download" in told
    for name in ("./nodir", "random:./nodir", "a/b/c", str(tmp_path / "nodir")):
        told = fail(MissingFileError, "fit", table, "--images", photos / "photos", *labels, "--encoder", name)
        assert told.startswith(f"{name.removeprefix('random:')}: there is no such folder")
        assert "download" not in told
    told = fail(ArgumentError, "fit", table, "--images", "", *labels)
    assert "images: the path of the folder or zip archive is empty; the current folder is '.'" in told
    told = fail(ArgumentError, "fit", photos / "photos", "--out", tmp_path / "run")
    assert "no folders, whose names could be labels" in told
    told = fail(MissingFileError, "predict", fitted, tmp_path / "nowhere.zip", "--out", tmp_path / "found.csv")
    assert "nowhere.zip" in told
    (tmp_path / "empty").mkdir()
    told = fail(FileFormatError, "predict", fitted, tmp_path / "empty", "--out", tmp_path / "found.csv")
    assert told.startswith(f"{tmp_path / 'empty'}: it is a folder without pictures (.jpg, .jpeg, .png, ")
    assert "csv" not in told
    told = fail(ArgumentError, "fit", table, "--images", photos / "photos", "--image", "photo", *labels)
    assert "has no column 'photo' of pictures (--image)" in told


def test_one_line_and_an_exit_code(photos: Path, tmp_path: Path) -> None:
    """The program itself, as a shell starts it."""
    command = [sys.executable, "-c", "from rarenode.cli import main; main()", "fit", str(photos / "photos.csv")]
    command += ["--images", str(tmp_path), "--labels", "taxa", "--out", str(tmp_path / "run")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "Traceback" not in result.stderr
    assert result.stderr.count("\n") == 1
    assert "none of its 60 pictures is there" in result.stderr


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ((), "rarenode: stopped while pictures were encoded; embeddings are kept, and the same command continues"),
        (("--train-encoder",), "rarenode: stopped while pictures were decoded, which begins again"),
    ],
)
def test_ctrl_c_is_answered_even_if_quiet(
    photos: Path, encoder_folder: Path, tmp_path: Path, options: tuple[str, ...], told: str
) -> None:
    """The program itself: the keys are pressed when the tenth picture is read."""
    code = (
        "from rarenode.data import images\nfrom rarenode.cli import main\nread, calls = images.ImageFile.read, []\n"
        "def counted(self):\n    calls.append(self)\n    import os, signal, time\n"
        "    if len(calls) == 10: os.kill(os.getpid(), signal.SIGINT); time.sleep(0.2)\n    return read(self)\n"
        "images.ImageFile.read = counted\nimport signal\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\nmain()"
    )
    command = [sys.executable, "-c", code, "fit", photos / "photos.csv", "--images", photos / "photos", "--labels"]
    command += ["taxa", "--encoder", encoder_folder, "--out", tmp_path / "run", "--quiet", *QUICK, *options]
    own_cache = os.environ | {"RARENODE_CACHE": str(tmp_path / "cache")}
    result = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False, env=own_cache)
    assert result.returncode == 130
    assert result.stderr.startswith(told)
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "run").exists()
