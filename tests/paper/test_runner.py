"""Small real trainings: in this process where only the order of things matters, and in the runner's own processes."""

from __future__ import annotations

import io
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from rarenode._io.files import sole_use
from rarenode._io.progress import Progress
from rarenode.data.catalogue import find_entry
from rarenode.errors import FileFormatError, Interrupted, TrainingError
from rarenode.executors import Here, Processes
from rarenode.paper import runner
from rarenode.paper.grid import Task, tasks
from rarenode.paper.measure import measure
from rarenode.paper.record import Record
from rarenode.paper.runner import Outcome, TrainingTimes, describe, merge_tasks, run_tasks
from rarenode.paper.spec import Protocol
from rarenode.paper.store import (
    claim_folder,
    probabilities_path,
    read_nodes,
    read_record,
    record_path,
    work_folder,
    write_record,
)
from rarenode.training import Callback
from rarenode.training.checkpoint import FILE as CHECKPOINT
from tests.paper.small_grid import (
    ENDLESS,
    QUICK,
    STANDING_FOR,
    cell_of,
    decided,
    decided_record,
    held_out_task,
    made_up,
    small_spec,
    task_of,
    tiny_alone,
    tiny_cell,
    write_files,
)

SOON = 30
"""Seconds; processes that are not ended would train for days."""
HOSTILE = "a\nb\x1b[2J\r[red]c[/red]{task}\x07\u202e"


def tiny(method: str = "tiny", decisions: tuple[str, ...] = (), **changes: Any) -> Task:
    protocol: Protocol = "held_out" if decisions else "paper"
    return Task(tiny_cell(protocol, **({"epochs": 1} | changes)), method, decisions)


FIRST, SECOND, THIRD = tiny("first"), tiny("second", w0=0.5), tiny("third", w0=0.75)
BAD = tiny("bad", learning_rate=1e30, epochs=3)


def record_of(folder: Path, task: Task) -> Record:
    record = read_record(folder, task.cell)
    assert record is not None
    return record


@pytest.fixture
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with tiny_alone(tmp_path_factory.mktemp("data")) as folder:
        yield folder


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "Processes", lambda jobs: Here())


@pytest.mark.usefixtures("here", "one_thread")
class TestWhatIsTrained:
    def test_everything_in_order(self, root: Path, tmp_path: Path) -> None:
        outcome = run_tasks([FIRST, SECOND, THIRD], tmp_path, root=root)
        assert outcome == Outcome(0, finished=[FIRST, SECOND, THIRD])
        assert record_of(tmp_path, FIRST).at_half == record_of(tmp_path, FIRST).fixed
        assert not list((tmp_path / ".work").iterdir())

    def test_only_what_is_missing(self, root: Path, tmp_path: Path) -> None:
        run_tasks([SECOND], tmp_path, root=root)
        before = record_path(tmp_path, SECOND.cell).stat().st_mtime_ns
        assert run_tasks([FIRST, SECOND, THIRD], tmp_path, root=root) == Outcome(1, finished=[FIRST, THIRD])
        assert record_path(tmp_path, SECOND.cell).stat().st_mtime_ns == before
        assert run_tasks([SECOND, FIRST], tmp_path, root=root) == Outcome(2)

    def test_a_cell_of_two_methods_once(self, root: Path, tmp_path: Path) -> None:
        same = tiny("the same", checkpoint_minutes=None)
        assert run_tasks([FIRST, same, SECOND], tmp_path, root=root).finished == [FIRST, SECOND]
        assert len(list((tmp_path / "tiny").glob("*-*.json"))) == 2

    def test_what_another_spec_needed_is_there(self, root: Path, tmp_path: Path) -> None:
        common = {**QUICK, "w0": 0.5}
        first = small_spec({"name": "a", "settings": {"w0": 0.5}}, datasets=("tiny",), settings=QUICK)
        run_tasks(tasks(first), tmp_path, root=root)
        other = small_spec({"name": "b"}, {"name": "c", "settings": {"w0": 0.75}}, datasets=("tiny",), settings=common)
        assert [task.method for task in run_tasks(tasks(other), tmp_path, root=root).finished] == ["c"]

    def test_hostile_names_of_methods_stay_in_the_folder(self, root: Path, tmp_path: Path) -> None:
        folder = tmp_path / "results"
        names = ["../../up", "/root", "a\nb", "nodes", "\x1b[2J"]
        wanted = [tiny(name, w0=1.0 + i) for i, name in enumerate(names)]
        run_tasks(wanted, folder, root=root)
        assert [path.name for path in tmp_path.iterdir()] == ["results"]
        assert {path.name for path in folder.iterdir()} == {"tiny", ".work"}
        files = {path.name for path in (folder / "tiny").iterdir()}
        assert files == {"nodes.json", *(f"{task.cell.name}.json" for task in wanted)}


