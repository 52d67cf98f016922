from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rarenode.data.dataset import Split
from rarenode.engines import Adam, EngineName, Objective, make_engine
from rarenode.engines.fused_engine import FusedEngine
from rarenode.errors import ArgumentError, TrainingError
from rarenode.metrics import summary
from rarenode.models import initial_parameters
from rarenode.objective import WeightSchedule, node_weights
from rarenode.training import train
from rarenode.training.loop import row_order
from tests.training.problem import Recorder, data, outcomes, rows, same, settings

ENGINES: tuple[EngineName, ...] = ("fused", "torch")


@pytest.mark.parametrize("engine", ENGINES)
def test_the_loop_takes_the_steps_that_one_would_take_by_hand(engine: EngineName) -> None:
    chosen = settings(engine=engine, schedule="linear", mix=0.5, members=2, focus="bbma", u0=0.5, k=2.0, seed=3)
    given = rows()
    shape = chosen.shape(8, 20)
    weights = node_weights(given.Y[: given.split], given.hierarchy, 0.25)
    schedule = WeightSchedule("linear", mix=0.5)
    objective = Objective(given.hierarchy, weights, "bbma", 0.5, 2.0, given.scored, "sum")
    by_hand = make_engine(engine, shape, initial_parameters(shape, 3), objective, Adam(1e-3, 1e-5), 3)
    losses = []
    for epoch in range(3):
        order = row_order(150, 3, epoch)
        for batch in range(10):
            batch_rows = order[batch * 16 : batch * 16 + 16]
            now = schedule.weights(weights, batch, 10, epoch, 3)
            losses.append(by_hand.step(given.X[batch_rows], given.Y[batch_rows], now))

    watch = Recorder()
    model = train(given, chosen, watch=watch)
    assert watch.losses == losses
    assert all(np.array_equal(model.parameters[name], by_hand.state()[name]) for name in shape.parameter_shapes)
    assert [record.loss for record in model.history] == [
        pytest.approx(np.mean(losses[i : i + 10])) for i in (0, 10, 20)
    ]


def test_a_constant_schedule_mixes_too() -> None:
    plain = train(rows(), settings(weighting="none"))
    assert outcomes(train(rows(), settings(mix=0.0))) == [
        (epoch, pytest.approx(loss, rel=1e-6), None) for epoch, loss, _ in outcomes(plain)
    ]
    assert not same(plain, train(rows(), settings()))


def test_reduction_is_as_published() -> None:
    for members, reduction in ((1, "mean"), (2, "sum")):
        auto = train(rows(), settings(members=members))
        assert same(auto, train(rows(), settings(members=members, reduction=reduction)))
    assert not same(auto, train(rows(), settings(members=2, reduction="mean")))


def test_an_epoch_sees_every_row_once_in_an_order_of_its_own() -> None:
    orders = [row_order(30, seed, epoch).tolist() for seed in (0, 1) for epoch in range(3)]
    assert all(sorted(order) == list(range(30)) for order in orders)
    assert len({tuple(order) for order in orders}) == 6


def test_the_seed_decides() -> None:
    assert same(train(rows(), settings()), train(rows(), settings()))
    assert not same(train(rows(), settings()), train(rows(), settings(seed=1)))


def test_the_watch_is_told() -> None:
    watch = Recorder()
    model = train(rows(), settings(epochs=2), watch=watch)
    assert watch.outlook is not None
    assert (watch.outlook.epochs, watch.outlook.batches, watch.outlook.steps, watch.outlook.done) == (2, 10, 20, 0)
    assert watch.outlook.engine == model.engine == "fused"
    assert watch.batches == [(epoch, batch) for epoch in (1, 2) for batch in range(1, 11)]
    assert tuple(watch.records) == model.history
    assert watch.is_finished


def test_validation_is_recorded_and_changes_nothing() -> None:
    dataset = data()
    assert dataset.valid is not None
    model = train(rows(), settings(), valid=dataset.valid)
    unwatched = train(rows(), settings())
    assert all(np.array_equal(array, unwatched.parameters[name]) for name, array in model.parameters.items())
    assert model.history[-1].valid == summary(dataset.valid.Y, model.predict_proba(dataset.valid.X))


def test_early_stopping_keeps_the_best() -> None:
    dataset = data()
    valid = dataset.valid
    assert valid is not None
    model = train(rows(), settings(epochs=60, learning_rate=0.05, early_stopping=2), valid=valid)
    aps = [record.valid.ap for record in model.history if record.valid is not None]
    best = int(np.argmax(aps)) + 1
    assert len(aps) == best + 2 < 60
    assert summary(valid.Y, model.predict_proba(valid.X)).ap == max(aps)
    until_then = train(rows(), settings(epochs=best, learning_rate=0.05))
    assert all(np.array_equal(array, until_then.parameters[name]) for name, array in model.parameters.items())


def test_validation_rows_are_checked() -> None:
    valid = data().valid
    assert valid is not None
    with pytest.raises(ArgumentError, match="early_stopping needs validation rows"):
        train(rows(), settings(early_stopping=1))
    with pytest.raises(ArgumentError, match="validation needs rows"):
        train(rows(), settings(), valid=Split(valid.X[:0], valid.Y[:0]))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_loss_that_is_no_number_stops_with_place_and_cause(engine: EngineName) -> None:
    watch = Recorder()
    with pytest.raises(TrainingError, match=r"epoch 1 of 3, batch \d+ of 10: .* learning rate 1e\+30 .* try 1e\+29"):
        train(rows(), settings(engine=engine, learning_rate=1e30), watch=watch)
    assert watch.is_finished


def test_features_that_are_too_large_are_named_as_the_cause() -> None:
    huge = replace(rows(), X=rows().X * np.float32(1e37))
    with pytest.raises(TrainingError, match=r"features reach .* standardised"):
        train(huge, settings(epochs=50, learning_rate=1.0))


def test_a_last_step_that_goes_wrong_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    state = FusedEngine.state

    def spoilt(self: FusedEngine) -> Any:
        arrays = state(self)
        if self.steps == 30:
            arrays["layer1.bias"][0, 0] = np.nan
        return arrays

    monkeypatch.setattr(FusedEngine, "state", spoilt)
    with pytest.raises(TrainingError, match=r"epoch 3 of 3, batch 10 of 10: layer1\.bias is no longer finite"):
        train(rows(), settings())
