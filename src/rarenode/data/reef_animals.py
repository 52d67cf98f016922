"""The animals of a reef. They differ in shape only; their colour, size and place are chosen elsewhere, alike for all.

Every function draws one animal around the origin, with a radius of about 1 and its head, if it has one, to the right.
No two are the same: arms bend, and numbers, lengths and widths vary.
"""

from __future__ import annotations

import numpy as np

from rarenode.data.reef_marks import Area, Floats, Lines, Mark, around, circle, dots, ribbon, sideways, walk

TAU = 2 * np.pi


def sea_star(rng: np.random.Generator) -> list[Mark]:
    """Five thick arms that taper from a broad middle; a ridge and rows of knobs along each."""
    steps, width = 10, rng.uniform(0.24, 0.33)
    heading = _evenly(rng, 5, 0.1)
    bend = rng.uniform(-0.6, 0.6, (5, 1)) / steps * np.ones((5, steps))
    arms = walk(np.zeros((5, 2)), heading, rng.uniform(0.88, 1.05, 5), bend)
    along = np.linspace(0, 1, steps + 1)
    half = (0.07 + (width - 0.07) * (1 - along) ** 0.8) * np.sqrt(1 - along**6)
    aside = 0.5 * half[2:-1, None] * sideways(arms)[:, 2:-1]
    knobs = np.concatenate([arms[:, 2:-1] - aside, arms[:, 2:-1] + aside])
    return [
        *(Area(ribbon(arm, half + 0.045), -0.45) for arm in arms),
        Area(circle(width + 0.09), -0.45),
        *(Area(ribbon(arm, half)) for arm in arms),
        Area(circle(width + 0.05)),
        dots(knobs.reshape(-1, 2), 0.05, 0.3),
        Lines(arms[:, :-1], 0.045, 0.4),
    ]


def brittle_star(rng: np.random.Generator) -> list[Mark]:
    """A small disc, and five long, thin, banded arms that curl like snakes."""
    steps, disc = 24, rng.uniform(0.15, 0.2)
    heading = _evenly(rng, 5, 0.15)
    along = np.linspace(0, 1, steps + 1)
    waves, phase = rng.uniform(0.7, 1.5, (5, 1)), rng.uniform(0, TAU, (5, 1))
    swing = rng.uniform(0.7, 1.6, (5, 1)) * along**0.7 * np.sin(TAU * waves * along + phase)
    arms = walk(around(heading, disc * 0.6), heading, rng.uniform(1.1, 1.3, 5), np.diff(swing, axis=1))
    half = np.linspace(0.06, 0.015, steps + 1)
    aside = sideways(arms) * half[:, None]
    bands = np.stack([arms - aside, arms + aside], axis=2)[:, 3::3].reshape(-1, 2, 2)
    return [
        *(Area(ribbon(arm, half + 0.02), -0.45) for arm in arms),
        Area(circle(disc + 0.03, corners=10), -0.45),
        *(Area(ribbon(arm, half)) for arm in arms),
        Lines(bands, 0.03, -0.4),
        Area(circle(disc, corners=10), 0.1),
        Lines(np.stack([0.3 * disc * around(heading), 0.95 * disc * around(heading)], axis=1), 0.04, -0.35),
    ]


def basket_star(rng: np.random.Generator) -> list[Mark]:
    """Five arms that fork again and again into a basket of fine, curling twigs."""
    disc = rng.uniform(0.13, 0.18)
    heading = _evenly(rng, 5, 0.1)
    start, length, width = around(heading, disc * 0.7), 0.3, 0.085
    levels: list[tuple[Floats, float]] = []
    for level in range(5):
        bend = rng.normal(0, 0.05 + 0.08 * level, (len(start), 1)) * np.ones((len(start), 5))
        paths = walk(start, heading, length * rng.uniform(0.8, 1.2, len(start)), bend)
        levels.append((paths, width))
        ends = heading + bend.sum(axis=1)
        heading = np.concatenate([ends - 0.5, ends + 0.5]) + rng.normal(0, 0.12, 2 * len(start))
        # Twigs grow outwards: what has turned back is turned half-way to the outside.
        start = np.concatenate([paths[:, -1]] * 2)
        outside = np.arctan2(start[:, 1], start[:, 0])
        heading += 0.3 * (np.mod(outside - heading + np.pi, TAU) - np.pi)
        length, width = length * 0.8, max(width * 0.66, 0.024)
    return [
        *(Lines(paths, width + 0.03, -0.5) for paths, width in levels[:3]),
        *(Lines(paths, width, 0.08 * level) for level, (paths, width) in enumerate(levels)),
        Area(circle(disc + 0.02, corners=10), -0.4),
        Area(circle(disc, corners=10), 0.05),
        Lines(np.stack([np.zeros((5, 2)), levels[0][0][:, 0]], axis=1), 0.04, -0.35),
    ]


