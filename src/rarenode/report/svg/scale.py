"""`Scale`: from values to positions along an axis, linear or logarithmic, with ticks at round values."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from rarenode.errors import ArgumentError

LARGEST = 1e100
"""Values beyond are as good as infinite: no chart shows them beside others."""
MOST_STEPS, MOST_DECADES = 6, 8
ROUND = (1.0, 2.0, 5.0, 10.0)


MINUS = "\u2212"
RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


@dataclass(frozen=True)
class Scale:
    """Values from ``low`` to ``high`` lie evenly (or their logarithms do) between two positions."""

    low: float
    high: float
    start: float
    end: float
    ticks: tuple[float, ...]
    log: bool = False

    def __call__(self, value: float) -> float:
        """The position of a value."""
        if self.log:
            low, high = math.log(self.low), math.log(self.high)
            part = (math.log(value) - low) / (high - low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    def tick_labels(self) -> tuple[str, ...]:
        """The ticks as they are written: all in the same way, and with the same digits after the point."""
        if self.log:
            return _decades(self.ticks)
        step = min((after - before for before, after in pairwise(self.ticks)), default=1.0)
        digits = max(0, -math.floor(math.log10(step) + 1e-9))
        plainly = digits <= 6 and max(map(abs, self.ticks), default=0.0) < 1e7
        written = (f"{tick:,.{digits}f}" if plainly else f"{tick:.4g}" for tick in self.ticks)
        return tuple(text.replace("-", MINUS) for text in written)

    def moved(self, start: float, end: float) -> Scale:
        """The same values between other positions."""
        return replace(self, start=start, end=end)


def usable(value: float | None) -> bool:
    """Whether a value is a number that can be drawn."""
    return value is not None and math.isfinite(value) and abs(value) <= LARGEST


def usable_logarithm(value: float) -> bool:
    """Whether a value can be drawn on a logarithmic axis."""
    return usable(value) and value >= 1 / LARGEST


def linear(values: Iterable[float], fixed: tuple[float, float] | None = None) -> Scale:
    """From a round value at or below the lowest to one at or above the highest, or as ``fixed`` says."""
    low, high = _checked(fixed) if fixed else _spread(values)
    step = _step(high - low)
    if fixed is None:
        low, high = step * math.floor(low / step + 1e-9), step * math.ceil(high / step - 1e-9)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    return Scale(low, high, 0.0, 1.0, tuple(step * index for index in range(first, last + 1)))


def logarithmic(values: Iterable[float], fixed: tuple[float, float] | None = None) -> Scale:
    """Whole decades around the values, which are above 0, or as ``fixed`` says."""
    if fixed:
        low, high = _checked(fixed)
        if low <= 0:
            raise ArgumentError(f"a logarithmic axis cannot begin at {low:g}; it begins above 0")
    else:
        known = list(values)
        low = 10.0 ** math.floor(math.log10(min(known, default=0.1)) + 1e-9)
        high = 10.0 ** math.ceil(math.log10(max(known, default=1.0)) - 1e-9)
        high = max(high, low * 10)
    first, last = math.ceil(math.log10(low) - 1e-9), math.floor(math.log10(high) + 1e-9)
    apart = -(-(last - first + 1) // MOST_DECADES) or 1
    ticks = tuple(10.0**power for power in range(first, last + 1, apart))
    if len(ticks) < 2:  # less than two decades: their halves and fifths too, or at least both ends
        near = [part * 10.0**power for power in range(first - 1, last + 1) for part in (1, 2, 5)]
        ticks = tuple(tick for tick in near if low <= tick <= high)
        ticks = ticks if len(ticks) > 1 else (low, high)
    return Scale(low, high, 0.0, 1.0, ticks, log=True)


def short(value: float) -> str:
    """A value in a tooltip.

    >>> short(0.123456), short(12345.0), short(3.0)
    ('0.1235', '12,345', '3')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e9 else f"{value:.4g}"


def percent(value: float) -> str:
    """A percentage with one digit. What is not nothing does not look like nothing.

    >>> percent(12.34), percent(100.0), percent(0.0), percent(0.01)
    ('12.3', '100', '0', '<0.1')
    """
    if 0 < value < 0.05:
        return "<0.1"
    return "0" if value == 0 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def _checked(fixed: tuple[float, float]) -> tuple[float, float]:
    low, high = float(fixed[0]), float(fixed[1])
    if not (usable(low) and usable(high) and high - low > 1e-9 * max(abs(low), abs(high), 1e-90)):
        raise ArgumentError(f"an axis from {low:g} to {high:g} has no length")
    return low, high


def _spread(values: Iterable[float]) -> tuple[float, float]:
    known = list(values)
    low, high = min(known, default=0.0), max(known, default=1.0)
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-90):  # one value: some air on both sides
        air = abs(low) / 10 if abs(low) > 1e-90 else 1.0
        return low - air, high + air
    return low, high


def _step(length: float) -> float:
    power = 10.0 ** math.floor(math.log10(length / MOST_STEPS))
    return next(part * power for part in ROUND if length / (part * power) <= MOST_STEPS + 1e-9)


def _decades(ticks: Sequence[float]) -> tuple[str, ...]:
    """Written out while that is short, else all as powers."""
    powers = [round(math.log10(tick)) for tick in ticks]
    if any(abs(tick / 10.0**power - 1) > 1e-9 for tick, power in zip(ticks, powers, strict=True)):
        return tuple(f"{tick:.3g}" for tick in ticks)
    if min(powers) >= -5 and max(powers) <= 5:
        return tuple(f"{10.0**power:,.{max(0, -power)}f}" for power in powers)
    return tuple(f"10{str(power).translate(RAISED)}" for power in powers)
