"""Nearest neighbours whose probabilities are coherent by construction: the record, its checks, its predictions.

The probability of a node is the weighted share of training rows that have it, and near rows have more weight:

    p(node | x) = sum_r w_r(x) [r has node],    w_r(x) proportional to v_r exp(-d(x, r) / (s sqrt(h(x) h(r))))

with v_r the sample weight of a row, d the distance, h(x) the distance from x to its 10th nearest training
row, and s the scale. Dividing by h makes a neighbourhood as wide as rows are sparse there. All training rows take part,
however far: what they add is little, and it still ranks the rows of a rare node that has no near one.

Distances are between arcsinh of standardised features, so that outliers are less far away. In the form ``shape`` the
values of each row are then centred and scaled to length 1, so that rows are alike that rise and fall alike. Features
count by a metric that is learned: d(x, r)^2 = sum_f a_f^2 (x_f - r_f)^2.

Labels are closed under ancestors, so a parent sums over the rows of its child and perhaps more, in the same order: as
in a `Forest`, its probability is at least the child's to the last bit. Where labels are unknown, other rows share the
weight and the max constraint is applied, as there.

A prediction costs a comparison with each training row that is kept: rows x training rows x features. That is at most
20,000, and up to there it is all of them; see `fit_neighbours`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, fields
from typing import ClassVar, Literal, get_args

import numba
import numpy as np
from numpy.typing import NDArray

from rarenode._io.compiled import compiled, start_threads
from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy
from rarenode.models.model import Floats, Layout, check_arrays
from rarenode.models.neighbour_voting import add_labels, known_somewhere, weigh
from rarenode.models.row_model import RowModel
from rarenode.models.training_labels import MOST, Integers, check_lists, refuse

Form = Literal["values", "shape"]
"""What distances are between: transformed values, or the shape of a row, whatever its level and range."""
NEIGHBOUR = 10
"""Which neighbour's distance sets the width of a neighbourhood."""
LEAST_WIDTH = 1e-4
"""The smallest width, as a share of the usual length of a row."""
FEW_FEATURES = 8
"""Fewer are summed one after the other."""
MOST_DISTANT = 1e12
"""Points with larger coordinates are refused: squares of their distances must be finite."""
ROWS_AT_A_TIME = 8
"""Rows that are compared with a training row while it is in the processor's cache."""
NUMBERS_AT_A_TIME = 1 << 30
"""Numbers that one call of compiled code compares, roughly: Ctrl-C waits for its end."""
LEAST_AT_A_TIME = 64
"""Rows of such a call at least, so that threads have something to share."""
_INTEGER, _SINGLE, _DOUBLE = np.dtype(np.int32), np.dtype(np.float32), np.dtype(np.float64)


@dataclass(frozen=True)
class NeighbourSizes:
    """The numbers from which the types and shapes of all arrays of `Neighbours` follow."""

    features: int
    training_rows: int
    labels: int
    """Labels of all training rows; there may be none."""
    unknown: int = 0
    """Unknown labels of all training rows."""

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            least = 0 if name in ("labels", "unknown") else 1
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MOST:
                raise ArgumentError(f"{name} must be a whole number from {least} to {MOST:,}, got {value!r}")

    def layout(self) -> Layout:
        """Name -> type and shape of every array; those of unknown labels are there only if some are unknown."""
        layout: Layout = {
            "points": (_SINGLE, (self.training_rows, self.features)),
            "metric": (_SINGLE, (self.features,)),
            "widths": (_SINGLE, (self.training_rows,)),
            "label_starts": (_INTEGER, (self.training_rows + 1,)),
            "label_columns": (_INTEGER, (self.labels,)),
            "row_weights": (_DOUBLE, (self.training_rows,)),
        }
        if self.unknown:
            layout |= {
                "unknown_starts": (_INTEGER, (self.training_rows + 1,)),
                "unknown_columns": (_INTEGER, (self.unknown,)),
            }
        return layout


