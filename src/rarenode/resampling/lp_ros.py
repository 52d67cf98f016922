"""`LPROS`: label powerset random oversampling.

Rows with exactly the same labels form a bag. With N rows in B bags the mean size of a bag is N / B, and a smaller bag
is a minority bag. ``share`` of N is the budget of clones, divided evenly among the M minority bags, and no bag grows
beyond the mean size:

    clones of a bag of s rows = min(share N / M, N / B - s)

Where label sets are diverse, as those of genes are, most bags hold a single row and the mean is little more, so this is
less than one, and the rounding determines the outcome:

* ``up``: the clones of each bag are rounded up, so every minority bag gets at least one. The paper's tables were
  produced this way. It may create far more rows than the budget: 965 instead of 407 on cellcycle_FUN.
* ``textbook``: the budget exactly (rounded down to whole rows). Bags below the mean size get one clone each in turn,
  the smallest first and of equal ones the first to appear, so the remainder of the division goes to the smallest.
  Fewer are created only if every minority bag has reached the mean size.

Clones are drawn from their bag with replacement.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rarenode.errors import ArgumentError
from rarenode.hierarchy.labels import Labels, as_indicator, is_sparse, row_blocks
from rarenode.resampling.resampler import Resampled, Resampler, check_seed, check_share, share_of

Rounding = Literal["up", "textbook"]


class LPROS(Resampler):
    """Label powerset random oversampling: clones rows with rare combinations of labels.

    Args:
        share: the budget of clones as a share of the rows; 0.25 in the paper.
        rounding: ``up`` (as published) or ``textbook``; see `rarenode.resampling.lp_ros`.
        seed: of the random choice of rows within a bag.

    >>> Y = np.array([[1, 0], [1, 0], [1, 0], [1, 1]], dtype=bool)
    >>> sampler = LPROS()
    >>> X, Y = sampler.fit_resample([[1.0], [2.0], [3.0], [4.0]], Y)
    >>> sampler.sample_indices_
    array([0, 1, 2, 3, 3])
    """

    def __init__(self, share: float = 0.25, rounding: Rounding = "up", seed: int = 0) -> None:
        if rounding not in get_args(Rounding):
            raise ArgumentError(f"unknown rounding {rounding!r}; choose one of {', '.join(get_args(Rounding))}")
        self.share = check_share(share)
        self.rounding = rounding
        self.seed = check_seed(seed)

    def resample(self, Y: Any) -> Resampled:
        """Every row once, then clones bag by bag; see `Resampler`."""
        labels = Y if is_sparse(Y) else as_indicator(Y, "labels")
        rows = np.arange(labels.shape[0])
        if not len(rows):
            return Resampled(rows, labels)
        bag_of_row, first_row, sizes = _bags(labels)
        clones = self._clones(sizes, first_row, len(rows))
        rows = np.concatenate([rows, _draw(bag_of_row, sizes, clones, self.seed)])
        return Resampled(rows, labels[rows])

    def _clones(self, sizes: NDArray[np.int64], first_row: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
        """How many clones each bag gets."""
        clones = np.zeros(len(sizes), dtype=np.int64)
        room = math.ceil(Fraction(rows, len(sizes))) - sizes  # a bag grows to the mean, rounded up to whole rows
        minority = np.flatnonzero(sizes * len(sizes) < rows)
        if not len(minority):
            return clones
        budget = share_of(self.share, rows)
        if self.rounding == "up":
            clones[minority] = np.minimum(math.ceil(budget / len(minority)), room[minority])
            return clones
        minority = minority[np.lexsort((first_row[minority], sizes[minority]))]
        clones[minority] = _in_turn(room[minority], math.floor(budget))
        return clones


def _in_turn(room: NDArray[np.int64], budget: int) -> NDArray[np.int64]:
    """Add one to each in turn, up to its room, until the budget is spent."""
    budget = min(budget, int(room.sum()))
    least, most = 0, int(room.max(initial=0))  # number of complete turns, by bisection
    while least < most:
        turns = (least + most + 1) // 2
        least, most = (turns, most) if np.minimum(room, turns).sum() <= budget else (least, turns - 1)
    given = np.minimum(room, least)
    still_open = np.flatnonzero(room > least)
    given[still_open[: budget - int(given.sum())]] += 1
    return given


def _bags(labels: Labels) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """The bag of each row, and of each bag its first row and its size."""
    packed = np.concatenate([np.packbits(rows, axis=1) for _, rows in row_blocks(labels)])
    if not packed.shape[1]:
        return np.zeros(len(packed), dtype=np.int64), np.zeros(1, dtype=np.int64), np.array([len(packed)])
    keys = packed.view(np.dtype((np.void, packed.shape[1])))[:, 0]
    _, first_row, bag_of_row, sizes = np.unique(keys, return_index=True, return_inverse=True, return_counts=True)
    return bag_of_row, first_row, sizes


def _draw(
    bag_of_row: NDArray[np.int64], sizes: NDArray[np.int64], clones: NDArray[np.int64], seed: int
) -> NDArray[np.int64]:
    """Rows of each bag, with replacement."""
    rows_by_bag = np.argsort(bag_of_row, kind="stable")
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    bag_of_clone = np.repeat(np.arange(len(sizes)), clones)
    within = np.random.default_rng(seed).integers(0, sizes[bag_of_clone])
    drawn: NDArray[np.int64] = rows_by_bag[starts[bag_of_clone] + within]
    return drawn
