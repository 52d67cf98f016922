from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest
from scipy.sparse import csc_array, csr_array
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import rarenode
from rarenode._io.files import CHECKSUM_CHARACTERS, belonging
from rarenode.config import Settings
from rarenode.data.dataset import Dataset
from rarenode.errors import (
    ArgumentError,
    DataError,
    FileFormatError,
    LabelError,
    MissingFileError,
    UnknownLabelError,
)
from rarenode.estimator import RareNodeClassifier
from rarenode.hierarchy.three_valued import complete_labels
from rarenode.metrics import node_scores, summary
from rarenode.resampling import make_resampler
from rarenode.thresholds import make_strategy
from rarenode.training import fit_model, train_model

DATA = rarenode.make_hierarchical(rows=240, nodes=12, depth=3, features=6, noise=0.3)
TREE = DATA.hierarchy
NAMES = [f"x{column}" for column in range(6)]
X, Y = DATA.train.X.astype(np.float64), DATA.train.Y
SMALL: dict[str, Any] = {
    "hidden_size": 16, "epochs": 4, "batch_size": 8, "dropout": 0.1, "learning_rate": 1e-3, "random_state": 0,
    "engine": "torch",
}  # fmt: skip


def classifier(**changes: Any) -> RareNodeClassifier:
    """The preset ``paper``, small."""
    values = SMALL | changes
    hierarchy = values.pop("hierarchy", TREE)
    estimator = RareNodeClassifier.from_preset("paper", **values)
    estimator.hierarchy = hierarchy
    return estimator


def best(**changes: Any) -> RareNodeClassifier:
    given: dict[str, Any] = {"hierarchy": TREE, "n_trees": 5, "cv": 2}
    return RareNodeClassifier(**(given | SMALL | changes))


def training_rows() -> Dataset:
    return Dataset(X, Y, TREE, np.ones(len(TREE), dtype=np.bool_))


