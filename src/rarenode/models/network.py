"""The ensemble as a torch module: all members in one batched product per layer.

A network is anything that turns (rows, features) into (members, rows, nodes). `MlpNetwork` is the one that is built
in. An encoder with many heads is `EncodedNetwork`: one pass through the encoder, then the heads.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from rarenode.models.ensemble import MlpEnsemble, Parameters

Masks = Callable[[int, int, int], Tensor]
"""(layer, rows, width) -> boolean (members, rows, width): the units that are kept."""


class MlpNetwork(torch.nn.Module):
    """An `MlpEnsemble` with parameters."""

    def __init__(self, shape: MlpEnsemble, parameters: Parameters) -> None:
        super().__init__()
        self.shape = shape
        self.values = torch.nn.ParameterDict(
            {name.replace(".", "_"): torch.nn.Parameter(torch.tensor(array)) for name, array in parameters.items()}
        )

    def parameter(self, name: str) -> torch.nn.Parameter:
        """The parameter of that name, ``layer0.weight`` and so on."""
        value: torch.nn.Parameter = self.values[name.replace(".", "_")]
        return value

    def forward(self, X: Tensor, masks: Masks | None = None) -> Tensor:
        """Logits (members, rows, nodes); without masks there is no dropout, and a model is a member once."""
        shape = self.shape
        rows = len(X)
        passes = shape.passes if masks is not None else 1
        hidden = X.repeat(passes, 1).expand(shape.models, passes * rows, shape.features)
        for layer in range(shape.layers):
            weight, bias = self.parameter(f"layer{layer}.weight"), self.parameter(f"layer{layer}.bias")
            hidden = torch.baddbmm(bias.unsqueeze(1), hidden, weight.transpose(1, 2))
            if layer < shape.layers - 1:
                hidden = hidden.relu() if shape.activation == "relu" else hidden.tanh()
                if masks is not None and shape.dropout:
                    kept = masks(layer, rows, shape.hidden).reshape(hidden.shape)
                    hidden = hidden * kept / (1 - shape.dropout)
        return hidden.reshape(shape.models * passes, rows, shape.nodes)


class EncodedNetwork(torch.nn.Module):
    """An encoder whose output all heads share. Freeze the encoder by setting its parameters' ``requires_grad``."""

    def __init__(self, encoder: torch.nn.Module, heads: MlpNetwork) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = heads
        self.shape = heads.shape

    def forward(self, X: Tensor, masks: Masks | None = None) -> Tensor:
        """Logits (members, rows, nodes)."""
        logits: Tensor = self.heads(self.encoder(X), masks)
        return logits
