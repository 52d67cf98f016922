"""`Processes`: tasks run in worker processes of this machine, side by side."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

from rarenode.engines import available_threads
from rarenode.errors import ArgumentError, ExecutorError
from rarenode.executors.executor import Executor, Lost, Result, Task
from rarenode.executors.worker import INTERRUPT, Outcome, Parcel, send

SERVE = "from rarenode.executors.worker import serve; serve()"


class Processes(Executor):
    """Runs up to so many tasks side by side; they share the processors. A process takes one task after another.

    Ctrl-C in a terminal reaches this process alone, which interrupts the others.
    """

    def __init__(self, jobs: int) -> None:
        super().__init__()
        if jobs < 1:
            raise ArgumentError(f"jobs must be at least 1, got {jobs}")
        self.jobs = jobs
        self._has_begun = False
        self._workers: list[_Worker] = []
        self._messages: SimpleQueue[tuple[_Worker, Outcome | None]] = SimpleQueue()

    @property
    def _places(self) -> int:
        return self.jobs

    @property
    def threads(self) -> int:
        """How many a task uses."""
        return max(1, available_threads() // self.room)

    def _begin(self, task: Task) -> None:
        if not self._has_begun:  # all at once: the first one reads its task only when it has imported this package
            self._has_begun = True
            self._workers = [_Worker(self._messages) for _ in range(self.room)]
        worker = next((each for each in self._workers if each.task is None), None)
        key = None if task.shared is None else self._key(task.shared)
        try:
            packed = pickle.dumps((task.function, *task.arguments))
            shared = None if key is None or (worker and worker.key == key) else pickle.dumps(task.shared)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            raise ExecutorError(f"{task.name} cannot be sent to another process: {error}") from None
        if worker is None:
            worker = _Worker(self._messages)
            self._workers.append(worker)
        worker.begin(task, Parcel(packed, min(task.threads or self.threads, available_threads()), key, shared))

    def _outcomes(self, seconds: float) -> list[tuple[Task, Result | Lost]]:
        found: list[tuple[Task, Result | Lost]] = []
        while True:
            try:
                worker, outcome = self._messages.get(timeout=0 if found else seconds)
            except Empty:
                return found
            task, worker.task = worker.task, None
            if outcome is None:
                self._workers.remove(worker)
                ended = worker.end(seconds=5.0)
                if task is not None:
                    found.append((task, Lost(ended)))
            elif task is not None:
                found.append((task, outcome.result(task)))

    def _interrupt(self) -> None:
        for worker in self._workers:
            worker.interrupt()

    def _close(self) -> None:
        for worker in self._workers:
            worker.end()
        self._workers.clear()
        self._has_begun = False
        self._messages = SimpleQueue()


class _Worker:
    """A process, and a thread that waits for what it sends."""

    def __init__(self, messages: SimpleQueue[tuple[_Worker, Outcome | None]]) -> None:
        self.task: Task | None = None
        self.key: str | None = None
        # It finds modules where this process does, and is not in the group that Ctrl-C in a terminal reaches.
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)}
        self.process = subprocess.Popen(  # noqa: S603 (it is this very Python)
            [sys.executable, "-c", SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            process_group=0,
        )
        self.receiver = Thread(target=self._receive, args=(messages,), daemon=True)
        self.receiver.start()

    def begin(self, task: Task, parcel: Parcel) -> None:
        """Send it a task."""
        self.task = task
        self.key = parcel.key or self.key
        self._send((parcel, task.folder))

    def interrupt(self) -> None:
        """Stop the task that it has."""
        if self.task is not None:
            self._send(INTERRUPT)

    def end(self, seconds: float = 0.0) -> str:
        """End the process, if it has not ended after so long; returns in words how it did."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        self.process.kill()
        code = self.process.wait()
        self.receiver.join()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with suppress(OSError):  # what could not be written is of no use any more
                    stream.close()
        if code == -signal.SIGKILL:
            return "its process was killed, most likely because memory ran out (fewer jobs side by side need less)"
        return f"its process ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}"

    def _send(self, message: Any) -> None:
        assert self.process.stdin is not None  # noqa: S101 (it is a pipe)
        with suppress(OSError):  # it has just ended, and `_receive` reports that
            send(message, self.process.stdin)

    def _receive(self, messages: SimpleQueue[tuple[_Worker, Outcome | None]]) -> None:
        assert self.process.stdout is not None  # noqa: S101 (it is a pipe)
        outcome: Outcome | None
        while True:
            try:
                outcome = pickle.load(self.process.stdout)  # noqa: S301 (from a process that this one started)
            except (EOFError, OSError, ValueError, pickle.UnpicklingError):
                outcome = None
            messages.put((self, outcome))
            if outcome is None:
                return
