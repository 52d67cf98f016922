"""`rarenode predict`: probabilities and decisions for rows, as a table in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from rarenode._io.delimited import COMMA_SEPARATED, Dialect, dialect_of
from rarenode._io.files import is_dir, is_file
from rarenode._io.text import counted
from rarenode.cli.options import (
    Device,
    On,
    OtherThresholds,
    Quiet,
    Raw,
    Root,
    RunFolder,
    Split,
    one_or_all,
    with_table_options,
)
from rarenode.config.choices import Uncertainty
from rarenode.errors import ArgumentError

MANY = 2.0
"""Times as many nodes as training rows have are worth a word."""
Layout = Literal["long", "wide", "sets", "cafa"]


@with_table_options("images", "image", "skip_bad_images")
def predict(
    run: RunFolder,
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...",
            help="Tables of one kind, an ARFF file, a folder or zip archive of pictures, or a name from `rarenode data "
            "list`.",
            show_default=False,
        ),
    ],
    out: Annotated[
        str,
        typer.Option(
            metavar="FILE|FOLDER/",
            help="To write: .csv, .tsv, .parquet or .jsonl; or a folder, for one file for each of DATA.",
            show_default=False,
        ),
    ],
    layout: Annotated[
        Layout, typer.Option("--format", help="A line per row and node, a line per row, sets of labels, or CAFA's.")
    ] = "long",
    thresholds: OtherThresholds = None,
    decided_only: Annotated[bool, typer.Option("--decided-only", help="Write only decided nodes.")] = False,
    min_probability: Annotated[
        float, typer.Option(metavar="P", help="Write only nodes that are at least so probable.", min=0, max=1)
    ] = 0.0,
    min_confidence: Annotated[
        float,
        typer.Option(
            metavar="P",
            help="Decide no node that is less probable: labels end at the deepest node that is probable enough.",
            min=0,
            max=1,
        ),
    ] = 0.0,
    all_labels: Annotated[
        bool, typer.Option("--all-labels", help="In --format sets: the ancestors of labels as well.")
    ] = False,
    separator: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="In --format sets: between labels.", show_default="as in training, or ;"),
    ] = None,
    most_terms: Annotated[int, typer.Option(metavar="N", help="In --format cafa: terms per id.", min=1)] = 1500,
    uncertainty: Annotated[
        Uncertainty,
        typer.Option(help="What the column uncertainty contains; `rarenode settings` explains each under focus."),
    ] = "gmu",
    split: Split = None,
    device: Device = None,
    on: On = "local",
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="Files to predict side by side, into a folder; they share the processors.",
            show_default="1; on Ray as many as there are processors",
        ),
    ] = None,
    raw: Raw = False,
    root: Root = None,
    quiet: Quiet = False,
    *,
    table: dict[str, Any],
) -> None:
    """Predict rows, and write what is predicted in one of four formats.

    long: a line for each row and node, with the columns id (or row, counted from 0), node, title, probability, decided
    and uncertainty. wide: a line for each row, a column for each node. sets: a line for each row, with the deepest
    decided labels, their titles and probabilities, each in a cell. cafa: id, term and score, as the CAFA challenges
    have it. Labels in a cell are ordered by probability.

    long, wide and sets call the column of ids as DATA does. A CSV file has the delimiter, decimal sign and byte-order
    mark of DATA, so that the same spreadsheet opens both. cafa has scores of at least 0.001.

    Columns are found by their names; labels in DATA are ignored. A parent's probability is never below its child's. A
    node is decided (1, otherwise 0) where its probability reaches the model's threshold for it; where a node is
    decided, so are its ancestors. An artificial root is left out. --thresholds expected_f1 fits thresholds to DATA
    itself, which suits many rows at once. The epistemic uncertainties are 0 for a model with a single member.

    --thresholds guaranteed writes guaranteed sets: they find at least 90 % of a node's rows (--guaranteed-recall of
    `rarenode fit`), with a probability of 0.9. A row is in the set of each node whose own threshold it reaches, with or
    without the node's ancestors; --format sets writes all these nodes. A node with too few held-out rows is in no set.

    With --out FOLDER/ there is one output for each file of DATA, in its format if that is one of those above, or else
    in CSV. FOLDER/predictions.json says what is done: the same command, started again, leaves out files whose content,
    model and options are still the same. --jobs 4 predicts four files side by side, --on ray on Ray (pip install
    '.[cluster]'); the machines of a cluster must have RUN, DATA and FOLDER under the same paths.

    In CSV and TSV, a name or id that a spreadsheet would take for a formula, as it begins with =, +, - or @, gets an
    apostrophe in front, also after a delimiter within it. rarenode removes it when it reads such a file; --raw leaves
    names as they are. Other formats and cafa have no formulas.

    \b
    Examples:
      rarenode predict runs/survey new.csv --out labels.csv --format sets
      rarenode predict runs/survey new.csv --out sure.csv --format sets --min-confidence 0.8
      rarenode predict runs/photos new_photos/ --out found.csv --format sets
      rarenode predict runs/go genes.parquet --out submission.tsv --format cafa
      rarenode predict runs/mine new.arff --out predictions.csv
      rarenode predict runs/mine new.arff --out found.csv --decided-only --thresholds expected_f1
      rarenode predict runs/mine new.arff --out sets.csv --format sets --thresholds guaranteed
      rarenode predict runs/mine parts/*.parquet --out predictions/ --decided-only --jobs 2
      rarenode predict runs/mine parts/*.parquet --out predictions/ --decided-only --on 10.0.0.1:6379
      rarenode predict runs/ten cellcycle_FUN --out predictions.parquet --uncertainty epistemic_kl
    """
    # torch takes a second to load, and most commands do not need it
    from rarenode._io.progress import Progress  # noqa: PLC0415
    from rarenode.run import Run  # noqa: PLC0415
    from rarenode.run.predictions import Choice  # noqa: PLC0415
    from rarenode.thresholds import GUARANTEED  # noqa: PLC0415

    opened = Run(run, device=device)
    if separator is None:
        separator = opened.model.reading.separator if opened.model.reading is not None else ";"
    choice = Choice(layout, decided_only, min_probability, all_labels, separator, most_terms, _dialect(data[0]), raw)
    how: dict[str, Any] = {
        "choice": choice,
        "thresholds": thresholds,
        "min_confidence": min_confidence,
        "uncertainty": uncertainty,
        "options": table or None,
        "progress": Progress(quiet),
    }
    if out.endswith("/") or is_dir(out):
        _refuse(split=split, root=root)
        files, skipped, written = opened.predict_to_folder(data, out, on=on, jobs=jobs, **how)
        if not quiet:
            before = f", {skipped} done before" if skipped else ""
            print(f"{out}: {counted(files, 'file')} predicted{before}")
    else:
        _refuse(on=None if on == "local" else on, jobs=jobs)
        written = opened.predict_to_file(one_or_all(data), out, split=split, root=root, **how)
    if not quiet:
        nodes = counted(int(opened.model.scored.sum()), "node")
        print(f"{out}: {counted(written.rows, 'row')} x {nodes}, {counted(written.lines, 'line')}")
        if written.without_labels:
            print(f"{counted(written.without_labels, 'row')} without a label: no node is probable enough")
        model = opened.model
        if thresholds is None and model.given_up:
            print(model.given_up)
        if thresholds == GUARANTEED and model.guaranteed is not None:
            print(model.guaranteed.in_words(model.scored))
            return  # the sets are as large as the guarantee needs
        positives, rows = int(model.training_positives[model.scored].sum()), model.n_training_rows
        usual, here = positives / max(1, rows), written.decided / max(1, written.rows)
        if here > MANY * usual:
            labels = f"{here:.1f} nodes a row are decided, and training rows have about {usual:.1f}"
            advice = "rare nodes are found at the price of false ones. --min-confidence 0.2 decides fewer"
            typer.echo(f"{labels}: {advice}", err=True)


def _refuse(**given: Any) -> None:
    """Refuse options that would have no effect."""
    name = next((name for name, value in given.items() if value is not None), None)
    if name in ("on", "jobs"):
        raise ArgumentError(f"--{name} predicts several files at a time; with it, --out must be a folder and end in /")
    if name is not None:
        raise ArgumentError(f"--{name} is for datasets of the catalogue; with a folder as --out, name files")


def _dialect(data: str) -> Dialect:
    """That of the data, so that what opens the one opens the other."""
    return dialect_of(data) if is_file(Path(data)) else COMMA_SEPARATED
