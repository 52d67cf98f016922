"""`run_tasks`: train what has no record yet, and keep each result as soon as it is there.

A cell under the paper's protocol is trained and scored. Any other is trained, which leaves its probabilities behind,
and then judged; if only decisions are missing, it is judged without training.

Trainings run in their own processes, ``jobs`` side by side, which share the cores. Each keeps checkpoints in its work
folder, so a kill costs minutes, and has the sole use of that folder, so two runners at once never train the same cell.
No process outlives the one that started it.
"""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from threading import Thread
from time import monotonic, sleep
from typing import Any, TypeVar

import numba
import torch

from rarenode._io.files import sole_use
from rarenode._io.progress import Progress
from rarenode._io.text import counted
from rarenode.errors import (
    FileFormatError,
    FolderInUseError,
    Interrupted,
    RarenodeError,
    ResumeError,
    TrainingError,
)
from rarenode.paper.as_published import family_of
from rarenode.paper.grid import Cell, Task
from rarenode.paper.judge import judge
from rarenode.paper.measure import divide, load_once, measure, predict_unseen
from rarenode.paper.record import Record
from rarenode.paper.store import (
    NODES,
    is_done,
    load_record,
    read_nodes,
    read_probabilities,
    read_record,
    record_files,
    work_folder,
    write_probabilities,
    write_record,
)
from rarenode.training import Callback

GRACE = 60.0
"""Seconds that a training has to save a checkpoint when it is stopped."""
SECONDS_PER_COST = 1.2e-9
"""Where no record shows how fast trainings are."""
T = TypeVar("T")


@dataclass
class Outcome:
    """What became of the tasks of a run."""

    present: int
    """Had a record before."""
    finished: list[Task] = field(default_factory=list)
    skipped: list[Task] = field(default_factory=list)
    """Another process is training them."""
    stopped: list[Task] = field(default_factory=list)
    """Were under way when the time was over; they continue from a checkpoint."""
    waiting: list[Task] = field(default_factory=list)
    """Were not started."""
    failed: dict[str, list[Task]] = field(default_factory=dict)
    """By error message."""


