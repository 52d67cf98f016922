"""`rarenode predict`: what a model says and decides about rows, as a table on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from rarenode.cli.data import Root
from rarenode.cli.evaluate import DecisionHere, Run, SplitOption

Uncertainty = Literal["bbma", "gmu", "epistemic_kl", "epistemic_js", "predictive", "aleatoric"]


def predict(
    run: Run,
    data: Annotated[
        str,
        typer.Argument(metavar="DATA", help="An ARFF file, or a name from `rarenode data list`.", show_default=False),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="To write: .parquet or .csv.", show_default=False)],
    decision: DecisionHere = None,
    decided_only: Annotated[bool, typer.Option("--decided-only", help="Write only lines that are decided.")] = False,
    uncertainty: Annotated[Uncertainty, typer.Option(help="What the column uncertainty holds.")] = "gmu",
    split: SplitOption = None,
    root: Root = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Write a table with the columns row, node, probability, decided and uncertainty.

    Rows count from 0 in the order of DATA, whose labels are not looked at. A parent's probability is never below its
    child's. A node is decided (1, otherwise 0) by the threshold that the model has for it; where a node is decided, so
    are its ancestors. With `--decision expected_f1` thresholds are found on DATA itself, which suits many rows at once.

    \b
    Examples:
      rarenode predict runs/mine new.arff --out predictions.csv
      rarenode predict runs/mine new.arff --out found.csv --decided-only --decision expected_f1
      rarenode predict runs/ten cellcycle_FUN --out predictions.parquet --uncertainty epistemic_kl
    """
    # torch takes a second to load, and most commands need none
    from rarenode.cli.predicting import asking, decide, load_model_and_rows  # noqa: PLC0415
    from rarenode.cli.predictions import check_suffix, write_predictions  # noqa: PLC0415

    check_suffix(out)
    model, _, rows = load_model_and_rows(run, data, split, root)
    asked = asking(model, rows)
    nodes, probs = model.hierarchy.nodes, asked.predict_proba(rows.X)
    decided, _ = decide(model, probs, decision)
    lines = write_predictions(out, nodes, probs, decided, asked.uncertainty(rows.X, uncertainty), decided_only)
    if not quiet:
        cells = f"{len(rows.Y)} rows x {len(nodes)} nodes"
        print(f"{out}: {f'{lines} lines, decided of {cells}' if decided_only else f'{cells} = {lines} lines'}")
