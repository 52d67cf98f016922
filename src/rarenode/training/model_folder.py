"""The folder of a model: parameters in ``model.safetensors``, everything else in ``model.json``, a card for people.

A folder may come from anywhere, so reading it executes nothing and trusts nothing. ``model.json`` has a bounded size
and a schema. The shapes of all arrays follow from it and are compared with the real size of ``model.safetensors``
before anything is allocated. Its sha256 is in ``model.json``, so the two cannot belong to different models.

A folder that has a model has a complete one at every moment, also while another replaces it (`replacing_together`).
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from rarenode._io.arrays import read_arrays, read_shapes, write_arrays
from rarenode._io.files import belonging, is_file, read_together, replacing_together, sole_use
from rarenode._io.text import counted, explain
from rarenode.config import Settings
from rarenode.config.settings import BEFORE
from rarenode.data.preparation import Preparation
from rarenode.data.table_options import TableOptions
from rarenode.errors import ArgumentError, FileFormatError, HierarchyError, MissingFileError
from rarenode.hierarchy import Hierarchy
from rarenode.models import MODELS, Model
from rarenode.models.described import from_description, materialised
from rarenode.models.encoder import Encoder, layout_of
from rarenode.models.model import Layout
from rarenode.thresholds import GuaranteedRecall, Thresholds
from rarenode.training.callbacks import EpochRecord
from rarenode.training.checkpoint import FILE as CHECKPOINT
from rarenode.training.model_records import (
    DIRECTIONS,
    Count,
    EncoderRecord,
    GuaranteedRecord,
    HierarchyRecord,
    PreparationRecord,
    Share,
    ThresholdsRecord,
)
from rarenode.version import __version__

FILES = PARAMETERS, RECORD, CARD, ENCODER = "model.safetensors", "model.json", "README.md", "encoder.safetensors"
RUN_SETTINGS = "settings.toml"
"""Lies beside the model of a `Run`."""
RUN_HEAD = "# rarenode "
"""How it begins."""
VERSION = 3
MOST_RECORD_BYTES = 1 << 26
PATIENCE = 60.0
"""Seconds to wait for another process that writes a model into the same folder."""

Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class _Head(BaseModel):
    """What every version of the record has."""

    model_config = ConfigDict(strict=True, extra="ignore")

    format: Literal["rarenode model"]
    version: Annotated[int, Field(ge=1)]


class ModelFile(BaseModel):
    """The content of ``model.json``."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    format: Literal["rarenode model"] = "rarenode model"
    version: Literal[3] = 3
    source: str
    settings: Settings
    engine: str
    model: dict[str, Any]
    """The kind of model, and its description, from which the shapes of all arrays follow."""
    feature_names: tuple[str, ...] | None
    hierarchy: HierarchyRecord
    unscored: tuple[str, ...]
    training_positives: tuple[Count, ...]
    preparation: PreparationRecord | None
    history: tuple[EpochRecord, ...]
    versions: dict[str, str]
    fingerprints: dict[str, Sha256]
    """``parameters`` is that of ``model.safetensors``."""
    thresholds: ThresholdsRecord | None = None
    reading: TableOptions | None = None
    """How the table was read that the model was trained on."""
    n_counted: Annotated[int, Field(ge=1)] | None = None
    parents_together: tuple[Count, ...] | None = None
    prior: tuple[Share, ...] | None = None
    encoder: EncoderRecord | None = None
    guaranteed: GuaranteedRecord | None = None

    @field_validator("settings", mode="before")
    @classmethod
    def _as_before(cls, settings: Any) -> Any:
        return {**BEFORE, **settings} if isinstance(settings, dict) else settings

    @classmethod
    def describe(
        cls,
        *,
        model: Model,
        hierarchy: Hierarchy,
        scored: NDArray[np.bool_],
        settings: Settings,
        engine: str,
        history: tuple[EpochRecord, ...],
        training_positives: NDArray[np.int64],
        versions: Mapping[str, str],
        fingerprints: Mapping[str, str],
        preparation: Preparation | None,
        feature_names: tuple[str, ...] | None,
        source: str,
        thresholds: Thresholds | None,
        reading: TableOptions | None,
        n_counted: int | None,
        parents_together: NDArray[np.int64] | None,
        prior: NDArray[np.float64] | None,
        encoder: Encoder | None,
        guaranteed: GuaranteedRecall | None,
    ) -> Self:
        """The record of a model."""
        return cls(
            source=source,
            settings=settings,
            engine=engine,
            model={"kind": model.kind} | model.describe(),
            feature_names=feature_names,
            hierarchy=HierarchyRecord.describe(hierarchy),
            unscored=tuple(node for node, counts in zip(hierarchy.nodes, scored.tolist(), strict=True) if not counts),
            training_positives=tuple(training_positives.tolist()),
            preparation=None if preparation is None else PreparationRecord.describe(preparation),
            history=history,
            versions=dict(versions),
            fingerprints=dict(fingerprints),
            thresholds=None
            if thresholds is None
            else ThresholdsRecord.model_validate(thresholds.to_dict(), strict=False),
            reading=reading,
            n_counted=n_counted,
            parents_together=None if parents_together is None else tuple(parents_together.tolist()),
            prior=None if prior is None else tuple(prior.tolist()),
            encoder=None if encoder is None else EncoderRecord.model_validate(encoder.describe(), strict=False),
            guaranteed=None if guaranteed is None else GuaranteedRecord.describe(guaranteed),
        )

    def as_thresholds(self) -> Thresholds | None:
        """The thresholds, if it has any."""
        return None if self.thresholds is None else self.thresholds.as_thresholds()

    def as_guaranteed(self) -> GuaranteedRecall | None:
        """The guaranteed sets, if it has any."""
        return None if self.guaranteed is None else self.guaranteed.as_guaranteed()

    def as_parents_together(self) -> NDArray[np.int64] | None:
        """The counts, if it has any."""
        return None if self.parents_together is None else np.array(self.parents_together, dtype=np.int64)


