"""Charts as SVG text: for a page, where classes alone colour them, and as files of their own."""

from rarenode.report.svg.bars import Bars, bar_chart
from rarenode.report.svg.icicle import MapNode, icicle
from rarenode.report.svg.lines import Line, line_chart
from rarenode.report.svg.node_boxes import BoxedNode, node_boxes
from rarenode.report.svg.standalone import standalone
from rarenode.report.svg.stylesheet import CSS

__all__ = [
    "CSS",
    "Bars",
    "BoxedNode",
    "Line",
    "MapNode",
    "bar_chart",
    "icicle",
    "line_chart",
    "node_boxes",
    "standalone",
]
