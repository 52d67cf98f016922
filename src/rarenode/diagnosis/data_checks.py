"""`examine`: what to know about rows and their labels before a model is trained on them.

Each `Finding` says what was seen, where, and what to do about it. An error prevents training; a warning
makes results worse or misleading; a note is good to know.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode._io.text import counted
from rarenode.data.dataset import Dataset
from rarenode.data.features import is_frame
from rarenode.data.images import Images
from rarenode.data.preparation import Categories, known_means, standardisation
from rarenode.data.split import folds
from rarenode.data.stored import CELLS_AT_A_TIME, StoredFeatures
from rarenode.diagnosis.copies import row_id, said, shared_rows
from rarenode.diagnosis.examination import FEW_ROWS, FEW_TO_JUDGE, Examination, Finding, Level
from rarenode.diagnosis.titles import distinct_titles
from rarenode.diagnosis.validation_checks import validation_findings
from rarenode.hierarchy.labels import count_labels, dense_rows, row_blocks

LEAK = 0.99
"""A feature whose correlation with a node is at least this high is taken for the label in disguise."""
MOST_ROWS = 5000
"""So many rows, evenly spaced, are enough to find leaks."""
FOLDS = 3
LEAST_WEIGHT, MOST_WEIGHT = 1e-20, 1e20
"""Weights of rows, other than 0."""
MOST_LIKE_ID = 20
"""Among so few rows, a count may be different in each by chance."""


def examine(data: Dataset, others: Sequence[Dataset] = (), *, valid: Dataset | None = None) -> Examination:
    """Look for what would make a model worse, or its scores misleading.

    Args:
        data: rows to train on.
        others: validation or test rows, which should not contain the same rows.
        valid: validation rows that early stopping and thresholds will use, instead of folds.

    >>> from rarenode import make_hierarchical
    >>> examine(make_hierarchical(rows=300, nodes=20, depth=3).train).nodes
    20
    """
    labelled = data.with_labels_only()
    support = labelled.support
    sample = _in_memory(data)
    findings = [
        *(Finding("note", "rows", text) for text in data.notes),
        *_obstacles(labelled, support),
        *_row_findings(data, labelled),
        *_node_findings(labelled, support),
        *(_split_findings(labelled, support) if valid is None else validation_findings(labelled, valid)),
        *_feature_findings(sample, sample.with_labels_only()),
        *shared_rows(sample, others),
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
        pictures=isinstance(data.X, Images),
    )


def _in_memory(data: Dataset) -> Dataset:
    """The rows, or of rows whose features are on disk as many as are read together, evenly spaced."""
    if not isinstance(data.X, StoredFeatures):
        return data
    most = max(1, CELLS_AT_A_TIME // max(1, data.n_features))
    some = data.take(np.unique(np.linspace(0, len(data) - 1, min(len(data), most)).astype(np.int64)))
    return replace(some, X=some.X.in_memory(), n_counted=None)


def _levels(data: Dataset, support: NDArray[np.int64]) -> tuple[Level, ...]:
    hierarchy = data.hierarchy
    deepest = np.concatenate(
        [np.where(rows, hierarchy.depth, -1).max(axis=1, initial=-1) for _, rows in row_blocks(data.Y)] or [support[:0]]
    )
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


def _obstacles(data: Dataset, support: NDArray[np.int64]) -> Iterator[Finding]:
    """Errors that prevent training on labelled rows."""
    where = data.name or "the data"
    if not len(data):
        yield Finding("error", "labels", f"{where}: no row has labels", "name the column of labels (--labels)")
        return
    if not support[data.scored].any():
        columns = ", ".join(repr(column) for column in (() if data.reading is None else data.reading.labels))
        text = f"{where}: no row has any of the nodes" + (f" in {columns}" if columns else "")
        yield Finding("error", "labels", text, "there is nothing to learn; label some rows")
    if len(data) < FOLDS:
        text = f"{where}: {_only(len(data))}"
        yield Finding("error", "rows", text, f"cv={FOLDS}, the default, needs at least {FOLDS}; label more")
    weights = unusable_weights(data)
    if weights is not None:
        yield Finding("error", "weights", weights)
    for name, value in _too_large(_in_memory(data)):
        text = f"{where}: column {name!r} has values as large as {value:.3g}, too large for single precision"
        yield Finding("error", "features", text, f"divide them all, or leave the column out (--ignore {name!r})")


def unusable_weights(data: Dataset) -> str | None:
    """What is wrong with weights that are all 0, or too small or large to compute with; None if nothing is."""
    if data.sample_weight is None:
        return None
    column = None if data.reading is None else data.reading.weight
    where, which = data.name or "the data", "weights" if column is None else f"weights in column {column!r}"
    if not data.sample_weight.any():
        return f"{where}: all {which} are 0 in single precision; some rows must count"
    positive = data.sample_weight[data.sample_weight > 0]
    least, most = float(positive.min()), float(positive.max())
    if least >= LEAST_WEIGHT and most <= MOST_WEIGHT:
        return None
    limits = f"0, or from {LEAST_WEIGHT:g} to {MOST_WEIGHT:g}"
    return f"{where}: {which} are from {least:g} to {most:g}; they must be {limits}: divide all by the same number"


def _too_large(data: Dataset) -> Iterator[tuple[str, float]]:
    """Columns whose values overflow when they are standardised by the rows of a fold, each with its largest value."""
    if hasattr(data.X, "tocsr") or isinstance(data.X, Images) or len(data) < FOLDS:
        return
    largest = float(np.finfo(np.float32).max)
    parts = None
    for name, column in zip(_feature_names(data), _columns(data.X), strict=True):
        value = 0.0 if _is_text(column) else float(np.abs(np.nan_to_num(column)).max())
        if value <= largest:
            continue
        parts = parts or [kept for kept, _ in folds(data.Y, data.hierarchy, FOLDS)]
        raw = np.asarray(column, dtype=np.float64)[:, None]
        for kept in parts:
            mean, deviation = standardisation(np.where(np.isnan(raw), known_means(raw[kept]), raw)[kept])
            if (np.abs((raw - mean) / deviation) > largest).any():
                yield name, value
                break


def _row_findings(data: Dataset, labelled: Dataset) -> Iterator[Finding]:
    if not len(labelled):
        return
    without = len(data) - len(labelled)
    if without:
        no_labels = "has no labels, and is" if without == 1 else "have no labels, and are"
        text = f"{counted(without, 'row')} of {len(data):,} {no_labels} not used for training"
        yield Finding("warning", "labels", text, f"label {_them(without)}, or remove {_them(without)}")
    absent: NDArray[np.bool_] = np.concatenate([~rows.any(axis=1) for _, rows in row_blocks(labelled.Y)])
    if absent.any():
        none = int(absent.sum())
        text = f"{said(none, 'row', 'has', 'have')} none of the nodes"
        advice = f"{'it counts as a negative' if none == 1 else 'they count as negatives'} of every node"
        yield Finding.of("note", "labels", text, advice, _ids(labelled, absent))
    if FOLDS <= len(labelled) < FEW_TO_JUDGE:
        advice = "scores of held-out rows will vary a lot; try several seeds"
        yield Finding("warning", "rows", _only(len(labelled)), advice)


def _node_findings(data: Dataset, support: NDArray[np.int64]) -> Iterator[Finding]:
    if not len(data):
        return
    hierarchy, scored = data.hierarchy, data.scored
    empty = (support == 0) & scored
    if empty.any():
        leaves = np.ones(len(hierarchy), dtype=np.bool_)
        leaves[hierarchy.edge_parents] = False
        count, ends = int(empty.sum()), int((empty & leaves).sum())
        text = f"{counted(count, 'node')} of {int(scored.sum()):,} {'has' if count == 1 else 'have'} no row"
        if count > 1:
            text += f", {ends:,} of them {'a leaf' if ends == 1 else 'leaves'}"
        stays = "it stays in the hierarchy and is" if count == 1 else "they stay in the hierarchy and are"
        advice = f"a model cannot learn {_them(count)}; {stays} never predicted"
        yield Finding.of("note", "nodes", text, advice, _titles(data, empty))
    few = (support > 0) & (support < FEW_ROWS) & scored
    if few.any():
        text = f"{said(int(few.sum()), 'node', 'has', 'have')} fewer than {FEW_ROWS} rows"
        yield Finding.of("warning", "nodes", text, "annotate more of their rows first", _titles(data, few))
    everywhere = (support == len(data)) & scored & (len(data) > 0)
    everywhere[[hierarchy.index[root] for root in hierarchy.roots]] = False
    if everywhere.any():
        count = int(everywhere.sum())
        text = f"every row has {counted(count, 'node')}, so there is nothing to learn about {_them(count)}"
        yield Finding.of("note", "nodes", text, "", _titles(data, everywhere))


def _split_findings(data: Dataset, support: NDArray[np.int64]) -> Iterator[Finding]:
    single = (support == 1) & data.scored
    if single.any():
        text = f"{said(int(single.sum()), 'node', 'has', 'have')} one row"
        advice = "such a node can be trained on or be judged, never both"
        yield Finding.of("warning", "splits", text, advice, _titles(data, single))
    if len(data) < FOLDS:
        return
    uncovered = np.zeros(len(data.hierarchy), dtype=np.bool_)
    for kept, _ in folds(data.Y, data.hierarchy, FOLDS):
        uncovered |= (support > 1) & (count_labels(data.Y[kept]) == 0)
    uncovered &= data.scored
    if uncovered.any():
        count = int(uncovered.sum())
        text = f"{counted(count, 'node')} with several rows would be missing from a fold of cv={FOLDS}"
        advice = f"{'its' if count == 1 else 'their'} rows share other rare nodes"
        yield Finding.of("note", "splits", text, advice, _titles(data, uncovered))


def _feature_findings(data: Dataset, labelled: Dataset) -> Iterator[Finding]:
    if not len(data) or isinstance(data.X, Images):
        return
    names = _feature_names(data)
    if hasattr(data.X, "tocsr"):
        return  # of sparse features, such as words, many are constant in any sample
    columns = [_coded(column) for column in _columns(data.X)]
    is_number = [not _is_text(column) for column in _columns(data.X)]
    constant = [name for name, values in zip(names, columns, strict=True) if _is_constant(values)]
    if constant:
        text = f"{said(len(constant), 'feature', 'is', 'are')} constant"
        says = "it says nothing" if len(constant) == 1 else "they say nothing"
        advice = f"{says}; leave {_them(len(constant))} out (--ignore)"
        yield Finding.of("warning", "features", text, advice, constant)
    seen: dict[bytes, str] = {}
    doubled = []
    for name, values in zip(names, columns, strict=True):
        if name not in constant:
            first = seen.setdefault(values.tobytes(), name)
            if first != name:
                doubled.append(f"{name} = {first}")
    if doubled:
        text = f"{said(len(doubled), 'feature', 'repeats', 'repeat')} another one"
        yield Finding.of("warning", "features", text, "keep one of each", doubled)
    kinds = zip(names, columns, is_number, strict=True)
    ids = [name for name, values, number in kinds if number and _is_like_id(values)]
    if ids:
        text = f"{said(len(ids), 'feature', 'looks', 'look')} like a row number or an id"
        yield Finding.of("warning", "features", text, "name one as --id, or --ignore it", ids)
    missing = [
        f"{name} ({np.isnan(values).mean():.0%})"
        for name, values in zip(names, columns, strict=True)
        if 0.5 < np.isnan(values).mean() < 1
    ]
    if missing:
        text = f"{said(len(missing), 'feature', 'is', 'are')} missing in more than half of the rows"
        advice = "a missing number becomes the mean, and a missing category none of them"
        yield Finding.of("note", "features", text, advice, missing)
    leaks = list(_leaks(labelled, names))
    if leaks:
        text = f"{said(len(leaks), 'feature', 'is', 'are')} almost the same as a label"
        advice = "a feature that follows from the labels makes scores too good to be true; leave it out"
        yield Finding.of("warning", "features", text, advice, leaks)


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
    support = some.support
    nodes = np.flatnonzero((support >= 2 * FEW_ROWS) & (support <= len(some) - 2 * FEW_ROWS))
    if not len(nodes):
        return
    titles = distinct_titles(data.hierarchy)
    labels = _standardised(dense_rows(some.Y[:, nodes]).astype(np.float64))
    for name, column in zip(names, _columns(some.X), strict=True):
        if _is_constant(_coded(column)):
            continue
        if _is_text(column):
            values = Categories.fit(column).encode(column)
        else:
            values = np.where(np.isnan(column), np.nanmean(column), column)[:, None]
        correlation = np.abs(_standardised(values).T @ labels).max(axis=0, initial=0) / len(some)
        if correlation.max() >= LEAK:
            yield f"{name} ~ {titles[nodes[int(correlation.argmax())]]}"


def _standardised(values: NDArray[np.float64]) -> NDArray[np.float64]:
    deviation = values.std(axis=0)
    result: NDArray[np.float64] = (values - values.mean(axis=0)) / np.where(deviation > 0, deviation, 1)
    return result


def _feature_names(data: Dataset) -> tuple[str, ...]:
    return data.feature_names or tuple(f"feature {column}" for column in range(data.n_features))


def _them(count: int) -> str:
    return "it" if count == 1 else "them"


def _only(rows: int) -> str:
    return f"there {'is' if rows == 1 else 'are'} only {counted(rows, 'labelled row')}"


def _titles(data: Dataset, chosen: NDArray[np.bool_]) -> tuple[str, ...]:
    titles = distinct_titles(data.hierarchy)
    return tuple(titles[column] for column in np.flatnonzero(chosen).tolist())


def _ids(data: Dataset, chosen: NDArray[np.bool_]) -> tuple[str, ...]:
    return tuple(row_id(data, row) for row in np.flatnonzero(chosen).tolist())
