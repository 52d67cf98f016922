"""An encoder is trained with its heads: as a plain loop does it, with its own rate, modes, precision and randomness."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from rarenode.engines import Adam, EncoderTraining, Objective
from rarenode.engines.augmentation import augment
from rarenode.engines.encoder_training import uses_bfloat16
from rarenode.engines.torch_engine import TorchEngine
from rarenode.errors import ArgumentError, DataError
from rarenode.models import MlpEnsemble, initial_parameters
from rarenode.models.pixels import PixelEncoder
from tests.pictures import PIXELS, SIZE, pictures, tiny_encoder, tiny_module

DATA = pictures(40)
NODES = len(DATA.hierarchy)
ADAM = Adam(learning_rate=1e-2, weight_decay=1e-2)
NORM = ("1.running_mean", "1.running_var", "1.num_batches_tracked")


def engine_of(encoder: torch.nn.Module, dropout: float = 0.0, layers: int = 2, **how: Any) -> TorchEngine:
    shape = MlpEnsemble(6, NODES, hidden=8, layers=layers, dropout=dropout)
    training = EncoderTraining(**how)
    start = initial_parameters(shape, 0)
    return TorchEngine(shape, start, Objective(DATA.hierarchy), ADAM, 5, encoder=encoder, encoder_training=training)


def batch(step: int, rows: int = 8) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    chosen = np.random.default_rng(step).integers(len(DATA), size=rows)
    return DATA.X[chosen], DATA.Y[chosen]


def train(engine: TorchEngine, steps: int) -> list[float]:
    return [float(engine.step(*batch(engine.steps))) for _ in range(steps)]


def weights(encoder: PixelEncoder) -> dict[str, NDArray[Any]]:
    return {name: value.detach().numpy().copy() for name, value in encoder.module.state_dict().items()}


@pytest.mark.parametrize("frozen_norms", [False, True])
def test_training_is_that_of_a_plain_loop(frozen_norms: bool) -> None:
    """Everything written out: pixels to images, the constraint by its dense formula, two groups of parameters."""
    engine = engine_of(tiny_encoder(), learning_rate=3e-3, freezes_batchnorm=frozen_norms)
    module = tiny_module().double()
    start = initial_parameters(engine.shape, 0)
    head = {name: torch.tensor(array[0], dtype=torch.float64, requires_grad=True) for name, array in start.items()}
    groups: list[dict[str, Any]] = [{"params": [*head.values()]}, {"params": [*module.parameters()], "lr": 3e-3}]
    optimiser = torch.optim.Adam(groups, lr=1e-2, weight_decay=1e-2)
    below = {n: DATA.hierarchy.descendants(n) for n in DATA.hierarchy.nodes}
    reach = torch.tensor([[a == b or b in below[a] for b in DATA.hierarchy.nodes] for a in DATA.hierarchy.nodes])
    for step in range(4):
        X, Y = batch(step)
        images = np.stack([[row[channel::3].reshape(SIZE, SIZE) for channel in range(3)] for row in X]) / 255
        mean, deviation = (np.array(values)[None, :, None, None] for values in (PIXELS.mean, PIXELS.deviation))
        module.train()
        if frozen_norms:
            for place in (1, 5):
                module[place].eval()  # type: ignore[index]
        features = module(torch.tensor((images - mean) / deviation))
        hidden = (features @ head["layer0.weight"].T + head["layer0.bias"]).relu()
        probs = (hidden @ head["layer1.weight"].T + head["layer1.bias"]).sigmoid()
        y = torch.tensor(Y, dtype=torch.float64)
        highest, among_positives = ((reach * p[:, None]).max(dim=2).values for p in (probs, y * probs))
        constrained = (1 - y) * highest + y * among_positives
        loss = -(y * constrained.log() + (1 - y) * (1 - constrained).log()).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        assert engine.step(X, Y) == pytest.approx(float(loss.detach()), rel=1e-5)
        learned = engine.parameters()
        for name, value in head.items():
            np.testing.assert_allclose(learned[name][0], value.detach(), rtol=1e-3, atol=2e-5, err_msg=name)
        for name, value in module.state_dict().items():
            ours = learned["encoder.module." + name]
            np.testing.assert_allclose(ours, value, rtol=1e-3, atol=2e-5, err_msg=name)


def test_the_encoder_has_its_own_learning_rate() -> None:
    before = weights(tiny_encoder())
    for rate, changes in ((0.0, False), (1e-3, True), (None, True)):
        encoder = tiny_encoder()
        engine = engine_of(encoder, learning_rate=rate, freezes_batchnorm=True)
        train(engine, 1)
        after = weights(encoder)
        moved = max(float(np.abs(after[name] - before[name]).max()) for name in before)
        expected = ADAM.learning_rate if rate is None else rate  # Adam's first step has this length
        assert (moved > 0) == changes
        assert moved == pytest.approx(expected, rel=1e-2)
        heads = engine.parameters()["layer0.weight"] - initial_parameters(engine.shape, 0)["layer0.weight"]
        assert np.abs(heads).max() == pytest.approx(ADAM.learning_rate, rel=1e-2)


def test_frozen_batch_normalisation_keeps_its_statistics_but_learns() -> None:
    before = weights(tiny_encoder())
    for freezes in (True, False):
        encoder = tiny_encoder()
        engine = engine_of(encoder, freezes_batchnorm=freezes)
        train(engine, 3)
        engine.logits(DATA.X)
        train(engine, 1)
        after = weights(encoder)
        for name, value in before.items():
            kept = freezes and name.rpartition(".")[2] in {part.rpartition(".")[2] for part in NORM}
            assert np.array_equal(after[name], value) == kept, name


def test_a_batch_of_one_row_does_not_change_the_statistics() -> None:
    """An epoch may end with one; where a picture is one pixel by then, torch would refuse to normalise it."""
    small = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.BatchNorm2d(3), torch.nn.Flatten())
    encoder = PixelEncoder(torch.nn.Sequential(small, torch.nn.Linear(3, 6)), PIXELS)
    engine = engine_of(encoder)
    train(engine, 1)
    before = weights(encoder)
    engine.step(*batch(1, rows=1))
    after = weights(encoder)
    for name, value in before.items():
        assert np.array_equal(after[name], value) == ("running" in name or "tracked" in name), name
    train(engine, 1)
    assert not np.array_equal(weights(encoder)["0.1.running_mean"], after["0.1.running_mean"])


def test_a_frozen_encoder_stays_as_it_is() -> None:
    encoder = tiny_encoder(dropout=0.5)
    encoder.requires_grad_(False)
    before = weights(encoder)
    engine = engine_of(encoder)
    losses = train(engine, 20)
    assert losses[-1] < losses[0]
    assert all(np.array_equal(value, before[name]) for name, value in weights(encoder).items())
    assert engine.parameters().keys() == engine.shape.parameter_shapes.keys()


class Noting(torch.nn.Module):
    """Keeps the images that it gets."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(3, 6)
        self.seen: list[torch.Tensor] = []

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        self.seen.append(images.detach().clone())
        features: torch.Tensor = self.linear(images.mean(dim=(2, 3)))
        return features


