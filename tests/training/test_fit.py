"""From rows and settings to a model that decides, against the same steps taken one by one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rarenode.config import Settings
from rarenode.errors import ArgumentError, DataError
from rarenode.hierarchy import Terms
from rarenode.thresholds import make_strategy
from rarenode.training import TrainedModel, fit_model, train_model
from rarenode.training.out_of_fold import cross_fit, hold_out, validate
from tests import oracles
from tests.training import problem
from tests.training.problem import Recorder, data, rows, same, validation, with_labels

X = data().test.X


def settings(**changes: Any) -> Settings:
    return problem.settings(**({"engine": "torch", "batch_size": 32} | changes))


# --- settings that contradict each other -----------------------------------------------------------------------------


@pytest.mark.parametrize("focus", ["epistemic_kl", "epistemic_js"])
def test_an_epistemic_focus_needs_several_members(focus: str) -> None:
    with pytest.raises(ArgumentError, match=f"focus='{focus}' .* n_members=1 .* n_members to 2 or more"):
        fit_model(rows(), settings(focus=focus, n_members=1, thresholds="fixed", cv=None))


@pytest.mark.parametrize("changes", [{"focus": "gmu"}, {"focus": "epistemic_js", "n_members": 2}])
def test_any_other_focus_suits_one_member(changes: dict[str, Any]) -> None:
    assert fit_model(rows(), settings(epochs=1, thresholds="fixed", cv=None, **changes)).model.history


@pytest.mark.parametrize(("changes", "name"), [({"compile": True}, "compile"), ({"precision": "bfloat16"}, "bfloat16")])
def test_what_is_for_gpus_is_named_on_the_cpu(changes: dict[str, Any], name: str) -> None:
    with pytest.warns(RuntimeWarning, match=f"{name}.* changes nothing on the CPU"):
        fit_model(rows(), settings(epochs=1, thresholds="fixed", cv=None, **changes))


# --- held-out rows ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "thresholds", ["expected_f1", "expected_f2", "prior", "tuned", "global", "midpoint"]
)
def test_folds_and_then_all_rows(thresholds: str) -> None:
    chosen = settings(thresholds=thresholds, cv=2, epochs=1, model="mlp+forest", n_trees=2, rule="drop_orphans")
    fitted, expected = fit_model(rows(), chosen), cross_fit(rows(), chosen)
    strategy = make_strategy(thresholds)
    assert same(fitted.model, expected.model)
    assert fitted.model.thresholds == strategy.fit(
        expected.probs, expected.Y, prior=expected.prior, rule="drop_orphans"
    )
    assert fitted.model.settings == chosen
    assert fitted.held_out is not None
    assert np.array_equal(fitted.held_out.Y, rows().Y)
    assert np.array_equal(fitted.held_out.probs, expected.probs)
    assert not np.allclose(fitted.held_out.probs, fitted.model.predict_proba(rows().X))


def test_a_fraction_of_the_rows() -> None:
    chosen = settings(thresholds="expected_f1", holdout=0.3, patience=1, seed=2)
    fitted, expected = fit_model(rows(), chosen), hold_out(rows(), chosen)
    assert same(fitted.model, expected.model)
    assert fitted.model.thresholds == make_strategy("expected_f1").fit(expected.probs)
    assert fitted.model.settings == chosen
    assert fitted.model.history[0].valid is not None
    assert fitted.held_out is not None
    assert 0 < len(fitted.held_out.Y) < len(rows())
    assert np.array_equal(fitted.held_out.rows, expected.rows)
    assert np.array_equal(fitted.held_out.probs, expected.probs)
    assert (fitted.model.decide(fitted.held_out.probs) & fitted.held_out.Y).any()


@pytest.mark.parametrize("changes", [{"cv": 2}, {"holdout": 0.2}])
@pytest.mark.parametrize("patience", [None, 1])
def test_validation_rows_replace_cv_and_holdout(changes: dict[str, Any], patience: int | None) -> None:
    chosen = settings(thresholds="prior", patience=patience, **changes)
    recorder = Recorder()
    fitted = fit_model(rows(), chosen, valid=validation(), callback=recorder)
    expected = validate(rows(), chosen, validation())
    assert recorder.batches.count((1, 1)) == 1
    assert same(fitted.model, expected.model)
    assert fitted.model.thresholds == make_strategy("prior").fit(expected.probs, expected.Y, prior=expected.prior)
    assert fitted.model.settings == chosen
    assert fitted.held_out is not None
    assert np.array_equal(fitted.held_out.Y, validation().Y)


@pytest.mark.parametrize("cv", [None, 2])
def test_without_a_use_for_held_out_rows_there_is_one_training(cv: int | None) -> None:
    chosen = settings(thresholds="fixed:0.3", cv=cv)
    recorder = Recorder()
    fitted = fit_model(rows(), chosen, callback=recorder)
    assert recorder.batches.count((1, 1)) == 1
    assert fitted.held_out is None
    assert same(fitted.model, train_model(rows(), chosen))
    assert fitted.model.thresholds is not None
    assert set(fitted.model.thresholds.values.tolist()) == {0.3}


def test_early_stopping_uses_folds_even_if_thresholds_are_fixed() -> None:
    chosen = settings(thresholds="fixed", cv=2, patience=1, epochs=6, learning_rate=0.1)
    fitted, expected = fit_model(rows(), chosen), cross_fit(rows(), chosen)
    assert same(fitted.model, expected.model)
    assert len(fitted.model.history) < 6


def test_early_stopping_needs_held_out_rows() -> None:
    with pytest.raises(ArgumentError, match=r"early stopping \(patience\) needs validation rows; set cv or holdout"):
        fit_model(rows(), settings(patience=1))


def test_more_folds_than_rows() -> None:
    with pytest.raises(DataError, match="there are only 3 labelled rows, and cv=4 needs at least 4 rows"):
        fit_model(rows().take(np.arange(3)), settings(cv=4, thresholds="expected_f1"))


# --- the model -------------------------------------------------------------------------------------------------------


def test_the_settings_are_those_that_were_given() -> None:
    """Although the last training stops where the folds were best, and has no validation rows."""
    chosen = settings(thresholds="prior", cv=3, epochs=12, patience=1, learning_rate=0.1)
    model = fit_model(rows(), chosen).model
    assert model.settings == chosen
    assert model.fingerprints["settings"] == chosen.fingerprint
    assert model.fingerprints["data"] == rows().fingerprint
    assert len(model.history) < 12
    assert all(record.valid is None for record in model.history)


@pytest.mark.parametrize(("thresholds", "value"), [("fixed", 0.5), ("fixed:0.3", 0.3), ("fixed:0", 0.0)])
@pytest.mark.parametrize("held_out", [{}, {"holdout": 0.2}, {"cv": 2}])
def test_a_fixed_threshold_does_not_depend_on_rows(thresholds: str, value: float, held_out: dict[str, Any]) -> None:
    chosen = settings(thresholds=thresholds, rule="drop_orphans", epochs=1, **held_out)
    model = fit_model(rows(), chosen).model
    assert model.thresholds is not None
    assert model.thresholds.values.tolist() == [value] * 20
    assert (model.thresholds.rule, model.thresholds.strategy) == ("drop_orphans", chosen.thresholds)


def test_it_is_the_same_after_saving_and_loading(tmp_path: Path) -> None:
    chosen = settings(thresholds="expected_f1", cv=2, model="mlp+forest", n_trees=3, patience=1)
    model = fit_model(rows(), chosen, folder=tmp_path).model
    model.save(tmp_path)
    loaded = TrainedModel.load(tmp_path)
    assert loaded.settings == chosen
    assert loaded.thresholds == model.thresholds
    assert np.array_equal(loaded.predict(X), model.predict(X))


def test_fitting_again_with_the_settings_of_a_loaded_model_gives_the_same_model(tmp_path: Path) -> None:
    chosen = settings(
        thresholds="prior", cv=2, n_members=2, side="both", classes="binary", schedule="linear",
        schedule_towards="w0", mix=0.5, reduction="mean", focus="gmu", resampling="lpros",
    )  # fmt: skip
    model = fit_model(rows(), chosen).model
    model.save(tmp_path)
    again = fit_model(rows(), TrainedModel.load(tmp_path).settings).model
    assert same(again, model)
    assert again.thresholds == model.thresholds


def test_decisions() -> None:
    model = fit_model(rows(), settings(thresholds="expected_f1", cv=2, model="mlp+forest", n_trees=3)).model
    assert model.thresholds is not None
    probs = model.predict_proba(X)
    decided = np.array([[p >= t for p, t in zip(row, model.thresholds.values, strict=True)] for row in probs])
    assert np.array_equal(model.predict(X), oracles.close(decided, rows().hierarchy))
    assert (model.predict(X) != (probs >= 0.5)).any()


# --- rows without labels ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("held_out", [{}, {"holdout": 0.3}, {"cv": 2}])
def test_rows_without_labels_are_left_out_with_a_warning(held_out: dict[str, Any]) -> None:
    """Not taken for rows without any node."""
    chosen = settings(epochs=1, thresholds="expected_f1" if held_out else "fixed", **held_out)
    labelled = np.arange(150) % 3 != 0
    partly = replace(with_labels(rows(), labelled), name="survey.csv")
    with pytest.warns(RuntimeWarning, match=r"survey\.csv: 50 of 150 rows have no labels.*not used for training"):
        fitted = fit_model(partly, chosen)
    expected = fit_model(rows().take(np.flatnonzero(labelled)), chosen)
    assert same(fitted.model, expected.model)
    assert fitted.model.thresholds == expected.model.thresholds
    assert fitted.model.training_positives.tolist() == expected.model.training_positives.tolist()


def test_no_rows_with_labels() -> None:
    nothing = replace(with_labels(rows(), np.zeros(150, dtype=np.bool_)), name="survey.csv")
    with pytest.raises(DataError, match=r"survey\.csv: no row has labels, so none can be used for training"):
        fit_model(nothing, settings())
    with pytest.raises(DataError, match="no row has labels"):
        train_model(nothing, settings())
    with pytest.raises(DataError, match="there are no rows"):
        train_model(rows().take(np.arange(0)), settings())


HALF = "a\ud800"


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"titles": HALF}, "title of a node"),
        ({"namespaces": HALF}, "namespace of a node"),
        ({"excluded": frozenset([HALF])}, "id of a term"),
        ({"obsolete": frozenset([HALF])}, "id of a term"),
    ],
)
def test_half_a_character_is_refused_before_training(changes: dict[str, Any], what: str) -> None:
    few, recorder = rows(), Recorder()
    nodes = few.hierarchy.nodes
    given = {name: (text,) * len(nodes) if isinstance(text, str) else text for name, text in changes.items()}
    terms = Terms(**({"titles": nodes} | given))
    with pytest.raises(DataError, match=f"the {what}, 'a.ud800', is not valid Unicode text"):
        fit_model(replace(few, hierarchy=few.hierarchy.with_terms(terms)), settings(cv=2), callback=recorder)
    assert not recorder.batches


def test_copies_among_training_rows_are_named_before_rows_are_held_out() -> None:
    copied = rows().take(np.concatenate([np.arange(100), np.arange(30)]))
    forest = {"model": "forest", "n_trees": 1, "patience": None}
    with pytest.warns(RuntimeWarning, match=r"30 rows have the same features .*\(row 1 = row 0, .*keep one"):
        fit_model(copied, settings(thresholds="prior", cv=2, **forest))
    fit_model(copied, settings(thresholds="fixed", cv=None, **forest))
