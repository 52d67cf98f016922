"""The folder of results: records, the nodes of each dataset, probabilities, and the checkpoints of running trainings.

::

    FOLDER/DATASET/CELL.json                    a record of the paper's protocol
    FOLDER/DATASET/nodes.json                   names and counts of the nodes, which these records share
    FOLDER/DATASET/decisions/CELL.json          a record of a protocol that holds out rows
    FOLDER/DATASET/scores/CELL.safetensors      its probabilities; large, and can be computed again
    FOLDER/.work/FINGERPRINT/                   checkpoints of a training under way, removed when it is done
    FOLDER/.work/FINGERPRINT.claim/             in use by the runner that has it trained

``DATASET`` is `Cell.place`, and ``CELL`` is `Cell.name`. Training takes minutes or hours and deciding takes seconds, so
the probabilities of held-out and test rows are kept: more decisions need no more training.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rarenode._io.arrays import read_arrays, read_note, read_shapes, write_arrays
from rarenode._io.files import replacing
from rarenode._io.text import counted, explain
from rarenode.errors import ArgumentError, FileFormatError, HierarchyError
from rarenode.hierarchy import Hierarchy
from rarenode.paper.grid import Cell, Task, cell, tasks
from rarenode.paper.pictures import hierarchy_from_names
from rarenode.paper.record import DatasetNodes, Record, Training
from rarenode.paper.spec import Spec

NODES, DECISIONS, PROBABILITIES, WORK = "nodes.json", "decisions", "scores", ".work"
FLOAT32 = np.dtype(np.float32)

Floats = NDArray[np.float32]
Records = Mapping[tuple[str, str], Sequence[Record]]
"""(dataset, method) -> a record for each seed."""


# --- records -------------------------------------------------------------------------------------------------------


def record_path(folder: Path, cell: Cell) -> Path:
    """Where the record of a cell is, or will be."""
    place = folder / cell.place
    return (place if cell.protocol == "paper" else place / DECISIONS) / f"{cell.name}.json"


def read_record(folder: Path, cell: Cell) -> Record | None:
    """The record of a cell; None if there is none.

    Raises:
        FileFormatError: the file is not a record, or that of another training.
    """
    path = record_path(folder, cell)
    if not path.exists():
        return None
    record = load_record(path)
    if not record.is_of(cell):
        raise FileFormatError(path, None, "this is the record of another training; remove it to train again")
    return record


def load_record(path: Path) -> Record:
    """The record in a file, of either kind.

    Raises:
        FileFormatError: the file cannot be read, or is not a record.
    """
    try:
        return Record.model_validate_json(path.read_bytes(), strict=False)
    except OSError as error:
        raise FileFormatError(path, None, f"it cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise FileFormatError(path, None, f"this is not a record: {explain(error, Record)}") from None


def write_record(folder: Path, record: Record, nodes: DatasetNodes | None = None) -> None:
    """Write a record, or replace it.

    Args:
        folder: of results.
        record: of either kind.
        nodes: of its dataset; written if they are not there yet.

    Raises:
        FileFormatError: the dataset's nodes are there, and are not these.
    """
    path = record_path(folder, record.cell)
    path.parent.mkdir(parents=True, exist_ok=True)
    if nodes is not None:
        shared = path.with_name(NODES)
        if not shared.exists():
            _write_lines(shared, nodes.model_dump(mode="json", exclude_none=True))
        elif read_nodes(folder, record.cell.place) != nodes:
            raise FileFormatError(shared, None, "it belongs to other data; keep results of different data apart")
    _write_lines(path, record.to_file())


def is_done(folder: Path, task: Task) -> bool:
    """Whether there is a record with everything that a task wants; errors are those of `read_record`."""
    record = read_record(folder, task.cell)
    return record is not None and (record.decisions is None or not record.decisions.lacks(task.decisions))


def record_files(folder: Path) -> Iterator[Path]:
    """The files of all records in a folder of results."""
    for pattern in ("*/*.json", f"*/{DECISIONS}/*.json"):
        yield from (path for path in sorted(folder.glob(pattern)) if path.name != NODES)


def gather(spec: Spec, folder: Path, datasets: Sequence[str] | None = None) -> dict[tuple[str, str], list[Record]]:
    """The records of a spec, or of some of its datasets; also of seeds beyond the spec's, up to the first gap.

    Raises:
        ArgumentError: the spec has no such dataset, or the folder is a file.
        FileFormatError: a file is not a record, or that of another training.
    """
    if folder.exists() and not folder.is_dir():
        raise ArgumentError(f"records are in a folder, and {folder} is a file")
    found: dict[tuple[str, str], list[Record]] = {}
    for row, planned in Counter((task.cell.dataset, task.method) for task in tasks(spec, datasets)).items():
        found[row] = []
        for seed in count():
            record = read_record(folder, cell(spec, *row, seed))
            if record is not None:
                found[row].append(record)
            elif seed >= planned:
                break
    return found


def read_nodes(folder: Path, place: str) -> DatasetNodes:
    """The content of ``nodes.json`` of a dataset, which is in the folder `Cell.place`.

    Raises:
        FileFormatError: it is missing or damaged.
    """
    path = folder / place / NODES
    try:
        return DatasetNodes.model_validate_json(path.read_bytes(), strict=False)
    except FileNotFoundError:
        raise FileFormatError(path, None, "it is missing, though the dataset has records") from None
    except ValidationError as error:
        raise FileFormatError(path, None, explain(error, DatasetNodes)) from None


def hierarchy_of(nodes: DatasetNodes, path: Path) -> Hierarchy | None:
    """The hierarchy of a file of nodes: that of their parents, or the one that their names tell; None if none do.

    Raises:
        FileFormatError: parents make no hierarchy.
    """
    if nodes.parents is None:
        return hierarchy_from_names(nodes.names, nodes.hierarchy)
    names, edges = nodes.names, []
    for child, parents in zip(names, nodes.parents, strict=True):
        if max(parents, default=0) >= len(names):
            raise FileFormatError(path, None, f"{child!r} has a parent beyond the {counted(len(names), 'node')}")
        edges += [(names[parent], child) for parent in parents]
    try:
        hierarchy = Hierarchy.from_edges(edges, names)
    except HierarchyError as error:
        raise FileFormatError(path, None, str(error)) from None
    return hierarchy_from_names(names, hierarchy.fingerprint) or hierarchy  # names that are paths have titles


# --- probabilities -------------------------------------------------------------------------------------------------


class _TrainingNote(Training):
    epochs: Annotated[int, Field(ge=0)]


class _Note(BaseModel):
    """What is stored beside the arrays."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["rarenode scores"] = "rarenode scores"
    training: _TrainingNote


