"""`describe_environment`: the machine and the installation, as `rarenode doctor --environment` shows them.

It is what a report of a problem should contain: versions, processors and threads, devices, and the folders that
rarenode reads or writes besides those that it is given.
"""

from __future__ import annotations

import os
import platform
import re
import tempfile
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

import torch

from rarenode._io.files import exists, is_dir
from rarenode.data.catalogue import data_root
from rarenode.engines import available_threads, resolve_device
from rarenode.engines.threads import cgroup_quota
from rarenode.objective.kernels import find_maximisers
from rarenode.training.embedding_cache import cache_folder
from rarenode.version import __version__

MEMORY = Path("/proc/meminfo")
VARIABLES = ("RARENODE_DATA", "RARENODE_CACHE", "NUMBA_CACHE_DIR", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "HF_HOME")
"""Environment variables that change what rarenode does."""


@dataclass(frozen=True)
class Folder:
    """A folder that rarenode uses without being given it."""

    purpose: str
    path: str | None
    """None: there is none."""
    state: str


@dataclass(frozen=True)
class Environment:
    """The machine and the installation."""

    rarenode: str
    python: str
    system: str
    packages: dict[str, str]
    """Versions of what rarenode depends on, and of what its extras do, as far as it is installed."""
    absent: tuple[str, ...]
    """Packages of extras that are not installed."""
    processors: int
    threads: int
    """How many a training uses, at most."""
    quota: float | None
    """Processors' worth of time that the container allows."""
    memory_bytes: int | None
    device: str
    """What ``device="auto"`` chooses."""
    accelerators: tuple[str, ...]
    variables: dict[str, str]
    folders: tuple[Folder, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def describe_environment() -> Environment:
    """The machine and the installation.

    >>> describe_environment().rarenode == __version__
    True
    """
    packages, absent = _packages()
    return Environment(
        rarenode=__version__,
        python=f"{platform.python_implementation()} {platform.python_version()}",
        system=f"{platform.system()} {platform.release()}, {platform.machine()}",
        packages=packages,
        absent=absent,
        processors=os.cpu_count() or 1,
        threads=available_threads(),
        quota=cgroup_quota(),
        memory_bytes=_memory(),
        device=resolve_device("auto"),
        accelerators=tuple(torch.cuda.get_device_name(each) for each in range(torch.cuda.device_count())),
        variables={name: os.environ[name] for name in VARIABLES if name in os.environ},
        folders=_folders(),
    )


def _packages() -> tuple[dict[str, str], tuple[str, ...]]:
    """Versions of direct dependencies, and the names of those that are not installed; not those of development."""
    found: dict[str, str] = {}
    absent = []
    for requirement in requires("rarenode") or ():
        if re.search(r"extra == ['\"](dev|docs)['\"]", requirement):
            continue
        match = re.match(r"[\w.-]+", requirement)
        assert match is not None  # noqa: S101 (a requirement begins with a name)
        try:
            found[match[0]] = version(match[0])
        except PackageNotFoundError:
            absent.append(match[0])
    return dict(sorted(found.items())), tuple(sorted(absent))


def _memory() -> int | None:
    try:
        match = re.search(r"MemTotal:\s+(\d+) kB", MEMORY.read_text(encoding="ascii"))
    except OSError:  # another system than Linux
        return None
    return None if match is None else int(match[1]) * 1024


def _folders() -> tuple[Folder, ...]:
    compiled: Any = getattr(find_maximisers, "_cache", None)
    return (
        _folder("the package", Path(__file__).parent.parent),
        _folder("datasets of the catalogue", data_root()),
        _folder("embeddings of pictures", cache_folder()),
        _folder("compiled functions", Path(compiled.cache_path))
        if hasattr(compiled, "cache_path")
        else Folder("compiled functions", None, "none can be written to, so every process compiles again"),
        _folder("temporary files", Path(tempfile.gettempdir())),
    )


def _folder(purpose: str, path: Path) -> Folder:
    if not exists(path):
        state = "not there yet"
    elif not is_dir(path):
        state = "not a folder"
    else:
        state = "writable" if os.access(path, os.W_OK) else "read-only"
    return Folder(purpose, str(path), state)
