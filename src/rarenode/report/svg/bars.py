"""`bar_chart`: groups of bars that stand on 0, in percent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rarenode.errors import ArgumentError
from rarenode.report.svg.element import Markup, element, joined, number
from rarenode.report.svg.frame import (
    WIDTH,
    Swatch,
    axis_name,
    chart,
    heading,
    legend,
    room_for_ticks,
    upright_axis,
)
from rarenode.report.svg.group_names import group_names
from rarenode.report.svg.scale import Scale, linear, percent, usable
from rarenode.report.svg.series import check_series, series_class
from rarenode.report.svg.stylesheet import SMALL
from rarenode.report.svg.text import isolated, plain, tooltip, width, written
from rarenode.report.svg.textures import texture

MOST_GROUPS = 20
HEIGHT = 230.0
"""Of the plot."""
FILLED = 0.78
"""The part of a group's room that its bars take; the rest parts it from its neighbours."""
WIDEST = 54.0
LOWEST = 1.5
"""Units that a bar has at least: a bar of 0 is not the same as no bar."""
SWATCH = 16.0
ABOVE = 26.0
"""Room above the plot for the values of the highest bars."""


@dataclass(frozen=True)
class Bars:
    """A bar, or none, in each group; percentages, and how much they deviate."""

    label: str
    values: tuple[float | None, ...]
    deviations: tuple[float | None, ...] | None = None


def bar_chart(
    title: str,
    groups: Sequence[str],
    bars: Sequence[Bars],
    *,
    axis: str,
    groups_axis: str,
    notes: Sequence[str] = (),
) -> str:
    """Bars of each series side by side in each group. A value that is not finite is no bar.

    Args:
        title: what the chart shows.
        groups: 1 to 20 names, from left to right.
        bars: 1 to 8 series, as long as the groups.
        axis: what the values are.
        groups_axis: what the groups are.
        notes: a small line under the name of each group, or none at all.

    Raises:
        ArgumentError: lengths differ, there are too few or too many groups or series, or a value is below 0.
    """
    _check(groups, bars, notes)
    scale = _scale(bars)
    head = heading(title)
    entries = [(series.label, _swatch(index)) for index, series in enumerate(bars)]
    key = legend(entries, SWATCH, head.bottom)
    top = key.bottom + 20 + ABOVE
    left, right = room_for_ticks(scale), WIDTH
    scale = scale.moved(top + HEIGHT, top)
    slot = (right - left) / len(groups)
    drawn = [upright_axis(scale, axis, left, right, ABOVE)]
    for group, name in enumerate(groups):
        drawn.append(_group(name, group, bars, scale, left + slot * group, slot, axis))
    base = number(scale(0.0))
    drawn.append(element("path", class_="rn-axis", d=f"M{number(left)} {base}H{number(right)}"))
    middles = [left + slot * (group + 0.5) for group in range(len(groups))]
    names = group_names(groups, notes, middles, slot - 4, scale(0.0))
    drawn += [names.markup, axis_name(groups_axis, names.bottom + 17, left, right)]
    summary = (
        f"Bar chart: {isolated(axis)} by {isolated(groups_axis)}, {len(groups)} groups; "
        f"series: {', '.join(isolated(series.label) for series in bars)}."
    )
    return chart("bars", title, summary, names.bottom + 24, head.markup, key.markup, *drawn)


def _check(groups: Sequence[str], bars: Sequence[Bars], notes: Sequence[str]) -> None:
    if not groups:
        raise ArgumentError("a bar chart without groups shows nothing")
    if len(groups) > MOST_GROUPS:
        raise ArgumentError(f"a bar chart has room for {MOST_GROUPS} groups; these are {len(groups)}")
    check_series("series of bars", [series.label for series in bars])
    if notes and len(notes) != len(groups):
        raise ArgumentError(f"{len(notes)} notes do not fit {len(groups)} groups")
    for series in bars:
        for what, values in (("values", series.values), ("deviations", series.deviations)):
            if values is None:
                continue
            if len(values) != len(groups):
                raise ArgumentError(
                    f"the bars of '{plain(series.label)}' have {len(values)} {what} for {len(groups)} groups"
                )
            for group, value in zip(groups, values, strict=True):
                if value is not None and usable(value) and value < 0:
                    raise ArgumentError(
                        f"the bars of '{plain(series.label)}' have {value:g} among their {what}, at '{plain(group)}'; "
                        "bars stand on 0"
                    )


