"""Protocols on a dataset of some rows: who learns from what, and who is asked about what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rarenode.paper.held_out import divide, divided_rows, score

from rarenode.data.dataset import Dataset, load_dataset
from rarenode.data.split import HierarchicalSplit
from rarenode.errors import ArgumentError
from rarenode.paper.grid import Cell
from rarenode.paper.spec import Protocol
from rarenode.training import Settings, TrainingRows, train
from tests.paper.small_grid import TINY, tiny_alone

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module", autouse=True)
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The catalogue has one dataset, named tiny; where its files are."""
    with tiny_alone(tmp_path_factory.mktemp("data")) as folder:
        yield folder


@pytest.fixture(scope="module")
def data(root: Path) -> Dataset:
    return load_dataset("tiny", root)


def cell(protocol: Protocol, **changes: Any) -> Cell:
    usual = {"engine": "torch", "epochs": 3}
    return Cell("tiny", Settings.from_paper(TINY.hyperparameters, **(usual | changes)), protocol)


class TestDivision:
    def test_validation_rows_are_held_out(self, data: Dataset, root: Path) -> None:
        rows = divided_rows(cell("held_out"), root)
        assert data.valid is not None
        np.testing.assert_array_equal(rows.training.X, data.train.X)
        assert rows.training.split is None
        np.testing.assert_array_equal(rows.held_out.X, data.valid.X)
        np.testing.assert_array_equal(rows.held_out.Y, data.valid.Y)
        assert rows.training_positives.tolist() == data.train.Y.sum(axis=0).tolist()
        assert rows.prior.tolist() == pytest.approx((data.train.Y.sum(axis=0) / 40).tolist())

    def test_without_any_a_fifth_of_the_training_rows_is(self, data: Dataset) -> None:
        rows = divide(replace(data, valid=None), "held_out")
        kept, aside = HierarchicalSplit(0.2, 0).split(data.train.Y, data.hierarchy)
        np.testing.assert_array_equal(rows.training.X, data.train.X[kept])
        np.testing.assert_array_equal(rows.training.Y, data.train.Y[kept])
        np.testing.assert_array_equal(rows.held_out.X, data.train.X[aside])
        np.testing.assert_array_equal(rows.held_out.Y, data.train.Y[aside])
        assert rows.training_positives.tolist() == data.train.Y[kept].sum(axis=0).tolist()

    def test_the_seed_of_a_training_does_not_move_rows(self, root: Path) -> None:
        one, other = (divided_rows(cell("held_out", seed=seed), root) for seed in (0, 1))
        assert one.training.fingerprint == other.training.fingerprint

    def test_cross_fitting_holds_every_row_out_and_trains_on_all(self, data: Dataset) -> None:
        rows = divide(data, "cross_fit")
        assert rows.training.fingerprint == TrainingRows.from_dataset(data).fingerprint
        np.testing.assert_array_equal(rows.held_out.Y, rows.training.Y)
        assert len(rows.held_out) == 40 + 15

    def test_the_paper_holds_nothing_out(self, data: Dataset) -> None:
        with pytest.raises(ArgumentError, match="'paper' holds no rows out"):
            divide(data, "paper")


class TestScores:
    def test_they_are_the_models_that_never_saw_the_rows(self, data: Dataset, root: Path) -> None:
        wanted = cell("held_out")
        scores = score(wanted, divided_rows(wanted, root))
        model = train(TrainingRows.from_dataset(data, with_valid=False), wanted.settings)
        assert data.valid is not None
        np.testing.assert_array_equal(scores.held_out, model.predict_proba(data.valid.X))
        np.testing.assert_array_equal(scores.test, model.predict_proba(data.test.X))
        assert scores.training.is_of(wanted)
        assert (scores.training.engine, scores.training.epochs, scores.training.threads) == ("torch", 3, 1)
        assert scores.training.seconds > 0

    def test_cross_fitting_stops_early_and_tells_of_every_row(self, data: Dataset, root: Path) -> None:
        wanted = cell("cross_fit", early_stopping=1, epochs=8)
        scores = score(wanted, divided_rows(wanted, root))
        assert scores.held_out.shape == (55, 6)
        assert scores.test.shape == data.test.Y.shape
        assert 1 <= scores.training.epochs <= 8
        assert scores.training.settings == wanted.settings
        everything = train(TrainingRows.from_dataset(data), wanted.settings.model_copy(update={"early_stopping": None}))
        seen = everything.predict_proba(TrainingRows.from_dataset(data).X)
        assert not np.allclose(scores.held_out, seen)  # folds were not seen by their models
