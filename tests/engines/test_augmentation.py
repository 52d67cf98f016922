"""Images are varied as they should be, and the same way whenever the seed and the step are the same."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
import torch

from rarenode.config.choices import Augmentation
from rarenode.engines.augmentation import COLOUR, SHIFT, ZOOM, augment

KINDS: tuple[Augmentation, ...] = get_args(Augmentation)


def images(rows: int = 40, size: int = 16) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    return torch.rand((rows, 3, size, size), generator=generator)


@pytest.mark.parametrize("kinds", [*((kind,) for kind in KINDS), KINDS])
def test_each_kind_changes_images_and_keeps_shape_and_range(kinds: tuple[Augmentation, ...]) -> None:
    before = images()
    kept = before.clone()
    after = augment(before, kinds, seed=3, step=5)
    assert torch.equal(before, kept)
    assert after.shape == before.shape
    assert after.dtype == torch.float32
    assert 0 <= after.min() <= after.max() <= 1
    assert not torch.equal(after, before)


def test_nothing_is_nothing() -> None:
    assert torch.equal(augment(images(), (), 3, 5), images())


def test_seed_and_step_decide() -> None:
    first = augment(images(), KINDS, 3, 5)
    torch.manual_seed(99)
    assert torch.equal(augment(images(), KINDS, 3, 5), first)
    for seed, step in ((4, 5), (3, 6), (5, 3), (2**62, 5)):
        assert not torch.equal(augment(images(), KINDS, seed, step), first)
    assert torch.equal(augment(images()[:7], KINDS, 3, 5), first[:7])  # the other rows do not


def test_flips_are_exact_and_half_of_all() -> None:
    before = images(400)
    after = augment(before, ("flip",), 0, 0)
    flipped = torch.tensor([not torch.equal(*pair) for pair in zip(after, before, strict=True)])
    assert torch.equal(after[flipped], before[flipped].flip(3))
    assert 150 < flipped.sum() < 250
    again = augment(before, ("flip",), 0, 1)
    assert not torch.equal(after, again)


def test_leaving_out_a_kind_does_not_change_the_others() -> None:
    before = images()
    flipped = augment(before, ("flip",), 0, 0)
    assert torch.equal(augment(flipped, ("colour",), 0, 0), augment(before, ("flip", "colour"), 0, 0))


def test_a_crop_shows_a_part_of_the_image_that_was_moved_and_magnified() -> None:
    """On a slope the value of a pixel says where it comes from."""
    size = 64
    place = (torch.arange(size) + 0.5) / size
    slopes = torch.stack([place.expand(size, size), place[:, None].expand(size, size), torch.zeros(size, size)])
    after = augment(slopes.expand(200, 3, size, size), ("crop",), 0, 0)
    ways = []
    for values in (after[:, 0, size // 2], after[:, 1, :, size // 2]):
        moved = values[:, size // 2 - 1 : size // 2 + 1].mean(dim=1) - 0.5
        ways.append(moved.numpy())
        assert moved.abs().max() <= SHIFT + 1e-5
        assert moved.min() < -0.9 * SHIFT
        assert moved.max() > 0.9 * SHIFT
        zoom = (values[:, size // 2] - values[:, size // 2 - 1]) * size
        assert zoom.min() >= ZOOM - 1e-4
        assert zoom.max() <= 1 + 1e-4
        assert zoom.max() - zoom.min() > 0.9 * (1 - ZOOM)
    assert np.abs(np.corrcoef(np.stack(ways))[0, 1]) < 0.3
    assert torch.equal(after[:, 2], torch.zeros(200, size, size))


def test_a_crop_beyond_the_edge_is_a_reflection() -> None:
    edge = torch.zeros(200, 3, 32, 32)
    edge[..., 0] = 1  # the left-most column
    bright = augment(edge, ("crop",), 0, 0)[:, 0, 16]
    beyond = (bright > 0.5).nonzero()[:, 1].max()
    assert 2 <= beyond <= 32 * SHIFT + 2  # it has moved inwards, with its mirror image beyond it
    assert (bright.sum(dim=1) > 1.5).any()


def test_brightness_and_contrast_change_by_as_much_as_they_may() -> None:
    grey = torch.full((300, 3, 4, 4), 0.5)
    bright = augment(grey, ("colour",), 0, 0)
    assert torch.allclose(bright, bright[:, :1, :1, :1].expand_as(bright))  # no contrast to change
    assert 0.5 * (1 - COLOUR) <= bright.min() < 0.5 * (1 - 0.9 * COLOUR)
    assert 0.5 * (1 + 0.9 * COLOUR) < bright.max() <= 0.5 * (1 + COLOUR)
    two = torch.full((300, 3, 4, 4), 0.4)
    two[..., ::2] = 0.6
    after = augment(two, ("colour",), 0, 0)
    contrast = (after[..., 0] - after[..., 1]) / after.mean(dim=(1, 2, 3))[:, None, None] / 0.4
    values = contrast[:, 0, 0].numpy()
    assert np.all(np.abs(values - 1) <= COLOUR + 1e-5)
    assert values.max() - values.min() > 1.8 * COLOUR
