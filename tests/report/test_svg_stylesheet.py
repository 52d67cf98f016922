"""The colours of charts, for people with and without colour blindness, in light and in dark."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest

from rarenode.report.svg.node_boxes import STRONGEST, WEAKEST
from rarenode.report.svg.stylesheet import CSS, DARK, DASHES, LIGHT

Colour = npt.NDArray[np.float64]
SEEN = {
    "by most": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "without red": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "without green": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.01182, 0.04294, 0.968881)),
    "without blue": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.3039)),
}
"""What becomes of linear RGB: Machado, Oliveira and Fernandes (2009), severity 1."""
LMS = (
    (0.4122214708, 0.5363325363, 0.0514459929),
    (0.2119034982, 0.6806995451, 0.1073969566),
    (0.0883024619, 0.2817188376, 0.6299787005),
)
LAB = (
    (0.2104542553, 0.793617785, -0.0040720468),
    (1.9779984951, -2.428592205, 0.4505937099),
    (0.0259040371, 0.7827717662, -0.808675766),
)
"""From linear RGB to Oklab, where distances are about those that are seen (Ottosson, 2020)."""

themes = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


def rgb(name: str) -> Colour:
    return np.array([int(name[at : at + 2], 16) / 255 for at in (1, 3, 5)])


def linear(colour: Colour) -> Colour:
    return np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)


def oklab(colour: Colour) -> Colour:
    return np.asarray(np.array(LAB) @ np.cbrt(np.array(LMS) @ np.clip(colour, 0, 1)))


def contrast(one: Colour, other: Colour) -> float:
    """WCAG 2: the ratio of luminances, with a little light added to both."""
    first, second = (float(linear(colour) @ (0.2126, 0.7152, 0.0722)) + 0.05 for colour in (one, other))
    return max(first, second) / min(first, second)


@themes
@pytest.mark.parametrize("eyes", SEEN)
def test_series_can_be_told_apart_by_everyone(theme: dict[str, str], eyes: str) -> None:
    seen = {index: oklab(np.array(SEEN[eyes]) @ linear(rgb(theme[str(index)]))) for index in range(1, 9)}
    for (one, first), (other, second) in combinations(seen.items(), 2):
        distance = float(np.linalg.norm(first - second))
        assert distance > (0.12 if other <= 4 else 0.075), (one, other)


@themes
def test_colours_stand_out_from_the_paper(theme: dict[str, str]) -> None:
    paper = rgb(theme["paper"])
    for name in ("ink", "muted"):
        assert contrast(rgb(theme[name]), paper) >= 4.5, name  # letters
    for index in range(1, 9):
        assert contrast(rgb(theme[str(index)]), paper) >= 3, index  # lines and bars


@themes
def test_letters_in_tinted_boxes_stay_readable(theme: dict[str, str]) -> None:
    paper, tint, ink = (rgb(theme[name]) for name in ("paper", "tint", "ink"))
    for opacity in np.linspace(WEAKEST, STRONGEST, 20):
        assert contrast(ink, opacity * tint + (1 - opacity) * paper) >= 4.5


def test_dashes_differ() -> None:
    assert len(set(DASHES)) == 8


def test_a_page_can_set_every_property_and_the_theme() -> None:
    assert CSS.count("{") == CSS.count("}")
    for name in ("ink", "muted", "grid", "paper", *map(str, range(1, 9))):
        assert f"--rn-{name}:{LIGHT[name]};" in CSS
        assert f"--rn-{name}:{DARK[name]};" in CSS
        assert f"var(--rn-{name})" in CSS
    assert "@media (prefers-color-scheme:dark){:where(:root:not([data-theme=light])){" in CSS
    assert "\n:where(:root[data-theme=dark]){" in CSS
    assert "<" not in CSS  # it stands in a style element
