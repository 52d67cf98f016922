"""Reader for tables: which columns are features, ids, weights and labels, and what becomes of each."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path, PurePath
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rarenode._io.delimited import suffix_of
from rarenode._io.text import counted
from rarenode.data.dataset import Dataset
from rarenode.data.decoding import SUFFIXES
from rarenode.data.features import LARGEST, number_as_text
from rarenode.data.readers.frames import BINARY, THOUSANDS, Table, read_table
from rarenode.data.readers.gaf import from_gaf
from rarenode.data.readers.images import image_column, image_columns, images_of, require_no_features, unused_columns
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
from rarenode.data.table_options import Expected, TableOptions
from rarenode.errors import (
    ArgumentError,
    DataError,
    FileFormatError,
    HierarchyError,
    LabelError,
    MissingFileError,
    RarenodeError,
)
from rarenode.hierarchy import Hierarchy, HierarchyLike, as_hierarchy

MOST_LEVELS, LONGEST_LEVEL = 1000, 60
"""A text column with more distinct values, or a longer one, is taken for free text and not for categories."""
MOSTLY = 0.5
"""A text column in which a larger share of values is distinct is no category either, if it has more than a few."""
FEW = 20
NUMBER = r"^[+-]?\d+([.,]\d+)?$"
"""What looks like a number, in digits of any script."""
THOUSANDS_AND_DECIMALS = r"^[+-]?\d{1,3}((,\d{3})+\.\d*|(\.\d{3})+,\d*)$"
LONGEST_SHOWN = 40
"""Characters of a cell that a message shows."""
MOST_PROBLEMS = 50
"""So many things that are wrong with a table are listed."""
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
    table = read_table(sources, partial(text_columns, options, expected))
    return make_dataset(table, options, hierarchy=hierarchy, expected=expected, labels=labels)


def read_labels(
    sources: Sequence[Path | str | Any], options: TableOptions, hierarchy: HierarchyLike | None = None
) -> tuple[Hierarchy, NDArray[np.bool_], NDArray[np.bool_] | None]:
    """The hierarchy, the labels (rows, nodes) and where they are known, without regard to features."""
    table = read_table(sources, partial(text_columns, options, None))
    options = _resolve(table, options, labels=True, is_new=True)
    tree, Y, known, *_ = _labels(table, _ids(table, options.id), options, hierarchy)
    return tree, Y, known


def text_columns(options: TableOptions, expected: Expected | None, names: list[str]) -> list[str]:
    """The columns that are never numbers: ids, labels, and what a model takes for categories."""
    labels = [name for pattern in options.labels for name in _match(names, pattern)]
    other = [options.id, options.partition, *image_columns(options, expected, names)]
    return [*labels, *(() if expected is None else expected.text), *(name for name in other if name is not None)]


def make_dataset(
    table: Table,
    options: TableOptions,
    *,
    hierarchy: HierarchyLike | None = None,
    expected: Expected | None = None,
    labels: bool = True,
) -> Dataset:
    """The dataset of a table; arguments are those of `read_tables`."""
    names = table.frame.columns
    is_images = options.has_images if expected is None else expected.images
    if is_images:
        require_no_features(options)
        image_column(options, names, table.name)  # that it is missing says more than that the ids are
    options = _resolve(table, options, labels, is_new=expected is None)
    images = None
    if is_images:
        images, options, table = images_of(table, options)
    wanted: list[str]
    if images is not None:
        wanted = []
    elif expected is None or expected.features is None:
        wanted = _feature_columns(table.name, names, options)
    else:
        wanted = list(expected.features)
    missing = [name for name in wanted if name not in names]
    if missing:
        raise DataError(f"{table.name} lacks columns that the model needs: {_lacking(missing, names, wanted)}")
    problems = _Problems(table)
    columns = []
    for name in wanted:
        with problems.collected():
            columns.append(_feature(table, name, None if expected is None else name in expected.text))
    ids = weights = None
    with problems.collected():
        weights = _weights(table, options.weight) if options.weight in names else None
    if hierarchy is None and expected is not None:
        hierarchy = expected.hierarchy
    known: NDArray[np.bool_] | None
    notes: tuple[str, ...] = ()
    with problems.collected():
        ids = _ids(table, options.id)
        if labels:
            tree, Y, known, options, notes = _labels(table, ids, options, hierarchy)
        elif isinstance(hierarchy, Hierarchy):
            tree = hierarchy
            Y = known = np.broadcast_to(np.False_, (len(table.frame), len(tree)))
        else:
            raise ArgumentError("rows without labels need the hierarchy of a model")
    problems.raise_any()
    if images is not None:
        notes = (*notes, *unused_columns(names, options))
    return Dataset(
        X=pl.DataFrame(columns) if images is None else images,
        Y=Y,
        known=known,
        hierarchy=tree,
        scored=np.ones(len(tree), dtype=np.bool_),
        feature_names=None if images is not None else tuple(wanted),
        ids=ids,
        sample_weight=weights,
        name=table.name,
        notes=notes,
        partition=_partition(table, options.partition) if labels and options.partition in names else None,
        # A file of labels belongs to these rows alone.
        reading=options if set(options.labels) <= set(names) else options.model_copy(update={"labels": ()}),
    )


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


# --- columns ---------------------------------------------------------------------------------------------------------


def _resolve(table: Table, options: TableOptions, labels: bool, is_new: bool) -> TableOptions:
    """The options with patterns replaced by columns; a column that is not there is an error.

    Rows for a model (``is_new`` is False) need neither weights nor the columns that are ignored.
    """
    path, names = table.name, table.frame.columns
    if labels and not options.labels:
        raise ArgumentError(
            f"say where the labels of {path} are (--labels): a column of labels, several columns of levels, or a file "
            f"with ids and labels. The columns are {_some(names)}"
            + ("" if table.files else ". Rows without labels can be predicted: Run.predict takes a data frame")
        )
    for what in ("id", "weight", "partition") if is_new else ("id",):
        name = getattr(options, what)
        if name is not None and name not in names and not (what == "id" and name == table.index_name):
            raise ArgumentError(f"{path} has no column {name!r} (--{what}); it has {_some(names)}")
    match = partial(_found, path, names) if is_new else partial(_match, names)
    update: dict[str, Any] = {"ignore": tuple(each for pattern in options.ignore for each in match(pattern))}
    if labels and not (len(options.labels) == 1 and is_label_file(options.labels[0], names)):
        update["labels"] = tuple(dict.fromkeys(each for one in options.labels for each in _found(path, names, one)))
    return options.model_copy(update=update)


def is_label_file(label: str, names: Sequence[str]) -> bool:
    """Whether a label option names a file rather than a column."""
    return label not in names and (Path(label).is_file() or suffix_of(label) in (".gaf", ".csv", ".tsv"))


def _lacking(missing: list[str], names: Sequence[str], wanted: Sequence[str]) -> str:
    """The first column that is not there, the one that it may be called now, and how many more there are."""
    spare = {name.casefold(): name for name in names if name not in wanted}
    near = difflib.get_close_matches(missing[0].casefold(), spare, n=1)
    hint = f" (is it {spare[near[0]]!r} here? then rename it)" if near else ""
    more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
    return f"{missing[0]!r}{hint}{more}"


def _match(names: Sequence[str], pattern: str) -> list[str]:
    return [pattern] if pattern in names else [name for name in names if fnmatchcase(name, pattern)]


def _found(path: str, names: Sequence[str], pattern: str) -> list[str]:
    found = _match(names, pattern)
    if not found:
        raise ArgumentError(f"{path} has no column {pattern!r}, and there is no such file; it has {_some(names)}")
    return found


def _feature_columns(name: str, names: Sequence[str], options: TableOptions) -> list[str]:
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
        raise ArgumentError(f"{name}: no column is left for features; it has {_some(names)}")
    return columns


def _feature(table: Table, name: str, is_text: bool | None) -> pl.Series:
    """A column as numbers, booleans or categories; ``is_text`` says which a model expects, None leaves it open."""
    column = table.frame[name]
    if column.dtype.is_temporal():
        problem = "contains dates or times; replace it by numbers, such as the day of the year"
        raise _refused(table, name, problem, is_text is None)
    if column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null):
        if is_text:
            return _as_categories(column)
        return _finite(table, column)
    if column.dtype != pl.String:
        problem = f"contains {column.dtype}; expected numbers, booleans or categories"
        raise _refused(table, name, problem, is_text is None)
    if is_text:
        return column
    numbers = _as_numbers(column)
    given = len(column) - column.null_count()
    alike = numbers.is_not_null() | column.str.contains(f"{NUMBER}|{THOUSANDS}|{THOUSANDS_AND_DECIMALS}")
    if is_text is False or int(alike.sum()) >= MOSTLY * given:
        _check_numbers(table, column, numbers, is_text)
        return _finite(table, numbers)
    if _looks_like_dates(column):
        problem = "contains dates; replace it by numbers, such as the day of the year"
        raise _refused(table, name, problem, is_new=True)
    _check_categories(table, column, given)
    return column


def _check_numbers(table: Table, text: pl.Series, numbers: pl.Series, is_text: bool | None) -> None:
    """Refuse cells that are no numbers, or may mean two."""
    both = text.str.contains(THOUSANDS_AND_DECIMALS).fill_null(False)
    if both.any():
        row = int(both.arg_max() or 0)
        problem = f"{_shown(text[row])} has thousands separators; remove them"
        raise table.error(row, f"column {text.name!r}: {problem}")
    commas = text.str.contains(",", literal=True).fill_null(False)
    if commas.any() and text.name not in table.decimal_commas:
        row = int(commas.arg_max() or 0)
        whole = text[row].replace(",", "")
        either = f"{whole} or {text[row].replace(',', '.')}" if text[row].count(",") == 1 else whole
        problem = f"the comma in {_shown(text[row])} may separate thousands or decimals; write {either}"
        raise table.error(row, f"column {text.name!r}: {problem}")
    wrong = numbers.is_null() & text.is_not_null()
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        advice = "leave a missing value blank"
        if is_text is None:
            advice += ", or begin every value with a letter if the column is a category"
        raise table.error(row, f"column {text.name!r}: expected a number, got {_shown(text[row])}; {advice}")


def _check_categories(table: Table, text: pl.Series, given: int) -> None:
    """Refuse an id or free text."""
    advice = "turn text into numbers, for example with scikit-learn's TfidfVectorizer"
    long = (text.str.len_chars() > LONGEST_LEVEL).fill_null(False)
    if long.any():
        row = int(long.arg_max() or 0)
        size = f"{_shown(text[row])} has {len(text[row]):,} characters, more than the {LONGEST_LEVEL} of a category"
        problem = f"{size}, so this is free text; {advice}, or leave the column out (--ignore {text.name!r})"
        raise table.error(row, f"column {text.name!r}: {problem}")
    levels = text.n_unique()
    if levels > MOST_LEVELS or (levels > FEW and levels > MOSTLY * given):
        example = _shown(text.drop_nulls()[0])
        if PurePath(text.drop_nulls()[0]).suffix.lower() in SUFFIXES:
            problem = f"names files such as {example}; if they are pictures to learn from, say where (--images)"
            raise _refused(table, text.name, problem, is_new=True)
        problem = f"has {levels:,} distinct values, such as {example}, so it is an id or free text and no category"
        raise _refused(table, text.name, f"{problem}; name it as the id (--id), or {advice}", is_new=True)


def _shown(value: str) -> str:
    return repr(value if len(value) <= LONGEST_SHOWN else f"{value[:LONGEST_SHOWN]}...")


def _finite(table: Table, numbers: pl.Series) -> pl.Series:
    """The numbers, of which none may be infinite or too large."""
    large = numbers.cast(pl.Float64).fill_nan(None).abs() > LARGEST
    if large.any():
        row = int(large.arg_max() or 0)
        problem = f"expected a number up to {LARGEST:.0e}, got {numbers[row]}; leave a missing value blank"
        raise table.error(row, f"column {numbers.name!r}: {problem}")
    return numbers


def _as_categories(numbers: pl.Series) -> pl.Series:
    """Numbers as text: whole ones without a decimal point, as the same column looks where it is whole."""
    if numbers.dtype.is_float():
        values = numbers.fill_nan(None).to_list()
        text = [None if value is None else number_as_text(value) for value in values]
        return pl.Series(numbers.name, text, dtype=pl.String)
    return numbers.cast(pl.String)


def _as_numbers(text: pl.Series) -> pl.Series:
    """Numbers, null where a text is none; true and false are 1 and 0.

    A comma may be the decimal point, if no cell has a point; `_check_numbers` refuses those that may not.
    """
    words = text.str.to_lowercase()
    if words.is_in(["true", "false"]).all() and words.null_count() < len(words):
        return (words == "true").cast(pl.Float64)
    if text.str.contains(",", literal=True).any() and not text.str.contains(".", literal=True).any():
        text = text.str.replace(",", ".", literal=True)
    return text.cast(pl.Float64, strict=False)


def _looks_like_dates(text: pl.Series) -> bool:
    pattern = r"^\d{4}-\d{1,2}-\d{1,2}|^\d{1,2}[./]\d{1,2}[./]\d{2,4}|^\d{1,2}:\d{2}(:\d{2})?$"
    known = text.drop_nulls()
    return int(known.str.contains(pattern).sum()) > MOSTLY * len(known)


def _refused(table: Table, name: str, problem: str, is_new: bool) -> DataError:
    """An error about a column, which may be left out unless a model needs it."""
    advice = f"; or leave it out (--ignore {name!r})" if is_new else ""
    return DataError(f"{table.name}: column {name!r} {problem}{advice}")


def _ids(table: Table, column: str | None) -> tuple[str, ...] | None:
    if column is None or column not in table.frame.columns:  # then it is the name of the index
        if table.ids is not None and len(set(table.ids)) < len(table.ids):
            twice = Counter(table.ids).most_common(1)[0][0]
            raise DataError(f"{table.name}: the id {twice!r} in its index appears twice; reset_index makes new ones")
        return table.ids
    values = _as_text(table, column, "ids")
    if values.null_count():
        row = int(values.is_null().arg_max() or 0)
        raise table.error(row, f"the id in column {column!r} is missing; every row needs one")
    if values.n_unique() < len(values):
        row = int((~values.is_first_distinct()).arg_max() or 0)
        raise table.error(row, f"the id {values[row][:80]!r} in column {column!r} appears twice; ids must be unique")
    return tuple(values.to_list())


def _as_text(table: Table, column: str, what: str) -> pl.Series:
    """A column of ids or labels as text."""
    values = table.frame[column]
    if values.dtype.is_nested() or values.dtype == pl.Object:
        raise DataError(f"{table.name}: column {column!r} contains {values.dtype}; expected {what}, one in each row")
    try:
        return _as_categories(values) if values.dtype.is_float() else values.cast(pl.String)
    except pl.exceptions.PolarsError:
        raise DataError(f"{table.name}: column {column!r} contains bytes that are not UTF-8 text") from None


def _weights(table: Table, column: str | None) -> NDArray[np.float32] | None:
    if column is None:
        return None
    values = _feature(table, column, False).cast(pl.Float64)
    wrong = values.is_null() | values.is_nan() | (values < 0)
    if wrong.any():
        row = int(wrong.arg_max() or 0)
        raise table.error(row, f"the weight in column {column!r} must be a number of at least 0, got {values[row]}")
    return values.to_numpy().astype(np.float32)


def _partition(table: Table, column: str | None) -> NDArray[np.str_]:
    """The part of each row, by the name that our splits have."""
    values = table.frame[str(column)].cast(pl.String).str.to_lowercase().to_list()
    parts = [PARTS.get(str(value)) for value in values]
    if None in parts:
        row = parts.index(None)
        given = "a blank" if values[row] is None else repr(values[row][:LONGEST_SHOWN])
        raise table.error(row, f"column {column!r}: expected train, valid or test, got {given}")
    return np.array(parts, dtype=np.str_)


# --- labels ----------------------------------------------------------------------------------------------------------


def _labels(
    table: Table, ids: tuple[str, ...] | None, options: TableOptions, hierarchy: HierarchyLike | None
) -> tuple[Hierarchy, NDArray[np.bool_], NDArray[np.bool_] | None, TableOptions, tuple[str, ...]]:
    stated = _stated(table, ids, options)
    if hierarchy is not None:
        tree = as_hierarchy(
            hierarchy,
            separator=options.path_separator,
            relations=options.relations,
            namespaces=options.namespaces,
        )
    elif not stated.labels:
        raise DataError(f"{table.name}: no row has a label in {_some(options.labels)}")
    else:
        tree, separator = derive_hierarchy(stated, options.path_separator)
        options = options.model_copy(update={"path_separator": separator})
    Y, known = to_matrix(stated, tree, options.path_separator, below=options.unknown == "below")
    return tree, Y, known, options, stated.notes


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
    table = replace(table, frame=table.frame.with_columns(_as_text(table, name, "labels") for name in columns))
    if len(columns) == 1:
        return from_sets(table, columns[0], options.separator)
    return from_indicators(table, columns) if are_indicators(table, columns) else from_levels(table, columns)


def _is_list_of_labels(kind: pl.DataType) -> bool:
    return isinstance(kind, pl.List | pl.Array) and not (kind.inner.is_nested() or kind.inner in (pl.Binary, pl.Object))


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:8])
    return shown if len(names) <= 8 else f"{shown} and {counted(len(names) - 8, 'more column')}"