class TestFit:
    def test_what_is_known_afterwards(self) -> None:
        fitted = classifier().fit(X, Y)
        assert fitted.hierarchy_ is TREE
        assert fitted.classes_.tolist() == list(TREE.nodes)
        assert (fitted.n_features_in_, fitted.engine_) == (6, "torch")
        assert fitted.model_.settings.epochs == 4
        assert not hasattr(fitted, "feature_names_in_")

    def test_forms_of_labels_do_not_matter(self) -> None:
        names = list(TREE.nodes)
        forms = [
            Y,
            Y.astype(int).tolist(),
            TREE.decode(Y),
            polars.DataFrame(Y[:, ::-1], schema=names[::-1], orient="row"),
        ]
        probs = [classifier().fit(X, form).predict_proba(X) for form in forms]
        assert all(np.array_equal(probs[0], other) for other in probs[1:])

    @pytest.mark.parametrize("name", ["lpros", "lpros-textbook", "hros-pd", "hros-pd-published"])
    def test_resampled_rows_are_trained_on_again(self, name: str) -> None:
        sampler = make_resampler(name, TREE, 0)
        assert sampler is not None
        preparation = rarenode.Preparation.fit(X)  # of the rows, not of their clones
        features, labels = sampler.fit_resample(preparation.apply(X), Y)
        assert len(labels) > len(Y)
        by_hand = classifier(prepare=False, weighting="none").fit(features, labels)
        fitted = classifier(resampling=name, weighting="none").fit(X, Y)
        assert np.array_equal(fitted.predict_proba(X), by_hand.predict_proba(preparation.apply(X)))
        assert fitted.model_.training_positives.tolist() == Y.sum(axis=0).tolist()

    def test_forms_of_hierarchies_do_not_matter(self) -> None:
        fitted = classifier(hierarchy=list(TREE.edges), epochs=1).fit(X, Y)
        assert fitted.hierarchy_ == TREE
        assert fitted.hierarchy == list(TREE.edges)
        np.testing.assert_array_equal(fitted.predict_proba(X), classifier(epochs=1).fit(X, Y).predict_proba(X))

    def test_ancestors_are_added(self) -> None:
        deepest = Y.copy()
        deepest[:, TREE.edge_parents] = False
        fitted, same = (classifier().fit(X, labels) for labels in (deepest, TREE.close(deepest)))
        assert np.array_equal(fitted.predict_proba(X), same.predict_proba(X))

    def test_the_training_is_the_one_of_the_training_layer(self) -> None:
        settings = {name: value for name, value in SMALL.items() if name != "random_state"}
        model = train_model(training_rows(), Settings.preset("paper", **settings, seed=0))
        assert np.array_equal(classifier().fit(X, Y).predict_proba(X), model.predict_proba(X))

    def test_random_state(self) -> None:
        def probs(random_state: Any) -> Any:
            return classifier(random_state=random_state).fit(X, Y).predict_proba(X)

        assert np.array_equal(probs(3), probs(np.int64(3)))
        assert not np.array_equal(probs(3), probs(4))
        assert np.array_equal(probs(np.random.RandomState(5)), probs(np.random.RandomState(5)))
        np.random.seed(6)  # noqa: NPY002 (what None means to scikit-learn)
        first = probs(None)
        assert not np.array_equal(first, probs(None))

    def test_missing_values_are_filled_unless_told_otherwise(self) -> None:
        gaps = X.copy()
        gaps[::7, 2] = np.nan
        assert np.isfinite(classifier().fit(gaps, Y).predict_proba(gaps)).all()
        with pytest.raises(ValueError, match="NaN"):
            classifier(prepare=False).fit(gaps, Y)

    def test_prepared_features_are_used_as_they_are(self) -> None:
        fitted = classifier(prepare=False).fit(X, Y)
        assert fitted.model_.preparation is None
        with pytest.raises(DataError, match="too large"):
            classifier(prepare=False).fit(X * 1e40, Y)

    def test_names_of_features_are_remembered(self) -> None:
        frame = polars.DataFrame(X, schema=NAMES, orient="row")
        fitted = classifier().fit(frame, Y)
        assert fitted.feature_names_in_.tolist() == NAMES
        assert fitted.model_.feature_names == tuple(NAMES)
        assert np.array_equal(fitted.predict(frame), classifier().fit(X, Y).predict(X))
        with pytest.raises(ValueError, match="feature names"):
            fitted.predict(frame.rename({"x0": "other"}))

    def test_progress_is_shown_if_asked_for(self, capsys: pytest.CaptureFixture[str]) -> None:
        classifier().fit(X, Y)
        assert capsys.readouterr() == ("", "")
        classifier(verbose=True).fit(X, Y)
        assert "4 epochs" in capsys.readouterr().err

    @pytest.mark.parametrize(
        ("changes", "told"),
        [
            ({"hidden_size": 0}, "hidden_size"),
            ({"weighting": "some"}, "weighting"),
            ({"focus": "doubt"}, "focus"),
            ({"engine": "steam"}, "engine"),
            ({"hierarchy": 5}, "hierarchy must be a Hierarchy, a file, nested names .* networkx graph; got int"),
            ({"thresholds": "guess"}, "unknown threshold strategy 'guess'"),
            ({"cv": 0}, "thresholds=midpoint is fitted to held-out rows; set cv or holdout"),
            ({"rule": "add"}, "rule"),
            ({"holdout": 0.2, "cv": 2}, "holdout and cv are two ways"),
            ({"cv": None, "thresholds": "fixed"}, "patience=5 needs rows that are not trained on; set cv, holdout"),
            ({"unscored": ["nothing"]}, "'nothing' is not a node"),
            ({"cv": len(X) + 1}, f"cv={len(X) + 1} needs at least as many rows, got n_samples={len(X)}"),
        ],
    )
    def test_invalid_parameters(self, changes: dict[str, Any], told: str) -> None:
        with pytest.raises(ArgumentError, match=told):
            best(**changes).fit(X, Y)

    def test_an_unknown_parameter_or_preset(self) -> None:
        for wrong, right in (("trees", "n_trees"), ("seed", "random_state")):
            with pytest.raises(TypeError, match=f"no parameter '{wrong}'; did you mean '{right}'"):
                RareNodeClassifier(None, **{wrong: 3})
        with pytest.raises(ArgumentError, match="unknown preset 'worst'; choose one of best, paper"):
            RareNodeClassifier.from_preset("worst")

    def test_sparse_features_and_labels_are_the_same_training(self) -> None:
        holes = np.where(np.abs(X) < 0.5, 0.0, X)
        dense = classifier().fit(holes, Y)
        for form in (csr_array, csc_array):
            sparse = classifier().fit(form(holes), form(Y.astype(np.int8)))
            assert np.array_equal(sparse.predict_proba(form(holes)), dense.predict_proba(holes))
            assert np.array_equal(sparse.predict_proba(holes), dense.predict_proba(holes))

    def test_sample_weights(self) -> None:
        ones = np.ones(len(X))
        plain = best().fit(X, Y).predict_proba(X)
        assert np.array_equal(best().fit(X, Y, sample_weight=ones).predict_proba(X), plain)
        assert not np.array_equal(best().fit(X, Y, sample_weight=1 + ones * Y[:, 3]).predict_proba(X), plain)
        for wrong in (ones[1:], -ones):
            with pytest.raises(ValueError, match="sample_weight"):
                best().fit(X, Y, sample_weight=wrong)

    def test_rows_of_weight_zero_are_absent_from_a_forest(self) -> None:
        kept = np.arange(len(X)) % 3 > 0
        forest = best(model="forest", cv=None, patience=None, thresholds="fixed", prepare=False)
        weighted = clone(forest).fit(X, Y, sample_weight=kept.astype(float)).predict_proba(X)
        assert np.array_equal(weighted, clone(forest).fit(X[kept], Y[kept]).predict_proba(X))

    def test_rows_for_validation(self) -> None:
        valid = DATA.valid
        assert valid is not None
        fitted = best(epochs=6, learning_rate=1e-2, patience=1).fit(X, Y, eval_set=(valid.X, TREE.decode(valid.Y)))
        listed = best(epochs=1).fit(X, Y, eval_set=[(valid.X, valid.Y)])
        assert listed.n_iter_ == 1
        with pytest.raises(ArgumentError, match="must be a pair"):
            best(epochs=1).fit(X, Y, eval_set=[valid.X, valid.Y, None])
        with pytest.raises(ArgumentError, match=r"holdout=0\.2 and eval_set .* use one of them"):
            best(epochs=1, cv=None, holdout=0.2).fit(X, Y, eval_set=(valid.X, valid.Y))
        assert fitted.history_[0].valid is not None
        assert fitted.n_iter_ == len(fitted.history_) <= 6
        prior = (Y.sum(axis=0) + valid.Y.sum(axis=0)) / (len(Y) + len(valid))
        expected = make_strategy("midpoint").fit(fitted.model_.predict_proba(valid.X), prior=prior)
        assert np.array_equal(fitted.thresholds_, expected.values)
        by_hand = fit_model(training_rows(), fitted.model_.settings, valid=valid).model
        assert np.array_equal(by_hand.predict_proba(X), fitted.model_.predict_proba(X))

    def test_nodes_that_do_not_count(self) -> None:
        some = [TREE.nodes[0], TREE.nodes[5]]
        fitted = classifier(unscored=some).fit(X, Y)
        counted = np.array([node not in some for node in TREE.nodes])
        assert np.array_equal(fitted.model_.scored, counted)
        f1 = node_scores(Y, fitted.predict(X)).f1
        assert fitted.score(X, Y) == f1[counted].mean()

    def test_an_artificial_root_does_not_count(self) -> None:
        tree = rarenode.Hierarchy.from_edges([("root", "a"), ("a", "b"), ("root", "c")])
        fitted = classifier(hierarchy=tree, epochs=1).fit(X[:30], [{"b"}, {"c"}] * 15)
        assert dict(zip(tree.nodes, fitted.model_.scored.tolist(), strict=True)) == {
            "root": False, "a": True, "b": True, "c": True,
        }  # fmt: skip

    @pytest.mark.parametrize("make", [classifier, best])
    def test_labels_that_are_unknown(self, make: Callable[..., RareNodeClassifier]) -> None:
        missing = np.random.default_rng(0).random(Y.shape) < 0.15
        targets = np.where(missing, np.nan, Y)
        known_Y, known = complete_labels(TREE, Y & ~missing, absent=~Y & ~missing, unknown=missing)
        assert known is not None
        fitted = make().fit(X, targets)
        rows = replace(training_rows(), Y=known_Y, known=known)
        assert np.array_equal(fitted.predict_proba(X), make().fit(X, targets).predict_proba(X))
        model = fit_model(rows, fitted._settings()).model
        assert np.array_equal(fitted.model_.predict_proba(X), model.predict_proba(X))
        f1 = node_scores(known_Y, fitted.predict(X), known).f1
        assert fitted.score(X, targets) == f1.mean() != fitted.score(X, Y)
        assert fitted.diagnose(X, targets).known_rows.tolist() == known.sum(axis=0).tolist()
        validated = make().fit(X, Y, eval_set=(X[:20], targets[:20]))
        assert np.isfinite(validated.score(X, targets))

    def test_rows_that_do_not_match(self) -> None:
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            classifier().fit(X[:-1], Y)
        with pytest.raises(UnknownLabelError, match="row 0"):
            classifier().fit(X[:1], [{"nothing"}])


