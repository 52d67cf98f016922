"""What building and running a network may cost: operations, numbers in arrays, and steps of Python."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
import torch

from rarenode.errors import ArgumentError
from rarenode.models.budget import Budget, within

AMPLE = 10**9


def many_operations() -> None:
    for _ in range(100):
        torch.zeros(1)


def many_numbers() -> None:
    with torch.device("meta"):
        torch.zeros(1000, 1000) @ torch.zeros(1000, 1000)


def many_calls() -> None:
    for number in range(10**9):
        abs(number)


def many_calls_that_catch_errors() -> None:
    for _ in range(10**9):
        with suppress(Exception):
            abs(-1)


@pytest.mark.parametrize(
    ("action", "budget", "word"),
    [
        (many_operations, Budget(99, AMPLE), "more than 99 operations"),
        (many_numbers, Budget(AMPLE, 2_999_999), "more than 2,999,999 numbers"),
        (many_numbers, Budget(AMPLE, AMPLE, 999_999), "an array of 1,000,000 numbers; 999,999 are allowed"),
        (many_calls, Budget(AMPLE, AMPLE, calls=10_000), "more than 10,000 steps"),
        (many_calls_that_catch_errors, Budget(AMPLE, AMPLE, calls=10_000), "more than 10,000 steps"),
    ],
)
def test_what_takes_more_is_stopped(action: Callable[[], None], budget: Budget, word: str) -> None:
    with pytest.raises(ArgumentError) as caught, within(budget, "it"):
        action()
    assert str(caught.value).startswith("it takes")
    assert word in str(caught.value)


def test_what_takes_no_more_goes_on_as_before() -> None:
    def watch(frame: Any, event: str, argument: Any) -> None:
        pass

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        with within(Budget(100, 3_000_000, 1_000_000), "it"):
            many_operations()
        with within(Budget(3, 3_000_000, 1_000_000), "it"):
            many_numbers()
        with pytest.raises(ValueError, match="other"), within(Budget(0, 0), "it"):
            raise ValueError("other")
        assert sys.getprofile() is watch
    finally:
        sys.setprofile(before)
    many_operations()
