"""`rarenode evaluate`: how well a model finds each group of nodes."""

from __future__ import annotations

import json
import sys
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

DecisionHere = Annotated[
    str | None,
    typer.Option(
        "--decision",
        metavar="HOW",
        help="Decide otherwise than the model: fixed:0.3, expected_f1, expected_f2. Others need labels, which must "
        "not be those of the rows that are looked at.",
        show_default="the model's",
    ),
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
    decision: DecisionHere = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with fractions instead of percent.")] = False,
    root: Root = None,
) -> None:
    """Compare what a model decides with the labels of rows.

    The model has a threshold for each node, found when it was trained; `rarenode fit --decision` says how. Here it can
    be decided at one fixed threshold instead, or for the best expected F, which is fitted to the probabilities of the
    very rows that are looked at, without their labels.

    F1, precision and recall are means over nodes, 0 where they are undefined; Bin. AP and AP are over all cells. A node
    is found if it is decided in at least one row that carries it. The small bars say how many of the nodes that a row
    carries have which recall: the first those with none, then one bar for each tenth. `rarenode report` shows it all.
    Rows that the model was trained on are decided better than others will be; where that is known, it is said.

    \b
    Examples:
      rarenode evaluate runs/best
      rarenode evaluate runs/best --decision fixed:0.5
      rarenode evaluate runs/best --split valid --json
      rarenode evaluate runs/mine test.arff
    """
    # torch takes a second to load, and most commands need none
    from rarenode.cli.predicting import TAUGHT, asking, decide, load_model_and_rows, were_trained_on  # noqa: PLC0415
    from rarenode.cli.tables import figures_table  # noqa: PLC0415
    from rarenode.metrics.figures import figures_by_nodes  # noqa: PLC0415

    model, data, rows = load_model_and_rows(run, data, split, root)
    probs = asking(model, rows).predict_proba(rows.X)
    decided, how = decide(model, probs, decision)
    figures = figures_by_nodes(rows.Y, probs, decided, model.hierarchy, model.training_positives, model.scored)
    trained_on = were_trained_on(model, data, split, rows)
    if as_json:
        by_rarity, by_depth = (
            {group: asdict(summary) for group, summary in part.items()}
            for part in (figures.by_rarity, figures.by_depth)
        )
        groups = {"by_training_rows": by_rarity, "by_depth": by_depth}
        what = {"rows": len(rows.Y), "data": data, "decision": how, "trained_on": trained_on}
        print(json.dumps(asdict(figures.all) | what | groups, indent=2))
    else:
        print(f"{run} on {data}, {len(rows.Y)} rows, nodes decided by {how}; percent")
        if trained_on:
            print(TAUGHT)
        print_table(figures_table(figures, sys.stdout.encoding or "ascii"))
