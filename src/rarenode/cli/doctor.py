"""`rarenode doctor`: what to know about data before training, and about a run after it."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from rarenode._io.text import counted, printable
from rarenode.cli.console import print_progress, print_styled, print_table
from rarenode.cli.options import Root, with_table_options
from rarenode.errors import Interrupted, RarenodeError

if TYPE_CHECKING:
    from rarenode.diagnosis.annotation import Suggestions
    from rarenode.diagnosis.examination import Examination

COLOURS = {"error": "bold red", "warning": "yellow", "note": "cyan"}


@with_table_options()
def doctor(
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="DATA|RUN",
            help="Data to train on, or the folder of a `rarenode fit`, or of a model that Python saved (`save`).",
            show_default=False,
        ),
    ] = None,
    others: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[OTHER]...",
            help="Of DATA: validation or test rows, which must not be the same. Of RUN: rows, labelled or not; "
            "default: the rows of its own data that it was not trained on.",
            show_default=False,
        ),
    ] = None,
    hierarchy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The hierarchy of the labels.", show_default=False)
    ] = None,
    time: Annotated[
        bool, typer.Option(help="Take a few steps, or encode a few pictures, to estimate how long a fit takes.")
    ] = True,
    encoder: Annotated[
        str | None,
        typer.Option(
            metavar="ENCODER",
            help="That of the fit: how many pictures are in its cache, and how long the others take.",
            show_default=False,
            rich_help_panel="Images",
        ),
    ] = None,
    image_size: Annotated[
        int | None,
        typer.Option(metavar="N", help="That of the fit.", show_default=False, rich_help_panel="Images", min=1),
    ] = None,
    most: Annotated[int, typer.Option(metavar="N", help="Of RUN: rows and nodes to suggest.", min=1)] = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    environment: Annotated[
        bool,
        typer.Option(
            "--environment", help="Describe this machine and installation, for a report of a problem; no DATA or RUN."
        ),
    ] = False,
    root: Root = None,
    *,
    table: dict[str, Any],
) -> None:
    """Examine data before training, or a run after it.

    Of data: nodes without rows or with too few to learn or to judge, labels outside the hierarchy with the nearest
    spelling, contradictions, rows without labels; features that are constant, repeated, like an id, or almost the same
    as a label; rows that are in two files; what a split would leave uncovered; counts by depth; and how long and how
    large a fit will be. Options say which columns are what, as in `rarenode fit`.

    Of a run: for each node that is missed in labelled rows the likely reason; and which rows and nodes to annotate
    next, from rows without labels. Of data that are divided into parts, these are the test rows. Without OTHER, the
    labelled rows are those of RUN's own data that it was not trained on, as in `rarenode evaluate RUN`; if there are
    none, only nodes with few training rows are listed. The first line says which rows are used.

    "look in" names the rows without labels in which a node is most probable or, if no training row has it, its parents
    are, and that probability. Rows without ids are numbered from 0.

    The score of a row to annotate says how much its labels would tell about rare nodes: the sum over nodes of the
    entropy of their probability, in bits, divided by one more than the node's training rows. It is larger for rows that
    leave more open about rarer nodes, and has no meaning but to order rows.

    With --json, what is wrong with a file or an option is among the findings, as an error.

    \b
    Exit codes:
      0    nothing to worry about, or only notes
      1    errors, which prevent training, or data or a run that cannot be read
      2    an option that does not exist or has an impossible value
      3    warnings

    \b
    Examples:
      rarenode doctor survey.csv --labels taxa --id image
      rarenode doctor photos.csv --images photos/ --labels taxa --encoder resnet50
      rarenode doctor train.csv test.csv --labels 'level_*' --hierarchy taxonomy.csv
      rarenode doctor runs/survey test.csv
      rarenode doctor runs/survey unlabelled.csv --json
      rarenode doctor --environment
    """
    if environment:
        if data is not None:
            raise typer.BadParameter("it is about this machine, and takes no DATA or RUN", param_hint="--environment")
        _doctor_environment(as_json)
        return
    if data is None:
        raise typer.BadParameter("name data or a run, or choose --environment", param_hint="DATA|RUN")
    try:
        if (Path(data) / "model.json").is_file():
            _doctor_run(Path(data), others or [], table, most, as_json, root)
        else:
            _doctor_data(data, others or [], hierarchy, table, encoder, image_size, time, as_json, root)
    except RarenodeError as error:
        if not as_json:
            raise
        from rarenode.run.doctor import error_findings  # noqa: PLC0415

        findings = [asdict(each) for each in error_findings(error)]
        print(json.dumps({"name": data, "findings": findings}, indent=1))
        raise typer.Exit(1) from None


def _doctor_environment(as_json: bool) -> None:
    from rarenode.run.environment import describe_environment  # noqa: PLC0415 (torch takes a second to load)

    found = describe_environment()
    if as_json:
        print(json.dumps(found.to_dict(), indent=1))
        return
    quota = "" if found.quota is None else f"; the container allows {found.quota:g}"
    memory = "unknown" if found.memory_bytes is None else f"{found.memory_bytes / 2**30:.1f} GiB"
    lines = {
        "rarenode": found.rarenode,
        "Python": found.python,
        "system": found.system,
        "processors": f"{found.processors}, {counted(found.threads, 'thread')} for a training{quota}",
        "memory": memory,
        "device": ", ".join((f"auto chooses {found.device}", *found.accelerators)),
        "packages": ", ".join(f"{name} {version}" for name, version in found.packages.items()),
        "not installed": ", ".join(found.absent),
        "variables": ", ".join(f"{name}={value}" for name, value in found.variables.items()),
        **{each.purpose: " - ".join(filter(None, (each.path, each.state))) for each in found.folders},
    }
    shown = Table(box=None, show_header=False)
    for name, value in lines.items():
        if value:
            shown.add_row(Text(name, style="bold"), printable(value))
    print_table(shown)


def _doctor_data(
    data: str,
    others: list[str],
    hierarchy: Path | None,
    table: dict[str, Any],
    encoder: str | None,
    image_size: int | None,
    time: bool,
    as_json: bool,
    root: Path | None,
) -> None:
    # torch takes a second to load, and most commands do not need it
    from rarenode.config import Settings  # noqa: PLC0415
    from rarenode.models.pretrained import load_encoder  # noqa: PLC0415
    from rarenode.run.doctor import examine_data  # noqa: PLC0415
    from rarenode.training.estimate import estimate_fit  # noqa: PLC0415

    loaded = None if encoder is None else load_encoder(encoder, size=image_size)
    found, rows, valid = examine_data(
        data, others, hierarchy=hierarchy, options=table, root=root, encoder=loaded, time=time
    )
    if not as_json:
        _print_examination(found, is_read=rows is not None)
    estimate = None
    if rows is not None and found.worst != "error":
        if time and not as_json:
            sys.stdout.flush()
            print_progress("timing a few steps of a fit (--no-time leaves that out)")
        try:
            estimate = str(
                estimate_fit(rows, Settings(), try_it=time, encoder=loaded, has_validation_rows=valid is not None)
            )
        except Interrupted:  # a fit would say how to resume it
            raise Interrupted("stopped while a fit was timed") from None
    if as_json:
        print(json.dumps(found.to_dict() | {"fit": estimate}, indent=1))
    elif estimate is not None:
        print(f"\nA fit with the default settings: {estimate}")
    if found.worst in ("error", "warning"):
        raise typer.Exit(1 if found.worst == "error" else 3)


def _print_examination(found: Examination, is_read: bool) -> None:
    unknown = f", {found.unknown:.0%} of labels unknown" if found.unknown else ""
    if is_read:
        print(
            f"{printable(found.name)}: {found.rows_in_words}, "
            f"{counted(found.nodes, 'node')}, {found.nodes_with_rows:,} of them with rows{unknown}"
        )
    else:
        rows = f"{counted(found.rows, 'row')}, which" if found.rows else "it"
        print(f"{printable(found.name)}: {rows} cannot be used yet")
    if found.levels:
        levels = Table(box=SIMPLE_HEAD)
        for head in ("depth", "nodes", "with rows", "with fewer than 5", "median rows", "rows that end here"):
            levels.add_column(head, justify="right")
        for level in found.levels:
            cells = (level.depth, level.nodes, level.with_rows, level.few_rows, level.median_rows, level.rows_ending)
            levels.add_row(*(f"{cell:,g}" for cell in cells))
        print_table(levels)
    for each in found.findings:
        line = Text(f"{each.severity:>8}  ", style=COLOURS[each.severity])
        line.append(printable(f"{each.topic}: {each.text}"), style="default")
        if each.examples:
            line.append(printable(f" ({each.examples_in_words})"), style="dim")
        if each.advice:
            line.append(f"; {each.advice}", style="default")
        print_styled(line)
    if not found.findings:
        print("Nothing to worry about.")


def _doctor_run(run: Path, data: list[str], table: dict[str, Any], most: int, as_json: bool, root: Path | None) -> None:
    from rarenode.run import Run  # noqa: PLC0415
    from rarenode.run.doctor import examine_run  # noqa: PLC0415

    found = examine_run(Run(run), data, options=table, most=most, root=root)
    if as_json:
        print(json.dumps(found.to_dict() | {"findings": []}, indent=1))
    else:
        _print_suggestions(run, found)


def _print_suggestions(run: Path, found: Suggestions) -> None:
    from rarenode.diagnosis.annotation import FEW_ROWS  # noqa: PLC0415

    about = f"{run} on {printable(found.data)}" if found.data else f"{run}, by its training rows alone"
    missed = f" {counted(found.missed, 'node')} of {found.judged:,} with rows missed" if found.judged else ""
    print(f"{about}:{missed}")
    if found.nodes:
        nodes = Table(box=SIMPLE_HEAD, title="Nodes to annotate next", title_justify="left")
        heads = ["node", "training rows", "why", *(["look in"] if any(node.look_in for node in found.nodes) else [])]
        for head in heads:
            nodes.add_column(head, justify="right" if head == "training rows" else "left")
        for node in found.nodes:
            cells = (node.title, f"{node.training_rows:,}", node.why, ", ".join(map(str, node.look_in)))
            nodes.add_row(*map(printable, cells[: len(heads)]))
        print_table(nodes)
    elif not found.judged:
        print(f"No node has fewer than {FEW_ROWS} training rows.")
    if found.rows:
        rows = Table(box=SIMPLE_HEAD, title="Rows to annotate next", title_justify="left")
        for head in ("row", "score", "why"):
            rows.add_column(head, justify="right" if head == "score" else "left")
        for row in found.rows:
            rows.add_row(printable(row.name), f"{row.score:.2f}", printable(row.why))
        print_table(rows)
        print("score: how much the labels of a row would tell about nodes, the rarer the more; see --help")
