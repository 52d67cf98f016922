"""What `fit_and_ask` keeps beside the model: rows that it has not seen, and what was said of them."""

from __future__ import annotations

import numpy as np
import pytest
from rarenode.training.presets import preset
from rarenode.training.unseen import cross_fit, hold_out

from rarenode.training import fit, fit_and_ask, train
from tests.training.problem import rows, same, settings

SMALL = {"hidden": 16, "batch_size": 16, "epochs": 2, "learning_rate": 1e-3, "trees": 3, "engine": "torch"}


def test_folds_ask_about_every_row() -> None:
    chosen = preset("best", **SMALL, folds=2)
    fitted, expected = fit_and_ask(rows(), chosen), cross_fit(rows(), chosen, 2)
    assert fitted.unseen is not None
    assert np.array_equal(fitted.unseen.Y, rows().Y)
    assert np.array_equal(fitted.unseen.probs, expected.probs)
    assert not np.allclose(fitted.unseen.probs, fitted.model.predict_proba(rows().X))
    assert same(fitted.model, fit(rows(), chosen))


def test_rows_held_out() -> None:
    chosen = preset("best", **SMALL, holdout=0.3)
    fitted, expected = fit_and_ask(rows(), chosen), hold_out(rows(), chosen, 0.3)
    assert fitted.unseen is not None
    assert 0 < len(fitted.unseen.Y) < len(rows().Y)
    assert np.array_equal(fitted.unseen.Y, expected.Y)
    assert np.array_equal(fitted.unseen.probs, expected.probs)
    assert fitted.model.thresholds is not None
    decided = fitted.model.decide(fitted.unseen.probs)
    assert (decided & fitted.unseen.Y).any()


@pytest.mark.parametrize("folds", [None, 2])
def test_none_where_all_rows_trained(folds: int | None) -> None:
    """With a fixed threshold and no early stopping folds have nothing to find."""
    chosen = settings(decision="fixed:0.3", folds=folds, engine="torch")
    fitted = fit_and_ask(rows(), chosen)
    assert fitted.unseen is None
    assert same(fitted.model, train(rows(), chosen))
    assert fitted.model.thresholds is not None
    assert set(fitted.model.thresholds.values.tolist()) == {0.3}
