"""The ensemble as a torch module: all members in one batched product per layer.

A network maps (rows, features) to (members, rows, nodes). `MlpNetwork` is the plain ensemble; `EncodedNetwork` puts an
encoder in front of it, which all members share.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rarenode.models.ensemble import MlpEnsemble, Parameters
from rarenode.models.pixels import Change

Masks = Callable[[int, int, int], Tensor]
"""(layer, rows, width) -> boolean (members, rows, width): the units that are kept."""


class MlpNetwork(torch.nn.Module):
    """An `MlpEnsemble` with parameters.

    Contiguous float32 arrays are used as they are, so building a network costs nothing, however large it is. Training
    it would change them: pass copies for that.
    """

    def __init__(self, shape: MlpEnsemble, parameters: Parameters) -> None:
        super().__init__()
        self.shape = shape
        self.values = torch.nn.ParameterDict(
            {
                name.replace(".", "_"): torch.nn.Parameter(tensor_of(np.asarray(array, dtype=np.float32)))
                for name, array in parameters.items()
            }
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
        several = X if passes == 1 else X.repeat(passes, 1)  # which would copy for a single pass too
        hidden = several.expand(shape.models, passes * rows, shape.features)
        for layer in range(shape.layers):
            weight, bias = self.parameter(f"layer{layer}.weight"), self.parameter(f"layer{layer}.bias")
            hidden = torch.baddbmm(bias.unsqueeze(1), hidden, weight.transpose(1, 2))
            if layer < shape.layers - 1:
                hidden = hidden.relu() if shape.activation == "relu" else hidden.tanh()
                if masks is not None and shape.dropout:
                    kept = masks(layer, rows, shape.hidden).reshape(hidden.shape)
                    hidden = hidden * kept / (1 - shape.dropout)
        return hidden.reshape(shape.models * passes, rows, shape.nodes)


def tensor_of(array: NDArray[np.generic]) -> Tensor:
    """A tensor in the memory of the array, if that is contiguous."""
    array = np.asarray(array, order="C")
    if array.flags.writeable:
        return torch.from_numpy(array)
    with warnings.catch_warnings():
        # torch warns that a read-only array could be written to; prediction does not write.
        warnings.filterwarnings("ignore", "The given NumPy array is not writ", UserWarning)
        return torch.from_numpy(array)


class EncodedNetwork(torch.nn.Module):
    """An encoder whose output all heads share. Freeze the encoder by setting its parameters' ``requires_grad``."""

    def __init__(self, encoder: torch.nn.Module, heads: MlpNetwork) -> None:
        super().__init__()
        self.encoder = encoder
        self.heads = heads
        self.shape = heads.shape

    def forward(self, X: Tensor, masks: Masks | None = None, change: Change | None = None) -> Tensor:
        """Logits (members, rows, nodes); ``change`` is for a `PixelEncoder`, whose images it varies."""
        features = self.encoder(X) if change is None else self.encoder(X, change)
        logits: Tensor = self.heads(features, masks)
        return logits
