"""Out-of-fold predictions against the same trainings done by hand."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rarenode.config import Settings
from rarenode.data.dataset import Dataset
from rarenode.data.split import HierarchicalSplit, folds
from rarenode.errors import ArgumentError, DataError, FileFormatError, Interrupted, ResumeError
from rarenode.executors import OnRay, Processes
from rarenode.hierarchy import Hierarchy
from rarenode.metrics import Summary
from rarenode.models import Blend, BlendWeights, Forest, learn_weights, pool
from rarenode.thresholds import ExpectedF, PriorMatched, Strategy, TunedPerNode, make_strategy
from rarenode.training import Callback, EpochRecord, OutOfFold, Plan, TrainedModel, fit_model, train_model
from rarenode.training.checkpoint import FILE as CHECKPOINT
from rarenode.training.out_of_fold import best_epoch, cross_fit, hold_out, remove_folds, validate
from tests.training import problem
from tests.training.problem import Recorder, rows, same, validation, with_labels

Indices = Any


def settings(**changes: Any) -> Settings:
    small = {"engine": "torch", "model": "mlp+forest", "n_trees": 3, "batch_size": 32}
    return problem.settings(**(small | changes))


def some(chosen: Indices) -> Dataset:
    """Some of the rows, in order, without `Dataset.take`."""
    base = rows()
    mask = np.isin(np.arange(len(base)), chosen)
    return replace(base, X=base.X[mask], Y=base.Y[mask], n_counted=int(mask[: base.n_counted].sum()))


def train_without(held_out: Indices, chosen: Settings) -> TrainedModel:
    kept = np.setdiff1d(np.arange(len(rows())), held_out)
    return train_model(some(kept), chosen, valid=None if chosen.patience is None else some(held_out))


@cache
def by_hand(chosen: Settings, k: int) -> tuple[Any, list[int]]:
    """Out-of-fold probabilities, and the best epoch of each fold."""
    base = rows()
    probs, epochs = np.full(base.Y.shape, np.nan, dtype=np.float32), []
    for _, held_out in folds(base.Y, base.hierarchy, k, chosen.seed):
        model = train_without(held_out, chosen)
        probs[held_out] = model.predict_proba(base.X[held_out])
        measured = [record.valid.ap for record in model.history if record.valid is not None]
        epochs.append(1 + int(np.argmax(measured)) if measured else len(model.history))
    return probs, epochs


def identical(ours: OutOfFold, theirs: OutOfFold) -> bool:
    return same(ours.model, theirs.model) and all(
        np.array_equal(getattr(ours, name), getattr(theirs, name))
        for name in ("Y", "probs", "prior", "rows", "training_support")
    )


# --- folds side by side ----------------------------------------------------------------------------------------------


class FoldsSeen(Callback):
    def __init__(self) -> None:
        self.folds: list[tuple[int, int]] = []
        self.titles: list[str] = []

    def on_start(self, plan: Plan) -> None:
        self.titles.append(plan.title)

    def on_fold(self, done: int, folds: int) -> None:
        self.folds.append((done, folds))


@pytest.mark.parametrize("where", ["processes", "ray"])
def test_folds_elsewhere_are_the_same_to_the_last_bit(
    tmp_path: Path, where: str, request: pytest.FixtureRequest
) -> None:
    """All kinds of models, with early stopping and learned weights."""
    executor = Processes(2) if where == "processes" else OnRay(request.getfixturevalue("ray_cluster").address)
    chosen = settings(cv=3, patience=1, model="mlp+forest+neighbours", blend="learned", learning_rate=0.03)
    here, seen = cross_fit(rows(), chosen), FoldsSeen()
    elsewhere = cross_fit(rows(), chosen, executor=executor, folder=tmp_path, callback=seen)
    assert identical(elsewhere, here)
    assert seen.folds == [(1, 3), (2, 3), (3, 3)]
    assert seen.titles == ["all rows"]
    resumed = FoldsSeen()
    assert identical(cross_fit(rows(), chosen, folder=tmp_path, resume=True, callback=resumed), here)
    assert resumed.titles == ["all rows"]


def test_without_folds_nothing_runs_elsewhere() -> None:
    for changes in ({"holdout": 0.2}, {"cv": None, "patience": None, "thresholds": "fixed"}):
        with pytest.raises(ArgumentError, match=r"folds are what can be trained side by side \(--on, --jobs\)"):
            fit_model(rows(), settings(**changes), executor=Processes(2))


# --- holding out -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("patience", [None, 1])
def test_held_out_rows_are_not_trained_on(patience: int | None) -> None:
    chosen = settings(patience=patience, seed=3, learning_rate=0.03, holdout=0.3)
    found = hold_out(rows(), chosen)
    _, held_out = HierarchicalSplit(0.3, seed=3).split(rows().Y, rows().hierarchy)
    expected = train_without(held_out, chosen)
    assert same(found.model, expected)
    assert np.array_equal(found.Y, rows().Y[held_out])
    assert np.array_equal(found.probs, expected.predict_proba(rows().X[held_out]))
    np.testing.assert_allclose(found.prior, rows().Y.sum(axis=0) / 150)
    assert found.rows.tolist() == held_out.tolist()
    kept = np.setdiff1d(np.arange(150), held_out)
    assert found.training_support.tolist() == rows().Y[kept].sum(axis=0).tolist()
    assert all((record.valid is None) == (patience is None) for record in found.model.history)


def test_the_preparation_does_not_see_held_out_rows() -> None:
    """Whatever their features are, the model is the same."""
    chosen = settings(holdout=0.3, n_trees=1)
    _, held_out = HierarchicalSplit(0.3).split(rows().Y, rows().hierarchy)
    X = rows().X.copy()
    X[held_out] = 1000 * X[held_out] + 7
    before, after = hold_out(rows(), chosen), hold_out(replace(rows(), X=X), chosen)
    assert same(before.model, after.model)
    assert not np.array_equal(before.probs, after.probs)


@pytest.mark.parametrize("patience", [None, 1])
def test_validation_rows_may_be_given(patience: int | None) -> None:
    chosen = settings(patience=patience)
    found = validate(rows(), chosen, validation())
    expected = train_model(rows(), chosen, valid=None if patience is None else validation())
    assert same(found.model, expected)
    assert np.array_equal(found.probs, expected.predict_proba(validation().X))
    assert np.array_equal(found.Y, validation().Y)
    assert found.rows.tolist() == list(range(len(validation())))
    assert found.training_support.tolist() == rows().Y.sum(axis=0).tolist()
    np.testing.assert_allclose(found.prior, (rows().Y.sum(axis=0) + validation().Y.sum(axis=0)) / (150 + 50))


def test_validation_rows_without_labels_are_left_out() -> None:
    labelled = np.arange(50) < 30
    with pytest.warns(RuntimeWarning, match="20 of 50 rows have no labels and are not used for validation"):
        found = validate(rows(), settings(epochs=1, n_trees=1), with_labels(validation(), labelled))
    assert np.array_equal(found.Y, validation().Y[:30])
    with pytest.raises(DataError, match="no row has labels, so none can be used for validation"):
        validate(rows(), settings(), with_labels(validation(), np.zeros(50, dtype=np.bool_)))


def test_settings_must_say_how_many_rows_to_hold_out() -> None:
    with pytest.raises(ArgumentError, match="set holdout"):
        hold_out(rows(), settings())
    with pytest.raises(ArgumentError, match="set cv"):
        cross_fit(rows(), settings())


# --- cross-fitting ---------------------------------------------------------------------------------------------------


def test_every_row_is_predicted_by_the_model_that_was_not_trained_on_it() -> None:
    found = cross_fit(rows(), settings(cv=3))
    assert np.array_equal(found.probs, by_hand(settings(cv=3), 3)[0])
    assert np.array_equal(found.Y, rows().Y)
    np.testing.assert_allclose(found.prior, rows().Y.sum(axis=0) / 150)
    assert same(found.model, train_model(rows(), settings()))
    assert found.rows.tolist() == list(range(150))
    parts = [held_out.tolist() for _, held_out in folds(rows().Y, rows().hierarchy, 3, 0)]
    assert found.training_support.tolist() == support_by_loops(rows().Y, parts)


def support_by_loops(Y: Any, parts: list[list[int]]) -> list[int]:
    """For each node the mean, over the rows that have it, of how many such rows are outside the row's own fold."""
    support = []
    for column in range(Y.shape[1]):
        known = []
        for fold in parts:
            outside = sum(int(Y[row, column]) for row in range(len(Y)) if row not in fold)
            known += [outside for row in fold if Y[row, column]]
        support.append(math.floor(Fraction(sum(known), len(known))) if known else 0)
    return support


