"""The grid of a spec: one `Cell` for each training."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rarenode.config import Settings
from rarenode.data.catalogue import find_entry
from rarenode.errors import ArgumentError
from rarenode.models import MlpEnsemble
from rarenode.objective.weights import FORMS
from rarenode.paper.as_published import settings_for
from rarenode.paper.record_settings import decisive, default_of, differing
from rarenode.paper.spec import Protocol, Spec

FOLDS = 3
"""Of the protocol ``cross_fit``."""


@dataclass(frozen=True)
class Cell:
    """A dataset, settings and a protocol, which determine a training. Methods of several specs may share one."""

    dataset: str
    settings: Settings
    protocol: Protocol = "paper"

    @property
    def name(self) -> str:
        """The name of its record's file: readable differences from the paper's hyperparameters, and a fingerprint."""
        usual = decisive(settings_for(self.dataset)) | {"seed": None}
        shown = {name: value for name, value in self.decisive.items() if value != usual.get(name, default_of(name))}
        if self.protocol != "paper":
            shown["protocol"] = self.protocol
        text = ",".join(f"{name}={value}" for name, value in sorted(shown.items()))
        return f"{text[:120]}-{self.fingerprint[:12]}"

    @property
    def fingerprint(self) -> str:
        """sha256 of the dataset, the settings that differ from the defaults of records, and the protocol.

        A setting that is added to rarenode later does not change it, as long as it has its default.
        """
        content = [self.dataset, differing(self.settings)] + ([] if self.protocol == "paper" else [self.protocol])
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()

    @property
    def decisive(self) -> dict[str, Any]:
        """The settings that make it this training, by the names of records."""
        return decisive(self.settings)

    @property
    def cost(self) -> float:
        """About how long it takes, in no particular unit: the parameters that all steps update."""
        entry, settings = find_entry(self.dataset), self.settings
        valid = None if self.protocol == "held_out" else entry.file("valid")
        rows = sum(file.rows for file in (entry.file("train"), valid) if file is not None)
        trainings = FOLDS if self.protocol == "cross_fit" else 1  # each fold without its part, then once with all
        clones = 0.0 if settings.resampling == "none" else 0.4
        shapes = MlpEnsemble.from_settings(settings, entry.features, entry.nodes).parameter_shapes.values()
        per_step = sum(map(math.prod, shapes)) + 20_000 * settings.n_members  # a pass has its own cost
        return trainings * settings.epochs * rows * (1 + clones) / settings.batch_size * per_step


@dataclass(frozen=True)
class Task:
    """A cell, its method in the spec, and the decisions to score."""

    cell: Cell
    method: str
    decisions: tuple[str, ...] = ()
    """Empty where the protocol is the paper's."""

    def __str__(self) -> str:
        return f"{self.cell.dataset}, {self.method}, seed {self.cell.settings.seed}"


def tasks(
    spec: Spec,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    seeds: int | None = None,
) -> list[Task]:
    """The trainings of a spec, or of some of its datasets and methods; one seed of everything before the next seed.

    Args:
        spec: the experiment.
        datasets: only these.
        methods: only these.
        seeds: how many for each, instead of the spec's.

    Raises:
        ArgumentError: the spec has no such dataset or method.
    """
    names = [method.name for method in spec.all_methods]
    for given, known, what in ((datasets, list(spec.datasets), "dataset"), (methods, names, "method")):
        for name in given or ():
            if name not in known:
                raise ArgumentError(f"the spec has no {what} {name!r}; it has {'; '.join(known)}")
    return [
        Task(cell(spec, dataset, method.name, seed), method.name, spec.decisions)
        for seed in range(seeds or max(method.seeds or spec.seeds for method in spec.all_methods))
        for dataset in spec.datasets
        if dataset in (datasets or spec.datasets)
        for method in spec.all_methods
        if method.name in (methods or names) and dataset in (method.datasets or spec.datasets)
        if seed < (seeds or spec.seeds_of(method, dataset))
    ]


def cell(spec: Spec, dataset: str, method: str, seed: int) -> Cell:
    """The training of one method on one dataset with one seed."""
    (chosen,) = (candidate for candidate in spec.all_methods if candidate.name == method)
    settings = simplest(chosen.settings_for(dataset, spec.settings, seed))
    return Cell(dataset, settings, spec.protocol_of(chosen))


def simplest(settings: Settings) -> Settings:
    """The settings with defaults in place of those without influence, so that equal trainings are one cell.

    >>> simplest(Settings(weighting="none", w0=0.5)) == simplest(Settings(mix=0.0))
    True
    """
    idle: set[str] = set()
    changes: dict[str, object] = {}
    if settings.reduction == ("sum" if settings.n_members > 1 else "mean"):
        idle.add("reduction")  # what auto would choose
    if settings.focus == "none":
        idle |= {"u0", "k"}
    if "forest" not in settings.models:
        idle.add("n_trees")
    if settings.weighting != "none" and settings.side == FORMS[settings.weighting][0]:
        idle.add("side")  # what auto would choose
    if settings.weighting == "none" or settings.mix == 0:
        changes["weighting"] = "none"
        idle |= {"w0", "side", "classes", "mix", "schedule"}
    if settings.schedule == "constant" or "schedule" in idle:
        idle |= {"schedule_by", "schedule_towards"}
    return settings.model_copy(update=changes | {name: Settings.model_fields[name].default for name in idle})
