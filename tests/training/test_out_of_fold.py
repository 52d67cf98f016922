"""What is known of a model on rows that it was not trained on, against the same trainings done by hand."""

from __future__ import annotations

import math
import signal
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from rarenode.training.unseen import Unseen, best_epoch, cross_fit, hold_out, hold_out_rows, remove_folds

from rarenode.data.dataset import Split
from rarenode.data.split import HierarchicalSplit, folds
from rarenode.errors import ArgumentError, FileFormatError, Interrupted, ResumeError
from rarenode.hierarchy import Hierarchy
from rarenode.metrics import Summary
from rarenode.thresholds import ExpectedF, PriorMatched, Strategy, TunedPerNode, make_strategy
from rarenode.training import EpochRecord, Settings, TrainedModel, TrainingRows, train, unseen
from rarenode.training.checkpoint import FILE as CHECKPOINT
from tests.training import problem
from tests.training.problem import Recorder, rows, same

Indices = Any


def settings(**changes: Any) -> Settings:
    return problem.settings(**({"engine": "torch", "trees": 3, "batch_size": 32} | changes))


def some(chosen: Indices) -> TrainingRows:
    """Some of the rows, in order, without `TrainingRows.take`."""
    base = rows()
    mask = np.isin(np.arange(len(base)), chosen)
    return replace(base, X=base.X[mask], Y=base.Y[mask], split=int(mask[: base.split].sum()))


def train_without(aside: Indices, chosen: Settings) -> TrainedModel:
    kept = np.setdiff1d(np.arange(len(rows())), aside)
    valid = Split(rows().X[aside], rows().Y[aside])
    return train(some(kept), chosen, valid=None if chosen.early_stopping is None else valid)


@cache
def by_hand(chosen: Settings, k: int) -> tuple[Any, list[int]]:
    """Out-of-fold probabilities, and the best epoch of each fold."""
    base = rows()
    probs, epochs = np.full(base.Y.shape, np.nan, dtype=np.float32), []
    for _, aside in folds(base.Y, base.hierarchy, k, chosen.seed):
        model = train_without(aside, chosen)
        probs[aside] = model.predict_proba(base.X[aside])
        measured = [record.valid.ap for record in model.history if record.valid is not None]
        epochs.append(1 + int(np.argmax(measured)) if measured else len(model.history))
    return probs, epochs


def same_forest(ours: TrainedModel, theirs: TrainedModel) -> bool:
    if ours.forest is None or theirs.forest is None:
        return ours.forest is theirs.forest
    arrays = theirs.forest.arrays()
    return all(np.array_equal(array, arrays[name]) for name, array in ours.forest.arrays().items())


def identical(ours: Unseen, theirs: Unseen) -> bool:
    return (
        same(ours.model, theirs.model)
        and same_forest(ours.model, theirs.model)
        and all(
            np.array_equal(getattr(ours, name), getattr(theirs, name))
            for name in ("Y", "probs", "prior", "rows", "taught_by")
        )
    )


# --- holding out -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("early_stopping", [None, 1])
def test_held_out_rows_are_not_trained_on(early_stopping: int | None) -> None:
    chosen = settings(early_stopping=early_stopping, seed=3, learning_rate=0.03)
    found = hold_out(rows(), chosen, 0.3)
    _, aside = HierarchicalSplit(0.3, seed=3).split(rows().Y, rows().hierarchy)
    expected = train_without(aside, chosen)
    assert same(found.model, expected)
    assert same_forest(found.model, expected)
    assert np.array_equal(found.Y, rows().Y[aside])
    assert np.array_equal(found.probs, expected.predict_proba(rows().X[aside]))
    np.testing.assert_allclose(found.prior, rows().Y.sum(axis=0) / 150)
    assert found.rows.tolist() == aside.tolist()
    kept = np.setdiff1d(np.arange(150), aside)
    assert found.taught_by.tolist() == rows().Y[kept].sum(axis=0).tolist()
    assert all((record.valid is None) == (early_stopping is None) for record in found.model.history)


def test_the_rows_to_hold_out_may_be_chosen() -> None:
    aside = np.array([120, 7, 33])
    found = hold_out_rows(rows(), settings(), np.arange(40, 110)[::-1], aside)
    expected = train(some(np.arange(40, 110)), settings())
    assert same(found.model, expected)
    assert np.array_equal(found.probs, expected.predict_proba(rows().X[[120, 7, 33]]))
    assert np.array_equal(found.Y, rows().Y[[120, 7, 33]])
    assert found.rows.tolist() == [120, 7, 33]
    assert found.taught_by.tolist() == rows().Y[40:110].sum(axis=0).tolist()


