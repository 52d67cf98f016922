"""Training on labels of which some are unknown, from rows to thresholds, reports and runs."""

from __future__ import annotations

from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rarenode.data.dataset import Dataset
from rarenode.errors import ResumeError
from rarenode.hierarchy.three_valued import complete_labels
from rarenode.metrics import summarize_groups, summary
from rarenode.models import MlpEnsemble, initial_parameters
from rarenode.report import Report, report_on_model, write_report
from rarenode.run import Run
from rarenode.thresholds import make_strategy
from rarenode.training import fit_model
from rarenode.training.loop import train_network
from rarenode.training.out_of_fold import cross_fit, hold_out, validate
from tests.training.problem import data, prepared, rows, same, settings, validation

BEST: dict[str, Any] = {"model": "mlp+forest", "n_trees": 4, "cv": 2, "thresholds": "tuned", "epochs": 2}


def with_unknown(base: Dataset, seed: int = 0) -> Dataset:
    """Some labels are unknown, with all that follows, and so is what is below the deepest labels of a row."""
    unknown = np.random.default_rng(seed).random(base.Y.shape) < 0.1
    Y, known = complete_labels(base.hierarchy, base.Y, unknown=unknown, below=True)
    assert known is not None
    assert 0.05 < np.mean(~known) < 0.6
    return replace(base, Y=Y, known=known)


def without_node(base: Dataset, node: int) -> Dataset:
    """Nothing is known about a leaf, and so nothing about its ancestors where they are not present."""
    name = base.hierarchy.nodes[node]
    leaf = base.hierarchy.encode([{name}])
    others = ~base.hierarchy.close(leaf)
    Y, known = complete_labels(base.hierarchy, base.Y & ~leaf, absent=~base.Y & others, unknown=leaf | ~base.Y)
    assert known is not None
    assert not known[:, node].any()
    return replace(base, Y=Y, known=known)


def last_leaf(base: Dataset) -> int:
    return len(base.hierarchy) - 1  # columns are sorted by depth


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_a_mask_of_what_is_known_everywhere_changes_no_bit(engine: str) -> None:
    chosen = settings(engine=engine, **BEST)
    masked = replace(rows(), known=np.ones(rows().Y.shape, dtype=np.bool_))
    ours, theirs = fit_model(masked, chosen), fit_model(rows(), chosen)
    assert same(ours.model, theirs.model)
    assert ours.model.thresholds == theirs.model.thresholds
    assert ours.model.fingerprints == theirs.model.fingerprints
    assert ours.held_out is not None
    assert theirs.held_out is not None
    for field in ("probs", "prior", "Y", "training_support"):
        assert np.array_equal(getattr(ours.held_out, field), getattr(theirs.held_out, field)), field
    assert ours.held_out.known is None


def test_the_engines_agree() -> None:
    base = with_unknown(prepared())
    chosen = settings(n_members=3, focus="gmu", epochs=2)
    valid = replace(with_unknown(validation(), 1), X=prepared().X[-50:])
    ours, theirs = (train_network(base, chosen.changed(engine=e), valid=valid) for e in ("fused", "torch"))
    np.testing.assert_allclose([r.loss for r in ours.history], [r.loss for r in theirs.history], rtol=1e-4)
    for name, array in ours.model.arrays().items():
        np.testing.assert_allclose(array, theirs.model.arrays()[name], rtol=1e-2, atol=1e-4, err_msg=name)


@pytest.mark.parametrize("engine", ["fused", "torch"])
@pytest.mark.parametrize("weighting", ["none", "as_published"])
def test_a_head_of_which_nothing_is_known_is_not_trained(engine: str, weighting: str) -> None:
    node = last_leaf(prepared())
    chosen = settings(engine=engine, weighting=weighting, weight_decay=0.0)
    network = train_network(without_node(prepared(), node), chosen)
    first = initial_parameters(MlpEnsemble.from_settings(chosen, 8, len(rows().hierarchy)), chosen.seed)
    (weight, bias), trained = sorted(first)[-2:][::-1], network.model.arrays()
    assert np.array_equal(trained[weight][:, node], first[weight][:, node])
    assert np.array_equal(trained[bias][:, node], first[bias][:, node])
    assert not np.array_equal(trained[weight], first[weight])


def test_validation_looks_at_what_is_known() -> None:
    valid = with_unknown(replace(validation(), X=prepared().X[-50:]))
    network = train_network(prepared(), settings(epochs=1), valid=valid)
    probs = network.model.compute(valid.X).probs
    assert network.history[0].valid == summary(valid.Y, probs, scored=valid.scored, known=valid.known)
    assert network.history[0].valid != summary(valid.Y, probs, scored=valid.scored)


