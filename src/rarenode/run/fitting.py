"""What happens to a run's folder around a training: whether it is free, what a refusal leaves, the report."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rarenode._io.files import exists, sole_use
from rarenode.config import Settings
from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.data.features import take_rows
from rarenode.errors import ArgumentError, DataError, ResumeError
from rarenode.models import Output
from rarenode.report import Report, report_on_model, report_on_predictions, write_report
from rarenode.run.files import HELD_OUT, REPORT, STARTED
from rarenode.run.rows import pictures_of

if TYPE_CHECKING:
    from rarenode.run.run import Run


def require_free(run: Run, resume: bool) -> None:
    """Refuse, before any work, a folder that contains another training.

    Raises:
        FolderInUseError: a process is training in it.
        ResumeError: it contains a training, and ``resume`` is not set.
    """
    if resume or not (run.files.is_begun or run.files.has_model):
        return
    with sole_use(run.folder):  # what another process has begun is not there to be resumed
        what, advice = "a finished model", "choose another folder"
        if run.files.is_begun:
            what, advice = "an unfinished training", "resume it (--resume), or choose another folder"
        raise ResumeError(f"{run.folder} contains {what}; {advice}")


@contextmanager
def nothing_left_if_refused(run: Run) -> Iterator[None]:
    """Remove what was written before training, folders included, if data or settings turn out not to be usable."""
    folder = run.folder
    new_folders = [each for each in (folder, *folder.parents) if not exists(each)]
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


def is_finished(run: Run, rows: Dataset, settings: Settings, resume: bool) -> bool:
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


def report_on_fit(run: Run, opened: Dataset | DatasetSplits, rows: Dataset, valid: Dataset | None) -> None:
    """A report about test rows, or else about held-out or validation rows; none if there are no predictions."""
    name = run.folder.name or str(run.folder)
    model = run.model
    if isinstance(opened, DatasetSplits):
        test = opened.test.with_labels_only()
        about = f"{opened.name}, test rows"
        part = report_on_model(
            model,
            test.X,
            test.Y,
            name=name,
            rows=about,
            known=test.known,
            ids=test.ids,
            pictures=pictures_of(test),
        )
    elif model.settings.holds_out_rows and (run.folder / HELD_OUT).exists():
        held_out = run.files.held_out(model)
        numbers, probs = held_out["rows"], held_out["probs"]
        one_model, kind = model.settings.holdout is not None, "out-of-fold predictions"
        if valid is not None:
            rows, one_model, kind = valid.with_labels_only(), True, "validation rows"
            if len(rows) != len(numbers):
                raise ResumeError(f"{rows.name or 'the validation rows'}: they are not those of the training")
        elif one_model:
            kind = "held-out rows"
        pictures = pictures_of(rows)
        # The models of folds are gone, and the final model has seen their rows.
        output = model.compute(take_rows(rows.X, numbers), highest=True, uncertainty="gmu") if one_model else None
        part = report_on_predictions(
            model,
            rows.Y[numbers],
            Output(probs) if output is None else output,
            name=name,
            rows=f"{rows.name}, {kind}",
            thresholds=model.decides_with,
            training_rows=held_out["training_support"],
            row_numbers=numbers,
            fitted_here=True,
            known=None if rows.known is None else rows.known[numbers],
            ids=None if rows.ids is None else [rows.ids[number] for number in numbers.tolist()],
            pictures=None if pictures is None else pictures[numbers],
        )
    else:
        return
    write_report(Report((replace(part, examination=run.files.examination()),)), run.folder / REPORT)
