"""How many threads a step uses: how many the process may use, and how many are fastest at the moment.

Threads wait for each other several times a step. On an idle machine more of them are faster. When other programs use
the cores, every wait is for the thread that is not running just then, and two threads can be ten times slower than one.
Results do not depend on the number of threads, so it can be chosen while training runs: `ThreadChoice` measures the
wall time of steps, keeps what is fastest and looks again from time to time.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numba
import torch
from threadpoolctl import ThreadpoolController

from rarenode._io.compiled import start_threads
from rarenode.errors import ArgumentError

# --- how many threads the process may use --------------------------------------------------------------------------


_limit: ContextVar[int] = ContextVar("limit", default=sys.maxsize)
"""Of `limited_threads`."""


def available_threads(n_jobs: int | None = None) -> int:
    """The number of threads that this process may use.

    It is the smallest of: the processors to which the process is bound, the quota of its control groups (containers
    have one), numba's limit (the environment variable ``NUMBA_NUM_THREADS``), that of `limited_threads`, and
    ``n_jobs``.

    Args:
        n_jobs: the caller's limit. None or -1: all that are available; -2: all but one; and so on.
    """
    limit: int = vars(numba.config)["NUMBA_NUM_THREADS"]
    available = min(_bound_processors(), limit, _limit.get())
    quota = cgroup_quota()
    if quota is not None:
        available = min(available, max(1, math.ceil(quota)))
    if n_jobs is None:
        return available
    if not isinstance(n_jobs, int) or n_jobs == 0:
        raise ArgumentError(f"n_jobs must be None or a whole number other than 0, got {n_jobs!r}")
    return min(available, n_jobs) if n_jobs > 0 else max(1, available + 1 + n_jobs)


@contextmanager
def limited_threads(n_jobs: int | None, *, compiled: bool = False) -> Iterator[None]:
    """Compute with at most ``n_jobs`` threads meanwhile: torch, and the BLAS library behind numpy's matrix products.

    With ``compiled``, numba's threads are started and limited too. Without ``n_jobs`` all is left as it is.
    """
    if n_jobs is None:
        yield
        return
    most, blas = available_threads(n_jobs), _blas()
    with ExitStack() as undo:
        undo.callback(_limit.reset, _limit.set(most))
        if compiled:
            start_threads()
            undo.callback(numba.set_num_threads, numba.get_num_threads())
            numba.set_num_threads(min(most, numba.get_num_threads()))
        undo.callback(torch.set_num_threads, torch.get_num_threads())
        torch.set_num_threads(min(most, torch.get_num_threads()))
        limits = {library.prefix: min(most, library.num_threads) for library in blas.lib_controllers}
        undo.enter_context(blas.limit(limits=limits))
        yield


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController().select(user_api="blas")


def _bound_processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def cgroup_quota(root: Path = Path("/")) -> float | None:
    """Processors' worth of time that the control groups allow, version 1 or 2; None if there is no limit.

    A group is limited by all groups above it too. In a container the path of its group may be that of the host, which
    is not visible inside; the container's own group is then the root of what is.

    Args:
        root: where ``proc`` and ``sys`` are.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:  # another system
        return None
    quotas = []
    for line in lines:
        _, _, controllers_and_group = line.partition(":")
        controllers, _, group = controllers_and_group.partition(":")
        names = controllers.split(",")
        if controllers and "cpu" not in names:
            continue
        mounts = [controllers, "cpu", "cpu,cpuacct"] if controllers else ["", "unified"]
        for mount in mounts:
            top = root / "sys/fs/cgroup" / mount
            folder = top / group.strip("/")
            for place in (folder, *folder.parents):
                quotas += _quota_of(place)
                if place == top:
                    break
    return min(quotas, default=None)


def _quota_of(group: Path) -> list[float]:
    """The quota that a group's own files state, if there is one."""
    try:
        if (group / "cpu.max").exists():
            quota, period = (group / "cpu.max").read_text().split()
        else:
            quota, period = ((group / f"cpu.cfs_{name}_us").read_text().strip() for name in ("quota", "period"))
        return [] if quota in ("max", "-1") else [int(quota) / int(period)]
    except (OSError, ValueError):
        return []


# --- how many are fastest at the moment ----------------------------------------------------------------------------

SLICE = 0.01
"""Seconds that a number of threads is measured at a time in a comparison."""
ROUNDS = 3
"""Slices of each in a comparison; they take turns, so that all see the same load."""
WINDOW = 0.05
"""Seconds over which the pace is observed between comparisons."""
SHORTEST_PAUSE, LONGEST_PAUSE = 0.5, 5.0
"""Seconds between comparisons: short after a change, longer the more often the choice is confirmed."""
COST = 0.02
"""The share of the time that comparisons may cost, beyond what the same steps take at the fastest number."""
MOST_DEBT = 0.5
"""Seconds of such cost that are remembered: a machine that was asleep must not prevent comparisons for ever."""
REST = 4
"""Between comparisons, at least this many times as long as the last one took: they disturb other programs."""
CHANGE = 1.5
"""A pace that is slower than expected by this factor calls for a look at fewer threads, a faster one at more."""
HOPELESS = 1.5
"""In a comparison, a number that is slower by this factor has no second turn."""
GAIN = 1.05
"""How much faster twice the threads must be; they may be of use to other programs."""


