"""The max constraint: a parent is never less probable than its child.

For a node i with descendants S_i (i among them) the constrained score is ``max over j in S_i of score_j`` (the
paper's f_CM, there written with a nodes x nodes matrix). Here the maximum climbs the edges: first *which* node is the
maximiser, without gradient; then its score is picked, which sends the gradient to the maximiser alone. A monotone
function such as the sigmoid may be applied before or after, so logits are constrained in training and probabilities
at inference.

In the loss a positive node must not take credit from a negative descendant, so there the maximum is over the
descendants *with the node's own label* (`maximisers`). A negative node has only negative descendants, so
for it this is the plain constraint, and for a positive one it is the paper's second term, f_CM of labels x scores.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rarenode._io.text import counted
from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy
from rarenode.objective.kernels import find_maximisers

Scores = TypeVar("Scores", Tensor, NDArray[Any])
Levels = list[tuple[Tensor, Tensor, Tensor]]


def constrain(scores: Scores, hierarchy: Hierarchy) -> Scores:
    """Raise each node to the maximum over itself and its descendants.

    Args:
        scores: logits or probabilities, (..., nodes), as a numpy array or a torch tensor on any device.
        hierarchy: its node order is the order of the last dimension.

    Returns:
        The same kind, shape and type. For tensors the gradient goes to the maximiser; of several, to the lowest column.

    >>> hierarchy = Hierarchy.from_edges([("animal", "cat"), ("animal", "dog")])
    >>> constrain(np.array([0.2, 0.7, 0.1]), hierarchy)
    array([0.7, 0.7, 0.1])
    """
    if isinstance(scores, Tensor):
        _check_width(scores.shape, hierarchy)
        no_labels = torch.zeros((1, len(hierarchy)), dtype=torch.bool, device=scores.device)
        return scores.gather(-1, maximisers(scores, no_labels, hierarchy))
    array = np.asarray(scores)
    _check_width(array.shape, hierarchy)
    no_labels_here = np.zeros((1, len(hierarchy)), dtype=np.bool_)
    comparable = array if array.dtype in (np.float32, np.float64) else array.astype(np.float64)
    return np.take_along_axis(array, _maximisers_on_cpu(comparable, no_labels_here, hierarchy), axis=-1)


def maximisers(scores: Tensor, labels: Tensor, hierarchy: Hierarchy, *, compiled: bool = False) -> Tensor:
    """For each node the column of the largest score among itself and its descendants with the same label.

    Args:
        scores: (..., rows, nodes), or (..., nodes) with a single row of labels.
        labels: boolean (rows, nodes), closed under ancestors, on the device of ``scores``.
        hierarchy: its node order is the order of the last dimension.
        compiled: on a device, by `torch.compile`, which makes few kernels of many.

    Raises:
        NotClosedError: a row is labelled with a node but not with the node's parent. Only on the CPU: elsewhere it
            would have to wait for the device; see `has_gaps`.
    """
    values = scores.detach()
    if values.device.type != "cpu":
        return maximisers_by_level(values, labels, hierarchy, compiled=compiled)
    comparable = values if values.dtype in (torch.float32, torch.float64) else values.double()
    return torch.from_numpy(_maximisers_on_cpu(comparable.numpy(), labels.numpy(), hierarchy))


def _maximisers_on_cpu(scores: NDArray[Any], labels: NDArray[np.bool_], hierarchy: Hierarchy) -> NDArray[np.int64]:
    rows = np.ascontiguousarray(scores).reshape(math.prod(scores.shape[:-1]), len(hierarchy))
    best = np.empty(rows.shape, dtype=np.int64)
    parents, starts = hierarchy.families
    if not find_maximisers(rows, np.ascontiguousarray(labels), parents, starts, hierarchy.edge_children, best):
        hierarchy.require_closed(labels)
    return best.reshape(scores.shape)


def maximisers_by_level(scores: Tensor, labels: Tensor, hierarchy: Hierarchy, *, compiled: bool = False) -> Tensor:
    """The columns that `find_maximisers` finds, by whole-tensor operations, one level of parents after another.

    This is how devices without our compiled loop do it: as many steps as the hierarchy is deep, each at the cost of
    its edges.
    """
    _, _, levels = _on_device(hierarchy, scores.device)
    return (_compiled_climb() if compiled else _climb)(scores, labels, levels)


def _climb(scores: Tensor, labels: Tensor, levels: Levels) -> Tensor:
    nobody = scores.shape[-1]
    value = scores.clone()
    best = torch.arange(nobody, device=scores.device).expand(scores.shape).clone()
    for parents, children, parent_slot in levels:
        own = value[..., parents]
        same_side = labels[..., children] == labels[..., parents[parent_slot]]
        offered = torch.where(same_side, value[..., children], -torch.inf)
        slots = parent_slot.expand(offered.shape)
        top = own.scatter_reduce(-1, slots, offered, "amax")
        # Among equals the lowest column wins. The parent's own column is lower than any of its descendants'.
        own_claim = torch.where(_equals(own, top), parents, nobody)
        offered_claim = torch.where(_equals(offered, top[..., parent_slot]) & same_side, best[..., children], nobody)
        best[..., parents] = own_claim.scatter_reduce(-1, slots, offered_claim, "amin")
        value[..., parents] = top
    return best


@cache
def _compiled_climb() -> Callable[[Tensor, Tensor, Levels], Tensor]:
    climb: Callable[[Tensor, Tensor, Levels], Tensor] = torch.compile(_climb)
    return climb


def has_gaps(labels: Tensor, hierarchy: Hierarchy) -> Tensor:
    """Whether a row has a node but not the node's parent: one boolean, on the device of the labels."""
    parents_of, children_of, _ = _on_device(hierarchy, labels.device)
    return (labels[..., children_of] & ~labels[..., parents_of]).any()


def _equals(value: Tensor, top: Tensor) -> Tensor:
    """Whether ``value`` attains the maximum ``top``; where it is NaN, so is the maximum."""
    return (value == top) | value.isnan()


@lru_cache(maxsize=16)
def _on_device(hierarchy: Hierarchy, device: torch.device) -> tuple[Tensor, Tensor, Levels]:
    """Edges, and for each level (parents, children, which of the parents each child belongs to), on a device."""

    def there(array: NDArray[np.int64]) -> Tensor:
        return torch.tensor(array, device=device)

    levels = []
    for parents, starts, children in hierarchy.levels_upwards:
        slot = np.repeat(np.arange(len(parents)), np.diff(np.append(starts, len(children))))
        levels.append((there(parents), there(children), there(slot)))
    return there(hierarchy.edge_parents), there(hierarchy.edge_children), levels


def _check_width(shape: tuple[int, ...], hierarchy: Hierarchy) -> None:
    if not shape or shape[-1] != len(hierarchy):
        raise ArgumentError(
            f"scores must have the {counted(len(hierarchy), 'node')} in their last dimension; "
            f"got the shape {tuple(shape)}"
        )
