"""The engine for the CPU and ensembles of perceptrons, compiled, at the limit of memory. See `fused_layers` for how."""

from __future__ import annotations

from time import perf_counter

import numba
import numpy as np
from numpy.typing import NDArray

from rarenode._io.compiled import start_threads
from rarenode._io.text import counted
from rarenode.engines.dropout import keep_threshold
from rarenode.engines.engine import Adam, Objective, State
from rarenode.engines.fused_layers import CHUNKS, FEW, Floats, adam_constants, aligned_zeros, padded
from rarenode.engines.fused_loss import FOCAL, FOCUS_CODES
from rarenode.engines.fused_step import fused_backward, fused_forward, mask_keys, weight_place
from rarenode.engines.share import Share
from rarenode.engines.threads import ThreadChoice, available_threads, limited_threads
from rarenode.errors import ArgumentError
from rarenode.models.ensemble import MlpEnsemble, Parameters
from rarenode.models.mlp import mean_probs
from rarenode.models.network import tensor_of
from rarenode.objective import NodeWeights
from rarenode.objective.loss import check_row_weights
from rarenode.objective.uncertainties import joint_uncertainty

ROWS_AT_A_TIME = 512
_EVERYWHERE = np.empty((1, 0), dtype=np.bool_)
"""For the compiled step, what is known where all labels are."""


