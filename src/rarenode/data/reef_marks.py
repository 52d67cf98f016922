"""Areas and lines, in units of a picture's side, and how they are painted. All that a reef shows is made of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import ImageDraw

Floats = NDArray[np.float64]
Colour = tuple[float, float, float]
"""Red, green and blue between 0 and 1."""


@dataclass(frozen=True, eq=False)
class Area:
    """A filled polygon, or several with as many corners."""

    points: Floats
    """(corners, 2) or (polygons, corners, 2): x to the right, y downwards."""
    shade: float = 0.0
    """How light, from -1 (black) over 0 (the colour itself) to 1 (white)."""
    alpha: float = 1.0
    """1 covers what is below; less lets it shine through."""


@dataclass(frozen=True, eq=False)
class Lines:
    """Lines of one width."""

    paths: Floats
    """(lines, points of a line, 2)."""
    width: float
    shade: float = 0.0
    alpha: float = 1.0


Mark: TypeAlias = Area | Lines


# --- shapes ----------------------------------------------------------------------------------------------------------


def around(angle: NDArray[np.floating[Any]], radius: Floats | float = 1.0) -> Floats:
    """The points at these angles from the origin."""
    points: Floats = np.stack([np.cos(angle), np.sin(angle)], axis=-1) * np.asarray(radius)[..., None]
    return points


def circle(radius: float, centre: tuple[float, float] = (0.0, 0.0), corners: int = 24) -> Floats:
    """The corners of a circle."""
    points: Floats = around(np.arange(corners) * (2 * np.pi / corners), radius) + np.array(centre)
    return points


def walk(start: Floats, heading: Floats, length: Floats | float, bend: Floats) -> Floats:
    """Paths (walks, steps + 1, 2) that begin at the starts, turning by ``bend`` (walks, steps) before each step."""
    angle = heading[:, None] + np.cumsum(bend, axis=1)
    steps = around(angle, np.broadcast_to(np.asarray(length)[..., None] / bend.shape[1], angle.shape))
    return np.concatenate([start[:, None], start[:, None] + np.cumsum(steps, axis=1)], axis=1)


def sideways(path: Floats) -> Floats:
    """For every point of a path, the direction to its right, of length 1."""
    along = np.gradient(path, axis=-2)
    along /= np.maximum(np.hypot(along[..., :1], along[..., 1:]), 1e-9)
    return np.stack([-along[..., 1], along[..., 0]], axis=-1)


def ribbon(path: Floats, half_width: Floats | float) -> Floats:
    """The outline of a band along a path (points, 2)."""
    aside = sideways(path) * np.broadcast_to(half_width, len(path))[:, None]
    return np.concatenate([path + aside, (path - aside)[::-1]])


def dots(points: Floats, size: float, shade: float, alpha: float = 1.0) -> Lines:
    """Small squares, as lines that are as long as they are wide."""
    half = np.array([size / 2, 0.0])
    return Lines(np.stack([points - half, points + half], axis=1), size, shade, alpha)


def blob(rng: np.random.Generator, radius: float, rough: float = 0.18, corners: int = 22) -> Floats:
    """The outline of a stone."""
    angle = np.arange(corners) * (2 * np.pi / corners)
    waves = np.arange(2, 6)
    phase = rng.uniform(0, 2 * np.pi, len(waves))
    size = rng.normal(0, rough, len(waves)) / waves
    return around(angle, radius * (1 + size @ np.cos(waves[:, None] * angle + phase[:, None])))


# --- placing and painting --------------------------------------------------------------------------------------------


def place(marks: Iterable[Mark], centre: Floats, radius: float, turn: float = 0.0, tilt: float = 0.0) -> list[Mark]:
    """Marks around the origin, of radius 1, at their place in the picture.

    ``turn`` turns them; then they are seen from the side by ``tilt``, from 0 to 1, which flattens them.
    """
    cos, sin = np.cos(turn), np.sin(turn)
    matrix = np.array([[cos, sin], [-sin, cos]]) * np.array([1.0, 1.0 - tilt]) * radius
    placed: list[Mark] = []
    for mark in marks:
        if isinstance(mark, Area):
            placed.append(replace(mark, points=mark.points @ matrix + centre))
        else:
            placed.append(replace(mark, paths=mark.paths @ matrix + centre, width=mark.width * radius))
    return placed


def paint(draw: ImageDraw.ImageDraw, marks: Iterable[Mark], colour: Colour, side: int) -> None:
    """Paint marks into a picture with so many pixels a side."""
    for mark in marks:
        fill = (*shaded(colour, mark.shade), round(255 * mark.alpha))
        _paint_one(draw, mark, fill, side, 0.0)


def paint_outline(draw: ImageDraw.ImageDraw, marks: Iterable[Mark], side: int, shift: float) -> None:
    """Paint what marks cover in white, into a picture of one channel that begins ``shift`` left of and above them."""
    for mark in marks:
        _paint_one(draw, mark, 255, side, shift)


def shaded(colour: Colour, shade: float) -> tuple[int, int, int]:
    """A colour in bytes, lighter or darker."""
    goal, share = (1.0, shade) if shade > 0 else (0.0, -shade)
    red, green, blue = (round(255 * (value + share * (goal - value))) for value in colour)
    return red, green, blue


def _paint_one(
    draw: ImageDraw.ImageDraw, mark: Mark, fill: int | tuple[int, int, int, int], side: int, shift: float
) -> None:
    if isinstance(mark, Area):
        for polygon in ((mark.points + shift) * side).reshape(-1, 2 * mark.points.shape[-2]).tolist():
            draw.polygon(polygon, fill=fill)
        return
    width = max(1, round(mark.width * side))
    for path in ((mark.paths + shift) * side).reshape(len(mark.paths), -1).tolist():
        draw.line(path, fill=fill, width=width)
