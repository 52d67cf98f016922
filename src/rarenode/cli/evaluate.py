"""`rarenode evaluate`: how well a model finds each group of nodes."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from rarenode.cli.console import print_table
from rarenode.cli.data import Root
from rarenode.data.catalogue import SplitName

Run = Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a `rarenode fit`.", show_default=False)]
SplitOption = Annotated[
    SplitName | None, typer.Option("--split", help="Which rows of a dataset of the catalogue.", show_default="test")
]


def evaluate(
    run: Run,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA",
            help="A name from `rarenode data list`, or an ARFF file; otherwise the dataset that RUN was trained on.",
            show_default=False,
        ),
    ] = None,
    split: SplitOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with fractions instead of percent.")] = False,
    root: Root = None,
) -> None:
    """Compare a model's predictions with the labels of rows, at the threshold 0.5.

    F1, precision and recall are means over nodes, 0 where they are undefined; Bin. AP and AP are over all cells. A node
    is found if it is predicted in at least one row that carries it.

    \b
    Examples:
      rarenode evaluate runs/ten
      rarenode evaluate runs/ten --split valid --json
      rarenode evaluate runs/mine test.arff
    """
    # torch takes a second to load, and most commands need none
    from rarenode.cli.predicting import load_model_and_rows  # noqa: PLC0415
    from rarenode.cli.tables import figures_by_nodes, figures_table  # noqa: PLC0415

    model, data, rows = load_model_and_rows(run, data, split, root)
    figures = figures_by_nodes(
        rows.Y, model.predict_proba(rows.X), model.hierarchy, model.training_positives, model.scored
    )
    if as_json:
        by_rarity, by_depth = (
            {group: asdict(summary) for group, summary in part.items()}
            for part in (figures.by_rarity, figures.by_depth)
        )
        groups = {"by_training_rows": by_rarity, "by_depth": by_depth}
        print(json.dumps(asdict(figures.all) | {"rows": len(rows.Y), "data": data} | groups, indent=2))
    else:
        print(f"{run} on {data}, {len(rows.Y)} rows; percent")
        print_table(figures_table(figures))
