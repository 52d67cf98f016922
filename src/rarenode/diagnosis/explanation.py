"""Why one node is missed, in a sentence that holds its evidence.

Names are anybody's text: what cannot be shown becomes a blank, and a long one is cut.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from types import MappingProxyType

from rarenode._io.text import printable
from rarenode.diagnosis.reasons import Reason

MOST_CHARACTERS = 80
DIGITS = 3
ALL_DIGITS = 17
"""So many tell every two floats apart."""


@dataclass(frozen=True)
class Evidence:
    """What is known of one missed node; see `NodeDiagnosis` for what each figure is."""

    rows: int
    """Rows that carry it."""
    all_rows: int
    threshold: float
    drops_orphans: bool
    best_rank: int
    auc: float
    cut_prob: float
    cut_next: float
    cut_rank: int
    cut_hits: int
    blocked_rows: int
    blocked_by: str
    voice_rows: int
    voice_all_rows: int
    confused_rows: int
    confused_with: str


def explain(reason: Reason, evidence: Evidence) -> str:
    """The sentence for a reason that applies."""
    return _SENTENCES[reason](evidence)


def short_name(name: str) -> str:
    """A name in quotes, safe to show, of at most `MOST_CHARACTERS` characters within them.

    >>> short_name("sea" + chr(10) + "star")
    "'sea star'"
    """
    cut = name if len(name) <= MOST_CHARACTERS else name[: MOST_CHARACTERS - 1] + "…"
    return f"'{printable(cut)}'"


def ordinal(number: int) -> str:
    """A place in a ranking.

    >>> [ordinal(n) for n in (1, 2, 3, 11, 1281)]
    ['1st', '2nd', '3rd', '11th', '1,281st']
    """
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


# --- one sentence for each reason ----------------------------------------------------------------------------------


def _no_training_rows(e: Evidence) -> str:
    return f"No training rows: {_rows(e.rows)} here {_carry(e.rows)} it, and none that the model was trained on."


def _blocked(e: Evidence) -> str:
    return (
        f"Blocked by {short_name(e.blocked_by)}: in {_share(e.blocked_rows, e.rows)} it reaches its threshold of "
        f"{e.threshold:.{DIGITS}g} and is dropped, most often because {short_name(e.blocked_by)} is below its own."
    )


def _hidden(e: Evidence) -> str:
    ranked = f"one that carries it {ordinal(e.cut_rank)}"
    if e.cut_hits > 1:
        ranked = f"{e.cut_hits:,} that carry it among the first {e.cut_rank:,}"
    others = e.cut_rank - e.cut_hits
    also = f"{_rows(others)} that {_do(others)} not carry it" if others else "no other row"
    where = ", as far as its ancestors are decided there" if e.drops_orphans else ""
    return (
        f"Hidden by the threshold: of {_rows(e.all_rows)} the model ranks {ranked}; a threshold of "
        f"{_between(e.cut_next, e.cut_prob)}{_instead(e)} finds "
        f"{_share(e.cut_hits, e.rows)}, and {also}{where}."
    )


def _disagree(e: Evidence) -> str:
    return (
        f"The members disagree: in {_share(e.voice_rows, e.rows)} one of them, or the forest, reaches the threshold of "
        f"{e.threshold:.{DIGITS}g} by itself, and in {e.voice_all_rows - e.voice_rows:,} of the others; together they "
        "do not."
    )


def _confused(e: Evidence) -> str:
    where = "the only row that carries the node" if e.rows == 1 else f"{e.confused_rows:,} of {e.rows:,} rows"
    return f"Confused with {short_name(e.confused_with)}: it is decided instead in {where}."


def _not_told_apart(e: Evidence) -> str:
    best = "its only row" if e.rows == 1 else f"the best of its {_rows(e.rows)}"
    place = f"Not told apart: {best} comes {ordinal(e.best_rank)} of {e.all_rows:,}"
    if math.isnan(e.auc):
        return f"{place}, and there is no other row to tell them from."
    which = "it stands" if e.rows == 1 else "they stand"
    return f"{place}, and {which} above {100 * e.auc:.0f} % of the others; a random order may do as well."


_SENTENCES: Mapping[Reason, Callable[[Evidence], str]] = MappingProxyType(
    {
        "no_training_rows": _no_training_rows,
        "blocked_by_ancestor": _blocked,
        "hidden_by_threshold": _hidden,
        "members_disagree": _disagree,
        "confused_with_sibling": _confused,
        "not_told_apart": _not_told_apart,
    }
)


# --- words and numbers ---------------------------------------------------------------------------------------------


def _rows(count: int) -> str:
    return f"{count:,} row" if count == 1 else f"{count:,} rows"


def _carry(count: int) -> str:
    return "carries" if count == 1 else "carry"


def _do(count: int) -> str:
    return "does" if count == 1 else "do"


def _share(some: int, rows: int) -> str:
    return "its only row" if rows == 1 else f"{some:,} of its {rows:,} rows"


def _between(below: float, highest: float) -> str:
    """The shortest number above ``below`` and at most ``highest``: as a threshold it does what ``highest`` does."""
    for digits in range(2, ALL_DIGITS):
        number = float(Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(highest))
        if number > below:
            return f"{number:.{digits}g}"
    return repr(highest)


def _instead(e: Evidence) -> str:
    """The threshold as it is, in as few digits as still show that it is above the cut."""
    if math.isinf(e.threshold):
        return ", where now it is never decided,"
    texts = (f"{e.threshold:.{digits}g}" for digits in range(DIGITS, ALL_DIGITS))
    return f" instead of {next((text for text in texts if float(text) > e.cut_prob), repr(e.threshold))}"
