"""`Encoder`: an image model that turns pixels into an embedding. Heads share it.

`rarenode.models.pretrained` makes encoders of the transformers library; any torch module can be one too.
"""

from __future__ import annotations

import copy
import hashlib
import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from rarenode.data.decoding import Crop
from rarenode.errors import ArgumentError, DataError
from rarenode.models.model import Floats, Layout, check_arrays
from rarenode.models.pixels import PixelEncoder, PixelInput

IMAGENET_MEAN, IMAGENET_DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SIZE, RESIZE_RATIO = 224, 256 / 224
"""Used where a model does not specify its input."""
MOST_SIZE = 4_096
DECIMALS = 3
"""Of the embedding that a fingerprint contains; more would differ between machines."""
ROWS_TOGETHER, ROWS_ON_DEVICE = 8, 64
"""Pictures are encoded in batches of just so many, on the CPU or elsewhere: with another number, convolutions are
computed by other code, which rounds differently."""
SUMS, CLOSE = 8, 5e-3
"""Signed sums of an embedding that a model file keeps, and how much of the largest they may differ: more than other
machines round, less than another activation changes."""
LARGEST = 1e18
"""Of the numbers in an embedding: their squares fit into float32."""
VALUES_IN_PARALLEL = 1 << 24
"""Of pixels that several threads encode at the same time, at most, so that memory stays bounded."""


