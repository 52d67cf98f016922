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

    What has no record yet is counted and left out, so the table can be had at any time while `rarenode reproduce SPEC`
    goes on.

    \b
    Examples:
      rarenode table imbalance_fun
      rarenode table imbalance_fun --datasets cellcycle_FUN,spo_FUN --methods None,w0=0.25
      rarenode table my_method.toml --results my_results --json
    """
    # torch takes a second to load, and most commands need none
    from rarenode.experiments.comparison import compare, gather  # noqa: PLC0415
    from rarenode.experiments.spec import load_spec  # noqa: PLC0415
    from rarenode.experiments.table import as_json, as_markdown  # noqa: PLC0415

    experiment = load_spec(spec)
    chosen = names(datasets)
    comparison = compare(experiment, gather(experiment, results, chosen), chosen, names(methods))
    print(as_json(comparison) if in_json else as_markdown(comparison), end="\n" if in_json else "")