# --- cross-fitting ---------------------------------------------------------------------------------------------------


def test_every_row_is_asked_of_the_model_that_has_not_seen_it() -> None:
    found = cross_fit(rows(), settings(), 3)
    assert np.array_equal(found.probs, by_hand(settings(), 3)[0])
    assert np.array_equal(found.Y, rows().Y)
    np.testing.assert_allclose(found.prior, rows().Y.sum(axis=0) / 150)
    on_all = train(rows(), settings())
    assert same(found.model, on_all)
    assert same_forest(found.model, on_all)
    assert found.rows.tolist() == list(range(150))
    dealt = [aside.tolist() for _, aside in folds(rows().Y, rows().hierarchy, 3, 0)]
    assert found.taught_by.tolist() == taught_by_loops(rows().Y, dealt)


def taught_by_loops(Y: Any, dealt: list[list[int]]) -> list[int]:
    """For each node the mean, over the rows that carry it, of how many such rows are outside the row's own fold."""
    told = []
    for column in range(Y.shape[1]):
        known = []
        for fold in dealt:
            outside = sum(int(Y[row, column]) for row in range(len(Y)) if row not in fold)
            known += [outside for row in fold if Y[row, column]]
        told.append(math.floor(Fraction(sum(known), len(known))) if known else 0)
    return told


@given(st.data())
def test_what_taught_the_models_that_were_asked(data: st.DataObject) -> None:
    """Any labels, dealt into any folds: all rows of a node may lie in one, and then no model has seen the node."""
    count = data.draw(st.integers(2, 9))
    hierarchy = Hierarchy.from_edges([], nodes=["a", "b", "c"])
    Y = data.draw(hnp.arrays(np.bool_, (count, 3)))
    side = np.array(data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count)))
    dealt = [np.flatnonzero(side == fold).tolist() for fold in range(3)]
    given_rows = TrainingRows(np.zeros((count, 8), dtype=np.float32), Y, hierarchy, np.ones(3, dtype=np.bool_))

    def deal(*_: Any) -> list[tuple[Indices, Indices]]:
        return [(np.flatnonzero(side != fold), np.flatnonzero(side == fold)) for fold in set(side.tolist())]

    def untrained(of: TrainingRows, _: Settings, kept: Indices, aside: Indices, **how: Any) -> Unseen:
        nothing = np.zeros((len(aside), 3), dtype=np.float32)
        return Unseen(any_model(), of.Y[aside], nothing, np.zeros(3), aside, np.zeros(3, dtype=np.int64))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(unseen, "folds", deal)
        patch.setattr(unseen, "hold_out_rows", untrained)
        patch.setattr(unseen, "train", lambda *_, **__: any_model())
        patch.setattr(TrainingRows, "take", lambda self, _: self)  # a fold may have all rows
        found = cross_fit(given_rows, settings(), 3).taught_by
    assert found.tolist() == taught_by_loops(Y, dealt)
    for column in range(3):
        known = any(
            Y[row, column] and Y[other, column] and side[row] != side[other]
            for row in range(count)
            for other in range(count)
        )
        assert (found[column] > 0) == known


def test_a_row_has_no_say_in_what_is_said_of_its_fold() -> None:
    """Whatever its features are, the other rows of its fold are told the same; the rows of other folds are not."""
    X = rows().X.copy()
    X[10] *= -5
    before, after = (cross_fit(each, settings(), 2).probs for each in (rows(), replace(rows(), X=X)))
    changed = (before != after).any(axis=1)
    for _, aside in folds(rows().Y, rows().hierarchy, 2, 0):
        others = np.setdiff1d(aside, [10])
        assert changed[others].any() == (10 not in aside)


def test_the_last_training_has_the_median_of_the_best_epochs() -> None:
    chosen = settings(epochs=12, early_stopping=2, learning_rate=0.05)
    found = cross_fit(rows(), chosen, 3)
    probs, epochs = by_hand(chosen, 3)
    assert len(set(epochs)) > 1  # or any of them would do
    assert np.array_equal(found.probs, probs)
    assert same(found.model, train(rows(), settings(epochs=sorted(epochs)[1], learning_rate=0.05)))


@pytest.mark.parametrize(("epochs", "between"), [((1, 2), {1, 2}), ((2, 3), {2, 3}), ((1, 5), {3})])
def test_the_median_of_two_is_a_whole_number_between_them(
    monkeypatch: pytest.MonkeyPatch, epochs: tuple[int, int], between: set[int]
) -> None:
    told: Iterator[int] = iter(epochs)
    monkeypatch.setattr(unseen, "best_epoch", lambda _: next(told))
    model = cross_fit(rows(), settings(early_stopping=1, epochs=2, trees=0), 2).model
    assert len(model.history) in between
    assert abs(len(model.history) - median(epochs)) <= 0.5