@dataclass
class _Steps:
    """Measured steps with one number of threads."""

    count: int = 0
    seconds: float = 0.0
    first_count: int = 0
    """The first step after a change of the number wakes threads and moves data; it says nothing about the pace."""
    first_seconds: float = 0.0

    def __add__(self, other: _Steps) -> _Steps:
        return _Steps(
            self.count + other.count,
            self.seconds + other.seconds,
            self.first_count + other.first_count,
            self.first_seconds + other.first_seconds,
        )

    @property
    def pace(self) -> float:
        """Seconds per step."""
        return self.seconds / self.count

    @property
    def total_seconds(self) -> float:
        """With the first steps."""
        return self.seconds + self.first_seconds

    def cost(self, pace: float) -> float:
        """Seconds by which these steps were slower than at that pace."""
        return self.total_seconds - (self.count + self.first_count) * pace


class ThreadChoice:
    """The number of threads for the next step: 1, 2, 4, ... up to ``most``.

    Take a step with ``threads`` threads, then call `record` with its wall time. Neighbouring numbers are compared at
    the start, after pauses that grow while the choice is confirmed, and as soon as the pace changes markedly.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.numbers = [2**i for i in range(most.bit_length()) if 2**i < most] + [most]
        self.threads = 1
        self._steps = _Steps()
        self._is_first = False
        self._goal = math.inf
        if most > 1:
            self._plan = self._compare_and_use()
            _, self._goal = next(self._plan)

    def record(self, seconds: float) -> None:
        """Note what a step with ``threads`` took, and choose the number for the next one."""
        steps = self._steps
        if self._is_first and seconds < self._goal:  # waking threads does not matter in a longer step
            self._is_first = False
            steps.first_count += 1
            steps.first_seconds += seconds
            return
        steps.count += 1
        steps.seconds += seconds
        if steps.seconds >= self._goal:
            self._steps = _Steps()
            before = self.threads
            self.threads, self._goal = self._plan.send(steps)
            self._is_first = self.threads != before

    # Below, numbers of threads are given by their place in ``numbers``. Each generator yields the number to use next
    # and the seconds to use it for, and receives the measured steps.

    def _compare_and_use(self) -> Generator[tuple[int, float], _Steps, None]:
        place, pause, debt = 0, SHORTEST_PAUSE, 0.0
        rivals: tuple[int, ...] = (1,)
        while True:
            began = place
            place, expected, cost, took = yield from self._climb(place, rivals)
            pause = SHORTEST_PAUSE if place != began else min(2 * pause, LONGEST_PAUSE)
            debt = min(debt + cost, MOST_DEBT)
            used, rivals = 0.0, ()
            while not rivals:
                steps = yield self.numbers[place], WINDOW
                used += steps.seconds
                debt = max(0.0, debt - COST * steps.seconds)
                may_compare = debt == 0 and used >= REST * took
                if steps.pace > CHANGE * expected and (may_compare or used >= SHORTEST_PAUSE):
                    # Soon: what is lost by waiting is more than a look at fewer threads costs.
                    rivals = (place - 1, 0)
                elif steps.pace < expected / CHANGE and may_compare:
                    rivals = (place + 1,)
                elif used >= pause and may_compare:
                    rivals = (place - 1, place + 1)

    def _climb(
        self, place: int, rivals: tuple[int, ...]
    ) -> Generator[tuple[int, float], _Steps, tuple[int, float, float, float]]:
        """Compare with rivals, as far as they exist, and continue in the direction of the faster one.

        Returns the place, its pace, what the comparisons cost beyond that pace, and how long they took.
        """
        cost = took = 0.0
        while True:
            measured = yield from self._compare({place, *rivals} & set(range(len(self.numbers))))
            fastest = min(measured, key=lambda i: measured[i].pace * GAIN**i)
            pace = measured[fastest].pace
            for i, steps in measured.items():
                took += steps.total_seconds
                if i != place:  # steps at the present number are no cost of looking
                    cost += max(0.0, steps.cost(pace))
            further = 2 * fastest - place
            if fastest == place or not 0 <= further < len(self.numbers):
                return fastest, pace, cost, took
            place, rivals = fastest, (further,)

    def _compare(self, places: set[int]) -> Generator[tuple[int, float], _Steps, dict[int, _Steps]]:
        measured = {i: _Steps() for i in places}
        in_running = sorted(places)
        for _ in range(ROUNDS):
            for i in in_running:
                measured[i] += yield self.numbers[i], SLICE
            best = min(steps.pace for steps in measured.values())
            in_running = [i for i in in_running if measured[i].pace <= HOPELESS * best]
        return measured
