"""The grid of a spec: one `Cell` for each training."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from rarenode.data.catalogue import find_entry
from rarenode.errors import ArgumentError
from rarenode.objective.weights import FORMS
from rarenode.paper.spec import SAID_OTHERWISE, Protocol, Spec
from rarenode.training.presets import PRESETS
from rarenode.training.settings import WITHOUT_INFLUENCE, Settings

FOLDS: int = PRESETS["best"]["folds"]
"""Of the protocol ``cross_fit``."""
BESIDE_THE_RESULT = WITHOUT_INFLUENCE | SAID_OTHERWISE | {"engine"}
"""Settings that do not make another training: engines compute the same, and a cell has a protocol of its own."""


@dataclass(frozen=True)
class Cell:
    """A dataset, settings and a protocol: all that a training follows from. Methods of several specs may share one."""

    dataset: str
    settings: Settings
    protocol: Protocol = "paper"

    @property
    def name(self) -> str:
        """What differs from the paper's hyperparameters, readable, and a fingerprint: the name of its record's file.

        The fingerprint is of the settings that are not rarenode's defaults, so that a setting added to rarenode later
        does not change it. The protocol is told, and is in the fingerprint, where it is not the paper's.
        """
        protocol = {} if self.protocol == "paper" else {"protocol": self.protocol}
        told = ",".join(f"{name}={value}" for name, value in sorted((self._differing() | protocol).items()))
        return f"{told[:120]}-{self.fingerprint[:12]}"

    @property
    def fingerprint(self) -> str:
        """sha256 of dataset, settings and protocol."""
        defaults = Settings().to_dict()
        chosen = {name: value for name, value in self.decisive.items() if value != defaults[name]}
        content = [self.dataset, chosen] if self.protocol == "paper" else [self.dataset, chosen, self.protocol]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()

    @property
    def decisive(self) -> dict[str, object]:
        """The settings that make it this training."""
        return decisive_of(self.settings)

    @property
    def cost(self) -> float:
        """About how long it takes, in no particular unit: parameters updated over all steps."""
        entry, settings = find_entry(self.dataset), self.settings
        valid = None if self.protocol == "held_out" else entry.file("valid")
        rows = sum(file.rows for file in (entry.file("train"), valid) if file is not None)
        trainings = FOLDS if self.protocol == "cross_fit" else 1  # each fold without its part, then once with all
        clones = 0.0 if settings.resample == "none" else 0.4
        shapes = settings.shape(entry.features, entry.nodes).parameter_shapes.values()
        per_step = sum(map(math.prod, shapes)) + 20_000 * settings.members  # a pass has a price of its own
        return trainings * settings.epochs * rows * (1 + clones) / settings.batch_size * per_step

    def _differing(self) -> dict[str, object]:
        usual = Settings.from_paper(find_entry(self.dataset).hyperparameters).to_dict() | {"seed": None}
        return {name: value for name, value in self.decisive.items() if value != usual[name]}


@dataclass(frozen=True)
class Task:
    """A cell, what the spec calls it, and what it is judged under."""

    cell: Cell
    method: str
    decisions: tuple[str, ...] = ()
    """None where the protocol is the paper's."""

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
        seeds: how many for each, instead of what the spec says.

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


def decisive_of(settings: Settings) -> dict[str, object]:
    """The settings that a training follows from, by their names."""
    return {name: value for name, value in settings.to_dict().items() if name not in BESIDE_THE_RESULT}


def simplest(settings: Settings) -> Settings:
    """The settings with defaults in place of what has no say, so that equal trainings are one.

    >>> simplest(Settings(weighting="none", w0=0.5)) == simplest(Settings(mix=0.0))
    True
    """
    idle: set[str] = set()
    changes: dict[str, object] = {}
    if settings.reduction == ("sum" if settings.members > 1 else "mean"):
        idle.add("reduction")  # what auto would choose
    if settings.focus is None:
        idle |= {"u0", "k"}
    if settings.weighting != "none" and settings.side == FORMS[settings.weighting][0]:
        idle.add("side")  # the weighting's own
    if settings.weighting == "none" or settings.mix == 0:
        changes["weighting"] = "none"
        idle |= {"w0", "side", "classes", "mix", "schedule"}
    if settings.schedule == "constant" or "schedule" in idle:
        idle |= {"schedule_by", "schedule_towards"}
    return settings.model_copy(update=changes | {name: Settings.model_fields[name].default for name in idle})
