"""What can be had for nodes with no, or one to four, training rows?

    RARENODE_DATA=folder python tools/measure_rarest_nodes.py [DATASET ...]

The preset ``best`` is trained on the training rows of a dataset, and validation rows are ranked for each node that some
of them have: by the probability of the model, of its parts, of the node's parent, by the distance to the mean of the
node's training rows (its prototype), and by combinations. Test rows are not used.

AUC: 50 is chance. Top 10: of the ten rows that rank highest, how many have the node, on average; beside it what chance
gives. The last table ranks rows for the question whether a row has *some* child of a node that no training row has.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score

from rarenode.config import Settings
from rarenode.data.dataset import Dataset
from rarenode.data.sources import load_dataset
from rarenode.hierarchy import Hierarchy
from rarenode.training import TrainedModel, fit_model

Floats = NDArray[np.floating]
DATASETS = ("cellcycle_FUN", "seq_FUN", "cellcycle_GO")
BANDS = {"0": (0, 0), "1": (1, 1), "2": (2, 2), "3-4": (3, 4), "5-19": (5, 19)}
LOOKED_AT = 10


def main() -> None:
    """Print the tables of each dataset."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("datasets", nargs="*", metavar="DATASET", default=DATASETS, help="default: %(default)s")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in arguments.datasets:
        splits = load_dataset(name)
        assert splits.valid is not None  # the datasets above have some
        train, valid = splits.train.with_labels_only(), splits.valid.with_labels_only()
        model = fit_model(train, Settings(n_jobs=1)).model
        positives = train.Y.sum(axis=0)
        scores = dict(_rankings(model, train, valid))
        print(f"\n## {name}: {len(train)} training rows, {len(valid)} validation rows\n")
        print("| training rows | nodes | ranked by | AUC | top 10 | by chance |\n|---|---|---|---|---|---|")
        for band, (least, most) in BANDS.items():
            inside = valid.scored & (positives >= least) & (positives <= most) & valid.Y.any(axis=0)
            _print_lines(band, np.flatnonzero(inside), scores, valid.Y)
        print("\n| question | parents | ranked by | AUC | top 10 | by chance |\n|---|---|---|---|---|---|")
        parents, some_unseen = _unseen_children(train, valid)
        _print_lines("some unseen child", parents, _for_parents(scores["model"], train), some_unseen)


def _rankings(model: TrainedModel, train: Dataset, valid: Dataset) -> Iterator[tuple[str, Floats]]:
    """Name -> scores (rows, nodes)."""
    probs = model.predict_proba(valid.X)
    yield "model", probs
    for part, its in zip(model.parts, model.predict_parts(valid.X), strict=True):
        yield part.kind, its
    parent = _lowest_parent(probs, train.hierarchy)
    yield "parent", parent
    near = _similarity(model, train, valid)
    yield "prototype", near
    yield "parent x prototype", np.log(np.maximum(parent, 1e-9)) + 5 * near
    yield "model x prototype", np.log(np.maximum(probs, 1e-9)) + 5 * near


def _lowest_parent(probs: Floats, hierarchy: Hierarchy) -> Floats:
    """The probability of each node's least probable parent; 1 for a root."""
    lowest = np.ones_like(probs)
    for parent, child in zip(hierarchy.edge_parents.tolist(), hierarchy.edge_children.tolist(), strict=True):
        np.minimum(lowest[:, child], probs[:, parent], out=lowest[:, child])
    return lowest


def _similarity(model: TrainedModel, train: Dataset, valid: Dataset) -> Floats:
    """The cosine of each row with the mean of each node's training rows; 0 where it has none."""
    known, new = (np.arcsinh(model.prepare(rows.X)) for rows in (train, valid))
    means = train.Y.T.astype(np.float32) @ known / np.maximum(train.Y.sum(axis=0), 1)[:, None]
    return _unit(new) @ _unit(means).T


def _unit(rows: Floats) -> Floats:
    unit: Floats = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    return unit


def _unseen_children(train: Dataset, valid: Dataset) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Parents with a child that no training row and some validation row has; and which rows have such a child."""
    found = np.zeros_like(valid.Y)
    unseen = np.count_nonzero(train.Y, axis=0) == 0
    edges = zip(train.hierarchy.edge_parents.tolist(), train.hierarchy.edge_children.tolist(), strict=True)
    for parent, child in edges:
        if unseen[child] and not unseen[parent]:
            found[:, parent] |= valid.Y[:, child]
    return np.flatnonzero(found.any(axis=0)), found


def _for_parents(probs: Floats, train: Dataset) -> Mapping[str, Floats]:
    """Scores for having some child that is not among the known ones."""
    none_known, highest = np.ones_like(probs), np.zeros_like(probs)
    edges = zip(train.hierarchy.edge_parents.tolist(), train.hierarchy.edge_children.tolist(), strict=True)
    for parent, child in edges:
        none_known[:, parent] *= 1 - probs[:, child]
        np.maximum(highest[:, parent], probs[:, child], out=highest[:, parent])
    return {"parent": probs, "parent, no known child": probs * none_known, "parent - best child": probs - highest}


def _print_lines(
    band: str, nodes: NDArray[np.int64], scores: Mapping[str, Floats], Y: NDArray[np.bool_]
) -> None:
    measures: tuple[Callable[[Floats, NDArray[np.bool_]], float], ...] = (_auc, _hits)
    for name, values in scores.items():
        if not len(nodes):
            continue
        auc, hits = (np.mean([measure(values[:, n], Y[:, n]) for n in nodes.tolist()]) for measure in measures)
        chance = LOOKED_AT * Y[:, nodes].mean()
        print(f"| {band} | {len(nodes)} | {name} | {100 * auc:.1f} | {hits:.3f} | {chance:.3f} |")


def _auc(values: Floats, truth: NDArray[np.bool_]) -> float:
    return 0.5 if truth.all() else float(roc_auc_score(truth, values))


def _hits(values: Floats, truth: NDArray[np.bool_]) -> float:
    """Rows with the node among the ten highest; rows that tie for the last places share them."""
    order = np.sort(values)[::-1]
    last = order[min(LOOKED_AT, len(order)) - 1]
    above, equal = values > last, values == last
    places = LOOKED_AT - int(above.sum())
    return float(truth[above].sum() + truth[equal].sum() * places / equal.sum())


if __name__ == "__main__":
    main()
