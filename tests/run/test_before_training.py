"""What a run on pictures refuses or says before it trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rarenode import Run
from rarenode.errors import TrainingError
from tests.encoders import encoder_folder, reef, small_settings

__all__ = ["encoder_folder", "reef"]


@pytest.fixture(autouse=True, scope="module")
def _all_with_one_thread(one_thread: None) -> None: ...


def how(images: Path, **changes: Any) -> dict[str, Any]:
    return {"labels": "taxa", "image": "image", "images": str(images), "ignore": ["partition"]} | changes


def test_a_folder_that_cannot_be_created(
    reef: Path, encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("rarenode.run.rows.usable", lambda *_, **__: pytest.fail("pictures were encoded"))
    with pytest.raises(TrainingError, match="run cannot be created: Not a directory"):
        Run.fit(
            reef / "labels.csv", tmp_path / "file" / "run", small_settings(encoder_folder), options=how(reef)
        )
