"""Whole training steps of both engines against a plain PyTorch training with the dense formula; and prediction.

The network is the paper's: three layers, 500 hidden units, dropout 0.7, Adam, batch of 4. Ten members also compute
GMU. A step must read each parameter in the forward pass, and read and write it with two moments in the backward pass:
28 bytes. What the fused engine moves by that count is compared with what ``a += b`` moves on this machine with all
threads. One step is also measured while other programs use all processors.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch.nn import Dropout, Linear, ReLU, Sequential

from bench.dense import dense_constraint, descendant_matrix
from bench.hierarchies import draw
from bench.measuring import busy_machine, in_own_process, measure
from rarenode import Hierarchy, NodeWeights, constrain, node_weights
from rarenode.engines import Adam, Objective, available_threads
from rarenode.engines.fused_engine import FusedEngine
from rarenode.engines.torch_engine import TorchEngine
from rarenode.models import MlpEnsemble, initial_parameters

ROWS = 4
FEATURES = {"FUN": 77, "GO": 63}
CASES = [("FUN", 1), ("FUN", 10), ("GO", 1), ("GO", 10)]
BYTES_PER_PARAMETER = 28
PREDICTED_ROWS = 64


class Problem:
    """Rows, labels and weights of one size."""

    def __init__(self, name: str) -> None:
        rng = np.random.default_rng(0)
        self.hierarchy: Hierarchy = draw(name)
        nodes = len(self.hierarchy)
        self.Y: NDArray[np.bool_] = self.hierarchy.close(rng.random((400, nodes)) < 2 / nodes)
        self.X = rng.standard_normal((400, FEATURES[name]), dtype=np.float32)
        self.weights: NodeWeights = node_weights(self.Y, self.hierarchy)
        self.at = 0

    def batch(self) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """The next rows."""
        rows = slice(self.at, self.at + ROWS)
        self.at = (self.at + ROWS) % len(self.X)
        return self.X[rows], self.Y[rows]


def measure_training(name: str, members: int, implementation: str) -> dict[str, float]:
    """Seconds and peak bytes of a step, in this process."""
    problem = Problem(name)
    shape = MlpEnsemble(FEATURES[name], len(problem.hierarchy), members=members)
    if implementation == "dense":

        def prepare_dense() -> Callable[[], float]:
            dense = DenseTraining(problem, shape)
            return lambda: dense.step(*problem.batch())

        return measure(prepare_dense)
    objective = Objective(
        problem.hierarchy,
        problem.weights,
        focus="gmu" if members > 1 else None,
        reduction="sum" if members > 1 else "mean",
    )
    make = FusedEngine if implementation == "fused" else TorchEngine
    small = MlpEnsemble(shape.features, shape.nodes, hidden=8, members=members)
    make(small, initial_parameters(small, 0), objective, Adam(), 0).step(*problem.batch())  # compiles

    def prepare() -> Callable[[], float]:
        engine = make(shape, initial_parameters(shape, 0), objective, Adam(), 0)
        return lambda: float(engine.step(*problem.batch()))

    return measure(prepare, warm_up=3)


class DenseTraining:
    """The same step as it is usually written: a module for each member, the dense constraint, autograd, Adam."""

    def __init__(self, problem: Problem, shape: MlpEnsemble) -> None:
        self.networks = [
            Sequential(
                *(Linear(shape.features, shape.hidden), ReLU(), Dropout(shape.dropout)),
                *(Linear(shape.hidden, shape.hidden), ReLU(), Dropout(shape.dropout)),
                Linear(shape.hidden, shape.nodes),
            )
            for _ in range(shape.members)
        ]
        self.optimiser = torch.optim.Adam(
            [p for n in self.networks for p in n.parameters()], lr=1e-4, weight_decay=1e-5
        )
        self.matrix = descendant_matrix(problem.hierarchy)
        self.positive = torch.tensor(problem.weights.positive).float()
        self.negative = torch.tensor(problem.weights.negative).float()

    def step(self, X: NDArray[np.float32], Y: NDArray[np.bool_]) -> float:
        """One step: the members' losses are added up, then differentiated."""
        labels = torch.from_numpy(Y)
        y = labels.float()
        weight = torch.where(labels, self.positive, self.negative)
        self.optimiser.zero_grad()
        members = [network(torch.from_numpy(X)).sigmoid() for network in self.networks]
        if len(members) > 1:
            p = torch.stack(members).detach()
            margin = (2 * p.mean(0) - 1).abs()
            snr = margin / (2 * p.std(0) + 1e-10)
            weight = weight * (0.25 + 1 - margin * (1 - torch.exp(-snr)))
        total = torch.zeros(())
        for probs in members:
            constrained = (1 - y) * dense_constraint(probs, self.matrix) + y * dense_constraint(y * probs, self.matrix)
            cross_entropy = torch.nn.functional.binary_cross_entropy(constrained, y, reduction="none")
            loss = weight * cross_entropy
            total = total + (loss.mean() if len(members) == 1 else loss.sum())
        total.backward()  # type: ignore[no-untyped-call]
        self.optimiser.step()
        return total.item()


