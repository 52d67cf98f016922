"""`RareNodeLoss`: the max-constraint loss, weighted by node rarity and by the ensemble's uncertainty.

At a member, row and node, with label y:

    loss = W(y) x (U0 + U^k) x BCE(p~, y)

p~ is the max-constrained probability (see `constraint`): over all descendants where y = 0, over the positive ones
where y = 1. W(y) are node weights (see `weights`). U is the ensemble's uncertainty (see `uncertainties`) from the
members' *un*constrained probabilities, without gradient; it is the same for every member. ``focus="focal"`` takes the
classic focal term instead, U = 1 - p(y) of each member alone, likewise unconstrained and without gradient; with
``u0=0`` its weight is (1 - p(y))^k.

A cell (row, node) whose label is unknown weighs 0: it adds neither loss nor gradient. Its logit does not reach other
cells through the constraint either: all descendants of an absent node are absent (see `complete_labels`), and a present
node looks at present ones only.

The constraint is applied to logits: the sigmoid is monotone, so this is the same maximum, and BCE of a logit neither
overflows nor loses digits. Only beyond the root of the largest number (1.8e19 in float32) is a logit cut off, so that
sums stay finite too. Nothing here has nodes x nodes elements.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import softplus

from rarenode._io.text import counted
from rarenode.errors import ArgumentError, LabelError
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.labels import as_array
from rarenode.objective.constraint import has_gaps, maximisers
from rarenode.objective.uncertainties import UNCERTAINTIES
from rarenode.objective.weights import NodeWeights

Reduction = Literal["mean", "sum", "none"]


class RareNodeLoss(torch.nn.Module):
    """Max-constraint loss with node weights and uncertainty focus.

    Args:
        hierarchy: its node order is the order of the last dimension of logits and labels.
        weights: what `node_weights` returns; None weighs all annotations 1.
        focus: None, ``focal``, or an uncertainty: ``bbma``, ``gmu``, ``epistemic_kl``, ``epistemic_js``,
            ``predictive``, ``aleatoric``.
        u0: the gate U0, the least focal weight.
        k: the exponent of the uncertainty.
        scored: boolean mask of the nodes that count; None counts all. An artificial root should not.
        reduction: ``mean`` over rows and scored nodes, summed over members; ``sum``; or ``none`` (the shape of the
            logits, unscored nodes zero).
        compiled: on a device other than the CPU, compute the constraint by `torch.compile`.

    >>> hierarchy = Hierarchy.from_edges([("animal", "cat"), ("animal", "dog")])
    >>> loss = RareNodeLoss(hierarchy)
    >>> labels = torch.from_numpy(hierarchy.close(hierarchy.encode([["cat"], ["dog"]])))
    >>> loss(torch.zeros(2, 3), labels)
    tensor(0.6931)
    """

    def __init__(
        self,
        hierarchy: Hierarchy,
        weights: NodeWeights | None = None,
        focus: str | None = None,
        u0: float = 0.25,
        k: float = 1.0,
        scored: ArrayLike | None = None,
        reduction: Reduction = "mean",
        compiled: bool = False,
    ) -> None:
        super().__init__()
        if focus is not None and focus != "focal" and focus not in UNCERTAINTIES:
            raise ArgumentError(f"unknown focus {focus!r}; choose None, focal, {', '.join(UNCERTAINTIES)}")
        if reduction not in get_args(Reduction):
            raise ArgumentError(f"unknown reduction {reduction!r}; choose one of {', '.join(get_args(Reduction))}")
        for name, value in (("u0", u0), ("k", k)):
            if not (isinstance(value, Real) and 0 <= value < np.inf):
                raise ArgumentError(f"{name} must be a number of at least 0, got {value!r}")
        self.hierarchy = hierarchy
        self.focus = focus
        self.u0 = u0
        self.k = k
        self.reduction = reduction
        self.compiled = compiled
        mask = np.ones(len(hierarchy), dtype=np.bool_) if scored is None else np.asarray(scored)
        if mask.dtype != np.bool_ or mask.shape != (len(hierarchy),) or not mask.any():
            raise ArgumentError(
                f"scored must be a boolean mask of {counted(len(hierarchy), 'node')} with at least one set; "
                f"got {mask.dtype} of the shape {mask.shape}"
            )
        self.scored = mask
        self.count_scored = int(mask.sum())
        ones = np.ones(len(hierarchy))
        self.weights = NodeWeights(ones, ones) if weights is None else weights
        self._check_weights(self.weights)
        self._ready: dict[tuple[torch.device, torch.dtype], tuple[Tensor, Tensor]] = {}

    def forward(
        self,
        logits: Tensor,
        labels: Tensor,
        weights: NodeWeights | None = None,
        row_weights: Tensor | ArrayLike | None = None,
        known: Tensor | ArrayLike | None = None,
        uncertainty: Tensor | None = None,
    ) -> Tensor:
        """The loss.

        Args:
            logits: (members, rows, nodes) or (rows, nodes), before the constraint.
            labels: (rows, nodes), 0 or 1 of any type, closed under ancestors.
            weights: replaces the constructor's for this call: this is how a `WeightSchedule` is used.
            row_weights: (rows,), factors of each row's loss, as scikit-learn's ``sample_weight``. ``mean`` still
                divides by the number of rows, not by the sum of their weights.
            known: (rows, nodes), boolean: where labels are known; None: everywhere. ``mean`` then divides by the
                number of scored cells that are.
            uncertainty: (rows, nodes), U of the whole ensemble, where the logits are those of some members only; None:
                it is computed from the logits.

        Raises:
            NotClosedError: a row has a node but not the node's parent. Only on the CPU: elsewhere the loss is NaN,
                since an error would have to wait for the device in every step.
            LabelError: labels of another shape, or with values other than 0 and 1; or ``known`` of another shape.
            ArgumentError: row weights that are negative, not finite or not one for each row.
        """
        present = self._check(logits, labels)
        dtype = torch.promote_types(logits.dtype, torch.float32)
        weight = torch.where(present, *self._weights_on(logits.device, dtype, weights))
        if self.focus is not None:
            if uncertainty is None:
                uncertainty = doubt(self.focus, logits.detach().to(dtype), present)
            weight = weight * (self.u0 + uncertainty**self.k)
        if row_weights is not None:
            factors = check_row_weights(row_weights, len(present))
            weight = weight * torch.tensor(factors, device=logits.device, dtype=dtype).unsqueeze(-1)
        if known is not None:
            weight = weight * torch.from_numpy(self.check_known(known, tuple(present.shape))).to(logits.device)
        if logits.device.type != "cpu":
            weight = weight.masked_fill(has_gaps(present, self.hierarchy), torch.nan)
        best = maximisers(logits, present, self.hierarchy, compiled=self.compiled)
        count = {"mean": self.scored_cells(len(present), known), "sum": 1, "none": None}[self.reduction]
        return weighted_cross_entropy(logits.to(dtype), best, present, weight, count)

    def scored_cells(self, rows: int, known: Tensor | ArrayLike | None = None) -> int:
        """What ``mean`` divides by: the scored cells of so many rows that are known, or 1 if there are none."""
        if known is None:
            return max(1, rows * self.count_scored)
        return max(1, int(np.count_nonzero(as_array(known)[:, self.scored])))

    def check_known(self, known: Tensor | ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
        """Where labels of a shape are known."""
        mask = as_array(known)
        if mask.dtype != np.bool_ or mask.shape != shape:
            raise LabelError(f"known must be boolean of the shape {shape}; got {mask.dtype} {mask.shape}")
        return mask

    def _check(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The labels as booleans on the device of the logits, or an error that says what does not fit."""
        nodes = len(self.hierarchy)
        if not isinstance(logits, Tensor):
            raise ArgumentError(f"logits must be a torch tensor, got {type(logits).__name__}")
        if logits.ndim not in (2, 3) or logits.shape[-1] != nodes or not logits.is_floating_point():
            raise ArgumentError(
                f"logits must be floating point of the shape (members, rows, {nodes}) or (rows, {nodes}); "
                f"got {logits.dtype} of the shape {tuple(logits.shape)}"
            )
        labels = labels.to(logits.device) if isinstance(labels, Tensor) else torch.from_numpy(np.array(labels))
        if labels.shape != logits.shape[-2:]:
            raise LabelError(
                f"labels must have the shape {tuple(logits.shape[-2:])} of a member's logits; got {tuple(labels.shape)}"
            )
        if labels.dtype == torch.bool:
            return labels
        present = labels == 1
        wrong = (~present & (labels != 0)).nonzero()
        if len(wrong):
            row, node = wrong[0].tolist()
            raise LabelError(
                f"row {row}, node {self.hierarchy.nodes[node]!r}: labels must be 0 or 1, got {float(labels[row, node])}"
            )
        return present

    def _weights_on(
        self, device: torch.device, dtype: torch.dtype, weights: NodeWeights | None
    ) -> tuple[Tensor, Tensor]:
        """What the presence and the absence of each node weigh; unscored nodes weigh nothing."""
        if weights is not None:
            self._check_weights(weights)
            return self._as_tensors(weights, device, dtype)
        if (device, dtype) not in self._ready:
            self._ready[device, dtype] = self._as_tensors(self.weights, device, dtype)
        return self._ready[device, dtype]

    def _as_tensors(self, weights: NodeWeights, device: torch.device, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        positive = torch.tensor(weights.positive * self.scored, device=device, dtype=dtype)
        return positive, torch.tensor(weights.negative * self.scored, device=device, dtype=dtype)

    def _check_weights(self, weights: NodeWeights) -> None:
        nodes = len(self.hierarchy)
        if not isinstance(weights, NodeWeights):
            raise ArgumentError(f"weights must be NodeWeights, as node_weights returns; got {type(weights).__name__}")
        for side in (weights.positive, weights.negative):
            if np.shape(side) != (nodes,) or not np.isfinite(side).all():
                raise ArgumentError(
                    f"weights must be {nodes} finite numbers for each side; got the shape {np.shape(side)}"
                )


def check_row_weights(row_weights: Tensor | ArrayLike, rows: int) -> NDArray[np.float64]:
    """The weights of ``rows`` rows as an array, or an error that says what is wrong with them."""
    values = row_weights.detach().cpu().numpy() if isinstance(row_weights, Tensor) else row_weights
    try:
        factors = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise ArgumentError(f"row_weights must be numbers, got {values!r}") from None
    if factors.shape != (rows,):
        raise ArgumentError(f"row_weights must have the shape ({rows},), one for each row; got {factors.shape}")
    wrong = ~(np.isfinite(factors) & (factors >= 0))
    if wrong.any():
        row = int(wrong.argmax())
        raise ArgumentError(f"row_weights must be finite and not negative; row {row} has {factors[row]}")
    return factors


def weighted_cross_entropy(logits: Tensor, best: Tensor, present: Tensor, weight: Tensor, count: int | None) -> Tensor:
    """weight x BCE of the logit at each node's maximiser; the sum divided by ``count``, or for None every term.

    The gradient is in closed form. Autograd would get there through a dozen small operations, and at a batch of a few
    rows their number is the cost.
    """
    result: Tensor = _WeightedCrossEntropy.apply(logits, best, present, weight, count)  # type: ignore[no-untyped-call]
    return result


class _WeightedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, best: Tensor, present: Tensor, weight: Tensor, count: int | None) -> Tensor:
        bound = torch.finfo(logits.dtype).max ** 0.5
        score = logits.gather(-1, best)
        # The score with the sign that disagrees with the label: its softplus is the cross-entropy.
        against = torch.where(present, -score, score).clamp_(-bound, bound)
        slope = against.sigmoid().mul_(weight)
        ctx.save_for_backward(best, torch.where(present, -slope, slope))
        ctx.count = count
        loss = softplus(against).mul_(weight)
        return loss if count is None else loss.sum() / count

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, upstream: Tensor) -> tuple[Tensor, None, None, None, None]:
        best, slope = ctx.saved_tensors
        share = slope * (upstream if ctx.count is None else upstream / ctx.count)
        return torch.zeros_like(slope).scatter_add_(-1, best, share), None, None, None, None


def doubt(focus: str, logits: Tensor, present: Tensor) -> Tensor:
    """U of the focal weight, from unconstrained logits: one for all members, or (``focal``) one for each."""
    if focus == "focal":
        return torch.where(present, -logits, logits).sigmoid()
    members = logits if logits.ndim == 3 else logits.unsqueeze(0)
    return UNCERTAINTIES[focus](members.sigmoid())
