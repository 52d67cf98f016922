"""`run_tasks`: train what has no record yet, and keep each result as soon as it is there.

A cell under the paper's protocol is trained and scored. Any other is trained, which leaves its probabilities behind,
and then judged; if only decisions are missing, it is judged without training.

Trainings run where an executor has them run. They keep checkpoints in their work folders, so a kill costs minutes.
What they return is written here, so workers need not see the folder of results. While a cell is trained, it is claimed
in that folder, so two runners at once never train the same one.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from time import monotonic
from typing import TypeVar

from rarenode import executors
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
from rarenode.executors import Executor, Processes, Result
from rarenode.paper.as_published import family_of
from rarenode.paper.grid import Cell, Task
from rarenode.paper.judge import judge
from rarenode.paper.measure import divide, load_rows, measure, predict_unseen
from rarenode.paper.own_code import blamed
from rarenode.paper.record import DatasetNodes, Record
from rarenode.paper.store import (
    NODES,
    Probabilities,
    claim_folder,
    is_done,
    load_record,
    probabilities_path,
    read_nodes,
    read_probabilities,
    read_record,
    record_files,
    work_folder,
    write_probabilities,
    write_record,
)

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
    executor: Executor | None = None,
    *,
    root: Path | None = None,
    hours: float | None = None,
    progress: Progress | None = None,
) -> Outcome:
    """Train the tasks that have no record in the folder, in their order, and judge what their records lack.

    Args:
        tasks: what should have a record.
        folder: of results.
        executor: where trainings run; None: in another process of this machine, one after the other.
        root: the folder of the data, where trainings run; None is that of ``RARENODE_DATA``.
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
    for place in {task.cell.place for task in missing if task.cell.protocol == "paper"}:
        if (folder / place / NODES).exists():
            read_nodes(folder, place)  # damage should be found before a training, not after it
    display = Progress(quiet=True) if progress is None else progress
    run = _Run(missing, folder, root, Outcome(len(distinct) - len(missing)), display)
    run.train(Processes(1) if executor is None else executor, hours)
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

    def __init__(
        self, missing: list[Task], folder: Path, root: Path | None, outcome: Outcome, progress: Progress
    ) -> None:
        self.folder, self.root, self.outcome, self.progress = folder, root, outcome, progress
        self.total = len(missing)
        self.running: dict[executors.Task, _Training] = {}
        times = TrainingTimes.from_records(folder) if missing else TrainingTimes({})
        self.seconds = {task.cell.fingerprint: times.seconds(task.cell) for task in missing}
        self.done = 0.0
        outcome.waiting = list(missing)

    def train(self, executor: Executor, hours: float | None) -> None:
        """Train what is missing, until all is done or the time is over."""
        there = f"; {self.outcome.present:,} already done" if self.outcome.present else ""
        self.progress.line(f"{counted(self.total, 'training')} to do{there}")
        if not self.total:
            return
        self.progress.start("", sum(self.seconds.values()))
        deadline = None if hours is None else monotonic() + 3600 * hours
        executor.expect(self.total)
        try:
            with executor:
                while self.running or (self.outcome.waiting and not executor.is_stopping):
                    if deadline is not None and monotonic() >= deadline:
                        executor.interrupt()
                    while self.outcome.waiting and executor.has_room:
                        self._begin(self.outcome.waiting.pop(0), executor)
                    # Not for long: where a library has its own handler for Ctrl-C, Python sees it after a wait only.
                    for result in executor.wait(1.0):
                        self._collect(result, executor.is_stopping)
                    self._show_running()
        except KeyboardInterrupt:
            raise Interrupted("stopped; what is done is kept, and the same command continues from there") from None
        finally:
            self.progress.stop()
            for training in self.running.values():
                training.claim.close()

    def _begin(self, task: Task, executor: Executor) -> None:
        """Have a cell trained, unless another runner has claimed it, or has been faster."""
        claim, its = claim_folder(self.folder, task.cell), ExitStack()
        try:
            its.enter_context(sole_use(claim))
        except FolderInUseError:
            self._skip(task)
            return
        its.callback(_remove_if_there, claim)
        with its:
            record = read_record(self.folder, task.cell)
            if is_done(self.folder, task):
                self._finish(task, record)
                return
            try:
                known = read_probabilities(self.folder, task.cell) if task.decisions else None
            except FileFormatError as error:
                self._fail(task, error)
                return
            before = () if record is None else record.decided.strategies
            wanted = replace(task, decisions=tuple(dict.fromkeys((*before, *task.decisions))))
            training = executors.Task(
                name=str(task),
                function=make,
                arguments=(wanted, self.root, known, probabilities_path(self.folder, task.cell)),
                memory=task.cell.memory,
                gpus=int(task.cell.settings.device.startswith("cuda")),
                folder=work_folder(self.folder, task.cell),
            )
            executor.start(training)
            self.running[training] = _Training(task, monotonic(), its.pop_all())

    def _collect(self, result: Result, is_stopping: bool) -> None:
        """Keep what a training returned, or note why there is nothing."""
        training = self.running.pop(result.task)
        with training.claim:
            task = training.task
            try:
                made: Made = result.get()
                if made.probabilities is not None:
                    write_probabilities(self.folder, made.probabilities)
                if made.problem is not None:
                    raise made.problem
                assert made.record is not None  # noqa: S101 (there is no problem)
                write_record(self.folder, made.record, made.nodes)
                shutil.rmtree(work_folder(self.folder, task.cell))
            except Interrupted:
                if not is_stopping:  # Ctrl-C in this very process
                    raise KeyboardInterrupt from None
                self.outcome.stopped.append(task)
                self._show(f"{task}: stopped with a checkpoint", None)
            except FolderInUseError:
                self._skip(task)
            except (RarenodeError, OSError, RuntimeError, MemoryError) as error:  # of this training; others continue
                self._fail(task, error)
            else:
                self._finish(task, made.record)

    def _finish(self, task: Task, record: Record | None) -> None:
        assert record is not None  # noqa: S101 (it has just been written)
        self.outcome.finished.append(task)
        self._show(f"{task}: {describe(task, record)}", task)

    def _fail(self, task: Task, error: Exception) -> None:
        self.outcome.failed.setdefault(str(error) or type(error).__name__, []).append(task)
        self._show(f"{task} FAILED: {error}", task)

    def _skip(self, task: Task) -> None:
        self.outcome.skipped.append(task)
        self._show(f"{task}: another process trains it", task)

    def _show_running(self) -> None:
        now, running = monotonic(), self.running.values()
        partly = sum(min(now - each.began, self.seconds[each.task.cell.fingerprint]) for each in running)
        self.progress.update(self.done + 0.99 * partly, " | ".join(str(each.task) for each in running))

    def _show(self, line: str, done: Task | None) -> None:
        if done is not None:
            self.done += self.seconds[done.cell.fingerprint]
        outcome = self.outcome
        ended = len(outcome.finished) + len(outcome.skipped) + sum(map(len, outcome.failed.values()))
        self.progress.update(self.done, "")
        left = f"; {self.progress.left}" if self.progress.left else ""
        self.progress.line(f"[{ended}/{self.total}] {line}{left}")


