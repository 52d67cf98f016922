"""`RareNodeClassifier`: the whole of rarenode behind scikit-learn's contract."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from rarenode._io.text import explain
from rarenode.data.preparation import Preparation, as_float32
from rarenode.diagnosis import NodeDiagnosis
from rarenode.errors import ArgumentError, Interrupted
from rarenode.estimator.folder import EstimatorFile, read_estimator_file, write_estimator_file
from rarenode.estimator.targets import class_names, read_targets
from rarenode.hierarchy import Hierarchy
from rarenode.metrics import node_scores
from rarenode.training import Settings, TrainedModel, TrainingRows, choose_progress, fit
from rarenode.training.model_folder import parameters_fingerprint
from rarenode.training.presets import preset

SETTINGS = (
    *("resample", "members", "ensemble", "trees", "weighting", "w0", "focus", "u0", "k", "hidden", "layers", "dropout"),
    *("activation", "learning_rate", "weight_decay", "batch_size", "epochs", "early_stopping", "engine"),
    *("decision", "rule", "holdout", "folds"),
)
"""The parameters that are settings of the training, under the same names."""


class RareNodeClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A hierarchical multi-label classifier that finds the rare, deep nodes.

    Args:
        hierarchy: of the labels; None means flat, and the labels themselves say which nodes there are.
        preset: where the other settings come from, unless they are given: ``best`` (what finds many nodes at a good
            F1; it trains once for each of three folds and once more on all rows) or ``paper`` (what produced the
            paper's tables, with `Settings`' defaults). See `rarenode.training.presets`.
        decision: how nodes are decided from probabilities: ``expected_f1``, ``expected_f2``, ``prior``, ``tuned``,
            ``global``, ``precision_floor:0.2``, ``fixed:0.3``; see `rarenode.thresholds`. All but the fixed ones are
            found on rows that the model was not trained on.
        rule: how decisions are made coherent: ``add_ancestors`` or ``drop_orphans``.
        holdout: the share of rows to hold out for that, and for early stopping; takes the place of folds.
        folds: instead, train once without each of so many folds, then once more on all rows. 0 is none.
        resample: rows trained on more than once, because what they carry is rare: ``lpros``, ``lpros-textbook``,
            ``hros-pd``, ``hros-pd-published`` (see `rarenode.LPROS` and `rarenode.HROSPD`), or ``none``. Node weights
            are computed after it.
        members: of the ensemble.
        ensemble: ``independent`` (models of their own) or ``dropout`` (Monte-Carlo passes through one model).
        trees: of a forest whose probabilities are joined with those of the network; 0 is no forest.
        weighting: node weights by rarity: ``as_published``, ``as_described`` or ``none``; see `node_weights`.
        w0: the least node weight.
        focus: what the ensemble is unsure of counts more: an uncertainty such as ``gmu``, or ``focal``, or ``none``.
        u0: the least focus.
        k: the exponent of the focus.
        hidden: units in each hidden layer.
        layers: linear layers; 1 is a linear model.
        dropout: the chance that a hidden unit is dropped in training.
        activation: ``relu`` or ``tanh``.
        learning_rate: of Adam.
        weight_decay: of Adam.
        batch_size: rows in a training step.
        epochs: times over the rows, at most.
        early_stopping: epochs without a better AP on rows not trained on, after which to stop; 0 trains to the end.
        engine: ``fused`` (fast, CPU), ``torch``, or ``auto``.
        random_state: decides everything random; a number, a numpy RandomState, or None for numpy's own.
        prepare: fill missing values and standardise features, with the statistics of the training rows. Without it
            features are used as they are, and none may be missing.
        verbose: show progress.

    Attributes:
        model_: the `TrainedModel`.
        hierarchy_: the hierarchy; flat where none was given.
        classes_: the names of its nodes, in the order of the columns of every result.
        engine_: the engine that computed the training.
        n_features_in_: columns of X.
        feature_names_in_: their names, where X had names that are text.

    Labels may be an indicator matrix, label sets, or a data frame with a column for each node; ancestors of labels are
    added. Columns of results follow ``classes_``, which is the hierarchy's order and not that of a data frame: other
    metrics than `score` want ``Y[classes_]``.

    With one label for each row and no hierarchy this is an ordinary multi-class classifier: the probabilities of a row
    are divided by their sum, and `predict` returns the likeliest class.

    >>> from rarenode import Hierarchy
    >>> tree = Hierarchy.from_edges([("animal", "cat"), ("animal", "dog")])
    >>> X, Y = [[0.0], [1.0]] * 10, [{"cat"}, {"dog"}] * 10
    >>> classifier = RareNodeClassifier(tree, hidden=16, dropout=0.0, trees=10, random_state=0).fit(X, Y)
    >>> tree.decode(classifier.predict([[1.0]]))[0] == {"animal", "dog"}
    True
    """

    def __init__(
        self,
        hierarchy: Hierarchy | None = None,
        *,
        preset: str = "best",
        decision: str | None = None,
        rule: str | None = None,
        holdout: float | None = None,
        folds: int | None = None,
        resample: str | None = None,
        members: int | None = None,
        ensemble: str | None = None,
        trees: int | None = None,
        weighting: str | None = None,
        w0: float | None = None,
        focus: str | None = None,
        u0: float | None = None,
        k: float | None = None,
        hidden: int | None = None,
        layers: int | None = None,
        dropout: float | None = None,
        activation: str | None = None,
        learning_rate: float | None = None,
        weight_decay: float | None = None,
        batch_size: int | None = None,
        epochs: int | None = None,
        early_stopping: int | None = None,
        engine: str | None = None,
        random_state: int | np.random.RandomState | None = None,
        prepare: bool = True,
        verbose: bool = False,
    ) -> None:
        self.hierarchy = hierarchy
        self.preset = preset
        self.decision = decision
        self.rule = rule
        self.holdout = holdout
        self.folds = folds
        self.resample = resample
        self.members = members
        self.ensemble = ensemble
        self.trees = trees
        self.weighting = weighting
        self.w0 = w0
        self.focus = focus
        self.u0 = u0
        self.k = k
        self.hidden = hidden
        self.layers = layers
        self.dropout = dropout
        self.activation = activation
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.batch_size = batch_size
        self.epochs = epochs
        self.early_stopping = early_stopping
        self.engine = engine
        self.random_state = random_state
        self.prepare = prepare
        self.verbose = verbose

    def fit(self, X: Any, y: Any) -> Self:
        """Train on features (rows, features) and labels in any of the forms above.

        Raises:
            ArgumentError: a parameter has a value that means nothing.
            LabelError, UnknownLabelError: the labels do not fit the hierarchy.
            DataError: the features cannot be used.
            TrainingError: the loss is no longer a number.
        """
        settings = self._settings()
        features = self._features(X, reset=True)
        targets = read_targets(y, self.hierarchy)
        check_consistent_length(features, targets.Y)
        _check_unseen_rows(settings, len(features))
        preparation = Preparation.fit(features) if self.prepare else None
        rows = TrainingRows(
            X=as_float32(features) if preparation is None else preparation.apply(features),
            Y=targets.Y,
            hierarchy=targets.hierarchy,
            scored=np.ones(len(targets.hierarchy), dtype=np.bool_),
        )
        try:
            model = fit(rows, settings, watch=choose_progress(quiet=not self.verbose))
        except Interrupted as error:  # a search over many fits takes every Exception for a failed fit, and goes on
            raise KeyboardInterrupt(str(error)) from None
        names = getattr(self, "feature_names_in_", None)
        self._remember(
            model.with_source("fit(X, y)", preparation, None if names is None else tuple(names)),
            targets.classes,
            targets.one_class,
        )
        return self

    def predict_proba(self, X: Any) -> NDArray[np.floating[Any]]:
        """Probabilities (rows, nodes); that of a parent is never below that of its child.

        None is 0: that no tree of the forest has met a node among rows like these does not rule it out.
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
            likeliest: NDArray[Any] = self.classes_[self.predict_proba(X).argmax(axis=1)]
            return likeliest
        return self.model_.predict(self._features(X, reset=False)).astype(np.int64)

    def predict_together(self, X: Any, decision: str = "expected_f1") -> NDArray[np.int64]:
        """As `predict`, with thresholds that are found on these rows themselves, without labels; see `TrainedModel`.

        Raises:
            ArgumentError: there is no such decision, or it needs labels; or every row has one class.
        """
        check_is_fitted(self)
        if self.one_class_:
            raise ArgumentError("every row has one class, the likeliest: there is nothing to decide")
        return self.model_.predict_together(self._features(X, reset=False), decision).astype(np.int64)

    def uncertainty(self, X: Any, kind: str = "gmu") -> NDArray[np.float32]:
        """How unsure the members are of each node of each row, (rows, nodes); kinds as in `rarenode.uncertainty`."""
        check_is_fitted(self)
        unsure = self.model_.uncertainty(self._features(X, reset=False), kind)
        return unsure[:, self._class_columns()] if self.one_class_ else unsure

    def diagnose(self, X: Any, y: Any) -> NodeDiagnosis:
        """How well each node is found in labelled rows that were not trained on, and why it is missed.

        Its ``to_frame()`` is a table with a line for each node.
        """
        check_is_fitted(self)
        if self.one_class_:
            raise ArgumentError("every row has one class, the likeliest: there are no thresholds to look at")
        return self.model_.diagnose(self._features(X, reset=False), read_targets(y, self.hierarchy_).Y)

    def score(self, X: Any, y: Any) -> float:
        """The mean over nodes of their F1, 0 where it is undefined; accuracy, where every row has one class.

        Unlike an average over cells, it does not let a few common nodes speak for all.
        """
        check_is_fitted(self)
        if self.one_class_:
            return float(accuracy_score(y, self.predict(X)))
        return float(node_scores(read_targets(y, self.hierarchy_).Y, self.predict(X)).f1.mean())

    def save(self, folder: Path | str) -> None:
        """Write the trained model into a folder, from which `load` has it again; see `TrainedModel.save`."""
        check_is_fitted(self)
        classes = self.classes_.tolist() if self.one_class_ else None
        try:
            beside = EstimatorFile(classes=classes)
        except ValidationError as error:
            raise ArgumentError(f"the estimator cannot be saved: {explain(error, EstimatorFile)}") from None
        self.model_.save(folder)
        parameters = parameters_fingerprint(Path(folder))
        write_estimator_file(Path(folder), beside.model_copy(update={"parameters": parameters}))

    @classmethod
    def load(cls, folder: Path | str) -> Self:
        """Read what `save`, or `rarenode fit`, wrote. Nothing in the folder is executed.

        Raises:
            MissingFileError: a file of the model is not there.
            FileFormatError: a file is damaged.
        """
        model = TrainedModel.load(folder)
        beside = read_estimator_file(Path(folder), model.hierarchy, model.fingerprints.get("parameters"))
        settings = model.settings.to_dict()
        classifier = cls(
            None if beside.classes is not None else model.hierarchy,
            preset="paper",  # under which None is the default of `Settings`
            **{name: settings[name] for name in SETTINGS},
            random_state=model.settings.seed,
            prepare=model.preparation is not None,
        )
        classifier.n_features_in_ = model.shape.features
        if model.feature_names is not None:
            classifier.feature_names_in_ = np.array(model.feature_names, dtype=object)
        one_class = beside.classes is not None
        classifier._remember(model, np.array(beside.classes if one_class else model.hierarchy.nodes), one_class)
        return classifier

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.input_tags.allow_nan = bool(self.prepare)
        return tags

    def _settings(self) -> Settings:
        if not isinstance(self.hierarchy, Hierarchy | None):
            raise ArgumentError(f"hierarchy must be a Hierarchy or None, got {type(self.hierarchy).__name__}")
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31)
        given = {name: value for name in SETTINGS if (value := getattr(self, name)) is not None}
        return preset(self.preset, **given, seed=seed)

    def _features(self, X: Any, reset: bool) -> NDArray[np.float64]:
        missing = "allow-nan" if self.prepare else True
        checked: NDArray[np.float64] = validate_data(self, X, reset=reset, dtype=np.float64, ensure_all_finite=missing)
        return checked

    def _remember(self, model: TrainedModel, classes: NDArray[Any], one_class: bool) -> None:
        self.model_ = model
        self.hierarchy_ = model.hierarchy
        self.engine_ = model.engine
        self.classes_ = classes
        self.one_class_ = one_class

    def _class_columns(self) -> list[int]:
        """Where the classes are among the nodes, which are sorted as text."""
        return [self.hierarchy_.index[name] for name in class_names(self.classes_.tolist())]


def _check_unseen_rows(settings: Settings, rows: int) -> None:
    """Refuse settings for which there are not the rows, in terms of this estimator's parameters."""
    if settings.folds is not None and rows < settings.folds:
        raise ArgumentError(
            f"folds={settings.folds} needs at least as many rows, got n_samples={rows}; with folds=0, early_stopping=0 "
            "and decision='fixed' a model is trained once, on all rows"
        )
    if settings.early_stopping is not None and settings.folds is None and settings.holdout is None:
        raise ArgumentError(
            f"early_stopping={settings.early_stopping} looks at rows that are not trained on; set holdout or folds, or "
            "early_stopping=0"
        )
