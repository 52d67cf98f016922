"""Two trainings one after the other, each with all processors, against both at once with ``--jobs 2``.

    python -m bench.side_by_side

Networks of the paper's size on hierarchies drawn to the real sizes. Starting the processes counts. Each way is timed
two times, in turns; a ratio above 1 means that side by side is faster.
"""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.training import FEATURES, Problem
from rarenode import Settings
from rarenode.data.dataset import Dataset
from rarenode.executors import Executor, Task, make_executor
from rarenode.training import train_model

CASES = {"FUN, 1 member": ("FUN", 1, 500), "FUN, 10 members + GMU": ("FUN", 10, 50), "GO, 1 member": ("GO", 1, 200)}
"""Size, members, and epochs of 400 rows, for some ten seconds or more each: starting the processes takes four."""
ROUNDS = 2


def train(data: Dataset, settings: Settings) -> float:
    """The last loss; a model would have to travel back."""
    return train_model(data, settings).history[-1].loss


def seconds(executor: Executor, data: Dataset, settings: list[Settings]) -> float:
    """What two trainings take, by the clock."""
    tasks = [Task(f"seed {one.seed}", train, (one,), shared=data) for one in settings]
    began = time.perf_counter()
    executor.expect(len(tasks))
    with executor:
        for result in executor.run(tasks):
            result.get()
    return time.perf_counter() - began


def run() -> list[dict[str, Any]]:
    """All cases; a record for each."""
    records = []
    for name, (size, members, epochs) in track(CASES.items(), description="jobs", console=Console(stderr=True)):
        problem = Problem(size)
        data = Dataset(problem.X, problem.Y, problem.hierarchy, np.ones(len(problem.hierarchy), dtype=np.bool_))
        assert data.n_features == FEATURES[size]
        changes: dict[str, Any] = {"epochs": epochs, "n_members": members, "focus": "gmu" if members > 1 else "none"}
        settings = [Settings.preset("paper", seed=seed, **changes) for seed in (0, 1)]
        train(data, settings[0].changed(epochs=1))  # compiles
        after, together = [], []
        for _ in range(ROUNDS):
            after.append(seconds(make_executor(), data, settings))
            together.append(seconds(make_executor(jobs=2), data, settings))
        ratios = sorted(one / two for one, two in zip(after, together, strict=True))
        records.append(
            {
                "name": f"two trainings side by side, {name}",
                "seconds": float(np.median(together)),
                "one_after_the_other": float(np.median(after)),
                "ratios": ratios,
            }
        )
    return records


def show(records: list[dict[str, Any]]) -> None:
    """Print the records."""
    table = Table(title="Two trainings")
    table.add_column("", no_wrap=True)
    for column in ("one after the other", "side by side", "times faster, lowest to highest"):
        table.add_column(column, justify="right")
    for record in records:
        table.add_row(
            record["name"].removeprefix("two trainings side by side, "),
            f"{record['one_after_the_other']:.1f} s",
            f"{record['seconds']:.1f} s",
            f"{record['ratios'][0]:.2f} to {record['ratios'][-1]:.2f}",
        )
    Console(width=110).print(table)


if __name__ == "__main__":
    show(import_module("bench.side_by_side").run())  # tasks must be in a module that workers can import
