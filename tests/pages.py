"""What a page of the documentation asks its readers to type, and the folder in which it is typed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"
BLOCK = re.compile(r"^```(console|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)


def commands(page: Path) -> list[str]:
    """The lines after a prompt, in order."""
    blocks = BLOCK.findall(page.read_text(encoding="utf-8"))
    return [line[2:] for kind, text in blocks if kind == "console" for line in text.splitlines() if line[:2] == "$ "]


def python(page: Path) -> list[str]:
    """The examples, in order."""
    return [text for kind, text in BLOCK.findall(page.read_text(encoding="utf-8")) if kind == "python"]


def run_commands(page: Path, folder: Path) -> None:
    _succeed(["bash", "-c", "\n".join(["set -eo pipefail", *commands(page)])], folder)


def run_python(page: Path, folder: Path) -> None:
    _succeed([sys.executable, "-c", "\n".join(python(page))], folder)


def _succeed(command: list[str], folder: Path) -> None:
    program = folder / "bin" / "rarenode"
    program.parent.mkdir(exist_ok=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m rarenode "$@"\n')
    program.chmod(0o755)
    environment = os.environ | {"PATH": f"{program.parent}:{os.environ['PATH']}", "MPLBACKEND": "agg"}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command[-1]}\n{done.stdout}\n{done.stderr}"
