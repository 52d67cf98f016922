"""`RareNodeClassifier`: the whole of rarenode behind scikit-learn's contract."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from inspect import Parameter, Signature
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import ValidationError
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import _check_sample_weight, check_consistent_length, check_is_fitted, validate_data

from rarenode._io.files import read_together
from rarenode._io.progress import Progress
from rarenode._io.text import explain
from rarenode.config import Settings
from rarenode.data.dataset import Dataset, scored_nodes
from rarenode.data.features import as_features, has_columns, has_text, is_frame, select_columns
from rarenode.data.images import are_images, as_images
from rarenode.diagnosis import NodeDiagnosis
from rarenode.errors import ArgumentError, DataError, Interrupted
from rarenode.estimator.folder import FILE, EstimatorFile, read_estimator_file
from rarenode.estimator.parameters import OWN, SETTINGS, check_held_out_rows, parameter_docs
from rarenode.estimator.targets import class_names, read_targets
from rarenode.hierarchy import HierarchyLike, as_hierarchy
from rarenode.metrics import node_scores
from rarenode.models.encoder import Encoder, as_encoder
from rarenode.thresholds import GUARANTEED
from rarenode.training import ShowProgress, TrainedModel, fit_model
from rarenode.training.model_folder import RECORD


class RareNodeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A hierarchical multi-label classifier that finds the rare, deep nodes.

    Args:
        hierarchy: of the labels: a `Hierarchy`, a file, nested names, (parent, child) pairs or a networkx graph; None:
            flat, and the labels themselves are the nodes.
        SETTINGS
        unscored: nodes that count neither in the loss nor in `score`; None: an artificial root, the only root if it is
            named "root".
        n_counted: so many of the rows, the first ones, define the node weights and are resampled; None: all. The paper
            trains on training and validation rows, but counts and resamples only the former.
        prepare: fill missing values and standardise features, with statistics of the training rows. Without it
            features are used as they are, and must be finite.
        random_state: determines everything random: a number, a numpy RandomState, or None.
        verbose: show progress.

    Attributes:
        model_: the `TrainedModel`.
        hierarchy_: the hierarchy; flat if none was given.
        classes_: the names of its nodes, in the order of the columns of every result.
        thresholds_: the threshold of each node, in the same order.
        guaranteed_: the `GuaranteedRecall` of `predict_guaranteed`; None if no rows were held out.
        history_: one record for each epoch of the final training.
        n_iter_: the number of its epochs.
        engine_: the engine that computed the training.
        blend_weights_: kind of model -> its weight in the blend, 0 if it was left out; empty if none were learned.
        n_features_in_: columns of X.
        feature_names_in_: their names, if X has names.

    Labels may be an indicator matrix, dense or sparse, label sets, or a data frame with a column for each node;
    ancestors of labels are added. Where it is unknown whether a row has a node, a matrix or data frame may have NaN:
    such labels count neither in training nor in `score` and `diagnose`. Columns of results follow ``classes_``, which
    is the hierarchy's order and not that of a data frame: other metrics than `score` want ``Y[classes_]``.

    With one label for each row and no hierarchy this is an ordinary multi-class classifier: the probabilities of a row
    are divided by their sum, and `predict` returns the most probable class.

    >>> from rarenode import Hierarchy
    >>> tree = Hierarchy.from_edges([("animal", "cat"), ("animal", "dog")])
    >>> X, Y = [[0.0], [1.0]] * 10, [{"cat"}, {"dog"}] * 10
    >>> classifier = RareNodeClassifier(tree, hidden_size=16, dropout=0.0, n_trees=10, random_state=0).fit(X, Y)
    >>> tree.decode(classifier.predict([[1.0]]))[0] == {"animal", "dog"}
    True
    """

    def __init__(self, hierarchy: HierarchyLike | None = None, **parameters: Any) -> None:
        known = SETTINGS | OWN
        unknown = next((name for name in parameters if name not in known), None)
        if unknown is not None:
            near = difflib.get_close_matches("random_state" if unknown == "seed" else unknown, known, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise TypeError(f"RareNodeClassifier has no parameter {unknown!r}{hint}")
        self.hierarchy = hierarchy
        for name, default in known.items():
            setattr(self, name, parameters.get(name, default))

    # scikit-learn reads the parameters and their defaults from the signature, which follows from the settings.
    __init__.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            Parameter("self", Parameter.POSITIONAL_OR_KEYWORD),
            Parameter("hierarchy", Parameter.POSITIONAL_OR_KEYWORD, default=None),
            *(Parameter(name, Parameter.KEYWORD_ONLY, default=value) for name, value in (SETTINGS | OWN).items()),
        ]
    )

    @classmethod
    def from_preset(cls, preset: str, hierarchy: HierarchyLike | None = None, **changes: Any) -> Self:
        """An estimator with the parameters of a preset, ``best`` or ``paper``, and changes.

        >>> RareNodeClassifier.from_preset("paper", n_members=10).weighting
        'as_published'
        """
        own = {name: changes.pop(name) for name in OWN if name in changes}
        settings = Settings.preset(preset, **changes).to_dict()
        return cls(hierarchy, **{name: settings[name] for name in SETTINGS}, **own)

    def fit(self, X: Any, y: Any, sample_weight: Any = None, eval_set: Any = None) -> Self:
        """Train.

        Args:
            X: features (rows, features), dense or sparse, NaN where missing; or pictures: `Images`, paths of files, or
                a folder or zip archive. ``encoder`` may then also be an `Encoder` or a torch module.
            y: labels in any of the forms above.
            sample_weight: (rows,), how much each row counts in training: 0, or from 1e-20 to 1e20. Thresholds and
                guaranteed sets count rows the same, but for those of weight 0, which they leave out.
            eval_set: (X, y) of validation rows. Early stopping and thresholds use these, ``cv`` is ignored, and
                ``holdout`` must be None.

        Raises:
            ArgumentError: a parameter has a value that is not valid, or both ``eval_set`` and ``holdout`` are given.
            LabelError, UnknownLabelError: the labels do not fit the hierarchy.
            DataError: the features cannot be used.
            TrainingError: the loss is no longer a number.
        """
        settings = self._settings()
        hierarchy = None if self.hierarchy is None else as_hierarchy(self.hierarchy)
        features = self._features(X, reset=True)
        targets = read_targets(y, hierarchy)
        check_consistent_length(features, targets.Y)
        if eval_set is None:
            check_held_out_rows(settings, features.shape[0])
        elif settings.holdout is not None:
            raise ArgumentError(
                f"holdout={settings.holdout:g} and eval_set are two ways to get validation rows; use one of them"
            )
        weights = None
        if sample_weight is not None:
            weights = _check_sample_weight(sample_weight, features, dtype=np.float32, ensure_non_negative=True)
        names = getattr(self, "feature_names_in_", None)
        rows = Dataset(
            X=features,
            Y=targets.Y,
            known=targets.known,
            hierarchy=targets.hierarchy,
            scored=scored_nodes(targets.hierarchy, self.unscored),
            feature_names=None if names is None else tuple(map(str, names)),
            sample_weight=weights,
            n_counted=self.n_counted,
        )
        valid = None
        if eval_set is not None:
            if isinstance(eval_set, list) and len(eval_set) == 1:  # as other libraries have it
                eval_set = eval_set[0]
            if not isinstance(eval_set, tuple) or len(eval_set) != 2:
                raise ArgumentError("eval_set must be a pair (X, y) of features and labels")
            labels = read_targets(eval_set[1], targets.hierarchy)
            valid = Dataset(
                X=self._like(eval_set[0], features),
                Y=labels.Y,
                known=labels.known,
                hierarchy=targets.hierarchy,
                scored=rows.scored,
            )
        try:
            callback = ShowProgress(Progress(quiet=not self.verbose))
            fitted = fit_model(
                rows, settings, valid=valid, encoder=self._encoder(), prepare=bool(self.prepare), callback=callback
            )
        except Interrupted as error:  # a grid search takes every Exception for a failed fit, and continues
            raise KeyboardInterrupt(str(error)) from None
        self._set_model(fitted.model, targets.classes, targets.one_class)
        return self

    def predict_proba(self, X: Any) -> NDArray[np.floating[Any]]:
        """Probabilities (rows, nodes); a parent's is never below its child's.

        None is 0, as scikit-learn expects: where a forest gives 0, it is the smallest positive float32 instead.
        """
        check_is_fitted(self)
        probs, least = self.model_.predict_proba(self._features(X, reset=False)), np.finfo(np.float32).tiny
        if not self.one_class_:
            return np.maximum(probs, least)
        chosen = probs[:, self._class_columns()].astype(np.float64) + least
        shares: NDArray[np.float64] = chosen / chosen.sum(axis=1, keepdims=True)
        return shares

    def predict(self, X: Any) -> NDArray[Any]:
        """0 or 1 for each row and node; `Hierarchy.decode` turns that into label sets."""
        check_is_fitted(self)
        if self.one_class_:
            classes: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
            return classes
        return self.model_.predict(self._features(X, reset=False)).astype(np.int64)

    def predict_together(self, X: Any, thresholds: str = "expected_f1") -> NDArray[np.int64]:
        """As `predict`, with thresholds fitted to these rows themselves, without labels; see `TrainedModel`.

        Raises:
            ArgumentError: there is no such strategy, or it needs labels; or the problem is multi-class.
        """
        check_is_fitted(self)
        if self.one_class_:
            raise ArgumentError("a multi-class problem has no thresholds: the most probable class is predicted")
        return self.model_.predict_together(self._features(X, reset=False), thresholds).astype(np.int64)

    def predict_guaranteed(self, X: Any) -> NDArray[np.int64]:
        """As `predict`, for guaranteed sets: they find a share of each node's rows, with a probability of 0.9.

        The share is ``guaranteed_recall``. A row is in the set of a node if its probability reaches the node's own
        threshold, whatever the node's ancestors. Nodes without a guarantee are in no set; see ``guaranteed_``.

        Raises:
            ArgumentError: no rows were held out in training, or the problem is multi-class.
        """
        return self.predict_together(X, GUARANTEED)

    def uncertainty(self, X: Any, kind: str = "gmu") -> NDArray[np.float32]:
        """How uncertain the ensemble is about each node, (rows, nodes); kinds are those of `rarenode.uncertainty`."""
        check_is_fitted(self)
        unsure = self.model_.uncertainty(self._features(X, reset=False), kind)
        return unsure[:, self._class_columns()] if self.one_class_ else unsure

    def diagnose(self, X: Any, y: Any) -> NodeDiagnosis:
        """How well each node is found in labelled rows that were not used for training, and why it is missed.

        Its ``to_frame()`` is a table with a line for each node.
        """
        check_is_fitted(self)
        if self.one_class_:
            raise ArgumentError("a multi-class problem has no thresholds to diagnose")
        targets = read_targets(y, self.hierarchy_)
        return self.model_.diagnose(self._features(X, reset=False), targets.Y, targets.known)

    def score(self, X: Any, y: Any) -> float:
        """The mean F1 over scored nodes, 0 where it is undefined; accuracy for a multi-class problem.

        Unlike a micro average, it gives rare nodes the same weight as common ones.
        """
        check_is_fitted(self)
        if self.one_class_:
            return float(accuracy_score(y, self.predict(X)))
        targets = read_targets(y, self.hierarchy_)
        f1 = node_scores(targets.Y, self.predict(X), targets.known).f1
        return float(f1[self.model_.scored].mean())

    def save(self, folder: Path | str) -> None:
        """Save the trained model in a folder, from which `load` reads it; see `TrainedModel.save`."""
        check_is_fitted(self)
        classes = self.classes_.tolist() if self.one_class_ else None
        try:
            beside = EstimatorFile(classes=classes)
        except ValidationError as error:
            raise ArgumentError(f"the estimator cannot be saved: {explain(error, EstimatorFile)}") from None

        def text(parameters: str) -> str:
            return beside.model_copy(update={"parameters": parameters}).model_dump_json(indent=1)

        self.model_.save(folder, {FILE: text})

    @classmethod
    def load(cls, folder: Path | str, encoder: torch.nn.Module | Encoder | None = None) -> Self:
        """Read what `save`, or `rarenode fit`, wrote. Nothing in the folder is executed.

        The estimator has the parameters of the training: ``clone(loaded).fit(X, y)`` repeats it on the same rows, which
        for a dataset of the catalogue are the training rows and then the validation rows. Its ``n_counted`` is set
        where node weights or resampling depend on it; for other rows, set it to None.

        Args:
            folder: the folder.
            encoder: the torch module of the encoder of pictures, if it is not one of the transformers library.

        Raises:
            MissingFileError: a file of the model is not there.
            FileFormatError: a file is damaged.
        """
        def read() -> tuple[TrainedModel, EstimatorFile]:
            model = TrainedModel.load(folder, encoder)
            return model, read_estimator_file(Path(folder), model.hierarchy, model.fingerprints.get("parameters"))

        model, beside = read_together(Path(folder) / RECORD, read)
        settings = model.settings.to_dict()
        unscored: Sequence[str] | None = None
        if (model.scored != scored_nodes(model.hierarchy)).any():
            unscored = [node for node, counts in zip(model.hierarchy.nodes, model.scored, strict=True) if not counts]
        classifier = cls(
            None if beside.classes is not None else model.hierarchy,
            **{name: settings[name] for name in SETTINGS},
            unscored=unscored,
            n_counted=model.n_counted if model.settings.counts_labels else None,
            prepare=model.preparation is not None,
            random_state=model.settings.seed,
        )
        prepared = model.preparation
        classifier.n_features_in_ = model.model.n_features if prepared is None else prepared.n_features
        if model.feature_names is not None and beside.parameters is not None:  # saved by an estimator
            classifier.feature_names_in_ = np.array(model.feature_names, dtype=object)
        one_class = beside.classes is not None
        classifier._set_model(model, np.array(beside.classes if one_class else model.hierarchy.nodes), one_class)
        return classifier

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.allow_nan = bool(self.prepare)
        tags.input_tags.sparse = True
        return tags

    def _settings(self) -> Settings:
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31)
        values = {name: getattr(self, name) for name in SETTINGS}
        encoder = self._encoder()
        if encoder is not None:
            values["encoder"] = encoder.name
        if values["holdout"] is not None and values["cv"] == SETTINGS["cv"]:
            values["cv"] = None  # the default gives way to an explicit holdout
        return Settings(**values, seed=seed)

    def _encoder(self) -> Encoder | None:
        """The encoder, if one was given as such and not by its name."""
        return None if isinstance(self.encoder, str) else as_encoder(self.encoder, self.image_size)

    def _features(self, X: Any, reset: bool) -> Any:
        if are_images(X):
            if reset:
                self.n_features_in_ = 1
            return as_images(X)
        if not reset and self._is_for_pictures() and np.shape(X)[:1] == (0,):
            raise DataError("X has no pictures; at least one is needed")
        if self.prepare and has_columns(X) and (has_text(X) if reset else self._has_categories()):
            return self._categories(X, reset)
        missing = "allow-nan" if self.prepare else True
        return validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=np.float64, ensure_all_finite=missing
        )

    def _is_for_pictures(self) -> bool:
        return hasattr(self, "model_") and self.model_.encoder is not None

    def _has_categories(self) -> bool:
        return hasattr(self, "model_") and bool(self.model_.expects.text)

    def _categories(self, X: Any, reset: bool) -> Any:
        """A data frame with categories, which scikit-learn's validation would refuse."""
        if not reset:
            return X  # the model finds its columns by their names
        features, names = as_features(X)
        self.n_features_in_ = len(names or ())
        self.feature_names_in_ = np.array(names, dtype=object)
        return features

    def _like(self, X: Any, features: Any) -> Any:
        """Validation features in the form of the training features."""
        if not is_frame(features):
            return self._features(X, reset=False)
        return as_features(select_columns(X, tuple(features.columns)))[0]

    def _set_model(self, model: TrainedModel, classes: NDArray[Any], one_class: bool) -> None:
        self.model_ = model
        self.hierarchy_ = model.hierarchy
        self.thresholds_ = model.decides_with.values
        self.guaranteed_ = model.guaranteed
        self.history_ = model.history
        self.n_iter_ = len(model.history)
        self.engine_ = model.engine
        self.blend_weights_ = model.blend_weights
        self.classes_ = classes
        self.one_class_ = one_class

    def _class_columns(self) -> list[int]:
        """Where the classes are among the nodes, which are sorted as text."""
        return [self.hierarchy_.index[name] for name in class_names(self.classes_.tolist())]


RareNodeClassifier.__doc__ = str(RareNodeClassifier.__doc__).replace("SETTINGS", parameter_docs(), 1)
