"""The paper's datasets as data: which files they have, what must be in them, how the paper trained on them.

The facts are in ``catalogue.toml`` beside this module; here they become frozen records.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, Literal

from rarenode.errors import ArgumentError, UnknownDatasetError

Kind = Literal["tree", "dag"]
SplitName = Literal["train", "valid", "test"]

SPLITS: tuple[SplitName, ...] = ("train", "valid", "test")
ALL = "all"
"""What stands for every dataset of the paper in a list of names."""


@dataclass(frozen=True, slots=True)
class Hyperparameters:
    """How the paper trained on a dataset."""

    hidden: int
    learning_rate: float
    epochs: int
    layers: int
    dropout: float
    batch_size: int
    weight_decay: float


@dataclass(frozen=True, slots=True)
class CatalogueFile:
    """One file of a dataset, and what is known about it beforehand."""

    split: SplitName
    path: PurePosixPath
    """Relative to the data root, and to the address that the dataset is fetched from."""
    rows: int
    size: int | None = None
    """In bytes; None if nobody here has seen the file."""
    sha256: str | None = None
    """In hexadecimal digits; None if nobody here has seen the file."""
    published: bool = True
    """Whether the file can be fetched at all."""

    def __post_init__(self) -> None:
        # Only "/" separates, and each part is a plain name on every system, so the path cannot leave the data root.
        parts = self.path.parts
        if not parts or any(part == ".." or set(part) & set('/\\:*?"<>|') or not part.isprintable() for part in parts):
            raise ArgumentError(f"{str(self.path)!r} is not a path below the data root")


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """One dataset of the catalogue."""

    name: str
    title: str
    """What the rows and the nodes are."""
    about: str
    """What the features are."""
    kind: Kind
    source: str
    """The address that the files' paths are relative to."""
    files: tuple[CatalogueFile, ...]
    """In the order train, valid, test; a dataset may have no validation file."""
    features: int
    """Columns after one-hot encoding."""
    nodes: int
    """The artificial root included."""
    edges: int
    unscored: tuple[str, ...]
    """The nodes that count neither in the loss nor in the metrics."""
    hyperparameters: Hyperparameters
    citations: tuple[str, ...]
    licence: str

    @property
    def scored(self) -> int:
        """How many nodes count."""
        return self.nodes - len(self.unscored)

    @property
    def published(self) -> bool:
        """Whether every file can be fetched: true for the 18 datasets of the paper, not for the rebuilt ones."""
        return all(file.published for file in self.files)

    def file(self, split: SplitName) -> CatalogueFile | None:
        """Return the file of a split, or None where the dataset has none."""
        return next((file for file in self.files if file.split == split), None)


@cache
def catalogue() -> Mapping[str, CatalogueEntry]:
    """Return every known dataset by its name.

    >>> catalogue()["cellcycle_FUN"].features
    77
    """
    text = resources.files("rarenode.data").joinpath("catalogue.toml").read_text(encoding="utf-8")
    document = tomllib.loads(text)
    return MappingProxyType({name: _entry(name, document) for name in document["datasets"]})


def find_entry(name: str) -> CatalogueEntry:
    """Return the dataset of that name.

    Raises:
        UnknownDatasetError: there is none; the message says which name is close, and all the names there are.
    """
    known = catalogue()
    if not isinstance(name, str):
        raise UnknownDatasetError(f"A dataset is named by text, not by {name!r}.")
    if name in known:
        return known[name]
    lower = {known_name.lower(): known_name for known_name in known}
    close = difflib.get_close_matches(name.lower(), lower, n=1)
    hint = f" Did you mean {lower[close[0]]!r}?" if close else ""
    raise UnknownDatasetError(f"There is no dataset {name!r} in the catalogue.{hint} It has: {', '.join(known)}.")


def find_entries(names: Iterable[str]) -> tuple[CatalogueEntry, ...]:
    """Return the datasets of those names, each once; ``"all"`` stands for the 18 datasets of the paper.

    Raises:
        UnknownDatasetError: as in `find_entry`.
    """
    found: dict[str, CatalogueEntry] = {}
    for name in names:
        entries = [entry for entry in catalogue().values() if entry.published] if name == ALL else [find_entry(name)]
        found.update((entry.name, entry) for entry in entries)
    return tuple(found.values())


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
        hyperparameters=Hyperparameters(**document["hyperparameters"], **table["hyperparameters"]),
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
