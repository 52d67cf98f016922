"""A run's model together with rows that fit it, and what is decided about them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rarenode.cli.matching import require_match
from rarenode.cli.sources import Rows, load_rows
from rarenode.data.catalogue import SplitName, catalogue
from rarenode.errors import ArgumentError
from rarenode.training import TrainedModel, TrainingRows

TAUGHT = "the model was trained on these rows: figures of others will be lower"


def load_model_and_rows(
    run: Path, data: str | None, split: SplitName | None, root: Path | None
) -> tuple[TrainedModel, str, Rows]:
    """The model of a run, the DATA that is meant, and its rows.

    DATA None is the dataset of the catalogue that the run was trained on.

    Raises:
        DataError: the rows have other features or another hierarchy than the model; the message says which.
    """
    model = TrainedModel.load(run)
    if data is None:
        data = model.source
        if data not in catalogue():
            raise ArgumentError(f"{run} was not trained on a dataset of the catalogue; name the DATA to look at")
    rows = load_rows(data, split, root, model.source, model.hierarchy)
    require_match(data, rows.feature_names, rows.hierarchy, model.feature_names, model.hierarchy)
    return model, data, rows


def asking(model: TrainedModel, rows: Rows) -> TrainedModel:
    """The model that takes the features of these rows as they are."""
    return replace(model, preparation=None) if rows.prepared else model


def decide(model: TrainedModel, probs: NDArray[np.float32], decision: str | None) -> tuple[NDArray[np.bool_], str]:
    """Decided nodes, and how they were: by the model's thresholds, or by another decision that needs only ``probs``.

    Labels of the rows that are looked at would tell more than can be known, so there is no way to give them.

    Raises:
        ArgumentError: the decision needs labels or the training rows.
    """
    thresholds = model.decides_with if decision is None else model.thresholds_for(probs, decision)
    return thresholds.decide(probs, model.hierarchy), thresholds.in_words(fitted_here=decision is not None)


def were_trained_on(model: TrainedModel, data: str, split: SplitName | None, rows: Rows) -> bool:
    """Whether these very rows taught the model, as far as it can be known: it then does better than it ever will."""
    if data in catalogue():
        return data == model.source and split in ("train", "valid")
    if model.preparation is None or not len(rows.Y):
        return data == model.source
    prepared = model.preparation.apply(rows.X)
    same = TrainingRows(prepared, rows.Y, rows.hierarchy, model.scored).fingerprint == model.fingerprints.get("rows")
    return same or _are_one_file(data, model.source)


def _are_one_file(data: str, source: str) -> bool:
    """Whether the model's source, which may be any text, is a path to the same file."""
    with suppress(OSError, ValueError):  # it is not there, is out of reach, or is no path at all
        return Path(data).samefile(source)
    return False
