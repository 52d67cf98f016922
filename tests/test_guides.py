"""The examples in the guides, and on the first pages of the documentation, run as they stand."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from tests.pages import DOCS, commands, python, run_commands

GUIDES = sorted((DOCS / "guide").glob("*.md"))
PAGES = [DOCS / "index.md", DOCS / "install.md", *GUIDES]
ELSEWHERE = ("own-methods",)
"""Guides whose commands need files that their pages show; their tests are beside this one."""
WITH_COMMANDS = [page for page in PAGES if commands(page) and page.stem not in ELSEWHERE]


def test_there_are_guides() -> None:
    assert len(GUIDES) >= 11
    assert len(WITH_COMMANDS) >= 6


@pytest.mark.parametrize("page", [DOCS / "index.md", *GUIDES], ids=lambda path: path.stem)
def test_its_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = python(page)
    assert examples
    names: dict[str, object] = {"__name__": "guide"}
    with contextlib.redirect_stdout(io.StringIO()):
        for example in examples:
            exec(compile(example, str(page), "exec"), names)


@pytest.mark.slow
@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda path: path.stem)
def test_its_commands_run(page: Path, tmp_path: Path) -> None:
    run_commands(page, tmp_path)


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda path: str(path.relative_to(DOCS)))
def test_no_example_is_left_out(page: Path) -> None:
    """Python and commands are on pages whose examples are run, in blocks that are found."""
    text = page.read_text(encoding="utf-8")
    marked = re.findall(r"^ *```+ *(?:python|py|pycon|console|bash|sh|shell)\b", text, re.MULTILINE)
    with_prompt = re.findall(r"^```console\n\$ ", text, re.MULTILINE)
    is_run = page in PAGES or page.parent.name == "tutorials"
    assert len(marked) == (len(python(page)) + len(with_prompt) if is_run else 0)
