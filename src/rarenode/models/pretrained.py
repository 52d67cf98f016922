"""Encoders of the transformers library: `load_encoder`.

By a short name, by any name that the library knows, from a folder, or with random weights. Nothing is downloaded unless
asked, and weights are read from safetensors only.

The embedding is what the last layer sees, pooled: the mean over space of a convolutional network, and of a transformer
the class token, or the mean of all tokens if it has none.
"""

from __future__ import annotations

import difflib
import inspect
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError
from torch import Tensor

from rarenode._io.files import is_dir
from rarenode._io.text import counted
from rarenode.config.choices import UNTRAINED
from rarenode.errors import ArgumentError, MissingFileError
from rarenode.models.encoder import (
    IMAGENET_DEVIATION,
    IMAGENET_MEAN,
    MOST_SIZE,
    RESIZE_RATIO,
    SIZE,
    Encoder,
    layout_of,
    make_crop,
    mixed,
)
from rarenode.models.model import check_arrays

NAMES = {
    "resnet18": "microsoft/resnet-18",
    "resnet50": "microsoft/resnet-50",
    "vit": "google/vit-base-patch16-224",
    "dinov2": "facebook/dinov2-small",
}
"""Short names, and what the models are called at Hugging Face."""
CONFIGS: dict[str, dict[str, Any]] = {
    "resnet18": {
        "model_type": "resnet",
        "depths": [2, 2, 2, 2],
        "hidden_sizes": [64, 128, 256, 512],
        "layer_type": "basic",
    },
    "resnet50": {"model_type": "resnet"},
    "vit": {"model_type": "vit"},
    "dinov2": {"model_type": "dinov2", "hidden_size": 384, "num_attention_heads": 6},
}
"""Their architectures, so that random weights need no file."""
MOST_NUMBER, MOST_LAYERS = 100_000, 200
"""What a description in a model file may ask for; the latter of anything that is built one by one."""
COUNTS = ("depth", "layer", "stage", "block", "repeat")
"""What is in the name of a number of layers."""
LEFT_OUT = (
    "architectures", "auto_map", "transformers_version", "dtype", "torch_dtype", "_name_or_path", "id2label",
    "label2id", "num_labels", "problem_type",
)  # fmt: skip
"""Parts of a configuration that do not change the network."""
DANGEROUS = (
    "auto_map", "dtype", "_implementation", "backbone", "quantization", "remote_code", "kernel_config", "expert"
)  # fmt: skip
"""Parts of names in a configuration that would have the library run or fetch something, or store weights otherwise."""


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


def load_encoder(
    name: str, *, size: int | None = None, seed: int = 0, download: bool = False, factor: float | None = None
) -> Encoder:
    """An encoder of the transformers library.

    Args:
        name: a short name of `NAMES`, a name at Hugging Face, a folder with ``config.json`` and
            ``model.safetensors``; or ``random:`` and one of these, for random weights.
        size: pixels on each side of what it looks at; None: what it was trained with.
        seed: of random weights.
        download: whether weights that are not on this machine may be fetched from Hugging Face.
        factor: if given, weights are ``factor`` times the trained ones and 1 - ``factor`` times random ones, the
            training factor of the paper.

    Raises:
        ArgumentError: the transformers library is not installed, or has no such model.
        MissingFileError: the weights are not on this machine, and ``download`` is not set.
    """
    is_random = name.startswith(UNTRAINED)
    plain = name.removeprefix(UNTRAINED)
    if not plain:
        raise ArgumentError("the name of the encoder is empty; choose resnet18, resnet50, vit, dinov2 or a folder")
    if _is_path(plain) and not is_dir(plain):
        raise MissingFileError(f"{plain}: there is no such folder; an encoder has config.json and model.safetensors")
    if size is not None and not 1 <= size <= MOST_SIZE:
        raise ArgumentError(f"image_size must be from 1 to {MOST_SIZE}, got {size}")
    if is_random:
        config = CONFIGS[plain] if plain in CONFIGS else _config_of(plain, download)
        described = _with_processor(name, config, {} if plain in CONFIGS else _processor_of(plain, download), size)
        return replace(described, module=_random(config, seed), is_pretrained=False)
    model, config = _pretrained(plain, download)
    encoder = _with_processor(name, config, _processor_of(plain, download), size)
    encoder = replace(encoder, module=Backbone(model))
    if factor is None:
        return encoder
    return mixed(encoder, replace(encoder, module=_random(config, seed)), factor)


def _is_path(name: str) -> bool:
    """Whether a name can only be that of a folder: at Hugging Face, names are ``owner/model``."""
    return name.startswith((".", "~", "/")) or name.endswith("/") or "\\" in name or name.count("/") > 1


