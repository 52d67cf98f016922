"""`Run`: a training in a folder, and all that can be done with it.

The folder contains the model (``model.json``, ``model.safetensors``, ``README.md``), ``report.html``, and what
`RunFiles` describes. A run never overwrites another: a folder that contains one is refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import torch

from rarenode._io.files import is_dir, sole_use
from rarenode._io.progress import Progress
from rarenode.config import Settings
from rarenode.data.catalogue import SplitName, catalogue
from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.data.sources import Data, open_data, scan_data
from rarenode.data.table_options import TableOptions, table_options
from rarenode.engines import resolve_device
from rarenode.errors import ArgumentError, DataError, MissingFileError, TrainingError
from rarenode.hierarchy import HierarchyLike, as_hierarchy
from rarenode.models.encoder import Encoder
from rarenode.models.pretrained import load_encoder
from rarenode.objective.uncertainties import check_kind
from rarenode.report import Report, RunReport, report_on_model, write_report
from rarenode.run.evaluation import Evaluation, evaluate_model
from rarenode.run.files import REPORT, RunFiles
from rarenode.run.fitting import is_finished, nothing_left_if_refused, report_on_fit, require_free
from rarenode.run.predictions import Choice, Predictions, check_output, write_predictions
from rarenode.run.rows import (
    has_images,
    is_same_file,
    pictures_of,
    training_rows,
    usable_parts,
    usable_rows,
    validation_rows,
    with_parts,
)
from rarenode.training import Callback, EpochRecord, TrainedModel, fit_model
from rarenode.training.estimate import estimate_fit
from rarenode.training.out_of_fold import fold_folders
from rarenode.training.train import require_labels, require_trainable_encoder

CELLS_AT_A_TIME = 1 << 22
"""Rows are predicted into files in parts of about so many probabilities."""
TRAINED_ON = "the model was trained on these rows; scores on new rows will be lower"


class Written(NamedTuple):
    """What `Run.predict_to_file` wrote."""

    rows: int
    lines: int
    without_labels: int
    """Rows for which no node was decided."""
    decided: int = 0
    """Decided nodes of all rows, ancestors included."""


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

    def __init__(self, folder: Path | str, encoder: torch.nn.Module | Encoder | None = None) -> None:
        """Open the folder of a run; a model whose encoder is none of the transformers library needs its module."""
        if folder == "":
            raise ArgumentError("the name of the run's folder is empty; the current folder is '.'")
        self.folder = Path(folder)
        self._encoder = encoder
        self.files = RunFiles(self.folder)

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
        valid: Data | None = None,
        hierarchy: HierarchyLike | None = None,
        options: Mapping[str, Any] | None = None,
        resume: bool = False,
        report: bool = True,
        encoder: Encoder | None = None,
        download: bool = False,
        callback: Callback | None = None,
        progress: Progress | None = None,
        root: Path | str | None = None,
    ) -> Self:
        """Train a model, and save it in a folder.

        Args:
            data: rows, a file of rows, a data frame, a folder of pictures, or a name of the catalogue, whose training
                and validation rows are used.
            folder: where the run is kept; it is created.
            settings: how to train and decide; None: the defaults or, with ``resume``, those of the stopped run.
            valid: validation rows; early stopping and thresholds then use these, instead of ``cv`` and ``holdout``.
            hierarchy: of the labels of a table: a `Hierarchy`, a file, nested names, (parent, child) pairs or a
                networkx graph; None: the one that paths or levels make.
            options: which columns of a table are what, as in `TableOptions`: ``labels``, ``id``, ``features``, ...
            resume: continue a training that was stopped; if it is finished, write only a report that is not there.
            report: also write ``report.html``, about rows that were not used for training. If there are none, or if
                ``held_out.safetensors`` of a finished run was removed, there is no report.
            encoder: what looks at pictures; None: the one that the settings name.
            download: whether the weights of that encoder may be fetched if they are not on this machine.
            callback: is called after every step and epoch.
            progress: shows how far the embedding of pictures is.
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
        require_free(run, resume)
        stored = run.files.settings() if resume else None
        if resume and options is None and hierarchy is None:
            options, hierarchy, stored_valid = run.files.table()
            valid = stored_valid if valid is None else valid
        if not isinstance(hierarchy, str | Path | None):  # a file is read in the way that the options say
            hierarchy = as_hierarchy(hierarchy)
        given = table_options(options or {})
        opened = open_data(data, root, options=given, hierarchy=hierarchy)
        settings = settings or stored or Settings()
        if has_images(opened):
            require_trainable_encoder(settings)
        if encoder is None and has_images(opened):
            encoder = load_encoder(settings.encoder, size=settings.image_size, seed=settings.seed, download=download)
        run._encoder = None if encoder is None else encoder.module
        if encoder is not None:
            encoder = replace(encoder, device=resolve_device(settings.device))
        opened = usable_parts(opened, encoder, settings, progress)
        rows, validation = training_rows(opened, settings)
        rows = require_labels(rows, "training")
        if valid is not None:
            validation = validation_rows(valid, rows, given, root)
            validation = usable_rows(validation, encoder, settings, progress, train=True)
        with ExitStack() as locks:
            locks.enter_context(nothing_left_if_refused(run))
            locks.enter_context(sole_use(run.folder))
            for part in fold_folders(run.folder):
                locks.enter_context(sole_use(part))
            is_new = not is_finished(run, rows, settings, resume)
            if is_new:
                run.files.write_start(rows.name, settings, options, hierarchy, valid)
                run.files.write_examination(rows)
                if callback is not None:
                    callback.on_fit(estimate_fit(rows, settings, encoder=encoder))
                fitted = fit_model(
                    rows,
                    settings,
                    valid=validation,
                    encoder=encoder,
                    folder=run.folder,
                    resume=resume,
                    callback=callback,
                )
                try:
                    if fitted.held_out is not None and isinstance(opened, Dataset):
                        run.files.write_held_out(fitted.held_out, fitted.model)
                    with_parts(fitted.model, opened).save(run.folder)  # last: with it, the run is finished
                except OSError as error:
                    raise TrainingError(f"the model could not be saved: {error}") from None
            run.files.tidy()
            if report and (is_new or not (run.folder / REPORT).exists()):
                report_on_fit(run, opened, rows, None if valid is None else validation)
        return run

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
        if self.files.is_begun and not self.files.has_model:
            raise MissingFileError(f"{self.folder} contains an unfinished training; finish it with resume (--resume)")
        return TrainedModel.load(self.folder, self._encoder)

    # --- use -----------------------------------------------------------------------------------------------------

    def evaluate(
        self,
        data: Data | None = None,
        *,
        split: SplitName | None = None,
        thresholds: str | None = None,
        options: Mapping[str, Any] | None = None,
        root: Path | str | None = None,
    ) -> Evaluation:
        """Compare the model's decisions with the labels of rows.

        Args:
            data: labelled rows, a file, a data frame, or a name of the catalogue; None: the dataset of the catalogue
                that the model was trained on.
            split: which part of a dataset that has parts; None: test.
            thresholds: a strategy that needs no labels, instead of the model's thresholds.
            options: options of a table that differ from those of the training table, such as a file of labels.
            root: the folder that holds the datasets of the catalogue.

        Raises:
            DataError: the rows have no labels, or other features or another hierarchy than the model.
        """
        rows, left_out = self._labelled_rows(data, split, root, options)
        trained_on = self._was_trained_on(rows, split)
        return evaluate_model(self.model, rows, thresholds, trained_on=trained_on, left_out=left_out)

    def predict(
        self,
        data: Data,
        *,
        split: SplitName | None = None,
        thresholds: str | None = None,
        min_confidence: float = 0.0,
        uncertainty: str = "gmu",
        options: Mapping[str, Any] | None = None,
        root: Path | str | None = None,
    ) -> Predictions:
        """Predict rows; their labels, if they have any, are ignored.

        Args:
            data: rows, files, a data frame, or a name of the catalogue.
            split: which part of a dataset that has parts; None: test.
            thresholds: a strategy that needs no labels, instead of the model's thresholds.
            min_confidence: decide no node that is less probable than this. Labels then end at the deepest node that is
                probable enough, as people write "Acropora sp." where they cannot tell the species.
            uncertainty: the kind that the result contains; see `rarenode.uncertainty`.
            options: options of a table that differ from those of the training table, such as the folder of pictures.
            root: the folder that holds the datasets of the catalogue.
        """
        check_kind(uncertainty)
        rows = self._rows(data, split, root, options, labels=False)
        return self._predict(rows, thresholds, min_confidence, uncertainty)

    def predict_to_file(
        self,
        data: Data,
        out: Path | str,
        *,
        choice: Choice | None = None,
        split: SplitName | None = None,
        thresholds: str | None = None,
        min_confidence: float = 0.0,
        uncertainty: str = "gmu",
        options: Mapping[str, Any] | None = None,
        root: Path | str | None = None,
        progress: Progress | None = None,
    ) -> Written:
        """Predict rows into a file, some at a time: neither rows in Parquet nor predictions need fit into memory.

        Args:
            data: rows, files, a data frame, or a name of the catalogue.
            out: the file, ending in .csv, .tsv, .parquet or .jsonl.
            choice: what to write, and how; see `Choice`.
            split: as in `predict`, as for the other arguments.
            thresholds: one that is fitted to the rows themselves needs all of them in memory.
            min_confidence: decide no node that is less probable than this.
            uncertainty: the kind that the file contains.
            options: options of a table that differ from those of the training table, such as the folder of pictures.
            root: the folder that holds the datasets of the catalogue.
            progress: shows how far it is.

        Returns:
            How many rows were predicted, how many lines written, and how many rows have no label.
        """
        check_kind(uncertainty)
        choice = Choice() if choice is None else choice
        check_output(Path(out), choice.layout)
        sources = [data] if isinstance(data, str | Path) else data if isinstance(data, list | tuple) else []
        if any(is_same_file(each, out) for each in sources):
            raise ArgumentError(f"{out}: the predictions would replace the data; choose another name (--out)")
        model, display = self.model, progress or Progress(quiet=True)
        at_a_time = max(1, CELLS_AT_A_TIME // max(1, len(model.hierarchy)))
        rows = without_labels = decided = 0

        def predicted() -> Iterator[Predictions]:
            nonlocal rows, without_labels, decided
            for part, total in self._parts(
                data, split, root, at_a_time if thresholds is None else None, options, display
            ):
                display.start("predicting", max(1, total), rows) if not rows else None
                found = self._predict(part, thresholds, min_confidence, uncertainty)
                yield replace(found, first_row=rows)
                rows += len(part)
                without_labels += int(np.count_nonzero(~found.decided.any(axis=1)))
                decided += int(np.count_nonzero(found.decided))
                display.update(rows, f"{rows:,} of {total:,} rows")

        try:
            lines = write_predictions(predicted(), out, choice)
        finally:
            display.stop()
        return Written(rows, lines, without_labels, decided)

    def _predict(self, rows: Dataset, thresholds: str | None, min_confidence: float, uncertainty: str) -> Predictions:
        model = self.model
        model.check_match(rows, labels=False)
        output = model.compute(rows.X, uncertainty=uncertainty)
        assert output.uncertainty is not None  # noqa: S101 (it was requested)
        chosen = model.decides_with if thresholds is None else model.thresholds_for(output.probs, thresholds)
        scored = model.scored
        probs = output.probs[:, scored]
        return Predictions(
            hierarchy=model.hierarchy,
            scored=scored,
            probs=probs,
            decided=chosen.decide(output.probs, model.hierarchy)[:, scored] & (probs >= min_confidence),
            uncertainty=output.uncertainty[:, scored],
            thresholds=chosen.in_words(fitted_here=thresholds is not None),
            ids=rows.ids,
            id_name=(rows.reading.id if rows.reading is not None else None) or "id",
        )

    def _parts(
        self,
        data: Data,
        split: SplitName | None,
        root: Path | str | None,
        at_a_time: int | None,
        options: Mapping[str, Any] | None,
        progress: Progress,
    ) -> Iterator[tuple[Dataset, int]]:
        """Rows to predict, some at a time, and the number of all."""
        self._reading(options)  # refuses what the table would not need
        if at_a_time is not None and not isinstance(data, Dataset | DatasetSplits) and split is None:
            scanned = scan_data(data, self.model.expects, at_a_time)
            if scanned is not None:
                yield from scanned
                return
        rows = self._rows(data, split, root, options, labels=False, progress=progress)
        size = at_a_time or max(1, len(rows))
        for first in range(0, max(1, len(rows)), size):
            yield rows.take(np.arange(first, min(first + size, len(rows)))), len(rows)

    def report(
        self,
        out: Path | str | None = None,
        data: Data | None = None,
        *,
        split: SplitName | None = None,
        thresholds: str | None = None,
        options: Mapping[str, Any] | None = None,
        name: str | None = None,
        root: Path | str | None = None,
    ) -> Path:
        """Write an HTML page about the run, and its numbers and plots beside it; arguments are those of `evaluate`.

        Args:
            out: the page to write; None: ``report.html`` in the run's folder.
            data: labelled rows to report on.
            split: which part of a dataset that has parts.
            thresholds: a strategy that needs no labels, instead of the model's thresholds.
            options: options of a table that differ from those of the training table, such as a file of labels.
            name: what the run is called on the page; None: its path.
            root: the folder that holds the datasets of the catalogue.

        Returns:
            The page.
        """
        part = self.report_part(data, split=split, thresholds=thresholds, options=options, name=name, root=root)
        page, *_ = write_report(Report((part,)), self.folder / REPORT if out is None else Path(out))
        return page

    def report_part(
        self,
        data: Data | None = None,
        *,
        split: SplitName | None = None,
        thresholds: str | None = None,
        options: Mapping[str, Any] | None = None,
        name: str | None = None,
        root: Path | str | None = None,
    ) -> RunReport:
        """What a page says about this run; `rarenode.report.Report` joins several runs on one page."""
        rows, _ = self._labelled_rows(data, split, root, options)
        which = f"{rows.name}, {split or 'test'} rows" if rows.name in catalogue() else rows.name
        if self._was_trained_on(rows, split):
            which = f"{which} ({TRAINED_ON})"
        part = report_on_model(
            self.model,
            rows.X,
            rows.Y,
            name=name or str(self.folder),
            rows=which,
            thresholds=thresholds,
            known=rows.known,
            ids=rows.ids,
            pictures=pictures_of(rows),
        )
        return replace(part, examination=self.files.examination())

    def rows_to_examine(
        self, data: list[str | Path], options: Mapping[str, Any] | None, root: Path | str | None
    ) -> Dataset | None:
        """Rows for `rarenode doctor`: labelled or not, or those of the catalogue; None if there are none."""
        if not data:
            return self._rows(None, None, root) if self.model.source in catalogue() else None
        source = data[0] if len(data) == 1 else data
        reading = self.model.reading
        wanted = (options or {}).get("labels") or (() if reading is None else reading.labels)
        try:
            return self._rows(source, None, root, options, labels=bool(wanted) or reading is None)
        except ArgumentError:
            if reading is None or (options or {}).get("labels"):
                raise
            return self._rows(source, None, root, options, labels=False)  # the columns of labels are not there

    # --- inside --------------------------------------------------------------------------------------------------

    def _rows(
        self,
        data: Data | None,
        split: SplitName | None,
        root: Path | str | None,
        options: Mapping[str, Any] | None = None,
        *,
        labels: bool = True,
        progress: Progress | None = None,
    ) -> Dataset:
        if data is None:
            data = self.model.source
            if data not in catalogue():
                raise ArgumentError(f"{self.folder} was not trained on a dataset of the catalogue; name the data")
        opened = open_data(data, root, options=self._reading(options), expected=self.model.expects, labels=labels)
        if isinstance(opened, DatasetSplits):
            opened = opened.part(split or "test")
        elif split is not None:
            raise ArgumentError(f"{opened.name or 'the data'} has no {split} rows: it is not divided into parts")
        return usable_rows(opened, self.model.encoder, self.model.settings, progress)

    def _reading(self, options: Mapping[str, Any] | None) -> TableOptions:
        """How to read rows for the model: as its own, but for the options that are given.

        Raises:
            ArgumentError: they are about pictures, and the model was trained on a table.
        """
        reading = table_options(options or {}, self.model.reading)
        if reading.has_images and self.model.encoder is None:
            raise ArgumentError(f"{self.folder} was trained on a table without pictures; leave out --images, --image")
        return reading

    def _labelled_rows(
        self,
        data: Data | None,
        split: SplitName | None,
        root: Path | str | None,
        options: Mapping[str, Any] | None = None,
    ) -> tuple[Dataset, int]:
        """Labelled rows, and how many others there are."""
        rows = self._rows(data, split, root, options)
        self.model.check_match(rows, labels=True)
        labelled = rows.with_labels_only()
        rows.hierarchy.require_closed(labelled.Y)
        if not len(labelled):
            raise DataError(f"{rows.name or 'the data'}: no row has labels to compare predictions with")
        return labelled, len(rows) - len(labelled)

    def _was_trained_on(self, rows: Dataset, split: SplitName | None) -> bool:
        """Whether these rows were used for training, as far as is known: the same rows, split or file."""
        if rows.name in catalogue():
            return rows.name == self.model.source and split in ("train", "valid")
        here = replace(rows, scored=self.model.scored).fingerprint
        if here in {self.model.fingerprints.get(name) for name in ("data", "train", "valid")}:
            return True
        return bool(rows.name) and is_same_file(rows.name, self.model.source)
