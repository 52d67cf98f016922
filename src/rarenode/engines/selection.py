"""Which engine computes a training."""

from __future__ import annotations

from typing import Literal, get_args

from rarenode.engines.engine import Adam, Engine, Objective
from rarenode.engines.fused_engine import FusedEngine
from rarenode.engines.torch_engine import TorchEngine
from rarenode.errors import ArgumentError
from rarenode.models import MlpEnsemble
from rarenode.models.ensemble import Parameters

EngineName = Literal["auto", "fused", "torch"]


def make_engine(
    name: EngineName,
    shape: MlpEnsemble,
    parameters: Parameters,
    objective: Objective,
    adam: Adam,
    seed: int,
    device: str = "cpu",
) -> Engine:
    """The engine of that name. ``auto`` is ``fused`` on the CPU and ``torch`` elsewhere; ``engine.name`` tells."""
    if name not in get_args(EngineName):
        raise ArgumentError(f"unknown engine {name!r}; choose one of {', '.join(get_args(EngineName))}")
    if name == "fused" and device != "cpu":
        raise ArgumentError(f"the fused engine runs on the cpu, not on {device!r}; choose engine 'torch' or 'auto'")
    if name == "torch" or device != "cpu":
        return TorchEngine(shape, parameters, objective, adam, seed, device)
    return FusedEngine(shape, parameters, objective, adam, seed)