@dataclass(frozen=True, eq=False)
class Encoder:
    """An image model, and what it expects of a picture."""

    module: torch.nn.Module
    """From normalised pictures (rows, 3, size, size) to embeddings (rows, width)."""
    crop: Crop
    mean: tuple[float, float, float]
    """Of each channel, of pixels from 0 to 1; subtracted from them."""
    deviation: tuple[float, float, float]
    width: int
    name: str
    """What it is called in words."""
    is_pretrained: bool
    config: Mapping[str, Any] | None = None
    """The architecture, for the transformers library; None for a torch module of another kind."""
    device: str = "cpu"
    """Where embeddings are computed."""

    def __repr__(self) -> str:
        return f"<Encoder {self.name}: {self.crop.size} x {self.crop.size} pixels to {self.width} numbers>"

    @classmethod
    def from_module(
        cls,
        module: torch.nn.Module,
        *,
        size: int = SIZE,
        resize: int | None = None,
        mean: tuple[float, float, float] = IMAGENET_MEAN,
        deviation: tuple[float, float, float] = IMAGENET_DEVIATION,
        name: str = "",
        is_pretrained: bool = True,
    ) -> Self:
        """Any torch module that maps normalised pictures (rows, 3, size, size) to numbers (rows, width).

        A model folder keeps its weights, but not its code: `TrainedModel.load` then needs the module again. The last
        digits of embeddings may depend on the number of threads, see `encode`.

        >>> Encoder.from_module(torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(48, 5)), size=4)
        <Encoder Sequential: 4 x 4 pixels to 5 numbers>
        """
        crop = make_crop(size, resize)
        require_module(module)
        name = name or type(module).__name__
        module = module.float()
        try:
            with torch.no_grad(), _evaluating(module):
                found = module(torch.zeros(1, 3, size, size))
                of_two = module(torch.zeros(2, 3, size, size))
        except Exception as error:  # whatever a network does with an input that it is not made for
            what = f"the encoder {name} cannot look at a picture, a tensor of shape (1, 3, {size}, {size})"
            raise ArgumentError(f"{what}: {str(error).strip()[:200]}") from error
        wanted = "an encoder must return a tensor of shape (rows, features), with one row for each picture"
        if not (isinstance(found, torch.Tensor) and found.ndim == 2 and len(found) == 1):
            raise ArgumentError(f"{wanted}; for one picture, {name} returned {_described(found)}")
        if not found.is_floating_point() or not found.shape[1]:
            raise ArgumentError(f"{wanted}; {name} returned {found.shape[1]} numbers of the type {found.dtype}")
        if of_two.shape != (2, found.shape[1]):
            raise ArgumentError(f"{wanted}; for two pictures, {name} returned {_described(of_two)}")
        return cls(module, crop, mean, deviation, found.shape[1], name, is_pretrained)

    @property
    def input(self) -> PixelInput:
        """What the network makes of pixels."""
        return PixelInput(self.crop.size, self.mean, self.deviation)

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of everything that an embedding depends on besides the picture."""
        digest = hashlib.sha256(repr((self.crop, self.mean, self.deviation, type(self.module).__name__)).encode())
        digest.update(json.dumps(self.config, sort_keys=True).encode())
        if self.config is None:  # its own code and what it does to some pictures tell what it computes
            digest.update(repr(self.module).encode() + _code_of(self.module).encode())
            for seen in self.encode(_examples(self.input.width)).astype(np.float64):
                most = float(np.abs(seen).max(initial=0.0))
                digest.update(f"{most:.{DECIMALS}e};".encode())
                digest.update(np.round(seen / (most or 1.0), DECIMALS).tobytes())
        for name, array in sorted(self.arrays().items()):
            digest.update(f"{name}{array.dtype.str}{array.shape};".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    # --- computing ---------------------------------------------------------------------------------------------------

    @cached_property
    def _fast(self) -> torch.nn.Module:
        """The network as it is used for embeddings: without gradients, batch normalisation folded into convolutions."""
        network = PixelEncoder(folded(self.module, self.crop.size), self.input).eval().requires_grad_(False)
        fast: torch.nn.Module = torch.nn.Module.to(network, memory_format=torch.channels_last)  # type: ignore[call-overload]
        return fast.to(self.device)

    @cached_property
    def rows_together(self) -> int:
        """How many pictures are encoded at once, the last ones padded.

        Convolutions compute each picture by itself. Matrix products on the CPU sum the rows at the end of a batch in
        another order than the others, so networks with those encode one picture at a time. Large pictures are fewer,
        so that memory stays bounded.
        """
        if self.device != "cpu":
            return ROWS_ON_DEVICE
        has_products = any(isinstance(part, torch.nn.Linear) for part in self.module.modules())
        return 1 if has_products else min(ROWS_TOGETHER, self.input.rows_at_a_time)

    @property
    def _is_parallel(self) -> bool:
        """Whether batches may be computed at the same time; a network of another kind may not be made for it."""
        return self.device == "cpu" and self.config is not None

    def rows_in_parallel(self, threads: int) -> int:
        """How many pictures so many threads encode at the same time."""
        if not self._is_parallel:
            return self.rows_together
        return self.rows_together * min(threads, max(1, VALUES_IN_PARALLEL // (self.rows_together * self.input.width)))

    def encode(
        self, pixels: NDArray[np.uint8], threads: int = 1, done: Callable[[int], None] | None = None
    ) -> Floats:
        """Compute embeddings (rows, width) of pixels (rows, size * size * 3); ``done`` is called with their number.

        The embedding of a row does not depend on the other rows. For a network of the transformers library on the CPU,
        it does not depend on the number of threads either: each thread computes whole batches. Any other network is
        computed with torch's own threads, and the last digits may depend on their number.
        """
        result = np.empty((len(pixels), self.width), dtype=np.float32)
        rows, network = self.rows_together, self._fast

        def compute(first: int) -> None:
            part = pixels[first : first + rows]
            batch = np.zeros((rows, pixels.shape[1]), dtype=np.uint8)
            batch[: len(part)] = part
            with torch.inference_mode():
                values = network(torch.from_numpy(batch).to(self.device)).float().cpu().numpy()
            result[first : first + len(part)] = values[: len(part)]

        firsts = range(0, len(pixels), rows)
        if self._is_parallel:
            with _single_threads(self.rows_in_parallel(threads) // rows) as pool:
                self._count(pool.map(compute, firsts), len(pixels), done)
        else:
            self._count(map(compute, firsts), len(pixels), done)
        if not np.isfinite(result).all():
            raise DataError(f"the encoder {self.name} returned numbers that are not finite")
        return result

    def _count(self, batches: Iterable[None], total: int, done: Callable[[int], None] | None) -> None:
        """Wait for each batch, and say how many rows there are."""
        for number, _ in enumerate(batches, start=1):
            if done is not None:
                done(min(number * self.rows_together, total))

    # --- weights -----------------------------------------------------------------------------------------------------

    def arrays(self) -> dict[str, NDArray[Any]]:
        """All weights and statistics, by name."""
        return {name: value.detach().cpu().numpy() for name, value in self.module.state_dict().items()}

    def with_arrays(self, arrays: Mapping[str, NDArray[Any]]) -> Self:
        """The same network with other weights.

        Raises:
            ArgumentError: they are not those of such a network.
        """
        check_arrays(arrays, layout_of(self.module))
        module = copy.deepcopy(self.module)
        module.load_state_dict({name: torch.tensor(array) for name, array in arrays.items()})
        return replace(self, module=module)

    def response(self) -> list[list[float]] | None:
        """What a torch module makes of some pictures, in a few numbers for each; None if its code is in the library.

        Unlike the fingerprint it can be compared where numbers are rounded otherwise; see `is_response`.
        """
        if self.config is not None:
            return None
        signs = np.random.default_rng(0).choice([-1.0, 1.0], (self.width, SUMS))
        found: list[list[float]] = (self.encode(_examples(self.input.width)).astype(np.float64) @ signs).tolist()
        return found

    def is_response(self, stored: tuple[tuple[float, ...], ...]) -> bool:
        """Whether `response` is what it was, but for rounding."""
        now, then = np.array(self.response(), dtype=np.float64), np.array(stored, dtype=np.float64)
        return now.shape == then.shape and bool((np.abs(now - then) <= CLOSE * np.abs(then).max()).all())

    def describe(self) -> dict[str, Any]:
        """Everything but the weights, as JSON can hold it."""
        return {
            "name": self.name,
            "config": None if self.config is None else dict(self.config),
            "resize": self.crop.resize,
            "size": self.crop.size,
            "mean": list(self.mean),
            "deviation": list(self.deviation),
            "width": self.width,
            "is_pretrained": self.is_pretrained,
            "response": self.response(),
        }


def as_encoder(given: Any, size: int | None = None) -> Encoder:
    """An encoder as it is, or one made of a torch module for pictures of that size.

    Raises:
        ArgumentError: it is neither, or a module that returns something else than ordinary numbers for each picture.
    """
    encoder = given if isinstance(given, Encoder) else Encoder.from_module(given, size=size or SIZE)
    check_weights(encoder)  # a model with this encoder could be trained, and never be loaded
    return encoder


def require_module(module: Any) -> None:
    """Refuse what is no network, such as the class of one.

    Raises:
        ArgumentError: it is none.
    """
    if isinstance(module, type):
        name = module.__name__
        raise ArgumentError(f"an encoder is a torch module, and {name} is a class; pass {name}(...)")
    if not isinstance(module, torch.nn.Module):
        advice = "; load_encoder makes one of a name or folder" if isinstance(module, str | Path) else ""
        raise ArgumentError(f"an encoder is a torch module or an Encoder, got {type(module).__name__}{advice}")


@contextmanager
def _evaluating(module: torch.nn.Module) -> Iterator[None]:
    """Evaluation mode, after which each part of a network has the mode that it had."""
    modes = {part: part.training for part in module.modules()}
    try:
        module.eval()
        yield
    finally:
        for part, mode in modes.items():
            part.training = mode


def _described(found: Any) -> str:
    """What a network returned, and what to do if that is often met."""
    if isinstance(found, torch.Tensor):
        pooling = "; add torch.nn.AdaptiveAvgPool2d(1) and torch.nn.Flatten()" if found.ndim == 4 else ""
        return f"the shape {tuple(found.shape)}{pooling}"
    return f"a {type(found).__name__}; wrap it in a module that returns only the features"


@contextmanager
def _single_threads(number: int) -> Iterator[ThreadPoolExecutor]:
    """Threads in which torch does not use further ones; what it uses in others stays as it is."""
    before = torch.get_num_threads()
    pool = ThreadPoolExecutor(number, initializer=torch.set_num_threads, initargs=(1,))
    try:
        yield pool
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        torch.set_num_threads(before)  # also that of threads to come


def _code_of(module: torch.nn.Module) -> str:
    """The source code of all classes in a network that are not torch's own, where it is available."""
    kinds = {type(part) for part in module.modules() if not type(part).__module__.startswith("torch.")}
    found = []
    for kind in sorted(kinds, key=lambda kind: kind.__qualname__):
        with suppress(OSError, TypeError):  # defined where no file remembers it
            found.append(inspect.getsource(kind))
    return ";".join(found)