@hypothesis_settings(max_examples=25)
@given(st.data())
def test_training_support_of_nodes(draw: st.DataObject) -> None:
    """Any labels: all rows of a node may lie in one fold, and then no model was trained on the node."""
    count, cv = draw.draw(st.integers(3, 9)), draw.draw(st.integers(2, 3))
    hierarchy = Hierarchy.from_edges([], nodes=["a", "b", "c"])
    Y = draw.draw(hnp.arrays(np.bool_, (count, 3)))
    given_rows = Dataset.from_arrays(np.arange(count)[:, None], Y, hierarchy)
    found = cross_fit(given_rows, settings(model="forest", n_trees=1, cv=cv)).training_support
    side = np.empty(count, dtype=int)
    for number, (_, held_out) in enumerate(folds(Y, hierarchy, cv, 0)):
        side[held_out] = number
    parts = [np.flatnonzero(side == fold).tolist() for fold in range(cv)]
    assert found.tolist() == support_by_loops(Y, parts)
    for column in range(3):
        rows_with = side[Y[:, column]]
        assert (found[column] > 0) == (len(set(rows_with.tolist())) > 1)


def test_a_row_does_not_influence_the_predictions_of_its_fold() -> None:
    """Whatever its features are, the other rows of its fold have the same predictions; rows of other folds have not."""
    X = rows().X.copy()
    X[10] *= -5
    before, after = (cross_fit(each, settings(cv=2)).probs for each in (rows(), replace(rows(), X=X)))
    changed = (before != after).any(axis=1)
    for _, held_out in folds(rows().Y, rows().hierarchy, 2, 0):
        others = np.setdiff1d(held_out, [10])
        assert changed[others].any() == (10 not in held_out)


