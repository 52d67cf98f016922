"""`rarenode figure`: draw what a spec's trainings came to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from rarenode.cli.reproduce import DatasetNames, Results, SpecName, names


def figure(
    spec: SpecName,
    datasets: DatasetNames = None,
    results: Results = Path("results"),
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write to.")] = Path("figures"),
) -> None:
    """Draw SPEC's figure from the records that are there, as SVG and as PNG.

    A spec of a table gets a chart for each dataset: F1 of every method, published and ours. Open marks are what the
    paper has.

    \b
    Examples:
      rarenode figure ensemble_size
      rarenode figure imbalance_fun --datasets cellcycle_FUN,spo_FUN
      rarenode figure my_method.toml --results my_results --out drawings
    """
    # matplotlib and torch take seconds to load, and most commands need neither
    from rarenode.paper.figures.charts import figure_of  # noqa: PLC0415
    from rarenode.paper.figures.drawing import draw  # noqa: PLC0415
    from rarenode.paper.spec import load_spec  # noqa: PLC0415

    numbers = figure_of(load_spec(spec), results, names(datasets))
    for path in draw(numbers, out, Path(spec).stem):
        print(path)
    if numbers.missing:
        print(f"{numbers.missing} of {numbers.trainings} trainings are missing; `rarenode reproduce` makes them")
