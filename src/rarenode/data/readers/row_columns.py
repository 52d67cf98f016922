"""Columns of a table that are about its rows: their ids, weights and parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rarenode.data.readers.feature_columns import LONGEST_SHOWN, feature_of, numbers_as_text
from rarenode.data.readers.frames import Table
from rarenode.errors import DataError

PARTS = {
    name: part
    for part, names in (
        ("train", ("train", "training")),
        ("valid", ("valid", "val", "validation", "dev")),
        ("test", ("test", "testing")),
    )
    for name in names
}
"""What a column may call the parts of a dataset."""
LARGEST_WEIGHT = float(np.finfo(np.float32).max)


def ids_of(table: Table, column: str | None) -> tuple[str, ...] | None:
    """The names of the rows, each once: of a column, or of the index of a data frame; None if there are none."""
    if column is None or column not in table.frame.columns:  # then it is the name of the index
        if table.ids is not None and len(set(table.ids)) < len(table.ids):
            twice = Counter(table.ids).most_common(1)[0][0]
            raise DataError(f"{table.name}: the id {twice!r} in its index appears twice; reset_index makes new ones")
        return table.ids
    values = column_as_text(table, column, "ids")
    if values.null_count():
        row = int(values.is_null().arg_max() or 0)
        raise table.error(row, f"the id in column {column!r} is missing; every row needs one")
    if values.n_unique() < len(values):
        row = int((~values.is_first_distinct()).arg_max() or 0)
        raise table.error(row, f"the id {values[row][:80]!r} in column {column!r} appears twice; ids must be unique")
    return tuple(values.to_list())


def column_as_text(table: Table, column: str, what: str) -> pl.Series:
    """A column of ids or labels as text."""
    values = table.frame[column]
    if values.dtype.is_nested() or values.dtype == pl.Object:
        raise DataError(f"{table.name}: column {column!r} contains {values.dtype}; expected {what}, one in each row")
    try:
        return numbers_as_text(values) if values.dtype.is_float() else values.cast(pl.String)
    except pl.exceptions.PolarsError:
        odd = "bytes that are not UTF-8 text" if values.dtype == pl.Binary else f"{values.dtype}; expected {what}"
        raise DataError(f"{table.name}: column {column!r} contains {odd}") from None


def weights_of(table: Table, column: str | None) -> NDArray[np.float32] | None:
    """How much each row counts; None without a column of weights."""
    if column is None:
        return None
    values = feature_of(table, column, False).cast(pl.Float64)
    wrong = values.is_null() | values.is_nan() | (values < 0) | (values > LARGEST_WEIGHT)
    if wrong.any():
        row, bounds = int(wrong.arg_max() or 0), f"at least 0 and at most {LARGEST_WEIGHT:g}"
        raise table.error(row, f"the weight in column {column!r} must be a number of {bounds}, got {values[row]}")
    return values.to_numpy().astype(np.float32)


def note_on_parts(table: Table, used: Collection[str | None]) -> tuple[str, ...]:
    """A note on a column that seems to say which part a row belongs to, unless it is used for something else."""
    for name in table.frame.columns:
        values = table.frame[name]
        if name in used or values.dtype != pl.String or values.null_count() or values.n_unique() > len(PARTS):
            continue
        parts = {PARTS.get(value) for value in values.unique().str.to_lowercase().to_list()}
        if None not in parts and {"train", "test"} <= parts:
            return (f"column {name!r} says which rows are for training and testing; --partition {name} divides them",)
    return ()


def parts_of(table: Table, column: str | None) -> NDArray[np.str_]:
    """The part of each row, by the name that our splits have."""
    values = column_as_text(table, str(column), "train, valid or test").str.to_lowercase().to_list()
    parts = [PARTS.get(str(value)) for value in values]
    if None in parts:
        row = parts.index(None)
        given = "a blank" if values[row] is None else repr(values[row][:LONGEST_SHOWN])
        raise table.error(row, f"column {column!r}: expected train, valid or test, got {given}")
    return np.array(parts, dtype=np.str_)
