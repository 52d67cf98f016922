"""The examples in the guides run as they stand."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

GUIDES = sorted((Path(__file__).parent.parent / "docs" / "guide").glob("*.md"))


def test_there_are_guides() -> None:
    assert len(GUIDES) >= 2


@pytest.mark.parametrize("guide", GUIDES, ids=lambda path: path.stem)
def test_its_examples_run(guide: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    examples = re.findall(r"^```python\n(.*?)^```", guide.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert examples
    names: dict[str, object] = {"__name__": "guide"}
    with contextlib.redirect_stdout(io.StringIO()):
        for example in examples:
            exec(compile(example, str(guide), "exec"), names)
