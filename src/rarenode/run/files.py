"""`RunFiles`: what lies in the folder of a run besides the model.

``settings.toml`` and, for files, ``table.json`` are written before training begins, so that a stopped training is
resumed without repeating its options, and a finished one finds its data again: paths are kept as they were given, with
the folder in which they were.
``examination.json`` has what `examine` found in the training rows, and ``held_out.safetensors`` the predictions of
held-out rows, from which a report can be written again. While a training is under way, there are also checkpoints and,
in ``.fold-1``, ``.fold-2``, ..., the models of folds.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from rarenode._io.arrays import Arrays, Layout, read_arrays, read_note, write_arrays
from rarenode._io.files import exists, is_file, replacing
from rarenode._io.text import all_storable, explain
from rarenode.config import Settings
from rarenode.config.settings import BEFORE
from rarenode.data.dataset import Dataset
from rarenode.data.images import are_paths
from rarenode.data.sources import Data, files_like
from rarenode.diagnosis.data_checks import examine
from rarenode.diagnosis.examination import Examination
from rarenode.errors import ArgumentError, FileFormatError
from rarenode.hierarchy import Hierarchy
from rarenode.training import TrainedModel
from rarenode.training.checkpoint import FILE as CHECKPOINT
from rarenode.training.checkpoint import remove_checkpoint
from rarenode.training.model_folder import RECORD, RUN_HEAD, RUN_SETTINGS
from rarenode.training.out_of_fold import OutOfFold, fold_folders, remove_folds
from rarenode.version import __version__

SETTINGS, TABLE, EXAMINATION = RUN_SETTINGS, "table.json", "examination.json"
STARTED = (SETTINGS, TABLE, EXAMINATION)
"""What is written before training begins."""
REPORT, HELD_OUT = "report.html", "held_out.safetensors"


class _HeldOut(BaseModel):
    """What ``held_out.safetensors`` says about its arrays: how many rows, and of which training."""

    model_config = ConfigDict(strict=True, extra="forbid")

    rows: Annotated[int, Field(ge=1)]
    data: str
    settings: str
    labels: bool = False
    """Whether it has their labels as well."""
    known: bool = False
    """Whether some of these are unknown."""
    ids: Annotated[int, Field(ge=0)] | None = None
    """How many bytes their ids take, as JSON; None if they have none."""


class Start(NamedTuple):
    """With which files a run was started, and how they were read."""

    data: str | list[str] | None = None
    """None if rows were given as such, or by an older rarenode."""
    options: dict[str, Any] | None = None
    hierarchy: str | None = None
    valid: str | None = None
    folder: str | None = None
    """Where paths that are not absolute began; None if an older rarenode began it."""

    @property
    def files(self) -> list[str]:
        """The files of rows."""
        data = self.data if isinstance(self.data, list) else [self.data]
        return [each for each in (*data, self.valid) if each is not None]

    def found_again(self) -> Start:
        """The same with paths that lead to the files from any folder.

        What is no longer where it was keeps its path, since it may have been moved to the current folder.
        """
        if self.folder is None or Path(self.folder) == Path.cwd():
            return self
        root = Path(self.folder)

        def found(path: str | None) -> str | None:
            is_there = path is not None and (exists(root / path) or files_like(root / path))
            return str(root / str(path)) if is_there else path

        options = dict(self.options or {})
        options["images"] = found(options.get("images"))
        if options.get("labels"):  # columns, or a file
            labels = options["labels"]
            names = [labels] if isinstance(labels, str) else labels
            # A column may have the name of a file, but hardly with an ending.
            options["labels"] = [found(name) if Path(name).suffix and is_file(root / name) else name for name in names]
        data = [str(found(each)) for each in self.data] if isinstance(self.data, list) else found(self.data)
        return Start(data, options, found(self.hierarchy), found(self.valid), self.folder)


@dataclass(frozen=True)
class RunFiles:
    """The files in the folder of a run."""

    folder: Path

    @property
    def has_model(self) -> bool:
        """Whether there is a complete model."""
        return (self.folder / RECORD).exists()

    @property
    def is_begun(self) -> bool:
        """Whether there is something to resume; folds beside a model are only left over."""
        if (self.folder / CHECKPOINT).exists():
            return True
        folds = any((part / name).exists() for part in fold_folders(self.folder) for name in (CHECKPOINT, RECORD))
        return folds and not self.has_model

    def settings(self) -> Settings | None:
        """The settings that the run was started with; None if the folder contains none."""
        path = self.folder / SETTINGS
        return Settings.from_toml(path, absent=BEFORE) if exists(path) else None

    def start(self) -> Start:
        """The files that the run was started with; empty if the folder does not say."""
        path = self.folder / TABLE
        if not exists(path):
            return Start()
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if not isinstance(content["options"], dict):
                raise TypeError("options have names")
            rest = [None if content[name] is None else str(content[name]) for name in ("hierarchy", "valid")]
            data = content.get("data")
            several = [str(each) for each in data] if isinstance(data, list) else None
            one = str(data) if isinstance(data, str) else None
            folder = content.get("folder")
            start = Start(several or one, dict(content["options"]), rest[0], rest[1], folder and str(folder))
            return start.found_again()
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise FileFormatError(path, None, "it is damaged; remove it, and repeat the options of the table") from None

    def write_start(
        self,
        source: str,
        settings: Settings,
        data: Data,
        options: Mapping[str, Any] | None,
        hierarchy: Hierarchy | Path | str | None,
        valid: Data | None,
    ) -> None:
        """Write with what the run was started."""
        if self.is_begun:  # a checkpoint belongs to the settings that are there already
            return
        try:
            with replacing(self.folder / SETTINGS) as (part,):
                part.write_text(f"{RUN_HEAD}{__version__}: fit {source!r}\n\n{settings.to_toml()}", encoding="utf-8")
            rest = {
                name: str(value) if isinstance(value, str | Path) else None
                for name, value in (("hierarchy", hierarchy), ("valid", valid))
            }
            several = [str(each) for each in data] if are_paths(data) and isinstance(data, Iterable) else None
            files = str(data) if isinstance(data, str | Path) else several
            if (options or files or rest["valid"] is not None) and not isinstance(hierarchy, Hierarchy):
                given = {"folder": str(Path.cwd()), "data": files, "options": dict(options or {}), **rest}
                with replacing(self.folder / TABLE) as (part,):
                    part.write_text(json.dumps(given, indent=1, default=_plain), encoding="utf-8")
        except OSError as error:
            raise ArgumentError(f"{self.folder}: settings cannot be written: {error}") from None

    def examination(self) -> Examination | None:
        """What was found in the training rows before training; None if the folder does not say."""
        path = self.folder / EXAMINATION
        if not exists(path):
            return None
        try:
            return TypeAdapter(Examination).validate_json(path.read_bytes())
        except (OSError, ValidationError):
            raise FileFormatError(path, None, "it is damaged; remove it, and reports leave it out") from None

    def write_examination(self, rows: Dataset, valid: Dataset | None) -> Examination:
        """Examine training rows, and keep what was found."""
        found = examine(rows, valid=valid)
        with replacing(self.folder / EXAMINATION) as (part,):
            part.write_text(json.dumps(all_storable(found.to_dict()), indent=1), encoding="utf-8")
        return found

    def write_held_out(self, held_out: OutOfFold, model: TrainedModel, rows: Dataset) -> None:
        """Keep what a report about held-out rows is made from: the models of folds are removed.

        Args:
            held_out: the predictions.
            model: which they belong to.
            rows: which ``held_out.rows`` are numbers of. Where no file has them, their labels and ids are kept as well.
        """
        arrays: Arrays = {name: getattr(held_out, name) for name in ("rows", "probs", "training_support")}
        start = self.start()
        if start.data is None or (start.valid is None and "validation" in model.fingerprints):
            arrays["labels"] = held_out.Y
            if held_out.known is not None:
                arrays["known"] = held_out.known
            if rows.ids is not None:
                names = json.dumps([rows.ids[row] for row in held_out.rows.tolist()])
                arrays["ids"] = np.frombuffer(names.encode(), dtype=np.uint8)
        note = _HeldOut(
            rows=len(held_out.rows),
            data=model.fingerprints["data"],
            settings=model.settings.fingerprint,
            labels="labels" in arrays,
            known="known" in arrays,
            ids=len(arrays["ids"]) if "ids" in arrays else None,
        )
        with replacing(self.folder / HELD_OUT) as (part,):
            write_arrays(part, arrays, note.model_dump_json())

    def held_out(self, model: TrainedModel) -> Arrays:
        """What `write_held_out` kept; that of another model is refused."""
        path = self.folder / HELD_OUT
        try:
            note = _HeldOut.model_validate_json(read_note(path))
        except ValidationError as error:
            raise FileFormatError(path, None, f"it has no held-out predictions: {explain(error, _HeldOut)}") from None
        if (note.data, note.settings) != (model.fingerprints.get("data"), model.settings.fingerprint):
            raise FileFormatError(path, None, "it belongs to another model than the one beside it; remove it")
        nodes = len(model.hierarchy)
        integer, number = np.dtype(np.int64), np.dtype(np.float32)
        layout: Layout = {
            "rows": (integer, (note.rows,)),
            "probs": (number, (note.rows, nodes)),
            "training_support": (integer, (nodes,)),
            **{name: (np.dtype(np.bool_), (note.rows, nodes)) for name in ("labels", "known") if getattr(note, name)},
            **({} if note.ids is None else {"ids": (np.dtype(np.uint8), (note.ids,))}),
        }
        arrays = read_arrays(path, layout)
        probs, labels = arrays["probs"], arrays.get("labels")
        if probs.size and not (probs.min() >= 0 and probs.max() <= 1):  # both are NaN if any value is
            raise FileFormatError(path, None, "it has predictions that are no probabilities; remove it")
        if min(arrays["rows"].min(), arrays["training_support"].min()) < 0:
            raise FileFormatError(path, None, "it has negative numbers of rows; remove it")
        if len(np.unique(arrays["rows"])) < len(arrays["rows"]):
            raise FileFormatError(path, None, "it names a row twice; remove it")
        if labels is not None and not model.hierarchy.is_closed(labels):
            raise FileFormatError(path, None, "it has labels without their ancestors; remove it")
        return arrays

    def tidy(self) -> None:
        """Remove what a finished run no longer needs. The checkpoint goes first: without it, the run is finished."""
        remove_checkpoint(self.folder)
        remove_folds(self.folder)


def _plain(value: Any) -> str | list[Any]:
    """A file or a collection of names, for JSON."""
    return str(value) if isinstance(value, Path) else list(value)
