"""How the commands write: results to the standard output, progress and errors to the standard error."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

from rarenode._io.text import printable

WIDTH_OF_FILES = 120
"""A file or a pipe has no width of its own, and rich's 80 columns would cut tables."""


def print_table(table: Table) -> None:
    """Print a table as wide as the terminal."""
    Console(width=None if sys.stdout.isatty() else WIDTH_OF_FILES, highlight=False, markup=False).print(table)


def print_progress(line: str) -> None:
    """Say what is being done."""
    print(printable(line), file=sys.stderr, flush=True)


def print_error(error: Exception) -> None:
    """Print an error as one line. What it quotes is untrusted, so nothing in it may steer the terminal."""
    print(f"rarenode: {printable(error)}", file=sys.stderr)
