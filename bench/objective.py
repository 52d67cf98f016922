"""Time and peak memory of constraint + loss + gradient, against the dense formula, in one run.

    make bench

prints a table and writes build/bench.json. Every figure comes from a process of its own, one after the other; peak
memory is what that process needs beyond its inputs. Ratios carry over to other machines, seconds do not.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import json
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.dense import dense_loss, descendant_matrix
from bench.hierarchies import SIZES, draw
from rarenode import Hierarchy, RareNodeLoss, node_weights

ROWS = 4
CASES = [("FUN", 1), ("FUN", 10), ("GO", 1), ("GO", 10), ("45k", 10)]
WITHOUT_DENSE = {"45k"}  # its matrix alone has 8 GB, times rows
LEAST_SECONDS = 2.0
LEAST_REPEATS = 3
RESULTS = Path("build/bench.json")


def measure(name: str, members: int, implementation: str) -> dict[str, float]:
    """Seconds of one step (median) and peak bytes, in this process."""
    hierarchy = draw(name)
    rng = np.random.default_rng(0)
    sparse = rng.random((400, len(hierarchy))) < 2 / len(hierarchy)
    Y = hierarchy.close(sparse)
    weights = node_weights(Y, hierarchy)
    labels = torch.from_numpy(Y[:ROWS])
    logits = torch.from_numpy(rng.standard_normal((members, ROWS, len(hierarchy)), dtype=np.float32)).requires_grad_()

    if implementation == "dense":
        matrix = descendant_matrix(hierarchy)
        step = _step(logits, lambda: dense_loss(logits, labels, matrix, weights))
    else:
        loss = RareNodeLoss(hierarchy, weights)
        step = _step(logits, lambda: loss(logits, labels))
        _compile()
    _give_back_free_memory()
    before = _peak_bytes(reset=True)
    value = step()
    peak = _peak_bytes() - before

    seconds: list[float] = []
    while len(seconds) < LEAST_REPEATS or sum(seconds) < LEAST_SECONDS:
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
        if implementation == "dense" and sum(seconds) > 5 * LEAST_SECONDS:
            break
    return {"seconds": float(np.median(seconds)), "peak_bytes": peak, "loss": value}


def _step(logits: torch.Tensor, compute: Callable[[], torch.Tensor]) -> Callable[[], float]:
    def step() -> float:
        logits.grad = None
        value = compute()
        value.backward()  # type: ignore[no-untyped-call]
        return value.item()

    return step


def _compile() -> None:
    """Have the loop over edges compiled before anything is measured."""
    small = Hierarchy.from_edges([("a", "b")])
    RareNodeLoss(small)(torch.zeros(1, 1, 2), torch.zeros(1, 2, dtype=torch.bool))


def _give_back_free_memory() -> None:
    """Memory that is free but kept would hide what a step needs."""
    with contextlib.suppress(OSError, AttributeError):  # glibc only
        ctypes.CDLL(None).malloc_trim(0)


def _peak_bytes(reset: bool = False) -> int:
    """Most memory this process has held, since the last reset where the system can do that (Linux)."""
    status = Path("/proc/self/status")
    if status.exists():
        if reset:
            Path("/proc/self/clear_refs").write_text("5")
        match = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        if match:
            return int(match[1]) * 1024
    scale = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale


def _in_own_process(name: str, members: int, implementation: str) -> dict[str, float]:
    command = [sys.executable, "-m", "bench.objective", "--one", name, str(members), implementation]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def run() -> list[dict[str, Any]]:
    """All cases; a record for each."""
    records: list[dict[str, Any]] = []
    for name, members in track(CASES, description="measuring", console=Console(stderr=True)):
        ours = _in_own_process(name, members, "rarenode")
        dense = None if name in WITHOUT_DENSE else _in_own_process(name, members, "dense")
        if dense is not None and abs(ours["loss"] - dense["loss"]) > 1e-4 * abs(dense["loss"]):
            sys.exit(f"{name}, {members} members: the loss is {ours['loss']}, by the dense formula {dense['loss']}")
        nodes, edges, _ = SIZES[name]
        records.append(
            {
                "name": f"{name}, {members} member{'s' if members > 1 else ''}",
                "nodes": nodes,
                "edges": edges,
                "members": members,
                "rows": ROWS,
                "seconds": ours["seconds"],
                "dense_seconds": dense and dense["seconds"],
                "ratio": dense and dense["seconds"] / ours["seconds"],
                "peak_bytes": ours["peak_bytes"],
                "dense_peak_bytes": dense and dense["peak_bytes"],
            }
        )
    return records


def show(records: list[dict[str, Any]]) -> None:
    """Print the records."""
    title = f"Constraint + weighted loss + gradient, batch of {ROWS} rows, {torch.get_num_threads()} threads"
    table = Table(title=title)
    table.add_column("hierarchy, members", no_wrap=True)
    for column in ("nodes", "edges", "ms", "dense ms", "times faster", "peak MB", "dense peak MB"):
        table.add_column(column, justify="right")
    for record in records:
        dense = [record["dense_seconds"], record["ratio"], record["dense_peak_bytes"]]
        cells = ["-", "-", "-"]
        if record["dense_seconds"] is not None:
            cells = [f"{1e3 * dense[0]:.1f}", f"{dense[1]:.0f}", f"{dense[2] / 1e6:.0f}"]
        table.add_row(
            record["name"],
            f"{record['nodes']:,}",
            f"{record['edges']:,}",
            f"{1e3 * record['seconds']:.3f}",
            cells[0],
            cells[1],
            f"{record['peak_bytes'] / 1e6:.1f}",
            cells[2],
        )
    Console(width=110).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", nargs=3, metavar=("NAME", "MEMBERS", "IMPLEMENTATION"), help=argparse.SUPPRESS)
    one = parser.parse_args().one
    if one:
        print(json.dumps(measure(one[0], int(one[1]), one[2])))
        return
    records = run()
    show(records)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(records, indent=2) + "\n", encoding="utf-8")
    print(f"also in {RESULTS}")


if __name__ == "__main__":
    main()
