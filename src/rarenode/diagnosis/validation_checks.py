"""`validation_findings`: whether validation rows are enough to fit thresholds to."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from rarenode._io.text import counted
from rarenode.data.dataset import Dataset
from rarenode.diagnosis.examination import FEW_TO_JUDGE, Finding
from rarenode.diagnosis.titles import distinct_titles

VALIDATION = "validation"
"""The topic of these findings."""
MANY = 0.1
"""A larger share of nodes without validation rows is worth a warning, however many rows there are."""


def validation_findings(data: Dataset, valid: Dataset) -> Iterator[Finding]:
    """What is to be said about validation rows, to which thresholds are fitted alone.

    A node that has training rows but no validation row gets a threshold from the probabilities of other rows only.

    Args:
        data: rows to train on.
        valid: the validation rows.
    """
    data, valid = data.with_labels_only(), valid.with_labels_only()
    trained = (data.support > 0) & data.scored
    without = trained & (valid.support == 0)
    nodes, missing, rows = int(trained.sum()), int(without.sum()), len(valid)
    if not missing and rows >= FEW_TO_JUDGE:
        return
    text = f"thresholds are fitted to {counted(rows, 'validation row')} alone"
    if missing:
        have = "has" if missing == 1 else "have"
        text = f"{missing:,} of {counted(nodes, 'node')} {have} no validation row, and {text}"
    is_grave = missing > 0 and (rows < FEW_TO_JUDGE or missing > MANY * nodes)
    titles = distinct_titles(data.hierarchy)
    names = [titles[column] for column in np.flatnonzero(without).tolist()]
    advice = "without validation rows, thresholds would be fitted to folds of all training rows"
    yield Finding.of("warning" if is_grave else "note", VALIDATION, text, advice, names)
