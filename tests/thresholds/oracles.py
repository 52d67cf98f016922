"""What each strategy looks for, by trying every threshold, row by row. Values are exact fractions where they can be."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from tests.oracles import NamesAndEdges

Floats = NDArray[np.floating[Any]]
Bools = NDArray[np.bool_]


def at_or_above(p: Floats, threshold: float) -> list[int]:
    """The rows that a threshold decides."""
    return [row for row in range(len(p)) if float(p[row]) >= threshold]


def candidates(p: Floats) -> list[float]:
    """Thresholds that make a difference, the highest first."""
    return sorted({float(v) for v in p if v > 0}, reverse=True)


def ratio_of_expectations(p: Floats, threshold: float, beta: Fraction) -> Fraction:
    """(1 + b^2) E[hits] / (b^2 E[positives] + predicted)."""
    chosen = at_or_above(p, threshold)
    hits = sum((Fraction(float(p[row])) for row in chosen), Fraction(0))
    positives = sum((Fraction(float(v)) for v in p), Fraction(0))
    return (1 + beta**2) * hits / (beta**2 * positives + len(chosen))


def expected_f(p: Floats, chosen: list[int], beta: float) -> float:
    """The expectation itself, over all label vectors of independent rows; 0 where F is undefined."""
    total = 0.0
    for labels in itertools.product((False, True), repeat=len(p)):
        chance = math.prod(float(v) if y else 1 - float(v) for v, y in zip(p, labels, strict=True))
        hits = sum(labels[row] for row in chosen)
        under = beta**2 * sum(labels) + len(chosen)
        total += chance * (1 + beta**2) * hits / under if under else 0.0
    return total


def f1(p: Floats, y: Bools, threshold: float) -> Fraction:
    chosen = at_or_above(p, threshold)
    hits, under = sum(bool(y[row]) for row in chosen), len(chosen) + int(sum(y))
    return Fraction(2 * hits, under) if under else Fraction(0)


def best(values: list[float], score: Callable[[float], Fraction]) -> float | None:
    """The highest of the thresholds with the best score; None where that is 0."""
    scores = [score(value) for value in values]
    top = max(scores, default=Fraction(0))
    return values[scores.index(top)] if top > 0 else None


def add_ancestors(decided: Bools, hierarchy: NamesAndEdges) -> Bools:
    """Edge by edge until nothing changes."""
    return _until_still(decided, hierarchy, lambda row, parent, child: (parent, True) if row[child] else None)


def drop_orphans(decided: Bools, hierarchy: NamesAndEdges) -> Bools:
    """Edge by edge until nothing changes."""
    return _until_still(decided, hierarchy, lambda row, parent, child: None if row[parent] else (child, False))


def _until_still(
    decided: Bools, hierarchy: NamesAndEdges, change: Callable[[Bools, int, int], tuple[int, bool] | None]
) -> Bools:
    column = {name: place for place, name in enumerate(hierarchy.nodes)}
    result = decided.copy()
    for row in result:
        before = None
        while before != row.tolist():
            before = row.tolist()
            for parent, child in hierarchy.edges:
                changed = change(row, column[parent], column[child])
                if changed is not None:
                    row[changed[0]] = changed[1]
    return result


EIGHTHS = st.integers(0, 8).map(lambda k: k / 8)
"""Many ties, 0 and 1 among them, and sums without rounding."""
ANY_PROBABILITY = st.one_of(EIGHTHS, st.floats(0.0, 1.0, width=32))


@st.composite
def held_out(draw: st.DrawFn, most_rows: int = 9, most_nodes: int = 4) -> tuple[Floats, Bools]:
    """Probabilities and labels (rows, nodes)."""
    shape = draw(st.integers(1, most_rows)), draw(st.integers(1, most_nodes))
    dtype = draw(st.sampled_from((np.float32, np.float64)))
    elements = draw(st.sampled_from((EIGHTHS, ANY_PROBABILITY)))
    probs = draw(hnp.arrays(np.float64, shape, elements=elements)).astype(dtype)
    return probs, draw(hnp.arrays(np.bool_, shape))