# --- the best epoch --------------------------------------------------------------------------------------------------


def record(epoch: int, ap: float | None) -> EpochRecord:
    valid = None if ap is None else Summary(0, 0, 0, 0, ap, nodes=1, nodes_predicted=0, nodes_found=0)
    return EpochRecord(epoch=epoch, loss=1.0, seconds=1.0, steps_per_second=1.0, valid=valid)


@cache
def any_model() -> TrainedModel:
    return train(rows(), settings(epochs=1, trees=0))


@given(st.lists(st.sampled_from((0.0, 0.1, 0.5, 0.9)), min_size=1, max_size=8))
def test_the_best_epoch_is_the_first_that_no_other_beats(aps: list[float]) -> None:
    history = tuple(record(epoch, ap) for epoch, ap in enumerate(aps, start=1))
    expected = next(epoch for epoch, ap in enumerate(aps, start=1) if all(ap >= other for other in aps))
    assert best_epoch(replace(any_model(), history=history)) == expected


def test_where_nothing_was_measured_the_best_epoch_is_the_last() -> None:
    assert best_epoch(replace(any_model(), history=tuple(record(epoch, None) for epoch in (1, 2, 3)))) == 3


def test_the_model_kept_by_early_stopping_is_that_of_the_best_epoch() -> None:
    chosen = settings(epochs=20, early_stopping=2, learning_rate=0.05, trees=0)
    stopped = hold_out(rows(), chosen).model
    best = best_epoch(stopped)
    assert best < len(stopped.history)
    kept, _ = HierarchicalSplit(0.2).split(rows().Y, rows().hierarchy)
    until_then = train(some(kept), settings(epochs=best, learning_rate=0.05, trees=0))
    for name, array in stopped.parameters.items():
        assert np.array_equal(array, until_then.parameters[name])


# --- decisions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", [ExpectedF(), ExpectedF(2.0), PriorMatched(1.5), TunedPerNode()])
@pytest.mark.parametrize("rule", ["add_ancestors", "drop_orphans"])
def test_thresholds_are_found_on_the_unseen_rows(strategy: Strategy, rule: Any) -> None:
    rng = np.random.default_rng(0)
    Y = rows().Y[:30]
    probs = np.sort(rng.random((30, 20), dtype=np.float32), axis=1)[:, ::-1]  # columns are sorted by depth
    prior = rng.random(20)
    decided = Unseen(any_model(), Y, probs, prior, np.arange(30), Y.sum(axis=0)).decide(strategy, rule)
    assert decided.thresholds == strategy.fit(probs, Y, prior=prior, rule=rule)
    assert decided.thresholds is not None
    assert (decided.thresholds.rule, make_strategy(decided.thresholds.strategy)) == (rule, strategy)
    assert same(decided, any_model())
    assert any_model().thresholds is None


# --- stopping and going on -------------------------------------------------------------------------------------------

STOPPING: dict[str, Any] = {"epochs": 4, "early_stopping": 2, "learning_rate": 0.05, "checkpoint_epochs": 1}


class KilledError(Exception):
    """Nothing in a training catches it, as nothing catches a kill: what was not saved is lost."""


def kill() -> None:
    raise KilledError


def press_ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


@cache
def undisturbed() -> tuple[Unseen, list[int], dict[str, int]]:
    """The outcome, the batches of each fold and of the last training, and moments to stop at."""
    watch = Recorder()
    outcome = cross_fit(rows(), settings(**STOPPING), 3, watch=watch)
    begins = [number for number, at in enumerate(watch.batches) if at == (1, 1)]
    lengths = np.diff([*begins, len(watch.batches)]).tolist()
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
        cross_fit(rows(), settings(**STOPPING), 3, folder=tmp_path, watch=Recorder(at, how))
    watch = Recorder()
    resumed = cross_fit(rows(), settings(**STOPPING), 3, folder=tmp_path, resume=True, watch=watch)
    assert identical(resumed, outcome)
    lost = 0 if how is press_ctrl_c else 5  # batches of an epoch, at most: there is a checkpoint after each
    assert sum(lengths) - at <= len(watch.batches) <= sum(lengths) - at + lost


def test_resuming_what_is_done_trains_nothing(tmp_path: Path) -> None:
    first = cross_fit(rows(), settings(), 2, folder=tmp_path)
    watch = Recorder()
    assert identical(cross_fit(rows(), settings(), 2, folder=tmp_path, resume=True, watch=watch), first)
    assert not watch.batches


