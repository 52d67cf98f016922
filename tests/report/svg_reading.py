"""What the tests read from a chart: its elements, and the values that positions stand for, told by its own ticks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"
NUMBER = re.compile(r"-?\d+\.?\d*")
HOSTILE = (
    "</title></svg><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "\" onload='alert(1)' x=\"",
    "]]> & &amp; &#0; <!-- --",
    "a\x00b\x1bc\x7f\ufffe\uffff",
    "\ud800 lone \udfff",
    "\u202eright to left\u202c \u05d0\u05d1\u05d2",
    "x" * 10_000,
    "\U0001f98a " * 300,
    "",
    " \n\t ",
)


def read(svg: str) -> ElementTree.Element:
    """The chart as a tree; fails unless it is well-formed and can be written as UTF-8."""
    return ElementTree.fromstring(svg.encode("utf-8"))


def with_class(root: ElementTree.Element, *names: str) -> list[ElementTree.Element]:
    return [each for each in root.iter() if set(names) <= set(each.get("class", "").split())]


def texts(root: ElementTree.Element) -> list[str]:
    """What is written in the chart, without tooltips."""
    return ["".join([each.text or "", *(child.tail or "" for child in each)]) for each in root.iter(f"{SVG}text")]


def tooltip(element: ElementTree.Element) -> str:
    return (element.findtext(f"{SVG}title") or "").translate({0x2068: None, 0x2069: None})


def numbers(text: str | None) -> list[float]:
    return [float(found) for found in NUMBER.findall(text or "")]


def at(element: ElementTree.Element, name: str) -> float:
    return float(element.attrib[name])


def path(element: ElementTree.Element) -> list[list[tuple[float, float]]]:
    """The pieces of a line."""
    found = []
    for piece in element.attrib["d"].removeprefix("M").split("M"):
        values = numbers(piece)
        found.append(list(zip(values[::2], values[1::2], strict=True)))
    return found


@dataclass(frozen=True)
class Axis:
    """Values and positions of two ticks."""

    values: tuple[float, float]
    places: tuple[float, float]

    def place(self, value: float) -> float:
        part = (value - self.values[0]) / (self.values[1] - self.values[0])
        return self.places[0] + part * (self.places[1] - self.places[0])


def axes(root: ElementTree.Element) -> tuple[Axis | None, Axis]:
    """The lower axis, if it has numbers, and the upright one."""
    ticks: dict[str, list[tuple[float, float]]] = {"x": [], "y": []}
    grid = {"V": "x", "H": "y"}
    labels = iter(with_class(root, "rn-small", "rn-muted"))
    for line in with_class(root, "rn-grid"):
        kind = next(grid[letter] for letter in line.attrib["d"] if letter in grid)
        place = numbers(line.attrib["d"])[0 if kind == "x" else 1]
        ticks[kind].append((place, _value(labels, kind, place)))
    found = {kind: _axis(pairs) for kind, pairs in ticks.items() if len(pairs) > 1}
    return found.get("x"), found["y"]


def _value(labels: Iterator[ElementTree.Element], kind: str, place: float) -> float:
    """Of the label that stands at the tick; labels come in the order of the grid."""
    for label in labels:
        text = (label.text or "").replace("\u2212", "-").replace(",", "")
        if abs(at(label, kind) - place) < 5 and NUMBER.fullmatch(text):
            return float(text)
    raise AssertionError("a line of the grid without a label")


def _axis(pairs: list[tuple[float, float]]) -> Axis:
    (first, low), (last, high) = pairs[0], pairs[-1]
    return Axis((low, high), (first, last))
