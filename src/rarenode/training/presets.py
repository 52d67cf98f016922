"""Recipes under a name: settings that were found to work together.

``best`` finds many nodes at a good F1 (docs/guide/finding-rare-nodes.md has the evidence): a plain network, stopped
early, joined with a forest, and thresholds that maximise expected F1, found on rows that were not trained on.
``paper`` is what produced the paper's tables: weighted, trained to the end in small batches, decided at 0.5. It has the
defaults of `Settings`; `Settings.from_paper` has the hyperparameters of a dataset of the catalogue.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Literal, get_args

from rarenode.errors import ArgumentError
from rarenode.training.settings import Settings

PresetName = Literal["best", "paper"]

PRESETS: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "best": MappingProxyType(
            {
                "weighting": "none",
                "trees": 500,
                "batch_size": 32,
                "learning_rate": 1e-3,
                "epochs": 100,
                "early_stopping": 5,
                "decision": "expected_f1",
                "folds": 3,
            }
        ),
        "paper": MappingProxyType({}),
    }
)
"""What each preset sets; all else is the default of `Settings`."""


def preset(name: str, **changes: Any) -> Settings:
    """The settings of a preset, with changes.

    ``holdout`` takes the place of the preset's folds.

    >>> preset("best", holdout=0.2).folds is None
    True
    """
    if name not in get_args(PresetName):
        raise ArgumentError(f"unknown preset {name!r}; choose one of {', '.join(get_args(PresetName))}")
    chosen = dict(PRESETS[name])
    if changes.get("holdout") is not None:
        chosen.pop("folds", None)
    return Settings(**(chosen | changes))
