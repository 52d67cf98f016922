"""Displays of a grid that is under way: for a terminal, for a file or a pipe, and none."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import timedelta
from time import monotonic
from typing import TextIO

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from rarenode._io.text import printable
from rarenode.paper.grid import Task
from rarenode.paper.record import Record
from rarenode.paper.runner import AnyRecord, GridWatch


class PlainGrid:
    """A line for each training that is done."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = sys.stderr if stream is None else stream

    def started(self, missing: Sequence[Task], done: int) -> None:
        """See `GridWatch`."""
        self.pace = _Pace(missing)
        there = f"; {done} are there already" if done else ""
        self._print(f"{len(missing)} trainings to do{there}")

    def began(self, task: Task) -> None:
        """See `GridWatch`."""

    def finished(self, task: Task, record: AnyRecord) -> None:
        """See `GridWatch`."""
        self.pace.add(task)
        self._print(f"[{self.pace.place}] {told(task, record)}; {self.pace.left} left")

    def failed(self, task: Task, error: BaseException) -> None:
        """See `GridWatch`."""
        self.pace.add(task)
        self._print(f"[{self.pace.place}] {task} FAILED: {error}")

    def over(self) -> None:
        """See `GridWatch`."""

    def _print(self, line: str) -> None:
        print(printable(line), file=self.stream, flush=True)


class RichGrid:
    """A bar over the grid, and a line for each training that is done, for a terminal."""

    def __init__(self, console: Console | None = None) -> None:
        self.display = Progress(
            TextColumn("{task.fields[place]}"),
            BarColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]} left"),
            TextColumn("{task.fields[now]}", markup=False),
            console=Console(stderr=True, highlight=False, markup=False) if console is None else console,
        )

    def started(self, missing: Sequence[Task], done: int) -> None:
        """See `GridWatch`."""
        self.pace = _Pace(missing)
        self.bar: TaskID = self.display.add_task("", total=self.pace.total, place=self.pace.place, left="?", now="")
        self.display.start()

    def began(self, task: Task) -> None:
        """See `GridWatch`."""
        self.display.update(self.bar, now=printable(f"{task}"))

    def finished(self, task: Task, record: AnyRecord) -> None:
        """See `GridWatch`."""
        self._next(task, told(task, record))

    def failed(self, task: Task, error: BaseException) -> None:
        """See `GridWatch`."""
        self._next(task, f"{task} FAILED: {error}")

    def over(self) -> None:
        """See `GridWatch`."""
        self.display.stop()

    def _next(self, task: Task, line: str) -> None:
        self.pace.add(task)
        self.display.console.print(printable(line))
        self.display.update(self.bar, completed=self.pace.done, place=self.pace.place, left=self.pace.left)


class SilentGrid:
    """Shows nothing."""

    def started(self, missing: Sequence[Task], done: int) -> None:
        """See `GridWatch`."""

    def began(self, task: Task) -> None:
        """See `GridWatch`."""

    def finished(self, task: Task, record: AnyRecord) -> None:
        """See `GridWatch`."""

    def failed(self, task: Task, error: BaseException) -> None:
        """See `GridWatch`."""

    def over(self) -> None:
        """See `GridWatch`."""


def choose_grid_watch(quiet: bool) -> GridWatch:
    """The display for the standard error: a bar in a terminal, lines elsewhere, or nothing."""
    if quiet:
        return SilentGrid()
    return RichGrid() if sys.stderr.isatty() else PlainGrid()


def told(task: Task, record: AnyRecord) -> str:
    """What came of a training, in a line."""
    if not isinstance(record, Record):
        decided = [each for name in task.decisions if (each := record.find(name)) is not None]
        f1 = ", ".join(f"{100 * one.test.f1:.2f} by {one.strategy}" for one in decided)
        return f"{task}: AP {100 * record.ap:.2f}, F1 {f1}; {record.seconds:.0f} s"
    scores = record.summary
    return (
        f"{task}: F1 {100 * scores.f1:.2f}, recall {100 * scores.recall:.2f}, AP {100 * scores.ap:.2f}, "
        f"{scores.nodes_found} nodes found; {record.seconds:.0f} s, {record.steps_per_second:,.0f} steps/s"
    )


class _Pace:
    """How far a grid has come, and how long the rest will take, if costs are what `Cell.cost` says."""

    def __init__(self, missing: Sequence[Task]) -> None:
        self.tasks = len(missing)
        self.total = sum(task.cell.cost for task in missing)
        self.count = 0
        self.done = 0.0
        self.began = monotonic()

    def add(self, task: Task) -> None:
        self.count += 1
        self.done += task.cell.cost

    @property
    def place(self) -> str:
        return f"{self.count}/{self.tasks}"

    @property
    def left(self) -> str:
        seconds = (monotonic() - self.began) * (self.total - self.done) / max(self.done, 1e-9)
        return str(timedelta(seconds=round(seconds)))
