"""`Run`: a training in a folder, and all that can be done with it.

The folder contains the model (``model.json``, ``model.safetensors``, ``README.md``), ``report.html``, and what
`RunFiles` describes. A run never overwrites another: a folder that contains one is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import torch

from rarenode._io.files import is_dir
from rarenode._io.progress import Progress
from rarenode.config import Settings
from rarenode.data.catalogue import SplitName, catalogue
from rarenode.data.sources import Data
from rarenode.errors import ArgumentError, MissingFileError
from rarenode.executors import make_executor
from rarenode.hierarchy import HierarchyLike
from rarenode.models.encoder import Encoder
from rarenode.report import Report, RunReport, report_on_model, write_report
from rarenode.run.evaluation import TRAINED_ON, Evaluation, evaluate_model, evaluate_unseen, note_on_use
from rarenode.run.files import REPORT, RunFiles
from rarenode.run.fitting import fit_in_folder
from rarenode.run.model_rows import labelled_rows_for, own_unseen_rows, rows_for, use_of
from rarenode.run.predicting import How, Written, predict_into_file, predict_rows
from rarenode.run.predictions import Choice, Predictions
from rarenode.run.rows import pictures_of
from rarenode.run.shards import WrittenFolder, predict_into_folder
from rarenode.run.unseen import report_on_unseen
from rarenode.training import Callback, EpochRecord, TrainedModel


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

    def __init__(
        self, folder: Path | str, encoder: torch.nn.Module | Encoder | None = None, device: str | None = None
    ) -> None:
        """Open the folder of a run.

        Args:
            folder: where the run is kept.
            encoder: the module of an encoder that is none of the transformers library.
            device: where predictions are computed; None: on that of the training or, where it is not there, the CPU.
        """
        if folder == "":
            raise ArgumentError("the name of the run's folder is empty; the current folder is '.'")
        self.folder = Path(folder)
        self.encoder = encoder
        self.device = device
        self.files = RunFiles(self.folder)

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r})"

    def __reduce__(self) -> tuple[type[Self], tuple[Path, torch.nn.Module | Encoder | None, str | None]]:
        """Another process opens the folder, and loads the model once it needs it."""
        return type(self), (self.folder.absolute(), self.encoder, self.device)

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
        encoder: Encoder | torch.nn.Module | None = None,
        download: bool = False,
        callback: Callback | None = None,
        progress: Progress | None = None,
        root: Path | str | None = None,
        on: str = "local",
        jobs: int | None = None,
    ) -> Self:
        """Train a model, and save it in a folder.

        Args:
            data: rows, a file of rows, a data frame, a folder of pictures, or a name of the catalogue, whose training
                and validation rows are used.
            folder: where the run is kept; it is created.
            settings: how to train and decide; None: the defaults or, with ``resume``, those of the stopped run.
            valid: validation rows; early stopping and thresholds then use these, instead of ``cv`` and ``holdout``,
                of which only the default is accepted.
            hierarchy: of the labels of a table: a `Hierarchy`, a file, nested names, (parent, child) pairs or a
                networkx graph; None: the one that paths or levels make.
            options: which columns of a table are what, as in `TableOptions`: ``labels``, ``id``, ``features``, ...
            resume: continue a training that was stopped; if it is finished, write only a report that is not there.
            report: also write ``report.html``, about rows that were not used for training. If there are none, or if
                ``held_out.safetensors`` of a finished run was removed, there is no report.
            encoder: the image model, an `Encoder` or a torch module; None: the one that the settings name.
            download: whether the weights of that encoder may be fetched if they are not on this machine.
            callback: is called after every step and epoch.
            progress: shows how far the embedding of pictures is.
            root: the folder that holds the datasets of the catalogue.
            on: where models of folds (``cv``) are trained: ``local``, ``ray``, or the address of a Ray cluster; see
                `rarenode.executors.make_executor`. The result is the same everywhere, and a run may be resumed
                elsewhere.
            jobs: how many of them side by side; they share the processors. None: one on this machine, all on Ray.

        Raises:
            ResumeError: the folder contains another run, or this one and ``resume`` is not set.
            Interrupted: Ctrl-C; what is done is kept, and ``resume`` continues.
            FolderInUseError: another process is using the folder.
            RarenodeError: data or settings cannot be used; see the other errors.
        """
        run = cls(folder)
        fit_in_folder(
            run,
            data,
            settings,
            valid=valid,
            hierarchy=hierarchy,
            options=options,
            resume=resume,
            report=report,
            encoder=encoder,
            download=download,
            callback=callback,
            progress=progress,
            root=root,
            on=on,
            jobs=jobs,
        )
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
        return TrainedModel.load(self.folder, self.encoder, self.device)

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
        """Compare the model's decisions with the labels of rows; warn if the model was trained on these.

        Args:
            data: labelled rows, a file, a data frame, or a name of the catalogue; None: rows of the run's own data
                that the model was not trained on: test rows, validation rows, or held-out rows with the predictions
                that were made for them.
            split: which part of a dataset that has parts; None: test.
            thresholds: a strategy that needs no labels, or ``guaranteed``, instead of the model's thresholds.
            options: options of a table that differ from those of the training table, such as a file of labels.
            root: the folder that holds the datasets of the catalogue.

        Raises:
            DataError: the rows have no labels, or other features or another hierarchy than the model; or the run's own
                data are no longer the same.
        """
        if self._is_about_own_data(data, split):
            return evaluate_unseen(self.model, own_unseen_rows(self, root, options), thresholds)
        rows, left_out = labelled_rows_for(self, data, split, root, options)
        use = use_of(self, data, rows, split)
        if use == "training":
            warnings.warn(f"{rows.name or 'the data'}: {TRAINED_ON}", RuntimeWarning, stacklevel=2)
        return evaluate_model(self.model, rows, thresholds, use=use, left_out=left_out)

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
            thresholds: a strategy that needs no labels, or ``guaranteed``, instead of the model's thresholds.
            min_confidence: decide no node that is less probable than this. Labels then end at the deepest node that is
                probable enough, as people write "Acropora sp." where they cannot tell the species.
            uncertainty: the kind that the result contains; see `rarenode.uncertainty`.
            options: options of a table that differ from those of the training table, such as the folder of pictures.
            root: the folder that holds the datasets of the catalogue.
        """
        how = How(thresholds, min_confidence, uncertainty)
        return predict_rows(self.model, rows_for(self, data, split, root, options, labels=False), how)

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
        return predict_into_file(
            self,
            data,
            out,
            Choice() if choice is None else choice,
            How(thresholds, min_confidence, uncertainty),
            split=split,
            options=options,
            root=root,
            progress=progress or Progress(quiet=True),
        )

    def predict_to_folder(
        self,
        data: Path | str | Iterable[Path | str],
        out: Path | str,
        *,
        on: str = "local",
        jobs: int | None = None,
        choice: Choice | None = None,
        thresholds: str | None = None,
        min_confidence: float = 0.0,
        uncertainty: str = "gmu",
        options: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> WrittenFolder:
        """Predict files into a folder, one output for each, in the format of the input if that is possible, or in CSV.

        What is done stays done: called again, it leaves out files whose input, model and options are still the same.

        Args:
            data: files, or a pattern such as ``part-*.parquet``.
            out: the folder; it is created. ``predictions.json`` in it says what is done.
            on: where files are predicted: ``local``, ``ray``, or the address of a Ray cluster, whose machines must
                have the run, the data and ``out`` under the same paths; see `rarenode.executors.make_executor`.
            jobs: how many files side by side; they share the processors. None: one on this machine, on Ray as many as
                there are processors.
            choice: what to write, and how; see `Choice`.
            thresholds: those that are fitted to rows are refused: they would be others in each file.
            min_confidence: as in `predict_to_file`, as for the other arguments.
            uncertainty: the kind that the files contain.
            options: options of a table that differ from those of the training table.
            progress: shows how far it is.

        Returns:
            How many files were predicted and skipped, and the totals of all.

        Raises:
            DataError: some files could not be predicted; all others are done.
            Interrupted: Ctrl-C; called again, it continues.
        """
        return predict_into_folder(
            self,
            [data] if isinstance(data, str | Path) else data,
            Path(out),
            Choice() if choice is None else choice,
            How(thresholds, min_confidence, uncertainty),
            make_executor(on, jobs),
            options=options,
            progress=progress or Progress(quiet=True),
        )

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
            thresholds: a strategy that needs no labels, or ``guaranteed``, instead of the model's thresholds.
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
        if self._is_about_own_data(data, split):
            unseen = own_unseen_rows(self, root, options)
            return report_on_unseen(self, unseen, name=name or str(self.folder), thresholds=thresholds)
        rows, _ = labelled_rows_for(self, data, split, root, options)
        which = f"{rows.name}, {split or 'test'} rows" if rows.name in catalogue() else rows.name
        note = note_on_use(use_of(self, data, rows, split), self.settings)
        which = f"{which} ({note})" if note else which
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

    def _is_about_own_data(self, data: Data | None, split: SplitName | None) -> bool:
        """Whether neither data nor a part of them are named, and the run has data of its own, not of the catalogue."""
        return data is None and split is None and self.model.source not in catalogue()
