"""How the paper prepared its datasets and trained on them, where that differs from what rarenode does elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rarenode.config import Settings
from rarenode.data.catalogue import find_entry
from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.data.preparation import as_float32, known_means, standardisation
from rarenode.data.sources import load_dataset
from rarenode.paper.pictures import HYPERPARAMETERS as OF_PICTURES
from rarenode.paper.pictures import PICTURES

REBUILT = "_rebuilt"
"""The ending of a dataset's name whose training file is a reconstruction; published numbers are of the original."""

COMMON: Mapping[str, Any] = MappingProxyType(
    {"n_layers": 3, "dropout": 0.7, "batch_size": 4, "weight_decay": 1e-5, "learning_rate": 1e-4}
)
"""Hyperparameters of all datasets, unless `HYPERPARAMETERS` has others."""
HYPERPARAMETERS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "cellcycle_FUN": {"hidden_size": 500, "epochs": 106},
        "derisi_FUN": {"hidden_size": 500, "epochs": 67},
        "eisen_FUN": {"hidden_size": 500, "epochs": 110},
        "expr_FUN": {"hidden_size": 1250, "epochs": 20},
        "gasch1_FUN": {"hidden_size": 1000, "epochs": 42},
        "gasch2_FUN": {"hidden_size": 500, "epochs": 123},
        "seq_FUN": {"hidden_size": 2000, "epochs": 13},
        "spo_FUN": {"hidden_size": 250, "epochs": 115},
        "cellcycle_GO": {"hidden_size": 1000, "epochs": 62},
        "derisi_GO": {"hidden_size": 500, "epochs": 91},
        "eisen_GO": {"hidden_size": 500, "epochs": 123},
        "expr_GO": {"hidden_size": 4000, "epochs": 70},
        "gasch1_GO": {"hidden_size": 500, "epochs": 122},
        "gasch2_GO": {"hidden_size": 500, "epochs": 177},
        "seq_GO": {"hidden_size": 9000, "epochs": 45},
        "spo_GO": {"hidden_size": 500, "epochs": 103},
        "enron": {"hidden_size": 1000, "learning_rate": 1e-5, "epochs": 133},
        "diatoms": {"hidden_size": 2000, "learning_rate": 1e-5, "epochs": 474},
    }
)
"""The paper's hyperparameters of each dataset."""
Family = Literal["FUN", "GO", "others", "pictures"]


def family_of(dataset: str) -> Family:
    """FunCat, Gene Ontology, pictures, or none of these.

    >>> family_of("expr_FUN_rebuilt"), family_of("enron")
    ('FUN', 'others')
    """
    if dataset in PICTURES:
        return "pictures"
    original = dataset.removesuffix(REBUILT)
    return "FUN" if original.endswith("_FUN") else "GO" if original.endswith("_GO") else "others"


def settings_for(dataset: str, /, **changes: Any) -> Settings:
    """The paper's settings for a dataset of the catalogue or of `PICTURES`, with changes.

    A dataset that is not in the paper gets the hyperparameters that all datasets share.

    Raises:
        UnknownDatasetError: there is no such dataset.
        ArgumentError: a change is not a setting, or out of range.

    >>> settings_for("cellcycle_FUN", n_members=10).epochs
    106
    """
    if dataset in PICTURES:
        return Settings.preset("paper", **{**OF_PICTURES, **changes})
    name = find_entry(dataset).name.removesuffix(REBUILT)
    return Settings.preset("paper", **{**COMMON, **HYPERPARAMETERS.get(name, {}), **changes})


def settings_for_own(**changes: Any) -> Settings:
    """The settings for a dataset that a spec describes itself: the hyperparameters that all datasets share.

    Raises:
        ArgumentError: a change is not a setting, or out of range.
    """
    return Settings.preset("paper", **{**COMMON, **changes})


def load_as_published(name: str, root: Path | str | None = None) -> DatasetSplits:
    """Load a dataset with features prepared as for the paper's tables; train on them with ``prepare=False``.

    Missing values are replaced by the column means *of their own split*, test rows included, and columns are
    standardised with the statistics of training and validation rows together. That leaks a little of the test
    distribution into the features. It is here only to reproduce the tables: everywhere else a model prepares features
    with statistics of its training rows.

    Args:
        name: a dataset of the catalogue.
        root: the folder that holds the data; see `load_dataset`, as for the errors.
    """
    raw = load_dataset(name, root)
    parts = {split: part for split in ("train", "valid", "test") if (part := getattr(raw, split)) is not None}
    filled = {split: _fill(part.X) for split, part in parts.items()}
    known = [X for split, X in filled.items() if split != "test"]
    mean, deviation = standardisation(np.concatenate(known))
    prepared: dict[str, Dataset] = {
        split: replace(part, X=as_float32((filled[split] - mean) / deviation)) for split, part in parts.items()
    }
    return DatasetSplits(name, prepared["train"], prepared.get("valid"), prepared["test"])


def _fill(X: NDArray[Any]) -> NDArray[np.float64]:
    raw = np.asarray(X, dtype=np.float64)
    return np.where(np.isnan(raw), known_means(raw), raw)
