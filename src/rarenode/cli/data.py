"""`rarenode data`: list, describe and fetch the datasets of the catalogue."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.box import SIMPLE_HEAD
from rich.filesize import decimal
from rich.table import Table
from rich.text import Text

from rarenode._io.text import counted
from rarenode.cli.console import download_progress, print_error, print_table
from rarenode.cli.options import Quiet, Root
from rarenode.data.catalogue import (
    SPLITS,
    CatalogueEntry,
    CatalogueFile,
    catalogue,
    data_root,
    find_entries,
    find_entry,
)
from rarenode.errors import DownloadError, MissingFileError

SampleName = Literal["survey", "genes", "topics", "reef"]

app = typer.Typer(
    help="""List, describe and fetch the datasets of the paper.

\b
Examples:
  rarenode data list
  rarenode data info enron
  rarenode data fetch cellcycle_FUN derisi_GO
  rarenode data fetch all --root ~/hmc
  rarenode data sample survey --out survey
""",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@app.command("list")
def list_datasets(root: Root = None) -> None:
    """List all datasets, and whether their files have been fetched.

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
    table.add_column("fetched")
    for entry in catalogue().values():
        files = [entry.file(split) for split in SPLITS]
        numbers = [file.rows if file else "-" for file in files] + [entry.features, entry.nodes, entry.scored]
        table.add_row(Text(entry.name), entry.kind, *map(str, numbers), _presence(entry, root))
    print_table(table)
    print("train, valid, test: number of rows. scored: nodes that are part of the loss and the metrics.")
    print(f"Data root: {data_root(root)}")


@app.command("info")
def describe_dataset(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A dataset; `rarenode data list` shows all.", show_default=False)
    ],
    root: Root = None,
) -> None:
    """Describe a dataset, and verify those of its files that have been fetched.

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
        (
            "hierarchy",
            f"{entry.kind}, {counted(entry.nodes, 'node')} ({entry.scored:,} scored), {counted(entry.edges, 'edge')}",
        ),
        ("not scored", ", ".join(entry.unscored)),
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
        typer.Argument(
            metavar="NAME",
            help="Datasets; `rarenode data list` shows all. Use `all` for every one.",
            show_default=False,
        ),
    ],
    root: Root = None,
    mirror: Annotated[
        str | None,
        typer.Option(
            metavar="URL",
            help="An http or https address that serves the same files under the same paths.",
            show_default=False,
        ),
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Fetch datasets from the public C-HMCNN repository, or from a mirror of it.

    Files are verified by their checksum before they are stored. Files that are already present are verified and not
    downloaded again.

    \b
    Examples:
      rarenode data fetch cellcycle_FUN
      rarenode data fetch enron diatoms --root ~/hmc
      rarenode data fetch all --mirror https://mirror.example.org/hmc/ --quiet
    """
    from rarenode.data.fetch import fetch_entry  # noqa: PLC0415 (numpy takes a tenth of a second to load)

    failed = False
    for entry in find_entries(names):
        try:
            with download_progress(quiet) as progress:
                fetched = fetch_entry(entry, root, mirror, progress)
        except (DownloadError, MissingFileError) as error:  # the next datasets may still be available
            print_error(error)
            failed = True
            continue
        if not quiet:
            for file in fetched:
                print(f"{file.path}: {decimal(file.size)}, {file.status}, {file.verified}")
    if failed:
        raise typer.Exit(1)


def _presence(entry: CatalogueEntry, root: Path | None) -> str:
    from rarenode.data.fetch import missing_files  # noqa: PLC0415 (numpy takes a tenth of a second to load)

    missing, all_files = len(missing_files(entry, root)), len(entry.files)
    return {0: "yes", all_files: "no"}.get(missing, f"{all_files - missing} of {all_files}")


def _describe_file(file: CatalogueFile, root: Path | None) -> str:
    from rarenode.data.fetch import inspect_file  # noqa: PLC0415 (numpy takes a tenth of a second to load)

    size = "size unknown" if file.size is None else counted(file.size, "byte")
    origin = "" if file.published else "; not published anywhere"
    checksum = file.sha256 or "unknown"
    return f"{file.path}\n{counted(file.rows, 'row')}, {size}{origin}\nsha256 {checksum}\n{inspect_file(file, root)}"


@app.command()
def sample(
    name: Annotated[SampleName, typer.Argument(help="Which sample.", show_default=False)],
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write into.", show_default=False)],
    seed: Annotated[int, typer.Option(metavar="S", help="Determines everything random.", min=0)] = 0,
) -> None:
    """Write the files of a small made-up dataset, to try things out.

    survey: seafloor photographs with taxa, as CSV. genes: genes with functions, as CSV, OBO and GAF. topics: documents
    with topics. The tutorials use them. reef: drawn pictures of echinoderms, as PNG, with their taxa.

    \b
    Examples:
      rarenode data sample survey --out survey
      rarenode fit survey/train.csv --labels taxa --id image --hierarchy survey/taxonomy.csv --out runs/survey
    """
    from rarenode.data.samples import write_sample  # noqa: PLC0415

    inside = Counter[Path]()
    for path in write_sample(name, out, seed=seed):
        if path.parent == out:
            print(path)
        else:
            inside[path.parent] += 1
    for folder, files in inside.items():
        print(f"{folder}: {counted(files, 'picture')}")
