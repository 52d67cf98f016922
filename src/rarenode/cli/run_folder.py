"""The run folder of `rarenode fit`: the model's files, ``settings.toml``, and checkpoints until the model is there.

``settings.toml`` is written before training begins. It says what runs, and a stopped training goes on from it, so that
its options need not be given again. No run ever writes over another: a folder that holds one is refused. With folds,
their models and checkpoints lie in ``.fold-1``, ``.fold-2``, ... until the model is saved.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self

from pydantic import model_validator

from rarenode._io.files import replacing, sole_use
from rarenode.data.catalogue import catalogue
from rarenode.data.split import HierarchicalSplit
from rarenode.errors import ArgumentError, ResumeError, TrainingError
from rarenode.training import Settings, TrainedModel, TrainingRows, remove_checkpoint
from rarenode.training.checkpoint import FILE as CHECKPOINT
from rarenode.training.model_folder import RECORD
from rarenode.training.presets import preset
from rarenode.training.unseen import fold_folders, remove_folds
from rarenode.version import __version__

SETTINGS = "settings.toml"
NOT_SET = {"focus": '"none"', "early_stopping": "0", "folds": "0"}
"""How TOML says that these are not set. Without it a preset would set them when the file is given again."""


class FileSettings(Settings):
    """What a file sets: it may leave it to options or preset how rows are held out for its decision."""

    @model_validator(mode="after")
    def _rows_to_decide_on(self) -> Self:
        return self


def choose_settings(
    data: str, out: Path, preset_name: str, file: Path | None, resume: bool, options: dict[str, Any]
) -> Settings:
    """Options go before the file, and the file before what the run had, or else the preset."""
    given = options
    if file is not None:
        given = _over(FileSettings.from_toml(file).model_dump(exclude_unset=True), options)
    if resume and (out / SETTINGS).exists():
        return Settings(**_over(Settings.from_toml(out / SETTINGS).to_dict(), given))
    if preset_name == "paper" and data in catalogue():
        return Settings.from_paper(catalogue()[data].hyperparameters, **given)
    return preset(preset_name, **given)


@contextmanager
def nobody_else(out: Path) -> Iterator[None]:
    """Keep other trainings out of the run folder: one that is under way there, in whatever fold, is an error."""
    with ExitStack() as locks:
        for folder in (out, *fold_folders(out)):
            locks.enter_context(sole_use(folder))
        yield


def is_finished(out: Path, rows: TrainingRows, settings: Settings, resume: bool) -> bool:
    """Whether this very training is done.

    Raises:
        ResumeError: the folder holds another training, or this one, and ``resume`` is not set.
    """
    if _is_begun(out):
        if not resume:
            raise ResumeError(f"{out} holds an unfinished training; go on with --resume, or choose another folder")
        _require_same(out, settings)
        return False
    if not (out / RECORD).exists():
        return False
    if not resume:
        raise ResumeError(f"{out} holds a finished model already; choose another folder")
    model = TrainedModel.load(out)
    told = _differences(model.settings.decisive, settings.decisive)
    if model.fingerprints.get("rows") != _learnt_from(rows, settings).fingerprint:
        told.append("the training rows are not the same")
    if model.hierarchy != rows.hierarchy:
        told.append("the hierarchy is not the same")
    if told:
        raise ResumeError(f"{out} holds the finished model of another training: {'; '.join(told)}")
    return True


def write_settings(out: Path, data: str, settings: Settings) -> None:
    """Say what is about to run; a checkpoint is of the settings that are there already."""
    if _is_begun(out):
        return
    text = settings.to_toml()
    for name, said in NOT_SET.items():
        text = text.replace(f"# {name} is not set\n", f"{name} = {said}\n")
    try:
        out.mkdir(parents=True, exist_ok=True)
        with replacing(out / SETTINGS) as (part,):
            part.write_text(f"# rarenode {__version__}: fit {data!r}\n\n{text}", encoding="utf-8")
    except OSError as error:
        raise ArgumentError(f"the run cannot be kept in {out}: {error}") from None


def save_model(out: Path, model: TrainedModel) -> None:
    """Save the model. Checkpoint and folds stay until `tidy`."""
    try:
        model.save(out)
    except OSError as error:
        raise TrainingError(f"the model could not be saved: {error}") from None


def tidy(out: Path) -> None:
    """Take away what a finished run needs no more. The checkpoint goes first: without it, the model is the end."""
    remove_checkpoint(out)
    remove_folds(out)


def _over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Both, where what is above goes before; holdout and folds are ways to the same, and take each other's place."""
    replaced = {"holdout"} if above.get("folds") else {"folds"} if above.get("holdout") is not None else set()
    return {name: value for name, value in below.items() if name not in replaced} | above


def _is_begun(out: Path) -> bool:
    """Whether there is something to go on from; folds beside a model are only left over."""
    if (out / CHECKPOINT).exists():
        return True
    folds = any((part / name).exists() for part in fold_folders(out) for name in (CHECKPOINT, RECORD))
    return folds and not (out / RECORD).exists()


def _require_same(out: Path, settings: Settings) -> None:
    """Refuse to go on otherwise. Which engine computed, only a checkpoint knows, and says."""
    if not (out / SETTINGS).exists():
        return
    then, now = Settings.from_toml(out / SETTINGS).decisive, settings.decisive
    told = _differences(then | {"engine": ""}, now | {"engine": ""})
    if told:
        raise ResumeError(f"{out} holds another training, which is not finished: {'; '.join(told)}")


def _differences(then: dict[str, Any], now: dict[str, Any]) -> list[str]:
    return [f"{name} was {then[name]!r} and is now {now[name]!r}" for name in then if then[name] != now[name]]


def _learnt_from(rows: TrainingRows, settings: Settings) -> TrainingRows:
    """The rows that the last training sees."""
    if settings.holdout is None:
        return rows
    kept, _ = HierarchicalSplit(settings.holdout, settings.seed).split(rows.Y, rows.hierarchy)
    return rows.take(kept)
