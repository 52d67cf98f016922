"""The engine that PyTorch computes: autograd, any device, all members in one batched product."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rarenode.engines.dropout import dropout_masks
from rarenode.engines.encoder_training import EncoderInTraining, EncoderTraining
from rarenode.engines.engine import Adam, Objective, State
from rarenode.engines.threads import available_threads, limited_threads
from rarenode.errors import ArgumentError
from rarenode.models.ensemble import MlpEnsemble, Parameters
from rarenode.models.network import EncodedNetwork, MlpNetwork
from rarenode.objective import NodeWeights

Rows = NDArray[np.float32] | NDArray[np.uint8]
"""Features, or pixels where the encoder is a `PixelEncoder`."""


class TorchEngine:
    """See `Engine`. An ``encoder`` stands in front of the perceptrons, which are then its heads.

    An encoder none of whose parameters require a gradient is frozen: it stays in evaluation mode. Another one is
    trained in place.
    """

    name = "torch"

    def __init__(
        self,
        shape: MlpEnsemble,
        parameters: Parameters,
        objective: Objective,
        adam: Adam,
        seed: int,
        device: str = "cpu",
        encoder: torch.nn.Module | None = None,
        n_jobs: int | None = None,
        encoder_training: EncoderTraining | None = None,
    ) -> None:
        heads = MlpNetwork(shape, {name: array.copy() for name, array in parameters.items()})
        self.device = torch.device(device)
        self.network = (heads if encoder is None else EncodedNetwork(encoder, heads)).to(self.device)
        self.shape = shape
        self.seed = seed
        self.steps = 0
        self.loss = objective.loss()
        available_threads(n_jobs)  # checks it
        self._n_jobs = n_jobs
        self._trained = {name: value for name, value in self.network.named_parameters() if value.requires_grad}
        how = encoder_training or EncoderTraining()
        self._encoder = EncoderInTraining(encoder, how, self.device)
        everything = self.network.state_dict(keep_vars=True)
        self._learned = everything if self._encoder.learns else self._trained
        in_encoder = [value for name, value in self._trained.items() if name.startswith("encoder.")]
        in_heads = [value for name, value in self._trained.items() if not name.startswith("encoder.")]
        encoder_rate = adam.learning_rate if how.learning_rate is None else how.learning_rate
        groups: list[dict[str, Any]] = [{"params": in_heads}, {"params": in_encoder, "lr": encoder_rate}]
        self.optimiser = torch.optim.Adam(
            groups,
            lr=adam.learning_rate,
            betas=(adam.beta1, adam.beta2),
            eps=adam.epsilon,
            weight_decay=adam.weight_decay,
        )

    def step(
        self,
        X: Rows,
        Y: NDArray[np.bool_],
        weights: NodeWeights | None = None,
        row_weights: NDArray[np.float32] | None = None,
        known: NDArray[np.bool_] | None = None,
    ) -> float:
        """See `Engine.step`."""
        encoder, moment = self._encoder, (self.seed, self.steps)
        with limited_threads(self._n_jobs), encoder.randomness(*moment):
            self.network.train()
            encoder.set_modes(len(X))
            with encoder.mixed_precision():
                logits = self.network(self._features(X), self._masks, **encoder.change(*moment))
            loss: Tensor = self.loss(logits.float(), self._there(Y), weights, row_weights, known)
            self.optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            self.optimiser.step()
        self.steps += 1
        return float(loss.detach())

    @torch.no_grad()
    def logits(self, X: Rows) -> NDArray[np.float32]:
        """See `Engine.logits`."""
        self.network.eval()
        together = self._encoder.rows_at_a_time
        with limited_threads(self._n_jobs):
            parts = [self.network(self._features(X[i : i + together])).cpu() for i in range(0, len(X), together)]
        if not parts:
            return np.zeros((self.shape.models, 0, self.shape.nodes), dtype=np.float32)
        return np.asarray(torch.cat(parts, dim=1).numpy())

    def parameters(self) -> State:
        """See `Engine.parameters`."""
        return {_public(name): value.detach().cpu().numpy().copy() for name, value in self._learned.items()}

    def state(self) -> State:
        """See `Engine.state`."""
        state: State = {"steps": np.array(self.steps, dtype=np.int64)} | self.parameters()
        for name, value in self._trained.items():
            moments = self.optimiser.state.get(value, {})
            for ours, theirs in (("adam.m.", "exp_avg"), ("adam.v.", "exp_avg_sq")):
                moment = moments.get(theirs, torch.zeros_like(value))
                state[ours + _public(name)] = moment.cpu().numpy().copy()
        return state

    @torch.no_grad()
    def restore(self, state: State) -> None:
        """See `Engine.restore`."""
        self.steps = int(state["steps"])
        for name, value in self._learned.items():
            array = state[_public(name)]
            if array.shape != tuple(value.shape):
                raise ArgumentError(f"{_public(name)} has the shape {array.shape}; {tuple(value.shape)} was expected")
            value.copy_(torch.tensor(array))
        for name, value in self._trained.items():
            self.optimiser.state[value] = {
                "step": torch.tensor(float(self.steps)),
                "exp_avg": _like(value, state["adam.m." + _public(name)]),
                "exp_avg_sq": _like(value, state["adam.v." + _public(name)]),
            }

    def _masks(self, layer: int, rows: int, width: int) -> Tensor:
        return self._there(
            dropout_masks(self.seed, self.steps, layer, self.shape.members, rows, width, self.shape.dropout)
        )

    def _features(self, X: Rows) -> Tensor:
        return self._there(X if self._encoder.takes_pixels else np.asarray(X, dtype=np.float32))

    def _there(self, array: NDArray[np.generic]) -> Tensor:
        return torch.tensor(array, device=self.device)


def _like(value: Tensor, array: NDArray[np.float32]) -> Tensor:
    """The array as a tensor that lies in memory as another does: sums may be rounded differently where it does not."""
    return torch.empty_like(value).copy_(torch.tensor(array))


def _public(name: str) -> str:
    """``heads.values.layer0_weight`` -> ``layer0.weight``; an encoder's own parameters keep their names."""
    if name.removeprefix("heads.").startswith("values."):
        return name.rpartition("values.")[2].replace("_", ".", 1)
    return name
