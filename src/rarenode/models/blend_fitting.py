"""Fitting a `Blend`: the weights of its models, from predictions for rows that they were not trained on.

They minimise the log loss over all cells (row, node), a proper score: no other forecast has a better expectation than
the true probabilities. The log odds of the models enter linearly, so this is a logistic regression without intercept
and with weights of at least 0. As in ridge regression, a penalty keeps them from growing without bound where few rows
are all predicted right; it draws them towards those of the geometric mean. With m models, n rows and L_r the log loss
of a row,

    w = argmin  n mean_r(L_r) + LAMBDA sum_m (w_m - 1/m)^2

The mean is by sample weight, and n is how many rows of equal weight would be as much evidence, (sum_r v_r)^2 / sum_r
v_r^2 (Kish): only ratios of sample weights matter, and rows of weight 0 do not. The minimum is unique. Where models err
on thousands of rows, the penalty hardly moves it: by 0.0001 on Cellcycle (docs/decision-protocol.md).

A model is left out if the others are nearly as good without it: it would only cost time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from rarenode._io.compiled import compiled
from rarenode.models.blend import MOST_WEIGHT, log_odds
from rarenode.models.model import Floats

MOST_CELLS = 1_000_000
"""Cells whose loss is computed, at most; rows are drawn if there are more."""
PENALTY = 1.0
"""LAMBDA."""
NEGLIGIBLE = 0.001
"""How much the loss may grow, relatively, if a model is left out."""
LEAST_WEIGHT = 1e-3
"""A model with a smaller weight is left out."""


@dataclass(frozen=True)
class BlendWeights:
    """Weights of the models of a blend, in their order."""

    weights: tuple[float, ...]
    """0 for a model that is left out; 1 for a single one that is not."""
    loss: float
    """The log loss of a row, with these weights."""
    loss_without: tuple[float, ...]
    """What it would be without each model, with other weights for the rest; infinity for the only one."""

    @property
    def kept(self) -> tuple[int, ...]:
        """Places of the models that are not left out."""
        return tuple(place for place, weight in enumerate(self.weights) if weight > 0)


def learn_weights(
    parts: Sequence[Floats],
    Y: NDArray[np.bool_],
    *,
    shares: NDArray[np.float64],
    scored: NDArray[np.bool_],
    known: NDArray[np.bool_] | None = None,
    sample_weight: NDArray[np.float32] | None = None,
    required: Sequence[int] = (),
    seed: int = 0,
) -> BlendWeights:
    """The weights with the smallest penalised log loss, and which models are left out.

    Args:
        parts: of each model, probabilities (rows, nodes) of rows that it was not trained on.
        Y: their labels.
        shares: (nodes,), the share of training rows that have each node.
        scored: (nodes,), the nodes whose loss counts.
        known: (rows, nodes), where labels are known; None: everywhere.
        sample_weight: (rows,), how much each row counts.
        required: places of models that are never left out.
        seed: decides which rows are drawn, if there are many.
    """
    columns = np.flatnonzero(scored & (shares > 0) & (shares < 1))
    rows = _some_rows(len(Y), len(columns), seed)
    cells = np.ix_(rows, columns)
    importance = np.ones(len(rows)) if sample_weight is None else sample_weight[rows].astype(np.float64)
    importance /= importance.sum() or 1.0
    evidence = 1 / float(importance @ importance or 1.0)
    counts = np.repeat(importance, len(columns))
    if known is not None:
        counts = counts * known[cells].ravel()
    present = Y[cells].ravel()
    odds = np.stack([log_odds(probs[cells], shares[columns]).ravel() for probs in parts])

    def best(places: Sequence[int]) -> tuple[float, NDArray[np.float64]]:
        weights = np.zeros(len(parts))
        if not places:
            return math.inf, weights
        some = np.ascontiguousarray(odds[list(places)])
        if len(places) == 1:  # it predicts alone, so it is taken as it is
            weights[list(places)] = 1.0
            return _loss(some, present, counts, np.ones(1))[0], weights
        equal = np.full(len(places), 1 / len(places))

        def penalised(w: NDArray[np.float64]) -> tuple[float, NDArray[np.float64]]:
            loss, slopes = _loss(some, present, counts, w)
            off = w - equal
            return loss + PENALTY / evidence * float(off @ off), slopes + 2 * PENALTY / evidence * off

        found = minimize(
            penalised, equal, jac=True, method="L-BFGS-B", bounds=[(0.0, MOST_WEIGHT)] * len(places),
            options={"ftol": 1e-15, "gtol": 1e-9},
        )  # fmt: skip
        weights[list(places)] = np.round(found.x, 4)
        return _loss(some, present, counts, found.x)[0], weights

    kept = list(range(len(parts)))
    loss, weights = best(kept)
    while len(kept) > 1:
        without = {place: best([p for p in kept if p != place]) for place in kept if place not in required}
        if not without:
            break
        weightless = [place for place in without if weights[place] < LEAST_WEIGHT]
        place = min(weightless or without, key=lambda candidate: without[candidate][0])
        if not weightless and without[place][0] > (1 + NEGLIGIBLE) * loss:
            break
        kept.remove(place)
        loss, weights = without[place]
    others = [best([p for p in kept if p != place])[0] if place in kept else loss for place in range(len(parts))]
    weights[kept] = np.maximum(weights[kept], LEAST_WEIGHT)  # of one that is required
    return BlendWeights(tuple(weights.tolist()), loss, tuple(others))


def _some_rows(rows: int, columns: int, seed: int) -> NDArray[np.int64]:
    most = max(MOST_CELLS // max(columns, 1), 1)
    if rows <= most:
        return np.arange(rows)
    return np.sort(np.random.default_rng(seed).choice(rows, most, replace=False))


@compiled()
def _loss(
    odds: NDArray[np.float64], present: NDArray[np.bool_], counts: NDArray[np.float64], weights: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    """The log loss of all cells and its gradient; one after the other, so that the bits are always the same."""
    models, cells = odds.shape
    loss, gradient = 0.0, np.zeros(models)
    for cell in range(cells):
        if counts[cell] == 0.0:
            continue
        z = 0.0
        for model in range(models):
            z += weights[model] * odds[model, cell]
        # log(1 + exp(z)) without overflow
        loss += counts[cell] * (max(z, 0.0) + math.log1p(math.exp(-abs(z))) - (z if present[cell] else 0.0))
        error = counts[cell] * (1.0 / (1.0 + math.exp(-z)) - (1.0 if present[cell] else 0.0))
        for model in range(models):
            gradient[model] += error * odds[model, cell]
    return loss, gradient
