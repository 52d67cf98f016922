"""The labels of a table, wherever they are: their hierarchy, the matrix (rows, nodes), and where it is known."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rarenode._io.delimited import suffix_of
from rarenode._io.text import by_normal_form, normal_form
from rarenode.data.readers.columns import some_names
from rarenode.data.readers.frames import BINARY, Table
from rarenode.data.readers.gaf import from_gaf
from rarenode.data.readers.labels import (
    Stated,
    are_indicators,
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
from rarenode.hierarchy.labels import Labels


def labels_of(
    table: Table, ids: tuple[str, ...] | None, options: TableOptions, hierarchy: HierarchyLike | None
) -> tuple[Hierarchy, Labels, NDArray[np.bool_] | None, TableOptions, tuple[str, ...]]:
    """Hierarchy, labels, where they are known, the options with nothing left to guess, and notes about the labels."""
    stated = _stated(table, ids, options)
    if hierarchy is not None:
        tree = as_hierarchy(
            hierarchy,
            separator=options.path_separator,
            relations=options.relations,
            namespaces=options.namespaces,
        )
    elif not stated.labels:
        raise DataError(f"{table.name}: no row has a label in {some_names(options.labels)}")
    else:
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


def _stated(table: Table, ids: tuple[str, ...] | None, options: TableOptions) -> Stated:
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
    table = replace(table, frame=table.frame.with_columns(column_as_text(table, name, "labels") for name in columns))
    if len(columns) == 1:
        return from_sets(table, columns[0], options.separator)
    return from_indicators(table, columns) if are_indicators(table, columns) else from_levels(table, columns)


def _is_list_of_labels(kind: pl.DataType) -> bool:
    return isinstance(kind, pl.List | pl.Array) and not (kind.inner.is_nested() or kind.inner in (pl.Binary, pl.Object))
