"""`rarenode table`: the paper's numbers and ours, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rarenode.cli.reproduce import DatasetNames, MethodNames, Results, SpecName, names


def table(
    spec: SpecName,
    datasets: DatasetNames = None,
    methods: MethodNames = None,
    results: Results = Path("results"),
    in_json: Annotated[bool, typer.Option("--json", help="Print JSON, with nothing rounded.")] = False,
) -> None:
    """Print what was published for SPEC and what the records in DIR say, as Markdown.

    A spec with decisions gets a table for each dataset, of every method under every decision. What has no record yet
    is counted and left out, so the table can be had at any time while `rarenode reproduce SPEC` goes on.

    \b
    Examples:
      rarenode table imbalance_fun
      rarenode table imbalance_fun --datasets cellcycle_FUN,spo_FUN --methods None,w0=0.25
      rarenode table my_method.toml --results my_results --json
    """
    # torch takes a second to load, and most commands need none
    from rarenode.paper.comparison import compare, gather  # noqa: PLC0415
    from rarenode.paper.decision_comparison import compare_decisions, gather_decided  # noqa: PLC0415
    from rarenode.paper.decision_table import decisions_as_json, decisions_as_markdown  # noqa: PLC0415
    from rarenode.paper.spec import load_spec  # noqa: PLC0415
    from rarenode.paper.table import as_json, as_markdown  # noqa: PLC0415

    experiment = load_spec(spec)
    chosen = names(datasets)
    if experiment.decisions:
        decided = compare_decisions(experiment, gather_decided(experiment, results, chosen), chosen, names(methods))
        text = decisions_as_json(decided) if in_json else decisions_as_markdown(decided)
    else:
        comparison = compare(experiment, gather(experiment, results, chosen), chosen, names(methods))
        text = as_json(comparison) if in_json else as_markdown(comparison)
    print(text, end="\n" if in_json else "")
