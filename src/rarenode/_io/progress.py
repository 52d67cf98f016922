"""`Progress`: how far long work has come. A bar in a terminal, a line now and then elsewhere, or nothing.

It is updated after every small step, thousands of times a second, so it returns at once unless it is time to show
something.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from time import monotonic
from typing import Any, ClassVar, TextIO

from rarenode._io.text import printable


class Progress:
    """The display of one task at a time.

    Args:
        quiet: show nothing.
        stream: where to show it; None is the standard error.
        seconds_between: in a file or a pipe, seconds between two lines.
    """

    SECONDS_BETWEEN_FRAMES = 0.1
    shown: ClassVar[Progress | None] = None
    """The one with a task now, unless it is quiet: where code that knows of no progress can say something."""

    def __init__(self, quiet: bool = False, stream: TextIO | None = None, seconds_between: float = 10.0) -> None:
        self.quiet = quiet
        self.stream = sys.stderr if stream is None else stream
        self.seconds_between = seconds_between
        self._bar: Any = None
        self._total = self._first = self._done = self._least = 0.0
        self._began = self._shown = monotonic()

    def start(self, title: str, total: float, done: float = 0, least: float = 0) -> None:
        """Begin a task; the title is shown beside the bar.

        Args:
            title: of the task.
            total: its units.
            done: units that are done already.
            least: units to be done before the time left is estimated, where the first ones take longer.
        """
        self.stop()
        self._least = least
        self._total, self._first, self._done = total, done, done
        self._began = self._shown = monotonic()
        if self.quiet:
            return
        Progress.shown = self
        if not self.stream.isatty():
            return
        from rich.console import Console  # noqa: PLC0415 (rich takes a tenth of a second to load)
        from rich.progress import BarColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415
        from rich.progress import Progress as Bar  # noqa: PLC0415

        self._bar = Bar(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TextColumn("{task.fields[text]}", markup=False),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}", markup=False),
            console=Console(file=self.stream, highlight=False, markup=False),
            transient=True,
        )
        self._bar.add_task(printable(title), total=total, completed=done, text="", left="")
        self._bar.start()

    def update(self, done: float, text: str, unit: str = "", *, at_once: bool = False) -> None:
        """Show that ``done`` units are done, with a text about where the task is, if it is time to.

        With a ``unit`` such as ``steps/s`` the rate is shown too.
        """
        self._done = done
        if unit and self._done > self._first:
            text = f"{text}, {self.rate:,.{0 if self.rate >= 10 else 1}f} {unit}"
        pause = self.seconds_between if self._bar is None else self.SECONDS_BETWEEN_FRAMES
        if self.quiet or (not at_once and monotonic() - self._shown < pause):
            return
        self._shown = monotonic()
        if self._bar is None:
            self._print(", ".join(part for part in (text, self.left) if part))
        else:
            self._bar.update(self._bar.task_ids[0], completed=done, text=printable(text), left=self.left)

    def restart_clock(self, done: float) -> None:
        """Count rate and time left from here: what came before, such as compilation, says nothing about the rest."""
        self._first = self._done = done
        self._began = self._shown = monotonic()

    @property
    def is_due(self) -> bool:
        """Whether `update` would show something now; building its text may be expensive."""
        pause = self.seconds_between if self._bar is None else self.SECONDS_BETWEEN_FRAMES
        return not self.quiet and monotonic() - self._shown >= pause

    def line(self, text: str) -> None:
        """Print a line that stays."""
        if self.quiet:
            return
        if self._bar is None:
            self._print(text)
        else:
            self._bar.console.print(printable(text))

    def stop(self) -> None:
        """End the task, whether it is done or not."""
        Progress.shown = None
        if self._bar is not None:
            self._bar.stop()
            self._bar = None

    @property
    def rate(self) -> float:
        """Units per second since the task began here."""
        return (self._done - self._first) / max(monotonic() - self._began, 1e-9)

    @property
    def left(self) -> str:
        """The time that remains at this rate, such as ``0:01:30 left``; empty as long as too little is done to say."""
        done = self._done - self._first
        if done <= 0 or done < self._least or self._done >= self._total:
            return ""
        return f"{timedelta(seconds=round((self._total - self._done) / self.rate))} left"

    def _print(self, text: str) -> None:
        print(printable(text), file=self.stream, flush=True)
