"""Scales: round ticks around the values, and positions that are in proportion."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from rarenode.errors import ArgumentError
from rarenode.report.svg.scale import LARGEST, Scale, linear, logarithmic, percent, usable, usable_logarithm

VALUES = st.floats(-LARGEST, LARGEST)
POSITIVE = st.floats(1 / LARGEST, LARGEST)


@given(st.lists(VALUES, max_size=5))
def test_a_linear_scale_covers_its_values_with_round_ticks(values: list[float]) -> None:
    scale = linear(values)
    assert 2 <= len(scale.ticks) <= 8
    slack = 1e-8 * (scale.high - scale.low)
    assert all(scale.low - slack <= value <= scale.high + slack for value in values)
    step = scale.ticks[1] - scale.ticks[0]
    size = max(abs(scale.low), abs(scale.high))
    assert all(math.isclose(after - before, step, abs_tol=1e-9 * size) for before, after in pairwise(scale.ticks))
    if step > 1e-6 * size:
        first_digit = step / 10 ** math.floor(math.log10(step) + 1e-9)
        assert any(math.isclose(first_digit, digit, rel_tol=1e-6) for digit in (1, 2, 5))


@given(st.tuples(VALUES, VALUES))
def test_a_fixed_scale_keeps_its_ends_and_has_ticks_inside(ends: tuple[float, float]) -> None:
    low, high = sorted(ends)
    assume(high - low > 1e-6 * max(abs(low), abs(high), 1e-80))
    scale = linear([low - 5, high + 5], (low, high))
    assert (scale.low, scale.high) == (low, high)
    slack = 1e-6 * (high - low)
    assert all(low - slack <= tick <= high + slack for tick in scale.ticks)


@given(st.lists(POSITIVE, max_size=5))
def test_a_logarithmic_scale_covers_its_values_with_whole_decades(values: list[float]) -> None:
    scale = logarithmic(values)
    assert all(scale.low <= value * (1 + 1e-8) and value <= scale.high * (1 + 1e-8) for value in values)
    for end in (scale.low, scale.high, *scale.ticks):
        assert math.isclose(math.log10(end), round(math.log10(end)), abs_tol=1e-9)
    assert 2 <= len(scale.ticks) <= 8


@pytest.mark.parametrize(
    ("scale", "labels"),
    [
        (linear([0, 100]), "0 20 40 60 80 100"),
        (linear([0, 37.1]), "0 10 20 30 40"),
        (linear([0, 0.9]), "0.0 0.2 0.4 0.6 0.8 1.0"),
        (linear([-10, 30]), "\u221210 0 10 20 30"),
        (linear([], (0, 6000)), "0 1,000 2,000 3,000 4,000 5,000 6,000"),
        (linear([0, 5e8]), "0 1e+08 2e+08 3e+08 4e+08 5e+08"),
        (logarithmic([0.002, 0.7]), "0.001 0.01 0.1 1"),
        (logarithmic([1.0]), "1 10"),
        (logarithmic([1e-7, 1e-5]), "10⁻⁷ 10⁻⁶ 10⁻⁵"),
        (logarithmic([], (0.03, 0.9)), "0.05 0.1 0.2 0.5"),
        (logarithmic([], (0.3, 0.4)), "0.3 0.4"),
    ],
)
def test_ticks_as_they_are_written(scale: Scale, labels: str) -> None:
    assert list(scale.tick_labels()) == labels.split()


def test_positions_are_in_proportion() -> None:
    upright = linear([0, 100]).moved(300, 100)
    assert [upright(value) for value in (0, 25, 100, 150)] == [300, 250, 100, 0]
    across = logarithmic([0.01, 1]).moved(0, 200)
    assert [across(value) for value in (0.01, 0.1, 1)] == pytest.approx([0, 100, 200])
    assert across(math.sqrt(0.1)) == pytest.approx(150)


@pytest.mark.parametrize("ends", [(1, 1), (2, 1), (0, math.nan), (0, math.inf)])
def test_an_axis_needs_a_length(ends: tuple[float, float]) -> None:
    for make in (linear, logarithmic):
        with pytest.raises(ArgumentError, match="has no length"):
            make([], ends)


def test_a_logarithmic_axis_begins_above_zero() -> None:
    with pytest.raises(ArgumentError, match="cannot begin at 0"):
        logarithmic([], (0, 1))


def test_which_values_can_be_drawn() -> None:
    assert [usable(value) for value in (0, -1.5, 1e99, 1e101, math.nan, -math.inf, None)] == [1, 1, 1, 0, 0, 0, 0]
    assert [usable_logarithm(value) for value in (1e-99, 1e-101, 0, -1, math.inf)] == [1, 0, 0, 0, 0]


def test_percentages_that_are_not_nothing_do_not_look_like_it() -> None:
    assert [percent(value) for value in (0, 1e-9, 0.0499, 0.05, 99.94, 99.96, 100)] == [
        *("0", "<0.1", "<0.1", "0.1", "99.9", "100", "100")
    ]