@pytest.fixture(scope="module")
def second_fold(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the first of two folds is done, and the second under way."""
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.raises(Interrupted):
        cross_fit(rows(), settings(), 2, folder=folder, watch=Recorder(12, press_ctrl_c))
    return folder


def test_what_lies_in_the_folder_meanwhile(second_fold: Path) -> None:
    found = sorted(str(path.relative_to(second_fold)) for path in second_fold.rglob("*") if path.is_file())
    assert found == [
        *(f".fold-1/{name}" for name in ("README.md", "model.json", "model.safetensors")),
        f".fold-2/{CHECKPOINT}",
    ]


@pytest.mark.parametrize("changes", [{"seed": 1}, {"trees": 4}, {"decision": "fixed:0.3"}])
def test_other_settings_do_not_go_on(second_fold: Path, changes: dict[str, Any]) -> None:
    with pytest.raises(ResumeError, match="fold-1 holds the model of another training"):
        cross_fit(rows(), settings(**changes), 2, folder=second_fold, resume=True)


def test_other_rows_do_not_go_on(second_fold: Path) -> None:
    with pytest.raises(ResumeError, match="fold-1 holds the model of another training"):
        cross_fit(replace(rows(), X=rows().X + np.float32(1)), settings(), 2, folder=second_fold, resume=True)


def test_another_hierarchy_or_number_of_folds_does_not_go_on(second_fold: Path) -> None:
    tree = rows().hierarchy
    names = {name: f"{name}'" for name in tree.nodes}
    edges = zip(tree.edge_parents.tolist(), tree.edge_children.tolist(), strict=True)
    renamed = Hierarchy.from_edges(((names[tree.nodes[p]], names[tree.nodes[c]]) for p, c in edges), names.values())
    assert renamed.fingerprint != tree.fingerprint
    for given_rows, k in ((replace(rows(), hierarchy=renamed), 2), (rows(), 3)):
        with pytest.raises(ResumeError, match="fold-1 holds the model of another training"):
            cross_fit(given_rows, settings(), k, folder=second_fold, resume=True)


def test_rows_that_were_held_out_of_a_finished_fold_must_be_the_same_too(tmp_path: Path) -> None:
    """The fold was not trained on them, but stopped on them."""
    chosen = settings(early_stopping=3)  # epochs: none is left out
    with pytest.raises(KilledError):
        cross_fit(rows(), chosen, 2, folder=tmp_path, watch=Recorder(3 * 3 + 1, kill))
    assert [path.name for path in tmp_path.rglob(CHECKPOINT)] == []
    X = rows().X.copy()
    X[folds(rows().Y, rows().hierarchy, 2, 0)[0][1][0]] += 1
    with pytest.raises(ResumeError, match="fold-1 holds the model of another training"):
        cross_fit(replace(rows(), X=X), chosen, 2, folder=tmp_path, resume=True)


def test_a_checkpoint_is_not_overwritten_unasked(second_fold: Path) -> None:
    with pytest.raises(ResumeError, match=r"fold-2.*not finished"):
        cross_fit(rows(), settings(), 2, folder=second_fold)


def test_a_damaged_fold_is_named(tmp_path: Path) -> None:
    any_model().save(tmp_path / ".fold-1")
    (tmp_path / ".fold-1" / "model.json").write_text("{")
    with pytest.raises(FileFormatError, match=r"fold-1.model\.json"):
        cross_fit(rows(), settings(), 2, folder=tmp_path, resume=True)


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


def test_a_schedule_over_epochs_and_early_stopping_do_not_go_together() -> None:
    chosen = settings(schedule="linear", schedule_by="epoch", early_stopping=1)
    with pytest.raises(ArgumentError, match="a schedule by epochs"):
        cross_fit(rows(), chosen, 2)


def test_what_is_merely_called_like_a_fold_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / ".fold-notes").mkdir()
    (tmp_path / ".fold-notes" / "README.md").write_text("mine")
    (tmp_path / ".fold-7").write_text("mine")
    any_model().save(tmp_path / ".fold-1")
    remove_folds(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == [".fold-7", ".fold-notes", "README.md"]


def test_a_checkpoint_left_beside_the_model_of_a_fold_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a kill leaves it that comes between saving the model and removing the checkpoint."""
    with monkeypatch.context() as patch, pytest.raises(KilledError):
        patch.setattr(unseen, "remove_checkpoint", lambda _: kill())
        cross_fit(rows(), settings(), 2, folder=tmp_path)
    assert (tmp_path / ".fold-1" / CHECKPOINT).exists()
    cross_fit(rows(), settings(), 2, folder=tmp_path, resume=True)
    remove_folds(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [CHECKPOINT]