class TestPredict:
    @pytest.mark.parametrize("changes", [{}, {"n_members": 3, "focus": "gmu"}, {"n_members": 3, "ensemble": "dropout"}])
    def test_a_parent_is_at_least_as_probable(self, changes: dict[str, Any]) -> None:
        fitted = classifier(**changes).fit(X, Y)
        probs = fitted.predict_proba(X)
        assert (probs[:, TREE.edge_parents] >= probs[:, TREE.edge_children]).all()
        assert TREE.is_closed(fitted.predict(X))
        assert fitted.uncertainty(X, "bbma").shape == probs.shape

    @pytest.mark.parametrize(("thresholds", "threshold"), [("fixed:0.5", 0.5), ("fixed", 0.5), ("fixed:0.2", 0.2)])
    def test_a_fixed_threshold(self, thresholds: str, threshold: float) -> None:
        fitted = classifier(thresholds=thresholds).fit(X, Y)
        decided = fitted.predict(X)
        assert decided.dtype == np.int64
        assert np.array_equal(decided, fitted.predict_proba(X) >= threshold)

    def test_score_is_the_mean_f1_of_nodes(self) -> None:
        fitted = classifier(thresholds="fixed:0.3").fit(X, Y)
        expected = summary(DATA.test.Y, fitted.predict_proba(DATA.test.X), 0.3).f1
        assert fitted.score(DATA.test.X, DATA.test.Y) == expected > 0
        assert fitted.score(DATA.test.X, TREE.decode(DATA.test.Y)) == expected

    def test_it_learns(self) -> None:
        fitted = classifier(epochs=10, hidden_size=32, learning_rate=1e-2).fit(X, Y)
        assert summary(DATA.test.Y, fitted.predict_proba(DATA.test.X)).ap > 0.8