@pytest.mark.parametrize("resampling", ["lpros", "hros-pd"])
def test_clones_know_what_their_originals_do(resampling: str) -> None:
    node = last_leaf(prepared())
    chosen = settings(resampling=resampling, weight_decay=0.0, weighting="none")
    trained = train_network(without_node(prepared(), node), chosen).model.arrays()
    first = initial_parameters(MlpEnsemble.from_settings(chosen, 8, len(rows().hierarchy)), chosen.seed)
    assert np.array_equal(trained["layer2.weight"][:, node], first["layer2.weight"][:, node])


@pytest.mark.parametrize("strategy", ["tuned", "prior", "expected_f1"])
def test_thresholds_are_fitted_to_what_is_known(strategy: str) -> None:
    base = with_unknown(rows())
    assert base.known is not None
    share = base.Y.sum(axis=0) / np.maximum(base.known.sum(axis=0), 1)
    for train, held_out in ((cross_fit, {"cv": 2}), (hold_out, {"holdout": 0.3})):
        found = train(base, settings(epochs=1, **held_out))
        np.testing.assert_allclose(found.prior, share)
        assert found.known is not None
        assert np.array_equal(found.known, base.known[found.rows])
        decided = found.decide(make_strategy(strategy), "add_ancestors").thresholds
        expected = make_strategy(strategy).fit(found.probs, found.Y, known=found.known, prior=found.prior)
        assert decided == expected
        assert decided != make_strategy(strategy).fit(found.probs, found.Y, prior=base.Y.mean(axis=0))


def test_validation_rows_that_are_given() -> None:
    base, valid = with_unknown(rows()), with_unknown(validation(), 1)
    found = validate(base, settings(epochs=1), valid)
    assert found.known is valid.known
    positives = base.Y.sum(axis=0) + valid.Y.sum(axis=0)
    np.testing.assert_allclose(found.prior, positives / np.maximum(base.known_rows + valid.known_rows, 1))


def test_the_whole_with_a_forest_and_folds(tmp_path: Path) -> None:
    base, test = with_unknown(rows()), with_unknown(data().test, 2)
    run = Run.fit(replace(base, name="mine"), tmp_path / "run", settings(**BEST))
    assert (run.folder / "report.html").exists()
    probs = run.model.predict_proba(test.X)
    hierarchy = base.hierarchy
    assert (probs[:, hierarchy.edge_parents] >= probs[:, hierarchy.edge_children]).all()
    model, decided = run.model, run.model.predict(test.X)
    expected = summarize_groups(
        test.Y, probs, decided, hierarchy, model.training_positives, model.scored, known=test.known
    )
    assert run.evaluate(test).scores == expected
    assert run.evaluate(replace(test, known=None)).scores != expected
    assert np.array_equal(run.predict(test).probs, run.predict(replace(test, known=None)).probs)
    (run.folder / "report.html").unlink()
    assert same(Run.fit(replace(base, name="mine"), run.folder, resume=True).model, model)
    assert (run.folder / "report.html").exists()
    with pytest.raises(ResumeError, match="rows are not the same"):
        Run.fit(replace(base, known=None, name="mine"), run.folder, resume=True)


def test_a_report_leaves_out_what_is_unknown(tmp_path: Path) -> None:
    fitted = fit_model(rows(), settings(**BEST)).model
    test = with_unknown(data().test)
    assert test.known is not None
    found = report_on_model(fitted, test.X, test.Y, name="a", rows="b", known=test.known)
    diagnosis = fitted.diagnose(test.X, test.Y, test.known)
    for field in fields(diagnosis.scores):
        assert np.array_equal(getattr(found.nodes.scores, field.name), getattr(diagnosis.scores, field.name))
    assert found.nodes.reasons == diagnosis.reasons
    assert found.nodes.known_rows.tolist() == test.known.sum(axis=0).tolist()
    probs, decided = fitted.predict_proba(test.X), fitted.predict(test.X)
    groups = summarize_groups(
        test.Y, probs, decided, test.hierarchy, fitted.training_positives, test.scored, known=test.known
    )
    assert found.summary == groups.all
    assert found.reliability["all"].count.sum() == test.known[:, test.scored].sum()
    for row in found.unsure_rows:
        assert all(test.known[row.row, node.column] for node in row.nodes)
    band = (fitted.training_positives >= 5) & (fitted.training_positives < 20)  # nothing is known of a whole band
    known = test.known & ~band
    nothing = report_on_model(fitted, test.X, test.Y & known, name="a", rows="b", known=known)
    assert nothing.nodes_with_rows < found.nodes_with_rows
    page, *_ = write_report(Report((nothing,)), tmp_path / "report.html")
    assert page.exists()
