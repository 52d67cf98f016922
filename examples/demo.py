"""Train one small network twice on synthetic data, without and with node weights, and see which nodes it finds."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

import rarenode
from rarenode import Dataset, NodeWeights, Summary

EPOCHS = 20
DEEP = 3


def train(data: Dataset, weights: NodeWeights | None, name: str) -> NDArray[np.float32]:
    """Probabilities for the test rows, from a network with one hidden layer."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(data.train.X.shape[1], 200),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.5),
        torch.nn.Linear(200, len(data.hierarchy)),
    )
    loss = rarenode.RareNodeLoss(data.hierarchy, weights, scored=data.scored)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-3, weight_decay=1e-5)
    X, Y = torch.from_numpy(data.train.X), torch.from_numpy(data.train.Y)
    for _ in track(range(EPOCHS), description=f"{name:<8}"):
        for batch in torch.randperm(len(X)).split(32):
            optimiser.zero_grad()
            loss(network(X[batch]), Y[batch]).backward()
            optimiser.step()
    network.eval()
    with torch.no_grad():
        probs = rarenode.constrain(network(torch.from_numpy(data.test.X)).sigmoid(), data.hierarchy)
    return probs.numpy()


def main() -> None:
    console = Console()
    torch.set_num_threads(1)  # the batches are small: threads would wait for each other longer than they work
    data = rarenode.make_hierarchical()
    console.print(repr(data), markup=False)
    runs = {
        "plain": train(data, None, "plain"),
        "weighted": train(data, rarenode.node_weights(data.train.Y, data.hierarchy), "weighted"),
    }
    truth, training_positives = data.test.Y, data.train.Y.sum(axis=0)
    by_rarity = {run: rarenode.summary_by_rarity(truth, probs, training_positives) for run, probs in runs.items()}
    by_depth = {run: rarenode.summary_by_depth(truth, probs, data.hierarchy) for run, probs in runs.items()}
    everything = {run: rarenode.summary(truth, probs) for run, probs in runs.items()}

    table = Table(title="Nodes found in the test rows, and their mean recall in percent, at threshold 0.5")
    table.add_column("nodes with", no_wrap=True)
    table.add_column("how many", justify="right")
    for run in runs:
        table.add_column(f"{run}\nfound", justify="right")
        table.add_column(f"{run}\nrecall", justify="right")

    def add(name: str, results: list[Summary], last_of_group: bool) -> None:
        cells = [cell for result in results for cell in (str(result.nodes_found), f"{100 * result.recall:.1f}")]
        table.add_row(name, str(results[0].nodes), *cells, end_section=last_of_group)

    bands = list(next(iter(by_rarity.values())))
    for band in bands:
        add(f"{band} training rows", [by_rarity[run][band] for run in runs], band == bands[-1])
    depths = list(next(iter(by_depth.values())))
    for depth in depths:
        add(f"depth {depth}", [by_depth[run][depth] for run in runs], depth == depths[-1])
    add("all", list(everything.values()), True)
    console.print(table)

    plain, weighted = (sum(s.nodes_found for d, s in by_depth[run].items() if d >= DEEP) for run in runs)
    figures = [f"F1 {100 * s.f1:.1f}, precision {100 * s.precision:.1f}, AP {100 * s.ap:.1f}" for s in everything.values()]
    console.print(f"plain:    {figures[0]}\nweighted: {figures[1]}")
    console.print(f"Deep nodes (depth {DEEP} and more) found: {plain} plain, {weighted} weighted.")


if __name__ == "__main__":
    main()