@pytest.mark.parametrize("cv", [2, 3])
def test_the_last_training_has_the_median_of_the_best_epochs(cv: int) -> None:
    chosen = settings(epochs=12, patience=2, learning_rate=0.05, cv=cv)
    found = cross_fit(rows(), chosen)
    probs, epochs = by_hand(chosen, cv)
    assert len(set(epochs)) > 1  # or any of them would do
    assert np.array_equal(found.probs, probs)
    assert abs(len(found.model.history) - median(epochs)) <= 0.5
    expected = settings(epochs=len(found.model.history), learning_rate=0.05)
    assert same(found.model, train_model(rows(), expected))


def test_a_forest_alone() -> None:
    chosen = settings(model="forest", patience=5, cv=2)
    found = cross_fit(rows(), chosen)
    assert found.model.history == ()
    assert same(found.model, train_model(rows(), chosen))
    assert np.isfinite(found.probs).all()


# --- the best epoch --------------------------------------------------------------------------------------------------


def record(epoch: int, ap: float | None) -> EpochRecord:
    valid = None if ap is None else Summary(0, 0, 0, 0, ap, nodes=1, nodes_predicted=0, nodes_found=0)
    return EpochRecord(epoch=epoch, loss=1.0, seconds=1.0, steps_per_second=1.0, valid=valid)


@cache
def any_model() -> TrainedModel:
    return train_model(rows(), settings(epochs=1, model="mlp"))


