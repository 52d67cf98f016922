"""One scene of a reef: ground, animals, what hides them, and the water in front of it all.

Every random decision is made in units of the picture's side and in the same order at any size; only the grain of the
camera has a number for each pixel, and comes last. So a scene at another size is the same scene.
"""

from __future__ import annotations

import colorsys
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter

from rarenode.data import reef_animals as animals
from rarenode.data.reef_marks import (
    Area,
    Colour,
    Floats,
    Lines,
    Mark,
    around,
    blob,
    circle,
    dots,
    paint,
    paint_outline,
    place,
    ribbon,
    shaded,
    walk,
)

OVERSAMPLING = 4
"""A scene is painted with so many times the pixels a side, so that fine lines come out grey and not jagged."""
OUTLINE = 64
"""Pixels a side of the picture in which is measured what can be seen of an animal; the same at every size."""
MARGIN = 0.5
"""That picture also shows so much beyond each edge of the scene, for animals that are partly outside."""
NUMBER_OF_ANIMALS = (0.3, 0.35, 0.22, 0.13)
"""The share of pictures with one animal, with two, and so on."""
SMALLEST, LARGEST = 0.1, 0.38
"""Radius of an animal."""
WATERS: tuple[Colour, ...] = ((0.05, 0.34, 0.40), (0.13, 0.33, 0.22), (0.04, 0.20, 0.42), (0.22, 0.30, 0.20))

Draw = Callable[[np.random.Generator], list[Mark]]
DRAWN: dict[str, tuple[Draw, float]] = {
    "Sea stars": (animals.sea_star, 0.34),
    "Regular urchins": (animals.regular_urchin, 0.25),
    "Brittle/snake stars": (animals.brittle_star, 0.17),
    "Benthic sea cucumbers": (animals.benthic_cucumber, 0.11),
    "Unstalked crinoids": (animals.feather_star, 0.07),
    "Irregular urchins": (animals.irregular_urchin, 0.035),
    "Basket stars": (animals.basket_star, 0.017),
    "Pelagic/swimming sea cucumbers": (animals.swimming_cucumber, 0.008),
}
"""What is drawn, how, and how large its share of the animals is."""


@dataclass(frozen=True)
class Seen:
    """An animal in a picture."""

    kind: str
    clarity: float
    """How well it can be seen, from 0 to 1: less if it is small, hidden, far away in turbid water, or blurred."""


@dataclass(frozen=True)
class _Animal:
    kind: str
    marks: list[Mark]
    colour: Colour
    centre: Floats
    radius: float
    lift: float
    """How far it is above the ground, which shows in its shadow."""
    outline: Image.Image
    """What it covers, with the margin."""


@dataclass(frozen=True)
class _Water:
    colour: Colour
    haze: Floats
    """The share of light from the water and not from the scene, at the upper and at the lower edge of the picture."""
    blur: float
    """Radius, in sides of the picture."""

    def haze_at(self, y: float) -> float:
        return float(np.interp(y, [0, 1], self.haze))


def draw_scene(rng: np.random.Generator, size: int) -> tuple[NDArray[np.uint8], list[Seen]]:
    """A picture (size, size, 3), and the animals in it."""
    side = OVERSAMPLING * size
    water = _choose_water(rng)
    picture, ground = _ground(rng, side)
    draw = ImageDraw.Draw(picture, "RGBA")
    for _ in range(rng.integers(0, 5)):
        _distract(rng, draw, side, ground, rng.uniform(0, 1, 2), rng.uniform(0.06, 0.22))
    shown = _choose_animals(rng, ground)
    above = Image.new("L", (OUTLINE * 2, OUTLINE * 2))  # which animal is on top, by number
    for number, animal in enumerate(shown, start=1):
        _cast_shadow(picture, animal, side)
        paint(draw, animal.marks, animal.colour, side)
        above.paste(number, mask=animal.outline)
    for animal in shown:
        if rng.random() < 0.35:
            where = animal.centre + animal.radius * around(rng.uniform(0, 2 * np.pi, 1), rng.uniform(0.5, 1.1))[0]
            marks = _distract(rng, draw, side, ground, where, animal.radius * rng.uniform(0.4, 0.8))
            hidden = Image.new("L", above.size)
            paint_outline(ImageDraw.Draw(hidden), marks, OUTLINE, MARGIN)
            above.paste(0, mask=hidden)
    seen = [Seen(animal.kind, _clarity(animal, number, above, water)) for number, animal in enumerate(shown, start=1)]
    return _photograph(rng, _through_water(rng, picture, water, side), water, size), seen


