"""Training an encoder with its heads: which parts of it change, in which precision, on which variations of images."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch.nn.modules.batchnorm import _BatchNorm

from rarenode.config.choices import Augmentation, Precision
from rarenode.engines.augmentation import augment
from rarenode.errors import ArgumentError
from rarenode.models.pixels import PixelEncoder

ROWS_AT_A_TIME = 512
AMPERE = (8, 0)
"""The first GPUs that compute with bfloat16; older ones only imitate it, slowly."""


@dataclass(frozen=True)
class EncoderTraining:
    """How an encoder is trained with its heads."""

    learning_rate: float | None = None
    """None: that of the heads. Weight decay is the same."""
    freezes_batchnorm: bool = False
    """Whether layers of batch normalisation keep their statistics; their weights and biases learn in any case."""
    augmentation: tuple[Augmentation, ...] = ()
    """How images are varied; only for a `PixelEncoder`."""
    precision: Precision = "float32"
    """``bfloat16``: encoder and heads where that suffices, never the loss; heads alone on GPUs only. ``auto``: on GPUs
    that are made for it."""


class EncoderInTraining:
    """What an encoder, if there is one, needs around a training step."""

    def __init__(self, encoder: torch.nn.Module | None, how: EncoderTraining, device: torch.device) -> None:
        if how.augmentation and not isinstance(encoder, PixelEncoder):
            raise ArgumentError("augmentation is for images: it needs a PixelEncoder")
        self.how, self.device = how, device
        self.learns = encoder is not None and any(value.requires_grad for value in encoder.parameters())
        self.takes_pixels = isinstance(encoder, PixelEncoder)
        self.rows_at_a_time = encoder.pixels.rows_at_a_time if isinstance(encoder, PixelEncoder) else ROWS_AT_A_TIME
        # Perceptrons alone are slower in bfloat16 wherever it is not built in.
        self._in_bfloat16 = uses_bfloat16(how.precision, device) and (encoder is not None or device.type == "cuda")
        parts = [] if encoder is None else list(encoder.modules())
        self._norms = [part for part in parts if isinstance(part, _BatchNorm)]
        self._unchanged = self._norms if self.learns and how.freezes_batchnorm else [] if self.learns else parts

    def set_modes(self, rows: int) -> None:
        """Put the parts that a step on so many rows must not change into evaluation mode."""
        # The statistics of a single row say nothing, and torch may refuse to compute them.
        for part in (*self._unchanged, *(self._norms if rows == 1 else ())):
            part.training = False

    def change(self, seed: int, step: int, first: int, batch: int) -> dict[str, Any]:
        """The argument that has an `EncodedNetwork` vary the images of a step, which begin there in the batch."""
        kinds = self.how.augmentation
        return (
            {"change": partial(augment, kinds=kinds, seed=seed, step=step, first=first, batch=batch)} if kinds else {}
        )

    def running_statistics(self) -> list[torch.Tensor]:
        """What batch normalisation measures in training, in the network's own memory; nothing if it is frozen."""
        if not self.learns or self.how.freezes_batchnorm:
            return []
        return [value for norm in self._norms for value in norm.buffers() if value.is_floating_point()]

    @contextmanager
    def randomness(self, seed: int, step: int, process: int = 0) -> Iterator[None]:
        """Whatever an encoder draws, such as its dropout, follows from seed and step too.

        Processes that share a batch draw different numbers, as the rows of a batch do.
        """
        if not self.learns:
            yield
            return
        with torch.random.fork_rng([self.device] if self.device.type == "cuda" else []):
            drawn = np.random.SeedSequence(seed, spawn_key=(step, 1 + process)).generate_state(1, np.uint64)
            torch.manual_seed(int(drawn[0]))
            yield

    def mixed_precision(self) -> AbstractContextManager[None]:
        """Computes encoder and heads in bfloat16, where that suffices."""
        return torch.autocast(self.device.type, torch.bfloat16) if self._in_bfloat16 else nullcontext()


def uses_bfloat16(precision: Precision, device: torch.device) -> bool:
    """Whether an encoder is trained in mixed precision on a device."""
    if precision == "auto":
        return device.type == "cuda" and torch.cuda.get_device_capability(device) >= AMPERE
    return precision == "bfloat16"
