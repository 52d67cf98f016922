"""A forest whose probabilities are coherent by construction: the record, its checks, its predictions.

A tree leads a row x to one of its leaves, L_t(x), a set of training rows. The probability of a node is the share of
these rows that have it, averaged over T trees:

    p(node | x) = 1/T sum_t |{r in L_t(x): r has node}| / |L_t(x)|
                = sum_r w_r(x) [r has node],    w_r(x) = 1/T sum_t [r in L_t(x)] / |L_t(x)|

With sample weights, |.| is the sum of the weights of rows. By the second line a forest need not keep a probability for
each leaf and node: it keeps the rows of each leaf, and the labels of each training row once. A prediction costs the
labels of the rows that it meets.

Labels are closed under ancestors, so a parent sums over the rows of its child and perhaps more. All nodes sum in the
same order. Rounding never turns an order around, and no weight is negative, so the parent's probability is at least
the child's to the last bit: by induction over the rows, a >= b implies a + w >= b + w, and a + w >= b.

Where it is unknown whether training rows have a node, these rows say nothing about it, and the others share its weight:

    p(node | x) = sum_r w_r(x) [r has node] / sum_r w_r(x) [it is known whether r has node]

If the leaves of x have no other rows, p is the node's share of all training rows where it is known, or 0 if there are
none. With a divisor for each node a child may get more than its parent, so the max constraint is applied to the result
(see `rarenode.objective.constraint`): a parent is raised to its most probable descendant.

The arrays may come from a file of anyone's. A `Forest` cannot be made of arrays that would lead a walk in circles or
out of bounds, or to a leaf without rows.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import ClassVar

import numba
import numpy as np
from numpy.typing import NDArray

from rarenode._io.compiled import compiled
from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy
from rarenode.models.model import Floats, Layout
from rarenode.models.row_model import RowModel
from rarenode.models.training_labels import MOST, Integers, check_lists, refuse

ROWS_AT_A_TIME = 64
"""Rows that one thread predicts before it takes others; they share its buffers."""
_INTEGER, _NUMBER = np.dtype(np.int32), np.dtype(np.float64)


@dataclass(frozen=True)
class ForestSizes:
    """The numbers from which the types and shapes of all arrays of a `Forest` follow."""

    trees: int
    places: int
    """Inner places and leaves of all trees."""
    leaf_rows: int
    """Training rows in the leaves of all trees; a row counts once for each tree."""
    training_rows: int
    labels: int
    """Labels of all training rows; there may be none."""
    unknown: int = 0
    """Unknown labels of all training rows."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            least = 0 if name in ("labels", "unknown") else 1
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MOST:
                raise ArgumentError(f"a forest's {name} must be a whole number from {least} to {MOST:,}, got {value!r}")

    def layout(self) -> Layout:
        """Name -> type and shape of every array; those of unknown labels are there only if some are unknown."""
        layout: Layout = {
            "roots": (_INTEGER, (self.trees,)),
            "feature": (_INTEGER, (self.places,)),
            "threshold": (_NUMBER, (self.places,)),
            "left": (_INTEGER, (self.places,)),
            "right": (_INTEGER, (self.places,)),
            "leaf_starts": (_INTEGER, (self.places + 1,)),
            "leaf_rows": (_INTEGER, (self.leaf_rows,)),
            "label_starts": (_INTEGER, (self.training_rows + 1,)),
            "label_columns": (_INTEGER, (self.labels,)),
            "row_weights": (_NUMBER, (self.training_rows,)),
        }
        if self.unknown:
            layout |= {
                "unknown_starts": (_INTEGER, (self.training_rows + 1,)),
                "unknown_columns": (_INTEGER, (self.unknown,)),
            }
        return layout


