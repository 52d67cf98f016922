"""Where the positives of a missed node rank among all rows, and whether chance could have ranked them so high.

Of n rows m are positives of the node. At a *cut*, the probability of one of them, r rows are at or above it, h of which
are positives. Rows where it is unknown whether they have the node are none of the n. In a random order at least h of
the m are among the first r with the hypergeometric probability

    sum over i >= h of C(m, i) C(n - m, r - i) / C(n, r).

It is computed at the 1st, 2nd, 4th, 8th, ... and last of the m positives: the first detects a single row that stands
out, the later ones detect many rows that rank a little too high. The smallest of these probabilities, times their
number (a Bonferroni correction), bounds the chance that a model which has learnt nothing about the node ranks its
positives so high. Where it is small, only the threshold hides the node.

The *best cut* is the threshold with the best F1 on these rows, the highest of equal ones. Between two cuts a lower
threshold adds only false positives, so no other threshold does better.

If all m come first, the bound is the number of cuts divided by C(n, m). Where even that is not small, there are too few
rows to tell whether the model has learnt the node.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode.thresholds.probabilities import lines_per_block

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Ranks:
    """One value for each node of the hierarchy; 0 or NaN for nodes that are not missed."""

    best_rank: Ints
    """r at the first of the m positives."""
    rank_chance: Floats
    auc: Floats
    """Area under the ROC curve: the share of pairs of a positive and a negative in which the positive has the higher
    probability, ties counted half; NaN without negatives."""
    cut_prob: Floats
    cut_next: Floats
    """The highest probability of the node, in any row, that is below the best cut; -1 if there is none."""
    cut_rank: Ints
    """r at the best cut."""
    cut_hits: Ints
    """h at the best cut."""


def rank_positives(
    probs: NDArray[np.floating[Any]],
    positive_nodes: Ints,
    positive_rows: Ints,
    known: NDArray[np.bool_] | None = None,
) -> Ranks:
    """Rank positives, given as cells (row, node) sorted by node, among all rows of probabilities (rows, nodes).

    ``known`` (rows, nodes) says in which rows a node is known; None: in all.
    """
    all_rows, nodes = probs.shape
    some, first, support = np.unique(positive_nodes, return_index=True, return_counts=True)
    ranks = Ranks(
        best_rank=np.zeros(nodes, dtype=np.int64),
        rank_chance=np.full(nodes, np.nan),
        auc=np.full(nodes, np.nan),
        cut_prob=np.full(nodes, np.nan),
        cut_next=np.full(nodes, np.nan),
        cut_rank=np.zeros(nodes, dtype=np.int64),
        cut_hits=np.zeros(nodes, dtype=np.int64),
    )
    cuts: list[tuple[int, Ints, Ints]] = []
    known_rows = np.full(nodes, all_rows) if known is None else np.count_nonzero(known, axis=0)
    step = lines_per_block(all_rows)
    for begin in range(0, len(some), step):
        block = slice(begin, begin + step)
        values_of = probs[:, some[block]].T
        if known is not None:
            values_of = np.where(known[:, some[block]].T, values_of, -1)  # below all others: the first of the sorted
        ordered = np.sort(values_of, axis=1)
        of_block = zip(some[block].tolist(), first[block].tolist(), support[block].tolist(), ordered, strict=True)
        for node, start, m, line in of_block:
            rows = int(known_rows[node])
            values = line[all_rows - rows :]
            own = np.sort(probs[positive_rows[start : start + m], node])[::-1]
            below = np.searchsorted(values, own, side="left")
            above = rows - np.searchsorted(values, own, side="right")
            rank = rows - below
            # Of positives with equal probabilities the last counts them all.
            last_of_equal = np.searchsorted(-own, -own, side="right") - 1
            hits = last_of_equal + 1
            cut = int(np.argmax(2 * hits / (rank + m)))
            ranks.best_rank[node] = rank[0]
            ranks.cut_prob[node], ranks.cut_rank[node], ranks.cut_hits[node] = own[cut], rank[cut], hits[cut]
            ranks.cut_next[node] = values[below[cut] - 1] if below[cut] else -1.0
            if m < rows:
                # Pairs of positives cancel out.
                ranks.auc[node] = 0.5 + float((below - above).sum()) / (2 * m * (rows - m))
            places = _places(m)
            cuts.append((node, rank[places], hits[places]))
    _add_chances(ranks.rank_chance, cuts, known_rows, dict(zip(some.tolist(), support.tolist(), strict=True)))
    return ranks


def are_too_few(rows: Ints, positives: Ints, unlikely: float) -> NDArray[np.bool_]:
    """For each node, whether even the best ranking of so many positives among so many rows is not unlikely enough.

    Without negatives there is no ranking, however many rows there are; then the result is False.

    >>> are_too_few(np.array([99, 100, 3]), np.array([1, 1, 3]), 0.01)
    array([ True, False, False])
    """
    return np.array(
        [
            # C(20, 10) is large enough for any number of cuts.
            0 < (few := min(m, n - m)) < 10 and len(_places(m)) > unlikely * math.comb(n, few)
            for n, m in zip(rows.tolist(), positives.tolist(), strict=True)
        ],
        dtype=np.bool_,
    )


def _places(m: int) -> Ints:
    """Indices of the 1st, 2nd, 4th, ... and last of m positives."""
    powers = 2 ** np.arange(m.bit_length())
    return np.unique(np.append(powers[powers <= m], m)) - 1


def _add_chances(
    chances: Floats, cuts: list[tuple[int, Ints, Ints]], known_rows: Ints, support: dict[int, int]
) -> None:
    """Write the chance of each node; all cuts of all nodes are computed at once."""
    if not cuts:
        return
    number = np.array([len(rank) for _, rank, _ in cuts])
    nodes = np.array([node for node, _, _ in cuts])
    rank, hits = (np.concatenate([cut[part] for cut in cuts]) for part in (1, 2))
    positives = np.repeat([support[node] for node in nodes.tolist()], number)
    each = chance_of_hits(np.repeat(known_rows[nodes], number), positives, rank, hits)
    starts = np.append(0, np.cumsum(number)[:-1])
    chances[nodes] = np.minimum(1.0, np.minimum.reduceat(each, starts) * number)


def chance_of_hits(rows: int | Ints, positives: Ints, rank: Ints, hits: Ints) -> Floats:
    """The probability that at least ``hits`` of ``positives`` are among the first ``rank`` rows in a random order.

    >>> chance_of_hits(4, np.array([1, 2, 2]), np.array([1, 2, 2]), np.array([1, 1, 2])).round(4)
    array([0.25  , 0.8333, 0.1667])
    """
    from scipy.stats import hypergeom  # noqa: PLC0415 (slow to import, and only needed for missed nodes)

    # Where one of the two is 1, it is rank * positives / rows. scipy works with logarithms, which round, and a chance
    # of exactly 0.01 could end up on the wrong side of that bound.
    simple = np.minimum(rank, positives) == 1
    tail = hypergeom.sf(hits - 1, rows, positives, rank)
    return np.asarray(np.where(simple, rank * positives / rows, tail), dtype=np.float64)
