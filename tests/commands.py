"""Commands as in a shell, and small files and a small catalogue for them to work on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from rarenode.cli.app import app
from rarenode.data import catalogue as catalogue_module
from rarenode.data.catalogue import CatalogueEntry, CatalogueFile, SplitName
from rarenode.errors import RarenodeError

CLASSES = "1,1/1,1/2,2,2/1"
LABELS = ("1/1", "1/2", "2/1", "1/1@2")


def write_arff(
    path: Path, rows: int = 24, features: Sequence[str] = ("a", "b", "c"), classes: str = CLASSES, seed: int = 0
) -> Path:
    """Rows whose features tell their labels; some values are missing."""
    rng = np.random.default_rng(seed)
    lines = ["@RELATION small", *(f"@ATTRIBUTE {name} numeric" for name in features)]
    lines += [f"@ATTRIBUTE class hierarchical {classes}", "@DATA"]
    for row in range(rows):
        values = rng.normal(size=len(features)) + (row % len(LABELS))
        shown = ["?" if rng.random() < 0.1 else f"{value:.4f}" for value in values]
        lines.append(",".join([*shown, LABELS[row % len(LABELS)]]))
    path.write_text("\n".join(lines) + "\n")
    return path


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def succeed(*arguments: str | Path) -> str:
    result = run(*arguments)
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result.stdout


def on_training_rows() -> pytest.WarningsRecorder:
    """As a context: within it a model is evaluated on rows that it was trained on, of which it warns."""
    return pytest.warns(RuntimeWarning, match="the model was trained on these rows")


def fail(error: type[RarenodeError], *arguments: str | Path) -> str:
    result = run(*arguments)
    assert isinstance(result.exception, error), repr(result.exception)
    return str(result.exception)


@pytest.fixture
def catalogued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> CatalogueEntry:
    """The catalogue has a further dataset, named tiny, whose files are in tmp_path."""
    rows: dict[SplitName, int] = {"train": 24, "valid": 12, "test": 16}
    files = []
    for seed, (split, count) in enumerate(rows.items()):
        path = write_arff(tmp_path / f"tiny.{split}.arff", count, seed=seed)
        files.append(CatalogueFile(split, PurePosixPath(path.name), count))
    entry = CatalogueEntry(
        name="tiny", title="", about="", kind="tree", source="https://example.org/", files=tuple(files), features=3,
        nodes=6, edges=5, unscored=("root",), citations=(), licence="",
    )  # fmt: skip
    monkeypatch.setitem(catalogue_module.entries(), entry.name, entry)
    monkeypatch.setenv("RARENODE_DATA", str(tmp_path))
    return entry
