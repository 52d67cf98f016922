"""The parameters of `RareNodeClassifier`, which are the settings and a few of its own."""

from __future__ import annotations

from textwrap import fill
from typing import Any

from rarenode.config import Settings, describe, setting_fields
from rarenode.errors import ArgumentError

SETTINGS = {name: field.default for name, field, *_ in setting_fields() if name != "seed"}
"""The parameters that are settings, with their defaults; the seed is scikit-learn's ``random_state``."""
OWN: dict[str, Any] = {"unscored": None, "n_counted": None, "prepare": True, "random_state": None, "verbose": False}
"""The other keyword parameters."""


def parameter_docs() -> str:
    """The settings as lines of a docstring."""
    lines = [
        fill(f"{name}: {describe(name)} Default: {default!r}.", 116, initial_indent=" " * 8, subsequent_indent=" " * 12)
        for name, default in SETTINGS.items()
    ]
    return "\n".join(lines).strip()


def check_held_out_rows(settings: Settings, rows: int) -> None:
    """Refuse settings for which there are not enough rows, in terms of this estimator's parameters."""
    if settings.cv is not None and rows < settings.cv:
        raise ArgumentError(
            f"cv={settings.cv} needs at least as many rows, got n_samples={rows}; with cv=0, patience=0 and "
            "thresholds='fixed' a model is trained once, on all rows"
        )
    stops_early = "mlp" in settings.models and settings.patience is not None
    if stops_early and settings.cv is None and settings.holdout is None:
        raise ArgumentError(
            f"patience={settings.patience} needs rows that are not trained on; set cv, holdout or eval_set, or "
            "patience=0"
        )
