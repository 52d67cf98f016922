"""A training so small that a test can run it many times."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from rarenode import make_hierarchical
from rarenode.data.dataset import Dataset
from rarenode.training import Settings, TrainedModel, TrainingRows
from rarenode.training.history import EpochRecord
from rarenode.training.progress import Outlook, Silent


@cache
def data() -> Dataset:
    return make_hierarchical(rows=200, nodes=20, depth=3, features=8)


@cache
def rows() -> TrainingRows:
    return TrainingRows.from_dataset(data())


def settings(**changes: Any) -> Settings:
    small = {"hidden": 16, "batch_size": 16, "epochs": 3, "learning_rate": 1e-3, "checkpoint_minutes": None}
    return Settings(**(small | changes))


def same(ours: TrainedModel, theirs: TrainedModel) -> bool:
    """Whether parameters and recorded losses are the same, bit for bit."""
    arrays = all(np.array_equal(array, theirs.parameters[name]) for name, array in ours.parameters.items())
    return arrays and outcomes(ours) == outcomes(theirs)


def outcomes(model: TrainedModel) -> list[tuple[Any, ...]]:
    return [(record.epoch, record.loss, record.valid) for record in model.history]


class Recorder(Silent):
    """Keeps what it is told; does ``at_batch`` at a batch, counted from 1 over all epochs."""

    def __init__(self, at_batch: int | None = None, action: Any = None) -> None:
        self.at_batch, self.action = at_batch, action
        self.outlook: Outlook | None = None
        self.batches: list[tuple[int, int]] = []
        self.losses: list[float] = []
        self.records: list[EpochRecord] = []
        self.is_finished = False

    def started(self, outlook: Outlook) -> None:
        self.outlook = outlook

    def batch(self, epoch: int, batch: int, loss: float) -> None:
        self.batches.append((epoch, batch))
        self.losses.append(loss)
        if len(self.batches) == self.at_batch:
            self.action()

    def epoch(self, record: EpochRecord) -> None:
        self.records.append(record)

    def finished(self) -> None:
        self.is_finished = True
