"""`Executor`: runs tasks, some at a time, and hands over each result as soon as it is there.

What all members of the family have in common:

* A task whose worker is lost (killed, or on a machine that is gone) is begun again, `ATTEMPTS` times in all, and a
  warning says so. Any other error belongs to the task and is its result.
* Leaving the ``with`` block early, by Ctrl-C for example, interrupts the tasks that are running as Ctrl-C would: they
  have `GRACE` seconds to save a checkpoint. No process outlives the one that started it.
* A task may have a folder, which it uses alone. It finds there what is in the folder here, and what it leaves there is
  here when it ends, whether or not its machine shares the disk.
"""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import Any, ClassVar, Self
from uuid import uuid4

from rarenode.errors import Interrupted, WorkerLostError

ATTEMPTS = 3
"""How often a task is begun, if its worker is lost every time."""
GRACE = 60.0
"""Seconds that a task has to save a checkpoint when it is interrupted."""


@dataclass(frozen=True, eq=False)
class Task:
    """A function that can be imported, its arguments, which can be pickled, and what it needs."""

    name: str
    """What it is called in messages."""
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    shared: Any = None
    """The first argument, if it is not None: one that many tasks have. A worker unpacks it once and keeps it."""
    threads: int | None = None
    """None: its share of the processors."""
    gpus: int = 0
    """Ray hides those that no task requested."""
    memory: int = 0
    """Bytes, roughly."""
    folder: Path | None = None
    """If there is one, the function gets it as ``folder``."""

    @property
    def all_arguments(self) -> tuple[Any, ...]:
        """Those of the function, without the folder."""
        return self.arguments if self.shared is None else (self.shared, *self.arguments)


@dataclass(frozen=True, eq=False)
class Result:
    """What became of a task."""

    task: Task
    value: Any = None
    error: Exception | None = None

    def get(self) -> Any:
        """What the task returned; what it raised is raised."""
        if self.error is not None:
            raise self.error
        return self.value


class Lost(str):
    """In place of a result: the worker is lost, and this says how."""

    __slots__ = ()


class Executor(ABC):
    """A context in which tasks run; see this module."""

    here: ClassVar[bool] = False
    """Whether tasks run in this process, one at a time, and may use its objects."""

    def __init__(self) -> None:
        self._losses: Counter[Task] = Counter()
        self._keys: dict[int, tuple[Any, str]] = {}
        self._running: dict[Task, None] = {}
        self._expected: int | None = None
        self._last: float | None = None

    def __enter__(self) -> Self:
        self._losses.clear()
        self._last = None
        self._open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            with suppress(KeyboardInterrupt):  # a second Ctrl-C does not wait for checkpoints
                if self._running:
                    self.interrupt()
                while self._running:
                    self.wait(1.0)
        finally:
            self._running.clear()
            self._keys.clear()
            self._close()

    @property
    def running(self) -> tuple[Task, ...]:
        """The tasks that were started and have no result yet."""
        return tuple(self._running)

    def expect(self, tasks: int) -> None:
        """Say how many tasks there are at most: few ones may use more processors each."""
        self._expected = tasks

    @property
    def room(self) -> int:
        """How many tasks can run side by side."""
        return self._places if self._expected is None else max(1, min(self._places, self._expected))

    @property
    def has_room(self) -> bool:
        """Whether another task should be started now."""
        return not self.is_stopping and len(self._running) < self.room

    @property
    def is_stopping(self) -> bool:
        """Whether tasks were interrupted."""
        return self._last is not None

    def start(self, task: Task) -> None:
        """Start a task."""
        self._begin(task)
        self._running[task] = None

    def wait(self, seconds: float) -> list[Result]:
        """The results that are there, after waiting for the first at most so long."""
        results = []
        for task, outcome in self._outcomes(seconds):
            del self._running[task]
            result = self._after_loss(task, outcome) if isinstance(outcome, Lost) else outcome
            if result is not None:
                results.append(result)
        if self._running and self._last is not None and monotonic() >= self._last:
            results += [Result(task, error=Interrupted(f"{task.name}: stopped")) for task in self._running]
            self._running.clear()
            self._close()
        return results

    def run(self, tasks: Iterable[Task]) -> Iterator[Result]:
        """Run tasks, within the context, and yield their results in the order in which they are done."""
        waiting = deque(tasks)
        while waiting or self._running:
            while waiting and self.has_room:
                self.start(waiting.popleft())
            yield from self.wait(1.0)

    def interrupt(self) -> None:
        """Make running tasks stop; those that keep checkpoints save one. Their errors are `Interrupted`."""
        if self._last is None:
            self._last = monotonic() + GRACE
            self._interrupt()

    def _key(self, shared: Any) -> str:
        """What tells an object from others that tasks share."""
        if id(shared) not in self._keys:  # the object is kept, so that no other gets its id
            self._keys[id(shared)] = shared, uuid4().hex
        return self._keys[id(shared)][1]

    def _after_loss(self, task: Task, how: str) -> Result | None:
        """Begin a task again whose worker is lost, unless that has been tried often enough."""
        if self.is_stopping:
            return Result(task, error=Interrupted(f"{task.name}: stopped, and {how}"))
        self._losses[task] += 1
        if self._losses[task] == ATTEMPTS:
            return Result(task, error=WorkerLostError(f"{how}, {ATTEMPTS} times"))
        warnings.warn(f"{task.name}: {how}; it is begun again", RuntimeWarning, stacklevel=3)
        self.start(task)
        return None

    # --- what the members of the family do ---------------------------------------------------------------------------

    def _open(self) -> None:  # noqa: B027 (not all need that)
        """Get ready for tasks."""

    def _close(self) -> None:  # noqa: B027
        """End everything that is still running."""

    @property
    @abstractmethod
    def _places(self) -> int:
        """How many tasks can run side by side, if there are enough."""

    @abstractmethod
    def _begin(self, task: Task) -> None:
        """Begin a task, for the first time or again."""

    @abstractmethod
    def _outcomes(self, seconds: float) -> list[tuple[Task, Result | Lost]]:
        """Tasks that are over since the last call, after waiting at most so long."""

    def _interrupt(self) -> None:  # noqa: B027
        """Raise KeyboardInterrupt in all tasks that are running."""
