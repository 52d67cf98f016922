"""DATA on the command line: the name of a dataset of the catalogue, or an ARFF file.

A dataset of the catalogue is used as the paper used it: prepared as published, trained on training and validation rows
together, node weights from the training rows alone. A file of the user's own is prepared without leakage: every
statistic comes from the rows that train.

An artificial ``root`` above all other nodes is in every row, so it counts neither in the loss nor in the metrics.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rarenode.data.arff import ROOT, Kind, read_arff
from rarenode.data.catalogue import SplitName, catalogue, find_entry
from rarenode.data.dataset import Split, load_dataset
from rarenode.data.locations import data_root
from rarenode.data.preparation import Preparation, known_means, standardisation
from rarenode.errors import ArgumentError, MissingFileError
from rarenode.hierarchy import Hierarchy
from rarenode.training.rows import TrainingRows


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What `rarenode fit` trains on."""

    source: str
    """The dataset's name, or the path of the file."""
    rows: TrainingRows
    """Prepared."""
    valid: Split | None
    """Prepared rows to watch while training; None where all rows train."""
    test: Split | None
    """Prepared rows that a dataset of the catalogue keeps for judging."""
    feature_names: tuple[str, ...]
    preparation: Preparation
    """How rows that come later are prepared."""


@dataclass(frozen=True, eq=False)
class Rows:
    """What `rarenode evaluate` and `rarenode predict` look at."""

    X: NDArray[np.float32] | NDArray[np.float64]
    Y: NDArray[np.bool_]
    hierarchy: Hierarchy
    feature_names: tuple[str, ...]
    prepared: bool
    """Whether X is what the network is fed, and not what stands in the file."""


def is_in_catalogue(data: str) -> bool:
    """Whether DATA names a dataset of the catalogue. Raises if it names nothing at all."""
    if data in catalogue():
        return True
    if Path(data).is_file():
        return False
    if Path(data).suffix or len(Path(data).parts) > 1:
        raise MissingFileError(f"{data} is not there, and no dataset of the catalogue has that name")
    return find_entry(data).name == data  # there is none: this raises, and says which name is close


def load_training_data(data: str, root: Path | None, keep_validation: bool) -> TrainingData:
    """Read what to train on; with ``keep_validation`` a dataset's validation rows watch and do not train."""
    if is_in_catalogue(data):
        dataset = load_dataset(data, root)
        return TrainingData(
            source=data,
            rows=TrainingRows.from_dataset(dataset, with_valid=not keep_validation),
            valid=dataset.valid if keep_validation else None,
            test=dataset.test,
            feature_names=dataset.feature_names,
            preparation=published_preparation(data, root),
        )
    content = read_arff(data)
    preparation = Preparation.fit(content.X)
    hierarchy = content.hierarchy
    scored = np.array([node != ROOT or hierarchy.roots != (ROOT,) for node in hierarchy.nodes])
    return TrainingData(
        source=data,
        rows=TrainingRows(preparation.apply(content.X), content.Y, hierarchy, scored),
        valid=None,
        test=None,
        feature_names=content.feature_names,
        preparation=preparation,
    )


def load_rows(data: str, split: SplitName | None, root: Path | None, source: str, hierarchy: Hierarchy) -> Rows:
    """Read rows for a model that was trained on ``source`` over ``hierarchy``; the split of a dataset is ``test``.

    A dataset of the catalogue is prepared as published for the models that were trained on it.
    """
    if not is_in_catalogue(data):
        if split is not None:
            raise ArgumentError(f"{data} is a file and has no split {split!r}; only datasets of the catalogue have")
        content = read_arff(data, _kind_of(hierarchy))
        return Rows(content.X, content.Y, content.hierarchy, content.feature_names, prepared=False)
    prepared = data == source
    dataset = load_dataset(data, root, "as_published" if prepared else "none")
    rows: Split | None = getattr(dataset, split or "test")
    if rows is None:
        raise ArgumentError(f"{data} has no {split} split")
    return Rows(rows.X, rows.Y, dataset.hierarchy, dataset.feature_names, prepared)


def published_preparation(name: str, root: Path | None) -> Preparation:
    """What prepares new rows as the published preparation did the training rows.

    That one filled each file's missing values with the file's own means. Rows that come one at a time have none, so
    theirs are filled with the means of training and validation rows.
    """
    entry = find_entry(name)
    files = [entry.file("train"), entry.file("valid")]
    raw = [read_arff(data_root(root) / file.path, entry.kind).X for file in files if file is not None]
    mean, deviation = standardisation(np.concatenate([np.where(np.isnan(X), known_means(X), X) for X in raw]))
    return Preparation(known_means(np.concatenate(raw)), mean, deviation)


def _kind_of(hierarchy: Hierarchy) -> Kind:
    """How to read a file whose rows may have no labels to tell a tree from a DAG: only a tree's names are paths."""
    return "tree" if any("/" in node for node in hierarchy.nodes) else "auto"
