from __future__ import annotations

from pathlib import Path

import pytest

from rarenode.training.atomic import replacing


def test_a_link_with_the_name_of_a_part_is_removed_and_not_written_through(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / ".model.json.part").symlink_to(precious)
    with replacing(folder / "model.json") as (part,):
        part.write_text("new")
    assert precious.read_text() == "mine"
    assert (folder / "model.json").read_text() == "new"
    assert not (folder / "model.json").is_symlink()


def test_a_failure_leaves_the_old_file_and_no_part(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(RuntimeError), replacing(path) as (part,):
        part.write_text("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
