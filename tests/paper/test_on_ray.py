"""Trainings of the paper on a Ray cluster of two nodes: the same records as here, each once, whatever is killed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from tempfile import gettempdir
from typing import Any

import pytest

from rarenode._io.progress import Progress
from rarenode.data.catalogue import find_entry
from rarenode.errors import Interrupted
from rarenode.executors import Here, OnRay
from rarenode.executors import on_ray as ray_module
from rarenode.paper import runner
from rarenode.paper.grid import Cell, Task
from rarenode.paper.record import Record
from rarenode.paper.runner import Outcome, run_tasks
from rarenode.paper.store import probabilities_path, read_record, work_folder, write_record
from rarenode.training.checkpoint import FILE as CHECKPOINT
from tests.paper.small_grid import ENDLESS, QUICK, STANDING_FOR, held_out_task, task_of, write_files
from tests.ray_cluster import LITTLE, RayCluster

LONG = 60
"""Epochs of a training that is under way when its node is killed."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_files(folder, find_entry(STANDING_FOR))
    return folder


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the record of each cell is written."""
    found: Counter[str] = Counter()
    plain = write_record

    def write(folder: Path, record: Record, *nodes: Any) -> None:
        found[record.cell.fingerprint] += 1
        plain(folder, record, *nodes)

    monkeypatch.setattr(runner, "write_record", write)
    return found


def quick(method: str, **changes: Any) -> Task:
    return task_of(method, STANDING_FOR, **(QUICK | changes))


def outcomes(folder: Path, task: Task) -> Any:
    record = read_record(folder, task.cell)
    assert record is not None
    return record.decisions or (record.at_half.summary, record.at_half.nodes)


@pytest.mark.slow
@pytest.mark.usefixtures("one_thread")
def test_a_node_is_killed_and_nothing_is_lost_or_done_twice(
    ray_cluster: RayCluster, root: Path, tmp_path: Path, written: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The long training needs the memory of the second node, which is killed when the first record arrives."""
    long = quick("long", epochs=LONG)
    wanted = [
        long,
        *(quick("short", seed=seed) for seed in range(3)),
        held_out_task("fixed", dataset=STANDING_FOR, **QUICK),
    ]
    monkeypatch.setattr(Cell, "memory", property(lambda cell: 2 * LITTLE if cell == long.cell else 100 << 20))

    class KillsNode(Progress):
        def line(self, text: str) -> None:
            if text.startswith("[1/"):
                ray_cluster.kill_second()

    with pytest.warns(RuntimeWarning, match=f"^{long}: its worker is lost"):
        outcome = run_tasks(wanted, tmp_path / "ray", OnRay(), root=root, progress=KillsNode(quiet=True))
    assert (outcome.present, set(outcome.finished)) == (0, set(wanted))
    assert written == Counter({task.cell.fingerprint: 1 for task in wanted})
    assert list((tmp_path / "ray" / ".work").iterdir()) == []
    run_tasks(wanted, tmp_path / "here", Here(), root=root)
    for task in wanted:
        assert outcomes(tmp_path / "ray", task) == outcomes(tmp_path / "here", task)
    assert probabilities_path(tmp_path / "ray", wanted[-1].cell).is_file()
    assert run_tasks(wanted, tmp_path / "ray", OnRay(), root=root) == Outcome(len(wanted))


@pytest.mark.slow
def test_when_it_is_stopped_checkpoints_come_back(
    ray_cluster: RayCluster, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As from machines that do not share the disk."""
    monkeypatch.setattr(ray_module._Folder, "of", classmethod(unmarked))
    endless = quick("endless", checkpoint_epochs=1, **ENDLESS)
    before = set(Path(gettempdir()).glob(f"rarenode-*/{CHECKPOINT}"))

    class CtrlC(Progress):
        def update(self, *_: Any, **__: Any) -> None:
            if set(Path(gettempdir()).glob(f"rarenode-*/{CHECKPOINT}")) - before:
                raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="the same command continues"):
        run_tasks([endless], tmp_path, OnRay(ray_cluster.address), root=root, progress=CtrlC(quiet=True))
    assert (work_folder(tmp_path, endless.cell) / CHECKPOINT).is_file()
    outcome = run_tasks([endless], tmp_path, OnRay(), root=root, hours=3 / 3600)
    assert outcome == Outcome(0, stopped=[endless])


def unmarked(kind: type[Any], path: Path) -> Any:
    """A folder that no worker finds."""
    path.mkdir(parents=True, exist_ok=True)
    return kind(path, ".mark", ray_module._files_in(path))


@pytest.mark.slow
@pytest.mark.usefixtures("ray_cluster")
def test_the_data_may_be_those_of_the_workers(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those have no RARENODE_DATA, and take over this one."""
    monkeypatch.setenv("RARENODE_DATA", str(root))
    task = quick("first")
    assert run_tasks([task], tmp_path, OnRay()) == Outcome(0, finished=[task])
