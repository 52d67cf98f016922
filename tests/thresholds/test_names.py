"""Strategies by name: parsing, formatting, ranges and messages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode.config.choices import STRATEGIES, parse_strategy, strategy_text
from rarenode.errors import ArgumentError
from rarenode.thresholds import (
    ExpectedF,
    Fixed,
    GlobalThreshold,
    Midpoint,
    PrecisionGuarantee,
    PriorMatched,
    RecallGuarantee,
    Strategy,
    TunedPerNode,
    make_strategy,
)

NAMES: dict[str, Strategy] = {
    "fixed": Fixed(0.5),
    "fixed:0.3": Fixed(0.3),
    "global": GlobalThreshold("f1"),
    "global:micro_f1": GlobalThreshold("micro_f1"),
    "expected_f1": ExpectedF(1.0),
    "expected_f2": ExpectedF(2.0),
    "expected_f0.5": ExpectedF(0.5),
    "prior": PriorMatched(1.0),
    "prior:1.5": PriorMatched(1.5),
    "tuned": TunedPerNode(10.0),
    "tuned:0": TunedPerNode(0.0),
    "midpoint": Midpoint(),
    "midpoint:0.3": Midpoint(0.3),
    "precision:0.5": PrecisionGuarantee(0.5),
    "recall:0.9": RecallGuarantee(0.9),
}


@pytest.mark.parametrize("name", NAMES)
def test_a_name_gives_its_strategy_and_the_strategy_its_name(name: str) -> None:
    assert make_strategy(name) == NAMES[name]
    assert NAMES[name].name == name


@given(st.floats(0.0, 1.0, exclude_min=True))
def test_no_digit_of_a_number_is_lost(number: float) -> None:
    strategies = (
        Fixed(number),
        ExpectedF(number),
        PriorMatched(number),
        TunedPerNode(number),
        Midpoint(number),
    )
    for strategy in strategies:
        assert make_strategy(strategy.name) == strategy


@pytest.mark.parametrize("text", [*NAMES, "global:f1", "fixed:0.50", "prior:1", "tuned:10.0", "expected_f1e3"])
def test_parsing_agrees_with_the_strategy(text: str) -> None:
    name, argument = parse_strategy(text)
    assert strategy_text(name, argument) == make_strategy(text).name
    assert parse_strategy(make_strategy(text).name) == (name, argument)


def test_every_name_makes_a_strategy() -> None:
    made = {parse_strategy(text)[0]: type(make_strategy(text)) for text in NAMES}
    assert made.keys() == STRATEGIES.keys()


def test_the_examples_in_the_message_are_strategies() -> None:
    examples = [text for argument in STRATEGIES.values() for text in argument.example.split(", ") if text != "..."]
    assert [make_strategy(text).name for text in examples] == examples


@pytest.mark.parametrize(
    "text",
    ["", "f1", "Fixed", "fixed:", "fixed:x", "expected_f", "expected_fx", "prior:1.5:2", "precision",
     "midpoint:", "tuned 5", "fixed\n:0.3", None, 5],
)  # fmt: skip
def test_an_unknown_name_is_refused_with_examples(text: Any) -> None:
    with pytest.raises(ArgumentError, match=r"unknown threshold strategy .*(mean|choose from expected_f1)") as caught:
        make_strategy(text)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("Fixed", "fixed"),
        ("expectd_f1", "expected_f1"),
        ("expected_f", "expected_f1"),
        ("mid_point", "midpoint"),
        ("tune", "tuned"),
        ("priors", "prior"),
    ],
)
def test_a_near_miss_is_suggested(text: str, meant: str) -> None:
    with pytest.raises(ArgumentError, match=f"did you mean '{meant}'"):
        parse_strategy(text)


def test_a_very_long_name_is_not_repeated() -> None:
    with pytest.raises(ArgumentError, match="of 1,000,000 characters") as caught:
        make_strategy("x" * 1_000_000)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("fixed:1.5", "threshold must be a number of at least 0 and at most 1"),
        ("fixed:-0.1", "threshold"),
        ("fixed:nan", "threshold"),
        ("expected_f0", "beta must be a number above 0"),
        ("expected_f-1", "beta"),
        ("expected_finf", "beta"),
        ("prior:0", "factor must be a number above 0"),
        ("prior:inf", "factor"),
        ("tuned:-1", "shrinkage must be a number of at least 0"),
        ("tuned:inf", "shrinkage"),
        ("global:accuracy", "unknown metric 'accuracy'; choose one of f1, micro_f1"),
        ("midpoint:-1", "towards_prior must be a number of at least 0 and at most 1"),
        ("midpoint:1.1", "towards_prior"),
    ],
)
def test_a_number_out_of_range_is_named(text: str, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        make_strategy(text)


def test_an_unknown_metric_names_the_known_ones() -> None:
    with pytest.raises(ArgumentError, match="unknown metric 'accuracy'; choose one of f1, micro_f1"):
        GlobalThreshold("accuracy")  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [True, "0.5", None, [0.5]])
@pytest.mark.parametrize("make", [Fixed, ExpectedF, PriorMatched, TunedPerNode, Midpoint])
def test_what_is_no_number_is_refused(make: Any, value: Any) -> None:
    with pytest.raises(ArgumentError, match="must be a number"):
        make(value)
