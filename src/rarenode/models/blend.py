"""`Blend`: several models over the same features and nodes, whose log odds are averaged.

With p_k the probability of model k for a node, w_k its weight and q the share of training rows that have the node,

    logit p = sum_k w_k logit((1 - e) p_k + e q),    e = 0.01

The weights are at least 0 and add up to 1. Where one model is certain that a node is absent, as a forest often is, the
others still rank the rows: it is e q for that model, and not 0. Mean and logit keep the order of probabilities, so a
parent stays as probable as its child but for rounding, which the max constraint puts right.

`fit_weights` finds the weights for which held-out rows have the least log loss, a proper score. In log odds the mean is
linear in the weights, so the loss is convex, and has one minimum.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Self

import numba
import numpy as np
from numpy.typing import NDArray

from rarenode._io.compiled import compiled, start_threads
from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy
from rarenode.models.forest import Forest
from rarenode.models.mlp import Mlp
from rarenode.models.model import Floats, Layout, Model, Output, check_arrays
from rarenode.models.neighbours import Neighbours
from rarenode.objective import constrain

MODELS: dict[str, type[Model]] = {Mlp.kind: Mlp, Forest.kind: Forest, Neighbours.kind: Neighbours}
"""Kind -> model that a blend may contain."""
FLOOR = 0.01
"""e: how much of a node's share is mixed into its probability."""
LEAST = 1e-9
"""And what is left of it at least where no training row has the node, or at most where all have."""
LEAST_WEIGHT = 0.05
"""A model of less weight is left out."""
MOST_CELLS = 2_000_000
"""Cells (row, node) to which weights are fitted, at most."""
SHARES = "shares"
"""The array of a blend itself."""


@dataclass(frozen=True, eq=False)
class Blend:
    """Several models over the same features and nodes. The uncertainty is that of the first."""

    models: tuple[Model, ...]
    weights: tuple[float, ...]
    """Of each model; they add up to 1."""
    shares: NDArray[np.float64]
    """(nodes,): q, the share of training rows that have each node, coherent as probabilities are."""
    hierarchy: Hierarchy
    kind: ClassVar[str] = "blend"

    def __post_init__(self) -> None:
        if len(self.models) < 2 or len({model.kind for model in self.models}) < len(self.models):
            raise ArgumentError("a blend needs at least two models of different kinds")
        if len({(model.n_features, model.n_nodes) for model in self.models}) > 1:
            raise ArgumentError("the models of a blend must have the same features and nodes")
        numbers = [w for w in self.weights if isinstance(w, float) and 0 < w < 1]
        if len(numbers) != len(self.weights) or len(numbers) != len(self.models) or abs(sum(numbers) - 1) > 1e-6:
            raise ArgumentError("the weights of a blend must be above 0, one for each model, and add up to 1")
        if self.n_nodes != len(self.hierarchy):
            raise ArgumentError(f"the blend has {self.n_nodes} nodes, and the hierarchy {len(self.hierarchy)}")
        q = self.shares
        if q.dtype != np.float64 or q.shape != (self.n_nodes,) or not ((q >= 0) & (q <= 1)).all():
            raise ArgumentError("the shares of a blend must be a number from 0 to 1 for each node")

    @classmethod
    def of(cls, models: Sequence[Model], shares: NDArray[np.float64], hierarchy: Hierarchy) -> Self:
        """A blend of models of equal weight."""
        return cls(tuple(models), (1 / len(models),) * len(models), shares, hierarchy)

    @property
    def n_features(self) -> int:
        """Columns of the input."""
        return self.models[0].n_features

    @property
    def n_nodes(self) -> int:
        """Columns of the output."""
        return self.models[0].n_nodes

    def compute(self, X: Floats, *, highest: bool = False, uncertainty: str | None = None) -> Output:
        """See `Model.compute`."""
        outputs = [
            model.compute(X, highest=highest, uncertainty=None if place else uncertainty)
            for place, model in enumerate(self.models)
        ]
        each = [output.probs if output.highest is None else output.highest for output in outputs]
        return Output(
            probs=self.pool([output.probs for output in outputs]),
            highest=reduce(np.maximum, each) if highest else None,
            uncertainty=outputs[0].uncertainty,
        )

    def pool(self, probs: Sequence[Floats]) -> Floats:
        """The probabilities of the blend, from those of each model."""
        start_threads()
        pooled = np.empty(probs[0].shape, dtype=np.float32)
        _pool(np.stack(probs), np.array(self.weights), self.shares, pooled)
        return constrain(pooled, self.hierarchy)

    def describe(self) -> dict[str, Any]:
        """See `Model.describe`."""
        models = [{"kind": model.kind} | model.describe() for model in self.models]
        return {"models": models, "weights": list(self.weights)}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """See `Model.arrays`; each model's arrays begin with its kind."""
        parts = {f"{model.kind}.{name}": array for model in self.models for name, array in model.arrays().items()}
        return {SHARES: self.shares, **parts}

    @classmethod
    def layout(cls, description: Mapping[str, Any]) -> Layout:
        """See `Model.layout`."""
        parts = _parts(description)
        nodes = parts[next(iter(parts))].get("nodes")
        if not isinstance(nodes, int) or isinstance(nodes, bool) or nodes < 1:
            raise ArgumentError(f"nodes must be a whole number of at least 1, got {nodes!r}")
        layout: Layout = {SHARES: (np.dtype(np.float64), (nodes,))}
        for kind, part in parts.items():
            layout |= {f"{kind}.{name}": form for name, form in MODELS[kind].layout(part).items()}
        return layout

    @classmethod
    def from_arrays(
        cls, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], hierarchy: Hierarchy
    ) -> Self:
        """See `Model.from_arrays`."""
        check_arrays(arrays, cls.layout(description))
        models = tuple(
            MODELS[kind].from_arrays(
                part,
                {n.removeprefix(f"{kind}."): array for n, array in arrays.items() if n.startswith(f"{kind}.")},
                hierarchy,
            )
            for kind, part in _parts(description).items()
        )
        return cls(models, tuple(description["weights"]), arrays[SHARES], hierarchy)


