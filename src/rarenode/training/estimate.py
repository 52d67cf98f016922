"""How much memory and time a fit will take, and how long to encode its pictures, before it takes them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from rarenode._io.text import counted
from rarenode.config import Settings
from rarenode.data.dataset import Dataset
from rarenode.data.images import Images
from rarenode.data.preparation import Preparation
from rarenode.engines import available_threads
from rarenode.models.encoder import Encoder
from rarenode.models.ensemble import MlpEnsemble
from rarenode.models.neighbour_fitting import MOST_KEPT
from rarenode.training.embedding import embed
from rarenode.training.embedding_cache import EmbeddingCache, cache_folder
from rarenode.training.train import train_model

PROGRAM = 400 << 20
"""Bytes that Python, torch and compiled code take before there is any data."""
COPIES = 8
"""Parameters, gradients, two moments of Adam, the best epoch, and copies for a checkpoint."""
USUAL_WIDTH = 2048
"""Of an embedding, where the encoder is not known."""
PLACE, LEAF_ROW = 28, 4
"""Bytes of a forest for each inner place or leaf of a tree, and for each row in a leaf."""
TRIAL_STEPS, TRIAL_EPOCHS, TRIAL_TREES, TRIAL_ROWS, TRIAL_PICTURES = 40, 4, (2, 8), 1000, 2000
"""What is tried: steps in each of some epochs, and two sizes of forests, whose difference has no fixed costs."""


@dataclass(frozen=True)
class FitEstimate:
    """What a fit is going to take."""

    bytes: int
    """Memory at its peak, roughly."""
    trainings: int
    """With cv, one for each fold and one more."""
    seconds: float | None = None
    """At most, roughly, if every training runs to its last epoch; None if nothing was tried."""
    after_encoding: bool = False
    """Whether pictures are encoded before, which takes its own time."""

    def __str__(self) -> str:
        times = "one training" if self.trainings == 1 else f"{self.trainings} trainings"
        size = f"about {max(self.bytes / 1e9, 0.1):.1f} GB of memory"
        if self.seconds is None:
            return f"{times}, {size}"
        after = " after pictures are encoded" if self.after_encoding else ""
        return f"{times}, at most about {_duration(self.seconds)}{after}, {size}"


@dataclass(frozen=True)
class EncodingEstimate:
    """What it is going to take to encode pictures."""

    pictures: int
    in_cache: int
    seconds: float | None = None
    """For the others, roughly; None if nothing was tried."""

    def __str__(self) -> str:
        text = f"{self.in_cache:,} of {counted(self.pictures, 'picture')} are in the cache"
        if self.seconds is None or self.in_cache == self.pictures:
            return text
        long = "less than a minute" if self.seconds < 60 else f"about {_duration(self.seconds)}"
        return f"{text}, encoding the others takes {long}"


def estimate_fit(
    data: Dataset,
    settings: Settings,
    *,
    try_it: bool = False,
    encoder: Encoder | None = None,
    has_validation_rows: bool = False,
) -> FitEstimate:
    """Estimate what `fit_model` will take.

    Args:
        data: rows to train on.
        settings: how to train.
        try_it: also take a few steps and grow a few trees, to estimate the time. With pictures that is done on random
            numbers, as many as an embedding has.
        encoder: of pictures, which the estimate assumes to be embedded already.
        has_validation_rows: whether there are validation rows, which replace cv and holdout.
    """
    data = data.with_labels_only()
    rows, nodes = len(data), len(data.hierarchy)
    width = data.n_features
    is_images = isinstance(data.X, Images)
    if is_images:
        width = USUAL_WIDTH if encoder is None else encoder.width
    elif try_it and rows:
        width = Preparation.fit(data.X, settings.n_components).width
    trainings = 1
    if settings.cv is not None and settings.holds_out_rows and not has_validation_rows:
        trainings += settings.cv
    size = memory_of_fit(settings, rows, width, nodes, some_unknown=data.known is not None)
    # An encoder that is trained takes far longer than all else, and nothing here tries it.
    if not (try_it and rows) or (is_images and settings.train_encoder):
        return FitEstimate(size, trainings)
    tried = _like_embeddings(data, width) if is_images else data
    seconds = _seconds(tried, settings) * rows / len(tried) * trainings
    return FitEstimate(size, trainings, seconds, after_encoding=is_images)


def memory_of_fit(settings: Settings, rows: int, width: int, nodes: int, *, some_unknown: bool = False) -> int:
    """Bytes at the peak of a fit, roughly.

    Args:
        settings: how to train.
        rows: to train on.
        width: of prepared features, or of an embedding.
        nodes: of the hierarchy.
        some_unknown: whether some labels are unknown.
    """
    size = PROGRAM + rows * width * (8 + 8 + 4) + rows * nodes * (2 + some_unknown)
    if settings.holds_out_rows:
        # Out-of-fold probabilities of each model and of their blend, and thresholds fitted to them.
        size += rows * nodes * 4 * (2 if len(settings.models) == 1 else len(settings.models) + 2)
    if "mlp" in settings.models:
        size += COPIES * MlpEnsemble.from_settings(settings, width, nodes).parameter_bytes
    if "forest" in settings.models:
        size += settings.n_trees * rows * (LEAF_ROW + PLACE)
    if "neighbours" in settings.models:
        size += min(rows, MOST_KEPT) * width * 4 * 2  # points of both forms, of which one is kept
    return size


def _like_embeddings(data: Dataset, width: int) -> Dataset:
    """Some of the rows, with random numbers in place of pictures: how long a training takes hardly depends on them."""
    some = data.take(np.arange(min(len(data), TRIAL_PICTURES)))
    X = np.random.default_rng(0).standard_normal((len(some), width), dtype=np.float32)
    return replace(some, X=X, feature_names=None, n_counted=None)


def estimate_encoding(parts: Sequence[Images], encoder: Encoder, *, try_it: bool = False) -> EncodingEstimate:
    """Estimate what `embed` will take.

    Args:
        parts: pictures that can be used.
        encoder: what looks at them.
        try_it: also encode two batches, the second of which tells how long the rest takes; they are kept.
    """
    cache = EmbeddingCache(cache_folder() / encoder.fingerprint[:32], encoder.width)
    left = [images[[not cache.has(digest.tobytes()) for digest in images.digests]] for images in parts]
    total, missing = sum(map(len, parts)), sum(map(len, left))
    most = max(left, key=len, default=Images(()))
    if not (try_it and len(most)):
        return EncodingEstimate(total, total - missing)
    size = encoder.rows_in_parallel(available_threads(None))
    embed(most[:size], encoder)  # the first batch also prepares the network
    began, second = perf_counter(), most[size : 2 * size]
    embed(second, encoder)
    each = (perf_counter() - began) / max(1, len(second))
    return EncodingEstimate(total, total - missing, each * max(0, missing - size - len(second)))


def _duration(seconds: float) -> str:
    minutes = max(seconds / 60, 1)
    return f"{minutes / 60:.1f} hours" if minutes >= 90 else counted(round(minutes), "minute")


def _seconds(data: Dataset, settings: Settings) -> float:
    """Of one training."""
    total = 0.0
    some = data.take(np.arange(min(len(data), TRIAL_STEPS * settings.batch_size)))
    once = {"patience": None, "cv": None, "holdout": None, "thresholds": "fixed", "resampling": "none"}
    if "mlp" in settings.models:
        trial = settings.changed({}, **once, epochs=TRIAL_EPOCHS, model="mlp")
        speed = max(record.steps_per_second for record in train_model(some, trial).history)  # the first also compiles
        total += settings.epochs * math.ceil(len(data) / settings.batch_size) / speed
    if "forest" in settings.models:
        times = [
            _timed(data, settings.changed({}, **once, model="forest", n_trees=trees)) for trees in (1, *TRIAL_TREES)
        ]
        few, many = TRIAL_TREES
        total += max(times[2] - times[1], 0.0) * settings.n_trees / (many - few)
    if "neighbours" in settings.models:
        alone = settings.changed({}, **once, model="neighbours")
        few_rows = data.take(np.arange(min(len(data), TRIAL_ROWS)))
        _timed(few_rows, alone)  # compiles
        total += _timed(few_rows, alone) * (min(len(data), MOST_KEPT) / len(few_rows)) ** 2
    return total


def _timed(data: Dataset, settings: Settings) -> float:
    began = perf_counter()
    train_model(data, settings)
    return perf_counter() - began
