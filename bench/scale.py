"""How time and memory of a training grow with rows, nodes and edges.

    make bench-scale

prints a table, writes build/scale.json and draws docs/images/scale.svg, in most of an hour. Every point is a separate
process with one thread: the preset with 2 epochs, 20 trees and a tenth of the rows held out, thresholds and guaranteed
sets included. Memory is what the process needs at its peak beyond its inputs.
"""

from __future__ import annotations

import json
import math
import sys
import time
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numba
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.measuring import in_own_process, measure_once
from rarenode import Hierarchy, Settings
from rarenode.data.dataset import Dataset
from rarenode.hierarchy.labels import sparse_labels
from rarenode.training import fit_model

FEATURES, DEEPEST_LABELS = 100, 3
MODELS = ("best", "network")
AXES: dict[str, list[tuple[int, int, int]]] = {
    "rows": [(rows, 500, 1) for rows in (1_000, 3_000, 10_000, 30_000, 100_000, 300_000)],
    "nodes": [(3_000, nodes, 1) for nodes in (100, 300, 1_000, 3_000, 10_000, 30_000)],
    "edges": [(3_000, 3_000, parents) for parents in (1, 2, 4, 8, 16)],
}
"""What grows along each axis: rows, nodes, and parents of each node."""
RESULTS, PICTURE = Path("build/scale.json"), Path("docs/images/scale.svg")


def problem(rows: int, nodes: int, parents: int) -> Dataset:
    """Rows with three deepest labels each, of which few are frequent, and features that tell something about them."""
    rng = np.random.default_rng(0)
    pairs = {(int(rng.integers(max(0, node // 8), max(1, node // 2))), node) for node in range(1, nodes)}
    while len(pairs) < parents * (nodes - 1) - parents**2:
        child = int(rng.integers(1, nodes))
        pairs.add((int(rng.integers(0, child)), child))
    names = [f"n{node:05}" for node in range(nodes)]
    tree = Hierarchy.from_edges([(names[parent], names[child]) for parent, child in pairs], names)
    chances = 1 / np.arange(1, nodes + 1)
    columns = rng.choice(nodes, (rows, DEEPEST_LABELS), p=chances / chances.sum())
    labels = sparse_labels(np.repeat(np.arange(rows), DEEPEST_LABELS), columns.ravel(), (rows, nodes))
    X = (labels @ rng.normal(size=(nodes, FEATURES)) + 2 * rng.normal(size=(rows, FEATURES))).astype(np.float32)
    return Dataset(X, tree.close(labels), tree, np.ones(nodes, dtype=np.bool_))


def measure_one(model: str, rows: int, nodes: int, parents: int) -> dict[str, float]:
    """Processor seconds and peak bytes of a fit."""
    numba.set_num_threads(1)
    data = problem(rows, nodes, parents)
    settings = Settings(epochs=2, patience=None, n_trees=20, holdout=0.1, cv=None, n_jobs=1)
    if model == "network":
        settings = settings.model_copy(update={"model": "mlp"})
    fit_model(data.take(np.arange(200)), settings)  # compiles
    seconds, peak = measure_once(lambda: fit_model(data, settings), time.process_time)
    return {"edges": len(data.hierarchy.edge_parents), "seconds": seconds, "peak_bytes": peak}


def run() -> list[dict[str, Any]]:
    """All points; a record for each."""
    points = [(axis, model, point) for axis, some in AXES.items() for model in MODELS for point in some]
    return [
        {"axis": axis, "model": model, "rows": point[0], "nodes": point[1]}
        | in_own_process("bench.scale", model, *map(str, point))
        for axis, model, point in track(points, description="scale", console=Console(stderr=True))
    ]


def slope(records: list[dict[str, Any]], axis: str, what: str) -> float:
    """How steeply the last two points rise, on logarithmic scales: 1 is in proportion."""
    a, b = records[-2:]
    return math.log(b[what] / a[what]) / math.log(b[axis] / a[axis])


def show(records: list[dict[str, Any]]) -> None:
    """Print and draw the records."""
    table = Table(title=f"One training, {FEATURES} features, one thread")
    for column in ("", "rows", "nodes", "edges", "seconds", "peak memory"):
        table.add_column(column, justify="right")
    for record in records:
        table.add_row(
            record["model"],
            *(f"{record[name]:,}" for name in ("rows", "nodes", "edges")),
            f"{record['seconds']:.1f}",
            f"{record['peak_bytes'] / 1e6:,.0f} MB",
        )
    Console(width=110).print(table)
    figure = Figure(figsize=(10, 5.6), layout="constrained")
    panels = figure.subplots(2, len(AXES), sharey="row")
    for place, axis in enumerate(AXES):
        for row, (what, label) in enumerate((("seconds", "processor seconds"), ("peak_bytes", "peak memory, bytes"))):
            ax = panels[row, place]
            for model, style in zip(MODELS, ("o-", "s--"), strict=True):
                some = [record for record in records if (record["axis"], record["model"]) == (axis, model)]
                steep = slope(some, axis, what)
                xs, ys = [record[axis] for record in some], [record[what] for record in some]
                ax.plot(xs, ys, style, label=f"{model}, last slope {steep:.2f}")
                print(f"{what} by {axis}, {model}: slope of the last step {steep:.2f}")
            ax.set(xscale="log", yscale="log", xlabel=axis, ylabel=label if place == 0 else "")
            ax.xaxis.set_minor_formatter(NullFormatter())  # an axis of one decade would have labels on labels
            ax.grid(alpha=0.3)
            ax.legend(fontsize="small")
    with mpl.rc_context({"svg.hashsalt": "scale", "svg.fonttype": "none"}):
        figure.savefig(PICTURE, metadata={"Date": None})
    print(f"drawn in {PICTURE}")


def main() -> None:
    records = run()
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    show(records)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure_one(sys.argv[2], *map(int, sys.argv[3:]))))
    else:
        main()
