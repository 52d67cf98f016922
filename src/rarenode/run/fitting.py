"""A training in the folder of a run: whether it is free, what a refusal leaves, the model, and the report."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from rarenode._io.files import exists, require_writable, sole_use
from rarenode._io.progress import Progress
from rarenode.config import Settings
from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.data.sources import Data, open_data
from rarenode.data.table_options import table_options
from rarenode.diagnosis.copies import copies_between
from rarenode.diagnosis.validation_checks import VALIDATION
from rarenode.engines import resolve_device
from rarenode.errors import ArgumentError, DataError, ResumeError, TrainingError
from rarenode.executors import make_executor
from rarenode.hierarchy import HierarchyLike, as_hierarchy
from rarenode.models.encoder import Encoder, as_encoder
from rarenode.models.pretrained import load_encoder
from rarenode.report import Report, write_report
from rarenode.run.files import REPORT, STARTED
from rarenode.run.rows import has_images, training_rows, usable_data, usable_rows, validation_rows, with_parts
from rarenode.run.unseen import report_on_unseen, unseen_rows
from rarenode.training import Callback, fit_model
from rarenode.training.estimate import estimate_fit
from rarenode.training.train import require_labels, require_trainable_encoder

if TYPE_CHECKING:
    from rarenode.run.run import Run


def fit_in_folder(
    run: Run,
    data: Data,
    settings: Settings | None,
    *,
    valid: Data | None,
    hierarchy: HierarchyLike | None,
    options: Mapping[str, Any] | None,
    resume: bool,
    report: bool,
    encoder: Encoder | torch.nn.Module | None,
    download: bool,
    callback: Callback | None,
    progress: Progress | None,
    root: Path | str | None,
    on: str,
    jobs: int | None,
) -> None:
    """Train a model in the folder of a run; see `Run.fit` for the arguments and errors."""
    if not isinstance(settings, Settings | None):
        raise ArgumentError(
            f"settings must be Settings or None, got {type(settings).__name__}; Settings(epochs=10) is an example"
        )
    executor = make_executor(on, jobs)
    require_free(run, resume)
    stored = run.files.settings() if resume else None
    resolve_device((settings or stored or Settings()).device)  # before any data are read
    if resume and options is None and hierarchy is None:
        start = run.files.start()
        options, hierarchy = start.options, start.hierarchy
        valid = start.valid if valid is None else valid
    if not isinstance(hierarchy, str | Path | None):  # a file is read in the way that the options say
        hierarchy = as_hierarchy(hierarchy)
    given = table_options(options or {})
    opened = open_data(data, root, options=given, hierarchy=hierarchy)
    settings = settings or stored or Settings()
    require_used(settings, has_validation_rows=valid is not None or training_rows(opened, settings)[1] is not None)
    if has_images(opened):
        require_trainable_encoder(settings)
    if encoder is None and has_images(opened):
        encoder = load_encoder(settings.encoder, size=settings.image_size, seed=settings.seed, download=download)
    if encoder is not None:
        encoder = replace(as_encoder(encoder, settings.image_size), device=resolve_device(settings.device))
        run.encoder = encoder.module
    given_validation = None
    if valid is not None:
        given_validation = validation_rows(valid, training_rows(opened, settings)[0], given, root)
    opened, given_validation = usable_data(opened, given_validation, encoder, settings, progress, train=True)
    rows, validation = training_rows(opened, settings)
    rows = require_labels(rows, "training")
    validation = validation if given_validation is None else given_validation
    new_folders = [each for each in (run.folder, *run.folder.parents) if not exists(each)]
    with ExitStack() as locks:
        locks.enter_context(sole_use(run.folder))
        locks.enter_context(nothing_left_if_refused(run, new_folders))  # within the lock: others may begin here next
        is_new = not is_finished(run, rows, validation, settings, resume)
        if is_new:
            _warn_of_copies(rows, validation, opened)
            run.files.write_start(rows.name, settings, data, options, hierarchy, valid)
            announce(run, rows, validation, settings, encoder, callback, progress)
            fitted = fit_model(
                rows,
                settings,
                valid=validation,
                encoder=encoder,
                folder=run.folder,
                resume=resume,
                callback=callback,
                executor=executor,
            )
            try:
                if fitted.held_out is not None and isinstance(opened, Dataset):
                    run.files.write_held_out(fitted.held_out, fitted.model, rows if validation is None else validation)
                with_parts(fitted.model, opened).save(run.folder)  # last: with it, the run is finished
            except OSError as error:
                raise TrainingError(f"the model could not be saved: {error}") from None
        run.files.tidy()
        if report and (is_new or not (run.folder / REPORT).exists()):
            report_on_fit(run, opened, rows, given_validation, progress)


def require_used(settings: Settings, *, has_validation_rows: bool) -> None:
    """Refuse settings that would have no effect. The default of cv gives way to validation rows.

    Raises:
        ArgumentError: holdout or cv is set, and there are validation rows, which replace both.
    """
    usual = Settings.model_fields["cv"].default
    given = [name for name in ("holdout", "cv") if getattr(settings, name) not in (None, usual)]
    if has_validation_rows and given:
        name = given[0]
        raise ArgumentError(
            f"{name}={getattr(settings, name)} would be ignored: there are validation rows, which early stopping and "
            f"thresholds use instead; leave out {name} (--{name}), or the validation rows"
        )


def announce(
    run: Run,
    rows: Dataset,
    valid: Dataset | None,
    settings: Settings,
    encoder: Encoder | None,
    callback: Callback | None,
    progress: Progress | None,
) -> None:
    """Examine training rows, and say what the fit will take, and whether validation rows are few."""
    found = run.files.write_examination(rows, valid)
    if callback is not None:
        callback.on_fit(estimate_fit(rows, settings, encoder=encoder, has_validation_rows=valid is not None))
    for each in found.findings:
        if progress is not None and settings.needs_held_out_rows and each.topic == VALIDATION:
            progress.line(each.text)


def require_free(run: Run, resume: bool) -> None:
    """Refuse, before any work, a folder that contains another training, or that cannot be written to.

    Raises:
        FolderInUseError: a process is training in it.
        ResumeError: it contains a training, and ``resume`` is not set.
        TrainingError: it cannot be created or written to.
    """
    require_writable(run.folder)
    if resume or not (run.files.is_begun or run.files.has_model):
        return
    with sole_use(run.folder):  # what another process has begun is not there to be resumed
        what, advice = "a finished model", "choose another folder"
        if run.files.is_begun:
            what, advice = "an unfinished training", "resume it (--resume), or choose another folder"
        raise ResumeError(f"{run.folder} contains {what}; {advice}")


@contextmanager
def nothing_left_if_refused(run: Run, new_folders: list[Path]) -> Iterator[None]:
    """Remove what was written before training, with new folders, if data or settings turn out not to be usable."""
    folder = run.folder
    new_files = [folder / name for name in STARTED if not exists(folder / name)]
    try:
        yield
    except (ArgumentError, DataError):
        if not (run.files.is_begun or run.files.has_model):
            run.files.tidy()
            for path in new_files:
                path.unlink(missing_ok=True)
            with suppress(OSError):  # one of them has other files
                for each in new_folders:
                    each.rmdir()
        raise


def is_finished(run: Run, rows: Dataset, valid: Dataset | None, settings: Settings, resume: bool) -> bool:
    """Whether this very training is done; another one in the folder is an error."""
    require_free(run, resume)  # again: another process may have been faster
    if run.files.is_begun:
        stored = run.files.settings()
        _require_same(run, {} if stored is None else stored.decisive, settings, [])
        return False
    if not run.files.has_model:
        return False
    model, problems = run.model, []
    if model.fingerprints.get("data") != rows.with_labels_only().fingerprint:
        problems.append("the training rows are not the same")
    if model.fingerprints.get("validation") != (None if valid is None else valid.with_labels_only().fingerprint):
        problems.append("the validation rows are not the same")
    if model.hierarchy != rows.hierarchy:
        problems.append("the hierarchy is not the same")
    _require_same(run, model.settings.decisive, settings, problems)
    return True


def _require_same(run: Run, then: dict[str, Any], settings: Settings, problems: list[str]) -> None:
    now = settings.decisive
    problems += [
        f"{name} was {then[name]!r} and is now {now[name]!r}"
        for name in then
        if then[name] != now[name] and name not in ("engine", "device")  # they agree but for rounding
    ]
    if problems:
        raise ResumeError(f"{run.folder} contains another training: {'; '.join(problems)}")


def report_on_fit(
    run: Run, opened: Dataset | DatasetSplits, rows: Dataset, valid: Dataset | None, progress: Progress | None
) -> None:
    """A report about test rows, or else about held-out or validation rows; none if there are no predictions."""
    unseen = unseen_rows(run, opened, rows, valid)
    if unseen is not None:
        if unseen.probs is None and run.settings.train_encoder:  # these pictures have only been decoded so far
            pictures = replace(unseen.rows, name=unseen.about)
            usable_rows([pictures], run.model.encoder, run.settings, progress)  # keeps embeddings with the pictures
        part = report_on_unseen(run, unseen, name=run.folder.name or str(run.folder))
        write_report(Report((part,)), run.folder / REPORT)


def _warn_of_copies(rows: Dataset, valid: Dataset | None, opened: Dataset | DatasetSplits) -> None:
    """Warn of validation and test pictures that are the same as training pictures, whose content is known by now."""
    if not has_images(rows):
        return
    test = opened.test if isinstance(opened, DatasetSplits) else None
    for found in copies_between(rows, [part for part in (valid, test) if part is not None]):
        text = f"{found.text} ({', '.join(found.examples)}); {found.advice}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
