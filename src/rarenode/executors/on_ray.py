"""`OnRay`: tasks run on Ray, on this machine or on a cluster. Nothing else imports ray.

Every machine needs the same rarenode. Nothing else must be shared: arguments, results and folders of tasks travel with
them. Where machines do share the disk, a task works in its folder directly, and its checkpoints outlive its machine.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4

from rarenode._io.files import replacing
from rarenode.engines import available_threads
from rarenode.errors import ExecutorError, Interrupted
from rarenode.executors.executor import Executor, Lost, Result, Task
from rarenode.executors.worker import Outcome, Parcel, call
from rarenode.version import __version__

STORE_BYTES = 1 << 30
"""Of memory for objects that travel, where Ray is started here; what is more goes to the disk."""
OURS = "RARENODE_"
"""Begins the names of environment variables that a worker takes over, unless it has them."""


class OnRay(Executor):
    """Runs tasks on Ray.

    Args:
        address: of a cluster; None: that of the environment variable ``RAY_ADDRESS``, or else this machine.
        jobs: tasks side by side at most; more than there are processors wait in Ray's queue, where a cluster that can
            grow sees them. None: as many as there are processors.
    """

    def __init__(self, address: str | None = None, jobs: int | None = None) -> None:
        super().__init__()
        self.address, self.jobs = address, jobs
        self._begun: dict[Any, _Begun] = {}
        self._shared: dict[str, Any] = {}
        self._is_mine = False

    @property
    def _places(self) -> int:
        return self.jobs or max(1, int(sum(each.get("CPU", 0) for each in self._machines())))

    @property
    def threads(self) -> int:
        """How many a task uses: its share of the processors, all on one machine."""
        processors = [int(each.get("CPU", 0)) for each in self._machines()]
        return max(1, min(sum(processors) // self.room, max(processors, default=1)))

    def _machines(self) -> list[Mapping[str, float]]:
        """What each machine of the cluster has."""
        return [each["Resources"] for each in self._ray.nodes() if each["Alive"]]

    def _open(self) -> None:
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent anywhere
        os.environ.setdefault("RAY_worker_niceness", "0")  # where Ray is started here: workers are as nice as this is
        try:
            import ray  # noqa: PLC0415 (it takes a second to load, and is optional)
        except ImportError:
            raise ExecutorError(
                "running on Ray needs the package ray, which is not installed: pip install ray"
            ) from None
        self._ray = ray
        if ray.is_initialized():
            return
        address = self.address or os.environ.get("RAY_ADDRESS")
        here = {"num_cpus": available_threads(), "object_store_memory": STORE_BYTES, "include_dashboard": False}
        try:
            if address is not None and ":" in address:
                _require_listener(address)
            ray.init(address or "local", log_to_driver=False, logging_level="error", **({} if address else here))
            self._is_mine = True
        except (OSError, RuntimeError, ValueError, ImportError) as error:
            where = "on this machine" if address is None else f"at {address}"
            raise ExecutorError(f"there is no Ray {where}: {error}") from None

    def _close(self) -> None:
        for reference in self._begun:
            with suppress(Exception):
                self._ray.cancel(reference, force=True)
        self._begun.clear()
        self._shared.clear()
        if self._is_mine:
            self._is_mine = False
            self._ray.shutdown()

    def _begin(self, task: Task) -> None:
        machines = self._machines()
        if task.gpus > max((each.get("GPU", 0) for each in machines), default=0):
            raise ExecutorError(
                f"{task.name} needs a GPU, and no machine of the Ray cluster has one; set device to cpu"
            )
        # What no machine has would be waited for without end. The memory is an estimate anyway.
        threads = max(1, min(task.threads or self.threads, _most("CPU", machines)))
        memory = min(task.memory, _most("memory", machines))
        folder = None if task.folder is None else _Folder.of(task.folder)
        packed = self._ray.cloudpickle.dumps((task.function, *task.arguments))
        remote = self._ray.remote(run_task).options(
            name=task.name, max_retries=0, num_cpus=threads, num_gpus=task.gpus, memory=memory
        )
        key = None if task.shared is None else self._key(task.shared)
        parcel = Parcel(packed, threads, key, None)
        reference = remote.remote(__version__, _environment(), folder, parcel, self._share(key, task.shared))
        self._begun[reference] = _Begun(task, folder, threads, memory)

    def _share(self, key: str | None, value: Any) -> Any:
        """The packed value, which travels to each machine only once."""
        if key is not None and key not in self._shared:
            self._shared[key] = self._ray.put(self._ray.cloudpickle.dumps(value))
        return None if key is None else self._shared[key]

    def _outcomes(self, seconds: float) -> list[tuple[Task, Result | Lost]]:
        if not self._begun:
            return [(task, Lost("it could not be begun again")) for task in self.running]
        references = list(self._begun)
        try:
            ready, _ = self._ray.wait(references, num_returns=1, timeout=seconds)
            if ready:
                ready, _ = self._ray.wait(references, num_returns=len(references), timeout=0)
            else:
                self._fit_again()
        except (self._ray.exceptions.RayError, ConnectionError) as error:
            raise ExecutorError(f"the connection to Ray is lost ({error}); what is done is kept") from None
        return [(begun.task, self._outcome(reference, begun)) for reference, begun in self._popped(ready)]

    def _popped(self, references: Iterable[Any]) -> Iterator[tuple[Any, _Begun]]:
        return ((reference, self._begun.pop(reference)) for reference in references)

    def _fit_again(self) -> None:
        """Begin again what waits for more than any machine has, since the one that had it is gone."""
        machines = self._machines()
        threads, memory = _most("CPU", machines), _most("memory", machines)
        too_large = [ref for ref, begun in self._begun.items() if begun.threads > threads or begun.memory > memory]
        if threads and not self.is_stopping:
            for reference, begun in self._popped(too_large):
                self._ray.cancel(reference, force=True)
                begun.end()
                self._begin(begun.task)

    def _outcome(self, reference: Any, begun: _Begun) -> Result | Lost:
        errors = self._ray.exceptions
        lost = (
            errors.WorkerCrashedError,
            errors.OutOfMemoryError,
            errors.NodeDiedError,
            errors.LocalRayletDiedError,
            errors.ObjectLostError,
        )
        content: Mapping[str, bytes] | None = None
        try:
            outcome, content = self._ray.get(reference)
        except errors.TaskCancelledError:
            return Result(begun.task, error=Interrupted(f"{begun.task.name}: stopped"))
        except lost as error:
            return Lost(f"its worker is lost ({type(error).__name__})")
        except errors.RayError as error:
            problem = str(error).strip().splitlines()[-1]
            return Result(begun.task, error=ExecutorError(f"Ray could not run it: {problem}"))
        finally:
            begun.end(content)
        result: Result = outcome.result(begun.task)
        return result

    def _interrupt(self) -> None:
        for reference in self._begun:
            with suppress(Exception):  # whatever is wrong with the cluster, it is over
                self._ray.cancel(reference, force=False)


@dataclass(frozen=True)
class _Folder:
    """The folder of a task, as it travels: a worker that finds the mark in it shares the disk."""

    path: Path
    mark: str
    content: Mapping[str, bytes]

    @classmethod
    def of(cls, path: Path) -> _Folder:
        """A folder of this machine, which is created."""
        path.mkdir(parents=True, exist_ok=True)
        folder = cls(path.resolve(), f".{uuid4().hex}", _files_in(path))
        (path / folder.mark).touch()
        return folder

    def take_back(self, content: Mapping[str, bytes] | None) -> None:
        """Write what a worker left that worked elsewhere; None if it worked in this very folder, or is lost."""
        (self.path / self.mark).unlink(missing_ok=True)
        if content is None:
            return
        _write(self.path, content)
        for name in self.content.keys() - content.keys():
            (self.path / name).unlink(missing_ok=True)


@dataclass(frozen=True)
class _Begun:
    """A task that Ray has, and what was requested for it."""

    task: Task
    folder: _Folder | None
    threads: int
    memory: int

    def end(self, content: Mapping[str, bytes] | None = None) -> None:
        """See `_Folder.take_back`."""
        if self.folder is not None:
            self.folder.take_back(content)


def run_task(
    version: str, environment: Mapping[str, str], folder: _Folder | None, parcel: Parcel, shared: bytes | None
) -> tuple[Outcome, Mapping[str, bytes] | None]:
    """Run a task in a worker of Ray, and return what became of it, and the files of its folder that must travel."""
    if version != __version__:
        problem = f"a worker has rarenode {__version__}, and this machine {version}; install the same everywhere"
        return Outcome(error=ExecutorError(problem)), None
    for name, value in environment.items():
        os.environ.setdefault(name, value)
    parcel = replace(parcel, shared=shared)
    if folder is None or (folder.path / folder.mark).exists():
        return call(parcel, None if folder is None else folder.path), None
    with TemporaryDirectory(prefix="rarenode-") as here:
        _write(Path(here), folder.content)
        outcome = call(parcel, Path(here))
        return outcome, _files_in(Path(here))


def _most(what: str, machines: Iterable[Mapping[str, float]]) -> int:
    """As much as the machine has that has most of it."""
    return int(max((each.get(what, 0.0) for each in machines), default=0.0))


def _require_listener(address: str) -> None:
    """Make sure that something listens there; Ray itself tries for minutes.

    Raises:
        OSError: nothing does.
        ValueError: it is no address.
    """
    host, _, port = address.rpartition("//")[2].partition("/")[0].rpartition(":")
    socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith(OURS)}


def _files_in(folder: Path) -> dict[str, bytes]:
    """The files in a folder and in those below, by their names in it."""
    files = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def _write(folder: Path, content: Mapping[str, bytes]) -> None:
    for name, data in content.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as (part,):
            part.write_bytes(data)
