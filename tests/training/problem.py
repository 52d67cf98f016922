"""A training so small that a test can run it many times."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode import make_hierarchical
from rarenode.config import Settings
from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.data.preparation import Preparation
from rarenode.training import Callback, EpochRecord, Plan, TrainedModel


@cache
def data() -> DatasetSplits:
    return make_hierarchical(rows=200, nodes=20, depth=3, features=8)


@cache
def rows() -> Dataset:
    return data().train_and_valid


@cache
def prepared() -> Dataset:
    """The rows as the network gets them."""
    return replace(rows(), X=Preparation.fit(rows().X).apply(rows().X))


def validation() -> Dataset:
    valid = data().valid
    assert valid is not None
    return valid


def with_labels(rows: Dataset, labelled: NDArray[np.bool_]) -> Dataset:
    """The rows, of which only some have labels."""
    known = np.repeat(labelled[:, None], len(rows.hierarchy), axis=1)
    return replace(rows, Y=rows.Y & known, known=known)


def settings(**changes: Any) -> Settings:
    """The preset ``paper``, small: one network, trained to the end, decided at 0.5."""
    small = {"hidden_size": 16, "batch_size": 16, "epochs": 3, "learning_rate": 1e-3, "checkpoint_minutes": None}
    return Settings.preset("paper", **(small | changes))


def same(ours: TrainedModel, theirs: TrainedModel) -> bool:
    """Whether parameters and recorded losses are the same, bit for bit."""
    there = theirs.model.arrays()
    arrays = all(np.array_equal(array, there[name]) for name, array in ours.model.arrays().items())
    return arrays and outcomes(ours) == outcomes(theirs)


def outcomes(model: TrainedModel) -> list[tuple[Any, ...]]:
    return [(record.epoch, record.loss, record.valid) for record in model.history]


class Recorder(Callback):
    """Keeps what it is called with; runs ``action`` at the batch ``at_batch``, counted from 1 over all epochs."""

    def __init__(self, at_batch: int | None = None, action: Any = None) -> None:
        self.at_batch, self.action = at_batch, action
        self.plan: Plan | None = None
        self.batches: list[tuple[int, int]] = []
        self.losses: list[float] = []
        self.records: list[EpochRecord] = []
        self.is_finished = False

    def on_start(self, plan: Plan) -> None:
        self.plan = plan

    def on_batch(self, epoch: int, batch: int, loss: float) -> None:
        self.batches.append((epoch, batch))
        self.losses.append(loss)
        if len(self.batches) == self.at_batch:
            self.action()

    def on_epoch(self, record: EpochRecord) -> None:
        self.records.append(record)

    def on_end(self) -> None:
        self.is_finished = True
