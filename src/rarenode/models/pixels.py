"""Images as rows of pixels, and the encoder that turns them into features.

Pixels are uint8 (rows, size x size x 3): height, width, channel (red, green, blue). As plain rows they can be selected,
cloned and hashed like any features, and they stay uint8 until a batch of them is computed. Training and prediction both
go through `PixelEncoder`, so an encoder sees the same numbers in both.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rarenode.errors import ArgumentError, DataError

CHANNELS = 3
VALUES_AT_A_TIME = 1 << 22
"""Without training, images are encoded in blocks of at most so many values, so that memory stays bounded."""

Change = Callable[[Tensor], Tensor]
"""Images (rows, 3, size, size), values from 0 to 1 -> varied images, of the same shape and range."""


@dataclass(frozen=True)
class PixelInput:
    """The input of an encoder: the size of images, and how they are normalised."""

    size: int
    """Height and width."""
    mean: tuple[float, float, float]
    """Of each channel, of values from 0 to 1."""
    deviation: tuple[float, float, float]
    """The standard deviation of each channel, of values from 0 to 1."""

    def __post_init__(self) -> None:
        if not isinstance(self.size, int) or isinstance(self.size, bool) or self.size < 1:
            raise ArgumentError(f"size must be a whole number of at least 1, got {self.size!r}")
        for name in ("mean", "deviation"):
            values = np.array(getattr(self, name), dtype=np.float64)
            if values.shape != (CHANNELS,) or not np.isfinite(values).all():
                raise ArgumentError(f"{name} must have {CHANNELS} finite numbers, got {getattr(self, name)!r}")
        if min(self.deviation) <= 0:
            raise ArgumentError(f"deviation must be above 0, got {self.deviation!r}")

    @property
    def width(self) -> int:
        """Columns of a row of pixels."""
        return self.size * self.size * CHANNELS

    @property
    def rows_at_a_time(self) -> int:
        """How many images to encode together, without training."""
        return max(1, VALUES_AT_A_TIME // self.width)

    def check(self, X: NDArray[Any] | Tensor) -> None:
        """Make sure that rows are pixels of this size.

        Raises:
            DataError: they are not uint8, or of another size.
        """
        kind = str(X.dtype).removeprefix("torch.")
        if kind != "uint8" or tuple(X.shape) != (len(X), self.width):
            pixels = f"{self.width} ({self.size} x {self.size} x {CHANNELS})"
            raise DataError(f"images must be uint8 of the shape (rows, {pixels}); got {kind} {tuple(X.shape)}")


class PixelEncoder(torch.nn.Module):
    """Pixels -> features: an encoder with what comes before it.

    Args:
        module: from normalised images (rows, 3, size, size), float32, to features (rows, width).
        pixels: the size and normalisation of its images.

    Its weights become float32, in which they are trained and kept. It starts in evaluation mode. In memory the channels
    come last, in images as in weights: so convolutions are fastest.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, module: torch.nn.Module, pixels: PixelInput) -> None:
        super().__init__()
        self.module: torch.nn.Module = module.float().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
        self.pixels = pixels
        for name in ("mean", "deviation"):
            values = torch.tensor(getattr(pixels, name), dtype=torch.float32).reshape(1, CHANNELS, 1, 1)
            self.register_buffer(name, values, persistent=False)  # they are not learned
        self.width = self.eval()._measure_width()

    def forward(self, pixels: Tensor, change: Change | None = None) -> Tensor:
        """Features (rows, width) of uint8 pixels; ``change`` varies the images, in training."""
        features: Tensor = self.module(self.images(pixels, change))
        if features.ndim != 2 or len(features) != len(pixels):
            raise ArgumentError(
                f"an encoder must return features of the shape (rows, width); for {len(pixels)} images it returned "
                f"{tuple(features.shape)}"
            )
        return features

    def images(self, pixels: Tensor, change: Change | None = None) -> Tensor:
        """What the encoder gets: normalised images (rows, 3, size, size)."""
        self.pixels.check(pixels)
        size = self.pixels.size
        values = pixels.reshape(len(pixels), size, size, CHANNELS).permute(0, 3, 1, 2).to(torch.float32) / 255
        if change is not None:
            values = change(values)
        return ((values - self.mean) / self.deviation).contiguous(memory_format=torch.channels_last)

    @property
    def fingerprint(self) -> str:
        """sha256 of all weights and of the kind of images."""
        digest = hashlib.sha256(repr(self.pixels).encode())
        for name, value in sorted(self.module.state_dict().items()):
            array = value.cpu().numpy()
            digest.update(f";{name};{array.dtype.str};{array.shape};".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    @torch.no_grad()
    def _measure_width(self) -> int:
        device = next((value.device for value in self.module.parameters()), torch.device("cpu"))
        blank = torch.zeros((1, self.pixels.width), dtype=torch.uint8, device=device)
        return int(self.to(device)(blank).shape[1])
