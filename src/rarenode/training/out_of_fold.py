"""Out-of-fold predictions: a model together with predictions for rows that it was not trained on.

Thresholds are fitted to them, because a model is more confident about the rows it was trained on than about any other.

* `hold_out` sets rows aside. One training, but the model never learns from these rows.
* `cross_fit` trains a model for each fold on all other rows, predicts the fold with it, and then trains once more on
  all rows. No row is wasted; it takes one training more than there are folds.

With ``blend="learned"`` the models of a blend get weights that are learned from the same predictions. A model that does
not help is left out, and the last training of `cross_fit` is without it.

With early stopping, a training stops when its AP on the held-out rows no longer improves. The last training of
`cross_fit` has no held-out rows: it runs for the median of the folds' best epochs.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Unpack

import numpy as np
from numpy.typing import NDArray

from rarenode._io.files import waiting_files
from rarenode._io.text import counted
from rarenode.config import Settings
from rarenode.config.choices import Rule
from rarenode.data.dataset import Dataset
from rarenode.data.features import take_rows
from rarenode.data.split import HierarchicalSplit, folds
from rarenode.errors import ArgumentError, DataError, Interrupted, ResumeError
from rarenode.executors import Executor, Here, Task
from rarenode.hierarchy.labels import count_labels, dense_rows
from rarenode.models import Blend, BlendWeights, learn_weights, pool
from rarenode.models.encoder import Encoder
from rarenode.models.model import Floats
from rarenode.thresholds import GuaranteedRecall, Strategy
from rarenode.training.checkpoint import FILE as CHECKPOINT
from rarenode.training.checkpoint import remove_checkpoint
from rarenode.training.estimate import memory_of_fit
from rarenode.training.model import TrainedModel
from rarenode.training.model_folder import FILES, RECORD
from rarenode.training.shares import node_shares, prior_of
from rarenode.training.train import How, require_labels, train_model

Indices = NDArray[np.int64]
FOLD = ".fold-"
"""Begins the name of the folder of a fold's model; its number follows."""
ALL_ROWS = "all_rows"
"""The fingerprint, in a fold's model, of the rows that were split into folds."""


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """A model, and predictions for held-out rows by models that were not trained on them."""

    model: TrainedModel
    Y: NDArray[np.bool_]
    """(rows, nodes): labels of the held-out rows."""
    probs: NDArray[np.float32]
    """(rows, nodes): their probabilities."""
    prior: NDArray[np.float64]
    """(nodes,): the share that has each node, of all rows that count and where it is known; see `prior_of`."""
    rows: Indices
    """Which of all rows these are."""
    training_support: Indices
    """(nodes,): how many training rows with the node the models had that predicted its rows. Models of folds differ
    in that; it is their mean over the node's rows, rounded down, so that 0 means that none had any."""
    known: NDArray[np.bool_] | None = None
    """(rows, nodes): where labels of the held-out rows are known; None: everywhere."""
    counting: NDArray[np.bool_] | None = None
    """(rows,): which of the held-out rows have a weight above 0; None: all. The others decide nothing."""

    def decide(self, strategy: Strategy, rule: Rule) -> TrainedModel:
        """The model, with thresholds that the strategy fits to the held-out predictions.

        All rows count the same that have a weight above 0.
        """
        probs, Y, known = self._counting_rows()
        fitted = strategy.fit(probs, Y, known=known, prior=self.prior, rule=rule)
        return replace(self.model, prior=self.prior).with_thresholds(fitted)

    def guarantee(self, recall: float) -> GuaranteedRecall:
        """Guaranteed sets, fitted to the held-out predictions; all rows count the same that have a weight above 0."""
        probs, Y, known = self._counting_rows()
        return GuaranteedRecall.fit(recall, probs, Y, known=known)

    def _counting_rows(self) -> tuple[NDArray[np.float32], NDArray[np.bool_], NDArray[np.bool_] | None]:
        rows = self.counting
        if rows is None:
            return self.probs, self.Y, self.known
        return self.probs[rows], self.Y[rows], None if self.known is None else self.known[rows]