class FusedEngine:
    """See `Engine`. The seed decides the parameters to the last bit, and the number of threads does not change them.

    Each step uses the number of threads that is fastest at the moment, up to ``n_jobs`` (see `available_threads`) and
    ``numba.get_num_threads()``.
    """

    name = "fused"
    processes = 1

    def __init__(
        self,
        shape: MlpEnsemble,
        parameters: Parameters,
        objective: Objective,
        adam: Adam,
        seed: int,
        n_jobs: int | None = None,
        share: Share | None = None,
    ) -> None:
        if share is not None and share.divides_rows:
            raise ArgumentError("the fused engine shares members of an ensemble, not rows; choose engine 'torch'")
        if shape.nodes != len(objective.hierarchy):
            raise ArgumentError(
                f"the model has {counted(shape.nodes, 'node')}, and the hierarchy {len(objective.hierarchy)}"
            )
        self.shape = shape
        self.adam = adam
        self.seed = seed
        self.steps = 0
        self._share = share
        self.objective = objective
        # Checks the objective in one place for both engines, and knows the weights of scored nodes.
        self._loss = objective.loss()
        self._widths = np.array([shape.features, *(units for _, units in shape.sizes)], dtype=np.int64)
        size = int(weight_place(self._widths, shape.layers))
        self._parameters, self._first, self._second = (aligned_zeros((shape.models, size)) for _ in range(3))
        for name, view in self._views(self._parameters).items():
            view[...] = parameters[name]
        self._workspace: _Workspace | None = None
        self._sides = self._scored_sides(self._loss.weights)
        self._n_jobs, self._available = n_jobs, available_threads(n_jobs)
        self._choice = ThreadChoice(1)

    def step(
        self,
        X: NDArray[np.float32],
        Y: NDArray[np.bool_],
        weights: NodeWeights | None = None,
        row_weights: NDArray[np.float32] | None = None,
        known: NDArray[np.bool_] | None = None,
    ) -> float:
        """See `Engine.step`. If the loss is not finite it is returned, and nothing is changed."""
        hierarchy = self.objective.hierarchy
        if np.shape(X) != (len(X), self.shape.features) or np.shape(Y) != (len(X), self.shape.nodes):
            raise ArgumentError(
                f"a batch must have the shapes (rows, {self.shape.features}) and (rows, {self.shape.nodes}); "
                f"got {np.shape(X)} and {np.shape(Y)}"
            )
        start_threads()
        factors = _as_factors(row_weights, len(X))
        mask = _EVERYWHERE if known is None else self._loss.check_known(known, np.shape(Y))
        is_first = self._workspace is None  # it compiles, or loads compiled code
        if self._workspace is None or self._workspace.batch != len(X):
            self._workspace = _Workspace(self.shape, len(X))
        space = self._workspace
        positive, negative = self._sides if weights is None else self._scored_sides(weights)
        divisor = self._loss.scored_cells(len(X), known) if self.objective.reduction == "mean" else 1
        parents, starts = hierarchy.families
        adam, shape = self.adam, self.shape
        space.rows[:, : shape.features] = X
        first_member = 0 if self._share is None else self._share.first_member
        keys = mask_keys(
            np.uint64(self.seed), np.uint64(self.steps), shape.models, shape.layers, shape.passes, first_member
        )
        kind, u0, k = FOCUS_CODES[self.objective.focus], float(self.objective.u0), float(self.objective.k)
        is_joint = self._share is not None and kind > FOCAL
        dropping = (
            shape.activation == "tanh",
            keys,
            keep_threshold(shape.dropout),
            np.float32(1 / (1 - shape.dropout)),
        )
        threads_before = numba.get_num_threads()
        threads = self._choose_threads(threads_before)
        if threads != threads_before:
            numba.set_num_threads(threads)
        try:
            began = perf_counter()
            logits: Floats = fused_forward(
                space.rows,
                self._parameters,
                self._widths,
                space.outputs,
                space.focus,
                0 if is_joint else kind,
                u0,
                k,
                *dropping,
                threads,
            )
            if is_joint:
                space.focus[...] = u0 + self._joint_uncertainty(logits) ** k
            loss: float = fused_backward(
                space.rows,
                np.ascontiguousarray(Y, dtype=np.bool_),
                np.ascontiguousarray(mask),
                factors,
                logits,
                self._parameters,
                self._first,
                self._second,
                self._widths,
                space.outputs,
                space.slopes,
                space.parts,
                space.best,
                space.focus,
                positive,
                negative,
                kind,
                u0,
                k,
                float(divisor),
                parents,
                starts,
                hierarchy.edge_children,
                adam_constants(
                    adam.learning_rate, adam.weight_decay, adam.beta1, adam.beta2, adam.epsilon, self.steps + 1
                ),
                *dropping,
                threads,
            )
            seconds = perf_counter() - began
        finally:
            if threads != threads_before:
                numba.set_num_threads(threads_before)
        if not is_first:
            self._choice.record(seconds)
        if not np.isfinite(loss):
            hierarchy.require_closed(Y)  # that would be the reason
        self.steps += 1
        return float(loss)

    def _joint_uncertainty(self, logits: Floats) -> Floats:
        """That of an ensemble whose other members are in other processes."""
        share, focus = self._share, self.objective.focus
        assert share is not None and focus is not None  # noqa: S101 (the caller's condition)
        probs = tensor_of(logits).sigmoid()
        found = joint_uncertainty(probs, focus, share.total, share.members, share.first_member)
        return np.asarray(found.numpy())

    @property
    def threads(self) -> int:
        """The number of threads of the next step, unless the caller changes numba's limit."""
        return self._choice.threads

    def _choose_threads(self, most: int) -> int:
        """The number of threads for a step, at most ``most``, which the caller may change between steps."""
        most = min(most, self._available)
        if most != self._choice.most:
            self._choice = ThreadChoice(most)
        return self._choice.threads

    def logits(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """See `Engine.logits`."""
        shape = self.shape
        views = self._views(self._parameters)
        result = np.empty((shape.models, len(X), shape.nodes), dtype=np.float32)
        with limited_threads(self._n_jobs):
            for model in range(shape.models):
                for begin in range(0, len(X), ROWS_AT_A_TIME):
                    rows = slice(begin, begin + ROWS_AT_A_TIME)
                    hidden = np.asarray(X[rows], dtype=np.float32)
                    for layer in range(shape.layers):
                        hidden = hidden @ views[f"layer{layer}.weight"][model].T + views[f"layer{layer}.bias"][model]
                        if layer < shape.layers - 1:
                            hidden = np.maximum(hidden, 0) if shape.activation == "relu" else np.tanh(hidden)
                    result[model, rows] = hidden
        return result

    def probs(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """See `Engine.probs`."""
        return mean_probs(self.logits, X, self.shape, self.objective.hierarchy).probs

    def parameters(self) -> State:
        """See `Engine.parameters`."""
        return {name: view.copy() for name, view in self._views(self._parameters).items()}

    def state(self) -> State:
        """See `Engine.state`."""
        state: State = {"steps": np.array(self.steps, dtype=np.int64)}
        for prefix, flat in self._prefixed():
            state |= {prefix + name: view.copy() for name, view in self._views(flat).items()}
        return state

    def restore(self, state: State) -> None:
        """See `Engine.restore`."""
        for prefix, flat in self._prefixed():
            for name, view in self._views(flat).items():
                array = state[prefix + name]
                if array.shape != view.shape:
                    raise ArgumentError(f"{prefix}{name} has the shape {array.shape}; {view.shape} was expected")
                view[...] = array
        self.steps = int(state["steps"])

    def _prefixed(self) -> tuple[tuple[str, Floats], ...]:
        return ("", self._parameters), ("adam.m.", self._first), ("adam.v.", self._second)

    def _views(self, flat: Floats) -> dict[str, Floats]:
        """The arrays of `MlpEnsemble.parameter_shapes` as views of the flat ones, without what they are padded with."""
        views: dict[str, Floats] = {}
        for layer, (inputs, units) in enumerate(self.shape.sizes):
            first = int(weight_place(self._widths, layer))
            last = first + units * padded(inputs)
            views[f"layer{layer}.weight"] = flat[:, first:last].reshape(-1, units, padded(inputs))[:, :, :inputs]
            views[f"layer{layer}.bias"] = flat[:, last : last + units]
        return views

    def _scored_sides(self, weights: NodeWeights) -> tuple[Floats, Floats]:
        scored = self._loss.scored
        return (weights.positive * scored).astype(np.float32), (weights.negative * scored).astype(np.float32)


def _as_factors(row_weights: NDArray[np.float32] | None, rows: int) -> Floats:
    if row_weights is None:
        return np.ones(rows, dtype=np.float32)
    return check_row_weights(row_weights, rows).astype(np.float32)


class _Workspace:
    """Arrays that a step writes and nobody reads after it, for one size of batch."""

    def __init__(self, shape: MlpEnsemble, batch: int) -> None:
        rows = shape.passes * batch
        units = sum(padded(out) for _, out in shape.sizes)
        self.batch = batch
        self.rows = aligned_zeros((batch, padded(shape.features)))
        self.outputs = aligned_zeros((shape.models, rows * units))
        self.slopes = aligned_zeros((shape.models, rows * units))
        self.parts = aligned_zeros((shape.models, 2, CHUNKS, max(rows, FEW), padded(max(shape.features, shape.hidden))))
        self.best = np.empty((shape.members * batch, shape.nodes), dtype=np.int64)
        self.focus = np.ones((batch, shape.nodes), dtype=np.float32)
