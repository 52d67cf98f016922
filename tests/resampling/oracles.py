"""Slow, obvious versions of LP-ROS and HROS-PD, and labels to try them on. For tests only.

Fractions in place of floats, dictionaries in place of arrays: where a count or a ratio stands exactly on a boundary,
the oracle knows which side it is on. Which row is drawn is chance, so an oracle says how many rows are to be drawn, and
from which. They ask a hierarchy for nothing but its names and its (parent, child) pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, floor
from typing import Any, Literal, NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from rarenode import Hierarchy
from tests.oracles import NamesAndEdges, ancestors, close, depth
from tests.strategies import hierarchies

LabelSet = frozenset[int]
Names = frozenset[str]

EXACT_SHARES = (0.0, 0.125, 0.25, 0.5, 1.0, 2.0)
"""Shares that a float holds exactly, so that a budget on a boundary is not a matter of digits."""


# --- labels --------------------------------------------------------------------------------------------------------


class Labelled(NamedTuple):
    hierarchy: Hierarchy
    Y: NDArray[np.bool_]


@st.composite
def rare_and_common(draw: st.DrawFn, most_nodes: int = 9, hierarchy: Hierarchy | None = None) -> Labelled:
    """Closed labels, up to three in a row before closure, of nodes that are each half as popular as the one before.

    Hypothesis prefers small and equal numbers, which leave nothing to clone; so it chooses a seed, and that the labels.
    """
    chosen = draw(hierarchies(most_nodes)) if hierarchy is None else hierarchy
    rows, rng = draw(st.sampled_from((0, 1, 3, 12, 25, 40, 60))), np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    popularity = rng.permutation(0.5 ** np.arange(len(chosen)))
    labels = np.zeros((rows, len(chosen)), dtype=np.bool_)
    for row in range(rows):
        few = int(rng.choice(4, p=(0.05, 0.6, 0.25, 0.1)))
        labels[row, rng.choice(len(chosen), size=few, p=popularity / popularity.sum())] = True
    return Labelled(chosen, close(labels, chosen))


def of_rows(hierarchy: Hierarchy, *rows: tuple[str, int]) -> NDArray[np.bool_]:
    """Closed labels from pairs such as ``("c d", 3)``: three rows with the labels c and d."""
    sets = [labels.split() for labels, times in rows for _ in range(times)]
    return close(hierarchy.encode(sets), hierarchy)


# --- LP-ROS --------------------------------------------------------------------------------------------------------


def bags(Y: NDArray[Any]) -> dict[LabelSet, list[int]]:
    """Rows by their exact label set, in the order in which the sets appear."""
    found: dict[LabelSet, list[int]] = {}
    for row, labels in enumerate(Y):
        found.setdefault(frozenset(np.flatnonzero(labels).tolist()), []).append(row)
    return found


def lp_ros_clones(Y: NDArray[Any], share: float, rounding: Literal["up", "textbook"]) -> dict[LabelSet, int]:
    """How many clones each bag gets; bags without any are left out."""
    sizes = {labels: len(rows) for labels, rows in bags(Y).items()}
    if not sizes:
        return {}
    mean = Fraction(len(Y), len(sizes))
    minority = [labels for labels, size in sizes.items() if size < mean]
    clones = dict.fromkeys(minority, 0)
    if rounding == "up":
        for labels in minority:
            clones[labels] = ceil(min(Fraction(share) * len(Y) / len(minority), mean - sizes[labels]))
    else:
        budget = floor(Fraction(share) * len(Y))
        smallest_first = sorted(minority, key=lambda labels: sizes[labels])
        while budget and any(sizes[labels] + clones[labels] < mean for labels in minority):
            for labels in smallest_first:
                if budget and sizes[labels] + clones[labels] < mean:
                    clones[labels] += 1
                    budget -= 1
    return {labels: count for labels, count in clones.items() if count}


# --- HROS-PD -------------------------------------------------------------------------------------------------------


class Turn(NamedTuple):
    """What is asked of the drawing when it is a node's turn."""

    node: str
    clones: int
    sources: frozenset[int]
    """The rows that may be drawn."""


def names_of(hierarchy: NamesAndEdges, labels: NDArray[Any]) -> Names:
    return frozenset(name for name, carried in zip(hierarchy.nodes, labels, strict=True) if carried)


def ends(hierarchy: NamesAndEdges, carried: Names) -> Names:
    """The labels from which none of the row's labels goes on."""
    return frozenset(
        name for name in carried if not any(parent == name and child in carried for parent, child in hierarchy.edges)
    )


def with_ancestors(hierarchy: NamesAndEdges, name: str) -> Names:
    return frozenset({name} | ancestors(hierarchy.edges, name))


def hros_pd_turns(
    Y: NDArray[Any],
    hierarchy: NamesAndEdges,
    share: float,
    variant: Literal["as_described", "as_published"],
    drawn: Sequence[int],
) -> list[Turn]:
    """The turns with at least one clone, in order, if ``drawn`` are the rows that were drawn, in order.

    A whole row that is cloned raises the count of all its labels, so who has a turn later depends on what was drawn. A
    hierarchy with several roots is read as one whose root, above them all, has no name.
    """
    rows = [names_of(hierarchy, labels) for labels in Y]
    ends_of_rows = [ends(hierarchy, row) for row in rows]
    tops = [name for name in hierarchy.nodes if not ancestors(hierarchy.edges, name)]
    below_root = [name for name in hierarchy.nodes if tops != [name]]

    occurrences: list[Names] = []  # the paths, with all that they go through, that are counted once each
    for row, row_ends in zip(rows, ends_of_rows, strict=True):
        if variant == "as_published":
            occurrences.extend(with_ancestors(hierarchy, name) for name in row_ends)
        elif row:
            occurrences.append(row)
    root_count = len(occurrences)
    counts = {name: sum(name in occurrence for occurrence in occurrences) for name in below_root}
    counts = {name: count for name, count in counts.items() if count}
    if not counts:
        return []

    def imbalance(name: str) -> Fraction:
        return Fraction(max(counts.values()), counts[name])

    mean_imbalance = sum((imbalance(name) for name in counts), Fraction(0)) / len(counts)
    first_minority = [name for name in counts if imbalance(name) > mean_imbalance]
    if not first_minority:
        return []
    increase = ceil(Fraction(floor(Fraction(share) * root_count), len(first_minority)))
    mean_size = ceil(Fraction(root_count, len(counts)))

    turns: list[Turn] = []
    waiting = list(drawn)
    depths = {name: depth(hierarchy.edges, name) for name in counts}
    for level in sorted(set(depths.values()), reverse=True):
        for name in [name for name in counts if depths[name] == level and imbalance(name) > mean_imbalance]:
            clones = min(increase, mean_size - counts[name])
            if clones <= 0:
                continue
            ending = frozenset(i for i, row_ends in enumerate(ends_of_rows) if name in row_ends)
            passing = frozenset(i for i, row in enumerate(rows) if name in row)
            turns.append(Turn(name, clones, ending or passing))
            for place in waiting[:clones]:
                counted = rows[place] if variant == "as_described" else with_ancestors(hierarchy, name)
                for other in counted & counts.keys():
                    counts[other] += 1
            del waiting[:clones]
    return turns
