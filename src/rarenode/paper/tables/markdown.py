"""Markdown tables of names that anyone may have written: escaped, so that none ends a cell or becomes markup."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rarenode._io.text import counted, printable
from rarenode.paper.as_published import REBUILT

REBUILT_SIGN, NOTHING = "†", "-"
MARKUP = re.compile(r"[`*|\[\]~$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
"""What Markdown may interpret. An underscore within a word is plain text."""


def escape(text: str) -> str:
    """Text that a Markdown cell shows as it is, on one line.

    >>> escape("a|b <i>")
    'a\\\\|b &lt;i>'
    """
    plain = printable(text)
    plain = plain.replace("&", "&amp;").replace("<", "&lt;").replace("\\", "&#92;")
    return MARKUP.sub(lambda found: f"\\{found[0]}", plain)


def line(cells: Iterable[str]) -> str:
    """A line of a Markdown table.

    >>> line(["a", "b"])
    '| a | b |'
    """
    return f"| {' | '.join(cells)} |"


def dataset_name(dataset: str) -> str:
    """A dataset, marked if its training file is a reconstruction."""
    return f"{escape(dataset)} {REBUILT_SIGN}" if dataset.endswith(REBUILT) else escape(dataset)


def recorded(trainings: int, missing: int, what: str = "record") -> str:
    """How many trainings have a record.

    >>> recorded(9, 0), recorded(9, 1), recorded(9, 4)
    ('All 9 trainings have a record', '1 of 9 trainings has no record yet', '4 of 9 trainings have no record yet')
    """
    if not missing:
        return f"All {trainings} trainings have a record" if trainings != 1 else "The only training has a record"
    return f"{missing} of {counted(trainings, 'training')} {'has' if missing == 1 else 'have'} no {what} yet"


def times(value: float | None) -> str:
    """A ratio.

    >>> times(1.3), times(None)
    ('1.30', '-')
    """
    return NOTHING if value is None else f"{value:.2f}"