def hold_out(data: Dataset, settings: Settings, **how: Unpack[How]) -> OutOfFold:
    """Train on all rows but the fraction ``settings.holdout``, which `HierarchicalSplit` chooses; see `train_model`."""
    if settings.holdout is None:
        raise ArgumentError("set holdout to the fraction of rows to hold out")
    kept, held_out = HierarchicalSplit(settings.holdout, settings.seed).split(data.Y, data.hierarchy)
    for rows, which in ((kept, "rows to train on"), (held_out, "held-out rows")):
        _require_weight(data, rows, f"the {which} of holdout={settings.holdout:g}")
    return _hold_out_rows(data, settings, kept, held_out, **how)


def validate(data: Dataset, settings: Settings, valid: Dataset, **how: Unpack[How]) -> OutOfFold:
    """Train on rows, and predict validation rows, which early stopping uses too; see `train_model`."""
    valid = require_labels(valid, "validation")
    _require_weight(valid, np.arange(len(valid)), "the validation rows")
    model, parts = _train_and_predict(data, settings, valid, **how)
    weights, probs = _blend(parts, valid, shares := node_shares(data), settings, **how)
    prior, rows, support = prior_of(data, valid), np.arange(len(valid)), model.training_positives
    model, labels = _weighted(model, weights, shares), dense_rows(valid.Y)
    return OutOfFold(model, labels, probs, prior, rows, support, valid.known, valid.counting)


def cross_fit(data: Dataset, settings: Settings, *, executor: Executor | None = None, **how: Unpack[How]) -> OutOfFold:
    """Train once without each of ``settings.cv`` folds, then on all rows; see `train_model` for the arguments.

    Models of folds that are done are kept in ``folder`` until `remove_folds`, so that resuming trains only what is
    missing.

    Args:
        data: rows to learn from.
        settings: how to train.
        executor: where the models of folds are trained, perhaps side by side; None: here, one after the other. The
            result is the same. The last training is always here.
        how: see `train_model`. The callback sees only trainings that are here.
    """
    if settings.cv is None:
        raise ArgumentError("set cv to the number of folds")
    if settings.patience is not None and settings.schedule != "constant" and settings.schedule_by == "epoch":
        raise ArgumentError(
            "a schedule over epochs and early stopping with cv exclude each other, as the last training is shorter; "
            "set patience to 0, or schedule_by to batch"
        )
    parts = [np.empty(data.Y.shape, dtype=np.float32) for _ in settings.models]
    best_epochs = []
    total = data.support
    support = np.zeros(len(data.hierarchy), dtype=np.int64)
    with closing(_trained_folds(data, settings, executor or Here(), **how)) as trained:
        for held_out, fold in trained:
            for place, its in enumerate(fold.probs):
                parts[place][held_out] = its
            if fold.best_epoch is not None:
                best_epochs.append(fold.best_epoch)
            positives = count_labels(data.Y[held_out])
            support += positives * (total - positives)
    weights, probs = _blend(parts, data, shares := node_shares(data), settings, **how)
    del parts
    final = settings
    if weights is not None:
        final = settings.model_copy(update={"model": "+".join(settings.models[place] for place in weights.kept)})
    if settings.patience is not None:
        epochs = round(median(best_epochs)) if best_epochs else settings.epochs
        final = final.model_copy(update={"epochs": epochs, "patience": None})
    last: How = {**how, "title": "all rows"}
    model = train_model(data, final, **last)
    return OutOfFold(
        _weighted(model, weights, shares),
        dense_rows(data.Y),
        probs,
        prior=prior_of(data),
        rows=np.arange(len(data)),
        training_support=support // np.maximum(total, 1),
        known=data.known,
        counting=data.counting,
    )


@dataclass(frozen=True, eq=False)
class _Fold:
    """What is left of a fold's model."""

    probs: tuple[Floats, ...]
    """(rows, nodes), of each part of the model: for the rows of the fold."""
    best_epoch: int | None
    """None if no network was trained."""


