"""`rarenode data`: the datasets of the catalogue."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from rarenode.cli.console import print_error, print_table
from rarenode.data.catalogue import SPLITS, CatalogueEntry, CatalogueFile, catalogue, find_entries, find_entry
from rarenode.data.fetch import Progress as FetchProgress
from rarenode.data.fetch import fetch_entry, inspect_file, missing_files
from rarenode.data.locations import data_root
from rarenode.errors import DownloadError, MissingFileError

app = typer.Typer(
    help="""The datasets of the paper: list, describe, fetch.

\b
Examples:
  rarenode data list
  rarenode data info enron
  rarenode data fetch cellcycle_FUN derisi_GO
  rarenode data fetch all --root ~/hmc
""",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Root = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="The folder that holds the datasets; otherwise RARENODE_DATA, otherwise the user's cache.",
        show_default=False,
    ),
]


@app.command("list")
def list_datasets(root: Root = None) -> None:
    """List the datasets of the catalogue, and whether their files are here.

    \b
    Examples:
      rarenode data list
      rarenode data list --root ~/hmc
    """
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("name", no_wrap=True)
    table.add_column("kind")
    for number in (*SPLITS, "features", "nodes", "scored"):
        table.add_column(number, justify="right")
    table.add_column("here")
    for entry in catalogue().values():
        files = [entry.file(split) for split in SPLITS]
        numbers = [file.rows if file else "-" for file in files] + [entry.features, entry.nodes, entry.scored]
        table.add_row(Text(entry.name), entry.kind, *map(str, numbers), _presence(entry, root))
    print_table(table)
    print("train, valid, test: rows. scored: nodes that count in the loss and the metrics.")
    print(f"Data root: {data_root(root)}")


@app.command("info")
def describe_dataset(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name from `rarenode data list`.", show_default=False)],
    root: Root = None,
) -> None:
    """Print everything that is known about a dataset; its files, where they are here, are verified.

    \b
    Examples:
      rarenode data info cellcycle_FUN
      rarenode data info expr_GO_rebuilt --root ~/hmc
    """
    entry = find_entry(name)
    sheet = Table.grid(padding=(0, 2))
    sheet.add_column(style="bold", no_wrap=True)
    sheet.add_column()
    for key, value in (
        ("name", entry.name),
        ("title", entry.title),
        ("features", f"{entry.features}: {entry.about}"),
        ("hierarchy", f"{entry.kind}, {entry.nodes} nodes, {entry.edges} edges, {entry.scored} nodes scored"),
        ("not scored", ", ".join(entry.unscored)),
        ("training", ", ".join(f"{key} {value}" for key, value in asdict(entry.hyperparameters).items())),
        ("data root", str(data_root(root))),
        *((file.split, _describe_file(file, root)) for file in entry.files),
        ("source", entry.source),
        ("cite", "\n".join(entry.citations)),
        ("licence", entry.licence),
    ):
        sheet.add_row(key, Text(value))
    print_table(sheet)


@app.command("fetch")
def fetch_datasets(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME", help="Names from `rarenode data list`, or all.", show_default=False),
    ],
    root: Root = None,
    mirror: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="Fetch from this http or https address, which holds the same files under the same paths.",
            show_default=False,
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Fetch datasets from the public C-HMCNN repository, or from a mirror of it.

    An interrupted fetch goes on where it stopped. A file gets its name only once its checksum is right. Files that are
    here already are verified and left alone.

    \b
    Examples:
      rarenode data fetch cellcycle_FUN
      rarenode data fetch enron diatoms --root ~/hmc
      rarenode data fetch all --mirror https://mirror.example.org/hmc/ --quiet
    """
    failed = False
    for entry in find_entries(names):
        try:
            with _progress(quiet) as progress:
                fetched = fetch_entry(entry, root, mirror, progress)
        except (DownloadError, MissingFileError) as error:  # the datasets that follow may be had all the same
            print_error(error)
            failed = True
            continue
        if not quiet:
            for file in fetched:
                print(f"{file.path}: {decimal(file.size)}, {file.status}, {file.verified}")
    if failed:
        raise typer.Exit(1)


def _presence(entry: CatalogueEntry, root: Path | None) -> str:
    missing, all_files = len(missing_files(entry, root)), len(entry.files)
    return {0: "yes", all_files: "no"}.get(missing, f"{all_files - missing} of {all_files}")


def _describe_file(file: CatalogueFile, root: Path | None) -> str:
    size = "size unknown" if file.size is None else f"{file.size} bytes"
    origin = "" if file.published else "; not published anywhere"
    checksum = file.sha256 or "unknown"
    return f"{file.path}\n{file.rows} rows, {size}{origin}\nsha256 {checksum}\n{inspect_file(file, root)}"


@contextmanager
def _progress(quiet: bool) -> Iterator[FetchProgress | None]:
    console = Console(stderr=True)
    if quiet:
        yield None
    elif console.is_terminal:
        columns = TextColumn("{task.description}", markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn()
        with Progress(*columns, console=console, transient=True) as bars:
            tasks: dict[CatalogueFile, TaskID] = {}

            def move_bar(file: CatalogueFile, done: int, total: int) -> None:
                if file not in tasks:
                    tasks[file] = bars.add_task(file.path.name, total=total)
                bars.update(tasks[file], completed=done)

            yield move_bar
    else:
        begun: set[CatalogueFile] = set()

        def print_line(file: CatalogueFile, done: int, total: int) -> None:
            if file not in begun:
                begun.add(file)
                print(f"fetching {file.path.name}, {decimal(total)}", file=sys.stderr)

        yield print_line
