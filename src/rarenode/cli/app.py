"""All commands, and what becomes of their errors."""

from __future__ import annotations

import os
import sys
import warnings
from io import TextIOWrapper
from typing import Annotated

import typer

from rarenode._io.interrupts import is_terminated
from rarenode.cli import INTERRUPTED, TERMINATED, data, demo, doctor, evaluate, fit, hierarchy, paper, predict, report
from rarenode.cli.console import print_error, print_warning
from rarenode.cli.options import CommandWithOldNames
from rarenode.errors import ArgumentError, Interrupted, RarenodeError
from rarenode.version import __version__

app = typer.Typer(
    name="rarenode",
    help="""Hierarchical multi-label learning that finds the rare, deep nodes.

\b
Examples:
  rarenode demo                                    see rare nodes appear, in a minute or two
  rarenode data fetch cellcycle_FUN                download a dataset of the paper
  rarenode fit cellcycle_FUN --out runs/first      train on it
  rarenode evaluate runs/first                     score it on the test rows
  rarenode report runs/first --out first.html      which nodes are found, missed, and why
  rarenode predict runs/first new.arff --out predictions.parquet
  rarenode fit photos.csv --images photos/ --labels taxa --encoder resnet50 --download --out runs/photos
  rarenode paper run imbalance_fun --seeds 1       measure a table of the paper
  rarenode paper table imbalance_fun               compare it with the published one

\b
Exit codes:
  0    done
  1    an error, printed as one line on standard error
  2    a command or option that does not exist or has an impossible value
  3    doctor has warnings, and no errors
  130  interrupted by Ctrl-C
  143  ended by SIGTERM, which otherwise does what Ctrl-C does
""",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.command("demo")(demo.demo)
app.command("fit", cls=CommandWithOldNames)(fit.fit)
app.command("evaluate", cls=CommandWithOldNames)(evaluate.evaluate)
app.command("predict", cls=CommandWithOldNames)(predict.predict)
app.command("doctor")(doctor.doctor)
app.command("report", cls=CommandWithOldNames)(report.report)
app.command("settings")(fit.show_settings)
app.add_typer(data.app, name="data")
app.add_typer(hierarchy.app, name="hierarchy")
app.add_typer(paper.app, name="paper")
for _name, _command in (
    ("specs", paper.list_specs),
    ("reproduce", paper.run),
    ("table", paper.table),
    ("figure", paper.figure),
):
    app.command(_name, hidden=True)(_command)  # as these commands were called before `rarenode paper`


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"rarenode {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None: ...


def run() -> None:
    """Run the command line; an error becomes one line and exit code 1 (130 after Ctrl-C).

    So do errors of the system, such as a full disk or too little memory, that no command has anticipated.
    """
    _replace_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # a name that the terminal cannot show must not end the program
    warnings.showwarning = print_warning
    try:
        try:
            _run_app()
        finally:
            _flush()
    except Interrupted as error:
        print_error(error)
        sys.exit(TERMINATED if is_terminated() else INTERRUPTED)
    except (RarenodeError, OSError) as error:
        print_error(error)
        sys.exit(1)
    except MemoryError as error:
        print_error(f"not enough memory: {error}")
        sys.exit(1)
    except SystemExit as ending:
        if ending.code == INTERRUPTED:  # Ctrl-C in a command, which typer ends without a word
            print_error("interrupted")
            sys.exit(TERMINATED if is_terminated() else INTERRUPTED)
        raise


def _replace_closed_streams() -> None:
    """Where a shell has closed standard output (``>&-``), printing is an error, as on a full disk."""
    if sys.stdout is None:
        # It takes the number of standard output, which else the next file would get, and with it what libraries print.
        sys.stdout = os.fdopen(os.open(os.devnull, os.O_RDONLY), "w")
    if sys.stderr is None:
        sys.stderr = os.fdopen(os.open(os.devnull, os.O_WRONLY), "w")


def _run_app() -> None:
    """Run a command; where torchrun started several processes, in the first of them, which all others help."""
    threads = os.environ.get("NUMBA_NUM_THREADS", "1")
    if not (threads.isdecimal() and int(threads)):  # numba would end in a traceback
        raise ArgumentError(f"the environment variable NUMBA_NUM_THREADS must be a number of threads, got {threads!r}")
    if os.environ.get("WORLD_SIZE", "1") == "1":
        app()
        return
    # Where a process has ended, torch would log at length how its C++ code noticed, before the message that says it.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    from rarenode.engines import several_processes  # noqa: PLC0415 (torch takes a second to load)

    with several_processes() as is_first:
        if is_first:
            app()


def _flush() -> None:
    """Flush standard output while an error can still be reported."""
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python will flush it once more
        if not isinstance(error, BrokenPipeError):  # such as `| head`, which has what it wants
            raise OSError(f"standard output cannot be written: {error.strerror}") from None
