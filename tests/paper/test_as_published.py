"""The paper's preparation and hyperparameters."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import numpy as np
import pytest

import rarenode.data.catalogue
from rarenode import load_dataset
from rarenode.config import Settings
from rarenode.data.catalogue import CatalogueEntry, CatalogueFile, catalogue
from rarenode.errors import ArgumentError, UnknownDatasetError
from rarenode.paper import load_as_published, settings_for
from rarenode.paper.as_published import HYPERPARAMETERS, REBUILT

ROWS = {"train": ["1,?", "2,4", "6,8"], "valid": ["?,2", "5,2"], "test": ["7,?", "?,9", "1,1"]}


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The catalogue has a dataset with missing values, and one without validation rows."""
    head = ["@RELATION r", "@ATTRIBUTE a numeric", "@ATTRIBUTE b numeric", "@ATTRIBUTE class hierarchical 1,2", "@DATA"]
    for split, lines in ROWS.items():
        (tmp_path / f"{split}.arff").write_text("\n".join([*head, *(f"{line},1" for line in lines)]) + "\n")

    def entry(name: str, *splits: str) -> CatalogueEntry:
        files = tuple(CatalogueFile(s, PurePosixPath(f"{s}.arff"), len(ROWS[s])) for s in splits)  # type: ignore[arg-type]
        return CatalogueEntry(
            name=name, title="", about="", kind="tree", source="https://example.org/", files=files, features=2, nodes=3,
            edges=2, unscored=("root",), citations=(), licence="",
        )  # fmt: skip

    entries = {"three": entry("three", "train", "valid", "test"), "two": entry("two", "train", "test")}
    monkeypatch.setattr(rarenode.data.catalogue, "catalogue", lambda: entries)
    return tmp_path


class TestPreparation:
    def test_missing_values_are_means_of_their_own_split(self, root: Path) -> None:
        train = np.array([[1, 6], [2, 4], [6, 8]], dtype=float)
        valid = np.array([[5, 2], [5, 2]], dtype=float)
        test = np.array([[7, 5], [4, 9], [1, 1]], dtype=float)
        known = np.concatenate([train, valid])
        found = load_as_published("three", root)
        assert found.valid is not None
        for part, filled in ((found.train, train), (found.valid, valid), (found.test, test)):
            assert part.X.dtype == np.float32
            np.testing.assert_allclose(part.X, (filled - known.mean(axis=0)) / known.std(axis=0), rtol=1e-6)

    def test_without_validation_rows_the_scale_is_that_of_training_rows(self, root: Path) -> None:
        found = load_as_published("two", root)
        assert found.valid is None
        np.testing.assert_allclose(found.train.X.mean(axis=0), 0, atol=1e-6)
        np.testing.assert_allclose(found.train.X.std(axis=0), 1, rtol=1e-6)

    def test_nothing_but_features_differs(self, root: Path) -> None:
        raw, found = load_dataset("three", root), load_as_published("three", root)
        for split in ("train", "valid", "test"):
            np.testing.assert_array_equal(raw.part(split).Y, found.part(split).Y)
        assert raw.hierarchy == found.hierarchy
        assert raw.feature_names == found.feature_names
        assert found.train_and_valid.n_counted == 3
        assert len(found.train_and_valid) == 5


class TestHyperparameters:
    def test_values_of_the_paper(self) -> None:
        seq = settings_for("seq_GO")
        assert (seq.hidden_size, seq.learning_rate, seq.epochs) == (9000, 1e-4, 45)
        assert (seq.n_layers, seq.dropout, seq.batch_size, seq.weight_decay) == (3, 0.7, 4, 1e-5)
        assert (seq.model, seq.weighting, seq.w0, seq.thresholds, seq.patience) == (
            "mlp", "as_published", 0.25, "fixed", None,
        )  # fmt: skip
        diatoms = settings_for("diatoms", n_members=10, epochs=2)
        assert (diatoms.hidden_size, diatoms.learning_rate, diatoms.epochs, diatoms.n_members) == (2000, 1e-5, 2, 10)

    def test_every_dataset_of_the_catalogue_has_some(self) -> None:
        assert {name.removesuffix(REBUILT) for name in catalogue()} == set(HYPERPARAMETERS)
        assert settings_for("expr_FUN_rebuilt") == settings_for("expr_FUN")

    def test_a_dataset_that_is_not_in_the_paper_has_the_common_ones(self, root: Path) -> None:
        assert settings_for("three") == Settings.preset("paper")

    def test_mistakes(self) -> None:
        with pytest.raises(UnknownDatasetError, match="cellcycle_FUN"):
            settings_for("cellcycle_fan")
        with pytest.raises(ArgumentError, match="hiden_size"):
            settings_for("enron", hiden_size=3)
