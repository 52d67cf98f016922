"""`Strategy`: from probabilities of rows that the model was not trained on to one threshold for each node.

On rows that it was trained on a model is surer than it will ever be again, and thresholds fitted there come out too
high. A strategy without need of labels can be fitted on the very rows that are to be decided.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rarenode.errors import ArgumentError, LabelError
from rarenode.hierarchy.labels import as_array, as_indicator
from rarenode.thresholds.coherence import Rule
from rarenode.thresholds.thresholds import Thresholds, as_probabilities


@dataclass(frozen=True, eq=False)
class HeldOut:
    """What a strategy may look at, checked."""

    probs: NDArray[np.floating[Any]]
    """(rows, nodes), at least one row."""
    labels: NDArray[np.bool_] | None
    """(rows, nodes)."""
    prior: NDArray[np.float64] | None
    """(nodes,), from 0 to 1."""

    @property
    def nodes(self) -> int:
        """How many there are."""
        return int(self.probs.shape[1])


class Strategy(ABC):
    """A way to choose thresholds. Its outcome depends neither on the order of rows nor on that of nodes."""

    needs_labels: ClassVar[bool] = False
    """Whether `fit` must be given ``Y``."""
    needs_prior: ClassVar[bool] = False
    """Whether `fit` must be given ``prior``."""

    @property
    @abstractmethod
    def name(self) -> str:
        """What `make_strategy` makes this strategy from."""

    @abstractmethod
    def choose(self, rows: HeldOut) -> NDArray[np.float64]:
        """A threshold for each node, from input that `fit` has checked."""

    def fit(self, probs: Any, Y: Any = None, *, prior: Any = None, rule: Rule = "add_ancestors") -> Thresholds:
        """Choose a threshold for each node.

        Args:
            probs: coherent probabilities (rows, nodes) of rows that the model was not trained on.
            Y: the labels of these rows, 0 or 1. Strategies that do not need them may be given them or not.
            prior: for each node, the share of the training rows that carry it.
            rule: how decisions will be made coherent.

        Raises:
            ArgumentError: something that this strategy needs is missing, or is not what it should be.
            LabelError: the labels are not 0 or 1, or not of the shape of the probabilities.
        """
        if self.needs_labels and Y is None:
            raise ArgumentError(f"{self.name} needs Y, the labels of the rows")
        if self.needs_prior and prior is None:
            raise ArgumentError(f"{self.name} needs prior, the share of the training rows that carry each node")
        probabilities = as_probabilities(probs)
        if not len(probabilities):
            raise ArgumentError("thresholds need at least one row of probabilities")
        labels = None if Y is None else as_indicator(Y, "labels")
        if labels is not None and labels.shape != probabilities.shape:
            raise LabelError(f"labels {labels.shape} and probabilities {probabilities.shape} must have the same shape")
        shares = None if prior is None else _as_prior(prior, probabilities.shape[1])
        return Thresholds(self.choose(HeldOut(probabilities, labels, shares)), rule, self.name)


def check_number(value: object, what: str, least: float = 0.0, most: float = np.inf, *, open_below: bool) -> None:
    """Refuse what is not a finite number from ``least``, itself excluded if ``open_below``, to ``most``."""
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else np.nan
    if not ((least < number if open_below else least <= number) and number <= most and number < np.inf):
        lower = f"above {least:g}" if open_below else f"of at least {least:g}"
        upper = "" if most == np.inf else f" and at most {most:g}"
        raise ArgumentError(f"{what} must be a number {lower}{upper}, got {value!r}")


def with_number(name: str, number: float) -> str:
    """A name that ends in a number, written so that reading it gives the same number."""
    return name + repr(float(number)).removesuffix(".0")


def _as_prior(prior: Any, nodes: int) -> NDArray[np.float64]:
    shares = as_array(prior)
    if shares.shape != (nodes,) or shares.dtype.kind not in "iuf" or not ((shares >= 0) & (shares <= 1)).all():
        raise ArgumentError(f"prior must be one share from 0 to 1 for each of {nodes} nodes")
    return shares.astype(np.float64)
