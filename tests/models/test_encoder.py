"""Encoders: any torch module, folded or not, alone or in a batch, mixed, and known by what it computes."""

from __future__ import annotations

import copy
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from rarenode.errors import ArgumentError, DataError
from rarenode.models.encoder import ROWS_TOGETHER, Encoder, as_encoder, folded, layout_of, make_crop, mixed
from tests.encoders import noise, plain_encoder

MEAN, DEVIATION = (0.1, 0.2, 0.3), (0.5, 0.6, 0.7)


class Small(nn.Module):
    """Convolutions with batch normalisation; ``swapped``: used in another order than they are listed in."""

    def __init__(self, swapped: bool = False) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.first, self.norm1 = nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6)
        self.second, self.norm2 = nn.Conv2d(6, 6, 3, stride=2, bias=False), nn.BatchNorm2d(6, affine=False)
        self.swapped = swapped
        for norm in (self.norm1, self.norm2):
            assert norm.running_mean is not None
            assert norm.running_var is not None
            norm.running_mean.copy_(torch.linspace(-1, 1, 6))
            norm.running_var.copy_(torch.linspace(0.2, 3, 6))
        with torch.no_grad():
            self.norm1.weight.copy_(torch.linspace(0.5, 2, 6))
            self.norm1.bias.copy_(torch.linspace(-2, 2, 6))

    def forward(self, X: Tensor) -> Tensor:
        norms = (self.norm2, self.norm1) if self.swapped else (self.norm1, self.norm2)
        hidden = norms[0](self.first(X)).relu()
        result: Tensor = norms[1](self.second(hidden)).mean(dim=(2, 3))
        return result


def by_hand(module: nn.Module, pixels: Any, size: int, mean: Any, deviation: Any) -> Any:
    """Each picture alone through the network, normalised in double precision."""
    values = pixels.reshape(len(pixels), size, size, 3).astype(np.float64) / 255
    normalised = ((values - np.array(mean)) / np.array(deviation)).transpose(0, 3, 1, 2)
    exact = copy.deepcopy(module).double().eval()
    with torch.no_grad():
        return np.concatenate([exact(torch.from_numpy(each[None].copy())).numpy() for each in normalised])


