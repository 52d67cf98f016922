"""`Scores`: what a training says of rows that it never saw, in a file, so that deciding needs no training.

Training takes minutes or hours, and deciding seconds. A cell whose protocol holds rows out therefore leaves its
probabilities behind, in ``FOLDER/DATASET/scores/CELL.safetensors``: two arrays of float32, (rows, nodes) in the order
of the dataset's rows and of the hierarchy's nodes, named ``held_out`` and ``test``, and a note in JSON that says which
training they are of. They are large and can be had again, so they are not kept with the records.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rarenode._io.arrays import read_arrays, read_note, write_arrays
from rarenode._io.files import replacing
from rarenode._io.text import explain
from rarenode.errors import FileFormatError
from rarenode.paper.grid import Cell, decisive_of
from rarenode.paper.spec import Protocol
from rarenode.training.settings import Settings

SCORES = "scores"
Floats = NDArray[np.float32]
FLOAT32 = np.dtype(np.float32)


class Training(BaseModel):
    """Which training it was, and how it went."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    dataset: str
    settings: Settings
    protocol: Protocol
    engine: str
    versions: dict[str, str]
    machine: str
    threads: Annotated[int, Field(ge=0)]
    """That the training had."""
    epochs: Annotated[int, Field(ge=0)]
    """That the model was trained for; early stopping may have ended it."""
    seconds: Annotated[float, Field(ge=0)]
    """Wall time of the training, or of all the trainings of a cross-fit."""

    def is_of(self, cell: Cell) -> bool:
        """Whether it is the training of a cell."""
        return (self.dataset, self.protocol, decisive_of(self.settings)) == (cell.dataset, cell.protocol, cell.decisive)


class _Note(BaseModel):
    """What stands beside the arrays."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["rarenode scores"] = "rarenode scores"
    training: Training


@dataclass(frozen=True, eq=False)
class Scores:
    """Probabilities of rows that were not trained on."""

    training: Training
    held_out: Floats
    """(rows, nodes)."""
    test: Floats
    """(rows, nodes)."""


def scores_path(folder: Path, cell: Cell) -> Path:
    """Where a cell's scores are, or will be."""
    return folder / cell.dataset / SCORES / f"{cell.name}.safetensors"


def write_scores(folder: Path, cell: Cell, scores: Scores) -> None:
    """Write scores, or replace them, whole.

    Raises:
        OSError: they could not be written.
    """
    path = scores_path(folder, cell)
    path.parent.mkdir(parents=True, exist_ok=True)
    arrays = {
        name: np.ascontiguousarray(values, dtype=np.float32)
        for name, values in (("held_out", scores.held_out), ("test", scores.test))
    }
    with replacing(path) as (part,):
        write_arrays(part, arrays, _Note(training=scores.training).model_dump_json())


def read_scores(folder: Path, cell: Cell, held_out: tuple[int, int], test: tuple[int, int]) -> Scores | None:
    """The scores of a cell; None if there are none.

    Args:
        folder: where results are.
        cell: whose scores.
        held_out: rows and nodes that they must have.
        test: the same for the test rows.

    Raises:
        FileFormatError: the file is damaged, or of another training, or its numbers are no probabilities.
    """
    path = scores_path(folder, cell)
    if not path.is_file():
        return None
    try:
        note = _Note.model_validate_json(read_note(path), strict=False)
    except ValidationError as error:
        raise FileFormatError(path, None, f"its note is none of scores: {explain(error, _Note)}") from None
    if not note.training.is_of(cell):
        raise FileFormatError(path, None, "these are scores of another training; remove them, and train again")
    arrays = read_arrays(path, {"held_out": (FLOAT32, held_out), "test": (FLOAT32, test)})
    for name, values in arrays.items():
        # The smallest and the largest are NaN where one is.
        if values.size and not (values.min() >= 0 and values.max() <= 1):
            row, node = np.argwhere(~((values >= 0) & (values <= 1)))[0].tolist()
            raise FileFormatError(
                path, None, f"{name}: row {row}, column {node} is {values[row, node]}, no probability"
            )
    return Scores(note.training, arrays["held_out"], arrays["test"])
