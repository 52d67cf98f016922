"""The engine for the CPU and ensembles of perceptrons, compiled, at the limit of memory. See `fused_layers` for how."""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

from rarenode.engines.dropout import keep_threshold
from rarenode.engines.engine import Adam, Objective, State
from rarenode.engines.fused_layers import CHUNKS, Floats, Layers, adam_constants
from rarenode.engines.fused_loss import FOCUS_CODES
from rarenode.engines.fused_step import fused_step
from rarenode.errors import ArgumentError
from rarenode.models.mlp import MlpEnsemble, Parameters
from rarenode.objective import NodeWeights, RareNodeLoss

ROWS_AT_A_TIME = 512


class FusedEngine:
    """See `Engine`. The seed decides the parameters to the last bit, and the number of threads does not change them."""

    name = "fused"

    def __init__(
        self, shape: MlpEnsemble, parameters: Parameters, objective: Objective, adam: Adam, seed: int
    ) -> None:
        self.shape = shape
        self.adam = adam
        self.seed = seed
        self.steps = 0
        self.objective = objective
        # Checks the objective in one place for both engines, and knows the weights of scored nodes.
        self._loss = RareNodeLoss(
            objective.hierarchy,
            objective.weights,
            objective.focus,
            objective.u0,
            objective.k,
            objective.scored,
            objective.reduction,
        )
        self._weights = _copies(parameters, "weight", shape)
        self._biases = _copies(parameters, "bias", shape)
        self._weights_m, self._weights_v = _zeros(self._weights), _zeros(self._weights)
        self._biases_m, self._biases_v = _zeros(self._biases), _zeros(self._biases)
        self._workspace: _Workspace | None = None
        self._side = self._scored_sides(self._loss.weights)

    def step(self, X: NDArray[np.float32], Y: NDArray[np.bool_], weights: NodeWeights | None = None) -> float:
        """See `Engine.step`. If the loss is not finite it is returned, and nothing is changed."""
        hierarchy = self.objective.hierarchy
        labels = np.ascontiguousarray(hierarchy.require_closed(Y))
        if self._workspace is None or self._workspace.batch != len(X):
            self._workspace = _Workspace(self.shape, len(X))
        space = self._workspace
        positive, negative = self._side if weights is None else self._scored_sides(weights)
        divisor = max(1, len(X) * self._loss.count_scored) if self.objective.reduction == "mean" else 1
        parents, starts = hierarchy.families
        adam = self.adam
        loss = fused_step(
            np.ascontiguousarray(X, dtype=np.float32),
            labels,
            *(self._weights, self._weights_m, self._weights_v, self._biases, self._biases_m, self._biases_v),
            *(space.outputs, space.slopes, space.parts, space.best, space.focus),
            *(positive, negative),
            FOCUS_CODES[self.objective.focus],
            *(float(self.objective.u0), float(self.objective.k), float(divisor)),
            *(parents, starts, hierarchy.edge_children),
            adam_constants(
                adam.learning_rate, adam.weight_decay, adam.beta1, adam.beta2, adam.epsilon, self.steps + 1
            ),
            self.shape.activation == "tanh",
            *(np.uint64(self.seed), np.uint64(self.steps), keep_threshold(self.shape.dropout)),
            np.float32(1 / (1 - self.shape.dropout)),
            self.shape.models >= 2 * numba.get_num_threads() or self.shape.models == numba.get_num_threads(),
        )
        self.steps += 1
        return float(loss)

    def logits(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """See `Engine.logits`."""
        shape = self.shape
        result = np.empty((shape.models, len(X), shape.nodes), dtype=np.float32)
        for model in range(shape.models):
            for first in range(0, len(X), ROWS_AT_A_TIME):
                rows = slice(first, first + ROWS_AT_A_TIME)
                hidden = np.asarray(X[rows], dtype=np.float32)
                for layer in range(shape.layers):
                    hidden = hidden @ self._weights[layer][model].T + self._biases[layer][model]
                    if layer < shape.layers - 1:
                        hidden = np.maximum(hidden, 0) if shape.activation == "relu" else np.tanh(hidden)
                result[model, rows] = hidden
        return result

    def state(self) -> State:
        """See `Engine.state`."""
        state: State = {"steps": np.array(self.steps, dtype=np.int64)}
        for prefix, weights, biases in self._sets():
            for layer in range(self.shape.layers):
                state[f"{prefix}layer{layer}.weight"] = weights[layer].copy()
                state[f"{prefix}layer{layer}.bias"] = biases[layer].copy()
        return state

    def restore(self, state: State) -> None:
        """See `Engine.restore`."""
        for prefix, weights, biases in self._sets():
            for layer in range(self.shape.layers):
                for array, part in ((weights[layer], "weight"), (biases[layer], "bias")):
                    name = f"{prefix}layer{layer}.{part}"
                    if state[name].shape != array.shape:
                        raise ArgumentError(f"{name} has the shape {state[name].shape}; {array.shape} was expected")
                    array[...] = state[name]
        self.steps = int(state["steps"])

    def _sets(self) -> tuple[tuple[str, Layers, Layers], ...]:
        return (
            ("", self._weights, self._biases),
            ("adam.m.", self._weights_m, self._biases_m),
            ("adam.v.", self._weights_v, self._biases_v),
        )

    def _scored_sides(self, weights: NodeWeights) -> tuple[Floats, Floats]:
        scored = self._loss.scored
        return (weights.positive * scored).astype(np.float32), (weights.negative * scored).astype(np.float32)


class _Workspace:
    """Arrays that a step writes and nobody reads after it, for one size of batch."""

    def __init__(self, shape: MlpEnsemble, batch: int) -> None:
        rows = shape.passes * batch
        widths = [out for _, out in shape.sizes]
        self.batch = batch
        self.outputs: Layers = tuple(np.empty((shape.models, rows, width), dtype=np.float32) for width in widths)
        self.slopes = _zeros(self.outputs)
        self.parts = np.empty((shape.models, CHUNKS, rows, shape.hidden), dtype=np.float32)
        self.best = np.empty((shape.members * batch, shape.nodes), dtype=np.int64)
        self.focus = np.ones((batch, shape.nodes), dtype=np.float32)


def _copies(parameters: Parameters, part: str, shape: MlpEnsemble) -> Layers:
    return tuple(np.array(parameters[f"layer{layer}.{part}"], dtype=np.float32) for layer in range(shape.layers))


def _zeros(arrays: Layers) -> Layers:
    return tuple(np.zeros_like(array) for array in arrays)
