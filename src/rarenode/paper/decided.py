"""`DecidedRecord`: what the decisions of one training came to, as a JSON file of its own.

A training whose protocol holds rows out is judged under many decisions. Its record lies in
``FOLDER/DATASET/decisions/``, under its cell's name. All scores are fractions, of scored nodes only, rounded to six
digits that count.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, ValidationError, model_validator

from rarenode._io.text import explain
from rarenode.errors import FileFormatError
from rarenode.paper.grid import Cell
from rarenode.paper.record import FORBID, Count, record_path, write_lines
from rarenode.paper.scores import Training
from rarenode.thresholds import Rule
from rarenode.thresholds.calibration_error import BINS

CalibrationName = Literal["none", "temperature", "temperature_by_depth", "isotonic"]
FittedOn = Literal["held_out", "test_without_labels"]
Share = Annotated[float, Field(ge=0, le=1)]


class NodesFound(BaseModel):
    """How well some nodes are found: means over them, 0 where a score is undefined."""

    model_config = FORBID

    nodes: Count
    nodes_found: Count
    """Decided in at least one row that carries them."""
    f1: Share
    precision: Share
    recall: Share


class RowsDecided(NodesFound):
    """How well all scored nodes are found in some rows."""

    nodes_predicted: Count
    """Decided in at least one row."""
    bin_ap: Share


class Decided(BaseModel):
    """One way to decide."""

    model_config = FORBID

    strategy: str
    """As the spec names it."""
    rule: Rule
    calibration: CalibrationName
    """Fitted to the held-out rows, before the strategy was."""
    fitted_on: FittedOn
    """What the thresholds come from: held-out rows, with their labels where the strategy takes any, or the
    probabilities of the test rows alone."""
    test: RowsDecided
    held_out: RowsDecided
    by_rarity: dict[str, NodesFound]
    """On test rows, for each band of training positives."""
    by_depth: dict[int, NodesFound]
    """On test rows, for each depth that has scored nodes."""


class CalibrationShown(BaseModel):
    """How far the probabilities of the test rows are from what they say; None where there are no cells."""

    model_config = FORBID

    mean_probability: tuple[Share | None, ...]
    """For each bin of `BINS`."""
    frequency: tuple[Share | None, ...]
    cells: tuple[Count, ...]
    ece: Share
    ece_by_rarity: dict[str, Share | None]

    @model_validator(mode="after")
    def _of_all_bins(self) -> Self:
        if {len(self.mean_probability), len(self.frequency), len(self.cells)} != {len(BINS) - 1}:
            raise ValueError(f"its lists must have {len(BINS) - 1} bins")
        return self


class DecidedRecord(Training):
    """One training, and what came of its decisions."""

    format: Literal["rarenode decisions"] = "rarenode decisions"
    ap: Share
    """On test rows, from the probabilities; no decision changes it."""
    ap_held_out: Share
    reliability: dict[CalibrationName, CalibrationShown]
    curves: dict[str, Annotated[tuple[Share, ...], Field(min_length=100, max_length=100)] | None]
    """Band of rarity -> on test rows the best precision at a recall of at least 0.01, 0.02, ..., 1.00; None without a
    positive cell."""
    decided: tuple[Decided, ...]

    @property
    def strategies(self) -> tuple[str, ...]:
        """What it was judged under."""
        return tuple(dict.fromkeys(each.strategy for each in self.decided))

    def lacks(self, strategies: Collection[str]) -> bool:
        """Whether one of these is missing."""
        return not set(strategies) <= set(self.strategies)

    def find(
        self,
        strategy: str,
        rule: Rule = "add_ancestors",
        calibration: CalibrationName = "none",
        fitted_on: FittedOn = "held_out",
    ) -> Decided | None:
        """One way to decide; None if it was not judged."""
        wanted = strategy, rule, calibration, fitted_on
        return next((d for d in self.decided if (d.strategy, d.rule, d.calibration, d.fitted_on) == wanted), None)


def write_decided(folder: Path, cell: Cell, record: DecidedRecord) -> None:
    """Write a record, or replace it, whole."""
    path = record_path(folder, cell)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_lines(path, record)


def read_decided(folder: Path, cell: Cell) -> DecidedRecord | None:
    """The record of a cell; None if there is none.

    Raises:
        FileFormatError: the file is no record, or one of another training.
    """
    path = record_path(folder, cell)
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileFormatError(path, None, f"it cannot be read: {error.strerror}") from None
    try:
        record = DecidedRecord.model_validate_json(content, strict=False)
    except ValidationError as error:
        raise FileFormatError(path, None, f"this is no record: {explain(error, DecidedRecord)}") from None
    if not record.is_of(cell):
        raise FileFormatError(path, None, "this is the record of another training; remove it, and it will be made anew")
    return record
