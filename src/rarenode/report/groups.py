"""How well nodes are found, by depth and by how many training rows carry them: means over the scored nodes of a group.

They are those of `rarenode.metrics.summary_by_depth` and `summary_by_rarity`, from the nodes' own scores alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from rarenode.diagnosis import NodeDiagnosis
from rarenode.metrics import rarity_masks

By = Literal["depth", "training rows"]


@dataclass(frozen=True)
class Group:
    """Some of the scored nodes."""

    by: By
    name: str
    nodes: int
    carried: int
    """Nodes that at least one of the rows carries; the others cannot be found."""
    found: int
    f1: float
    precision: float
    recall: float


def by_depth(nodes: NodeDiagnosis) -> tuple[Group, ...]:
    """A group for each depth that has scored nodes."""
    depths = nodes.hierarchy.depth
    return tuple(
        _group(nodes, "depth", str(depth), nodes.scored & (depths == depth))
        for depth in np.unique(depths[nodes.scored]).tolist()
    )


def by_rarity(nodes: NodeDiagnosis) -> tuple[Group, ...]:
    """A group for each rarity band that has scored nodes."""
    return tuple(_group(nodes, "training rows", band, mask) for band, mask in rarity_bands(nodes))


def rarity_bands(nodes: NodeDiagnosis) -> Iterator[tuple[str, NDArray[np.bool_]]]:
    """The scored nodes of each rarity band that has some, the rarest first."""
    for band, of_band in rarity_masks(nodes.training_rows).items():
        mask = nodes.scored & of_band
        if mask.any():
            yield band, mask


def _group(nodes: NodeDiagnosis, by: By, name: str, mask: NDArray[np.bool_]) -> Group:
    scores = nodes.scores
    return Group(
        by=by,
        name=name,
        nodes=int(mask.sum()),
        carried=int(np.count_nonzero(scores.support[mask])),
        found=int(np.count_nonzero(scores.true_positives[mask])),
        f1=float(scores.f1[mask].mean()),
        precision=float(scores.precision[mask].mean()),
        recall=float(scores.recall[mask].mean()),
    )