# --- animals ---------------------------------------------------------------------------------------------------------


def _choose_animals(rng: np.random.Generator, ground: Colour) -> list[_Animal]:
    kinds, share = list(DRAWN), np.array([share for _, share in DRAWN.values()])
    chosen: list[_Animal] = []
    for _ in range(1 + int(rng.choice(len(NUMBER_OF_ANIMALS), p=NUMBER_OF_ANIMALS))):
        kind = kinds[int(rng.choice(len(kinds), p=share / share.sum()))]
        radius = float(np.exp(rng.uniform(np.log(SMALLEST), np.log(LARGEST))))
        places = rng.uniform(0.03, 0.97, (2, 2))
        distances = [[1.0, *(np.hypot(*(here - other.centre)) for other in chosen)] for here in places]
        centre = places[int(np.argmax([min(each) for each in distances]))]  # the one that is less crowded
        turn, tilt = rng.uniform(0, 2 * np.pi), rng.uniform(0, 0.35)
        marks = place(DRAWN[kind][0](rng), centre, radius, turn, tilt)
        lift = rng.uniform(0.25, 0.7) if kind == "Pelagic/swimming sea cucumbers" else rng.uniform(0.05, 0.25)
        colour = _mixed(_any_colour(rng), ground, rng.uniform(0, 0.35))
        outline = Image.new("L", (OUTLINE * 2, OUTLINE * 2))
        paint_outline(ImageDraw.Draw(outline), marks, OUTLINE, MARGIN)
        chosen.append(_Animal(kind, marks, colour, centre, radius, lift, outline))
    return chosen


def _cast_shadow(picture: Image.Image, animal: _Animal, side: int) -> None:
    moved = animal.lift * animal.radius * OUTLINE
    first = MARGIN * OUTLINE - np.array([0.5, 1.0]) * moved
    shadow = animal.outline.filter(ImageFilter.GaussianBlur(1 + moved / 4))
    box = (first[0], first[1], first[0] + OUTLINE, first[1] + OUTLINE)
    darkness = shadow.resize((side, side), Image.Resampling.BILINEAR, box=box).point(lambda value: value * 0.5)
    picture.paste((10, 14, 16), mask=darkness)


def _clarity(animal: _Animal, number: int, above: Image.Image, water: _Water) -> float:
    inside = round(MARGIN * OUTLINE)
    frame = np.asarray(above)[inside : inside + OUTLINE, inside : inside + OUTLINE]
    visible = (frame == number).sum() / (np.asarray(animal.outline) > 0).sum()
    large = min(1.0, (animal.radius - 0.03) / 0.15)
    return float(visible * large * (1 - water.haze_at(animal.centre[1])) * (1 - 50 * water.blur))


# --- ground, rocks and weed ------------------------------------------------------------------------------------------


def _ground(rng: np.random.Generator, side: int) -> tuple[Image.Image, Colour]:
    """Sand, with ripples or gravel on it or not, and its colour."""
    hue, saturation, value = rng.uniform(0.05, 0.16), rng.uniform(0.05, 0.4), rng.uniform(0.3, 0.75)
    colour = colorsys.hsv_to_rgb(hue, saturation, value)
    patches = Image.fromarray(rng.normal(0, 12, (6, 6)).astype(np.float32))
    grain = np.asarray(patches.resize((80, 80), Image.Resampling.BICUBIC)) + rng.normal(0, 10, (80, 80))
    if rng.random() < 0.4:
        across = np.arange(80) / 80
        direction, waves = rng.uniform(0, np.pi), rng.uniform(4, 10)
        phase = np.cos(direction) * across + np.sin(direction) * across[:, None] + 0.04 * np.sin(9 * across)
        grain += 14 * np.sin(2 * np.pi * waves * phase)
    light = Image.fromarray(np.clip(128 + grain, 0, 255).astype(np.uint8)).filter(ImageFilter.GaussianBlur(0.6))
    light = light.resize((side, side), Image.Resampling.BICUBIC)
    picture = Image.merge("RGB", [light.point(lambda v, c=channel: v * 2 * c) for channel in colour])
    draw = ImageDraw.Draw(picture, "RGBA")
    count = int(rng.choice([2, 10, 35], p=[0.4, 0.35, 0.25]))
    for _ in range(4):  # gravel, in four colours
        stones = _discs(rng, rng.uniform(0.005, 0.022, count), flat=rng.uniform(0.5, 1, (count, 1)))
        marks = [Area(stones + np.array([0.003, 0.006]), -0.6, 0.6), Area(stones)]
        paint(draw, marks, _mixed(colour, _any_colour(rng), rng.uniform(0, 0.4)), side)
    return picture, colour