def fit_weights(
    probs: Sequence[Floats],
    Y: NDArray[np.bool_],
    shares: NDArray[np.float64],
    *,
    scored: NDArray[np.bool_],
    known: NDArray[np.bool_] | None = None,
    seed: int = 0,
) -> tuple[float, ...]:
    """The weights of models for which held-out rows have the least log loss; 0 for a model that is left out.

    A model whose weight would be below 0.05 is left out, and the others are weighted again. With more than 2 million
    cells (row, node), rows are drawn at random.

    Args:
        probs: for each model, probabilities (rows, nodes) of rows that it was not trained on.
        Y: labels (rows, nodes) of these rows.
        shares: (nodes,), as those of `Blend`.
        scored: (nodes,), which nodes count.
        known: (rows, nodes), where labels are known; None: everywhere.
        seed: decides which rows are drawn.
    """
    rows = np.arange(len(Y))
    most = max(1, MOST_CELLS // max(1, np.count_nonzero(scored)))
    if len(rows) > most:
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))
        rows = np.sort(rng.permutation(len(rows))[:most])
    cells = np.ix_(rows, np.flatnonzero(scored))
    counted = np.ones((len(rows), np.count_nonzero(scored)), np.bool_) if known is None else known[cells]
    if not counted.any():
        return (1 / len(probs),) * len(probs)
    floors = np.broadcast_to(shares[scored], counted.shape)[counted]
    logits = np.stack([_logit((1 - FLOOR) * each[cells][counted] + FLOOR * floors) for each in probs])
    signs = np.where(Y[cells][counted], -1.0, 1.0)
    used = list(range(len(probs)))
    while True:
        found = _least_loss(logits[used], signs)
        if len(used) == 1 or found.min() >= LEAST_WEIGHT:
            break
        del used[int(np.argmin(found))]
    weights = np.zeros(len(probs))
    weights[used] = found / found.sum()
    return tuple(weights.tolist())


def _least_loss(logits: NDArray[np.float64], signs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights with the least mean of log(1 + exp(sign x logit)), by exponentiated gradients with a step that adapts."""
    weights, step = np.full(len(logits), 1 / len(logits)), 1.0
    loss, slope = _loss(weights, logits, signs)
    for _ in range(MOST_STEPS):
        moved = weights * np.exp(-step * (slope - slope.min()) / max(loss, 1e-12))
        moved /= moved.sum()
        then, its_slope = _loss(moved, logits, signs)
        if then > loss:
            step /= 2
            continue
        done = np.abs(moved - weights).max() < SMALL_MOVE
        weights, loss, slope, step = moved, then, its_slope, 1.5 * step
        if done:
            break
    return weights


MOST_STEPS = 200
SMALL_MOVE = 1e-4


def _loss(
    weights: NDArray[np.float64], logits: NDArray[np.float64], signs: NDArray[np.float64]
) -> tuple[float, NDArray[np.float64]]:
    z = signs * (weights @ logits)
    slopes = signs / (1 + np.exp(-z))
    return float(np.logaddexp(0, z).mean()), logits @ slopes / len(signs)


def _logit(p: NDArray[np.float64]) -> NDArray[np.float64]:
    p = np.clip(p, LEAST, 1 - LEAST)
    return np.asarray(np.log(p) - np.log1p(-p), dtype=np.float64)


@compiled(parallel=True)
def _pool(
    probs: NDArray[np.float32], weights: NDArray[np.float64], shares: NDArray[np.float64], pooled: NDArray[np.float32]
) -> None:
    """One cell at a time, so that no row depends on another."""
    models, rows, nodes = probs.shape
    for row in numba.prange(rows):
        for node in range(nodes):
            z = 0.0
            for model in range(models):
                p = (1 - FLOOR) * probs[model, row, node] + FLOOR * shares[node]
                p = min(max(p, LEAST), 1 - LEAST)
                z += weights[model] * (math.log(p) - math.log1p(-p))
            pooled[row, node] = 1 / (1 + math.exp(-z))


def _parts(description: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    parts, weights = description.get("models"), description.get("weights")
    if set(description) != {"models", "weights"} or not isinstance(parts, list) or len(parts) < 2:
        raise ArgumentError("a blend must be described by a list of at least two models, and their weights")
    if not isinstance(weights, list):
        raise ArgumentError("the weights of a blend must be a list")
    found: dict[str, dict[str, Any]] = {}
    for part in parts:
        kind = part.get("kind") if isinstance(part, dict) else None
        if not isinstance(kind, str) or kind not in MODELS or kind in found:
            raise ArgumentError(f"a blend of {kind!r} is not possible; it may contain each of {', '.join(MODELS)} once")
        found[kind] = {name: value for name, value in part.items() if name != "kind"}
    return found
