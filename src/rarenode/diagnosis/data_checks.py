"""`examine`: what to know about rows and their labels before a model is trained on them.

Each `Finding` says what was seen, where, and what to do about it. An error stands in the way of training; a warning
makes results worse or misleading; a note is good to know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rarenode._io.text import counted
from rarenode.data.dataset import Dataset
from rarenode.data.features import is_frame
from rarenode.data.preparation import Categories
from rarenode.data.split import folds

Severity = Literal["error", "warning", "note"]

FEW_ROWS = 5
"""A node with fewer rows is hard to learn."""
LEAK = 0.99
"""A feature whose correlation with a node is at least this high is taken for the label in disguise."""
MOST_ROWS = 5000
"""So many rows, evenly spaced, are enough to find leaks."""
MOST_EXAMPLES = 5
FOLDS = 3
MOST_LIKE_ID = 20
"""Among so few rows, a count may be different in each by chance."""


@dataclass(frozen=True)
class Finding:
    """One thing to know about data."""

    severity: Severity
    topic: str
    """One word or two: labels, nodes, features, rows, splits."""
    text: str
    advice: str = ""
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class Level:
    """The nodes of one depth."""

    depth: int
    nodes: int
    with_rows: int
    """Nodes that some row has."""
    few_rows: int
    """Of these, nodes with fewer than `FEW_ROWS`."""
    median_rows: float
    """Rows of a node that has any."""
    rows_ending: int
    """Rows whose deepest label is here."""


@dataclass(frozen=True)
class Examination:
    """What `examine` found."""

    name: str
    rows: int
    labelled_rows: int
    features: int
    nodes: int
    nodes_with_rows: int
    unknown: float
    """The share of cells of labelled rows of which it is unknown whether the row has the node."""
    levels: tuple[Level, ...]
    findings: tuple[Finding, ...]

    @property
    def worst(self) -> Severity | None:
        """The worst severity; None if nothing was found."""
        order: tuple[Severity, ...] = ("error", "warning", "note")
        return next((each for each in order if any(found.severity == each for found in self.findings)), None)

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)


def examine(data: Dataset, others: Sequence[Dataset] = ()) -> Examination:
    """Look for what would make a model worse, or its scores misleading.

    Args:
        data: rows to train on.
        others: validation or test rows, which should not contain the same rows.

    >>> from rarenode import make_hierarchical
    >>> examine(make_hierarchical(rows=300, nodes=20, depth=3).train).nodes
    20
    """
    labelled = data.with_labels_only()
    support = labelled.Y.sum(axis=0, dtype=np.int64)
    findings = [
        *_row_findings(data, labelled),
        *_node_findings(labelled, support),
        *_split_findings(labelled, support),
        *_feature_findings(data, labelled),
        *_shared_rows(data, others),
    ]
    order = {"error": 0, "warning": 1, "note": 2}
    return Examination(
        name=data.name,
        rows=len(data),
        labelled_rows=len(labelled),
        features=data.n_features,
        nodes=len(data.hierarchy),
        nodes_with_rows=int(np.count_nonzero(support)),
        unknown=0.0 if labelled.known is None else float(1 - labelled.known.mean()),
        levels=_levels(labelled, support),
        findings=tuple(sorted(findings, key=lambda found: order[found.severity])),
    )


def _levels(data: Dataset, support: NDArray[np.int64]) -> tuple[Level, ...]:
    hierarchy = data.hierarchy
    deepest = np.where(data.Y, hierarchy.depth, -1).max(axis=1, initial=-1)
    levels = []
    for depth in range(int(hierarchy.depth.max(initial=0)) + 1):
        here = support[hierarchy.depth == depth]
        some = here[here > 0]
        levels.append(
            Level(
                depth=depth,
                nodes=len(here),
                with_rows=len(some),
                few_rows=int(np.count_nonzero(some < FEW_ROWS)),
                median_rows=float(np.median(some)) if len(some) else 0.0,
                rows_ending=int(np.count_nonzero(deepest == depth)),
            )
        )
    return tuple(levels)


def _row_findings(data: Dataset, labelled: Dataset) -> Iterator[Finding]:
    if not len(labelled):
        yield Finding("error", "labels", "no row has labels", "name the column of labels (--labels)")
        return
    without = len(data) - len(labelled)
    if without:
        text = f"{counted(without, 'row')} of {len(data):,} have no labels, and are not used for training"
        yield Finding("warning", "labels", text, "label them, or remove them")
    absent: NDArray[np.bool_] = ~np.any(labelled.Y, axis=1)
    if absent.any():
        text = f"{_said(int(absent.sum()), 'row', 'has', 'have')} none of the nodes"
        yield Finding("note", "labels", text, "they count as negatives of every node", _ids(labelled, absent))
    if len(labelled) < 100:
        text = f"there are only {counted(len(labelled), 'labelled row')}"
        yield Finding("warning", "rows", text, "scores of held-out rows will vary a lot; try several seeds")


def _node_findings(data: Dataset, support: NDArray[np.int64]) -> Iterator[Finding]:
    if not len(data):
        return
    hierarchy, scored = data.hierarchy, data.scored
    empty = (support == 0) & scored
    if empty.any():
        leaves = np.ones(len(hierarchy), dtype=np.bool_)
        leaves[hierarchy.edge_parents] = False
        text = (
            f"{counted(int(empty.sum()), 'node')} of {int(scored.sum()):,} have no row, {int((empty & leaves).sum()):,}"
        )
        advice = "a model cannot learn them; they stay in the hierarchy and are never predicted"
        yield Finding("note", "nodes", f"{text} of them leaves", advice, _titles(data, empty))
    few = (support > 0) & (support < FEW_ROWS) & scored
    if few.any():
        text = f"{_said(int(few.sum()), 'node', 'has', 'have')} fewer than {FEW_ROWS} rows"
        yield Finding("warning", "nodes", text, "annotate more rows of these first", _titles(data, few))
    everywhere = (support == len(data)) & scored & (len(data) > 0)
    everywhere[[hierarchy.index[root] for root in hierarchy.roots]] = False
    if everywhere.any():
        text = f"every row has {counted(int(everywhere.sum()), 'node')}, so there is nothing to learn about "
        yield Finding(
            "note", "nodes", text + ("it" if everywhere.sum() == 1 else "them"), "", _titles(data, everywhere)
        )


def _split_findings(data: Dataset, support: NDArray[np.int64]) -> Iterator[Finding]:
    single = (support == 1) & data.scored
    if single.any():
        text = f"{_said(int(single.sum()), 'node', 'has', 'have')} one row"
        advice = "they can be trained on or be judged, never both"
        yield Finding("warning", "splits", text, advice, _titles(data, single))
    if len(data) < FOLDS:
        return
    uncovered = np.zeros(len(data.hierarchy), dtype=np.bool_)
    for kept, _ in folds(data.Y, data.hierarchy, FOLDS):
        uncovered |= (support > 1) & ~data.Y[kept].any(axis=0)
    uncovered &= data.scored
    if uncovered.any():
        text = f"{counted(int(uncovered.sum()), 'node')} with several rows would be missing from a fold of cv={FOLDS}"
        yield Finding("note", "splits", text, "their rows share other rare nodes", _titles(data, uncovered))


def _feature_findings(data: Dataset, labelled: Dataset) -> Iterator[Finding]:
    if not len(data):
        return
    names = data.feature_names or tuple(f"feature {column}" for column in range(data.n_features))
    if hasattr(data.X, "tocsr"):
        return  # of sparse features, such as words, many are constant in any sample
    columns = [_coded(column) for column in _columns(data.X)]
    is_number = [not _is_text(column) for column in _columns(data.X)]
    constant = [name for name, values in zip(names, columns, strict=True) if _is_constant(values)]
    if constant:
        text = f"{_said(len(constant), 'feature', 'is', 'are')} constant"
        yield Finding(
            "warning", "features", text, "they say nothing; leave them out (--ignore)", tuple(constant[:MOST_EXAMPLES])
        )
    seen: dict[bytes, str] = {}
    doubled = []
    for name, values in zip(names, columns, strict=True):
        if name not in constant:
            first = seen.setdefault(values.tobytes(), name)
            if first != name:
                doubled.append(f"{name} = {first}")
    if doubled:
        text = f"{_said(len(doubled), 'feature', 'repeats', 'repeat')} another one"
        yield Finding("warning", "features", text, "keep one of each", tuple(doubled[:MOST_EXAMPLES]))
    kinds = zip(names, columns, is_number, strict=True)
    ids = [name for name, values, number in kinds if number and _is_like_id(values)]
    if ids:
        text = f"{_said(len(ids), 'feature', 'looks', 'look')} like a row number or an id"
        yield Finding("warning", "features", text, "name it as --id, or --ignore it", tuple(ids[:MOST_EXAMPLES]))
    missing = [
        f"{name} ({np.isnan(values).mean():.0%})"
        for name, values in zip(names, columns, strict=True)
        if 0.5 < np.isnan(values).mean() < 1
    ]
    if missing:
        text = f"{_said(len(missing), 'feature', 'is', 'are')} missing in more than half of the rows"
        advice = "a missing number becomes the mean, and a missing category none of them"
        yield Finding("note", "features", text, advice, tuple(missing[:MOST_EXAMPLES]))
    leaks = list(_leaks(labelled, names))
    if leaks:
        text = f"{_said(len(leaks), 'feature', 'is', 'are')} almost the same as a label"
        advice = "a feature that follows from the labels makes scores too good to be true; leave it out"
        yield Finding("warning", "features", text, advice, tuple(leaks[:MOST_EXAMPLES]))


def _columns(X: Any) -> Iterator[Any]:
    """Each column: an array of numbers, or a list of categories."""
    if is_frame(X):
        for column in X.iter_columns():
            yield column.to_numpy() if column.dtype.is_numeric() else column.to_list()
    else:
        yield from (np.ascontiguousarray(column, dtype=np.float64) for column in np.asarray(X).T)


def _is_text(column: Any) -> bool:
    """Whether a column has categories."""
    return isinstance(column, list)


def _coded(column: Any) -> NDArray[np.float64]:
    """A column as numbers; categories are numbered in the order in which they appear."""
    if not _is_text(column):
        values: NDArray[np.float64] = column
        return values
    number: dict[str, int] = {}
    return np.array([np.nan if each is None else number.setdefault(each, len(number)) for each in column])


def _is_constant(values: NDArray[np.float64]) -> bool:
    known = values[~np.isnan(values)]
    return not len(known) or bool((known == known[0]).all())


def _is_like_id(values: NDArray[np.float64]) -> bool:
    """Whole numbers that count up by one from row to row, or that would if they were sorted and some rows filled in."""
    if len(values) <= 2 or not np.isfinite(values).all():
        return False
    if (np.diff(values) == 1).all():
        return True
    distinct = np.unique(values)
    is_dense = distinct[-1] - distinct[0] < 2 * len(values)
    return len(values) > MOST_LIKE_ID and len(distinct) == len(values) and is_dense and bool((values % 1 == 0).all())


def _leaks(data: Dataset, names: Sequence[str]) -> Iterator[str]:
    rows = np.unique(np.linspace(0, len(data) - 1, min(len(data), MOST_ROWS)).astype(np.int64))
    some = data.take(rows)
    support = some.Y.sum(axis=0)
    nodes = np.flatnonzero((support >= 2 * FEW_ROWS) & (support <= len(some) - 2 * FEW_ROWS))
    if not len(nodes):
        return
    labels = _standardised(some.Y[:, nodes].astype(np.float64))
    for name, column in zip(names, _columns(some.X), strict=True):
        if _is_constant(_coded(column)):
            continue
        if _is_text(column):
            values = Categories.fit(column).encode(column)
        else:
            values = np.where(np.isnan(column), np.nanmean(column), column)[:, None]
        correlation = np.abs(_standardised(values).T @ labels).max(axis=0, initial=0) / len(some)
        if correlation.max() >= LEAK:
            yield f"{name} ~ {data.hierarchy.titles[nodes[int(correlation.argmax())]]}"


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    deviation = values.std(axis=0)
    result: NDArray[np.float64] = (values - values.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    return result


def _shared_rows(data: Dataset, others: Sequence[Dataset]) -> Iterator[Finding]:
    if hasattr(data.X, "tocsr"):
        return
    here = _row_keys(data)
    distinct: dict[bytes, int] = {}
    contradicting = np.zeros(len(data), dtype=np.bool_)
    repeated = 0
    for row, key in enumerate(here):
        first = distinct.setdefault(key, row)
        if first != row:
            repeated += 1
            differs = data.Y[first] != data.Y[row]
            if data.known is not None:
                differs &= data.known[first] & data.known[row]
            contradicting[row] = bool(differs.any())
    if repeated:
        text = f"{_said(repeated, 'row', 'repeats', 'repeat')} the features of another row"
        odd = int(contradicting.sum())
        more = f"; {odd:,} of them with other labels" if odd else ""
        yield Finding("warning" if odd else "note", "rows", text + more, "remove copies", _ids(data, contradicting))
    for other in others:
        same = np.array([key in distinct for key in _row_keys(other)], dtype=np.bool_)
        if same.any():
            where = f"{other.name or 'the other rows'} are in {data.name or 'the data'} too"
            text = f"{counted(int(same.sum()), 'row')} of {where}"
            advice = "scores of rows that were trained on are too high; remove them from one of the two"
            yield Finding("warning", "splits", text, advice, _ids(other, same))


def _row_keys(data: Dataset) -> list[bytes]:
    if is_frame(data.X):
        return [repr(row).encode() for row in data.X.iter_rows()]
    X = np.ascontiguousarray(data.X, dtype=np.float64)
    return [row.tobytes() for row in X]


def _said(count: int, noun: str, one: str, many: str) -> str:
    """A count with its noun and verb."""
    return f"{counted(count, noun)} {one if count == 1 else many}"


def _titles(data: Dataset, chosen: NDArray[np.bool_]) -> tuple[str, ...]:
    columns = np.flatnonzero(chosen)[:MOST_EXAMPLES].tolist()
    return tuple(data.hierarchy.titles[column] for column in columns)


def _ids(data: Dataset, chosen: NDArray[np.bool_]) -> tuple[str, ...]:
    rows = np.flatnonzero(chosen)[:MOST_EXAMPLES].tolist()
    return tuple(f"row {row}" if data.ids is None else data.ids[row] for row in rows)
