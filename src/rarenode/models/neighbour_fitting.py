"""Fitting `Neighbours`: how far rows are from each other, and which form and scale predict them best.

Every row is predicted from all others, so nothing is held out. The time is in proportion to rows x rows x features.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, get_args

import numba
import numpy as np
from numpy.typing import NDArray

from rarenode._io.compiled import compiled, start_threads
from rarenode._io.text import counted
from rarenode.errors import DataError, LabelError
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.labels import as_known
from rarenode.models.model import Floats, check_input
from rarenode.models.neighbours import (
    ROWS_AT_A_TIME,
    Form,
    Neighbours,
    add_labels,
    in_form,
    square_distance,
    tenth,
    weigh,
)
from rarenode.models.training_labels import Integers, Lists, checked_weights

SCALES = (0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
"""The scales that `fit_neighbours` compares."""
MOST_COMPARED = 1000
"""Rows that it predicts from all others to compare them, at most."""
PRIOR_SHARE = 0.02
"""How much of a node's overall share is mixed in there: a logarithm cannot take 0."""
LEAST_WIDTH = 1e-4
"""The smallest width, as a share of the usual length of a row."""


def fit_neighbours(
    X: Floats,
    Y: NDArray[np.bool_],
    *,
    seed: int = 0,
    sample_weight: NDArray[np.float32] | None = None,
    known: NDArray[np.bool_] | None = None,
    hierarchy: Hierarchy | None = None,
) -> Neighbours:
    """Choose the form and the scale that predict training rows best, each from all others, and keep the rows.

    They are compared by the log loss of up to 1,000 rows. The time is in proportion to rows x rows x features.

    Args:
        X: features (rows, features), finite.
        Y: labels (rows, nodes), closed under ancestors.
        seed: decides which rows are compared, if there are more.
        sample_weight: (rows,), how much each row counts; rows that count 0 are left out.
        known: (rows, nodes), where labels are known; None: everywhere.
        hierarchy: of the nodes; required where labels are unknown.

    >>> X = np.array([[0.0], [0.1], [5.0]], dtype=np.float32)
    >>> Y = np.array([[1, 0], [1, 0], [1, 1]], dtype=bool)
    >>> fit_neighbours(X, Y).predict_proba(X).round(2)
    array([[1., 0.],
           [1., 0.],
           [1., 1.]], dtype=float32)
    """
    _check_training(X, Y)
    weights = np.ones(len(X)) if sample_weight is None else checked_weights(sample_weight, len(X))
    known = as_known(known, Y.shape)
    if not weights.all():
        known = None if known is None else known[weights > 0]
        X, Y, weights = X[weights > 0], Y[weights > 0], weights[weights > 0]
    labels, unknown = Lists.of(Y), None if known is None else Lists.of(~known)
    lists: dict[str, NDArray[Any]] = {
        "label_starts": labels.starts.astype(np.int32),
        "label_columns": labels.columns.astype(np.int32),
        "row_weights": weights,
    }
    if unknown is not None:
        lists |= {
            "unknown_starts": unknown.starts.astype(np.int32),
            "unknown_columns": unknown.columns.astype(np.int32),
        }
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))
    compared = np.sort(rng.permutation(len(X))[:MOST_COMPARED])
    best: tuple[float, Neighbours] | None = None
    for form in get_args(Form):
        points = in_form(X, form)
        widths = _widths_of(points)
        losses = _losses(points, widths, compared, Y, known, weights, lists)
        place = int(np.argmin(losses))
        if best is None or losses[place] < best[0]:
            model = Neighbours(Y.shape[1], form, SCALES[place], points, widths, hierarchy=hierarchy, **lists)
            best = float(losses[place]), model
    assert best is not None  # noqa: S101 (there is a form)
    return best[1]


def _widths_of(points: Floats) -> Floats:
    """The distance from each row to its 10th nearest other row.

    At least a ten-thousandth of the usual length of a row, however many rows are equal: smaller distances are rounding.
    """
    start_threads()
    widths = np.empty(len(points), dtype=np.float32)
    _measure_widths(points, widths)
    length = math.sqrt(np.einsum("ij,ij->", points, points, dtype=np.float64) / len(points))
    return np.maximum(widths, np.float32(LEAST_WIDTH * length or 1.0))


