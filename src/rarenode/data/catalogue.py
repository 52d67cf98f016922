"""The catalogue of the paper's datasets: their files, sizes and checksums.

The entries are written in ``catalogue.toml`` and read into frozen records here. `data_root` is the folder that holds
their files.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any, Literal

from platformdirs import user_cache_path

from rarenode.errors import ArgumentError, UnknownDatasetError

Kind = Literal["tree", "dag"]
SplitName = Literal["train", "valid", "test"]

SPLITS: tuple[SplitName, ...] = ("train", "valid", "test")
ALL = "all"
"""In a list of names, stands for all datasets of the paper."""

ENVIRONMENT_VARIABLE = "RARENODE_DATA"


@dataclass(frozen=True, slots=True)
class CatalogueFile:
    """A file of a dataset."""

    split: SplitName
    path: PurePosixPath
    """Relative to the data root and to the address from which the dataset is fetched."""
    rows: int
    size: int | None = None
    """In bytes; None if unknown."""
    sha256: str | None = None
    """In hexadecimal digits; None if unknown."""
    published: bool = True
    """Whether the file can be downloaded."""

    def __post_init__(self) -> None:
        # Each part must be a plain file name on every operating system, so that no path leads out of the data root.
        parts = self.path.parts
        if not parts or any(part == ".." or set(part) & set('/\\:*?"<>|') or not part.isprintable() for part in parts):
            raise ArgumentError(f"{str(self.path)!r} is not a path below the data root")


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A dataset of the catalogue."""

    name: str
    title: str
    """Describes the rows and the nodes."""
    about: str
    """Describes the features."""
    kind: Kind
    source: str
    """The base address of the files."""
    files: tuple[CatalogueFile, ...]
    """In the order train, valid, test. Some datasets have no validation file."""
    features: int
    """Number of columns after one-hot encoding."""
    nodes: int
    """Number of nodes, including the artificial root."""
    edges: int
    unscored: tuple[str, ...]
    """Nodes that are excluded from the loss and the metrics."""
    citations: tuple[str, ...]
    licence: str

    @property
    def scored(self) -> int:
        """Number of nodes in the loss and the metrics."""
        return self.nodes - len(self.unscored)

    @property
    def published(self) -> bool:
        """Whether all files can be downloaded: True for the 18 datasets of the paper, False for the rebuilt ones."""
        return all(file.published for file in self.files)

    def file(self, split: SplitName) -> CatalogueFile | None:
        """Return the file of a split, or None if the dataset has no such split."""
        return next((file for file in self.files if file.split == split), None)


def catalogue() -> Mapping[str, CatalogueEntry]:
    """Return all datasets by name.

    >>> catalogue()["cellcycle_FUN"].features
    77
    """
    return MappingProxyType(entries())


@cache
def entries() -> dict[str, CatalogueEntry]:
    """The catalogue as a dict, read once."""
    text = resources.files("rarenode.data").joinpath("catalogue.toml").read_text(encoding="utf-8")
    document = tomllib.loads(text)
    return {name: _entry(name, document) for name in document["datasets"]}


def find_entry(name: str) -> CatalogueEntry:
    """Return the dataset with the given name.

    Raises:
        UnknownDatasetError: there is none; the message suggests the closest name and lists all names.
    """
    known = catalogue()
    if not isinstance(name, str):
        raise UnknownDatasetError(f"The name of a dataset must be a string, got {name!r}.")
    if name in known:
        return known[name]
    lower = {known_name.lower(): known_name for known_name in known}
    close = difflib.get_close_matches(name.lower(), lower, n=1)
    hint = f" Did you mean {lower[close[0]]!r}?" if close else ""
    raise UnknownDatasetError(f"There is no dataset {name!r} in the catalogue.{hint} It has: {', '.join(known)}.")


def find_entries(names: Iterable[str]) -> tuple[CatalogueEntry, ...]:
    """Return the datasets with the given names, without repeats; ``"all"`` stands for the 18 datasets of the paper.

    Raises:
        UnknownDatasetError: as in `find_entry`.
    """
    found: dict[str, CatalogueEntry] = {}
    for name in names:
        entries = [entry for entry in catalogue().values() if entry.published] if name == ALL else [find_entry(name)]
        found.update((entry.name, entry) for entry in entries)
    return tuple(found.values())


def data_root(root: Path | str | None = None) -> Path:
    """Return the folder that holds the datasets; it may not exist yet.

    This is ``root`` if given, otherwise the environment variable ``RARENODE_DATA``, otherwise the user's cache folder.
    """
    chosen = root or os.environ.get(ENVIRONMENT_VARIABLE)
    return Path(chosen).expanduser() if chosen else user_cache_path("rarenode", appauthor=False)


def _entry(name: str, document: Mapping[str, Any]) -> CatalogueEntry:
    table = document["datasets"][name]
    if "like" in table:
        table = document["datasets"][table["like"]] | table
    group = document["groups"][table["group"]]
    return CatalogueEntry(
        name=name,
        title=group["title"],
        about=table["about"],
        kind=group["kind"],
        source=document["source"],
        files=tuple(_file(split, table[split]) for split in SPLITS if split in table),
        features=table["features"],
        nodes=table["nodes"],
        edges=table["edges"],
        unscored=tuple(group["unscored"]),
        citations=tuple(document["citations"][key] for key in (*group["citations"], *table.get("citations", ()))),
        licence=document["licence"].strip(),
    )


def _file(split: SplitName, table: Mapping[str, Any]) -> CatalogueFile:
    return CatalogueFile(
        split=split,
        path=PurePosixPath(table["path"]),
        rows=table["rows"],
        size=table.get("bytes"),
        sha256=table.get("sha256"),
        published=table.get("published", True),
    )
