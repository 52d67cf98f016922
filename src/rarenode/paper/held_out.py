"""`score`: train one cell as its protocol says, and ask it about the rows that it did not see.

Rows are the same for every seed: what differs between the trainings of a method is the training alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import numba
import numpy as np
from numpy.typing import NDArray

from rarenode.data.dataset import Dataset, Split
from rarenode.data.split import HierarchicalSplit
from rarenode.errors import ArgumentError
from rarenode.paper.grid import FOLDS, Cell
from rarenode.paper.measure import load_once, machine
from rarenode.paper.scores import Scores, Training
from rarenode.paper.spec import Protocol
from rarenode.training import TrainingRows, train
from rarenode.training.unseen import cross_fit

SPLIT = HierarchicalSplit(share=0.2, seed=0)
"""What is held out of the training rows of a dataset that has no validation rows."""


@dataclass(frozen=True, eq=False)
class DividedRows:
    """A dataset, divided as a protocol says."""

    dataset: Dataset
    training: TrainingRows
    """What the model learns from."""
    held_out: Split
    """What decisions are fitted on. In the protocol ``cross_fit`` these are the training rows."""

    @property
    def training_positives(self) -> NDArray[np.int64]:
        """(nodes,): how many of the training rows carry each node."""
        return np.asarray(self.training.Y.sum(axis=0, dtype=np.int64))

    @property
    def prior(self) -> NDArray[np.float64]:
        """(nodes,): which share of the training rows carries each node."""
        return self.training_positives / len(self.training)


def divide(dataset: Dataset, protocol: Protocol) -> DividedRows:
    """Divide the rows of a dataset.

    Raises:
        ArgumentError: the protocol is ``paper``, which holds no rows out.
    """
    if protocol == "cross_fit":
        rows = TrainingRows.from_dataset(dataset)
        return DividedRows(dataset, rows, Split(rows.X, rows.Y))
    if protocol != "held_out":
        raise ArgumentError(f"the protocol {protocol!r} holds no rows out")
    if dataset.valid is not None:
        return DividedRows(dataset, TrainingRows.from_dataset(dataset, with_valid=False), dataset.valid)
    X, Y = dataset.train.X, dataset.train.Y
    kept, aside = SPLIT.split(Y, dataset.hierarchy)
    rows = TrainingRows(X[kept], Y[kept], dataset.hierarchy, dataset.scored)
    return DividedRows(dataset, rows, Split(X[aside], Y[aside]))


def divided_rows(cell: Cell, root: Path | None = None) -> DividedRows:
    """The rows of a cell; ``root`` is the folder of the data, None that of ``RARENODE_DATA``."""
    return divide(load_once(cell.dataset, root), cell.protocol)


def score(cell: Cell, rows: DividedRows) -> Scores:
    """Train a cell on its rows, and predict those that it did not see."""
    began = perf_counter()
    if cell.protocol == "cross_fit":
        fitted = cross_fit(rows.training, cell.settings, FOLDS)
        model, held_out = fitted.model, fitted.probs
        seconds = perf_counter() - began
    else:
        model = train(rows.training, cell.settings)
        seconds = perf_counter() - began
        held_out = model.predict_proba(rows.held_out.X)
    training = Training(
        dataset=cell.dataset,
        settings=cell.settings,
        protocol=cell.protocol,
        engine=model.engine,
        versions=dict(model.versions),
        machine=machine(),
        threads=numba.get_num_threads(),
        epochs=len(model.history),
        seconds=round(seconds, 3),
    )
    return Scores(training, held_out, model.predict_proba(rows.dataset.test.X))
