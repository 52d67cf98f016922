"""The engine that PyTorch computes: autograd, any device, all members in one batched product.

On a device nothing in a step waits for it: a batch is copied to it once, dropout masks are computed there, and the loss
stays there. Parameters leave it only for `parameters` and `state`.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rarenode.engines.dropout import dropout_masks, dropout_masks_on
from rarenode.engines.encoder_training import EncoderInTraining, EncoderTraining
from rarenode.engines.engine import Adam, Objective, State
from rarenode.engines.share import Share
from rarenode.engines.threads import available_threads, limited_threads
from rarenode.errors import ArgumentError
from rarenode.models.ensemble import MlpEnsemble, Parameters
from rarenode.models.mlp import blocks_of, mean_probs
from rarenode.models.network import EncodedNetwork, MlpNetwork, tensor_of
from rarenode.models.on_device import copied, mean_probs_on
from rarenode.objective import NodeWeights
from rarenode.objective.uncertainties import joint_uncertainty

Rows = NDArray[np.float32] | NDArray[np.uint8]
"""Features, or pixels where the encoder is a `PixelEncoder`."""


class TorchEngine:
    """See `Engine`. An ``encoder`` stands in front of the perceptrons, which are then its heads.

    An encoder none of whose parameters require a gradient is frozen: it stays in evaluation mode. Another one is
    trained in place.
    """

    name = "torch"
    processes = 1

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
        share: Share | None = None,
    ) -> None:
        heads = MlpNetwork(shape, {name: array.copy() for name, array in parameters.items()})
        self.device = torch.device(device)
        self.network = (heads if encoder is None else EncodedNetwork(encoder, heads)).to(self.device)
        self.shape = shape
        self.seed = seed
        self.steps = 0
        self.loss = objective.loss().to(self.device)
        self._share = share
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
    ) -> float | Tensor:
        """See `Engine.step`. On a device the loss is a tensor there."""
        encoder, share, batch = self._encoder, self._share, len(X)
        here = slice(0, batch) if share is None else share.rows(batch)
        loss = torch.zeros((), device=self.device)
        with limited_threads(self._n_jobs), encoder.randomness(self.seed, self.steps, share.process if share else 0):
            self.network.train()
            encoder.set_modes(here.stop - here.start)
            self.optimiser.zero_grad()
            if here.stop > here.start:
                loss = self._loss(X, Y, weights, row_weights, known, here)
                loss.backward()  # type: ignore[no-untyped-call]
            if share is not None and share.divides_rows:
                self._add_up_gradients((here.stop - here.start) / batch)
            self.optimiser.step()
        self.steps += 1
        loss = loss.detach()
        return float(loss) if self.device.type == "cpu" else loss

    def _loss(
        self,
        X: Rows,
        Y: NDArray[np.bool_],
        weights: NodeWeights | None,
        row_weights: NDArray[np.float32] | None,
        known: NDArray[np.bool_] | None,
        here: slice,
    ) -> Tensor:
        """The loss of the rows that are computed here; together with that of the others it is that of the batch."""
        change = self._encoder.change(self.seed, self.steps, here.start, len(X))
        with self._encoder.mixed_precision():
            logits = self.network(self._features(X[here]), partial(self._masks, here.start), **change).float()
        known_here = None if known is None else known[here]
        loss: Tensor = self.loss(
            logits,
            self._there(Y[here]),
            weights,
            None if row_weights is None else row_weights[here],
            known_here,
            self._joint_uncertainty(logits),
        )
        if self.loss.reduction == "mean" and here.stop - here.start < len(X):
            loss = loss * (self.loss.scored_cells(len(logits[0]), known_here) / self.loss.scored_cells(len(X), known))
        return loss

    def _joint_uncertainty(self, logits: Tensor) -> Tensor | None:
        """That of an ensemble whose other members are in other processes, if the loss needs it."""
        share, focus = self._share, self.loss.focus
        if share is None or share.divides_rows or focus in (None, "focal"):
            return None
        probs = logits.detach().sigmoid()
        return joint_uncertainty(probs, focus, share.total, share.members, share.first_member)

    @torch.no_grad()
    def _add_up_gradients(self, part: float) -> None:
        """Add up gradients over the processes that share a batch, of which ``part`` is computed here.

        Running means of batch normalisation are averaged, so that all processes keep the same network.
        """
        assert self._share is not None  # noqa: S101 (a method for those)
        for value in self._trained.values():
            if value.grad is None:
                value.grad = torch.zeros_like(value)
        running = self._encoder.running_statistics()
        flat = [value.grad.reshape(-1) for value in self._trained.values() if value.grad is not None]
        total = self._share.total(torch.cat([*flat, *(part * value.reshape(-1) for value in running)]))
        first = 0
        for target in (*(value.grad for value in self._trained.values()), *running):
            assert target is not None  # noqa: S101 (made above)
            target.copy_(total[first : first + target.numel()].view(target.shape))
            first += target.numel()

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

    def probs(self, X: Rows) -> NDArray[np.float32]:
        """See `Engine.probs`."""
        hierarchy = self.loss.hierarchy
        if self.device.type == "cpu":
            return mean_probs(self.logits, X, self.shape, hierarchy).probs
        self.network.eval()
        most = self._encoder.rows_at_a_time
        blocks = (
            slice(first, min(first + most, rows.stop))
            for rows in blocks_of(len(X), self.shape)
            for first in range(rows.start, rows.stop, most)
        )
        return mean_probs_on(self.device, self.network, X, self.shape.nodes, hierarchy, blocks).probs

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
            value.copy_(tensor_of(array))
        for name, value in self._trained.items():
            self.optimiser.state[value] = {
                "step": torch.tensor(float(self.steps)),
                "exp_avg": _like(value, state["adam.m." + _public(name)]),
                "exp_avg_sq": _like(value, state["adam.v." + _public(name)]),
            }

    def _masks(self, first_row: int, layer: int, rows: int, width: int) -> Tensor:
        first_member = 0 if self._share is None else self._share.first_member
        what = (self.seed, self.steps, layer, self.shape.members, rows, width, self.shape.dropout)
        if self.device.type == "cpu":
            return tensor_of(dropout_masks(*what, first_member, first_row))
        return dropout_masks_on(self.device, *what, first_member, first_row)

    def _features(self, X: Rows) -> Tensor:
        return self._there(X if self._encoder.takes_pixels else np.asarray(X, dtype=np.float32))

    def _there(self, array: NDArray[np.generic]) -> Tensor:
        return copied(array, self.device)


def _like(value: Tensor, array: NDArray[np.float32]) -> Tensor:
    """The array as a tensor that lies in memory as another does: sums may be rounded differently where it does not."""
    return torch.empty_like(value).copy_(tensor_of(array))


def _public(name: str) -> str:
    """``heads.values.layer0_weight`` -> ``layer0.weight``; an encoder's own parameters keep their names."""
    if name.removeprefix("heads.").startswith("values."):
        return name.rpartition("values.")[2].replace("_", ".", 1)
    return name
