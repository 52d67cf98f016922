"""`Strategy`: what chooses thresholds from probabilities of held-out rows, and what it is given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rarenode.config.choices import Rule
from rarenode.errors import ArgumentError
from rarenode.hierarchy.labels import as_known
from rarenode.thresholds.probabilities import as_prior, as_probabilities, as_probabilities_and_labels
from rarenode.thresholds.thresholds import Thresholds

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The input of a strategy, after `Strategy.fit` has checked it."""

    probs: NDArray[np.floating[Any]]
    """(rows, nodes), at least one row; 0 where the label is unknown."""
    labels: NDArray[np.bool_] | None
    """(rows, nodes)."""
    known_rows: NDArray[np.int64]
    """(nodes,): in how many of the rows the label is known."""
    prior: Floats | None
    """(nodes,), from 0 to 1."""

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return int(self.probs.shape[1])


class Strategy(ABC):
    """Chooses thresholds. Subclasses implement ``name`` and `choose`; the order of rows or nodes must not matter."""

    needs_labels: ClassVar[bool] = False
    """Whether `fit` requires ``Y``."""
    needs_prior: ClassVar[bool] = False
    """Whether `fit` requires ``prior``."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The text that `make_strategy` turns into this strategy."""

    @abstractmethod
    def choose(self, rows: HeldOut) -> Floats:
        """A threshold for each node; infinity for a node that is never predicted."""

    def fit(
        self, probs: Any, Y: Any = None, *, known: Any = None, prior: Any = None, rule: Rule | None = "add_ancestors"
    ) -> Thresholds:
        """Choose a threshold for each node.

        Args:
            probs: coherent probabilities (rows, nodes) of held-out rows.
            Y: labels (rows, nodes) of these rows, 0 or 1; optional for strategies without ``needs_labels``.
            known: (rows, nodes), boolean: where labels are known; None: everywhere. Other cells are ignored.
            prior: for each node, its share of positives among the training rows; optional likewise.
            rule: how predictions will be made coherent; None: not at all.

        Returns:
            Thresholds, whose ``decide`` turns probabilities of other rows into predictions.

        Raises:
            ArgumentError: a required argument is missing, or a value is out of range.
            LabelError: the labels are not 0 or 1, or do not have the shape of the probabilities.
        """
        if self.needs_labels and Y is None:
            raise ArgumentError(f"{self.name} needs Y, the labels of the rows")
        if self.needs_prior and prior is None:
            raise ArgumentError(f"{self.name} needs prior, the share of positives of each node in the training rows")
        probabilities, labels = (as_probabilities(probs), None) if Y is None else as_probabilities_and_labels(probs, Y)
        if not len(probabilities):
            raise ArgumentError("thresholds need at least one row of probabilities")
        shares = None if prior is None else as_prior(prior, probabilities.shape[1])
        counts = np.full(probabilities.shape[1], len(probabilities))
        mask = as_known(known, probabilities.shape)
        if mask is not None:
            probabilities, labels = probabilities * mask, None if labels is None else labels & mask
            counts = np.count_nonzero(mask, axis=0)
        return Thresholds(self.choose(HeldOut(probabilities, labels, counts, shares)), rule, self.name)
