"""`Record`: the result of one training, as a JSON file holds it.

There are two kinds of files, which differ by the protocol of the training. Under the paper's protocol a record has the
scores at the threshold 0.5 and counts of the predicted nodes (``"format": "rarenode record"``). Where rows are held
out, it has scores of many decisions (``"format": "rarenode decisions"``). In a file the fields of either part stand
beside those that all records have. Settings have the names of `record_settings`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from rarenode.errors import ArgumentError
from rarenode.metrics import Summary
from rarenode.paper.grid import Cell
from rarenode.paper.record_settings import RecordSettings, decisive
from rarenode.paper.spec import Protocol
from rarenode.thresholds import Rule
from rarenode.thresholds.calibration_error import BINS

CalibrationName = Literal["none", "temperature", "temperature_by_depth", "isotonic"]
FittedOn = Literal["held_out", "test_without_labels"]

Count = Annotated[int, Field(ge=0, lt=2**53)]
"""Small enough that sums over many records stay exact."""
NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class _Columns(_Part):
    """Lists of one length."""

    @model_validator(mode="after")
    def _of_one_length(self) -> Self:
        if len({len(values) for _, values in self if isinstance(values, tuple)}) > 1:
            raise ValueError("its lists must be of one length")
        return self


class DatasetNodes(_Columns):
    """The content of ``nodes.json``: what all trainings on a dataset have in common."""

    hierarchy: str
    """Its fingerprint."""
    names: tuple[str, ...]
    scored: tuple[bool, ...]
    training_rows: tuple[Count, ...]
    """Training rows, without clones, that have the node."""
    test_rows: tuple[Count, ...]
    parents: tuple[tuple[Count, ...], ...] | None = None
    """For data of one's own, the places of each node's parents: nothing else knows their hierarchy."""


# --- the paper's protocol ------------------------------------------------------------------------------------------


class PredictedNodes(_Columns):
    """The nodes that are predicted in at least one test row; all others have scores of 0."""

    column: tuple[Count, ...]
    """In the order of ``nodes.json``."""
    predicted: tuple[Count, ...]
    """Test rows where it is predicted."""
    true_positives: tuple[Count, ...]
    """Test rows where it is predicted and labelled."""


def _within_bounds(summary: Summary) -> Summary:
    scores = summary.f1, summary.precision, summary.recall, summary.bin_ap, summary.ap
    if not all(0 <= score <= 1 for score in scores):
        raise ValueError("scores lie between 0 and 1")
    return summary


class FixedScores(_Part):
    """Scores on the test rows at the threshold 0.5, and what the training cost."""

    steps_per_epoch: Count
    summary: Annotated[Summary, AfterValidator(_within_bounds)]
    """Fractions."""
    steps_per_second: NotNegative
    """Median over epochs."""
    seconds_per_epoch: NotNegative
    """Median over epochs."""
    training_bytes: Count
    """Parameters and the two moments of Adam."""
    peak_bytes: Count | None
    """The most memory that the process held during the training, with the interpreter, its libraries and the data of
    this and earlier trainings; None where the system does not report it."""
    nodes: PredictedNodes


# --- protocols that hold out rows ----------------------------------------------------------------------------------


class NodesFound(_Part):
    """How well some nodes are found: means over them, 0 where a score is undefined."""

    nodes: Count
    nodes_found: Count
    """Decided in at least one row that has them."""
    f1: Share
    precision: Share
    recall: Share


class RowsDecided(NodesFound):
    """How well all scored nodes are found in some rows."""

    nodes_predicted: Count
    """Decided in at least one row."""
    bin_ap: Share


class Decided(_Part):
    """The scores of one decision."""

    strategy: str
    """As in the spec."""
    rule: Rule
    calibration: CalibrationName
    """Fitted to the held-out rows, before the strategy."""
    fitted_on: FittedOn
    """What the thresholds are fitted to: held-out rows, with labels if the strategy needs them, or the probabilities
    of the test rows alone."""
    test: RowsDecided
    held_out: RowsDecided
    by_rarity: dict[str, NodesFound]
    """On test rows, for each band of training positives."""
    by_depth: dict[int, NodesFound]
    """On test rows, for each depth that has scored nodes."""


class CalibrationShown(_Part):
    """The calibration of the test rows' probabilities; None where there are no cells."""

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


