"""What only Ray does: machines that do not share the disk, memory, and a node that is killed."""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rarenode.errors import ExecutorError, Interrupted
from rarenode.executors import OnRay, Task
from rarenode.executors.on_ray import _Folder, run_task
from rarenode.executors.worker import Outcome, Parcel
from rarenode.version import __version__
from tests.executors import work
from tests.ray_cluster import MUCH, RayCluster


def parcel(*content: Any) -> Parcel:
    return Parcel(pickle.dumps(content), 1, None, None)


def far_away(folder: Path, task: Task) -> Outcome:
    """What a worker does that does not see the folder."""
    assert task.folder is not None
    here = _Folder.of(task.folder)
    there = replace(here, path=Path("/nowhere"))
    outcome, content = run_task(__version__, {}, there, parcel(task.function, *task.arguments), None)
    assert content is not None
    here.take_back(content)
    return outcome


class TestFolders:
    def test_of_machines_that_do_not_share_the_disk(self, tmp_path: Path) -> None:
        folder = tmp_path / "folder"
        folder.mkdir()
        (folder / "text").write_text("a")
        (folder / "old").write_text("")
        before, where = far_away(tmp_path, Task("", work.use_folder, ("b",), folder=folder)).value
        assert before == "a"
        assert not Path(where).exists()
        assert {path.name for path in folder.iterdir()} == {"text", "below"}
        assert (folder / "text").read_text() == "ab"
        assert (folder / "below" / "new").read_bytes() == b"\x00"

    def test_a_checkpoint_comes_back_from_a_task_that_is_stopped(self, tmp_path: Path) -> None:
        outcome = far_away(tmp_path, Task("", work.stops_at_once, (), folder=tmp_path / "new"))
        assert isinstance(outcome.error, Interrupted)
        assert (tmp_path / "new" / "checkpoint").read_text() == "saved"


def test_versions_must_agree() -> None:
    outcome, _ = run_task("0.0.0", {}, None, parcel(work.add, 1, 2), None)
    with pytest.raises(ExecutorError, match=r"a worker has rarenode .*, and this machine 0\.0\.0; install the same"):
        raise outcome.error or AssertionError


def test_environment_variables_of_a_worker_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RARENODE_DATA", "mine")
    monkeypatch.delenv("RARENODE_CACHE", raising=False)
    environment = {"RARENODE_DATA": "driver's", "RARENODE_CACHE": "driver's"}
    outcomes = [
        run_task(__version__, environment, None, parcel(work.variable, name), None)[0].value for name in environment
    ]
    monkeypatch.delenv("RARENODE_CACHE")
    assert outcomes == ["mine", "driver's"]


def test_memory_and_gpus_decide_where_tasks_run(ray_cluster: RayCluster) -> None:
    large = [Task(f"large {n}", work.node_and_gpus, memory=MUCH // 2) for n in range(2)]
    graphic = Task("on a GPU", work.node_and_gpus, gpus=1)
    too_large = Task("more than there is", work.node_and_gpus, memory=1 << 50)
    with OnRay(ray_cluster.address) as executor:
        assert executor.room == 2
        found = {each.task: each.get() for each in executor.run([*large, graphic, too_large])}
    nodes = {node for node, _ in found.values()}
    assert nodes == {ray_cluster.second.node_id}
    assert found[graphic][1] == "0"
    assert not found[large[0]][1]


@pytest.mark.slow
def test_a_node_is_killed(ray_cluster: RayCluster, tmp_path: Path) -> None:
    """Its task goes on elsewhere, though no other machine has as much memory."""
    begun = tmp_path / "begun"
    begun.mkdir()
    task = Task("the task", work.ends_when_begun_again, (begun,), memory=MUCH // 2)
    others = [Task(f"add {n}", work.add, (n, 1)) for n in range(4)]
    found = []
    with pytest.warns(RuntimeWarning, match=r"^the task: its worker is lost"), OnRay(ray_cluster.address) as executor:
        executor.start(task)
        while not list(begun.iterdir()):
            found += executor.wait(0.05)
        ray_cluster.kill_second()
        found += list(executor.run(others))
    assert {each.task: each.get() for each in found} == {task: 2} | {other: n + 1 for n, other in enumerate(others)}
    assert len(found) == 5


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:port"])
def test_no_cluster_there(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ray itself would look for one for minutes."""
    monkeypatch.setattr("ray.is_initialized", lambda: False)
    with pytest.raises(ExecutorError, match=f"^there is no Ray at {address}: "), OnRay(address):
        pass


def test_without_ray_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ExecutorError, match="pip install ray"), OnRay():
        pass
