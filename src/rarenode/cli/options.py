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
from rarenode.data.table_options import TableOptions

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
On = Annotated[
    str,
    typer.Option(
        "--on",
        metavar="WHERE",
        help="local, ray, or the address of a Ray cluster (host:port, auto, ray://host:port).",
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print only warnings and errors.")]
Raw = Annotated[
    bool, typer.Option("--raw", help="In CSV and TSV: names as they are, also where a spreadsheet sees a formula.")
]
RunFolder = Annotated[
    Path,
    typer.Argument(metavar="RUN", help="The folder of a `rarenode fit`.", show_default=False, parser=not_empty),
]
Split = Annotated[
    SplitName | None,
    typer.Option(
        "--split",
        help="Which rows of a dataset of the catalogue, or of a table with --partition.",
        show_default="test",
    ),
]
OtherThresholds = Annotated[
    str | None,
    typer.Option(
        "--thresholds",
        metavar="HOW",
        help="Replace the model's thresholds, without using labels: fixed:0.3, expected_f1, expected_f2, ...; or "
        "guaranteed, for guaranteed sets.",
        show_default="the model's",
    ),
]

Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        help="Where network and encoder are computed: cpu, cuda, cuda:1, mps, or auto, the best available.",
        show_default="that of the training, or cpu",
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
    return _with_options(command, {name: _option(name, main) for name, _, _, main in setting_fields()})


def with_table_options(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command options of `TableOptions`, by default all; those given are passed on in its ``table``."""
    chosen = names or tuple(TableOptions.model_fields)
    return lambda command: _with_options(command, {name: _table_option(name) for name in chosen}, into="table")


def _table_option(name: str) -> Any:
    field = TableOptions.model_fields[name]
    several = "tuple" in str(field.annotation)
    is_flag = field.annotation is bool
    kind = bool if is_flag else list[str] if several else Literal["none", "below"] if name == "unknown" else str
    metavars = {"labels": "COLUMNS|FILE", "separator": "TEXT", "path_separator": "TEXT", "images": "FOLDER|ZIP"}
    return Annotated[
        kind | None,
        typer.Option(
            f"--{name.replace('_', '-')}",
            metavar=None if name == "unknown" or is_flag else metavars.get(name, "NAMES" if several else "COLUMN"),
            help=field.description,
            show_default=False if field.default in ((), None, False) else _default_text(field.default),
            rich_help_panel="Images" if "image" in name else "Tables",
        ),
    ]


def _default_text(default: str | tuple[str, ...]) -> str:
    return default if isinstance(default, str) else ",".join(default)


def one_or_all(data: list[str] | None) -> Any:
    """One name as it is, several files as one table, nothing as None."""
    return None if not data else data[0] if len(data) == 1 else data


def split_names(given: list[str]) -> tuple[str, ...]:
    """Names that were given one by one or, separated by commas, together."""
    return tuple(name.strip() for each in given for name in each.split(",") if name.strip())


def _with_options(
    command: Callable[..., None], annotations: dict[str, Any], into: str | None = None
) -> Callable[..., None]:
    parameters = inspect.signature(command, eval_str=True).parameters.values()
    own = [p for p in parameters if p.kind is not p.VAR_KEYWORD and p.name != into]
    rest = [p for p in parameters if p.kind is p.VAR_KEYWORD] if into is not None else []
    names = list(annotations)
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in annotations.items()
    ]

    def wrapped(**values: Any) -> None:
        given = {name: values.pop(name) for name in names}
        chosen = {name: value for name, value in given.items() if value not in (None, [])}
        if into is None:
            command(**values, **chosen)
        else:
            lists = {name: split_names(v) if isinstance(v, list) else v for name, v in chosen.items()}
            command(**values, **{into: lists})

    wrapped.__doc__, wrapped.__name__ = command.__doc__, command.__name__
    wrapped.__signature__ = inspect.Signature([*own, *options, *rest])  # type: ignore[attr-defined]
    wrapped.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *options)}
    return wrapped


def _option(name: str, main: bool) -> Any:
    field = Settings.model_fields[name]
    in_paper = PRESETS["paper"].get(name, field.default)
    shown = _shown(field.default)
    if in_paper != field.default:
        shown = f"{shown}; paper: {_shown(in_paper)}"
    option = f"--{name.replace('_', '-')}"
    if field.annotation is bool:  # a file of settings may say yes, so an option must be able to say no
        option += f"/--no-{option.removeprefix('--')}"
    return Annotated[
        _plain(field.annotation) | None,
        typer.Option(option, help=describe(name), show_default=shown, hidden=not main),
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
