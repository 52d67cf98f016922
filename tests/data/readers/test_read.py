"""`read`: the reader is selected by the suffix of the file name."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from rarenode.data.readers import FOLDER, READERS, read
from rarenode.data.readers.arff import Kind
from rarenode.errors import FileFormatError, MissingFileError
from tests.data.serving import SMALL_ARFF


@pytest.mark.parametrize("name", ["small.arff", "SMALL.ARFF", "small.train.Arff"])
@pytest.mark.parametrize("as_text", [False, True])
def test_the_suffix_selects_the_reader(tmp_path: Path, name: str, as_text: bool) -> None:
    path = tmp_path / name
    path.write_bytes(SMALL_ARFF)
    file = read(str(path) if as_text else path)
    assert file.feature_names == ("number", "letter=a", "letter=b")
    np.testing.assert_array_equal(file.X, [[1.5, 1, 0], [np.nan, 0, 1]])


@pytest.mark.parametrize("kind", ["tree", "dag"])
def test_the_kind_reaches_the_reader(tmp_path: Path, kind: Kind) -> None:
    path = tmp_path / "pairs.arff"
    path.write_text("@attribute class hierarchical a/b\n@data\na\n")
    assert read(path, kind=kind).hierarchy.nodes == (("root", "a", "a/b") if kind == "tree" else ("a", "b"))


@pytest.mark.parametrize("name", ["rows.xlsx", "rows", "rows.7z", "rows.gz"])
def test_an_unknown_format_lists_the_known_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(FileFormatError, match="cannot tell the file format") as caught:
        read(tmp_path / name)
    assert all(suffix in str(caught.value) for suffix in READERS if suffix != FOLDER)


def test_a_folder_and_a_gzipped_file(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match=r"folder without pictures .*; name a file .*such as .*\*\.csv"):
        read(tmp_path)
    path = tmp_path / "small.arff.gz"
    path.write_bytes(gzip.compress(SMALL_ARFF, mtime=0))
    np.testing.assert_array_equal(read(path).X, [[1.5, 1, 0], [np.nan, 0, 1]])
    path.write_bytes(SMALL_ARFF)
    with pytest.raises(FileFormatError, match="not gzipped"):
        read(path)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match="nowhere"):
        read(tmp_path / "nowhere.arff")


def test_suffixes_are_in_lower_case() -> None:
    assert all(suffix == suffix.lower() and suffix.startswith(".") for suffix in READERS if suffix != FOLDER)
