"""Copies: rows with the same features as others, among training rows and between parts of the data."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from rarenode._io.text import counted
from rarenode.data.dataset import Dataset
from rarenode.data.features import is_frame
from rarenode.data.images import Images
from rarenode.data.stored import StoredFeatures
from rarenode.diagnosis.examination import MOST_EXAMPLES, Finding, Severity
from rarenode.hierarchy.labels import dense_rows

COARSE = 0.1
"""If a larger share of rows has the same features as another row, this may say nothing about copies."""
FINE = 0.9
"""Features tell rows apart that have so many distinct values for each distinct row."""
FEW_COPIES, FEW_PAIRS = 0.01, 4
"""Copies of so small a share of the rows hardly change thresholds, and so few equal rows may be equal by chance."""
CELLS_AT_A_TIME = 1 << 22
"""Features that are looked at together."""


def shared_rows(data: Dataset, others: Sequence[Dataset]) -> Iterator[Finding]:
    """Rows that have the same features as others, among themselves and between parts."""
    if hasattr(data.X, "tocsr"):
        return
    distinct: dict[bytes, int] = {}
    alike: list[tuple[int, int]] = []
    contradicting: list[tuple[int, int]] = []
    for row, key in _row_keys(data.X):
        first = distinct.setdefault(key, row)
        if first != row:
            labels = dense_rows(data.Y, np.array([first, row]))
            differs = labels[0] != labels[1]
            if data.known is not None:
                differs &= data.known[first] & data.known[row]
            (contradicting if differs.any() else alike).append((row, first))
    repeated = len(alike) + len(contradicting)
    is_images = isinstance(data.X, Images)
    noun, what = ("picture", "content") if is_images else ("row", "features")
    is_coarse = repeated > COARSE * len(data) and _is_chance(data, repeated)
    if repeated:
        text = f"{said(repeated, noun, 'has', 'have')} the same {what} as another {noun}"
        odd = len(contradicting)
        more = f"; {odd:,} of them with other labels" if odd else ""
        severity: Severity = "warning" if odd and not is_coarse else "note"
        examples = _pairs(data, data, [*contradicting, *alike])
        yield Finding.of(severity, "rows", text + more, "if they are copies of one another, keep one", examples)
    for other in others:
        same = [(row, distinct[key]) for row, key in _row_keys(other.X) if key in distinct]
        if same:
            where = f"{other.name or 'the other rows'} {'has' if len(same) == 1 else 'have'}"
            text = f"{counted(len(same), noun)} of {where} the same {what} as a {noun} of {data.name or 'the data'}"
            advice = "if they are the same, keep one: scores of rows that were trained on are too high"
            severity = "note" if is_coarse else "warning"
            yield Finding.of(severity, "splits", text, advice, _pairs(other, data, same))


def repeated_rows(data: Dataset) -> str | None:
    """What copies among training rows do to rows that are held out; None if they are few, or equal by chance."""
    if hasattr(data.X, "tocsr") or isinstance(data.X, StoredFeatures):  # the latter take too long to compare
        return None
    distinct: dict[bytes, int] = {}
    pairs = [(row, first) for row, key in _row_keys(data.X) if (first := distinct.setdefault(key, row)) != row]
    if len(pairs) <= max(FEW_COPIES * len(data), FEW_PAIRS) or _is_chance(data, len(pairs)):
        return None
    noun, what = ("picture", "content") if isinstance(data.X, Images) else ("row", "features")
    return (
        f"{data.name or 'the data'}: {said(len(pairs), noun, 'has', 'have')} the same {what} as another {noun} "
        f"({', '.join(_pairs(data, data, pairs[:MOST_EXAMPLES]))}). If they are copies, models have learned from rows "
        "that are held out: thresholds are too high, and guaranteed sets and promised precisions do not hold; keep one "
        f"{noun} of each"
    )


def _is_chance(data: Dataset, repeated: int) -> bool:
    """Whether rows that have the same features as others need be no copies.

    Where features are few or coarse, rows are often equal in half of the features, and differ in the other half. Copies
    do not. The same bytes are always the same picture.
    """
    if isinstance(data.X, Images):
        return False
    names = range(data.X.shape[1])
    halves = [data.X[:, [*names[place::2]]] for place in (0, 1)] if len(names) > 1 else []
    counts = [len(data) - _repeats(half) for half in halves]
    are_fine = [
        distinct >= FINE * (len(data) - repeated) and repeated >= (len(data) - distinct) / 2 for distinct in counts
    ]
    return not (any(are_fine) and min(counts) > 1)


def _repeats(X: Any) -> int:
    keys = [key for _, key in _row_keys(X)]
    return len(keys) - len(set(keys))


def _pairs(data: Dataset, other: Dataset, pairs: Sequence[tuple[int, int]]) -> tuple[str, ...]:
    return tuple(f"{row_id(data, row)} = {row_id(other, first)}" for row, first in pairs)


def _row_keys(X: Any) -> Iterator[tuple[int, bytes]]:
    """Each row whose features are not all missing, with bytes that are the same for the same features."""
    if isinstance(X, Images):
        yield from ((row, digest.tobytes()) for row, digest in enumerate(X.digests) if digest.any())
        return
    if is_frame(X):
        for row, values in enumerate(X.iter_rows()):
            if any(value is not None and value == value for value in values):
                yield row, repr(values).encode()
    else:
        step = max(1, CELLS_AT_A_TIME // max(1, X.shape[1]))
        for first in range(0, len(X), step):
            block = np.ascontiguousarray(X[first : first + step], dtype=np.float64)
            for row in np.flatnonzero(~np.isnan(block).all(axis=1)).tolist():
                yield first + row, hashlib.blake2b(block[row].tobytes(), digest_size=16).digest()


def copies_between(data: Dataset, others: Sequence[Dataset]) -> list[Finding]:
    """That rows of other parts are the same as training rows."""
    return [found for found in shared_rows(data, others) if found.topic == "splits"]


def said(count: int, noun: str, one: str, many: str) -> str:
    """A count with its noun and verb."""
    return f"{counted(count, noun)} {one if count == 1 else many}"


def row_id(data: Dataset, row: int) -> str:
    """What a row is called in a message."""
    return f"row {row}" if data.ids is None else data.ids[row]

