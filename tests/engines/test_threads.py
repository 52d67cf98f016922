"""How many threads may be used, and which number is chosen on simulated machines."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode.engines import available_threads
from rarenode.engines.threads import ThreadChoice, cgroup_quota
from rarenode.errors import ArgumentError

# --- how many may be used ------------------------------------------------------------------------------------------


def write_files(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


V1 = "4:memory:/a\n3:cpu,cpuacct:/jobs/mine\n1:name=systemd:/x\n"
V1_MOUNT = "sys/fs/cgroup/cpu,cpuacct"


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({}, None),
        ({"proc/self/cgroup": "0::/\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n"}, None),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "150000 100000\n"}, 1.5),
        ({"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "nonsense\n"}, None),
        (
            {
                "proc/self/cgroup": "0::/a/b\n",
                "sys/fs/cgroup/a/cpu.max": "200000 100000\n",
                "sys/fs/cgroup/a/b/cpu.max": "400000 100000\n",
            },
            2.0,
        ),
        ({"proc/self/cgroup": "0::/of/the/host\n", "sys/fs/cgroup/cpu.max": "300000 100000\n"}, 3.0),
        (
            {
                "proc/self/cgroup": V1,
                f"{V1_MOUNT}/jobs/mine/cpu.cfs_quota_us": "50000\n",
                f"{V1_MOUNT}/jobs/mine/cpu.cfs_period_us": "100000\n",
                f"{V1_MOUNT}/cpu.cfs_quota_us": "-1\n",
                f"{V1_MOUNT}/cpu.cfs_period_us": "100000\n",
            },
            0.5,
        ),
        (
            {
                "proc/self/cgroup": V1 + "0::/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "700000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            7.0,
        ),
        (
            {
                "proc/self/cgroup": "3:cpuset:/\n",
                "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "100000\n",
                "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            },
            None,
        ),
    ],
)
def test_the_quota_of_control_groups(tmp_path: Path, files: dict[str, str], expected: float | None) -> None:
    assert cgroup_quota(write_files(tmp_path, files)) == expected


def test_n_jobs_is_a_limit() -> None:
    everything = available_threads()
    assert 1 <= everything <= numba.get_num_threads()
    assert available_threads(-1) == everything
    assert available_threads(1) == 1
    assert available_threads(10_000) == everything
    assert available_threads(-2) == max(1, everything - 1)
    assert available_threads(-10_000) == 1
    for wrong in (0, 1.5, "2"):
        with pytest.raises(ArgumentError, match="n_jobs"):
            available_threads(wrong)  # type: ignore[arg-type]


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system does not bind processes to processors")
def test_a_process_bound_to_one_processor() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert available_threads() == 1
    finally:
        os.sched_setaffinity(0, before)


def test_the_limit_of_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", 1)
    assert available_threads() == available_threads(5) == 1


def test_importing_rarenode_changes_no_environment_variable() -> None:
    code = "import os; before = dict(os.environ); import rarenode; assert dict(os.environ) == before"
    subprocess.run([sys.executable, "-c", code], check=True)


# --- how many are used ---------------------------------------------------------------------------------------------

Machine = Callable[[int, float], float]
"""(threads, time) -> seconds of a step."""


def simulate(choice: ThreadChoice, machine: Machine, begin: float, end: float) -> tuple[float, int]:
    """Train from one time to another; steps a second, and the threads of the last step."""
    now, count = begin, 0
    while now < end:
        threads = choice.threads
        seconds = machine(threads, now)
        choice.record(seconds)
        now += seconds
        count += 1
    return count / (now - begin), threads


def idle(step: float) -> Machine:
    return lambda threads, _: step * (0.1 + 0.9 / threads)


def busy(step: float) -> Machine:
    return lambda threads, _: step if threads == 1 else 12 * step


@pytest.mark.parametrize("most", [2, 6, 64])
@pytest.mark.parametrize("step", [5e-5, 1e-3, 0.2])
def test_all_threads_of_an_idle_machine_and_one_of_a_busy_one(most: int, step: float) -> None:
    rate, threads = simulate(ThreadChoice(most), idle(step), 0, 200 * max(step, 0.02))
    assert threads == most
    assert rate > 0.8 / idle(step)(most, 0)
    rate, threads = simulate(ThreadChoice(most), busy(step), 0, 200 * max(step, 0.02))
    assert threads == 1
    assert rate > 0.8 / step


@pytest.mark.parametrize("step", [5e-5, 1e-3, 0.05])
def test_load_that_comes_and_goes(step: float) -> None:
    choice = ThreadChoice(4)
    simulate(choice, idle(step), 0, 20)
    rate, _ = simulate(choice, busy(step), 20, 30)
    assert rate > 0.75 / step
    rate, _ = simulate(choice, busy(step), 30, 60)
    assert rate > 0.95 / step
    simulate(choice, idle(step), 60, 80)
    rate, threads = simulate(choice, idle(step), 80, 100)
    assert threads == 4
    assert rate > 0.95 / idle(step)(4, 0)


@given(
    seed=st.integers(0, 10**6),
    speed_up=st.floats(0.05, 3.0),
    noise=st.floats(0.0, 0.5),
    stalls=st.floats(0.0, 0.02),
)
def test_looking_costs_little_whatever_the_machine(seed: int, speed_up: float, noise: float, stalls: float) -> None:
    """Steps vary, and now and then the scheduler stops one. Compared with the better of two fixed numbers."""
    rng = np.random.default_rng(seed)
    usual = {1: 1e-3, 2: 1e-3 / speed_up}

    def machine(threads: int, _: float) -> float:
        stall = 0.004 if rng.random() < stalls else 0.0
        return float(usual[threads] * np.exp(noise * rng.standard_normal()) + stall)

    mean = {threads: seconds * np.exp(noise**2 / 2) + 0.004 * stalls for threads, seconds in usual.items()}
    choice = ThreadChoice(2)
    simulate(choice, machine, 0, 1)
    rate, _ = simulate(choice, machine, 1, 15)
    assert rate > 0.88 / min(mean.values())


@given(most=st.integers(1, 100), seed=st.integers(0, 10**6))
def test_the_number_stays_within_its_limit(most: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    choice = ThreadChoice(most)
    for seconds in rng.exponential(0.02, size=500):
        choice.record(seconds)
        assert 1 <= choice.threads <= most
    assert choice.numbers == sorted({2**i for i in range(7) if 2**i < most} | {most})


def test_a_machine_that_was_asleep_is_looked_at_again() -> None:
    choice = ThreadChoice(2)
    choice.record(3600.0)
    _, threads = simulate(choice, idle(1e-3), 0, 40)
    assert threads == 2
