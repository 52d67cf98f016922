"""A model together with probabilities of rows that it was not trained on: what decisions are fitted to.

On rows that it was trained on a model is surer than it will ever be again. There are two ways to have others:

* `hold_out` sets rows aside. One training, but the rows set aside teach the model nothing.
* `cross_fit` deals the rows into folds, trains a model for each on all the others, and asks it about its fold; then the
  model is trained once more, on all rows. No row is wasted; it takes one training more than there are folds.

With ``early_stopping`` in the settings, a training stops when its validation AP on the rows set aside no longer rises.
The last training of `cross_fit` has no such rows: it runs for the median of the folds' best epochs.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from rarenode.data.dataset import Split
from rarenode.data.split import HierarchicalSplit, folds
from rarenode.errors import ArgumentError, ResumeError
from rarenode.thresholds.coherence import Rule
from rarenode.thresholds.strategy import Strategy
from rarenode.training.checkpoint import FILE as CHECKPOINT
from rarenode.training.checkpoint import remove_checkpoint
from rarenode.training.loop import train
from rarenode.training.model_folder import FILES, RECORD
from rarenode.training.progress import Watch
from rarenode.training.rows import TrainingRows
from rarenode.training.settings import Settings
from rarenode.training.trained import TrainedModel

Indices = NDArray[np.int64]
FOLD = ".fold-"
"""Begins the name of the folder of a fold's model; its number follows. Hidden, as no run of a user's would be."""
ALL_ROWS = "all_rows"
"""The fingerprint, in a fold's model, of the rows that were dealt into folds."""


@dataclass(frozen=True, eq=False)
class Unseen:
    """A model, and what can be known of it on rows that it has not seen."""

    model: TrainedModel
    Y: NDArray[np.bool_]
    """(rows, nodes): labels of the unseen rows."""
    probs: NDArray[np.float32]
    """(rows, nodes): their probabilities, from models that were not trained on them."""
    prior: NDArray[np.float64]
    """(nodes,): the share of all rows that carry each node."""
    rows: Indices
    """Which of all rows these are."""
    taught_by: Indices
    """(nodes,): how many rows with the node the models learnt from that were asked about its rows. Models of folds
    differ in that; it is their mean over the node's rows, rounded down, so that 0 means that none had seen any."""

    def decide(self, strategy: Strategy, rule: Rule) -> TrainedModel:
        """The model, which now predicts with thresholds that the strategy has found on the unseen rows."""
        return self.model.with_thresholds(strategy.fit(self.probs, self.Y, prior=self.prior, rule=rule))


def hold_out(
    rows: TrainingRows,
    settings: Settings,
    share: float = 0.2,
    *,
    folder: Path | str | None = None,
    resume: bool = False,
    watch: Watch | None = None,
) -> Unseen:
    """Train on all rows but a share, which `HierarchicalSplit` sets aside; other arguments are those of `train`."""
    kept, aside = HierarchicalSplit(share, settings.seed).split(rows.Y, rows.hierarchy)
    return hold_out_rows(rows, settings, kept, aside, folder=folder, resume=resume, watch=watch)


def hold_out_rows(
    rows: TrainingRows,
    settings: Settings,
    kept: Indices,
    aside: Indices,
    *,
    folder: Path | str | None = None,
    resume: bool = False,
    watch: Watch | None = None,
    title: str = "",
) -> Unseen:
    """Train on some of the rows, and ask about others."""
    X, Y = rows.X[aside], rows.Y[aside]
    valid = None if settings.early_stopping is None else Split(X, Y)
    model = train(rows.take(kept), settings, valid=valid, folder=folder, resume=resume, watch=watch, title=title)
    return Unseen(model, Y, model.predict_proba(X), rows.Y.mean(axis=0), aside, model.training_positives)


