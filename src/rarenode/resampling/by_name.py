"""Resampling by the names that settings and the command line use."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Literal

from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy
from rarenode.resampling.hros_pd import HROSPD
from rarenode.resampling.lp_ros import LPROS
from rarenode.resampling.resampler import Resampler

ResamplingName = Literal["none", "lpros", "lpros-textbook", "hros-pd", "hros-pd-published"]

RESAMPLING: Mapping[str, Callable[[Hierarchy, int], Resampler]] = MappingProxyType(
    {
        "lpros": lambda hierarchy, seed: LPROS(seed=seed),
        "lpros-textbook": lambda hierarchy, seed: LPROS(rounding="textbook", seed=seed),
        "hros-pd": lambda hierarchy, seed: HROSPD(hierarchy, seed=seed),
        "hros-pd-published": lambda hierarchy, seed: HROSPD(hierarchy, variant="as_published", seed=seed),
    }
)
"""Name -> from hierarchy and seed to a resampler, with the paper's shares."""


def make_resampler(name: str, hierarchy: Hierarchy, seed: int) -> Resampler | None:
    """The resampler of that name; None for ``none``."""
    if name == "none":
        return None
    if name not in RESAMPLING:
        raise ArgumentError(f"unknown resampling {name!r}; choose none, {', '.join(RESAMPLING)}")
    return RESAMPLING[name](hierarchy, seed)
