"""Encoders from the description in a model file, which may come from anywhere.

Nothing is run or fetched that the description names, and it may cost no more than its weights, which are there, can
account for: the network is built without memory first, within a budget that follows from their shapes. Only if its
weights have the names, types and shapes of those in the file does it get memory.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from rarenode.errors import ArgumentError
from rarenode.models.backbone import built, check_type, width_of, without_memory
from rarenode.models.encoder import Encoder, check_weights, layout_of, make_crop, require_module
from rarenode.models.model import check_arrays

MOST_NUMBER, MOST_CHARACTERS = 100_000, 100_000
"""In any configuration."""
MOST_UNSEEN = 10_000
"""In a configuration from a file, where no array of weights is as long."""
DANGEROUS = (
    "auto_map", "dtype", "_implementation", "backbone", "quantization", "remote_code", "kernel_config", "expert"
)  # fmt: skip
"""Parts of names in a configuration that would have the library run or fetch something, or store weights otherwise."""


def from_description(
    description: Mapping[str, Any], module: torch.nn.Module | None, shapes: Mapping[str, tuple[int, ...]]
) -> Encoder:
    """The encoder of a model file, which may come from anywhere, without its weights.

    Args:
        description: what `Encoder.describe` returned.
        module: the network, if it is not one of the transformers library.
        shapes: those of the weights in the file.

    Raises:
        ArgumentError: there is no such network, or it costs more than its weights account for.
    """
    config = description["config"]
    if config is None and module is None:
        raise ArgumentError(
            f"its encoder, {description['name']!r}, is not one of the transformers library; pass its torch module "
            "(encoder=...)"
        )
    if config is None:
        require_module(module)
    crop, width = make_crop(description["size"], description["resize"]), description["width"]
    if config is not None:
        sides = (side for shape in shapes.values() for side in shape if math.prod(shape))  # one of 0 hides others
        check_config(config, max([MOST_UNSEEN, *sides]))
        module = without_memory(config, shapes.values())
        found = width_of(module, crop.size)
        if found != width:
            raise ArgumentError(f"its encoder returns {found} numbers; {width} were expected")
    assert module is not None  # noqa: S101 (it was given, or made from the configuration)
    return Encoder(
        module,
        crop,
        tuple(description["mean"]),
        tuple(description["deviation"]),
        width,
        description["name"],
        description["is_pretrained"],
        config,
    )


def materialised(encoder: Encoder, arrays: Mapping[str, NDArray[Any]]) -> Encoder:
    """An encoder of `from_description` with its weights; memory is taken only now.

    Raises:
        ArgumentError: the weights are not those of such a network, or cannot be used.
    """
    check_arrays(arrays, layout_of(encoder.module))
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ArgumentError(f"{name} has values that are not finite")
    if any(value.is_meta for value in encoder.module.state_dict().values()):
        assert encoder.config is not None  # noqa: S101 (only networks of the library are built without memory)
        encoder = replace(encoder, module=built(encoder.config))
    loaded = encoder.with_arrays(arrays)
    check_weights(loaded)
    return loaded


def check_config(config: Mapping[str, Any], most: int = MOST_NUMBER) -> None:
    """Refuse what would have the library run or fetch something, or numbers that are larger than any encoder's.

    Args:
        config: an architecture.
        most: the largest number in it.

    Raises:
        ArgumentError: names what is refused.
    """
    check_type(config.get("model_type"))
    if len(json.dumps(config)) > MOST_CHARACTERS:
        raise ArgumentError("the description of its encoder is too long")
    for name, value in _named(config):
        if any(word in name for word in DANGEROUS):
            raise ArgumentError(f"its encoder has {name}, which no model needs that rarenode wrote")
        if isinstance(value, str) and ":" in value:  # so begins what some libraries fetch
            raise ArgumentError(f"its encoder has {name} = {value[:80]!r}, which may be an address")
        for number in value if isinstance(value, list) else [value]:
            if isinstance(number, int | float) and not (math.isfinite(number) and abs(number) <= most):
                raise ArgumentError(f"its encoder has {name} = {number}, more than any encoder needs")


def _named(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """All parts of a configuration, also those inside others, each with its own name."""
    for name, value in config.items():
        yield name, value
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, Mapping):
                yield from _named(each)
            elif isinstance(each, list):
                yield from _named({name: each})
