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
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, Self

from tools import duration
from tools.fuzz_mutations import Files, spoil
from tools.fuzz_targets import TARGETS, Target
from tools.fuzz_worker import Limits, Verdict, serve, write_input

FOUND = Path(__file__).parent.parent / "build" / "fuzz"
INPUTS_OF_A_PROCESS = 5000
"""Then another one takes over, lest leaks add up."""
KNOWN = {(".arrow", "Crash"), (".parquet", "Crash")}
"""What is known and cannot be mended here: polars ends the process where such a file declares a huge buffer."""
CONTEXT = multiprocessing.get_context("forkserver")


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
    parser.add_argument("--seconds", type=duration, default=60, help="how long (default: %(default)s)")
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
