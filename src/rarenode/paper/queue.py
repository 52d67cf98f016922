"""The queue: all missing trainings of all specs, the most valuable first.

``queue.toml`` lists what comes first. Within an entry, and among the trainings that no entry mentions, those for
published rows come before others, the first seed before the second, and then the most rows per hour first. A training
that several specs need is in the queue once.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from rarenode.paper.grid import Task, tasks
from rarenode.paper.runner import TrainingTimes, merge_tasks
from rarenode.paper.spec import Spec, load_spec, spec_names
from rarenode.paper.store import is_done

REST = "all other trainings"


class Entry(BaseModel):
    """Some trainings of a spec; see ``queue.toml``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str
    spec: str
    datasets: tuple[str, ...] | None = None
    methods: tuple[str, ...] | None = None
    seeds: Annotated[int, Field(ge=1)] | None = None

    def tasks(self) -> list[Task]:
        """Its trainings.

        Raises:
            ArgumentError: the spec has no such dataset or method.
        """
        return tasks(load_spec(self.spec), self.datasets, self.methods, self.seeds)


@dataclass(frozen=True)
class Queued:
    """A training in the queue."""

    entry: str
    """The title of its entry."""
    task: Task
    seconds: float
    """The estimate of its time."""
    rows: int
    """How many published rows it is for."""


@dataclass(frozen=True)
class EntrySummary:
    """How much of a queue belongs to an entry."""

    entry: str
    trainings: int
    seconds: float


def default_entries() -> tuple[Entry, ...]:
    """The entries of the package's ``queue.toml``."""
    text = (resources.files("rarenode.paper") / "queue.toml").read_text(encoding="utf-8")
    return tuple(Entry(**values) for values in tomllib.loads(text)["entries"])


def make_queue(folder: Path, entries: Sequence[Entry] | None = None) -> list[Queued]:
    """The trainings without a record in a folder of results, in the order in which to do them.

    Args:
        folder: of results; its records also show how long trainings take.
        entries: what comes first; None: those of the package. All other trainings of the package's specs follow.

    Raises:
        ArgumentError: an entry names something that its spec does not have.
        FileFormatError: a record is damaged.
    """
    listed = [(entry.title, entry.tasks()) for entry in (default_entries() if entries is None else entries)]
    listed.append((REST, [task for name in spec_names() if load_spec(name).queued for task in tasks(load_spec(name))]))
    missing = {
        task.cell.fingerprint: task
        for task in merge_tasks(task for _, its in listed for task in its)
        if not is_done(folder, task)
    }
    times, rows = TrainingTimes.from_records(folder), _published_rows()
    queue: list[Queued] = []
    for title, its in listed:
        wanted = [found for task in its if (found := missing.pop(task.cell.fingerprint, None)) is not None]
        queued = [
            Queued(title, task, times.seconds(task.cell), rows.get(task.cell.fingerprint, 0)) for task in wanted
        ]
        queue += sorted(queued, key=_order)
    return queue


def summarise(queue: Sequence[Queued]) -> Iterator[EntrySummary]:
    """The queue by its entries."""
    for title in dict.fromkeys(each.entry for each in queue):
        its = [each for each in queue if each.entry == title]
        yield EntrySummary(title, len(its), sum(each.seconds for each in its))


def duration(seconds: float) -> str:
    """Seconds in words, to the minute.

    >>> duration(30), duration(3700), duration(200_000)
    ('1 min', '1 h 02 min', '2 days 7 h')
    """
    minutes = max(1, round(seconds / 60))
    days, hours = timedelta(minutes=minutes).days, minutes // 60 % 24
    if days:
        return f"{days} {'day' if days == 1 else 'days'} {hours} h"
    return f"{hours} h {minutes % 60:02} min" if hours else f"{minutes} min"


def _order(each: Queued) -> tuple[bool, int, float]:
    return each.rows == 0, each.task.cell.settings.seed, each.seconds / max(1, each.rows)


@cache
def _published_rows() -> dict[str, int]:
    """Fingerprint of a cell -> the published rows that it is for; two specs may print the same row."""
    specs: dict[str, Spec] = {name: load_spec(name) for name in spec_names()}
    found: dict[str, set[tuple[str, str, str]]] = {}
    for name, spec in specs.items():
        for task in tasks(spec):
            if spec.published_for(task.cell.dataset, task.method):
                row = name, task.cell.dataset, task.method
                found.setdefault(task.cell.fingerprint, set()).add(row)
    return {fingerprint: len(rows) for fingerprint, rows in found.items()}
