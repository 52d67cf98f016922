"""Threshold strategies as text: ``fixed:0.3``, ``expected_f1``, ``tuned``.

Settings, command lines and files name a strategy by text. This module knows the names and the ranges of their numbers,
and depends on nothing but the errors, so that settings can be checked without numpy or torch.

==================================  =========================================  ==========================
text                                strategy                                   number
==================================  =========================================  ==========================
``fixed``, ``fixed:0.3``            `rarenode.thresholds.Fixed`                threshold, 0.5 by default
``global``, ``global:micro_f1``     `rarenode.thresholds.GlobalThreshold`      none
``expected_f1``, ``expected_f0.5``  `rarenode.thresholds.ExpectedF`            beta
``prior``, ``prior:1.5``            `rarenode.thresholds.PriorMatched`         factor, 1 by default
``tuned``, ``tuned:5``              `rarenode.thresholds.TunedPerNode`         shrinkage, 10 by default
``precision_floor:0.2``             `rarenode.thresholds.PrecisionFloor`       precision
==================================  =========================================  ==========================
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Literal, get_args

from rarenode.errors import ArgumentError

Rule = Literal["add_ancestors", "drop_orphans"]
"""How predictions are made coherent; see `rarenode.thresholds.coherence`."""
EXAMPLES = ("fixed", "fixed:0.3", "global", "expected_f1", "prior", "prior:1.5", "tuned", "precision_floor:0.2")
MOST_CHARACTERS = 100


@dataclass(frozen=True)
class Number:
    """The number in the name of a strategy."""

    parameter: str
    """The name of the strategy's parameter."""
    lowest: float
    highest: float
    lowest_excluded: bool
    default: float | None = None
    """What a name without a number stands for; None if the number is required."""
    separator: str = ":"
    """Between name and number."""


STRATEGIES: Mapping[str, Number | None] = MappingProxyType(
    {
        "fixed": Number("threshold", 0.0, 1.0, lowest_excluded=False, default=0.5),
        "global": None,
        "global:micro_f1": None,
        "expected_f": Number("beta", 0.0, 1e6, lowest_excluded=True, separator=""),
        "prior": Number("factor", 0.0, 1e6, lowest_excluded=True, default=1.0),
        "tuned": Number("shrinkage", 0.0, math.inf, lowest_excluded=False, default=10.0),
        "precision_floor": Number("precision", 0.0, 1.0, lowest_excluded=True),
    }
)
"""The names of strategies, and the number that may follow each."""


def parse_strategy(text: str) -> tuple[str, float | None]:
    """The name in `STRATEGIES` of the strategy that a text describes, and its number; None if it has none.

    Raises:
        ArgumentError: there is no such strategy, or its number is out of range.

    >>> parse_strategy("expected_f2"), parse_strategy("fixed"), parse_strategy("global")
    (('expected_f', 2.0), ('fixed', 0.5), ('global', None))
    """
    if isinstance(text, str) and len(text) <= MOST_CHARACTERS:
        if text == "global:f1":
            return "global", None
        for name, number in STRATEGIES.items():
            if text == name and (number is None or number.default is not None):
                return name, None if number is None else number.default
            if number is not None and text.startswith(beginning := name + number.separator):
                value = _as_float(text.removeprefix(beginning))
                if value is not None:
                    check_number(name, value)
                    return name, value
    raise ArgumentError(_unknown(text))


def format_strategy(name: str, value: float | None = None) -> str:
    """The shortest text that `parse_strategy` reads as this name and number.

    >>> format_strategy("fixed", 0.5), format_strategy("fixed", 0.3), format_strategy("expected_f", 1.0)
    ('fixed', 'fixed:0.3', 'expected_f1')
    """
    number = STRATEGIES[name]
    if number is None or value is None or value == number.default:
        return name
    return name + number.separator + repr(float(value)).removesuffix(".0")


def check_number(name: str, value: object) -> None:
    """Refuse what is not a finite number within the range of a strategy's parameter.

    Raises:
        ArgumentError: names the parameter and its range; or the strategy has no number.
    """
    number = STRATEGIES[name]
    if number is None:
        raise ArgumentError(f"{name} has no number, got {value!r}")
    as_float = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    above = number.lowest < as_float if number.lowest_excluded else number.lowest <= as_float
    if not (above and as_float <= number.highest and as_float < math.inf):
        lower = f"above {number.lowest:g}" if number.lowest_excluded else f"of at least {number.lowest:g}"
        upper = "" if number.highest == math.inf else f" and at most {number.highest:g}"
        raise ArgumentError(f"{number.parameter} must be a number {lower}{upper}, got {value!r}")


def check_rule(rule: object) -> None:
    """Refuse what is not a `Rule`.

    Raises:
        ArgumentError: names the rules.
    """
    if rule not in get_args(Rule):
        raise ArgumentError(f"unknown rule {rule!r}; choose one of {', '.join(get_args(Rule))}")


def _as_float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _unknown(text: object) -> str:
    if len(str(text)) > MOST_CHARACTERS:
        return f"unknown threshold strategy of {len(str(text)):,} characters; examples are {', '.join(EXAMPLES)}"
    near = difflib.get_close_matches(text.lower(), EXAMPLES, n=1) if isinstance(text, str) else []
    hint = f"did you mean {near[0]!r}?" if near else f"examples are {', '.join(EXAMPLES)}"
    return f"unknown threshold strategy {text!r}; {hint}"
