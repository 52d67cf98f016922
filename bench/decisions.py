"""Thresholds for 4,000 nodes from 100,000 rows, against one sort of the same numbers, which most strategies need."""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.measuring import in_own_process, measure
from rarenode.thresholds import make_strategy

ROWS, NODES = 100_000, 4_000
STRATEGIES = ("global", "expected_f1", "prior", "midpoint", "tuned", "precision:0.2")
SORT = "sort"


def measure_one(name: str) -> dict[str, float]:
    """Seconds and peak bytes of one fit, in this process."""
    rng = np.random.default_rng(0)
    prior = 0.3 * rng.random(NODES) ** 4  # most nodes are rare
    probs = rng.random((ROWS, NODES), dtype=np.float32)
    probs *= probs * (2 * prior).astype(np.float32)
    labels = rng.random((ROWS, NODES), dtype=np.float32) < probs
    if name == SORT:
        return measure(lambda: lambda: float(np.sort(probs.T.copy(), axis=1)[0, 0]))
    strategy = make_strategy(name)
    return measure(lambda: lambda: float(strategy.fit(probs, labels, prior=prior).values[0]))


def run() -> list[dict[str, Any]]:
    """All strategies; a record for each."""
    records: list[dict[str, Any]] = []
    for name in track((SORT, *STRATEGIES), description="decisions", console=Console(stderr=True)):
        one = in_own_process("bench.decisions", name)
        sort = records[0]["seconds"] if records else one["seconds"]
        records.append(
            {
                "name": name,
                "rows": ROWS,
                "nodes": NODES,
                "seconds": one["seconds"],
                "times_the_sort": one["seconds"] / sort,
                "peak_bytes": one["peak_bytes"],
            }
        )
    return records


def show(records: list[dict[str, Any]]) -> None:
    """Print the records."""
    table = Table(title=f"Thresholds for {NODES:,} nodes from {ROWS:,} rows")
    table.add_column("strategy")
    for column in ("seconds", "times the sort", "peak MB"):
        table.add_column(column, justify="right")
    for record in records:
        table.add_row(
            record["name"],
            f"{record['seconds']:.1f}",
            f"{record['times_the_sort']:.2f}",
            f"{record['peak_bytes'] / 1e6:,.0f}",
        )
    Console(width=110).print(table)


if __name__ == "__main__":
    print(json.dumps(measure_one(sys.argv[2])))
