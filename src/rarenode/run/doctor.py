"""`examine_data` and `examine_run`: what `rarenode doctor` says, as Python objects."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rarenode._io.text import counted
from rarenode.config import Settings
from rarenode.data.catalogue import catalogue
from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.data.images import Images
from rarenode.data.sources import open_data
from rarenode.data.table_options import table_options
from rarenode.diagnosis.annotation import Suggestions, suggest
from rarenode.diagnosis.data_checks import examine
from rarenode.diagnosis.examination import Examination, Finding
from rarenode.errors import ArgumentError, DataError, MissingFileError, RarenodeError
from rarenode.hierarchy import Hierarchy
from rarenode.models.encoder import Encoder
from rarenode.run.model_rows import own_unseen_rows, rows_to_examine
from rarenode.run.rows import read_alike, training_rows
from rarenode.run.run import Run
from rarenode.run.unseen import Unseen, diagnose_unseen
from rarenode.training.embedding import check_images, describe_notes
from rarenode.training.estimate import estimate_encoding


class Examined(NamedTuple):
    """What `examine_data` returns."""

    found: Examination
    rows: Dataset | None
    """Rows to train on; None if they cannot be read, and why is then all that was found."""
    valid: Dataset | None = None
    """The validation rows that a fit would use."""


def examine_data(
    data: str | Path,
    others: Sequence[str | Path] = (),
    *,
    hierarchy: Hierarchy | Path | str | None = None,
    options: Mapping[str, Any] | None = None,
    root: Path | str | None = None,
    encoder: Encoder | None = None,
    time: bool = False,
) -> Examined:
    """Examine data before training.

    Args:
        data: a table, an ARFF file or a name of the catalogue.
        others: validation or test rows.
        hierarchy: of the labels, or a file that contains it.
        options: which columns of a table are what; see `TableOptions`.
        root: the folder that holds the datasets of the catalogue.
        encoder: of pictures; if it is given, how many of these are encoded already is found out as well.
        time: encode a few pictures, to estimate how long the others take.
    """
    try:
        given = table_options(options or {})
        opened = open_data(data, root, options=given, hierarchy=hierarchy)
    except RarenodeError as error:
        return Examined(Examination(str(data), error.rows or 0, 0, 0, 0, 0, 0.0, (), error_findings(error)), None)
    validation = None
    if isinstance(opened, DatasetSplits):
        rows, validation = training_rows(opened, Settings())
        rest = [opened.test] if validation is None else [validation, opened.test]
        faults: tuple[Finding, ...] = ()
    else:
        rows, rest, faults = opened, [], ()
        for each in others:
            try:
                rest.append(read_alike(each, rows, given, root))
            except RarenodeError as error:
                faults += error_findings(error)
    found = examine(rows, rest, valid=validation)
    about_pictures = _picture_findings([rows, *rest], encoder, time)
    return Examined(replace(found, findings=(*about_pictures, *faults, *found.findings)), rows, validation)


def _picture_findings(parts: Sequence[Dataset], encoder: Encoder | None, time: bool) -> list[Finding]:
    """Pictures that cannot be used, odd ones, and how long it takes to encode the rest."""
    found: list[Finding] = []
    usable: list[Images] = []
    for rows in parts:
        if not isinstance(rows.X, Images):
            continue
        checked = check_images(rows.X)
        if checked.notes:
            odd = [f"{rows.X.file(row)}: {note}" for row, note in checked.notes.items()]
            found.append(Finding.of("note", "pictures", describe_notes(checked.notes), "", odd))
        if checked.problems:
            skip = rows.reading is not None and rows.reading.skip_bad_images
            examples = [f"{rows.X.file(row)}: {text}" for row, text in checked.problems.items()]
            text = f"{counted(len(checked.problems), 'picture')} of {len(rows):,} cannot be used"
            advice = "they are left out, as --skip-bad-images says"
            if not skip:
                advice = "replace them, or leave them out (--skip-bad-images)"
            found.append(Finding.of("warning" if skip else "error", "pictures", text, advice, examples))
        usable.append(rows.X[np.setdiff1d(np.arange(len(rows)), list(checked.problems))])
    if encoder is not None and usable:
        found.append(Finding("note", "pictures", str(estimate_encoding(usable, encoder, try_it=time))))
    return found


def error_findings(error: RarenodeError) -> tuple[Finding, ...]:
    """One finding for each thing that an error says is wrong."""
    return tuple(Finding("error", "data", text) for text in error.details or (str(error),))


def examine_run(
    run: Run,
    data: Sequence[str | Path] = (),
    *,
    options: Mapping[str, Any] | None = None,
    most: int = 10,
    root: Path | str | None = None,
) -> Suggestions:
    """Say why nodes are missed, and what to annotate next.

    Args:
        run: a finished run.
        data: tables, labelled or not; none: the rows of the run's own data that it was not trained on, as in
            `Run.evaluate`. If there are none, only what is known from training.
        options: options of a table that differ from those of the training table.
        most: how many rows and nodes to suggest.
        root: the folder that holds the datasets of the catalogue.
    """
    model = run.model
    diagnosis, probs, ids, about = None, None, None, ""
    if not data and model.source not in catalogue():
        unseen = _own_rows(run, options, root)
        if unseen is not None:
            about = f"{unseen.about}, {counted(len(unseen.rows), 'row')}"
            diagnosis = diagnose_unseen(model, unseen)
    else:
        rows = rows_to_examine(run, list(data), options, root)
        which = ", test rows" if rows.name in catalogue() else ""  # parts of a table have names of their own
        about = f"{rows.name or 'the data'}{which}, {counted(len(rows), 'row')}"
        labelled = rows.with_labels_only().with_dense_labels()
        if len(labelled):
            diagnosis = model.diagnose(labelled.X, labelled.Y, labelled.known)
        open_rows = np.flatnonzero(~_has_labels(rows))
        if len(open_rows):
            part = rows.take(open_rows)
            probs, ids = model.predict_proba(part.X), part.ids
            ids = ids if ids is not None else tuple(f"row {row}" for row in open_rows.tolist())
    found = suggest(
        model.hierarchy,
        model.training_positives,
        model.scored,
        diagnosis=diagnosis,
        probs=probs,
        ids=ids,
        most=most,
    )
    return replace(found, data=about)


def _own_rows(run: Run, options: Mapping[str, Any] | None, root: Path | str | None) -> Unseen | None:
    """Rows of the run's own data that it was not trained on; None, with a warning if they are gone, if it has none."""
    try:
        return own_unseen_rows(run, root, options)
    except ArgumentError:  # all rows were used for training, or the run does not say which files have them
        return None
    except (MissingFileError, DataError) as error:
        warnings.warn(f"only what is known from training is used: {error}", RuntimeWarning, stacklevel=3)
        return None


def _has_labels(rows: Dataset) -> Any:
    return np.ones(len(rows), dtype=np.bool_) if rows.known is None else rows.known.any(axis=1)
