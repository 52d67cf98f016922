"""Read spoiled files of every kind for a given time, and keep each input that a reader does not stand.

    python -m tools.fuzz --seconds 60 --seed 0        # `make fuzz`
    python -m tools.fuzz --repeat build/fuzz/arff/KeyError-1a2b3c4d

An input passes if its reader returns something valid, or raises a `RarenodeError`, within bounds of time and memory,
and neither writes elsewhere nor begins a program or a connection. A process of its own reads; one that hangs or dies
is replaced. Inputs are decided by the seed and their number alone. Those that fail are made smaller and written to
build/fuzz; the exit code is then 1. What failed once and is mended is kept in tests/fuzz, where tests/test_fuzz.py
reads it again.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import tempfile
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from time import monotonic, process_time
from typing import Any, NamedTuple, Self

from rarenode.errors import RarenodeError
from tools.fuzz_mutations import MOST_BYTES, Files, spoil
from tools.fuzz_targets import TARGETS, Target

FOUND = Path(__file__).parent.parent / "build" / "fuzz"
LONGEST_MESSAGE = MOST_BYTES
"""Characters of an error, which may quote a name from the input, but not again and again."""
INPUTS_OF_A_PROCESS = 5000
"""Then another one takes over, lest leaks add up."""
KNOWN = {(".arrow", "Crash"), (".parquet", "Crash")}
"""What is known and cannot be mended here: polars ends the process where such a file declares a huge buffer."""
CONTEXT = multiprocessing.get_context("forkserver")


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


# --- in the process that reads -------------------------------------------------------------------------------------


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


# --- in the process that decides -----------------------------------------------------------------------------------


class Reader:
    """A process that reads inputs, and is started again when it dies or hangs."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self._process: Any = None
        self._connection: Connection | None = None
        self._warm: set[int] = set()
        self._inputs = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()

    def judge(self, target: Target, files: Files) -> Verdict:
        """Have an input read. The samples are read first, so that what is loaded once counts for no input.

        Raises:
            ValueError: a sample is not read.
        """
        if self._inputs >= INPUTS_OF_A_PROCESS:
            self._stop()
        if id(target) not in self._warm:
            for sample in target.made():
                verdict = self._send(target, sample, False)
                if verdict.kind != "read":
                    raise ValueError(f"a valid sample, {', '.join(sample)}, is {verdict.kind}: {verdict.details}")
            self._warm.add(id(target))
        self._inputs += 1
        return self._send(target, files, True)

    def _send(self, target: Target, files: Files, is_limited: bool) -> Verdict:
        if self._connection is None:
            self._connection, theirs = CONTEXT.Pipe()
            self._process = CONTEXT.Process(target=serve, args=(theirs, self.limits), daemon=True)
            self._process.start()
            theirs.close()
        bare = Target(target.read, list)
        try:
            self._connection.send((bare, files, is_limited))
            if self._connection.poll(self.limits.patience if is_limited else None):
                verdict: Verdict = self._connection.recv()
                return verdict
            verdict = Verdict("Hang", "", f"no answer within {self.limits.patience:g} seconds")
        except (EOFError, OSError):
            self._process.join(5)
            verdict = Verdict("Crash", f"exit code {self._process.exitcode}", "the process died")
        self._stop()
        return verdict

    def _stop(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._process.join(2)  # it ends when the other side hangs up, unless it hangs itself
            self._process.kill()
            self._process.join()
        self._connection, self._warm, self._inputs = None, set(), 0


@dataclass
class Outcome:
    """What a run of the fuzzer found."""

    counts: dict[str, Counter[str]] = field(default_factory=dict)
    """Verdicts of each target."""
    findings: dict[tuple[str, str, str], Path] = field(default_factory=dict)
    """(target, kind, place) -> where the input is."""
    seconds: float = 0.0
    """By the clock."""
    computed: float = 0.0
    """Seconds of the processor that reading took."""

    @property
    def inputs(self) -> int:
        """How many were read."""
        return sum(sum(counts.values()) for counts in self.counts.values())


def fuzz(
    targets: Mapping[str, Target],
    seconds: float,
    seed: int,
    found: Path,
    limits: Limits | None = None,
    most: int | None = None,
) -> Outcome:
    """Read spoiled files for so long, or so many of them."""
    outcome = Outcome()
    names = list(targets)
    shares = [targets[name].share for name in names]
    with Reader(limits) as reader:
        for target in targets.values():  # samples take a while, and are not part of the time
            reader.judge(target, target.made()[0])
        began = monotonic()
        number = 0
        while monotonic() - began < seconds and (most is None or number < most):
            chance = Random(f"{seed}/{number}")
            name = chance.choices(names, shares)[0]
            target = targets[name]
            files = _input(target, chance)
            verdict = reader.judge(target, files)
            if any((Path(each).suffix, verdict.kind) in KNOWN for each in files):
                verdict = verdict._replace(kind="known")
            outcome.counts.setdefault(name, Counter())[verdict.kind] += 1
            outcome.computed += verdict.seconds
            key = (name, verdict.kind, verdict.place)
            if not verdict.is_fine and key not in outcome.findings:
                small = minimise(reader, target, files, verdict)
                outcome.findings[key] = keep(found / name, small, verdict, f"seed {seed}, number {number}")
                print(f"{name}: {verdict.kind} {verdict.place}: {outcome.findings[key]}", flush=True)
            number += 1
        outcome.seconds = monotonic() - began
    return outcome


def _input(target: Target, chance: Random) -> Files:
    """A spoiled sample, whose checksums mostly are right."""
    sample = chance.choice(target.made())
    names = [name for name in sample if not target.spoil or name.startswith(target.spoil)]
    files = spoil(sample, names, chance)
    if target.seal is not None and chance.random() < 0.7:
        target.seal(files)
    return files


def minimise(reader: Reader, target: Target, files: Files, verdict: Verdict, seconds: float = 20.0) -> Files:
    """A smaller input with the same verdict, as far as that is found in the time; one that hangs stays as it is."""
    if verdict.kind in ("Hang", "TooSlowError"):
        return files
    end = monotonic() + seconds
    small = dict(files)
    for name in sorted(files, key=lambda name: -len(files[name])):
        size = max(1, len(small[name]) // 2)
        while size and monotonic() < end:
            place = 0
            while place < len(small[name]) and monotonic() < end:
                content = small[name][:place] + small[name][place + size :]
                again = reader.judge(target, small | {name: content})
                if (again.kind, again.place) == (verdict.kind, verdict.place):
                    small[name] = content
                else:
                    place += size
            size //= 2
    return small


def keep(folder: Path, files: Files, verdict: Verdict, origin: str) -> Path:
    """Write an input, and beside it what is wrong and how to repeat it."""
    digest = hashlib.sha256(repr((verdict.kind, verdict.place)).encode()).hexdigest()[:8]
    place = folder / f"{verdict.kind}-{digest}"
    shutil.rmtree(place, ignore_errors=True)
    write_input(place, files)
    command = f"python -m tools.fuzz --repeat {place}"
    text = f"{verdict.kind} {verdict.place} ({origin})\n{command}\n\n{verdict.details}\n"
    place.with_name(place.name + ".txt").write_text(text, encoding="utf-8", errors="backslashreplace")
    return place


def write_input(folder: Path, files: Files) -> None:
    """The files of an input, in a folder."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def read_input(folder: Path) -> Files:
    """What `write_input` wrote."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def whole(target: Target, files: Files) -> Files:
    """A kept input, with the files of the first sample that it lacks: what was not spoiled need not be kept."""
    sample = next((each for each in target.made() if files.keys() <= each.keys()), {})
    return {**sample, **files}


def repeat(folder: Path) -> Verdict:
    """Read an input again; the folder in which it lies has the name of its target."""
    target = TARGETS[folder.absolute().parent.name]
    with Reader() as reader:
        return reader.judge(target, whole(target, read_input(folder)))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a line for each target, or fail."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60, help="how long (default: %(default)s)")
    parser.add_argument("--inputs", type=int, default=None, help="so many at most")
    parser.add_argument("--seed", type=int, default=0, help="decides the inputs (default: %(default)s)")
    parser.add_argument("--only", nargs="+", choices=TARGETS, metavar="TARGET", help=f"some of {', '.join(TARGETS)}")
    parser.add_argument(
        "--repeat", type=Path, metavar="FOLDER", help="read one input again, and say what becomes of it"
    )
    options = parser.parse_args(arguments)
    CONTEXT.set_forkserver_preload(["tools.fuzz_targets"])
    if options.repeat is not None:
        verdict = repeat(options.repeat)
        print(f"{verdict.kind} {verdict.place}\n{verdict.details}".strip())
        sys.exit(not verdict.is_fine)
    chosen = {name: target for name, target in TARGETS.items() if name in (options.only or TARGETS)}
    outcome = fuzz(chosen, options.seconds, options.seed, FOUND, most=options.inputs)
    for name, counts in sorted(outcome.counts.items()):
        failed = sum(counts.values()) - counts["read"] - counts["refused"] - counts["known"]
        known = f", {counts['known']} ended by polars" if counts["known"] else ""
        print(f"{name:18} {counts['read']:6} read, {counts['refused']:6} refused, {failed:3} failed{known}")
    hour, busy = (3600 * outcome.inputs / max(seconds, 1e-9) for seconds in (outcome.seconds, outcome.computed))
    rate = f"{hour:,.0f} an hour, {busy:,.0f} an hour of the processor"
    print(f"{outcome.inputs:,} inputs in {outcome.seconds:.0f} s: {rate}; {len(outcome.findings)} findings")
    sys.exit(bool(outcome.findings))


if __name__ == "__main__":
    # Small files need no threads, and waiting for some would cost more than reading.
    os.environ |= dict.fromkeys(("POLARS_MAX_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
    with tempfile.TemporaryDirectory(prefix="rarenode-cache-") as cache:
        os.environ["RARENODE_CACHE"] = cache
        main()