def from_description(description: Mapping[str, Any], module: torch.nn.Module | None) -> Encoder:
    """The encoder of a model file, which may come from anywhere, without its weights.

    Args:
        description: what `Encoder.describe` returned.
        module: the network, if it is not one of the transformers library.

    Raises:
        ArgumentError: there is no such network, or it is larger than any encoder.
    """
    config = description["config"]
    if config is None and module is None:
        raise ArgumentError(
            f"its encoder, {description['name']!r}, is not one of the transformers library; pass its torch module "
            "(encoder=...)"
        )
    if config is not None:
        _check_config(config)
        module = _without_memory(config)
    crop, width = make_crop(description["size"], description["resize"]), description["width"]
    if isinstance(module, Backbone) and config is not None:
        found = _width(module, crop.size)
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
        ArgumentError: the weights are not those of such a network.
    """
    check_arrays(arrays, layout_of(encoder.module))
    for name, array in arrays.items():
        if not np.isfinite(array).all():
            raise ArgumentError(f"{name} has values that are not finite")
    if any(value.is_meta for value in encoder.module.state_dict().values()):
        assert encoder.config is not None  # noqa: S101 (only networks of the library are built without memory)
        encoder = replace(encoder, module=_empty(encoder.config))
        return encoder.with_arrays(arrays)
    loaded, size = encoder.with_arrays(arrays), encoder.crop.size
    with torch.no_grad():
        shape = tuple(loaded.module.eval()(torch.zeros(1, 3, size, size)).shape)
    if shape != (1, encoder.width):
        raise ArgumentError(f"its encoder returns the shape {shape}; (1, {encoder.width}) was expected")
    return loaded


# --- the transformers library ----------------------------------------------------------------------------------------


def _library() -> Any:
    try:
        import transformers  # noqa: PLC0415 (it is an extra, and takes seconds to load)
    except ImportError:
        raise ArgumentError("encoders need the transformers library: pip install 'rarenode[vision]'") from None
    logging: Any = transformers.utils.logging
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    return transformers


def _from_library(what: str, name: str, download: bool, **how: Any) -> Any:
    """Call ``from_pretrained`` of a class of the library."""
    place = str(Path(name)) if is_dir(name) else NAMES.get(name, name)
    library = _library()
    is_local = is_dir(name) or not download
    try:
        with _offline() if is_local else nullcontext():
            return getattr(library, what).from_pretrained(
                place, local_files_only=is_local, trust_remote_code=False, **how
            )
    except (OSError, ValueError, KeyError, RuntimeError, TypeError, ImportError, SafetensorError) as error:
        reason = str(error).strip().partition("\n")[0][:200]
        if is_dir(name):
            raise ArgumentError(f"{name} contains no encoder that can be used: {reason}") from None
        if download:
            raise ArgumentError(f"the encoder {name!r} could not be fetched: {reason}") from None
        near = difflib.get_close_matches(name, NAMES, n=1)
        hint = f" (did you mean {near[0]!r}?)" if near and name not in NAMES else ""
        untrained = f", or {UNTRAINED}{name}," if name in CONFIGS else ""
        raise MissingFileError(
            f"the weights of the encoder {name!r} ({place}) are not on this machine{hint}. --download (download=True) "
            f"fetches them from Hugging Face; a folder with config.json and model.safetensors{untrained} works without"
        ) from None


@contextmanager
def _offline() -> Iterator[None]:
    """Keeps Hugging Face's library from the network, which it would reach for other reasons than files too."""
    from huggingface_hub import constants  # noqa: PLC0415 (it comes with the transformers library)

    before = constants.HF_HUB_OFFLINE
    constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE = before


def _pretrained(name: str, download: bool) -> tuple[torch.nn.Module, dict[str, Any]]:
    # Only safetensors: other files of weights are pickles, which can execute code.
    how = {"dtype": torch.float32, "use_safetensors": True, "output_loading_info": True}
    with _drawing(seed=0):  # weights of parts that are not used may be missing, and are drawn
        model, info = _from_library("AutoModel", name, download, **how)
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key)
    if missing:
        raise ArgumentError(f"the encoder {name!r} lacks {counted(len(missing), 'array')} of weights: {missing[0]} ...")
    if getattr(model, "vision_model", None) is not None:  # of two towers, such as CLIP's
        model = model.vision_model
    return model, _plain(model.config)


def _config_of(name: str, download: bool) -> dict[str, Any]:
    return _plain(_from_library("AutoConfig", name, download))


def _processor_of(name: str, download: bool) -> dict[str, Any]:
    """What ``preprocessor_config.json`` says; nothing if there is none."""
    try:
        processor = _from_library("AutoImageProcessor", name, download)
    except (ArgumentError, MissingFileError):
        return {}
    found: dict[str, Any] = processor.to_dict()
    return found


def _plain(config: Any) -> dict[str, Any]:
    """A configuration as JSON can hold it, without what does not change the network."""
    values: dict[str, Any] = json.loads(config.to_json_string(use_diff=True))
    return {"model_type": config.model_type} | _without(LEFT_OUT, values)


