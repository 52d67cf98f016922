"""What the README shows runs as it stands there."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def test_the_python_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (example,) = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    assert len(example.strip().splitlines()) <= 15
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(example, str(README), "exec"), {"__name__": "readme"})
    lines = printed.getvalue().splitlines()
    assert [line.split()[0] for line in lines] == ["0", "1-4", "5-19", "20-99", "100+"]
    assert lines[-1].endswith("nodes found")


def test_every_make_target_it_names_exists() -> None:
    text = README.read_text(encoding="utf-8")
    makefile = (README.parent / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"\bmake ([a-z]+)\b", text))
    assert {"demo", "test"} <= named
    assert named <= set(re.findall(r"^([a-z]+):", makefile, re.MULTILINE))
