"""From rows and settings to a model that decides, against the same steps taken one by one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rarenode.training.unseen import cross_fit, hold_out

from rarenode.errors import ArgumentError
from rarenode.thresholds import make_strategy
from rarenode.training import Settings, TrainedModel, fit, train
from tests import oracles
from tests.training import problem
from tests.training.problem import Recorder, data, rows, same

X = data().test.X


def settings(**changes: Any) -> Settings:
    return problem.settings(**({"engine": "torch", "batch_size": 32} | changes))


@pytest.mark.parametrize("decision", ["expected_f1", "expected_f2", "prior", "tuned", "global", "precision_floor:0.2"])
def test_folds_and_then_all_rows(decision: str) -> None:
    chosen = settings(decision=decision, folds=2, epochs=1, trees=2, rule="drop_orphans")
    model = fit(rows(), chosen)
    unseen = cross_fit(rows(), chosen, 2)
    expected = make_strategy(decision).fit(unseen.probs, unseen.Y, prior=unseen.prior, rule="drop_orphans")
    assert same(model, unseen.model)
    assert model.thresholds == expected
    assert model.settings == chosen


def test_a_share_held_out() -> None:
    chosen = settings(decision="expected_f1", holdout=0.3, early_stopping=1, seed=2)
    model = fit(rows(), chosen)
    unseen = hold_out(rows(), chosen, 0.3)
    assert same(model, unseen.model)
    assert model.thresholds == make_strategy("expected_f1").fit(unseen.probs)
    assert model.settings == chosen
    assert model.history[0].valid is not None


def test_the_settings_are_those_that_were_asked_for() -> None:
    """Although the last training stops where the folds were best, and looks at no validation rows."""
    chosen = settings(decision="prior", folds=3, epochs=12, early_stopping=1, learning_rate=0.1)
    model = fit(rows(), chosen)
    assert model.settings == chosen
    assert model.fingerprints["settings"] == chosen.fingerprint
    assert len(model.history) < 12
    assert all(record.valid is None for record in model.history)


@pytest.mark.parametrize(("decision", "threshold"), [("fixed", 0.5), ("fixed:0.3", 0.3), ("fixed:0", 0.0)])
@pytest.mark.parametrize("unseen", [{}, {"holdout": 0.2}, {"folds": 2}])
def test_a_fixed_threshold_is_the_same_whatever_the_rows(
    decision: str, threshold: float, unseen: dict[str, Any]
) -> None:
    chosen = settings(decision=decision, rule="drop_orphans", epochs=1, **unseen)
    model = fit(rows(), chosen)
    assert model.thresholds is not None
    assert model.thresholds.values.tolist() == [threshold] * 20
    assert (model.thresholds.rule, model.thresholds.strategy) == ("drop_orphans", chosen.decision)


def test_without_rows_to_hold_out_it_is_one_training() -> None:
    watch = Recorder()
    model = fit(rows(), settings(early_stopping=1), valid=data().valid, watch=watch)
    assert same(model, train(rows(), settings(early_stopping=1), valid=data().valid))
    assert watch.batches.count((1, 1)) == 1
    assert model.history[0].valid is not None
    with pytest.raises(ArgumentError, match="early_stopping needs validation rows"):
        fit(rows(), settings(early_stopping=1))


def test_more_folds_than_rows() -> None:
    with pytest.raises(ArgumentError, match="number of rows, 3; got 4"):
        fit(rows().take(np.arange(3)), settings(folds=4, decision="expected_f1"))


def test_folds_that_nothing_is_to_be_found_on_are_not_trained() -> None:
    model = fit(rows(), settings(folds=4, decision="fixed:0.3"))
    assert np.array_equal(model.predict_proba(X), train(rows(), settings()).predict_proba(X))


def test_validation_rows_beside_folds() -> None:
    for changes in ({"folds": 2}, {"holdout": 0.2}):
        with pytest.raises(ArgumentError, match="choose validation rows themselves"):
            fit(rows(), settings(**changes), valid=data().valid)


def test_it_comes_back_from_its_folder(tmp_path: Path) -> None:
    chosen = settings(decision="expected_f1", folds=2, trees=3, early_stopping=1)
    model = fit(rows(), chosen, folder=tmp_path)
    model.save(tmp_path)
    loaded = TrainedModel.load(tmp_path)
    assert loaded.settings == chosen
    assert loaded.thresholds == model.thresholds
    assert np.array_equal(loaded.predict(X), model.predict(X))


def test_what_is_decided() -> None:
    model = fit(rows(), settings(decision="expected_f1", folds=2, trees=3))
    assert model.thresholds is not None
    probs = model.predict_proba(X)
    decided = np.array([[p >= t for p, t in zip(row, model.thresholds.values, strict=True)] for row in probs])
    assert np.array_equal(model.predict(X), oracles.close(decided, rows().hierarchy))
    assert (model.predict(X) != (probs >= 0.5)).any()
