"""Displays of a training that is under way: for a terminal, for a file or a pipe, and none.

The loop tells a `Watch` what happens; a watch only looks. It is told of every batch, thousands in a second, so displays
return at once unless it is time to show something.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from time import monotonic
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from rarenode.training.history import EpochRecord


@dataclass(frozen=True)
class Outlook:
    """What a training is about to do."""

    engine: str
    """The engine that computes."""
    epochs: int
    batches: int
    """In each epoch."""
    done: int
    """Steps that were taken before, when a training is resumed."""
    title: str = ""
    """Which of several trainings it is."""

    @property
    def steps(self) -> int:
        """Steps from first to last."""
        return self.epochs * self.batches


class Watch(Protocol):
    """Is told what a training does. Epochs and batches count from 1."""

    def started(self, outlook: Outlook) -> None:
        """Training begins."""

    def batch(self, epoch: int, batch: int, loss: float) -> None:
        """A step was taken."""

    def epoch(self, record: EpochRecord) -> None:
        """An epoch is over."""

    def finished(self) -> None:
        """Training is over, whether it went well or not."""

    def growing(self, trees: int) -> None:
        """The epochs are over, and now a forest grows."""


class Silent:
    """Shows nothing."""

    def started(self, outlook: Outlook) -> None:
        """See `Watch`."""

    def batch(self, epoch: int, batch: int, loss: float) -> None:
        """See `Watch`."""

    def epoch(self, record: EpochRecord) -> None:
        """See `Watch`."""

    def finished(self) -> None:
        """See `Watch`."""

    def growing(self, trees: int) -> None:
        """See `Watch`."""


class PlainProgress:
    """A line now and then, for files and pipes."""

    def __init__(self, stream: TextIO | None = None, seconds_between: float = 10.0) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.seconds_between = seconds_between

    def started(self, outlook: Outlook) -> None:
        """See `Watch`."""
        self.outlook = outlook
        self.pace = _Pace(outlook.done)
        self.last_line = monotonic()
        self.untold: EpochRecord | None = None
        resumed = f", going on after {outlook.done:,} of them" if outlook.done else ""
        self._print(
            f"{_heading(outlook)}training {outlook.epochs} epochs of {outlook.batches} batches with the "
            f"{outlook.engine} engine: {outlook.steps:,} steps{resumed}"
        )

    def batch(self, epoch: int, batch: int, loss: float) -> None:
        """See `Watch`."""
        done = (epoch - 1) * self.outlook.batches + batch
        if self.pace.is_first(done):
            self.last_line = monotonic()
        elif monotonic() - self.last_line >= self.seconds_between:
            rate = self.pace.rate(done)
            left = _duration((self.outlook.steps - done) / rate)
            self._line(
                f"epoch {epoch}/{self.outlook.epochs}, batch {batch}/{self.outlook.batches}",
                loss,
                rate,
                f", {left} left",
            )

    def epoch(self, record: EpochRecord) -> None:
        """See `Watch`."""
        self.untold = record
        if monotonic() - self.last_line >= self.seconds_between:
            self._tell()

    def finished(self) -> None:
        """See `Watch`."""
        self._tell()

    def growing(self, trees: int) -> None:
        """See `Watch`."""
        self._tell()
        self._print(f"growing {trees} trees")

    def _tell(self) -> None:
        record, self.untold = self.untold, None
        if record is not None:
            valid = "" if record.valid is None else f", validation AP {record.valid.ap:.4f}"
            self._line(f"epoch {record.epoch}/{self.outlook.epochs}", record.loss, record.steps_per_second, valid)

    def _line(self, place: str, loss: float, rate: float, more: str) -> None:
        self.last_line = monotonic()
        self._print(f"{place}: loss {loss:.5g}, {rate:,.0f} steps/s{more}")

    def _print(self, line: str) -> None:
        print(line, file=self.stream, flush=True)


class RichProgress:
    """A bar with loss, steps in a second and the time left, for a terminal."""

    SECONDS_BETWEEN = 0.1

    def __init__(self, console: Console | None = None) -> None:
        self.console = Console(stderr=True) if console is None else console

    def started(self, outlook: Outlook) -> None:
        """See `Watch`."""
        self.outlook = outlook
        self.pace = _Pace(outlook.done)
        self.last_update = 0.0
        # Each training has a display of its own: one that is started again would draw over its last bar.
        self.display = Progress(
            TextColumn("{task.description}epoch {task.fields[epoch]}/{task.fields[epochs]}", markup=False),
            BarColumn(),
            TextColumn("loss {task.fields[loss]}"),
            TextColumn("{task.fields[rate]} steps/s"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=self.console,
        )
        self.task = self.display.add_task(
            _heading(outlook),
            total=outlook.steps,
            completed=outlook.done,
            epoch=1,
            epochs=outlook.epochs,
            loss="-",
            rate="-",
        )
        self.display.start()

    def batch(self, epoch: int, batch: int, loss: float) -> None:
        """See `Watch`."""
        done = (epoch - 1) * self.outlook.batches + batch
        first = self.pace.is_first(done)
        if monotonic() - self.last_update >= self.SECONDS_BETWEEN or done == self.outlook.steps:
            self.last_update = monotonic()
            rate = "-" if first else f"{self.pace.rate(done):,.0f}"
            self.display.update(self.task, completed=done, epoch=epoch, loss=f"{loss:.5g}", rate=rate)

    def epoch(self, record: EpochRecord) -> None:
        """See `Watch`."""

    def finished(self) -> None:
        """See `Watch`."""
        self.display.stop()

    def growing(self, trees: int) -> None:
        """See `Watch`."""
        self.display.stop()
        self.console.print(f"growing {trees} trees", highlight=False)


def choose_progress(quiet: bool = False) -> Watch:
    """The display for the standard error: a bar in a terminal, lines elsewhere, or nothing."""
    if quiet:
        return Silent()
    return RichProgress() if sys.stderr.isatty() else PlainProgress()


class _Pace:
    """Steps in a second since this process took its first."""

    def __init__(self, done: int) -> None:
        self.first = done
        self.began = monotonic()

    def is_first(self, done: int) -> bool:
        """Whether this is the first step here. It may have waited for a compiler, so the clock starts after it."""
        first = done == self.first + 1
        if first:
            self.began = monotonic()
        return first

    def rate(self, done: int) -> float:
        return max(done - self.first - 1, 1) / max(monotonic() - self.began, 1e-9)


def _heading(outlook: Outlook) -> str:
    return f"{outlook.title}: " if outlook.title else ""


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}"