def _losses(
    points: Floats,
    widths: Floats,
    compared: NDArray[np.int64],
    Y: NDArray[np.bool_],
    known: NDArray[np.bool_] | None,
    weights: NDArray[np.float64],
    lists: Mapping[str, NDArray[Any]],
) -> NDArray[np.float64]:
    """For each scale, the log loss of rows that are predicted from all others."""
    known_weight = weights.sum() if known is None else weights @ known
    share = weights @ Y / np.maximum(known_weight, 1e-30)
    start_threads()
    nothing = np.empty(0, dtype=np.int32)
    losses = np.empty((len(compared), len(SCALES)))
    _compare_scales(
        points, widths, float(widths.min()), np.array(SCALES), compared, share,
        lists["label_starts"], lists["label_columns"], weights,
        lists.get("unknown_starts", nothing), lists.get("unknown_columns", nothing), losses,
    )  # fmt: skip
    return weights[compared] @ losses


def _check_training(X: Floats, Y: NDArray[np.bool_]) -> None:
    if Y.dtype != np.bool_ or Y.ndim != 2 or not Y.shape[1]:
        raise LabelError(f"Y must be boolean of the shape (rows, nodes), got {Y.dtype} {Y.shape}")
    check_input(X, None)
    if len(X) != len(Y):
        raise DataError(f"X has {counted(len(X), 'row')} and Y {len(Y)}")
    if not len(X):
        raise DataError("neighbours need at least one training row")


# --- compiled ------------------------------------------------------------------------------------------------------


@compiled(parallel=True)
def _measure_widths(points: Floats, widths: Floats) -> None:
    rows = points.shape[0]
    for block in numba.prange((rows + ROWS_AT_A_TIME - 1) // ROWS_AT_A_TIME):
        first, last = block * ROWS_AT_A_TIME, min(rows, (block + 1) * ROWS_AT_A_TIME)
        distances = np.empty((ROWS_AT_A_TIME, rows), np.float32)
        for other in range(rows):
            for row in range(first, last):
                distances[row - first, other] = square_distance(points[row], points[other])
        for row in range(first, last):
            widths[row] = math.sqrt(tenth(distances[row - first], row))


@compiled(parallel=True)
def _compare_scales(
    points: Floats,
    widths: Floats,
    least_width: float,
    scales: NDArray[np.float64],
    compared: NDArray[np.int64],
    share: NDArray[np.float64],
    label_starts: Integers,
    label_columns: Integers,
    row_weights: NDArray[np.float64],
    unknown_starts: Integers,
    unknown_columns: Integers,
    losses: NDArray[np.float64],
) -> None:
    """Write the log loss of each compared row for each scale, predicted from all other rows."""
    training_rows, nodes = points.shape[0], share.shape[0]
    for place in numba.prange(compared.shape[0]):
        row = compared[place]
        distances = np.empty(training_rows, np.float32)
        weights = np.empty(training_rows, np.float64)
        sums, unknown = np.empty(nodes, np.float64), np.empty(nodes, np.float64)
        for other in range(training_rows):
            distances[other] = square_distance(points[row], points[other])
        width = max(math.sqrt(tenth(distances, row)), least_width)
        for number in range(scales.shape[0]):
            losses[place, number] = 0.0
            if training_rows == 1:
                continue
            weigh(distances, width, widths, scales[number], row_weights, weights)
            add_labels(weights, label_starts, label_columns, unknown_starts, unknown_columns, share, sums, unknown)
            for node in range(nodes):
                sums[node] = (1 - PRIOR_SHARE) * sums[node] + PRIOR_SHARE * share[node]
            # A node whose share is 0 or 1 costs nothing: its rows all agree.
            for i in range(label_starts[row], label_starts[row + 1]):
                node = label_columns[i]
                losses[place, number] -= math.log(sums[node])
                sums[node] = 0.0
            if unknown_columns.shape[0] > 0:
                for i in range(unknown_starts[row], unknown_starts[row + 1]):
                    sums[unknown_columns[i]] = 0.0
            for node in range(nodes):
                losses[place, number] -= math.log1p(-sums[node])