def _discs(rng: np.random.Generator, radius: Floats, flat: Floats | float = 1.0) -> Floats:
    """Discs (number, corners, 2) anywhere in the picture."""
    points = circle(1, corners=9) * radius[:, None, None]
    points[..., 1] *= flat
    return points + rng.uniform(0, 1, (len(radius), 1, 2))


def _distract(
    rng: np.random.Generator, draw: ImageDraw.ImageDraw, side: int, ground: Colour, centre: Floats, radius: float
) -> list[Mark]:
    """Paint a rock, weed or rubble, and return what was painted."""
    kind = [_rock, _blades, _bush, _rubble][int(rng.choice(4, p=[0.4, 0.25, 0.2, 0.15]))]
    marks = place(kind(rng), centre, radius)
    colour = _any_colour(rng)
    if kind is _rock:
        colour = _mixed(ground, colour, rng.uniform(0, 0.6))
    elif rng.random() < 0.5:
        colour = colorsys.hsv_to_rgb(rng.uniform(0.1, 0.4), rng.uniform(0.3, 0.8), rng.uniform(0.2, 0.6))
    paint(draw, marks, colour, side)
    return marks


def _rock(rng: np.random.Generator) -> list[Mark]:
    outline = blob(rng, 1.0)
    spots = around(rng.uniform(0, 2 * np.pi, 40), rng.uniform(0, 0.8, 40))
    return [
        Area(outline + np.array([0.08, 0.14]), -0.8, 0.5),
        Area(outline, -0.45),
        Area(outline * 0.88 - [0.06, 0.08], -0.15),
        Area(outline * 0.6 - [0.14, 0.18], 0.12),
        dots(spots[:20], 0.07, -0.4, 0.7),
        dots(spots[20:], 0.05, 0.3, 0.7),
    ]


def _blades(rng: np.random.Generator) -> list[Mark]:
    """Weed: long leaves that stand side by side and sway."""
    count = int(rng.integers(3, 8))
    start = np.stack([rng.uniform(-0.4, 0.4, count), np.full(count, 1.0)], axis=1)
    bend = rng.normal(0, 0.12, (count, 1)) + 0.25 * np.sin(np.linspace(0, 6, 12) + rng.uniform(0, 6, (count, 1)))
    leaves = walk(start, rng.normal(-np.pi / 2, 0.3, count), rng.uniform(1.2, 2.4, count), bend)
    half = 0.1 * np.sin(np.linspace(0.4, np.pi, 13))
    return [Area(ribbon(leaf, half), shade) for leaf, shade in zip(leaves, rng.uniform(-0.4, 0.2, count), strict=True)]


def _bush(rng: np.random.Generator) -> list[Mark]:
    """Weed that forks, as the arms of a basket star do, but from one foot."""
    start, heading, marks = np.array([[0.0, 1.0]]), np.array([-np.pi / 2]), list[Mark]()
    for level in range(5):
        bend = rng.normal(0, 0.12, (len(start), 4))
        paths = walk(start, heading, rng.uniform(0.3, 0.55, len(start)), bend)
        marks.append(Lines(paths, 0.11 - 0.018 * level, rng.uniform(-0.4, 0.1)))
        start = np.concatenate([paths[:, -1]] * 2)
        ends = heading + bend.sum(axis=1)
        heading = np.concatenate([ends - rng.uniform(0.2, 0.6), ends + rng.uniform(0.2, 0.6)])
    return marks


