"""The parts of rarenode in a training loop of your own, plain PyTorch: which form of the paper's weights finds nodes?

    python examples/own_loop.py                  # synthetic data, seconds
    python examples/own_loop.py cellcycle_FUN    # the paper's hyperparameters, minutes; RARENODE_DATA names the data

The paper prints weights on positive annotations (as_described); its tables come from weights on negative ones
(as_published). The last table reads the models at other thresholds: a diagnosis on test rows, not a way to choose one.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table
from torch.nn import Dropout, Linear, ReLU, Sequential

import rarenode
from rarenode import DatasetSplits, NodeWeights, Summary
from rarenode.metrics import summary, summary_by_depth, summary_by_rarity
from rarenode.paper import load_as_published, settings_for

THRESHOLDS = (0.5, 0.3, 0.2, 0.1, 0.05)

Probabilities = Mapping[str, NDArray[np.float32]]


def train(
    data: DatasetSplits, weights: NodeWeights | None, hidden: int, rate: float, epochs: int, batch_size: int, name: str
) -> NDArray[np.float32]:
    """Probabilities for the test rows: three layers, dropout 0.7, Adam, training and validation rows together."""
    network = Sequential(
        *(Linear(data.train.X.shape[1], hidden), ReLU(), Dropout(0.7)),
        *(Linear(hidden, hidden), ReLU(), Dropout(0.7)),
        Linear(hidden, len(data.hierarchy)),
    )
    loss = rarenode.RareNodeLoss(data.hierarchy, weights, scored=data.scored)
    optimiser = torch.optim.Adam(network.parameters(), lr=rate, weight_decay=1e-5)
    splits = [data.train] if data.valid is None else [data.train, data.valid]
    X = torch.from_numpy(np.concatenate([split.X for split in splits]))
    Y = torch.from_numpy(np.concatenate([split.Y for split in splits]))
    for _ in track(range(epochs), description=f"training {name:<12}"):
        for batch in torch.split(torch.randperm(len(X)), batch_size):
            optimiser.zero_grad()
            loss(network(X[batch]), Y[batch]).backward()
            optimiser.step()
    network.eval()
    with torch.no_grad():
        probs: torch.Tensor = network(torch.from_numpy(data.test.X)).sigmoid()
    return rarenode.constrain(probs.numpy(), data.hierarchy)


def figures_table(data: DatasetSplits, runs: Probabilities, seed: int) -> Table:
    table = Table(title=f"{data.name}: one model, seed {seed}, w0 = 0.25, threshold 0.5; percent")
    table.add_column("weighting")
    for column in ("F1", "precision", "recall", "Bin. AP", "AP", "nodes found"):
        table.add_column(column, justify="right")
    for name, probs in runs.items():
        s = summary(data.test.Y, probs, scored=data.scored)
        figures = [f"{100 * value:.2f}" for value in (s.f1, s.precision, s.recall, s.bin_ap, s.ap)]
        table.add_row(name, *figures, f"{s.nodes_found} of {s.nodes}")
    return table


def found_table(data: DatasetSplits, runs: Probabilities) -> Table:
    """Nodes found by rarity and by depth."""
    table = Table(title="Nodes found: predicted in at least one test row that carries them")
    table.add_column("nodes with", no_wrap=True)
    table.add_column("there are", justify="right")
    for name in runs:
        table.add_column(name, justify="right")

    def add(groups: list[dict[str, Summary]]) -> None:
        for group in groups[0]:
            found = [str(run[group].nodes_found) for run in groups]
            table.add_row(group, str(groups[0][group].nodes), *found, end_section=group == list(groups[0])[-1])

    truth, counts, scored = data.test.Y, data.train.Y.sum(axis=0), data.scored
    by_rarity = [summary_by_rarity(truth, probs, counts, scored=scored) for probs in runs.values()]
    by_depth = [summary_by_depth(truth, probs, data.hierarchy, scored=scored) for probs in runs.values()]
    add([{f"{band} training rows": s for band, s in run.items()} for run in by_rarity])
    add([{f"depth {depth}": s for depth, s in run.items()} for run in by_depth])
    return table


def thresholds_table(data: DatasetSplits, runs: Probabilities) -> Table:
    table = Table(title="F1 at other thresholds; percent")
    table.add_column("weighting")
    for threshold in THRESHOLDS:
        table.add_column(str(threshold), justify="right")
    for name, probs in runs.items():
        f1 = [summary(data.test.Y, probs, threshold, scored=data.scored).f1 for threshold in THRESHOLDS]
        table.add_row(name, *(f"{100 * value:.2f}" for value in f1))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dataset", nargs="?", help="a name from `rarenode data list`; without it, synthetic data")
    parser.add_argument("--seed", type=int, default=0, help="decides weights, batches and dropout (default 0)")
    arguments = parser.parse_args()
    torch.set_num_threads(1)  # the batches are small: threads would wait for each other longer than they work

    if arguments.dataset is None:
        data = rarenode.make_hierarchical()
        preparation = rarenode.Preparation.fit(data.train.X)
        data = data.map_features(preparation.apply)
        hidden, rate, epochs, batch_size = 300, 1e-3, 25, 32
    else:
        data = load_as_published(arguments.dataset)
        paper = settings_for(arguments.dataset)
        hidden, rate, epochs, batch_size = paper.hidden_size, paper.learning_rate, paper.epochs, paper.batch_size
    weightings = {
        "none": None,
        "as_published": rarenode.node_weights(data.train.Y, data.hierarchy, form="as_published"),
        "as_described": rarenode.node_weights(data.train.Y, data.hierarchy, form="as_described"),
    }
    print(data)
    runs = {}
    for name, weights in weightings.items():
        torch.manual_seed(arguments.seed)
        runs[name] = train(data, weights, hidden, rate, epochs, batch_size, name)
    Console().print(figures_table(data, runs, arguments.seed), found_table(data, runs), thresholds_table(data, runs))


if __name__ == "__main__":
    try:
        main()
    except rarenode.RarenodeError as error:
        raise SystemExit(f"own_loop: {error}") from None
