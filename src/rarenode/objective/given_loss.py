"""`GivenLoss`: any function of logits and labels in the place of `RareNodeLoss`."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy
from rarenode.objective.loss import RareNodeLoss
from rarenode.objective.weights import NodeWeights

LossFunction = Callable[[Tensor, Tensor], Tensor]
"""From logits (members, rows, nodes), before the constraint, and labels (rows, nodes), boolean, to a scalar."""
MakeLoss = Callable[[Hierarchy, NDArray[np.bool_]], LossFunction]
"""Makes one for a hierarchy and the labels (rows, nodes) of the training rows that count."""


class GivenLoss(RareNodeLoss):
    """A loss that engines can call as they call `RareNodeLoss`. All rows and labels count the same.

    >>> import torch
    >>> hierarchy = Hierarchy.from_edges([("animal", "cat")])
    >>> loss = GivenLoss(hierarchy, lambda logits, labels: (logits.sigmoid() - labels.float()).square().mean())
    >>> loss(torch.zeros(1, 2, 2), torch.ones(2, 2, dtype=torch.bool))
    tensor(0.2500)
    """

    def __init__(self, hierarchy: Hierarchy, compute: LossFunction) -> None:
        super().__init__(hierarchy)
        self.compute = compute  # a module is registered, and moves to a device with this one

    def forward(
        self,
        logits: Tensor,
        labels: Tensor,
        weights: NodeWeights | None = None,
        row_weights: Tensor | ArrayLike | None = None,
        known: Tensor | ArrayLike | None = None,
        uncertainty: Tensor | None = None,
    ) -> Tensor:
        """The loss; see `RareNodeLoss.forward`.

        Raises:
            ArgumentError: rows have weights, or some labels are unknown.
        """
        for what, given in (("weights of rows", row_weights), ("unknown labels", known)):
            if given is not None:
                raise ArgumentError(f"a loss of one's own counts all rows and labels the same; there are {what}")
        return self.compute(logits, self._check(logits, labels))
