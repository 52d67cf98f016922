"""The labels of a table, wherever they are: their hierarchy, the matrix (rows, nodes), and where it is known."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rarenode._io.delimited import suffix_of
from rarenode._io.text import by_normal_form, normal_form
from rarenode.data.readers.columns import some_names
from rarenode.data.readers.frames import BINARY, MISSING, Table, null_where
from rarenode.data.readers.gaf import from_gaf
from rarenode.data.readers.labels import (
    LabelNames,
    Stated,
    are_indicators,
    are_lists,
    derive_hierarchy,
    from_indicators,
    from_levels,
    from_long_file,
    from_sets,
    to_matrix,
)
from rarenode.data.readers.row_columns import column_as_text
from rarenode.data.table_options import TableOptions
from rarenode.errors import ArgumentError, DataError, FileFormatError, MissingFileError
from rarenode.hierarchy import Hierarchy, HierarchyLike, as_hierarchy
from rarenode.hierarchy.construction import DEFAULT_SEPARATOR
from rarenode.hierarchy.labels import Labels


def labels_of(
    table: Table, ids: tuple[str, ...] | None, options: TableOptions, hierarchy: HierarchyLike | None
) -> tuple[Hierarchy, Labels, NDArray[np.bool_] | None, TableOptions, tuple[str, ...]]:
    """Hierarchy, labels, where they are known, the options with nothing left to guess, and notes about the labels.

    A word such as NA is a label if a node of the given hierarchy is called so, and otherwise missing.
    """
    if hierarchy is not None:
        tree = as_hierarchy(
            hierarchy,
            separator=options.path_separator,
            relations=options.relations,
            namespaces=options.namespaces,
        )
        stated = _stated(table, ids, options, tree)
    else:
        stated = _stated(table, ids, options, None)
        if not stated.labels:
            raise DataError(f"{table.name}: no row has a label in {some_names(options.labels)}")
        tree, separator = derive_hierarchy(stated, options.path_separator)
        options = options.model_copy(update={"path_separator": separator})
        _warn_of_lookalikes(table.name, tree)
    Y, known = to_matrix(stated, tree, options.path_separator, below=options.unknown == "below")
    return tree, Y, known, options, stated.notes


def _warn_of_lookalikes(table: str, tree: Hierarchy) -> None:
    """Warn of nodes whose names look the same, as they differ only in how Unicode stores accents."""
    unique = by_normal_form(tree.nodes)
    alike = [node for node in tree.nodes if normal_form(node) not in unique]
    if alike:
        pair = " and ".join(ascii(node) for node in alike if normal_form(node) == normal_form(alike[0]))
        what = f"{len(alike):,} nodes look like others, but are not the same, such as {pair}"
        advice = "write accents in one form of Unicode (NFC or NFD) if one node is meant"
        warnings.warn(f"{table}: {what}; {advice}", RuntimeWarning, stacklevel=2)


def _stated(table: Table, ids: tuple[str, ...] | None, options: TableOptions, tree: Hierarchy | None) -> Stated:
    columns = options.labels
    if len(columns) == 1 and columns[0] not in table.frame.columns:
        path = Path(columns[0])
        if not path.is_file():
            raise MissingFileError(f"{path}: no such file, and no column of {table.name}")
        if suffix_of(path) in BINARY:
            raise FileFormatError(path, None, "a file of labels must be text, such as .csv, .tsv or .gaf")
        if ids is None:
            raise ArgumentError(f"to match the labels in {path} to rows, name the column of ids in {table.name} (--id)")
        if suffix_of(path) == ".gaf":
            return from_gaf(
                table,
                ids,
                path,
                evidence=options.evidence,
                exclude_evidence=options.exclude_evidence,
                aspects=options.aspects,
            )
        return from_long_file(table, ids, path)
    if len(columns) == 1 and _is_list_of_labels(table.frame[columns[0]].dtype):
        return from_sets(table, columns[0], options.separator)
    text = [column_as_text(table, name, "labels") for name in columns]
    without = replace(table, frame=table.frame.with_columns(null_where(column, MISSING) for column in text))
    if len(columns) == 1:
        if tree is not None and not are_lists(without.frame[columns[0]]):
            missing = [word for word in MISSING if word not in tree]
            without = replace(table, frame=table.frame.with_columns(null_where(text[0], missing)))
        return from_sets(without, columns[0], options.separator)
    if are_indicators(without, columns):
        return from_indicators(without, columns)
    if tree is not None:
        without = replace(table, frame=table.frame.with_columns(_levels_with_nodes(text, LabelNames(tree))))
    return from_levels(without, columns)


def _levels_with_nodes(columns: Sequence[pl.Series], names: LabelNames) -> list[pl.Series]:
    """Columns of levels with null in place of words such as NA, unless the path to one is that of a node."""
    levels = [column.to_list() for column in columns]
    for row in np.flatnonzero(np.any([column.is_in(MISSING).fill_null(False) for column in columns], axis=0)).tolist():
        path: list[str] = []
        for level in levels:
            if level[row] in MISSING and names.node(DEFAULT_SEPARATOR.join([*path, level[row]]), is_path=True) is None:
                level[row] = None
            elif level[row] is not None:
                path.append(level[row])
    return [pl.Series(column.name, level, dtype=pl.String) for column, level in zip(columns, levels, strict=True)]


def _is_list_of_labels(kind: pl.DataType) -> bool:
    return isinstance(kind, pl.List | pl.Array) and not (kind.inner.is_nested() or kind.inner in (pl.Binary, pl.Object))
