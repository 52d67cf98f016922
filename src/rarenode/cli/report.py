"""`rarenode report`: one page that shows which nodes are found, which are missed, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from rarenode._io.text import counted
from rarenode.cli.console import print_progress
from rarenode.cli.options import OtherThresholds, Quiet, Root, Split, with_table_options


@with_table_options(
    "labels", "id", "unknown", "evidence", "exclude_evidence", "aspects", "images", "image", "skip_bad_images"
)
def report(
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...",
            help="Folders of `rarenode fit`, or records of `rarenode paper run`; the first is the baseline.",
            show_default=False,
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="To write: FILE.html.")] = Path("report.html"),
    data: Annotated[
        str | None,
        typer.Option(
            metavar="DATA",
            help="Labelled rows to report on: a table, an ARFF file, a folder or zip archive of pictures in folders "
            "that name their labels, or a name from `rarenode data list`.",
            show_default="the rows of RUN's own data that it was not trained on",
        ),
    ] = None,
    split: Split = None,
    thresholds: OtherThresholds = None,
    name: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="What a run is called; once for each RUN.", show_default="its path"),
    ] = None,
    root: Root = None,
    quiet: Quiet = False,
    *,
    table: dict[str, Any],
) -> None:
    """Write a page about one run, or a comparison of several, with its numbers and plots in a folder beside it.

    The page is one file that works offline: scores; the hierarchy as a map to zoom and search; every node with its
    scores, its threshold and, if it is missed, the likely reason; curves; the rows that the model is least certain
    about; the model card. The numbers in CSV and JSON, and each plot as SVG, are in FILE_files.

    The rows should not have been used for training; the page says so if they were. Records of `rarenode paper run` that
    differ only in the seed are one run, with standard deviations; they contain no probabilities, so there are neither
    curves nor most of the reasons.

    \b
    Examples:
      rarenode report runs/best --out best.html
      rarenode report runs/survey --data test.csv
      rarenode report runs/plain runs/weighted --name plain --name weighted --out compared.html
      rarenode report results/cellcycle_FUN/seed=?-*.json --out paper.html
    """
    # torch takes a second to load, and most commands do not need it
    from rarenode.paper.report import report_on_runs  # noqa: PLC0415
    from rarenode.report import folder_of, write_report  # noqa: PLC0415

    say = (lambda _: None) if quiet else print_progress
    found = report_on_runs(
        runs,
        out,
        names=name,
        data=data,
        split=split,
        thresholds=thresholds,
        options=table,
        root=root,
        progress=say,
    )
    page, *beside = write_report(found, out)
    if not quiet:
        print(f"{page}, and {counted(len(beside), 'file')} in {folder_of(page)}")
