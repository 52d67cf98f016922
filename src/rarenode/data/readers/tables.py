"""Reader for tables: from columns to a dataset. Modules beside it say which columns are what, and what they become."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rarenode._io.text import counted
from rarenode.data.dataset import Dataset
from rarenode.data.readers.columns import columns_of_features, lacking_columns, matching_columns, resolve_columns
from rarenode.data.readers.feature_columns import feature_of
from rarenode.data.readers.frames import Table, TextColumns, read_table, schema_of
from rarenode.data.readers.images import image_column, image_columns, images_of, require_no_features, unused_columns
from rarenode.data.readers.label_columns import labels_of
from rarenode.data.readers.row_columns import ids_of, note_on_parts, parts_of, weights_of
from rarenode.data.stored import StoredFeatures, store_columns
from rarenode.data.table_options import Expected, TableOptions
from rarenode.errors import ArgumentError, DataError, HierarchyError, LabelError, RarenodeError
from rarenode.hierarchy import Hierarchy, HierarchyLike
from rarenode.hierarchy.labels import Labels

STREAMED_CELLS = 1 << 27
"""Columns of so many cells together are read at a time, if features are streamed."""
MOST_PROBLEMS = 50
"""So many things that are wrong with a table are listed."""


def read_tables(
    sources: Sequence[Path | str | Any],
    options: TableOptions,
    *,
    hierarchy: HierarchyLike | None = None,
    expected: Expected | None = None,
    labels: bool = True,
) -> Dataset:
    """Read files with the same columns as one dataset.

    Args:
        sources: CSV, TSV, Parquet or Arrow files, or one data frame.
        options: how to read them.
        hierarchy: of the labels, in any form that `as_hierarchy` takes; None: that of ``expected``, or else the one
            that paths or levels make.
        expected: what a model expects that the rows are for; None chooses features by the options.
        labels: whether to read labels. Without them nothing is known, and ``expected`` must be given.

    Returns:
        The dataset. Its ``reading`` are the options with all columns named and nothing left to guess.

    Raises:
        MissingFileError, FileFormatError, DataError: see the other readers.
        ArgumentError: a column is not there, or has two purposes.
    """
    text = partial(text_columns, options, expected)
    if options.stream and not options.has_images:
        return _streamed(sources, text, options, hierarchy, expected, labels)
    return make_dataset(read_table(sources, text), options, hierarchy=hierarchy, expected=expected, labels=labels)


def _streamed(
    sources: Sequence[Any],
    text: TextColumns,
    options: TableOptions,
    hierarchy: HierarchyLike | None,
    expected: Expected | None,
    labels: bool,
) -> Dataset:
    """The dataset with its features in a file. They are read some columns at a time, all others at once."""
    schema = schema_of(sources)
    names = schema.frame.columns
    resolved = resolve_columns(schema, options, labels, is_new=expected is None)
    wanted = _wanted(schema.name, names, resolved, expected)
    others = [name for name in names if name not in wanted]
    table = read_table(sources, text, others or names[:1])
    rows = len(table.frame)
    problems = _Problems(table)

    def load(some: Sequence[str]) -> list[pl.Series]:
        part = read_table(sources, text, some)
        found = []
        for name in some:
            with problems.collected():
                found.append(feature_of(part, name, None if expected is None else name in expected.text))
        problems.raise_any()
        return found

    stored = store_columns(rows, wanted, load, max(1, STREAMED_CELLS // max(1, rows)))
    return make_dataset(table, resolved, hierarchy=hierarchy, expected=expected, labels=labels, stored=stored)


def read_labels(
    sources: Sequence[Path | str | Any], options: TableOptions, hierarchy: HierarchyLike | None = None
) -> tuple[Hierarchy, Labels, NDArray[np.bool_] | None]:
    """The hierarchy, the labels (rows, nodes) and where they are known, without regard to features."""
    table = read_table(sources, partial(text_columns, options, None))
    options = resolve_columns(table, options, labels=True, is_new=True)
    tree, Y, known, *_ = labels_of(table, ids_of(table, options.id), options, hierarchy)
    return tree, Y, known


def text_columns(options: TableOptions, expected: Expected | None, names: list[str]) -> dict[str, bool]:
    """The columns that are never numbers: ids, labels, and what a model takes for categories.

    In ids and labels only blanks are missing: a row or a node may be called NA.
    """
    labels = [name for pattern in options.labels for name in matching_columns(names, pattern)]
    other = [options.partition, *image_columns(options, expected, names), *(() if expected is None else expected.text)]
    named = dict.fromkeys([*labels, options.id], True) | dict.fromkeys(other, False)
    return {name: only_blanks for name, only_blanks in named.items() if name is not None}


def make_dataset(
    table: Table,
    options: TableOptions,
    *,
    hierarchy: HierarchyLike | None = None,
    expected: Expected | None = None,
    labels: bool = True,
    stored: StoredFeatures | None = None,
) -> Dataset:
    """The dataset of a table; arguments are those of `read_tables`. Features that are on disk are not in the table."""
    names = table.frame.columns
    is_images = options.has_images if expected is None else expected.images
    if is_images:
        require_no_features(options)
        image_column(options, names, table.name)  # that it is missing says more than that the ids are
    options = resolve_columns(table, options, labels, is_new=expected is None)
    images = None
    if is_images:
        images, options, table = images_of(table, options, None if expected is None else expected.images_in_training)
    wanted = [] if images is not None or stored is not None else _wanted(table.name, names, options, expected)
    problems = _Problems(table)
    columns = []
    for name in wanted:
        with problems.collected():
            columns.append(feature_of(table, name, None if expected is None else name in expected.text))
    ids = weights = None
    with problems.collected():
        weights = weights_of(table, options.weight) if options.weight in names else None
    if hierarchy is None and expected is not None:
        hierarchy = expected.hierarchy
    known: NDArray[np.bool_] | None
    notes: tuple[str, ...] = ()
    with problems.collected():
        ids = ids_of(table, options.id)
        if labels:
            tree, Y, known, options, notes = labels_of(table, ids, options, hierarchy)
        elif isinstance(hierarchy, Hierarchy):
            tree = hierarchy
            Y = known = np.broadcast_to(np.False_, (len(table.frame), len(tree)))
        else:
            raise ArgumentError("rows without labels need the hierarchy of a model")
    problems.raise_any()
    if images is not None:
        notes = (*notes, *unused_columns(names, options))
    if expected is None and options.partition is None:
        notes = (*notes, *note_on_parts(table, {options.id, options.weight, *options.labels, *options.ignore}))
    return Dataset(
        X=stored if stored is not None else pl.DataFrame(columns) if images is None else images,
        Y=Y,
        known=known,
        hierarchy=tree,
        scored=np.ones(len(tree), dtype=np.bool_),
        feature_names=None if images is not None or stored is not None else tuple(wanted),
        ids=ids,
        sample_weight=weights,
        name=table.name,
        notes=notes,
        partition=parts_of(table, options.partition) if labels and options.partition in names else None,
        # A file of labels belongs to these rows alone.
        reading=options if set(options.labels) <= set(names) else options.model_copy(update={"labels": ()}),
    )


def _wanted(table: str, names: Sequence[str], options: TableOptions, expected: Expected | None) -> list[str]:
    """The columns of features."""
    if expected is None or expected.features is None:
        return columns_of_features(table, names, options)
    wanted = list(expected.features)
    missing = [name for name in wanted if name not in names]
    if missing:
        raise DataError(f"{table} lacks columns that the model needs: {lacking_columns(missing, names, wanted)}")
    return wanted


class _Problems:
    """What is wrong with a table, so that one error can tell it all."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.found: list[RarenodeError] = []

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Keep an error about data for later; one about an option ends it."""
        try:
            yield
        except (DataError, HierarchyError, LabelError) as error:
            self.found.append(error)
            if len(self.found) == MOST_PROBLEMS:
                self.raise_any()

    def raise_any(self) -> None:
        """Raise the first error, if there is one; its details are all of them."""
        if not self.found:
            return
        first = self.found[0]
        details = tuple(text for error in self.found for text in error.details or (str(error),))
        if len(self.found) > 1:
            rest = counted(len(self.found) - 1, "more problem")
            first.args = (f"{first} ({rest}; `rarenode doctor` lists them all)",)
        first.details, first.rows = details, len(self.table.frame)
        raise first
