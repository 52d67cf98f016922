"""`GlobalThreshold`: one threshold for all nodes, the best on labelled rows.

A lower threshold can only gain where it reaches another cell (row, node) that is labelled; in between it only adds
mistakes. So the best threshold is the probability of a labelled cell, and only those are tried: all distinct ones if
there are at most `MOST_CANDIDATES`, otherwise that many of them, evenly spaced in their order.

Where several are equally good, the highest is taken. Decisions by one threshold on coherent probabilities are coherent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rarenode.errors import ArgumentError
from rarenode.thresholds.ranking import ranked
from rarenode.thresholds.strategy import HeldOut, Strategy

Metric = Literal["f1", "micro_f1"]
MOST_CANDIDATES = 1024
ROUNDING = 1e-12
"""Scores that differ by less are equal: a sum in another order of nodes must not choose another threshold."""


@dataclass(frozen=True)
class GlobalThreshold(Strategy):
    """The best single threshold.

    Args:
        metric: ``f1``, the mean over nodes of their F1 (0 where undefined), or ``micro_f1``, the F1 of all cells.
    """

    metric: Metric = "f1"
    needs_labels: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.metric not in get_args(Metric):
            raise ArgumentError(f"unknown metric {self.metric!r}; choose one of {', '.join(get_args(Metric))}")

    @property
    def name(self) -> str:
        """``global``, or ``global:micro_f1``."""
        return "global" if self.metric == "f1" else f"global:{self.metric}"

    def choose(self, rows: HeldOut) -> NDArray[np.float64]:
        """The best threshold, for each node."""
        assert rows.labels is not None  # noqa: S101 (`Strategy.fit` has asked for them)
        candidates = np.unique(rows.probs[rows.labels])
        candidates = candidates[candidates > 0]
        if not len(candidates):
            raise ArgumentError(f"{self.name} needs a row that carries a node with a probability above 0")
        if len(candidates) > MOST_CANDIDATES:
            candidates = candidates[np.linspace(0, len(candidates) - 1, MOST_CANDIDATES).round().astype(np.int64)]
        f1 = np.zeros(len(candidates))
        hits, claims = np.zeros((2, len(candidates)), dtype=np.int64)
        for block in ranked(rows.probs, rows.labels):
            for falling, node_hits in zip(block.probs, block.hits, strict=True):
                claimed = len(falling) - np.searchsorted(falling[::-1], candidates, side="left")
                hit = np.append(0, node_hits)[claimed]
                f1 += 2 * hit / np.maximum(claimed + node_hits[-1], 1)
                hits += hit
                claims += claimed
        score = f1 / rows.nodes if self.metric == "f1" else hits / (claims + np.count_nonzero(rows.labels))
        best = candidates[np.flatnonzero(score >= score.max() - ROUNDING)[-1]]
        return np.full(rows.nodes, float(best))
