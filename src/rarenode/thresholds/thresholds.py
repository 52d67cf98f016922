"""`Thresholds`: one threshold for each node, and from probabilities to decisions.

A node is decided in a row where its probability is at least its threshold; then the decisions are made coherent. A
threshold of infinity means never.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.labels import as_array
from rarenode.thresholds.coherence import Rule, check_rule, make_coherent

MOST_NODES = 10_000_000
MOST_CHARACTERS = 200
_KEYS = ("rule", "strategy", "values")


@dataclass(frozen=True, eq=False)
class Thresholds:
    """One threshold for each node of a hierarchy, in column order.

    >>> chain = Hierarchy.from_edges([("a", "b")])
    >>> Thresholds(np.array([0.5, 0.1]), strategy="by hand").decide([[0.3, 0.2], [0.6, 0.05]], chain).astype(int)
    array([[1, 1],
           [1, 0]])
    """

    values: NDArray[np.float64]
    """(nodes,), at least 0, infinity for never (read-only)."""
    rule: Rule = "add_ancestors"
    """How decisions are made coherent; see `rarenode.thresholds.coherence`."""
    strategy: str = ""
    """How the thresholds came to be, in one line."""

    def __post_init__(self) -> None:
        check_rule(self.rule)
        text = self.strategy
        if not isinstance(text, str) or len(text) > MOST_CHARACTERS or not text.isprintable():
            raise ArgumentError(f"strategy must be one printable line of at most {MOST_CHARACTERS} characters")
        given = np.asarray(self.values)
        if given.ndim != 1 or given.dtype.kind not in "iuf":
            raise ArgumentError(f"thresholds must be one number for each node; got {given.dtype} {given.shape}")
        values = given.astype(np.float64) + 0.0  # -0.0 and 0.0 are one threshold, and must be one content
        wrong = ~(values >= 0)
        if wrong.any():
            node = int(np.argmax(wrong))
            raise ArgumentError(f"column {node}: a threshold must be at least 0 or infinite, got {values[node]}")
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    def decide(self, probs: Any, hierarchy: Hierarchy) -> NDArray[np.bool_]:
        """Coherent decisions (rows, nodes) from probabilities (rows, nodes)."""
        probabilities = as_probabilities(probs)
        if not len(hierarchy) == len(self.values) == probabilities.shape[1]:
            raise ArgumentError(
                f"there are thresholds for {len(self.values)} nodes, probabilities for {probabilities.shape[1]}, "
                f"and the hierarchy has {len(hierarchy)}; the three must be equal"
            )
        return make_coherent(probabilities >= self.values, hierarchy, self.rule)

    def in_words(self, fitted_here: bool = False) -> str:
        """How they came to be, for people; ``fitted_here``: on the very rows that are looked at.

        >>> Thresholds(np.zeros(1), strategy="tuned").in_words(fitted_here=True)
        'tuned, fitted to these rows with their labels'
        """
        strategy = self.strategy or "thresholds of its own"
        if not fitted_here or strategy.startswith("fixed"):
            return strategy
        labels = "without" if strategy.startswith(("expected_f", "prior")) else "with"
        return f"{strategy}, fitted to these rows {labels} their labels"

    def to_dict(self) -> dict[str, Any]:
        """What `from_dict` reads, ready for JSON, which has no infinity: never is None."""
        values = [None if value == np.inf else value for value in self.values.tolist()]
        return {"rule": self.rule, "strategy": self.strategy, "values": values}

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """The thresholds that `to_dict` wrote.

        Raises:
            ArgumentError: it is anything else.
        """
        if not isinstance(content, Mapping) or set(content) != set(_KEYS):
            raise ArgumentError(f"thresholds must be a mapping with exactly the keys {', '.join(_KEYS)}")
        values = content["values"]
        if not isinstance(values, list) or len(values) > MOST_NODES:
            raise ArgumentError(f"the values of thresholds must be a list of at most {MOST_NODES:,} entries")
        for node, value in enumerate(values):
            # JSON may hold a whole number beyond the largest float, which could not be made one.
            if value is not None and not (_is_number(value) and 0 <= value <= sys.float_info.max):
                raise ArgumentError(f"value {node} of the thresholds must be a number of at least 0, or null for never")
        array = np.array([np.inf if value is None else float(value) for value in values], dtype=np.float64)
        return cls(array, content["rule"], content["strategy"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thresholds) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[bytes, str, str]:
        return self.values.tobytes(), self.rule, self.strategy


def as_probabilities(probs: Any) -> NDArray[np.floating[Any]]:
    """``probs`` as (rows, nodes) of float32 or float64, not copied if they are that, or an error that says where."""
    array = as_array(probs)
    if array.ndim != 2 or array.dtype.kind not in "iuf":
        raise ArgumentError(f"probabilities must be numbers (rows, nodes); got {array.dtype} {array.shape}")
    single = array.dtype.kind == "f" and array.dtype.itemsize <= 4
    # The smallest and the largest need no array of their own, and are NaN where one is.
    if array.size and not (array.min() >= 0 and array.max() <= 1):
        row, node = np.argwhere(~((array >= 0) & (array <= 1)))[0].tolist()
        raise ArgumentError(f"row {row}, column {node}: a probability must be from 0 to 1, got {array[row, node]}")
    return array.astype(np.float32 if single else np.float64, copy=False)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
