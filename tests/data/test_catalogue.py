from __future__ import annotations

import hashlib
import os
import pickle
import re
from dataclasses import FrozenInstanceError
from pathlib import Path, PurePosixPath

import pytest

from rarenode.data.catalogue import SPLITS, CatalogueFile, catalogue, data_root, find_entries, find_entry
from rarenode.data.readers.arff import read_arff
from rarenode.errors import ArgumentError, UnknownDatasetError
from tests.data.serving import small_file

GENES = ("cellcycle", "derisi", "eisen", "expr", "gasch1", "gasch2", "seq", "spo")
PAPER = [*(f"{genes}_{labels}" for labels in ("FUN", "GO") for genes in GENES), "enron", "diatoms"]
REBUILT = ["expr_FUN_rebuilt", "expr_GO_rebuilt"]

INPUTS = dict(zip(GENES, (77, 63, 79, 561, 173, 52, 529, 86), strict=True))
OUTPUTS = {
    "FUN": dict(zip(GENES, (499, 499, 461, 499, 499, 499, 499, 499), strict=True)),
    "GO": dict(zip(GENES, (4122, 4116, 3570, 4128, 4122, 4128, 4130, 4116), strict=True)),
}

ALL_FILES = sorted(
    {(entry.name, file) for entry in catalogue().values() for file in entry.files},
    key=lambda pair: (str(pair[1].path), pair[0]),
)


class TestContent:
    def test_names(self) -> None:
        assert list(catalogue()) == PAPER + REBUILT
        assert [entry.name for entry in catalogue().values() if entry.published] == PAPER

    @pytest.mark.parametrize("labels", OUTPUTS)
    @pytest.mark.parametrize("genes", GENES)
    def test_sizes_are_those_of_the_paper(self, genes: str, labels: str) -> None:
        entry = find_entry(f"{genes}_{labels}")
        assert (entry.features, entry.scored) == (INPUTS[genes], OUTPUTS[labels][genes])

    @pytest.mark.parametrize("name", catalogue())
    def test_every_entry_is_complete(self, name: str) -> None:
        entry = find_entry(name)
        splits = [file.split for file in entry.files]
        assert splits == (["train", "test"] if entry.name in ("enron", "diatoms") else list(SPLITS))
        assert entry.kind == ("dag" if "_GO" in entry.name else "tree")
        assert entry.unscored[0] == "root"
        assert len(entry.unscored) == (4 if entry.kind == "dag" else 1)
        assert entry.edges == entry.nodes - 1 if entry.kind == "tree" else entry.edges > entry.nodes
        assert entry.title and entry.about and entry.licence and entry.citations
        assert "no licence" in entry.licence.lower()
        assert all(file.rows > 0 for file in entry.files)
        for file in entry.files:
            assert (file.size is None) == (file.sha256 is None)
            assert file.sha256 is None or re.fullmatch("[0-9a-f]{64}", file.sha256)

    def test_only_the_original_expr_training_files_have_no_checksum(self) -> None:
        unknown = {(name, file.split) for name, file in ALL_FILES if file.sha256 is None}
        assert unknown == {("expr_FUN", "train"), ("expr_GO", "train")}

    def test_rebuilt_differs_in_the_training_file_alone(self) -> None:
        for name in REBUILT:
            rebuilt, original = find_entry(name), find_entry(name.removesuffix("_rebuilt"))
            assert rebuilt.files[1:] == original.files[1:]
            assert not rebuilt.files[0].published

    def test_files_that_share_a_path_are_the_same(self) -> None:
        known: dict[PurePosixPath, CatalogueFile] = {}
        for _, file in ALL_FILES:
            assert known.setdefault(file.path, file) == file


class TestRecords:
    def test_frozen_and_read_only(self) -> None:
        with pytest.raises(FrozenInstanceError):
            find_entry("enron").nodes = 3  # type: ignore[misc]
        with pytest.raises(TypeError):
            catalogue()["mine"] = find_entry("enron")  # type: ignore[index]

    def test_pickles(self) -> None:
        assert pickle.loads(pickle.dumps(find_entry("enron"))) == find_entry("enron")

    def test_file_by_split(self) -> None:
        enron = find_entry("enron")
        assert enron.file("valid") is None
        assert enron.file("test") is enron.files[1]

    @pytest.mark.parametrize(
        "path",
        ["/etc/passwd", "../up", "a/../../up", "", ".", "a\\..\\b", "C:/x", "a/b\n", "//host/share", "a/..", "nul\0"],
    )
    def test_path_that_leaves_the_root_is_refused(self, path: str) -> None:
        with pytest.raises(ArgumentError, match="not a path below the data root"):
            small_file(b"", path=PurePosixPath(path))


class TestFinding:
    @pytest.mark.parametrize(
        ("wrong", "meant"), [("celcycle_FUN", "cellcycle_FUN"), ("ENRON", "enron"), ("spoGO", "spo_GO")]
    )
    def test_unknown_name_says_what_was_meant(self, wrong: str, meant: str) -> None:
        with pytest.raises(UnknownDatasetError, match=f"Did you mean '{meant}'") as caught:
            find_entry(wrong)
        assert ", ".join(PAPER + REBUILT) in str(caught.value)

    def test_nothing_close(self) -> None:
        with pytest.raises(UnknownDatasetError) as caught:
            find_entry("imagenet")
        assert "Did you mean" not in str(caught.value)

    def test_all_means_the_paper(self) -> None:
        assert [entry.name for entry in find_entries(["all"])] == PAPER

    def test_each_once_in_the_order_given(self) -> None:
        assert [entry.name for entry in find_entries(["enron", "spo_GO", "enron"])] == ["enron", "spo_GO"]


class TestDataRoot:
    def test_explicit(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("RARENODE_DATA", "ignored")
        assert data_root("mine") == data_root(Path("mine")) == Path("mine")

    def test_environment(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("RARENODE_DATA", str(tmp_path))
        assert data_root(None) == tmp_path

    @pytest.mark.parametrize("value", [None, ""])
    def test_cache(self, value: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("RARENODE_DATA", raising=False)
        if value is not None:
            monkeypatch.setenv("RARENODE_DATA", value)
        assert data_root().is_absolute()
        assert "rarenode" in data_root().parts

    def test_home(self, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("HOME", str(tmp_path))
        assert data_root("~/hmc") == tmp_path / "hmc"


@pytest.mark.real_data
@pytest.mark.parametrize(
    ("name", "file"),
    [pytest.param(name, file, id=f"{name}-{file.split}") for name, file in ALL_FILES if file.sha256],
)
def test_real_files_are_those_of_the_catalogue(name: str, file: CatalogueFile) -> None:
    path = Path(os.environ["RARENODE_DATA"]) / file.path
    content = path.read_bytes()
    assert len(content) == file.size
    assert hashlib.sha256(content).hexdigest() == file.sha256
    entry, read = find_entry(name), read_arff(path)
    assert any("/" in node for node in read.hierarchy.nodes) == (entry.kind == "tree")
    assert read.X.shape == (file.rows, entry.features)
    assert (len(read.hierarchy.nodes), len(read.hierarchy.edges)) == (entry.nodes, entry.edges)
    assert set(entry.unscored) <= set(read.hierarchy.nodes)