@dataclass(frozen=True, eq=False)
class Neighbours(RowModel):
    """Training rows and their labels, and how near rows must be to count. The arrays become read-only."""

    nodes: int
    form: Form
    scale: float
    """s: above 0; the smaller, the more the nearest rows count."""
    points: Floats
    """(training rows, features): the training rows in their form, times the metric."""
    metric: Floats
    """(features,): a, how much each feature counts in distances."""
    widths: Floats
    """(training rows,): h, the distance from each to its 10th nearest."""
    label_starts: Integers
    """(training rows + 1,): the nodes of a row are ``label_columns[label_starts[row]:label_starts[row + 1]]``."""
    label_columns: Integers
    """Columns of nodes, rising within a row."""
    row_weights: NDArray[np.float64]
    """(training rows,): v, how much each counts."""
    unknown_starts: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    """As ``label_starts``, for the nodes that are unknown in a row; empty if all labels are known."""
    unknown_columns: Integers = field(default_factory=lambda: np.empty(0, dtype=np.int32))
    """Columns of nodes, rising within a row."""
    hierarchy: Hierarchy | None = None
    """Of the nodes; required where labels are unknown."""
    kind: ClassVar[str] = "neighbours"
    own: ClassVar[tuple[str, ...]] = ("nodes", "form", "scale")
    sizes_of: ClassVar[type[NeighbourSizes]] = NeighbourSizes

    def __post_init__(self) -> None:
        if not isinstance(self.nodes, int) or isinstance(self.nodes, bool) or not 1 <= self.nodes <= MOST:
            raise ArgumentError(f"nodes must be a whole number from 1 to {MOST:,}, got {self.nodes!r}")
        if self.form not in get_args(Form):
            raise ArgumentError(f"unknown form {self.form!r}; choose one of {', '.join(get_args(Form))}")
        if not isinstance(self.scale, float) or not 1e-6 <= self.scale <= 1e6:
            raise ArgumentError(f"scale must be a number from 1e-6 to 1e6, got {self.scale!r}")
        for name in ARRAYS:
            array = np.ascontiguousarray(getattr(self, name)).view()
            array.flags.writeable = False  # what is checked here must stay true
            object.__setattr__(self, name, array)
        check_arrays(self.arrays(), self.sizes.layout())
        wrong = ~(np.abs(self.points) <= MOST_DISTANT)
        refuse("points", self.points.ravel(), wrong.ravel(), f"it must be from -{MOST_DISTANT:g} to {MOST_DISTANT:g}")
        wrong = ~((self.metric >= 0) & (self.metric <= 1e6))
        refuse("metric", self.metric, wrong, "it must be from 0 to 1e+06")
        wrong = ~((self.widths >= 1e-30) & (self.widths <= 1e30))
        refuse("widths", self.widths, wrong, "it must be from 1e-30 to 1e+30")
        check_lists("label_starts", self.label_starts, "label_columns", self.label_columns, self.nodes)
        if self.sizes.unknown:
            check_lists("unknown_starts", self.unknown_starts, "unknown_columns", self.unknown_columns, self.nodes)
            if self.hierarchy is None:
                raise ArgumentError("neighbours with unknown labels need the hierarchy")
        wrong = ~((self.row_weights >= 1e-30) & (self.row_weights <= 1e30))
        refuse("row_weights", self.row_weights, wrong, "it must be from 1e-30 to 1e+30")

    @property
    def sizes(self) -> NeighbourSizes:
        """What must be known to read `arrays` from a file."""
        return NeighbourSizes(
            features=self.points.shape[1],
            training_rows=self.points.shape[0],
            labels=self.label_columns.size,
            unknown=self.unknown_columns.size,
        )

    @property
    def n_features(self) -> int:
        """Columns of the input."""
        return int(self.points.shape[1])

    def write_probs(self, X: Floats, probs: Floats) -> None:
        """See `RowModel.write_probs`."""
        rows, least_width = in_form(X, self.form) * self.metric, float(self.widths.min())
        somewhere = known_somewhere(self.unknown_columns, self.nodes, len(self.points))
        for some in in_parts(len(X), self.points):
            _predict(
                rows[some], self.points, self.widths, least_width, self.scale, self.label_starts, self.label_columns,
                self.row_weights, self.unknown_starts, self.unknown_columns, somewhere, self.overall_share, probs[some],
            )  # fmt: skip


ARRAYS = tuple(f.name for f in fields(Neighbours) if f.name not in ("nodes", "form", "scale", "hierarchy"))


def in_form(X: Floats, form: Form) -> Floats:
    """Rows as distances see them."""
    points = np.empty(X.shape, dtype=np.float32)
    _transform(np.ascontiguousarray(X), form == "shape", points)
    return points


