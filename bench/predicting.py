"""Prediction of many rows, from a file into a file: time, and whether memory depends on the number of rows.

    python -m bench.predicting [ROWS ...]

fits models to 3,000 synthetic rows with 4,000 nodes, and runs ``rarenode predict --decided-only`` on Parquet files of
so many rows (10,000, 100,000 and 1,000,000 unless said otherwise), each in a process of its own. It prints a table and
writes build/predicting.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array

from bench.scale import problem

TRAINING_ROWS, NODES, ROWS = 3_000, 4_000, (10_000, 100_000, 1_000_000)
MODELS = {"network": ("--model", "mlp"), "best": ()}
SHORT = ("--epochs", "3", "--n-trees", "20", "--holdout", "0.2", "--quiet")
RESULTS = Path("build/predicting.json")


def main() -> None:
    if sys.argv[1:2] == ["--write"]:
        write_tables(Path(sys.argv[2]), [int(each) for each in sys.argv[3:]])
        return
    counts = [int(each) for each in sys.argv[1:]] or list(ROWS)
    records: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        # In a process of its own: the peak of a process counts what its parent holds when it starts.
        writing = [sys.executable, "-m", "bench.predicting", "--write", name, *map(str, counts)]
        subprocess.run(writing, check=True)
        for model, options in MODELS.items():
            run, labelled = folder / model, ("--labels", "labels", "--hierarchy", folder / "edges.csv")
            rarenode("fit", folder / "train.parquet", *labelled, "--out", run, *options, *SHORT)
            for rows in counts:
                out = folder / "predictions.csv"
                used = rarenode("predict", run, folder / f"{rows}.parquet", "--out", out, "--decided-only", "--quiet")
                records.append({"model": model, "rows": rows, "output_bytes": out.stat().st_size} | used)
                print(records[-1], flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    show(records)


def write_tables(folder: Path, counts: list[int]) -> None:
    """Training rows, the hierarchy, and rows to predict."""
    data = problem(TRAINING_ROWS, NODES, 1)
    tree, Y, rng = data.hierarchy, csr_array(data.Y), np.random.default_rng(1)
    labels = [";".join(tree.nodes[node] for node in Y.indices[a:b]) for a, b in pairwise(Y.indptr)]
    table(data.X).with_columns(labels=pl.Series(labels)).write_parquet(folder / "train.parquet")
    edges = zip(tree.edge_parents.tolist(), tree.edge_children.tolist(), strict=True)
    names = [(tree.nodes[parent], tree.nodes[child]) for parent, child in edges]
    pl.DataFrame(names, schema=["parent", "child"], orient="row").write_csv(folder / "edges.csv")
    for rows in counts:
        table(rng.choice(data.X, rows)).write_parquet(folder / f"{rows}.parquet")


def table(X: NDArray[np.float32]) -> pl.DataFrame:
    """Rows as a data frame."""
    return pl.DataFrame({f"x{place}": column for place, column in enumerate(X.T)})


def rarenode(*arguments: str | Path) -> dict[str, float]:
    """Run the command; seconds, processor seconds, and the most memory it had."""
    began = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "rarenode", *map(str, arguments)])
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"rarenode {arguments[0]} ended with {process.returncode}")
    return {
        "seconds": time.perf_counter() - began,
        "processor_seconds": usage.ru_utime + usage.ru_stime,
        "peak_bytes": usage.ru_maxrss * 1024,
    }


def show(records: list[dict[str, Any]]) -> None:
    """Print the records."""
    shown = Table(title=f"rarenode predict --decided-only, {NODES:,} nodes")
    for column in ("", "rows", "seconds", "processor seconds", "peak memory", "output"):
        shown.add_column(column, justify="right")
    for record in records:
        shown.add_row(
            record["model"],
            f"{record['rows']:,}",
            f"{record['seconds']:.0f}",
            f"{record['processor_seconds']:.0f}",
            f"{record['peak_bytes'] / 1e6:,.0f} MB",
            f"{record['output_bytes'] / 1e6:,.0f} MB",
        )
    Console(width=110).print(shown)


if __name__ == "__main__":
    main()
