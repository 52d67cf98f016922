"""`Backbone`: an image model of the transformers library, built from its configuration, with or without memory.

The embedding is what the last layer sees, pooled: the mean over space of a convolutional network, and of a transformer
the class token, or the mean of all tokens if it has none.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

from rarenode._io.text import counted
from rarenode.errors import ArgumentError
from rarenode.models.budget import Budget, within

OPERATIONS, OPERATIONS_BY_ARRAY = 1_000, 12
"""Limits on building a network, or on encoding a picture, for each array of weights; 2 to 8 are usual."""
NUMBERS, NUMBERS_BY_WEIGHT = 1 << 24, 4
"""Limits on building it, for each weight; 2 are usual, to make and to fill the arrays, and some small tables."""
MOST_WORK, MOST_ARRAY = 1 << 34, 1 << 28
"""What all operations on one picture may return together, and each of them: seconds, and a few gigabytes. A ResNet-50
takes pictures of 4,096 pixels on each side, a ViT of 1,024."""
IMAGE_MODELS = (
    "MODEL_FOR_IMAGE_MAPPING_NAMES", "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES", "MODEL_FOR_BACKBONE_MAPPING_NAMES"
)  # fmt: skip
"""Where the library lists image models."""
VISION = "vision_model"
"""The image part of a model for images and text has a type that ends in this."""


class Backbone(torch.nn.Module):
    """An image model of the transformers library, pooled."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self.model = model
        self.has_class_token = any(
            name.endswith(("cls_token", "class_embedding")) for name, _ in model.named_parameters()
        )
        # Otherwise a transformer refuses pictures of another size than it was trained with.
        takes = "interpolate_pos_encoding" in inspect.signature(model.forward).parameters
        self.how = {"interpolate_pos_encoding": True} if takes else {}

    def forward(self, X: Tensor) -> Tensor:
        """Embeddings (rows, width) of normalised pictures (rows, 3, size, size)."""
        found: Tensor = self.model(X, **self.how).last_hidden_state
        if found.ndim == 4:
            return found.mean(dim=(2, 3))
        return found[:, 0] if self.has_class_token else found.mean(dim=1)


def transformers_library() -> Any:
    """The transformers library, with log messages and progress bars turned off.

    Raises:
        ArgumentError: it is not installed.
    """
    try:
        import transformers  # noqa: PLC0415 (it is an extra, and takes seconds to load)
    except ImportError:
        raise ArgumentError("encoders need the transformers library: pip install transformers") from None
    logging: Any = transformers.utils.logging
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    return transformers


def check_type(model_type: Any) -> None:
    """Make sure that this is a type of image model.

    Raises:
        ArgumentError: it is not.
    """
    if not isinstance(model_type, str):
        raise ArgumentError("the encoder has no model_type")
    lists = transformers_library().models.auto.modeling_auto
    is_listed = any(model_type in getattr(lists, name, {}) for name in IMAGE_MODELS)
    if not (is_listed or model_type.endswith(VISION)):
        raise ArgumentError(f"models of the type {model_type[:80]!r} are unknown, or are not image models")


def built(config: Mapping[str, Any]) -> Backbone:
    """A network of the library, with whatever weights it begins with.

    Raises:
        ArgumentError: there is no such network.
    """
    library = transformers_library()
    values = {name: value for name, value in config.items() if name != "model_type"}
    try:
        made = library.AutoConfig.for_model(config["model_type"], **values)
        return Backbone(library.AutoModel.from_config(made, trust_remote_code=False, dtype=torch.float32)).eval()
    except (ValueError, KeyError) as error:
        raise ArgumentError(f"the transformers library has no such encoder: {str(error)[:200]}") from None


def without_memory(config: Mapping[str, Any], shapes: Collection[tuple[int, ...]] | None = None) -> Backbone:
    """A network without memory for its weights.

    Args:
        config: its architecture.
        shapes: those of its weights, which have to account for what it takes to build it. None: it may take more.

    Raises:
        ArgumentError: it cannot be built, or takes more.
    """
    what, budget = "building the encoder", Budget(sys.maxsize, sys.maxsize)
    if shapes is not None:
        weights = sum(map(math.prod, shapes))
        what = f"building the encoder, which has {weights:,} weights in {counted(len(shapes), 'array')},"
        budget = Budget(_operations(len(shapes)), NUMBERS + NUMBERS_BY_WEIGHT * weights)
    try:
        _import_code(config["model_type"])
        with within(budget, what), torch.device("meta"):
            return built(config)
    except ArgumentError:
        raise
    except Exception as error:  # whatever the library makes of numbers that do not fit together
        raise ArgumentError(f"the encoder cannot be built: {str(error)[:200]}") from None


def _import_code(model_type: str) -> None:
    """Have the library import the code of a network, which takes longer than to build it, and may need memory."""
    library = transformers_library()
    with suppress(KeyError):  # there is no such network; building it says so
        library.MODEL_MAPPING[library.CONFIG_MAPPING[model_type]]


def width_of(network: Backbone, size: int) -> int:
    """How many numbers a network `without_memory` returns for a picture; they are not computed.

    Raises:
        ArgumentError: it takes no such pictures, or too much time or memory for them.
    """
    what = f"encoding a picture of {size} x {size} pixels"
    budget = Budget(_operations(len(network.state_dict())), MOST_WORK, MOST_ARRAY)
    try:
        with within(budget, what), torch.device("meta"), torch.no_grad():
            _, width = network.eval()(torch.zeros(1, 3, size, size)).shape
    except ArgumentError:
        raise
    except Exception as error:  # it takes text, sound, or larger pictures
        what = f"the encoder does not accept pictures of {size} x {size} pixels"
        raise ArgumentError(f"{what}: {str(error).strip()[:200]}") from None
    return int(width)


def _operations(arrays: int) -> int:
    return OPERATIONS + OPERATIONS_BY_ARRAY * arrays
