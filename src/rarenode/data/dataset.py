"""`Dataset`: rows split for training, validation and test over one hierarchy; and `load_dataset`, by name."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rarenode.data.arff import ArffFile, read_arff
from rarenode.data.catalogue import CatalogueEntry, CatalogueFile, catalogue, find_entry
from rarenode.data.locations import data_root
from rarenode.data.preparation import Preparation, as_float32, prepare_as_published
from rarenode.errors import ArgumentError, DataError, MissingFileError
from rarenode.hierarchy import Hierarchy

Prepare = Literal["as_published", "no_leakage", "none"]


@dataclass(frozen=True, eq=False)
class Split:
    """Some rows."""

    X: NDArray[np.float32]
    """(rows, features)."""
    Y: NDArray[np.bool_]
    """(rows, nodes), closed under ancestors."""

    def __len__(self) -> int:
        return len(self.Y)


@dataclass(frozen=True, eq=False)
class Dataset:
    """Features and labels over one hierarchy, in three splits."""

    name: str
    train: Split
    valid: Split | None
    """None where the dataset has no validation rows of its own."""
    test: Split
    hierarchy: Hierarchy
    scored: NDArray[np.bool_]
    """Which nodes count, in the loss and in the metrics; an artificial root does not."""
    feature_names: tuple[str, ...]

    def __repr__(self) -> str:
        rows = "/".join(str(len(split)) if split is not None else "-" for split in (self.train, self.valid, self.test))
        return f"<Dataset {self.name}: {rows} rows, {len(self.feature_names)} features, {self.hierarchy!r}>"


def load_dataset(name: str, root: Path | str | None = None, prepare: Prepare = "as_published") -> Dataset:
    """Load a dataset of the catalogue from disk.

    Args:
        name: such as ``cellcycle_FUN``, ``derisi_GO``, ``enron``, ``diatoms``; `rarenode data list` shows all.
            The training files of ``expr_FUN_rebuilt`` and ``expr_GO_rebuilt`` are reconstructions.
        root: the folder that holds the data; defaults to the environment variable ``RARENODE_DATA``, then the user's
            cache.
        prepare: ``as_published`` (what produced the paper's tables), ``no_leakage`` (statistics of training rows
            only), or ``none`` (as in the files, NaN where missing).

    Raises:
        UnknownDatasetError: there is no such name.
        MissingFileError: a file is not there; the message says how to get it.
        FileFormatError: a file is malformed.
    """
    if prepare not in get_args(Prepare):
        raise ArgumentError(f"unknown preparation {prepare!r}; choose one of {', '.join(get_args(Prepare))}")
    entry = find_entry(name)
    folder = data_root(root)
    files = {file.split: _read(entry, file, folder) for file in entry.files}
    train, valid, test = files["train"], files.get("valid"), files["test"]
    for file in entry.files:
        other = files[file.split]
        if other.hierarchy != train.hierarchy or other.feature_names != train.feature_names:
            what = "features" if other.hierarchy == train.hierarchy else "classes"
            raise DataError(f"{folder / file.path}: its {what} are not those of {name}'s training file")
    features = _prepared(train.X, None if valid is None else valid.X, test.X, prepare)
    return Dataset(
        name=name,
        train=Split(features[0], train.Y),
        valid=None if valid is None or features[1] is None else Split(features[1], valid.Y),
        test=Split(features[2], test.Y),
        hierarchy=train.hierarchy,
        scored=np.array([node not in entry.unscored for node in train.hierarchy.nodes]),
        feature_names=train.feature_names,
    )


def _read(entry: CatalogueEntry, file: CatalogueFile, folder: Path) -> ArffFile:
    path = folder / file.path
    if not path.is_file():
        raise MissingFileError(f"{entry.name}: {path} is not there. {_how_to_get(entry, file, folder)}")
    content = read_arff(path, entry.kind)
    found = {
        "rows": len(content.Y),
        "features": len(content.feature_names),
        "nodes": len(content.hierarchy),
        "edges": len(content.hierarchy.edge_parents),
    }
    expected = {"rows": file.rows, "features": entry.features, "nodes": entry.nodes, "edges": entry.edges}
    for what, count in found.items():
        # Nobody here has seen a file without a checksum, so its number of rows is hearsay.
        if count != expected[what] and not (what == "rows" and file.sha256 is None):
            raise DataError(f"{path}: the {file.split} file of {entry.name} has {expected[what]} {what}; got {count}")
    return content


def _how_to_get(entry: CatalogueEntry, file: CatalogueFile, folder: Path) -> str:
    rebuilt = f"{entry.name}_rebuilt"
    elsewhere = "" if folder == data_root(None) else f" --root {folder}"
    where = "RARENODE_DATA names the folder that holds the data; unset, it is the user's cache."
    if not file.published:
        return f"It is a reconstruction that cannot be fetched. {where}"
    alternative = f" {rebuilt} uses a reconstructed training file." if rebuilt in catalogue() else ""
    return f"'rarenode data fetch {entry.name}{elsewhere}' downloads it.{alternative} {where}"


Features = NDArray[np.float32]


def _prepared(
    train: NDArray[np.float64], valid: NDArray[np.float64] | None, test: NDArray[np.float64], prepare: Prepare
) -> tuple[Features, Features | None, Features]:
    match prepare:
        case "as_published":
            return prepare_as_published(train, valid, test)
        case "no_leakage":
            preparation = Preparation.fit(train)
            return (
                preparation.apply(train),
                None if valid is None else preparation.apply(valid),
                preparation.apply(test),
            )
        case "none":
            return as_float32(train), None if valid is None else as_float32(valid), as_float32(test)
