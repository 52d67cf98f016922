"""Devices: nothing in a training step waits for one, and what is computed there is what the CPU computes.

torch's meta device has shapes and no numbers. Whatever needs a number of a tensor, or a copy of it on the CPU, fails
there, so a step that runs on it would not wait for a GPU either.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rarenode import RareNodeLoss, make_hierarchical
from rarenode.config import Settings
from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.engines import EncoderTraining, make_engine
from rarenode.engines.dropout import dropout_masks, dropout_masks_on
from rarenode.engines.torch_engine import TorchEngine
from rarenode.errors import ArgumentError, TrainingError
from rarenode.models import Mlp, initial_parameters
from rarenode.models.on_device import mean_probs_on
from rarenode.models.pixels import PixelEncoder, PixelInput
from rarenode.objective import constraint
from rarenode.objective.uncertainties import UNCERTAINTIES
from rarenode.training import loop
from rarenode.training.callbacks import Callback
from rarenode.training.fit import fit_model
from rarenode.training.model import TrainedModel
from tests.engines.problem import ADAM, SEED, objective_of, shape_of

META = torch.device("meta")
HAS_GPU = torch.cuda.is_available()


def engine_on_meta(data: DatasetSplits, **changes: Any) -> TorchEngine:
    shape = shape_of(data, members=3)
    return TorchEngine(shape, initial_parameters(shape, SEED), objective_of(data, **changes), ADAM, SEED, "meta")


def single_precision(rows: Dataset) -> Dataset:
    return replace(rows, X=rows.X.astype(np.float32))


def step_of(engine: TorchEngine, data: DatasetSplits) -> Any:
    known = np.ones_like(data.train.Y[:5])
    return engine.step(data.train.X[:5], data.train.Y[:5], None, np.ones(5, dtype=np.float32), known)


@pytest.mark.parametrize("focus", [None, "focal", *UNCERTAINTIES])
def test_a_step_on_a_device_asks_for_no_number(data: DatasetSplits, focus: str | None) -> None:
    engine = engine_on_meta(data, focus=focus, k=1.5, reduction="mean")
    for _ in range(2):
        loss = step_of(engine, data)
        assert loss.device == META
    assert engine.steps == 2
    assert all(value.device == META for value in engine.network.parameters())


def test_a_step_with_an_encoder_asks_for_no_number(data: DatasetSplits) -> None:
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten())
    encoder = PixelEncoder(module, PixelInput(4, (0.5, 0.5, 0.5), (0.5, 0.5, 0.5)))
    shape = replace(shape_of(data, members=2), features=encoder.width)
    how = EncoderTraining(augmentation=("flip", "crop", "colour"))
    engine = TorchEngine(
        shape, initial_parameters(shape, 0), objective_of(data), ADAM, 0, "meta", encoder, encoder_training=how
    )
    pixels = np.zeros((5, 48), dtype=np.uint8)
    assert isinstance(engine.step(pixels, data.train.Y[:5]), torch.Tensor)


@pytest.mark.parametrize(
    "stray", [torch.Tensor.item, torch.Tensor.cpu, torch.Tensor.numpy, torch.Tensor.tolist, bool, float]
)
def test_a_stray_copy_to_the_host_would_be_found(
    data: DatasetSplits, monkeypatch: pytest.MonkeyPatch, stray: Callable[[Any], Any]
) -> None:
    engine = engine_on_meta(data, focus="gmu")
    forward = RareNodeLoss.forward

    def careless(self: RareNodeLoss, *args: Any, **kwargs: Any) -> torch.Tensor:
        loss = forward(self, *args, **kwargs)
        stray(loss.detach())
        return loss

    monkeypatch.setattr(RareNodeLoss, "forward", careless)
    with pytest.raises((RuntimeError, NotImplementedError, TypeError), match="meta"):
        step_of(engine, data)


@given(
    seed=st.integers(0, 2**63 - 1),
    step=st.integers(0, 2**40),
    layer=st.integers(0, 99),
    first_member=st.integers(0, 1000),
    first_row=st.integers(0, 1000),
    dropout=st.floats(0, 0.99),
)
def test_masks_on_a_device_have_the_same_bits(
    seed: int, step: int, layer: int, first_member: int, first_row: int, dropout: float
) -> None:
    what = (seed, step, layer, 3, 2, 37, dropout, first_member, first_row)
    np.testing.assert_array_equal(dropout_masks_on(torch.device("cpu"), *what).numpy(), dropout_masks(*what))


def test_masks_of_some_members_and_rows_are_those_of_the_whole() -> None:
    whole = dropout_masks(3, 5, 1, 7, 6, 10, 0.5)
    np.testing.assert_array_equal(dropout_masks(3, 5, 1, 2, 3, 10, 0.5, 4, 2), whole[4:6, 2:5])
    assert 0.3 < whole.mean() < 0.7


@pytest.fixture
def by_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """The constraint as devices compute it, on the CPU."""

    def maximisers(scores: torch.Tensor, labels: torch.Tensor, hierarchy: Any) -> torch.Tensor:
        return constraint.maximisers_by_level(scores.detach(), labels, hierarchy)

    monkeypatch.setattr(constraint, "maximisers", maximisers)


@pytest.mark.usefixtures("by_level")
@pytest.mark.parametrize("kind", UNCERTAINTIES)
def test_predictions_on_a_device_are_those_of_the_cpu(data: DatasetSplits, kind: str) -> None:
    shape = shape_of(data, members=4)
    model = Mlp(shape, initial_parameters(shape, 1), data.hierarchy)
    X = 5 * data.test.X.astype(np.float32)
    there = mean_probs_on(
        torch.device("cpu"),
        model._on_device,
        X,
        shape.nodes,
        data.hierarchy,
        [slice(0, 7), slice(7, len(X))],
        highest=True,
        kind=kind,
    )
    here = model.compute(X, highest=True, uncertainty=kind)
    assert here.highest is not None and here.uncertainty is not None
    assert there.highest is not None and there.uncertainty is not None
    for ours, theirs in ((there.probs, here.probs), (there.highest, here.highest)):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(there.uncertainty, here.uncertainty, rtol=1e-3, atol=2e-6)
    parents, children = data.hierarchy.edge_parents, data.hierarchy.edge_children
    assert (there.probs[:, parents] >= there.probs[:, children]).all()


def test_a_loaded_model_is_computed_where_it_is_told_to(data: DatasetSplits, tmp_path: Any) -> None:
    settings = Settings(hidden_size=8, n_trees=3, epochs=1, holdout=0.3, blend="geometric")
    model = fit_model(data.train, settings).model
    model.save(tmp_path)
    placed = TrainedModel.load(tmp_path, device="auto").on("cpu")
    assert [part.device for part in placed.parts if isinstance(part, Mlp)] == ["cpu"]
    np.testing.assert_array_equal(placed.predict_proba(data.test.X), model.predict_proba(data.test.X))
    with pytest.raises(ArgumentError, match="device 'cuda:99' is not available; choose auto, "):
        TrainedModel.load(tmp_path, device="cuda:99")
    network = next(part for part in model.parts if isinstance(part, Mlp))
    with pytest.raises(NotImplementedError, match="meta"):  # so it is computed there
        replace(network, device="meta").compute(data.test.X.astype(np.float32))


class LossesStay(TorchEngine):
    """Its losses are tensors, as those of an engine on a device."""

    wrong_at: int | None = None

    def step(self, *args: Any, **kwargs: Any) -> torch.Tensor:
        loss = torch.tensor(float(super().step(*args, **kwargs)))
        return loss * torch.nan if self.steps == self.wrong_at else loss


@pytest.fixture
def losses_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    def make(name: str, shape: Any, parameters: Any, objective: Any, adam: Any, seed: int, **_: Any) -> TorchEngine:
        return LossesStay(shape, parameters, objective, adam, seed)

    monkeypatch.setattr(loop, "make_engine", make)


class Losses(Callback):
    def __init__(self) -> None:
        self.found: list[tuple[int, int, float]] = []

    def on_batch(self, epoch: int, batch: int, loss: float) -> None:
        self.found.append((epoch, batch, loss))


SETTINGS = Settings(hidden_size=8, epochs=2, patience=None, batch_size=2, model="mlp", engine="torch", n_members=2)


def test_losses_that_stay_on_a_device_are_all_reported(data: DatasetSplits, request: pytest.FixtureRequest) -> None:
    usual, late, rows = Losses(), Losses(), single_precision(data.train)
    expected = loop.train_network(rows, SETTINGS, callback=usual)
    request.getfixturevalue("losses_stay")
    found = loop.train_network(rows, SETTINGS, callback=late)
    assert len(usual.found) > 2 * loop.LOSSES_TOGETHER
    assert [each[:2] for each in late.found] == [each[:2] for each in usual.found]
    np.testing.assert_allclose([each[2] for each in late.found], [each[2] for each in usual.found], rtol=1e-6)
    assert [record.loss for record in found.history] == pytest.approx([record.loss for record in expected.history])


@pytest.mark.usefixtures("losses_stay")
def test_a_loss_that_is_not_finite_is_found_later_with_its_place(
    data: DatasetSplits, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.setattr(LossesStay, "wrong_at", 40)
    with pytest.raises(TrainingError, match=r"epoch 1 of 2, batch 40 of \d+: the loss is nan"):
        loop.train_network(single_precision(data.train), SETTINGS, folder=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not HAS_GPU, reason="needs a GPU")
@pytest.mark.parametrize("focus", ["none", "gmu"])
def test_training_and_prediction_on_a_gpu(focus: Any, tmp_path: Any) -> None:
    data = make_hierarchical(300, nodes=40, depth=4)
    settings = Settings(hidden_size=32, n_members=3, epochs=3, holdout=0.2, model="mlp", focus=focus)
    models = [
        fit_model(data.train, settings.changed(device=device, engine="torch")).model for device in ("cuda", "cpu")
    ]
    found, expected = (model.predict_proba(data.test.X) for model in models)
    np.testing.assert_allclose(found, expected, atol=2e-2)
    models[0].save(tmp_path)
    again = TrainedModel.load(tmp_path)
    assert [part.device for part in again.parts if isinstance(part, Mlp)] == ["cuda"]
    np.testing.assert_allclose(again.predict_proba(data.test.X), found, atol=1e-6)


def test_make_engine_names_devices_that_are_there(data: DatasetSplits) -> None:
    shape = shape_of(data)
    with pytest.raises(ArgumentError, match=r"choose auto, .*cpu"):
        make_engine("auto", shape, initial_parameters(shape, 0), objective_of(data), ADAM, 0, device="tpu")
