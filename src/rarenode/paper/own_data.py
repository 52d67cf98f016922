"""`OwnData`: a dataset that a spec describes itself, in a section ``[data.NAME]``.

    [data.survey]
    train = "survey/train.csv"                  a table, a pattern or list of tables, ARFF, or a folder of pictures
    test = "survey/test.csv"
    valid = "survey/valid.csv"                  optional; or partition = "part", a column of a single table
    hierarchy = "taxa.obo"                      optional, as --hierarchy of `rarenode fit`
    labels = "taxa"                             and every other option for tables, by its name in `TableOptions`
    id = "image"

Paths are relative to the folder of the spec. Features are prepared as `rarenode fit` prepares them, with statistics of
the training rows. A dataset is known by the content of its files: after a change of any of them, or of an option, all
trainings on it are others, and records of before are left alone.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from pydantic import Field, ValidationError

from rarenode._io.files import exists, identity, is_dir, is_file
from rarenode._io.text import explain
from rarenode.data.catalogue import catalogue
from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.data.decoding import SUFFIXES
from rarenode.data.folders import files_below
from rarenode.data.sources import files_like, open_data
from rarenode.data.table_options import Names, TableOptions
from rarenode.errors import DataError, RarenodeError
from rarenode.paper.pictures import PICTURES
from rarenode.run.rows import validation_rows

PARTS = ("train", "valid", "test")
NAME = re.compile(r"\w[\w.-]*")
"""A name is also that of a folder."""


class Section(TableOptions):
    """The keys of a section."""

    train: Names = Field(min_length=1)
    valid: Names = ()
    test: Names = ()
    hierarchy: str | None = None


@dataclass(frozen=True)
class OwnData:
    """Where a dataset is, and how to read it; paths are absolute."""

    place: str
    """The spec and the section, for messages."""
    train: tuple[str, ...]
    valid: tuple[str, ...]
    test: tuple[str, ...]
    hierarchy: str | None
    options: TableOptions

    @cached_property
    def sha256(self) -> str:
        """The `digest` when it was first needed: the content that all trainings of a run are for."""
        return self.digest()

    def digest(self) -> str:
        """sha256 of the bytes of all files, and of the options; not of names and places.

        Raises:
            DataError: a file cannot be read.
        """
        known: dict[str, Any] = {part: [_sha256_of(path) for path in getattr(self, part)] for part in PARTS}
        known["hierarchy"] = None if self.hierarchy is None else _sha256_of(self.hierarchy)
        options = self.options.model_dump(mode="json", exclude_defaults=True, exclude={"images"})
        if self._labels_file is not None:
            options["labels"] = _sha256_of(self._labels_file)
        if self._pictures is not None:
            options["images"] = _sha256_of(self._pictures)
        text = json.dumps([known, options], sort_keys=True)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    @property
    def bytes(self) -> int:
        """The size of its tables."""
        return sum(Path(path).stat().st_size for part in PARTS for path in getattr(self, part) if is_file(path))

    @property
    def _labels_file(self) -> str | None:
        return next((each for each in self.options.labels if Path(each).is_absolute()), None)

    @property
    def _pictures(self) -> str | None:
        """The folder or archive of the pictures that a table names."""
        if not self.options.has_images:
            return None
        return self.options.images or str(Path(self.train[0]).parent)


def parse_sections(sections: Any, spec: Path | None) -> dict[str, OwnData]:
    """The datasets of a spec's ``data``.

    Args:
        sections: by name, as TOML has them.
        spec: its file, in whose folder relative paths begin; None: there is none, and they begin here.

    Raises:
        ValueError: a key, a value or a name is not possible, or a file is not there; names the section.
    """
    if not isinstance(sections, Mapping):
        raise ValueError("data must have a section for each dataset: [data.NAME]")
    return {name: _parse(name, values, spec) for name, values in sections.items()}


def _parse(name: str, values: Any, spec: Path | None) -> OwnData:
    here = f"[data.{name}]"
    if not NAME.fullmatch(name):
        raise ValueError(f"{here}: a name consists of letters, digits, _, - and .; it is that of a folder too")
    if name in PICTURES or name in catalogue():
        raise ValueError(f"{here}: rarenode has a dataset of this name; choose another one")
    try:
        section = Section.model_validate(values)
    except ValidationError as error:
        raise ValueError(f"{here}: {_problem(error)}") from None
    folder = (Path.cwd() if spec is None else spec.parent).resolve()
    given = {part: _files(f"{here}: {part}", getattr(section, part), folder) for part in PARTS}
    if section.partition is not None and (given["valid"] or given["test"]):
        raise ValueError(f"{here}: partition says which rows of a table are valid and test; leave out one or the other")
    if section.partition is None and not given["test"]:
        raise ValueError(f"{here}: there are no test rows; name their file as test, or a column of parts as partition")
    hierarchy = None
    if section.hierarchy is not None:
        (hierarchy,) = _files(f"{here}: hierarchy", (section.hierarchy,), folder)
    options = TableOptions(**{field: getattr(section, field) for field in TableOptions.model_fields})
    labels = tuple(str(folder / each) if is_file(folder / each) else each for each in section.labels)
    images = None
    if section.images is not None:
        (images,) = _files(f"{here}: images", (section.images,), folder)
    options = options.model_copy(update={"labels": labels, "images": images})
    place = f"{'the spec' if spec is None else spec}, {here}"
    return OwnData(place, **given, hierarchy=hierarchy, options=options)


def _problem(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    if first["type"] == "extra_forbidden":
        key = str(first["loc"][0])
        near = difflib.get_close_matches(key, Section.model_fields, n=1)
        return f"unknown key {key!r}" + (f"; did you mean {near[0]!r}?" if near else "")
    return explain(error, Section)


def _files(what: str, names: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    found: list[str] = []
    for name in names:
        path = folder / name
        its = [path] if exists(path) else files_like(path)
        if not its:
            raise ValueError(f"{what}: there is no file {name!r} in {folder}")
        found += map(str, its)
    return tuple(found)


# --- content ---------------------------------------------------------------------------------------------------------


def _sha256_of(path: str) -> str:
    """Of a file, or of all pictures in a folder."""
    try:
        if not is_dir(path):
            return _sha256(path, identity(path))
        root = Path(path)
        names = sorted(name for name in files_below(root) if Path(name).suffix.lower() in SUFFIXES)
        its = [[name, _sha256(str(root / name), identity(root / name))] for name in names]
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from None
    return hashlib.sha256(json.dumps(its).encode("ascii")).hexdigest()


@lru_cache(maxsize=1 << 20)
def _sha256(path: str, about: tuple[int, ...]) -> str:
    """Of the bytes of a file that has this `identity`: it is read once, as long as it does not change."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# --- rows ------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=3)
def read_own_data(data: OwnData, sha256: str) -> DatasetSplits:
    """Read a dataset, whose content must be the one that a training is for.

    Raises:
        DataError: it cannot be read, or has changed; names spec and section.
    """
    try:
        if data.digest() != sha256:
            raise DataError("its files have changed since the training was planned; run the command again")
        opened = open_data(data.train, options=data.options, hierarchy=data.hierarchy)
        if isinstance(opened, DatasetSplits):
            train, valid, test = opened.train, opened.valid, opened.test
        else:
            train, valid = opened, None
            if data.valid:
                valid = validation_rows(data.valid, train, data.options, None)
            test = validation_rows(data.test, train, data.options, None)
    except RarenodeError as error:
        raise DataError(f"{data.place}: {error}") from None
    return DatasetSplits(data.place, _labelled(train), None if valid is None else _labelled(valid), _labelled(test))


def _labelled(rows: Dataset) -> Dataset:
    """The rows of which some label is known; labels are dense, as scores need them."""
    return rows.with_labels_only().with_dense_labels()
