"""`rarenode report`: one page that shows which nodes are found, which are missed, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rarenode.cli.console import print_progress
from rarenode.cli.data import Root
from rarenode.cli.evaluate import DecisionHere, SplitOption


def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Folders of `rarenode fit`, or records of `rarenode reproduce`; the first is what others are compared "
            "with.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="To write: FILE.html.")] = Path("report.html"),
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="The labelled rows to look at: a name from `rarenode data list`, or an ARFF file.",
            show_default="the dataset that RUN was trained on",
        ),
    ] = None,
    split: SplitOption = None,
    decision: DecisionHere = None,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="What a run is called; once for each RUN.", show_default="its path"),
    ] = None,
    root: Root = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Write a page about one run, or about what changed between several, and its numbers and plots beside it.

    The page is one file that needs no network: the figures of all nodes; the hierarchy as a map to zoom and search;
    every node with its scores, its threshold and, if it is missed, the likely reason; curves; the rows that the model
    is least sure of; the model card. FILE.html has a folder FILE_files beside it, with the numbers in CSV
    and JSON and each plot in SVG.

    Rows should be such as the model has not seen; the page says so if it was trained on them. Records of `reproduce`
    that differ by the seed alone are one run, with deviations over seeds; they hold no probabilities, and so have
    neither curves nor most of the reasons.

    \b
    Examples:
      rarenode report runs/best --out best.html
      rarenode report runs/mine --data test.arff
      rarenode report runs/plain runs/weighted --name plain --name weighted --out compared.html
      rarenode report results/cellcycle_FUN/seed=?-*.json --out paper.html
    """
    # torch takes a second to load, and most commands need none
    from rarenode.cli.reporting import collect_runs  # noqa: PLC0415
    from rarenode.report import Report, folder_of, require_page_name, write_report  # noqa: PLC0415

    require_page_name(out)
    tell = (lambda _: None) if quiet else print_progress
    found = collect_runs(runs, name, data, split, decision, root, tell)
    page, *beside = write_report(Report(found), out)
    if not quiet:
        print(f"{page}, and {len(beside)} files in {folder_of(page)}")