@pytest.mark.usefixtures("here", "one_thread")
class TestFailures:
    def test_others_continue_and_all_are_named_at_the_end(self, root: Path, tmp_path: Path) -> None:
        with pytest.raises(TrainingError, match=f"^1 of 3 trainings failed. {BAD}: .*learning_rate"):
            run_tasks([FIRST, BAD, SECOND], tmp_path, root=root)
        assert [read_record(tmp_path, task.cell) is None for task in (FIRST, BAD, SECOND)] == [False, True, False]

    def test_they_are_tried_again(self, root: Path, tmp_path: Path) -> None:
        with pytest.raises(TrainingError, match="is not there"):
            run_tasks([FIRST], tmp_path, root=tmp_path)
        assert run_tasks([FIRST], tmp_path, root=root).finished == [FIRST]

    def test_a_damaged_record_is_found_before_anything_is_trained(self, root: Path, tmp_path: Path) -> None:
        run_tasks([FIRST, SECOND], tmp_path, root=root)
        record_path(tmp_path, SECOND.cell).write_text("{")
        with pytest.raises(FileFormatError, match="this is not a record"):
            run_tasks([THIRD, SECOND], tmp_path, root=root)
        assert read_record(tmp_path, THIRD.cell) is None

    def test_a_folder_that_cannot_be_made(self, root: Path, tmp_path: Path) -> None:
        file = tmp_path / "file"
        file.write_text("")
        for folder in (file, file / "below"):
            with pytest.raises(TrainingError, match=f"records cannot be kept in {folder}"):
                run_tasks([FIRST], folder, root=root)


class StopAfter(Callback):
    """Ctrl-C after some steps."""

    def __init__(self, steps: int) -> None:
        self.steps = steps

    def on_batch(self, epoch: int, batch: int, loss: float) -> None:
        self.steps -= 1
        if self.steps == 0:
            raise KeyboardInterrupt


