"""`HROSPD`: hierarchical random oversampling of label paths (Pereira, Costa, Silla, Information Sciences 2021).

A node of a tree stands for the path that leads to it. With count_i the occurrences of path i and of its extensions,
without paths that do not occur and without the root, whose count is the total:

    IRLbP_i = largest count / count_i          HMeanIR = their mean          i is minority if IRLbP_i > HMeanIR
    to create = floor(share * root count)      increase = ceil(to create / minority paths)
    mean size = ceil(root count / paths)

From the deepest level upwards, each minority path of the level gets ``min(increase, mean size - count)`` clones, drawn
with replacement from the rows whose labels end there or, if there are none, from the rows with deeper labels. Counts
are updated, and the minority paths of the next level are those above the initial HMeanIR.

With more paths than rows, as in the Gene Ontology datasets, the mean size is 1 and ``as_described`` clones nothing.

On a DAG very many paths may lead from a root to a node. They are not enumerated: the treatment of a path depends only
on the node where it ends, so each node is treated once, at the level of its longest path.

* ``as_described``: counts are of rows; a clone is a whole row, with all its labels.
* ``as_published``: counts are of label occurrences, so a row counts once for each of its most specific labels; a clone
  keeps only the minority label and its ancestors, so its other labels become negatives.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, vstack

from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.labels import Labels, count_labels, row_blocks, stack_labels
from rarenode.resampling.resampler import Resampled, Resampler, check_seed, check_share, share_of

Variant = Literal["as_described", "as_published"]


class HROSPD(Resampler):
    """Hierarchical random oversampling: clones rows of rare label paths, the deepest first.

    Args:
        hierarchy: of the labels.
        share: clones as a share of the rows (``as_described``) or of the label occurrences (``as_published``); 0.1 in
            the paper.
        variant: ``as_described`` or ``as_published``; see `rarenode.resampling.hros_pd`.
        seed: of the random choice of rows.

    >>> tree = Hierarchy.from_edges([("root", "a"), ("root", "b"), ("a", "c")])
    >>> Y = tree.close(tree.encode([["b"]] * 12 + [["a"]] * 7 + [["c"]]))
    >>> sampler = HROSPD(tree)
    >>> X, Y = sampler.fit_resample(np.arange(20), Y)
    >>> sampler.sample_indices_[20:]
    array([19, 19])
    """

    def __init__(
        self, hierarchy: Hierarchy, share: float = 0.1, variant: Variant = "as_described", seed: int = 0
    ) -> None:
        if variant not in get_args(Variant):
            raise ArgumentError(f"unknown variant {variant!r}; choose one of {', '.join(get_args(Variant))}")
        self.hierarchy = hierarchy
        self.share = check_share(share)
        self.variant = variant
        self.seed = check_seed(seed)

    def resample(self, Y: Any) -> Resampled:
        """Every row once, then clones level by level; see `Resampler`.

        Raises:
            NotClosedError: a row has a label but not one of its parents.
        """
        labels = self.hierarchy.require_closed(Y)
        all_rows = np.arange(labels.shape[0])
        rows_of, ends_of = csr_array(labels).tocsc(), self._ends(labels)
        if self.variant == "as_described":
            counts, total = count_labels(labels), len(np.unique(rows_of.indices))
        else:
            counts, total = self.hierarchy.sum_over_descendants(np.diff(ends_of.indptr).astype(np.int64)), ends_of.nnz
        paths = counts > 0
        if len(self.hierarchy.roots) == 1:
            paths[0] = False  # columns are sorted by depth
        mean_ratio = _mean_ratio(counts[paths])
        minority = int(np.count_nonzero(_is_minority(counts[paths], counts[paths], mean_ratio)))
        if not minority:
            return Resampled(all_rows, labels)
        increase = math.ceil(Fraction(math.floor(share_of(self.share, total)), minority))
        mean_size = math.ceil(Fraction(total, int(np.count_nonzero(paths))))

        rows, clone_labels = [all_rows], [labels]
        generator = np.random.default_rng(self.seed)
        for depth in range(int(self.hierarchy.depth.max()), -1, -1):
            level = np.flatnonzero(paths & (self.hierarchy.depth == depth))
            for node in level[_is_minority(counts[level], counts[paths], mean_ratio)].tolist():
                clones = min(increase, mean_size - int(counts[node]))
                if clones <= 0:
                    continue
                ending = _column(ends_of, node)
                drawn = generator.choice(ending if len(ending) else _column(rows_of, node), clones)
                copies = labels[drawn] if self.variant == "as_described" else self._only(node, clones)
                counts += count_labels(copies)
                rows.append(drawn)
                clone_labels.append(copies)
        return Resampled(np.concatenate(rows), stack_labels(clone_labels))

    def _ends(self, labels: Labels) -> Any:
        """Where a row has a label and none of its children, by column."""
        parts = [csr_array((0, len(self.hierarchy)), dtype=np.bool_)]
        for _, some in row_blocks(labels):
            ends = some.T.copy()
            for parents, starts, children in self.hierarchy.levels_upwards:
                ends[parents] &= ~np.logical_or.reduceat(some.T[children], starts, axis=0)
            parts.append(csr_array(ends.T))
        return vstack(parts, format="csc")

    def _only(self, node: int, clones: int) -> NDArray[np.bool_]:
        """Labels of rows that have a node and its ancestors only."""
        label = np.zeros((1, len(self.hierarchy)), dtype=np.bool_)
        label[0, node] = True
        return np.repeat(self.hierarchy.close(label), clones, axis=0)


def _column(matrix: Any, node: int) -> NDArray[np.int64]:
    """The rows that have a node, in a matrix by column."""
    rows: NDArray[np.int64] = matrix.indices[matrix.indptr[node] : matrix.indptr[node + 1]]
    return rows


def _mean_ratio(counts: NDArray[np.int64]) -> Fraction:
    """HMeanIR, exactly: a ratio that equals it is not above it."""
    different, times = (values.tolist() for values in np.unique(counts, return_counts=True))
    ratios = sum(Fraction(t * different[-1], c) for c, t in zip(different, times, strict=True))
    return Fraction(ratios) / max(len(counts), 1)


def _is_minority(counts: NDArray[np.int64], all_counts: NDArray[np.int64], mean_ratio: Fraction) -> NDArray[np.bool_]:
    """Where the largest of all counts, divided by a count, is above the mean ratio."""
    if not len(all_counts):
        return np.zeros(len(counts), dtype=np.bool_)
    bound = Fraction(int(all_counts.max())) / mean_ratio  # whole numbers below it are those below its ceiling
    minority: NDArray[np.bool_] = counts < math.ceil(bound)
    return minority
