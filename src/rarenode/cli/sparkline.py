"""A row of small bars, one character each."""

from __future__ import annotations

from collections.abc import Sequence

BLOCKS = "▁▂▃▄▅▆▇█"
PLAIN = ".:-=+*#@"


def sparkline(counts: Sequence[int], encoding: str = "utf-8") -> str:
    """Bars as high as the counts, the highest full; a blank where there is nothing, and never where there is something.

    >>> sparkline([8, 0, 1, 4])
    '█ ▁▄'
    >>> sparkline([8, 0, 1, 4], "ascii")
    '@ .='
    """
    most = max(counts, default=0)
    bars = _bars(encoding)
    return "".join(bars[-(-count * len(bars) // most) - 1] if count else " " for count in counts)


def _bars(encoding: str) -> str:
    try:
        BLOCKS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return PLAIN
    return BLOCKS
