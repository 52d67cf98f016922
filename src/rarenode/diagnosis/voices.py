"""Where a single voice of the model, a member or its forest, reaches the threshold of a missed node by itself.

Voices that reach it here and there, in rows of any kind, tell nothing. Of n rows m carry the node; a voice reaches the
threshold in r rows, h of which carry it. The chance that at least h of r rows carry it by luck is the hypergeometric
one of `rarenode.diagnosis.ranks`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode.diagnosis.carried import Carried
from rarenode.diagnosis.lists import Ints
from rarenode.diagnosis.ranks import chance_of_hits
from rarenode.thresholds.probabilities import row_blocks


@dataclass(frozen=True, eq=False)
class Voices:
    """One value for each node of the hierarchy; 0 and a chance of 1 where there is nothing to tell."""

    carried_rows: Ints
    """h."""
    all_rows: Ints
    """r."""
    chance: NDArray[np.float64]


def find_voices(highest: NDArray[np.floating[Any]] | None, thresholds: NDArray[np.float64], cells: Carried) -> Voices:
    """Count them, from the highest voice in each cell of (rows, nodes); None where there is one voice only."""
    nodes = len(thresholds)
    carried, everywhere, chance = np.zeros(nodes, dtype=np.int64), np.zeros(nodes, dtype=np.int64), np.ones(nodes)
    if highest is not None and len(cells):
        carried = cells.count(cells.values(highest) >= thresholds[cells.nodes], nodes)
        some = np.flatnonzero(carried)
        for block in row_blocks((len(highest), len(some))):
            everywhere[some] += np.count_nonzero(highest[block][:, some] >= thresholds[some], axis=0)
        support = np.bincount(cells.nodes, minlength=nodes)
        chance[some] = chance_of_hits(len(highest), support[some], everywhere[some], carried[some])
    return Voices(carried, everywhere, chance)
