"""`RowModel`: models that predict by a weighted vote of training rows.

    p(node | x) = sum_r w_r(x) [r has node]

A forest and nearest neighbours differ in the weights alone. What they share is here: the labels of training rows, the
description, and the uncertainty, which is that of a single member.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, fields
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from rarenode._io.compiled import start_threads
from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy
from rarenode.models.model import Floats, Layout, Output, check_arrays, check_input
from rarenode.models.training_labels import Integers, check_closed, overall_share
from rarenode.objective import constrain
from rarenode.objective import uncertainty as uncertainty_of


class RowModel(ABC):
    """A weighted vote of training rows. Subclasses are dataclasses with these fields, and others."""

    nodes: int
    hierarchy: Hierarchy | None
    """Of the nodes; required where labels are unknown."""
    label_starts: Integers
    """(training rows + 1,): the nodes of a row are ``label_columns[label_starts[row]:label_starts[row + 1]]``."""
    label_columns: Integers
    """Columns of nodes, rising within a row."""
    row_weights: NDArray[np.float64]
    """(training rows,): how much each counts."""
    unknown_starts: Integers
    """(training rows + 1,): likewise for the nodes that are unknown in a row; empty if all labels are known."""
    unknown_columns: Integers

    own: ClassVar[tuple[str, ...]]
    """Fields that the description has besides the sizes."""
    sizes_of: ClassVar[type[Any]]
    """The dataclass of `sizes`: the numbers from which the types and shapes of all arrays follow."""

    @property
    @abstractmethod
    def sizes(self) -> Any:
        """What must be known to read `arrays` from a file."""

    @property
    @abstractmethod
    def n_features(self) -> int:
        """Columns of the input."""

    @abstractmethod
    def write_probs(self, X: Floats, probs: Floats) -> None:
        """Compute probabilities (rows, nodes) of rows (rows, features), before the max constraint."""

    def __getstate__(self) -> dict[str, Any]:
        """Without what is computed from the rest when it is needed."""
        return {name: getattr(self, name) for name in self.__match_args__}  # type: ignore[attr-defined]

    @property
    def n_nodes(self) -> int:
        """Columns of the output."""
        return self.nodes

    def compute(self, X: Floats, *, highest: bool = False, uncertainty: str | None = None) -> Output:
        """See `Model.compute`. There is one member: the uncertainty is that of its probabilities."""
        probs = self.predict_proba(X)
        return Output(probs, uncertainty=None if uncertainty is None else uncertainty_of(probs[None], uncertainty))

    def predict_proba(self, X: Floats) -> Floats:
        """Coherent probabilities (rows, nodes) of rows (rows, features), whatever the number of threads."""
        check_input(X, self.n_features)
        probs = np.empty((len(X), self.nodes), dtype=np.float32)
        start_threads()
        self.write_probs(np.ascontiguousarray(X), probs)
        return probs if self.hierarchy is None or not self.sizes.unknown else constrain(probs, self.hierarchy)

    @cached_property
    def overall_share(self) -> NDArray[np.float64]:
        """(nodes,): the share that has each node, of the training rows where it is known; empty if all labels are."""
        if not self.sizes.unknown:
            return np.empty(0)
        labels, unknown = (self.label_starts, self.label_columns), (self.unknown_starts, self.unknown_columns)
        return overall_share(self.nodes, self.row_weights, labels, unknown)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """The arrays, by name."""
        return {name: getattr(self, name) for name in self.sizes.layout()}

    def describe(self) -> dict[str, Any]:
        """See `Model.describe`."""
        sizes = asdict(self.sizes)
        if not self.sizes.unknown:
            del sizes["unknown"]
        return {name: getattr(self, name) for name in self.own} | sizes

    @classmethod
    def layout(cls, description: Mapping[str, Any]) -> Layout:
        """See `Model.layout`."""
        expected = {*cls.own, *(size.name for size in fields(cls.sizes_of))}
        odd = min((expected ^ set(description)) - {"unknown"}, default=None)
        if odd is not None:
            raise ArgumentError(f"its description {'must not' if odd in description else 'must'} contain {odd!r}")
        layout: Layout = cls.sizes_of(**{n: v for n, v in description.items() if n not in cls.own}).layout()
        return layout

    @classmethod
    def from_arrays(
        cls, description: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], hierarchy: Hierarchy
    ) -> Self:
        """See `Model.from_arrays`; an error says which array is wrong, and where."""
        check_arrays(arrays, cls.layout(description))
        if description["nodes"] != len(hierarchy):
            raise ArgumentError(f"the model has {description['nodes']} nodes, and the hierarchy {len(hierarchy)}")
        make: Any = cls  # subclasses are dataclasses, which mypy cannot know
        model: Self = make(**{name: description[name] for name in cls.own}, hierarchy=hierarchy, **arrays)
        check_closed(model.label_starts, model.label_columns, hierarchy)
        return model
