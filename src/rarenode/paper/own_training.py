"""Training with the code of a spec: a loss or a resampler for the network, or a model in the place of everything.

Code is executed here, where a training runs. Its family's rules are checked first, once in a process.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode.data.dataset import Dataset
from rarenode.data.images import Images
from rarenode.data.preparation import Preparation, as_float32
from rarenode.data.split import folds
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.labels import dense_rows
from rarenode.models.encoder import Encoder
from rarenode.models.model import Floats
from rarenode.objective import constrain
from rarenode.paper.contracts import CHECKS, OwnModel, as_probabilities, as_resampled
from rarenode.paper.grid import FOLDS, Cell
from rarenode.paper.own_code import OwnCode
from rarenode.resampling.resampler import Resampled, Resampler
from rarenode.training import EpochRecord
from rarenode.training.embedding import embeddings
from rarenode.training.model import current_versions
from rarenode.training.train import How, require_labels


@cache
def checked_class(key: str, code: OwnCode) -> Any:
    """The class, which keeps the rules of its family.

    Raises:
        TrainingError: there is no such class, or it breaks a rule. What its code raises itself is not caught.
    """
    made = code.load()
    CHECKS[key](made, str(code))
    return made


def how_of(cell: Cell, hierarchy: Hierarchy) -> How:
    """What `train_model` needs to train with the loss and the resampler of a cell, if it has any."""
    how: How = {}
    codes = {} if cell.sources is None else cell.sources.codes
    if "objective" in codes:
        how["make_loss"] = checked_class("objective", codes["objective"])
    if "resampler" in codes:
        code = codes["resampler"]
        chosen = checked_class("resampler", code)(hierarchy, cell.settings.seed)
        how["resampler"] = _GivenResampler(chosen, str(code), hierarchy)
    return how


class _GivenResampler(Resampler):
    """A resampler that returns indices of rows, or is one of rarenode's family."""

    def __init__(self, given: Any, name: str, hierarchy: Hierarchy) -> None:
        self.given, self.name, self.hierarchy = given, name, hierarchy

    def resample(self, Y: Any) -> Resampled:
        """See `Resampler`."""
        labels = dense_rows(Y)
        return as_resampled(self.given.resample(labels.copy()), self.name, labels, self.hierarchy)


@dataclass(frozen=True, eq=False)
class FittedOwnModel:
    """A model of one's own that has been trained, with the attributes of `TrainedModel` that a record needs."""

    given: OwnModel
    name: str
    hierarchy: Hierarchy
    preparation: Preparation | None
    encoder: Encoder | None
    seconds: float
    """That ``fit`` took."""
    versions: dict[str, str]
    engine: str = ""
    history: tuple[EpochRecord, ...] = ()

    def predict_proba(self, X: Any) -> Floats:
        """Probabilities (rows, nodes): a node has at least the largest of those below it."""
        features = _features(X, self.encoder, self.preparation)
        probs = as_probabilities(self.given.predict_proba(features), self.name, len(features), len(self.hierarchy))
        coherent: Floats = constrain(probs, self.hierarchy)
        return coherent


def fit_own_model(cell: Cell, rows: Dataset, *, prepare: bool, encoder: Encoder | None = None) -> FittedOwnModel:
    """Train the model of a cell on rows; see `train_model` for the arguments."""
    assert cell.sources is not None and cell.sources.model is not None  # noqa: S101 (a function for those)
    code, rows = cell.sources.model, require_labels(rows, "training")
    made = checked_class("model", code)
    if encoder is not None:
        rows = replace(rows, X=_features(rows.X, encoder, None), feature_names=None)
    preparation = Preparation.fit(rows.X, cell.settings.n_components) if prepare else None
    features = _features(rows.X, None, preparation)
    model = made(rows.hierarchy, cell.settings.seed)
    began = perf_counter()
    model.fit(features, dense_rows(rows.Y).copy())
    seconds = perf_counter() - began
    return FittedOwnModel(model, str(code), rows.hierarchy, preparation, encoder, seconds, current_versions())


def cross_fit_own_model(
    cell: Cell, rows: Dataset, *, prepare: bool, encoder: Encoder | None = None
) -> tuple[FittedOwnModel, Floats]:
    """A model that is trained on all rows, and predictions for each row by one that was trained without its fold."""
    probs = np.empty(rows.Y.shape, dtype=np.float32)
    for kept, held_out in folds(rows.Y, rows.hierarchy, FOLDS, cell.settings.seed):
        fold = fit_own_model(cell, rows.take(kept), prepare=prepare, encoder=encoder)
        probs[held_out] = fold.predict_proba(rows.take(held_out).X)
    return fit_own_model(cell, rows, prepare=prepare, encoder=encoder), probs


def _features(X: Any, encoder: Encoder | None, preparation: Preparation | None) -> NDArray[np.float32]:
    """Prepared features, or embeddings of pictures; the caller may change them."""
    if encoder is not None and isinstance(X, Images):
        X = embeddings(X, encoder)
    prepared: NDArray[np.float32] = as_float32(X) if preparation is None else preparation.apply(X)
    return prepared.copy()
