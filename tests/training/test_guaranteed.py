"""Guaranteed sets of a model: fitted to its held-out rows, kept beside its thresholds, saved and loaded."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rarenode import Hierarchy
from rarenode.config import Settings
from rarenode.errors import ArgumentError, FileFormatError
from rarenode.thresholds import GuaranteedRecall
from rarenode.training import Fitted, TrainedModel, fit_model
from rarenode.training.model_card import to_markdown
from tests import oracles
from tests.report.runs import model_over, rows_over
from tests.strategies import closed_labels, hierarchies
from tests.training import problem
from tests.training.problem import data, rows, same, validation

X = data().test.X


def settings(**changes: Any) -> Settings:
    quick = {"engine": "torch", "epochs": 2, "thresholds": "expected_f1", "guaranteed_recall": 0.7}
    return problem.settings(**(quick | changes))


def guaranteed(fitted: Fitted) -> GuaranteedRecall:
    assert fitted.model.guaranteed is not None
    return fitted.model.guaranteed


@pytest.mark.parametrize("how", ["cv", "holdout", "validation rows"])
@pytest.mark.parametrize("thresholds", ["expected_f1", "fixed:0.3"])
def test_they_are_fitted_to_the_held_out_rows_beside_the_thresholds(how: str, thresholds: str) -> None:
    kinds: dict[str, dict[str, Any]] = {"cv": {"cv": 2, "patience": 1}, "holdout": {"holdout": 0.4}}
    valid = validation() if how == "validation rows" else None
    chosen = settings(thresholds=thresholds, rule="drop_orphans", **kinds.get(how, {"cv": 2}))
    fitted = fit_model(rows(), chosen, valid=valid)
    out, found = fitted.held_out, guaranteed(fitted)
    assert out is not None
    expected = GuaranteedRecall.fit(0.7, out.probs, out.Y)
    assert found.thresholds == expected.thresholds
    assert found.rows.tolist() == out.Y.sum(axis=0).tolist()
    assert 0 < found.is_guaranteed.sum() < 20
    assert fitted.model.thresholds is not None
    assert (fitted.model.thresholds.strategy, fitted.model.thresholds.rule) == (thresholds, "drop_orphans")


def test_the_recall_has_no_influence_on_the_model() -> None:
    little, much = (fit_model(rows(), settings(holdout=0.4, guaranteed_recall=recall)) for recall in (0.5, 0.8))
    assert same(little.model, much.model)
    assert little.model.thresholds == much.model.thresholds
    assert (guaranteed(little).recall, guaranteed(much).recall) == (0.5, 0.8)
    assert guaranteed(little).is_guaranteed.sum() > guaranteed(much).is_guaranteed.sum()
    both = guaranteed(much).is_guaranteed
    low, high = (guaranteed(fitted).thresholds.values[both] for fitted in (much, little))
    assert (low <= high).all()
    assert (low < high).any()


def test_rows_where_a_node_is_unknown_do_not_count_for_it() -> None:
    leaf = ~np.isin(np.arange(20), rows().hierarchy.edge_parents)
    hidden = (np.random.default_rng(0).random(len(rows())) < 0.8)[:, None] & leaf
    fitted = fit_model(replace(rows(), Y=rows().Y & ~hidden, known=~hidden), settings(cv=2, epochs=1))
    assert guaranteed(fitted).rows.tolist() == (rows().Y & ~hidden).sum(axis=0).tolist()
    assert guaranteed(fitted).is_guaranteed[leaf].sum() < (rows().Y[:, leaf].sum(axis=0) >= 7).sum()


def test_sets_have_the_rows_that_reach_the_own_threshold_of_each_node() -> None:
    fitted = fit_model(rows(), settings(cv=2))
    model = fitted.model
    sets, probs = model.predict_guaranteed(X), model.predict_proba(X)
    assert sets.dtype == np.bool_
    assert np.array_equal(sets, probs >= guaranteed(fitted).thresholds.values)
    assert not sets[:, ~guaranteed(fitted).is_guaranteed].any()
    assert (sets != model.predict(X)).any()
    assert np.array_equal(model.thresholds_for(probs, "guaranteed").values, guaranteed(fitted).thresholds.values)
    assert model.predict_guaranteed(X[:0]).shape == (0, 20)
    with pytest.raises(ArgumentError, match="thresholds of a model need a rule"):
        model.with_thresholds(guaranteed(fitted).thresholds)  # `predict` is coherent


def test_nodes_that_are_never_predicted_are_counted() -> None:
    found = fit_model(rows(), settings(thresholds="recall:0.7", cv=2)).model
    assert found.thresholds is not None
    assert found.never_predicted == sum(map(math.isinf, found.thresholds.values.tolist())) > 0
    assert replace(found, scored=np.isfinite(found.thresholds.values)).never_predicted == 0
    assert fit_model(rows(), settings(thresholds="fixed", cv=None)).model.never_predicted == 0


def test_nodes_about_which_nothing_can_be_promised_are_named() -> None:
    found = fit_model(rows(), settings(thresholds="precision:0.99", cv=2)).model
    names = np.array(found.hierarchy.nodes)[np.isinf(found.decides_with.values)].tolist()
    assert len(names) > 5
    words = (
        f"{len(names)} of 20 nodes are never predicted, as held-out rows do not prove precision:0.99 for nodes as rare "
        f"as they are: {', '.join(names[:5])} and {len(names) - 5} more"
    )
    assert found.given_up == words
    assert words in to_markdown("", found.card())
    one = replace(found, scored=np.isin(found.hierarchy.nodes, names[:1]))
    assert one.given_up.endswith(f"as rare as it: {names[0]}")
    assert "takes more held-out rows" in fit_model(rows(), settings(thresholds="recall:0.9", cv=2)).model.given_up
    unpromised = found.with_thresholds(replace(found.decides_with, strategy="prior"))
    assert unpromised.never_predicted == len(names)
    assert unpromised.given_up == ""


def test_without_held_out_rows_there_are_none(tmp_path: Path) -> None:
    model = fit_model(rows(), settings(thresholds="fixed", cv=None)).model
    assert model.guaranteed is None
    with pytest.raises(ArgumentError, match=r"no guaranteed sets: no rows were held out .* older rarenode"):
        model.predict_guaranteed(X)
    assert "Guaranteed" not in to_markdown("", model.card())
    model.save(tmp_path)
    assert TrainedModel.load(tmp_path).guaranteed is None


# --- files -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model() -> TrainedModel:
    return fit_model(rows(), settings(holdout=0.4)).model


def test_they_are_saved_and_loaded(model: TrainedModel, tmp_path: Path) -> None:
    model.save(tmp_path)
    loaded = TrainedModel.load(tmp_path)
    assert model.guaranteed is not None
    assert loaded.guaranteed is not None
    assert loaded.guaranteed.thresholds == model.guaranteed.thresholds
    assert loaded.guaranteed.rows.tolist() == model.guaranteed.rows.tolist()
    assert loaded.guaranteed.recall == 0.7
    assert np.array_equal(loaded.predict_guaranteed(X), model.predict_guaranteed(X))
    card = (tmp_path / "README.md").read_text()
    assert f"`model.predict_guaranteed(X)`: {model.guaranteed.in_words(model.scored)}." in card


def test_the_folder_of_an_older_rarenode_has_none(model: TrainedModel, tmp_path: Path) -> None:
    model.save(tmp_path)
    record = json.loads((tmp_path / "model.json").read_text())
    del record["guaranteed"], record["settings"]["guaranteed_recall"]
    (tmp_path / "model.json").write_text(json.dumps(record))
    older = TrainedModel.load(tmp_path)
    assert older.guaranteed is None
    assert older.settings.guaranteed_recall == 0.9
    assert np.array_equal(older.predict(X), model.predict(X))
    with pytest.raises(ArgumentError, match="an older rarenode trained it"):
        older.predict_guaranteed(X)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"values": [0.5] * 19}, r"guaranteed.values has 19 values; 20 were expected"),
        ({"rows": [1] * 21}, r"guaranteed.rows has 21 values; 20 were expected"),
        ({"rows": [-1] * 20}, r"guaranteed.rows.0.*greater than or equal to 0"),
        ({"values": [1.5] * 20}, r"guaranteed.values.0.*less than or equal to 1"),
        ({"values": [-0.5] * 20}, r"guaranteed.values.0.*greater than or equal to 0"),
        ({"recall": 1.0}, r"guaranteed.recall"),
        ({"recall": 0.0}, r"guaranteed.recall"),
        ({"code": "import os"}, r"guaranteed.code"),
        ({"values": [0.5] * 20, "rows": [7] * 19 + [6]}, r"guaranteed: a node has a threshold and fewer than 7 rows"),
    ],
)
def test_a_damaged_record_is_refused(model: TrainedModel, tmp_path: Path, changes: dict[str, Any], told: str) -> None:
    model.save(tmp_path)
    record = json.loads((tmp_path / "model.json").read_text())
    record["guaranteed"] |= changes
    (tmp_path / "model.json").write_text(json.dumps(record))
    with pytest.raises(FileFormatError, match=told):
        TrainedModel.load(tmp_path)


@st.composite
def some_guarantees(draw: st.DrawFn) -> tuple[Hierarchy, GuaranteedRecall]:
    hierarchy = draw(hierarchies(6))
    eighths = st.integers(0, 8).map(lambda k: k / 8)
    probs = oracles.constrain(draw(hnp.arrays(np.float64, (9, len(hierarchy)), elements=eighths)), hierarchy)
    recall = draw(st.sampled_from((0.3, 0.5, 0.6)))
    return hierarchy, GuaranteedRecall.fit(recall, probs, draw(closed_labels(hierarchy, 9)))


@given(some_guarantees())
def test_any_hierarchy_gives_the_same_sets_after_saving_and_loading(
    tmp_path_factory: pytest.TempPathFactory, case: tuple[Hierarchy, GuaranteedRecall]
) -> None:
    hierarchy, promise = case
    folder, some = tmp_path_factory.mktemp("model"), rows_over(hierarchy).X
    model = model_over(hierarchy, guaranteed=promise, fingerprints={"hierarchy": hierarchy.fingerprint})
    model.save(folder)
    sets = TrainedModel.load(folder).predict_guaranteed(some)
    assert np.array_equal(sets, model.predict_guaranteed(some))
    assert not sets[:, ~promise.is_guaranteed].any()
