"""rarenode against what a user would pick instead: time to the same F1, F1 of whole methods, and memory.

    python -m bench.rivals

Two questions, on synthetic rows, one thread for everyone, each measurement in a process of its own:

* How long does it take to train the same network (two hidden layers of 500 units, Adam, batches of 32) until it has
  the same F1? Engines of rarenode, a plain PyTorch training with the paper's dense formula, the same through
  `torch.compile`, and scikit-learn's MLPClassifier, which knows nothing of the hierarchy.
* What comes of fit and predict with the defaults? rarenode's preset, scikit-learn's MLPClassifier, extremely randomised
  trees and a logistic regression for each node. HiClass predicts one path for each row, so it has a task of that kind.

F1 is the mean over nodes that test rows have, at each method's own decisions. Rows to test choose nothing: the F1 that
has to be reached is 95 % of the best that the fused engine has in 20 epochs.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import matplotlib as mpl
import numba
import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch.nn import Linear, ReLU, Sequential

from bench.dense import dense_constraint, dense_loss, descendant_matrix
from bench.measuring import in_own_process, measure_once
from rarenode import NodeWeights, RareNodeClassifier, constrain, make_hierarchical
from rarenode.data.dataset import DatasetSplits
from rarenode.data.preparation import Preparation
from rarenode.engines import Adam, Objective
from rarenode.engines.fused_engine import FusedEngine
from rarenode.engines.torch_engine import TorchEngine
from rarenode.metrics import node_scores
from rarenode.models import MlpEnsemble, initial_parameters
from rarenode.training.loop import row_order

ROWS, NODES, FEATURES, HIDDEN, BATCH, RATE = 6_000, 500, 80, 500, 32, 1e-3
EPOCHS, SHARE, MOST_SECONDS = 20, 0.95, 900.0
PICTURE = Path("docs/images/rivals.svg")
NETWORKS = ("fused", "torch", "dense", "dense, torch.compile", "MLPClassifier")
METHODS = ("rarenode best", "rarenode, network alone", "MLPClassifier", "ExtraTreesClassifier", "LogisticRegression")
ONE_PATH = ("rarenode best", "HiClass, logistic regression")

Bools = NDArray[np.bool_]
Floats = NDArray[np.float32]


def problem(labels_per_row: float) -> tuple[DatasetSplits, Floats, Floats]:
    """Rows, with prepared features of training and of test rows."""
    data = make_hierarchical(2 * ROWS, nodes=NODES, features=FEATURES, labels_per_row=labels_per_row, noise=1.0)
    preparation = Preparation.fit(data.train.X)
    return data, preparation.apply(data.train.X), preparation.apply(data.test.X)


def mean_f1(Y: Bools, decided: Any) -> float:
    """The mean over nodes that some of the rows have."""
    return float(node_scores(Y, np.asarray(decided, dtype=np.bool_)).f1[Y.any(axis=0)].mean())


# --- the same network ------------------------------------------------------------------------------------------------


class Training(Protocol):
    """A network in training."""

    def epoch(self, X: Floats, Y: Bools, order: NDArray[np.int64]) -> None:
        """Go through the rows once."""

    def decide(self, X: Floats) -> Bools:
        """Where probabilities are at least 0.5."""


class ByEngine:
    """An engine of rarenode."""

    def __init__(self, data: DatasetSplits, make: type[FusedEngine] | type[TorchEngine]) -> None:
        shape = MlpEnsemble(FEATURES, NODES, hidden=HIDDEN, dropout=0.0)
        objective = Objective(data.hierarchy)
        self.hierarchy = data.hierarchy
        self.engine = make(shape, initial_parameters(shape, 0), objective, Adam(RATE, 0.0), 0)

    def epoch(self, X: Floats, Y: Bools, order: NDArray[np.int64]) -> None:
        """See `Training`."""
        for first in range(0, len(order), BATCH):
            rows = order[first : first + BATCH]
            self.engine.step(X[rows], Y[rows])

    def decide(self, X: Floats) -> Bools:
        """See `Training`."""
        decided: Bools = constrain(self.engine.logits(X)[0], self.hierarchy) >= 0
        return decided


class ByHand:
    """Plain PyTorch with the dense formula, compiled or not."""

    def __init__(self, data: DatasetSplits, compiled: bool) -> None:
        torch.manual_seed(0)
        self.network = Sequential(
            *(Linear(FEATURES, HIDDEN), ReLU()), *(Linear(HIDDEN, HIDDEN), ReLU()), Linear(HIDDEN, NODES)
        )
        self.optimiser = torch.optim.Adam(self.network.parameters(), lr=RATE)
        self.matrix = descendant_matrix(data.hierarchy)
        ones = np.ones(NODES)
        self.weights = NodeWeights(ones, ones)

        def loss(X: torch.Tensor, Y: torch.Tensor) -> torch.Tensor:
            return dense_loss(self.network(X)[None], Y, self.matrix, self.weights)

        self.loss: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = torch.compile(loss) if compiled else loss

    def epoch(self, X: Floats, Y: Bools, order: NDArray[np.int64]) -> None:
        """See `Training`."""
        for first in range(0, len(order), BATCH):
            rows = order[first : first + BATCH]
            self.optimiser.zero_grad()
            self.loss(torch.from_numpy(X[rows]), torch.from_numpy(Y[rows])).backward()  # type: ignore[no-untyped-call]
            self.optimiser.step()

    @torch.no_grad()
    def decide(self, X: Floats) -> Bools:
        """See `Training`."""
        blocks = (torch.from_numpy(X[first : first + 64]) for first in range(0, len(X), 64))
        parts = [dense_constraint(self.network(block).sigmoid(), self.matrix) for block in blocks]
        return np.asarray(torch.cat(parts).numpy() >= 0.5)


class ByScikitLearn:
    """A network without a constraint."""

    def __init__(self) -> None:
        from sklearn.neural_network import MLPClassifier  # noqa: PLC0415

        self.network = MLPClassifier((HIDDEN, HIDDEN), batch_size=BATCH, learning_rate_init=RATE, random_state=0)

    def epoch(self, X: Floats, Y: Bools, order: NDArray[np.int64]) -> None:
        """See `Training`."""
        self.network.partial_fit(X[order], Y[order], classes=np.arange(Y.shape[1]))

    def decide(self, X: Floats) -> Bools:
        """See `Training`."""
        return np.asarray(self.network.predict(X), dtype=np.bool_)


def begin(name: str, data: DatasetSplits) -> Training:
    """The training of that name."""
    if name in ("fused", "torch"):
        return ByEngine(data, FusedEngine if name == "fused" else TorchEngine)
    return ByScikitLearn() if name == "MLPClassifier" else ByHand(data, "compile" in name)


def measure_network(name: str, goal: float) -> dict[str, Any]:
    """Seconds until the F1 is reached; with a goal of 0, the F1 after each of all epochs."""
    data, X, X_test = problem(2.0)
    seconds, reached, scores = 0.0, False, []

    def train() -> None:
        nonlocal seconds, reached
        training = begin(name, data)
        for epoch in range(EPOCHS if not goal else 10 * EPOCHS):
            order = row_order(len(X), 0, epoch)
            began = time.perf_counter()
            training.epoch(X, data.train.Y, order)
            seconds += time.perf_counter() - began
            scores.append(mean_f1(data.test.Y, training.decide(X_test)))
            reached = bool(goal) and scores[-1] >= goal
            if reached or seconds > MOST_SECONDS:
                return

    _, peak = measure_once(train, time.perf_counter)
    return {"seconds": seconds, "epochs": len(scores), "reached": reached, "f1": max(scores), "peak_bytes": peak}


# --- whole methods ---------------------------------------------------------------------------------------------------


def fit_and_decide(name: str, data: DatasetSplits) -> Bools:
    """What a method decides for the test rows."""
    X, Y, X_test = data.train.X, data.train.Y, data.test.X
    if name.startswith("rarenode"):
        model = "mlp" if "alone" in name else "mlp+forest+neighbours"
        made = RareNodeClassifier(data.hierarchy, model=model, n_jobs=1, random_state=0)
        return np.asarray(made.fit(X, Y).predict(X_test), dtype=np.bool_)
    if name.startswith("HiClass"):
        return _by_hiclass(data)
    from sklearn.ensemble import ExtraTreesClassifier  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.multiclass import OneVsRestClassifier  # noqa: PLC0415
    from sklearn.neural_network import MLPClassifier  # noqa: PLC0415
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    rivals = {
        "MLPClassifier": MLPClassifier((HIDDEN, HIDDEN), early_stopping=True, random_state=0),
        "ExtraTreesClassifier": ExtraTreesClassifier(random_state=0),
        "LogisticRegression": OneVsRestClassifier(LogisticRegression(max_iter=1000)),
    }
    decided = make_pipeline(StandardScaler(), rivals[name]).fit(X, Y).predict(X_test)
    return np.asarray(data.hierarchy.close(np.asarray(decided, dtype=np.bool_)))


def _by_hiclass(data: DatasetSplits) -> Bools:
    from hiclass import LocalClassifierPerNode  # noqa: PLC0415
    from sklearn.linear_model import LogisticRegression  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    tree = data.hierarchy
    depth = int(tree.depth.max()) + 1

    def path(row: Bools) -> list[str]:
        nodes = [tree.nodes[column] for column in np.flatnonzero(row).tolist()]  # by depth
        return nodes + [""] * (depth - len(nodes))

    scaler = StandardScaler().fit(data.train.X)
    made = LocalClassifierPerNode(LogisticRegression(max_iter=1000))
    made.fit(scaler.transform(data.train.X), np.array([path(row) for row in data.train.Y], dtype=object))
    found = made.predict(scaler.transform(data.test.X))
    return tree.close(tree.encode([[node for node in row if node] for row in found.tolist()]))


def measure_method(name: str, labels_per_row: float) -> dict[str, Any]:
    """Seconds by the clock of fit and predict, F1, nodes found, and peak memory."""
    data, *_ = problem(labels_per_row)
    decided: list[Bools] = []
    seconds, peak = measure_once(lambda: decided.append(fit_and_decide(name, data)), time.perf_counter)
    found = int(np.count_nonzero((decided[0] & data.test.Y).any(axis=0)))
    return {"seconds": seconds, "f1": mean_f1(data.test.Y, decided[0]), "nodes_found": found, "peak_bytes": peak}


# --- all of them -----------------------------------------------------------------------------------------------------


def run() -> list[dict[str, Any]]:
    """A record for each measurement."""
    best = in_own_process("bench.rivals", "network", "fused", "0")["f1"]
    goal = SHARE * best
    cases = [("network", name, str(goal)) for name in NETWORKS] + [("method", name, "2.0") for name in METHODS]
    cases += [("one path", name, "1.0") for name in ONE_PATH]
    records = []
    for kind, name, value in track(cases, description="rivals", console=Console(stderr=True)):
        found = in_own_process("bench.rivals", kind, name, value)
        records.append({"name": "rivals", "kind": kind, "implementation": name, "goal": goal, **found})
    return records


def show(records: list[dict[str, Any]]) -> None:
    """Print the records."""
    some = [record for record in records if record["kind"] == "network"]
    table = Table(title=f"The same network, {ROWS:,} rows x {FEATURES} features x {NODES} nodes, one thread")
    for column in ("", f"seconds to F1 {100 * some[0]['goal']:.1f}", "epochs", "times fused", "peak memory"):
        table.add_column(column, justify="right")
    for record in some:
        reached = f"{record['seconds']:.1f}" if record["reached"] else f"not in {record['seconds']:.0f} s"
        times = f"{record['seconds'] / some[0]['seconds']:.1f}"
        table.add_row(
            record["implementation"], reached, str(record["epochs"]), times, f"{record['peak_bytes'] / 1e6:,.0f} MB"
        )
    Console(width=110).print(table)
    for kind, title in (("method", "fit and predict, defaults"), ("one path", "the same, one path for each row")):
        table = Table(title=title)
        for column in ("", "seconds", "F1", "nodes found", "peak memory"):
            table.add_column(column, justify="right")
        for record in (each for each in records if each["kind"] == kind):
            table.add_row(
                record["implementation"],
                f"{record['seconds']:.1f}",
                f"{100 * record['f1']:.1f}",
                f"{record['nodes_found']:,}",
                f"{record['peak_bytes'] / 1e6:,.0f} MB",
            )
        Console(width=110).print(table)
    draw(records)


def draw(records: list[dict[str, Any]]) -> None:
    """Time to the same F1, and time and F1 of whole methods, as a picture for the documentation."""
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    networks = [each for each in records if each["kind"] == "network"][::-1]
    bars = left.barh([each["implementation"] for each in networks], [each["seconds"] for each in networks])
    labels = [f"{each['seconds']:.0f} s{'' if each['reached'] else ', not reached'}" for each in networks]
    left.bar_label(bars, labels, padding=3)
    left.set(xlabel=f"seconds to F1 {100 * networks[0]['goal']:.1f}, the same network")
    left.margins(x=0.2)
    for record in (each for each in records if each["kind"] == "method"):
        right.plot(record["seconds"], 100 * record["f1"], "o")
        right.annotate(record["implementation"], (record["seconds"], 100 * record["f1"]), (5, 4),
                       textcoords="offset points", fontsize="small")  # fmt: skip
    right.set(xlabel="seconds of fit and predict, defaults", ylabel="F1")
    right.set_xlim(0, 1.45 * max(each["seconds"] for each in records if each["kind"] == "method"))
    right.margins(y=0.15)
    for ax in (left, right):
        ax.grid(alpha=0.3)
    with mpl.rc_context({"svg.hashsalt": "rivals", "svg.fonttype": "none"}):
        figure.savefig(PICTURE, metadata={"Date": None})
    print(f"drawn in {PICTURE}")


def measure_one(kind: str, name: str, value: str) -> dict[str, Any]:
    """One measurement, in this process."""
    numba.set_num_threads(1)
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", module="sklearn")
    return measure_network(name, float(value)) if kind == "network" else measure_method(name, float(value))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure_one(*sys.argv[2:5])))
    else:
        show(run())
