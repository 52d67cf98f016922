"""One suite for all executors: in this process, in worker processes, and on a Ray cluster of two nodes."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from rarenode.errors import ArgumentError, ExecutorError, Interrupted, WorkerLostError
from rarenode.executors import ATTEMPTS, Executor, Here, OnRay, Processes, Task, make_executor, worker
from rarenode.executors import executor as module
from tests.executors import work

SOON = 30
"""Seconds; an endless task that is not stopped would take longer."""

Make = Callable[[], Executor]


@pytest.fixture(params=["here", "processes", "ray"])
def make(request: pytest.FixtureRequest) -> Make:
    if request.param == "ray":
        address = request.getfixturevalue("ray_cluster").address
        return lambda: OnRay(address)
    return Here if request.param == "here" else lambda: Processes(2)


@pytest.fixture(params=["processes", "ray"])
def make_apart(request: pytest.FixtureRequest) -> Make:
    """An executor whose tasks run in other processes."""
    if request.param == "ray":
        address = request.getfixturevalue("ray_cluster").address
        return lambda: OnRay(address)
    return lambda: Processes(2)


def wait_until(path: Path) -> None:
    while not path.exists():
        time.sleep(0.02)


class TestAll:
    def test_results_and_errors(self, make: Make) -> None:
        shared = list(range(1000))
        tasks = [
            *(Task(f"add {n}", work.add, (n, 10)) for n in range(5)),
            Task("failing", work.fail, ("no",)),
            *(Task(f"length {n}", work.length, (n,), shared) for n in range(2)),
        ]
        with make() as executor:
            found = {result.task: result for result in executor.run(tasks)}
            assert not executor.running
        assert [found[task].get() for task in tasks[:5]] == [10, 11, 12, 13, 14]
        assert [found[task].get() for task in tasks[6:]] == [1000, 1001]
        with pytest.raises(ValueError, match=r"^no$"):
            found[tasks[5]].get()

    def test_it_can_be_used_again(self, make: Make) -> None:
        executor = make()
        for number in range(2):
            with executor:
                assert [each.get() for each in executor.run([Task("add", work.add, (number, 1))])] == [number + 1]

    def test_a_folder(self, make: Make, tmp_path: Path) -> None:
        folder = tmp_path / "folder"
        folder.mkdir()
        (folder / "text").write_text("a")
        (folder / "old").write_text("")
        with make() as executor:
            (result,) = executor.run([Task("folder", work.use_folder, ("b",), folder=folder)])
        assert result.get() == ("a", str(folder))
        assert {path.name for path in folder.iterdir()} == {"text", "below"}
        assert (folder / "text").read_text() == "ab"

    def test_an_error_of_the_caller_stops_what_is_running(self, make_apart: Make, tmp_path: Path) -> None:
        begun, folder = tmp_path / "begun", tmp_path / "folder"
        started = time.monotonic()
        with pytest.raises(RuntimeError, match=r"^mine$"), make_apart() as executor:
            executor.start(Task("one", work.until_stopped, (begun,), folder=folder))
            wait_until(begun)
            raise RuntimeError("mine")
        assert time.monotonic() - started < SOON
        assert (folder / "checkpoint").read_text() == "saved"
        assert {path.name for path in folder.iterdir()} == {"checkpoint"}


class TestApart:
    """In other processes."""

    def test_order_warnings_threads_and_what_cannot_travel(self, make_apart: Make, tmp_path: Path) -> None:
        tasks = [
            Task("waiting", work.wait_for, (tmp_path / "go",)),
            Task("the task", work.warn, ("beware",)),
            Task("threads", work.threads, threads=1),
            Task("odd", work.fail_oddly),
            Task("a lock", work.lock),
        ]
        found = {}
        with pytest.warns(RuntimeWarning, match=r"^the task: beware$"), make_apart() as executor:
            for result in executor.run(tasks):
                found[result.task.name] = result
                (tmp_path / "go").touch()
        assert next(iter(found)) == "the task"  # the first that is done
        assert (found["the task"].get(), found["threads"].get()) == ("beware", (1, 1))
        with pytest.raises(RuntimeError, match="OddError: odd error"):
            found["odd"].get()
        with pytest.raises(ExecutorError, match=r"cannot pickle '_thread\.lock' object"):
            found["a lock"].get()

    def test_interrupts_reach_the_task(self, make_apart: Make, tmp_path: Path) -> None:
        begun, folder = tmp_path / "begun", tmp_path / "folder"
        with make_apart() as executor:
            executor.start(Task("one", work.until_stopped, (begun,), folder=folder))
            wait_until(begun)
            executor.interrupt()
            assert not executor.has_room
            results = []
            while executor.running:
                results += executor.wait(1.0)
        with pytest.raises(Interrupted):
            results[0].get()
        assert (folder / "checkpoint").read_text() == "saved"

    def test_a_task_that_does_not_stop_is_killed(
        self, make_apart: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(module, "GRACE", 0.5)
        started = time.monotonic()
        with pytest.raises(KeyboardInterrupt), make_apart() as executor:
            executor.start(Task("one", work.stubborn, (tmp_path / "begun",)))
            wait_until(tmp_path / "begun")
            raise KeyboardInterrupt
        assert time.monotonic() - started < SOON

    def test_a_lost_worker_is_replaced_but_not_for_ever(self, make_apart: Make, tmp_path: Path) -> None:
        folders = [tmp_path / name for name in ("once", "always")]
        for folder in folders:
            folder.mkdir()
        once, always = (
            Task(folder.name, work.dies_at_first, (folder, deaths))
            for folder, deaths in zip(folders, (1, 99), strict=True)
        )
        good = Task("good", work.add, (1, 2))
        with pytest.warns(RuntimeWarning) as issued, make_apart() as executor:
            found = {result.task: result for result in executor.run([once, always, good])}
        told = Counter(str(each.message).partition(":")[0] for each in issued)
        assert told == {"once": 1, "always": ATTEMPTS - 1}
        assert all("its " in str(each.message) and "it is begun again" in str(each.message) for each in issued)
        assert (found[once].get(), found[good].get()) == (2, 3)
        with pytest.raises(WorkerLostError, match=f"{ATTEMPTS} times"):
            found[always].get()
        assert len(list(folders[1].iterdir())) == ATTEMPTS


class TestProcesses:
    def test_few_tasks_share_all_processors(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("rarenode.executors.processes.available_threads", lambda: 12)
        executor = Processes(6)
        assert (executor.room, executor.threads) == (6, 2)
        executor.expect(3)
        assert (executor.room, executor.threads) == (3, 4)
        executor.expect(100)
        assert (executor.room, executor.threads) == (6, 2)

    def test_one_process_takes_several_tasks_and_none_is_left(self) -> None:
        with Processes(1) as executor:
            (first,), (second,) = ({each.get() for each in executor.run([Task("", work.process)])} for _ in range(2))
            workers = [worker.process for worker in executor._workers]
        assert first == second == workers[0].pid
        assert workers[0].poll() is not None

    def test_a_process_ends_with_the_one_that_started_it(self, tmp_path: Path) -> None:
        """That one is killed; the task still saves its checkpoint."""
        code = (
            "import sys; from pathlib import Path; from rarenode.executors import Processes, Task\n"
            "from tests.executors import work\n"
            "folder = Path(sys.argv[1])\n"
            "with Processes(1) as executor:\n"
            "    list(executor.run([Task('', work.until_stopped, (folder / 'begun',), folder=folder / 'folder')]))\n"
        )
        parent = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
        wait_until(tmp_path / "begun")
        parent.kill()
        parent.wait()
        wait_until(tmp_path / "folder" / "checkpoint")

    def test_a_task_that_cannot_be_sent(self) -> None:
        started = time.monotonic()
        with pytest.raises(ExecutorError, match="local cannot be sent to another process"), Processes(1) as executor:
            list(executor.run([Task("local", lambda: None)]))
        assert time.monotonic() - started < SOON

    def test_a_worker_keeps_what_tasks_share(self) -> None:
        first, second = [0], [10]
        tasks = [Task("", work.append, (number,), shared) for number, shared in ((1, first), (2, first), (3, second))]
        with Processes(1) as executor:
            assert [each.get() for each in executor.run(tasks)] == [[0, 1], [0, 1, 2], [10, 3]]
        assert (first, second) == ([0], [10])

    def test_a_script_needs_no_guard(self, tmp_path: Path) -> None:
        """Workers do not run the program that started them."""
        script = tmp_path / "script.py"
        script.write_text(
            "from math import sqrt\n"
            "from rarenode.executors import Processes, Task\n"
            "with Processes(2) as executor:\n"
            "    print([each.get() for each in executor.run([Task('', sqrt, (9.0,))])])\n"
        )
        done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False, timeout=120)
        assert (done.stdout, done.stderr) == ("[3.0]\n", "")


class TestHere:
    def test_ctrl_c_is_not_a_result_and_nothing_is_run_again(self, tmp_path: Path) -> None:
        calls = []

        def stop() -> None:
            calls.append(1)
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt), Here() as executor:
            list(executor.run([Task("one", stop), Task("two", stop)]))
        assert len(calls) == 1


class TestNames:
    def test_every_executor_has_one(self) -> None:
        assert isinstance(make_executor(), Here)
        assert isinstance(make_executor("local", 1), Here)
        assert isinstance(processes := make_executor("local", 3), Processes)
        assert processes.room == 3
        for name, address in (("ray", None), ("10.0.0.1:6379", "10.0.0.1:6379"), ("ray://a:1", "ray://a:1")):
            assert isinstance(on_ray := make_executor(name, 2), OnRay)
            assert (on_ray.address, on_ray.jobs) == (address, 2)

    @pytest.mark.parametrize(("on", "jobs"), [("rays", None), ("", None), ("local", 0), ("ray", -1)])
    def test_others_are_refused(self, on: str, jobs: int | None) -> None:
        with pytest.raises(ArgumentError):
            make_executor(on, jobs)


class TestWorkerState:
    def test_an_interrupt_reaches_a_task_that_waits_to_begin(self) -> None:
        """Not the next one."""
        state = worker._State()
        state.receive()
        state.interrupt()
        assert not state.begin()
        state.end()
        state.receive()
        assert state.begin()

    def test_an_interrupt_without_a_task_does_nothing(self) -> None:
        state = worker._State()
        state.interrupt()
        state.receive()
        assert state.begin()

    def test_one_that_is_running_is_interrupted(self) -> None:
        state = worker._State()
        state.receive()
        assert state.begin()
        with pytest.raises(KeyboardInterrupt):
            state.interrupt()
            time.sleep(1)
