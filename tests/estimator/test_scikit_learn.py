"""scikit-learn's own checks.

Two are expected to fail, as for scikit-learn's own estimators that are trained in batches (`SGDClassifier`,
`MLPClassifier`): a row of weight 2 is not the same as two rows, because rows are shuffled into batches. The two that
are skipped are not about this estimator: the array API has to be requested, and there is no `decision_function`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import rarenode
from rarenode.estimator import RareNodeClassifier

DATA = rarenode.make_hierarchical(rows=200, nodes=12, depth=3, features=8, noise=0.5)
SMALL: dict[str, Any] = {
    "hidden_size": 16, "epochs": 3, "dropout": 0.0, "learning_rate": 1e-3, "batch_size": 32,
    "random_state": 0, "engine": "torch",
}  # fmt: skip
CONTRACT: dict[str, Any] = {
    "hidden_size": 32, "dropout": 0.0, "learning_rate": 1e-2, "engine": "torch", "random_state": 0,
}  # fmt: skip


def expected_to_fail(_: RareNodeClassifier) -> dict[str, str]:
    return dict.fromkeys(
        ("check_sample_weight_equivalence_on_dense_data", "check_sample_weight_equivalence_on_sparse_data"),
        "rows are shuffled into batches, so a row of weight 2 is not the same as two rows",
    )


@pytest.mark.filterwarnings("ignore:.* have the same features as another row")  # of checks of sample weights
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [RareNodeClassifier(epochs=10, n_trees=3, cv=2, **CONTRACT)], expected_failed_checks=expected_to_fail
)
def test_contract(estimator: RareNodeClassifier, check: Callable[[RareNodeClassifier], None]) -> None:
    check(estimator)


@pytest.mark.slow
@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [RareNodeClassifier.from_preset("paper", epochs=30, batch_size=32, **CONTRACT)],
    expected_failed_checks=expected_to_fail,
)
def test_contract_of_the_paper(estimator: RareNodeClassifier, check: Callable[[RareNodeClassifier], None]) -> None:
    check(estimator)


def test_clone_has_the_parameters_and_not_the_model() -> None:
    classifier = RareNodeClassifier.from_preset("paper", DATA.hierarchy, n_members=2, **SMALL)
    classifier.fit(DATA.train.X, DATA.train.Y)
    copy = clone(classifier)
    assert copy.get_params() == classifier.get_params()
    assert copy.hierarchy is DATA.hierarchy
    assert not hasattr(copy, "model_")


def test_pipeline() -> None:
    classifier = RareNodeClassifier.from_preset("paper", DATA.hierarchy, prepare=False, **SMALL)
    pipeline = make_pipeline(StandardScaler(), classifier)
    pipeline.fit(DATA.train.X, DATA.train.Y)
    assert pipeline.predict_proba(DATA.test.X).shape == DATA.test.Y.shape
    assert 0 < pipeline.score(DATA.test.X, DATA.test.Y) < 1


def test_grid_search() -> None:
    search = GridSearchCV(
        RareNodeClassifier.from_preset("paper", DATA.hierarchy, **SMALL),
        {"w0": np.array([0.25, 1.0]), "weighting": ["none", "as_published"], "n_members": [1, 2]},
        cv=2,
    )
    search.fit(DATA.train.X, DATA.train.Y)
    assert set(search.best_params_) == {"w0", "weighting", "n_members"}
    assert search.best_estimator_.hierarchy_ == DATA.hierarchy
    best = search.best_index_
    assert search.best_score_ == pytest.approx(
        cross_val_score(clone(search.best_estimator_), DATA.train.X, DATA.train.Y, cv=2).mean()
    )
    assert search.cv_results_["mean_test_score"][best] == search.best_score_


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
def test_grid_search_on_ray() -> None:
    """By the backend that Ray has for joblib."""
    from ray.util.joblib import register_ray

    register_ray()
    model = RareNodeClassifier.from_preset("paper", DATA.hierarchy, **(SMALL | {"n_jobs": 1}))
    search = GridSearchCV(model, {"hidden_size": [4, 16]}, cv=2, n_jobs=2)
    with joblib.parallel_config("ray"):
        elsewhere = clone(search).fit(DATA.train.X, DATA.train.Y)
    here = clone(search).set_params(n_jobs=1).fit(DATA.train.X, DATA.train.Y)
    assert elsewhere.cv_results_["mean_test_score"].tolist() == here.cv_results_["mean_test_score"].tolist()
    assert elsewhere.best_params_ == here.best_params_


def test_grid_search_over_decisions() -> None:
    search = GridSearchCV(
        RareNodeClassifier(DATA.hierarchy, **(SMALL | {"holdout": 0.3, "learning_rate": 1e-2, "n_trees": 3})),
        {"thresholds": ["fixed", "fixed:0.2", "expected_f1", "prior"], "model": ["mlp", "mlp+forest"]},
        cv=2,
        error_score="raise",
    )
    search.fit(DATA.train.X, DATA.train.Y)
    best = search.best_estimator_
    assert best.model_.thresholds.strategy == best.model_.settings.thresholds == search.best_params_["thresholds"]
    scores = search.cv_results_["mean_test_score"]
    assert len(set(scores.tolist())) > 4  # or decisions decided nothing
    assert search.best_score_ == scores.max()
