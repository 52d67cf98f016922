"""The measures that hierarchical classification and protein function prediction report.

* `hierarchical_scores`: hierarchical precision, recall and F1 of decided labels (Kiritchenko et al., 2006).
* `information_accretion`: how much a label adds to what its parents already say, in bits (Clark and Radivojac, 2013).
* `cafa_scores`: F-max and S-min of probabilities, as in the CAFA challenges.

All of them add the ancestors of every label, and give a node at least the probability of its descendants. Where labels
are known only in part, ``known`` says where: cells that are unknown are left out of every sum.

`cafa_scores` returns what the public evaluator of CAFA, cafaeval 1.3, returns for the file that
``rarenode predict --layout cafa`` writes, as long as no row of it is cut to its most probable terms. So it has the
conventions of both:

* Probabilities are rounded to three decimals, as in the file.
* The thresholds are 0.01, 0.02, ..., 0.99, as the sums 0.01 + 0.01 k in floating point. Some of these are a little
  above the decimal fraction: a score of 0.060 does not reach the sixth threshold.
* A row counts in an aspect if it has a label there, be it one that is not scored. Without scored roots the result is
  thus that of the option ``no_orphans``.
* Precision is the mean over the rows with a prediction, recall and S over all rows that count. Thresholds that no
  prediction reaches are left out. Of several thresholds with the same score, the lowest is given.

Two things differ. The evaluator ignores edges between aspects; here they are edges as all others. With ``no_orphans``
it still weighs roots in S, unless their accretion is 0; here a node that is not scored never counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rarenode.errors import ArgumentError, LabelError
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.labels import as_indicator, as_known, as_label_matrix, dense_rows, is_sparse
from rarenode.metrics.checks import as_node_mask, as_truth_and_probs

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

THRESHOLDS = np.arange(0.01, 1, 0.01)
CELLS_PER_BLOCK = 1 << 22
ALL = "all"
"""The name of the only aspect of a hierarchy without namespaces."""


def _least_scores() -> Floats:
    """For each threshold, the least number that is at or above it after rounding to three decimals."""
    middles = (np.ceil(THRESHOLDS * 1000) - 0.5) / 1000
    rounded = np.array([float(f"{middle:.3f}") for middle in middles.tolist()])
    return np.asarray(np.where(rounded < THRESHOLDS, np.nextafter(middles, 1), middles))


LEAST_SCORES = _least_scores()


# --- decided labels --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HierarchicalScores:
    """Hierarchical precision, recall and their harmonic mean. Fractions, not percent."""

    precision: float
    recall: float
    f1: float


def hierarchical_scores(
    Y: Any, decided: Any, hierarchy: Hierarchy, *, scored: ArrayLike | None = None, known: Any = None
) -> HierarchicalScores:
    """Hierarchical precision, recall and F1: labels of all rows together, each with its ancestors.

    Precision is the number of decided labels that are true, summed over rows, divided by the number of decided labels;
    recall is the same number divided by the number of true labels. What is undefined is 0.

    Args:
        Y: labels (rows, nodes), 0 or 1.
        decided: decided labels (rows, nodes), 0 or 1.
        hierarchy: its node order is the order of the columns.
        scored: boolean mask of the nodes that count; None counts all. Roots that every row has should not.
        known: boolean (rows, nodes), where labels are known; None: everywhere.

    >>> pets = Hierarchy.from_edges([("pet", "cat"), ("pet", "dog")])
    >>> hierarchical_scores([[1, 1, 0], [1, 0, 1]], [[0, 1, 0], [0, 1, 0]], pets)
    HierarchicalScores(precision=0.75, recall=0.75, f1=0.75)
    """
    truth, predicted = as_label_matrix(Y, hierarchy.nodes), as_indicator(decided, "decided labels")
    if truth.shape != predicted.shape:
        raise LabelError(f"labels {truth.shape} and decided labels {predicted.shape} must have the same shape")
    mask, is_known = as_node_mask(scored, len(hierarchy)), as_known(known, truth.shape)
    n_hits = n_predicted = n_true = 0
    for rows in _blocks(len(truth), len(hierarchy)):
        counted = _counted(rows, mask, is_known)
        y = _with_ancestors(truth[rows], hierarchy) & counted
        d = _with_ancestors(predicted[rows], hierarchy) & counted
        n_hits += int(np.count_nonzero(y & d))
        n_predicted += int(np.count_nonzero(d))
        n_true += int(np.count_nonzero(y))
    return HierarchicalScores(
        precision=n_hits / n_predicted if n_predicted else 0.0,
        recall=n_hits / n_true if n_true else 0.0,
        f1=2 * n_hits / (n_predicted + n_true) if n_predicted + n_true else 0.0,
    )


# --- information accretion -------------------------------------------------------------------------------------------


def information_accretion(Y: Any, hierarchy: Hierarchy, *, known: Any = None) -> Floats:
    """Information accretion of each node, in bits: -log2 of its probability, given all its parents.

    The probability is estimated as (1 + rows with the node) / (1 + rows with all its parents); of a root, the second
    count is that of all rows. So it is finite for a node without rows, and 0 for one that all rows with its parents
    have, such as a root that every row has.

    Args:
        Y: labels (rows, nodes), 0 or 1, of training rows.
        hierarchy: its node order is the order of the columns.
        known: boolean (rows, nodes), where labels are known; for each node only the rows count where it is known.

    >>> pets = Hierarchy.from_edges([("pet", "cat"), ("pet", "dog")])
    >>> information_accretion([[1, 1, 0], [1, 1, 0], [1, 0, 1]], pets).round(3) + 0.0
    array([0.   , 0.415, 1.   ])
    """
    truth = hierarchy.close(as_label_matrix(Y, hierarchy.nodes))
    is_known = as_known(known, truth.shape)
    positives = np.count_nonzero(truth if is_known is None else truth & is_known, axis=0)
    return accretion_from_counts(positives, count_parents_together(truth, hierarchy, known=is_known))


def count_parents_together(Y: Any, hierarchy: Hierarchy, *, known: Any = None) -> Integers:
    """For each node, the number of rows that have all its parents; for a root, the number of all rows.

    Arguments are those of `information_accretion`.
    """
    truth = Y if is_sparse(Y) else as_label_matrix(Y, hierarchy.nodes)
    is_known = as_known(known, truth.shape)
    order = np.argsort(hierarchy.edge_children, kind="stable")
    parents = hierarchy.edge_parents[order]
    children, starts = np.unique(hierarchy.edge_children[order], return_index=True)
    counts = np.zeros(len(hierarchy), dtype=np.int64)
    for rows in _blocks(truth.shape[0], max(len(hierarchy), len(parents))):
        y = np.ascontiguousarray(dense_rows(truth, rows).T)
        together = np.ones(y.shape, dtype=np.bool_)
        if len(children):
            together[children] = np.logical_and.reduceat(y[parents], starts, axis=0)
        if is_known is not None:
            together &= is_known[rows].T
        counts += np.count_nonzero(together, axis=1)
    return counts


def accretion_from_counts(positives: ArrayLike, parents_together: ArrayLike) -> Floats:
    """`information_accretion` from the number of rows with each node, and with all its parents.

    >>> accretion_from_counts([3, 0], [3, 3])
    array([0., 2.])
    """
    positives, together = np.asarray(positives), np.asarray(parents_together)
    if positives.shape != together.shape or (positives > together).any():
        raise ArgumentError("a node cannot have more rows than all its parents together")
    return np.asarray(np.log2((1 + together) / (1 + positives)), dtype=np.float64)


# --- probabilities ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CafaScores:
    """F-max and S-min of one aspect, and the thresholds that they are reached at."""

    rows: int
    """Rows that have a label in the aspect; no others count."""
    f_max: float
    """The highest F1 of mean precision and mean recall."""
    f_max_threshold: float | None
    """None if no prediction reaches the lowest threshold."""
    coverage: float
    """The share of rows with a prediction at that threshold."""
    s_min: float | None
    """The least semantic distance, in bits; None if information accretion is not known."""
    s_min_threshold: float | None


def aspect_masks(hierarchy: Hierarchy) -> dict[str, Bools]:
    """Which nodes are in each aspect: the namespaces of an ontology, or ``all`` nodes if there are none.

    >>> {name: mask.tolist() for name, mask in aspect_masks(Hierarchy.from_edges([("a", "b")])).items()}
    {'all': [True, True]}
    """
    namespaces = None if hierarchy.terms is None else hierarchy.terms.namespaces
    if namespaces is None or not any(namespaces):
        return {ALL: np.ones(len(hierarchy), dtype=np.bool_)}
    of_node = np.array(namespaces)
    return {str(name) or "without namespace": of_node == name for name in np.unique(of_node)}


def hierarchical_scores_by_aspect(
    Y: Any, decided: Any, hierarchy: Hierarchy, *, scored: ArrayLike | None = None, known: Any = None
) -> dict[str, HierarchicalScores]:
    """`hierarchical_scores` of each aspect; see `aspect_masks`."""
    counted = np.ones(len(hierarchy), dtype=np.bool_) if scored is None else np.asarray(scored, dtype=np.bool_)
    return {
        name: hierarchical_scores(Y, decided, hierarchy, scored=nodes & counted, known=known)
        for name, nodes in aspect_masks(hierarchy).items()
    }


def cafa_scores(
    Y: Any,
    probs: Any,
    hierarchy: Hierarchy,
    accretion: ArrayLike | None = None,
    *,
    scored: ArrayLike | None = None,
    known: Any = None,
) -> dict[str, CafaScores]:
    """F-max and S-min of each aspect that has rows and scored nodes; see `aspect_masks`.

    At a threshold, a row's precision and recall are those of its labels, and F1 is the harmonic mean of their means.
    S is the root of ru² + mi²: remaining uncertainty, the accretion of the labels that a row has and that are not
    predicted, and misinformation, the accretion of those that are predicted and that it does not have; both are means.
    The conventions, which matter in the third decimal, are those at the top of this module.

    Args:
        Y: labels (rows, nodes), 0 or 1.
        probs: probabilities (rows, nodes).
        hierarchy: its node order is the order of the columns.
        accretion: the information accretion of each node; None leaves out S-min.
        scored: boolean mask of the nodes that count; None counts all.
        known: boolean (rows, nodes), where labels are known; None: everywhere.

    >>> pets = Hierarchy.from_edges([("pet", "cat"), ("pet", "dog")])
    >>> cafa_scores([[1, 1, 0], [1, 0, 1]], [[0.9, 0.8, 0.1], [0.9, 0.1, 0.7]], pets, [0, 1, 1])
    {'all': CafaScores(rows=2, f_max=1.0, f_max_threshold=0.11, coverage=1.0, s_min=0.0, s_min_threshold=0.11)}
    """
    truth, probabilities = as_truth_and_probs(Y, probs)
    as_label_matrix(truth, hierarchy.nodes)
    mask, is_known = as_node_mask(scored, len(hierarchy)), as_known(known, truth.shape)
    masks = {name: nodes for name, nodes in aspect_masks(hierarchy).items() if (nodes & mask).any()}
    curves = _Curves(masks, len(hierarchy), _as_accretion(accretion, len(hierarchy)))
    for rows in _blocks(len(truth), max(len(hierarchy), len(masks) * len(THRESHOLDS))):
        y = _with_ancestors(truth[rows], hierarchy)
        if is_known is not None:
            y &= is_known[rows].T
        curves.add(y, _with_ancestors(probabilities[rows], hierarchy), _counted(rows, mask, is_known))
    return {
        name: curves.scores(place, with_s=accretion is not None)
        for place, name in enumerate(masks)
        if curves.rows[place]
    }


class _Curves:
    """Sums over rows, for each aspect and threshold."""

    def __init__(self, masks: dict[str, Bools], nodes: int, accretion: Floats) -> None:
        self.aspect = np.full(nodes, -1)
        """For each node, the number of its aspect."""
        for place, mask in enumerate(masks.values()):
            self.aspect[mask] = place
        self.accretion = accretion
        self.rows = np.zeros(len(masks), dtype=np.int64)
        self.true_accretion = np.zeros(len(masks))
        self.covered, self.precision, self.recall, self.found, self.misinformation = np.zeros(
            (5, len(masks), len(THRESHOLDS))
        )

    def add(self, y: Bools, scores: NDArray[Any], counted: Bools) -> None:
        """Add a block of rows; arrays are (nodes, rows)."""
        aspects, n_rows = len(self.rows), y.shape[1]
        has_label = np.zeros((aspects, n_rows), dtype=np.bool_)
        for place in range(aspects):
            has_label[place] = y[self.aspect == place].any(axis=0)
        self.rows += has_label.sum(axis=1)

        node, row = np.nonzero(y & counted)
        n_true = np.bincount(self.aspect[node] * n_rows + row, minlength=aspects * n_rows).reshape(aspects, n_rows, 1)
        self.true_accretion += np.bincount(self.aspect[node], self.accretion[node], minlength=aspects)

        node, row = np.nonzero((scores >= LEAST_SCORES[0]) & counted)
        of_aspect = has_label[self.aspect[node], row]
        node, row = node[of_aspect], row[of_aspect]
        level = np.searchsorted(LEAST_SCORES, scores[node, row], side="right") - 1
        place = self.aspect[node]
        hit = y[node, row]

        cell = (place * n_rows + row) * len(THRESHOLDS) + level
        n_predicted, n_hits = (self._above(each, n_rows) for each in (cell, cell[hit]))
        self.covered += (n_predicted > 0).sum(axis=1)
        self.precision += (n_hits / np.maximum(n_predicted, 1)).sum(axis=1)
        self.recall += (n_hits / np.maximum(n_true, 1)).sum(axis=1)

        cell, weight = place * len(THRESHOLDS) + level, self.accretion[node]
        self.found += self._above(cell[hit], 1, weight[hit])[:, 0]
        self.misinformation += self._above(cell[~hit], 1, weight[~hit])[:, 0]

    def _above(self, cell: Integers, rows: int, weight: Floats | None = None) -> NDArray[Any]:
        """(aspects, rows, thresholds): the number or weight of the predictions that reach each threshold."""
        shape = len(self.rows), rows, len(THRESHOLDS)
        at = np.bincount(cell, weight, minlength=int(np.prod(shape))).reshape(shape)
        return np.asarray(at[..., ::-1].cumsum(axis=-1)[..., ::-1])

    def scores(self, place: int, *, with_s: bool) -> CafaScores:
        """The best of one aspect."""
        rows = int(self.rows[place])
        n = np.count_nonzero(self.covered[place])  # the lowest thresholds
        if not n:
            missed = float(self.true_accretion[place]) / rows
            return CafaScores(rows, 0.0, None, 0.0, missed if with_s else None, None)
        precision = self.precision[place, :n] / self.covered[place, :n]
        recall = self.recall[place, :n] / rows
        f1 = 2 * precision * recall / np.where(precision > 0, precision + recall, 1)
        remaining = (self.true_accretion[place] - self.found[place, :n]) / rows
        s = np.hypot(remaining, self.misinformation[place, :n] / rows)
        best, least = int(f1.argmax()), int(s.argmin())
        return CafaScores(
            rows=rows,
            f_max=float(f1[best]),
            f_max_threshold=(best + 1) / 100,
            coverage=float(self.covered[place, best]) / rows,
            s_min=float(s[least]) if with_s else None,
            s_min_threshold=(least + 1) / 100 if with_s else None,
        )


# --- blocks of rows --------------------------------------------------------------------------------------------------


def _blocks(rows: int, width: int) -> Iterator[slice]:
    step = max(1, CELLS_PER_BLOCK // max(1, width))
    for first in range(0, rows, step):
        yield slice(first, first + step)


def _counted(rows: slice, scored: Bools, known: Bools | None) -> Bools:
    """(nodes, rows) or (nodes, 1): which cells count."""
    return scored[:, None] if known is None else scored[:, None] & known[rows].T


def _with_ancestors(values: NDArray[Any], hierarchy: Hierarchy) -> NDArray[Any]:
    """(nodes, rows): for each node, the greatest of its own value and those of its descendants."""
    greatest = values.T.copy()  # nodes first: a level is then a few contiguous rows
    for parents, starts, children in hierarchy.levels_upwards:
        greatest[parents] = np.maximum(greatest[parents], np.maximum.reduceat(greatest[children], starts, axis=0))
    return greatest



def _as_accretion(accretion: ArrayLike | None, nodes: int) -> Floats:
    if accretion is None:
        return np.zeros(nodes)
    bits = np.asarray(accretion, dtype=np.float64)
    if bits.shape != (nodes,) or not np.isfinite(bits).all():
        raise ArgumentError(f"accretion must be one finite number for each of {nodes} nodes; got {bits.shape}")
    return bits
