"""`train`: the loop, from rows and settings to a trained model.

Everything random is a function of the seed and of where the training is: the order of rows of (seed, epoch), dropout
of (seed, step). There is no generator whose state would have to be saved, and a training that goes on from a checkpoint
is the one that never stopped, bit for bit.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from rarenode._io.arrays import Arrays
from rarenode._io.files import sole_use
from rarenode.data.dataset import Split
from rarenode.engines import Adam, Engine, Objective, make_engine
from rarenode.errors import ArgumentError, Interrupted, TrainingError
from rarenode.metrics import Summary, summary
from rarenode.models import Forest, grow_forest, initial_parameters
from rarenode.objective import NodeWeights, WeightSchedule, node_weights
from rarenode.objective.loss import Reduction
from rarenode.resampling import make_resampler
from rarenode.training.checkpoint import Checkpoints, Position, TrainingKey
from rarenode.training.history import EpochRecord
from rarenode.training.inference import mean_probs
from rarenode.training.interruption import hold_interrupts
from rarenode.training.progress import Outlook, Silent, Watch
from rarenode.training.rows import TrainingRows, check_features, fingerprint_arrays
from rarenode.training.settings import Settings
from rarenode.training.trained import TrainedModel, current_versions

BEST = "best."
"""The prefix of the best epoch's parameters among a checkpoint's arrays."""
LARGE_FEATURE = 1e4
"""Standardised features stay far below this."""


def train(
    rows: TrainingRows,
    settings: Settings,
    *,
    valid: Split | None = None,
    folder: Path | str | None = None,
    resume: bool = False,
    watch: Watch | None = None,
    title: str = "",
) -> TrainedModel:
    """Train a model.

    Args:
        rows: what to learn from.
        settings: how.
        valid: rows to measure after each epoch; early stopping needs them.
        folder: where checkpoints are kept; None keeps none. The last one stays until `remove_checkpoint`, so that a
            crash before the model is saved does not cost the training.
        resume: go on from the folder's checkpoint; without one, begin.
        watch: is told what happens.
        title: which of several trainings this is, for the watch to show.

    Returns:
        The model. It knows nothing of how its rows were prepared: `TrainedModel.with_source` adds that.

    Raises:
        TrainingError: the loss is no longer a number; the message says where and why. The last checkpoint stays.
        Interrupted: Ctrl-C. A checkpoint is saved, and the message says how to go on.
        ResumeError: the folder's checkpoint is of another training, or ``resume`` is not set and one is there.
        FileFormatError: the folder's checkpoint is damaged.
    """
    _check_valid(rows, settings, valid)
    folder = None if folder is None else Path(folder)
    run = _Run(rows, settings, valid, folder, Silent() if watch is None else watch, title)
    with nullcontext() if folder is None else sole_use(folder), hold_interrupts() as release_interrupt:
        run.begin(resume)
        try:
            while not run.is_over:
                while run.at.batch < run.batches:
                    run.take_step()
                    release_interrupt()
                run.end_epoch()
                release_interrupt()
            run.keep()
            parameters, forest = run.final_parameters(), run.grow()
            release_interrupt()
        except KeyboardInterrupt:
            raise Interrupted(run.stop()) from None
        finally:
            run.watch.finished()
    return TrainedModel(
        shape=run.shape,
        parameters=parameters,
        hierarchy=rows.hierarchy,
        scored=rows.scored,
        settings=settings,
        engine=run.engine.name,
        history=tuple(run.at.history),
        training_positives=rows.Y.sum(axis=0, dtype=np.int64),
        versions=current_versions(),
        fingerprints={
            "rows": rows.fingerprint,
            "hierarchy": rows.hierarchy.fingerprint,
            "settings": settings.fingerprint,
        },
        forest=forest,
    )


def row_order(rows: int, seed: int, epoch: int) -> NDArray[np.int64]:
    """The order in which an epoch, counted from 0, goes through the rows."""
    return np.random.Generator(np.random.Philox(key=np.array([seed, epoch], dtype=np.uint64))).permutation(rows)


class _Run:
    """One training under way: what is fixed, the engine, and how far it has come."""

    def __init__(
        self,
        rows: TrainingRows,
        settings: Settings,
        valid: Split | None,
        folder: Path | None,
        watch: Watch,
        title: str,
    ) -> None:
        self.settings, self.valid, self.folder, self.watch, self.title = settings, valid, folder, watch, title
        resampler = make_resampler(settings.resample, rows.hierarchy, settings.seed)
        self.original = rows
        self.rows = rows if resampler is None else rows.resampled(resampler)
        self.shape = settings.shape(rows.features, len(rows.hierarchy))
        self.batches = math.ceil(len(self.rows) / settings.batch_size)
        self.weights = _node_weights(self.rows, settings)
        self.schedule = WeightSchedule(settings.schedule, settings.schedule_by, settings.schedule_towards, settings.mix)
        self.at = Position()
        self.engine = self._make_engine()
        self.order = row_order(len(self.rows), settings.seed, 0)
        self.best: Arrays = {}
        self.is_whole = True
        """Whether engine and position are of the same moment; while a step is taken they are not."""
        key = TrainingKey(
            rows=rows.fingerprint,
            valid=None if valid is None else fingerprint_arrays(valid.X, valid.Y),
            hierarchy=rows.hierarchy.fingerprint,
            engine=self.engine.name,
            settings={name: value for name, value in settings.decisive.items() if name != "engine"},
        )
        self.checkpoints = Checkpoints(folder, key, settings)

    def begin(self, resume: bool) -> None:
        """Go to the checkpoint, if there is one to go on from."""
        best = {BEST + name: array for name, array in self._parameters().items()}
        found = self.checkpoints.load(resume, self.engine.state(), best)
        if found is not None:
            self.at, arrays = found
            self.best = {name: arrays.pop(name) for name in best if name in arrays}
            self.engine.restore(arrays)
            self.order = row_order(len(self.rows), self.settings.seed, self.at.epoch)
        outlook = Outlook(self.engine.name, self.settings.epochs, self.batches, self.engine.steps, self.title)
        self.watch.started(outlook)

    @property
    def is_over(self) -> bool:
        """Whether all epochs are done, or patience is at its end."""
        patience = self.settings.early_stopping
        out_of_patience = patience is not None and self.at.epoch - self.at.best_epoch >= patience
        return self.at.epoch >= self.settings.epochs or out_of_patience

    def take_step(self) -> None:
        """Train on the next batch."""
        at, size = self.at, self.settings.batch_size
        chosen = self.order[at.batch * size : (at.batch + 1) * size]
        self.is_whole = False
        began = perf_counter()
        weights = None if self.settings.schedule == "constant" else self._weights_now()
        loss = self.engine.step(self.rows.X[chosen], self.rows.Y[chosen], weights)
        at.seconds += perf_counter() - began
        if not math.isfinite(loss):
            raise TrainingError(self._what_went_wrong(f"the loss is {loss}", self._steps + 1))
        at.loss += loss
        at.batch += 1
        self.is_whole = True
        self.watch.batch(at.epoch + 1, at.batch, loss)
        if at.batch < self.batches:
            self.checkpoints.save_if_due(at, self._arrays)

    def end_epoch(self) -> None:
        """Measure, record, and turn to the next epoch."""
        at = self.at
        valid = self._measure()
        self.is_whole = False
        record = EpochRecord(
            epoch=at.epoch + 1,
            loss=at.loss / self.batches,
            seconds=at.seconds,
            steps_per_second=self.batches / max(at.seconds, 1e-9),
            valid=valid,
        )
        may_stop = self.settings.early_stopping is not None
        if may_stop and valid is not None and (at.best_ap is None or valid.ap > at.best_ap):
            at.best_ap, at.best_epoch = valid.ap, record.epoch
            self.best = {BEST + name: array for name, array in self._parameters().items()}
        at.history.append(record)
        at.epoch, at.batch, at.loss, at.seconds = at.epoch + 1, 0, 0.0, 0.0
        self.order = row_order(len(self.rows), self.settings.seed, at.epoch)
        self.is_whole = True
        self.watch.epoch(record)
        self.checkpoints.save_if_due(at, self._arrays)

    def keep(self) -> None:
        """Save the end of the training too: if the model cannot be written, it can be tried again."""
        self.checkpoints.save(self.at, self._arrays())

    def final_parameters(self) -> Arrays:
        """Those of the best epoch, where early stopping looked for it, or the last."""
        best = {name.removeprefix(BEST): array for name, array in self.best.items()}
        return self._finite(best or self._parameters())

    def grow(self) -> Forest | None:
        """The forest beside the network, if there is to be one: grown on the rows without clones."""
        trees, rows = self.settings.trees, self.original
        if not trees:
            return None
        self.watch.growing(trees)
        return grow_forest(rows.X, rows.Y, scored=rows.scored, trees=trees, seed=self.settings.seed)

    def stop(self) -> str:
        """Save, and say how to go on. Half a step, left by an interrupt that could not be held, is never saved."""
        at, epochs = self.at, self.settings.epochs
        place = f"stopped in epoch {min(at.epoch + 1, epochs)} of {epochs} after batch {at.batch} of {self.batches}"
        if self.folder is None:
            return f"{place}. Nothing is saved, as no folder for checkpoints was given"
        if not (self.is_whole and self.checkpoints.save(at, self._arrays())):
            return f"{place}. No checkpoint could be saved; if {self.folder} holds an earlier one, it is as it was"
        return f"{place}. {self.folder} holds a checkpoint: the same again with resume=True (--resume) goes on from it"

    def _make_engine(self) -> Engine:
        settings = self.settings
        as_published: Reduction = "sum" if settings.members > 1 else "mean"
        objective = Objective(
            hierarchy=self.rows.hierarchy,
            weights=self._weights_now(),
            focus=settings.focus,
            u0=settings.u0,
            k=settings.k,
            scored=self.rows.scored,
            reduction=as_published if settings.reduction == "auto" else settings.reduction,
        )
        parameters = initial_parameters(self.shape, settings.seed)
        adam = Adam(settings.learning_rate, settings.weight_decay)
        return make_engine(settings.engine, self.shape, parameters, objective, adam, settings.seed)

    def _weights_now(self) -> NodeWeights | None:
        if self.weights is None:
            return None
        return self.schedule.weights(self.weights, self.at.batch, self.batches, self.at.epoch, self.settings.epochs)

    def _measure(self) -> Summary | None:
        if self.valid is None:
            return None
        probs = mean_probs(self.engine.logits, self.valid.X, self.shape, self.rows.hierarchy)
        return summary(self.valid.Y, probs, scored=self.rows.scored)

    def _parameters(self) -> Arrays:
        state = self.engine.state()
        return {name: state[name] for name in self.shape.parameter_shapes}

    def _arrays(self) -> Arrays:
        return self._finite(self.engine.state()) | self.best

    def _finite(self, arrays: Arrays) -> Arrays:
        """A loss is from before its step, so the last step may have gone wrong unseen: that is never saved."""
        for name, array in arrays.items():
            if not np.isfinite(array).all():
                raise TrainingError(self._what_went_wrong(f"{name} is no longer finite", self._steps))
        return arrays

    @property
    def _steps(self) -> int:
        return self.at.epoch * self.batches + self.at.batch

    def _what_went_wrong(self, problem: str, step: int) -> str:
        rate, largest = self.settings.learning_rate, float(np.abs(self.rows.X).max())
        if largest > LARGE_FEATURE:
            cause = f"features reach {largest:.3g}, and a network wants them standardised, as Preparation does"
        else:
            cause = f"the learning rate {rate:g} is too large; try {rate / 10:g}"
        epoch, batch = divmod(step - 1, self.batches)
        place = f"epoch {epoch + 1} of {self.settings.epochs}, batch {batch + 1} of {self.batches}"
        return f"{place}: {problem}. Most likely {cause}"


def _node_weights(rows: TrainingRows, settings: Settings) -> NodeWeights | None:
    if settings.weighting == "none":
        return None
    return node_weights(
        rows.split_Y, rows.hierarchy, settings.w0, settings.weighting, settings.classes, side=settings.side
    )


def _check_valid(rows: TrainingRows, settings: Settings, valid: Split | None) -> None:
    if valid is None:
        if settings.early_stopping is not None:
            raise ArgumentError("early_stopping needs validation rows")
        return
    check_features(valid.X, rows.features)
    rows.hierarchy.require_closed(valid.Y)
    if not 0 < len(valid.X) == len(valid.Y):
        raise ArgumentError(f"validation needs rows; X has {len(valid.X)} and Y {len(valid.Y)}")
