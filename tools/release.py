"""Build a release, and prove it on a machine with nothing but Python.

    python tools/release.py

writes the wheel, the source distribution and a bill of materials to dist/, looks into them, builds the wheel once more
from the source distribution, and installs it with all extras into an empty environment (build/release), with versions
as in requirements.lock. There, away from the repository, the command line starts, and the lines of Python in README.md
run.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
DIST, CLEAN = PROJECT / "dist", PROJECT / "build" / "release"
EXTRAS = "vision,cluster"
OUTSIDE_SOURCES = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "LICENSE", "NOTICE"}


def main() -> None:
    """Build, look, install and run; any failure ends it."""
    wheel, source = build(PROJECT, DIST)
    check_contents(wheel, source)
    subprocess.run([sys.executable, "tools/sbom.py"], cwd=PROJECT, check=True)
    shutil.copy(PROJECT / "build" / "sbom.json", DIST)
    print(f"{wheel.name}, {wheel.stat().st_size / 1e6:.2f} MB; {source.name}, {source.stat().st_size / 1e6:.2f} MB")
    python = install(wheel)
    with tempfile.TemporaryDirectory() as folder:
        run_outside(python, Path(folder))
    print("installed into an empty environment, where the command line and the lines of README.md run")


def build(project: Path, out: Path) -> tuple[Path, Path]:
    """The wheel and the source distribution of a project."""
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "hatchling", "build", "--directory", str(out)], cwd=project, check=True)
    (wheel,), (source,) = out.glob("*.whl"), out.glob("*.tar.gz")
    return wheel, source


def check_contents(wheel: Path, source: Path) -> None:
    """Make sure that everything in src is in the wheel, and that the source distribution makes the same wheel."""
    tracked = subprocess.run(
        ["git", "ls-files", "src/rarenode"], cwd=PROJECT, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    wanted = {name.removeprefix("src/") for name in tracked}
    found = names_in(wheel)
    assert wanted == {name for name in found if name.startswith("rarenode/")}, wanted ^ found
    assert {Path(name).name for name in found - wanted} == OUTSIDE_SOURCES, found - wanted
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(source) as content:
            content.extractall(folder, filter="data")
        (unpacked,) = Path(folder).iterdir()
        again, _ = build(unpacked, Path(folder) / "dist")
        assert names_in(again) == found, names_in(again) ^ found


def names_in(wheel: Path) -> set[str]:
    """The files of a wheel."""
    with zipfile.ZipFile(wheel) as content:
        return set(content.namelist())


def install(wheel: Path) -> Path:
    """An empty environment with the wheel and what it needs; returns its Python."""
    shutil.rmtree(CLEAN, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", str(CLEAN)], check=True)
    python, lock = CLEAN / "bin" / "python", PROJECT / "requirements.lock"
    torch = next(line for line in lock.read_text(encoding="utf-8").splitlines() if line.startswith("torch=="))
    pip = [str(python), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, torch], check=True)  # first, as in the Makefile
    subprocess.run([*pip, "--constraint", str(lock), f"{wheel}[{EXTRAS}]"], check=True)
    return python


def run_outside(python: Path, folder: Path) -> None:
    """Run the command line and README's lines of Python in an empty folder."""

    def run(*command: str) -> str:
        done = subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True)
        return done.stdout

    rarenode = str(python.parent / "rarenode")
    version = run(str(python), "-c", "import rarenode; print(rarenode.__version__)").strip()
    assert run(rarenode, "--version").strip() == f"rarenode {version}"
    began = time.perf_counter()
    run(rarenode, "--help")
    print(f"rarenode --help: {time.perf_counter() - began:.2f} s")
    assert "imbalance_fun" in run(rarenode, "paper", "list")
    assert "complete" in run(rarenode, "--show-completion", "bash").lower()
    print(run(rarenode, "doctor", "--environment"))
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    assert blocks, "README.md has no lines of Python"
    for block in blocks:
        print(run(str(python), "-c", block), end="")


if __name__ == "__main__":
    main()