def measure_prediction(implementation: str) -> dict[str, float]:
    """Constrained probabilities of some rows, GO, one model."""
    problem = Problem("GO")
    shape = MlpEnsemble(FEATURES["GO"], len(problem.hierarchy))
    engine = FusedEngine(shape, initial_parameters(shape, 0), Objective(problem.hierarchy), Adam(), 0)
    X = problem.X[:PREDICTED_ROWS]
    if implementation == "dense":
        matrix = descendant_matrix(problem.hierarchy)

        def predict_dense() -> float:
            probs = torch.from_numpy(engine.logits(X)).sigmoid()[0]
            parts = [dense_constraint(probs[i : i + ROWS], matrix) for i in range(0, len(probs), ROWS)]
            return float(torch.cat(parts).mean())

        return measure(lambda: predict_dense)

    def predict() -> float:
        return float(constrain(torch.from_numpy(engine.logits(X)).sigmoid(), problem.hierarchy).mean())

    predict()
    return measure(lambda: predict)


@numba.njit(parallel=True)
def _add(a: NDArray[np.float32], b: NDArray[np.float32]) -> None:
    for i in numba.prange(a.shape[0]):
        a[i] += b[i]


def copy_bandwidth() -> float:
    """Bytes a second that ``a += b`` moves (two reads and a write) on arrays that fit no cache."""
    a, b = np.zeros(100_000_000, dtype=np.float32), np.ones(100_000_000, dtype=np.float32)
    _add(a, b)
    seconds = []
    for _ in range(7):
        start = time.perf_counter()
        _add(a, b)
        seconds.append(time.perf_counter() - start)
    return float(3 * a.nbytes / np.median(seconds))


def run() -> list[dict[str, Any]]:
    """All cases; a record for each."""
    bandwidth = in_own_process("bench.training", "bandwidth")["bytes_per_second"]
    records: list[dict[str, Any]] = []
    for name, members in track(CASES, description="training", console=Console(stderr=True)):
        dense, plain, fused = (
            in_own_process("bench.training", "step", name, str(members), implementation)
            for implementation in ("dense", "torch", "fused")
        )
        shape = MlpEnsemble(FEATURES[name], len(draw(name)), members=members)
        parameters = sum(int(np.prod(size)) for size in shape.parameter_shapes.values())
        records += [
            {
                "name": f"training step, {engine}, {name}, {members} member{'s' if members > 1 else ''}",
                "seconds": result["seconds"],
                "dense_seconds": dense["seconds"],
                "ratio": dense["seconds"] / result["seconds"],
                "peak_bytes": result["peak_bytes"],
                "dense_peak_bytes": dense["peak_bytes"],
                "share_of_copy_bandwidth": BYTES_PER_PARAMETER * parameters / result["seconds"] / bandwidth,
            }
            for engine, result in (("fused", fused), ("torch", plain))
        ]
    with busy_machine():  # the mean, as a step that waits for a processor counts
        fused, dense = (in_own_process("bench.training", "step", "FUN", "1", what) for what in ("fused", "dense"))
    records.append(
        {
            "name": "training step, fused, FUN, 1 member, busy machine",
            "seconds": fused["mean_seconds"],
            "dense_seconds": dense["mean_seconds"],
            "ratio": dense["mean_seconds"] / fused["mean_seconds"],
            "peak_bytes": fused["peak_bytes"],
            "dense_peak_bytes": dense["peak_bytes"],
            "share_of_copy_bandwidth": None,
        }
    )
    ours, dense = (in_own_process("bench.training", "prediction", which) for which in ("rarenode", "dense"))
    records.append(
        {
            "name": f"prediction, GO, {PREDICTED_ROWS} rows",
            "seconds": ours["seconds"],
            "dense_seconds": dense["seconds"],
            "ratio": dense["seconds"] / ours["seconds"],
            "peak_bytes": ours["peak_bytes"],
            "dense_peak_bytes": dense["peak_bytes"],
            "share_of_copy_bandwidth": None,
        }
    )
    return records


def show(records: list[dict[str, Any]]) -> None:
    """Print the records."""
    table = Table(title=f"Training steps, batch of {ROWS} rows, up to {available_threads()} threads")
    table.add_column("what", no_wrap=True)
    for column in ("a second", "dense", "times faster", "of copy bandwidth", "peak MB", "dense peak MB"):
        table.add_column(column, justify="right")
    for record in records:
        share = record["share_of_copy_bandwidth"]
        table.add_row(
            record["name"],
            f"{1 / record['seconds']:.1f}",
            f"{1 / record['dense_seconds']:.2f}",
            f"{record['ratio']:.1f}",
            "" if share is None else f"{share:.0%}",
            f"{record['peak_bytes'] / 1e6:.0f}",
            f"{record['dense_peak_bytes'] / 1e6:.0f}",
        )
    Console(width=120).print(table)


if __name__ == "__main__":
    what, *rest = sys.argv[2:]
    if what == "bandwidth":
        print(json.dumps({"bytes_per_second": copy_bandwidth()}))
    elif what == "prediction":
        print(json.dumps(measure_prediction(rest[0])))
    else:
        print(json.dumps(measure_training(rest[0], int(rest[1]), rest[2])))
