"""`Mlp`: a trained ensemble of multi-layer perceptrons.

Every member is constrained separately, then members are averaged, as in the paper. Both keep a parent at least as
probable as its child to the last bit: rounding never reverses an order, and each sum runs over the members in the same
order.

A row has the same prediction, bit for bit, whatever other rows are computed with it. Matrix products alone do not give
that: in which order a BLAS library adds up depends on the number of rows, on how each row is aligned in memory, and on
the number of threads. With rows and widths padded with zeros to certain multiples it no longer does. That is so on the
CPU; other devices compute the same but for rounding (see `on_device`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray

from rarenode._io.text import counted
from rarenode.errors import ArgumentError, DataError
from rarenode.hierarchy import Hierarchy
from rarenode.models.ensemble import MlpEnsemble, Parameters
from rarenode.models.model import Floats, Layout, Output, check_arrays, check_input
from rarenode.models.network import MlpNetwork
from rarenode.models.on_device import copied, mean_probs_on
from rarenode.objective import constrain, uncertainty
from rarenode.objective.uncertainties import check_kind

Logits = Callable[[Any], Floats]
"""Features (rows, features), or pixels in training -> unconstrained logits (models, rows, nodes)."""

CELLS_AT_A_TIME = 1 << 23
"""Rows are computed in blocks whose widest layer has at most so many cells, so that memory stays bounded."""
WIDTH_TOGETHER = 16
"""Widths are padded to a multiple of this, the float32 numbers of a cache line, so that all rows are aligned alike."""
ROWS_TOGETHER = 8
"""Rows are padded to a multiple of this: fewer rows would be multiplied by other code, which sums in another order."""


@dataclass(frozen=True, eq=False)
class Mlp:
    """A trained ensemble of perceptrons. At inference there is no dropout, and a dropout ensemble is one network."""

    shape: MlpEnsemble
    parameters: Parameters
    hierarchy: Hierarchy
    device: str = "cpu"
    """Where predictions are computed."""
    kind: ClassVar[str] = "mlp"

    def __getstate__(self) -> dict[str, Any]:
        """Without the other copies of the parameters, which are made again when they are needed."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def n_features(self) -> int:
        """Columns of the input."""
        return self.shape.features

    @property
    def n_nodes(self) -> int:
        """Columns of the output."""
        return self.shape.nodes

    @cached_property
    def _layers(self) -> tuple[tuple[torch.Tensor, torch.Tensor], ...]:
        """Padded weights (models, in, out) and biases (models, 1, out), made once and not for every prediction."""
        models, layers = self.shape.models, []
        for layer, (inputs, outputs) in enumerate(self.shape.sizes):
            weight = _padded(self.parameters[f"layer{layer}.weight"], models, _aligned(outputs), _aligned(inputs))
            bias = _padded(self.parameters[f"layer{layer}.bias"], models, _aligned(outputs))
            layers.append((weight.transpose(1, 2), bias.unsqueeze(1)))
        return tuple(layers)

    @cached_property
    def _on_device(self) -> MlpNetwork:
        return MlpNetwork(self.shape, self.parameters).to(self.device).requires_grad_(False)

    @torch.no_grad()
    def logits(self, X: Floats) -> Floats:
        """Unconstrained logits (models, rows, nodes)."""
        if self.device != "cpu":
            return np.asarray(self._on_device(copied(X, torch.device(self.device))).cpu().numpy())
        shape, rows = self.shape, -(-len(X) // ROWS_TOGETHER) * ROWS_TOGETHER
        values = _padded(X, rows, _aligned(shape.features)).expand(shape.models, -1, -1)
        for layer, (weight, bias) in enumerate(self._layers):
            values = torch.baddbmm(bias, values, weight)
            if layer == shape.layers - 1:
                break
            if shape.activation == "relu":
                values.relu_()
            else:  # torch's tanh rounds the last few values of a thread's share differently from the others
                np.tanh(values.numpy(), out=values.numpy())
        return np.ascontiguousarray(values[:, : len(X), : shape.nodes].numpy())

    def member_probs(self, X: Floats) -> Floats:
        """Each member's constrained probabilities, (models, rows, nodes)."""
        check_input(X, self.shape.features)
        result = np.empty((self.shape.models, len(X), self.shape.nodes), dtype=np.float32)
        for rows in blocks_of(len(X), self.shape):
            result[:, rows] = constrain(_probabilities(self.logits(X[rows])), self.hierarchy)
        return result

    def compute(self, X: Floats, *, highest: bool = False, uncertainty: str | None = None) -> Output:
        """See `Model.compute`. Uncertainties are computed from unconstrained probabilities.

        A single network cannot disagree with itself: its epistemic uncertainties are 0, its ``gmu`` is its ``bbma``,
        and its ``predictive`` is its ``aleatoric``, which say how close its probability is to one half.
        """
        check_input(X, self.shape.features)
        if self.device == "cpu":
            return mean_probs(self.logits, X, self.shape, self.hierarchy, highest=highest, kind=uncertainty)
        return mean_probs_on(
            torch.device(self.device),
            self._on_device,
            X,
            self.shape.nodes,
            self.hierarchy,
            blocks_of(len(X), self.shape),
            highest=highest and self.shape.models > 1,
            kind=uncertainty,
        )

    def describe(self) -> dict[str, Any]:
        """See `Model.describe`."""
        return asdict(self.shape)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """See `Model.arrays`."""
        return dict(self.parameters)

    @classmethod
    def layout(cls, description: Mapping[str, Any]) -> Layout:
        """See `Model.layout`."""
        shapes = _shape(description).parameter_shapes
        return {name: (np.dtype(np.float32), size) for name, size in shapes.items()}

    @classmethod
    def from_arrays(
        cls, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], hierarchy: Hierarchy
    ) -> Self:
        """See `Model.from_arrays`."""
        shape = _shape(description)
        if shape.nodes != len(hierarchy):
            raise ArgumentError(f"the network has {counted(shape.nodes, 'node')}, and the hierarchy {len(hierarchy)}")
        check_arrays(arrays, cls.layout(description))
        for name, array in arrays.items():
            if not np.isfinite(array).all():
                raise ArgumentError(f"{name} has values that are not finite")
        return cls(shape, dict(arrays), hierarchy)


