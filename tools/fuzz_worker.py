"""The process of the fuzzer that reads: it judges one input after the other, within bounds."""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from time import process_time
from typing import Any, NamedTuple

from rarenode.errors import RarenodeError
from tools.fuzz_mutations import MOST_BYTES, Files
from tools.fuzz_targets import Target

LONGEST_MESSAGE = MOST_BYTES
"""Characters of an error, which may quote a name from the input, but not again and again."""


@dataclass(frozen=True)
class Limits:
    """What a small input may cost."""

    seconds: float = 5.0
    """Of the processor."""
    patience: float = 60.0
    """Seconds by the clock, after which a process hangs."""
    bytes: int = 1 << 30
    """Of memory, beyond what the process had before."""


class Verdict(NamedTuple):
    """What became of an input."""

    kind: str
    """``read``, ``refused``, ``known``, or what is wrong."""
    place: str = ""
    """Where, so that the same defect is reported once."""
    details: str = ""
    seconds: float = 0.0
    """Of the processor."""

    @property
    def is_fine(self) -> bool:
        """Whether the input passes."""
        return self.kind in ("read", "refused", "known")


FORBIDDEN = ("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn",
             "pickle.find_class")  # fmt: skip
"""Audit events of Python that reading a file has no reason for."""


class ForbiddenError(BaseException):
    """A reader began a program, opened a connection or wrote outside of the temporary folder; none catches this."""


class TooSlowError(BaseException):
    """An input takes too long; no reader catches it by chance."""


def serve(connection: Connection, limits: Limits) -> None:
    """Read inputs until the other side hangs up."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # panics of Rust print what is in their message anyway
    _warnings_are_errors()
    sys.addaudithook(_watch)
    signal.signal(signal.SIGPROF, _too_slow)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(EOFError):
        while True:
            target, files, is_limited = connection.recv()
            with tempfile.TemporaryDirectory(prefix="rarenode-fuzz-") as name:
                connection.send(_judge(target, files, Path(name), limits if is_limited else None))


def _judge(target: Target, files: Files, place: Path, limits: Limits | None) -> Verdict:
    folder, beside = place / "input", place / "beside.txt"
    write_input(folder, files)
    beside.write_text("untouched", encoding="ascii")
    before = process_time()
    try:
        with _bounded(limits):
            target.read(folder)
        verdict = Verdict("read")
    except RarenodeError as error:
        verdict = _long_message(error) or Verdict("refused")
    except OSError as error:
        # A file that cannot be opened; errors in its content have no number.
        verdict = Verdict("refused") if error.errno is not None else _unexpected(error)
    except BaseException as error:  # among them are panics of Rust
        verdict = _unexpected(error)
    seconds = process_time() - before
    if limits is not None and verdict.is_fine and seconds > limits.seconds:
        verdict = Verdict("TooSlowError", "swallowed", "it took too long, and the reader went on")
    if {path.name for path in place.iterdir()} != {"input", "beside.txt"} or beside.read_text() != "untouched":
        verdict = Verdict("WroteElsewhere", "", "a file beside the folder of the input was written or removed")
    return verdict._replace(seconds=seconds)


@contextmanager
def _bounded(limits: Limits | None) -> Iterator[None]:
    """Bound the time and memory of a block."""
    if limits is None:
        yield
        return
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + limits.bytes
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    signal.setitimer(signal.ITIMER_PROF, limits.seconds)
    _watched.append(tempfile.gettempdir())
    try:
        yield
    finally:
        _watched.clear()
        signal.setitimer(signal.ITIMER_PROF, 0)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, hard))


_watched: list[str] = []
"""While an input is read: the folder that everything is written to."""


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if not _watched:
        return
    if event in FORBIDDEN:
        raise ForbiddenError(f"{event} {arguments}")
    if event == "open" and isinstance(arguments[0], str | bytes) and arguments[2] & (os.O_WRONLY | os.O_RDWR):
        path = os.fsdecode(arguments[0])
        if not str(Path(path).absolute()).startswith(_watched[0]) and path != os.devnull:
            raise ForbiddenError(f"{path} was opened for writing")


def _too_slow(*_: object) -> None:
    raise TooSlowError("it takes too long")


def _long_message(error: Exception) -> Verdict | None:
    length, found = len(str(error)), _unexpected(error)
    return None if length <= LONGEST_MESSAGE else found._replace(kind="LongMessage")


def _unexpected(error: BaseException) -> Verdict:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "rarenode/" in frame.filename] or frames
    last = ours[-1]
    place = f"{Path(last.filename).name}:{last.name}"
    if type(error).__name__ == "BrokenPromiseError":
        place = str(error)
    text = "".join(traceback.format_exception(error, chain=False))
    return Verdict(type(error).__name__, place, text[-4000:])


def _warnings_are_errors() -> None:
    """All but those of rarenode, which are words for people."""
    original = warnings.warn

    def warn(*arguments: Any, **options: Any) -> None:
        if not str(sys._getframe(1).f_globals.get("__name__", "")).startswith("rarenode"):
            original(*arguments, **options)

    warnings.warn = warn
    warnings.simplefilter("error")


def write_input(folder: Path, files: Files) -> None:
    """The files of an input, in a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
