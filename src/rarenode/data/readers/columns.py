"""Which columns of a table are what: patterns become names, and a name that is not there is an error."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from rarenode._io.delimited import suffix_of
from rarenode._io.text import counted, shortened
from rarenode.data.readers.frames import Table
from rarenode.data.table_options import TableOptions
from rarenode.errors import ArgumentError


def resolve_columns(table: Table, options: TableOptions, labels: bool, is_new: bool) -> TableOptions:
    """The options with patterns replaced by columns; a column that is not there is an error.

    Rows for a model (``is_new`` is False) need neither weights nor the columns that are ignored.
    """
    path, names = table.name, table.frame.columns
    if labels and not options.labels:
        raise ArgumentError(
            f"say where the labels of {path} are (--labels): a column of labels, several columns of levels, or a file "
            f"with ids and labels. The columns are {some_names(names)}"
            + ("" if table.files else ". Rows without labels can be predicted: Run.predict takes a data frame")
        )
    for what in ("id", "weight", "partition") if is_new else ("id",):
        name = getattr(options, what)
        if name is not None and name not in names and not (what == "id" and name == table.index_name):
            raise ArgumentError(f"{path} has no column {name!r} (--{what}); it has {some_names(names)}")
    match = partial(_found, path, names) if is_new else partial(matching_columns, names)
    update: dict[str, Any] = {"ignore": tuple(each for pattern in options.ignore for each in match(pattern))}
    if labels and not (len(options.labels) == 1 and is_label_file(options.labels[0], names)):
        update["labels"] = tuple(dict.fromkeys(each for one in options.labels for each in _found(path, names, one)))
    return options.model_copy(update=update)


def is_label_file(label: str, names: Sequence[str]) -> bool:
    """Whether a label option names a file rather than a column."""
    return label not in names and (Path(label).is_file() or suffix_of(label) in (".gaf", ".csv", ".tsv"))


def lacking_columns(missing: list[str], names: Sequence[str], wanted: Sequence[str]) -> str:
    """The first column that is not there, the one that it may be called now, and how many more there are."""
    spare = {name.casefold(): name for name in names if name not in wanted}
    near = difflib.get_close_matches(missing[0].casefold(), spare, n=1)
    hint = f" (is it {spare[near[0]]!r} here? then rename it)" if near else ""
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return f"{missing[0]!r}{hint}{more}"


def matching_columns(names: Sequence[str], pattern: str) -> list[str]:
    """The column of that name, or else those that a pattern such as ``level_*`` stands for."""
    return [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]


def _found(path: str, names: Sequence[str], pattern: str) -> list[str]:
    found = matching_columns(names, pattern)
    if not found:
        raise ArgumentError(f"{path} has no column {pattern!r}, and there is no such file; it has {some_names(names)}")
    return found


def columns_of_features(name: str, names: Sequence[str], options: TableOptions) -> list[str]:
    """The columns to learn from: those that are named, or all that have no other purpose."""
    taken = {options.id, options.weight, options.partition, *options.labels, *options.ignore}
    if options.features:
        chosen = dict.fromkeys(each for pattern in options.features for each in _found(name, names, pattern))
        clash = next((each for each in chosen if each in taken - set(options.ignore)), None)
        if clash is not None and clash in options.features:
            raise ArgumentError(f"the column {clash!r} cannot be a feature and something else")
        columns = [each for each in chosen if each not in taken]
    else:
        columns = [each for each in names if each not in taken]
    if not columns:
        raise ArgumentError(f"{name}: no column is left for features; it has {some_names(names)}")
    return columns


def some_names(names: Sequence[str]) -> str:
    """The first columns, and how many more there are."""
    shown = ", ".join(shortened(repr(name)) for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {counted(len(names) - 8, 'more column')}"
