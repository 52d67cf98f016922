"""Loading by name: what is said when files are missing or do not belong together."""

from __future__ import annotations

import dataclasses
from pathlib import Path, PurePosixPath

import pytest

from rarenode import load_dataset
from rarenode.data import dataset
from rarenode.data.catalogue import CatalogueEntry, CatalogueFile, find_entry
from rarenode.errors import ArgumentError, DataError, MissingFileError, UnknownDatasetError

ARFF = """\
@relation small
@attribute {feature} numeric
@attribute class hierarchical {classes}
@data
1,a
{value},a/b
"""


@pytest.fixture
def entry(monkeypatch: pytest.MonkeyPatch) -> CatalogueEntry:
    files = tuple(
        CatalogueFile(split, PurePosixPath(f"small.{split}.arff"), rows=2, size=1, sha256="0" * 64)
        for split in ("train", "valid", "test")
    )
    small = dataclasses.replace(
        find_entry("cellcycle_FUN"), name="small", files=files, features=1, nodes=3, edges=2, unscored=("root",)
    )
    monkeypatch.setattr(dataset, "find_entry", lambda name: small)
    return small


def write(folder: Path, split: str, feature: str = "x", classes: str = "a,a/b", value: str = "3") -> None:
    text = ARFF.format(feature=feature, classes=classes, value=value)
    (folder / f"small.{split}.arff").write_text(text, encoding="utf-8")


@pytest.mark.usefixtures("entry")
def test_it_loads_and_prepares(tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        write(tmp_path, split)
    data = load_dataset("small", tmp_path)
    assert data.hierarchy.nodes == ("root", "a", "a/b")
    assert data.scored.tolist() == [False, True, True]
    assert data.train.X.tolist() == [[-1.0], [1.0]]
    assert repr(data).startswith("<Dataset small: 2/2/2 rows, 1 features, <Hierarchy: tree of 3 nodes")


@pytest.mark.usefixtures("entry")
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"classes": "a,a/b,a/c"}, "has 3 nodes; got 4"),
        ({"feature": "y"}, "its features are not those"),
    ],
)
def test_files_that_do_not_belong_together_are_refused(tmp_path: Path, change: dict[str, str], words: str) -> None:
    for split in ("train", "valid", "test"):
        write(tmp_path, split, **(change if split == "test" else {}))
    with pytest.raises(DataError, match=rf"small\.test\.arff.*{words}"):
        load_dataset("small", tmp_path)


@pytest.mark.usefixtures("entry")
def test_as_many_classes_but_others(tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        write(tmp_path, split)
    other = (tmp_path / "small.valid.arff").read_text(encoding="utf-8").replace("a/b", "a/c")
    (tmp_path / "small.valid.arff").write_text(other, encoding="utf-8")
    with pytest.raises(DataError, match=r"small\.valid\.arff: its classes are not those"):
        load_dataset("small", tmp_path)


@pytest.mark.usefixtures("entry")
def test_values_too_large_for_single_precision_are_refused(tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        write(tmp_path, split, value="1e60")
    with pytest.raises(DataError, match=r"row 1, feature 0: 1e\+60 is too large"):
        load_dataset("small", tmp_path, prepare="none")


def test_a_missing_file_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingFileError, match=rf"rarenode data fetch enron --root {tmp_path}'"):
        load_dataset("enron", tmp_path)
    monkeypatch.setenv("RARENODE_DATA", str(tmp_path))
    with pytest.raises(MissingFileError, match="rarenode data fetch enron'"):
        load_dataset("enron")
    with pytest.raises(MissingFileError, match="expr_FUN_rebuilt uses a reconstructed training file"):
        load_dataset("expr_FUN")
    with pytest.raises(MissingFileError, match="reconstruction that cannot be fetched"):
        load_dataset("expr_GO_rebuilt")


def test_unknown_names_and_preparations(tmp_path: Path) -> None:
    with pytest.raises(UnknownDatasetError, match="Did you mean 'cellcycle_FUN'"):
        load_dataset("celcycle_fun", tmp_path)
    with pytest.raises(UnknownDatasetError, match="3"):
        load_dataset(3, tmp_path)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="leaky"):
        load_dataset("enron", tmp_path, prepare="leaky")  # type: ignore[arg-type]