def _examples(width: int) -> NDArray[np.uint8]:
    """Pixels of a few pictures: noise, black, white, the three colours, and all shades."""
    rng = np.random.default_rng(0)
    plain = [np.tile(np.array(colour, dtype=np.uint8), width // 3) for colour in (
        (0, 0, 0), (255, 255, 255), (255, 0, 0), (0, 255, 0), (0, 0, 255)
    )]  # fmt: skip
    shades = np.linspace(0, 255, width).astype(np.uint8)
    return np.stack([rng.integers(0, 256, width, dtype=np.uint8), *plain, shades])


def mixed(trained: Encoder, other: Encoder, factor: float) -> Encoder:
    """``factor`` times the weights of one encoder and 1 - ``factor`` times those of another, statistics included."""
    if not 0 <= factor <= 1:
        raise ArgumentError(f"the training factor must be from 0 to 1, got {factor}")
    ours, theirs = trained.arrays(), other.arrays()
    check_arrays(theirs, layout_of(trained.module))
    arrays = {
        name: (factor * ours[name] + (1 - factor) * theirs[name]).astype(ours[name].dtype)
        if ours[name].dtype.kind == "f"
        else (ours if factor >= 0.5 else theirs)[name]  # such as the number of batches that statistics are of
        for name in ours
    }
    return replace(trained.with_arrays(arrays), name=f"{factor:g} {trained.name}", is_pretrained=factor > 0)