def mean_probs(
    logits: Logits,
    X: NDArray[Any],
    shape: MlpEnsemble,
    hierarchy: Hierarchy,
    *,
    highest: bool = False,
    kind: str | None = None,
) -> Output:
    """The members' mean of constrained probabilities, (rows, nodes), and the rest of what `Model.compute` returns."""
    if kind is not None:
        check_kind(kind)  # even if there are no rows
    probs = np.empty((len(X), shape.nodes), dtype=np.float32)
    most = np.empty_like(probs) if highest and shape.models > 1 else None
    unsure = None if kind is None else np.empty_like(probs)
    for rows in blocks_of(len(X), shape):
        free = _probabilities(logits(X[rows]))
        members = constrain(free, hierarchy)
        total = np.zeros(members.shape[1:], dtype=np.float64)
        for member in members:
            total += member
        probs[rows] = total / len(members)
        if most is not None:
            most[rows] = members.max(axis=0)
        if unsure is not None and kind is not None:
            unsure[rows] = uncertainty(free, kind)
    return Output(probs, most, unsure)


def blocks_of(rows: int, shape: MlpEnsemble) -> Iterator[slice]:
    """Rows that are computed at a time."""
    step = max(1, CELLS_AT_A_TIME // (shape.models * max(shape.nodes, shape.hidden, shape.features)))
    for first in range(0, rows, step):
        yield slice(first, min(first + step, rows))


def _aligned(width: int) -> int:
    return -(-width // WIDTH_TOGETHER) * WIDTH_TOGETHER


def _padded(array: Floats, *shape: int) -> torch.Tensor:
    """The array in a corner of zeros, in memory that torch has aligned."""
    result = torch.zeros(shape)
    result.numpy()[tuple(map(slice, array.shape))] = array
    return result


def _probabilities(logits: Floats) -> Floats:
    """Each depends on its own logit alone, which is not true of torch's sigmoid; see `Mlp.logits`.

    Raises:
        DataError: one is not a number.
    """
    with np.errstate(over="ignore"):  # exp(-x) is infinite where the probability is 0
        values = np.exp(-logits)
    values += 1
    np.reciprocal(values, out=values)
    if np.isnan(values).any():
        raise DataError("the network returned NaN: its weights, or the features, are too large")
    return values


def _shape(description: Mapping[str, Any]) -> MlpEnsemble:
    odd = min({field.name for field in fields(MlpEnsemble)} ^ set(description), default=None)
    if odd is not None:
        raise ArgumentError(f"its description {'must not' if odd in description else 'must'} contain {odd!r}")
    return MlpEnsemble(**description)
