"""`TableOptions`: how to read a table. A model keeps them, so that a table of new rows is read in the same way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator

from rarenode._io.text import explain
from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy

Unknown = Literal["none", "below"]


def _as_tuple(value: Any) -> Any:
    if isinstance(value, str | Path):
        return (str(value),)
    return tuple(value) if isinstance(value, list) else value


Names = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]
Text = Annotated[str, Field(min_length=1)]


class TableOptions(BaseModel):
    """How to read a table. Names of columns may be patterns such as ``level_*``.

    >>> TableOptions(labels="taxa", id="image").labels
    ('taxa',)
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    labels: Names = Field(
        default=(),
        description="Where labels are: a column of labels; several columns, one per level or one per label (1, 0, "
        "blank for unknown); or a file with the columns id, label and perhaps value, or a GAF file.",
    )
    id: str | None = Field(default=None, description="The column that names the rows.")
    features: Names = Field(default=(), description="Columns to learn from. Default: all that have no other purpose.")
    ignore: Names = Field(default=(), description="Columns to leave out.")
    weight: str | None = Field(default=None, description="The column with the weights of rows.")
    partition: str | None = Field(
        default=None,
        description="The column that says which part a row belongs to: train, valid or test. Test rows are left for "
        "the report and `rarenode evaluate`.",
    )
    separator: Text = Field(default=";", description="Separates the labels in a cell.")
    path_separator: Text | None = Field(
        default=None,
        description="Separates the steps of a path such as 'Biota > Corals'. Default: the one that labels have.",
    )
    unknown: Unknown = Field(
        default="none",
        description="What a row's labels leave open is absent (none), or unknown below its deepest labels (below): a "
        "row labelled to genus then says nothing about species.",
    )
    evidence: Names | None = Field(default=None, description="GAF: only annotations with these evidence codes.")
    exclude_evidence: Names = Field(default=(), description="GAF: no annotations with these codes, such as IEA.")
    aspects: Names | None = Field(default=None, description="GAF: only annotations of these aspects: P, F or C.")
    relations: Names = Field(default=("is_a",), description="OBO: relations that lead to parents: is_a, part_of, ...")
    namespaces: Names | None = Field(default=None, description="OBO: only the terms of these namespaces.")
    images: str | None = Field(
        default=None,
        description="The folder or zip archive with the pictures that a table names. Default, if --image is given: the "
        "folder of the table.",
    )
    image: str | None = Field(
        default=None,
        description="The column that names the pictures. Default, if --images is given: image, file, filename, path, "
        "photo or picture.",
    )
    skip_bad_images: bool = Field(
        default=False,
        description="Leave out rows whose pictures are not named, missing or cannot be decoded, with a warning.",
    )

    stream: bool = Field(
        default=False,
        description="Keep the features of a Parquet or Arrow file on disk while training, for more rows than fit into "
        "memory. Labels are in memory.",
    )

    @field_validator("images", mode="before")
    @classmethod
    def _as_text(cls, value: Any) -> Any:
        if value == "":  # such as a variable of the shell that is not set
            raise ValueError("the path of the folder or zip archive is empty; the current folder is '.'")
        return str(value) if isinstance(value, Path) else value

    @property
    def has_images(self) -> bool:
        """Whether the rows of the table are pictures."""
        return self.images is not None or self.image is not None


def table_options(values: Mapping[str, Any], base: TableOptions | None = None) -> TableOptions:
    """Options from names and values; others are those of ``base``, or the defaults.

    Raises:
        ArgumentError: there is no such option, or it cannot have the value.
    """
    labels = values.get("labels")
    if labels is not None and not isinstance(labels, str | Path | list | tuple):
        raise ArgumentError(
            f"labels must be names of columns or a file, got {type(labels).__name__}; join it to the rows as a column, "
            "or write it to a file with the columns id, label and perhaps value"
        )
    try:
        return TableOptions(**{**({} if base is None else base.model_dump()), **values})
    except ValidationError as error:
        raise ArgumentError(explain(error, TableOptions)) from None


@dataclass(frozen=True)
class Expected:
    """What a model expects of the rows that are for it."""

    hierarchy: Hierarchy
    features: tuple[str, ...] | None
    text: tuple[str, ...] = ()
    """The features that are categories."""
    reading: TableOptions | None = None
    """How the table was read that the model was trained on."""
    images: bool = False
    """Whether rows are pictures."""
    images_in_training: str | None = None
    """The folder or archive of the pictures that the model was trained on, for a table that has none beside it."""