def cross_fit(
    rows: TrainingRows,
    settings: Settings,
    k: int = 3,
    *,
    folder: Path | str | None = None,
    resume: bool = False,
    watch: Watch | None = None,
) -> Unseen:
    """Train ``k`` times on all rows but a fold, then on all rows; other arguments are those of `train`.

    Models of folds that are done lie in ``folder`` until `remove_folds`, so that resuming trains only what is missing.
    """
    if settings.early_stopping is not None and settings.schedule != "constant" and settings.schedule_by == "epoch":
        raise ArgumentError(
            "a schedule by epochs moves over all of them, and early stopping with folds ends the last training sooner; "
            "set early_stopping to 0, or schedule_by to batch"
        )
    folder = None if folder is None else Path(folder)
    probs = np.empty(rows.Y.shape, dtype=np.float32)
    best_epochs = []
    total = rows.Y.sum(axis=0, dtype=np.int64)
    taught = np.zeros(len(rows.hierarchy), dtype=np.int64)
    for number, (kept, aside) in enumerate(folds(rows.Y, rows.hierarchy, k, settings.seed), start=1):
        part = None if folder is None else folder / f"{FOLD}{number}"
        # Early stopping looks at the rows set aside, which the fingerprint of those trained on does not know.
        dealt = {
            "rows": rows.take(kept).fingerprint,
            "hierarchy": rows.hierarchy.fingerprint,
            ALL_ROWS: rows.fingerprint,
        }
        model = _trained_before(part, settings, dealt) if resume else None
        if model is None:
            title = f"fold {number} of {k}"
            unseen = hold_out_rows(rows, settings, kept, aside, folder=part, resume=resume, watch=watch, title=title)
            model, probs[aside] = unseen.model, unseen.probs
            if part is not None:
                replace(model, fingerprints={**model.fingerprints, **dealt}).save(part)
                remove_checkpoint(part)
        else:
            probs[aside] = model.predict_proba(rows.X[aside])
        best_epochs.append(best_epoch(model))
        here = rows.Y[aside].sum(axis=0, dtype=np.int64)
        taught += here * (total - here)
    final = settings
    if settings.early_stopping is not None:
        final = settings.model_copy(update={"epochs": round(median(best_epochs)), "early_stopping": None})
    model = train(rows, final, folder=folder, resume=resume, watch=watch, title="all rows")
    return Unseen(model, rows.Y, probs, rows.Y.mean(axis=0), np.arange(len(rows)), taught // np.maximum(total, 1))


def best_epoch(model: TrainedModel) -> int:
    """The epoch with the best validation AP, the first of equally good ones; the last, where none was measured."""
    measured = [(record.valid.ap, -record.epoch) for record in model.history if record.valid is not None]
    return -max(measured)[1] if measured else model.history[-1].epoch


def fold_folders(folder: Path | str) -> list[Path]:
    """The folders of folds; others may have put things with such names there."""
    parts = Path(folder).glob(f"{FOLD}*")
    return [part for part in parts if part.name.removeprefix(FOLD).isdecimal() and part.is_dir()]


def remove_folds(folder: Path | str) -> None:
    """Take away the models of folds, once the model that they were for is kept."""
    for part in fold_folders(folder):
        for name in (*FILES, CHECKPOINT):  # a kill may have left the last checkpoint beside the model
            (part / name).unlink(missing_ok=True)
        with suppress(OSError):  # someone keeps other things in it
            part.rmdir()


def _trained_before(part: Path | None, settings: Settings, fingerprints: Mapping[str, str]) -> TrainedModel | None:
    if part is None or not (part / RECORD).exists():
        return None
    model = TrainedModel.load(part)
    then, now = model.settings.decisive, settings.decisive
    told = [
        f"{name} was {then[name]!r} and is now {now[name]!r}"
        for name in then
        if then[name] != now[name] and name != "engine"  # engines compute the same
    ]
    if not fingerprints.items() <= model.fingerprints.items():
        told.append("the rows or the hierarchy are not the same")
    if told:
        raise ResumeError(f"{part} holds the model of another training: {'; '.join(told)}; choose another folder")
    return model