class TestDecisions:
    def test_parameters_show_what_will_happen(self) -> None:
        shown = RareNodeClassifier().get_params()
        settings = Settings().to_dict()
        assert {name: shown[name] for name in settings if name != "seed"} == {
            name: value for name, value in settings.items() if name != "seed"
        }
        assert RareNodeClassifier.from_preset("best").get_params() == shown

    @pytest.mark.parametrize("changes", [{}, {"holdout": 0.2, "cv": None}, {"thresholds": "tuned", "n_members": 2}])
    def test_the_training_is_the_one_of_the_training_layer(self, changes: dict[str, Any]) -> None:
        given = {"n_trees": 5, "cv": 2} | {name: value for name, value in SMALL.items() if name != "random_state"}
        settings = Settings(**(given | changes), seed=0)
        model = fit_model(training_rows(), settings).model
        fitted = best(**changes).fit(X, Y)
        assert fitted.model_.settings == settings
        assert fitted.model_.thresholds == model.thresholds
        assert np.array_equal(fitted.predict_proba(X), np.maximum(model.predict_proba(X), np.finfo(np.float32).tiny))
        assert np.array_equal(fitted.predict(X), model.predict(X))

    @pytest.mark.parametrize("name", ["expected_f2", "prior", "tuned", "global", "midpoint", "fixed:0.3"])
    def test_decisions_have_names(self, name: str) -> None:
        fitted = best(thresholds=name, epochs=1, n_trees=2, rule="drop_orphans").fit(X, Y)
        assert fitted.model_.thresholds is not None
        assert (fitted.model_.thresholds.strategy, fitted.model_.thresholds.rule) == (name, "drop_orphans")
        assert TREE.is_closed(fitted.predict(X))

    def test_probabilities_do_not_depend_on_the_decision(self) -> None:
        ours, theirs = (best(thresholds=name).fit(X, Y) for name in ("expected_f1", "fixed"))
        assert np.array_equal(ours.predict_proba(X), theirs.predict_proba(X))
        assert (ours.predict(DATA.test.X) != theirs.predict(DATA.test.X)).any()

    def test_rows_can_be_decided_together(self) -> None:
        fitted = best(epochs=2).fit(X, Y)
        together = fitted.predict_together(DATA.test.X, "expected_f2")
        assert np.array_equal(together, fitted.model_.predict_together(DATA.test.X, "expected_f2"))
        assert together.dtype == np.int64
        assert TREE.is_closed(together)
        with pytest.raises(ArgumentError, match="tuned needs the labels of held-out rows"):
            fitted.predict_together(X, "tuned")

    def test_guaranteed_sets(self, tmp_path: Path) -> None:
        fitted = best(epochs=2, guaranteed_recall=0.6).fit(X, Y)
        sets, promise = fitted.predict_guaranteed(DATA.test.X), fitted.guaranteed_
        assert np.array_equal(sets, fitted.model_.predict_guaranteed(DATA.test.X))
        assert sets.dtype == np.int64
        assert promise is not None
        assert np.array_equal(sets, fitted.predict_proba(DATA.test.X) >= promise.thresholds.values)
        assert promise.recall == 0.6
        assert promise.rows.tolist() == np.asarray(Y).sum(axis=0).tolist()
        assert set(np.flatnonzero(sets.any(axis=0)).tolist()) <= set(np.flatnonzero(promise.is_guaranteed).tolist())
        assert sets.any()
        fitted.save(tmp_path)
        loaded = RareNodeClassifier.load(tmp_path)
        assert loaded.guaranteed_recall == 0.6
        assert np.array_equal(loaded.predict_guaranteed(DATA.test.X), sets)
        without = best(cv=0, patience=0, thresholds="fixed").fit(X, Y)
        assert without.guaranteed_ is None
        with pytest.raises(ArgumentError, match="no guaranteed sets"):
            without.predict_guaranteed(X)

    def test_one_training_on_all_rows(self) -> None:
        plain = best(cv=0, patience=0, thresholds="fixed", weighting="as_published", output_bias="random").fit(X, Y)
        same = classifier(model="mlp+forest+neighbours", n_trees=5).fit(X, Y)
        assert np.array_equal(plain.predict_proba(X), same.predict_proba(X))

    def test_too_few_rows(self) -> None:
        with pytest.raises(ArgumentError, match="cv=3 needs at least as many rows, got n_samples=2; with cv=0"):
            best(cv=3).fit(X[:2], Y[:2])
        with pytest.raises(DataError, match="at least 2 rows"):
            best(cv=None, holdout=0.5).fit(X[:1], Y[:1])
        few = best(cv=2).fit(X[:2], Y[:2])
        assert few.predict(X).shape == Y.shape

    def test_it_finds_more_nodes_than_the_paper(self) -> None:
        ours, theirs = (make().fit(X, Y) for make in (best, classifier))
        found = [int((each.predict(DATA.test.X) & DATA.test.Y).any(axis=0).sum()) for each in (ours, theirs)]
        assert found[0] > found[1]
        assert ours.score(DATA.test.X, DATA.test.Y) > theirs.score(DATA.test.X, DATA.test.Y)

    def test_progress_tells_of_every_training(self, capsys: pytest.CaptureFixture[str]) -> None:
        best(model="mlp+forest", blend="geometric", verbose=True, epochs=1, n_trees=2).fit(X, Y)
        shown = capsys.readouterr().err
        assert [title in shown for title in ("fold 1 of 2", "fold 2 of 2", "all rows")] == [True] * 3


