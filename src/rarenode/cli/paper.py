"""`rarenode paper`: the tables and figures of the paper, measured here."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from rarenode._io.text import counted
from rarenode.cli.console import print_progress, print_table
from rarenode.cli.options import On, Root

if TYPE_CHECKING:
    from rarenode._io.progress import Progress
    from rarenode.executors import Executor
    from rarenode.paper.queue import Queued
    from rarenode.paper.runner import Outcome

app = typer.Typer(
    help="Reproduce the paper: train what its tables and figures need, and compare with what was published.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

SpecName = Annotated[
    str,
    typer.Argument(metavar="SPEC", help="A name from `rarenode paper list`, or a TOML file.", show_default=False),
]
DatasetNames = Annotated[
    list[str] | None,
    typer.Option("--datasets", metavar="NAMES", help="Only these: a,b,c. May be repeated.", show_default="all"),
]
MethodNames = Annotated[
    list[str] | None,
    typer.Option("--methods", metavar="NAMES", help="Only these: a,b,c. May be repeated.", show_default="all"),
]
Results = Annotated[Path, typer.Option("--results", metavar="DIR", help="The folder of results.")]
Jobs = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="Trainings side by side; they share the processors.",
        show_default="1; on Ray as many as there are processors",
    ),
]
Hours = Annotated[
    float | None,
    typer.Option(metavar="N", min=0, help="Stop after N hours; checkpoints are saved.", show_default="no limit"),
]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")]


@app.command("list")
def list_specs(results: Results = Path("results")) -> None:
    """List the specs that ship with rarenode, and how many of their trainings are done in DIR.

    \b
    Examples:
      rarenode paper list
      rarenode paper list --results my_results
    """
    # torch takes a second to load, and most commands do not need it
    from rarenode.paper.grid import tasks  # noqa: PLC0415
    from rarenode.paper.spec import load_spec, spec_names  # noqa: PLC0415
    from rarenode.paper.store import is_done  # noqa: PLC0415

    table = _table("name", "title", numbers=("trainings", "done"))
    specs = {name: load_spec(name) for name in spec_names()}
    for name, spec in specs.items():
        done: dict[str, bool] = {}
        for task in tasks(spec):
            done[task.cell.fingerprint] = done.get(task.cell.fingerprint, True) and is_done(results, task)
        table.add_row(Text(name), Text(spec.title), str(len(done)), str(sum(done.values())))
    print_table(table)
    print("trainings: needed by the spec; specs share some. done: with a record of everything that the spec needs.")
    left_out = ", ".join(name for name, spec in specs.items() if not spec.queued)
    print(f"Not in `rarenode paper queue`, because the data are not public: {left_out}.")


@app.command("run")
def run(
    spec: SpecName,
    datasets: DatasetNames = None,
    methods: MethodNames = None,
    seeds: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Seeds for each method and dataset.", show_default="the spec's"),
    ] = None,
    on: On = "local",
    jobs: Jobs = None,
    hours: Hours = None,
    results: Results = Path("results"),
    root: Root = None,
    quiet: Quiet = False,
) -> None:
    """Train what SPEC needs and DIR does not contain yet.

    Every training writes a JSON record to DIR as soon as it is done, and checkpoints while it runs. After Ctrl-C or a
    crash the same command continues. Trainings that several specs need are done once, and one that another process is
    working on is skipped. `rarenode paper table SPEC` and `rarenode paper figure SPEC` show the results at any time. A
    spec with decisions also keeps probabilities, so that more decisions need no more training.

    SPEC may be a file of your own. [data.NAME] describes a dataset in tables, as `rarenode fit` takes them, and a
    method may name a class in a Python file: objective = "my_loss.py:MyLoss", resampler, or model. Such code is checked
    and executed here, so run only files that you trust. docs/guide/own-methods.md shows how.

    With --on ray, trainings run on Ray, as many side by side as there are processors and memory; pip install
    '.[cluster]' brings it. On a cluster, every machine needs the same rarenode, and the data under --root or its
    own RARENODE_DATA; tables of [data.NAME] must be at the same path. Records come back to DIR here. If DIR is on a
    disk that all machines share, checkpoints are kept there while trainings run; otherwise a training begins again if
    its machine is lost.

    \b
    Examples:
      rarenode paper run imbalance_fun --datasets cellcycle_FUN --seeds 1
      rarenode paper run imbalance_fun --methods None,w0=0.25 --methods "w0=0.25, as described" --jobs 2
      rarenode paper run my_method.toml --results my_results
      rarenode paper run imbalance_fun --on 10.0.0.1:6379
    """
    from rarenode.paper.grid import tasks  # noqa: PLC0415
    from rarenode.paper.runner import run_tasks  # noqa: PLC0415
    from rarenode.paper.spec import load_spec  # noqa: PLC0415

    wanted = tasks(load_spec(spec), names(datasets), names(methods), seeds)
    progress = _progress(quiet)
    executor = _executor(on, jobs)
    _print_outcome(run_tasks(wanted, results, executor, root=root, hours=hours, progress=progress), progress)


@app.command("queue")
def queue(
    hours: Hours = None,
    on: On = "local",
    jobs: Jobs = None,
    show: Annotated[bool, typer.Option("--list", help="Show the queue and exit.")] = False,
    results: Results = Path("results"),
    root: Root = None,
    quiet: Quiet = False,
) -> None:
    """Train everything that the specs need and DIR does not contain yet, the most valuable first.

    Rows of the paper's tables come before others, short trainings before long ones. Several queues may run at once:
    none trains what another is working on.

    \b
    Examples:
      rarenode paper queue --list
      nice -n 19 rarenode paper queue --hours 8 --jobs 2
      rarenode paper queue --hours 8 --on ray
    """
    from rarenode.paper.queue import make_queue  # noqa: PLC0415
    from rarenode.paper.runner import run_tasks  # noqa: PLC0415

    queued = make_queue(results)
    if show:
        _print_queue(queued)
        return
    progress = _progress(quiet)
    wanted = [each.task for each in queued]
    executor = _executor(on, jobs)
    _print_outcome(run_tasks(wanted, results, executor, root=root, hours=hours, progress=progress), progress)


@app.command("table")
def table(
    spec: SpecName,
    datasets: DatasetNames = None,
    methods: MethodNames = None,
    results: Results = Path("results"),
    in_json: Annotated[bool, typer.Option("--json", help="Print JSON, with nothing rounded.")] = False,
) -> None:
    """Print the published numbers of SPEC beside those of the records in DIR, as Markdown.

    A spec with decisions has the summary of its page in docs/results, and a table for each dataset, of every method
    under every decision. Rows without a record are counted and left out, so the table is available while `rarenode
    paper run SPEC` is under way. Without any record, the published numbers are printed alone.

    \b
    Examples:
      rarenode paper table imbalance_fun
      rarenode paper table imbalance_fun --datasets cellcycle_FUN,spo_FUN --methods None,w0=0.25
      rarenode paper table my_method.toml --results my_results --json
    """
    from rarenode.paper.spec import load_spec  # noqa: PLC0415
    from rarenode.paper.tables import write_table  # noqa: PLC0415

    text = write_table(load_spec(spec), results, names(datasets), names(methods), in_json=in_json)
    if not results.exists():
        print_progress(f"There is no folder {results}; --results names the one with your records.")
    print(text, end="\n" if in_json else "")


@app.command("figure")
def figure(
    spec: SpecName,
    datasets: DatasetNames = None,
    results: Results = Path("results"),
    out: Annotated[Path, typer.Option(metavar="DIR", help="The folder to write to.")] = Path("figures"),
) -> None:
    """Draw the figure of SPEC from the records in DIR, as SVG and PNG.

    A spec of a table has a chart for each dataset: F1 of every method, published and ours. Open marks are published
    values.

    \b
    Examples:
      rarenode paper figure ensemble_size
      rarenode paper figure imbalance_fun --datasets cellcycle_FUN,spo_FUN
      rarenode paper figure my_method.toml --results my_results --out drawings
    """
    # matplotlib and torch take seconds to load, and most commands need neither
    from rarenode.paper.figures import figure_of  # noqa: PLC0415
    from rarenode.paper.figures.drawing import draw  # noqa: PLC0415
    from rarenode.paper.spec import load_spec  # noqa: PLC0415

    numbers = figure_of(load_spec(spec), results, names(datasets))
    for path in draw(numbers, out, Path(spec).stem):
        print(path)
    if numbers.missing:
        print(f"Missing: {numbers.missing} of {counted(numbers.trainings, 'training')}; `rarenode paper run` adds them")


def names(given: list[str] | None) -> list[str] | None:
    """The names in the values of an option. A comma before a blank is part of a name.

    >>> names(["None,LPROS", "w0=0.25, as described"])
    ['None', 'LPROS', 'w0=0.25, as described']
    """
    return None if given is None else [name for value in given for name in re.split(r",(?! )", value)]


def _progress(quiet: bool) -> Progress:
    """A bar in a terminal; elsewhere a line for each training, and none in between."""
    from rarenode._io.progress import Progress  # noqa: PLC0415

    return Progress(quiet, seconds_between=float("inf"))


def _executor(on: str, jobs: int | None) -> Executor:
    """Even a single training runs in another process, which can be ended when the time is over."""
    from rarenode.executors import Processes, make_executor  # noqa: PLC0415

    return Processes(jobs or 1) if on == "local" else make_executor(on, jobs)


def _print_outcome(outcome: Outcome, progress: Progress) -> None:
    if outcome.skipped:
        progress.line(f"Skipped {counted(len(outcome.skipped), 'training')}: another process is working on them")
    if left := len(outcome.stopped) + len(outcome.waiting):
        progress.line(f"Time is up with {counted(left, 'training')} left; the same command continues")


def _print_queue(queued: list[Queued]) -> None:
    from rarenode.paper.queue import duration, summarise  # noqa: PLC0415

    trainings = _table("dataset", "method", numbers=("place", "seed", "published rows", "about", "done after"))
    after = 0.0
    for place, each in enumerate(queued, start=1):
        after += each.seconds
        cell = each.task.cell
        numbers = str(place), str(cell.settings.seed), str(each.rows), duration(each.seconds), duration(after)
        trainings.add_row(Text(cell.dataset), Text(each.task.method), *numbers)
    print_table(trainings)
    entries = _table("entry", numbers=("trainings", "about", "done after"))
    after = 0.0
    for summary in summarise(queued):
        after += summary.seconds
        entries.add_row(Text(summary.entry), str(summary.trainings), duration(summary.seconds), duration(after))
    print_table(entries)
    print(f"{counted(len(queued), 'training')}, about {duration(after)} one after the other.")


def _table(*texts: str, numbers: tuple[str, ...]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    for name in texts:
        table.add_column(name, no_wrap=name == "name")
    for name in numbers:
        table.add_column(name, justify="right")
    return table
