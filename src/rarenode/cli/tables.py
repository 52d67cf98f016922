"""Figures as tables: percent, all nodes first, then by rarity and by depth."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.box import SIMPLE_HEAD
from rich.table import Table

from rarenode.hierarchy import Hierarchy
from rarenode.metrics import Summary, summary, summary_by_depth, summary_by_rarity


@dataclass(frozen=True)
class Figures:
    """How well nodes are found: all that are scored, those of each rarity band, those of each depth."""

    all: Summary
    by_rarity: dict[str, Summary]
    by_depth: dict[int, Summary]

    def lines(self) -> Iterator[tuple[str, Summary, bool]]:
        """Which nodes, how well, and whether a section of the table ends; bands without nodes are left out."""
        rarity = {f"{band} training rows": figures for band, figures in self.by_rarity.items() if figures.nodes}
        depth = {f"depth {depth}": figures for depth, figures in self.by_depth.items()}
        for part in ({"all": self.all}, rarity, depth):
            for place, (group, figures) in enumerate(part.items(), start=1):
                yield group, figures, place == len(part)


def figures_by_nodes(
    Y: NDArray[np.bool_],
    probs: NDArray[Any],
    decided: NDArray[np.bool_],
    hierarchy: Hierarchy,
    training_positives: NDArray[np.int64],
    scored: NDArray[np.bool_],
) -> Figures:
    """Summaries of the scored nodes: AP of the probabilities, all else of what was decided from them."""

    def figures(claims: NDArray[Any]) -> Figures:
        return Figures(
            all=summary(Y, claims, scored=scored),
            by_rarity=summary_by_rarity(Y, claims, training_positives, scored=scored),
            by_depth=summary_by_depth(Y, claims, hierarchy, scored=scored),
        )

    # 0 and 1 are probabilities too: a summary of them is that of the decisions.
    decisions, probabilities = figures(decided), figures(probs)
    return Figures(
        all=replace(decisions.all, ap=probabilities.all.ap),
        by_rarity={name: replace(s, ap=probabilities.by_rarity[name].ap) for name, s in decisions.by_rarity.items()},
        by_depth={depth: replace(s, ap=probabilities.by_depth[depth].ap) for depth, s in decisions.by_depth.items()},
    )


def figures_table(figures: Figures) -> Table:
    """The paper's five figures and how many nodes are found, a line for each group of nodes."""
    table = _table("nodes", "there are", "F1", "precision", "recall", "Bin. AP", "AP", "found")
    for group, s, ends in figures.lines():
        shown = (_percent(value) for value in (s.f1, s.precision, s.recall, s.bin_ap, s.ap))
        table.add_row(group, str(s.nodes), *shown, str(s.nodes_found), end_section=ends)
    return table


def comparison_table(runs: Mapping[str, Figures]) -> Table:
    """How many nodes each run finds, and their F1, a line for each group of nodes."""
    table = _table("nodes", "there are", *(f"{name}\n{what}" for name in runs for what in ("found", "F1")))
    for lines in zip(*(figures.lines() for figures in runs.values()), strict=True):
        group, first, ends = lines[0]
        shown = [text for _, s, _ in lines for text in (str(s.nodes_found), _percent(s.f1))]
        table.add_row(group, str(first.nodes), *shown, end_section=ends)
    return table


def _table(group: str, *numbers: str) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column(group, no_wrap=True)
    for number in numbers:
        table.add_column(number, justify="right")
    return table


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.2f}"
