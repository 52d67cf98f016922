"""The share of rows that has each node: predictions are compared with it, blends mix it in, networks begin there."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rarenode.data.dataset import Dataset
from rarenode.hierarchy.labels import count_labels
from rarenode.models.training_labels import weighted_sums
from rarenode.objective import constrain


def prior_of(*parts: Dataset) -> NDArray[np.float64]:
    """(nodes,): the share that has each node, of the rows that count more than 0 and where it is known.

    It is what predictions are compared with, which are all alike; so rows that count more than others do not here. 0
    where there are no rows.
    """
    positives, rows = np.zeros((2, len(parts[0].hierarchy)), dtype=np.int64)
    for data in parts:
        some = np.ones(len(data), dtype=np.bool_) if data.counting is None else data.counting
        positives += count_labels(data.Y[some])
        rows += np.count_nonzero(some) if data.known is None else data.known[some].sum(axis=0)
    return positives / np.maximum(rows, 1)


def node_shares(data: Dataset) -> NDArray[np.float64]:
    """(nodes,): the share that has each node, of the rows where it is known, by their weights.

    Where labels are unknown a child may have a larger share than its parent, which then gets the child's.
    """
    weights = np.ones(len(data)) if data.sample_weight is None else data.sample_weight.astype(np.float64)
    known = weights.sum() if data.known is None else weighted_sums(weights, data.known)
    shares = np.minimum(weighted_sums(weights, data.Y) / np.maximum(known, 1e-30), 1.0)
    return shares if data.known is None else constrain(shares[None], data.hierarchy)[0]


def smoothed_shares(data: Dataset) -> NDArray[np.float64]:
    """(nodes,): shares with half a row more that has each node, and half a row that has not: above 0 and below 1.

    Of the rows where a node is known, by their weights, of which the mean is taken to be 1. No child has a larger share
    than its parents: what is known of a child in few rows says nothing about a parent that is known in many.
    """
    weights = np.ones(len(data)) if data.sample_weight is None else data.sample_weight.astype(np.float64)
    weights = weights / max(weights.mean(), 1e-30)
    known = weights.sum() if data.known is None else weighted_sums(weights, data.known)
    shares = (weighted_sums(weights, data.Y) + 0.5) / (known + 1.0)
    hierarchy = data.hierarchy
    for parent, child in zip(hierarchy.edge_parents.tolist(), hierarchy.edge_children.tolist(), strict=True):
        shares[child] = min(shares[child], shares[parent])  # edges are sorted by parents, which come before children
    return shares
