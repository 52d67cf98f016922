"""What tasks of tests do. Workers import it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
import warnings
from pathlib import Path
from typing import Any

import numba
import torch

from rarenode._io.files import sole_use


def add(a: int, b: int) -> int:
    return a + b


def fail(text: str) -> None:
    raise ValueError(text)


class OddError(Exception):
    """Cannot be pickled with its arguments."""

    def __init__(self, one: str, two: str) -> None:
        super().__init__(f"{one} {two}")


def fail_oddly() -> None:
    raise OddError("odd", "error")


def warn(text: str) -> str:
    warnings.warn(text, RuntimeWarning, stacklevel=1)
    return text


def length(shared: list[int], more: int) -> int:
    return len(shared) + more


def threads() -> tuple[int, int]:
    return numba.get_num_threads(), torch.get_num_threads()


def append(shared: list[int], more: int) -> list[int]:
    """Changes what a worker keeps."""
    shared.append(more)
    return list(shared)


def variable(name: str) -> str | None:
    return os.environ.get(name)


def node_and_gpus() -> tuple[str, str | None]:
    """The node of Ray on which this runs, and the GPUs that it may use."""
    import ray

    return ray.get_runtime_context().get_node_id(), os.environ.get("CUDA_VISIBLE_DEVICES")


def wait_for(path: Path) -> str:
    while not path.exists():
        time.sleep(0.02)
    return path.name


def until_stopped(begun: Path, folder: Path) -> None:
    """Has a checkpoint to save when it is interrupted."""
    begun.touch()
    try:
        while True:
            time.sleep(0.02)
    except KeyboardInterrupt:
        (folder / "checkpoint").write_text("saved")
        raise


def stops_at_once(folder: Path) -> None:
    (folder / "checkpoint").write_text("saved")
    raise KeyboardInterrupt


def ends_when_begun_again(begun: Path) -> int:
    """Waits for ever, the first time."""
    before = len(list(begun.iterdir()))
    (begun / str(before)).touch()
    while not before:
        time.sleep(0.02)
    return before + 1


def stubborn(begun: Path) -> None:
    """Goes on in spite of Ctrl-C."""
    begun.touch()
    while True:
        with contextlib.suppress(KeyboardInterrupt):
            time.sleep(60)


def dies_at_first(begun: Path, deaths: int) -> int:
    """How often it was begun; its process dies that many times."""
    before = len(list(begun.iterdir()))
    (begun / str(before)).touch()
    if before < deaths:
        os.kill(os.getpid(), signal.SIGKILL)
    return before + 1


def process() -> int:
    return os.getpid()


def use_folder(addition: str, folder: Path) -> tuple[str, str]:
    """Appends to one file, removes another, makes a third; returns what was there, and where."""
    with sole_use(folder):  # it is this task's own
        before = (folder / "text").read_text()
        (folder / "text").write_text(before + addition)
        (folder / "old").unlink()
        (folder / "below").mkdir()
        (folder / "below" / "new").write_bytes(b"\x00")
    return before, str(folder)


def lock() -> Any:
    return threading.Lock()