def feather_star(rng: np.random.Generator) -> list[Mark]:
    """Ten to sixteen unbranched arms from a small middle, each a feather: a shaft with fine branches on both sides."""
    count, steps = 2 * int(rng.integers(5, 9)), 15
    bend = rng.normal(0, 0.5, (count, 1)) / steps + rng.normal(0, 1.0, (count, 1)) * np.linspace(0, 2, steps) / steps
    heading = _evenly(rng, count, 0.12)
    arms = walk(np.zeros((count, 2)), heading, rng.uniform(0.85, 1.1, count), bend)
    aside = sideways(arms)
    ahead = np.stack([aside[..., 1], -aside[..., 0]], axis=-1)
    reach = (0.2 - 0.1 * np.linspace(0, 1, steps + 1))[:, None]
    combs = [np.stack([arms, arms + reach * (0.8 * side * aside + 0.6 * ahead)], axis=2)[:, 3:] for side in (-1, 1)]
    branches = np.concatenate(combs).reshape(-1, 2, 2)
    hooks = walk(np.zeros((9, 2)), _evenly(rng, 9, 0.2), 0.24, rng.normal(0, 0.35, (9, 4)))
    return [
        *(Area(ribbon(arm, np.linspace(0.1, 0.05, steps + 1)), -0.5, 0.35) for arm in arms),
        Lines(branches, 0.022, 0.1),
        Lines(arms, 0.04, -0.3),
        Lines(hooks, 0.04, -0.5),
        Area(circle(0.08, corners=10), -0.2),
    ]


def regular_urchin(rng: np.random.Generator) -> list[Mark]:
    """A round ball with long straight spines on all sides."""
    count, ball = int(rng.integers(70, 110)), rng.uniform(0.4, 0.5)
    reach = rng.uniform(0.8, 1.08)
    rim = _evenly(rng, 44, 0.06)
    behind = np.stack([around(rim, ball * 0.9), around(rim, reach * rng.uniform(0.85, 1.05, 44))], axis=1)
    angle, out = rng.uniform(0, TAU, count), np.sqrt(rng.uniform(0.02, 1, count))
    roots = around(angle, ball * out)
    spines = np.stack([roots, roots + around(angle, (reach - ball) * out * rng.uniform(0.8, 1.05, count))], axis=1)
    return [
        Lines(behind, 0.05, -0.55),
        Lines(behind, 0.025, -0.1),
        Area(circle(ball), -0.5),
        Area(circle(ball * 0.85), -0.3),
        Area(circle(ball * 0.55), -0.1),
        Lines(spines[::2], 0.03, -0.25),
        Lines(spines[1::2], 0.025, 0.3),
        dots(roots[::3], 0.045, 0.35),
    ]


def irregular_urchin(rng: np.random.Generator) -> list[Mark]:
    """A flat oval, notched in front, in short fur that is combed backwards; five petals on its back."""
    flat, notch = rng.uniform(0.72, 0.86), rng.uniform(0.05, 0.16)
    angle = np.arange(40) * (TAU / 40)
    size = 0.9 * (1 - notch * np.exp(-((np.mod(angle + np.pi, TAU) - np.pi) ** 2) / 0.12))
    oval = around(angle, size) * [1, flat]
    edge = np.repeat(oval, 3, axis=0) * rng.uniform(0.9, 1.0, (120, 1))
    fringe = edge * rng.uniform(0.08, 0.14, (120, 1)) + rng.normal(0, 0.03, (120, 2)) - [0.03, 0]
    spots = around(rng.uniform(0, TAU, 130), np.sqrt(rng.uniform(0, 0.72, 130))) * [1, flat]
    fur = [-0.1, 0] + 0.04 * spots + rng.normal(0, 0.025, (130, 2))
    middle = np.array([rng.uniform(0.0, 0.15), 0.0])
    heading = TAU * np.array([0.0, 0.17, 0.37, 0.63, 0.83]) + rng.normal(0, 0.05, 5)
    reach = rng.uniform(0.42, 0.55)
    shafts = np.stack([middle + around(heading, reach * step) for step in np.linspace(0.1, 1, 7)], axis=1)
    petal = 0.1 * np.sin(np.linspace(0.2, np.pi - 0.1, 7))
    return [
        Lines(np.stack([edge, edge + fringe], axis=1), 0.03, -0.25),
        Area(oval, -0.4),
        Area(oval * 0.93),
        Area(oval * 0.7 - [0.03, 0.05], 0.12),
        Lines(np.stack([spots, spots + fur], axis=1)[::2], 0.028, -0.3),
        Lines(np.stack([spots, spots + fur], axis=1)[1::2], 0.028, 0.25),
        *(Area(ribbon(shaft, petal), -0.5, 0.8) for shaft in shafts),
        Lines(shafts, 0.03, 0.25),
    ]