def _trained_folds(
    data: Dataset, settings: Settings, executor: Executor, **how: Unpack[How]
) -> Generator[tuple[Indices, _Fold]]:
    """The rows of each fold and what its model predicts for them, in the order in which models are done."""
    folder, callback, encoder = how.get("folder"), how.get("callback"), how.get("encoder")
    k = settings.cv
    assert k is not None  # noqa: S101 (`cross_fit` has checked it)
    given = data, encoder
    width = data.n_features if encoder is None else encoder.width
    memory = memory_of_fit(settings, len(data), width, len(data.hierarchy), some_unknown=data.known is not None)
    tasks: dict[Task, Indices] = {}
    parts = folds(data.Y, data.hierarchy, k, settings.seed)
    for number, (kept, _) in enumerate(parts, start=1):
        _require_weight(data, kept, f"the rows to train on for fold {number} of cv={k}")
    for number, (kept, held_out) in enumerate(parts, start=1):
        title = f"fold {number} of {k}"
        here: How = {"title": title, "callback": callback if executor.here else None}
        task = Task(
            name=title,
            function=_train_fold,
            # Begun again after a loss, a task continues from the checkpoint that the first attempt left.
            arguments=(settings, kept, held_out, {**how, "folder": None, "encoder": None, "resume": True, **here}),
            shared=given,
            threads=settings.n_jobs if (settings.n_jobs or 0) > 0 else None,
            gpus=int(settings.device.startswith("cuda")),
            memory=memory,
            folder=None if folder is None else folder / f"{FOLD}{number}",
        )
        tasks[task] = held_out
    if not how.get("resume"):
        _require_new([task.folder for task in tasks if task.folder is not None])
    executor.expect(k)
    try:
        with executor:
            for done, result in enumerate(executor.run(tasks), start=1):
                yield tasks[result.task], result.get()
                if callback is not None and not executor.here:
                    callback.on_fold(done, k)
    except KeyboardInterrupt:
        kept_too = "" if folder is None else f"; what is done is kept in {folder}, and --resume (resume=True) continues"
        raise Interrupted(f"stopped while folds were trained{kept_too}") from None


def _train_fold(
    given: tuple[Dataset, Encoder | None],
    settings: Settings,
    kept: Indices,
    held_out: Indices,
    how: How,
    folder: Path | None = None,
) -> _Fold:
    """Train the model of a fold, unless it is in the folder, and predict the rows of the fold."""
    data, encoder = given
    # Early stopping depends on the held-out rows, which the fingerprint of the training rows does not cover.
    fingerprints = {
        "rows": data.take(kept).fingerprint,
        "hierarchy": data.hierarchy.fingerprint,
        ALL_ROWS: data.fingerprint,
    }
    if encoder is not None:
        fingerprints["encoder"] = encoder.fingerprint
    model = _trained_before(folder, settings, fingerprints, encoder) if how.get("resume") else None
    if model is not None:
        return _Fold(model.predict_parts(take_rows(data.X, held_out)), best_epoch(model))
    here: How = {**how, "folder": folder, "encoder": encoder}
    model, found = _train_and_predict(data.take(kept), settings, data.take(held_out), **here)
    if settings.train_encoder and model.encoder is not None:
        data.X.forget(model.encoder.fingerprint)
    if folder is not None:
        # An encoder that was not trained is the same for all folds, and large.
        own = model.encoder if settings.train_encoder else None
        replace(model, encoder=own, fingerprints={**model.fingerprints, **fingerprints}).save(folder)
        remove_checkpoint(folder)
    return _Fold(found, best_epoch(model))


def _require_new(parts: Sequence[Path]) -> None:
    """Make sure that no earlier training has left anything in the folders of folds.

    Raises:
        ResumeError: one has.
    """
    left = next((path for part in parts for path in (part / RECORD, part / CHECKPOINT) if path.exists()), None)
    if left is not None:
        raise ResumeError(
            f"{left} is of a training that was not finished. Set resume (--resume) to continue it, or remove "
            f"{left.parent} to begin anew"
        )


def _require_weight(data: Dataset, rows: Indices, which: str) -> None:
    """Refuse, before any training, a part of the rows none of which counts.

    Raises:
        DataError: all their weights are 0.
    """
    weights = data.sample_weight
    if weights is not None and not weights[rows].any():
        some = counted(int(np.count_nonzero(weights)), "row")
        raise DataError(
            f"{data.name or 'the data'}: only {some} of {len(data):,} with a weight above 0, and none among "
            f"{which}; give more rows a weight, or leave out those of weight 0"
        )


