"""The tutorials run as they stand: all commands, then all Python, in one empty folder each."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGES = sorted((Path(__file__).parent.parent / "docs" / "tutorials").glob("[!R]*.md"))
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def test_there_are_four() -> None:
    assert [page.stem for page in PAGES] == ["documents", "field-survey", "gene-function", "pictures"]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_it_runs(page: Path, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "rarenode"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rarenode "$@"\n')
    program.chmod(0o755)
    environment = os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}", "MPLBACKEND": "agg"}
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    shell = [line[2:] for kind, text in blocks if kind == "console" for line in text.splitlines() if line[:2] == "$ "]
    python = [text for kind, text in blocks if kind == "python"]
    assert shell and python
    for command in (["bash", "-c", "\n".join(["set -e", *shell])], [sys.executable, "-c", "\n".join(python)]):
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command[-1]}\n{done.stdout}\n{done.stderr}"
