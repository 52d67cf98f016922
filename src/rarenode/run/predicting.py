"""Predictions of a run's model for rows, all at once or some at a time into a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from rarenode._io.progress import Progress
from rarenode.data.catalogue import SplitName
from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.data.images import Images
from rarenode.data.sources import Data, scan_data
from rarenode.errors import ArgumentError
from rarenode.objective.uncertainties import check_kind
from rarenode.run.model_rows import reading_for, rows_for
from rarenode.run.predictions import Choice, Predictions, check_output, write_predictions
from rarenode.run.rows import is_same_file
from rarenode.thresholds import GUARANTEED, depends_on_rows
from rarenode.training import TrainedModel

if TYPE_CHECKING:
    from rarenode.run.run import Run

CELLS_AT_A_TIME = 1 << 22
"""Rows are predicted into files in parts of about so many probabilities."""


class Written(NamedTuple):
    """What `Run.predict_to_file` wrote."""

    rows: int
    lines: int
    without_labels: int
    """Rows for which no node was decided."""
    decided: int = 0
    """Decided nodes of all rows, ancestors included."""


@dataclass(frozen=True)
class How:
    """How rows are predicted; see `Run.predict`."""

    thresholds: str | None
    min_confidence: float
    uncertainty: str

    def __post_init__(self) -> None:
        check_kind(self.uncertainty)


def predict_rows(model: TrainedModel, rows: Dataset, how: How) -> Predictions:
    """Predict rows, whose labels are ignored."""
    _check_promise(model, how)
    model.check_match(rows, labels=False)
    output = model.compute(rows.X, uncertainty=how.uncertainty)
    assert output.uncertainty is not None  # noqa: S101 (it was requested)
    chosen = model.thresholds_for(output.probs, how.thresholds)
    scored = model.scored
    probs = output.probs[:, scored]
    return Predictions(
        hierarchy=model.hierarchy,
        scored=scored,
        probs=probs,
        decided=chosen.decide(output.probs, model.hierarchy)[:, scored] & (probs >= how.min_confidence),
        uncertainty=output.uncertainty[:, scored],
        thresholds=chosen.in_words(fitted_here=depends_on_rows(how.thresholds)),
        coherent=chosen.rule is not None,
        ids=rows.ids,
        id_name=(rows.reading.id if rows.reading is not None else None) or _usual_id(rows),
    )


def _check_promise(model: TrainedModel, how: How, choice: Choice | None = None) -> None:
    """Refuse what leaves out improbable nodes, where thresholds promise a recall."""
    if how.thresholds == GUARANTEED:
        sets = "guaranteed sets hold"
    elif how.thresholds is None and model.decides_with.strategy.startswith("recall:"):
        sets = f"the model's thresholds, {model.decides_with.strategy}, decide"
    else:
        return
    what = "min_confidence (--min-confidence)" if how.min_confidence > 0 else ""
    if choice is not None and choice.min_probability > 0:
        what = "min_probability (--min-probability)"
    elif choice is not None and choice.layout == "cafa":
        what = "the layout cafa"
    if what:
        raise ArgumentError(f"{sets} improbable nodes too: with {what} there would be no guarantee")


def _usual_id(rows: Dataset) -> str:
    """What ids are called that come from no column: as those of a folder of pictures, or ``id``."""
    return "image" if isinstance(rows.X, Images) else "id"


def predict_into_file(
    run: Run,
    data: Data,
    out: Path | str,
    choice: Choice,
    how: How,
    *,
    split: SplitName | None,
    options: Mapping[str, Any] | None,
    root: Path | str | None,
    progress: Progress,
) -> Written:
    """See `Run.predict_to_file`."""
    check_output(Path(out), choice.layout)
    check_how(run.model, choice, how)
    sources = [data] if isinstance(data, str | Path) else data if isinstance(data, list | tuple) else []
    if any(is_same_file(each, out) for each in sources):
        raise ArgumentError(f"{out}: the predictions would replace the data; choose another name (--out)")
    model = run.model
    at_a_time = max(1, CELLS_AT_A_TIME // max(1, len(model.hierarchy)))
    rows = without_labels = decided = 0

    def predicted() -> Iterator[Predictions]:
        nonlocal rows, without_labels, decided
        size = None if depends_on_rows(how.thresholds) else at_a_time
        for part, total in _parts(run, data, split, root, size, options, progress):
            progress.start("predicting", max(1, total), rows) if not rows else None
            found = predict_rows(model, part, how)
            yield replace(found, first_row=rows)
            rows += len(part)
            without_labels += int(np.count_nonzero(~found.decided.any(axis=1)))
            decided += int(np.count_nonzero(found.decided))
            progress.update(rows, f"{rows:,} of {total:,} rows")

    try:
        lines = write_predictions(predicted(), out, choice)
    finally:
        progress.stop()
    return Written(rows, lines, without_labels, decided)


def check_how(model: TrainedModel, choice: Choice, how: How) -> None:
    """Refuse what would break a promise, and thresholds that would change nothing."""
    _check_promise(model, how, choice)
    if how.thresholds is not None and choice.layout in ("wide", "cafa") and not choice.decided_only:
        raise ArgumentError(
            f"thresholds={how.thresholds} would change nothing: the layout {choice.layout} has probabilities of all "
            "nodes; add decided_only (--decided-only), or choose another layout (--format)"
        )


def _parts(
    run: Run,
    data: Data,
    split: SplitName | None,
    root: Path | str | None,
    at_a_time: int | None,
    options: Mapping[str, Any] | None,
    progress: Progress,
) -> Iterator[tuple[Dataset, int]]:
    """Rows to predict, some at a time, and the number of all."""
    reading_for(run, options)  # refuses what the table would not need
    if at_a_time is not None and not isinstance(data, Dataset | DatasetSplits) and split is None:
        scanned = scan_data(data, run.model.expects, at_a_time)
        if scanned is not None:
            yield from scanned
            return
    rows = rows_for(run, data, split, root, options, labels=False, progress=progress)
    size = at_a_time or max(1, len(rows))
    for first in range(0, max(1, len(rows)), size):
        yield rows.take(np.arange(first, min(first + size, len(rows)))), len(rows)
