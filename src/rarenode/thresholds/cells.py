"""Cells (row, node): probabilities beside their labels, walked over in blocks so that working copies stay small."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode.errors import LabelError
from rarenode.hierarchy.labels import as_indicator
from rarenode.thresholds.thresholds import as_probabilities

CELLS_AT_ONCE = 2**20


def as_cells(probs: Any, Y: Any) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Probabilities and labels of the same rows and nodes, or an error that says what does not fit."""
    given, truth = as_probabilities(probs), as_indicator(Y, "labels")
    if given.shape != truth.shape:
        raise LabelError(f"labels {truth.shape} and probabilities {given.shape} must have the same shape")
    return given, truth


def lines_at_once(cells: int) -> int:
    """How many rows, or columns, of so many cells make a block."""
    return max(1, CELLS_AT_ONCE // max(1, cells))


def row_blocks(shape: tuple[int, ...]) -> Iterator[slice]:
    """The rows in slices of one block each."""
    rows, nodes = shape
    at_once = lines_at_once(nodes)
    return (slice(first, first + at_once) for first in range(0, rows, at_once))
