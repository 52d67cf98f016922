"""Options that follow from the settings."""

from __future__ import annotations

from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from rarenode.cli.options import with_settings


def chosen(*arguments: str) -> dict[str, Any]:
    seen: dict[str, Any] = {}

    @with_settings
    def command(**settings: Any) -> None:
        seen.update(settings)

    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    return seen


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], {}),
        (["--train-encoder"], {"train_encoder": True}),
        (["--no-train-encoder"], {"train_encoder": False}),  # a file of settings may say yes
        (["--encoder", "vit", "--image-size", "64"], {"encoder": "vit", "image_size": 64}),
        (["--precision", "bfloat16", "--augmentation", "none"], {"precision": "bfloat16", "augmentation": "none"}),
    ],
)
def test_only_options_that_are_given_are_passed_on(arguments: list[str], expected: dict[str, Any]) -> None:
    assert chosen(*arguments) == expected
