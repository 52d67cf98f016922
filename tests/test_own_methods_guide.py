"""The guide to methods of one's own runs as it stands: its files are saved, its commands run, its table comes out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rarenode.paper.grid import tasks
from rarenode.paper.spec import load_spec

PAGE = Path(__file__).parent.parent / "docs" / "guide" / "own-methods.md"
BLOCK = re.compile(r"^```(console|python|toml)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def blocks(kind: str) -> list[str]:
    return [text for found, text in BLOCK.findall(PAGE.read_text(encoding="utf-8")) if found == kind]


def save(folder: Path) -> None:
    (folder / "my_loss.py").write_text(blocks("python")[0], encoding="utf-8")
    for name, text in zip(("my_spec", "paper_spec"), blocks("toml"), strict=True):
        (folder / f"{name}.toml").write_text(text, encoding="utf-8")


def test_the_spec_on_the_papers_data_shares_its_trainings(tmp_path: Path) -> None:
    save(tmp_path)
    spec, paper = load_spec(str(tmp_path / "paper_spec.toml")), load_spec("imbalance_fun")
    theirs = {task.method: task.cell.fingerprint for task in tasks(paper, ["cellcycle_FUN"], seeds=1)}
    none, weighted, mine = (task.cell for task in tasks(spec))
    assert (none.fingerprint, weighted.fingerprint) == (theirs["None"], theirs["w0=0.25"])
    assert mine.own.keys() == {"objective"}
    for method in ("None", "w0=0.25"):
        assert spec.published_for("cellcycle_FUN", method) == paper.published_for("cellcycle_FUN", method)


@pytest.mark.slow
def test_it_runs(tmp_path: Path) -> None:
    save(tmp_path)
    program = tmp_path / "bin" / "rarenode"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rarenode "$@"\n')
    program.chmod(0o755)
    environment = os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}"}
    shell = [line[2:] for text in blocks("console") for line in text.splitlines() if line[:2] == "$ "]
    assert len(shell) == 3
    command = ["bash", "-c", "\n".join(["set -e", *shell])]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert [line.split(" | ")[1] for line in done.stdout.splitlines() if line.startswith("| survey")] == [
        "None",
        "w0=0.25",
        "asymmetric",
    ]
