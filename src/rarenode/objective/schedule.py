"""Weights that change during training, and the mixture of the weighted and the plain loss.

At step t of T a schedule has moved a share s of the way from the weight to its target:

    w_t = w + s (target - w),   s = 0 (constant), t/(T - 1) (linear), (t/(T - 1))^3 (exponential), t mod 2 (alternating)

Steps are the batches of each epoch, or the epochs of the training. The paper moves towards 1, the unweighted loss;
its published code moves towards w0. The mixed loss, lambda x weighted + (1 - lambda) x unweighted, is linear in the
weights, so it is the same as the weights lambda w + (1 - lambda).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rarenode.errors import ArgumentError
from rarenode.objective.weights import NodeWeights

Shape = Literal["constant", "linear", "exponential", "alternating"]
By = Literal["batch", "epoch"]
Towards = Literal[1, "w0"]

EXPONENT = 3


@dataclass(frozen=True)
class WeightSchedule:
    """How node weights move during training.

    Args:
        shape: ``constant``, ``linear``, ``exponential`` or ``alternating`` (even steps weighted, odd steps at the
            target).
        by: a step is a ``batch`` of each epoch, or an ``epoch`` of the training.
        towards: ``1`` (the unweighted loss, as the paper describes) or ``w0`` (as its published code does).
        mix: lambda, the share of the weighted loss in the mixed loss; 1 is the weighted loss alone.
    """

    shape: Shape = "constant"
    by: By = "batch"
    towards: Towards = 1
    mix: float = 1.0

    def __post_init__(self) -> None:
        for given, allowed, what in (
            (self.shape, Shape, "shape"),
            (self.by, By, "by"),
            (self.towards, Towards, "towards"),
        ):
            if given not in get_args(allowed):
                raise ArgumentError(f"unknown {what} {given!r}; choose one of {', '.join(map(str, get_args(allowed)))}")
        if not 0 <= self.mix <= 1:
            raise ArgumentError(f"mix must lie between 0 and 1, got {self.mix!r}")

    def share(self, batch: int, batches: int, epoch: int, epochs: int) -> float:
        """How far the weights have moved towards the target at this step, from 0 to 1. Steps count from 0."""
        t, T = (batch, batches) if self.by == "batch" else (epoch, epochs)
        if not 0 <= t < T:
            raise ArgumentError(f"{self.by} {t} is not one of {T}, counted from 0")
        match self.shape:
            case "constant":
                return 0.0
            case "alternating":
                return float(t % 2)
            case "linear":
                return t / max(1, T - 1)
            case "exponential":
                return float((t / max(1, T - 1)) ** EXPONENT)

    def weights(self, weights: NodeWeights, batch: int, batches: int, epoch: int, epochs: int) -> NodeWeights:
        """The node weights for this step."""
        share = self.share(batch, batches, epoch, epochs)
        target = 1.0 if self.towards == 1 else weights.w0

        def at_this_step(side: NDArray[np.float64], carries_weight: bool) -> NDArray[np.float64]:
            moved = side + share * (target - side) if carries_weight else side
            return self.mix * moved + (1 - self.mix)

        return replace(
            weights,
            positive=at_this_step(weights.positive, weights.side != "negatives"),
            negative=at_this_step(weights.negative, weights.side != "positives"),
        )