class TestDiagnosis:
    def test_it_is_that_of_the_model_and_of_what_is_predicted(self) -> None:
        fitted = best(epochs=2, n_members=2).fit(X, Y)
        found = fitted.diagnose(DATA.test.X, DATA.test.Y)
        assert found.to_frame().equals(fitted.model_.diagnose(DATA.test.X, DATA.test.Y).to_frame())
        hits = (fitted.predict(DATA.test.X) == 1) & DATA.test.Y
        assert found.scores.true_positives.tolist() == hits.sum(axis=0).tolist()
        assert found.training_rows.tolist() == Y.sum(axis=0).tolist()
        carried = DATA.test.Y.any(axis=0)
        expected = np.where(hits.any(axis=0), "found", np.where(carried, "missed", "no_rows"))
        assert found.state.tolist() == expected.tolist()
        assert fitted.score(DATA.test.X, DATA.test.Y) == pytest.approx(found.scores.f1.mean())

    def test_features_are_prepared_and_labels_of_any_form(self) -> None:
        fitted = classifier().fit(X, Y)
        forms = [DATA.test.Y, TREE.decode(DATA.test.Y), DATA.test.Y.astype(int).tolist()]
        frames = [fitted.diagnose(DATA.test.X, form).to_frame() for form in forms]
        assert all(frame.equals(frames[0]) for frame in frames[1:])
        with pytest.raises(ValueError, match="features"):
            fitted.diagnose(DATA.test.X[:, 1:], DATA.test.Y)
        with pytest.raises(LabelError, match="must have the same shape"):
            fitted.diagnose(DATA.test.X[1:], DATA.test.Y)

    def test_names_of_features_are_looked_at(self) -> None:
        frame = polars.DataFrame(X, schema=NAMES, orient="row")
        fitted = classifier().fit(frame, Y)
        assert fitted.diagnose(frame, Y).scores.support.tolist() == Y.sum(axis=0).tolist()
        with pytest.raises(ValueError, match="feature names"):
            fitted.diagnose(frame.rename({"x0": "other"}), Y)

    def test_it_must_be_fitted_and_have_thresholds(self) -> None:
        with pytest.raises(NotFittedError):
            classifier().diagnose(X, Y)
        labels = np.arange(len(X)) % 3
        with pytest.raises(ArgumentError, match="multi-class"):
            classifier(hierarchy=None, epochs=1).fit(X, labels).diagnose(X, labels)


