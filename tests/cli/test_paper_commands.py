"""`rarenode paper` as a shell runs it: its processes are real, and so are the signals."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from typer.testing import CliRunner

from rarenode.cli.app import app
from rarenode.data.catalogue import find_entry
from rarenode.errors import ArgumentError, FileFormatError, MissingFileError, RarenodeError
from tests.paper.small_grid import STANDING_FOR, write_files

HEARING = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
"""A shell may have started these tests deaf to Ctrl-C, and that is inherited."""
COMMAND = (sys.executable, "-c", f"{HEARING}; from rarenode.cli import main; main()", "paper", "run")
LONG = 120
"""Seconds that a process may take to begin, on a busy machine."""
SOON = 30

SPEC = """
title = "small"
datasets = ["gasch2_FUN"]
seeds = 2
settings = { hidden_size = 2, n_layers = 1, dropout = 0.0, batch_size = 4000, epochs = 1, engine = "torch" }
[[methods]]
name = "plain"
settings = { weighting = "none" }
[[methods]]
name = "weighted"
settings = { weighting = "as_published" }
"""
ENDLESS = SPEC.replace("seeds = 2", "seeds = 1").replace('"as_published" }', '"as_published", epochs = 1_000_000_000 }')


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_files(folder, find_entry(STANDING_FOR))
    return folder


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "small.toml"
    path.write_text(SPEC)
    return path


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


def shell(*arguments: str | Path, command: str = "run") -> subprocess.CompletedProcess[str]:
    words = [*COMMAND[:-1], command, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=3 * LONG)


def records(results: Path) -> list[str]:
    return sorted(path.name.rsplit("-", 1)[0] for path in results.glob("*/*-*.json"))


def fail(error: type[RarenodeError], *arguments: str | Path) -> str:
    result = CliRunner().invoke(app, ["paper", "run", *map(str, arguments)])
    assert isinstance(result.exception, error), repr(result.exception)
    return str(result.exception)


def until(happens: Callable[[], object], seconds: float) -> bool:
    last = time.monotonic() + seconds
    while not (happened := happens()) and time.monotonic() < last:
        time.sleep(0.05)
    return bool(happened)


@pytest.mark.slow
def test_a_part_then_the_rest_then_nothing(spec: Path, root: Path, results: Path) -> None:
    where = (spec, "--root", root, "--results", results)
    done = shell(*where, "--seeds", "1", "--methods", "plain")
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert lines[0] == "1 training to do"
    assert lines[1].startswith("[1/1] gasch2_FUN, plain, seed 0: F1 ")
    assert lines[1].endswith(" steps/s")
    assert len(lines) == 2
    first = next(results.glob("*/*-*.json"))
    before = first.stat().st_mtime_ns

    done = shell(*where, "--jobs", "2")
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[0] == "3 trainings to do; 1 already done"
    usual = "batch_size=4000,dropout=0.0,epochs=1,hidden=2,layers=1"
    assert records(results) == [
        f"{usual},seed=0", f"{usual},seed=0,weighting=none", f"{usual},seed=1", f"{usual},seed=1,weighting=none",
    ]  # fmt: skip
    assert first.stat().st_mtime_ns == before

    done = shell(*where, "--quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.slow
def test_cores_are_shared(spec: Path, root: Path, results: Path) -> None:
    assert shell(spec, "--root", root, "--results", results, "--seeds", "1", "--jobs", "2").returncode == 0
    told = {json.loads(path.read_text())["threads"] for path in results.glob("*/*-*.json")}
    assert told == {max(1, (os.cpu_count() or 1) // 2)}


@pytest.mark.slow
def test_failures_are_one_line_at_the_end_and_exit_code_1(spec: Path, root: Path, results: Path) -> None:
    spec.write_text(SPEC.replace('"none" }', '"none", learning_rate = 1e30, epochs = 3 }'))
    done = shell(spec, "--root", root, "--results", results, "--seeds", "1", "--quiet")
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith("rarenode: 1 of 2 trainings failed. gasch2_FUN, plain, seed 0: ")
    assert len(records(results)) == 1


class TestMistakes:
    def test_a_spec_that_is_not_there(self) -> None:
        assert "did you mean 'imbalance_fun'?" in fail(MissingFileError, "imbalance_fum")

    def test_a_file_that_is_no_spec(self, spec: Path) -> None:
        spec.write_text("title = ")
        assert "this is not TOML" in fail(FileFormatError, spec)

    def test_names_that_the_spec_has_not(self, spec: Path, results: Path) -> None:
        for option, what in (("--datasets", "dataset"), ("--methods", "method")):
            message = fail(ArgumentError, spec, option, "none of these", "--results", results)
            assert message.startswith(f"the spec has no {what} 'none of these'; it has ")
        assert not results.exists()

    @pytest.mark.parametrize("option", ["--seeds", "--jobs"])
    def test_numbers_below_1(self, spec: Path, option: str) -> None:
        assert CliRunner().invoke(app, ["paper", "run", str(spec), option, "0"]).exit_code == 2


@pytest.mark.parametrize("command", ["list", "run", "table", "figure", "queue"])
def test_help_has_examples(command: str) -> None:
    result = CliRunner().invoke(app, ["paper", command, "--help"])
    assert "Examples:\n" in result.output
    assert f"rarenode paper {command}" in result.output


@pytest.mark.parametrize(
    ("old", "new"), [("specs", "list"), ("reproduce", "run"), ("table", "table"), ("figure", "figure")]
)
def test_former_names_are_hidden_aliases(old: str, new: str) -> None:
    usage, now = (CliRunner().invoke(app, [*words, "--help"]).output for words in ([old], ["paper", new]))
    assert usage.split("\n", 2)[2] == now.split("\n", 2)[2]
    assert f"  {old} " not in CliRunner().invoke(app, ["--help"]).output


def test_the_queue_is_shown_with_its_time(results: Path) -> None:
    result = CliRunner().invoke(app, ["paper", "queue", "--list", "--results", str(results)])
    assert result.exit_code == 0, result.exception
    assert "focal weighting on FunCat, one seed" in result.output
    heads = [line.split() for line in result.output.splitlines() if line.split()[:1] in (["dataset"], ["entry"])]
    assert heads == [
        ["dataset", "method", "place", "seed", "published", "rows", "about", "done", "after"],
        ["entry", "trainings", "about", "done", "after"],
    ]
    assert re.search(r"\d+ trainings, about \d+ days", result.output.splitlines()[-1])
    assert not results.exists()


def test_a_table_outside_the_clone_has_the_published_numbers(results: Path) -> None:
    result = CliRunner().invoke(app, ["paper", "table", "imbalance_fun", "--results", str(results)])
    assert result.exit_code == 0, result.exception
    assert "| cellcycle_FUN | None | 2.61 ± 0.09 |" in result.stdout
    assert f"There is no folder {results}; --results names" in result.stderr


def test_the_queue_stops_when_its_time_is_over(root: Path, results: Path) -> None:
    done = shell("--root", root, "--results", results, "--hours", "0", command="queue")
    assert done.returncode == 0, done.stderr
    assert re.search(r"Time is up with [\d,]+ trainings left; the same command continues", done.stderr)


@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.slow
class TestSignals:
    """One training is done, and another would never be, when a signal arrives."""

    @pytest.fixture
    def begins_with(self, request: pytest.FixtureRequest) -> str:
        return getattr(request, "param", "")

    @pytest.fixture
    def under_way(
        self, spec: Path, root: Path, results: Path, begins_with: str
    ) -> Iterator[subprocess.Popen[str]]:
        spec.write_text(ENDLESS)
        python, option, code, *words = COMMAND
        command = [python, option, code.replace("from", f"{begins_with}from", 1), *words, str(spec)]
        command += ["--root", str(root), "--results", str(results), "--jobs", "2"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
        try:
            ready = until(lambda: records(results) and under_way_in(results) and len(workers(process.pid)) == 2, LONG)
            assert ready, process.poll()
            yield process
        finally:
            for left in members(process.pid):
                os.kill(left, signal.SIGKILL)
            process.communicate()

    @pytest.mark.parametrize(
        ("begins_with", "reached"),
        [("", "the command"), ("", "its workers too"), ("import polars; ", "its workers too")],  # as from a terminal
        indirect=["begins_with"],  # polars takes it for itself
    )
    def test_ctrl_c(self, under_way: subprocess.Popen[str], results: Path, reached: str) -> None:
        (os.kill if reached == "the command" else os.killpg)(under_way.pid, signal.SIGINT)
        _, told = under_way.communicate(timeout=SOON)
        assert under_way.returncode == 130
        assert told.splitlines()[-1] == (
            "rarenode: stopped; what is done is kept, and the same command continues from there"
        )
        assert "Traceback" not in told
        assert until(lambda: not members(under_way.pid), SOON)
        assert len(records(results)) == 1

    @pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
    def test_no_worker_outlives_a_command_that_is_killed(
        self, under_way: subprocess.Popen[str], results: Path, number: signal.Signals
    ) -> None:
        under_way.send_signal(number)
        assert under_way.wait(timeout=SOON) == (143 if number == signal.SIGTERM else -number)
        assert until(lambda: not members(under_way.pid), SOON)
        assert len(records(results)) == 1

    def test_a_worker_that_is_killed(self, under_way: subprocess.Popen[str], results: Path) -> None:
        for worker in workers(under_way.pid):  # one of them has nothing to do
            os.kill(worker, signal.SIGKILL)
        assert under_way.stderr is not None
        lines = iter(under_way.stderr.readline, "")
        warned = next(line for line in lines if "gasch2_FUN, weighted, seed 0: its process was killed" in line)
        assert "it is begun again" in warned
        assert until(lambda: len(workers(under_way.pid)) == 1, SOON)


def under_way_in(results: Path) -> Sequence[Path]:
    """The work folders of trainings that have begun."""
    return [path for path in (results / ".work").glob("*") if path.suffix != ".claim"]


def members(session: int) -> Sequence[int]:
    """The processes of a session, those aside that have ended and wait for their parent."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, _, _, its_session = (folder / "stat").read_text().rsplit(")", 1)[1].split()[:4]
        except OSError:  # it ended in the meantime
            continue
        if int(its_session) == session and state != "Z":
            found.append(int(folder.name))
    return found


def workers(session: int) -> Sequence[int]:
    """The workers of a session."""
    found = []
    for pid in members(session):
        with suppress(OSError):  # it ended in the meantime
            if b"rarenode.executors.worker" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


@pytest.mark.real_data
@pytest.mark.slow
def test_real_data_then_nothing_more_to_train(tmp_path: Path, results: Path) -> None:
    spec = tmp_path / "one_epoch.toml"
    spec.write_text(
        'title = "one epoch"\ndatasets = ["spo_FUN"]\nsettings = { epochs = 1 }\n[[methods]]\nname = "weighted"\n'
    )
    done = shell(spec, "--seeds", "1", "--results", results)
    assert done.returncode == 0, done.stderr
    (kept,) = results.glob("spo_FUN/*-*.json")
    record = json.loads(kept.read_text())
    assert record["steps_per_epoch"] == 610  # 1600 + 837 rows in batches of 4
    assert record["summary"]["nodes"] == 499
    assert 0.05 < record["summary"]["ap"] < 0.3

    before = kept.stat().st_mtime_ns
    again = shell(spec, "--seeds", "1", "--results", results)
    assert again.returncode == 0
    assert again.stderr == "0 trainings to do; 1 already done\n"
    assert kept.stat().st_mtime_ns == before
