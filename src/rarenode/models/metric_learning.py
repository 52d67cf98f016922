"""`learn_metric`: how much each feature counts in the distances of `Neighbours`.

Rows are predicted from all others, and the weights of features and the scale follow the gradient of their log loss, as
in neighbourhood components analysis (Goldberger, Roweis, Hinton and Salakhutdinov, 2004) with a diagonal matrix:

    d(x, r)^2 = sum_f a_f^2 (x_f - r_f)^2

Most rows take steps; the others, which are then only compared with, tell when to stop. The widths h are measured anew
from time to time, and constants in between. Of many rows, some are drawn, so the time does not grow with the rest.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from rarenode._io.compiled import compiled, start_threads
from rarenode.models.model import Floats
from rarenode.models.neighbour_voting import add_labels, known_somewhere, weigh
from rarenode.models.neighbours import in_parts, measure_widths, square_distance, tenth
from rarenode.models.training_labels import Integers

PRIOR_SHARE = 0.02
"""How much of a node's overall share is mixed into a prediction: a logarithm cannot take 0."""
MOST_ROWS = 4000
"""Rows that are drawn, at most."""
FEWEST_ROWS = 50
"""With fewer, every feature counts the same."""
BATCH, STEPS, LEARNING_RATE = 256, 80, 0.05
CHECK_AFTER, PATIENCE = 10, 2
"""Steps between two looks at the rows that take none, and how many looks in vain end the search."""
MOST_CHECKED = 400
NEGLIGIBLE = 1e-6
"""The weight of a row below which it has no influence on a step."""
FARTHEST = 4.0
"""The largest logarithm, up or down, of the weight of a feature."""