class TestOneClass:
    LABELS = np.array([2, 10, 33])[np.argmax(rarenode.Preparation.fit(X).apply(X)[:, :3], axis=1)]

    def test_it_is_an_ordinary_classifier(self) -> None:
        fitted = classifier(hierarchy=None, epochs=40, dropout=0.0).fit(X, self.LABELS)
        probs = fitted.predict_proba(X)
        assert fitted.classes_.tolist() == [2, 10, 33]
        assert np.allclose(probs.sum(axis=1), 1)
        assert np.array_equal(fitted.predict(X), fitted.classes_[probs.argmax(axis=1)])
        assert fitted.score(X, self.LABELS) == np.mean(fitted.predict(X) == self.LABELS) > 0.8

    def test_the_likeliest_class_needs_no_threshold(self) -> None:
        fitted = best(hierarchy=None, epochs=10).fit(X, self.LABELS)
        with pytest.raises(ArgumentError, match="multi-class"):
            fitted.predict_together(X)
        with pytest.raises(ArgumentError, match="multi-class"):
            fitted.predict_guaranteed(X)
        assert np.array_equal(fitted.predict(X), fitted.classes_[fitted.predict_proba(X).argmax(axis=1)])
        assert fitted.score(X, self.LABELS) > 0.8

    def test_columns_of_uncertainty_are_the_classes(self) -> None:
        fitted = classifier(hierarchy=None, epochs=1).fit(X, self.LABELS)
        nodes = fitted.hierarchy_.nodes
        assert nodes == ("10", "2", "33")
        assert np.array_equal(fitted.uncertainty(X), fitted.model_.uncertainty(X)[:, [1, 0, 2]])


