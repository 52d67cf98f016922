"""The fuzzer: that it finds planted defects, that inputs which failed once pass, and a short run of all of it."""

from __future__ import annotations

import os
import pickle
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from time import monotonic, sleep

import numpy as np
import pytest
from tools.fuzz import Reader, fuzz, keep, main, minimise, read_input, whole
from tools.fuzz_mutations import spoil
from tools.fuzz_promises import promise
from tools.fuzz_targets import TARGETS, Target
from tools.fuzz_worker import Limits

from rarenode.errors import DataError

KEPT = Path(__file__).parent / "fuzz"
QUICK = Limits(seconds=0.3, patience=20, bytes=1 << 27)
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is bounded as Linux does it")


def small() -> list[dict[str, bytes]]:
    return [{"a.txt": b"one two three"}]


def read_well(folder: Path) -> None:
    if (folder / "a.txt").read_bytes() != b"one two three":
        raise DataError("it is spoiled")


def unless_whole(folder: Path) -> bool:
    return (folder / "a.txt").read_bytes() != b"one two three"


def raise_key_error(folder: Path) -> None:
    if b"two" not in (folder / "a.txt").read_bytes():
        raise KeyError("two")


def raise_os_error(folder: Path) -> None:
    if unless_whole(folder):
        raise OSError("not a gzipped file")


def open_what_is_not_there(folder: Path) -> None:
    if unless_whole(folder):
        (folder / "b.txt").read_bytes()


def warn(folder: Path) -> None:
    if unless_whole(folder):
        np.array([1e300]).astype(np.float32)


def break_promise(folder: Path) -> None:
    promise(not unless_whole(folder), "labels without their ancestors")


def say_too_much(folder: Path) -> None:
    if unless_whole(folder):
        raise DataError("no" * (1 << 20))


def compute_for_ever(folder: Path) -> None:
    while unless_whole(folder):
        pass


def swallow(folder: Path) -> None:
    end = monotonic() + 1
    while unless_whole(folder) and monotonic() < end:
        try:
            sum(range(1000))
        except BaseException:
            continue


def wait_for_ever(folder: Path) -> None:
    if unless_whole(folder):
        sleep(1000)


def take_memory(folder: Path) -> None:
    if unless_whole(folder):
        np.ones(1 << 28, dtype=np.uint8)


def die(folder: Path) -> None:
    if unless_whole(folder):
        os.abort()


def write_elsewhere(folder: Path) -> None:
    if unless_whole(folder):
        (folder.parent / "elsewhere.txt").write_text("x")


def connect(folder: Path) -> None:
    if unless_whole(folder):
        with suppress(Exception):
            socket.create_connection(("127.0.0.1", 9))


def begin_a_program(folder: Path) -> None:
    if unless_whole(folder):
        subprocess.run(["true"], check=False)


def unpickle(folder: Path) -> None:
    if unless_whole(folder):
        pickle.loads(pickle.dumps(Counter))


def write_far_away(folder: Path) -> None:
    if unless_whole(folder):
        Path("/no/such/folder/far.txt").write_text("x")


@pytest.fixture(scope="module")
def reader() -> Iterator[Reader]:
    with Reader(QUICK) as reader:
        yield reader


@pytest.mark.parametrize(
    ("read", "kind"),
    [
        (read_well, "refused"),
        (open_what_is_not_there, "refused"),
        (raise_key_error, "KeyError"),
        (raise_os_error, "OSError"),
        (warn, "RuntimeWarning"),
        (break_promise, "BrokenPromiseError"),
        (say_too_much, "LongMessage"),
        (compute_for_ever, "TooSlowError"),
        (swallow, "TooSlowError"),
        (take_memory, "MemoryError"),
        (die, "Crash"),
        (write_elsewhere, "WroteElsewhere"),
        (write_far_away, "ForbiddenError"),
        (connect, "ForbiddenError"),
        (begin_a_program, "ForbiddenError"),
        (unpickle, "ForbiddenError"),
    ],
)
def test_verdicts(reader: Reader, read: object, kind: str) -> None:
    target = Target(read, small)  # type: ignore[arg-type]
    assert reader.judge(target, small()[0]).kind == "read"
    assert reader.judge(target, {"a.txt": b"one"}).kind == kind
    assert reader.judge(target, small()[0]).kind == "read"  # in the same process, or in another one if it died


