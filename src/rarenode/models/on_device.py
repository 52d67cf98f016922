"""What an ensemble predicts, computed on a device: only its results are copied from there.

It is what `rarenode.models.mlp.mean_probs` computes on the CPU, but for rounding. There a row has the same prediction
to the last bit whatever other rows are computed with it; the libraries of other devices do not promise that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rarenode._io.text import counted
from rarenode.errors import DataError
from rarenode.hierarchy import Hierarchy
from rarenode.models.model import Floats, Output
from rarenode.models.network import tensor_of
from rarenode.objective import constrain
from rarenode.objective.uncertainties import UNCERTAINTIES, check_kind

Logits = Callable[[Tensor], Tensor]
"""(rows, features), on the device -> unconstrained logits (models, rows, nodes), there as well."""


def copied(array: NDArray[np.generic], device: torch.device) -> Tensor:
    """The array on a device. On the CPU it is not copied; the copy to a GPU goes on while this process does."""
    there = tensor_of(array)
    if device.type == "cuda":
        there = there.pin_memory()
    return there.to(device, non_blocking=True)


@torch.no_grad()
def mean_probs_on(
    device: torch.device,
    logits: Logits,
    X: NDArray[np.generic],
    nodes: int,
    hierarchy: Hierarchy,
    blocks: Iterable[slice],
    *,
    highest: bool = False,
    kind: str | None = None,
) -> Output:
    """The members' mean of constrained probabilities, and the rest of what `Model.compute` returns.

    ``blocks`` are the rows that are computed at a time.
    """
    if kind is not None:
        check_kind(kind)
    names = ["probs", *(["highest"] if highest else []), *(["uncertainty"] if kind else [])]
    found: dict[str, Floats] = {name: np.empty((len(X), nodes), dtype=np.float32) for name in names}
    for rows in blocks:
        free = logits(copied(X[rows], device)).float().sigmoid()
        members = constrain(free, hierarchy)
        total = torch.zeros_like(members[0])
        for member in members:  # in this order for all nodes, so that no parent falls below its child by rounding
            total += member
        results = [total / len(members)]
        results += [members.amax(0)] if highest else []
        results += [] if kind is None else [UNCERTAINTIES[kind](free)]
        for name, result in zip(names, torch.stack(results).cpu().numpy(), strict=True):
            found[name][rows] = result
    if np.isnan(found["probs"]).any():
        bad = counted(int(np.isnan(found["probs"]).any(axis=1).sum()), "row")
        raise DataError(f"the network returned NaN for {bad}: its weights, or the features, are too large")
    return Output(found["probs"], found.get("highest"), found.get("uncertainty"))
