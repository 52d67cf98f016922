"""Which engine computes a training, and on which device."""

from __future__ import annotations

from typing import Literal, get_args

import torch

from rarenode.engines.distributed_engine import make_distributed
from rarenode.engines.encoder_training import EncoderTraining
from rarenode.engines.engine import Adam, Engine, Objective
from rarenode.engines.fused_engine import FusedEngine
from rarenode.engines.torch_engine import TorchEngine
from rarenode.engines.torchrun import active_group
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
    encoder: torch.nn.Module | None = None,
    n_jobs: int | None = None,
    encoder_training: EncoderTraining | None = None,
) -> Engine:
    """The engine of that name; with `several_processes`, one that all of them compute.

    Args:
        name: ``fused``, ``torch``, or ``auto``: ``fused`` for perceptrons on the CPU, else ``torch``, as for a loss of
            one's own. The engine's ``name`` says which it is.
        shape: the perceptrons, or the heads behind the encoder.
        parameters: where they start.
        objective: what training minimises.
        adam: the optimiser.
        seed: decides the dropout.
        device: see `resolve_device`.
        encoder: a module in front of the heads, from (rows, features) to (rows, ``shape.features``); a `PixelEncoder`
            takes pixels. It is trained with them, in place, unless its parameters do not require a gradient.
        n_jobs: the largest number of threads on the CPU; None or -1: all that are available.
        encoder_training: how the encoder is trained; None: with the defaults of `EncoderTraining`.
    """
    if name not in get_args(EngineName):
        raise ArgumentError(f"unknown engine {name!r}; choose one of {', '.join(get_args(EngineName))}")
    device = resolve_device(device)
    if name == "fused" and device != "cpu":
        raise ArgumentError(f"the fused engine runs on the cpu, not on {device!r}; choose engine 'torch' or 'auto'")
    if name == "fused" and encoder is not None:
        raise ArgumentError("the fused engine trains perceptrons only; with an encoder choose engine 'torch' or 'auto'")
    group = active_group()
    is_given = objective.given is not None
    if is_given and name == "fused":
        raise ArgumentError("the fused engine has its own loss; for another one choose engine 'torch' or 'auto'")
    if is_given and group is not None:
        raise ArgumentError("a loss of one's own is computed by one process; start it without torchrun")
    is_torch = name == "torch" or device != "cpu" or encoder is not None or is_given
    if group is not None:
        chosen = "torch" if is_torch else "fused"
        several = make_distributed(
            group, chosen, shape, parameters, objective, adam, seed, device, encoder, n_jobs, encoder_training
        )
        if several is not None:
            return several
    if is_torch:
        return TorchEngine(shape, parameters, objective, adam, seed, device, encoder, n_jobs, encoder_training)
    return FusedEngine(shape, parameters, objective, adam, seed, n_jobs)


def resolve_device(device: str) -> str:
    """The device to use: ``cpu``, ``cuda``, ``cuda:0`` and so on, ``mps``, or for ``auto`` the fastest of those here.

    Raises:
        ArgumentError: the device is unknown or not available; the message lists those that are.
    """
    available = ["cpu"]
    if torch.backends.mps.is_available():
        available.insert(0, "mps")
    if torch.cuda.is_available():
        available = ["cuda", *(f"cuda:{i}" for i in range(torch.cuda.device_count())), *available]
    if device == "auto":
        return available[0]
    if device not in available:
        raise ArgumentError(f"device {device!r} is not available; choose auto, {', '.join(available)}")
    return device
