"""Pixels become the images that an encoder wants, and its features."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch

from rarenode.engines.augmentation import augment
from rarenode.errors import ArgumentError, DataError
from rarenode.models.pixels import PixelEncoder, PixelInput
from tests.pictures import PIXELS, SIZE, pictures, tiny_encoder, tiny_module


def test_images_are_scaled_and_normalised_pixels_with_the_channels_first() -> None:
    X = pictures(5).X
    images = tiny_encoder().images(torch.tensor(X))
    assert images.dtype == torch.float32
    for row, y, x, channel in [(0, 0, 0, 0), (1, 2, 3, 1), (4, SIZE - 1, SIZE - 1, 2), (2, 0, 5, 2), (3, 5, 0, 0)]:
        value = X[row, (y * SIZE + x) * 3 + channel] / 255
        expected = (value - PIXELS.mean[channel]) / PIXELS.deviation[channel]
        assert images[row, channel, y, x] == pytest.approx(expected, rel=1e-5)


def test_a_change_is_applied_before_normalisation() -> None:
    seen = []

    def change(images: torch.Tensor) -> torch.Tensor:
        seen.append(images)
        return torch.ones_like(images)

    X = torch.tensor(pictures(3).X)
    encoder = tiny_encoder()
    images = encoder.images(X, change)
    assert 0 <= seen[0].min() <= seen[0].max() <= 1
    white = [(1 - mean) / deviation for mean, deviation in zip(PIXELS.mean, PIXELS.deviation, strict=True)]
    np.testing.assert_allclose(images[0, :, 0, 0], white, rtol=1e-6)
    assert torch.equal(encoder(X, change), encoder.module(images))


def test_features_are_those_of_the_module() -> None:
    encoder, X = tiny_encoder(), torch.tensor(pictures(4).X)
    assert encoder.width == 6
    assert not encoder.training
    assert torch.equal(encoder(X), encoder.module(encoder.images(X)))
    assert encoder.state_dict().keys() == {f"module.{name}" for name in encoder.module.state_dict()}


def test_the_channels_come_last_in_memory() -> None:
    encoder = tiny_encoder()
    assert all(w.is_contiguous(memory_format=torch.channels_last) for w in encoder.parameters() if w.ndim == 4)
    change = partial(augment, kinds=("flip", "crop", "colour"), seed=0, step=0)
    for images in (encoder.images(torch.tensor(pictures(3).X)), encoder.images(torch.tensor(pictures(3).X), change)):
        assert images.is_contiguous(memory_format=torch.channels_last)


def test_weights_become_float32() -> None:
    encoder = PixelEncoder(tiny_module().to(torch.bfloat16), PIXELS)
    assert {value.dtype for value in encoder.parameters()} == {torch.float32}
    assert encoder.module.state_dict()["1.num_batches_tracked"].dtype == torch.int64


def test_the_fingerprint_is_of_weights_buffers_and_pixels() -> None:
    ours = tiny_encoder()
    assert ours.fingerprint == tiny_encoder().fingerprint
    others = [
        tiny_encoder(1),
        PixelEncoder(tiny_module(), PixelInput(9, PIXELS.mean, PIXELS.deviation)),
        tiny_encoder(),
    ]
    others[-1].module.state_dict()["1.running_mean"] += 1
    assert len({encoder.fingerprint for encoder in (ours, *others)}) == 4


def test_few_large_images_are_encoded_at_a_time() -> None:
    large = PixelInput(224, PIXELS.mean, PIXELS.deviation)
    assert large.width == 224 * 224 * 3
    assert 1 <= large.rows_at_a_time * large.width <= 2**22
    assert PixelInput(5000, PIXELS.mean, PIXELS.deviation).rows_at_a_time == 1


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (np.zeros((2, SIZE * SIZE * 3), dtype=np.float32), r"images must be uint8 .*\(rows, 192 \(8 x 8 x 3\)\)"),
        (np.zeros((2, SIZE * SIZE), dtype=np.uint8), r"192 \(8 x 8 x 3\)\); got uint8 \(2, 64\)"),
        (np.zeros((2, SIZE, SIZE, 3), dtype=np.uint8), r"got uint8 \(2, 8, 8, 3\)"),
    ],
)
def test_what_is_no_pixels_is_refused(wrong: np.ndarray[Any, Any], says: str) -> None:
    with pytest.raises(DataError, match=says):
        PIXELS.check(wrong)
    with pytest.raises(DataError, match=says):
        tiny_encoder()(torch.tensor(wrong))


@pytest.mark.parametrize(
    ("size", "mean", "deviation", "says"),
    [
        (0, (0, 0, 0), (1, 1, 1), "size must be a whole number of at least 1, got 0"),
        (True, (0, 0, 0), (1, 1, 1), "size"),
        (8, (0, 0), (1, 1, 1), r"mean must have 3 finite numbers, got \(0, 0\)"),
        (8, (0, 0, 0), (1, 1, float("nan")), "deviation must have 3 finite numbers"),
        (8, (0, 0, 0), (1, 0, 1), "deviation must be above 0"),
    ],
)
def test_kinds_of_images_that_cannot_be(size: Any, mean: Any, deviation: Any, says: str) -> None:
    with pytest.raises(ArgumentError, match=says):
        PixelInput(size, mean, deviation)


def test_an_encoder_must_return_features() -> None:
    with pytest.raises(ArgumentError, match=r"\(rows, width\); for 1 images it returned \(1, 3, 8, 8\)"):
        PixelEncoder(torch.nn.Identity(), PIXELS)
