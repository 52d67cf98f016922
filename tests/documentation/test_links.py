"""Links in the Markdown files lead to files and headings of the repository, so they work where it is hosted as well."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.documentation.conftest import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)|^\[[^]]+\]: (\S+)", re.MULTILINE)


def anchors(page: Path) -> set[str]:
    """Headings as links name them: in lower case, hyphens for spaces, without other punctuation."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_they_lead_somewhere(page: Path) -> None:
    text = CODE.sub("", page.read_text(encoding="utf-8"))
    for inline, defined in LINK.findall(text):
        path, _, anchor = (inline or defined).partition("#")
        if "://" in path:
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        assert target.is_relative_to(ROOT), path
        if anchor:
            assert anchor in anchors(target), f"{path}#{anchor}"


def test_there_are_some() -> None:
    assert sum(len(LINK.findall(page.read_text(encoding="utf-8"))) for page in PAGES) > 100