@dataclass(frozen=True)
class _Training:
    """A training under way."""

    task: Task
    began: float
    claim: ExitStack


def _remove_if_there(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


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
    """Trainings that are similar, from those most similar to all.

    What a spec brings itself takes its own time, and says nothing about other trainings.
    """
    if cell.own:
        return ((cell.dataset, cell.protocol, *cell.own.items()),)
    kind = cell.protocol == "cross_fit", cell.settings.n_members > 1
    return (*kind, family_of(cell.dataset)), kind, ()


# --- where trainings run ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Made:
    """What a training returns."""

    record: Record | None
    nodes: DatasetNodes | None = None
    probabilities: Probabilities | None = None
    """New ones, which are worth keeping even if they could not be judged."""
    problem: RarenodeError | None = None
    """Why they could not."""


def make(task: Task, root: Path | None, known: Probabilities | None, source: Path, *, folder: Path) -> Made:
    """Train a cell, and judge it.

    Args:
        task: what to train, with all decisions to score.
        root: the folder of the data.
        known: the probabilities of the cell, if there are any; it is not trained then.
        source: the file that has them, for messages.
        folder: of checkpoints; a training continues from one that is there.
    """
    with blamed([] if task.cell.sources is None else list(task.cell.sources.codes.values())):
        return _make(task, root, known, source, folder)


def _make(task: Task, root: Path | None, known: Probabilities | None, source: Path, folder: Path) -> Made:
    cell = task.cell
    if cell.protocol == "paper":
        return Made(*_resuming(lambda: measure(cell, root, work=folder), folder))
    rows = divide(load_rows(cell, root), cell.protocol)
    if known is not None:
        known.require_shapes(source, rows.held_out.Y.shape, rows.splits.test.Y.shape)
    found = _resuming(lambda: predict_unseen(cell, rows, work=folder), folder) if known is None else known
    new = found if known is None else None
    try:
        return Made(judge(rows, found, task.decisions), probabilities=new)
    except RarenodeError as error:
        return Made(None, probabilities=new, problem=error)


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