# --- what it computes ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("module", [Small(), Small(swapped=True), nn.Sequential(nn.Flatten(), nn.Linear(300, 7))])
def test_an_embedding_is_what_the_network_returns_for_the_normalised_picture(module: nn.Module) -> None:
    encoder = Encoder.from_module(module, size=10, mean=MEAN, deviation=DEVIATION)
    pixels = noise(11, 10)
    found = encoder.encode(pixels)
    assert found.dtype == np.float32
    assert found.shape == (11, encoder.width)
    np.testing.assert_allclose(found, by_hand(module, pixels, 10, MEAN, DEVIATION), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("module", [Small(), nn.Sequential(nn.Flatten(), nn.Linear(300, 7))])
def test_an_embedding_does_not_depend_on_the_other_pictures(module: nn.Module) -> None:
    encoder = Encoder.from_module(module, size=10)
    pixels = noise(2 * ROWS_TOGETHER + 3, 10)
    together = encoder.encode(pixels)
    for row in range(len(pixels)):
        assert (encoder.encode(pixels[row : row + 1]) == together[row]).all()
    for first in (1, 3, 7):
        assert (encoder.encode(pixels[first:]) == together[first:]).all()
    assert encoder.encode(pixels[:0]).shape == (0, encoder.width)


class Threads(nn.Module):
    """Returns how many threads torch uses, and counts how many pictures are computed at the same time."""

    def __init__(self) -> None:
        super().__init__()
        self.now, self.most, self.lock = [0], [0], threading.Lock()

    def __deepcopy__(self, memo: Any) -> Threads:
        return self

    def forward(self, X: Tensor) -> Tensor:
        with self.lock:
            self.now[0] += 1
            self.most[0] = max(self.most[0], self.now[0])
        time.sleep(0.02)
        with self.lock:
            self.now[0] -= 1
        return torch.full((len(X), 1), float(torch.get_num_threads()))


@pytest.mark.parametrize("threads", [1, 3])
def test_each_batch_is_computed_by_one_thread(threads: int) -> None:
    """Several that share one sum in another order than another number of them."""
    module = Threads()
    encoder = replace(Encoder.from_module(module, size=10), config={"model_type": "of the library"})
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        found = encoder.encode(noise(8 * ROWS_TOGETHER, 10), threads)
        assert torch.get_num_threads() == 2
        with ThreadPoolExecutor(1) as later:
            assert later.submit(torch.get_num_threads).result() == 2
    finally:
        torch.set_num_threads(before)
    assert (found == 1).all()
    assert module.most[0] == threads


def test_a_network_of_another_kind_computes_one_batch_after_the_other() -> None:
    """It may keep something from one to the next."""
    module = Threads()
    Encoder.from_module(module, size=10).encode(noise(8 * ROWS_TOGETHER, 10), 3)
    assert module.most[0] == 1


def test_large_pictures_are_encoded_fewer_at_a_time() -> None:
    module = nn.Sequential(nn.Conv2d(3, 2, 3, stride=3), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    sizes = (32, 224, 384, 512, 1024, 2048)
    encoders = [replace(Encoder.from_module(module, size=size), config={}) for size in sizes]
    assert [encoder.rows_together for encoder in encoders] == [8, 8, 8, 5, 1, 1]
    assert [encoder.rows_in_parallel(6) for encoder in encoders] == [48, 48, 32, 20, 5, 1]


def test_folding_does_not_change_the_result() -> None:
    module = Small()
    made = folded(module, 10)
    assert not any(isinstance(part, nn.BatchNorm2d) for part in made.modules())
    X = torch.rand(3, 3, 10, 10)
    with torch.no_grad():
        torch.testing.assert_close(made(X), module.eval()(X), rtol=1e-5, atol=1e-5)
    assert any(isinstance(part, nn.BatchNorm2d) for part in module.modules())  # it is a copy


def test_a_wrong_guess_of_what_follows_what_is_noticed() -> None:
    module = Small(swapped=True)
    made = folded(module, 10)
    assert any(isinstance(part, nn.BatchNorm2d) for part in made.modules())
    X = torch.rand(3, 3, 10, 10)
    with torch.no_grad():
        assert torch.equal(made(X), module.eval()(X))


def test_normalisation_without_statistics_is_left_alone() -> None:
    module = nn.Sequential(nn.Conv2d(3, 4, 1), nn.BatchNorm2d(4, track_running_stats=False), nn.Flatten())
    assert isinstance(folded(module, 2)[1], nn.BatchNorm2d)  # type: ignore[index]


def test_a_module_stays_as_it_is() -> None:
    module = Small().train()
    before = copy.deepcopy(module.state_dict())
    encoder = Encoder.from_module(module, size=10)
    encoder.encode(noise(3, 10))
    assert module.training
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert all(value.requires_grad for value in module.parameters())


@pytest.mark.parametrize("parts", [[], [nn.Conv2d(3, 3, 1), nn.BatchNorm2d(3)]])
def test_numbers_that_are_not_finite(parts: list[nn.Module]) -> None:
    layer = nn.Linear(48, 2)
    encoder = Encoder.from_module(nn.Sequential(*parts, nn.Flatten(), layer), size=4, name="mine")
    with torch.no_grad():
        layer.weight.fill_(torch.inf)
    with pytest.raises(DataError, match="mine returned numbers that are not finite"):
        encoder.encode(noise(1, 4))


def test_modules_that_cannot_be_encoders() -> None:
    told = r"shape \(rows, features\).*; for one picture, Conv2d returned the shape \(1, 6, 10, 10\); add .*Flatten"
    with pytest.raises(ArgumentError, match=told):
        Encoder.from_module(nn.Conv2d(3, 6, 1), size=10)
    with pytest.raises(ArgumentError, match=r"\(rows, features\).*Flatten returned the shape \(300,\)"):
        Encoder.from_module(nn.Flatten(0), size=10)
    with pytest.raises(ArgumentError, match=r"\(rows, features\).*Flatten returned the shape \(30, 10\)"):
        Encoder.from_module(nn.Flatten(0, 2), size=10)
    with pytest.raises(ArgumentError, match=r"Linear cannot look at a picture, .*\(1, 3, 10, 10\): mat1 and mat2"):
        Encoder.from_module(nn.Linear(7, 2), size=10)
    wrong: list[tuple[Any, str]] = [
        (nn.Flatten, r"torch module, and Flatten is a class; pass Flatten\(\.\.\.\)"),
        (len, "torch module or an Encoder, got builtin_function"),
        ("resnet50", "got str; load_encoder makes one"),
        (np.zeros(3), "torch module or an Encoder, got ndarray"),
    ]
    for given, message in wrong:
        with pytest.raises(ArgumentError, match=message):
            Encoder.from_module(given, size=10)
        with pytest.raises(ArgumentError, match=message):
            as_encoder(given)
    for size, resize in ((0, None), (10, 9), (5000, None), (10, 10_000)):
        with pytest.raises(ArgumentError, match="cannot be scaled"):
            make_crop(size, resize)


# --- what it is known by ---------------------------------------------------------------------------------------------


def test_the_fingerprint_is_of_all_that_an_embedding_depends_on() -> None:
    first = plain_encoder()
    assert plain_encoder().fingerprint == first.fingerprint
    assert plain_encoder(name="another name").fingerprint == first.fingerprint
    changed = [
        plain_encoder(seed=1),
        plain_encoder(resize=20),
        plain_encoder(mean=MEAN),
        plain_encoder(deviation=DEVIATION),
        plain_encoder(width=6),
    ]
    arrays = first.arrays()
    arrays["1.bias"] = arrays["1.bias"].copy()
    arrays["1.bias"][0] = np.nextafter(arrays["1.bias"][0], np.float32(9))
    changed.append(first.with_arrays(arrays))
    assert len({first.fingerprint, *(each.fingerprint for each in changed)}) == 1 + len(changed)


def test_other_code_with_the_same_weights_is_another_encoder() -> None:
    """A cache that took one for the other would return wrong embeddings."""

    def made(last: nn.Module) -> Encoder:
        torch.manual_seed(0)
        return Encoder.from_module(nn.Sequential(nn.Flatten(), nn.Linear(48, 5), last), size=4)

    assert made(nn.Tanh()).fingerprint != made(nn.ReLU()).fingerprint

    def written(power: int) -> Encoder:
        class Mine(nn.Module):
            def forward(self, X: Tensor) -> Tensor:
                return X.flatten(1)[:, :3] ** power

        return Encoder.from_module(Mine(), size=4)

    assert written(1).fingerprint == written(1).fingerprint
    assert written(1).fingerprint != written(2).fingerprint


def test_other_weights_for_the_same_network() -> None:
    first, second = plain_encoder(0), plain_encoder(1)
    changed = first.with_arrays(second.arrays())
    pixels = noise(3, 8)
    assert (changed.encode(pixels) == second.encode(pixels)).all()
    assert not (first.encode(pixels) == second.encode(pixels)).all()
    with pytest.raises(ArgumentError, match=r"1\.bias"):
        first.with_arrays({"1.weight": first.arrays()["1.weight"]})
    with pytest.raises(ArgumentError):
        first.with_arrays(plain_encoder(width=6).arrays())


def test_a_description_is_json() -> None:
    encoder = plain_encoder(name="mine", mean=MEAN)
    described = json.loads(json.dumps(encoder.describe()))
    assert described["name"] == "mine"
    assert described["config"] is None
    assert (described["size"], described["resize"], described["width"]) == (8, 9, 5)
    assert tuple(described["mean"]) == MEAN


def test_layouts_have_every_array() -> None:
    layout = layout_of(Small())
    assert layout["first.weight"] == (np.dtype(np.float32), (6, 3, 3, 3))
    assert layout["norm2.num_batches_tracked"] == (np.dtype(np.int64), ())
    assert layout.keys() == Encoder.from_module(Small(), size=10).arrays().keys()


# --- the training factor ---------------------------------------------------------------------------------------------


def two() -> tuple[Encoder, Encoder]:
    trained, other = Encoder.from_module(Small(), size=10), Encoder.from_module(Small(), size=10)
    rng = np.random.default_rng(0)
    for encoder, batches in ((trained, 50), (other, 0)):
        for value in encoder.module.state_dict().values():
            drawn = torch.from_numpy(rng.random(value.shape)) + 0.1
            value.copy_(drawn if value.is_floating_point() else torch.full_like(value, batches))
    return trained, other


@pytest.mark.parametrize("factor", [0.0, 1.0])
def test_the_ends_of_the_training_factor(factor: float) -> None:
    trained, other = two()
    end = trained if factor else other
    made = mixed(trained, other, factor)
    assert made.arrays().keys() == end.arrays().keys()
    for name, array in made.arrays().items():
        assert array.dtype == end.arrays()[name].dtype
        assert (array == end.arrays()[name]).all(), name
    assert (made.encode(noise(2, 10)) == end.encode(noise(2, 10))).all()
    assert made.is_pretrained == bool(factor)


def test_between_the_ends_weights_and_statistics_are_mixed() -> None:
    trained, other = two()
    made = mixed(trained, other, 0.25).arrays()
    for name in ("first.weight", "norm1.bias", "norm1.running_mean", "norm2.running_var"):
        np.testing.assert_allclose(made[name], 0.25 * trained.arrays()[name] + 0.75 * other.arrays()[name], rtol=1e-6)
    for wrong in (-0.1, 1.1):
        with pytest.raises(ArgumentError, match="from 0 to 1"):
            mixed(trained, other, wrong)


class Weightless(nn.Module):
    def __init__(self, sign: float, scale: float = 1.0) -> None:
        super().__init__()
        self.sign, self.scale = sign, scale

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return self.scale * torch.softmax(self.sign * X.mean(dim=(2, 3)).repeat(1, 600), dim=1)


@pytest.mark.parametrize("other", [(-1.0, 1.0), (1.0, 1e-4)])
def test_modules_without_weights_are_known_by_what_they_compute(other: tuple[float, float]) -> None:
    one, same, changed = (Encoder.from_module(Weightless(*each), size=10) for each in ((1.0, 1.0), (1.0, 1.0), other))
    assert one.fingerprint == same.fingerprint != changed.fingerprint


def test_a_module_that_returns_no_tensor() -> None:
    class Named(torch.nn.Module):
        def forward(self, pictures: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"features": pictures}

    with pytest.raises(ArgumentError, match=r"\(rows, features\).*Named returned a dict; wrap it in a module"):
        Encoder.from_module(Named(), size=8)


def test_a_module_of_huge_numbers_is_refused_before_it_is_used() -> None:
    """A model with it could be trained and saved, and never be loaded."""

    class Huge(torch.nn.Module):
        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            return 1e30 * pixels.mean(dim=(2, 3))

    for given in (Huge(), Encoder.from_module(Huge(), size=8)):
        with pytest.raises(ArgumentError, match="the weights are too large or not finite"):
            as_encoder(given, 8)


@pytest.mark.parametrize(
    ("returned", "told"),
    [
        (lambda x: x.mean(dim=(2, 3)).to(torch.complex64), "returned 3 numbers of the type torch.complex64"),
        (lambda x: x.mean(dim=(2, 3))[:, :0], "returned 0 numbers"),
        (lambda x: x.mean(dim=(2, 3))[:, : 4 - len(x)], r"for two pictures, Odd returned .*\(2, 2\)"),
        (lambda x: x.mean(dim=(2, 3))[:1], r"for two pictures, Odd returned .*\(1, 3\)"),
    ],
)
def test_modules_that_return_something_odd_for_some_pictures(returned: Any, told: str) -> None:
    class Odd(torch.nn.Module):
        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            result: torch.Tensor = returned(pixels)
            return result

    with pytest.raises(ArgumentError, match=told):
        Encoder.from_module(Odd(), size=8)


def test_a_module_may_return_half_the_precision() -> None:
    class Half(torch.nn.Module):
        def forward(self, pixels: torch.Tensor) -> torch.Tensor:
            return pixels.mean(dim=(2, 3)).bfloat16()

    module = Half()
    found = as_encoder(module, 8).encode(noise(3, 8))
    assert module.training  # as it was given
    assert found.dtype == np.float32
    assert found.shape == (3, 3)