def benthic_cucumber(rng: np.random.Generator) -> list[Mark]:
    """A long, bent sausage with warts along its sides and back, and a tuft of feelers at its mouth."""
    steps, width = 22, rng.uniform(0.2, 0.28)
    body = _body(rng, 1.85, steps, rng.uniform(-1.8, 1.8))
    along = np.linspace(-1, 1, steps + 1)
    half = width * (1 - along**6) ** 0.5 * (1 + 0.06 * np.cos(along * 9 + rng.uniform(0, TAU)))
    aside = half[:, None] * sideways(body)
    outside = aside + 0.09 * sideways(body)
    warts = [np.stack([body + side * 0.9 * aside, body + side * outside], axis=1)[2:-2] for side in (-1, 1)]
    back = np.concatenate([(body + row * aside)[2:-2] for row in (-0.45, 0.0, 0.45)])
    folds = np.stack([body - 0.8 * aside, body + 0.8 * aside], axis=1)[3:-2:2]
    return [
        Lines(_feelers(rng, body, 8, 0.24), 0.05, 0.15),
        Lines(np.concatenate(warts), 0.06, -0.2),
        Area(ribbon(body, half + 0.03), -0.45),
        Area(ribbon(body, half)),
        Area(ribbon(body - [0, 0.03], half * 0.5), 0.15),
        Lines(folds, 0.02, -0.2),
        dots(back, 0.07, -0.35),
        dots(back - [0.01, 0.02], 0.04, 0.4),
    ]


def swimming_cucumber(rng: np.random.Generator) -> list[Mark]:
    """A plump body, easy to see through, with a web around its mouth, like an open umbrella, and one at its tail."""
    steps, width = 14, rng.uniform(0.26, 0.34)
    body = _body(rng, 1.25, steps, rng.uniform(-0.7, 0.7)) - [0.25, 0]
    along = np.linspace(-1, 1, steps + 1)
    half = width * (1 - along**4) ** 0.5
    brim = half + 0.12 + 0.04 * np.cos(along * 16)
    front, tail = body[-3], body[2]
    ahead = float(np.arctan2(*(body[-1] - body[-3])[::-1]))
    behind = float(np.arctan2(*(body[0] - body[2])[::-1]))
    web, ribs = _web(front, ahead, rng.uniform(0.7, 0.85), rng.uniform(1.5, 2.0), 9)
    fin, rays = _web(tail, behind, rng.uniform(0.42, 0.52), rng.uniform(0.8, 1.1), 5)
    gut = body + 0.4 * half[:, None] * np.cos(along * 5 + rng.uniform(0, TAU))[:, None] * sideways(body)
    return [
        Area(fin, 0.1, 0.55),
        Lines(rays, 0.03, -0.3, 0.8),
        Area(ribbon(body, brim), 0.15, 0.45),
        Area(web, 0.15, 0.6),
        Lines(ribs, 0.035, -0.3, 0.85),
        Lines(np.concatenate([ribs[:-1, -1:], ribs[1:, -1:]], axis=1), 0.03, 0.3, 0.7),
        Area(ribbon(body, half), -0.1, 0.75),
        Lines(gut[None, 2:-2], 0.09, -0.5, 0.8),
        Lines(_feelers(rng, body, 7, 0.18), 0.04, -0.3),
    ]


def _evenly(rng: np.random.Generator, count: int, unevenness: float) -> Floats:
    """Directions all around, and not quite even."""
    return np.arange(count) * (TAU / count) + rng.normal(0, unevenness, count)


def _body(rng: np.random.Generator, length: float, steps: int, bend: float) -> Floats:
    """The middle line of a body, from tail to head."""
    sway = rng.uniform(-0.5, 0.5) * np.cos(np.linspace(0, TAU, steps)) / steps * 4
    path = walk(np.zeros((1, 2)), np.array([-bend / 2]), length, (bend / steps + sway)[None])[0]
    middle: Floats = path - path.mean(axis=0)
    return middle


def _feelers(rng: np.random.Generator, body: Floats, count: int, length: float) -> Floats:
    """Lines in a fan from the head."""
    ahead = float(np.arctan2(*(body[-1] - body[-2])[::-1]))
    heading = ahead + np.linspace(-1.2, 1.2, count) + rng.normal(0, 0.1, count)
    return walk(np.tile(body[-1], (count, 1)), heading, length, rng.normal(0, 0.25, (count, 4)))


def _web(centre: Floats, heading: float, radius: float, spread: float, ribs: int) -> tuple[Floats, Floats]:
    """A fan between ribs, its edge hanging inwards between them: the outline, and the ribs."""
    angle = heading + np.linspace(-spread, spread, 6 * (ribs - 1) + 1)
    hang = 1 - 0.16 * np.abs(np.sin(np.pi * np.arange(len(angle)) / 6))
    edge = centre + around(angle, radius * hang)
    tips = edge[::6]
    return np.concatenate([centre[None], edge]), np.stack([np.broadcast_to(centre, tips.shape), tips], axis=1)
