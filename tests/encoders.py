"""Tiny encoders of the transformers library, and a small reef in files, for tests of rows that are pictures."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from rarenode.config import Settings
from rarenode.data.reef import make_reef
from rarenode.models.encoder import Encoder

SIZE = 32
TINY: dict[str, dict[str, Any]] = {
    "resnet": {
        "embedding_size": 8,
        "hidden_sizes": [8, 16],
        "depths": [1, 1],
        "layer_type": "basic",
    },
    "vit": {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "image_size": SIZE,
        "patch_size": 8,
    },
    "dinov2": {
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "mlp_ratio": 2,
        "image_size": 28,
        "patch_size": 14,
    },
    "swin": {
        "embed_dim": 8,
        "depths": [1, 1],
        "num_heads": [2, 2],
        "image_size": SIZE,
        "window_size": 4,
        "patch_size": 4,
    },
}
"""Architectures of the transformers library, as small as they can be."""


def tiny_model(kind: str, seed: int = 0, **changes: Any) -> Any:
    """A network of the library with random weights, and statistics as if it had been trained."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(seed)
    model = transformers.AutoModel.from_config(transformers.AutoConfig.for_model(kind, **TINY[kind] | changes))
    rng = torch.Generator().manual_seed(seed)
    for part in model.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            for values, low in ((part.running_mean, -0.2), (part.running_var, 0.5), (part.weight.data, 0.5)):
                assert values is not None
                values.copy_(low + torch.rand(values.shape, generator=rng))
    return model.eval()


def tiny_encoder(folder: Path, kind: str = "resnet", seed: int = 0, **changes: Any) -> Path:
    """A folder with such a network, as `save_pretrained` of the library writes it."""
    model = tiny_model(kind, seed, **changes)
    with quiet_library():
        model.save_pretrained(folder)
    return folder


@contextmanager
def quiet_library() -> Iterator[None]:
    import transformers

    logging: Any = transformers.utils.logging
    logging.disable_progress_bar()
    yield


@pytest.fixture(scope="session")
def encoder_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny ResNet."""
    return tiny_encoder(tmp_path_factory.mktemp("encoders") / "tiny")


@pytest.fixture(scope="session")
def reef(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``labels.csv`` and 60 small pictures in ``images``, and ``new`` ones without labels."""
    folder = tmp_path_factory.mktemp("reef")
    make_reef(folder, rows=60, size=SIZE, seed=1)
    return folder


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of embeddings, for this test only."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("RARENODE_CACHE", str(folder))
    return folder


def small_settings(encoder: Path | str, **changes: Any) -> Settings:
    """A training of a second or less."""
    small: dict[str, Any] = {
        "encoder": str(encoder),
        "image_size": SIZE,
        "hidden_size": 12,
        "n_trees": 5,
        "epochs": 2,
        "patience": None,
        "holdout": 0.3,
        "cv": None,
        "n_jobs": 1,
        "checkpoint_minutes": None,
    }
    return Settings(**(small | changes))


BY_VALIDATION: dict[str, Any] = {"holdout": None, "cv": 3}
"""Changes of `small_settings` where there are validation rows, with which holdout is refused."""


def plain_encoder(seed: int = 0, size: int = 8, width: int = 5, **how: Any) -> Encoder:
    """An encoder that needs no library: a product with random numbers."""
    torch.manual_seed(seed)
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(size * size * 3, width), torch.nn.Tanh())
    return Encoder.from_module(module, size=size, **how)


def noise(rows: int, size: int, seed: int = 0) -> NDArray[np.uint8]:
    """Pixels (rows, size * size * 3)."""
    return np.random.default_rng(seed).integers(0, 256, (rows, size * size * 3), dtype=np.uint8)


def weights_folder() -> Path:
    """The folder of a real ResNet-50; skips the test where there is none."""
    given = os.environ.get("RARENODE_WEIGHTS")
    data = os.environ.get("RARENODE_DATA")
    folder = (Path(given) if given else Path(data or ".").parent / "weights") / "resnet-50"
    if not (folder / "model.safetensors").is_file():
        pytest.skip(f"{folder} has no weights of a ResNet-50; RARENODE_WEIGHTS may name another folder")
    return folder


def plankton() -> tuple[Path, Path]:
    """The table and the archive of real pictures; skips the test where there are none."""
    folder = Path(os.environ.get("RARENODE_DATA") or ".") / "plankton"
    if not (folder / "images.zip").is_file():
        pytest.skip(f"{folder} has no images.zip")
    return folder / "labels.csv", folder / "images.zip"
