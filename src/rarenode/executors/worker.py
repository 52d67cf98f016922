"""What happens in a worker, wherever it is: a task is unpacked and run, and what becomes of it is packed.

`serve` is the whole life of a worker process of this machine.
"""

from __future__ import annotations

import _thread
import os
import pickle
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread
from time import sleep
from typing import IO, Any

from rarenode._io.files import sole_use
from rarenode.engines import limited_threads
from rarenode.errors import ExecutorError, Interrupted
from rarenode.executors.executor import GRACE, Result, Task

INTERRUPT = None
"""What a worker process gets in place of a task, to stop the one that it has."""
_kept: dict[str, Any] = {}
"""Key -> the object that the tasks of this worker share; one at most."""


@dataclass(frozen=True)
class Parcel:
    """A task as it travels."""

    packed: bytes
    """The function and its arguments."""
    threads: int
    key: str | None
    """Of the object that it shares with other tasks, if it does."""
    shared: bytes | None
    """That object, unless the worker has it."""

    def unpack(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The function and its arguments, as `Task.all_arguments` has them."""
        function, *arguments = pickle.loads(self.packed)  # noqa: S301 (from the process that started this one)
        if self.key is None:
            return function, tuple(arguments)
        if self.key not in _kept:
            assert self.shared is not None  # noqa: S101 (it is left out for workers that have it)
            _kept.clear()
            _kept[self.key] = pickle.loads(self.shared)  # noqa: S301
        return function, (_kept[self.key], *arguments)


@dataclass(frozen=True)
class Outcome:
    """What became of a task, as it travels back."""

    value: Any = None
    error: Exception | None = None
    warnings: tuple[tuple[type[Warning], str], ...] = ()

    def result(self, task: Task) -> Result:
        """The same as a result; warnings are issued here."""
        for kind, text in self.warnings:
            warnings.warn(f"{task.name}: {text}", kind, stacklevel=2)
        return Result(task, self.value, self.error)


def apply(function: Callable[..., Any], arguments: tuple[Any, ...], folder: Path | None, patience: float = 0.0) -> Any:
    """Call the function of a task, which has the sole use of its folder.

    A worker that lost its connection may still be writing there, so others have some patience.
    """
    if folder is None:
        return function(*arguments)
    with sole_use(folder, patience):
        return function(*arguments, folder=folder)


def call(parcel: Parcel, folder: Path | None) -> Outcome:
    """Run a task in this process, which is a worker, in its folder."""
    value: Any = None
    error: Exception | None = None
    with warnings.catch_warnings(record=True) as issued, limited_threads(parcel.threads, compiled=True):
        try:
            try:
                function, arguments = parcel.unpack()
            except (AttributeError, ImportError, pickle.UnpicklingError) as problem:
                raise ExecutorError(
                    f"a worker cannot read its task ({problem}): classes and functions that it uses must be in a "
                    "module that workers can import"
                ) from None
            value = apply(function, arguments, folder, GRACE)
        except Interrupted as stopped:
            error = stopped
        except KeyboardInterrupt:
            error = Interrupted("stopped")
        except Exception as problem:
            error = _portable(problem)
    return Outcome(value, error, tuple((each.category, str(each.message)) for each in issued))


def _portable(error: Exception) -> Exception:
    """The error, or another one with its text if it cannot travel."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301 (what this very line has written)
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


# --- a worker process of this machine --------------------------------------------------------------------------------


def serve() -> None:
    """Take tasks from the standard input, one at a time, and write outcomes to the standard output, until it ends.

    If the process that started this one ends, the task that is running has time to save a checkpoint.
    """
    results = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # what a task prints is no result
    tasks: SimpleQueue[tuple[Parcel, Path | None] | None] = SimpleQueue()
    state = _State()
    Thread(target=_listen, args=(sys.stdin.buffer, tasks, state), daemon=True).start()
    while (received := tasks.get()) is not None:
        outcome = Outcome(error=Interrupted("stopped"))
        if state.begin():
            outcome = call(*received)
        state.end()
        try:
            send(outcome, results)
        except OSError:  # nobody waits for it any more
            return
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            send(Outcome(error=ExecutorError(f"what the task returned cannot be sent: {error}")), results)


def send(message: Any, stream: IO[bytes]) -> None:
    """Write a message that `pickle.load` reads at the other end."""
    stream.write(pickle.dumps(message))
    stream.flush()


class _State:
    """Whether a task is running here, or waits to be begun."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._waiting = 0
        self._is_busy = self._is_stopped = False

    def receive(self) -> None:
        """A task has come."""
        with self._lock:
            self._waiting += 1

    def begin(self) -> bool:
        """Whether the task that waits is to be run: not if it was interrupted before."""
        with self._lock:
            self._waiting -= 1
            self._is_busy = not self._is_stopped
            self._is_stopped = False
            return self._is_busy

    def end(self) -> None:
        """The task is over."""
        with self._lock:
            self._is_busy = False

    def interrupt(self) -> None:
        """Interrupt the task that is running, or else keep the one that waits from running."""
        with self._lock:
            if self._is_busy:
                _thread.interrupt_main()
            elif self._waiting:
                self._is_stopped = True


def _listen(stream: IO[bytes], tasks: SimpleQueue[Any], state: _State) -> None:
    """Receive tasks while one is running; an interrupt is for that one."""
    while True:
        try:
            message = pickle.load(stream)  # noqa: S301 (from the process that started this one)
        except (EOFError, OSError, pickle.UnpicklingError):
            break
        if message is INTERRUPT:
            state.interrupt()
        else:
            state.receive()
            tasks.put(message)
    tasks.put(None)
    state.interrupt()
    sleep(GRACE)
    os._exit(1)
