"""The choices that settings offer, and how the composed ones are written: ``mlp+forest``, ``expected_f1``."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, get_args

from rarenode.errors import ArgumentError

ModelKind = Literal["mlp", "forest"]
Activation = Literal["relu", "tanh"]
EnsembleKind = Literal["independent", "dropout"]
Resampling = Literal["none", "lpros", "lpros-textbook", "hros-pd", "hros-pd-published"]
Weighting = Literal["none", "as_published", "as_described"]
Side = Literal["negatives", "positives", "both"]
Classes = Literal["nodes", "binary"]
Uncertainty = Literal["bbma", "gmu", "epistemic_kl", "epistemic_js", "predictive", "aleatoric"]
Focus = Literal["none", "focal", "bbma", "gmu", "epistemic_kl", "epistemic_js", "predictive", "aleatoric"]
ScheduleShape = Literal["constant", "linear", "exponential", "alternating"]
ScheduleUnit = Literal["batch", "epoch"]
ScheduleTarget = Literal[1, "w0"]
Reduction = Literal["auto", "mean", "sum"]
EngineName = Literal["auto", "fused", "torch"]
Rule = Literal["add_ancestors", "drop_orphans"]
Preset = Literal["best", "paper"]


def parse_model(text: str) -> tuple[ModelKind, ...]:
    """The kinds of model in ``mlp+forest``, in a fixed order.

    >>> parse_model("forest+mlp")
    ('mlp', 'forest')
    """
    parts = [part.strip() for part in text.split("+")]
    known = get_args(ModelKind)
    for part in parts:
        if part not in known:
            near = difflib.get_close_matches(part, known, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(known)}, or join them with +"
            raise ArgumentError(f"unknown model {part!r}; {hint}")
    if len(set(parts)) < len(parts):
        raise ArgumentError(f"model {text!r} names a model twice")
    return tuple(kind for kind in known if kind in parts)


@dataclass(frozen=True)
class _Grammar:
    """How a threshold strategy is written."""

    example: str
    default: float | str | None
    """The argument that may be left out; None where it may not."""
    most: float = 1e6
    zero: bool = False
    """Whether the argument may be 0."""


STRATEGIES: Mapping[str, _Grammar] = MappingProxyType(
    {
        "expected_f": _Grammar("expected_f1, expected_f2, ...", None),
        "prior": _Grammar("prior, prior:1.5, ...", 1.0),
        "tuned": _Grammar("tuned, tuned:5, ...", 10.0, zero=True),
        "global": _Grammar("global, global:micro_f1", "f1"),
        "precision_floor": _Grammar("precision_floor:0.2, ...", None, most=1.0),
        "fixed": _Grammar("fixed, fixed:0.3, ...", 0.5, most=1.0, zero=True),
    }
)
"""The threshold strategies of `rarenode.thresholds` by name."""


def parse_strategy(text: str) -> tuple[str, str | float]:
    """The name of a threshold strategy, and its argument.

    Raises:
        ArgumentError: there is no such strategy, or its argument is missing or out of range.

    >>> parse_strategy("expected_f2"), parse_strategy("fixed")
    (('expected_f', 2.0), ('fixed', 0.5))
    """
    shown = repr(text) if len(str(text)) <= 100 else f"of {len(str(text)):,} characters"
    unknown = ArgumentError(
        f"unknown threshold strategy {shown}; choose from {', '.join(each.example for each in STRATEGIES.values())}"
    )
    if not isinstance(text, str):
        raise unknown
    if text.startswith("expected_f"):
        name, argument = "expected_f", text.removeprefix("expected_f")
    else:
        name, colon, argument = text.partition(":")
        if colon and not argument:
            raise unknown
    if name not in STRATEGIES:
        raise unknown
    grammar = STRATEGIES[name]
    if not argument:
        if grammar.default is None:
            raise unknown
        return name, grammar.default
    if name == "global":
        if argument not in ("f1", "micro_f1"):
            raise unknown
        return name, argument
    try:
        number = float(argument)
    except ValueError:
        raise unknown from None
    if not (0 <= number <= grammar.most and (number or grammar.zero)):
        limits = f"{'at least' if grammar.zero else 'greater than'} 0 and at most {grammar.most:g}"
        raise ArgumentError(f"threshold strategy {shown}: its number must be {limits}")
    return name, number


def strategy_text(name: str, argument: str | float) -> str:
    """The inverse of `parse_strategy`; an argument that may be left out is."""
    if argument == STRATEGIES[name].default:
        return name
    value = argument if isinstance(argument, str) else repr(float(argument)).removesuffix(".0")
    return f"expected_f{value}" if name == "expected_f" else f"{name}:{value}"
