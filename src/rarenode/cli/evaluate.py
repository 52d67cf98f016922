"""`rarenode evaluate`: how well a model finds each group of nodes."""

from __future__ import annotations

import json
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rarenode._io.text import counted
from rarenode.cli.console import print_table
from rarenode.cli.options import Device, OtherThresholds, Root, RunFolder, Split, one_or_all, with_table_options

if TYPE_CHECKING:
    from rarenode.run.evaluation import Evaluation

NO_S_MIN = "S-min is left out: an older rarenode trained this model and did not count what it needs"


@with_table_options(
    "labels", "id", "unknown", "evidence", "exclude_evidence", "aspects", "images", "image", "skip_bad_images"
)
def evaluate(
    run: RunFolder,
    data: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[DATA]...",
            help="Tables of one kind, an ARFF file, a folder or zip archive of pictures in folders that name their "
            "labels, or a name from `rarenode data list`; default: the rows of RUN's own data that it was not trained "
            "on.",
            show_default=False,
        ),
    ] = None,
    split: Split = None,
    thresholds: OtherThresholds = None,
    device: Device = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, with fractions instead of percent.")] = False,
    root: Root = None,
    *,
    table: dict[str, Any],
) -> None:
    """Compare a model's predictions with the labels of rows.

    F1, precision and recall are means over all scored nodes, 0 where they are undefined; Bin. AP and AP are
    micro-averages. If some nodes have no rows here, the line `with rows` is about the others. A node is found if at
    least one of its rows is predicted correctly. The small bars are a histogram of the recall of nodes: first the nodes
    with a recall of 0, then one bar for each 10 %.

    The second table has a line for each aspect (namespace) of an ontology, or one for all nodes: hierarchical
    precision, recall and F1 of the decisions (hP, hR, hF), and of the probabilities F-max and S-min of the CAFA
    challenges, each with its threshold. F-max and S-min are over the rows that have a label in the aspect, as in CAFA;
    the column rows counts them. Coverage is the share of rows with a prediction at that of F-max. S-min is in
    bits; less is better.

    Without DATA, the model is evaluated on rows of RUN's own data that it was not trained on: the test rows, or else
    the validation rows, or else the held-out rows, with the predictions of the models that did not see them. The first
    line says which.

    The scores of single nodes are on the page that `rarenode report` writes, and in nodes.csv in the folder beside it.

    Rows of which no label is known are left out (rows_without_labels in JSON); a row that is known to have no label
    counts in the first table. Scores on rows that the model was trained on are too high, and those on validation rows,
    which early stopping and thresholds use, a little; a note says so where this is known. --thresholds
    expected_f1 fits thresholds to the probabilities of these rows, without their labels. --thresholds guaranteed is
    about guaranteed sets, see `rarenode predict --help`; hP, hR and hF add the ancestors that they lack.

    The labels of a table are where they were in training. If they were in a file of their own, name that of these rows
    with --labels.

    \b
    Examples:
      rarenode evaluate runs/survey test.csv
      rarenode evaluate runs/go test.parquet --labels human.gaf.gz
      rarenode evaluate runs/photos
      rarenode evaluate runs/photos test.csv --images photos/
      rarenode evaluate runs/folders test_photos/
      rarenode evaluate runs/best
      rarenode evaluate runs/best --thresholds fixed:0.5
      rarenode evaluate runs/best --thresholds guaranteed
      rarenode evaluate runs/best --split valid --json
      rarenode evaluate runs/mine test.arff
    """
    # torch takes a second to load, and most commands do not need it
    from rarenode.cli.tables import aspects_table, scores_table  # noqa: PLC0415
    from rarenode.run import Run  # noqa: PLC0415
    from rarenode.run.evaluation import TRAINED_ON  # noqa: PLC0415
    from rarenode.thresholds import GUARANTEED  # noqa: PLC0415

    with warnings.catch_warnings():
        if not as_json:  # the note is printed above the table
            warnings.filterwarnings("ignore", message=f".*{TRAINED_ON}", category=RuntimeWarning)
        opened = Run(run, device=device)
        result = opened.evaluate(one_or_all(data), split=split, thresholds=thresholds, options=table, root=root)
    scores = result.scores
    if as_json:
        by_rarity, by_depth = (
            {group: asdict(summary) for group, summary in part.items()} for part in (scores.by_rarity, scores.by_depth)
        )
        about = {
            "rows": result.rows,
            "rows_without_labels": result.left_out,
            "nodes_with_rows": result.nodes_with_rows,
            "data": result.data,
            "thresholds": result.thresholds,
            "over_nodes_with_rows": asdict(result.over_nodes_with_rows),
            "macro_ap": result.macro_ap,
            "trained_on": result.trained_on,
            "note": result.note,
            "by_training_rows": by_rarity,
            "by_depth": by_depth,
            "hierarchical": {aspect: asdict(part) for aspect, part in result.hierarchical.items()},
            "cafa": {aspect: asdict(part) for aspect, part in result.cafa.items()},
        }
        print(json.dumps(asdict(scores.all) | about, indent=2))
    else:
        print(f"{run} on {Path(result.data)}, {counted(result.rows, 'row')}, thresholds: {result.thresholds}; percent")
        if thresholds == GUARANTEED and (sets := opened.model.guaranteed) is not None:
            print(f"{sets.in_words(opened.model.scored)}; the table counts these as never predicted")
        if thresholds is None and opened.model.given_up:
            print(opened.model.given_up)
        print(_what_counts(result))
        if result.note:
            print(result.note)
        print_table(scores_table(scores, sys.stdout.encoding or "ascii", result.over_nodes_with_rows))
        print(f"AP is over all rows and nodes together; the mean over nodes (macro AP) is {100 * result.macro_ap:.2f}")
        print_table(aspects_table(result.hierarchical, result.cafa))
        if any(part.rows < result.rows for part in result.cafa.values()):
            print(f"rows: with a label in the aspect, of {result.rows:,}; F-max and S-min are over these alone")
        if any(part.s_min is None for part in result.cafa.values()):
            print(NO_S_MIN)


def _what_counts(result: Evaluation) -> str:
    nodes, some = result.scores.all.nodes, result.nodes_with_rows
    text = f"{some:,} of {counted(nodes, 'scored node')} {'has' if some == 1 else 'have'} rows here"
    if some < nodes:
        text += "; the others count as 0 in F1, precision and recall of all nodes"
    if result.left_out:
        text += f"; {counted(result.left_out, 'row')} without labels {'is' if result.left_out == 1 else 'are'} left out"
    return text