def _known(series: Bars, group: int) -> tuple[float, float] | None:
    """The value and the deviation in a group; a deviation that is not known is 0."""
    value = series.values[group]
    deviation = None if series.deviations is None else series.deviations[group]
    if value is None or not usable(value):
        return None
    return value, deviation if deviation is not None and usable(deviation) else 0.0


def _scale(bars: Sequence[Bars]) -> Scale:
    """From 0 to a round value above all bars and whiskers; whiskers of percentages end at 100 all the same."""
    pairs = (_known(series, group) for series in bars for group in range(len(series.values)))
    known = [pair for pair in pairs if pair is not None]
    values = [value for value, _ in known]
    highest = max((value + deviation for value, deviation in known), default=0.0)
    if max(values, default=0.0) <= 100:
        highest = min(highest, 100.0)
    return linear((0.0, highest if highest > 1e-6 else 100.0))


def _group(name: str, group: int, bars: Sequence[Bars], scale: Scale, start: float, slot: float, axis: str) -> Markup:
    wide = min(WIDEST, slot * FILLED / len(bars))
    gap = min(2.0, wide / 6)
    first = start + (slot - wide * len(bars)) / 2
    drawn, above = [], []
    for index, series in enumerate(bars):
        pair = _known(series, group)
        if pair is None:
            continue
        value, deviation = pair
        left, right = first + wide * index + gap / 2, first + wide * (index + 1) - gap / 2
        base, top = scale(0.0), min(scale(value), scale(0.0) - LOWEST)
        spread = f" ± {percent(deviation)}" if deviation else ""
        said = f"{isolated(name)}, {isolated(series.label)}: {percent(value)}{spread} ({isolated(axis)})"
        look = f"rn-bar {series_class(index)}"
        drawn.append(element("rect", tooltip(said), class_=look, x=left, y=top, width=right - left, height=base - top))
        drawn.append(texture(index, (left, top, right, base)))
        if deviation:
            low, high = scale(max(0.0, value - deviation)), scale(min(scale.high, value + deviation))
            top = min(top, high)
            drawn.append(_whisker((left + right) / 2, low, high, min(4.0, (right - left) / 3)))
        above.append(_value(value, (left + right) / 2, top, wide))
    return element("g", *drawn, *above)


def _whisker(x: float, low: float, high: float, cap: float) -> Markup:
    """Drawn twice: below it a wider one in the colour of the paper, so that it is seen on a dark bar."""
    ends = "".join(f"M{number(x - cap)} {number(y)}h{number(2 * cap)}" for y in (low, high))
    path = f"M{number(x)} {number(low)}V{number(high)}{ends}"
    return joined(*(element("path", class_=look, d=path) for look in ("rn-whisker rn-under", "rn-whisker")))


def _value(value: float, x: float, top: float, room: float) -> Markup:
    """The value above its bar, with as many digits as are no wider than the bar."""
    for text in (percent(value), f"{value:.0f}" if value >= 0.5 or value == 0 else ""):
        if text and width(text, SMALL) <= room:
            return written(text, "rn-small rn-halo", x, top - 5, "middle")
    return Markup("")


def _swatch(index: int) -> Swatch:
    def drawn(x: float, y: float) -> Markup:
        box = element("rect", class_=f"rn-bar {series_class(index)}", x=x, y=y - 6, width=SWATCH, height=12.0)
        return joined(box, texture(index, (x, y - 6, x + SWATCH, y + 6)))

    return drawn
