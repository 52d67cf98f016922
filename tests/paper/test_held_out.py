"""Protocols on a dataset of some rows: who learns from what, and who is asked about what."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rarenode.data.dataset import DatasetSplits
from rarenode.data.split import HierarchicalSplit
from rarenode.errors import ArgumentError
from rarenode.paper.as_published import load_as_published
from rarenode.paper.grid import Cell
from rarenode.paper.measure import divide, load_once, predict_unseen
from rarenode.paper.spec import Protocol
from rarenode.training import train_model
from tests.paper.small_grid import tiny_alone, tiny_cell

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module", autouse=True)
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The catalogue has one dataset, named tiny; where its files are."""
    with tiny_alone(tmp_path_factory.mktemp("data")) as folder:
        yield folder


@pytest.fixture(scope="module")
def data(root: Path) -> DatasetSplits:
    return load_as_published("tiny", root)


def cell(protocol: Protocol, **changes: Any) -> Cell:
    return tiny_cell(protocol, **({"epochs": 3} | changes))


class TestDivision:
    def test_validation_rows_are_held_out(self, data: DatasetSplits, root: Path) -> None:
        rows = divide(load_once("tiny", root), "held_out")
        assert data.valid is not None
        np.testing.assert_array_equal(rows.training.X, data.train.X)
        assert rows.training.n_counted is None
        np.testing.assert_array_equal(rows.held_out.X, data.valid.X)
        np.testing.assert_array_equal(rows.held_out.Y, data.valid.Y)
        assert rows.training_positives.tolist() == data.train.Y.sum(axis=0).tolist()
        assert rows.prior.tolist() == pytest.approx((data.train.Y.sum(axis=0) / 40).tolist())

    def test_without_any_a_fifth_of_the_training_rows_is(self, data: DatasetSplits) -> None:
        rows = divide(replace(data, valid=None), "held_out")
        kept, aside = HierarchicalSplit(0.2, 0).split(data.train.Y, data.hierarchy)
        np.testing.assert_array_equal(rows.training.X, data.train.X[kept])
        np.testing.assert_array_equal(rows.training.Y, data.train.Y[kept])
        np.testing.assert_array_equal(rows.held_out.X, data.train.X[aside])
        np.testing.assert_array_equal(rows.held_out.Y, data.train.Y[aside])
        assert rows.training_positives.tolist() == data.train.Y[kept].sum(axis=0).tolist()

    def test_cross_fitting_holds_every_row_out_and_trains_on_all(self, data: DatasetSplits) -> None:
        rows = divide(data, "cross_fit")
        assert rows.training.fingerprint == data.train_and_valid.fingerprint
        np.testing.assert_array_equal(rows.held_out.Y, rows.training.Y)
        assert len(rows.held_out) == 40 + 15

    def test_the_paper_holds_nothing_out(self, data: DatasetSplits) -> None:
        with pytest.raises(ArgumentError, match="'paper' holds out no rows"):
            divide(data, "paper")


class TestScores:
    def test_they_are_the_models_that_never_saw_the_rows(self, data: DatasetSplits, root: Path) -> None:
        wanted = cell("held_out")
        scores = predict_unseen(wanted, divide(data, wanted.protocol))
        model = train_model(data.train, wanted.settings, prepare=False)
        assert data.valid is not None
        np.testing.assert_array_equal(scores.held_out, model.predict_proba(data.valid.X))
        np.testing.assert_array_equal(scores.test, model.predict_proba(data.test.X))
        assert scores.training.is_of(wanted)
        assert (scores.training.engine, scores.epochs, scores.training.threads) == ("torch", 3, 1)
        assert scores.training.seconds > 0

    def test_cross_fitting_stops_early_and_tells_of_every_row(self, data: DatasetSplits, root: Path) -> None:
        wanted = cell("cross_fit", patience=1, epochs=8)
        scores = predict_unseen(wanted, divide(data, wanted.protocol))
        assert scores.held_out.shape == (55, 6)
        assert scores.test.shape == data.test.Y.shape
        assert 1 <= scores.epochs <= 8
        assert scores.training.settings == wanted.settings
        rows = data.train_and_valid
        everything = train_model(rows, wanted.settings.changed(patience=None), prepare=False)
        seen = everything.predict_proba(rows.X)
        assert not np.allclose(scores.held_out, seen)  # folds were not seen by their models
