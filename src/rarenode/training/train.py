"""`train_model`: one training, from raw rows and settings to a `TrainedModel` with its own preparation."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

import numpy as np
import torch

from rarenode._io.files import sole_use
from rarenode._io.text import counted
from rarenode.config import Settings
from rarenode.data.dataset import Dataset
from rarenode.data.images import Images
from rarenode.data.preparation import Preparation, as_float32
from rarenode.data.stored import StoredFeatures
from rarenode.engines import available_threads, limited_threads
from rarenode.errors import ArgumentError, DataError, Interrupted
from rarenode.metrics import count_parents_together
from rarenode.models import Blend, Forest, MlpEnsemble, Model, Neighbours, fit_neighbours, grow_forest
from rarenode.models.encoder import Encoder
from rarenode.models.kept_rows import draw_rows
from rarenode.models.pixels import PixelEncoder
from rarenode.models.training_labels import Lists
from rarenode.objective import MakeLoss
from rarenode.resampling.resampler import Resampler
from rarenode.training.callbacks import Callback, EpochRecord
from rarenode.training.embedding import embeddings, pixels
from rarenode.training.loop import train_network
from rarenode.training.model import TrainedModel, current_versions
from rarenode.training.shares import prior_of

MOST_CELLS_IN_MEMORY = 1 << 28
"""Features of rows on disk that a forest or neighbours learn from: 1 GiB."""


class How(TypedDict, total=False):
    """Keyword arguments of `train_model` that `fit_model`, `hold_out`, `validate` and `cross_fit` pass on."""

    encoder: Encoder | None
    prepare: bool
    folder: Path | None
    resume: bool
    callback: Callback | None
    title: str
    make_loss: MakeLoss | None
    resampler: Resampler | None


def train_model(
    data: Dataset,
    settings: Settings,
    *,
    valid: Dataset | None = None,
    encoder: Encoder | None = None,
    prepare: bool = True,
    folder: Path | None = None,
    resume: bool = False,
    callback: Callback | None = None,
    title: str = "",
    make_loss: MakeLoss | None = None,
    resampler: Resampler | None = None,
) -> TrainedModel:
    """Train once, on all labelled rows; the model decides at 0.5 until it is given thresholds.

    Args:
        data: rows to learn from. Rows whose labels are not known are left out, with a warning.
        settings: how to train.
        valid: rows to score after each epoch, which early stopping needs.
        encoder: the image model; needed if the rows are pictures.
        prepare: fit a preparation on the rows; without it features are used as they are, and must be finite.
        folder: where checkpoints are kept; None keeps none.
        resume: continue from the folder's checkpoint; without one, begin.
        callback: is called after every step and epoch.
        title: which of several trainings this is, for the callback.
        make_loss: makes the network's loss, in the place of the one that the settings describe; see `train_network`.
        resampler: of the network's rows, in the place of the one that the settings name.

    Raises:
        DataError: there is nothing to learn from, or features cannot be used.
        ArgumentError: an encoder cannot be trained with these settings.
        MemoryError: there is not enough memory; names the settings that decide how much is needed.
        TrainingError, Interrupted, ResumeError, FileFormatError: see `train_network`.
    """
    data = require_labels(data, "training")
    valid = None if valid is None else require_labels(valid, "validation")
    trains_encoder = settings.train_encoder and isinstance(data.X, Images)
    preparation = None
    if trains_encoder:
        require_trainable_encoder(settings)
        rows = _pixels(data, encoder, settings)
        watched = None if valid is None else _pixels(valid, encoder, settings)
    else:
        rows = _embedded(data, encoder, settings)
        preparation = Preparation.fit(rows.X, settings.n_components) if prepare else None
        rows = _prepared(rows, preparation)
        watched = None if valid is None else _prepared(_embedded(valid, encoder, settings), preparation)
    if callback is not None:
        callback.on_training(title)
    models: list[Model] = []
    history: tuple[EpochRecord, ...] = ()
    engine = ""
    with nullcontext() if folder is None else sole_use(folder), _naming_what_takes_memory(rows, settings):
        if "mlp" in settings.models:
            network = train_network(
                rows,
                settings,
                encoder=_in_training(encoder) if trains_encoder and encoder is not None else None,
                valid=watched,
                folder=folder,
                resume=resume,
                callback=callback,
                title=title,
                make_loss=make_loss,
                resampler=resampler,
            )
            models.append(network.model)
            history, engine = network.history, network.engine
            if encoder is not None and network.encoder_state is not None:
                encoder, threads = encoder.with_arrays(network.encoder_state), available_threads(settings.n_jobs)
                rows = _encoded(rows, data.X, encoder, threads, callback)
                if watched is not None and valid is not None:
                    _encoded(watched, valid.X, encoder, threads, callback)  # the next prediction reuses them
        if set(settings.models) & {"forest", "neighbours"}:
            rows = _in_memory(rows, settings)
        if "forest" in settings.models:
            models.append(_grow(rows, settings, callback))
        if "neighbours" in settings.models:
            models.append(_find_neighbours(rows, settings, callback))
    return TrainedModel(
        model=models[0] if len(models) == 1 else Blend(tuple(models)),
        hierarchy=data.hierarchy,
        scored=data.scored,
        settings=settings,
        engine=engine,
        history=history,
        training_positives=data.support,
        versions=current_versions(),
        fingerprints={
            "rows": data.fingerprint,
            "hierarchy": data.hierarchy.fingerprint,
            "settings": settings.fingerprint,
            **({} if encoder is None else {"encoder": encoder.fingerprint}),
        },
        preparation=preparation,
        encoder=encoder,
        feature_names=data.feature_names,
        source=data.name,
        # The folder of pictures, whether to skip bad ones, and whether to stream are options of each new table.
        reading=None
        if data.reading is None
        else data.reading.model_copy(update={"images": None, "skip_bad_images": False, "stream": False}),
        n_counted=data.n_counted,
        parents_together=count_parents_together(data.Y, data.hierarchy, known=data.known),
        prior=prior_of(data),
    )


def require_labels(data: Dataset, purpose: str) -> Dataset:
    """The rows whose labels are known, with a warning if some are not.

    Raises:
        DataError: no row has known labels.
    """
    labelled = data.with_labels_only()
    if not len(labelled):
        what = "no row has labels" if len(data) else "there are no rows"
        raise DataError(f"{data.name or 'the data'}: {what}, so none can be used for {purpose}")
    if len(labelled) < len(data):
        warnings.warn(
            f"{data.name or 'the data'}: {len(data) - len(labelled)} of {len(data)} rows have no labels and are not "
            f"used for {purpose}",
            RuntimeWarning,
            stacklevel=3,
        )
    return labelled


def require_trainable_encoder(settings: Settings) -> None:
    """Refuse, before any picture is read, settings with which an encoder cannot be trained.

    Raises:
        ArgumentError: the model has no network, or the engine trains perceptrons only.
    """
    if not settings.train_encoder:
        return
    if "mlp" not in settings.models:
        raise ArgumentError(f"train_encoder needs a network, and model={settings.model!r} has none; choose mlp")
    if settings.engine == "fused":
        raise ArgumentError("train_encoder needs engine 'torch' or 'auto'; the fused engine trains perceptrons only")


def _embedded(data: Dataset, encoder: Encoder | None, settings: Settings) -> Dataset:
    """The rows with embeddings in place of pictures."""
    if not isinstance(data.X, Images):
        return data
    if encoder is None:
        raise ArgumentError("the rows are pictures; an encoder is needed to train on them")
    return replace(data, X=embeddings(data.X, encoder, n_jobs=settings.n_jobs))


def _pixels(data: Dataset, encoder: Encoder | None, settings: Settings) -> Dataset:
    """The rows with pixels in place of pictures, for an encoder that is trained."""
    if encoder is None:
        raise ArgumentError("the rows are pictures; an encoder is needed to train on them")
    return replace(data, X=pixels(data.X, encoder.crop, n_jobs=settings.n_jobs), feature_names=None)


def _encoded(rows: Dataset, images: Images, encoder: Encoder, threads: int, callback: Callback | None) -> Dataset:
    """Rows of pixels with the embeddings of a trained encoder in their place, which are also kept with the pictures."""
    report = (Callback() if callback is None else callback).on_encode
    report(0, len(rows))
    values = encoder.encode(rows.X, threads, lambda done: report(done, len(rows)))
    images.keep(encoder.fingerprint, np.arange(len(images)), values)
    return replace(rows, X=values)


def _in_training(encoder: Encoder) -> PixelEncoder:
    """A copy of the network for training; the caller's own keeps its mode and its order in memory."""
    return PixelEncoder(copy.deepcopy(encoder.module), encoder.input)


