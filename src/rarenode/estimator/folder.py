"""What the estimator knows and the model does not, in a file beside the model's: ``estimator.json``.

A folder without it, as `rarenode fit` leaves it, is a model.
"""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from rarenode._io.files import belonging
from rarenode._io.text import explain
from rarenode.errors import FileFormatError
from rarenode.estimator.targets import class_names
from rarenode.hierarchy import Hierarchy
from rarenode.training.model_folder import RECORD

FILE = "estimator.json"
MOST_BYTES = 1 << 24


class EstimatorFile(BaseModel):
    """The content of the file."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    parameters: str | None = None
    """The fingerprint of the parameters of the model it belongs to."""
    classes: list[bool | int | float | str] | None = None
    """The classes of an ordinary multi-class problem, as they were given; None for every other."""


def read_estimator_file(folder: Path, hierarchy: Hierarchy, parameters: str | None) -> EstimatorFile:
    """Read the file of a model over ``hierarchy`` with the fingerprint ``parameters``.

    Raises:
        FileFormatError: it is damaged, or another model's, or has got another name meanwhile.
    """
    own = folder / FILE
    path = belonging(own, folder / RECORD)
    if path == own and not os.path.lexists(own):  # a waiting file that is gone was there: the model has one
        return EstimatorFile()
    if not path.is_file():
        raise FileFormatError(path, None, "it is no file")
    with path.open("rb") as file:
        text = file.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise FileFormatError(path, None, f"it has more than {MOST_BYTES:,} bytes, which no estimator needs")
    try:
        content = EstimatorFile.model_validate_json(text)
    except ValidationError as error:
        raise FileFormatError(path, None, explain(error, EstimatorFile)) from None
    if content.parameters is not None and content.parameters != parameters:
        raise FileFormatError(path, None, "it belongs to another model than the one beside it; remove it")
    if content.classes is not None and sorted(class_names(content.classes)) != sorted(hierarchy.nodes):
        raise FileFormatError(path, None, "its classes are not those of the model beside it")
    return content
