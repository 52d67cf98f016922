"""Encoders of the transformers library: by folder, by name, with random weights; what they compute; what is refused."""

from __future__ import annotations

import json
import shutil
import socket
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from rarenode.data.decoding import Crop
from rarenode.errors import ArgumentError, MissingFileError
from rarenode.models.described import from_description, materialised
from rarenode.models.encoder import IMAGENET_DEVIATION, IMAGENET_MEAN, ROWS_TOGETHER
from rarenode.models.pretrained import load_encoder
from tests.encoders import SIZE, TINY, encoder_folder, noise, tiny_encoder, tiny_model

transformers = pytest.importorskip("transformers")
__all__ = ["encoder_folder"]


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may be fetched unless asked; a test that tries to fails."""

    def refuse(*_: Any, **__: Any) -> Any:
        pytest.fail("something tried to reach the network")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, refuse)
    for name in ("create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)


def normalised(pixels: Any, size: int, mean: Any = IMAGENET_MEAN, deviation: Any = IMAGENET_DEVIATION) -> torch.Tensor:
    values = pixels.reshape(len(pixels), size, size, 3).astype(np.float32) / 255
    return torch.from_numpy(((values - np.float32(mean)) / np.float32(deviation)).transpose(0, 3, 1, 2).copy())


# --- what they compute -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(TINY))
def test_embeddings_are_those_of_the_library_pooled(tmp_path: Path, kind: str) -> None:
    encoder = load_encoder(str(tiny_encoder(tmp_path / "tiny", kind)), size=SIZE)
    model, pixels = tiny_model(kind), noise(5, SIZE)
    with torch.no_grad():
        hidden = model(normalised(pixels, SIZE)).last_hidden_state
    pooled = {"resnet": lambda: hidden.mean(dim=(2, 3)), "swin": lambda: hidden.mean(dim=1)}
    expected = pooled.get(kind, lambda: hidden[:, 0])()
    found = encoder.encode(pixels)
    assert encoder.width == expected.shape[1] == found.shape[1]
    np.testing.assert_allclose(found, expected.numpy(), rtol=2e-4, atol=2e-5)
    assert encoder.is_pretrained
    assert encoder.name == "tiny"


@pytest.mark.parametrize("kind", list(TINY))
def test_embeddings_do_not_depend_on_the_other_pictures(tmp_path: Path, kind: str) -> None:
    encoder = load_encoder(str(tiny_encoder(tmp_path / "tiny", kind)), size=SIZE)
    pixels = noise(ROWS_TOGETHER + 3, SIZE)
    together = encoder.encode(pixels)
    for row in range(len(pixels)):
        assert (encoder.encode(pixels[row : row + 1]) == together[row]).all()


@pytest.mark.parametrize("kind", list(TINY))
def test_embeddings_do_not_depend_on_the_number_of_threads(tmp_path: Path, kind: str) -> None:
    encoder = load_encoder(str(tiny_encoder(tmp_path / "tiny", kind)), size=SIZE)
    pixels, before = noise(3 * ROWS_TOGETHER + 1, SIZE), torch.get_num_threads()
    expected = encoder.encode(pixels)
    try:
        for number in (1, 2, 3):
            torch.set_num_threads(number)
            assert (encoder.encode(pixels, number) == expected).all()
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("kind", list(TINY))
def test_every_kind_of_encoder_is_built_from_its_description(tmp_path: Path, kind: str) -> None:
    encoder = load_encoder(str(tiny_encoder(tmp_path / "tiny", kind)), size=SIZE)
    shapes = {name: array.shape for name, array in encoder.arrays().items()}
    again = materialised(from_description(encoder.describe(), None, shapes), encoder.arrays())
    assert again.fingerprint == encoder.fingerprint


@pytest.mark.parametrize("kind", ["vit", "dinov2"])
def test_a_transformer_looks_at_pictures_of_any_size(tmp_path: Path, kind: str) -> None:
    folder = str(tiny_encoder(tmp_path / "tiny", kind))
    assert load_encoder(folder).crop.size == TINY[kind]["image_size"]  # what it was made for
    larger = load_encoder(folder, size=48)
    assert larger.crop.size == 48
    values = larger.encode(noise(2, 48))
    assert values.shape == (2, 16)
    assert np.abs(values[0] - values[1]).max() > 1e-3


def test_the_class_token_of_two_towers(tmp_path: Path) -> None:
    """Of CLIP and its like, the one that looks at pictures."""
    torch.manual_seed(0)
    part = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    ids = {"vocab_size": 50, "max_position_embeddings": 8, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
    vision = part | {"image_size": SIZE, "patch_size": 8}
    model = transformers.CLIPModel(transformers.CLIPConfig(text_config=part | ids, vision_config=vision)).eval()
    model.save_pretrained(tmp_path)
    encoder = load_encoder(str(tmp_path))
    pixels = noise(2, SIZE)
    with torch.no_grad():
        expected = model.vision_model(normalised(pixels, SIZE)).last_hidden_state[:, 0]
    np.testing.assert_allclose(encoder.encode(pixels), expected.numpy(), rtol=2e-4, atol=2e-5)
    shapes = {name: array.shape for name, array in encoder.arrays().items()}
    again = materialised(from_description(encoder.describe(), None, shapes), encoder.arrays())
    assert (again.encode(pixels) == encoder.encode(pixels)).all()


# --- what they expect of pictures ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("processor", "size", "expected"),
    [
        ({"image_processor_type": "BitImageProcessor", "do_center_crop": True, "crop_size": 28,
          "size": {"shortest_edge": 40}}, None, Crop(40, 28)),
        ({"image_processor_type": "BitImageProcessor", "do_center_crop": True, "crop_size": 28,
          "size": {"shortest_edge": 40}}, 56, Crop(80, 56)),
        ({"image_processor_type": "ViTImageProcessor", "size": {"height": 28, "width": 28}}, None, Crop(32, 28)),
        ({"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 28}}, None, Crop(32, 28)),
    ],
)  # fmt: skip
def test_pictures_are_cut_as_the_processor_says(
    tmp_path: Path, encoder_folder: Path, processor: dict[str, Any], size: int | None, expected: Crop
) -> None:
    shutil.copytree(encoder_folder, tmp_path / "tiny")
    told = {"image_mean": [0.1, 0.2, 0.3], "image_std": [0.4, 0.5, 0.6], "do_normalize": True}
    (tmp_path / "tiny" / "preprocessor_config.json").write_text(json.dumps(told | processor))
    encoder = load_encoder(str(tmp_path / "tiny"), size=size)
    assert encoder.crop == expected
    assert (encoder.mean, encoder.deviation) == ((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))


def test_without_a_processor_the_usual(encoder_folder: Path) -> None:
    encoder = load_encoder(str(encoder_folder))
    assert encoder.crop == Crop(256, 224)
    assert (encoder.mean, encoder.deviation) == (IMAGENET_MEAN, IMAGENET_DEVIATION)


# --- random weights --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "width"), [("resnet18", 512), ("resnet50", 2048), ("vit", 768), ("dinov2", 384)])
def test_random_weights_need_no_file(name: str, width: int) -> None:
    encoder = load_encoder(f"random:{name}", size=SIZE)
    assert (encoder.width, encoder.crop.size) == (width, SIZE)
    assert encoder.name == f"random:{name}"
    assert not encoder.is_pretrained
    if name == "resnet18":
        assert encoder.encode(noise(1, SIZE)).shape == (1, width)


def test_a_seed_decides_random_weights(encoder_folder: Path) -> None:
    name = f"random:{encoder_folder}"
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = load_encoder(name, size=SIZE, seed=1)
    assert torch.equal(torch.get_rng_state(), before)  # nobody else's random numbers change
    torch.rand(3)
    assert load_encoder(name, size=SIZE, seed=1).fingerprint == first.fingerprint
    assert load_encoder(name, size=SIZE, seed=2).fingerprint != first.fingerprint
    assert first.name == "random:tiny"


def test_the_training_factor(encoder_folder: Path) -> None:
    folder = str(encoder_folder)
    random, trained = load_encoder(f"random:{folder}", size=SIZE, seed=4), load_encoder(folder, size=SIZE)
    for factor, end in ((0.0, random), (1.0, trained)):
        arrays = load_encoder(folder, size=SIZE, seed=4, factor=factor).arrays()
        assert all((array == end.arrays()[name]).all() for name, array in arrays.items())
    half = load_encoder(folder, size=SIZE, seed=4, factor=0.5).arrays()
    name = next(name for name in half if name.endswith("running_var"))
    np.testing.assert_allclose(half[name], (random.arrays()[name] + trained.arrays()[name]) / 2, rtol=1e-6)


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["resnet50", "someone/nothing", "random:someone/nothing"])
def test_weights_that_are_not_here(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for what in ("HF_HUB_CACHE", "AGENT_HARNESSES_PATH"):
        monkeypatch.setattr(f"huggingface_hub.constants.{what}", str(tmp_path / what), raising=False)
    monkeypatch.setattr("huggingface_hub.utils._detect_agent._registry", None, raising=False)
    with pytest.raises(MissingFileError) as caught:
        load_encoder(name)
    plain = name.removeprefix("random:")
    assert plain in str(caught.value)
    assert "--download" in str(caught.value)
    assert ("random:resnet50" in str(caught.value)) == (name == "resnet50")


def test_pickles_are_not_loaded(tmp_path: Path, encoder_folder: Path) -> None:
    folder = tmp_path / "pickled"
    shutil.copytree(encoder_folder, folder)
    torch.save(load_file(folder / "model.safetensors"), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()
    with pytest.raises(ArgumentError, match=r"pickled contains no encoder.*model\.safetensors"):
        load_encoder(str(folder))


def test_code_in_a_folder_is_not_run(tmp_path: Path, encoder_folder: Path) -> None:
    folder = tmp_path / "hostile"
    shutil.copytree(encoder_folder, folder)
    (folder / "mine.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    config = json.loads((folder / "config.json").read_text())
    config |= {"model_type": "mine", "auto_map": {"AutoConfig": "mine.Config", "AutoModel": "mine.Model"}}
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.raises(ArgumentError, match="custom code"):
        load_encoder(str(folder))
    assert not (tmp_path / "ran").exists()


def test_folders_that_are_damaged(tmp_path: Path, encoder_folder: Path) -> None:
    def broken(name: str) -> Path:
        shutil.copytree(encoder_folder, tmp_path / name)
        return tmp_path / name

    empty = tmp_path / "empty"
    empty.mkdir()
    short = broken("short")
    weights = short / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    text = broken("text")
    (text / "config.json").write_text("{")
    for folder in (empty, short, text):
        with pytest.raises(ArgumentError, match=f"{folder.name} contains no encoder"):
            load_encoder(str(folder))
    lacking = broken("lacking")
    arrays = load_file(lacking / "model.safetensors")
    name = next(name for name in arrays if name.endswith("running_mean"))
    save_file({each: array for each, array in arrays.items() if each != name}, lacking / "model.safetensors")
    with pytest.raises(ArgumentError, match="lacks 1 array of weights"):  # and not: random ones in their place
        load_encoder(str(lacking))


def test_weights_that_are_not_used_may_be_missing(tmp_path: Path) -> None:
    """Classifiers are saved without the pooler, which `AutoModel` has and embeddings do not use."""
    folder = tiny_encoder(tmp_path, "vit")
    arrays = load_file(folder / "model.safetensors")
    kept = {name: array for name, array in arrays.items() if "pooler" not in name}
    assert len(kept) < len(arrays)
    whole = load_encoder(str(folder)).encode(noise(2, SIZE))
    save_file(kept, folder / "model.safetensors", {"format": "pt"})
    assert (load_encoder(str(folder)).encode(noise(2, SIZE)) == whole).all()
    torch.rand(5)
    first = load_encoder(str(folder)).fingerprint
    torch.rand(5)
    assert load_encoder(str(folder)).fingerprint == first  # the cache finds it again


def test_models_that_look_at_no_pictures(tmp_path: Path) -> None:
    config = transformers.BertConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8
    )
    transformers.BertModel(config).save_pretrained(tmp_path)
    with pytest.raises(ArgumentError, match="are not image models"):
        load_encoder(str(tmp_path))


def test_sizes_and_names(encoder_folder: Path) -> None:
    for size in (0, -1, 5000):
        with pytest.raises(ArgumentError, match="image_size"):
            load_encoder(str(encoder_folder), size=size)
    for empty in ("", "random:"):
        with pytest.raises(ArgumentError, match="empty"):
            load_encoder(empty)
    with pytest.raises(ArgumentError, match=r"a picture of 4096 x 4096 pixels takes an array"):
        load_encoder("random:vit", size=4096)
    with pytest.raises(ArgumentError, match=r"does not accept pictures of 3 x 3 pixels"):
        load_encoder("random:dinov2", size=3)


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(ArgumentError, match="pip install transformers"):
        load_encoder("random:resnet18")


@pytest.mark.parametrize("value", [1e20, 1e30, 3e38, float("nan")])
def test_weights_that_cannot_be_used_are_refused_by_file(tmp_path: Path, value: float) -> None:
    path = tiny_encoder(tmp_path / "tiny") / "model.safetensors"
    arrays = load_file(path)
    name = next(name for name in arrays if name.endswith("convolution.weight"))
    save_file(arrays | {name: torch.full_like(arrays[name], value)}, path, {"format": "pt"})
    with pytest.raises(ArgumentError, match=r"tiny/model\.safetensors: the weights are too large or not finite"):
        load_encoder(str(path.parent), size=SIZE)
