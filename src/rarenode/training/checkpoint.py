"""Checkpoints: one file from which a training resumes as if it had never stopped.

The file holds the engine's state (parameters, Adam's moments, steps taken) as arrays, and in its header how far the
training has come and what it is a checkpoint *of*: the fingerprints of rows, validation rows, hierarchy and encoder,
the engine and the settings. A training that differs in any of these is not the same training, and is refused.

It is one file, replaced atomically, so arrays and header can never belong to different moments; a checksum covers both.
If a checkpoint cannot be written, the one before stays, and training continues.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rarenode._io.arrays import Arrays, layout_of, read_arrays, read_note, write_arrays
from rarenode._io.files import replacing
from rarenode._io.text import explain
from rarenode.config import Settings
from rarenode.config.settings import BEFORE
from rarenode.errors import FileFormatError, ResumeError
from rarenode.training.callbacks import EpochRecord

FILE = "checkpoint.safetensors"
Count = Annotated[int, Field(ge=0)]


@dataclass
class Position:
    """How far a training has come: all that later steps and records depend on besides the engine."""

    epoch: Count = 0
    """Epochs that are over."""
    batch: Count = 0
    """Batches of the next epoch that are over."""
    loss: float = 0.0
    """The sum of their losses."""
    seconds: Annotated[float, Field(ge=0)] = 0.0
    """The time they took."""
    history: list[EpochRecord] = field(default_factory=list)
    best_ap: float | None = None
    """The best validation AP so far, where early stopping looks at it."""
    best_epoch: Count = 0
    """The epoch that had it, counted from 1."""

    def is_possible(self, epochs: int, batches: int, steps: int) -> bool:
        """Whether a training of so many epochs and batches can be there after so many steps."""
        return (
            self.epoch <= epochs
            and self.batch <= batches
            and steps == self.epoch * batches + self.batch
            and [record.epoch for record in self.history] == list(range(1, self.epoch + 1))
            and self.best_epoch <= self.epoch
        )


class TrainingKey(BaseModel):
    """What makes a training the same training."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    rows: str
    valid: str | None
    hierarchy: str
    engine: str
    settings: dict[str, Any]
    encoder: str | None = None
    """Of an encoder as it was before the training."""

    def differences(self, other: TrainingKey) -> list[str]:
        """What another training has different, in words, settings with their value here and there."""
        found = [
            words
            for name, words in (
                ("rows", "the training rows are not the same"),
                ("valid", "the validation rows are not the same"),
                ("hierarchy", "the hierarchy is not the same"),
                ("encoder", "the encoder that training begins with is not the same"),
            )
            if getattr(self, name) != getattr(other, name)
        ]
        # A checkpoint may be older than a setting, which then had the effect of its default, mostly.
        default = {name: field.default for name, field in Settings.model_fields.items()} | dict(BEFORE)
        ours, theirs = (default | {"engine": key.engine} | key.settings for key in (self, other))
        return found + [
            f"{name} was {ours.get(name)!r} and is now {theirs.get(name)!r}"
            for name in sorted(ours.keys() | theirs.keys())
            if ours.get(name) != theirs.get(name)
        ]


class _Header(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    format: Literal["rarenode checkpoint"]
    version: Literal[2]
    key: TrainingKey
    position: Position


class Checkpoints:
    """The checkpoint of one training in one folder; without a folder there is none, and nothing is written."""

    def __init__(self, folder: Path | None, key: TrainingKey, settings: Settings, batches: int) -> None:
        self.path = None if folder is None else folder / FILE
        self.key = key
        self.epochs, self.batches = settings.epochs, batches
        self.every_epochs = settings.checkpoint_epochs
        self.every_minutes = settings.checkpoint_minutes
        self._last_try = monotonic()
        self._warned = False

    def load(self, resume: bool, like: Arrays, also: Arrays) -> tuple[Position, Arrays] | None:
        """The position and state to resume from, or None if there is no checkpoint.

        Args:
            resume: whether to resume; if not, a checkpoint in the folder is an error, and is not overwritten.
            like: an engine's state: the arrays to expect.
            also: more arrays to expect once there is a best epoch.

        Raises:
            ResumeError: the checkpoint is of another training, or one is there and ``resume`` is not set.
            FileFormatError: the file is damaged.
        """
        if self.path is None or not os.path.lexists(self.path):
            return None
        try:
            return self._load(self.path, resume, like, also)
        except FileFormatError as error:
            problem = f"{error.problem}; remove it to begin this training again"
            raise FileFormatError(self.path, None, problem) from None

    def _load(self, path: Path, resume: bool, like: Arrays, also: Arrays) -> tuple[Position, Arrays]:
        if not path.is_file():
            raise FileFormatError(path, None, "it is no file")
        header = self._header(path)
        if not resume:
            raise ResumeError(
                f"{path} is the checkpoint of a training that was not finished. Set resume (--resume) to continue "
                "with it, remove it, or choose another folder"
            )
        differences = header.key.differences(self.key)
        if differences:
            raise ResumeError(f"{path} is the checkpoint of another training: {'; '.join(differences)}")
        expected = like if header.position.best_ap is None else like | also
        arrays = read_arrays(path, layout_of(expected))
        if not header.position.is_possible(self.epochs, self.batches, int(arrays["steps"])):
            raise FileFormatError(path, None, "its position lies outside the training")
        return header.position, arrays

    def save_if_due(self, position: Position, arrays: Callable[[], Arrays]) -> None:
        """Save after every so many epochs or minutes."""
        after_epochs = self.every_epochs is not None and position.batch == 0 and position.epoch % self.every_epochs == 0
        after_minutes = self.every_minutes is not None and monotonic() - self._last_try >= 60 * self.every_minutes
        if self.path is not None and (after_epochs or after_minutes):
            self.save(position, arrays())

    def save(self, position: Position, arrays: Arrays) -> bool:
        """Save; return whether that worked. A failure warns once, and leaves the last checkpoint as it is."""
        if self.path is None:
            return False
        header = _Header(format="rarenode checkpoint", version=2, key=self.key, position=position)
        try:
            with replacing(self.path) as (part,):
                write_arrays(part, arrays, header.model_dump_json())
        except OSError as error:
            if not self._warned:
                kept = "the last one is kept" if self.path.exists() else "there is none yet"
                warnings.warn(
                    f"a checkpoint could not be saved ({error}); {kept}, and training continues",
                    RuntimeWarning,
                    stacklevel=2,
                )
            self._warned = True
            return False
        finally:
            self._last_try = monotonic()
        return True

    def _header(self, path: Path) -> _Header:
        try:
            return _Header.model_validate_json(read_note(path))
        except ValidationError as error:
            raise FileFormatError(
                path, None, f"it is no checkpoint of this rarenode: {explain(error, _Header)}"
            ) from None


def remove_checkpoint(folder: Path | str) -> None:
    """Remove the checkpoint of a training whose model is saved."""
    Path(folder, FILE).unlink(missing_ok=True)
