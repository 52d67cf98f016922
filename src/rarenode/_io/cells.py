"""Cells of text tables that no spreadsheet takes for a formula.

A spreadsheet computes what begins with =, +, - or @, also after a tab or line break, and a formula may open other
programs or send data away. Names of nodes, rows and columns come from anywhere. So in CSV and TSV files such a cell
gets an apostrophe in front, which spreadsheets take as a sign for text; numbers are left as they are. A spreadsheet
may also split cells at another delimiter than the file's, where quotes do not keep them together. So what begins after
a delimiter within a cell is treated like the cell. Reading removes the apostrophes: `unguarded` is the inverse of
`guarded` for every text.
"""

from __future__ import annotations

import re
from typing import Any

_SIGNS = r"=+\-@＝＋－＠"  # noqa: RUF001 (spreadsheets take the wide signs for the narrow ones)
_DELIMITERS = ";,|\t\r\n"
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|[.,]\d+)(?:[eE][+-]?\d+)?"
_NUMBERS = rf"{_NUMBER}(?:[{_DELIMITERS}]{_NUMBER}){{0,20}}"
"""One or several numbers; a longer list is text, or finding its end for each of its numbers would take too long."""
_BLANK = r"(?='*[\t\r\n])"
_FORMULA = rf"(?=['\"]*[{_SIGNS}])(?!['\"]*{_NUMBERS}\Z)"
_START = rf"(?<![^{_DELIMITERS}])"
"""Of the text, or after a delimiter."""
_UNGUARDED = re.compile(rf"\A{_BLANK}|{_START}{_FORMULA}")
_GUARD = re.compile(rf"\A'{_BLANK}|{_START}'{_FORMULA}")
_MAY_BE_FORMULA = rf"^'*[\t\r\n]|(^|[{_DELIMITERS}])['\"]*[{_SIGNS}]"
"""As `_UNGUARDED`, but for numbers, without what polars has not: it finds few texts among many."""


def guarded(text: str) -> str:
    """The text, with an apostrophe in front of all that a spreadsheet would take for a formula.

    >>> guarded("=1+1"), guarded("-0.5"), guarded("Corals"), guarded("'=1+1"), guarded("Corals;=1+1")
    ("'=1+1", '-0.5', 'Corals', "''=1+1", "Corals;'=1+1")
    """
    return _UNGUARDED.sub("'", text)


def unguarded(text: str) -> str:
    """The text that `guarded` was given.

    >>> unguarded("'=1+1"), unguarded("'Corals'"), unguarded("'-0.5"), unguarded("Corals;'=1+1")
    ('=1+1', "'Corals'", "'-0.5", 'Corals;=1+1')
    """
    return _GUARD.sub("", text) if "'" in text else text


def has_guards(text: str, delimiter: str) -> bool:
    """Whether the text of a table without quotes may have guarded cells."""
    starts = rf"(^|[{_DELIMITERS}{re.escape(delimiter)}])\s*'+[{_SIGNS}\t\r\n]"
    return "'" in text and re.search(starts, text) is not None


def guarded_frame(frame: Any) -> Any:
    """A polars data frame with all text `guarded`, also the names of its columns."""
    import polars as pl  # noqa: PLC0415 (it takes a tenth of a second to load)

    columns = {guarded(name): frame[name] for name in frame.columns}
    for name, column in columns.items():
        if column.dtype in (pl.String, pl.Enum, pl.Categorical):
            texts = column.unique().drop_nulls().cast(pl.String)
            may_be = texts.filter(texts.str.contains(_MAY_BE_FORMULA)).to_list()
            changed = {text: shown for text in may_be if (shown := guarded(text)) != text}
            if changed:
                columns[name] = column.cast(pl.String).replace(changed)
    return pl.DataFrame(columns)
