"""From distances to probabilities: the weights of training rows in `Neighbours`, and their vote.

Where labels are unknown, the rows that know a node share the weight. If these are far, their part of the weight of all
rows may be less than rounding, or than any float: then it is computed anew from them alone.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from rarenode._io.compiled import compiled
from rarenode.models.model import Floats
from rarenode.models.training_labels import Integers

LITTLE_KNOWN = 1e-9
"""If rows that know a node have a smaller share of the weight, it is computed anew from these rows alone."""


def known_somewhere(unknown_columns: Integers, nodes: int, rows: int) -> NDArray[np.bool_]:
    """(nodes,): whether any training row knows each node; empty if all labels are known."""
    if not len(unknown_columns):
        return np.empty(0, dtype=np.bool_)
    somewhere: NDArray[np.bool_] = np.bincount(unknown_columns, minlength=nodes) < rows
    return somewhere


@compiled()
def weigh(
    distances: Floats,
    width: float,
    widths: Floats,
    scale: float,
    row_weights: NDArray[np.float64],
    exponents: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> None:
    """Write the weights of training rows, which add up to 1, and their exponents; ``distances`` are squared."""
    largest = -np.inf
    for other in range(widths.shape[0]):
        exponents[other] = -math.sqrt(distances[other]) / (scale * math.sqrt(width * widths[other]))
        largest = max(largest, exponents[other])
    total = 0.0
    for other in range(widths.shape[0]):
        weights[other] = row_weights[other] * math.exp(exponents[other] - largest)
        total += weights[other]
    for other in range(widths.shape[0]):
        weights[other] /= total


@compiled()
def add_labels(
    weights: NDArray[np.float64],
    exponents: NDArray[np.float64],
    row_weights: NDArray[np.float64],
    label_starts: Integers,
    label_columns: Integers,
    unknown_starts: Integers,
    unknown_columns: Integers,
    somewhere: NDArray[np.bool_],
    overall: NDArray[np.float64],
    sums: NDArray[np.float64],
    unknown: NDArray[np.float64],
) -> None:
    """Write the probability of each node; ``overall`` is its share where no row tells.

    ``weights`` are those of `weigh`, with their ``exponents``; ``somewhere`` is `known_somewhere`. What is left in
    ``unknown`` is the weight of the rows that do not know a node.
    """
    sums[:] = 0.0
    unknown[:] = 0.0
    everything = 0.0
    all_known = unknown_columns.shape[0] == 0
    for row in range(weights.shape[0]):
        weight = weights[row]
        everything += weight
        for label in range(label_starts[row], label_starts[row + 1]):
            sums[label_columns[label]] += weight
        if not all_known:
            for label in range(unknown_starts[row], unknown_starts[row + 1]):
                unknown[unknown_columns[label]] += weight
    if not all_known:
        far = np.empty(sums.shape[0], np.int64)
        count = 0
        for node in range(sums.shape[0]):
            known = everything - unknown[node]
            if not somewhere[node]:
                sums[node] = overall[node]
            elif known < LITTLE_KNOWN * everything:  # what rounding left of the difference
                far[count] = node
                count += 1
            else:
                sums[node] /= known
        if count:
            _add_far_labels(
                far[:count], exponents, row_weights, label_starts, label_columns, unknown_starts, unknown_columns,
                overall, sums,
            )  # fmt: skip
    for node in range(sums.shape[0]):
        sums[node] = min(sums[node], 1.0)  # the weights add up to 1, but for rounding


@compiled()
def _add_far_labels(
    nodes: NDArray[np.int64],
    exponents: NDArray[np.float64],
    row_weights: NDArray[np.float64],
    label_starts: Integers,
    label_columns: Integers,
    unknown_starts: Integers,
    unknown_columns: Integers,
    overall: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> None:
    """Write the probabilities of nodes, which rise, that only rows with next to no weight know.

    For each, weights are anew in proportion to exp(exponent), with the largest exponent of the rows that know it as
    the unit, however small that is beside rows that do not.
    """
    largest = np.full(nodes.shape[0], -np.inf)
    known, having = np.zeros(nodes.shape[0]), np.zeros(nodes.shape[0])
    for adding in (False, True):
        for row in range(exponents.shape[0]):
            if exponents[row] == -np.inf:  # a row that is left out
                continue
            unknown_at, label_at = unknown_starts[row], label_starts[row]
            for i in range(nodes.shape[0]):
                node = nodes[i]
                while unknown_at < unknown_starts[row + 1] and unknown_columns[unknown_at] < node:
                    unknown_at += 1
                if unknown_at < unknown_starts[row + 1] and unknown_columns[unknown_at] == node:
                    continue
                if not adding:
                    largest[i] = max(largest[i], exponents[row])
                    continue
                weight = row_weights[row] * math.exp(exponents[row] - largest[i])
                known[i] += weight
                while label_at < label_starts[row + 1] and label_columns[label_at] < node:
                    label_at += 1
                if label_at < label_starts[row + 1] and label_columns[label_at] == node:
                    having[i] += weight
    for i in range(nodes.shape[0]):
        sums[nodes[i]] = having[i] / known[i] if known[i] > 0.0 else overall[nodes[i]]
