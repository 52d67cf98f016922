"""`train_network`: the training loop, from prepared rows and settings to a trained ensemble of perceptrons.

Everything random is a function of the seed and of where the training is: the order of rows of (seed, epoch), dropout
of (seed, step). There is no generator whose state would have to be saved, and a training that is resumed from a
checkpoint is the one that never stopped, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import nullcontext
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rarenode._io.arrays import Arrays
from rarenode._io.files import sole_use
from rarenode._io.interrupts import hold_interrupts
from rarenode.config import Settings
from rarenode.data.dataset import Dataset
from rarenode.data.stored import StoredFeatures
from rarenode.engines import Adam, EncoderTraining, Engine, Objective, make_engine, resolve_device
from rarenode.errors import ArgumentError, Interrupted, TrainingError
from rarenode.hierarchy.labels import dense_rows, row_blocks, stack_labels
from rarenode.metrics import Summary, summary
from rarenode.models import Mlp, MlpEnsemble, initial_parameters
from rarenode.models.model import check_input
from rarenode.models.pixels import PixelEncoder
from rarenode.objective import LossFunction, MakeLoss, NodeWeights, WeightSchedule, node_weights
from rarenode.objective.loss import Reduction
from rarenode.resampling import make_resampler
from rarenode.resampling.resampler import Resampler
from rarenode.training.callbacks import Callback, EpochRecord, Plan
from rarenode.training.checkpoint import Checkpoints, Position, TrainingKey
from rarenode.training.shares import smoothed_shares

BEST = "best."
"""The prefix of the best epoch's parameters among a checkpoint's arrays."""
ENCODER = "encoder.module."
"""The prefix of an encoder's weights among an engine's parameters; the rest is its own name for them."""
BLOCK_ROWS, BLOCKS_MIXED = 1024, 64
"""Of rows on disk, a block has so many, and the rows of so many blocks are mixed."""
LOSSES_TOGETHER = 32
"""So many losses stay on a device before their values are looked at, which is to wait for the device."""
LARGE_FEATURE = 1e4
"""Standardised features stay far below this."""


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """The result of `train_network`."""

    model: Mlp
    history: tuple[EpochRecord, ...]
    engine: str
    """The engine that computed the training."""
    encoder_state: Mapping[str, NDArray[Any]] | None = None
    """The weights and buffers of an encoder that was trained, by the names of its own ``state_dict``; else None."""


def train_network(
    rows: Dataset,
    settings: Settings,
    *,
    encoder: PixelEncoder | None = None,
    valid: Dataset | None = None,
    folder: Path | None = None,
    resume: bool = False,
    callback: Callback | None = None,
    title: str = "",
    make_loss: MakeLoss | None = None,
    resampler: Resampler | None = None,
) -> TrainedNetwork:
    """Train an ensemble of perceptrons.

    Args:
        rows: prepared training rows; with an encoder, pixels.
        settings: how to train.
        encoder: stands in front of the perceptrons and is trained with them, unless none of its parameters requires a
            gradient. A copy is trained: the encoder itself stays as it is, so that every fold can begin with it.
        valid: prepared rows to score after each epoch; early stopping needs them.
        folder: where checkpoints are kept; None keeps none. The last one stays until `remove_checkpoint`, so that a
            crash before the model is saved does not cost the training.
        resume: continue from the folder's checkpoint; without one, begin.
        callback: is called after every step and epoch.
        title: which of several trainings this is, for the callback.
        make_loss: makes the loss, in the place of the one that the settings describe; the torch engine computes it.
            Its name is in no fingerprint: a folder of checkpoints is for one loss.
        resampler: in the place of the one that the settings name; likewise.

    Raises:
        TrainingError: the loss is no longer a number; the message says where and why. The last checkpoint stays.
        Interrupted: Ctrl-C. A checkpoint is saved, and the message says how to resume.
        ResumeError: the folder's checkpoint is of another training, or ``resume`` is not set and one is there.
        FileFormatError: the folder's checkpoint is damaged.
    """
    _check_rows(rows.X, None, encoder)
    rows.hierarchy.require_closed(rows.Y)
    _check_valid(rows, settings, valid, encoder)
    callback = Callback() if callback is None else callback
    run = _Run(rows, settings, encoder, valid, folder, callback, title, make_loss, resampler)
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
            parameters = run.final_parameters()
            release_interrupt()
        except KeyboardInterrupt:
            raise Interrupted(run.stop()) from None
        finally:
            run.callback.on_end()
    heads = {name: parameters[name] for name in run.shape.parameter_shapes}
    state = {name.removeprefix(ENCODER): array for name, array in parameters.items() if name not in heads}
    model = Mlp(run.shape, heads, rows.hierarchy, resolve_device(settings.device))
    return TrainedNetwork(model, tuple(run.at.history), run.engine.name, state or None)


def row_order(rows: int, seed: int, epoch: int, *, in_blocks: bool = False) -> NDArray[np.int64]:
    """The order in which an epoch, counted from 0, goes through the rows.

    Rows on disk are read in blocks: blocks come in random order, and the rows of a number of blocks that follow one
    another are mixed. So each part of the file is read once in an epoch, while it is in memory.
    """
    rng = np.random.Generator(np.random.Philox(key=np.array([seed, epoch], dtype=np.uint64)))
    if not in_blocks:
        return rng.permutation(rows)
    blocks = rng.permutation(math.ceil(rows / BLOCK_ROWS))
    mixed = []
    for first in range(0, len(blocks), BLOCKS_MIXED):
        some = (blocks[first : first + BLOCKS_MIXED, None] * BLOCK_ROWS + np.arange(BLOCK_ROWS)).ravel()
        mixed.append(rng.permutation(some[some < rows]))
    return np.concatenate(mixed) if mixed else np.empty(0, dtype=np.int64)


class _Run:
    """One training under way: what is fixed, the engine, and how far it has come."""

    def __init__(
        self,
        rows: Dataset,
        settings: Settings,
        encoder: PixelEncoder | None,
        valid: Dataset | None,
        folder: Path | None,
        callback: Callback,
        title: str,
        make_loss: MakeLoss | None,
        resampler: Resampler | None,
    ) -> None:
        self.settings, self.valid, self.folder, self.callback, self.title = settings, valid, folder, callback, title
        if resampler is None:
            resampler = make_resampler(settings.resampling, rows.hierarchy, settings.seed)
        self.X, self.encoder = rows.X, deepcopy(encoder)
        self.rows, self.place = rows, np.arange(len(rows))
        if resampler is not None:
            self.rows, self.place = _resampled(rows, resampler)
        width = rows.n_features if encoder is None else encoder.width
        self.shape = MlpEnsemble.from_settings(settings, width, len(rows.hierarchy))
        self.batches = math.ceil(len(self.rows) / settings.batch_size)
        self.weights = _node_weights(self.rows, settings)
        self.schedule = WeightSchedule(settings.schedule, settings.schedule_by, settings.schedule_towards, settings.mix)
        self.make_loss = make_loss
        self.at = Position()
        self.engine = self._make_engine()
        self.order = self._order()
        self.best: Arrays = {}
        self.losses: list[float | torch.Tensor] = []
        """Of the last steps: those that are not part of the position yet."""
        self.is_whole = True
        """Whether engine and position are of the same moment; while a step is taken they are not."""
        key = TrainingKey(
            rows=f"{rows.fingerprint}, in blocks" if isinstance(rows.X, StoredFeatures) else rows.fingerprint,
            valid=None if valid is None else valid.fingerprint,
            hierarchy=rows.hierarchy.fingerprint,
            engine=self.engine.name,
            settings={name: value for name, value in settings.decisive.items() if name != "engine"},
            encoder=None if encoder is None else encoder.fingerprint,
        )
        self.checkpoints = Checkpoints(folder, key, settings, self.batches)

    def begin(self, resume: bool) -> None:
        """Restore the checkpoint, if there is one to resume from."""
        best = {BEST + name: array for name, array in self._parameters().items()}
        found = self.checkpoints.load(resume, self.engine.state(), best)
        if found is not None:
            self.at, arrays = found
            self.best = {name: arrays.pop(name) for name in best if name in arrays}
            self.engine.restore(arrays)
            self.order = self._order()
        self.callback.on_start(
            Plan(
                engine=self.engine.name,
                epochs=self.settings.epochs,
                batches=self.batches,
                steps_done=self.engine.steps,
                title=self.title,
                processes=self.engine.processes,
                patience=self.settings.patience,
                history=tuple(self.at.history),
                reduction=self._reduction,
            )
        )

    @property
    def is_over(self) -> bool:
        """Whether all epochs are done, or patience is at its end."""
        patience = self.settings.patience
        out_of_patience = patience is not None and self.at.epoch - self.at.best_epoch >= patience
        return self.at.epoch >= self.settings.epochs or out_of_patience

    def take_step(self) -> None:
        """Train on the next batch."""
        at, size = self.at, self.settings.batch_size
        chosen = self.order[at.batch * size : (at.batch + 1) * size]
        self.is_whole = False
        began = perf_counter()
        weights = None if self.settings.schedule == "constant" else self._weights_now()
        row_weights = None if self.rows.sample_weight is None else self.rows.sample_weight[chosen]
        known = None if self.rows.known is None else self.rows.known[chosen]
        labels = dense_rows(self.rows.Y, chosen)
        loss = self.engine.step(self.X[self.place[chosen]], labels, weights, row_weights, known)
        at.seconds += perf_counter() - began
        self.losses.append(loss)
        at.batch += 1
        self.is_whole = True
        if isinstance(loss, float) or len(self.losses) == LOSSES_TOGETHER or at.batch == self.batches:
            self._look_at_losses()
        if at.batch < self.batches:
            self.checkpoints.save_if_due(at, self._arrays)

    def _look_at_losses(self) -> None:
        """Add the losses of the last steps to the position, wherever they are; one that is not finite is an error."""
        at, count, began = self.at, len(self.losses), perf_counter()
        values = _values(self.losses)
        at.seconds += perf_counter() - began
        self.losses.clear()
        for before, loss in zip(range(count, 0, -1), values, strict=True):
            if not math.isfinite(loss):
                self.is_whole = False
                raise TrainingError(self._what_went_wrong(f"the loss is {loss}", self._steps + 1 - before))
            at.loss += loss
            self.callback.on_batch(at.epoch + 1, at.batch + 1 - before, loss)

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
        may_stop = self.settings.patience is not None
        if may_stop and valid is not None and (at.best_ap is None or valid.ap > at.best_ap):
            at.best_ap, at.best_epoch = valid.ap, record.epoch
            self.best = {BEST + name: array for name, array in self._parameters().items()}
        at.history.append(record)
        at.epoch, at.batch, at.loss, at.seconds = at.epoch + 1, 0, 0.0, 0.0
        self.order = self._order()
        self.is_whole = True
        self.callback.on_epoch(record)
        self.checkpoints.save_if_due(at, self._arrays)

    def keep(self) -> None:
        """Save the end of the training too: if the model cannot be written, it can be tried again."""
        self.checkpoints.save(self.at, self._arrays())

    def final_parameters(self) -> Arrays:
        """Those of the best epoch, where early stopping looked for it, or the last."""
        best = {name.removeprefix(BEST): array for name, array in self.best.items()}
        return self._finite(best or self._parameters())

    def stop(self) -> str:
        """Save, and say how to resume. Half a step, left by an interrupt that could not be deferred, is never saved."""
        at, epochs = self.at, self.settings.epochs
        place = f"stopped in epoch {min(at.epoch + 1, epochs)} of {epochs} after batch {at.batch} of {self.batches}"
        if self.folder is None:
            return f"{place}. Nothing is saved, because no folder for checkpoints was given"
        if not (self.is_whole and self.checkpoints.save(at, self._arrays())):
            return f"{place}. No checkpoint could be saved; an earlier one in {self.folder} is unchanged"
        return f"{place}. A checkpoint is saved in {self.folder}; --resume (in Python resume=True) continues from it"

    def _order(self) -> NDArray[np.int64]:
        in_blocks = isinstance(self.X, StoredFeatures)
        return row_order(len(self.rows), self.settings.seed, self.at.epoch, in_blocks=in_blocks)

    @property
    def _reduction(self) -> Reduction:
        auto: Reduction = "sum" if self.settings.n_members > 1 else "mean"
        return auto if self.settings.reduction == "auto" else self.settings.reduction

    def _make_engine(self) -> Engine:
        settings = self.settings
        objective = Objective(
            hierarchy=self.rows.hierarchy,
            weights=self._weights_now(),
            focus=None if settings.focus == "none" else settings.focus,
            u0=settings.u0,
            k=settings.k,
            scored=self.rows.scored,
            reduction=self._reduction,
            compiled=settings.compile,
            given=self._given_loss(),
        )
        shares = smoothed_shares(self.rows) if settings.output_bias == "prior" else None
        parameters = initial_parameters(self.shape, settings.seed, shares)
        adam = Adam(settings.learning_rate, settings.weight_decay)
        return make_engine(
            settings.engine,
            self.shape,
            parameters,
            objective,
            adam,
            settings.seed,
            device=resolve_device(settings.device),
            encoder=self.encoder,
            n_jobs=settings.n_jobs,
            encoder_training=_encoder_training(settings, has_encoder=self.encoder is not None),
        )

    def _given_loss(self) -> LossFunction | None:
        """The one to compute in the place of that of the settings."""
        if self.make_loss is None:
            return None
        return self.make_loss(self.rows.hierarchy, dense_rows(self.rows.counted_Y).copy())

    def _weights_now(self) -> NodeWeights | None:
        if self.weights is None:
            return None
        return self.schedule.weights(self.weights, self.at.batch, self.batches, self.at.epoch, self.settings.epochs)

    def _measure(self) -> Summary | None:
        if self.valid is None:
            return None
        probs = self.engine.probs(self.valid.X)
        return summary(self.valid.Y, probs, scored=self.rows.scored, known=self.valid.known)

    def _parameters(self) -> Arrays:
        return self.engine.parameters()

    def _arrays(self) -> Arrays:
        self._look_at_losses()
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
        """Where it happened, and everything that can be the cause, with its value."""
        settings = self.settings
        names = ["learning_rate", "weight_decay"]
        names += ["encoder_learning_rate"] if self.encoder is not None else []
        names += ["w0"] if settings.weighting != "none" else []
        names += ["u0", "k"] if settings.focus != "none" else []
        causes = [f"{name} ({getattr(settings, name):g})" for name in names]
        if self.rows.sample_weight is not None:
            causes.append(f"the sample weights (up to {self.rows.sample_weight.max():g})")
        if self.encoder is None:
            largest = max(float(np.abs(block).max()) for _, block in row_blocks(self.X))
            features = f"the features (up to {largest:.3g}; prepare=True standardises them)"
            causes.insert(0 if largest > LARGE_FEATURE else len(causes), features)
        epoch, batch = divmod(step - 1, self.batches)
        place = f"epoch {epoch + 1} of {settings.epochs}, batch {batch + 1} of {self.batches}"
        causes_in_words = f"One of these is too large: {', '.join(causes)}"
        return f"{place}: {problem}: the training diverged. {causes_in_words}. Use a lower learning rate first"


def _values(losses: list[float | torch.Tensor]) -> list[float]:
    """Numbers; those on a device are copied together."""
    there = [loss for loss in losses if isinstance(loss, torch.Tensor)]
    copied = iter(torch.stack(there).tolist() if there else [])
    return [float(next(copied)) if isinstance(loss, torch.Tensor) else loss for loss in losses]


def _encoder_training(settings: Settings, *, has_encoder: bool) -> EncoderTraining:
    if not has_encoder:
        return EncoderTraining(precision="float32" if settings.precision == "auto" else settings.precision)
    return EncoderTraining(
        learning_rate=settings.encoder_learning_rate,
        freezes_batchnorm=settings.freezes_batchnorm,
        augmentation=settings.augmentations,
        precision=settings.precision,
    )


def _resampled(rows: Dataset, resampler: Resampler) -> tuple[Dataset, NDArray[np.int64]]:
    """The rows with clones of some counted ones after these, and for each its place in the original rows.

    Uncounted rows stay as they are. To a resampler an unknown label is one that the row does not have. A clone knows
    what its original does. Features are not copied, for images take much memory: they are found at their places.
    """
    chosen = resampler.resample(rows.counted_Y)
    rest = np.arange(rows.counted_Y.shape[0], len(rows))
    indices = np.concatenate([chosen.rows, rest])
    resampled = replace(
        rows,
        X=np.empty((len(indices), 0), dtype=rows.X.dtype),
        feature_names=None,
        Y=stack_labels([chosen.Y, rows.Y[rest]]),
        ids=None,
        known=None if rows.known is None else rows.known[indices],
        sample_weight=None if rows.sample_weight is None else rows.sample_weight[indices],
        n_counted=len(chosen.rows),
    )
    return resampled, indices


def _node_weights(rows: Dataset, settings: Settings) -> NodeWeights | None:
    if settings.weighting == "none":
        return None
    side = None if settings.side == "auto" else settings.side
    return node_weights(
        rows.counted_Y,
        rows.hierarchy,
        settings.w0,
        settings.weighting,
        settings.classes,
        side=side,
        known=rows.counted_known,
    )


def _check_rows(X: Any, features: int | None, encoder: PixelEncoder | None) -> None:
    if encoder is None:
        check_input(X, features)
    else:
        encoder.pixels.check(X)


def _check_valid(rows: Dataset, settings: Settings, valid: Dataset | None, encoder: PixelEncoder | None) -> None:
    if valid is None:
        if settings.patience is not None:
            raise ArgumentError("early stopping (patience) needs validation rows; set cv or holdout, or patience to 0")
        return
    _check_rows(valid.X, rows.n_features, encoder)
    rows.hierarchy.require_closed(valid.Y)
    if not len(valid):
        raise ArgumentError("validation needs at least one row")