def in_parts(count: int, points: Floats) -> Iterator[slice]:
    """Divide rows that are compared with all ``points``, so that no part takes long; the bits do not depend on it."""
    size = max(NUMBERS_AT_A_TIME // points.size, LEAST_AT_A_TIME)
    return (slice(first, min(first + size, count)) for first in range(0, count, size))


def measure_widths(points: Floats) -> Floats:
    """The distance from each row to its 10th nearest other row.

    At least it is a ten-thousandth of the usual length of a row, however many rows are equal: smaller distances are
    rounding.
    """
    start_threads()
    rows = len(points)
    widths = np.empty(rows, dtype=np.float32)
    for some in in_parts(rows, points):
        _measure_widths(points, some.start, widths[some])
    length = math.sqrt(np.einsum("ij,ij->", points, points, dtype=np.float64) / rows)
    return np.maximum(widths, np.float32(LEAST_WIDTH * length or 1.0))


# --- compiled ------------------------------------------------------------------------------------------------------


@compiled(parallel=True)
def _transform(X: Floats, centred: bool, points: Floats) -> None:
    rows, features = X.shape
    for row in numba.prange(rows):
        mean = 0.0
        for i in range(features):
            points[row, i] = math.asinh(X[row, i])
            mean += points[row, i]
        if centred:
            mean /= features
            square = 0.0
            for i in range(features):
                square += (points[row, i] - mean) ** 2
            length = max(math.sqrt(square), 1e-6)
            for i in range(features):
                points[row, i] = (points[row, i] - mean) / length


@compiled()
def square_distance(x: Floats, y: Floats) -> np.float32:
    """The same for every pair of rows, wherever they are and whoever calls."""
    if x.shape[0] < FEW_FEATURES:
        return _of_few_features(x, y)
    return _of_many_features(x, y)


@compiled()
def _of_few_features(x: Floats, y: Floats) -> np.float32:
    # Without vectors, the compiler may round the relaxed sum in one way now, and in another when it comes from its
    # cache.
    total = np.float32(0)
    for i in range(x.shape[0]):
        total += (x[i] - y[i]) * (x[i] - y[i])
    return total


@compiled(fastmath={"reassoc", "contract"})
def _of_many_features(x: Floats, y: Floats) -> np.float32:
    # Reassociation lets the sum run in vectors.
    total = np.float32(0)
    for i in range(x.shape[0]):
        total += (x[i] - y[i]) * (x[i] - y[i])
    return total


@compiled()
def tenth(distances: Floats, skipped: int) -> np.float32:
    """The 10th smallest, or the largest of fewer; ``skipped`` is left out, and infinite afterwards."""
    others = distances.shape[0]
    if skipped >= 0:
        distances[skipped] = np.inf
        others -= 1
    if others == 0:
        return np.float32(0)
    place = min(NEIGHBOUR, others) - 1
    nth: np.float32 = np.partition(distances, place)[place]
    return nth


@compiled(parallel=True)
def _measure_widths(points: Floats, begin: int, widths: Floats) -> None:
    """Write the widths of rows from ``begin`` on."""
    rows, count = points.shape[0], widths.shape[0]
    for block in numba.prange((count + ROWS_AT_A_TIME - 1) // ROWS_AT_A_TIME):
        first, last = begin + block * ROWS_AT_A_TIME, begin + min(count, (block + 1) * ROWS_AT_A_TIME)
        distances = np.empty((ROWS_AT_A_TIME, rows), np.float32)
        for other in range(rows):
            for row in range(first, last):
                distances[row - first, other] = square_distance(points[row], points[other])
        for row in range(first, last):
            widths[row - begin] = math.sqrt(tenth(distances[row - first], row))


@compiled(parallel=True)
def _predict(
    rows: Floats,
    points: Floats,
    widths: Floats,
    least_width: float,
    scale: float,
    label_starts: Integers,
    label_columns: Integers,
    row_weights: NDArray[np.float64],
    unknown_starts: Integers,
    unknown_columns: Integers,
    somewhere: NDArray[np.bool_],
    overall: NDArray[np.float64],
    probs: Floats,
) -> None:
    """Write the probabilities of each row. No row depends on another, so neither do the bits on the threads."""
    count, training_rows, nodes = rows.shape[0], points.shape[0], probs.shape[1]
    for block in numba.prange((count + ROWS_AT_A_TIME - 1) // ROWS_AT_A_TIME):
        first, last = block * ROWS_AT_A_TIME, min(count, (block + 1) * ROWS_AT_A_TIME)
        distances = np.empty((ROWS_AT_A_TIME, training_rows), np.float32)
        exponents, weights = np.empty(training_rows, np.float64), np.empty(training_rows, np.float64)
        sums, unknown = np.empty(nodes, np.float64), np.empty(nodes, np.float64)
        for other in range(training_rows):
            for row in range(first, last):
                distances[row - first, other] = square_distance(rows[row], points[other])
        for row in range(first, last):
            width = max(math.sqrt(tenth(distances[row - first], -1)), least_width)
            weigh(distances[row - first], width, widths, scale, row_weights, exponents, weights)
            add_labels(
                weights, exponents, row_weights, label_starts, label_columns, unknown_starts, unknown_columns,
                somewhere, overall, sums, unknown,
            )  # fmt: skip
            for node in range(nodes):
                probs[row, node] = sums[node]
