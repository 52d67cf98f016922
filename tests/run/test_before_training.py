"""What a run on pictures refuses or says before it trains."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import polars as pl
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


@pytest.mark.parametrize("train_encoder", [False, True])
def test_copies_of_training_pictures(reef: Path, encoder_folder: Path, tmp_path: Path, train_encoder: bool) -> None:
    table = pl.read_csv(reef / "labels.csv").with_columns(pl.lit("train").alias("partition"))
    parts = ["train"] * (len(table) - 20) + ["valid"] * 10 + ["test"] * 10
    table = table.with_columns(pl.Series("partition", parts))
    shutil.copytree(reef, tmp_path / "reef")
    names = table["image"].to_list()
    for copy, original in ((names[-1], names[0]), (names[-2], names[1]), (names[-15], names[2])):
        shutil.copy(tmp_path / "reef" / original, tmp_path / "reef" / copy)
    table.write_csv(tmp_path / "t.csv")
    settings = small_settings(encoder_folder, train_encoder=train_encoder, holdout=None, cv=3)
    options = how(tmp_path / "reef", partition="partition", ignore=[])
    with pytest.warns(RuntimeWarning, match="the same content as a picture of") as caught:
        Run.fit(tmp_path / "t.csv", tmp_path / "run", settings, options=options, report=False)
    told = [str(each.message) for each in caught]
    assert len(told) == 2
    assert told[0].startswith("1 picture of ")
    assert told[1].startswith("2 pictures of ")
    assert f"{names[-2]} = {names[1]}, {names[-1]} = {names[0]}); if they are the same, keep one" in told[1]