class TestFolder:
    def test_it_comes_back_as_it_was(self, tmp_path: Path) -> None:
        frame = polars.DataFrame(X, schema=NAMES, orient="row")
        fitted = classifier(n_members=2, thresholds="fixed:0.3", focus="gmu", prepare=True).fit(frame, Y)
        fitted.save(tmp_path / "model")
        loaded = RareNodeClassifier.load(tmp_path / "model")
        assert loaded.get_params() == fitted.get_params()
        assert repr(loaded) == repr(fitted)
        assert loaded.classes_.tolist() == fitted.classes_.tolist()
        assert (loaded.n_features_in_, loaded.engine_) == (6, "torch")
        for method in ("predict_proba", "predict", "uncertainty"):
            assert np.array_equal(getattr(loaded, method)(frame), getattr(fitted, method)(frame))

    @pytest.mark.parametrize(
        "changes",
        [
            {"weighting": "as_published", "resampling": "lpros", "cv": 0, "thresholds": "fixed", "patience": 0},
            {"weighting": "as_described", "holdout": 0.3},
            {"resampling": "hros-pd", "cv": 2},
            {"cv": 2},
        ],
    )
    def test_the_training_of_a_run_can_be_repeated(self, tmp_path: Path, changes: dict[str, Any]) -> None:
        """A run counts and resamples training rows only, and learns from validation rows as well."""
        small = {name: value for name, value in SMALL.items() if name != "random_state"} | {"n_trees": 3}
        run = rarenode.Run.fit(DATA, tmp_path, Settings(**small, **changes), report=False)
        rows = DATA.train_and_valid
        again = clone(RareNodeClassifier.load(tmp_path))
        assert again.n_counted == (len(DATA.train) if set(changes) & {"weighting", "resampling"} else None)
        again.fit(rows.X, rows.Y)
        arrays = run.model.model.arrays()
        assert all(np.array_equal(array, arrays[name]) for name, array in again.model_.model.arrays().items())
        assert np.array_equal(again.thresholds_, run.model.decides_with.values)

    def test_no_more_rows_can_count_than_there_are(self) -> None:
        for n_counted in (0, len(X) + 1, 2.5, "all"):
            with pytest.raises(ArgumentError, match=f"n_counted must be None or a whole number from 1 to {len(X)}"):
                classifier(n_counted=n_counted).fit(X, Y)

    def test_unscored_is_a_list(self) -> None:
        with pytest.raises(ArgumentError, match=r"unscored must be a list of nodes, .* write \['root'\]"):
            classifier(unscored="root").fit(X, Y)
        with pytest.raises(ArgumentError, match="unscored must be a list"):
            Dataset.from_arrays(X, Y, TREE, unscored=TREE.nodes[0])

    @pytest.mark.parametrize(
        "make",
        [
            classifier(),
            best(),
            best(cv=None, holdout=0.3, thresholds="prior", rule="drop_orphans", patience=0),
            classifier(
                side="both", classes="binary", schedule="linear", schedule_by="epoch", schedule_towards="w0", mix=0.5,
                reduction="sum", unscored=[TREE.nodes[0]], resampling="lpros",
            ),
        ],
        ids=["paper", "best", "holdout", "all settings"],
    )
    def test_decisions_come_back_and_can_be_learnt_again(self, tmp_path: Path, make: RareNodeClassifier) -> None:
        fitted = clone(make).fit(X, Y)
        fitted.save(tmp_path)
        loaded = RareNodeClassifier.load(tmp_path)
        assert loaded.model_.thresholds == fitted.model_.thresholds
        assert np.array_equal(loaded.predict(X), fitted.predict(X))
        again = clone(loaded).fit(X, Y)
        assert again.model_.settings == fitted.model_.settings
        assert np.array_equal(again.predict_proba(X), fitted.predict_proba(X))
        assert np.array_equal(again.predict(X), fitted.predict(X))

    @pytest.mark.parametrize("classes", [[2, 10, 33], ["b", "a", "c"], [0.0, 1.0, 3.0], [False, True, True]])
    def test_classes_keep_their_type(self, tmp_path: Path, classes: list[Any]) -> None:
        labels = np.array(classes)[np.argmax(X[:, :3], axis=1)]
        fitted = classifier(hierarchy=None, epochs=1).fit(X, labels)
        fitted.save(tmp_path)
        loaded = RareNodeClassifier.load(tmp_path)
        assert loaded.hierarchy is None
        assert loaded.classes_.dtype == fitted.classes_.dtype
        assert np.array_equal(loaded.predict(X), fitted.predict(X))

    @pytest.mark.parametrize("survives", range(7))
    def test_a_kill_leaves_the_earlier_estimator_or_the_new_one(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, survives: int
    ) -> None:
        labels = np.argmax(X[:, :3], axis=1)
        names = np.array(["a", "b", "c"]), np.array(["x", "y", "z"])
        old, new = (classifier(hierarchy=None, epochs=1).fit(X, some[labels]) for some in names)
        old.save(tmp_path)
        renamed, rename = [0], Path.replace

        def killed(self: Path, target: Path) -> Path:
            if renamed[0] == survives:
                raise KeyboardInterrupt
            renamed[0] += 1
            return rename(self, target)

        monkeypatch.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            new.save(tmp_path)
        monkeypatch.undo()
        there = new if survives >= 4 else old
        assert np.array_equal(RareNodeClassifier.load(tmp_path).predict(X), there.predict(X))

    def test_a_waiting_file_that_gets_its_name_while_it_is_read_is_read(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """After a kill between two renamings, the next process to write does the second one, beside a reader."""
        fitted = classifier(hierarchy=None, epochs=1).fit(X, np.array(["a", "b", "c"])[np.argmax(X[:, :3], axis=1)])
        fitted.save(tmp_path)
        checksum = hashlib.sha256((tmp_path / "model.json").read_bytes()).hexdigest()[:CHECKSUM_CHARACTERS]
        waiting = tmp_path / f".estimator.json.{checksum}.new"
        (tmp_path / "estimator.json").rename(waiting)

        def overtaken(path: Path, record: Path) -> Path:
            found = belonging(path, record)
            if found == waiting:
                waiting.rename(tmp_path / "estimator.json")
            return found

        monkeypatch.setattr("rarenode.estimator.folder.belonging", overtaken)
        loaded = RareNodeClassifier.load(tmp_path)
        assert loaded.one_class_
        assert np.array_equal(loaded.predict(X), fitted.predict(X))

    def test_a_model_without_the_file_decides_too(self, tmp_path: Path) -> None:
        fitted = best(epochs=1).fit(X, Y)
        fitted.model_.save(tmp_path)
        assert np.array_equal(RareNodeClassifier.load(tmp_path).predict(X), fitted.predict(X))

    @pytest.mark.parametrize(
        ("content", "told"),
        [
            ("{", "JSON"),
            (json.dumps({"threshold": 0.3}), "threshold"),
            (json.dumps({"classes": "all"}), "classes"),
            (json.dumps({"classes": [1, 2]}), "not those of the model"),
            (" " * (1 << 24) + "{}", "more than"),
        ],
        ids=["broken", "unknown", "wrong", "foreign", "large"],
    )
    def test_damaged_files(self, tmp_path: Path, content: str, told: str) -> None:
        classifier(epochs=1).fit(X, Y).save(tmp_path)
        (tmp_path / "estimator.json").write_text(content)
        with pytest.raises(FileFormatError, match=told):
            RareNodeClassifier.load(tmp_path)

    def test_nothing_there(self, tmp_path: Path) -> None:
        with pytest.raises(MissingFileError):
            RareNodeClassifier.load(tmp_path)


def test_patience_needs_no_rows_without_a_network() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(40, 2)), (rng.random((40, 2)) < 0.5).astype(np.float64)
    model = RareNodeClassifier(model="neighbours", cv=None, thresholds="fixed").fit(X, Y)
    assert model.predict(X).shape == (40, 2)
