"""`rarenode specs`: the experiments of the paper that can be repeated."""

from __future__ import annotations

from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from rarenode.cli.console import print_table
from rarenode.cli.reproduce import Results


def specs(results: Results = Path("results")) -> None:
    """List the specs that ship with rarenode, and how many of their trainings have a record in DIR.

    \b
    Examples:
      rarenode specs
      rarenode specs --results my_results
    """
    # torch takes a second to load, and most commands need none
    from rarenode.paper.grid import tasks  # noqa: PLC0415
    from rarenode.paper.record import record_path  # noqa: PLC0415
    from rarenode.paper.spec import load_spec, spec_names  # noqa: PLC0415

    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("name", no_wrap=True)
    table.add_column("title")
    for number in ("trainings", "done"):
        table.add_column(number, justify="right")
    for name in spec_names():
        spec = load_spec(name)
        cells = {task.cell.fingerprint: task.cell for task in tasks(spec)}
        done = sum(record_path(results, cell).is_file() for cell in cells.values())
        table.add_row(Text(name), Text(spec.title), str(len(cells)), str(done))
    print_table(table)
    print("trainings: those that a spec needs; specs share some. done: with a record in the folder of the results.")