@pytest.mark.usefixtures("here", "one_thread")
class TestCheckpoints:
    LONGER = tiny("longer", epochs=4)

    def test_a_training_that_was_cut_continues_and_is_the_same(self, root: Path, tmp_path: Path) -> None:
        whole, _ = measure(self.LONGER.cell, root)
        work = work_folder(tmp_path, self.LONGER.cell)
        with pytest.raises(Interrupted):
            measure(self.LONGER.cell, root, work=work, callback=StopAfter(17))
        assert (work / CHECKPOINT).is_file()
        shown = io.StringIO()
        run_tasks([self.LONGER], tmp_path, root=root, progress=Progress(stream=shown))
        found = record_of(tmp_path, self.LONGER).at_half
        assert (found.summary, found.nodes) == (whole.at_half.summary, whole.at_half.nodes)
        assert not work.exists()

    def test_only_what_is_left_is_trained(self, root: Path, tmp_path: Path) -> None:
        work = work_folder(tmp_path, self.LONGER.cell)
        with pytest.raises(Interrupted):
            measure(self.LONGER.cell, root, work=work, callback=StopAfter(20))
        counter = StopAfter(1000)
        measure(self.LONGER.cell, root, work=work, callback=counter)
        assert 1000 - counter.steps == 4 * 7 - 20  # 55 rows in batches of 8

    @pytest.mark.parametrize("content", [b"", b"no tensors"])
    def test_a_damaged_checkpoint_costs_the_training_and_nothing_else(
        self, root: Path, tmp_path: Path, content: bytes
    ) -> None:
        work = work_folder(tmp_path, FIRST.cell)
        work.mkdir(parents=True)
        (work / CHECKPOINT).write_bytes(content)
        assert run_tasks([FIRST], tmp_path, root=root).finished == [FIRST]

    def test_a_cell_that_another_process_trains_is_skipped(self, root: Path, tmp_path: Path) -> None:
        entered, leave = Event(), Event()

        def other() -> None:
            with sole_use(claim_folder(tmp_path, SECOND.cell)):
                entered.set()
                leave.wait()

        thread = Thread(target=other)
        thread.start()
        entered.wait()
        try:
            outcome = run_tasks([FIRST, SECOND, THIRD], tmp_path, root=root)
        finally:
            leave.set()
            thread.join()
        assert (outcome.finished, outcome.skipped) == ([FIRST, THIRD], [SECOND])
        assert read_record(tmp_path, SECOND.cell) is None

    def test_a_record_that_another_process_has_written_meanwhile_is_kept(self, root: Path, tmp_path: Path) -> None:
        class Overtaken(Progress):
            def start(self, title: str, total: float, done: float = 0, least: float = 0) -> None:
                write_record(tmp_path, *made_up(FIRST.cell, threads=7))

        assert run_tasks([FIRST], tmp_path, root=root, progress=Overtaken(quiet=True)).finished == [FIRST]
        assert record_of(tmp_path, FIRST).threads == 7


@pytest.mark.usefixtures("here", "one_thread")
class TestDecisions:
    TASK = tiny(decisions=("fixed", "expected_f1"))

    def strategies(self, folder: Path) -> tuple[str, ...]:
        return record_of(folder, self.TASK).decided.strategies

    def test_a_training_leaves_probabilities_and_a_record(self, root: Path, tmp_path: Path) -> None:
        assert run_tasks([self.TASK], tmp_path, root=root).finished == [self.TASK]
        assert self.strategies(tmp_path) == ("fixed", "expected_f1")
        assert probabilities_path(tmp_path, self.TASK.cell).is_file()
        assert not (tmp_path / "tiny" / "nodes.json").exists()
        assert run_tasks([self.TASK, tiny(decisions=("fixed",))], tmp_path, root=root) == Outcome(1)

    def test_another_decision_needs_no_training_and_loses_no_other(self, root: Path, tmp_path: Path) -> None:
        run_tasks([self.TASK], tmp_path, root=root)
        before = probabilities_path(tmp_path, self.TASK.cell).stat().st_mtime_ns
        more = tiny(decisions=("prior", "fixed"))
        assert run_tasks([more], tmp_path, root=root).finished == [more]
        assert self.strategies(tmp_path) == ("fixed", "expected_f1", "prior")
        assert probabilities_path(tmp_path, self.TASK.cell).stat().st_mtime_ns == before

    def test_probabilities_without_a_record_are_judged(self, root: Path, tmp_path: Path) -> None:
        run_tasks([self.TASK], tmp_path, root=root)
        before = probabilities_path(tmp_path, self.TASK.cell).stat().st_mtime_ns
        record_path(tmp_path, self.TASK.cell).unlink()
        run_tasks([self.TASK], tmp_path, root=root)
        assert self.strategies(tmp_path) == ("fixed", "expected_f1")
        assert probabilities_path(tmp_path, self.TASK.cell).stat().st_mtime_ns == before

    def test_a_record_that_lacks_a_decision_and_has_no_probabilities_is_trained_again(
        self, root: Path, tmp_path: Path
    ) -> None:
        run_tasks([self.TASK], tmp_path, root=root)
        probabilities_path(tmp_path, self.TASK.cell).unlink()
        assert run_tasks([self.TASK], tmp_path, root=root) == Outcome(1)
        run_tasks([tiny(decisions=("tuned",))], tmp_path, root=root)
        assert probabilities_path(tmp_path, self.TASK.cell).is_file()

    def test_damaged_probabilities_are_an_error_with_their_name(self, root: Path, tmp_path: Path) -> None:
        path = probabilities_path(tmp_path, self.TASK.cell)
        path.parent.mkdir(parents=True)
        path.write_bytes(b"no tensors")
        with pytest.raises(TrainingError, match=r"\.safetensors"):
            run_tasks([self.TASK], tmp_path, root=root)

    def test_decisions_of_two_specs_are_scored_together(self) -> None:
        other = tiny("other", decisions=("prior", "fixed"))
        (merged,) = merge_tasks([self.TASK, other])
        assert (merged.method, merged.decisions) == ("tiny", ("fixed", "expected_f1", "prior"))

    def test_protocols_side_by_side(self, root: Path, tmp_path: Path) -> None:
        assert run_tasks([FIRST, self.TASK], tmp_path, root=root).finished == [FIRST, self.TASK]
        assert record_of(tmp_path, FIRST).decisions is None
        assert record_of(tmp_path, self.TASK).fixed is None