@given(st.lists(st.sampled_from((0.0, 0.1, 0.5, 0.9)), min_size=1, max_size=8))
def test_the_best_epoch_is_the_first_that_no_other_beats(aps: list[float]) -> None:
    history = tuple(record(epoch, ap) for epoch, ap in enumerate(aps, start=1))
    expected = next(epoch for epoch, ap in enumerate(aps, start=1) if all(ap >= other for other in aps))
    assert best_epoch(replace(any_model(), history=history)) == expected


def test_where_nothing_was_measured_the_best_epoch_is_the_last() -> None:
    assert best_epoch(replace(any_model(), history=tuple(record(epoch, None) for epoch in (1, 2, 3)))) == 3


def test_the_model_kept_by_patience_is_that_of_the_best_epoch() -> None:
    chosen = settings(epochs=20, patience=2, learning_rate=0.05, model="mlp", holdout=0.2)
    stopped = hold_out(rows(), chosen).model
    best = best_epoch(stopped)
    assert best is not None
    assert best < len(stopped.history)
    kept, _ = HierarchicalSplit(0.2).split(rows().Y, rows().hierarchy)
    until_then = train_model(some(kept), settings(epochs=best, learning_rate=0.05, model="mlp"))
    assert same(replace(stopped, history=()), replace(until_then, history=()))


# --- decisions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [ExpectedF(), ExpectedF(2.0), PriorMatched(1.5), TunedPerNode()])
@pytest.mark.parametrize("rule", ["add_ancestors", "drop_orphans"])
def test_thresholds_are_fitted_to_the_held_out_rows(strategy: Strategy, rule: Any) -> None:
    rng = np.random.default_rng(0)
    Y = rows().Y[:30]
    probs = np.sort(rng.random((30, 20), dtype=np.float32), axis=1)[:, ::-1]  # columns are sorted by depth
    prior = rng.random(20)
    decided = OutOfFold(any_model(), Y, probs, prior, np.arange(30), Y.sum(axis=0)).decide(strategy, rule)
    assert decided.thresholds == strategy.fit(probs, Y, prior=prior, rule=rule)
    assert decided.thresholds is not None
    assert (decided.thresholds.rule, make_strategy(decided.thresholds.strategy)) == (rule, strategy)
    assert same(decided, any_model())
    assert any_model().thresholds is None


# --- stopping and resuming -------------------------------------------------------------------------------------------

STOPPING: dict[str, Any] = {"epochs": 4, "patience": 2, "learning_rate": 0.05, "checkpoint_epochs": 1, "cv": 3}


class KilledError(Exception):
    """Nothing in a training catches it, as nothing catches a kill: what was not saved is lost."""


def kill() -> None:
    raise KilledError


def press_ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


@cache
def undisturbed() -> tuple[OutOfFold, list[int], dict[str, int]]:
    """The outcome, the batches of each fold and of the last training, and moments to stop at."""
    recorder = Recorder()
    outcome = cross_fit(rows(), settings(**STOPPING), callback=recorder)
    begins = [number for number, at in enumerate(recorder.batches) if at == (1, 1)]
    lengths = np.diff([*begins, len(recorder.batches)]).tolist()
    first, second = lengths[0], lengths[0] + lengths[1]
    moments = {
        "fold 1": 3,
        "the last step of fold 1": first,
        "the first step of fold 2": first + 1,
        "fold 2": first + 5,
        "fold 3": second + 6,
        "all rows": sum(lengths[:3]) + 7,
    }
    return outcome, lengths, moments


MOMENTS = ("fold 1", "the last step of fold 1", "the first step of fold 2", "fold 2", "fold 3", "all rows")


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize(("how", "raises"), [(kill, KilledError), (press_ctrl_c, Interrupted)])
def test_resuming_is_never_having_stopped(
    tmp_path: Path, moment: str, how: Callable[[], None], raises: type[Exception]
) -> None:
    outcome, lengths, moments = undisturbed()
    at = moments[moment]
    with pytest.raises(raises):
        cross_fit(rows(), settings(**STOPPING), folder=tmp_path, callback=Recorder(at, how))
    recorder = Recorder()
    resumed = cross_fit(rows(), settings(**STOPPING), folder=tmp_path, resume=True, callback=recorder)
    assert identical(resumed, outcome)
    lost = 0 if how is press_ctrl_c else 5  # batches of an epoch, at most: there is a checkpoint after each
    assert sum(lengths) - at <= len(recorder.batches) <= sum(lengths) - at + lost


