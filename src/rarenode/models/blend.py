"""`Blend`: the geometric mean of the probabilities of several models.

It is high only where all of them are, and coherent because they are: products and roots keep the order of
non-negative numbers, and rounding never reverses it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy
from rarenode.models.forest import Forest
from rarenode.models.mlp import Mlp
from rarenode.models.model import Floats, Layout, Model, Output, check_arrays
from rarenode.models.neighbours import Neighbours

MODELS: dict[str, type[Model]] = {Mlp.kind: Mlp, Forest.kind: Forest, Neighbours.kind: Neighbours}
"""Kind -> model that a blend may contain."""


@dataclass(frozen=True, eq=False)
class Blend:
    """Several models over the same features and nodes. The uncertainty is that of the first."""

    models: tuple[Model, ...]
    kind: ClassVar[str] = "blend"

    def __post_init__(self) -> None:
        if len(self.models) < 2 or len({model.kind for model in self.models}) < len(self.models):
            raise ArgumentError("a blend needs at least two models of different kinds")
        if len({(model.n_features, model.n_nodes) for model in self.models}) > 1:
            raise ArgumentError("the models of a blend must have the same features and nodes")

    @property
    def n_features(self) -> int:
        """Columns of the input."""
        return self.models[0].n_features

    @property
    def n_nodes(self) -> int:
        """Columns of the output."""
        return self.models[0].n_nodes

    def compute(self, X: Floats, *, highest: bool = False, uncertainty: str | None = None) -> Output:
        """See `Model.compute`."""
        outputs = [
            model.compute(X, highest=highest, uncertainty=None if place else uncertainty)
            for place, model in enumerate(self.models)
        ]
        product = reduce(np.multiply, (output.probs for output in outputs))
        probs = np.sqrt(product) if len(outputs) == 2 else product ** np.float32(1 / len(outputs))
        each = [output.probs if output.highest is None else output.highest for output in outputs]
        return Output(
            probs=probs,
            highest=reduce(np.maximum, each) if highest else None,
            uncertainty=outputs[0].uncertainty,
        )

    def describe(self) -> dict[str, Any]:
        """See `Model.describe`."""
        return {"models": [{"kind": model.kind} | model.describe() for model in self.models]}

    def arrays(self) -> dict[str, NDArray[Any]]:
        """See `Model.arrays`; each model's arrays begin with its kind."""
        return {f"{model.kind}.{name}": array for model in self.models for name, array in model.arrays().items()}

    @classmethod
    def layout(cls, description: Mapping[str, Any]) -> Layout:
        """See `Model.layout`."""
        return {
            f"{kind}.{name}": form
            for kind, part in _parts(description).items()
            for name, form in MODELS[kind].layout(part).items()
        }

    @classmethod
    def from_arrays(
        cls, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], hierarchy: Hierarchy
    ) -> Self:
        """See `Model.from_arrays`."""
        check_arrays(arrays, cls.layout(description))
        return cls(
            tuple(
                MODELS[kind].from_arrays(
                    part,
                    {n.removeprefix(f"{kind}."): array for n, array in arrays.items() if n.startswith(f"{kind}.")},
                    hierarchy,
                )
                for kind, part in _parts(description).items()
            )
        )


def _parts(description: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    parts = description.get("models")
    if set(description) != {"models"} or not isinstance(parts, list) or len(parts) < 2:
        raise ArgumentError("a blend must be described by a list of at least two models")
    found: dict[str, dict[str, Any]] = {}
    for part in parts:
        kind = part.get("kind") if isinstance(part, dict) else None
        if not isinstance(kind, str) or kind not in MODELS or kind in found:
            raise ArgumentError(f"a blend of {kind!r} is not possible; it may contain each of {', '.join(MODELS)} once")
        found[kind] = {name: value for name, value in part.items() if name != "kind"}
    return found
