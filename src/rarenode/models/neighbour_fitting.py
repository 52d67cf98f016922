"""Fitting `Neighbours`: how far rows are from each other, and which form, scale and metric predict them best.

Every row is predicted from all others, so nothing is held out. Of many rows some are kept; see `draw_rows`.
"""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from rarenode._io.text import counted
from rarenode.errors import DataError, LabelError
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.labels import Labels, as_known
from rarenode.models.kept_rows import draw_rows
from rarenode.models.metric_learning import TrainingRows, learn_metric
from rarenode.models.model import Floats, check_input
from rarenode.models.neighbours import Form, Neighbours, in_form, measure_widths
from rarenode.models.training_labels import Lists, checked_weights, weighted_sums

SCALES = (0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1.0)
"""The scales that `fit_neighbours` compares."""
MOST_COMPARED = 1000
"""Rows that it predicts from all others to compare them, at most."""
MOST_KEPT = 20_000
"""Rows that a model keeps, at most."""


def fit_neighbours(
    X: Floats,
    Y: Labels,
    *,
    seed: int = 0,
    sample_weight: NDArray[np.float32] | None = None,
    known: NDArray[np.bool_] | None = None,
    hierarchy: Hierarchy | None = None,
) -> Neighbours:
    """Choose the form, the scale and the metric that predict training rows best, and keep the rows.

    Forms and scales are compared by the log loss of up to 1,000 rows, each predicted from all others. The metric is
    learned for the better form; see `learn_metric`. The time is in proportion to rows x rows x features.

    Of more than 20,000 rows, 20,000 are kept: all rows of rare nodes, and some of the others, which count more to make
    up for those that are not; see `draw_rows`. The time of a fit then grows no further, and that of a prediction is in
    proportion to the rows that are predicted.

    Args:
        X: features (rows, features), finite.
        Y: labels (rows, nodes), dense or sparse, closed under ancestors.
        seed: decides which rows are compared, and kept, if there are more.
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
    share = weighted_sums(weights, Y) / np.maximum(
        weights.sum() if known is None else weighted_sums(weights, known), 1e-30
    )
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))
    labels = Lists.of(Y)
    if len(X) > MOST_KEPT:
        kept, times = draw_rows(labels, Y.shape[1], MOST_KEPT, rng)
        known = None if known is None else known[kept]
        X, Y, weights = X[kept], Y[kept], weights[kept] * times
        labels = Lists.of(Y)
    unknown = None if known is None else Lists.of(~known)
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
    compared = np.sort(rng.permutation(len(X))[:MOST_COMPARED])
    best: tuple[float, Form, float, TrainingRows] | None = None
    usual = np.ones(X.shape[1], dtype=np.float32)
    for form in get_args(Form):
        rows = TrainingRows.of(in_form(X, form), share, lists)
        widths = measure_widths(rows.points)
        scales = SCALES if len(X) > 1 else SCALES[:1]
        losses = rows.losses(compared, widths, usual, scales) @ weights[compared]
        for scale, loss in zip(scales, losses.tolist(), strict=True):
            if best is None or loss < best[0]:
                best = loss, form, scale, rows
    assert best is not None  # noqa: S101 (there are forms and scales)
    _, form, scale, rows = best
    metric, scale = learn_metric(rows, scale, rng)
    points = rows.points * metric
    return Neighbours(Y.shape[1], form, scale, points, metric, measure_widths(points), hierarchy=hierarchy, **lists)


def _check_training(X: Floats, Y: Labels) -> None:
    if Y.dtype != np.bool_ or Y.ndim != 2 or not Y.shape[1]:
        raise LabelError(f"Y must be boolean of the shape (rows, nodes), got {Y.dtype} {Y.shape}")
    check_input(X, None)
    if len(X) != Y.shape[0]:
        raise DataError(f"X has {counted(len(X), 'row')} and Y {Y.shape[0]}")
    if not len(X):
        raise DataError("neighbours need at least one training row")
