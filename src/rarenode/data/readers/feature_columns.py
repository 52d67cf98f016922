"""A column of a table as a feature: numbers, booleans or categories; dates, ids and free text are refused."""

from __future__ import annotations

from pathlib import PurePath

import polars as pl

from rarenode.data.decoding import SUFFIXES
from rarenode.data.features import LARGEST, number_as_text
from rarenode.data.readers.frames import THOUSANDS, Table
from rarenode.errors import DataError

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


def feature_of(table: Table, name: str, is_text: bool | None) -> pl.Series:
    """A column as numbers, booleans or categories; ``is_text`` says which a model expects, None leaves it open."""
    column = table.frame[name]
    if column.dtype.is_temporal():
        problem = "contains dates or times; replace it by numbers, such as the day of the year"
        raise _refused(table, name, problem, is_text is None)
    if column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null):
        if is_text:
            return numbers_as_text(column)
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


def numbers_as_text(numbers: pl.Series) -> pl.Series:
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
