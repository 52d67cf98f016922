"""`Blend`: several models as one.

Without weights it is the geometric mean of their probabilities, which is high only where all are. With weights, log
odds are added up. With p_m the probability of a node by model m, and s its share of the training rows,

    log odds = sum_m w_m log(q_m / (1 - q_m)),    q_m = (1 - c) p_m + c s,    c = 0.02

Mixing in the share keeps one model from deciding alone: where a forest has seen nothing alike it says 0, and a
geometric mean is 0 there, whatever the others say, so that all such rows rank equal. A node that no training row has
stays at 0 if a model says so.

A blend is coherent because its models and the shares are: every step keeps the order of numbers, rounding included, as
weights are above 0. `learn_weights` finds them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
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

MODELS: dict[str, type[Model]] = {Mlp.kind: Mlp, Forest.kind: Forest, Neighbours.kind: Neighbours}
"""Kind -> model that a blend may contain."""
MIXED_IN = 0.02
"""c: how much of a node's share is mixed in."""
HIGHEST = 1 - 1e-7
"""The highest probability that has log odds here."""
MOST_WEIGHT = 100.0
CELLS_AT_A_TIME = 1 << 22
"""Cells whose log odds, of 8 bytes each, are in memory."""
SHARES = "shares"
_DOUBLE = np.dtype(np.float64)


@dataclass(frozen=True, eq=False)
class Blend:
    """Several models over the same features and nodes. The uncertainty is that of the first."""

    models: tuple[Model, ...]
    weights: tuple[float, ...] = ()
    """Of each model, above 0; empty: their geometric mean."""
    shares: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    """(nodes,): the share of training rows that have each node, no child's above its parent's; without weights,
    empty."""
    kind: ClassVar[str] = "blend"

    def __post_init__(self) -> None:
        if len(self.models) < 2 or len({model.kind for model in self.models}) < len(self.models):
            raise ArgumentError("a blend needs at least two models of different kinds")
        if len({(model.n_features, model.n_nodes) for model in self.models}) > 1:
            raise ArgumentError("the models of a blend must have the same features and nodes")
        if self.weights and (len(self.weights) != len(self.models) or not all(map(_is_weight, self.weights))):
            raise ArgumentError(
                f"the weights of a blend must be {len(self.models)} numbers above 0, up to {MOST_WEIGHT:g}"
            )
        object.__setattr__(self, "weights", tuple(map(float, self.weights)))
        shares = np.ascontiguousarray(self.shares).view()
        shares.flags.writeable = False  # what is checked here must stay true
        check_arrays({SHARES: shares}, {SHARES: (_DOUBLE, (self.n_nodes if self.weights else 0,))})
        if not ((shares >= 0) & (shares <= 1)).all():
            raise ArgumentError("the shares of a blend must be from 0 to 1")
        object.__setattr__(self, SHARES, shares)

    @property
    def n_features(self) -> int:
        """Columns of the input."""
        return self.models[0].n_features

    @property
    def n_nodes(self) -> int:
        """Columns of the output."""
        return self.models[0].n_nodes

    def compute(self, X: Floats, *, highest: bool = False, uncertainty: str | None = None) -> Output:
        """See `Model.compute`. With weights, the blend itself may have the highest probability."""
        outputs = [
            model.compute(X, highest=highest, uncertainty=None if place else uncertainty)
            for place, model in enumerate(self.models)
        ]
        probs = pool([output.probs for output in outputs], self.weights, self.shares)
        each = [output.probs if output.highest is None else output.highest for output in outputs]
        return Output(
            probs=probs,
            highest=reduce(np.maximum, [*each, probs] if self.weights else each) if highest else None,
            uncertainty=outputs[0].uncertainty,
        )

    def describe(self) -> dict[str, Any]:
        """See `Model.describe`."""
        models = [{"kind": model.kind} | model.describe() for model in self.models]
        if not self.weights:
            return {"models": models}
        weights = {model.kind: weight for model, weight in zip(self.models, self.weights, strict=True)}
        return {"models": models, "weights": weights, "nodes": self.n_nodes}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """See `Model.arrays`; each model's arrays begin with its kind."""
        own = {f"{model.kind}.{name}": array for model in self.models for name, array in model.arrays().items()}
        return own | ({SHARES: self.shares} if self.weights else {})

    @classmethod
    def layout(cls, description: Mapping[str, Any]) -> Layout:
        """See `Model.layout`."""
        layout: Layout = {}
        for kind, part in _parts(description).items():
            layout |= {f"{kind}.{name}": form for name, form in MODELS[kind].layout(part).items()}
        if "weights" in description:
            nodes = description["nodes"]
            if not isinstance(nodes, int) or isinstance(nodes, bool) or not 1 <= nodes < 2**31:
                raise ArgumentError(f"nodes must be a whole number from 1, got {nodes!r}")
            layout[SHARES] = (_DOUBLE, (nodes,))
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
        if "weights" not in description:
            return cls(models)
        shares, weights = arrays[SHARES], description["weights"]
        if len(shares) != len(hierarchy):
            raise ArgumentError(f"the blend has {len(shares)} nodes, and the hierarchy {len(hierarchy)}")
        if (shares[hierarchy.edge_parents] < shares[hierarchy.edge_children]).any():
            raise ArgumentError("a child's share must not be above its parent's")
        if isinstance(weights, list):  # an older rarenode wrote them in the order of the models
            weights = dict(zip((model.kind for model in models), weights, strict=False)) if weights else {}
        if not isinstance(weights, dict) or weights.keys() != {model.kind for model in models}:
            raise ArgumentError("a blend must be described by the weights of its models, by their kinds")
        weights = [weights[model.kind] for model in models]
        return cls(models, tuple(weights), shares)


