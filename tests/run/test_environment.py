"""`describe_environment`, and `rarenode doctor --environment`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from rarenode import __version__
from rarenode.run import environment
from rarenode.run.environment import describe_environment
from tests.commands import run, succeed


def test_versions_threads_and_devices_are_those_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_NUM_THREADS", "3")
    found = describe_environment()
    assert found.rarenode == __version__
    assert found.packages["numpy"] == version("numpy")
    assert "pytest" not in found.packages  # a tool of development
    assert 1 <= found.threads <= found.processors
    assert found.variables["NUMBA_NUM_THREADS"] == "3"
    assert found.memory_bytes is None or found.memory_bytes > 2**28


def test_what_an_extra_needs_and_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    needed = ["numpy>=1", "no-such-package>=2; extra == 'vision'", "pytest>=8; extra == 'dev'"]
    monkeypatch.setattr(environment, "requires", lambda _: needed)
    found = describe_environment()
    assert list(found.packages) == ["numpy"]
    assert found.absent == ("no-such-package",)


def test_folders_have_a_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("RARENODE_DATA", str(tmp_path))
    monkeypatch.setenv("RARENODE_CACHE", str(tmp_path / "file"))
    states = {each.purpose: each.state for each in describe_environment().folders}
    assert states["datasets of the catalogue"] == "writable"
    assert states["embeddings of pictures"] == "not a folder"
    monkeypatch.setenv("RARENODE_CACHE", str(tmp_path / ("long" * 200)))
    assert {each.state for each in describe_environment().folders} >= {"not there yet"}


def test_in_the_shell() -> None:
    assert f"rarenode                   {__version__}" in succeed("doctor", "--environment")
    assert json.loads(succeed("doctor", "--environment", "--json"))["rarenode"] == __version__


@pytest.mark.parametrize("arguments", [(), ("data.csv", "--environment")])
def test_data_or_environment(arguments: tuple[str, ...]) -> None:
    result = run("doctor", *arguments)
    assert result.exit_code == 2
    assert "--environment" in result.output


@pytest.mark.parametrize("threads", ["0", "-1", "x", ""])
def test_an_impossible_number_of_threads_is_an_error_of_one_line(threads: str) -> None:
    command = [sys.executable, "-m", "rarenode", "doctor", "--environment"]
    done = subprocess.run(
        command, env=os.environ | {"NUMBA_NUM_THREADS": threads}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("rarenode: the environment variable NUMBA_NUM_THREADS must be a number of threads")
    assert done.stderr.count("\n") == 1
