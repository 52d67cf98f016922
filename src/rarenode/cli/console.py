"""How the commands write: results to the standard output, everything else to the standard error."""

from __future__ import annotations

import sys

from rich.console import Console

WIDE = 10_000
"""A file or a pipe has no width; without this rich would cut tables there at 80 columns."""


def results() -> Console:
    """Return the console for what was asked for."""
    return Console(highlight=False, markup=False, soft_wrap=True, width=None if sys.stdout.isatty() else WIDE)


def remarks() -> Console:
    """Return the console for progress."""
    return Console(highlight=False, markup=False, soft_wrap=True, stderr=True)


def print_error(error: Exception) -> None:
    """Print an error as one line. What it quotes is untrusted, so nothing in it may steer the terminal."""
    text = "".join(character if character.isprintable() else " " for character in str(error))
    print(f"rarenode: {text}", file=sys.stderr)
