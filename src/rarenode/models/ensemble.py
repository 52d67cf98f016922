"""The shape of an ensemble of multi-layer perceptrons, and its initial parameters.

An ensemble has ``members``. ``independent`` members are separate networks. ``dropout`` members are Monte-Carlo passes
through one network, each with its own dropout mask; they exist in training only.

Parameters are float32 arrays with the networks first: ``layer0.weight`` (models, out, in), ``layer0.bias`` (models,
out), and so on. They are initialised as PyTorch's Linear layers are, uniform in +-1/sqrt(in), from a random stream for
each network, so that a network does not depend on how many others there are.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from itertools import pairwise
from typing import Self, get_args

import numpy as np
from numpy.typing import NDArray

from rarenode.config import Settings
from rarenode.config.choices import Activation, EnsembleKind
from rarenode.errors import ArgumentError

Parameters = dict[str, NDArray[np.float32]]
MOST = 2**31
"""No size in a file may be larger."""
MOST_LAYERS = 100
"""Each layer has arrays with names, so a file that claims a billion layers would take as long to refuse."""


@dataclass(frozen=True)
class MlpEnsemble:
    """The shape of an ensemble of perceptrons."""

    features: int
    nodes: int
    hidden: int = 500
    layers: int = 3
    """Linear layers; 1 is a linear model."""
    dropout: float = 0.7
    """The chance that a hidden unit is dropped in training."""
    activation: Activation = "relu"
    members: int = 1
    ensemble: EnsembleKind = "independent"

    def __post_init__(self) -> None:
        for name in ("features", "nodes", "hidden", "layers", "members"):
            value, most = getattr(self, name), MOST_LAYERS if name == "layers" else MOST
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
                raise ArgumentError(f"{name} must be a whole number from 1 to {most:,}, got {value!r}")
        if not isinstance(self.dropout, int | float) or not 0 <= self.dropout < 1:
            raise ArgumentError(f"dropout must be at least 0 and less than 1, got {self.dropout!r}")
        if self.activation not in get_args(Activation):
            raise ArgumentError(
                f"unknown activation {self.activation!r}; choose one of {', '.join(get_args(Activation))}"
            )
        if self.ensemble not in get_args(EnsembleKind):
            raise ArgumentError(
                f"unknown ensemble {self.ensemble!r}; choose one of {', '.join(get_args(EnsembleKind))}"
            )

    @classmethod
    def from_settings(cls, settings: Settings, features: int, nodes: int) -> Self:
        """The ensemble that settings describe, for data of that width."""
        return cls(
            features=features,
            nodes=nodes,
            hidden=settings.hidden_size,
            layers=settings.n_layers,
            dropout=settings.dropout,
            activation=settings.activation,
            members=settings.n_members,
            ensemble=settings.ensemble,
        )

    @property
    def models(self) -> int:
        """Sets of parameters."""
        return self.members if self.ensemble == "independent" else 1

    @property
    def passes(self) -> int:
        """Stochastic passes through each model in training."""
        return self.members // self.models

    @property
    def sizes(self) -> tuple[tuple[int, int], ...]:
        """(in, out) of each layer."""
        widths = [self.features, *[self.hidden] * (self.layers - 1), self.nodes]
        return tuple(pairwise(widths))

    @property
    def parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """Name -> shape of every array of parameters."""
        shapes: dict[str, tuple[int, ...]] = {}
        for layer, (inputs, outputs) in enumerate(self.sizes):
            shapes[f"layer{layer}.weight"] = (self.models, outputs, inputs)
            shapes[f"layer{layer}.bias"] = (self.models, outputs)
        return shapes

    @property
    def parameter_bytes(self) -> int:
        """The memory that all parameters take."""
        return 4 * sum(map(math.prod, self.parameter_shapes.values()))


def initial_parameters(shape: MlpEnsemble, seed: int, shares: NDArray[np.float64] | None = None) -> Parameters:
    """The parameters before the first step.

    Args:
        shape: of the ensemble.
        seed: decides all random ones.
        shares: (nodes,), above 0 and below 1: the biases of the output layer are their log odds; None: random.

    Raises:
        MemoryError: there is not enough memory for them.
    """
    training = 4 * shape.parameter_bytes  # with gradients or a copy, and Adam's moments
    if training > sys.maxsize:  # no array can have so many, which numpy takes for another error
        raise MemoryError
    np.empty(training, dtype=np.uint8)  # fails now, and not after some steps
    arrays = {name: np.empty(size, dtype=np.float32) for name, size in shape.parameter_shapes.items()}
    for model in range(shape.models):
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, model])))
        for layer, (inputs, _) in enumerate(shape.sizes):
            bound = 1 / np.sqrt(inputs)
            for part in ("weight", "bias"):
                array = arrays[f"layer{layer}.{part}"][model]
                array[...] = rng.uniform(-bound, bound, size=array.shape)
    if shares is not None:
        arrays[f"layer{len(shape.sizes) - 1}.bias"][...] = np.log(shares) - np.log1p(-shares)
    return arrays
