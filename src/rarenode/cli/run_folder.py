"""The run folder of `rarenode fit`: the model's files, ``settings.toml``, and a checkpoint until the model is there.

``settings.toml`` is written before training begins. It says what runs, and a stopped training goes on from it, so that
its options need not be given again. No run ever writes over another: a folder that holds one is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rarenode.data.catalogue import catalogue
from rarenode.errors import ArgumentError, ResumeError, TrainingError
from rarenode.training import Settings, TrainedModel, TrainingRows, remove_checkpoint
from rarenode.training.atomic import replacing
from rarenode.training.checkpoint import FILE as CHECKPOINT
from rarenode.training.model_folder import RECORD
from rarenode.version import __version__

SETTINGS = "settings.toml"


def choose_settings(data: str, out: Path, file: Path | None, resume: bool, options: dict[str, Any]) -> Settings:
    """Options go before the file, and the file before what the run had, or the paper's, or the defaults."""
    if options.get("focus") == "none":
        options = options | {"focus": None}
    if file is not None:
        options = Settings.from_toml(file).model_dump(exclude_unset=True) | options
    if resume and (out / SETTINGS).exists():
        return Settings(**(Settings.from_toml(out / SETTINGS).to_dict() | options))
    if data in catalogue():
        return Settings.from_paper(catalogue()[data].hyperparameters, **options)
    return Settings(**options)


def is_finished(out: Path, rows: TrainingRows, settings: Settings, resume: bool) -> bool:
    """Whether this very training is done.

    Raises:
        ResumeError: the folder holds another training, or this one, and ``resume`` is not set.
    """
    if (out / CHECKPOINT).exists():
        if not resume:
            raise ResumeError(f"{out} holds an unfinished training; go on with --resume, or choose another folder")
        return False
    if not (out / RECORD).exists():
        return False
    if not resume:
        raise ResumeError(f"{out} holds a finished model already; choose another folder")
    model = TrainedModel.load(out)
    then, now = model.settings.decisive, settings.decisive
    told = [f"{name} was {then[name]!r} and is now {now[name]!r}" for name in then if then[name] != now[name]]
    if model.fingerprints.get("rows") != rows.fingerprint:
        told.append("the training rows are not the same")
    if model.hierarchy != rows.hierarchy:
        told.append("the hierarchy is not the same")
    if told:
        raise ResumeError(f"{out} holds the finished model of another training: {'; '.join(told)}")
    return True


def write_settings(out: Path, data: str, settings: Settings) -> None:
    """Say what is about to run; a checkpoint is of the settings that are there already."""
    if (out / CHECKPOINT).exists():
        return
    try:
        out.mkdir(parents=True, exist_ok=True)
        with replacing(out / SETTINGS) as (part,):
            part.write_text(f"# rarenode {__version__}: fit {data!r}\n\n{settings.to_toml()}", encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"the run cannot be kept in {out}: {error}") from None


def save_model(out: Path, model: TrainedModel) -> None:
    """Save the model; then its checkpoint has done its work."""
    try:
        model.save(out)
    except OSError as error:
        raise TrainingError(f"the model could not be saved: {error}") from None
    remove_checkpoint(out)
