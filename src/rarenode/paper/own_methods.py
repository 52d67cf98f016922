"""What a spec brings itself: datasets in sections ``[data.NAME]``, and Python code in methods.

    [[methods]]
    name = "asymmetric"
    objective = "my_loss.py:Asymmetric"         the network's loss; see `check_objective` for the rules of each
    resampler = "my_rows.py:Twice"              which of the network's rows are cloned; may stand beside an objective
    [[methods]]
    name = "my forest"
    model = "my_model.py:MyForest"              in the place of everything that is trained

Paths are relative to the folder of the spec. Both belong to the identity of a training by their content, so a file that
is changed makes another training; see `own_data` and `own_code`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from rarenode.config import Settings
from rarenode.paper.own_code import OwnCode, parse_code
from rarenode.paper.own_data import OwnData, parse_sections

if TYPE_CHECKING:
    from rarenode.paper.spec import Method

CODE = ("objective", "model", "resampler")
"""The keys of a method that name code."""
NEUTRAL: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "objective": {"weighting": "none", "focus": "none", "reduction": "auto"},
        "resampler": {"resampling": "none"},
    }
)
"""Settings whose place code takes, with their values in its training."""
NO_EFFECT: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "objective": frozenset(
            {*NEUTRAL["objective"], "w0", "side", "classes", "u0", "k", "schedule", "schedule_by", "schedule_towards"}
            | {"mix"}
        ),
        "resampler": frozenset({"resampling"}),
        "model": frozenset(Settings.model_fields) - {"encoder", "image_size"},
    }
)
"""Settings that a method with such code cannot have."""


@dataclass(frozen=True)
class Sources:
    """Where a training finds what its spec brings itself. It travels with the training."""

    data: OwnData | None = None
    objective: OwnCode | None = None
    model: OwnCode | None = None
    resampler: OwnCode | None = None

    @property
    def codes(self) -> dict[str, OwnCode]:
        """The code, by the key of the method."""
        return {key: code for key in CODE if (code := getattr(self, key)) is not None}

    @property
    def identity(self) -> dict[str, str]:
        """What makes the training another one than without: sha256 of data, class and sha256 of code."""
        data = {} if self.data is None else {"data": self.data.sha256}
        return data | {key: code.identity for key, code in self.codes.items()}


def parse_own(values: Mapping[str, Any], spec: Path | None) -> dict[str, Any]:
    """The values of a spec, with what it brings itself in the place of names.

    Raises:
        ValueError: a name, key or value is not possible, or a file is not there.
    """
    found = dict(values)
    if "data" in found:
        found["data"] = parse_sections(found["data"], spec)
    methods = found.get("methods")
    if isinstance(methods, list | tuple):
        found["methods"] = [_with_code(each, spec) if isinstance(each, Mapping) else each for each in methods]
    return found


def _with_code(method: Mapping[str, Any], spec: Path | None) -> dict[str, Any]:
    what = f"method {method.get('name', '')!r}"
    code = {
        key: parse_code(value, f"{what}: {key}", spec)
        for key, value in method.items()
        if key in CODE and not isinstance(value, OwnCode)
    }
    return {**method, **code}


def changes_for(method: Method, common: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a method that has code, on top of those that all methods have in common."""
    changes = {**common, **method.settings}
    for key in method.codes:
        changes = {name: value for name, value in changes.items() if name not in NO_EFFECT[key]}
        changes |= NEUTRAL.get(key, {})
    return changes


def check_own(method: Method, settings: Settings) -> None:
    """Make sure that code and settings of a method go together.

    Raises:
        ValueError: they do not; says why.
    """
    for key in method.codes:
        for name in sorted(method.settings.keys() & NO_EFFECT[key]):
            raise ValueError(f"setting {name} has no effect with {key}, which takes its place")
    if not method.codes:
        return
    if method.model is not None:
        others = [key for key in method.codes if key != "model"]
        others += [name for name in ("factor",) if getattr(method, name) is not None]
        others += ["preset"] if method.preset != "paper" else []
        if others:
            raise ValueError(f"{others[0]} has no effect with model, which is everything that is trained")
    elif "mlp" not in settings.models:
        raise ValueError(f"{next(iter(method.codes))} is for networks, and model={settings.model!r} has none")
    elif method.objective is not None and settings.engine == "fused":
        raise ValueError("objective needs engine = 'torch' or 'auto'; the fused engine has its own loss")