def _train_and_predict(
    data: Dataset, settings: Settings, held_out: Dataset, **how: Unpack[How]
) -> tuple[TrainedModel, tuple[Floats, ...]]:
    """A model, and what each of its parts predicts for held-out rows, which early stopping uses too."""
    model = train_model(data, settings, valid=None if settings.patience is None else held_out, **how)
    return model, model.predict_parts(held_out.X)


def _blend(
    parts: Sequence[Floats], held_out: Dataset, shares: NDArray[np.float64], settings: Settings, **how: Unpack[How]
) -> tuple[BlendWeights | None, Floats]:
    """The weights of models, learned from held-out rows, and the probabilities of a blend with these weights.

    There are none if there is a single model, or if the settings do not want them.
    """
    if len(parts) == 1 or settings.blend == "geometric":
        return None, pool(parts, (), shares)
    weights = learn_weights(
        parts,
        dense_rows(held_out.Y),
        shares=shares,
        scored=held_out.scored,
        known=held_out.known,
        sample_weight=held_out.sample_weight,
        # The network is what an encoder is trained with.
        required=[settings.models.index("mlp")] if settings.train_encoder else (),
        seed=settings.seed,
    )
    callback = how.get("callback")
    if callback is not None:
        callback.on_blend(settings.models, weights)
    kept = weights.kept
    return weights, pool([parts[place] for place in kept], [weights.weights[place] for place in kept], shares)


def _weighted(model: TrainedModel, weights: BlendWeights | None, shares: NDArray[np.float64]) -> TrainedModel:
    """The model with the weights, without the parts that are left out."""
    if weights is None:
        return model
    parts, kept = model.parts, weights.kept
    if len(parts) == len(weights.weights):
        parts = tuple(parts[place] for place in kept)
    if len(parts) == 1:
        return replace(model, model=parts[0])
    return replace(model, model=Blend(parts, tuple(weights.weights[place] for place in kept), shares))


def _hold_out_rows(
    data: Dataset, settings: Settings, kept: Indices, held_out: Indices, **how: Unpack[How]
) -> OutOfFold:
    fold = validate(data.take(kept), settings, data.take(held_out), **how)
    return replace(fold, prior=prior_of(data), rows=held_out)


def best_epoch(model: TrainedModel) -> int | None:
    """The epoch with the best validation AP, the first of equally good ones; the last, where none was measured.

    None if no network was trained.
    """
    if not model.history:
        return None
    measured = [(record.valid.ap, -record.epoch) for record in model.history if record.valid is not None]
    return -max(measured)[1] if measured else model.history[-1].epoch


def fold_folders(folder: Path | str) -> list[Path]:
    """The folders of folds."""
    parts = Path(folder).glob(f"{FOLD}*")
    return [part for part in parts if part.name.removeprefix(FOLD).isdecimal() and part.is_dir()]


def remove_folds(folder: Path | str) -> None:
    """Remove the models of folds, once the model that they were for is saved."""
    for part in fold_folders(folder):
        # A kill may have left the last checkpoint beside the model, or files of a model that was not complete.
        for file in (*(part / name for name in (*FILES, CHECKPOINT)), *waiting_files(part)):
            file.unlink(missing_ok=True)
        with suppress(OSError):  # it contains other files
            part.rmdir()


def _trained_before(
    part: Path | None, settings: Settings, fingerprints: Mapping[str, str], encoder: Encoder | None
) -> TrainedModel | None:
    if part is None or not (part / RECORD).exists():
        return None
    model = TrainedModel.load(part, None if encoder is None else encoder.module)
    if model.encoder is None:
        model = replace(model, encoder=encoder)
    then, now = model.settings.decisive, settings.decisive
    differences = [
        f"{name} was {then[name]!r} and is now {now[name]!r}"
        for name in then
        if then[name] != now[name] and name not in ("engine", "device")  # they agree but for rounding
    ]
    if not fingerprints.items() <= model.fingerprints.items():
        differences.append("the rows or the hierarchy are not the same")
    if differences:
        raise ResumeError(f"{part} is the model of another training: {'; '.join(differences)}; choose another folder")
    return model
