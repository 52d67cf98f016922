"""`open_data`: rows by the name of a dataset of the catalogue, or from a file."""

from __future__ import annotations

from pathlib import Path

from rarenode.data.catalogue import catalogue, find_entry
from rarenode.data.dataset import Dataset, DatasetSplits, load_dataset
from rarenode.data.readers import read
from rarenode.errors import MissingFileError
from rarenode.hierarchy import Hierarchy

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
    if str(data) in catalogue():
        return load_dataset(str(data), root)
    path = Path(data)
    if path.exists():
        return read(path, "tree" if hierarchy is not None and any("/" in n for n in hierarchy.nodes) else "auto")
    if path.suffix or len(path.parts) > 1:
        raise MissingFileError(f"{data}: there is no such file, and no dataset of the catalogue has that name")
    find_entry(str(data))  # raises, and suggests a name that is close
    raise MissingFileError(f"{data}: there is no such file")