class DecisionScores(_Part):
    """Scores of many decisions: fractions, of scored nodes only, rounded to six significant digits."""

    epochs: Count
    """Of the model; early stopping may have ended its training."""
    ap: Share
    """On test rows, from the probabilities; no decision changes it."""
    ap_held_out: Share
    macro_ap: Share | None = None
    """On test rows, the mean of the AP of each node that has rows there; None in older records."""
    macro_ap_held_out: Share | None = None
    reliability: dict[CalibrationName, CalibrationShown]
    curves: dict[str, Annotated[tuple[Share, ...], Field(min_length=100, max_length=100)] | None]
    """Band of rarity -> on test rows the best precision at a recall of at least 0.01, 0.02, ..., 1.00; None without a
    positive cell."""
    decided: tuple[Decided, ...]

    @property
    def strategies(self) -> tuple[str, ...]:
        """The strategies that it has scores of."""
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
        """The scores of one decision; None if there are none."""
        wanted = strategy, rule, calibration, fitted_on
        return next((d for d in self.decided if (d.strategy, d.rule, d.calibration, d.fitted_on) == wanted), None)


# --- all records ---------------------------------------------------------------------------------------------------


class Training(_Part):
    """Which training it was, and where."""

    dataset: str
    settings: RecordSettings
    protocol: Protocol = "paper"
    factor: Share | None = None
    """The training factor of the encoder; see `Method`."""
    fraction: Share | None = None
    """How much of the training rows was used; None: all."""
    own: dict[str, str] | None = None
    """What its spec brought itself: sha256 of data, class and sha256 of code; None: nothing."""
    engine: str
    versions: dict[str, str]
    machine: str
    threads: Count
    """Available to the training."""
    seconds: NotNegative
    """Wall time of all steps, without reading data and scoring; that of the whole cross-fit under ``cross_fit``."""

    def is_of(self, cell: Cell) -> bool:
        """Whether it is the training of a cell."""
        ours = self.dataset, self.protocol, decisive(self.settings), self.factor, self.fraction, self.own or {}
        return ours == (cell.dataset, cell.protocol, cell.decisive, cell.factor, cell.fraction, cell.own)

    @property
    def cell(self) -> Cell:
        """The cell that it belongs to."""
        return Cell(self.dataset, self.settings, self.protocol, self.factor, self.fraction, self.own or {})


FORMATS: dict[str, tuple[str, type[_Part]]] = {
    "rarenode record": ("fixed", FixedScores),
    "rarenode decisions": ("decisions", DecisionScores),
}
"""``format`` of a file -> the part of a record whose fields it has."""


class Record(Training):
    """The result of one training: either part, depending on the protocol."""

    fixed: FixedScores | None = None
    """Under the protocol ``paper``."""
    decisions: DecisionScores | None = None
    """Under the other protocols."""

    @model_validator(mode="before")
    @classmethod
    def _gather_parts(cls, values: Any) -> Any:
        """From the fields of a file, which are not nested."""
        if not isinstance(values, dict) or "format" not in values:
            return values
        if values["format"] not in list(FORMATS):
            raise ValueError(f"format: it should be one of {', '.join(FORMATS)}; got {values['format']!r}")
        part, kind = FORMATS[values["format"]]
        inner = {name: value for name, value in values.items() if name in kind.model_fields}
        return {name: value for name, value in values.items() if name not in inner and name != "format"} | {part: inner}

    @model_validator(mode="after")
    def _part_of_the_protocol(self) -> Self:
        if (self.protocol == "paper") != (self.fixed is not None) or (self.fixed is None) != (
            self.decisions is not None
        ):
            raise ValueError(f"a record of the protocol {self.protocol!r} has other fields")
        return self

    def to_file(self) -> dict[str, Any]:
        """The fields of its file, as JSON can hold them."""
        values: dict[str, Any] = self.model_dump(mode="json")
        parts: dict[str, Any] = {name: values.pop(name) for name, _ in FORMATS.values()}
        if self.protocol == "paper":
            del values["protocol"]  # as in the first records, which knew no other
        for name in ("factor", "fraction", "own"):
            if values[name] is None:
                del values[name]
        form, part = next((form, name) for form, (name, _) in FORMATS.items() if parts[name] is not None)
        scores = {name: value for name, value in parts[part].items() if value is not None or "macro" not in name}
        return {"format": form, **values, **scores}

    @property
    def at_half(self) -> FixedScores:
        """The scores at the threshold 0.5.

        Raises:
            ArgumentError: it has none.
        """
        if self.fixed is None:
            raise ArgumentError(f"a record of the protocol {self.protocol} has no scores of single nodes at 0.5")
        return self.fixed

    @property
    def decided(self) -> DecisionScores:
        """The scores of decisions.

        Raises:
            ArgumentError: it has none.
        """
        if self.decisions is None:
            raise ArgumentError("a record of the paper's protocol has no decisions but the threshold 0.5")
        return self.decisions
