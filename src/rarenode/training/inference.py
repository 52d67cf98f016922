"""From a model's logits to probabilities, in blocks of rows so that memory stays bounded.

Every member is constrained by itself, then members are averaged, as in the paper. Both keep a parent at
least as probable as its child to the last bit: rounding never turns an order around, and each sum runs over the
members in the same order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray

from rarenode.hierarchy import Hierarchy
from rarenode.models import MlpEnsemble
from rarenode.objective import constrain

Floats = NDArray[np.float32]
Logits = Callable[[Floats], Floats]
"""(rows, features) -> unconstrained logits (models, rows, nodes)."""

CELLS_AT_A_TIME = 1 << 23


def blocks(rows: int, shape: MlpEnsemble) -> Iterator[slice]:
    """Slices of rows whose widest layer has a bounded number of cells over all models."""
    step = max(1, CELLS_AT_A_TIME // (shape.models * max(shape.nodes, shape.hidden, shape.features)))
    for first in range(0, rows, step):
        yield slice(first, min(first + step, rows))


def sigmoid(logits: Floats) -> Floats:
    """Probabilities, without overflow."""
    return np.asarray(torch.from_numpy(logits).sigmoid().numpy())


def mean_probs(logits: Logits, X: Floats, shape: MlpEnsemble, hierarchy: Hierarchy) -> Floats:
    """The members' mean of constrained probabilities, (rows, nodes)."""
    result = np.empty((len(X), shape.nodes), dtype=np.float32)
    for rows in blocks(len(X), shape):
        members = constrain(sigmoid(logits(X[rows])), hierarchy)
        total = np.zeros(members.shape[1:], dtype=np.float64)
        for member in members:
            total += member
        result[rows] = total / len(members)
    return result
