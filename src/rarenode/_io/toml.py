"""TOML within bounds: what `tomllib` would take very much memory for, or too deep a recursion, is no TOML to us."""

from __future__ import annotations

import tomllib
from typing import Any

MOST_DOTS = 1000
"""In one line. `tomllib` takes time and memory by the square of the number of steps in a name such as ``a.b.c``."""


def parse_toml(text: str) -> dict[str, Any]:
    """The values of a TOML document.

    Raises:
        ValueError: it is none, or its values are nested too deeply.
    """
    number = next((number for number, line in enumerate(text.split("\n"), 1) if line.count(".") > MOST_DOTS), None)
    if number is not None:
        raise ValueError(f"line {number} has more than {MOST_DOTS:,} dots")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("its values are nested too deeply") from None
