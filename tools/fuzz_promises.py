"""What must hold for what was read, whatever it was read from."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from rarenode import Hierarchy
from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.data.images import Images
from rarenode.training import TrainedModel


class BrokenPromiseError(Exception):
    """What was read is not what it must be."""


def promise(holds: object, what: str) -> None:
    """Raise an error if something does not hold."""
    if not holds:
        raise BrokenPromiseError(what)


def check_rows(data: Dataset | DatasetSplits) -> None:
    """What holds for every dataset."""
    if isinstance(data, DatasetSplits):
        for part in (data.train, data.valid, data.test):
            if part is not None:
                check_rows(part)
        return
    rows, nodes = len(data), len(data.hierarchy)
    Y = data.with_dense_labels().Y
    promise(Y.shape == (rows, nodes) and Y.dtype == np.bool_, "Y is no matrix of labels")
    promise(data.hierarchy.is_closed(Y), "labels without their ancestors")
    promise(data.X.shape[0] == rows, "X and Y have different numbers of rows")
    promise(data.scored.shape == (nodes,), "scored is not of the hierarchy")
    promise(data.ids is None or len(set(data.ids)) == len(data.ids) == rows, "ids are not unique")
    if data.known is not None:
        promise(not (Y & ~data.known).any(), "labels that are unknown")
    if data.sample_weight is not None:
        promise(np.isfinite(data.sample_weight).all() and (data.sample_weight >= 0).all(), "weights that are none")
    if isinstance(data.X, pl.DataFrame):
        for column in data.X:
            infinite = column.dtype.is_float() and column.is_infinite().any()
            promise(
                column.dtype in (pl.Float64, pl.String) and not infinite, "features that are infinite or of odd type"
            )
    elif not isinstance(data.X, Images):
        values = data.X.data if hasattr(data.X, "tocsr") else data.X
        promise(not np.isinf(values).any(), "features that are infinite")
    check_tree(data.hierarchy)
    str(data), data.fingerprint


def check_tree(tree: Hierarchy) -> None:
    """What holds for every hierarchy."""
    promise(len(tree) > 0 and len(set(tree.nodes)) == len(tree), "a hierarchy with equal names, or without any")
    promise((tree.depth[tree.edge_parents] < tree.depth[tree.edge_children]).all(), "a child that is above its parent")
    again = Hierarchy.from_edges(tree.edges, tree.nodes)
    promise(again.fingerprint == tree.fingerprint, "a hierarchy that is not that of its edges")


def check_probabilities(model: TrainedModel, probs: Any) -> None:
    """What holds for the probabilities of every model."""
    tree = model.hierarchy
    promise(probs.shape[1] == len(tree) and np.isfinite(probs).all(), "probabilities that are not finite")
    promise((probs >= 0).all() and (probs <= 1).all(), "probabilities beyond 0 and 1")
    promise(
        (probs[:, tree.edge_children] <= probs[:, tree.edge_parents]).all(), "a child more probable than its parent"
    )
