"""Rows by name or from a file: `load_dataset` for the catalogue, `open_data` for either."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, Protocol, get_args

import numpy as np

from rarenode._io.delimited import suffix_of
from rarenode._io.files import exists, is_file
from rarenode.data.catalogue import CatalogueEntry, CatalogueFile, catalogue, data_root, find_entry
from rarenode.data.dataset import Dataset, DatasetSplits, scored_nodes
from rarenode.data.features import has_columns
from rarenode.data.images import Images, are_paths
from rarenode.data.preparation import Preparation
from rarenode.data.readers import TABLES, read
from rarenode.data.table_options import Expected, TableOptions
from rarenode.errors import ArgumentError, DataError, MissingFileError, UnknownDatasetError
from rarenode.hierarchy import HierarchyLike

Prepare = Literal["none", "no_leakage"]


class Frame(Protocol):
    """A pandas or polars data frame."""

    @property
    def columns(self) -> Any:
        """The names of its columns."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""


Data = str | Path | Iterable[str | Path] | Frame | Dataset | DatasetSplits | Images
"""What can be trained on, evaluated and predicted: rows, one or more files of rows, a data frame, a folder of pictures,
or a name of the catalogue."""


def open_data(
    data: Data,
    root: Path | str | None = None,
    *,
    options: TableOptions | None = None,
    hierarchy: HierarchyLike | None = None,
    expected: Expected | None = None,
    labels: bool = True,
) -> Dataset | DatasetSplits:
    """Read rows, unless they are given as such.

    Args:
        data: rows, a file, a pattern such as ``part-*.csv``, several files of one table, a data frame, or a name of the
            catalogue.
        root: the folder that holds the datasets of the catalogue.
        options: which columns of a table are what; see `rarenode.data.readers.read`, as for the other arguments.
        hierarchy: of the labels of a table, in any form that `as_hierarchy` takes.
        expected: what the model expects that the rows are for, if there is one.
        labels: whether labels are needed.

    Raises:
        MissingFileError: there is no such file.
        UnknownDatasetError: there is no such name.
        FileFormatError: the file is malformed.
    """
    if isinstance(data, Dataset | DatasetSplits):
        return data

    if isinstance(data, Images):
        if expected is None or labels:
            raise ArgumentError("Images have no labels; Dataset.from_images joins them with some")
        nothing = np.broadcast_to(np.False_, (len(data), len(expected.hierarchy)))
        scored = np.ones(len(expected.hierarchy), dtype=np.bool_)
        return Dataset(data, nothing, expected.hierarchy, scored, ids=data.names, known=nothing)

    def read_rows(sources: Any) -> Dataset | DatasetSplits:
        rows = read(sources, options=options, hierarchy=hierarchy, expected=expected, labels=labels)
        return rows if rows.partition is None else rows.splits()

    if isinstance(data, Iterable) and are_paths(data):
        return read_rows(list(data))
    if has_columns(data):
        return read_rows([data])
    if not isinstance(data, str | Path):
        raise ArgumentError(
            "data must be a Dataset, a file, a pandas or polars data frame, or a name of the catalogue, got "
            f"{type(data).__name__}; Dataset.from_arrays makes one of arrays, and TrainedModel.predict takes features"
        )
    if str(data) in catalogue():
        return load_dataset(str(data), root)
    path = Path(data)
    found = [path] if exists(path) else files_like(path)
    if found:
        return read_rows(found)
    if path.suffix or len(path.parts) > 1:
        raise MissingFileError(f"{data}: there is no such file, and no dataset of the catalogue has that name")
    try:
        find_entry(str(data))  # raises, and suggests a name that is close
    except UnknownDatasetError as error:
        raise UnknownDatasetError(f"{data}: there is no such file or folder. {error}") from None
    raise MissingFileError(f"{data}: there is no such file")


def scan_data(data: Data, expected: Expected, rows: int) -> Iterator[tuple[Dataset, int]] | None:
    """Rows of tables for a model, without labels and at most so many at a time, each with the number of all rows.

    None if the data are not files of tables, or if the rows are pictures, which stay in their files anyway.
    """
    if expected.images:
        return None
    if not isinstance(data, str | Path | Sequence) or (isinstance(data, str) and data in catalogue()):
        return None
    paths = [Path(data)] if isinstance(data, str | Path) else [Path(each) for each in data]
    if len(paths) == 1 and not exists(paths[0]):
        paths = files_like(paths[0])
    if not paths or not all(suffix_of(path) in TABLES for path in paths):
        return None
    return _scan(paths, expected, rows)


def _scan(paths: list[Path], expected: Expected, rows: int) -> Iterator[tuple[Dataset, int]]:
    from rarenode.data.readers.frames import scan_table  # noqa: PLC0415 (polars takes a tenth of a second to load)
    from rarenode.data.readers.tables import make_dataset, text_columns  # noqa: PLC0415

    options = expected.reading or TableOptions()
    seen: set[str] = set()
    for table in scan_table(paths, partial(text_columns, options, expected), rows):
        total = sum(count for _, count in table.files)
        part = make_dataset(table, options, expected=expected, labels=False)
        twice = next((row for row, key in enumerate(part.ids or ()) if key in seen), None)
        if twice is not None and part.ids is not None:
            problem = f"the id {part.ids[twice][:80]!r} in column {options.id!r} appears twice; ids must be unique"
            raise table.error(twice, problem)
        seen.update(part.ids or ())
        yield part, total


def files_like(path: Path) -> list[Path]:
    """The files that a pattern stands for, sorted; none if there is no pattern in the path."""
    if not any(character in str(path) for character in "*?["):
        return []
    return sorted(path.parent.glob(path.name))


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
    content = read(path, kind=entry.kind)
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
