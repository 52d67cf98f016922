"""The settings in a record: the vocabulary of the files in ``results/``, which does not change.

Records name settings as the first version of rarenode did, and their file names and fingerprints consist of the
settings that differ from the defaults *of that version*. `Settings` has better names and other defaults today, so this
module translates. A setting that was added later has its own name and default in both, and is written only if it
differs from that default, so that records do not change when settings are added.

=================  ====================================================
in a record        in `Settings`
=================  ====================================================
hidden             hidden_size
layers             n_layers
resample           resampling
members            n_members
trees              n_trees; 0 if ``model`` has no forest
model              only ``forest``, a forest without a network
side: null         side: auto
focus: null        focus: none
early_stopping     patience
decision           thresholds
folds              cv
=================  ====================================================

``compile``, ``device`` and ``n_jobs`` are not recorded: they do not influence the result.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import BeforeValidator, PlainSerializer

from rarenode.config import Settings
from rarenode.errors import ArgumentError

DEFAULTS: Mapping[str, Any] = MappingProxyType(
    {
        "hidden": 500,
        "layers": 3,
        "dropout": 0.7,
        "activation": "relu",
        "resample": "none",
        "members": 1,
        "ensemble": "independent",
        "trees": 0,
        "weighting": "as_published",
        "w0": 0.25,
        "side": None,
        "classes": "nodes",
        "focus": None,
        "u0": 0.25,
        "k": 1.0,
        "schedule": "constant",
        "schedule_by": "batch",
        "schedule_towards": 1,
        "mix": 1.0,
        "reduction": "auto",
        "learning_rate": 1e-4,
        "weight_decay": 1e-5,
        "batch_size": 4,
        "epochs": 100,
        "seed": 0,
        "engine": "auto",
        "early_stopping": None,
        "decision": "fixed",
        "rule": "add_ancestors",
        "holdout": None,
        "folds": None,
        "checkpoint_epochs": None,
        "checkpoint_minutes": 5.0,
    }
)
"""Every setting of the first version, in its order, with its default. Never to be changed."""
SINCE: Mapping[str, Any] = MappingProxyType({"model": None, "blend": "geometric", "output_bias": "random"})
"""Settings that came later, with their values in records that do not have them. Never to be changed."""
RENAMED: Mapping[str, str] = MappingProxyType(
    {
        "hidden_size": "hidden",
        "n_layers": "layers",
        "resampling": "resample",
        "n_members": "members",
        "patience": "early_stopping",
        "thresholds": "decision",
        "cv": "folds",
    }
)
"""Name in `Settings` -> name in a record, where they differ."""
NOTHING_SET: Mapping[str, str] = MappingProxyType({"side": "auto", "focus": "none"})
"""Settings that are null in a record where `Settings` has a word for it."""
NOT_RECORDED = frozenset({"compile", "device", "n_jobs"})
NO_OTHER_TRAINING = frozenset(
    {"checkpoint_epochs", "checkpoint_minutes", "engine", "decision", "rule", "holdout", "folds", "guaranteed_recall"}
)
"""Settings that do not make another training: engines compute the same, and a cell has its own protocol."""


def to_record(settings: Settings) -> dict[str, Any]:
    """Settings by the names of records, as JSON can hold them.

    >>> to_record(Settings(n_members=3))["members"], to_record(Settings(model="mlp"))["trees"]
    (3, 0)
    """
    values = {name: value for name, value in settings.to_dict().items() if name not in NOT_RECORDED}
    trees, kinds = values.pop("n_trees"), settings.models
    del values["model"]
    for name, word in NOTHING_SET.items():
        values[name] = None if values[name] == word else values[name]
    named = {RENAMED.get(name, name): value for name, value in values.items()}
    named["trees"] = trees if "forest" in kinds else 0
    if "mlp" not in kinds or "neighbours" in kinds:  # others follow from the number of trees
        named["model"] = settings.model
    first = {name: named.pop(name) for name in DEFAULTS}
    return first | {name: value for name, value in named.items() if value != default_of(name)}


def from_record(values: Mapping[str, Any]) -> Settings:
    """The inverse of `to_record`; what is absent takes the default of records.

    Raises:
        ArgumentError: a value is not possible, or not a setting.

    >>> from_record({"trees": 500, "members": 3}).model
    'mlp+forest'
    """
    for name in sorted(values.keys() & (RENAMED.keys() | {"n_trees"} | NOT_RECORDED)):
        raise ArgumentError(f"unknown setting {name!r} in a record")
    named = {**DEFAULTS, **SINCE, **values}
    trees, model = named.pop("trees"), named.pop("model")
    for name, word in NOTHING_SET.items():
        named[name] = word if named[name] is None else named[name]
    back = {old: new for new, old in RENAMED.items()}
    forest: dict[str, Any] = {"model": model or ("mlp+forest" if trees else "mlp")}
    if trees:
        forest["n_trees"] = trees
    return Settings(**{back.get(name, name): value for name, value in named.items()}, **forest)


def decisive(settings: Settings) -> dict[str, Any]:
    """The settings that make a training the training it is, by the names of records."""
    return {name: value for name, value in to_record(settings).items() if name not in NO_OTHER_TRAINING}


def differing(settings: Settings) -> dict[str, Any]:
    """The decisive settings that differ from the defaults of records."""
    return {name: value for name, value in decisive(settings).items() if value != default_of(name)}


def default_of(name: str) -> Any:
    """The default of a setting, by its name in records."""
    known = {**DEFAULTS, **SINCE}
    return known[name] if name in known else Settings.model_fields[name].default


def _parse(value: Any) -> Any:
    return from_record(value) if isinstance(value, Mapping) else value


RecordSettings = Annotated[Settings, BeforeValidator(_parse), PlainSerializer(to_record)]
"""Settings in a pydantic model of a file."""
