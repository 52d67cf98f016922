"""How far does the penalty of `learn_weights` move the weights of a blend, and what is that worth with few rows?

    python tools/measure_blend_weights.py
    RARENODE_DATA=folder python tools/measure_blend_weights.py DATASET ...

Without a dataset: simulated rows, three clusters with a node or two each, which few rows leave separable. Models are
fitted once for each number of rows and seed, and weights are learned with penalties of 0 to 10; the log loss is that of
4,000 new rows. With datasets: the weights of the preset ``best`` on their training and validation rows, without the
penalty and with it. Test rows are not used.
"""

from __future__ import annotations

import argparse
import warnings
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from rarenode import Hierarchy
from rarenode.config import Settings
from rarenode.data.dataset import Dataset
from rarenode.data.sources import load_dataset
from rarenode.models import BlendWeights, blend_fitting, learn_weights, pool
from rarenode.training import TrainedModel, fit_model, out_of_fold

PENALTIES = (0.0, 0.1, 0.3, 1.0, 3.0, 10.0)
ROWS, SEEDS, NEW_ROWS = (30, 60, 120, 300, 1000), 6, 4000
TREE = Hierarchy.from_edges([("a", "b"), ("a", "c")])


def main() -> None:
    """Print the tables."""
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", metavar="DATASET", help="such as cellcycle_FUN")
    datasets = parser.parse_args().datasets
    if datasets:
        print("| dataset | penalty | weights |\n|---|---|---|")
        for name in datasets:
            data = load_dataset(name).train_and_valid.with_labels_only()
            _, parts, how = _fit(data, Settings(n_jobs=1))
            for penalty in (0.0, blend_fitting.PENALTY):
                learned = ", ".join(f"{weight:.4f}" for weight in _learn(parts, how, penalty).weights)
                print(f"| {name} | {penalty:g} | {learned} |", flush=True)
        return
    print("| rows | penalty | log loss | worst | probabilities of exactly 0 or 1 | largest weight |")
    print("|---|---|---|---|---|---|")
    for rows in ROWS:
        results: dict[float, list[tuple[float, float, float]]] = {penalty: [] for penalty in PENALTIES}
        for seed in range(SEEDS):
            rng = np.random.default_rng(seed)
            data, new = _clusters(rows, rng), _clusters(NEW_ROWS, rng)
            model, parts, how = _fit(data, Settings(seed=seed, hidden_size=50, n_jobs=1))
            of_new = model.predict_parts(new.X)
            for penalty in PENALTIES:
                found = _learn(parts, how, penalty)
                weights = [found.weights[place] for place in found.kept]
                probs = pool([of_new[place] for place in found.kept], weights, how["shares"])
                certain = float(((probs == 0) | (probs == 1)).mean())
                results[penalty].append((_log_loss(probs, new.Y), certain, max(weights)))
        for penalty, values in results.items():
            losses, certain_shares, largest = np.array(values).T
            print(
                f"| {rows} | {penalty:g} | {losses.mean():.3f} | {losses.max():.3f} | {certain_shares.mean():.1%} | "
                f"{largest.max():.1f} |",
                flush=True,
            )


def _clusters(rows: int, rng: np.random.Generator) -> Dataset:
    which = rng.integers(0, 3, rows)
    X = rng.normal(0, 0.62, size=(rows, 2)) + np.array([[0, 0], [3, 0], [3, 3]])[which]
    return Dataset.from_arrays(X, np.column_stack([which > 0, which == 1, which == 2]), TREE)


def _fit(data: Dataset, settings: Settings) -> tuple[TrainedModel, Any, dict[str, Any]]:
    """A model with all parts, and what `learn_weights` got."""
    got: list[tuple[Any, dict[str, Any]]] = []

    def keep_all(parts: Any, Y: NDArray[np.bool_], **how: Any) -> BlendWeights:
        got.append((parts, {"Y": Y, **how}))
        return BlendWeights((1 / len(parts),) * len(parts), 0.0, (0.0,) * len(parts))

    with patch.object(out_of_fold, "learn_weights", keep_all):
        model = fit_model(data, settings).model
    ((parts, how),) = got
    return model, [part.copy() for part in parts], how


def _learn(parts: Any, how: dict[str, Any], penalty: float) -> BlendWeights:
    with patch.object(blend_fitting, "PENALTY", penalty):
        return learn_weights(parts, **how)


def _log_loss(probs: NDArray[np.float32], Y: NDArray[np.bool_]) -> float:
    p = np.clip(probs.astype(np.float64), 1e-15, 1 - 1e-15)
    return float(-np.where(Y, np.log(p), np.log1p(-p)).sum(axis=1).mean())


if __name__ == "__main__":
    main()
