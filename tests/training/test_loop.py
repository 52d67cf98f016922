from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rarenode.engines import Adam, EngineName, Objective, make_engine
from rarenode.errors import ArgumentError, DataError, LabelError, NotClosedError, TrainingError
from rarenode.metrics import summary
from rarenode.models import MlpEnsemble, initial_parameters
from rarenode.objective import WeightSchedule, node_weights
from rarenode.training import train_model
from rarenode.training.loop import row_order, train_network
from tests.training.problem import Recorder, outcomes, prepared, rows, same, settings, validation

ENGINES: tuple[EngineName, ...] = ("fused", "torch")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_loop_takes_the_same_steps_as_a_loop_by_hand(engine: EngineName, weighted: bool) -> None:
    chosen = settings(engine=engine, schedule="linear", mix=0.5, n_members=2, focus="bbma", u0=0.5, k=2.0, seed=3)
    given = prepared()
    row_weights = np.linspace(0.1, 2, 150, dtype=np.float32) if weighted else None
    shape = MlpEnsemble(8, 20, hidden=16, members=2)
    weights = node_weights(given.Y[:100], given.hierarchy, 0.25)
    schedule = WeightSchedule("linear", mix=0.5)
    objective = Objective(given.hierarchy, weights, "bbma", 0.5, 2.0, given.scored, "sum")
    by_hand = make_engine(engine, shape, initial_parameters(shape, 3), objective, Adam(1e-3, 1e-5), 3)
    losses = []
    for epoch in range(3):
        order = row_order(150, 3, epoch)
        for batch in range(10):
            chosen_rows = order[batch * 16 : batch * 16 + 16]
            now = schedule.weights(weights, batch, 10, epoch, 3)
            some_weights = None if row_weights is None else row_weights[chosen_rows]
            losses.append(float(by_hand.step(given.X[chosen_rows], given.Y[chosen_rows], now, some_weights)))

    recorder = Recorder()
    model = train_model(replace(rows(), sample_weight=row_weights), chosen, callback=recorder)
    assert recorder.losses == losses
    arrays = model.model.arrays()
    assert all(np.array_equal(arrays[name], array) for name, array in by_hand.parameters().items())
    assert [record.loss for record in model.history] == [
        pytest.approx(np.mean(losses[i : i + 10])) for i in (0, 10, 20)
    ]


def test_a_constant_schedule_mixes_too() -> None:
    plain = train_model(rows(), settings(weighting="none"))
    assert outcomes(train_model(rows(), settings(mix=0.0))) == [
        (epoch, pytest.approx(loss, rel=1e-6), None) for epoch, loss, _ in outcomes(plain)
    ]
    assert not same(plain, train_model(rows(), settings()))


def test_reduction_is_as_published() -> None:
    for n_members, reduction in ((1, "mean"), (2, "sum")):
        auto = train_model(rows(), settings(n_members=n_members))
        assert same(auto, train_model(rows(), settings(n_members=n_members, reduction=reduction)))
    assert not same(auto, train_model(rows(), settings(n_members=2, reduction="mean")))


def test_every_epoch_has_every_row_once_in_another_order() -> None:
    orders = [row_order(30, seed, epoch).tolist() for seed in (0, 1) for epoch in range(3)]
    assert all(sorted(order) == list(range(30)) for order in orders)
    assert len({tuple(order) for order in orders}) == 6


def test_the_seed_decides() -> None:
    assert same(train_model(rows(), settings()), train_model(rows(), settings()))
    assert not same(train_model(rows(), settings()), train_model(rows(), settings(seed=1)))


def test_the_callback_is_called() -> None:
    recorder = Recorder()
    model = train_model(rows(), settings(epochs=2), callback=recorder)
    assert recorder.plan is not None
    plan = recorder.plan
    assert (plan.epochs, plan.batches, plan.steps, plan.steps_done) == (2, 10, 20, 0)
    assert plan.engine == model.engine == "fused"
    assert recorder.batches == [(epoch, batch) for epoch in (1, 2) for batch in range(1, 11)]
    assert tuple(recorder.records) == model.history
    assert recorder.is_finished


