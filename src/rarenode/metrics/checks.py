"""Checks of the arrays that metrics take."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarenode.errors import ArgumentError, LabelError
from rarenode.hierarchy.labels import as_array, as_indicator


def as_truth_and_probs(Y: Any, probs: Any) -> tuple[NDArray[np.bool_], NDArray[Any]]:
    """Labels as booleans and probabilities as an array; both have the same shape, and no probability is NaN."""
    truth = as_indicator(Y, "labels")
    probabilities = as_array(probs)
    if probabilities.shape != truth.shape:
        raise LabelError(f"labels {truth.shape} and probabilities {probabilities.shape} must have the same shape")
    if np.isnan(probabilities).any():
        row, node = np.argwhere(np.isnan(probabilities))[0].tolist()
        raise ArgumentError(f"probabilities must be numbers; row {row}, column {node} is NaN")
    return truth, probabilities


def as_node_mask(scored: ArrayLike | None, nodes: int) -> NDArray[np.bool_]:
    """The mask of the nodes that count; None counts all."""
    mask = np.ones(nodes, dtype=np.bool_) if scored is None else np.asarray(scored)
    if mask.dtype != np.bool_ or mask.shape != (nodes,):
        raise ArgumentError(
            f"scored must be a boolean mask of {nodes} nodes; got {mask.dtype} of the shape {mask.shape}"
        )
    return mask
