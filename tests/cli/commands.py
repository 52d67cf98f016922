"""Commands as a shell gives them, and small files for them to work on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from typer.testing import CliRunner, Result

from rarenode.cli import app
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


def fail(error: type[RarenodeError], *arguments: str | Path) -> str:
    result = run(*arguments)
    assert isinstance(result.exception, error), repr(result.exception)
    return str(result.exception)
