"""Small pictures with labels, and an encoder that is small enough to learn them in a test."""

from __future__ import annotations

import numpy as np
import torch

from rarenode import Hierarchy
from rarenode.data.dataset import Dataset
from rarenode.models.pixels import PixelEncoder, PixelInput

SIZE = 8
PIXELS = PixelInput(SIZE, (0.5, 0.4, 0.6), (0.25, 0.2, 0.3))


def pictures(rows: int = 64, seed: int = 0) -> Dataset:
    """Red or blue pictures, with lines that lie or stand: 2 kinds of colour, each with 2 kinds of lines."""
    rng = np.random.default_rng(seed)
    kind = rng.integers(4, size=rows)
    X = rng.integers(0, 60, size=(rows, SIZE, SIZE, 3))
    X[np.arange(rows), :, :, np.where(kind < 2, 0, 2)] += 120
    for row in range(rows):
        lines = X[row] if kind[row] % 2 else X[row].swapaxes(0, 1)
        lines[rng.integers(2) :: 2] += 70
    names = ["red", "red lying", "red standing", "blue", "blue lying", "blue standing"]
    tree = Hierarchy.from_edges([(name.split()[0], name) for name in names if " " in name])
    Y = np.zeros((rows, len(tree)), dtype=np.bool_)
    for row, (colour, lines_) in enumerate(zip(kind < 2, kind % 2, strict=True)):
        name = f"{'red' if colour else 'blue'} {'lying' if lines_ else 'standing'}"
        Y[row, tree.index[name]] = True
    return Dataset.from_arrays(X.astype(np.uint8).reshape(rows, -1), Y, tree)


def tiny_module(seed: int = 0, dropout: float = 0.0) -> torch.nn.Module:
    """Convolutions with batch normalisation: (rows, 3, size, size) -> (rows, 6)."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        return torch.nn.Sequential(
            torch.nn.Conv2d(3, 6, 3, padding=1),
            torch.nn.BatchNorm2d(6),
            torch.nn.ReLU(),
            torch.nn.Dropout(dropout),
            torch.nn.Conv2d(6, 6, 3, padding=1),
            torch.nn.BatchNorm2d(6),
            torch.nn.ReLU(),
            torch.nn.AdaptiveAvgPool2d(1),
            torch.nn.Flatten(),
        )


def tiny_encoder(seed: int = 0, dropout: float = 0.0) -> PixelEncoder:
    return PixelEncoder(tiny_module(seed, dropout), PIXELS)
