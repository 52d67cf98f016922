"""`TrainedModel`: a model with what belongs to it: preparation, thresholds, and where it comes from."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

import numba
import numpy as np
import torch
from numpy.typing import NDArray

from rarenode._io.text import counted, storable
from rarenode.config import Settings
from rarenode.data.dataset import Dataset, require_match
from rarenode.data.features import has_columns, select_columns
from rarenode.data.images import Images, are_images, as_images
from rarenode.data.preparation import Preparation, as_float32
from rarenode.data.stored import StoredFeatures
from rarenode.data.table_options import Expected, TableOptions
from rarenode.diagnosis import NodeDiagnosis, diagnose
from rarenode.engines import limited_threads, resolve_device
from rarenode.errors import ArgumentError, DataError
from rarenode.hierarchy import Hierarchy
from rarenode.metrics import accretion_from_counts
from rarenode.models import Blend, Mlp, Model, Output
from rarenode.models.encoder import Encoder
from rarenode.models.model import Floats, check_input
from rarenode.objective.uncertainties import check_kind
from rarenode.thresholds import GUARANTEED, GuaranteedRecall, Thresholds, make_strategy
from rarenode.training.callbacks import EpochRecord
from rarenode.training.embedding import embeddings
from rarenode.training.model_card import Card, make_card, write_card
from rarenode.training.model_folder import ModelFile, is_finished_run, read_model_folder, write_model_folder
from rarenode.version import __version__


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A model that has been trained.

    It prepares features itself: every method takes raw features, NaN where a value is missing. A model without a
    preparation takes features as they are, which must be finite.
    """

    model: Model
    hierarchy: Hierarchy
    scored: NDArray[np.bool_]
    """(nodes,): which nodes counted in the loss. All are predicted."""
    settings: Settings
    engine: str
    """The engine that computed the training; empty for a forest alone."""
    history: tuple[EpochRecord, ...]
    training_positives: NDArray[np.int64]
    """(nodes,): how many training rows, without clones, have each node."""
    versions: Mapping[str, str]
    fingerprints: Mapping[str, str]
    """sha256 of training rows, hierarchy and settings."""
    preparation: Preparation | None = None
    feature_names: tuple[str, ...] | None = None
    thresholds: Thresholds | None = None
    """What `predict` decides with; None is 0.5 for every node."""
    source: str = ""
    """Where the training rows came from."""
    reading: TableOptions | None = None
    """How the table was read that they came from, if it was one."""
    n_counted: int | None = None
    """So many of the rows that it was fitted to, the first ones, defined node weights and were resampled; see
    `Dataset.n_counted`."""
    parents_together: NDArray[np.int64] | None = None
    """(nodes,): how many training rows, without clones, have all parents of each node; None in older models."""
    prior: NDArray[np.float64] | None = None
    """(nodes,): the share of the rows for training and validation that have each node, of those that count more than 0
    and where it is known; None in older models."""
    encoder: Encoder | None = None
    """What turns pictures into features, which are then prepared; None if rows are no pictures."""
    guaranteed: GuaranteedRecall | None = None
    """What `predict_guaranteed` decides with; None if no rows were held out, and in older models."""

    def with_thresholds(self, thresholds: Thresholds) -> Self:
        """The same model, with these thresholds.

        Raises:
            ArgumentError: there is not one for each node, or no rule that makes the decisions of `predict` coherent.
        """
        if len(thresholds.values) != len(self.hierarchy):
            raise ArgumentError(
                f"there are {counted(len(thresholds.values), 'threshold')} for {counted(len(self.hierarchy), 'node')}"
            )
        if thresholds.rule is None:
            raise ArgumentError("thresholds of a model need a rule, add_ancestors or drop_orphans; they have None")
        return replace(self, thresholds=thresholds)

    def on(self, device: str) -> Self:
        """The same model, whose network and encoder are computed on a device; its other parts stay on the CPU.

        Args:
            device: ``cpu``, ``cuda``, ``cuda:1``, ``mps``, or ``auto``, which is the best that is there.

        Raises:
            ArgumentError: the device is not available.
        """
        where = resolve_device(device)
        parts = tuple(replace(part, device=where) if isinstance(part, Mlp) else part for part in self.parts)
        model = replace(self.model, models=parts) if isinstance(self.model, Blend) else parts[0]
        return replace(self, model=model, encoder=None if self.encoder is None else replace(self.encoder, device=where))

    # --- prediction ----------------------------------------------------------------------------------------------

    def compute(self, X: Any, *, highest: bool = False, uncertainty: str | None = None) -> Output:
        """Probabilities of rows and, if requested, what else one pass through the model yields; see `Model.compute`."""
        if isinstance(X, StoredFeatures):
            return Output.joined(
                len(X), ((rows, self.compute(x, highest=highest, uncertainty=uncertainty)) for rows, x in X.blocks())
            )
        with self._threads():
            return self.model.compute(self.prepare(X), highest=highest, uncertainty=uncertainty)

    def _threads(self) -> AbstractContextManager[None]:
        """Keep to the ``n_jobs`` of the settings."""
        return limited_threads(self.settings.n_jobs, compiled=self.settings.models != ("mlp",))

    def prepare(self, X: Any) -> Floats:
        """The input of the model for raw features; columns of a data frame are found by their names.

        A model for pictures takes `Images`, paths of files, a folder or zip archive, or embeddings (rows, width).

        Raises:
            DataError: a column is missing, or features or pictures cannot be used.
        """
        X = self._embedded(self._select(X))
        if self.preparation is not None:
            prepared: Floats = self.preparation.apply(X)
            return prepared
        features: Floats = as_float32(X)
        check_input(features, self.model.n_features)
        return features

    def _embedded(self, X: Any) -> Any:
        """Embeddings of pictures; other features as they are."""
        if not are_images(X):
            return X
        if self.encoder is None:
            raise DataError("the model was trained on tables, and cannot predict pictures")
        return embeddings(as_images(X), self.encoder, n_jobs=self.settings.n_jobs)

    def _select(self, X: Any) -> Any:
        """The features of the model, in its order, if X has names for them."""
        if not has_columns(X) or self.feature_names is None:
            return X
        return select_columns(X, self.feature_names)

    def predict_proba(self, X: Any) -> Floats:
        """Coherent probabilities (rows, nodes): a parent's is never below its child's."""
        return self.compute(X).probs

    def predict_parts(self, X: Any) -> tuple[Floats, ...]:
        """The probabilities (rows, nodes) of each model in a blend; of another model, its own alone."""
        if isinstance(X, StoredFeatures):
            parts = tuple(np.empty((len(X), len(self.hierarchy)), dtype=np.float32) for _ in self.parts)
            for rows, x in X.blocks():
                for whole, part in zip(parts, self.predict_parts(x), strict=True):
                    whole[rows] = part
            return parts
        prepared = self.prepare(X)
        with self._threads():
            return tuple(part.compute(prepared).probs for part in self.parts)

    @property
    def blend_weights(self) -> dict[str, float]:
        """Kind of model -> its weight in the blend, 0 if it was left out; empty if no weights were learned."""
        if self.settings.blend != "learned" or len(self.settings.models) == 1:
            return {}
        weights = self.model.weights if isinstance(self.model, Blend) else (1.0,)
        learned = dict(zip((part.kind for part in self.parts), weights, strict=False))
        return {kind: learned.get(kind, 0.0) for kind in self.settings.models} if learned else {}

    @property
    def parts(self) -> tuple[Model, ...]:
        """The models in a blend, or the model itself."""
        return self.model.models if isinstance(self.model, Blend) else (self.model,)

    def predict(self, X: Any) -> NDArray[np.bool_]:
        """Decided nodes (rows, nodes), with all their ancestors."""
        return self.decide(self.predict_proba(X))

    def decide(self, probs: Any) -> NDArray[np.bool_]:
        """Decided nodes, from probabilities that `predict_proba` returned."""
        return self.decides_with.decide(probs, self.hierarchy)

    @property
    def decides_with(self) -> Thresholds:
        """The thresholds of `predict`: fitted ones, or 0.5."""
        return self.thresholds or Thresholds(np.full(len(self.hierarchy), 0.5), strategy="fixed")

    def predict_together(self, X: Any, thresholds: str = "expected_f1") -> NDArray[np.bool_]:
        """Decided nodes (rows, nodes), with thresholds that are fitted to these rows themselves, without labels.

        They suit the very model that decides, while those of folds come from models with fewer rows. In return the
        decision for a row depends on the other rows, of which there should be many.

        Raises:
            ArgumentError: the strategy needs labels; expected_f1, ..., prior, midpoint and fixed:0.3 do not.
        """
        probs = self.predict_proba(X)
        return self.thresholds_for(probs, thresholds).decide(probs, self.hierarchy)

    @property
    def never_predicted(self) -> int:
        """How many scored nodes the thresholds leave out in all rows."""
        return int(np.count_nonzero(np.isinf(self.decides_with.values) & self.scored))

    @property
    def given_up(self) -> str:
        """Which of them are left out because nothing can be promised about them, in words; empty if there are none."""
        return self.decides_with.given_up(self.hierarchy.titles, self.scored)

    def predict_guaranteed(self, X: Any) -> NDArray[np.bool_]:
        """Guaranteed sets (rows, nodes): they find a share of each node's rows, with a probability of 0.9.

        The share is the setting ``guaranteed_recall``. A row is in the set of a node if its probability reaches the
        node's own threshold; sets of a node and its ancestors are not made coherent, as the decisions of `predict` are.
        Nodes without a guarantee (see ``guaranteed.is_guaranteed``) are in none.

        Raises:
            ArgumentError: the model was trained without held-out rows, or by an older rarenode.
        """
        return self.predict_together(X, GUARANTEED)

    def thresholds_for(self, probs: Any, thresholds: str | None) -> Thresholds:
        """The model's own thresholds for None, those of guaranteed sets, or others fitted to probabilities alone.

        Raises:
            ArgumentError: as for `predict_together` and `predict_guaranteed`.
        """
        if thresholds is None:
            return self.decides_with
        if thresholds == GUARANTEED:
            if self.guaranteed is None:
                raise ArgumentError(
                    "the model has no guaranteed sets: no rows were held out when it was trained, or an older rarenode "
                    "trained it; train it again, with cv, holdout or validation rows"
                )
            return self.guaranteed.thresholds
        strategy = make_strategy(thresholds)
        if strategy.needs_labels:
            raise ArgumentError(
                f"{strategy.name} needs the labels of held-out rows, so it can only be chosen for training; without "
                f"them choose fixed, fixed:0.3, expected_f1, expected_f2, ..., prior, midpoint or {GUARANTEED}"
            )
        rule = self.settings.rule if self.thresholds is None else self.thresholds.rule
        some = probs if len(probs) else np.zeros((1, len(self.hierarchy)))  # for no rows any thresholds will do
        prior = self.training_positives / max(self.n_training_rows, 1) if self.prior is None else self.prior
        return strategy.fit(some, prior=prior, rule=rule)

    def member_probs(self, X: Any) -> Floats:
        """Each network's constrained probabilities, (members, rows, nodes).

        Raises:
            ArgumentError: the model has no networks.
        """
        network = next((part for part in self.parts if isinstance(part, Mlp)), None)
        if network is None:
            raise ArgumentError(f"a {self.model.kind} has no members; train model='mlp'")
        with self._threads():
            return network.member_probs(self.prepare(X))

    def uncertainty(self, X: Any, kind: str = "gmu") -> Floats:
        """How uncertain the ensemble is about each node, (rows, nodes); kinds are those of `rarenode.uncertainty`.

        In a blend it is the uncertainty of the networks, without the other models.
        """
        check_kind(kind)
        result = self.compute(X, uncertainty=kind).uncertainty
        assert result is not None  # noqa: S101 (it was requested)
        return result

    def diagnose(self, X: Any, Y: Any, known: Any = None) -> NodeDiagnosis:
        """How well each node is found in labelled rows that were not used for training, and why it is missed.

        ``known`` (rows, nodes) says where labels are known; None: everywhere.
        """
        output = self.compute(X, highest=True, uncertainty="gmu")
        return diagnose(
            Y,
            output.probs,
            self.hierarchy,
            self.decides_with,
            self.training_positives,
            scored=self.scored,
            highest_member_probs=output.highest,
            uncertainty=output.uncertainty,
            known=known,
        )

    @property
    def information_accretion(self) -> NDArray[np.float64] | None:
        """Of each node, in the training rows; see `rarenode.metrics.information_accretion`. None in older models."""
        if self.parents_together is None:
            return None
        return accretion_from_counts(self.training_positives, self.parents_together)

    @property
    def n_training_rows(self) -> int:
        """How many rows it was trained on, without clones; of an older model, those of its most frequent node."""
        # All rows have all parents of a root, which has none; where labels are unknown, rows that know of one count.
        counts = self.training_positives if self.parents_together is None else self.parents_together
        return int(counts.max(initial=0))

    @property
    def expects(self) -> Expected:
        """What files of rows for this model must have."""
        names = self.feature_names
        categories = None if self.preparation is None else self.preparation.categories
        text: tuple[str, ...] = ()
        if names is not None and categories is not None:
            text = tuple(name for name, each in zip(names, categories, strict=True) if each is not None)
        return Expected(self.hierarchy, names, text, self.reading, images=self.encoder is not None)

    def check_match(self, data: Dataset, *, labels: bool) -> None:
        """Make sure that rows have the model's features and, where labels matter, its hierarchy.

        Raises:
            DataError: they differ; the message says how.
        """
        if isinstance(data.X, Images) != (self.encoder is not None):
            ours, theirs = ("pictures", "a table") if self.encoder is not None else ("a table", "pictures")
            raise DataError(f"the model was trained on {ours}, and {data.name or 'the data'} is {theirs}")
        require_match(
            data.name or "the data",
            data.feature_names,
            data.hierarchy if labels else None,
            self.feature_names,
            self.hierarchy,
        )

    # --- files ---------------------------------------------------------------------------------------------------

    def save(
        self, folder: Path | str, beside: Mapping[str, Callable[[str], str]] = MappingProxyType({})
    ) -> None:
        """Write the model into a folder: ``model.safetensors``, ``model.json``, and ``README.md`` for people.

        Other files in the folder are left alone; an earlier model in it is replaced, and is there until the new one is
        complete. The folder of a finished `Run` is refused, since its report and data belong to its model.

        Args:
            folder: where to write it.
            beside: more files that are replaced with it, by name: from the fingerprint of its parameters to their text.

        Raises:
            ArgumentError: the folder contains a finished run.
            FolderInUseError: another process writes into the folder.
            OSError: it could not be written.
        """
        if is_finished_run(Path(folder)):
            raise ArgumentError(f"{folder} contains a run of `rarenode fit`; save the model in another folder")
        record, card = self._record(), write_card(self._record())
        write_model_folder(Path(folder), record, self.model, card, self.encoder, self.preparation, beside)

    def card(self) -> Card:
        """The model card, which `save` writes as ``README.md``."""
        return make_card(self._record())

    def _record(self) -> ModelFile:
        return ModelFile.describe(
            model=self.model,
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
            source=storable(self.source),
            thresholds=self.thresholds,
            reading=self.reading,
            n_counted=self.n_counted,
            parents_together=self.parents_together,
            prior=self.prior,
            encoder=self.encoder,
            guaranteed=self.guaranteed,
        )

    @classmethod
    def load(
        cls, folder: Path | str, encoder: torch.nn.Module | Encoder | None = None, device: str | None = None
    ) -> Self:
        """Read what `save` wrote. Nothing in the folder is executed, and nothing read beyond what it must have.

        Args:
            folder: the folder.
            encoder: the torch module of the encoder, or an encoder made of it, if it is not one of the transformers
                library; a copy of it gets the weights in the folder.
            device: see `on`; None: that of the training or, where that is not available, the CPU.

        Raises:
            ArgumentError: the device is not available.
            MissingFileError: a file of the model is not there.
            FileFormatError: a file is damaged, or belongs to another model or a newer rarenode.
        """
        module = encoder.module if isinstance(encoder, Encoder) else encoder
        where = None if device is None else resolve_device(device)
        record, hierarchy, model, loaded, preparation = read_model_folder(Path(folder), module)
        read = cls(
            model=model,
            hierarchy=hierarchy,
            scored=~hierarchy.encode([record.unscored])[0],
            settings=record.settings,
            engine=record.engine,
            history=record.history,
            training_positives=np.array(record.training_positives, dtype=np.int64),
            versions=record.versions,
            fingerprints=record.fingerprints,
            preparation=preparation,
            feature_names=record.feature_names,
            source=record.source,
            thresholds=record.as_thresholds(),
            reading=record.reading,
            n_counted=record.n_counted,
            parents_together=record.as_parents_together(),
            prior=None if record.prior is None else np.array(record.prior, dtype=np.float64),
            encoder=loaded,
            guaranteed=record.as_guaranteed(),
        )
        return read.on(where or _usable_device(record.settings.device))


def _usable_device(device: str) -> str:
    """The device that a model was trained on, or the CPU where that is not there."""
    try:
        return resolve_device(device)
    except ArgumentError:
        return "cpu"


def current_versions() -> dict[str, str]:
    """The versions of what computes here."""
    return {
        "rarenode": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "torch": str(torch.__version__),
        "numba": numba.__version__,
    }
