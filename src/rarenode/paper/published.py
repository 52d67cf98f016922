"""What the paper published for a dataset, over all specs: the row with the best score, and the plain single model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from rarenode.paper.as_published import REBUILT
from rarenode.paper.panel import Measure
from rarenode.paper.spec import load_spec, spec_names

NONE, IMBALANCE = "None", ("imbalance_fun", "imbalance_go")
"""A single model without weights, and the tables that have it."""


@dataclass(frozen=True)
class PublishedRow:
    """A method in a table of the paper."""

    spec: str
    method: str
    means: Mapping[Measure, float]
    """Scores in percent."""


def best_published(dataset: str, measure: Measure = "f1") -> PublishedRow | None:
    """The published row with the best F1 among those that have the measure; the first of equally good ones.

    Some tables have F1 alone. A rebuilt dataset has the rows of the original.

    >>> best_published("cellcycle_FUN").means["f1"], best_published("cellcycle_FUN", "precision").means["f1"]
    (7.46, 7.39)
    """
    rows = [row for row in _published_rows(dataset.removesuffix(REBUILT)) if {"f1", measure} <= row.means.keys()]
    return max(rows, key=lambda row: row.means["f1"], default=None)


def published_none(dataset: str) -> PublishedRow | None:
    """The row "None" of the tables of single models, which have FunCat and GO datasets."""
    rows = _published_rows(dataset.removesuffix(REBUILT))
    return next((row for row in rows if row.method == NONE and row.spec in IMBALANCE), None)


@cache
def _published_rows(dataset: str) -> tuple[PublishedRow, ...]:
    specs = {name: load_spec(name) for name in spec_names()}
    return tuple(
        PublishedRow(
            name, method, {measure: mean for measure, (mean, _) in spec.published_for(dataset, method).items()}
        )
        for name, spec in specs.items()
        for method in spec.published.get(dataset, {})
    )
