"""Rows for the model of a run: read like its training rows, with or without labels; or the run's own rows."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rarenode._io.files import exists
from rarenode._io.progress import Progress
from rarenode.data.catalogue import SplitName, catalogue
from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.data.sources import Data, files_like, open_data
from rarenode.data.table_options import TableOptions, table_options
from rarenode.errors import ArgumentError, DataError, FileFormatError, MissingFileError
from rarenode.run.evaluation import Use
from rarenode.run.files import Start
from rarenode.run.rows import is_same_file, training_rows, usable_data, usable_rows, validation_rows
from rarenode.run.unseen import Unseen, kept_rows, unseen_rows

if TYPE_CHECKING:
    from rarenode.run.run import Run

Options = Mapping[str, Any] | None
Root = Path | str | None


def reading_for(run: Run, options: Options) -> TableOptions:
    """How to read rows for the model: as its own, but for the options that are given.

    Raises:
        ArgumentError: they are about pictures, and the model was trained on a table.
    """
    reading = table_options(options or {}, run.model.reading)
    if reading.has_images and run.model.encoder is None:
        raise ArgumentError(f"{run.folder} was trained on a table without pictures; leave out --images and --image")
    return reading


def rows_for(
    run: Run,
    data: Data | None,
    split: SplitName | None,
    root: Root,
    options: Options = None,
    *,
    labels: bool = True,
    progress: Progress | None = None,
) -> Dataset:
    """The rows to evaluate or predict; the arguments are those of `Run.evaluate`."""
    model, is_own = run.model, data is None
    if data is None and model.source in catalogue():
        data = model.source
    elif data is None:
        data, options = _own_files(run, options)
    expected = model.expects
    if labels and model.encoder is not None:  # pictures to be predicted are new ones, wherever they are
        expected = replace(expected, images_in_training=(run.files.start().options or {}).get("images"))
    opened = open_data(data, root, options=reading_for(run, options), expected=expected, labels=labels)
    if isinstance(opened, DatasetSplits):
        opened = opened.part(split or "test")
    elif split is not None:
        raise ArgumentError(f"{opened.name or 'the data'} has no {split} rows: it is not divided into parts")
    rows = usable_rows([opened], model.encoder, model.settings, progress)[0]
    if is_own and model.source not in catalogue():
        _require_unchanged(run, rows, split or "test")
    return rows


def labelled_rows_for(
    run: Run, data: Data | None, split: SplitName | None, root: Root, options: Options = None
) -> tuple[Dataset, int]:
    """Labelled rows, and how many others there are."""
    rows = rows_for(run, data, split, root, options)
    run.model.check_match(rows, labels=True)
    labelled = rows.with_labels_only().with_dense_labels()
    rows.hierarchy.require_closed(labelled.Y)
    if not len(labelled):
        raise DataError(f"{rows.name or 'the data'}: no row has labels to compare predictions with")
    return labelled, len(rows) - len(labelled)


def rows_to_examine(run: Run, data: list[str | Path], options: Options, root: Root) -> Dataset:
    """Rows for `rarenode doctor`: labelled or not; by default the test rows of a run on a dataset of the catalogue."""
    if not data:
        return rows_for(run, None, None, root)
    source = data[0] if len(data) == 1 else data
    reading = run.model.reading
    wanted = (options or {}).get("labels") or (() if reading is None else reading.labels)
    try:
        return rows_for(run, source, None, root, options, labels=bool(wanted) or reading is None)
    except ArgumentError:
        if (options or {}).get("labels"):
            raise
        return rows_for(run, source, None, root, options, labels=False)  # the columns of labels are not there


def use_of(run: Run, data: Data | None, rows: Dataset, split: SplitName | None) -> Use:
    """What the model is known to have used rows for: the same rows, split or file.

    A `Dataset` may be any part of the file that it is named after, so for one its name says nothing.
    """
    model = run.model
    if rows.name in catalogue():
        if rows.name != model.source or split not in ("train", "valid"):
            return ""
        return "validation" if split == "valid" and "validation" in model.fingerprints else "training"
    rows = replace(rows, scored=model.scored)
    here = {rows.fingerprint, rows.with_labels_only().fingerprint}
    if model.fingerprints.get("validation") in here:
        return "validation"
    if here & {model.fingerprints.get(name) for name in ("data", "train", "valid")}:
        return "training"
    if isinstance(data, Dataset | DatasetSplits):
        return ""
    folder = None
    with suppress(FileFormatError):  # a damaged table.json does not matter for data that are named
        folder = run.files.start().folder
    return "training" if rows.name and is_same_file(rows.name, Path(folder or "", model.source)) else ""


def own_unseen_rows(run: Run, root: Root, options: Options = None) -> Unseen:
    """The test rows of the run's own data, or else its validation rows or the rows that were held out.

    Raises:
        ArgumentError: the run does not say which data these are, or all rows were used for training.
        MissingFileError: they are no longer there.
        DataError: they are no longer the same.
    """
    model, start = run.model, run.files.start()
    kept = None
    if start.data is None or (start.valid is None and "validation" in model.fingerprints):
        kept = kept_rows(run)
    if kept is not None:
        return kept
    data, given = _own_files(run, options)
    reading = reading_for(run, given)
    opened = open_data(data, root, options=reading, expected=model.expects)
    valid, validation = start.valid, None
    if valid is not None:
        validation = validation_rows(valid, training_rows(opened, model.settings)[0], reading, root)
    elif isinstance(opened, Dataset) and "validation" in model.fingerprints:
        raise ArgumentError(
            f"{run.folder} does not say which file its validation rows are from; name rows that it was not trained on"
        )
    opened, validation = usable_data(opened, validation, model.encoder, model.settings)
    rows = training_rows(opened, model.settings)[0].with_labels_only()
    _require_unchanged(run, rows, "data")
    if isinstance(opened, DatasetSplits):
        _require_unchanged(run, opened.test, "test")
    if validation is not None:
        _require_unchanged(run, validation.with_labels_only(), "validation")
    unseen = unseen_rows(run, opened, rows, validation)
    if unseen is None:
        raise ArgumentError(f"{run.folder} was trained on all rows of {rows.name}; name other rows")
    return unseen


def _require_unchanged(run: Run, rows: Dataset, name: str) -> None:
    """Make sure that these are the rows whose fingerprint the model keeps under a name."""
    if replace(rows, scored=run.model.scored).fingerprint != run.model.fingerprints.get(name):
        raise DataError(f"{rows.name} has changed since {run.folder} was trained on it; name the rows to evaluate")


def _own_files(run: Run, options: Options) -> tuple[Data, Mapping[str, Any]]:
    """The files that the run was trained on, and how they were read, but for the options that are given."""
    start = run.files.start()
    if start.data is None:
        raise ArgumentError(
            f"{run.folder} does not say which files it was trained on, and keeps no held-out rows; name rows that the "
            "model was not trained on, such as test rows"
        )
    for path in start.files:
        if not exists(path) and not files_like(Path(path)):
            advice = f"name it (`rarenode evaluate {run.folder} DATA`, `rarenode report {run.folder} --data DATA`)"
            raise MissingFileError(f"{_was_trained_with(run, start, path)}; {advice}, or go to the folder that has it")
        _warn_of_namesake(start, path)
    used = {**(start.options or {}), **(options or {})}
    if used.get("images") is not None and not exists(used["images"]):
        raise MissingFileError(f"{_was_trained_with(run, start, used['images'])}; --images names another folder")
    return start.data, used


def _warn_of_namesake(start: Start, path: str) -> None:
    """A project that was copied may mean its own file, and not the one that the run was trained on."""
    if start.folder is None or not Path(path).is_relative_to(start.folder):
        return
    here = Path(path).relative_to(start.folder)
    if exists(here) and not is_same_file(here, path):
        text = f"{path} is used, which the run was trained on, and not {here} in the current folder"
        warnings.warn(f"{text}; name that one if it is meant", RuntimeWarning, stacklevel=2)


def _was_trained_with(run: Run, start: Start, path: str) -> str:
    where = "" if Path(path).is_absolute() or start.folder is None else f" in {start.folder}"
    return f"{run.folder} was trained with {path}{where}, which is no longer there"
