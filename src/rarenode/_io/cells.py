"""Cells of text tables that no spreadsheet takes for a formula.

A spreadsheet computes what begins with =, +, - or @, also after a tab or line break, and a formula may open other
programs or send data away. Names of nodes, rows and columns come from anywhere. So in CSV and TSV files such a cell
gets an apostrophe in front, which spreadsheets take as a sign for text; numbers are left as they are. Reading removes
the apostrophe: `unguarded` is the inverse of `guarded` for every text.
"""

from __future__ import annotations

import re
from typing import Any

_SIGNS = "=+-@\t\r\n＝＋－＠"  # noqa: RUF001 (spreadsheets take the wide signs for the narrow ones)
_NUMBER = re.compile(r"[+-]?(\d+([.,]\d*)?|[.,]\d+)([eE][+-]?\d+)?")


def guarded(text: str) -> str:
    """The text, with an apostrophe in front if a spreadsheet would take it for a formula.

    >>> guarded("=1+1"), guarded("-0.5"), guarded("Corals"), guarded("'=1+1")
    ("'=1+1", '-0.5', 'Corals', "''=1+1")
    """
    return f"'{text}" if _is_formula(text) else text


def unguarded(text: str) -> str:
    """The text that `guarded` was given.

    >>> unguarded("'=1+1"), unguarded("'Corals'"), unguarded("'-0.5")
    ('=1+1', "'Corals'", "'-0.5")
    """
    return text[1:] if text.startswith("'") and _is_formula(text[1:]) else text


def has_guards(text: str, delimiter: str) -> bool:
    """Whether the text of a table without quotes may have guarded cells."""
    return "'" in text and re.search(rf"(^|[\n\r{re.escape(delimiter)}])\s*'+[{re.escape(_SIGNS)}]", text) is not None


def guarded_frame(frame: Any) -> Any:
    """A polars data frame with all text `guarded`, also the names of its columns."""
    import polars as pl  # noqa: PLC0415 (it takes a tenth of a second to load)

    columns = {guarded(name): frame[name] for name in frame.columns}
    for name, column in columns.items():
        if column.dtype in (pl.String, pl.Enum, pl.Categorical):
            texts = column.unique().drop_nulls().cast(pl.String).to_list()
            changed = {text: guarded(text) for text in texts if _is_formula(text)}
            if changed:
                columns[name] = column.cast(pl.String).replace(changed)
    return pl.DataFrame(columns)


def _is_formula(text: str) -> bool:
    shown = text.lstrip("'")
    return bool(shown) and shown[0] in _SIGNS and _NUMBER.fullmatch(shown) is None
