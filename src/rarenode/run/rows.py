"""Rows for a run: which are trained on, and which of their pictures can be used."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from rarenode._io.progress import Progress
from rarenode.config import Settings
from rarenode.data.catalogue import SPLITS
from rarenode.data.dataset import Dataset, DatasetSplits, require_match
from rarenode.data.features import text_features
from rarenode.data.images import Images
from rarenode.data.sources import Data, open_data
from rarenode.data.table_options import Expected, TableOptions
from rarenode.errors import ArgumentError, Interrupted
from rarenode.models.encoder import Encoder
from rarenode.training import TrainedModel
from rarenode.training.embedding import usable


def has_images(opened: Dataset | DatasetSplits) -> bool:
    """Whether rows are pictures."""
    return isinstance((opened if isinstance(opened, Dataset) else opened.train).X, Images)


def pictures_of(rows: Dataset) -> Images | None:
    """The pictures of rows, for a report; None if rows are not pictures."""
    return rows.X if isinstance(rows.X, Images) else None


def usable_rows(
    parts: Sequence[Dataset],
    encoder: Encoder | None,
    settings: Settings,
    progress: Progress | None = None,
    *,
    train: bool = False,
) -> list[Dataset]:
    """Of each part the rows whose pictures can be used, with what the encoder needs at hand; tables as they are.

    Raises:
        DataError: pictures cannot be used; see `usable`.
        Interrupted: Ctrl-C.
    """
    if encoder is None or not all(has_images(part) for part in parts):
        return list(parts)
    decodes_only = settings.train_encoder and train
    try:
        return usable(
            parts,
            encoder,
            train_encoder=decodes_only,
            skip=any(part.reading is not None and part.reading.skip_bad_images for part in parts),
            n_jobs=settings.n_jobs,
            progress=progress,
        )
    except KeyboardInterrupt:
        kept = "encoded; embeddings are kept, and the same command continues from there"
        again = "decoded, which begins again with the same command"
        raise Interrupted(f"stopped while pictures were {again if decodes_only else kept}") from None


def usable_data(
    opened: Dataset | DatasetSplits,
    validation: Dataset | None,
    encoder: Encoder | None,
    settings: Settings,
    progress: Progress | None = None,
    *,
    train: bool = False,
) -> tuple[Dataset | DatasetSplits, Dataset | None]:
    """`usable_rows` of all data of a fit together, before anything is made of some of them."""
    parts = {"rows": opened} if isinstance(opened, Dataset) else {split: getattr(opened, split) for split in SPLITS}
    there = {name: part for name, part in (parts | {"validation": validation}).items() if part is not None}
    found = dict(zip(there, usable_rows(list(there.values()), encoder, settings, progress, train=train), strict=True))
    if isinstance(opened, Dataset):
        return found["rows"], found.get("validation")
    splits = DatasetSplits(opened.name, found["train"], found.get("valid"), found["test"])
    return splits, found.get("validation")


def is_same_file(one: Path | str, other: Path | str) -> bool:
    """Whether two paths lead to one file that is there."""
    with suppress(OSError, ValueError):  # one of them is not there, or is not a path at all
        return Path(one).samefile(other)
    return False


def with_parts(model: TrainedModel, opened: Dataset | DatasetSplits) -> TrainedModel:
    """The model, which now recognises each part of a dataset when it sees it alone."""
    if isinstance(opened, Dataset):
        return model
    parts = {"train": opened.train, "valid": opened.valid, "test": opened.test}
    known = {name: part.fingerprint for name, part in parts.items() if part is not None}
    return replace(model, fingerprints={**model.fingerprints, **known})


def read_alike(data: Data, rows: Dataset, options: TableOptions, root: Path | str | None) -> Dataset:
    """Validation or test rows, read as the training rows were, with the options that these were read with.

    Raises:
        ArgumentError: they are a dataset with parts.
        RarenodeError: they cannot be read; see `open_data`.
    """
    is_images = isinstance(rows.X, Images)
    expected = Expected(rows.hierarchy, rows.feature_names, text_features(rows.X), rows.reading, is_images)
    reading = rows.reading
    if reading is not None and not reading.labels:  # they were in a file of their own
        reading = reading.model_copy(update={"labels": options.labels})
    opened = open_data(data, root, options=reading, expected=expected)
    if isinstance(opened, DatasetSplits):
        raise ArgumentError(f"{opened.name}: name one table of rows, not a dataset with parts")
    return opened


def validation_rows(valid: Data, rows: Dataset, options: TableOptions, root: Path | str | None) -> Dataset:
    """Validation rows for training rows."""
    opened = read_alike(valid, rows, options, root)
    name = opened.name or "the validation rows"
    require_match(name, opened.feature_names, opened.hierarchy, rows.feature_names, rows.hierarchy)
    return replace(opened, scored=rows.scored)


def training_rows(opened: Dataset | DatasetSplits, settings: Settings) -> tuple[Dataset, Dataset | None]:
    """Rows to train on, and validation rows.

    Those of a table are used as such. Those of a dataset of the catalogue are trained on, as in the paper, unless
    neither cv nor holdout provides rows for early stopping.
    """
    if isinstance(opened, Dataset):
        return opened, None
    if opened.valid is not None and opened.train.reading is not None:
        return opened.train, opened.valid
    if settings.patience is not None and settings.cv is None and settings.holdout is None:
        return opened.train, opened.part("valid")
    return opened.train_and_valid, None
