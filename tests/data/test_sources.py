"""Rows by name or from a file, and messages about files that are missing or do not belong together."""

from __future__ import annotations

import dataclasses
from pathlib import Path, PurePosixPath

import numpy as np
import pytest

from rarenode import load_dataset, make_hierarchical
from rarenode.data import sources
from rarenode.data.catalogue import CatalogueEntry, CatalogueFile, find_entry
from rarenode.data.dataset import Dataset
from rarenode.data.sources import open_data
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
    monkeypatch.setattr(sources, "find_entry", lambda name: small)
    return small


def write(folder: Path, split: str, feature: str = "x", classes: str = "a,a/b", value: str = "3") -> None:
    text = ARFF.format(feature=feature, classes=classes, value=value)
    (folder / f"small.{split}.arff").write_text(text, encoding="utf-8")


@pytest.mark.usefixtures("entry")
def test_features_are_raw_or_prepared_with_statistics_of_training_rows(tmp_path: Path) -> None:
    for split, value in (("train", "3"), ("valid", "5"), ("test", "?")):
        write(tmp_path, split, value=value)
    data = load_dataset("small", tmp_path)
    assert data.hierarchy.nodes == ("root", "a", "a/b")
    assert data.scored.tolist() == [False, True, True]
    assert data.valid is not None
    assert data.train.X.tolist() == [[1.0], [3.0]]
    assert data.valid.X.tolist() == [[1.0], [5.0]]
    np.testing.assert_array_equal(data.test.X, [[1.0], [np.nan]])
    assert {part.name for part in (data.train, data.valid, data.test)} == {"small"}
    prepared = load_dataset("small", tmp_path, prepare="no_leakage")
    assert prepared.valid is not None
    assert prepared.train.X.tolist() == [[-1.0], [1.0]]
    assert prepared.valid.X.tolist() == [[-1.0], [3.0]]
    assert prepared.test.X.tolist() == [[-1.0], [0.0]]
    assert repr(data).startswith("<DatasetSplits small: 2/2/2 rows, 1 feature, <Hierarchy: tree of 3 nodes")


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
def test_a_row_whose_class_is_missing_has_no_labels(tmp_path: Path) -> None:
    for split in ("train", "valid", "test"):
        write(tmp_path, split)
    path = tmp_path / "small.train.arff"
    path.write_text(path.read_text(encoding="utf-8").replace("1,a\n", "1,?\n"), encoding="utf-8")
    train = load_dataset("small", tmp_path).train
    assert train.known is not None
    assert train.known.any(axis=1).tolist() == train.known.all(axis=1).tolist() == [False, True]
    assert not train.Y[0].any()
    assert len(train.with_labels_only()) == 1


def test_rows_are_opened_as_they_are_or_from_a_file(tmp_path: Path) -> None:
    write(tmp_path, "train")
    path = tmp_path / "small.train.arff"
    from_file = open_data(path)
    assert isinstance(from_file, Dataset)
    assert from_file.X.tolist() == [[1.0], [3.0]]
    assert open_data(str(path)).fingerprint == from_file.fingerprint  # type: ignore[union-attr]
    assert open_data(from_file) is from_file
    splits = make_hierarchical(rows=20, nodes=5, depth=2)
    assert open_data(splits) is splits


def test_data_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"nowhere\.arff: there is no such file, and no dataset"):
        open_data(tmp_path / "nowhere.arff")
    with pytest.raises(UnknownDatasetError, match="Did you mean 'cellcycle_FUN'"):
        open_data("celcycle_FUN", tmp_path)


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
