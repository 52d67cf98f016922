"""The rows that a model is least sure of, and their nodes that it is least sure of.

The *doubt* about a node with the probability p is the binary entropy -p log2 p - (1 - p) log2(1 - p): 1 bit at one
half, 0 at 0 and 1. That of a row is the sum over its scored nodes. How nodes are decided has no say in it. These are
rows to look at, or to annotate again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

MOST_ROWS = 20
MOST_DOUBTS = 4
ROWS_AT_A_TIME = 256


@dataclass(frozen=True)
class Doubt:
    """A node of a row that the model is unsure of."""

    column: int
    probability: float
    decided: bool
    carried: bool


@dataclass(frozen=True)
class UnsureRow:
    """A row, counted from 0 in the order of the data."""

    row: int
    bits: float
    """The doubt about all its scored nodes."""
    wrong: int
    """Scored nodes that were decided wrongly."""
    doubts: tuple[Doubt, ...]
    """The most doubtful first."""


def find_unsure_rows(
    Y: NDArray[np.bool_],
    probs: NDArray[Any],
    decided: NDArray[np.bool_],
    scored: NDArray[np.bool_],
    numbers: NDArray[np.int64] | None = None,
    most: int = MOST_ROWS,
) -> tuple[UnsureRow, ...]:
    """The most doubtful rows, the first first; of equal ones the earlier. ``numbers`` is what rows are called."""
    bits = np.empty(len(probs))
    for first in range(0, len(probs), ROWS_AT_A_TIME):
        some = slice(first, first + ROWS_AT_A_TIME)
        bits[some] = _bits(probs[some], scored).sum(axis=1)
    chosen = np.argsort(-bits, kind="stable")[:most]
    return tuple(
        UnsureRow(
            row=row if numbers is None else int(numbers[row]),
            bits=float(bits[row]),
            wrong=int(np.count_nonzero((Y[row] != decided[row]) & scored)),
            doubts=_doubts(Y[row], probs[row], decided[row], scored),
        )
        for row in chosen.tolist()
    )


def _doubts(
    y: NDArray[np.bool_], p: NDArray[Any], decided: NDArray[np.bool_], scored: NDArray[np.bool_]
) -> tuple[Doubt, ...]:
    bits = _bits(p, scored)
    columns = np.argsort(-bits, kind="stable")[:MOST_DOUBTS]
    return tuple(
        Doubt(column, float(p[column]), bool(decided[column]), bool(y[column]))
        for column in columns.tolist()
        if bits[column] > 0  # of the others it is sure, or they do not count
    )


def _bits(probs: NDArray[Any], scored: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The doubt about each node; 0 for nodes that are not scored."""
    p = probs.astype(np.float64)
    return np.asarray(np.where(scored, (entr(p) + entr(1 - p)) / np.log(2), 0.0))
