"""Constraint + weighted loss + gradient, against the dense formula."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.dense import dense_loss, descendant_matrix
from bench.hierarchies import SIZES, draw
from bench.measuring import in_own_process, measure
from rarenode import Hierarchy, RareNodeLoss, node_weights

ROWS = 4
CASES = [("FUN", 1), ("FUN", 10), ("GO", 1), ("GO", 10), ("45k", 10)]
WITHOUT_DENSE = {"45k"}  # its matrix alone has 8 GB, times rows


def measure_one(name: str, members: int, implementation: str) -> dict[str, float]:
    """Seconds, peak bytes and loss of one step, in this process."""
    hierarchy = draw(name)
    rng = np.random.default_rng(0)
    sparse = rng.random((400, len(hierarchy))) < 2 / len(hierarchy)
    Y = hierarchy.close(sparse)
    weights = node_weights(Y, hierarchy)
    labels = torch.from_numpy(Y[:ROWS])
    logits = torch.from_numpy(rng.standard_normal((members, ROWS, len(hierarchy)), dtype=np.float32)).requires_grad_()

    if implementation == "dense":
        matrix = descendant_matrix(hierarchy)
        return measure(lambda: _step(logits, lambda: dense_loss(logits, labels, matrix, weights)))
    loss = RareNodeLoss(hierarchy, weights)
    _compile()
    return measure(lambda: _step(logits, lambda: loss(logits, labels)))


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


def run() -> list[dict[str, Any]]:
    """All cases; a record for each."""
    records: list[dict[str, Any]] = []
    for name, members in track(CASES, description="objective", console=Console(stderr=True)):
        ours = in_own_process("bench.objective", name, str(members), "rarenode")
        dense = None if name in WITHOUT_DENSE else in_own_process("bench.objective", name, str(members), "dense")
        if dense is not None and abs(ours["value"] - dense["value"]) > 1e-4 * abs(dense["value"]):
            sys.exit(f"{name}, {members} members: the loss is {ours['value']}, by the dense formula {dense['value']}")
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


if __name__ == "__main__":
    print(json.dumps(measure_one(sys.argv[2], int(sys.argv[3]), sys.argv[4])))
