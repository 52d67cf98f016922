"""The interface of engines. They differ in how a step is computed, never in what it computes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from rarenode.hierarchy import Hierarchy
from rarenode.objective import GivenLoss, LossFunction, NodeWeights, RareNodeLoss
from rarenode.objective.loss import Reduction

State = dict[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Objective:
    """What training minimises; see `RareNodeLoss` for the meaning of each."""

    hierarchy: Hierarchy
    weights: NodeWeights | None = None
    focus: str | None = None
    u0: float = 0.25
    k: float = 1.0
    scored: NDArray[np.bool_] | None = None
    reduction: Reduction = "mean"
    compiled: bool = False
    given: LossFunction | None = None
    """In the place of all of that, but the hierarchy."""

    def loss(self) -> RareNodeLoss:
        """The loss as a module; building it also checks that everything fits."""
        if self.given is not None:
            return GivenLoss(self.hierarchy, self.given)
        return RareNodeLoss(
            self.hierarchy, self.weights, self.focus, self.u0, self.k, self.scored, self.reduction, self.compiled
        )


@dataclass(frozen=True)
class Adam:
    """The optimiser. ``weight_decay`` is the L2 kind: it is added to the gradient."""

    learning_rate: float = 1e-4
    weight_decay: float = 1e-5
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8


class Engine(Protocol):
    """A model in training."""

    name: str
    processes: int
    """How many processes compute it."""

    @property
    def steps(self) -> int:
        """Steps taken so far."""
        ...

    def step(
        self,
        X: NDArray[np.float32],
        Y: NDArray[np.bool_],
        weights: NodeWeights | None = None,
        row_weights: NDArray[np.float32] | None = None,
        known: NDArray[np.bool_] | None = None,
    ) -> float | Tensor:
        """Take one training step on a batch of rows and return its loss, from before the step.

        On a device other than the CPU the loss is a tensor there: to look at its value is to wait for the device.

        ``weights`` replaces the objective's node weights for this step. ``row_weights`` (rows,) multiplies the loss of
        each row; the divisor of ``reduction="mean"`` remains rows x scored nodes. Labels count only where they are
        ``known`` (rows, nodes), and the divisor is then the number of scored cells that are. Dropout and augmentation
        are decided by the seed and the number of the step alone.
        """
        ...

    def logits(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Unconstrained logits in float32, without dropout and augmentation, (models, rows, nodes)."""
        ...

    def probs(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """What a trained model predicts: the members' mean of constrained probabilities, (rows, nodes)."""
        ...

    def parameters(self) -> State:
        """What training has learned: all that predictions depend on and that training changes.

        The heads are ``layer0.weight`` and so on, as in `MlpEnsemble.parameter_shapes`. A trained encoder adds its
        parameters and buffers, such as the running means of batch normalisation, with the prefix ``encoder.``; a
        frozen one adds nothing. The arrays are copies.
        """
        ...

    def state(self) -> State:
        """All that later steps depend on: `parameters`, Adam's moments, the number of steps.

        Moments have the prefixes ``adam.m.`` and ``adam.v.``; ``steps`` is a whole number. The arrays are copies.
        """
        ...

    def restore(self, state: State) -> None:
        """Continue from a `state`."""
        ...