@pytest.mark.usefixtures("here", "one_thread")
class TestDisplay:
    def test_a_line_for_each_training_with_the_time_left(self, root: Path, tmp_path: Path) -> None:
        write_record(tmp_path, *made_up(FIRST.cell, nodes=made_up(FIRST.cell)[0].at_half.nodes))
        (tmp_path / "tiny" / "nodes.json").unlink()
        shown = io.StringIO()
        run_tasks([FIRST, SECOND, THIRD], tmp_path, root=root, progress=Progress(stream=shown, seconds_between=1e9))
        first, second, third = shown.getvalue().splitlines()
        assert first == "2 trainings to do; 1 already done"
        assert second.startswith("[1/2] tiny, second, seed 0: F1 ")
        assert second.endswith(" left")
        assert third.startswith("[2/2] tiny, third, seed 0: F1 ")
        assert third.endswith(" steps/s")

    def test_failures_and_hostile_names(self, root: Path, tmp_path: Path) -> None:
        shown = io.StringIO()
        bad = tiny(HOSTILE, learning_rate=1e30, epochs=3)
        with pytest.raises(TrainingError):
            run_tasks([bad], tmp_path, root=root, progress=Progress(stream=shown, seconds_between=1e9))
        text = shown.getvalue()
        assert "[1/1] tiny, a b [2J [red]c[/red]{task}  , seed 0 FAILED: " in text
        assert not {"\x1b", "\x07", "\u202e"} & set(text)

    def test_results_in_a_line(self) -> None:
        assert describe(FIRST, made_up(FIRST.cell)[0]) == (
            "F1 33.33, recall 50.00, AP 20.00, 1 node found; 12 s, 1,234 steps/s"
        )
        task = held_out_task("fixed", "expected_f1")
        record = decided_record(task.cell, decided("prior"), decided("fixed"), decided("expected_f1", 0.5))
        assert describe(task, record) == "AP 20.00, F1 25.00 with fixed, 50.00 with expected_f1; 12 s"


