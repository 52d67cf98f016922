"""A small dataset in files, code in files, and specs that name both."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import numpy as np

from rarenode.executors import Here
from rarenode.paper.grid import tasks
from rarenode.paper.record import Record
from rarenode.paper.runner import Outcome, run_tasks
from rarenode.paper.spec import Spec, load_spec
from rarenode.paper.store import gather

LEAVES = ("coral > hard", "coral > soft", "sponge", "coral > hard > table")
HEAD = """
title = "mine"
datasets = ["mine"]
seeds = 1
settings = { epochs = 2, hidden_size = 4, n_layers = 1, dropout = 0.0, batch_size = 64, learning_rate = 0.01 }
"""
DECIDED = HEAD.replace("seeds", 'decisions = ["fixed", "expected_f1"]\nprotocol = "held_out"\nseeds')
DATA = """
[data.mine]
train = "train.csv"
test = "test.csv"
labels = "taxa"
id = "name"
"""
PLAIN = """
[[methods]]
name = "plain"
settings = { weighting = "none" }
"""
LOSS = """
    import torch
    from rarenode import RareNodeLoss

    class Loss(torch.nn.Module):
        def __init__(self, hierarchy, labels):
            super().__init__()
            assert labels.dtype == bool and labels.shape[1] == len(hierarchy)
            self.loss = RareNodeLoss(hierarchy, reduction="none")

        def forward(self, logits, labels):
            return self.loss(logits, labels).mean()
"""
MODEL = """
    import numpy as np

    class Nearest:
        def __init__(self, hierarchy, seed):
            self.seed = seed

        def fit(self, X, Y):
            self.X, self.Y = X, Y

        def predict_proba(self, X):
            far = ((X[:, None] - self.X[None]) ** 2).sum(axis=2)
            return self.Y[np.argsort(far, axis=1, kind="stable")[:, :3]].mean(axis=1)
"""
ROWS = """
    import numpy as np

    class Twice:
        def __init__(self, hierarchy, seed):
            self.seed = seed

        def resample(self, Y):
            return np.tile(np.arange(len(Y)), 2)
"""


def write_table(path: Path, rows: int, seed: int, *, part: bool = False) -> Path:
    """Features tell labels; the second has a gap."""
    rng = np.random.default_rng(seed)
    lines = ["name,a,b,taxa" + (",part" if part else "")]
    for row in range(rows):
        leaf = row % len(LEAVES)
        first, second = rng.normal(loc=(leaf, -leaf), scale=0.2)
        which = f",{('train', 'train', 'valid', 'test')[row // 4 % 4]}" if part else ""
        lines.append(f"{seed}-{row},{first:.3f},{'' if row == 1 else f'{second:.3f}'},{LEAVES[leaf]}{which}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_data(folder: Path) -> None:
    """Tables for `DATA`, and of validation rows."""
    for seed, (name, rows) in enumerate({"train": 40, "valid": 12, "test": 16}.items()):
        write_table(folder / f"{name}.csv", rows, seed)


def write_code(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(dedent(text), encoding="utf-8")
    return path


def write_spec(folder: Path, *parts: str) -> Path:
    path = folder / "spec.toml"
    path.write_text("".join(parts), encoding="utf-8")
    return path


def method(name: str, **values: Any) -> str:
    lines = [f"{key} = {value if isinstance(value, int) else repr(value)}" for key, value in values.items()]
    return "\n".join(["\n[[methods]]", f"name = {name!r}", *lines, ""])


def load(folder: Path, *parts: str) -> Spec:
    return load_spec(str(write_spec(folder, *parts)))


def train(spec: Spec, folder: Path) -> Outcome:
    return run_tasks(tasks(spec), folder, Here())


def records(spec: Spec, folder: Path) -> dict[str, Record]:
    """The first record of each method."""
    return {method: its[0] for (_, method), its in gather(spec, folder).items() if its}
