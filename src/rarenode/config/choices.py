"""The choices that settings offer, and how the composed ones are written: ``mlp+forest``, ``expected_f1``."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from types import MappingProxyType
from typing import Literal, get_args

from rarenode.errors import ArgumentError

ModelKind = Literal["mlp", "forest", "neighbours"]
BlendKind = Literal["geometric", "learned"]
Activation = Literal["relu", "tanh"]
OutputBias = Literal["prior", "random"]
EnsembleKind = Literal["independent", "dropout"]
Resampling = Literal["none", "lpros", "lpros-textbook", "hros-pd", "hros-pd-published"]
Weighting = Literal["none", "as_published", "as_described"]
Side = Literal["negatives", "positives", "both"]
Classes = Literal["nodes", "binary"]
Uncertainty = Literal["bbma", "gmu", "epistemic_kl", "epistemic_js", "predictive", "aleatoric"]
Focus = Literal["none", "focal", "bbma", "gmu", "epistemic_kl", "epistemic_js", "predictive", "aleatoric"]
EPISTEMIC = ("epistemic_kl", "epistemic_js")
"""Uncertainties that only measure how much members disagree: 0 for a single one."""
ScheduleShape = Literal["constant", "linear", "exponential", "alternating"]
ScheduleUnit = Literal["batch", "epoch"]
ScheduleTarget = Literal[1, "w0"]
Reduction = Literal["auto", "mean", "sum"]
EngineName = Literal["auto", "fused", "torch"]
Augmentation = Literal["flip", "crop", "colour"]
BatchNorm = Literal["auto", "frozen", "trained"]
Precision = Literal["auto", "float32", "bfloat16"]
UNTRAINED = "random:"
"""What the name of an encoder begins with that is not pretrained."""
Rule = Literal["add_ancestors", "drop_orphans"]
Metric = Literal["f1", "micro_f1"]
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


def parse_augmentation(text: str) -> tuple[Augmentation, ...]:
    """The kinds of augmentation in ``flip,crop``, in a fixed order; ``none`` has none.

    >>> parse_augmentation("crop,flip"), parse_augmentation("none")
    (('flip', 'crop'), ())
    """
    known = get_args(Augmentation)
    parts = [] if text.strip() == "none" else [part.strip() for part in text.split(",")]
    for part in parts:
        if part not in known:
            raise ArgumentError(
                f"unknown augmentation {part!r}; choose from {', '.join(known)}, separated by commas, or none"
            )
    return tuple(kind for kind in known if kind in parts)


@dataclass(frozen=True)
class _Argument:
    """What may follow the name of a threshold strategy."""

    parameter: str
    """The parameter of the strategy's class."""
    example: str
    default: float | str | None
    """The argument that may be left out; None where it may not."""
    most: float = 1e6
    zero: bool = False
    """Whether the number may be 0."""


STRATEGIES: Mapping[str, _Argument] = MappingProxyType(
    {
        "expected_f": _Argument("beta", "expected_f1, expected_f2, ...", None),
        "prior": _Argument("factor", "prior, prior:1.5, ...", 1.0),
        "midpoint": _Argument("towards_prior", "midpoint, midpoint:0.3, ...", 0.5, most=1.0, zero=True),
        "tuned": _Argument("shrinkage", "tuned, tuned:5, ...", 10.0, zero=True),
        "global": _Argument("metric", "global, global:micro_f1", "f1"),
        "precision": _Argument("precision", "precision:0.5, ...", None, most=0.99),
        "recall": _Argument("recall", "recall:0.9, ...", None, most=0.999),
        "fixed": _Argument("threshold", "fixed, fixed:0.3, ...", 0.5, most=1.0, zero=True),
    }
)
"""The threshold strategies of `rarenode.thresholds` by name."""
_COMMON = (
    "expected_f1", "prior", "midpoint", "tuned", "global", "global:micro_f1", "precision:0.5", "recall:0.9", "fixed",
    "fixed:0.3",
)  # fmt: skip
MOST_CHARACTERS = 100


def parse_strategy(text: str) -> tuple[str, str | float]:
    """The name of a threshold strategy, and its argument.

    Raises:
        ArgumentError: there is no such strategy, or its argument is missing or out of range.

    >>> parse_strategy("expected_f2"), parse_strategy("fixed")
    (('expected_f', 2.0), ('fixed', 0.5))
    """
    unknown = ArgumentError(_unknown_strategy(text))
    if not isinstance(text, str) or len(text) > MOST_CHARACTERS:
        raise unknown
    if text.startswith("expected_f"):
        name, argument = "expected_f", text.removeprefix("expected_f")
    else:
        name, colon, argument = text.partition(":")
        if colon and not argument:
            raise unknown
    if name not in STRATEGIES:
        raise unknown
    default = STRATEGIES[name].default
    if not argument:
        if default is None:
            raise unknown
        return name, default
    value: str | float = argument
    if name != "global":
        try:
            value = float(argument)
        except ValueError:
            raise unknown from None
    check_strategy_argument(name, value)
    return name, value


def check_strategy_argument(name: str, value: object) -> None:
    """Refuse what is not within the range of a strategy's argument.

    Raises:
        ArgumentError: names the parameter of the strategy and its range.
    """
    argument = STRATEGIES[name]
    if name == "global":
        if value not in get_args(Metric):
            raise ArgumentError(f"unknown metric {value!r}; choose one of {', '.join(get_args(Metric))}")
        return
    number = float(value) if isinstance(value, Real) and not isinstance(value, bool) else math.nan
    if not (0 <= number <= argument.most and (number or argument.zero)):
        limits = f"{'of at least' if argument.zero else 'above'} 0 and at most {argument.most:g}"
        raise ArgumentError(f"{argument.parameter} must be a number {limits}, got {value!r}")


def strategy_text(name: str, argument: str | float) -> str:
    """The inverse of `parse_strategy`; an argument that may be left out is."""
    if argument == STRATEGIES[name].default:
        return name
    value = argument if isinstance(argument, str) else repr(float(argument)).removesuffix(".0")
    return f"expected_f{value}" if name == "expected_f" else f"{name}:{value}"


def check_rule(rule: object) -> None:
    """Refuse what is not a `Rule`.

    Raises:
        ArgumentError: names the rules.
    """
    if rule not in get_args(Rule):
        raise ArgumentError(f"unknown rule {rule!r}; choose one of {', '.join(get_args(Rule))}")


def _unknown_strategy(text: object) -> str:
    shown = repr(text) if len(str(text)) <= MOST_CHARACTERS else f"of {len(str(text)):,} characters"
    near = difflib.get_close_matches(shown.strip("'").lower(), _COMMON, n=1)
    examples = ", ".join(argument.example for argument in STRATEGIES.values())
    hint = f"did you mean {near[0]!r}?" if near else f"choose from {examples}"
    return f"unknown threshold strategy {shown}; {hint}"
