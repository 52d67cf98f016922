"""How often promised precisions and recalls are kept on real data, and how large the sets of promised recall are.

    RARENODE_DATA=folder python tools/measure_guarantees.py [DATASET ...]

A model is trained on the training rows of each dataset. Validation and test rows, which it has not seen, are divided
into halves at random, 100 times: thresholds are fitted to one half, and precision and recall are measured on the other.
A promise is about all rows that might come, so on a half of some hundreds it may fail by chance where it is kept.

The size of a set is the share of the rows measured on whose probability reaches the node's own threshold.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode import load_dataset
from rarenode.config import Settings
from rarenode.thresholds import PrecisionGuarantee, RecallGuarantee
from rarenode.training import train_model

DATASETS = ("cellcycle_FUN", "gasch1_FUN", "eisen_FUN")
PRECISIONS, RECALLS, SPLITS = (0.3, 0.5, 0.7), (0.5, 0.8, 0.9), 100


def halves(probs: NDArray[Any], Y: NDArray[np.bool_]) -> Any:
    """Rows to fit to, and rows to measure on, as (probabilities, labels) each."""
    for seed in range(SPLITS):
        order = np.random.default_rng(seed).permutation(len(Y))
        one, other = order[: len(Y) // 2], order[len(Y) // 2 :]
        yield (probs[one], Y[one]), (probs[other], Y[other])


def precision_line(probs: NDArray[Any], Y: NDArray[np.bool_], promised: float) -> list[str]:
    """In how many splits all bands together kept it, and what was predicted."""
    kept, nodes, precisions = [], [], []
    for fitted, new in halves(probs, Y):
        values = PrecisionGuarantee(promised).fit(*fitted).values
        decided = new[0] >= values
        bands = [values == value for value in np.unique(values[np.isfinite(values)])]
        each = [(decided & new[1])[:, band].sum() / max(decided[:, band].sum(), 1) for band in bands]
        kept.append(all(found >= promised for found in each))
        nodes.append(np.isfinite(values).sum())
        if bands:
            precisions.append((decided & new[1]).sum() / max(decided.sum(), 1))
    return [f"precision:{promised}", f"{np.mean(kept):.0%}", f"{np.mean(nodes):.0f}", _range(precisions), ""]


def recall_line(probs: NDArray[Any], Y: NDArray[np.bool_], promised: float) -> list[str]:
    """How often a node of some test rows kept it, and the sets, over all nodes with a promise and all splits."""
    kept, nodes, recalls, sizes = [], [], [], []
    for fitted, new in halves(probs, Y):
        values = RecallGuarantee(promised).fit(*fitted).values
        positives = new[1].sum(axis=0)
        some, sets = np.isfinite(values) & (positives > 0), new[0] >= values
        recall = (sets & new[1]).sum(axis=0)[some] / positives[some]
        kept += (recall >= promised).tolist()
        recalls += recall.tolist()
        sizes += sets.mean(axis=0)[np.isfinite(values)].tolist()
        nodes.append(np.isfinite(values).sum())
    return [f"recall:{promised}", f"{np.mean(kept):.0%}", f"{np.mean(nodes):.0f}", _range(recalls), _range(sizes)]


def _range(values: list[float]) -> str:
    low, middle, high = np.percentile(values, [10, 50, 90]) if values else (np.nan,) * 3
    return f"{100 * low:.0f}, {100 * middle:.0f}, {100 * high:.0f}"


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", metavar="DATASET", default=DATASETS, help="default: %(default)s")
    arguments = parser.parse_args()
    measured = "measured, % (10th, 50th and 90th percentile)"
    print(f"| dataset | promise | kept | nodes with a promise | {measured} | size of a set, % of rows (the same) |")
    print("|---|---|---|---|---|---|")
    for name in arguments.datasets:
        splits = load_dataset(name)
        assert splits.valid is not None
        settings = Settings.preset("best", model="mlp+forest+neighbours", n_trees=200, patience=None, epochs=20)
        model = train_model(splits.train, settings)
        unseen = [splits.valid, splits.test]
        probs = np.concatenate([model.predict_proba(part.X) for part in unseen])[:, splits.scored]
        Y = np.concatenate([part.Y for part in unseen])[:, splits.scored]
        for promised in PRECISIONS:
            print("|", " | ".join([name, *precision_line(probs, Y, promised)]), "|", flush=True)
        for promised in RECALLS:
            print("|", " | ".join([name, *recall_line(probs, Y, promised)]), "|", flush=True)


if __name__ == "__main__":
    main()
