"""`standalone`: a chart as a file of its own, which any browser opens."""

from __future__ import annotations

import re

from rarenode.errors import ArgumentError
from rarenode.report.svg.element import element, escaped
from rarenode.report.svg.stylesheet import CSS

MARGIN = 16
OPENING = re.compile(r'<svg ([^<>]*?)viewBox="0 0 ([0-9.]+) ([0-9.]+)"([^<>]*)>')


def standalone(svg: str) -> str:
    """The chart with the head of an XML file, the stylesheet, a margin and a size.

    Raises:
        ArgumentError: the text is not a chart of this package.
    """
    opening = OPENING.match(svg)
    if opening is None:
        raise ArgumentError("only charts of rarenode can be made files of their own")
    wide, tall = float(opening[2]) + 2 * MARGIN, float(opening[3]) + 2 * MARGIN
    size = f'viewBox="-{MARGIN} -{MARGIN} {wide:g} {tall:g}" width="{wide:g}" height="{tall:g}"'
    alone = f".rn-chart{{width:{wide:g}px;max-width:100%;background:var(--rn-paper)}}\n"
    style = element("style", escaped(CSS + alone))
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<svg {opening[1]}{size}{opening[4]}>{style}{svg[opening.end() :]}\n'
    )