def test_resuming_what_is_done_trains_nothing(tmp_path: Path) -> None:
    first = cross_fit(rows(), settings(cv=2), folder=tmp_path)
    recorder = Recorder()
    assert identical(cross_fit(rows(), settings(cv=2), folder=tmp_path, resume=True, callback=recorder), first)
    assert not recorder.batches


@pytest.fixture(scope="module")
def second_fold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the first of two folds is done, and the second under way."""
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.raises(Interrupted):
        cross_fit(rows(), settings(cv=2), folder=folder, callback=Recorder(12, press_ctrl_c))
    return folder


def test_what_lies_in_the_folder_meanwhile(second_fold: Path) -> None:
    found = sorted(str(path.relative_to(second_fold)) for path in second_fold.rglob("*") if path.is_file())
    assert found == [
        *(f".fold-1/{name}" for name in ("README.md", "model.json", "model.safetensors")),
        f".fold-2/{CHECKPOINT}",
    ]


@pytest.mark.parametrize("changes", [{"seed": 1}, {"n_trees": 4}, {"thresholds": "fixed:0.3"}])
def test_other_settings_are_refused(second_fold: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(ResumeError, match="fold-1 is the model of another training"):
        cross_fit(rows(), settings(cv=2, **changes), folder=second_fold, resume=True)


def test_other_rows_are_refused(second_fold: Path) -> None:
    with pytest.raises(ResumeError, match="fold-1 is the model of another training"):
        cross_fit(replace(rows(), X=rows().X + 1), settings(cv=2), folder=second_fold, resume=True)


def test_another_hierarchy_or_number_of_folds_is_refused(second_fold: Path) -> None:
    tree = rows().hierarchy
    names = {name: f"{name}'" for name in tree.nodes}
    edges = zip(tree.edge_parents.tolist(), tree.edge_children.tolist(), strict=True)
    renamed = Hierarchy.from_edges(((names[tree.nodes[p]], names[tree.nodes[c]]) for p, c in edges), names.values())
    assert renamed.fingerprint != tree.fingerprint
    for given_rows, cv in ((replace(rows(), hierarchy=renamed), 2), (rows(), 3)):
        with pytest.raises(ResumeError, match="fold-1 is the model of another training"):
            cross_fit(given_rows, settings(cv=cv), folder=second_fold, resume=True)


def test_rows_that_were_held_out_of_a_finished_fold_must_be_the_same_too(tmp_path: Path) -> None:
    """The fold was not trained on them, but stopped on them."""
    chosen = settings(patience=3, cv=2)  # epochs: no fold stops early
    with pytest.raises(KilledError):
        cross_fit(rows(), chosen, folder=tmp_path, callback=Recorder(3 * 3 + 1, kill))
    assert [path.name for path in tmp_path.rglob(CHECKPOINT)] == []
    X = rows().X.copy()
    X[folds(rows().Y, rows().hierarchy, 2, 0)[0][1][0]] += 1
    with pytest.raises(ResumeError, match="fold-1 is the model of another training"):
        cross_fit(replace(rows(), X=X), chosen, folder=tmp_path, resume=True)


def test_a_checkpoint_is_not_overwritten_without_resume(second_fold: Path) -> None:
    with pytest.raises(ResumeError, match=r"fold-1.*not finished"):
        cross_fit(rows(), settings(cv=2), folder=second_fold)


def test_a_damaged_fold_is_named(tmp_path: Path) -> None:
    any_model().save(tmp_path / ".fold-1")
    (tmp_path / ".fold-1" / "model.json").write_text("{")
    with pytest.raises(FileFormatError, match=r"fold-1.model\.json"):
        cross_fit(rows(), settings(cv=2), folder=tmp_path, resume=True)


# --- tidying up ------------------------------------------------------------------------------------------------------


def test_models_of_folds_are_removed_and_nothing_else(tmp_path: Path) -> None:
    for name in (".fold-1", ".fold-2", ".fold-3"):
        any_model().save(tmp_path / name)
    any_model().save(tmp_path)
    (tmp_path / ".fold-2" / "notes.txt").write_text("mine")
    (tmp_path / ".fold-3" / "plots").mkdir()
    remove_folds(tmp_path)
    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == [
        *(".fold-2", ".fold-2/notes.txt", ".fold-3", ".fold-3/plots", "README.md", "model.json", "model.safetensors"),
    ]
    remove_folds(tmp_path)
    remove_folds(tmp_path / "nowhere")


def test_a_run_of_the_users_is_left_alone(tmp_path: Path) -> None:
    model = any_model()
    model.save(tmp_path / "fold-1")
    remove_folds(tmp_path)
    assert TrainedModel.load(tmp_path / "fold-1").fingerprints["rows"] == model.fingerprints["rows"]


def test_a_schedule_over_epochs_and_patience_do_not_go_together() -> None:
    chosen = settings(schedule="linear", schedule_by="epoch", patience=1, cv=2)
    with pytest.raises(ArgumentError, match="a schedule over epochs and early stopping"):
        cross_fit(rows(), chosen)


def test_what_is_merely_called_like_a_fold_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".fold-notes").mkdir()
    (tmp_path / ".fold-notes" / "README.md").write_text("mine")
    (tmp_path / ".fold-7").write_text("mine")
    any_model().save(tmp_path / ".fold-1")
    remove_folds(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == [".fold-7", ".fold-notes", "README.md"]


def test_a_checkpoint_left_beside_the_model_of_a_fold_is_removed(tmp_path: Path) -> None:
    """A kill between saving the model and removing the checkpoint leaves it there."""
    outcome = cross_fit(rows(), settings(cv=2), folder=tmp_path)
    (tmp_path / ".fold-1" / CHECKPOINT).write_bytes((tmp_path / CHECKPOINT).read_bytes())
    assert identical(cross_fit(rows(), settings(cv=2), folder=tmp_path, resume=True), outcome)
    remove_folds(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [CHECKPOINT]


# --- learned weights of a blend --------------------------------------------------------------------------------------


class Weights(Recorder):
    """Notes the weights, and how many trees were grown."""

    def __init__(self) -> None:
        super().__init__()
        self.trees: list[int] = []

    def on_forest(self, trees: int) -> None:
        self.trees.append(trees)

    def on_blend(self, kinds: Any, weights: BlendWeights) -> None:
        self.found = dict(zip(kinds, weights.weights, strict=True))


def learned(**changes: Any) -> Settings:
    return settings(**({"model": "mlp+forest+neighbours", "blend": "learned", "n_trees": 10} | changes))


def test_weights_come_from_out_of_fold_predictions_of_each_model() -> None:
    chosen, callback = learned(cv=3), Weights()
    found = cross_fit(rows(), chosen, callback=callback)
    base = rows()
    parts = [np.empty(base.Y.shape, dtype=np.float32) for _ in range(3)]
    for _, held_out in folds(base.Y, base.hierarchy, 3, chosen.seed):
        model = train_without(held_out, chosen)
        for part, predicted in zip(parts, model.predict_parts(base.X[held_out]), strict=True):
            part[held_out] = predicted
    shares = base.Y.mean(axis=0)
    expected = learn_weights(parts, base.Y, shares=shares, scored=base.scored)
    assert callback.found == dict(zip(("mlp", "forest", "neighbours"), expected.weights, strict=True))
    kept = [parts[place] for place in expected.kept]
    its = [expected.weights[place] for place in expected.kept]
    np.testing.assert_array_equal(found.probs, pool(kept, its, shares))
    assert [part.kind for part in found.model.parts] == [chosen.models[place] for place in expected.kept]
    if len(its) > 1:
        assert isinstance(found.model.model, Blend)
        assert found.model.model.weights == tuple(its)
        np.testing.assert_allclose(found.model.model.shares, shares)


def test_a_model_that_does_not_help_is_left_out_of_the_last_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Predictions that are worse than a guess make one of no use."""
    monkeypatch.setattr(Forest, "write_probs", lambda self, X, probs: probs.fill(0.999))
    callback = Weights()
    found = cross_fit(rows(), learned(cv=2), callback=callback)
    assert callback.found["forest"] == 0
    assert "forest" not in [part.kind for part in found.model.parts]
    assert callback.trees == [10, 10]  # of the folds


