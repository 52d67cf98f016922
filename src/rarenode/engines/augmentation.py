"""Augmentation: images are varied in training, so that an encoder does not learn them by heart.

What happens to an image is decided by the seed, the number of the step and the image's place in the batch alone, as
dropout is: there is no generator whose state would have to be saved.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rarenode.config.choices import Augmentation

SHIFT = 1 / 8
"""A crop is moved by at most this part of the image, up or down and left or right."""
ZOOM = 7 / 8
"""A crop shows at least this part of the image's height and width."""
COLOUR = 0.2
"""Brightness and contrast change by at most this factor."""


def augment(
    images: Tensor, kinds: tuple[Augmentation, ...], seed: int, step: int, first: int = 0, batch: int | None = None
) -> Tensor:
    """Varied images of the same shape (rows, 3, size, size), values from 0 to 1.

    Args:
        images: before normalisation.
        kinds: ``flip``: every other image, at random, is mirrored left to right. ``crop``: a part of the image, moved
            and magnified; beyond the edge it is reflected. ``colour``: other brightness and contrast.
        seed: of the training.
        step: of the training.
        first: the place in the batch of the first of these images.
        batch: how many images the batch has; None: these are all.
    """
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed, spawn_key=(step,))))
    values = rng.random((batch or len(images), 6), dtype=np.float32)[first : first + len(images)]
    drawn = torch.from_numpy(values).to(images.device, non_blocking=True)
    # All are drawn always, so that leaving out one kind does not change the others.
    flip, right, down, zoom, brightness, contrast = drawn.T.reshape(6, -1, 1, 1, 1)
    if "flip" in kinds:
        images = torch.where(flip < 0.5, images.flip(3), images)
    if "crop" in kinds:
        right, down = 2 * SHIFT * _around_zero(right), 2 * SHIFT * _around_zero(down)  # an image is 2 wide
        images = _crop(images, right, down, ZOOM + (1 - ZOOM) * zoom)
    if "colour" in kinds:
        images = images * (1 + COLOUR * _around_zero(brightness))
        mean = images.mean(dim=(1, 2, 3), keepdim=True)
        images = (mean + (images - mean) * (1 + COLOUR * _around_zero(contrast))).clamp(0, 1)
    return images


def _around_zero(drawn: Tensor) -> Tensor:
    """From 0..1 to -1..1."""
    return 2 * drawn - 1


def _crop(images: Tensor, right: Tensor, down: Tensor, zoom: Tensor) -> Tensor:
    """A part of each image, interpolated to full size; the image reaches from -1 to 1.

    The places to sample are products and sums of float32: a matrix product, as torch's own grid has it, would lose
    digits in mixed precision.
    """
    rows, _, height, width = images.shape
    columns, lines = ((2 * torch.arange(size, device=images.device) + 1) / size - 1 for size in (width, height))
    x = (columns.reshape(1, 1, width) * zoom[:, 0] + right[:, 0]).expand(rows, height, width)
    y = (lines.reshape(1, height, 1) * zoom[:, 0] + down[:, 0]).expand(rows, height, width)
    grid = torch.stack([x, y], dim=3)
    return torch.nn.functional.grid_sample(images, grid, padding_mode="reflection", align_corners=False)