def _prepared(data: Dataset, preparation: Preparation | None) -> Dataset:
    try:
        prepared = as_float32(data.X) if preparation is None else preparation.apply(data.X)
    except DataError as error:
        raise DataError(f"{data.name}: {error}" if data.name else str(error)) from None
    return replace(data, X=prepared, feature_names=None)  # categories have become several columns


@contextmanager
def _naming_what_takes_memory(rows: Dataset, settings: Settings) -> Iterator[None]:
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and not _is_out_of_memory(error):
            raise
        needs = []
        if "mlp" in settings.models:
            shape = MlpEnsemble.from_settings(settings, rows.n_features, len(rows.hierarchy))
            size = f"{4 * shape.parameter_bytes / 2**30:,.1f} GiB for parameters, their gradients and Adam's moments"
            names = ("hidden_size", "n_layers", "n_members", "batch_size")
            needs.append(f"{', '.join(f'{name}={getattr(settings, name)}' for name in names)} ({size})")
        if "forest" in settings.models:
            needs.append(f"n_trees={settings.n_trees}")
        if "neighbours" in settings.models:
            needs.append(f"neighbours among {counted(len(rows), 'row')}")
        raise MemoryError(f"training with {' and '.join(needs)} needs more than there is; choose less") from error


def _in_memory(rows: Dataset, settings: Settings) -> Dataset:
    """Rows on disk in memory, for models that look at all of them again and again; of too many, a part."""
    if not isinstance(rows.X, StoredFeatures):
        return rows
    most = max(MOST_CELLS_IN_MEMORY // max(1, rows.n_features), 1)
    if len(rows) > most:
        kept, times = draw_rows(Lists.of(rows.Y), len(rows.hierarchy), most, np.random.default_rng(settings.seed))
        warnings.warn(
            f"{rows.name or 'the data'}: forest and neighbours learn from {most:,} of {len(rows):,} rows, all of rare "
            "nodes among them; the network from all",
            RuntimeWarning,
            stacklevel=3,
        )
        weights = np.ones(len(rows), dtype=np.float32) if rows.sample_weight is None else rows.sample_weight
        rows = replace(rows.take(kept), sample_weight=(weights[kept] * times).astype(np.float32))
    return replace(rows, X=rows.X.in_memory())


def _is_out_of_memory(error: RuntimeError) -> bool:
    """torch has a class for that on GPUs only; on the CPU its allocator says so in words."""
    return isinstance(error, torch.OutOfMemoryError) or "DefaultCPUAllocator" in str(error)


def _grow(rows: Dataset, settings: Settings, callback: Callback | None) -> Forest:
    """The forest is grown on the rows without clones."""
    if callback is not None:
        callback.on_forest(settings.n_trees)
    try:
        return grow_forest(
            rows.X,
            rows.Y,
            scored=rows.scored,
            trees=settings.n_trees,
            seed=settings.seed,
            sample_weight=rows.sample_weight,
            threads=available_threads(settings.n_jobs),
            known=rows.known,
            hierarchy=rows.hierarchy,
        )
    except KeyboardInterrupt:
        raise _interrupted("the forest was grown") from None


def _find_neighbours(rows: Dataset, settings: Settings, callback: Callback | None) -> Neighbours:
    """Neighbours are rows without clones."""
    if callback is not None:
        callback.on_neighbours(len(rows))
    try:
        with limited_threads(settings.n_jobs, compiled=True):
            return fit_neighbours(
                rows.X,
                rows.Y,
                seed=settings.seed,
                sample_weight=rows.sample_weight,
                known=rows.known,
                hierarchy=rows.hierarchy,
            )
    except KeyboardInterrupt:
        raise _interrupted("distances between rows were measured") from None


def _interrupted(doing: str) -> Interrupted:
    return Interrupted(
        f"stopped while {doing}; resuming (--resume) begins with that, as networks that are trained are kept in the "
        "folder"
    )
