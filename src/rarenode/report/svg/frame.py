"""What all charts have around them: the title, the legend on top, and axes with a thin grid."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rarenode.report.svg.element import Markup, element, escaped, joined, number
from rarenode.report.svg.scale import Scale
from rarenode.report.svg.stylesheet import HEADING, SMALL, TEXT
from rarenode.report.svg.text import isolated, label, plain, tooltip, width, wrapped

WIDTH = 560.0
"""Of every chart, in units; a screen shows one as 0.6 to 1.3 pixels."""
LEGEND_LINE = 24.0
BOLD = 1.12
"""How much wider the letters of the title are."""
Swatch = Callable[[float, float], Markup]
"""Draws what stands before a label of the legend, given the left end of its middle line."""


@dataclass(frozen=True)
class Part:
    """Something drawn, and how far down it reaches."""

    markup: Markup
    bottom: float


def chart(kind: str, title: str, summary: str, bottom: float, *parts: Markup) -> str:
    """The SVG around its parts. Readers who do not see it are told the title and the summary."""
    name = plain(title)
    return element(
        "svg",
        tooltip(name),
        *parts,
        xmlns="http://www.w3.org/2000/svg",
        class_=f"rn-chart rn-{kind}",
        viewBox=f"0 0 {number(WIDTH)} {number(bottom)}",
        role="img",
        aria_label=f"{isolated(title)}. {summary}",
    )


def heading(title: str) -> Part:
    """The title, in one or two lines."""
    lines = wrapped(title, WIDTH / BOLD, HEADING, 2)
    drawn = [
        element("text", escaped(line), class_="rn-heading", x=0.0, y=18.0 + 22 * index)
        for index, line in enumerate(lines)
    ]
    return Part(joined(*drawn), 22.0 * len(lines) + 4)


def legend(entries: Sequence[tuple[str, Swatch]], swatch_width: float, top: float) -> Part:
    """Labels after their swatches, from left to right, in as many lines as they need."""
    drawn, x, y = [], 0.0, top + LEGEND_LINE / 2
    before, after = swatch_width + 7, 14.0
    room = WIDTH - before
    for name, swatch in entries:
        needed = before + min(room, width(plain(name), TEXT))
        if x > 0 and x + needed > WIDTH:
            x, y = 0.0, y + LEGEND_LINE
        drawn += [swatch(x, y), label(name, room, TEXT, class_="rn-text", x=x + before, y=y + 5)]
        x += needed + after
    return Part(joined(*drawn), y + LEGEND_LINE / 2 + 4)


def upright_axis(scale: Scale, name: str, left: float, right: float, above: float) -> Markup:
    """Grid lines across the plot, their values left of it, and the name of the axis so far above them."""
    drawn = [label(name, WIDTH, SMALL, class_="rn-small rn-muted", x=0.0, y=min(scale.start, scale.end) - above)]
    for tick, value in zip(scale.ticks, scale.tick_labels(), strict=True):
        y = scale(tick)
        drawn.append(element("path", class_="rn-grid", d=f"M{number(left)} {number(y)}H{number(right)}"))
        drawn.append(
            element("text", escaped(value), class_="rn-small rn-muted", x=left - 8, y=y + 4.5, text_anchor="end")
        )
    return joined(*drawn)


def room_for_ticks(scale: Scale) -> float:
    """How far from the left border a plot begins."""
    return max((width(text, SMALL) for text in scale.tick_labels()), default=0.0) + 10


def axis_name(name: str, y: float, left: float, right: float) -> Markup:
    """The name of a lower axis, at its end."""
    return label(name, right - left, SMALL, class_="rn-small rn-muted", x=right, y=y, text_anchor="end")
