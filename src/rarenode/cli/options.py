"""Options that follow from the settings, and options that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, get_args, get_origin

import typer
from typer.core import TyperCommand

from rarenode.config import PRESETS, Settings, describe, setting_fields

SplitName = Literal["train", "valid", "test"]


def not_empty(path: str) -> Path:
    """A path; an empty one, such as that of a shell variable that is not set, would be the current folder."""
    if not path:
        raise typer.BadParameter("the path is empty; the current folder is '.'")
    return Path(path)


Root = Annotated[
    Path | None,
    typer.Option(
        metavar="DIR",
        help="The folder with the catalogue's datasets. Default: RARENODE_DATA, or else the user's cache.",
        show_default=False,
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print only warnings and errors.")]
RunFolder = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="The folder of a `rarenode fit`.", show_default=False, parser=not_empty),
]
Split = Annotated[
    SplitName | None, typer.Option("--split", help="Which rows of a dataset of the catalogue.", show_default="test")
]
OtherThresholds = Annotated[
    str | None,
    typer.Option(
        "--thresholds",
        metavar="HOW",
        help="Replace the model's thresholds, without using labels: fixed:0.3, expected_f1, expected_f2, ...",
        show_default="the model's",
    ),
]

OLD_NAMES = {
    "--members": "--n-members",
    "--trees": "--n-trees",
    "--hidden": "--hidden-size",
    "--early-stopping": "--patience",
    "--folds": "--cv",
    "--decision": "--thresholds",
    "--resample": "--resampling",
}
"""Former spellings of options, which are still understood."""


class CommandWithOldNames(TyperCommand):
    """A command that understands `OLD_NAMES`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Replace old names before click sees them."""
        named = (arg.partition("=") for arg in args)
        return super().parse_args(ctx, [OLD_NAMES.get(name, name) + rest + value for name, rest, value in named])


def with_settings(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for every setting, in place of its ``**settings``; those given are passed on."""
    own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.kind is not p.VAR_KEYWORD]
    names = [name for name, *_ in setting_fields()]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=_option(name, main))
        for name, _, _, main in setting_fields()
    ]

    def wrapped(**values: Any) -> None:
        given = {name: values.pop(name) for name in names}
        command(**values, **{name: value for name, value in given.items() if value is not None})

    wrapped.__doc__, wrapped.__name__ = command.__doc__, command.__name__
    wrapped.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *options)}
    return wrapped


def _option(name: str, main: bool) -> Any:
    field = Settings.model_fields[name]
    in_paper = PRESETS["paper"].get(name, field.default)
    shown = _shown(field.default)
    if in_paper != field.default:
        shown = f"{shown}; paper: {_shown(in_paper)}"
    return Annotated[
        _plain(field.annotation) | None,
        typer.Option(f"--{name.replace('_', '-')}", help=describe(name), show_default=shown, hidden=not main),
    ]


def _shown(default: object) -> str:
    return "not set" if default is None else str(default)


def _plain(annotation: Any) -> Any:
    """The type that an option has: ranges and None are left to the settings themselves, which check every value."""
    if get_origin(annotation) is Annotated:
        return _plain(get_args(annotation)[0])
    if get_origin(annotation) is Literal:
        return annotation if all(isinstance(choice, str) for choice in get_args(annotation)) else str
    parts = [part for part in get_args(annotation) if part is not NoneType]
    if not parts:
        return annotation
    if all(get_origin(part) is Literal for part in parts):
        return Literal[tuple(choice for part in parts for choice in get_args(part))]
    return _plain(parts[0])
