"""`compiled`: numba's compiler with a cache that notices every change.

numba stores compiled functions on disk and compiles a function again when its own file changes. It does not notice a
change in a function or a constant that comes from another file, and then runs code that no longer exists. Here what is
stored belongs to the sources of *all* compiled functions of the package, and is used only as long as none of them has
changed.

The location is numba's: ``NUMBA_CACHE_DIR`` if it is set, else ``__pycache__`` beside the source, else the user's
cache folder. Where none of them is writable, functions are compiled anew in each process, and a warning says so once.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sys
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.extending import is_jitted

from rarenode._io.progress import Progress
from rarenode.errors import TrainingError

Function = TypeVar("Function", bound=Callable[..., Any])


def compiled(**options: Any) -> Callable[[Function], Function]:
    """Decorator: compile a function at its first call, without the interpreter lock, and store the result.

    Args:
        options: those of ``numba.njit``, such as ``parallel`` and ``fastmath``.
    """

    def decorate(function: Function) -> Function:
        result: Any = numba.njit(nogil=True, **options)(function)
        if not is_jitted(result):  # NUMBA_DISABLE_JIT is set
            return function
        dispatcher: Any = result
        try:
            dispatcher._cache = _Cache(function)
        except (RuntimeError, OSError) as error:  # numba raises RuntimeError if no location is writable
            _warn_once(str(error))
        return cast("Function", dispatcher)

    return decorate


_process: int | None = None
"""The process in which numba's threads live."""


def start_threads() -> None:
    """Start numba's threads, unless they run. Call this before every parallel function.

    Raises:
        TrainingError: they run in the process from which this one was forked. They do not survive that, and GNU OpenMP
            ends a forked process that uses them, without an exception.
    """
    global _process  # noqa: PLW0603
    if _process is None:
        _start_threads()
        _process = os.getpid()
    elif _process != os.getpid():
        raise TrainingError(
            "this process was forked from one that has used the fused engine or a forest, whose threads do not "
            "survive that; start processes by spawn or loky, or, without a forest, choose engine='torch'"
        )


def _start_threads() -> None:
    """Launch them, and keep torch's number of threads.

    numba and torch may share the OpenMP library, in which numba sets the number of threads when it starts: a program
    that has limited torch to one thread would from then on run it with all.
    """
    torch: Any = sys.modules.get("torch")
    before = None if torch is None else torch.get_num_threads()
    numba.get_num_threads()
    if torch is not None:
        torch.set_num_threads(before)


@cache
def _sources_hash(package: str) -> str:
    """A hash of all files of a package that have compiled functions; of no files if ``package`` is a script."""
    total = hashlib.sha256()
    for folder in getattr(sys.modules[package], "__path__", ()):
        for path in sorted(Path(folder).rglob("*.py")):
            content = path.read_bytes()
            if b"@compiled" in content:
                total.update(hashlib.sha256(content).digest())
    return total.hexdigest()


def _source_stamp(function: Callable[..., Any]) -> tuple[str, str, str]:
    """What the compiled code of a function depends on, apart from the types of its arguments."""
    package = function.__module__.partition(".")[0]
    file = Path(inspect.getfile(function)).read_bytes()
    # Numbers from other modules become part of the compiled code, and those modules need not have compiled functions.
    numbers = {
        name: repr(value)
        for name, value in sorted(function.__globals__.items())
        if isinstance(value, (int, float, np.generic))
    }
    return hashlib.sha256(file).hexdigest(), _sources_hash(package), repr(numbers)


class _CacheFile(IndexDataCacheFile):
    """Stores the stamp with the code too.

    numba writes the index first, so a second process could find its own stamp there and load the code of before.
    """

    def _save_data(self, name: str, data: object) -> None:
        super()._save_data(name, (self._source_stamp, data))

    def _load_data(self, name: str) -> object:
        found = super()._load_data(name)
        return found[1] if found[0] == self._source_stamp else None


class _Cache(FunctionCache):
    """numba's cache of one function, with our stamp. A cache that cannot be read or written is no reason to fail."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _CacheFile(self._cache_path, self._impl.filename_base, _source_stamp(function))

    def load_overload(self, sig: object, target_context: object) -> object:
        try:
            found = super().load_overload(sig, target_context)
        except OSError as error:
            _warn_once(str(error))
            found = None
        if found is None:
            _say_once()
        return found

    def save_overload(self, sig: object, data: object) -> None:
        try:
            super().save_overload(sig, data)
        except OSError as error:
            _warn_once(str(error))


_said = False


def _say_once() -> None:
    """Tell a user who waits why."""
    global _said  # noqa: PLW0603
    if Progress.shown is not None and not _said:
        _said = True
        Progress.shown.line("compiling for this processor, once after an installation or an update: up to a minute")


_warned = False


def _warn_once(reason: str) -> None:
    global _warned  # noqa: PLW0603
    if not _warned:
        _warned = True
        warnings.warn(
            f"compiled functions cannot be stored, so every process compiles them again ({reason}); "
            "set the environment variable NUMBA_CACHE_DIR to a writable folder",
            RuntimeWarning,
            stacklevel=3,
        )