def test_images_are_varied_in_training_only() -> None:
    module = Noting()
    encoder = PixelEncoder(module, PIXELS)
    engine = engine_of(encoder, augmentation=("flip", "crop", "colour"))
    module.seen.clear()
    X, Y = batch(0)
    for _ in range(2):
        engine.step(X, Y)
    engine.logits(X)
    pixels = torch.tensor(X)
    for step, seen in enumerate(module.seen[:2]):
        change = partial(augment, kinds=("flip", "crop", "colour"), seed=5, step=step)
        assert torch.equal(seen, encoder.images(pixels, change))
        assert not torch.equal(seen, encoder.images(pixels))
    assert not torch.equal(*module.seen[:2])
    assert torch.equal(module.seen[2], encoder.images(pixels))


def test_an_encoders_own_dropout_follows_from_seed_and_step() -> None:
    torch.manual_seed(1)
    ours = train(engine_of(tiny_encoder(dropout=0.5)), 4)
    torch.manual_seed(2)
    before = torch.get_rng_state()
    theirs = train(engine_of(tiny_encoder(dropout=0.5)), 4)
    assert torch.equal(torch.get_rng_state(), before)  # the program's own numbers are not drawn
    assert ours == theirs
    seen: list[torch.Tensor] = []
    encoder = tiny_encoder(dropout=0.5)
    encoder.module[3].register_forward_hook(lambda _, given, out: seen.append((out == 0) & (given[0] != 0)))  # type: ignore[index]
    engine = engine_of(encoder)
    for _ in range(2):
        engine.step(*batch(0))
    both = (seen[0] & seen[1]).sum() / seen[0].sum()
    assert 0 < both < 0.7  # what is dropped is not the same in every step


