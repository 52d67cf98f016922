"""Programs for those who work on rarenode; `make help` lists them."""

from __future__ import annotations

import argparse
import math


def duration(text: str) -> float:
    """Seconds on a command line: without any, a tool would find nothing wrong because it did nothing.

    Raises:
        ArgumentTypeError: it is not a positive number.
    """
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"it must be a number of seconds above 0, got {text!r}")
    return seconds
