"""`Figures`: summaries of all nodes, of each rarity band and of each depth; of decisions and their probabilities."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode.hierarchy import Hierarchy
from rarenode.metrics.node_scores import node_scores
from rarenode.metrics.summaries import Summary, rarity_masks, summary, summary_by_depth, summary_by_rarity

RECALL_BINS = 11
"""Of a spread: nodes with a recall of 0, then those of each tenth above it."""


@dataclass(frozen=True)
class Line:
    """One group of nodes."""

    group: str
    summary: Summary
    spread: tuple[int, ...]
    """How many of its nodes, among those that a row carries, have each recall; see `RECALL_BINS`."""
    ends_section: bool


@dataclass(frozen=True)
class Figures:
    """How well nodes are found: all that are scored, those of each rarity band, those of each depth."""

    all: Summary
    by_rarity: dict[str, Summary]
    by_depth: dict[int, Summary]
    spreads: dict[str, tuple[int, ...]]
    """For each line's group; see `Line.spread`."""

    def lines(self) -> Iterator[Line]:
        """All nodes, then rarity bands that have some, then depths."""
        rarity = {_band(band): figures for band, figures in self.by_rarity.items() if figures.nodes}
        depth = {_depth(depth): figures for depth, figures in self.by_depth.items()}
        for part in ({"all": self.all}, rarity, depth):
            for place, (group, figures) in enumerate(part.items(), start=1):
                yield Line(group, figures, self.spreads[group], place == len(part))


def figures_by_nodes(
    Y: NDArray[np.bool_],
    probs: NDArray[Any],
    decided: NDArray[np.bool_],
    hierarchy: Hierarchy,
    training_positives: NDArray[np.int64],
    scored: NDArray[np.bool_],
) -> Figures:
    """Summaries of the scored nodes: AP of the probabilities, all else of what was decided from them."""

    def figures(claims: NDArray[Any]) -> tuple[Summary, dict[str, Summary], dict[int, Summary]]:
        return (
            summary(Y, claims, scored=scored),
            summary_by_rarity(Y, claims, training_positives, scored=scored),
            summary_by_depth(Y, claims, hierarchy, scored=scored),
        )

    # 0 and 1 are probabilities too: a summary of them is that of the decisions.
    (every, rarity, depth), (every_p, rarity_p, depth_p) = figures(decided), figures(probs)
    return Figures(
        all=replace(every, ap=every_p.ap),
        by_rarity={name: replace(s, ap=rarity_p[name].ap) for name, s in rarity.items()},
        by_depth={level: replace(s, ap=depth_p[level].ap) for level, s in depth.items()},
        spreads=_spreads(Y, decided, hierarchy, training_positives, scored),
    )


def _spreads(
    Y: NDArray[np.bool_],
    decided: NDArray[np.bool_],
    hierarchy: Hierarchy,
    count: NDArray[np.int64],
    scored: NDArray[np.bool_],
) -> dict[str, tuple[int, ...]]:
    scores = node_scores(Y, decided)
    carried = scored & (scores.support > 0)
    # In whole numbers: a recall of exactly three tenths belongs to the third.
    place = -(-10 * scores.true_positives // np.maximum(scores.support, 1))
    groups = {"all": carried}
    groups |= {_band(band): carried & mask for band, mask in rarity_masks(count).items()}
    groups |= {_depth(depth): carried & (hierarchy.depth == depth) for depth in np.unique(hierarchy.depth).tolist()}
    return {group: tuple(np.bincount(place[mask], minlength=RECALL_BINS).tolist()) for group, mask in groups.items()}


def _band(band: str) -> str:
    return f"{band} training rows"


def _depth(depth: int) -> str:
    return f"depth {depth}"
