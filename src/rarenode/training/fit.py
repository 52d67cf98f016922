"""`fit`: the whole way from rows and settings to a model that decides, with as many trainings as that takes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from rarenode.data.dataset import Split
from rarenode.errors import ArgumentError
from rarenode.thresholds.by_name import make_strategy
from rarenode.training.loop import train
from rarenode.training.progress import Watch
from rarenode.training.rows import TrainingRows
from rarenode.training.settings import Settings
from rarenode.training.trained import TrainedModel
from rarenode.training.unseen import Unseen, cross_fit, hold_out


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model that decides, and what is known of it on rows that it, or the model that was asked, has not seen."""

    model: TrainedModel
    unseen: Unseen | None
    """None where all rows trained and none was set aside."""


def fit(
    rows: TrainingRows,
    settings: Settings,
    *,
    valid: Split | None = None,
    folder: Path | str | None = None,
    resume: bool = False,
    watch: Watch | None = None,
) -> TrainedModel:
    """Train, once or as often as ``holdout`` or ``folds`` ask for, and find the thresholds of ``decision``.

    Arguments and errors are those of `train`; ``valid`` is for settings without holdout and folds. With folds, their
    models lie in ``folder`` until `remove_folds`; where nothing is to be found on them, only the last is trained.
    """
    return fit_and_ask(rows, settings, valid=valid, folder=folder, resume=resume, watch=watch).model


def fit_and_ask(
    rows: TrainingRows,
    settings: Settings,
    *,
    valid: Split | None = None,
    folder: Path | str | None = None,
    resume: bool = False,
    watch: Watch | None = None,
) -> Fitted:
    """The same as `fit`, together with the unseen rows on which the thresholds were found."""
    if valid is not None and (settings.folds is not None or settings.holdout is not None):
        raise ArgumentError("holdout and folds choose validation rows themselves; give none, or set neither")
    strategy = make_strategy(settings.decision)
    if settings.folds is not None and (settings.needs_unseen_rows or settings.early_stopping is not None):
        unseen: Unseen = cross_fit(rows, settings, settings.folds, folder=folder, resume=resume, watch=watch)
        # What was asked for; the last training had epochs of its own, which its history tells.
        model = unseen.decide(strategy, settings.rule)
        told = replace(model, settings=settings, fingerprints={**model.fingerprints, "settings": settings.fingerprint})
        return Fitted(told, unseen)
    if settings.holdout is not None:
        unseen = hold_out(rows, settings, settings.holdout, folder=folder, resume=resume, watch=watch)
        return Fitted(unseen.decide(strategy, settings.rule), unseen)
    model = train(rows, settings, valid=valid, folder=folder, resume=resume, watch=watch)
    thresholds = strategy.fit(np.zeros((1, len(rows.hierarchy))), rule=settings.rule)
    return Fitted(model.with_thresholds(thresholds), None)
