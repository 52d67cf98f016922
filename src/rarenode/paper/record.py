"""`Record`: what one training came to, as a JSON file of its own.

Records lie in ``FOLDER/DATASET/``, each under its cell's name, and beside them ``nodes.json`` with what is the same for
all trainings on the dataset: the nodes' names, how many training rows carry each, and how many test rows. Trainings
that hold rows out have records of another kind, in a folder of their own: see `rarenode.paper.decided`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from rarenode._io.files import replacing
from rarenode._io.text import explain
from rarenode.errors import FileFormatError
from rarenode.metrics import Summary
from rarenode.paper.grid import Cell, decisive_of
from rarenode.training.settings import Settings

Count = Annotated[int, Field(ge=0, lt=2**53)]
"""So small that sums over many records are numbers to compute with."""
NotNegative = Annotated[float, Field(ge=0)]
NODES = "nodes.json"
DECISIONS = "decisions"
FORBID = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class _Columns(BaseModel):
    """Lists of one length."""

    model_config = FORBID

    @model_validator(mode="after")
    def _of_one_length(self) -> Self:
        if len({len(values) for _, values in self if isinstance(values, tuple)}) > 1:
            raise ValueError("its lists must be of one length")
        return self


class PredictedNodes(_Columns):
    """The nodes that are predicted in at least one test row; all others have scores of 0."""

    column: tuple[Count, ...]
    """In the order of ``nodes.json``."""
    predicted: tuple[Count, ...]
    """Test rows where it is predicted."""
    true_positives: tuple[Count, ...]
    """Test rows where it is predicted and labelled."""


class DatasetNodes(_Columns):
    """The content of ``nodes.json``."""

    hierarchy: str
    """Its fingerprint."""
    names: tuple[str, ...]
    scored: tuple[bool, ...]
    training_rows: tuple[Count, ...]
    """Rows that trained, without clones, and carry the node."""
    test_rows: tuple[Count, ...]


def _within_bounds(summary: Summary) -> Summary:
    scores = summary.f1, summary.precision, summary.recall, summary.bin_ap, summary.ap
    if not all(0 <= score <= 1 for score in scores):
        raise ValueError("scores lie between 0 and 1")
    return summary


class Record(BaseModel):
    """One training."""

    model_config = FORBID

    format: Literal["rarenode record"] = "rarenode record"
    dataset: str
    settings: Settings
    engine: str
    versions: dict[str, str]
    machine: str
    threads: Count
    """That the training had."""
    steps_per_epoch: Count
    summary: Annotated[Summary, AfterValidator(_within_bounds)]
    """On the test rows at the threshold 0.5; fractions."""
    seconds: NotNegative
    """Wall time of all steps; reading data and scoring are not in it."""
    steps_per_second: NotNegative
    """In the middle one of the epochs."""
    seconds_per_epoch: NotNegative
    """In the middle one of the epochs."""
    training_bytes: Count
    """Parameters and the two moments of Adam."""
    peak_bytes: Count | None
    """The most memory that the process held during the training, with the interpreter, its libraries and the data of
    this and earlier trainings; None where the system does not tell."""
    nodes: PredictedNodes


def record_path(folder: Path, cell: Cell) -> Path:
    """Where a cell's record is, or will be."""
    place = folder / cell.dataset
    return (place if cell.protocol == "paper" else place / DECISIONS) / f"{cell.name}.json"


def write_record(folder: Path, cell: Cell, record: Record, nodes: DatasetNodes) -> None:
    """Write a record, and the dataset's nodes where they are not there yet."""
    path = record_path(folder, cell)
    path.parent.mkdir(parents=True, exist_ok=True)
    shared = path.with_name(NODES)
    if shared.exists():
        if read_nodes(folder, cell.dataset) != nodes:
            raise FileFormatError(shared, None, "it is of other data than were trained on; keep their results apart")
    else:
        own = path.with_name(f".{cell.fingerprint}.nodes")  # processes side by side may all find themselves the first
        write_lines(own, nodes)
        own.replace(shared)
    write_lines(path, record)


def read_record(folder: Path, cell: Cell) -> Record | None:
    """The record of a cell; None if there is none.

    Raises:
        FileFormatError: the file is no record, or one of another training.
    """
    path = record_path(folder, cell)
    if not path.exists():
        return None
    record = load_record(path)
    if record.dataset != cell.dataset or decisive_of(record.settings) != cell.decisive:
        raise FileFormatError(path, None, "this is the record of another training; remove it, and it will be made anew")
    return record


def load_record(path: Path) -> Record:
    """The record that a file holds, of whatever training.

    Raises:
        FileFormatError: the file cannot be read, or is no record.
    """
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileFormatError(path, None, f"it cannot be read: {error.strerror}") from None
    try:
        return Record.model_validate_json(content, strict=False)
    except ValidationError as error:
        raise FileFormatError(path, None, f"this is no record: {explain(error, Record)}") from None


def read_nodes(folder: Path, dataset: str) -> DatasetNodes:
    """What ``nodes.json`` of a dataset holds."""
    path = folder / dataset / NODES
    try:
        return DatasetNodes.model_validate_json(path.read_bytes(), strict=False)
    except FileNotFoundError:
        raise FileFormatError(path, None, "it is not there, though records of the dataset are") from None
    except ValidationError as error:
        raise FileFormatError(path, None, explain(error, DatasetNodes)) from None


def write_lines(path: Path, content: BaseModel) -> None:
    """A line for each field, and for each record in a list of them: readable, and short where a list is of numbers."""
    values: dict[str, Any] = content.model_dump(mode="json")
    lines = (f"{json.dumps(name)}: {_line(value)}" for name, value in values.items())
    with replacing(path) as (part,):
        part.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _line(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        return "[\n" + ",\n".join(map(_line, value)) + "\n]"
    return json.dumps(value, separators=(",", ":"))
