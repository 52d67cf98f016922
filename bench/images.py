"""Pictures a second through ResNet-50 at 224 pixels, with decoding, against a plain loop of the transformers library.

The plain loop opens a batch of pictures, prepares it with the library's processor and computes it without gradients.
Both see the same JPEG files, in one run. The weights are random: they do not change the speed.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
from PIL import Image
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.measuring import in_own_process
from rarenode.data.images import Images
from rarenode.data.reef import draw_reef
from rarenode.engines import available_threads
from rarenode.models.pretrained import load_encoder
from rarenode.training.embedding import embed

PICTURES, BATCH, WIDTH, HEIGHT, ROUNDS = 96, 8, 1024, 768, 3
KINDS = ("plain loop", "rarenode", "plain network alone", "rarenode network alone", "cache")


def draw_pictures(folder: Path) -> list[Path]:
    """Photographs of an ordinary size: scenes, enlarged."""
    paths = []
    for number, scene in enumerate(draw_reef(PICTURES, 192, 0).pictures):
        paths.append(folder / f"{number}.jpg")
        Image.fromarray(scene).resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC).save(paths[-1], quality=90)
    return paths


def measure_one(kind: str) -> dict[str, float]:
    """Pictures a second, the median of some rounds, in this process."""
    encoder = load_encoder("random:resnet50")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = draw_pictures(folder)
        work = _work(kind, encoder, paths, folder)
        work(0)  # the first time, memory is allocated and code is chosen
        seconds = []
        for number in range(1, ROUNDS + 1):
            began = perf_counter()
            work(number)
            seconds.append(perf_counter() - began)
    return {"pictures_per_second": PICTURES / float(np.median(seconds))}


def _work(kind: str, encoder: Any, paths: list[Path], folder: Path) -> Callable[[int], object]:
    model = encoder.module.model.eval()
    if kind == "plain loop":
        from transformers import ConvNextImageProcessor  # noqa: PLC0415

        processor = ConvNextImageProcessor(size={"shortest_edge": 224}, crop_pct=224 / 256)
        return lambda _: [_plain(model, processor, paths[i : i + BATCH]) for i in range(0, len(paths), BATCH)]
    if kind == "plain network alone":
        images = torch.rand(BATCH, 3, 224, 224)
        return lambda _: [_compute(model, images) for _ in range(0, len(paths), BATCH)]
    if kind == "rarenode network alone":
        pixels = np.random.default_rng(0).integers(0, 256, (PICTURES, encoder.input.width), dtype=np.uint8)
        return lambda _: encoder.encode(pixels, available_threads())
    if kind == "rarenode":
        return lambda number: embed(Images.from_paths(paths), encoder, cache=folder / str(number))
    return lambda _: embed(Images.from_paths(paths), encoder, cache=folder / "kept")


def _plain(model: Any, processor: Any, paths: list[Path]) -> Any:
    images = [Image.open(path).convert("RGB") for path in paths]
    return _compute(model, processor(images, return_tensors="pt")["pixel_values"])


@torch.no_grad()
def _compute(model: Any, images: torch.Tensor) -> Any:
    return model(images).pooler_output.flatten(1)


def run() -> list[dict[str, Any]]:
    """All kinds; a record for each."""
    kinds = track(KINDS, description="images", console=Console(stderr=True))
    return [{"name": kind, "pictures": PICTURES, **in_own_process("bench.images", kind)} for kind in kinds]


def show(records: list[dict[str, Any]]) -> None:
    """Print the records."""
    table = Table(title=f"ResNet-50 at 224 pixels, {PICTURES} JPEG files of {WIDTH} x {HEIGHT}")
    table.add_column("what")
    for column in ("pictures/s", "times the plain loop"):
        table.add_column(column, justify="right")
    plain = records[0]["pictures_per_second"]
    for record in records:
        speed = record["pictures_per_second"]
        table.add_row(record["name"], f"{speed:.1f}", f"{speed / plain:.2f}")
    Console(width=110).print(table)


if __name__ == "__main__":
    print(json.dumps(measure_one(sys.argv[2])))
