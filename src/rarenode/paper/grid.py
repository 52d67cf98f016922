"""The grid of a spec: one `Cell` for each training."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rarenode.config import Settings
from rarenode.data.catalogue import find_entry
from rarenode.errors import ArgumentError
from rarenode.models import MlpEnsemble
from rarenode.objective.weights import FORMS
from rarenode.paper.as_published import settings_for, settings_for_own
from rarenode.paper.own_methods import CODE, Sources
from rarenode.paper.pictures import PICTURES, PictureDataset
from rarenode.paper.record_settings import decisive, default_of, differing
from rarenode.paper.spec import Protocol, Spec
from rarenode.training.estimate import memory_of_fit

FOLDS = 3
"""Of the protocol ``cross_fit``."""
EMBEDDING, ENCODER_COST = 2048, 2000
"""The usual width of an embedding, and what training an encoder costs for each pixel, in parameters of heads."""


@dataclass(frozen=True)
class _Size:
    rows: int
    features: int
    nodes: int


OWN = _Size(rows=1000, features=100, nodes=100)
"""What is assumed of data of one's own, which are not read before they are trained on."""
OWN_COPIES = 20
"""So many times the size of their files may be in memory."""


@dataclass(frozen=True)
class Cell:
    """A dataset, settings and a protocol, which determine a training. Methods of several specs may share one."""

    dataset: str
    settings: Settings
    protocol: Protocol = "paper"
    factor: float | None = None
    """See `Method`."""
    fraction: float | None = None
    own: Mapping[str, str] = field(default_factory=dict, hash=False)
    """What its spec brings itself, by content: see `Sources.identity`."""
    sources: Sources | None = field(default=None, compare=False, repr=False)
    """Where that is; None if there is nothing, or where the cell is that of a record."""

    @property
    def place(self) -> str:
        """The name of the folder of its records. Other content of one's own data has another one."""
        return f"{self.dataset}-{self.own['data'][:8]}" if "data" in self.own else self.dataset

    @property
    def name(self) -> str:
        """The name of its record's file: readable differences from the paper's hyperparameters, and a fingerprint."""
        usual = decisive(settings_for_own() if "data" in self.own else settings_for(self.dataset)) | {"seed": None}
        shown = {name: value for name, value in self.decisive.items() if value != usual.get(name, default_of(name))}
        if self.protocol != "paper":
            shown["protocol"] = self.protocol
        shown |= self.of_pictures
        shown |= {key: code.partition(" ")[0] for key, code in self.own.items() if key in CODE}
        text = ",".join(f"{name}={value}" for name, value in sorted(shown.items()))
        text = text.replace("/", "_").replace(":", "_")  # in the name of an encoder, but not of a file
        return f"{text[:120]}-{self.fingerprint[:12]}"

    @property
    def fingerprint(self) -> str:
        """sha256 of the dataset, the settings that differ from the defaults of records, the protocol, and the content
        of what the spec brings itself.

        A setting that is added to rarenode later does not change it, as long as it has its default.
        """
        content = [self.dataset, differing(self.settings)] + ([] if self.protocol == "paper" else [self.protocol])
        content += [self.of_pictures] if self.of_pictures else []
        content += [{"own": dict(self.own)}] if self.own else []
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode("ascii")).hexdigest()

    @property
    def of_pictures(self) -> dict[str, float]:
        """Its training factor and fraction, as far as it has any."""
        both = {"factor": self.factor, "fraction": self.fraction}
        return {name: value for name, value in both.items() if value is not None}

    @property
    def decisive(self) -> dict[str, Any]:
        """The settings that make it this training, by the names of records."""
        return decisive(self.settings)

    @property
    def cost(self) -> float:
        """About how long it takes, in no particular unit: the parameters that all steps update."""
        settings = self.settings
        if "data" in self.own:
            steps = settings.epochs * OWN.rows / settings.batch_size
            shapes = MlpEnsemble.from_settings(settings, OWN.features, OWN.nodes).parameter_shapes.values()
            return (FOLDS if self.protocol == "cross_fit" else 1) * steps * sum(map(math.prod, shapes))
        if self.dataset in PICTURES:
            return self._cost_of_pictures(PICTURES[self.dataset])
        entry = find_entry(self.dataset)
        valid = None if self.protocol == "held_out" else entry.file("valid")
        rows = sum(file.rows for file in (entry.file("train"), valid) if file is not None)
        trainings = FOLDS if self.protocol == "cross_fit" else 1  # each fold without its part, then once with all
        clones = 0.0 if settings.resampling == "none" else 0.4
        shapes = MlpEnsemble.from_settings(settings, entry.features, entry.nodes).parameter_shapes.values()
        per_step = sum(map(math.prod, shapes)) + 20_000 * settings.n_members  # a pass has its own cost
        return trainings * settings.epochs * rows * (1 + clones) / settings.batch_size * per_step

    @property
    def memory(self) -> int:
        """Bytes that it takes at its peak, roughly."""
        if "data" in self.own:
            size = 0 if self.sources is None or self.sources.data is None else self.sources.data.bytes
            return memory_of_fit(self.settings, OWN.rows, OWN.features, OWN.nodes) + OWN_COPIES * size
        if self.dataset in PICTURES:
            pictures = PICTURES[self.dataset]
            pixels = 3 * (self.settings.image_size or 224) ** 2 if self.settings.train_encoder else 0
            return memory_of_fit(self.settings, pictures.rows, EMBEDDING + pixels, pictures.nodes)
        entry = find_entry(self.dataset)
        return memory_of_fit(self.settings, sum(file.rows for file in entry.files), entry.features, entry.nodes)

    def _cost_of_pictures(self, pictures: PictureDataset) -> float:
        settings = self.settings
        steps = settings.epochs * math.ceil((self.fraction or 1.0) * pictures.rows / settings.batch_size)
        shapes = MlpEnsemble.from_settings(settings, EMBEDDING, pictures.nodes).parameter_shapes.values()
        pixels = settings.batch_size * (settings.image_size or 224) ** 2
        encoder = ENCODER_COST * pixels if settings.train_encoder else 0
        trainings = FOLDS if self.protocol == "cross_fit" else 1
        return trainings * steps * (sum(map(math.prod, shapes)) + encoder)


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
        Task(cell(spec, dataset, method.name, seed), method.name, spec.decisions_of(method.name))
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
    own = Sources(spec.data.get(dataset), chosen.objective, chosen.model, chosen.resampler)
    settings = simplest(chosen.settings_for(dataset, spec.settings, seed, is_own=own.data is not None))
    # All of the trained weights, or all rows, are what other trainings have too.
    factor, fraction = (None if value == 1 else value for value in (chosen.factor, chosen.fraction))
    identity = own.identity
    return Cell(dataset, settings, spec.protocol_of(chosen), factor, fraction, identity, own if identity else None)


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
    if len(settings.models) == 1:
        changes["blend"] = "geometric"  # nothing is blended
    if settings.weighting != "none" and settings.side == FORMS[settings.weighting][0]:
        idle.add("side")  # what auto would choose
    if settings.weighting == "none" or settings.mix == 0:
        changes["weighting"] = "none"
        idle |= {"w0", "side", "classes", "mix", "schedule"}
    if settings.schedule == "constant" or "schedule" in idle:
        idle |= {"schedule_by", "schedule_towards"}
    return settings.model_copy(update=changes | {name: Settings.model_fields[name].default for name in idle})
