"""Output of the commands: results on standard output, progress and errors on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rarenode._io.text import printable
from rarenode.data.catalogue import CatalogueFile

if TYPE_CHECKING:
    from rarenode.data.fetch import DownloadProgress

WIDTH_OF_FILES = 120
"""Used when the output is a file or a pipe; the default of rich, 80 columns, would cut tables."""
LONGEST_ERROR = 4000
"""Characters of an error that are shown."""


def print_table(table: Table) -> None:
    """Print a table as wide as the terminal."""
    Console(width=None if sys.stdout.isatty() else WIDTH_OF_FILES, highlight=False, markup=False).print(table)


def print_styled(line: Text) -> None:
    """Print a line with colours, where the output has any."""
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.print(line)


def print_progress(line: str) -> None:
    """Print a line about what is being done."""
    print(printable(line), file=sys.stderr, flush=True)


def print_error(error: Exception | str) -> None:
    """Print an error as one line, without control characters and not too long: it may quote untrusted text."""
    text = printable(error)
    shown = text if len(text) <= LONGEST_ERROR else f"{text[:LONGEST_ERROR]}... ({len(text):,} characters)"
    print(f"rarenode: {shown}", file=sys.stderr)


def print_warning(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as one line; a replacement for `warnings.showwarning`, which also prints the line of code."""
    print(f"rarenode: warning: {printable(message)}", file=sys.stderr)


@contextmanager
def download_progress(quiet: bool) -> Iterator[DownloadProgress | None]:
    """Show the progress of downloads: bars on a terminal, otherwise one line per file; nothing if ``quiet``."""
    from rich.filesize import decimal  # noqa: PLC0415 (only downloads need these)
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn  # noqa: PLC0415

    console = Console(stderr=True)
    if quiet:
        yield None
    elif console.is_terminal:
        columns = TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn()
        with Progress(*columns, console=console, transient=True) as bars:
            tasks: dict[CatalogueFile, TaskID] = {}

            def move_bar(file: CatalogueFile, done: int, total: int) -> None:
                if file not in tasks:
                    tasks[file] = bars.add_task(file.path.name, total=total)
                bars.update(tasks[file], completed=done)

            yield move_bar
    else:
        started: set[CatalogueFile] = set()

        def print_line(file: CatalogueFile, _done: int, total: int) -> None:
            if file not in started:
                started.add(file)
                print_progress(f"fetching {file.path.name}, {decimal(total)}")

        yield print_line
