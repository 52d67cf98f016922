"""Time and peak memory of a function, each in a separate process."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

LEAST_SECONDS = 2.0
MOST_SECONDS = 30.0
LEAST_REPEATS = 3


def measure(prepare: Callable[[], Callable[[], float]], warm_up: int = 0) -> dict[str, float]:
    """Seconds of one step (median and mean), peak bytes of making and calling it first, and what it returned."""
    _give_back_free_memory()
    before = _peak_bytes(reset=True)
    step = prepare()
    value = step()
    peak = _peak_bytes() - before
    for _ in range(warm_up):
        step()
    seconds: list[float] = []
    while len(seconds) < LEAST_REPEATS or sum(seconds) < LEAST_SECONDS:
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
        if sum(seconds) > MOST_SECONDS:
            break
    return {
        "seconds": float(np.median(seconds)),
        "mean_seconds": float(np.mean(seconds)),
        "peak_bytes": peak,
        "value": value,
    }


def measure_once(function: Callable[[], object], clock: Callable[[], float]) -> tuple[float, int]:
    """Seconds by a clock, and peak bytes, of a call."""
    _give_back_free_memory()
    before, began = _peak_bytes(reset=True), clock()
    function()
    return clock() - began, _peak_bytes() - before


def in_own_process(module: str, *arguments: str) -> dict[str, Any]:
    """What ``python -m module --one arguments`` prints as JSON."""
    command = [sys.executable, "-m", module, "--one", *arguments]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@contextlib.contextmanager
def busy_machine() -> Iterator[None]:
    """One other program for each processor, which does nothing but use it."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def _give_back_free_memory() -> None:
    """Memory that is free but kept would hide what a step needs."""
    with contextlib.suppress(OSError, AttributeError):  # glibc only
        ctypes.CDLL(None).malloc_trim(0)


def _peak_bytes(reset: bool = False) -> int:
    """Most memory this process has held, since the last reset where the system can do that (Linux)."""
    status = Path("/proc/self/status")
    if status.exists():
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        match = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        if match:
            return int(match[1]) * 1024
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale
