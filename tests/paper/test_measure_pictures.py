"""Trainings on a few dozen pictures with a tiny encoder, from the cell to the record, as specs of images have them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest

from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.data.table_options import TableOptions
from rarenode.errors import Interrupted
from rarenode.paper import as_published, grid, pictures
from rarenode.paper import measure as measuring
from rarenode.paper.grid import Cell
from rarenode.paper.judge import judge
from rarenode.paper.measure import divide, load_once, measure, predict_unseen
from rarenode.paper.pictures import PictureDataset, fraction_of, load_pictures
from rarenode.paper.record import Record
from rarenode.paper.spec import Protocol
from rarenode.paper.store import read_nodes, read_record, work_folder, write_record
from rarenode.training.checkpoint import FILE as CHECKPOINT
from tests.encoders import SIZE, encoder_folder, reef
from tests.paper.test_runner import StopAfter

__all__ = ["encoder_folder", "reef"]

pytestmark = pytest.mark.usefixtures("one_thread")
TINY_HEADS: dict[str, Any] = {
    "image_size": SIZE, "n_members": 2, "n_layers": 2, "hidden_size": 6, "dropout": 0.0, "batch_size": 16, "epochs": 1,
    "learning_rate": 0.02, "checkpoint_minutes": None,
}  # fmt: skip


@pytest.fixture(autouse=True)
def small(reef: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[DatasetSplits]:
    """While it lasts, the only dataset of pictures is a small one that was drawn."""

    def load(_: Path) -> Dataset:
        how = TableOptions(image="image", images=str(reef), partition="partition", labels="taxa")  # type: ignore[arg-type]
        return Dataset.read(reef / "labels.csv", **how.model_dump(exclude_unset=True))

    known = MappingProxyType({"small": PictureDataset(load, 45, 13)})
    for module in (pictures, measuring, grid, as_published):
        monkeypatch.setattr(module, "PICTURES", known)
    for cached in (load_once, load_pictures):
        cached.cache_clear()
    yield load_once("small", None)
    for cached in (load_once, load_pictures):
        cached.cache_clear()


def cell_of(
    encoder: Path | str, protocol: Protocol = "paper", *, factor: float | None = None, fraction: float | None = None,
    **changes: Any,
) -> Cell:  # fmt: skip
    settings = as_published.settings_for("small", encoder=str(encoder), **TINY_HEADS | changes)
    return Cell("small", settings, protocol, factor, fraction)


def counts(record: Record) -> Any:
    return record.at_half.summary, record.at_half.nodes


def watch(monkeypatch: pytest.MonkeyPatch, name: str) -> list[tuple[Any, dict[str, Any]]]:
    """The rows and the options that one of the functions that `measure` uses is called with."""
    calls: list[tuple[Any, dict[str, Any]]] = []
    original = getattr(measuring, name)

    def called(rows: Any, *arguments: Any, **options: Any) -> Any:
        calls.append((rows, options))
        return original(rows, *arguments, **options)

    monkeypatch.setattr(measuring, name, called)
    return calls


class TestFrozen:
    def test_a_record_of_all_rows(self, encoder_folder: Path, small: DatasetSplits) -> None:
        cell = cell_of(encoder_folder, factor=0.5)
        record, nodes = measure(cell)
        assert record.is_of(cell)
        assert record.at_half.summary.nodes == len(small.hierarchy) - 1
        assert record.at_half.steps_per_epoch == -(-len(small.train_and_valid) // 16)
        assert nodes.hierarchy == small.hierarchy.fingerprint
        assert list(nodes.training_rows) == small.train_and_valid.Y.sum(axis=0).tolist()
        assert list(nodes.test_rows) == small.test.Y.sum(axis=0).tolist()
        assert nodes.scored[0] is False

    def test_the_factor_decides_what_heads_see(self, encoder_folder: Path) -> None:
        """More epochs, so that heads have learned to tell embeddings apart."""
        found = [counts(measure(cell_of(encoder_folder, factor=f, seed=3, epochs=8))[0]) for f in (None, 0.0, 0.0)]
        assert found[0] != found[1]
        assert found[1] == found[2]

    def test_it_is_found_again_in_a_folder(self, encoder_folder: Path, tmp_path: Path) -> None:
        cell = cell_of(encoder_folder, factor=0.25)
        record, nodes = measure(cell)
        write_record(tmp_path, record, nodes)
        assert read_record(tmp_path, cell) == record
        assert read_nodes(tmp_path, "small") == nodes
        assert read_record(tmp_path, replace(cell, factor=None)) is None

    def test_a_training_that_was_cut_continues_and_is_the_same(self, encoder_folder: Path, tmp_path: Path) -> None:
        cell = cell_of(encoder_folder, factor=0.5, epochs=4)
        whole, _ = measure(cell)
        work = work_folder(tmp_path, cell)
        with pytest.raises(Interrupted):
            measure(cell, work=work, callback=StopAfter(5))
        assert (work / CHECKPOINT).is_file()
        rest = StopAfter(1000)
        continued, _ = measure(cell, work=work, callback=rest)
        assert 1000 - rest.steps == 4 * whole.at_half.steps_per_epoch - 5
        assert counts(continued) == counts(whole)


class TestAPartOfTheRows:
    def test_the_encoder_is_trained_on_these_rows_alone(
        self, encoder_folder: Path, small: DatasetSplits, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        calls = watch(monkeypatch, "train_model")
        cell = cell_of(f"random:{encoder_folder}", fraction=0.3, train_encoder=True, augmentation="none")
        record, nodes = measure(cell)
        assert calls[0][0].ids == fraction_of(small, 0.3).ids
        assert record.is_of(cell)
        assert (record.engine, record.fraction, record.factor) == ("torch", 0.3, None)
        # all trainings on a dataset share these, so they are of all rows
        assert list(nodes.training_rows) == small.train_and_valid.Y.sum(axis=0).tolist()

    def test_batches_are_not_larger_than_the_rows(self, encoder_folder: Path, small: DatasetSplits) -> None:
        """As in the paper; the settings in the record stay those of the cell."""
        cell = cell_of(encoder_folder, fraction=0.1, batch_size=128)
        record, _ = measure(cell)
        assert record.at_half.steps_per_epoch == 1
        assert record.settings.batch_size == 128

    def test_a_training_of_the_encoder_that_was_cut_is_the_same(self, encoder_folder: Path, tmp_path: Path) -> None:
        how: dict[str, Any] = {"train_encoder": True, "augmentation": "none", "batch_size": 8, "epochs": 3}
        cell = cell_of(f"random:{encoder_folder}", fraction=0.3, **how)
        whole, _ = measure(cell)
        with pytest.raises(Interrupted):
            measure(cell, work=tmp_path, callback=StopAfter(3))
        assert counts(measure(cell, work=tmp_path)[0]) == counts(whole)


class TestDecisions:
    def test_thresholds_from_out_of_fold_predictions(self, encoder_folder: Path, tmp_path: Path) -> None:
        cell = cell_of(encoder_folder, "cross_fit")
        rows = divide(load_once("small", None), "cross_fit")
        found = predict_unseen(cell, rows, work=tmp_path / "work")
        assert found.held_out.shape == rows.training.Y.shape
        assert found.test.shape == rows.splits.test.Y.shape
        assert found.training.is_of(cell)
        record = judge(rows, found, ("fixed", "expected_f1"))
        write_record(tmp_path, record)
        assert read_record(tmp_path, cell) == record
        assert record.decided.strategies == ("fixed", "expected_f1")
        best = record.decided.find("expected_f1")
        assert best is not None
        assert best.test.nodes == 12

    def test_embeddings_are_standardised_unlike_the_papers(
        self, encoder_folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        frozen, crossed = watch(monkeypatch, "train_model"), watch(monkeypatch, "cross_fit")
        measure(cell_of(encoder_folder))
        predict_unseen(cell_of(encoder_folder, "cross_fit"), divide(load_once("small", None), "cross_fit"))
        assert [how["prepare"] for _, how in frozen] == [False]
        assert [how["prepare"] for _, how in crossed] == [True]

    def test_the_training_factor_is_that_of_the_encoder(
        self, encoder_folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        crossed, rows = watch(monkeypatch, "cross_fit"), divide(load_once("small", None), "cross_fit")
        half = predict_unseen(cell_of(encoder_folder, "cross_fit", factor=0.5), rows)
        predict_unseen(cell_of(encoder_folder, "cross_fit"), rows)
        assert len({how["encoder"].fingerprint for _, how in crossed}) == 2
        assert half.training.factor == 0.5
