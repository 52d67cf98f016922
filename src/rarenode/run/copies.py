"""Pictures that are in two parts of the data of a fit."""

from __future__ import annotations

import warnings

from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.diagnosis.data_checks import copies_between
from rarenode.run.rows import has_images


def warn_of_copies(rows: Dataset, valid: Dataset | None, opened: Dataset | DatasetSplits) -> None:
    """Warn of validation and test pictures that are the same as training pictures, whose content is known by now."""
    if not has_images(rows):
        return
    test = opened.test if isinstance(opened, DatasetSplits) else None
    for found in copies_between(rows, [part for part in (valid, test) if part is not None]):
        text = f"{found.text} ({', '.join(found.examples)}); {found.advice}"
        warnings.warn(text, RuntimeWarning, stacklevel=2)
