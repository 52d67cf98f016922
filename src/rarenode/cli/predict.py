"""`rarenode predict`: probabilities and decisions for rows, as a table in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rarenode._io.text import counted
from rarenode.cli.options import OtherThresholds, Quiet, Root, RunFolder, Split
from rarenode.config.choices import Uncertainty


def predict(
    run: RunFolder,
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help="An ARFF file, or a name from `rarenode data list`.", show_default=False),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="To write: .parquet or .csv.", show_default=False)],
    thresholds: OtherThresholds = None,
    decided_only: Annotated[bool, typer.Option("--decided-only", help="Write only decided nodes.")] = False,
    uncertainty: Annotated[
        Uncertainty,
        typer.Option(help="What the column uncertainty contains; `rarenode settings` explains each under focus."),
    ] = "gmu",
    split: Split = None,
    root: Root = None,
    quiet: Quiet = False,
) -> None:
    """Write a table with the columns row, node, probability, decided and uncertainty.

    Rows count from 0 in the order of DATA, whose labels are ignored. A parent's probability is never below its
    child's. A node is decided (1, otherwise 0) where its probability reaches the model's threshold for it; where a node
    is decided, so are its ancestors. An artificial root is left out. --thresholds expected_f1 fits thresholds to DATA
    itself, which suits many rows at once. The epistemic uncertainties are 0 for a model with a single member.

    Names of nodes are written as they are. A spreadsheet takes a name that begins with =, +, - or @ for a formula: if
    the hierarchy comes from others, import the CSV file with the column node as text.

    \b
    Examples:
      rarenode predict runs/mine new.arff --out predictions.csv
      rarenode predict runs/mine new.arff --out found.csv --decided-only --thresholds expected_f1
      rarenode predict runs/ten cellcycle_FUN --out predictions.parquet --uncertainty epistemic_kl
    """
    # torch takes a second to load, and most commands do not need it
    from rarenode.run import Run  # noqa: PLC0415
    from rarenode.run.predictions import check_suffix  # noqa: PLC0415

    check_suffix(out)
    found = Run(run).predict(data, split=split, thresholds=thresholds, uncertainty=uncertainty, root=root)
    lines = found.write(out, decided_only=decided_only)
    if not quiet:
        cells = f"{counted(len(found), 'row')} x {counted(len(found.nodes), 'node')}"
        print(f"{out}: {lines:,} decided of {cells}" if decided_only else f"{out}: {cells} = {counted(lines, 'line')}")