@dataclass(frozen=True, eq=False)
class Probabilities:
    """The predictions of one training for rows that it was not trained on."""

    training: Training
    epochs: int
    """Of the model; early stopping may have ended its training."""
    held_out: Floats
    """(rows, nodes), in the order of rows and nodes of the dataset."""
    test: Floats
    """(rows, nodes)."""

    def require_shapes(self, path: Path, held_out: tuple[int, int], test: tuple[int, int]) -> None:
        """Make sure that they are of so many rows and nodes.

        Raises:
            FileFormatError: they are not; names the file in which they were.
        """
        for name, found, wanted in (("held_out", self.held_out.shape, held_out), ("test", self.test.shape, test)):
            if found != wanted:
                raise FileFormatError(path, None, f"{name} has the shape {found}, where the data have {wanted}")


def probabilities_path(folder: Path, cell: Cell) -> Path:
    """Where the probabilities of a cell are, or will be."""
    return folder / cell.place / PROBABILITIES / f"{cell.name}.safetensors"


def write_probabilities(folder: Path, probabilities: Probabilities) -> None:
    """Write probabilities, or replace them.

    Raises:
        OSError: they could not be written.
    """
    path = probabilities_path(folder, probabilities.training.cell)
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {
        name: np.ascontiguousarray(values, dtype=np.float32)
        for name, values in (("held_out", probabilities.held_out), ("test", probabilities.test))
    }
    note = _Note(training=_TrainingNote(**dict(probabilities.training), epochs=probabilities.epochs))
    with replacing(path) as (part,):
        write_arrays(part, arrays, note.model_dump_json())


def read_probabilities(folder: Path, cell: Cell) -> Probabilities | None:
    """The probabilities of a cell; None if there are none.

    Raises:
        FileFormatError: the file is damaged, or of another training, or has numbers that are not probabilities.
    """
    path = probabilities_path(folder, cell)
    if not path.is_file():
        return None
    try:
        note = _Note.model_validate_json(read_note(path), strict=False)
    except ValidationError as error:
        raise FileFormatError(path, None, f"it does not contain probabilities: {explain(error, _Note)}") from None
    if not note.training.is_of(cell):
        raise FileFormatError(path, None, "it belongs to another training; remove it to train again")
    shapes = read_shapes(path)
    arrays = read_arrays(path, {name: (FLOAT32, shapes.get(name, (0, 0))) for name in ("held_out", "test")})
    for name, values in arrays.items():
        # The smallest and the largest are NaN if any value is.
        if values.size and not (values.min() >= 0 and values.max() <= 1):
            row, node = np.argwhere(~((values >= 0) & (values <= 1)))[0].tolist()
            raise FileFormatError(
                path, None, f"{name}: row {row}, column {node} is {values[row, node]}, not a probability"
            )
    training = Training(**{name: value for name, value in note.training if name != "epochs"})
    return Probabilities(training, note.training.epochs, arrays["held_out"], arrays["test"])


# --- files ---------------------------------------------------------------------------------------------------------


def work_folder(folder: Path, cell: Cell) -> Path:
    """Where checkpoints of a training under way are. Whoever trains it has the sole use of this folder."""
    return folder / WORK / cell.fingerprint


def claim_folder(folder: Path, cell: Cell) -> Path:
    """The runner that has a training done, perhaps on another machine, has the sole use of this folder meanwhile."""
    return folder / WORK / f"{cell.fingerprint}.claim"


def _write_lines(path: Path, values: Mapping[str, Any]) -> None:
    """A line for each field, and for each object in a list: readable, and short where a list has numbers."""
    lines = (f"{json.dumps(name)}: {_line(value)}" for name, value in values.items())
    with replacing(path) as (part,):
        part.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _line(value: Any) -> str:
    if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
        return "[\n" + ",\n".join(map(_line, value)) + "\n]"
    return json.dumps(value, separators=(",", ":"))
