"""`reproduce`: train what is missing of a grid, and keep each result as it comes.

A cell whose protocol is the paper's is trained and scored. Any other is trained, which leaves its scores behind, and
then decided; where scores are there, and decisions are wanted that its record has not, it is decided without training.

Trainings run in processes of their own, ``jobs`` side by side, which share the cores between them. A training's record
is written by its process before anyone is told, so whatever is killed, and whenever, costs only what was under way.
No process outlives the one that started it.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from threading import Thread
from typing import Protocol

import numba
import torch

from rarenode.errors import Interrupted, RarenodeError, TrainingError
from rarenode.paper.decided import DecidedRecord, read_decided, write_decided
from rarenode.paper.deciding import decide
from rarenode.paper.grid import Task
from rarenode.paper.held_out import divided_rows, score
from rarenode.paper.measure import measure
from rarenode.paper.record import NODES, Record, read_nodes, read_record, write_record
from rarenode.paper.scores import read_scores, write_scores

AnyRecord = Record | DecidedRecord


class GridWatch(Protocol):
    """Is told how a grid goes on."""

    def started(self, missing: Sequence[Task], done: int) -> None:
        """The missing ones are about to be trained; ``done`` are there already."""

    def began(self, task: Task) -> None:
        """A training is next."""

    def finished(self, task: Task, record: AnyRecord) -> None:
        """A training is done, and its record is kept."""

    def failed(self, task: Task, error: BaseException) -> None:
        """A training came to nothing; others go on."""

    def over(self) -> None:
        """Nothing more will be told."""


def reproduce(tasks: Sequence[Task], folder: Path, jobs: int, root: Path | None, watch: GridWatch) -> None:
    """Train the tasks that have no record in the folder, and decide what their records lack.

    Args:
        tasks: what is wanted.
        folder: where records are kept.
        jobs: trainings side by side.
        root: the folder of the data; None is that of ``RARENODE_DATA``.
        watch: is told what happens.

    Raises:
        TrainingError: some trainings failed, and all others were done; or no more can be, and the message says why.
        Interrupted: Ctrl-C. What is done is kept.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TrainingError(f"records cannot be kept in {folder}: {error}") from None
    missing = {task.cell.fingerprint: task for task in tasks if not _is_done(task, folder)}
    for dataset in {task.cell.dataset for task in missing.values() if task.cell.protocol == "paper"}:
        if (folder / dataset / NODES).exists():
            read_nodes(folder, dataset)  # better found damaged now than after a training
    waiting = list(missing.values())[::-1]
    watch.started(list(missing.values()), len({task.cell.fingerprint for task in tasks}) - len(missing))
    failures: dict[str, list[Task]] = {}
    running: dict[Future[AnyRecord], Task] = {}
    jobs = max(1, min(jobs, len(waiting)))
    not_ours = set(multiprocessing.active_children())
    pool = ProcessPoolExecutor(
        jobs, multiprocessing.get_context("spawn"), _begin, (max(1, (os.cpu_count() or 1) // jobs),)
    )
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                task = waiting.pop()
                watch.began(task)
                running[pool.submit(_make_and_keep, task, folder, root)] = task
            # Not for ever: where another library has taken Ctrl-C for itself, it is not seen before a wait is over.
            done = wait(running, timeout=1.0, return_when=FIRST_COMPLETED).done
            for future in sorted(done, key=lambda future: future.exception() is not None):
                task = running[future]
                try:
                    record = future.result()
                except BrokenProcessPool:
                    raise
                except (RarenodeError, OSError, RuntimeError, MemoryError) as error:  # of this training; others go on
                    failures.setdefault(str(error) or type(error).__name__, []).append(task)
                    watch.failed(task, error)
                else:
                    watch.finished(task, record)
                del running[future]
    except BrokenProcessPool:  # nobody knows which process died, as the others are ended with it
        under_way = " | ".join(map(str, running.values())) or "between two trainings"
        raise TrainingError(
            f"{under_way}: a process that trains was ended, most likely for want of memory; try fewer --jobs. "
            "What is done is kept"
        ) from None
    except KeyboardInterrupt:
        for process in set(multiprocessing.active_children()) - not_ours:
            process.terminate()  # it would train to its end
        pool.shutdown(wait=True, cancel_futures=True)
        raise Interrupted("stopped; what is done is kept, and the same command goes on from there") from None
    finally:
        watch.over()
        pool.shutdown(wait=False, cancel_futures=True)
    if failures:
        told = " | ".join(f"{'; '.join(map(str, which))}: {error}" for error, which in failures.items())
        raise TrainingError(f"{sum(map(len, failures.values()))} of {len(missing)} trainings failed. {told}")


def _is_done(task: Task, folder: Path) -> bool:
    if task.cell.protocol == "paper":
        return read_record(folder, task.cell) is not None
    record = read_decided(folder, task.cell)
    return record is not None and not record.lacks(task.decisions)


def _make_and_keep(task: Task, folder: Path, root: Path | None) -> AnyRecord:
    make = _train_and_keep if task.cell.protocol == "paper" else _decide_and_keep
    return make(task, folder, root)


def _train_and_keep(task: Task, folder: Path, root: Path | None) -> Record:
    record, nodes = measure(task.cell, root)
    write_record(folder, task.cell, record, nodes)
    return record


def _decide_and_keep(task: Task, folder: Path, root: Path | None) -> DecidedRecord:
    """Train only where there are no scores; a record keeps the decisions that others have asked for."""
    rows = divided_rows(task.cell, root)
    scores = read_scores(folder, task.cell, rows.held_out.Y.shape, rows.dataset.test.Y.shape)
    if scores is None:
        scores = score(task.cell, rows)
        write_scores(folder, task.cell, scores)
    before = read_decided(folder, task.cell)
    decisions = dict.fromkeys((*(() if before is None else before.strategies), *task.decisions))
    record = decide(rows, scores, tuple(decisions))
    write_decided(folder, task.cell, record)
    return record


def _begin(threads: int) -> None:
    """What a process does before it trains."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the parent as well, which ends its processes
    Thread(target=_end_with_parent, daemon=True).start()
    numba.set_num_threads(min(threads, numba.get_num_threads()))
    torch.set_num_threads(threads)


def _end_with_parent() -> None:
    """A parent that is killed cannot end its processes, which would wait forever for the next training."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)
