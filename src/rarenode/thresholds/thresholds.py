"""`Thresholds`: one threshold for each node, and from probabilities to predictions.

A node is predicted in a row where its probability is at least its threshold; then the predictions are made coherent,
unless there is no rule for that. A node with a threshold of infinity is never predicted.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rarenode._io.text import counted, printable
from rarenode.config.choices import Rule, check_rule
from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy
from rarenode.thresholds.coherence import make_coherent
from rarenode.thresholds.probabilities import as_probabilities

MOST_NODES = 10_000_000
MOST_CHARACTERS = 200
MOST_NAMES = 5
PROMISES = ("precision:", "recall:")
"""How the names of strategies begin that promise something."""
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
    rule: Rule | None = "add_ancestors"
    """How predictions are made coherent; see `rarenode.thresholds.coherence`. None: not at all, each node is decided by
    its own threshold alone, as in guaranteed sets."""
    strategy: str = ""
    """The name of the strategy that chose them, or any other note of one line."""

    def __post_init__(self) -> None:
        if self.rule is not None:
            check_rule(self.rule)
        text = self.strategy
        if not isinstance(text, str) or len(text) > MOST_CHARACTERS or not text.isprintable():
            raise ArgumentError(f"strategy must be one printable line of at most {MOST_CHARACTERS} characters")
        given = np.asarray(self.values)
        if given.ndim != 1 or given.dtype.kind not in "iuf":
            raise ArgumentError(f"thresholds must be one number for each node; got {given.dtype} {given.shape}")
        values = given.astype(np.float64) + 0.0  # -0.0 and 0.0 are the same threshold, and must have the same bytes
        wrong = ~(values >= 0)
        if wrong.any():
            node = int(np.argmax(wrong))
            raise ArgumentError(f"column {node}: a threshold must be at least 0 or infinite, got {values[node]}")
        values.flags.writeable = False
        object.__setattr__(self, "values", values)

    def decide(self, probs: Any, hierarchy: Hierarchy) -> NDArray[np.bool_]:
        """Predictions (rows, nodes) from probabilities (rows, nodes); coherent, if there is a rule."""
        probabilities = as_probabilities(probs)
        if not len(hierarchy) == len(self.values) == probabilities.shape[1]:
            raise ArgumentError(
                f"there are thresholds for {counted(len(self.values), 'node')} and probabilities for "
                f"{probabilities.shape[1]}; the hierarchy has {counted(len(hierarchy), 'node')}"
            )
        reached: NDArray[np.bool_] = probabilities >= self.values
        return reached if self.rule is None else make_coherent(reached, hierarchy, self.rule)

    def in_words(self, fitted_here: bool = False) -> str:
        """How they were chosen, in a few words; ``fitted_here``: on the same rows that they are applied to.

        >>> Thresholds(np.zeros(1), strategy="tuned").in_words(fitted_here=True)
        'tuned, fitted to these rows with their labels'
        >>> Thresholds(np.full(1, 0.5), strategy="fixed").in_words()
        'fixed at 0.5'
        """
        strategy = self.strategy or "custom"
        name, _, value = strategy.partition(":")
        if name == "fixed":
            return f"fixed at {value or '0.5'}"
        if not fitted_here:
            return strategy
        labels = "without" if strategy.startswith(("expected_f", "prior", "midpoint")) else "with"
        return f"{strategy}, fitted to these rows {labels} their labels"

    @property
    def promise(self) -> str:
        """What is promised of the decisions, such as ``precision:0.5`` or ``recall:0.9``; empty if nothing is.

        >>> Thresholds(np.zeros(1), None, "guaranteed, recall:0.9").promise
        'recall:0.9'
        """
        name = self.strategy.rpartition(", ")[2]
        return name if name.startswith(PROMISES) else ""

    def given_up(self, names: Sequence[str], scored: NDArray[np.bool_]) -> str:
        """Which of the scored nodes are never predicted, as nothing can be promised about them; empty if there is none.

        >>> Thresholds(np.array([0.3, np.inf]), strategy="precision:0.5").given_up(["pet", "cat"], np.ones(2, bool))
        '1 of 2 nodes is never predicted, as held-out rows do not prove precision:0.5 for nodes as rare as it: cat'
        """
        columns = np.flatnonzero(np.isinf(self.values) & scored).tolist()
        if not columns or not self.promise:
            return ""
        shown = ", ".join(printable(names[column]) for column in columns[:MOST_NAMES])
        more = f" and {len(columns) - MOST_NAMES:,} more" if len(columns) > MOST_NAMES else ""
        nodes = f"{len(columns):,} of {counted(int(np.count_nonzero(scored)), 'node')}"
        one = len(columns) == 1
        if self.promise.startswith("recall"):
            has = "it has" if one else "they have"
            why = f"{self.promise} takes more held-out rows than {has}, or more probable ones"
        else:
            why = f"held-out rows do not prove {self.promise} for nodes as rare as {'it' if one else 'they are'}"
        return f"{nodes} {'is' if one else 'are'} never predicted, as {why}: {shown}{more}"

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON and `from_dict`; infinity, which JSON does not have, is None."""
        values = [None if value == np.inf else value for value in self.values.tolist()]
        return {"rule": self.rule, "strategy": self.strategy, "values": values}

    @classmethod
    def from_dict(cls, content: Any) -> Self:
        """The thresholds that `to_dict` wrote.

        Raises:
            ArgumentError: the content is not of that form.
        """
        if not isinstance(content, Mapping) or set(content) != set(_KEYS):
            raise ArgumentError(f"thresholds must be a mapping with exactly the keys {', '.join(_KEYS)}")
        values = content["values"]
        if not isinstance(values, list) or len(values) > MOST_NODES:
            raise ArgumentError(f"the values of thresholds must be a list of at most {MOST_NODES:,} entries")
        for node, value in enumerate(values):
            # JSON may hold an integer beyond the largest float.
            if value is not None and not (_is_number(value) and 0 <= value <= sys.float_info.max):
                raise ArgumentError(f"threshold {node} must be a number of at least 0, or null for infinity")
        array = np.array([np.inf if value is None else float(value) for value in values], dtype=np.float64)
        return cls(array, content["rule"], content["strategy"])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Thresholds) and self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def _content(self) -> tuple[bytes, str | None, str]:
        return self.values.tobytes(), self.rule, self.strategy


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
