"""Compiled functions are stored, never used when outdated, and usable where nothing can be stored."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

LOW = """
from rarenode._io.compiled import compiled

@compiled()
def inner(x):
    return x + {number}
"""
HIGH = """
from rarenode._io.compiled import compiled
from package.constants import FACTOR
from package.low import inner

@compiled()
def outer(x):
    return FACTOR * inner(x)
"""
SCRIPT = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from package.high import outer
    result = outer(1)
print(result, sum(outer.stats.cache_hits.values()), sum(w.category is RuntimeWarning for w in caught))
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "constants.py").write_text("FACTOR = 10\n")
    (folder / "low.py").write_text(LOW.format(number=1))
    (folder / "high.py").write_text(HIGH)
    return folder


def run(package: Path, **environment: str) -> tuple[int, int, int]:
    """The result, how often compiled code was found in the cache, and the number of warnings; in its own process."""
    path = os.pathsep.join([str(package.parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-B", "-c", SCRIPT],
        env=os.environ | {"PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    result, hits, warned = done.stdout.split()
    return int(result), int(hits), int(warned)


def test_a_change_in_another_file_is_noticed(package: Path) -> None:
    assert run(package) == (20, 0, 0)
    assert run(package) == (20, 1, 0)
    (package / "low.py").write_text(LOW.format(number=2))
    assert run(package) == (30, 0, 0)
    (package / "constants.py").write_text("FACTOR = 100\n")
    assert run(package) == (300, 0, 0)


def test_code_of_another_time_is_not_loaded(package: Path) -> None:
    """Another process may have written the index of the present sources, and not yet the code that goes with it."""
    run(package)
    (outdated,) = (package / "__pycache__").glob("high.outer*.nbc")
    code = outdated.read_bytes()
    (package / "low.py").write_text(LOW.format(number=5))
    assert run(package)[0] == 60
    outdated.write_bytes(code)
    assert run(package) == (60, 0, 0)


def test_without_a_place_to_store_it_works_and_warns_once(package: Path) -> None:
    (package / "__pycache__").touch()  # a file, so that no folder can be there; permissions would not stop root
    nowhere = str(package / "low.py" / "cache")
    assert run(package, HOME=nowhere, XDG_CACHE_HOME=nowhere, NUMBA_CACHE_DIR="") == (20, 0, 1)


def test_a_place_that_is_lost_later_is_no_error(package: Path) -> None:
    run(package)
    (index,) = (package / "__pycache__").glob("high.outer*.nbi")
    index.unlink()
    index.mkdir()  # can neither be read as a file nor be replaced by one
    assert run(package) == (20, 0, 1)


def test_python_functions_when_compilation_is_switched_off(package: Path) -> None:
    code = "from package.high import outer; print(outer(1))"
    environment = {"PYTHONPATH": os.pathsep.join([str(package.parent), *sys.path]), "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | environment, capture_output=True, check=True)
    assert done.stdout.split() == [b"20"]


def test_starting_threads_leaves_those_of_torch_alone() -> None:
    code = """
import torch
from rarenode._io.compiled import _start_threads
for number in (1, 3):
    torch.set_num_threads(number)
    _start_threads()
    assert torch.get_num_threads() == number
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_who_waits_for_the_compiler_is_told_once_and_only_then(package: Path) -> None:
    def lines(calls: str, quiet: bool = False) -> list[str]:
        code = (
            "from rarenode._io.progress import Progress; from package.high import outer\n"
            f"progress = Progress(quiet={quiet}); progress.start('training', 1); {calls}; progress.stop()"
        )
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(package.parent), *sys.path])}
        done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, check=True, text=True)
        return done.stderr.splitlines()

    assert lines("outer(1)", quiet=True) == []
    assert lines("outer(1)") == []  # it was stored
    (line,) = lines("outer(1.0), outer(1j)")
    assert line.startswith("compiling for this processor, once")
    assert lines("outer(1.0), outer(1j)") == []
