"""One training of a cell: rows as its protocol divides them, then scores, or probabilities to decide with.

Rows are the same for every seed, so trainings of a method differ by nothing but the training.
"""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import median
from time import perf_counter

import numba
import numpy as np
from numpy.typing import NDArray

from rarenode._io.text import counted
from rarenode.config import Settings
from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.data.images import Images
from rarenode.data.split import HierarchicalSplit
from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy
from rarenode.metrics import node_scores, summary
from rarenode.models import MlpEnsemble
from rarenode.models.encoder import Encoder
from rarenode.paper.as_published import load_as_published
from rarenode.paper.grid import FOLDS, Cell
from rarenode.paper.own_data import read_own_data
from rarenode.paper.own_training import FittedOwnModel, cross_fit_own_model, fit_own_model, how_of
from rarenode.paper.pictures import PICTURES, encoder_for, fraction_of, load_pictures
from rarenode.paper.record import DatasetNodes, FixedScores, PredictedNodes, Record, Training
from rarenode.paper.spec import Protocol
from rarenode.paper.store import Probabilities
from rarenode.training import Callback, Plan, TrainedModel, train_model
from rarenode.training.embedding import embeddings
from rarenode.training.out_of_fold import cross_fit
from rarenode.training.train import How

SPLIT = HierarchicalSplit(share=0.2, seed=0)
"""Holds out training rows of a dataset that has no validation rows."""
STATUS, CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


# --- rows ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DividedRows:
    """A dataset, divided as a protocol requires."""

    splits: DatasetSplits
    training: Dataset
    """What the model learns from."""
    held_out: Dataset
    """What thresholds are fitted to. Under the protocol ``cross_fit`` these are the training rows."""

    @property
    def training_positives(self) -> NDArray[np.int64]:
        """(nodes,): how many training rows have each node."""
        return np.asarray(self.training.Y.sum(axis=0, dtype=np.int64))

    @property
    def prior(self) -> NDArray[np.float64]:
        """(nodes,): the fraction of training rows that have each node, of those where it is known."""
        known = self.training.known
        return self.training_positives / (len(self.training) if known is None else np.maximum(known.sum(axis=0), 1))


def divide(splits: DatasetSplits, protocol: Protocol) -> DividedRows:
    """Divide the rows of a dataset.

    Raises:
        ArgumentError: the protocol is ``paper``, which holds out no rows.
    """
    if protocol == "cross_fit":
        rows = splits.train_and_valid
        return DividedRows(splits, rows, rows)
    if protocol != "held_out":
        raise ArgumentError(f"the protocol {protocol!r} holds out no rows")
    if splits.valid is not None:
        return DividedRows(splits, splits.train, splits.valid)
    kept, held_out = SPLIT.split(splits.train.Y, splits.hierarchy)
    return DividedRows(splits, splits.train.take(kept), splits.train.take(held_out))


def load_rows(cell: Cell, root: Path | None) -> DatasetSplits:
    """The rows of a training, whose dataset is the spec's own or one that rarenode knows.

    Raises:
        DataError: one's own data cannot be read, or have changed since the training was planned.
    """
    if cell.sources is not None and cell.sources.data is not None:
        return read_own_data(cell.sources.data, cell.own["data"])
    return load_once(cell.dataset, root)


@lru_cache(maxsize=3)
def load_once(name: str, root: Path | None) -> DatasetSplits:
    """`load_as_published`, with a small cache: a grid returns to a dataset for every method."""
    return load_pictures(name, root) if name in PICTURES else load_as_published(name, root)


def embed_all(splits: DatasetSplits, encoder: Encoder | None, settings: Settings) -> None:
    """Compute the embeddings of all parts, unless the encoder will be trained and changes them anyway."""
    if encoder is None or settings.train_encoder:
        return
    for part in (splits.train, splits.valid, splits.test):
        if part is not None:
            embeddings(part.X, encoder)


# --- trainings -----------------------------------------------------------------------------------------------------


