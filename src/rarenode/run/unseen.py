"""Rows that a run's model was not trained on: test rows, validation rows, or held-out rows with their predictions.

A report at the end of a fit is about them, and so are `Run.evaluate` and `Run.report` if no data are named.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rarenode._io.files import exists
from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.diagnosis import NodeDiagnosis, diagnose
from rarenode.errors import FileFormatError
from rarenode.models import Output
from rarenode.report import RunReport, report_on_predictions
from rarenode.run.files import HELD_OUT
from rarenode.run.rows import pictures_of
from rarenode.thresholds import depends_on_rows
from rarenode.training import TrainedModel

if TYPE_CHECKING:
    from rarenode.run.run import Run


@dataclass(frozen=True, eq=False)
class Unseen:
    """Labelled rows that a model was not trained on."""

    rows: Dataset
    about: str
    """Which rows these are, in a few words."""
    left_out: int = 0
    """Further rows, which have no labels."""
    numbers: NDArray[np.int64] | None = None
    """Which of the rows of the data these are; None: all."""
    probs: NDArray[np.float32] | None = None
    """Their probabilities by the models of folds, which are gone; None: the model itself has not seen them."""
    training_support: NDArray[np.int64] | None = None
    """(nodes,): training rows of each node for the models that predict; None: those of the model."""
    fitted_here: bool = False
    """Whether the model's thresholds were fitted to these very rows."""


def unseen_rows(run: Run, opened: Dataset | DatasetSplits, rows: Dataset, valid: Dataset | None) -> Unseen | None:
    """The rows of a fit that its model was not trained on.

    Args:
        run: the run, whose model is complete.
        opened: the data that it was fitted to.
        rows: those of them that were for training and have labels.
        valid: the validation rows, if they were given as such.

    Returns:
        Test rows, or else validation or held-out rows; None if all were used for training.
    """
    if isinstance(opened, DatasetSplits):
        test = opened.test.with_labels_only().with_dense_labels()
        return Unseen(test, f"{opened.name}, test rows", left_out=len(opened.test) - len(test))
    model = run.model
    if not (model.settings.holds_out_rows and exists(run.folder / HELD_OUT)):
        return None
    held_out = run.files.held_out(model)
    support = held_out["training_support"]
    if valid is not None:
        labelled = valid.with_labels_only().with_dense_labels()
        about, left_out = f"{valid.name}, validation rows", len(valid) - len(labelled)
        return Unseen(labelled, about, left_out=left_out, training_support=support, fitted_here=True)
    order = np.argsort(held_out["rows"], kind="stable")  # `take` keeps the order of the data
    numbers, one_model = held_out["rows"][order], model.settings.holdout is not None
    if numbers[-1] >= len(rows):
        raise FileFormatError(run.folder / HELD_OUT, None, f"it names row {numbers[-1]:,} of {len(rows):,}; remove it")
    return Unseen(
        rows.take(numbers),
        f"{rows.name}, {'held-out rows' if one_model else 'out-of-fold predictions'}",
        numbers=numbers,
        probs=None if one_model else held_out["probs"][order],
        training_support=support,
        fitted_here=True,
    )


def kept_rows(run: Run) -> Unseen | None:
    """Held-out or validation rows of which the run itself keeps predictions and labels, as no file has them.

    They have no features and no pictures; None if the run keeps none.
    """
    model = run.model
    if not exists(run.folder / HELD_OUT):
        return None
    held_out = run.files.held_out(model)
    if "labels" not in held_out:
        return None
    is_validation, name = "validation" in model.fingerprints, model.source or "the training data"
    kind = "held-out rows" if model.settings.holdout is not None else "out-of-fold predictions"
    order = np.argsort(held_out["rows"], kind="stable")
    known, ids = held_out.get("known"), None
    if "ids" in held_out:
        try:
            names = json.loads(held_out["ids"].tobytes())
            ids = tuple(str(names[place]) for place in order.tolist())
        except (ValueError, LookupError, TypeError, RecursionError):
            raise FileFormatError(run.folder / HELD_OUT, None, "its ids are damaged; remove it") from None
    rows = Dataset(
        X=np.empty((len(order), 0), dtype=np.float32),
        Y=held_out["labels"][order],
        hierarchy=model.hierarchy,
        scored=model.scored,
        ids=ids,
        known=None if known is None else known[order],
    )
    return Unseen(
        rows,
        "validation rows" if is_validation else f"{name}, {kind}",
        numbers=None if is_validation else held_out["rows"][order],
        probs=held_out["probs"][order],
        training_support=held_out["training_support"],
        fitted_here=True,
    )


def diagnose_unseen(model: TrainedModel, unseen: Unseen) -> NodeDiagnosis:
    """How well each node is found in rows that the model was not trained on, and why it is missed."""
    rows = unseen.rows
    if unseen.probs is None and unseen.training_support is None:
        return model.diagnose(rows.X, rows.Y, rows.known)
    output = model.compute(rows.X, highest=True, uncertainty="gmu") if unseen.probs is None else Output(unseen.probs)
    return diagnose(
        rows.Y,
        output.probs,
        model.hierarchy,
        model.decides_with,
        model.training_positives if unseen.training_support is None else unseen.training_support,
        scored=model.scored,
        highest_member_probs=output.highest,
        uncertainty=output.uncertainty,
        known=rows.known,
    )


def report_on_unseen(run: Run, unseen: Unseen, *, name: str, thresholds: str | None = None) -> RunReport:
    """What a page says about rows that the model was not trained on; arguments are those of `Run.report_part`."""
    model, rows = run.model, unseen.rows
    output = model.compute(rows.X, highest=True, uncertainty="gmu") if unseen.probs is None else Output(unseen.probs)
    part = report_on_predictions(
        model,
        rows.Y,
        output,
        name=name,
        rows=unseen.about,
        thresholds=model.thresholds_for(output.probs, thresholds),
        training_rows=unseen.training_support,
        row_numbers=unseen.numbers,
        fitted_here=unseen.fitted_here or depends_on_rows(thresholds),
        known=rows.known,
        ids=rows.ids,
        pictures=pictures_of(rows),
    )
    return replace(part, examination=run.files.examination())
