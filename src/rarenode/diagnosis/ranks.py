"""Where the rows that carry a missed node stand among all rows, and whether chance could have put them there.

Of n rows m carry the node. At a *cut*, a probability that one of them has, r rows stand at or above it, h of which
carry the node. In a random order at least h of the m are among the first r with the hypergeometric probability

    sum over i >= h of C(m, i) C(n - m, r - i) / C(n, r).

It is looked at where the 1st, 2nd, 4th, 8th, ... and last of the m rows stand: the first sees a single row that stands
out, the later ones many that lean upwards. The smallest of these probabilities, times their number as each is a try,
is the chance that the model ranks the rows so well without having learnt anything of the node. Where it is small, only
the threshold hides the node.

The *best cut* is the threshold with the best F1 on these rows, the highest of equal ones. Between two cuts a lower
threshold adds nothing but mistakes, so no other threshold does better.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode.diagnosis.carried import Carried
from rarenode.diagnosis.lists import Ints
from rarenode.thresholds.probabilities import lines_per_block

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Ranks:
    """One value for each node of the hierarchy; 0 or NaN for nodes without cells."""

    best_rank: Ints
    """r at the first of the m rows."""
    rank_chance: Floats
    auc: Floats
    """The share of pairs of a row that carries the node and one that does not in which the former has the higher
    probability, ties counted half; NaN where every row carries the node."""
    cut_prob: Floats
    cut_next: Floats
    """The highest probability of the node, in any row, that is below the best cut; -1 if there is none."""
    cut_rank: Ints
    """r at the best cut."""
    cut_hits: Ints
    """h at the best cut."""


def rank_rows(probs: NDArray[np.floating[Any]], cells: Carried) -> Ranks:
    """The ranks of the nodes of some cells among all rows of probabilities (rows, nodes)."""
    rows, nodes = probs.shape
    some, first, support = np.unique(cells.nodes, return_index=True, return_counts=True)
    ranks = Ranks(
        best_rank=np.zeros(nodes, dtype=np.int64),
        rank_chance=np.full(nodes, np.nan),
        auc=np.full(nodes, np.nan),
        cut_prob=np.full(nodes, np.nan),
        cut_next=np.full(nodes, np.nan),
        cut_rank=np.zeros(nodes, dtype=np.int64),
        cut_hits=np.zeros(nodes, dtype=np.int64),
    )
    looks: list[tuple[int, Ints, Ints]] = []
    step = lines_per_block(rows)
    for begin in range(0, len(some), step):
        block = slice(begin, begin + step)
        ordered = np.sort(probs[:, some[block]].T, axis=1)
        of_block = zip(some[block].tolist(), first[block].tolist(), support[block].tolist(), ordered, strict=True)
        for node, start, m, values in of_block:
            own = np.sort(probs[cells.rows[start : start + m], node])[::-1]
            below = np.searchsorted(values, own, side="left")
            above = rows - np.searchsorted(values, own, side="right")
            rank = rows - below
            # Of rows with equal probabilities the last is the one that counts them all.
            last_of_equal = np.searchsorted(-own, -own, side="right") - 1
            hits = last_of_equal + 1
            cut = int(np.argmax(2 * hits / (rank + m)))
            ranks.best_rank[node] = rank[0]
            ranks.cut_prob[node], ranks.cut_rank[node], ranks.cut_hits[node] = own[cut], rank[cut], hits[cut]
            ranks.cut_next[node] = values[below[cut] - 1] if below[cut] else -1.0
            if m < rows:
                # Rows that carry the node cancel out among themselves.
                ranks.auc[node] = 0.5 + float((below - above).sum()) / (2 * m * (rows - m))
            tried = _tries(m)
            looks.append((node, rank[tried], hits[tried]))
    _add_chances(ranks.rank_chance, looks, rows, dict(zip(some.tolist(), support.tolist(), strict=True)))
    return ranks


def _tries(m: int) -> Ints:
    """Places of the 1st, 2nd, 4th, ... and last of m rows, counted from 0."""
    powers = 2 ** np.arange(m.bit_length())
    return np.unique(np.append(powers[powers <= m], m)) - 1


def _add_chances(chances: Floats, looks: list[tuple[int, Ints, Ints]], rows: int, support: dict[int, int]) -> None:
    """Write the chance of each node: all tries of all nodes are computed at once."""
    if not looks:
        return
    number = np.array([len(rank) for _, rank, _ in looks])
    nodes = np.array([node for node, _, _ in looks])
    rank, hits = (np.concatenate([look[part] for look in looks]) for part in (1, 2))
    carrying = np.repeat([support[node] for node in nodes.tolist()], number)
    each = chance_of_hits(rows, carrying, rank, hits)
    starts = np.append(0, np.cumsum(number)[:-1])
    chances[nodes] = np.minimum(1.0, np.minimum.reduceat(each, starts) * number)


def chance_of_hits(rows: int, carrying: Ints, rank: Ints, hits: Ints) -> Floats:
    """The probability that at least ``hits`` of ``carrying`` rows are among the first ``rank`` in a random order.

    >>> chance_of_hits(4, np.array([1, 2, 2]), np.array([1, 2, 2]), np.array([1, 1, 2])).round(4)
    array([0.25  , 0.8333, 0.1667])
    """
    from scipy.stats import hypergeom  # noqa: PLC0415 (slow to import, and only missed nodes need it)

    # Where one of the two is 1, it is rank * carrying / rows. Logarithms would round it, and a chance of exactly one in
    # a hundred could land on the wrong side of that bound.
    simple = np.minimum(rank, carrying) == 1
    tail = hypergeom.sf(hits - 1, rows, carrying, rank)
    return np.asarray(np.where(simple, rank * carrying / rows, tail), dtype=np.float64)