@torch.no_grad()
def check_weights(encoder: Encoder) -> None:
    """Make sure that the weights of an encoder are usable: they turn a picture of noise into ordinary numbers.

    Raises:
        ArgumentError: it returns numbers that are not finite or too large, or another number of them.
    """
    size = encoder.crop.size
    with _evaluating(encoder.module):
        found = encoder.module(torch.randn(1, 3, size, size, generator=torch.Generator().manual_seed(0)))
    if tuple(found.shape) != (1, encoder.width):
        raise ArgumentError(f"the encoder returns the shape {tuple(found.shape)}; (1, {encoder.width}) was expected")
    if not (found.abs() <= LARGEST).all():
        raise ArgumentError("the weights are too large or not finite: the encoder returns such numbers")


def layout_of(module: torch.nn.Module) -> Layout:
    """The types and shapes of a network's weights."""
    return {
        name: (np.dtype(str(value.dtype).removeprefix("torch.")), tuple(value.shape))
        for name, value in module.state_dict().items()
    }


def folded(module: torch.nn.Module, size: int) -> torch.nn.Module:
    """A copy in which batch normalisation is part of the convolution before it; the same but for rounding.

    Which normalisation follows which convolution is guessed from their order. One picture shows whether the guess is
    right; if not, the network is used as it is.
    """
    original = copy.deepcopy(module).eval()
    if not any(isinstance(each, torch.nn.BatchNorm2d) for each in original.modules()):
        return original
    result = copy.deepcopy(original)
    for parent in list(result.modules()):
        children = list(parent.named_children())
        for (first, conv), (second, norm) in pairwise(children):
            if not (isinstance(conv, torch.nn.Conv2d) and isinstance(norm, torch.nn.BatchNorm2d)):
                continue
            if conv.out_channels == norm.num_features and norm.track_running_stats:
                setattr(parent, first, torch.nn.utils.fuse_conv_bn_eval(conv, norm))
                setattr(parent, second, torch.nn.Identity())
    example = torch.rand(1, 3, size, size, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        expected, found = original(example), result(example)
    if not expected.isfinite().all():
        return original
    close = torch.allclose(found, expected, rtol=1e-3, atol=1e-4 * float(expected.abs().max().clamp(min=1e-6)))
    return result if close else original


def make_crop(size: int, resize: int | None) -> Crop:
    """Where the middle of a picture is cut out.

    Raises:
        ArgumentError: the square is empty, or larger than the picture or than any encoder needs.
    """
    resize = round(size * RESIZE_RATIO) if resize is None else resize
    if not 1 <= size <= min(resize, MOST_SIZE) or resize > 2 * MOST_SIZE:
        raise ArgumentError(f"a picture cannot be scaled to {resize} pixels and cut to {size}")
    return Crop(resize, size)