def test_weights_of_a_single_training() -> None:
    found = hold_out(rows(), learned(holdout=0.3))
    np.testing.assert_array_equal(found.probs, found.model.predict_proba(rows().X[found.rows]))
    found = validate(rows(), learned(), validation())
    np.testing.assert_array_equal(found.probs, found.model.predict_proba(validation().X))


def test_a_blend_with_weights_is_the_same_after_a_resume_and_from_its_folder(tmp_path: Path) -> None:
    chosen = learned(cv=3)
    whole = cross_fit(rows(), chosen)
    with pytest.raises(KilledError):
        cross_fit(rows(), chosen, folder=tmp_path, callback=Recorder(25, kill))
    again = cross_fit(rows(), chosen, folder=tmp_path, resume=True)
    assert identical(again, whole)
    whole.model.save(tmp_path / "model")
    loaded = TrainedModel.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(rows().X), whole.model.predict_proba(rows().X))


def test_without_held_out_rows_a_blend_is_the_geometric_mean() -> None:
    model = train_model(rows(), learned())
    assert isinstance(model.model, Blend)
    assert model.model.weights == ()


@pytest.mark.parametrize("how", [{"cv": 2}, {"cv": None, "holdout": 0.4}])
@pytest.mark.parametrize("strategy", ["prior", "tuned", "recall:0.5"])
def test_rows_of_weight_0_decide_nothing(how: dict[str, Any], strategy: str) -> None:
    weights = (np.arange(len(rows())) % 3 > 0).astype(np.float32)
    data = replace(rows(), sample_weight=weights)
    chosen = settings(model="forest", n_trees=4, **how)
    held_out = cross_fit(data, chosen) if chosen.cv else hold_out(data, chosen)
    some = weights[held_out.rows] > 0
    assert 0 < some.sum() < len(some)
    made = make_strategy(strategy)
    prior = data.Y[weights > 0].mean(axis=0)
    np.testing.assert_array_equal(held_out.prior, prior)
    model = held_out.decide(made, "add_ancestors")
    assert model.thresholds == made.fit(held_out.probs[some], held_out.Y[some], prior=prior)
    np.testing.assert_array_equal(model.prior, prior)
    sets = held_out.guarantee(0.5)
    np.testing.assert_array_equal(sets.rows, held_out.Y[some].sum(axis=0))
    assert sets.thresholds.values.min() == pytest.approx(
        make_strategy("recall:0.5").fit(held_out.probs[some], held_out.Y[some]).values.min()
    )


def test_parts_without_any_weight_are_named_before_training() -> None:
    forest = settings(model="forest", n_trees=1)
    one = replace(rows(), sample_weight=(np.arange(len(rows())) == 0).astype(np.float32))
    with pytest.raises(DataError, match=r"only 1 row of \d+ with .* none among .* to train on for fold \d of cv=2"):
        cross_fit(one, forest.changed(cv=2))
    with pytest.raises(DataError, match=r"none among the (rows to train on|held-out rows) of holdout=0.4"):
        hold_out(one, forest.changed(holdout=0.4))
    nothing = replace(validation(), sample_weight=np.zeros(len(validation()), dtype=np.float32))
    with pytest.raises(DataError, match="none among the validation rows"):
        validate(rows(), forest, nothing)
