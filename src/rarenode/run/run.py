"""`Run`: a training in a folder, and all that can be done with it.

The folder contains the model (``model.json``, ``model.safetensors``, ``README.md``), ``settings.toml``,
``report.html`` and, if the report is about held-out rows, their predictions in ``held_out.safetensors``, from which it
can be written again. While a training is under way it also contains checkpoints and, in ``.fold-1``, ``.fold-2``, ...,
the models of folds. ``settings.toml`` is written before training begins, so a stopped training is resumed without
repeating its settings. A run never overwrites another: a folder that contains one is refused.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rarenode._io.arrays import Arrays, Layout, read_arrays, read_note, write_arrays
from rarenode._io.files import exists, is_dir, replacing, sole_use
from rarenode._io.text import explain
from rarenode.config import Settings
from rarenode.data.catalogue import SplitName, catalogue
from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.data.sources import Data, open_data
from rarenode.errors import ArgumentError, DataError, FileFormatError, MissingFileError, ResumeError, TrainingError
from rarenode.metrics import GroupedSummary, summarize_groups
from rarenode.models import Output
from rarenode.objective.uncertainties import check_kind
from rarenode.report import Report, RunReport, report_on_model, report_on_predictions, write_report
from rarenode.run.predictions import Predictions
from rarenode.training import Callback, EpochRecord, TrainedModel, fit_model
from rarenode.training.checkpoint import FILE as CHECKPOINT
from rarenode.training.checkpoint import remove_checkpoint
from rarenode.training.model_folder import RECORD
from rarenode.training.out_of_fold import OutOfFold, fold_folders, remove_folds
from rarenode.training.train import require_labels
from rarenode.version import __version__

SETTINGS, REPORT, HELD_OUT = "settings.toml", "report.html", "held_out.safetensors"
TRAINED_ON = "the model was trained on these rows; scores on new rows will be lower"


@dataclass(frozen=True, eq=False)
class Evaluation:
    """How well a model finds the nodes of labelled rows."""

    scores: GroupedSummary
    """Over all scored nodes, and by rarity and depth."""
    data: str
    """Where the rows come from."""
    rows: int
    thresholds: str
    """How the thresholds were chosen, in words."""
    trained_on: bool
    """Whether the model was trained on these rows, as far as is known."""


class _HeldOut(BaseModel):
    """What ``held_out.safetensors`` says about its arrays: how many rows, and of which training."""

    model_config = ConfigDict(strict=True, extra="forbid")

    rows: Annotated[int, Field(ge=1)]
    data: str
    settings: str


class Run:
    """A training in a folder.

    >>> import tempfile
    >>> from rarenode import make_hierarchical
    >>> data = make_hierarchical(rows=400, nodes=30, depth=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     run = Run.fit(data, folder, Settings(hidden_size=20, n_trees=10, epochs=3, holdout=0.2), report=False)
    ...     run.evaluate(data).rows, len(run.predict(data))
    (100, 100)
    """

    def __init__(self, folder: Path | str) -> None:
        if folder == "":
            raise ArgumentError("the name of the run's folder is empty; the current folder is '.'")
        self.folder = Path(folder)

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    # --- training ------------------------------------------------------------------------------------------------

    @classmethod
    def fit(
        cls,
        data: Data,
        folder: Path | str,
        settings: Settings | None = None,
        *,
        resume: bool = False,
        report: bool = True,
        callback: Callback | None = None,
        root: Path | str | None = None,
    ) -> Self:
        """Train a model, and save it in a folder.

        Args:
            data: rows, a file of rows, or a name of the catalogue, whose training and validation rows are used.
            folder: where the run is kept; it is created.
            settings: how to train and decide; None: the defaults or, with ``resume``, those of the stopped run.
            resume: continue a training that was stopped; if it is finished, write only a report that is not there.
            report: also write ``report.html``, about rows that were not used for training. If there are none, or if
                ``held_out.safetensors`` of a finished run was removed, there is no report.
            callback: is called after every step and epoch.
            root: the folder that holds the datasets of the catalogue.

        Raises:
            ResumeError: the folder contains another run, or this one and ``resume`` is not set.
            Interrupted: Ctrl-C; what is done is kept, and ``resume`` continues.
            FolderInUseError: another process is using the folder.
            RarenodeError: data or settings cannot be used; see the other errors.
        """
        if not isinstance(settings, Settings | None):
            raise ArgumentError(
                f"settings must be Settings or None, got {type(settings).__name__}; Settings(epochs=10) is an example"
            )
        run = cls(folder)
        opened = open_data(data, root)
        stored = run.stored_settings() if resume else None
        settings = settings or stored or Settings()
        rows, valid = _training_rows(opened, settings)
        rows = require_labels(rows, "training")
        with ExitStack() as locks:
            locks.enter_context(sole_use(run.folder))
            for part in fold_folders(run.folder):
                locks.enter_context(sole_use(part))
            is_new = not run._is_finished(rows, settings, resume)
            if is_new:
                run._write_settings(rows.name, settings)
                fitted = fit_model(rows, settings, valid=valid, folder=run.folder, resume=resume, callback=callback)
                try:
                    if fitted.held_out is not None and isinstance(opened, Dataset):
                        run._write_held_out(fitted.held_out, fitted.model)
                    _with_parts(fitted.model, opened).save(run.folder)  # last: with it, the run is finished
                except OSError as error:
                    raise TrainingError(f"the model could not be saved: {error}") from None
            run._tidy()
            if report and (is_new or not (run.folder / REPORT).exists()):
                run._report_on_fit(opened, rows)
        return run

    def stored_settings(self) -> Settings | None:
        """The settings that the run was started with; None if the folder contains none."""
        path = self.folder / SETTINGS
        return Settings.from_toml(path) if exists(path) else None

    @property
    def settings(self) -> Settings:
        """The settings of the model."""
        return self.model.settings

    @property
    def history(self) -> tuple[EpochRecord, ...]:
        """One record for each epoch of the final training."""
        return self.model.history

    @cached_property
    def model(self) -> TrainedModel:
        """The trained model.

        Raises:
            MissingFileError: the folder contains no complete model.
            FileFormatError: a file is damaged.
        """
        if not is_dir(self.folder):
            raise MissingFileError(f"{self.folder}: there is no such folder; `rarenode fit` makes one")
        if self._is_begun() and not (self.folder / RECORD).exists():
            raise MissingFileError(f"{self.folder} contains an unfinished training; finish it with resume (--resume)")
        return TrainedModel.load(self.folder)

    # --- use -----------------------------------------------------------------------------------------------------

    def evaluate(
        self,
        data: Data | None = None,
        *,
        split: SplitName | None = None,
        thresholds: str | None = None,
        root: Path | str | None = None,
    ) -> Evaluation:
        """Compare the model's decisions with the labels of rows.

        Args:
            data: labelled rows, a file, or a name of the catalogue; None: the dataset of the catalogue that the model
                was trained on.
            split: which part of a dataset that has parts; None: test.
            thresholds: a strategy that needs no labels, instead of the model's thresholds.
            root: the folder that holds the datasets of the catalogue.

        Raises:
            DataError: the rows have no labels, or other features or another hierarchy than the model.
        """
        rows = self._labelled_rows(data, split, root)
        model = self.model
        probs = model.predict_proba(rows.X)
        chosen = model.decides_with if thresholds is None else model.thresholds_for(probs, thresholds)
        decided = chosen.decide(probs, model.hierarchy)
        return Evaluation(
            scores=summarize_groups(
                rows.Y, probs, decided, model.hierarchy, model.training_positives, model.scored, rows.known
            ),
            data=rows.name,
            rows=len(rows),
            thresholds=chosen.in_words(fitted_here=thresholds is not None),
            trained_on=self._was_trained_on(rows, split),
        )

    def predict(
        self,
        data: Data,
        *,
        split: SplitName | None = None,
        thresholds: str | None = None,
        uncertainty: str = "gmu",
        root: Path | str | None = None,
    ) -> Predictions:
        """Predict rows; their labels, if they have any, are ignored. Arguments are those of `evaluate`.

        ``uncertainty`` is the kind that the result contains; see `rarenode.uncertainty`.
        """
        check_kind(uncertainty)
        model = self.model
        rows = self._rows(data, split, root)
        model.check_match(rows, labels=False)
        output = model.compute(rows.X, uncertainty=uncertainty)
        assert output.uncertainty is not None  # noqa: S101 (it was requested)
        chosen = model.decides_with if thresholds is None else model.thresholds_for(output.probs, thresholds)
        scored = model.scored
        return Predictions(
            nodes=tuple(node for node, counts in zip(model.hierarchy.nodes, scored.tolist(), strict=True) if counts),
            probs=output.probs[:, scored],
            decided=chosen.decide(output.probs, model.hierarchy)[:, scored],
            uncertainty=output.uncertainty[:, scored],
            thresholds=chosen.in_words(fitted_here=thresholds is not None),
        )

    def report(
        self,
        out: Path | str | None = None,
        data: Data | None = None,
        *,
        split: SplitName | None = None,
        thresholds: str | None = None,
        name: str | None = None,
        root: Path | str | None = None,
    ) -> Path:
        """Write an HTML page about the run, and its numbers and plots beside it; arguments are those of `evaluate`.

        Args:
            out: the page to write; None: ``report.html`` in the run's folder.
            data: labelled rows to report on.
            split: which part of a dataset that has parts.
            thresholds: a strategy that needs no labels, instead of the model's thresholds.
            name: what the run is called on the page; None: its path.
            root: the folder that holds the datasets of the catalogue.

        Returns:
            The page.
        """
        part = self.report_part(data, split=split, thresholds=thresholds, name=name, root=root)
        page, *_ = write_report(Report((part,)), self.folder / REPORT if out is None else Path(out))
        return page

    def report_part(
        self,
        data: Data | None = None,
        *,
        split: SplitName | None = None,
        thresholds: str | None = None,
        name: str | None = None,
        root: Path | str | None = None,
    ) -> RunReport:
        """What a page says about this run; `rarenode.report.Report` joins several runs on one page."""
        rows = self._labelled_rows(data, split, root)
        which = f"{rows.name}, {split or 'test'} rows" if rows.name in catalogue() else rows.name
        if self._was_trained_on(rows, split):
            which = f"{which} ({TRAINED_ON})"
        return report_on_model(
            self.model,
            rows.X,
            rows.Y,
            name=name or str(self.folder),
            rows=which,
            thresholds=thresholds,
            known=rows.known,
        )

    # --- inside --------------------------------------------------------------------------------------------------

    def _rows(self, data: Data | None, split: SplitName | None, root: Path | str | None) -> Dataset:
        if data is None:
            data = self.model.source
            if data not in catalogue():
                raise ArgumentError(f"{self.folder} was not trained on a dataset of the catalogue; name the data")
        opened = open_data(data, root, self.model.hierarchy)
        if isinstance(opened, DatasetSplits):
            return opened.part(split or "test")
        if split is not None:
            raise ArgumentError(f"{opened.name or 'the data'} has no {split} rows: it is not divided into parts")
        return opened

    def _labelled_rows(self, data: Data | None, split: SplitName | None, root: Path | str | None) -> Dataset:
        rows = self._rows(data, split, root)
        self.model.check_match(rows, labels=True)
        labelled = rows.with_labels_only()
        rows.hierarchy.require_closed(labelled.Y)
        if not len(labelled):
            raise DataError(f"{rows.name or 'the data'}: no row has labels to compare predictions with")
        return labelled

    def _was_trained_on(self, rows: Dataset, split: SplitName | None) -> bool:
        """Whether these rows were used for training, as far as is known: the same rows, split or file."""
        if rows.name in catalogue():
            return rows.name == self.model.source and split in ("train", "valid")
        here = replace(rows, scored=self.model.scored).fingerprint
        if here in {self.model.fingerprints.get(name) for name in ("data", "train", "valid")}:
            return True
        with suppress(OSError, ValueError):  # the source is not there, or is not a path at all
            return bool(rows.name) and Path(rows.name).samefile(self.model.source)
        return False

    def _is_finished(self, rows: Dataset, settings: Settings, resume: bool) -> bool:
        """Whether this very training is done; another one in the folder is an error."""
        if self._is_begun():
            if not resume:
                raise ResumeError(
                    f"{self.folder} contains an unfinished training; resume it (--resume), or choose another folder"
                )
            stored = self.stored_settings()
            self._require_same({} if stored is None else stored.decisive, settings, [])
            return False
        if not (self.folder / RECORD).exists():
            return False
        if not resume:
            raise ResumeError(f"{self.folder} contains a finished model; choose another folder")
        model, problems = self.model, []
        if model.fingerprints.get("data") != rows.with_labels_only().fingerprint:
            problems.append("the training rows are not the same")
        if model.hierarchy != rows.hierarchy:
            problems.append("the hierarchy is not the same")
        self._require_same(model.settings.decisive, settings, problems)
        return True

    def _require_same(self, then: dict[str, Any], settings: Settings, problems: list[str]) -> None:
        now = settings.decisive
        problems += [
            f"{name} was {then[name]!r} and is now {now[name]!r}"
            for name in then
            if then[name] != now[name] and name not in ("engine", "device")  # they agree but for rounding
        ]
        if problems:
            raise ResumeError(f"{self.folder} contains another training: {'; '.join(problems)}")

    def _is_begun(self) -> bool:
        """Whether there is something to resume; folds beside a model are only left over."""
        if (self.folder / CHECKPOINT).exists():
            return True
        folds = any((part / name).exists() for part in fold_folders(self.folder) for name in (CHECKPOINT, RECORD))
        return folds and not (self.folder / RECORD).exists()

    def _write_settings(self, source: str, settings: Settings) -> None:
        if self._is_begun():  # a checkpoint belongs to the settings that are there already
            return
        try:
            with replacing(self.folder / SETTINGS) as (part,):
                part.write_text(f"# rarenode {__version__}: fit {source!r}\n\n{settings.to_toml()}", encoding="utf-8")
        except OSError as error:
            raise ArgumentError(f"{self.folder}: settings cannot be written: {error}") from None

    def _report_on_fit(self, opened: Dataset | DatasetSplits, rows: Dataset) -> None:
        """A report about test rows, or else about held-out rows; none if their predictions are not there."""
        name = self.folder.name or str(self.folder)
        model = self.model
        if isinstance(opened, DatasetSplits):
            test = opened.test.with_labels_only()
            about = f"{opened.name}, test rows"
            part = report_on_model(model, test.X, test.Y, name=name, rows=about, known=test.known)
        elif model.settings.holds_out_rows and (self.folder / HELD_OUT).exists():
            held_out = self._read_held_out()
            numbers, probs = held_out["rows"], held_out["probs"]
            one_model = model.settings.holdout is not None
            # The models of folds are gone, and the final model has seen their rows.
            output = model.compute(rows.X[numbers], highest=True, uncertainty="gmu") if one_model else None
            part = report_on_predictions(
                model,
                rows.Y[numbers],
                Output(probs) if output is None else replace(output, probs=probs),
                name=name,
                rows=f"{rows.name}, {'held-out rows' if one_model else 'out-of-fold predictions'}",
                thresholds=model.decides_with,
                training_rows=held_out["training_support"],
                row_numbers=numbers,
                fitted_here=True,
                known=None if rows.known is None else rows.known[numbers],
            )
        else:
            return
        write_report(Report((part,)), self.folder / REPORT)

    def _write_held_out(self, held_out: OutOfFold, model: TrainedModel) -> None:
        """Keep what a report about held-out rows is made from: the models of folds are removed."""
        arrays = {name: getattr(held_out, name) for name in ("rows", "probs", "training_support")}
        note = _HeldOut(rows=len(held_out.rows), data=model.fingerprints["data"], settings=model.settings.fingerprint)
        with replacing(self.folder / HELD_OUT) as (part,):
            write_arrays(part, arrays, note.model_dump_json())

    def _read_held_out(self) -> Arrays:
        path, model = self.folder / HELD_OUT, self.model
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
        }
        return read_arrays(path, layout)

    def _tidy(self) -> None:
        """Remove what a finished run no longer needs. The checkpoint goes first: without it, the run is finished."""
        remove_checkpoint(self.folder)
        remove_folds(self.folder)


def _with_parts(model: TrainedModel, opened: Dataset | DatasetSplits) -> TrainedModel:
    """The model, which now recognises the training and validation rows of a dataset when it sees them alone."""
    if isinstance(opened, Dataset):
        return model
    parts = {"train": opened.train, "valid": opened.valid}
    known = {name: part.fingerprint for name, part in parts.items() if part is not None}
    return replace(model, fingerprints={**model.fingerprints, **known})


def _training_rows(opened: Dataset | DatasetSplits, settings: Settings) -> tuple[Dataset, Dataset | None]:
    """Rows to train on, and rows for early stopping where neither cv nor holdout provides them."""
    if isinstance(opened, Dataset):
        return opened, None
    if settings.patience is not None and settings.cv is None and settings.holdout is None:
        return opened.train, opened.part("valid")
    return opened.train_and_valid, None