def _rubble(rng: np.random.Generator) -> list[Mark]:
    """Broken coral: short rods, some in stars."""
    count = int(rng.integers(2, 7))
    start = rng.normal(0, 0.5, (count, 2)) * rng.integers(0, 2)
    rods = walk(start, rng.uniform(0, 2 * np.pi, count), rng.uniform(0.5, 1.3, count), rng.normal(0, 0.15, (count, 4)))
    half = rng.uniform(0.06, 0.14) * (1 - np.linspace(-0.98, 0.98, 5) ** 6) ** 0.5
    return [*(Area(ribbon(rod, half + 0.03), -0.5) for rod in rods), *(Area(ribbon(rod, half), 0.1) for rod in rods)]


# --- water and camera ------------------------------------------------------------------------------------------------


def _choose_water(rng: np.random.Generator) -> _Water:
    """The camera looks down and ahead: what is higher in the picture is farther away, behind more water."""
    first, second = rng.choice(len(WATERS), 2)
    turbid = rng.beta(1.3, 3.0)
    distance = np.array([rng.uniform(1.0, 2.2), rng.uniform(0.5, 1.0)])
    colour = _mixed(WATERS[first], WATERS[second], rng.uniform(0, 1))
    return _Water(colour, 1 - np.exp(-1.1 * turbid * distance), 0.0005 + 0.009 * rng.beta(1, 2.5))


def _through_water(rng: np.random.Generator, picture: Image.Image, water: _Water, side: int) -> Image.Image:
    """The picture behind haze, and particles that the lamp lights up."""
    steps = np.linspace(water.haze[0], water.haze[1], 64)
    haze = Image.fromarray((255 * steps).astype(np.uint8)[:, None]).resize((side, side), Image.Resampling.BILINEAR)
    bright = _mixed(water.colour, (1, 1, 1), 0.12)
    picture.paste(shaded(bright, 0), mask=haze)
    draw = ImageDraw.Draw(picture, "RGBA")
    count = int(rng.poisson(3 + 12 * water.haze.mean()))
    for alpha in (0.25, 0.4, 0.65):
        paint(draw, [Area(_discs(rng, rng.uniform(0.003, 0.009, count)), 0.6, alpha)], bright, side)
    for alpha in (0.07, 0.15):  # near the camera, and so out of focus
        paint(draw, [Area(_discs(rng, rng.uniform(0.02, 0.05, count // 3)), 0.6, alpha)], bright, side)
    return picture


def _photograph(rng: np.random.Generator, picture: Image.Image, water: _Water, size: int) -> NDArray[np.uint8]:
    """The picture that the camera takes: blurred, in the light of a lamp, tinted by the water, and grainy."""
    small = picture.reduce(OVERSAMPLING).filter(ImageFilter.GaussianBlur(water.blur * size))
    across = (np.arange(size) + 0.5) / size
    lamp, width = rng.uniform(0.3, 0.7, 2), rng.uniform(0.5, 1.3)
    light = np.exp(-((across - lamp[0]) ** 2 + (across[:, None] - lamp[1]) ** 2) / (2 * width**2))
    tint = np.array(water.colour) / max(water.colour)
    tint = 1 - rng.uniform(0.1, 0.5) * (1 - tint)
    pixels = np.asarray(small) * (rng.uniform(1.0, 1.5) * light[..., None] * tint)
    grain = rng.uniform(1, 5)
    pixels += rng.normal(0, grain, pixels.shape)
    photograph: NDArray[np.uint8] = np.clip(np.rint(pixels), 0, 255).astype(np.uint8)
    return photograph


# --- colours ---------------------------------------------------------------------------------------------------------


def _any_colour(rng: np.random.Generator) -> Colour:
    """A colour of reefs: mostly red to yellow, at times violet or any other; the same for animals of all kinds."""
    warm, violet, other = rng.uniform(0, 0.14), rng.uniform(0.72, 0.97), rng.uniform(0, 1)
    which = rng.random()
    hue = warm if which < 0.55 else violet if which < 0.75 else other
    return colorsys.hsv_to_rgb(hue, rng.uniform(0.1, 0.8), rng.uniform(0.25, 0.95))


def _mixed(first: Iterable[float], second: Iterable[float], share: float) -> Colour:
    red, green, blue = ((1 - share) * a + share * b for a, b in zip(first, second, strict=True))
    return red, green, blue
