"""`make_executor`: an executor by its name."""

from __future__ import annotations

from rarenode.errors import ArgumentError
from rarenode.executors.executor import Executor
from rarenode.executors.here import Here
from rarenode.executors.on_ray import OnRay
from rarenode.executors.processes import Processes

LOCAL, RAY = "local", "ray"


def make_executor(on: str = LOCAL, jobs: int | None = None) -> Executor:
    """The executor for a name.

    Args:
        on: ``local``: this machine; ``ray``: Ray on this machine, or the cluster that the environment variable
            ``RAY_ADDRESS`` names; otherwise the address of a Ray cluster, such as ``10.0.0.1:6379``, ``auto`` or
            ``ray://head:10001``.
        jobs: tasks side by side at most. None: on this machine one, in this process; on Ray as many as there are
            processors.
    """
    if jobs is not None and jobs < 1:
        raise ArgumentError(f"jobs must be at least 1, got {jobs}")
    if on == LOCAL:
        return Here() if jobs in (None, 1) else Processes(jobs)
    if on not in (RAY, "auto") and ":" not in on:
        raise ArgumentError(f"on={on!r} (--on) is not {LOCAL}, {RAY}, or the address of a Ray cluster (host:port)")
    return OnRay(None if on == RAY else on, jobs)