@dataclass(frozen=True, eq=False)
class Forest(RowModel):
    """Trees, the training rows in their leaves, and the labels of these rows. The arrays become read-only.

    Places are those of all trees. A child lies after its parent, so every walk ends.
    """

    features: int
    nodes: int
    roots: Integers
    """(trees,): where each tree begins."""
    feature: Integers
    """(places,): the feature that an inner place compares, -1 at a leaf."""
    threshold: NDArray[np.float64]
    """(places,): a row whose feature is at most this goes left, any other right; 0 at a leaf."""
    left: Integers
    """(places,): the next place, -1 at a leaf."""
    right: Integers
    """(places,): likewise."""
    leaf_starts: Integers
    """(places + 1,): the rows of a leaf are ``leaf_rows[leaf_starts[place]:leaf_starts[place + 1]]``."""
    leaf_rows: Integers
    """Training rows, rising within a leaf."""
    label_starts: Integers
    """(training rows + 1,): the nodes of a row are ``label_columns[label_starts[row]:label_starts[row + 1]]``."""
    label_columns: Integers
    """Columns of nodes, rising within a row."""
    row_weights: NDArray[np.float64]
    """(training rows,): how much each counts."""
    unknown_starts: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    """(training rows + 1,): the nodes that are unknown in a row are ``unknown_columns``, as ``label_starts`` says of
    those that it has; empty if all labels are known."""
    unknown_columns: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    """Columns of nodes, rising within a row."""
    hierarchy: Hierarchy | None = None
    """Of the nodes; required where labels are unknown."""
    kind: ClassVar[str] = "forest"
    own: ClassVar[tuple[str, ...]] = ("features", "nodes")
    sizes_of: ClassVar[type[ForestSizes]] = ForestSizes

    def __post_init__(self) -> None:
        for name in ("features", "nodes"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= MOST:
                raise ArgumentError(f"{name} must be a whole number from 1 to {MOST:,}, got {value!r}")
        for name in ARRAYS:
            array = np.ascontiguousarray(getattr(self, name)).view()
            array.flags.writeable = False  # what is checked here must stay true
            object.__setattr__(self, name, array)
        for name, expected in self.sizes.layout().items():
            array = getattr(self, name)
            if (array.dtype, array.shape) != expected:
                raise ArgumentError(
                    f"the array {name!r} is {array.dtype} {array.shape}; {expected[0]} {expected[1]} was expected"
                )
        _check_walks(self)
        check_lists("leaf_starts", self.leaf_starts, "leaf_rows", self.leaf_rows, self.label_starts.size - 1)
        _check_leaves(self)
        check_lists("label_starts", self.label_starts, "label_columns", self.label_columns, self.nodes)
        if self.sizes.unknown:
            check_lists("unknown_starts", self.unknown_starts, "unknown_columns", self.unknown_columns, self.nodes)
            if self.hierarchy is None:
                raise ArgumentError("a forest with unknown labels needs the hierarchy")
        weights = self.row_weights
        # Within these bounds the share of a row in a leaf is never rounded to 0, which would count the row twice.
        refuse("row_weights", weights, ~((weights >= 1e-30) & (weights <= 1e30)), "it must be from 1e-30 to 1e+30")

    @property
    def sizes(self) -> ForestSizes:
        """What must be known to read `arrays` from a file."""
        return ForestSizes(
            trees=self.roots.size,
            places=self.feature.size,
            leaf_rows=self.leaf_rows.size,
            training_rows=self.label_starts.size - 1,
            labels=self.label_columns.size,
            unknown=self.unknown_columns.size,
        )

    @property
    def n_features(self) -> int:
        """Columns of the input."""
        return self.features

    def write_probs(self, X: Floats, probs: Floats) -> None:
        """See `RowModel.write_probs`."""
        _add_up(
            X, self.roots, self.feature, self.threshold, self.left, self.right,
            self.leaf_starts, self.leaf_rows, self.label_starts, self.label_columns, self.row_weights,
            self.unknown_starts, self.unknown_columns, self.overall_share, probs,
        )  # fmt: skip


ARRAYS = tuple(each.name for each in fields(Forest) if each.name not in ("features", "nodes", "hierarchy"))


# --- checks --------------------------------------------------------------------------------------------------------


def _check_walks(forest: Forest) -> None:
    """Every walk from a root ends at a leaf."""
    feature, places = forest.feature, forest.feature.size
    refuse(
        "feature",
        feature,
        (feature < -1) | (feature >= forest.features),
        f"it must be from -1 to {forest.features - 1}",
    )
    refuse("threshold", forest.threshold, ~np.isfinite(forest.threshold), "it must be finite")
    inner, place = feature >= 0, np.arange(places)
    for name, child in (("left", forest.left), ("right", forest.right)):
        outside = inner & ((child <= place) | (child >= places))
        refuse(name, child, outside, f"a child must lie after its parent and before {places}")
        refuse(name, child, ~inner & (child != -1), "a leaf has no child, which is written as -1")
    roots = forest.roots
    refuse("roots", roots, (roots < 0) | (roots >= places), f"it must be from 0 to {places - 1}")
    ways = np.bincount(np.concatenate([roots, forest.left[inner], forest.right[inner]]), minlength=places)
    if (ways != 1).any():
        at = int((ways != 1).argmax())
        raise ArgumentError(
            f"the arrays 'roots', 'left' and 'right' lead to place {at} in {ways[at]} ways; "
            "it must be the root of one tree or the child of one place"
        )


def _check_leaves(forest: Forest) -> None:
    """A leaf holds a training row, and nothing else does."""
    full = forest.leaf_starts[1:] > forest.leaf_starts[:-1]
    leaf = forest.feature < 0
    if (full != leaf).any():
        at = int((full != leaf).argmax())
        what = "a leaf, and has no rows" if leaf[at] else "no leaf, and has rows"
        raise ArgumentError(f"the array 'leaf_starts' is wrong at {at}: the place is {what}")


# --- compiled ------------------------------------------------------------------------------------------------------


@compiled()
def find_leaf(
    x: NDArray[np.float32],
    place: int,
    feature: Integers,
    threshold: NDArray[np.float64],
    left: Integers,
    right: Integers,
) -> int:
    """Where the walk of a row ends that begins at a place. Comparisons are of float64, as when the tree was grown."""
    while feature[place] >= 0:
        place = left[place] if np.float64(x[feature[place]]) <= threshold[place] else right[place]
    return place


@compiled(parallel=True)
def _add_up(
    X: NDArray[np.float32],
    roots: Integers,
    feature: Integers,
    threshold: NDArray[np.float64],
    left: Integers,
    right: Integers,
    leaf_starts: Integers,
    leaf_rows: Integers,
    label_starts: Integers,
    label_columns: Integers,
    row_weights: NDArray[np.float64],
    unknown_starts: Integers,
    unknown_columns: Integers,
    overall_share: NDArray[np.float64],
    probs: NDArray[np.float32],
) -> None:
    """Write the probabilities of each row. No row depends on another, so neither do the bits on the threads.

    ``unknown_starts`` and ``overall_share`` are empty if all labels are known.
    """
    rows, nodes = probs.shape
    trees, training_rows = roots.shape[0], label_starts.shape[0] - 1
    all_known = unknown_columns.shape[0] == 0
    for block in numba.prange((rows + ROWS_AT_A_TIME - 1) // ROWS_AT_A_TIME):
        weights = np.zeros(training_rows, np.float64)
        met = np.empty(training_rows, np.int32)  # the training rows with a weight, in the order in which they were met
        sums = np.zeros(nodes, np.float64)
        unknown = np.zeros(overall_share.shape[0], np.float64)
        for row in range(block * ROWS_AT_A_TIME, min(rows, (block + 1) * ROWS_AT_A_TIME)):
            count = 0
            for tree in range(trees):
                leaf = find_leaf(X[row], roots[tree], feature, threshold, left, right)
                begin, end = leaf_starts[leaf], leaf_starts[leaf + 1]
                total = 0.0
                for i in range(begin, end):
                    total += row_weights[leaf_rows[i]]
                share = 1.0 / (float(trees) * total)
                for i in range(begin, end):
                    other = leaf_rows[i]
                    if weights[other] == 0.0:
                        met[count] = other
                        count += 1
                    weights[other] += share * row_weights[other]
            everything = 0.0
            for i in range(count):
                weight = weights[met[i]]
                weights[met[i]] = 0.0
                everything += weight
                for label in range(label_starts[met[i]], label_starts[met[i] + 1]):
                    sums[label_columns[label]] += weight
                if not all_known:
                    for label in range(unknown_starts[met[i]], unknown_starts[met[i] + 1]):
                        unknown[unknown_columns[label]] += weight
            for node in range(nodes):
                if not all_known:
                    # Exactly 0 if all rows are unknown: the same numbers were added in the same order.
                    known = everything - unknown[node]
                    sums[node] = sums[node] / known if known > 0.0 else overall_share[node]
                    unknown[node] = 0.0
                probs[row, node] = min(sums[node], 1.0)  # the weights add up to 1, but for rounding
                sums[node] = 0.0
