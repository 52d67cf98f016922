"""The paper's formula as it is printed: a nodes x nodes matrix that every row is multiplied with. The yardstick."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from rarenode import Hierarchy, NodeWeights


def descendant_matrix(hierarchy: Hierarchy) -> Tensor:
    """A: 1 where the column is a descendant of the row, or the row itself."""
    reach = np.eye(len(hierarchy), dtype=np.float32)
    for parent, child in zip(hierarchy.edge_parents[::-1], hierarchy.edge_children[::-1], strict=True):
        np.maximum(reach[parent], reach[child], out=reach[parent])
    return torch.from_numpy(reach)


def dense_constraint(probs: Tensor, matrix: Tensor) -> Tensor:
    """f_CM: (rows, nodes) -> (rows, nodes), through (rows, nodes, nodes)."""
    return (matrix.unsqueeze(0) * probs.unsqueeze(1)).max(dim=2).values


def dense_loss(logits: Tensor, labels: Tensor, matrix: Tensor, weights: NodeWeights) -> Tensor:
    """Mean over rows and nodes, summed over members; one member after another, or memory would not hold them."""
    y = labels.float()
    weight = torch.where(labels, torch.tensor(weights.positive).float(), torch.tensor(weights.negative).float())
    total = torch.zeros(())
    for member in logits:
        probs = member.sigmoid()
        constrained = (1 - y) * dense_constraint(probs, matrix) + y * dense_constraint(y * probs, matrix)
        cross_entropy = torch.nn.functional.binary_cross_entropy(constrained, y, reduction="none")
        total = total + (weight * cross_entropy).mean()
    return total
