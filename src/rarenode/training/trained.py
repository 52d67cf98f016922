"""`TrainedModel`: what training leaves behind, enough to predict, to explain itself, and to be saved."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numba
import numpy as np
import torch
from numpy.typing import NDArray

from rarenode.data.preparation import Preparation
from rarenode.diagnosis import NodeDiagnosis, diagnose
from rarenode.errors import ArgumentError, DataError
from rarenode.hierarchy import Hierarchy
from rarenode.models import Forest, MlpEnsemble
from rarenode.models.mlp import Parameters
from rarenode.models.network import MlpNetwork
from rarenode.objective import constrain, uncertainty
from rarenode.thresholds.by_name import make_strategy
from rarenode.thresholds.expected_f import ExpectedF
from rarenode.thresholds.fixed import Fixed
from rarenode.thresholds.thresholds import Thresholds
from rarenode.training.card import Card
from rarenode.training.history import EpochRecord
from rarenode.training.inference import Floats, Logits, blocks, mean_probs, sigmoid
from rarenode.training.model_card import make_card, write_card
from rarenode.training.model_folder import ModelFile, read_model_folder, write_model_folder
from rarenode.training.rows import check_features
from rarenode.training.settings import Settings
from rarenode.version import __version__


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A model that has been trained.

    Features are raw where ``preparation`` is known, and prepared by the caller where it is None. At inference there is
    no dropout, and an ensemble of kind ``dropout`` is a single model.
    """

    shape: MlpEnsemble
    parameters: Parameters
    hierarchy: Hierarchy
    scored: NDArray[np.bool_]
    """(nodes,): which nodes counted in the loss. All are predicted."""
    settings: Settings
    engine: str
    """The engine that computed the training."""
    history: tuple[EpochRecord, ...]
    training_positives: NDArray[np.int64]
    """(nodes,): how many training rows, without clones, carry each node."""
    versions: Mapping[str, str]
    fingerprints: Mapping[str, str]
    """sha256 of training rows, hierarchy and settings."""
    preparation: Preparation | None = None
    feature_names: tuple[str, ...] | None = None
    forest: Forest | None = None
    """Its probabilities are joined with those of the network."""
    thresholds: Thresholds | None = None
    """What `predict` decides with; None is 0.5 for every node."""
    source: str = ""
    """Where the rows came from, in free text."""

    def with_source(
        self,
        source: str,
        preparation: Preparation | None = None,
        feature_names: tuple[str, ...] | None = None,
    ) -> Self:
        """The same model, which now knows where its rows came from and how raw features are prepared."""
        for what, width in (
            ("preparation", None if preparation is None else len(preparation.fill)),
            ("feature_names", None if feature_names is None else len(feature_names)),
        ):
            if width not in (None, self.shape.features):
                raise DataError(f"{what} is for {width} features; the model has {self.shape.features}")
        return replace(self, source=source, preparation=preparation, feature_names=feature_names)

    def with_thresholds(self, thresholds: Thresholds) -> Self:
        """The same model, which now predicts with these thresholds."""
        if len(thresholds.values) != self.shape.nodes:
            raise ArgumentError(f"there are {len(thresholds.values)} thresholds for {self.shape.nodes} nodes")
        return replace(self, thresholds=thresholds)

    # --- prediction ----------------------------------------------------------------------------------------------

    def member_probs(self, X: Any) -> Floats:
        """Each member's constrained probabilities, (members, rows, nodes); one member where ensemble is ``dropout``."""
        features, logits = self._prepared(X), self._logits()
        result = np.empty((self.shape.models, len(features), self.shape.nodes), dtype=np.float32)
        for rows in blocks(len(features), self.shape):
            result[:, rows] = constrain(sigmoid(logits(features[rows])), self.hierarchy)
        return result

    def predict_proba(self, X: Any) -> Floats:
        """Coherent probabilities (rows, nodes): each member constrained, then averaged.

        With a forest, the geometric mean of that and the forest's: coherent too, and high only where both are.
        """
        features = self._prepared(X)
        probs = mean_probs(self._logits(), features, self.shape, self.hierarchy)
        if self.forest is not None:
            np.sqrt(probs * self.forest.predict_proba(features), out=probs)
        return probs

    def predict(self, X: Any) -> NDArray[np.bool_]:
        """Decided nodes (rows, nodes), with all their ancestors."""
        return self.decide(self.predict_proba(X))

    def decide(self, probs: Any) -> NDArray[np.bool_]:
        """The same, from probabilities that `predict_proba` gave."""
        return self.decides_with.decide(probs, self.hierarchy)

    @property
    def decides_with(self) -> Thresholds:
        """The thresholds of `predict`, whether they were found or are 0.5."""
        return self.thresholds or Thresholds(np.full(self.shape.nodes, 0.5), strategy="fixed")

    def predict_together(self, X: Any, decision: str = "expected_f1") -> NDArray[np.bool_]:
        """Decided nodes (rows, nodes), with thresholds that are found on these rows themselves, without labels.

        They suit the very model that decides; those of folds come from models that saw fewer rows. In return a row's
        decision depends on the rows beside it, of which there should be many.

        Raises:
            ArgumentError: the decision is neither expected_f1, expected_f2, ... nor fixed, fixed:0.3, ...
        """
        probs = self.predict_proba(X)
        return self.thresholds_for(probs, decision).decide(probs, self.hierarchy)

    def thresholds_for(self, probs: Any, decision: str) -> Thresholds:
        """What `predict_together` decides with, from probabilities that `predict_proba` gave."""
        strategy = make_strategy(decision)
        if not isinstance(strategy, Fixed | ExpectedF):
            raise ArgumentError(
                f"{strategy.name} is found on training rows or labels, when a model is trained; without them choose "
                "fixed, fixed:0.3, expected_f1, expected_f2, ..."
            )
        rule = self.settings.rule if self.thresholds is None else self.thresholds.rule
        some = probs if len(probs) else np.zeros((1, self.shape.nodes))  # of no rows any thresholds decide none
        return strategy.fit(some, rule=rule)

    def uncertainty(self, X: Any, kind: str = "gmu") -> Floats:
        """How unsure the members are of each node, (rows, nodes), from their unconstrained probabilities.

        Kinds are those of `rarenode.uncertainty`. A single model, which an ensemble of kind ``dropout`` is at
        inference, cannot disagree with itself: its ``epistemic_kl`` and ``epistemic_js`` are 0, its ``gmu`` is its
        ``bbma``, and its ``predictive`` is its ``aleatoric``. These say how close its probability is to one half. A
        forest has no part in it: it is the network that is unsure.
        """
        features, logits = self._prepared(X), self._logits()
        uncertainty(np.zeros((1, 1), dtype=np.float32), kind)  # an unknown kind is refused even if there are no rows
        result = np.empty((len(features), self.shape.nodes), dtype=np.float32)
        for rows in blocks(len(features), self.shape):
            result[rows] = uncertainty(sigmoid(logits(features[rows])), kind)
        return result

    def highest_voice(self, X: Any) -> Floats | None:
        """The highest probability that a member, or the forest, gives each node by itself, (rows, nodes).

        Where it reaches a threshold that the joint probability does not, they disagree. None if there is but one voice.
        """
        if self.shape.models == 1 and self.forest is None:
            return None
        features, logits = self._prepared(X), self._logits()
        result = np.empty((len(features), self.shape.nodes), dtype=np.float32)
        for rows in blocks(len(features), self.shape):
            result[rows] = constrain(sigmoid(logits(features[rows])), self.hierarchy).max(axis=0)
        if self.forest is not None:
            np.maximum(result, self.forest.predict_proba(features), out=result)
        return result

    def diagnose(self, X: Any, Y: Any) -> NodeDiagnosis:
        """How well each node is found in labelled rows that the model has not seen, and why it is missed."""
        return diagnose(
            Y,
            self.predict_proba(X),
            self.hierarchy,
            self.decides_with,
            self.training_positives,
            scored=self.scored,
            highest_voice=self.highest_voice(X),
            uncertainty=self.uncertainty(X),
        )

    def _prepared(self, X: Any) -> Floats:
        if self.preparation is not None:
            return self.preparation.apply(X)
        features = np.asarray(X, dtype=np.float32)
        check_features(features, self.shape.features)
        return features

    def _logits(self) -> Logits:
        network = MlpNetwork(self.shape, self.parameters).eval()

        @torch.no_grad()
        def logits(X: Floats) -> Floats:
            return np.asarray(network(torch.tensor(X)).numpy())

        return logits

    # --- files ---------------------------------------------------------------------------------------------------

    def save(self, folder: Path | str) -> None:
        """Write the model into a folder: ``model.safetensors``, ``model.json``, and ``README.md`` for people.

        Other files in the folder are left alone; an earlier model in it is replaced.

        Raises:
            OSError: it could not be written.
        """
        record = self._record()
        write_model_folder(Path(folder), record, self.parameters, self.forest, write_card(record))

    def card(self) -> Card:
        """What a person wants to know of the model; `save` writes it as ``README.md``."""
        return make_card(self._record())

    def _record(self) -> ModelFile:
        return ModelFile.describe(
            features=self.shape.features,
            hierarchy=self.hierarchy,
            scored=self.scored,
            settings=self.settings,
            engine=self.engine,
            history=self.history,
            training_positives=self.training_positives,
            versions=self.versions,
            fingerprints=self.fingerprints,
            preparation=self.preparation,
            feature_names=self.feature_names,
            source=self.source,
            forest=self.forest,
            thresholds=self.thresholds,
        )

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Read what `save` wrote. Nothing in the folder is executed, and nothing read beyond what it must have.

        Raises:
            MissingFileError: a file of the model is not there.
            FileFormatError: a file is damaged, or belongs to another model or a newer rarenode.
        """
        record, hierarchy, parameters, forest = read_model_folder(Path(folder))
        return cls(
            shape=record.shape,
            parameters=parameters,
            hierarchy=hierarchy,
            scored=~hierarchy.encode([record.unscored])[0],
            settings=record.settings,
            engine=record.engine,
            history=record.history,
            training_positives=np.array(record.training_positives, dtype=np.int64),
            versions=record.versions,
            fingerprints=record.fingerprints,
            preparation=None if record.preparation is None else record.preparation.as_preparation(),
            feature_names=record.feature_names,
            source=record.source,
            forest=forest,
            thresholds=record.as_thresholds(),
        )


def current_versions() -> dict[str, str]:
    """What computes here."""
    return {
        "rarenode": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": str(torch.__version__),
        "numba": numba.__version__,
    }