def test_a_restored_engine_goes_on_to_the_last_bit() -> None:
    how: dict[str, Any] = {"augmentation": ("flip", "crop", "colour"), "learning_rate": 1e-3}
    engine = engine_of(tiny_encoder(dropout=0.3), dropout=0.5, **how)
    train(engine, 5)
    again = engine_of(tiny_encoder(7, dropout=0.3), dropout=0.5, **how)
    state = engine.state()
    assert state["encoder.module.1.num_batches_tracked"].dtype == np.int64
    assert {"adam.m.encoder.module.0.weight", "adam.v.encoder.module.5.bias"} <= state.keys()
    again.restore(state)
    assert train(engine, 5) == train(again, 5)
    ours, theirs = engine.state(), again.state()
    assert ours.keys() == theirs.keys()
    assert all(np.array_equal(ours[name], theirs[name]) for name in ours)
    np.testing.assert_array_equal(engine.logits(DATA.X), again.logits(DATA.X))
    wrong = engine.state() | {"encoder.module.0.weight": np.zeros((1, 2), dtype=np.float32)}
    with pytest.raises(ArgumentError, match=r"encoder\.module\.0\.weight has the shape \(1, 2\)"):
        again.restore(wrong)


def test_bfloat16_computes_nearly_the_same() -> None:
    """Where a product has 8 bits the results differ, but not by much; the loss and all that is learned are float32."""
    engines = [engine_of(tiny_encoder(), learning_rate=1e-3, precision=each) for each in ("float32", "bfloat16")]
    kinds = set()
    engines[1].loss.register_forward_pre_hook(lambda _, given: kinds.add(given[0].dtype))
    exact, rounded = (train(engine, 10) for engine in engines)
    assert exact != rounded
    np.testing.assert_allclose(rounded, exact, rtol=0.02)
    assert {array.dtype for array in engines[1].parameters().values()} == {np.dtype("float32"), np.dtype("int64")}
    exact_logits, rounded_logits = (engine.logits(DATA.X) for engine in engines)
    np.testing.assert_allclose(rounded_logits, exact_logits, atol=0.1)
    assert kinds == {torch.float32}
    engines[1].restore(engines[0].state())
    np.testing.assert_array_equal(engines[1].logits(DATA.X), exact_logits)  # predictions are always float32


def test_which_devices_use_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    cpu, gpu = torch.device("cpu"), torch.device("cuda:1")
    assert [uses_bfloat16(each, cpu) for each in ("auto", "float32", "bfloat16")] == [False, False, True]
    for capability, expected in (((7, 5), False), ((8, 0), True), ((9, 0), True)):
        monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device, found=capability: found)
        assert uses_bfloat16("auto", gpu) == expected
    assert not uses_bfloat16("float32", gpu)


def test_pixels_that_are_none_are_refused() -> None:
    engine = engine_of(tiny_encoder())
    X, Y = batch(0)
    with pytest.raises(DataError, match=r"images must be uint8 .* got float32"):
        engine.step(X.astype(np.float32), Y)
    with pytest.raises(DataError, match=r"got uint8 \(8, 191\)"):
        engine.logits(X[:, 1:])
    assert engine.logits(X[:0]).shape == (1, 0, NODES)


def test_only_images_can_be_varied() -> None:
    with pytest.raises(ArgumentError, match="augmentation is for images"):
        engine_of(torch.nn.Linear(9, 6), augmentation=("flip",))