def measure(
    cell: Cell, root: Path | None = None, *, work: Path | None = None, callback: Callback | None = None
) -> tuple[Record, DatasetNodes]:
    """Train under the paper's protocol, and score the test rows at the threshold 0.5.

    Args:
        cell: what to train.
        root: the folder of the data; None is that of ``RARENODE_DATA``.
        work: where checkpoints are kept; a training continues from one that is there. None keeps none.
        callback: is called after every step and epoch.
    """
    splits = load_rows(cell, root)
    rows, settings, encoder = splits.train_and_valid, cell.settings, None
    if cell.fraction is not None:
        rows = fraction_of(splits, cell.fraction)
        settings = settings.model_copy(update={"batch_size": min(settings.batch_size, len(rows))})
    if isinstance(rows.X, Images):
        encoder = encoder_for(settings, cell.dataset, cell.factor, rows.X)
        embed_all(splits, encoder, settings)
    _reset_peak()
    steps = _Steps(callback)
    model: TrainedModel | FittedOwnModel
    is_own = "data" in cell.own
    if "model" in cell.own:
        model, size = fit_own_model(cell, rows, prepare=is_own, encoder=encoder), 0
        seconds = model.seconds
    else:
        how: How = {"encoder": encoder, "prepare": is_own, "folder": work, "resume": work is not None}
        how |= {"callback": steps, **how_of(cell, splits.hierarchy)}
        model = train_model(rows, settings, **how)
        seconds = sum(epoch.seconds for epoch in model.history)
        size = 3 * MlpEnsemble.from_settings(settings, model.model.n_features, len(splits.hierarchy)).parameter_bytes
    peak = _peak_bytes()
    test, scored = splits.test, splits.scored
    probs = model.predict_proba(test.X)
    scores = node_scores(test.Y, probs >= 0.5, test.known)
    predicted = np.flatnonzero((scores.predicted > 0) & scored)
    record = Record(
        **dict(_describe(cell, model, seconds)),
        fixed=FixedScores(
            steps_per_epoch=steps.per_epoch,
            summary=summary(test.Y, probs, scored=scored, known=test.known),
            steps_per_second=round(median([epoch.steps_per_second for epoch in model.history] or [0.0]), 2),
            seconds_per_epoch=round(median([epoch.seconds for epoch in model.history] or [0.0]), 4),
            training_bytes=size,
            peak_bytes=peak,
            nodes=PredictedNodes(
                column=tuple(predicted.tolist()),
                predicted=tuple(scores.predicted[predicted].tolist()),
                true_positives=tuple(scores.true_positives[predicted].tolist()),
            ),
        ),
    )
    nodes = DatasetNodes(
        hierarchy=splits.hierarchy.fingerprint,
        names=splits.hierarchy.nodes,
        scored=tuple(scored.tolist()),
        training_rows=tuple(splits.train_and_valid.Y.sum(axis=0, dtype=np.int64).tolist()),
        test_rows=tuple(scores.support.tolist()),
        parents=_parents(splits.hierarchy) if is_own else None,
    )
    return record, nodes


def _parents(hierarchy: Hierarchy) -> tuple[tuple[int, ...], ...]:
    """The places of each node's parents."""
    return tuple(tuple(sorted(hierarchy.index[above] for above in hierarchy.parents(node))) for node in hierarchy.nodes)


def predict_unseen(
    cell: Cell, rows: DividedRows, *, work: Path | None = None, callback: Callback | None = None
) -> Probabilities:
    """Train under a protocol that holds out rows, and predict held-out and test rows; see `measure`."""
    is_own = "data" in cell.own
    how: How = {"prepare": is_own, "folder": work, "resume": work is not None, "callback": callback}
    if isinstance(rows.training.X, Images):
        # The paper trains heads on embeddings as they are; what is beyond the paper standardises them.
        how |= {"prepare": True, "encoder": encoder_for(cell.settings, cell.dataset, cell.factor, rows.training.X)}
        embed_all(rows.splits, how["encoder"], cell.settings)
    if "model" in cell.own:
        return _predict_with_own_model(cell, rows, how)
    how |= how_of(cell, rows.splits.hierarchy)
    if cell.protocol == "cross_fit":
        began = perf_counter()
        settings = cell.settings.changed(cv=FOLDS)
        fitted = cross_fit(rows.training, settings, **how)
        model, held_out, seconds = fitted.model, fitted.probs, perf_counter() - began
    else:
        model = train_model(rows.training, cell.settings, **how)
        held_out, seconds = model.predict_proba(rows.held_out.X), sum(epoch.seconds for epoch in model.history)
    test = model.predict_proba(rows.splits.test.X)
    return Probabilities(_describe(cell, model, seconds), len(model.history), held_out, test)


def _predict_with_own_model(cell: Cell, rows: DividedRows, how: How) -> Probabilities:
    prepare, encoder = how["prepare"], how.get("encoder")
    began = perf_counter()
    if cell.protocol == "cross_fit":
        model, held_out = cross_fit_own_model(cell, rows.training, prepare=prepare, encoder=encoder)
        seconds = perf_counter() - began
    else:
        model = fit_own_model(cell, rows.training, prepare=prepare, encoder=encoder)
        held_out, seconds = model.predict_proba(rows.held_out.X), model.seconds
    test = model.predict_proba(rows.splits.test.X)
    return Probabilities(_describe(cell, model, seconds), 0, held_out, test)


def _describe(cell: Cell, model: TrainedModel | FittedOwnModel, seconds: float) -> Training:
    return Training(
        dataset=cell.dataset,
        settings=cell.settings,
        protocol=cell.protocol,
        factor=cell.factor,
        fraction=cell.fraction,
        own=dict(cell.own) or None,
        engine=model.engine,
        versions=dict(model.versions),
        machine=f"{platform.system()} {platform.machine()}, {counted(os.cpu_count() or 1, 'core')}",
        threads=numba.get_num_threads(),
        seconds=round(seconds, 3),
    )


class _Steps(Callback):
    """Notes the number of steps in an epoch, and passes everything on."""

    def __init__(self, then: Callback | None) -> None:
        self.then = Callback() if then is None else then
        self.per_epoch = 0

    def on_start(self, plan: Plan) -> None:
        """See `Callback`."""
        self.per_epoch = plan.batches
        self.then.on_start(plan)

    def on_batch(self, epoch: int, batch: int, loss: float) -> None:
        """See `Callback`."""
        self.then.on_batch(epoch, batch, loss)


# --- memory --------------------------------------------------------------------------------------------------------


def _reset_peak() -> None:
    """Start to measure the peak of memory again; only Linux can."""
    try:
        CLEAR.write_text("5", encoding="ascii")
    except OSError:
        return


def _peak_bytes() -> int | None:
    try:
        lines = STATUS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), None)
