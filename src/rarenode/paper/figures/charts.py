"""`FigureData`: the numbers of a figure, chart by chart, for whoever draws it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from rarenode.paper.comparison.scores import Estimate


@dataclass(frozen=True)
class Line:
    """A point, or none, for each position of a chart."""

    label: str
    ours: tuple[Estimate | None, ...]
    published: tuple[Estimate | None, ...]
    positions: tuple[float, ...] | None = None
    """Its own, where lines of a chart do not share theirs."""


@dataclass(frozen=True)
class Tree:
    """The hierarchy of a chart whose positions are its nodes, parents before children."""

    parents: tuple[int | None, ...]
    """Position of each node's parent; None at the root."""
    rows: tuple[int, ...]
    """Training rows that have the node."""
    scored: tuple[bool, ...]
    """Nodes that are not have no cells."""


@dataclass(frozen=True)
class Chart:
    """One drawing of a figure. Without lines, ``note`` says why."""

    kind: Literal["sweep", "difference", "advantage", "nodes", "methods", "hierarchy", "curves", "reliability"]
    title: str
    note: str
    """Which datasets it shows, and what it leaves out."""
    axis: str
    """What the positions are."""
    scale: str
    """What the values are, with the unit."""
    positions: tuple[float, ...]
    names: tuple[str, ...] | None
    """Of the positions; None if they are numbers themselves."""
    lines: tuple[Line, ...]
    tree: Tree | None = None
    """Of the kind ``hierarchy``: each line is a method."""


@dataclass(frozen=True)
class FigureData:
    """All that a figure shows."""

    title: str
    charts: tuple[Chart, ...]
    trainings: int
    """That the spec asks for, on the chosen datasets."""
    missing: int
    """Those of them that have no record."""
