"""The runner's decisions with trainings that are made up, and its processes with real ones."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from rarenode.paper.decided import DecidedRecord, read_decided
from rarenode.paper.held_out import DividedRows
from rarenode.paper.scores import Scores, scores_path, write_scores

from rarenode.data.catalogue import find_entry
from rarenode.errors import FileFormatError, Interrupted, RarenodeError, TrainingError
from rarenode.paper import runner
from rarenode.paper.grid import Cell, Task, tasks
from rarenode.paper.record import DatasetNodes, Record, read_nodes, read_record, record_path, write_record
from rarenode.paper.runner import AnyRecord, reproduce
from tests.paper.small_grid import (
    ENDLESS,
    QUICK,
    STANDING_FOR,
    Listener,
    held_out_task,
    made_up,
    small_spec,
    task_of,
    write_files,
)
from tests.paper.test_deciding import made_up_rows
from tests.paper.test_scores import training

FIRST, SECOND, THIRD = task_of("first"), task_of("second", w0=0.5), task_of("third", w0=0.75)
SOON = 30
"""Seconds; workers that are not ended would train for days."""


class Here(Executor):
    """In place of processes: what is submitted is done at once, by the caller."""

    def __init__(self, jobs: int, *_: Any) -> None:
        self.jobs = jobs

    def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(function(*arguments, **options))
        except BaseException as error:
            future.set_exception(error)
        return future


class Trainer:
    """In place of `measure`."""

    def __init__(self) -> None:
        self.trained: list[Cell] = []
        self.errors: dict[str, BaseException] = {}

    def __call__(self, cell: Cell, root: Path | None) -> tuple[Record, DatasetNodes]:
        self.trained.append(cell)
        if cell.fingerprint in self.errors:
            raise self.errors[cell.fingerprint]
        return made_up(cell)


@pytest.fixture
def trainer(monkeypatch: pytest.MonkeyPatch) -> Trainer:
    trainer = Trainer()
    monkeypatch.setattr(runner, "ProcessPoolExecutor", Here)
    monkeypatch.setattr(runner, "measure", trainer)
    return trainer


def run(wanted: Sequence[Task], folder: Path, jobs: int = 1, root: Path | None = None) -> Listener:
    watch = Listener()
    reproduce(wanted, folder, jobs, root, watch)
    assert watch.is_over
    return watch


def fail(error: type[RarenodeError], wanted: Sequence[Task], folder: Path, jobs: int = 1) -> tuple[str, Listener]:
    watch = Listener()
    with pytest.raises(error) as caught:
        reproduce(wanted, folder, jobs, None, watch)
    assert watch.is_over
    return str(caught.value), watch


class TestWhatIsTrained:
    def test_everything_in_order(self, trainer: Trainer, tmp_path: Path) -> None:
        watch = run([FIRST, SECOND, THIRD], tmp_path)
        assert trainer.trained == [FIRST.cell, SECOND.cell, THIRD.cell]
        assert watch.events == [(event, task) for task in (FIRST, SECOND, THIRD) for event in ("began", "finished")]
        assert watch.missing == [FIRST, SECOND, THIRD]
        assert watch.done == 0
        assert watch.records == [read_record(tmp_path, task.cell) for task in (FIRST, SECOND, THIRD)]

    def test_only_what_is_missing(self, trainer: Trainer, tmp_path: Path) -> None:
        write_record(tmp_path, SECOND.cell, *made_up(SECOND.cell, threads=7))
        watch = run([FIRST, SECOND, THIRD], tmp_path)
        assert trainer.trained == [FIRST.cell, THIRD.cell]
        assert (watch.missing, watch.done) == ([FIRST, THIRD], 1)
        kept = read_record(tmp_path, SECOND.cell)
        assert kept is not None
        assert kept.threads == 7

    def test_nothing_when_all_is_there(self, trainer: Trainer, tmp_path: Path) -> None:
        run([FIRST, SECOND], tmp_path)
        watch = run([SECOND, FIRST], tmp_path)
        assert trainer.trained == [FIRST.cell, SECOND.cell]
        assert (watch.missing, watch.done, watch.events) == ([], 2, [])

    def test_a_cell_of_two_methods_once(self, trainer: Trainer, tmp_path: Path) -> None:
        same = task_of("the same", engine="torch", checkpoint_minutes=None)
        watch = run([FIRST, same, SECOND], tmp_path)
        assert len(trainer.trained) == 2
        assert (len(watch.missing), watch.done) == (2, 0)
        assert run([FIRST, same], tmp_path).done == 1
        assert len(list((tmp_path / "cellcycle_FUN").glob("*-*.json"))) == 2

    def test_what_another_spec_needed_is_there(self, trainer: Trainer, tmp_path: Path) -> None:
        run(tasks(small_spec({"name": "a", "settings": {"w0": 0.5}})), tmp_path)
        other = small_spec({"name": "b"}, {"name": "c", "settings": {"w0": 0.75}}, settings={"w0": 0.5})
        watch = run(tasks(other), tmp_path)
        assert [task.method for task in watch.missing] == ["c"]

    def test_no_more_at_a_time_than_jobs(self, trainer: Trainer, tmp_path: Path) -> None:
        watch = run([FIRST, SECOND, THIRD], tmp_path, jobs=2)
        assert watch.events[:2] == [("began", FIRST), ("began", SECOND)]
        assert watch.events[2][0] == "finished"

    def test_hostile_names_of_methods_stay_in_the_folder(self, trainer: Trainer, tmp_path: Path) -> None:
        folder = tmp_path / "results"
        names = ["../../up", "/root", "a\nb", "nodes", "\x1b[2J"]
        wanted = [task_of(name, w0=1.0 + i) for i, name in enumerate(names)]
        run(wanted, folder)
        assert [path.name for path in tmp_path.iterdir()] == ["results"]
        assert [path.name for path in folder.iterdir()] == ["cellcycle_FUN"]
        files = {path.name for path in (folder / "cellcycle_FUN").iterdir()}
        assert files == {"nodes.json", *(f"{task.cell.name}.json" for task in wanted)}


class TestFailures:
    @pytest.mark.parametrize("error", [TrainingError("the loss is nan"), OSError(28, "No space left on device")])
    def test_others_go_on_and_all_are_told_at_the_end(
        self, trainer: Trainer, tmp_path: Path, error: BaseException
    ) -> None:
        trainer.errors = {FIRST.cell.fingerprint: error, THIRD.cell.fingerprint: TrainingError("nor this")}
        message, watch = fail(TrainingError, [FIRST, SECOND, THIRD], tmp_path)
        assert watch.tasks("failed") == [FIRST, THIRD]
        assert watch.tasks("finished") == [SECOND]
        assert message == f"2 of 3 trainings failed. {FIRST}: {error} | {THIRD}: nor this"

    def test_they_are_tried_again(self, trainer: Trainer, tmp_path: Path) -> None:
        trainer.errors = {FIRST.cell.fingerprint: TrainingError("not now")}
        fail(TrainingError, [FIRST, SECOND], tmp_path)
        trainer.errors = {}
        assert run([FIRST, SECOND], tmp_path).tasks("finished") == [FIRST]

    def test_a_display_that_cannot_be_written_to_is_no_failed_training(self, trainer: Trainer, tmp_path: Path) -> None:
        class Closed(Listener):
            def finished(self, task: Task, record: AnyRecord) -> None:
                raise BrokenPipeError

        watch = Closed()
        with pytest.raises(BrokenPipeError):
            reproduce([FIRST], tmp_path, 1, None, watch)
        assert watch.tasks("failed") == []

    def test_a_mistake_in_the_program_is_not_hidden(self, trainer: Trainer, tmp_path: Path) -> None:
        trainer.errors = {FIRST.cell.fingerprint: ZeroDivisionError()}
        with pytest.raises(ZeroDivisionError):
            run([FIRST], tmp_path)

    def test_a_damaged_record_is_told_before_anything_is_trained(self, trainer: Trainer, tmp_path: Path) -> None:
        run([FIRST, SECOND], tmp_path)
        record_path(tmp_path, SECOND.cell).write_text("{")
        trainer.trained.clear()
        with pytest.raises(FileFormatError, match="this is no record"):
            run([THIRD, SECOND], tmp_path)
        assert trainer.trained == []

    def test_a_folder_that_cannot_be_is_told_before_anything_is_trained(self, trainer: Trainer, tmp_path: Path) -> None:
        file = tmp_path / "file"
        file.write_text("")
        for folder in (file, file / "below"):
            with pytest.raises(TrainingError, match=f"records cannot be kept in {folder}"):
                run([FIRST], folder)
        assert trainer.trained == []

    def test_all_that_a_dead_pool_was_at_are_named(self, trainer: Trainer, tmp_path: Path) -> None:
        """Nobody knows which of its processes was killed: the others are ended with it."""
        trainer.errors = {task.cell.fingerprint: BrokenProcessPool() for task in (SECOND, THIRD)}
        message, _ = fail(TrainingError, [FIRST, SECOND, THIRD], tmp_path, jobs=3)
        assert f"{SECOND} | {THIRD}" in message
        assert "fewer --jobs" in message
        assert read_record(tmp_path, FIRST.cell) is not None

    def test_a_pool_that_dies_before_the_next_training(
        self, trainer: Trainer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class Dying(Here):
            def submit(self, function: Callable[..., Any], /, *arguments: Any, **options: Any) -> Future[Any]:
                if trainer.trained:
                    raise BrokenProcessPool
                return super().submit(function, *arguments, **options)

        monkeypatch.setattr(runner, "ProcessPoolExecutor", Dying)
        message, watch = fail(TrainingError, [FIRST, SECOND], tmp_path)
        assert "want of memory" in message
        assert watch.tasks("finished") == [FIRST]


class Scorer:
    """In place of `score`, which trains."""

    def __init__(self) -> None:
        self.trained: list[Cell] = []

    def __call__(self, cell: Cell, rows: DividedRows) -> Scores:
        self.trained.append(cell)
        return replace(made_up_rows()[1], training=training(cell))


@pytest.fixture
def scorer(monkeypatch: pytest.MonkeyPatch) -> Scorer:
    scorer = Scorer()
    monkeypatch.setattr(runner, "ProcessPoolExecutor", Here)
    monkeypatch.setattr(runner, "divided_rows", lambda cell, root: made_up_rows()[0])
    monkeypatch.setattr(runner, "score", scorer)
    return scorer


def strategies(folder: Path, task: Task) -> tuple[str, ...]:
    record = read_decided(folder, task.cell)
    assert record is not None
    return record.strategies


class TestDecisions:
    TASK = held_out_task("fixed", "expected_f1")

    def test_a_training_leaves_scores_and_a_record(self, scorer: Scorer, tmp_path: Path) -> None:
        watch = run([self.TASK], tmp_path)
        assert scorer.trained == [self.TASK.cell]
        assert watch.records == [read_decided(tmp_path, self.TASK.cell)]
        assert strategies(tmp_path, self.TASK) == ("fixed", "expected_f1")
        assert scores_path(tmp_path, self.TASK.cell).is_file()
        assert not (tmp_path / self.TASK.cell.dataset / "nodes.json").exists()

    def test_nothing_when_all_is_there(self, scorer: Scorer, tmp_path: Path) -> None:
        run([self.TASK], tmp_path)
        watch = run([self.TASK, held_out_task("fixed")], tmp_path)
        assert (watch.missing, watch.done) == ([], 1)
        assert len(scorer.trained) == 1

    def test_another_decision_needs_no_training_and_loses_no_other(self, scorer: Scorer, tmp_path: Path) -> None:
        run([self.TASK], tmp_path)
        more = held_out_task("prior", "fixed")
        watch = run([more], tmp_path)
        assert watch.tasks("finished") == [more]
        assert len(scorer.trained) == 1
        assert strategies(tmp_path, self.TASK) == ("fixed", "expected_f1", "prior")

    def test_scores_without_a_record_are_decided(self, scorer: Scorer, tmp_path: Path) -> None:
        write_scores(tmp_path, self.TASK.cell, scorer(self.TASK.cell, made_up_rows()[0]))
        scorer.trained.clear()
        run([self.TASK], tmp_path)
        assert scorer.trained == []
        assert strategies(tmp_path, self.TASK) == ("fixed", "expected_f1")

    def test_a_record_without_scores_that_lacks_a_decision_is_trained_again(
        self, scorer: Scorer, tmp_path: Path
    ) -> None:
        run([self.TASK], tmp_path)
        scores_path(tmp_path, self.TASK.cell).unlink()
        assert run([self.TASK], tmp_path).missing == []
        run([held_out_task("tuned")], tmp_path)
        assert len(scorer.trained) == 2

    def test_scores_that_are_damaged_fail_by_name(self, scorer: Scorer, tmp_path: Path) -> None:
        path = scores_path(tmp_path, self.TASK.cell)
        path.parent.mkdir(parents=True)
        path.write_bytes(b"no tensors")
        message, watch = fail(TrainingError, [self.TASK], tmp_path)
        assert str(path) in message
        assert watch.tasks("failed") == [self.TASK]
        assert scorer.trained == []

    def test_a_kill_while_deciding_costs_no_training(
        self, scorer: Scorer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(runner, "decide", lambda *_: (_ for _ in ()).throw(MemoryError()))
            fail(TrainingError, [self.TASK], tmp_path)
        run([self.TASK], tmp_path)
        assert len(scorer.trained) == 1

    def test_cells_of_the_paper_and_others_side_by_side(
        self, trainer: Trainer, scorer: Scorer, tmp_path: Path
    ) -> None:
        watch = run([FIRST, self.TASK], tmp_path)
        assert (trainer.trained, scorer.trained) == ([FIRST.cell], [self.TASK.cell])
        assert [type(record) for record in watch.records] == [Record, DecidedRecord]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_files(folder, find_entry(STANDING_FOR))
    return folder


def quick(method: str, **changes: Any) -> Task:
    return task_of(method, STANDING_FOR, **(QUICK | changes))


class TestProcesses:
    def test_a_decided_cell(self, root: Path, tmp_path: Path) -> None:
        task = held_out_task("fixed", "prior", dataset=STANDING_FOR, **QUICK)
        watch = run([task], tmp_path, root=root)
        (record,) = watch.records
        assert record == read_decided(tmp_path, task.cell)
        assert run([task], tmp_path, root=root).missing == []

    def test_two_side_by_side_one_failing_then_continued(self, root: Path, tmp_path: Path) -> None:
        good = [quick("good", seed=seed) for seed in range(3)]
        bad = quick("bad", learning_rate=1e30, epochs=3)
        watch = Listener()
        with pytest.raises(TrainingError, match=f"1 of 4 trainings failed. {bad}: .*learning rate"):
            reproduce([good[0], bad, *good[1:]], tmp_path, 2, root, watch)
        assert watch.tasks("failed") == [bad]
        assert {task.cell.settings.seed for task in watch.tasks("finished")} == {0, 1, 2}
        assert {record.steps_per_epoch for record in watch.records if isinstance(record, Record)} == {1}
        assert all(read_record(tmp_path, task.cell) is not None for task in good)
        assert len(read_nodes(tmp_path, STANDING_FOR).names) == 500

        again = run(good, tmp_path, 2, root)
        assert (again.missing, again.done) == ([], 3)

    def test_an_interrupt_ends_them_soon_keeps_what_is_done_and_ends_nobody_else(
        self, root: Path, tmp_path: Path
    ) -> None:
        first, endless, never = quick("first"), quick("endless", **ENDLESS), quick("never", seed=1)

        class CtrlC(Listener):
            def began(self, task: Task) -> None:
                super().began(task)
                if task == never:
                    self.pressed = time.monotonic()
                    raise KeyboardInterrupt

        watch = CtrlC()
        bystander = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))
        bystander.start()
        try:
            with pytest.raises(Interrupted, match="what is done is kept, and the same command goes on from there"):
                reproduce([first, endless, never], tmp_path, 2, root, watch)
            assert time.monotonic() - watch.pressed < SOON
            assert multiprocessing.active_children() == [bystander]
            assert bystander.is_alive()
        finally:
            bystander.kill()
            bystander.join()
        assert watch.is_over
        assert read_record(tmp_path, first.cell) is not None
        assert read_record(tmp_path, endless.cell) is None

    def test_one_that_is_killed(self, root: Path, tmp_path: Path) -> None:
        def kill() -> None:
            while not (workers := multiprocessing.active_children()):
                time.sleep(0.05)
            workers[0].kill()

        endless = quick("endless", **ENDLESS)
        killer = Thread(target=kill)
        killer.start()
        watch = Listener()
        with pytest.raises(TrainingError) as caught:
            reproduce([endless], tmp_path, 1, root, watch)
        killer.join()
        assert watch.is_over
        assert str(caught.value) == (
            f"{endless}: a process that trains was ended, most likely for want of memory; try fewer --jobs. "
            "What is done is kept"
        )
