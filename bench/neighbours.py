"""Nearest neighbours that keep some of many training rows, against all of them: processor time, and how well they rank.

One thread; AP over other rows, over all cells and as the mean over nodes.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import numba
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.measuring import in_own_process
from rarenode import make_hierarchical
from rarenode.data.preparation import Preparation
from rarenode.metrics.average_precision import average_precision, macro_average_precision
from rarenode.models import fit_neighbours, neighbour_fitting

FEATURES, NODES, PREDICTED, RARE = 100, 500, 4000, 50
CASES = [(20_000, 20_000), (40_000, 40_000), (40_000, 20_000), (40_000, 10_000), (100_000, 20_000)]
"""Training rows, and how many of them are kept at most."""


def measure_one(rows: int, kept: int) -> dict[str, float]:
    """Processor seconds of a fit and of predicting 1,000 rows, and average precisions."""
    numba.set_num_threads(1)
    data = make_hierarchical(2 * rows, nodes=NODES, features=FEATURES)
    preparation = Preparation.fit(data.train.X)
    X, Y = preparation.apply(data.train.X), data.train.Y
    new, truth = preparation.apply(data.test.X[:PREDICTED]), data.test.Y[:PREDICTED]
    fit_neighbours(X[:100], Y[:100]).predict_proba(new[:1])  # compiles
    neighbour_fitting.MOST_KEPT = kept
    began = time.process_time()
    model = fit_neighbours(X, Y)
    fitted = time.process_time()
    probs = model.predict_proba(new)
    predicted = time.process_time()
    rare = (Y.sum(axis=0) < RARE) & Y.any(axis=0) & truth.any(axis=0)
    return {
        "fit_seconds": fitted - began,
        "seconds_per_1000_rows": (predicted - fitted) * 1000 / PREDICTED,
        "ap": average_precision(truth, probs),
        "macro_ap": macro_average_precision(truth, probs),
        "rare_nodes": int(rare.sum()),
        "rare_macro_ap": macro_average_precision(truth[:, rare], probs[:, rare]),
    }


def run() -> list[dict[str, Any]]:
    """All cases; a record for each."""
    return [
        {"name": "neighbours", "rows": rows, "kept": kept, **in_own_process("bench.neighbours", str(rows), str(kept))}
        for rows, kept in track(CASES, description="neighbours", console=Console(stderr=True))
    ]


def show(records: list[dict[str, Any]]) -> None:
    """Print the records."""
    table = Table(title=f"Neighbours over {FEATURES} features and {NODES} nodes, one thread")
    for column in (
        "training rows", "kept", "fit, s", "1,000 rows, s", "AP", "macro AP", f"of nodes with < {RARE} rows"
    ):  # fmt: skip
        table.add_column(column, justify="right")
    for record in records:
        table.add_row(
            f"{record['rows']:,}",
            f"{record['kept']:,}",
            f"{record['fit_seconds']:.0f}",
            f"{record['seconds_per_1000_rows']:.2f}",
            f"{record['ap']:.4f}",
            f"{record['macro_ap']:.4f}",
            f"{record['rare_macro_ap']:.4f} ({record['rare_nodes']})",
        )
    Console(width=110).print(table)


if __name__ == "__main__":
    print(json.dumps(measure_one(int(sys.argv[2]), int(sys.argv[3]))))
