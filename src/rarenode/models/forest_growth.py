"""Growing a `Forest`: trees that split rows by a feature so that the labels on either side are alike.

The labels that are compared (targets) are those of nodes that are scored and that some rows have, but not all. With
m the share of rows that have a node, its column is (y - m) / sqrt(m (1 - m))**rarity. With rarity 0 a node has as
much influence as it has variance; with 1 all have the same, however rare.

A split costs as many sums as there are targets. With more than ``projection`` of them, the trees see a random Gaussian
projection instead, which nearly keeps the distances between rows (Johnson and Lindenstrauss), hence the variances
that splits reduce: Joly, Geurts and Wehenkel, "Random forests with random projections of the output space", 2014. The
leaves hold whole rows with all their labels, so predictions are of every node, and stay coherent.

A label that is unknown is replaced by the node's share m of the rows where it is known, so that it pulls a split
neither way.

Trees are extremely randomised: each sees all rows, and draws one threshold for each feature that it tries at a split.
Every tree has its own random stream, so it depends neither on how many others there are nor on which thread
grows it. They are grown one by one, and stripped of scikit-learn's means in each place, which a `Forest` has no use
for: with 64 targets these are twenty times as large as the tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from rarenode._io.text import counted
from rarenode.errors import ArgumentError, DataError, LabelError
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.labels import Labels, as_known, count_labels
from rarenode.models.forest import Forest
from rarenode.models.model import check_input
from rarenode.models.training_labels import MOST, Integers, Lists, checked_weights, starts_of


class _Tree(NamedTuple):
    """A single tree: places count from its root, which is 0."""

    feature: Integers
    threshold: NDArray[np.float64]
    left: Integers
    right: Integers
    rows_in_place: NDArray[np.int64]
    """(places,): training rows in a leaf; 0 at an inner place."""
    rows: Integers
    """(training rows,): sorted by leaf."""


def grow_forest(
    X: NDArray[np.float32],
    Y: Labels,
    *,
    scored: NDArray[np.bool_],
    trees: int,
    seed: int,
    smallest_leaf: int = 1,
    features: float = 1 / 3,
    most_features: int = 64,
    projection: int = 64,
    rarity: float = 0.5,
    sample_weight: NDArray[np.float32] | None = None,
    threads: int | None = None,
    known: NDArray[np.bool_] | None = None,
    hierarchy: Hierarchy | None = None,
) -> Forest:
    """Grow a forest.

    Args:
        X: features (rows, features), finite.
        Y: labels (rows, nodes), dense or sparse, closed under ancestors.
        scored: (nodes,), the nodes that splits look at. Predictions are of all nodes.
        trees: how many.
        seed: decides everything.
        smallest_leaf: training rows that a leaf has at least.
        features: the share of features that is tried at each split,
        most_features: and how many at most, as the time to grow is in proportion to them.
        projection: targets that splits look at, at most.
        rarity: how much more say rare nodes have than by their variance, from 0 to 1.
        sample_weight: (rows,), how much each row counts; rows that count 0 are left out.
        threads: that grow trees side by side; None: as many as numba uses.
        known: (rows, nodes), where labels are known; None: everywhere.
        hierarchy: of the nodes; required where labels are unknown.

    Returns:
        The forest. If no node tells rows apart, each tree is one leaf with all rows.

    >>> X = np.array([[0.0], [1.0], [5.0]], dtype=np.float32)
    >>> Y = np.array([[1, 0], [1, 0], [1, 1]], dtype=bool)
    >>> grow_forest(X, Y, scored=np.array([True, True]), trees=3, seed=0).predict_proba(X)
    array([[1., 0.],
           [1., 0.],
           [1., 1.]], dtype=float32)
    """
    _check_options(trees, seed, smallest_leaf, features, most_features, projection, rarity)
    _check_training(X, Y, scored)
    weights = np.ones(len(X)) if sample_weight is None else checked_weights(sample_weight, len(X))
    known = as_known(known, Y.shape)
    if not weights.all():
        known = None if known is None else known[weights > 0]
        X, Y, weights = X[weights > 0], Y[weights > 0], weights[weights > 0]
    labels = Lists.of(Y)
    unknown = None if known is None else Lists.of(~known)
    longest = max(len(labels.columns), 0 if unknown is None else len(unknown.columns))
    if max(2 * trees * len(X), longest) > MOST:
        raise ArgumentError(
            f"{trees} trees of {len(X):,} rows with {longest:,} labels are more than {MOST:,} places or "
            "labels, which a forest cannot count; grow fewer trees"
        )
    projecting, *growing = np.random.SeedSequence(seed).spawn(1 + trees)
    targets = _targets(Y, labels, unknown, scored, projection, rarity, projecting)
    grown: Sequence[_Tree]
    if targets.shape[1]:
        tried = max(1, min(int(features * X.shape[1]), most_features))
        # Equal weights are none to scikit-learn, whose results then do not depend on them.
        unequal = None if (weights == weights[0]).all() else weights
        grow = partial(_grow_tree, np.ascontiguousarray(X), targets, smallest_leaf, tried, unequal)
        # Threads, as scikit-learn holds no lock while it grows.
        with ThreadPoolExecutor(min(trees, threads or numba.get_num_threads())) as pool:
            grown = list(pool.map(grow, growing))
    else:
        grown = [_one_leaf(len(X))] * trees
    return _plant(grown, X.shape[1], Y.shape[1], labels, unknown, weights, hierarchy)


def _targets(
    Y: Labels,
    labels: Lists,
    unknown: Lists | None,
    scored: NDArray[np.bool_],
    projection: int,
    rarity: float,
    stream: np.random.SeedSequence,
) -> NDArray[np.float64]:
    """What splits look at, (rows, targets); no column if no scored node tells rows apart.

    Standardising and projecting are linear, but for a shift, so both are one product with the sparse labels. It costs
    labels x targets, and runs in one order whatever the number of threads.
    """
    rows_known = Y.shape[0] - (0 if unknown is None else np.bincount(unknown.columns, minlength=Y.shape[1]))
    share = count_labels(Y) / np.maximum(rows_known, 1)
    usable = np.flatnonzero(scored & (share > 0) & (share < 1))
    scale = (share[usable] * (1 - share[usable])) ** (-rarity / 2)
    directions = np.zeros((Y.shape[1], min(len(usable), projection)))
    if len(usable) > projection:
        rng = np.random.Generator(np.random.Philox(stream))
        gaussian = rng.standard_normal((len(usable), projection)) / np.sqrt(projection)
        directions[usable] = scale[:, np.newaxis] * gaussian
    else:
        directions[usable, np.arange(len(usable))] = scale
    targets = labels.times(directions)
    if unknown is not None:
        targets += unknown.times(share[:, np.newaxis] * directions)
    targets -= targets.mean(axis=0)
    return targets


def _grow_tree(
    X: NDArray[np.float32],
    targets: NDArray[np.float64],
    smallest_leaf: int,
    tried: int,
    weights: NDArray[np.float64] | None,
    stream: np.random.SeedSequence,
) -> _Tree:
    from sklearn.tree import ExtraTreeRegressor  # noqa: PLC0415 (only growing needs it)

    grown = ExtraTreeRegressor(
        min_samples_leaf=smallest_leaf, max_features=tried, random_state=int(stream.generate_state(1)[0])
    )
    tree = grown.fit(X, targets, sample_weight=weights).tree_
    leaf = tree.children_left < 0
    leaf_of_row = tree.apply(X)
    return _Tree(
        feature=np.where(leaf, -1, tree.feature).astype(np.int32),
        threshold=np.where(leaf, 0.0, tree.threshold),
        left=np.where(leaf, -1, tree.children_left).astype(np.int32),
        right=np.where(leaf, -1, tree.children_right).astype(np.int32),
        rows_in_place=np.bincount(leaf_of_row, minlength=len(leaf)),
        rows=np.argsort(leaf_of_row, kind="stable").astype(np.int32),
    )


def _one_leaf(rows: int) -> _Tree:
    nothing = np.array([-1], dtype=np.int32)
    return _Tree(nothing, np.zeros(1), nothing, nothing, np.array([rows]), np.arange(rows, dtype=np.int32))


def _plant(
    trees: Sequence[_Tree],
    features: int,
    nodes: int,
    labels: Lists,
    unknown: Lists | None,
    row_weights: NDArray[np.float64],
    hierarchy: Hierarchy | None,
) -> Forest:
    """Trees one after another, in one set of arrays."""
    roots = starts_of([len(tree.feature) for tree in trees])[:-1].astype(np.int32)
    pairs = list(zip(trees, roots, strict=True))
    nothing = np.empty(0, dtype=np.int64)
    return Forest(
        features=features,
        nodes=nodes,
        roots=roots,
        feature=np.concatenate([tree.feature for tree in trees]),
        threshold=np.concatenate([tree.threshold for tree in trees]),
        left=np.concatenate([np.where(tree.left < 0, tree.left, tree.left + root) for tree, root in pairs]),
        right=np.concatenate([np.where(tree.right < 0, tree.right, tree.right + root) for tree, root in pairs]),
        leaf_starts=starts_of(np.concatenate([tree.rows_in_place for tree in trees])).astype(np.int32),
        leaf_rows=np.concatenate([tree.rows for tree in trees]),
        label_starts=labels.starts.astype(np.int32),
        label_columns=labels.columns.astype(np.int32),
        row_weights=row_weights,
        unknown_starts=(nothing if unknown is None else unknown.starts).astype(np.int32),
        unknown_columns=(nothing if unknown is None else unknown.columns).astype(np.int32),
        hierarchy=hierarchy,
    )


def _check_options(
    trees: int, seed: int, smallest_leaf: int, features: float, most_features: int, projection: int, rarity: float
) -> None:
    whole = (
        ("trees", trees, 1),
        ("seed", seed, 0),
        ("smallest_leaf", smallest_leaf, 1),
        ("most_features", most_features, 1),
        ("projection", projection, 1),
    )
    for name, value, least in whole:
        if not isinstance(value, int) or value < least:
            raise ArgumentError(f"{name} must be a whole number of at least {least}, got {value!r}")
    if not 0 < features <= 1:
        raise ArgumentError(f"features must be more than 0 and at most 1, got {features!r}")
    if not 0 <= rarity <= 1:
        raise ArgumentError(f"rarity must lie between 0 and 1, got {rarity!r}")


def _check_training(X: NDArray[np.float32], Y: Labels, scored: NDArray[np.bool_]) -> None:
    if Y.dtype != np.bool_ or Y.ndim != 2 or not Y.shape[1]:
        raise LabelError(f"Y must be boolean of the shape (rows, nodes), got {Y.dtype} {Y.shape}")
    if X.ndim != 2 or not X.shape[1]:
        raise DataError(f"X must have the shape (rows, features), got {X.shape}")
    check_input(X, X.shape[1])
    if len(X) != Y.shape[0]:
        raise DataError(f"X has {counted(len(X), 'row')} and Y {Y.shape[0]}")
    if not len(X):
        raise DataError("a forest needs at least one row to grow from")
    if scored.dtype != np.bool_ or scored.shape != Y.shape[1:]:
        raise ArgumentError(
            f"scored must be a boolean mask of {counted(Y.shape[1], 'node')}, got {scored.dtype} {scored.shape}"
        )
