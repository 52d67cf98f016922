"""Rows by name or from a file: `load_dataset` for the catalogue, `open_data` for either."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal, get_args

from rarenode._io.files import exists, is_file
from rarenode.data.catalogue import CatalogueEntry, CatalogueFile, catalogue, data_root, find_entry
from rarenode.data.dataset import Dataset, DatasetSplits, scored_nodes
from rarenode.data.preparation import Preparation
from rarenode.data.readers import read
from rarenode.errors import ArgumentError, DataError, MissingFileError
from rarenode.hierarchy import Hierarchy

Prepare = Literal["none", "no_leakage"]
Data = str | Path | Dataset | DatasetSplits
"""What can be trained on, evaluated and predicted: rows, a file of rows, or a name of the catalogue."""


def open_data(
    data: Data, root: Path | str | None = None, hierarchy: Hierarchy | None = None
) -> Dataset | DatasetSplits:
    """Read rows, unless they are given as such.

    Args:
        data: rows, a file, or a name of the catalogue.
        root: the folder that holds the datasets of the catalogue.
        hierarchy: of the model that the rows are for, if there is one; rows without labels do not show it.

    Raises:
        MissingFileError: there is no such file.
        UnknownDatasetError: there is no such name.
        FileFormatError: the file is malformed.
    """
    if isinstance(data, Dataset | DatasetSplits):
        return data
    if not isinstance(data, str | Path):
        raise ArgumentError(
            f"data must be a Dataset, a file or a name of the catalogue, got {type(data).__name__}; "
            "Dataset.from_arrays makes one of arrays, and TrainedModel.predict takes features"
        )
    if str(data) in catalogue():
        return load_dataset(str(data), root)
    path = Path(data)
    if exists(path):
        return read(path, "tree" if hierarchy is not None and any("/" in n for n in hierarchy.nodes) else "auto")
    if path.suffix or len(path.parts) > 1:
        raise MissingFileError(f"{data}: there is no such file, and no dataset of the catalogue has that name")
    find_entry(str(data))  # raises, and suggests a name that is close
    raise MissingFileError(f"{data}: there is no such file")


def load_dataset(name: str, root: Path | str | None = None, prepare: Prepare = "none") -> DatasetSplits:
    """Load a dataset of the catalogue from disk.

    Args:
        name: such as ``cellcycle_FUN``, ``derisi_GO``, ``enron``, ``diatoms``; `rarenode data list` shows all.
            The training files of ``expr_FUN_rebuilt`` and ``expr_GO_rebuilt`` are reconstructions.
        root: the folder that holds the data; default: the environment variable ``RARENODE_DATA``, then the user's
            cache.
        prepare: ``none`` (raw features, NaN where missing: models prepare them), or ``no_leakage`` (filled and
            standardised with statistics of the training rows). `rarenode.paper.load_as_published` has the preparation
            behind the paper's tables, which uses statistics of the test rows.

    Raises:
        UnknownDatasetError: there is no such name.
        MissingFileError: a file is not there; the message says how to get it.
        FileFormatError: a file is malformed.
    """
    if prepare not in get_args(Prepare):
        raise ArgumentError(
            f"unknown preparation {prepare!r}; choose one of {', '.join(get_args(Prepare))}, or call "
            "rarenode.paper.load_as_published for the preparation behind the paper's tables"
        )
    entry = find_entry(name)
    folder = data_root(root)
    files = {file.split: _read(entry, file, folder) for file in entry.files}
    train = files["train"]
    for file in entry.files:
        other = files[file.split]
        if other.hierarchy != train.hierarchy or other.feature_names != train.feature_names:
            what = "features" if other.hierarchy == train.hierarchy else "classes"
            raise DataError(f"{folder / file.path}: its {what} are not those of {name}'s training file")
    scored = scored_nodes(train.hierarchy, entry.unscored)
    parts = {
        split: replace(content, hierarchy=train.hierarchy, scored=scored, name=name) for split, content in files.items()
    }
    splits = DatasetSplits(name, parts["train"], parts.get("valid"), parts["test"])
    return splits if prepare == "none" else splits.map_features(Preparation.fit(train.X).apply)


def _read(entry: CatalogueEntry, file: CatalogueFile, folder: Path) -> Dataset:
    path = folder / file.path
    if not is_file(path):
        raise MissingFileError(f"{entry.name}: {path} is not there. {_how_to_get(entry, file, folder)}")
    content = read(path, entry.kind)
    found = {
        "rows": len(content.Y),
        "features": content.n_features,
        "nodes": len(content.hierarchy),
        "edges": len(content.hierarchy.edge_parents),
    }
    expected = {"rows": file.rows, "features": entry.features, "nodes": entry.nodes, "edges": entry.edges}
    for what, count in found.items():
        # The number of rows of a file without a checksum is not known for certain.
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