class TestTimes:
    def test_similar_records_calibrate_the_cost(self, tmp_path: Path) -> None:
        small, large = cell_of(), cell_of(n_members=10)
        write_record(tmp_path, *made_up(small, seconds=100.0))
        write_record(tmp_path, *made_up(large, seconds=3000.0))
        times = TrainingTimes.from_records(tmp_path)
        assert times.seconds(cell_of(seed=1)) == pytest.approx(100)
        assert times.seconds(cell_of(n_members=10, epochs=53)) == pytest.approx(1500)
        go = cell_of("cellcycle_GO")
        assert times.seconds(go) == pytest.approx(100 * go.cost / small.cost)  # single models of another family

    def test_damaged_records_do_not_count(self, tmp_path: Path) -> None:
        write_record(tmp_path, *made_up(cell_of(), seconds=100.0))
        record_path(tmp_path, cell_of(seed=1)).write_text("{")
        assert TrainingTimes.from_records(tmp_path).seconds(cell_of()) == pytest.approx(100)

    def test_without_records_there_is_an_estimate(self, tmp_path: Path) -> None:
        assert 10 < TrainingTimes.from_records(tmp_path).seconds(cell_of()) < 1000


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where processes find a dataset of the catalogue."""
    folder = tmp_path_factory.mktemp("data")
    write_files(folder, find_entry(STANDING_FOR))
    return folder


def quick(method: str, **changes: Any) -> Task:
    return task_of(method, STANDING_FOR, **(QUICK | changes))


class CtrlC(Progress):
    """Presses Ctrl-C when the first training is done."""

    pressed = 0.0

    def line(self, text: str) -> None:
        if text.startswith("[1/"):
            self.pressed = time.monotonic()
            raise KeyboardInterrupt


class TestProcesses:
    @pytest.mark.slow
    def test_side_by_side_one_failing_then_continued(self, files: Path, tmp_path: Path) -> None:
        good: Sequence[Task] = [quick("good", seed=seed) for seed in range(2)]
        judged = held_out_task("fixed", "prior", dataset=STANDING_FOR, **QUICK)
        bad = quick("bad", learning_rate=1e30, epochs=3)
        with pytest.raises(TrainingError, match=f"1 of 4 trainings failed. {bad}: .*learning_rate"):
            run_tasks([good[0], bad, good[1], judged], tmp_path, Processes(2), root=files)
        assert {record_of(tmp_path, task).at_half.steps_per_epoch for task in good} == {1}
        assert record_of(tmp_path, judged).decided.strategies == ("fixed", "prior")
        assert len(read_nodes(tmp_path, STANDING_FOR).names) == 500
        assert run_tasks([*good, judged], tmp_path, Processes(2), root=files) == Outcome(3)

    def test_an_interrupt_saves_checkpoints_and_ends_nobody_else(self, files: Path, tmp_path: Path) -> None:
        first = quick("first", epochs=150)  # some seconds, in which the other one begins, too
        endless = quick("endless", **ENDLESS)
        bystander = multiprocessing.get_context("spawn").Process(target=time.sleep, args=(600,))
        bystander.start()
        display = CtrlC()
        try:
            with pytest.raises(Interrupted, match="what is done is kept, and the same command continues from there"):
                run_tasks([first, endless], tmp_path, Processes(2), root=files, progress=display)
            assert time.monotonic() - display.pressed < SOON
            assert bystander.is_alive()
        finally:
            bystander.kill()
            bystander.join()
        assert read_record(tmp_path, first.cell) is not None
        assert read_record(tmp_path, endless.cell) is None
        assert (work_folder(tmp_path, endless.cell) / CHECKPOINT).is_file()

    def test_when_the_time_is_over_trainings_stop_with_a_checkpoint(self, files: Path, tmp_path: Path) -> None:
        endless, never = quick("endless", **ENDLESS), quick("never")
        outcome = run_tasks([endless, never], tmp_path, root=files, hours=15 / 3600)
        assert (outcome.finished, outcome.stopped, outcome.waiting) == ([], [endless], [never])
        assert (work_folder(tmp_path, endless.cell) / CHECKPOINT).is_file()

    def test_one_that_is_killed_continues_from_its_checkpoint(self, files: Path, tmp_path: Path) -> None:
        executor = Processes(1)
        longer = quick("longer", epochs=60, checkpoint_epochs=1)

        def kill() -> None:
            while not (work_folder(tmp_path, longer.cell) / CHECKPOINT).exists():
                time.sleep(0.02)
            executor._workers[0].process.kill()

        killer = Thread(target=kill)
        killer.start()
        with pytest.warns(RuntimeWarning, match=f"^{longer}: its process was killed, most likely because memory ran"):
            assert run_tasks([longer], tmp_path, executor, root=files) == Outcome(0, finished=[longer])
        killer.join()
        assert record_of(tmp_path, longer).at_half.summary == measure(longer.cell, files)[0].at_half.summary