def is_finished_run(folder: Path) -> bool:
    """Whether a `Run` has been finished in a folder; one that can be resumed has a checkpoint."""
    beside = folder / RUN_SETTINGS
    if not is_file(folder / RECORD) or not is_file(beside) or is_file(folder / CHECKPOINT):
        return False
    with beside.open("rb") as content:
        return content.read(len(RUN_HEAD)) == RUN_HEAD.encode()


def write_model_folder(
    folder: Path,
    record: ModelFile,
    model: Model,
    card: str,
    encoder: Encoder | None,
    preparation: Preparation | None,
    beside: Mapping[str, Callable[[str], str]],
) -> None:
    """Write a model. A full disk or a kill leaves an earlier model in the folder as it was, or the new one.

    Args:
        folder: where to write it.
        record: all but the arrays.
        model: whose arrays to write.
        card: for people.
        encoder: of pictures.
        preparation: of features.
        beside: more files, by name: from the fingerprint of the parameters to their text.

    Raises:
        FolderInUseError: another process writes into the folder.
        OSError: it could not be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = (RECORD, PARAMETERS, CARD, *beside, *([] if encoder is None else [ENCODER]))
    with (
        sole_use(folder, PATIENCE),
        replacing_together(*(folder / name for name in names)) as (record_file, arrays_file, card_file, *others),
    ):
        encoder_file = others[len(beside) :]
        projection = None if preparation is None else preparation.projection
        write_arrays(arrays_file, model.arrays() | ({} if projection is None else {DIRECTIONS: projection.directions}))
        fingerprints = record.fingerprints | {"parameters": _sha256(arrays_file)}
        for path in encoder_file:
            assert encoder is not None  # noqa: S101 (there is such a file only then)
            write_arrays(path, encoder.arrays())
            fingerprints |= {"encoder_parameters": _sha256(path)}
        text = record.model_copy(update={"fingerprints": fingerprints}).model_dump_json(indent=1)
        record_file.write_text(text, encoding="utf-8")
        card_file.write_text(card, encoding="utf-8")
        for path, text_for in zip(others, beside.values(), strict=False):
            path.write_text(text_for(fingerprints["parameters"]), encoding="utf-8")


def read_model_folder(
    folder: Path, module: torch.nn.Module | None = None
) -> tuple[ModelFile, Hierarchy, Model, Encoder | None, Preparation | None]:
    """Read what `write_model_folder` wrote, also while it writes, and check all of it.

    Args:
        folder: the folder.
        module: the network of the encoder, if it is not one of the transformers library.

    Raises:
        MissingFileError: a file is not there.
        FileFormatError: a file is damaged, or belongs to another model or another version of rarenode.
    """
    return read_together(folder / RECORD, lambda: _read_folder(folder, module))


def _read_folder(
    folder: Path, module: torch.nn.Module | None
) -> tuple[ModelFile, Hierarchy, Model, Encoder | None, Preparation | None]:
    path = belonging(folder / PARAMETERS, folder / RECORD)
    for name, file in ((RECORD, folder / RECORD), (PARAMETERS, path)):
        if not is_file(file):
            raise MissingFileError(f"{folder} does not contain a complete model: {name} is missing")
    record = _read_record(folder / RECORD)
    hierarchy = _hierarchy(folder / RECORD, record)
    kind, description, layout = _layout(folder / RECORD, record)
    beside = {} if record.preparation is None else record.preparation.layout()
    arrays = read_arrays(path, layout | beside)
    if record.fingerprints.get("parameters") != _sha256(path):
        raise FileFormatError(path, None, f"its sha256 is not the one in {RECORD}: it is damaged, or another model's")
    of_preparation = {name: arrays.pop(name) for name in beside}
    if not all(np.isfinite(array).all() for array in of_preparation.values()):
        raise FileFormatError(path, None, f"its {DIRECTIONS} contains numbers that are not finite")
    try:
        model = MODELS[kind].from_arrays(description, arrays, hierarchy)
    except ArgumentError as error:
        raise FileFormatError(path, None, f"its model cannot be used: {error}") from None
    encoder = None if record.encoder is None else _read_encoder(folder, record.encoder, record.fingerprints, module)
    _check_widths(folder / RECORD, record, model)
    preparation = None if record.preparation is None else record.preparation.as_preparation(of_preparation)
    return record, hierarchy, model, encoder, preparation


def _read_encoder(
    folder: Path, record: EncoderRecord, fingerprints: Mapping[str, str], module: torch.nn.Module | None
) -> Encoder:
    path = belonging(folder / ENCODER, folder / RECORD)
    if not is_file(path):
        raise MissingFileError(f"{folder} does not contain a complete model: {ENCODER} is missing")
    try:
        encoder = from_description(record.model_dump(), module, read_shapes(path))
    except ArgumentError as error:
        raise FileFormatError(folder / RECORD, None, f"encoder: {error}") from None
    arrays = read_arrays(path, layout_of(encoder.module))
    if fingerprints.get("encoder_parameters") != _sha256(path):
        raise FileFormatError(path, None, f"its sha256 is not the one in {RECORD}: it is damaged, or another model's")
    try:
        encoder = materialised(encoder, arrays)
    except ArgumentError as error:
        raise FileFormatError(path, None, f"its encoder cannot be used: {error}") from None
    if record.response is not None and not encoder.is_response(record.response):
        what = f"the module that was passed as its encoder, {encoder.name}, computes other numbers than that of the fit"
        warnings.warn(f"{folder}: {what}; predictions are not those of the model", RuntimeWarning, stacklevel=2)
    return encoder


def _layout(path: Path, record: ModelFile) -> tuple[str, dict[str, Any], Layout]:
    kind = record.model.get("kind")
    if not isinstance(kind, str) or kind not in MODELS:
        raise FileFormatError(path, None, f"model: unknown kind {kind!r}; this rarenode has {', '.join(MODELS)}")
    description = {name: value for name, value in record.model.items() if name != "kind"}
    try:
        return kind, description, MODELS[kind].layout(description)
    except ArgumentError as error:
        raise FileFormatError(path, None, f"model: {error}") from None


def _read_record(path: Path) -> ModelFile:
    with path.open("rb") as content:
        text = content.read(MOST_RECORD_BYTES + 1)
    if len(text) > MOST_RECORD_BYTES:
        raise FileFormatError(path, None, f"it has more than {MOST_RECORD_BYTES:,} bytes, which no model needs")
    try:
        head = _Head.model_validate_json(text)
    except ValidationError as error:
        raise FileFormatError(path, None, f"it does not describe a rarenode model: {explain(error, _Head)}") from None
    if head.version != VERSION:
        is_newer = head.version > VERSION
        age, remedy = ("a newer", "update rarenode") if is_newer else ("an older", "train the model again")
        raise FileFormatError(
            path,
            None,
            f"{age} rarenode wrote it, in format {head.version}; this one, {__version__}, reads format {VERSION}. "
            f"Load it with the rarenode that wrote it, or {remedy}",
        )
    try:
        return ModelFile.model_validate_json(text)
    except ValidationError as error:
        raise FileFormatError(path, None, explain(error, ModelFile)) from None


def _hierarchy(path: Path, record: ModelFile) -> Hierarchy:
    names = record.hierarchy.nodes
    if any(column >= len(names) for edge in record.hierarchy.edges for column in edge):
        raise FileFormatError(
            path, None, f"an edge leads to a column that none of the {counted(len(names), 'node')} has"
        )
    try:
        hierarchy = Hierarchy.from_edges(((names[p], names[c]) for p, c in record.hierarchy.edges), names)
    except HierarchyError as error:
        raise FileFormatError(path, None, f"its hierarchy is invalid: {error}") from None
    if hierarchy.nodes != names or record.fingerprints.get("hierarchy") != hierarchy.fingerprint:
        raise FileFormatError(path, None, "its hierarchy is not the one that the model was trained with")
    unknown = next((node for node in record.unscored if node not in hierarchy), None)
    if unknown is not None:
        raise FileFormatError(path, None, f"the unscored node {unknown!r} is not in its hierarchy")
    try:
        return hierarchy.with_terms(None if record.hierarchy.terms is None else record.hierarchy.terms.as_terms())
    except HierarchyError as error:
        raise FileFormatError(path, None, f"hierarchy: {error}") from None


def _check_widths(path: Path, record: ModelFile, model: Model) -> None:
    prepared = record.preparation
    n_features = model.n_features if prepared is None else prepared.n_features
    if record.encoder is not None and record.encoder.width != n_features:
        raise FileFormatError(
            path, None, f"encoder: it returns {record.encoder.width} numbers; {n_features} were expected"
        )
    widths: dict[str, tuple[Any, int]] = {
        "feature_names": (record.feature_names, n_features),
        "training_positives": (record.training_positives, len(record.hierarchy.nodes)),
        "parents_together": (record.parents_together, len(record.hierarchy.nodes)),
        "prior": (record.prior, len(record.hierarchy.nodes)),
    }
    if record.thresholds is not None:
        widths["thresholds"] = (record.thresholds.values, len(record.hierarchy.nodes))
    if record.guaranteed is not None:
        for part in ("values", "rows"):
            widths[f"guaranteed.{part}"] = (getattr(record.guaranteed, part), len(record.hierarchy.nodes))
    if prepared is not None:
        for part in ("mean", "deviation"):
            widths[f"preparation.{part}"] = (getattr(prepared, part), model.n_features)
        columns = model.n_features if prepared.projection is None else len(prepared.projection.largest)
        widths["preparation.fill"] = (prepared.fill, columns)
        if prepared.width != model.n_features:
            raise FileFormatError(
                path, None, f"preparation: it makes {prepared.width} columns; {model.n_features} were expected"
            )
    for name, (values, width) in widths.items():
        if values is not None and len(values) != width:
            raise FileFormatError(path, None, f"{name} has {counted(len(values), 'value')}; {width} were expected")
    if record.guaranteed is not None and (problem := record.guaranteed.contradiction()):
        raise FileFormatError(path, None, f"guaranteed: {problem}")
    together = record.parents_together or record.training_positives
    if any(rows < positives for rows, positives in zip(together, record.training_positives, strict=True)):
        raise FileFormatError(path, None, "parents_together: a node has more rows than all its parents together")


def _sha256(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()