def test_validation_is_recorded_and_changes_nothing() -> None:
    model = train_model(rows(), settings(), valid=validation())
    unwatched = train_model(rows(), settings())
    assert same(replace(model, history=()), replace(unwatched, history=()))
    assert model.history[-1].valid == summary(validation().Y, model.predict_proba(validation().X))


def test_early_stopping_keeps_the_best() -> None:
    model = train_model(rows(), settings(epochs=60, learning_rate=0.05, patience=2), valid=validation())
    aps = [record.valid.ap for record in model.history if record.valid is not None]
    best = int(np.argmax(aps)) + 1
    assert len(aps) == best + 2 < 60
    assert summary(validation().Y, model.predict_proba(validation().X)).ap == max(aps)
    until_then = train_model(rows(), settings(epochs=best, learning_rate=0.05))
    assert same(replace(model, history=()), replace(until_then, history=()))


def test_validation_rows_are_checked() -> None:
    with pytest.raises(ArgumentError, match=r"early stopping \(patience\) needs validation rows"):
        train_model(rows(), settings(patience=1))
    nothing = validation().take(np.arange(0))
    with pytest.raises(DataError, match="there are no rows, so none can be used for validation"):
        train_model(rows(), settings(), valid=nothing)
    with pytest.raises(ArgumentError, match="validation needs at least one row"):
        train_network(prepared(), settings(), valid=replace(nothing, X=nothing.X.astype(np.float32)))


def test_rows_that_cannot_be_learned_from() -> None:
    base = prepared()
    missing = base.X.copy()
    missing[3, 2] = np.nan
    not_closed = np.zeros_like(base.Y)
    not_closed[0, -1] = True
    for changes, error, says in [
        ({"X": base.X.astype(np.float64)}, DataError, "float32"),
        ({"X": missing}, DataError, "row 3, feature 2 is nan"),
        ({"X": base.X[:, :0], "feature_names": None}, DataError, "shape"),
        ({"Y": not_closed}, NotClosedError, "parent"),
    ]:
        with pytest.raises(error, match=says):
            train_network(replace(base, **changes), settings())
    with pytest.raises(LabelError, match="boolean"):
        replace(base, Y=base.Y.astype(int))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loss_that_is_no_number_stops_with_place_and_cause(engine: EngineName) -> None:
    recorder = Recorder()
    place = r"epoch 1 of 3, batch \d+ of 10: .*\. One of these is too large: "
    told = place + r"learning_rate \(1e\+30\), weight_decay \(1e-05\), w0 \(0\.25\), the features \(up to "
    with pytest.raises(TrainingError, match=told):
        train_model(rows(), settings(engine=engine, learning_rate=1e30), callback=recorder)
    assert recorder.is_finished
    for cause in ({"weight_decay": 1e30}, {"w0": 1e30, "reduction": "sum"}, {"focus": "gmu", "u0": 1e30}):
        causes = "".join(rf".*{name} \(1e\+30\)" for name, value in cause.items() if value == 1e30)
        says = rf"the training diverged\. One of these is too large: {causes}.*Use a lower learning rate"
        with pytest.raises(TrainingError, match=says):
            train_model(rows(), settings(engine=engine, **cause, epochs=200, learning_rate=1e9))


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("huge", [{"hidden_size": 1_000_000}, {"hidden_size": 2**31}, {"n_members": 2**31}])
def test_too_little_memory_names_the_settings(engine: EngineName, huge: dict[str, Any]) -> None:
    ((name, value),) = huge.items()
    with pytest.raises(MemoryError, match=rf"{name}={value}.* GiB .* choose less"):
        train_model(rows(), settings(engine=engine, **huge))


def test_features_that_are_too_large_are_named_as_the_cause() -> None:
    huge = replace(rows(), X=rows().X * 1e37)
    with pytest.raises(TrainingError, match=r"too large: the features \(up to .*prepare=True.*\), learning_rate"):
        train_model(huge, settings(epochs=50, learning_rate=1.0), prepare=False)


def test_a_last_step_that_goes_wrong_is_noticed() -> None:
    """Its loss is from before the step, so only parameters and moments show it."""
    with pytest.raises(TrainingError, match=r"epoch 1 of 1, batch 1 of 1: .* is no longer finite"):
        train_model(rows(), settings(epochs=1, batch_size=200, weight_decay=1e30))