@dataclass(frozen=True)
class TrainingRows:
    """Rows and labels as compiled functions take them."""

    points: Floats
    share: NDArray[np.float64]
    """(nodes,): the share of rows that have each node."""
    row_weights: NDArray[np.float64]
    label_starts: Integers
    label_columns: Integers
    unknown_starts: Integers
    unknown_columns: Integers

    @classmethod
    def of(cls, points: Floats, share: NDArray[np.float64], lists: Mapping[str, NDArray[Any]]) -> TrainingRows:
        """From the arrays of `Neighbours`."""
        nothing = np.empty(0, dtype=np.int32)
        return cls(
            points, share, lists["row_weights"], lists["label_starts"], lists["label_columns"],
            lists.get("unknown_starts", nothing), lists.get("unknown_columns", nothing),
        )  # fmt: skip

    def take(self, rows: NDArray[np.int64]) -> TrainingRows:
        """Some of the rows."""
        labels = _take_lists(self.label_starts, self.label_columns, rows)
        unknown = _take_lists(self.unknown_starts, self.unknown_columns, rows)
        return TrainingRows(self.points[rows], self.share, self.row_weights[rows], *labels, *unknown)

    def losses(
        self, queries: NDArray[np.int64], widths: Floats, metric: Floats, scales: Sequence[float]
    ) -> NDArray[np.float64]:
        """(scales, queries): the log loss of the labels of each query, predicted from all other rows."""
        return self._leave_one_out(queries, widths, metric, scales, gradient=False)[0]

    def gradients(
        self, queries: NDArray[np.int64], widths: Floats, metric: Floats, scale: float
    ) -> NDArray[np.float64]:
        """(queries, features + 1): of that loss, by the logarithms of the metric and of the scale."""
        return self._leave_one_out(queries, widths, metric, [scale], gradient=True)[1]

    def _leave_one_out(
        self, queries: NDArray[np.int64], widths: Floats, metric: Floats, scales: Sequence[float], *, gradient: bool
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        start_threads()
        losses = np.empty((len(scales), len(queries)))
        gradients = np.zeros((len(queries) if gradient else 0, self.points.shape[1] + 1))
        points, least_width = self.points * metric, float(widths.min())
        for some in in_parts(len(queries), points):
            _leave_one_out(
                points, widths, least_width, np.array(scales), queries[some], self.share, self.row_weights,
                self.label_starts, self.label_columns, self.unknown_starts, self.unknown_columns, self._somewhere,
                losses[:, some], gradients[some],
            )  # fmt: skip
        return losses, gradients

    @cached_property
    def _somewhere(self) -> NDArray[np.bool_]:
        return known_somewhere(self.unknown_columns, len(self.share), len(self.points))


def learn_metric(rows: TrainingRows, scale: float, rng: np.random.Generator) -> tuple[Floats, float]:
    """The weight of each feature and the scale; weights of 1 and the given scale where nothing better was found.

    Args:
        rows: training rows.
        scale: where to begin.
        rng: decides which rows are drawn, and which take part in which step.
    """
    features = rows.points.shape[1]
    ones = np.ones(features, dtype=np.float32)
    if len(rows.points) < FEWEST_ROWS:
        return ones, scale
    drawn = rng.permutation(len(rows.points))
    if len(drawn) > MOST_ROWS:
        rows, drawn = rows.take(np.sort(drawn[:MOST_ROWS])), rng.permutation(MOST_ROWS)
    checked, stepping = np.sort(drawn[: min(len(drawn) // 5, MOST_CHECKED)]), drawn[len(drawn) // 5 :]
    logs = np.append(np.zeros(features), math.log(scale))
    first, second = np.zeros(features + 1), np.zeros(features + 1)
    best, in_vain, found = math.inf, 0, (ones, scale)
    widths = measure_widths(rows.points)
    for step in range(STEPS + 1):
        metric, scale = np.exp(logs[:-1]).astype(np.float32), float(np.exp(logs[-1]))
        if step % CHECK_AFTER == 0:
            widths = measure_widths(rows.points * metric)
            loss = float(rows.row_weights[checked] @ rows.losses(checked, widths, metric, [scale])[0])
            in_vain = 0 if loss < best else in_vain + 1
            if loss < best:
                best, found = loss, (metric, scale)
            if in_vain == PATIENCE:
                break
        queries = np.sort(rng.choice(stepping, min(BATCH, len(stepping)), replace=False))
        gradients = rows.gradients(queries, widths, metric, scale)
        slope = rows.row_weights[queries] @ gradients / rows.row_weights[queries].sum()
        # Adam
        first, second = 0.9 * first + 0.1 * slope, 0.999 * second + 0.001 * slope**2
        rate = LEARNING_RATE * math.sqrt(1 - 0.999 ** (step + 1)) / (1 - 0.9 ** (step + 1))
        logs = logs - rate * first / (np.sqrt(second) + 1e-8)
        logs[:-1] = np.clip(logs[:-1], -FARTHEST, FARTHEST)
        logs[-1] = np.clip(logs[-1], math.log(1e-3), math.log(1e3))
    return found


def _take_lists(starts: Integers, columns: Integers, rows: NDArray[np.int64]) -> tuple[Integers, Integers]:
    if not len(starts):
        return starts, columns
    each = [columns[starts[row] : starts[row + 1]] for row in rows.tolist()]
    lengths = np.array([0, *map(len, each)], dtype=np.int32)
    return np.cumsum(lengths, dtype=np.int32), np.concatenate([*each, np.empty(0, dtype=np.int32)])


# --- compiled ------------------------------------------------------------------------------------------------------


@compiled(parallel=True)
def _leave_one_out(
    points: Floats,
    widths: Floats,
    least_width: float,
    scales: NDArray[np.float64],
    queries: NDArray[np.int64],
    share: NDArray[np.float64],
    row_weights: NDArray[np.float64],
    label_starts: Integers,
    label_columns: Integers,
    unknown_starts: Integers,
    unknown_columns: Integers,
    somewhere: NDArray[np.bool_],
    losses: NDArray[np.float64],
    gradients: NDArray[np.float64],
) -> None:
    """Write the log loss of each query at each scale and, if there is room, its gradient at the last scale.

    ``points`` have the metric in them.
    """
    training_rows, features, nodes = points.shape[0], points.shape[1], share.shape[0]
    for place in numba.prange(queries.shape[0]):
        row = queries[place]
        distances = np.empty(training_rows, np.float32)
        exponents, weights = np.empty(training_rows, np.float64), np.empty(training_rows, np.float64)
        probs, slopes = np.empty(nodes, np.float64), np.empty(nodes, np.float64)
        for other in range(training_rows):
            distances[other] = square_distance(points[row], points[other])
        width = max(math.sqrt(tenth(distances, row)), least_width)
        scale = 1.0
        for at in range(scales.shape[0]):
            scale = scales[at]
            weigh(distances, width, widths, scale, row_weights, exponents, weights)
            add_labels(
                weights, exponents, row_weights, label_starts, label_columns, unknown_starts, unknown_columns,
                somewhere, share, probs, slopes,
            )  # fmt: skip
            losses[at, place] = _slopes(
                row, probs, share, label_starts, label_columns, unknown_starts, unknown_columns, slopes
            )
        if gradients.shape[0] == 0:
            continue
        # slopes: of the loss by the weighted share of rows that have a node. A row's weight counts where it has the
        # node, and in the whole by which shares are divided, where it knows the node.
        whole = 0.0
        for node in range(nodes):
            whole += slopes[node] * probs[node]
        mean = 0.0
        by_weight = np.zeros(training_rows, np.float64)
        for other in range(training_rows):
            if weights[other] < NEGLIGIBLE:
                continue
            total = -whole
            for i in range(label_starts[other], label_starts[other + 1]):
                total += slopes[label_columns[i]]
            if unknown_columns.shape[0] > 0:
                for i in range(unknown_starts[other], unknown_starts[other + 1]):
                    total += slopes[unknown_columns[i]] * probs[unknown_columns[i]]
            by_weight[other] = total
            mean += weights[other] * total
        for other in range(training_rows):
            if weights[other] < NEGLIGIBLE:
                continue
            distance = math.sqrt(distances[other])
            nearness = scale * math.sqrt(width * widths[other])
            by_exponent = weights[other] * (by_weight[other] - mean)
            gradients[place, features] += by_exponent * distance / nearness
            if distance > 0.0:
                for i in range(features):
                    gap = points[row, i] - points[other, i]
                    gradients[place, i] -= by_exponent / (nearness * distance) * gap * gap


@compiled()
def _slopes(
    row: int,
    probs: NDArray[np.float64],
    share: NDArray[np.float64],
    label_starts: Integers,
    label_columns: Integers,
    unknown_starts: Integers,
    unknown_columns: Integers,
    slopes: NDArray[np.float64],
) -> float:
    """The log loss of a row, and its slopes by the probability of each node; ``slopes`` comes with unknown weights."""
    loss = 0.0
    for node in range(probs.shape[0]):
        # What `add_labels` left there is the weight of rows in which the node is unknown.
        known = 1.0 - (slopes[node] if unknown_columns.shape[0] > 0 else 0.0)
        absent = 1.0 - ((1.0 - PRIOR_SHARE) * probs[node] + PRIOR_SHARE * share[node])
        if absent > 1e-12:
            loss -= math.log(absent)
            slopes[node] = (1.0 - PRIOR_SHARE) / absent / known if known > 1e-9 else 0.0
        else:  # all rows have it
            slopes[node] = 0.0
    for i in range(label_starts[row], label_starts[row + 1]):
        node = label_columns[i]
        absent = 1.0 - ((1.0 - PRIOR_SHARE) * probs[node] + PRIOR_SHARE * share[node])
        if absent > 1e-12:
            present = max(1.0 - absent, 1e-12)  # rounded to 0 where next to no weight is on rows with the node
            loss += math.log(absent) - math.log(present)
            slopes[node] *= -absent / present
    if unknown_columns.shape[0] > 0:
        for i in range(unknown_starts[row], unknown_starts[row + 1]):
            node = unknown_columns[i]
            absent = 1.0 - ((1.0 - PRIOR_SHARE) * probs[node] + PRIOR_SHARE * share[node])
            loss += math.log(absent) if absent > 1e-12 else 0.0
            slopes[node] = 0.0
    return loss