def pool(parts: Sequence[Floats], weights: Sequence[float], shares: NDArray[np.float64]) -> Floats:
    """The probabilities of a blend (rows, nodes), from those of its models; of a single one, they are its own."""
    if len(parts) == 1:
        return parts[0]
    if not weights:
        product = reduce(np.multiply, parts)
        return np.sqrt(product) if len(parts) == 2 else product ** np.float32(1 / len(parts))
    start_threads()
    pooled = np.empty(parts[0].shape, dtype=np.float32)
    step = max(CELLS_AT_A_TIME // len(shares), 1)
    for first in range(0, len(pooled), step):
        rows = slice(first, first + step)
        total = np.zeros(pooled[rows].shape)
        for probs, weight in zip(parts, weights, strict=True):
            _add_log_odds(np.ascontiguousarray(probs[rows]), float(weight), shares, total)
        _to_probabilities(total, pooled[rows])
    return pooled


def log_odds(probs: Floats, shares: NDArray[np.float64]) -> NDArray[np.float64]:
    """The log odds of one model as a blend sees them; minus infinity where both numbers are 0."""
    start_threads()
    total = np.zeros(probs.shape)
    _add_log_odds(np.ascontiguousarray(probs), 1.0, shares, total)
    return total


def _is_weight(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value <= MOST_WEIGHT


def _parts(description: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    parts = description.get("models")
    known = set(description) in ({"models"}, {"models", "weights", "nodes"})
    if not known or not isinstance(parts, list) or len(parts) < 2:
        raise ArgumentError("a blend must be described by a list of at least two models")
    found: dict[str, dict[str, Any]] = {}
    for part in parts:
        kind = part.get("kind") if isinstance(part, dict) else None
        if not isinstance(kind, str) or kind not in MODELS or kind in found:
            raise ArgumentError(f"a blend of {kind!r} is not possible; it may contain each of {', '.join(MODELS)} once")
        found[kind] = {name: value for name, value in part.items() if name != "kind"}
    return found


# --- compiled ------------------------------------------------------------------------------------------------------


@compiled(parallel=True)
def _add_log_odds(probs: Floats, weight: float, shares: NDArray[np.float64], total: NDArray[np.float64]) -> None:
    # Equal numbers have equal logarithms wherever they are, so the order of probabilities is kept.
    for row in numba.prange(probs.shape[0]):
        for node in range(probs.shape[1]):
            q = min((1.0 - MIXED_IN) * probs[row, node] + MIXED_IN * shares[node], HIGHEST)
            total[row, node] += weight * math.log(q / (1.0 - q)) if q > 0.0 else -np.inf


@compiled(parallel=True)
def _to_probabilities(total: NDArray[np.float64], probs: Floats) -> None:
    for row in numba.prange(probs.shape[0]):
        for node in range(probs.shape[1]):
            probs[row, node] = 1.0 / (1.0 + math.exp(-total[row, node]))