def _without(names: Sequence[str], values: Mapping[str, Any]) -> dict[str, Any]:
    """The values, and those inside them, that have other names."""
    return {
        name: _without(names, value) if isinstance(value, Mapping) else value
        for name, value in values.items()
        if name not in names
    }


def _empty(config: Mapping[str, Any]) -> Backbone:
    """A network of the library, with whatever weights it begins with."""
    library = _library()
    values = {name: value for name, value in config.items() if name != "model_type"}
    try:
        made = library.AutoConfig.for_model(config["model_type"], **values)
        return Backbone(library.AutoModel.from_config(made, trust_remote_code=False, dtype=torch.float32)).eval()
    except (ValueError, KeyError) as error:
        raise ArgumentError(f"the transformers library has no such encoder: {str(error)[:200]}") from None


def _without_memory(config: Mapping[str, Any]) -> Backbone:
    """A network without memory for its weights.

    Raises:
        ArgumentError: it cannot be built.
    """
    try:
        with torch.device("meta"):
            return _empty(config)
    except ArgumentError:
        raise
    except Exception as error:  # whatever the library makes of numbers that do not fit together
        raise ArgumentError(f"the encoder cannot be built: {str(error)[:200]}") from None


def _width(network: Backbone, size: int) -> int:
    """How many numbers a network `_without_memory` returns for a picture; they are not computed.

    Raises:
        ArgumentError: it takes no such pictures.
    """
    try:
        with torch.device("meta"), torch.no_grad():
            _, width = network.eval()(torch.zeros(1, 3, size, size)).shape
    except Exception as error:  # it takes text, sound, or larger pictures
        what = f"the encoder cannot look at pictures of {size} x {size} pixels"
        raise ArgumentError(f"{what}: {str(error).strip()[:200]}") from None
    return int(width)


@contextmanager
def _drawing(seed: int) -> Iterator[None]:
    """Random numbers follow from the seed, and those of others go on as before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def _random(config: Mapping[str, Any], seed: int) -> Backbone:
    with _drawing(seed):
        return _empty(config)


def _with_processor(name: str, config: dict[str, Any], processor: Mapping[str, Any], size: int | None) -> Encoder:
    """An encoder without weights yet, that cuts pictures as its processor says."""
    cut = processor.get("crop_size") if processor.get("do_center_crop") else None
    own = _side(cut) or _side(processor.get("size")) or _side(config.get("image_size")) or SIZE
    ratio = (_side(processor.get("size")) or own) / own if cut else RESIZE_RATIO
    chosen = size or own
    mean = tuple(processor.get("image_mean") or IMAGENET_MEAN)
    deviation = tuple(processor.get("image_std") or IMAGENET_DEVIATION)
    if processor.get("do_normalize") is False:
        mean, deviation = (0.0, 0.0, 0.0), (1.0, 1.0, 1.0)
    crop = make_crop(chosen, round(chosen * max(ratio, 1.0)))
    _check_config(config)
    width = _width(_without_memory(config), chosen)
    return Encoder(torch.nn.Identity(), crop, mean, deviation, width, _short(name), True, config)


def _short(name: str) -> str:
    """The name, or that of the folder."""
    plain = name.removeprefix(UNTRAINED)
    return name.removesuffix(plain) + (Path(plain).resolve().name if is_dir(plain) else plain)


def _side(size: Any) -> int | None:
    """The number of pixels that a processor means."""
    if isinstance(size, Mapping):
        size = size.get("shortest_edge") or size.get("height")
    return int(size) if size else None


def _check_config(config: Mapping[str, Any]) -> None:
    """Refuse an architecture that would take for ever to build, or more memory than any encoder needs."""
    if not isinstance(config.get("model_type"), str):
        raise ArgumentError("its encoder has no model_type")
    if len(json.dumps(config)) > MOST_NUMBER:
        raise ArgumentError("the description of its encoder is too long")
    for name, value in _named(config):
        if any(word in name for word in DANGEROUS):
            raise ArgumentError(f"its encoder has {name}, which no model needs that rarenode wrote")
        if isinstance(value, list) and len(value) > MOST_LAYERS:
            raise ArgumentError(f"its encoder has {name} with {len(value):,} values, more than any encoder needs")
        if isinstance(value, str) and ":" in value:  # so begins what some libraries fetch
            raise ArgumentError(f"its encoder has {name} = {value[:80]!r}, which may be an address")
        numbers = [each for each in (value if isinstance(value, list) else [value]) if isinstance(each, int | float)]
        is_count = any(word in name for word in COUNTS)
        most = MOST_LAYERS if is_count else MOST_NUMBER
        for number in [*numbers, *([sum(numbers)] if is_count else [])]:
            if not (math.isfinite(number) and abs(number) <= most):
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
