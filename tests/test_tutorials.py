"""The tutorials run as they stand: all commands, then all Python, in one empty folder each."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.pages import DOCS, commands, python, run_commands, run_python

PAGES = sorted((DOCS / "tutorials").glob("[!R]*.md"))


def test_there_are_four() -> None:
    assert [page.stem for page in PAGES] == ["documents", "field-survey", "gene-function", "pictures"]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_it_runs(page: Path, tmp_path: Path) -> None:
    assert commands(page) and python(page)
    run_commands(page, tmp_path)
    run_python(page, tmp_path)