def test_a_reader_that_hangs() -> None:
    with Reader(replace(QUICK, patience=0.5)) as reader:
        assert reader.judge(Target(wait_for_ever, small), {"a.txt": b"one"}).kind == "Hang"


def test_a_sample_that_is_not_read(reader: Reader) -> None:
    with pytest.raises(ValueError, match=r"a valid sample, a\.txt, is refused"):
        reader.judge(Target(read_well, lambda: [{"a.txt": b"spoiled"}]), {"a.txt": b""})


def test_a_planted_defect_is_found_and_kept(tmp_path: Path) -> None:
    outcome = fuzz({"planted": Target(raise_key_error, small)}, 60, 0, tmp_path, QUICK, most=60)
    assert outcome.inputs == 60
    ((key, folder),) = outcome.findings.items()
    assert key == ("planted", "KeyError", "test_fuzz.py:raise_key_error")
    assert b"two" not in (folder / "a.txt").read_bytes()
    report = folder.with_name(f"{folder.name}.txt").read_text()
    assert f"python -m tools.fuzz --repeat {folder}" in report
    assert "seed 0, number" in report


def test_inputs_are_made_smaller(reader: Reader) -> None:
    target, files = Target(raise_key_error, small), {"a.txt": b"x" * 300}
    assert minimise(reader, target, files, reader.judge(target, files)) == {"a.txt": b""}


def test_the_seed_decides_the_inputs() -> None:
    for target in (TARGETS["hierarchy"], TARGETS["table_sets"], TARGETS["settings"]):
        sample = target.made()[-1]
        names = list(sample)
        several = [[spoil(sample, names, Random(f"{seed}/{n}")) for n in range(20)] for seed in (0, 0, 1)]
        assert several[0] == several[1] != several[2]
        assert sum(files != sample for files in several[0]) > 15


def test_repeating(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Reader() as reader:
        verdict = reader.judge(TARGETS["arff"], {"rows.arff": b"@RELATION"})
    place = keep(tmp_path / "arff", {"rows.arff": b"@RELATION"}, verdict, "")
    with pytest.raises(SystemExit) as ended:
        main(["--repeat", str(place)])
    assert not ended.value.code
    assert capsys.readouterr().out.startswith("refused")


@pytest.mark.parametrize("folder", sorted(KEPT.glob("*/*")), ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_inputs_that_failed_once(all_targets: Reader, folder: Path) -> None:
    target = TARGETS[folder.parent.name]
    verdict = all_targets.judge(target, whole(target, read_input(folder)))
    assert verdict.is_fine, verdict


@pytest.fixture(scope="module")
def all_targets() -> Iterator[Reader]:
    with Reader() as reader:
        yield reader


@pytest.mark.slow
def test_a_short_run(tmp_path: Path) -> None:
    outcome = fuzz(TARGETS, 600, 7, tmp_path, most=400)
    assert not outcome.findings, [path.with_name(f"{path.name}.txt").read_text() for path in outcome.findings.values()]
    assert outcome.counts.keys() == TARGETS.keys()
    total = sum(outcome.counts.values(), Counter())
    assert min(total["read"], total["refused"]) > 40  # most are spoiled, and some are not spoiled enough


@pytest.mark.slow
def test_the_command() -> None:
    command = [sys.executable, "-m", "tools.fuzz", "--seconds", "5", "--only", "hierarchy", "settings"]
    result = subprocess.run(command, cwd=KEPT.parent.parent, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "an hour" in result.stdout


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "x"])
@pytest.mark.parametrize("tool", ["fuzz", "stress"])
def test_a_tool_that_would_do_nothing_is_an_error(tool: str, seconds: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", f"tools.{tool}", f"--seconds={seconds}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "it must be a number of seconds above 0" in done.stderr