def run_tasks(
    tasks: Sequence[Task],
    folder: Path,
    *,
    jobs: int = 1,
    root: Path | None = None,
    hours: float | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Train the tasks that have no record in the folder, in their order, and judge what their records lack.

    Args:
        tasks: what should have a record.
        folder: of results.
        jobs: trainings side by side.
        root: the folder of the data; None is that of ``RARENODE_DATA``.
        hours: after so many, no training is started, and those under way are stopped with a checkpoint.
        progress: the display; None shows nothing.

    Raises:
        TrainingError: some trainings failed, and all others are done; or none can continue, and the message says why.
        Interrupted: Ctrl-C. What is done is kept.
        FileFormatError: a record in the folder is damaged.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TrainingError(f"records cannot be kept in {folder}: {error}") from None
    distinct = merge_tasks(tasks)
    missing = [task for task in distinct if not is_done(folder, task)]
    for dataset in {task.cell.dataset for task in missing if task.cell.protocol == "paper"}:
        if (folder / dataset / NODES).exists():
            read_nodes(folder, dataset)  # damage should be found before a training, not after it
    display = Progress(quiet=True) if progress is None else progress
    run = _Run(missing, folder, Outcome(len(distinct) - len(missing)), display)
    run.train(max(1, min(jobs, len(missing))), root, None if hours is None else monotonic() + 3600 * hours)
    if failed := run.outcome.failed:
        shown = " | ".join(f"{'; '.join(map(str, which))}: {error}" for error, which in failed.items())
        raise TrainingError(f"{sum(map(len, failed.values()))} of {counted(len(missing), 'training')} failed. {shown}")
    return run.outcome


def merge_tasks(tasks: Iterable[Task]) -> list[Task]:
    """Each cell once, at the place of its first task and with the decisions of all."""
    merged: dict[str, Task] = {}
    for task in tasks:
        first = merged.setdefault(task.cell.fingerprint, task)
        decisions = tuple(dict.fromkeys((*first.decisions, *task.decisions)))
        merged[task.cell.fingerprint] = replace(first, decisions=decisions)
    return list(merged.values())


class _Run:
    """A run under way, in the process that started it."""

    def __init__(self, missing: list[Task], folder: Path, outcome: Outcome, progress: Progress) -> None:
        self.folder, self.outcome, self.progress = folder, outcome, progress
        self.total = len(missing)
        self.running: dict[Future[Record | None], tuple[Task, float]] = {}
        times = TrainingTimes.from_records(folder) if missing else TrainingTimes({})
        self.seconds = {task.cell.fingerprint: times.seconds(task.cell) for task in missing}
        self.done = 0.0
        outcome.waiting = list(missing)

    def train(self, jobs: int, root: Path | None, deadline: float | None) -> None:
        """Start the processes, and see to it that all of them end."""
        there = f"; {self.outcome.present:,} already done" if self.outcome.present else ""
        self.progress.line(f"{counted(self.total, 'training')} to do{there}")
        if not self.total:
            return
        self.progress.start("", sum(self.seconds.values()))
        context = multiprocessing.get_context("spawn")
        stop = context.RawValue(ctypes.c_bool, False)
        others = set(multiprocessing.active_children())
        threads = max(1, (os.cpu_count() or 1) // jobs)
        pool = ProcessPoolExecutor(jobs, context, _begin, (threads, stop))
        try:
            while self.running or (self.outcome.waiting and not stop.value):
                if deadline is not None and monotonic() >= deadline:
                    if stop.value:
                        self._give_up(others)
                    stop.value = True
                    deadline += GRACE
                while self.outcome.waiting and len(self.running) < jobs and not stop.value:
                    task = self.outcome.waiting.pop(0)
                    self.running[pool.submit(_make_and_keep, task, self.folder, root)] = task, monotonic()
                self._collect()
            pool.shutdown(wait=True)
        except BrokenProcessPool:  # it is not known which process died, because the others are ended with it
            under_way = " | ".join(str(task) for task, _ in self.running.values()) or "between two trainings"
            raise TrainingError(
                f"{under_way}: a training process was killed, most likely because memory ran out; try fewer --jobs. "
                "What is done is kept"
            ) from None
        except KeyboardInterrupt:
            stop.value = True
            with suppress(KeyboardInterrupt):  # a second Ctrl-C does not wait for checkpoints
                wait(self.running, timeout=GRACE)
            raise Interrupted("stopped; what is done is kept, and the same command continues from there") from None
        finally:
            self.progress.stop()
            self._kill(others)
            pool.shutdown(wait=True, cancel_futures=True)  # its own thread reaps the processes too: wait for it

    def _collect(self) -> None:
        """Wait for a moment, and take the results that are there."""
        # Not for ever: where another library has its own handler for Ctrl-C, Python sees it only when a wait is over.
        done = wait(self.running, timeout=1.0, return_when=FIRST_COMPLETED).done
        for future in sorted(done, key=lambda future: future.exception() is not None):
            task, _ = self.running[future]
            try:
                record = future.result()
            except BrokenProcessPool:
                raise
            except Interrupted:
                self.outcome.stopped.append(task)
                self._show(f"{task}: stopped with a checkpoint", None)
            except (RarenodeError, OSError, RuntimeError, MemoryError) as error:  # of this training; others continue
                self.outcome.failed.setdefault(str(error) or type(error).__name__, []).append(task)
                self._show(f"{task} FAILED: {error}", task)
            else:
                (self.outcome.skipped if record is None else self.outcome.finished).append(task)
                self._show(f"{task}: {'another process trains it' if record is None else describe(task, record)}", task)
            del self.running[future]
        now = monotonic()
        partly = sum(min(now - began, self.seconds[task.cell.fingerprint]) for task, began in self.running.values())
        self.progress.update(self.done + 0.99 * partly, " | ".join(str(task) for task, _ in self.running.values()))

    def _show(self, line: str, done: Task | None) -> None:
        if done is not None:
            self.done += self.seconds[done.cell.fingerprint]
        outcome = self.outcome
        ended = len(outcome.finished) + len(outcome.skipped) + sum(map(len, outcome.failed.values()))
        self.progress.update(self.done, "")
        left = f"; {self.progress.left}" if self.progress.left else ""
        self.progress.line(f"[{ended}/{self.total}] {line}{left}")

    def _give_up(self, others: set[Any]) -> None:
        """The time is over, and a training could not be stopped: while a forest grows, for example."""
        self._kill(others)
        self.outcome.stopped += [task for task, _ in self.running.values()]
        self.running.clear()

    @staticmethod
    def _kill(others: set[Any]) -> None:
        for process in set(multiprocessing.active_children()) - others:
            process.kill()
            process.join()


def describe(task: Task, record: Record) -> str:
    """The result of a training, in a line."""
    if record.decisions is not None:
        decided = [each for name in task.decisions if (each := record.decisions.find(name)) is not None]
        f1 = ", ".join(f"{100 * one.test.f1:.2f} with {one.strategy}" for one in decided)
        return f"AP {100 * record.decisions.ap:.2f}, F1 {f1}; {record.seconds:.0f} s"
    fixed = record.at_half
    return (
        f"F1 {100 * fixed.summary.f1:.2f}, recall {100 * fixed.summary.recall:.2f}, AP {100 * fixed.summary.ap:.2f}, "
        f"{counted(fixed.summary.nodes_found, 'node')} found; {record.seconds:.0f} s, "
        f"{fixed.steps_per_second:,.0f} steps/s"
    )


class TrainingTimes:
    """How long trainings take here: `Cell.cost`, calibrated by the times in records of similar trainings."""

    def __init__(self, rates: dict[tuple[object, ...], list[float]]) -> None:
        self.rates = {group: median(values) for group, values in rates.items()}

    @classmethod
    def from_records(cls, folder: Path) -> TrainingTimes:
        """Seconds per cost of all records in a folder; damaged ones do not count."""
        rates: dict[tuple[object, ...], list[float]] = {}
        for path in record_files(folder):
            try:
                record = load_record(path)
            except FileFormatError:
                continue
            for group in _groups(record.cell):
                rates.setdefault(group, []).append(record.seconds / record.cell.cost)
        return cls(rates)

    def seconds(self, cell: Cell) -> float:
        """The estimate for one training."""
        return cell.cost * next((self.rates[group] for group in _groups(cell) if group in self.rates), SECONDS_PER_COST)


def _groups(cell: Cell) -> tuple[tuple[object, ...], ...]:
    """Trainings that are similar, from those most similar to all."""
    kind = cell.protocol == "cross_fit", cell.settings.n_members > 1
    return (*kind, family_of(cell.dataset)), kind, ()


# --- in a training process -----------------------------------------------------------------------------------------

_stop: Any = None
"""Shared with the process that started this one; its ``value`` becomes True when trainings should stop."""
_busy = False


class _StopAtStep(Callback):
    """Ends a training between two steps, as Ctrl-C would: it saves a checkpoint and raises `Interrupted`."""

    def on_batch(self, epoch: int, batch: int, loss: float) -> None:
        """See `Callback`."""
        if _stop is not None and _stop.value:
            raise KeyboardInterrupt


def _begin(threads: int, stop: Any) -> None:
    """Prepare a process for trainings."""
    global _stop  # noqa: PLW0603 (a pool can hand nothing else to its processes)
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent as well, which stops its processes
    Thread(target=_end_with_parent, daemon=True).start()
    numba.set_num_threads(min(threads, numba.get_num_threads()))
    torch.set_num_threads(threads)


def _end_with_parent() -> None:
    """A parent that is killed cannot end its processes: they save a checkpoint and end by themselves."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        _stop.value = True
        last = monotonic() + GRACE
        while _busy and monotonic() < last:
            sleep(0.1)
        os._exit(1)


def _make_and_keep(task: Task, folder: Path, root: Path | None) -> Record | None:
    """The record of a task, which is written before this returns; None if another process is training it."""
    global _busy  # noqa: PLW0603 (`_end_with_parent` runs in another thread)
    work = work_folder(folder, task.cell)
    _busy = True
    try:
        with sole_use(work):
            record = read_record(folder, task.cell) if is_done(folder, task) else None  # another may have been faster
            if record is None:
                record = _make(task, folder, root, work)
            shutil.rmtree(work)
            return record
    except FolderInUseError:
        return None
    finally:
        _busy = False


def _make(task: Task, folder: Path, root: Path | None, work: Path) -> Record:
    cell, stop = task.cell, _StopAtStep()
    if cell.protocol == "paper":
        record, nodes = _resuming(lambda: measure(cell, root, work=work, callback=stop), work)
        write_record(folder, record, nodes)
        return record
    rows = divide(load_once(cell.dataset, root), cell.protocol)
    probabilities = read_probabilities(folder, cell, rows.held_out.Y.shape, rows.splits.test.Y.shape)
    if probabilities is None:
        probabilities = _resuming(lambda: predict_unseen(cell, rows, work=work, callback=stop), work)
        write_probabilities(folder, probabilities)
    before = read_record(folder, cell)
    known = () if before is None else before.decided.strategies
    record = judge(rows, probabilities, tuple(dict.fromkeys((*known, *task.decisions))))
    write_record(folder, record)
    return record


def _resuming(train: Callable[[], T], work: Path) -> T:
    """Train from the checkpoint in the work folder; if that is damaged or of another version, from the beginning."""
    try:
        return train()
    except (ResumeError, FileFormatError):
        found = list(work.iterdir())
        if not found:
            raise
        for path in found:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        return train()
