"""Strategies from their names, as text can hold them.

``fixed``, ``fixed:0.3``; ``global``, ``global:micro_f1``; ``expected_f1``, ``expected_f2``, ``expected_f0.5``;
``prior``, ``prior:1.5``; ``tuned``, ``tuned:5``; ``precision_floor:0.2``. A strategy's ``name`` gives it back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import cast

from rarenode.errors import ArgumentError
from rarenode.thresholds.expected_f import ExpectedF
from rarenode.thresholds.fixed import Fixed
from rarenode.thresholds.global_threshold import GlobalThreshold, Metric
from rarenode.thresholds.precision_floor import PrecisionFloor
from rarenode.thresholds.prior_matched import PriorMatched
from rarenode.thresholds.strategy import Strategy
from rarenode.thresholds.tuned_per_node import TunedPerNode

EXAMPLES = ("fixed", "fixed:0.3", "global", "expected_f1", "prior", "prior:1.5", "tuned", "precision_floor:0.2")
MOST_CHARACTERS = 100

_PLAIN: Mapping[str, Callable[[], Strategy]] = MappingProxyType(
    {"fixed": Fixed, "global": GlobalThreshold, "prior": PriorMatched, "tuned": TunedPerNode}
)
_WITH_NUMBER: Mapping[str, Callable[[float], Strategy]] = MappingProxyType(
    {
        "expected_f": ExpectedF,
        "fixed:": Fixed,
        "prior:": PriorMatched,
        "tuned:": TunedPerNode,
        "precision_floor:": PrecisionFloor,
    }
)


def make_strategy(text: str) -> Strategy:
    """The strategy of that name.

    Raises:
        ArgumentError: there is none, or its number is out of range.

    >>> make_strategy("expected_f2")
    ExpectedF(beta=2.0)
    """
    if isinstance(text, str) and len(text) <= MOST_CHARACTERS:
        if text in _PLAIN:
            return _PLAIN[text]()
        if text.startswith("global:"):
            return GlobalThreshold(cast(Metric, text.removeprefix("global:")))  # which refuses what is no metric
        for beginning, make in _WITH_NUMBER.items():
            number = _number(text.removeprefix(beginning)) if text.startswith(beginning) else None
            if number is not None:
                return make(number)
    shown = repr(text) if len(str(text)) <= MOST_CHARACTERS else f"of {len(str(text)):,} characters"
    raise ArgumentError(f"unknown decision {shown}; it may be, for example, {', '.join(EXAMPLES)}")


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None
