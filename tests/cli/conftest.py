from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest

import rarenode.data.catalogue
from rarenode.cli import predicting, reporting, run_folder, sources
from rarenode.data.catalogue import CatalogueEntry, CatalogueFile, SplitName
from tests.cli.commands import write_arff


@pytest.fixture
def catalogued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CatalogueEntry:
    """The catalogue has one dataset, named tiny, whose files are in tmp_path."""
    rows: dict[SplitName, int] = {"train": 24, "valid": 12, "test": 16}
    files = []
    for seed, (split, count) in enumerate(rows.items()):
        path = write_arff(tmp_path / f"tiny.{split}.arff", count, seed=seed)
        files.append(CatalogueFile(split, PurePosixPath(path.name), count))
    entry = CatalogueEntry(
        name="tiny", title="", about="", kind="tree", source="https://example.org/", files=tuple(files), features=3,
        nodes=6, edges=5, unscored=("root",), citations=(), licence="",
    )  # fmt: skip
    for module in (rarenode.data.catalogue, sources, run_folder, predicting, reporting):
        monkeypatch.setattr(module, "catalogue", lambda: {entry.name: entry})
    monkeypatch.setenv("RARENODE_DATA", str(tmp_path))
    return entry
