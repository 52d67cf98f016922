"""`fit_model`: from rows and settings to a model with thresholds, with as many trainings as that takes."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from rarenode._io.text import counted, storable
from rarenode.config import Settings
from rarenode.config.choices import EPISTEMIC
from rarenode.data.dataset import Dataset
from rarenode.data.images import Images
from rarenode.data.stored import StoredFeatures
from rarenode.diagnosis.copies import repeated_rows
from rarenode.diagnosis.data_checks import unusable_weights
from rarenode.engines import resolve_device
from rarenode.errors import ArgumentError, DataError
from rarenode.executors import Executor
from rarenode.models.encoder import Encoder, as_encoder
from rarenode.models.pretrained import load_encoder
from rarenode.thresholds import make_strategy
from rarenode.training.callbacks import Callback
from rarenode.training.model import TrainedModel
from rarenode.training.out_of_fold import OutOfFold, cross_fit, hold_out, validate
from rarenode.training.train import How, require_labels, train_model


@dataclass(frozen=True, eq=False)
class Fitted:
    """The result of `fit_model`."""

    model: TrainedModel
    held_out: OutOfFold | None
    """The predictions to which thresholds were fitted; None where no row was held out."""


def fit_model(
    data: Dataset,
    settings: Settings,
    *,
    valid: Dataset | None = None,
    encoder: Encoder | torch.nn.Module | None = None,
    prepare: bool = True,
    folder: Path | str | None = None,
    resume: bool = False,
    callback: Callback | None = None,
    executor: Executor | None = None,
) -> Fitted:
    """Train as often as ``cv`` or ``holdout`` require, and fit the thresholds and those of guaranteed sets.

    With ``cv`` the models of folds are kept in ``folder`` until `remove_folds`, so that resuming trains only what is
    missing. If neither thresholds nor early stopping need held-out rows, the model is trained once, on all rows.

    Args:
        data: rows to learn from.
        settings: how to train and decide.
        valid: validation rows; early stopping and thresholds then use these, instead of ``cv`` and ``holdout``.
        encoder: the image model; None: the one that the settings name, if the rows are pictures.
        prepare: see `train_model`, as for the other arguments and errors.
        folder: where checkpoints and models of folds are kept.
        resume: continue from what is in the folder.
        callback: is called after every step and epoch.
        executor: where the models of folds are trained; see `cross_fit`. The result is the same everywhere.

    Raises:
        ArgumentError: ``focus`` is an epistemic uncertainty, and ``n_members`` is 1; or there are no folds for an
            executor.
        DataError: there are no labels, too few rows to hold some out, or only weights of 0.
    """
    if encoder is None and isinstance(data.X, Images):
        encoder = load_encoder(settings.encoder, size=settings.image_size, seed=settings.seed)
    if encoder is not None:
        encoder = replace(as_encoder(encoder, settings.image_size), device=resolve_device(settings.device))
    how: How = {
        "encoder": encoder,
        "prepare": prepare,
        "folder": None if folder is None else Path(folder),
        "resume": resume,
        "callback": callback,
    }
    _require_several_members(settings)
    _warn_of_settings_for_gpus(settings, has_encoder=encoder is not None)
    _require_storable_names(data)
    data = require_labels(data, "training")
    weights = unusable_weights(data)
    if weights is not None:
        raise DataError(weights)
    if valid is None and settings.holds_out_rows:
        _require_enough_rows(data, settings)
        copies = repeated_rows(data)
        if copies is not None:
            warnings.warn(copies, RuntimeWarning, stacklevel=2)
    if executor is not None and not executor.here and not trains_folds(settings, has_validation_rows=valid is not None):
        raise ArgumentError(
            "folds are what can be trained side by side (--on, --jobs), and there are none: set cv, without holdout "
            "and validation rows"
        )
    if executor is not None and not executor.here and isinstance(data.X, StoredFeatures):
        raise ArgumentError(
            "features on disk (--stream) cannot be sent to other processes (--on, --jobs); train the folds one after "
            "the other, or without --stream"
        )
    fitted = _fit(data, settings, valid, how, executor)
    known = {**fitted.model.fingerprints, "settings": settings.fingerprint, "data": data.fingerprint}
    if valid is not None:
        known["validation"] = valid.with_labels_only().fingerprint
    # The last training of cross_fit has its own number of epochs, and that of hold_out its own rows; the model keeps
    # what the caller gave.
    model = replace(fitted.model, settings=settings, fingerprints=known, n_counted=data.n_counted)
    return replace(fitted, model=model)


def _require_several_members(settings: Settings) -> None:
    """Refuse a focus that a single member makes a constant. The settings themselves allow it: the paper sweeps it."""
    if settings.focus in EPISTEMIC and settings.n_members == 1 and "mlp" in settings.models:
        raise ArgumentError(
            f"focus={settings.focus!r} measures how much members disagree, and n_members=1 leaves nothing to compare; "
            "set n_members to 2 or more, or choose another focus"
        )


def _warn_of_settings_for_gpus(settings: Settings, *, has_encoder: bool) -> None:
    """Say which settings change nothing, since the training runs on the CPU."""
    if resolve_device(settings.device) != "cpu":
        return
    idle = {"compile": settings.compile, "precision='bfloat16'": settings.precision == "bfloat16" and not has_encoder}
    for name in (name for name, is_set in idle.items() if is_set):
        warnings.warn(f"{name} changes nothing on the CPU, where this training runs", RuntimeWarning, stacklevel=3)


def _require_enough_rows(data: Dataset, settings: Settings) -> None:
    how, needed = (f"cv={settings.cv}", settings.cv) if settings.holdout is None and settings.cv else ("holdout", 2)
    if len(data) < needed:
        only = f"there {'is' if len(data) == 1 else 'are'} only {counted(len(data), 'labelled row')}"
        raise DataError(f"{data.name or 'the data'}: {only}, and {how} needs at least {needed} rows; label more")


def _require_storable_names(data: Dataset) -> None:
    """Refuse, before any training, names that a model file cannot hold."""
    kinds: dict[str, Iterable[str]] = {"name of a node": data.hierarchy.nodes}
    terms = data.hierarchy.terms
    if terms is not None:
        kinds["title of a node"] = terms.titles
        kinds["namespace of a node"] = terms.namespaces or ()
        kinds["id of a term"] = (*terms.aliases, *terms.obsolete, *terms.excluded)
    for what, names in (kinds | {"name of a feature": data.feature_names or ()}).items():
        bad = next((name for name in names if storable(str(name)) != name), None)
        if bad is not None:
            raise DataError(f"the {what}, {bad!r}, is not valid Unicode text and cannot be saved; rename it")


def trains_folds(settings: Settings, *, has_validation_rows: bool) -> bool:
    """Whether a fit trains models of folds."""
    return settings.cv is not None and settings.holdout is None and settings.holds_out_rows and not has_validation_rows


def _fit(data: Dataset, settings: Settings, valid: Dataset | None, how: How, executor: Executor | None) -> Fitted:
    strategy = make_strategy(settings.thresholds)
    if valid is not None:
        held_out = validate(data, settings, valid, **how)
    elif settings.holdout is not None:
        held_out = hold_out(data, settings, **how)
    elif settings.holds_out_rows:
        held_out = cross_fit(data, settings, executor=executor, **how)
    else:
        model = train_model(data, settings, **how)
        thresholds = strategy.fit(np.zeros((1, len(data.hierarchy))), rule=settings.rule)
        return Fitted(model.with_thresholds(thresholds), None)
    model = replace(held_out.decide(strategy, settings.rule), guaranteed=held_out.guarantee(settings.guaranteed_recall))
    return Fitted(model, held_out)
