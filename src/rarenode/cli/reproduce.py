"""`rarenode reproduce`: train what a table or figure of the paper needs, as far as it is missing."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from rarenode.cli.data import Root

SpecName = Annotated[
    str,
    typer.Argument(metavar="SPEC", help="A name from `rarenode specs`, or a TOML file.", show_default=False),
]
DatasetNames = Annotated[
    list[str] | None,
    typer.Option("--datasets", metavar="NAMES", help="Only these: a,b,c. May be repeated.", show_default="all"),
]
MethodNames = Annotated[
    list[str] | None,
    typer.Option("--methods", metavar="NAMES", help="Only these: a,b,c. May be repeated.", show_default="all"),
]
Results = Annotated[Path, typer.Option("--results", metavar="DIR", help="The folder of the records.")]


def reproduce(
    spec: SpecName,
    datasets: DatasetNames = None,
    methods: MethodNames = None,
    seeds: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Trainings of each.", show_default="the spec's")
    ] = None,
    jobs: Annotated[int, typer.Option(metavar="N", min=1, help="Trainings side by side; they share the cores.")] = 1,
    results: Results = Path("results"),
    root: Root = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Train what SPEC needs and DIR does not hold yet.

    Every training leaves a JSON record in DIR as soon as it is done. Stopped by Ctrl-C or otherwise, the same command
    goes on where it was; what several specs need is trained once. `rarenode table SPEC` and `rarenode figure SPEC` show
    what came of it, at any time. A spec with decisions also leaves probabilities there, so that other decisions can be
    judged without training again.

    \b
    Examples:
      rarenode reproduce imbalance_fun --datasets cellcycle_FUN --seeds 1
      rarenode reproduce imbalance_fun --methods None,w0=0.25 --methods "w0=0.25, as described" --jobs 2
      rarenode reproduce my_method.toml --results my_results
    """
    # torch takes a second to load, and most commands need none
    from rarenode.paper.grid import tasks  # noqa: PLC0415
    from rarenode.paper.progress import choose_grid_watch  # noqa: PLC0415
    from rarenode.paper.runner import reproduce as train_missing  # noqa: PLC0415
    from rarenode.paper.spec import load_spec  # noqa: PLC0415

    wanted = tasks(load_spec(spec), names(datasets), names(methods), seeds)
    train_missing(wanted, results, jobs, root, choose_grid_watch(quiet))


def names(given: list[str] | None) -> list[str] | None:
    """The names in the values of an option. A comma before a blank is part of a name.

    >>> names(["None,LPROS", "w0=0.25, as described"])
    ['None', 'LPROS', 'w0=0.25, as described']
    """
    return None if given is None else [name for value in given for name in re.split(r",(?! )", value)]
