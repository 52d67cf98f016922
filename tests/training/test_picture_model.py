"""The folder of a model for pictures, which may come from anywhere: what it asks for is bounded, and nothing is run."""

from __future__ import annotations

import hashlib
import json
import resource
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from rarenode import Dataset, TrainedModel
from rarenode.errors import FileFormatError, MissingFileError
from rarenode.training import fit_model
from tests.encoders import encoder_folder, reef, small_settings, tiny_encoder

__all__ = ["encoder_folder", "reef"]


@pytest.fixture(scope="module")
def saved(reef: Path, encoder_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "model"
    data = Dataset.read(reef / "labels.csv", labels="taxa", image="image", ignore="partition")
    fit_model(data, small_settings(encoder_folder)).model.save(folder)
    return folder


@pytest.fixture
def folder(saved: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(saved, tmp_path / "model"))


def change(folder: Path, action: Callable[[dict[str, Any]], object]) -> None:
    """Change what ``model.json`` says of the encoder."""
    record = json.loads((folder / "model.json").read_text())
    action(record["encoder"])
    (folder / "model.json").write_text(json.dumps(record))


def peak() -> int:
    """Bytes that the process has had at most."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def refused(folder: Path, *words: str) -> None:
    before = peak()
    with pytest.raises(FileFormatError) as caught:
        TrainedModel.load(folder)
    assert peak() - before < 500_000_000
    for word in words:
        assert word in str(caught.value), str(caught.value)


def test_it_loads(folder: Path) -> None:
    model = TrainedModel.load(folder)
    assert model.encoder is not None
    assert "encoder" in model.fingerprints
    described = json.loads((folder / "model.json").read_text())["encoder"]
    assert described["config"]["model_type"] == "resnet"
    assert set(described["config"]).isdisjoint({"auto_map", "dtype", "id2label", "_name_or_path"})


def test_it_loads_in_a_new_process(folder: Path) -> None:
    """Where the code of the network is imported first, which takes more steps than building it."""
    program = """
import sys, rarenode
from rarenode.models import backbone
plain = backbone.Budget
backbone.Budget = lambda *limits: plain(*limits, calls=1_000_000)
print(rarenode.TrainedModel.load(sys.argv[1]).encoder.width)
"""
    command = [sys.executable, "-c", program, str(folder)]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "16\n"


CONFIGS: list[Any] = [
    ({"depths": [10**9, 1]}, "depths"),
    ({"depths": [150, 150]}, "operations"),
    ({"depths": [10_000, 10_000]}, "operations"),
    ({"depths": [1] * 3000, "hidden_sizes": [8] * 3000}, "operations"),
    ({"hidden_sizes": [8, 10**7]}, "hidden_sizes"),
    ({"hidden_sizes": [10_000, 10_000]}, "6,206 weights in 36 arrays, takes arrays of more than"),
    ({"hidden_sizes": [100_000, 16]}, "hidden_sizes"),
    ({"embedding_size": 10**12}, "embedding_size"),
    ({"embedding_size": 1e300}, "embedding_size"),
    ({"embedding_size": -8}, "encoder"),
    ({"hidden_sizes": []}, "encoder"),
    ({"hidden_act": "no such"}, "encoder"),
    ({"layer_type": "no such"}, "encoder"),
    ({"model_type": "no such"}, "no such"),
    ({"model_type": 3}, "model_type"),
    ({"model_type": "bert"}, "encoder"),
    ({"auto_map": {"AutoModel": "mine.Model"}}, "auto_map"),
    ({"vision_config": {"num_hidden_layers": 10**9}}, "num_hidden_layers"),
    ({"vision_config": [{"deep": {"auto_map": {}}}]}, "auto_map"),
    ({"dtype": "bfloat16"}, "dtype"),
    ({"torch_dtype": "float16"}, "torch_dtype"),
    ({"attn_implementation": "someone/kernel"}, "attn_implementation"),
    ({"backbone": "someone/backbone", "use_pretrained_backbone": True}, "backbone"),
    ({"quantization_config": {"quant_method": "awq"}}, "quantization_config"),
    ({"architecture": "hf-hub:someone/model"}, "address"),
    ({"filler": "x" * 200_000}, "too long"),
    ({"model_type": "vit", "num_hidden_layers": 200, "hidden_size": 96_000, "num_attention_heads": 1}, "hidden_size"),
    ({"model_type": "vit", "num_hidden_layers": 200, "hidden_size": 9_600, "num_attention_heads": 1}, "weights"),
    ({"model_type": "vit", "image_size": 8_000, "patch_size": 1, "hidden_size": 16}, "weights"),
    ({"model_type": "levit", "image_size": 2_000}, "steps"),
    ({"model_type": "levit", "image_size": 10_000}, "steps"),
    ({"model_type": "efficientnet", "depth_coefficient": 1_000.0}, "weights"),
    ({"model_type": "efficientnet", "depth_coefficient": 1e-4, "num_block_repeats": [10_000] * 7}, "encoder"),
    ({"model_type": "efficientnet", "num_block_repeats": [10_000] * 7}, "weights"),
    ({"model_type": "efficientnet", "width_coefficient": 10_000.0}, "weights"),
    ({"model_type": "swin", "window_size": 10_000}, "encoder"),
    ({"model_type": "swinv2", "window_size": 5_000}, "encoder"),
    ({"model_type": "rt_detr", "anchor_image_size": [10_000, 10_000]}, "are not image models"),
    ({"model_type": "detr"}, "encoder"),
]


@pytest.mark.parametrize(("config", "word"), CONFIGS)
def test_hostile_architectures(
    folder: Path, config: dict[str, Any], word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        pytest.fail("something tried to reach the network")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    change(folder, lambda encoder: encoder["config"].update(config))
    refused(folder, "model", word)


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("size", 0), ("size", 10**9), ("size", 8192), ("resize", 16), ("resize", 10**9), ("width", 17),
        ("width", 2**40), ("mean", [0.1, 0.2]), ("mean", [0, 0, None]), ("deviation", [1, 0, 1]),
        ("deviation", [1, -1, 1]),
        ("name", "a\nb"), ("config", [1]), ("config", None), ("is_pretrained", "x"), ("code", "import os"),
    ],
)  # fmt: skip
def test_hostile_descriptions(folder: Path, part: str, value: Any) -> None:
    change(folder, lambda encoder: encoder.update({part: value}))
    refused(folder, "encoder")


def test_the_weights_are_missing(folder: Path) -> None:
    (folder / "encoder.safetensors").unlink()
    with pytest.raises(MissingFileError, match=r"encoder\.safetensors is missing"):
        TrainedModel.load(folder)


def test_the_weights_are_damaged(folder: Path) -> None:
    path = folder / "encoder.safetensors"
    whole = path.read_bytes()
    changed = whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:]
    for content in (b"", whole[:-1], whole[: len(whole) // 2], whole + b"\0", b"x" * len(whole), changed):
        path.write_bytes(content)
        refused(folder, "encoder.safetensors")


def test_the_weights_are_those_of_another_encoder(folder: Path, tmp_path: Path) -> None:
    arrays = load_file(folder / "encoder.safetensors")
    changed = {name: np.asarray(array + np.ones((), array.dtype)) for name, array in arrays.items()}
    save_file(changed, folder / "encoder.safetensors")
    refused(folder, "sha256", "another model's")
    other = tiny_encoder(tmp_path / "vit", "vit")
    shutil.copy(other / "model.safetensors", folder / "encoder.safetensors")
    refused(folder, "encoder.safetensors")


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.nan, ["convolution.weight", "not finite"]),
        (1e30, ["the weights are too large"]),
        (3e38, ["the weights are too large"]),
    ],
)
def test_weights_that_cannot_be_used(folder: Path, value: float, words: list[str]) -> None:
    path = folder / "encoder.safetensors"
    arrays = load_file(path)
    name = next(name for name in sorted(arrays) if name.endswith("convolution.weight"))
    arrays[name][:] = value
    save_file(arrays, path)
    record = json.loads((folder / "model.json").read_text())
    record["fingerprints"]["encoder_parameters"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (folder / "model.json").write_text(json.dumps(record))
    refused(folder, f"{path}: its encoder cannot be used", *words)


def test_a_model_without_an_encoder_beside_old_weights(folder: Path, tmp_path: Path) -> None:
    """What is not described is not read."""
    record = json.loads((folder / "model.json").read_text())
    record["encoder"] = None
    (folder / "model.json").write_text(json.dumps(record))
    (folder / "encoder.safetensors").write_bytes(b"whatever")
    assert TrainedModel.load(folder).encoder is None
