"""`Spec`: an experiment as a TOML file, with the paper's numbers in it.

A spec has the methods to train, the datasets and seeds to train them on, and what was published for them. Specs of the
paper's tables and figures ship with the package, under ``specs/``; the path of any other file works as well, so a new
method is one more ``[[methods]]``. Such a file may describe datasets of its own, and its methods may name Python code,
which is executed where a training is, and nowhere else: reading a spec, its tables and its figures never execute it.

    title = "..."                               what it shows
    about = "..."                               where it is in the paper, and what to know
    datasets = ["cellcycle_FUN", ...]           names of the catalogue, of `PICTURES`, or of a section below
    seeds = 3                                   trainings of each method on each dataset, with the seeds 0, 1, 2
    one_seed = ["seq_FUN"]                      datasets with a single training of each method
    bold = "others"                             or the names of the baselines to exceed
    settings = { n_members = 10 }               of all methods, on top of the paper's hyperparameters of a dataset
    reductions = { of = "dropout", against = "GMU", measures = ["seconds_per_epoch", "f1"] }      see `Reductions`
    protocol = "held_out"                       see `Protocol`
    queued = false                              left out by `rarenode paper queue`
    decisions = ["fixed", "expected_f1"]        threshold strategies to score, where rows are held out
    headline = "expected_f1"                    the one of them that the page compares with a threshold of 0.5

    [[methods]]
    name = "GMU"
    settings = { focus = "gmu" }                on top of the spec's
    datasets = ["cellcycle_FUN"]                only these; all of the spec's if absent
    seeds = 1                                   instead of the spec's
    protocol = "cross_fit"                      instead of the spec's
    preset = "best"                             instead of the paper's hyperparameters
    decisions = ["midpoint"]                    besides the spec's
    headline = "midpoint"                       instead of the spec's
    factor = 0.5                                pictures: the training factor of the encoder; see `load_encoder`
    fraction = 0.1                              how much of the training rows to use

    objective = "my_loss.py:MyLoss"             code in the place of the network's loss; see `own_methods`
    resampler = "my_rows.py:MyResampler"        of the resampling
    model = "my_model.py:MyModel"               of everything that is trained

    [data.survey]                               a dataset of one's own; see `own_data`
    train = "survey/train.csv"
    test = "survey/test.csv"
    labels = "taxa"

    [[sweeps]]                                  one method for each value, named "GMU, members=2"
    series = "GMU"
    setting = "n_members"
    label = "members"                           the setting's name in methods and figures; by default as it is
    values = [1, 2, 5, 10]
    settings = { focus = "gmu" }

    [[panels]]                                  of the figure: see `Panel`
    kind = "sweep"
    setting = "n_members"
    measures = ["f1"]

    [published.cellcycle_FUN]                   [mean, deviation], or the mean alone; scores in percent
    GMU = { f1 = [7.31, 0.20], recall = [7.57, 0.21] }
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from rarenode._io.text import explain
from rarenode._io.toml import parse_toml
from rarenode.config import Settings
from rarenode.config.choices import UNTRAINED, Preset, parse_strategy, strategy_text
from rarenode.data.catalogue import find_entry
from rarenode.errors import ArgumentError, FileFormatError, MissingFileError
from rarenode.paper.as_published import REBUILT, settings_for, settings_for_own
from rarenode.paper.own_code import OwnCode
from rarenode.paper.own_data import OwnData
from rarenode.paper.own_methods import CODE, changes_for, check_own, parse_own
from rarenode.paper.panel import Count, Measure, Name, Panel
from rarenode.paper.panel import require_among as _among
from rarenode.paper.pictures import PICTURES

Protocol = Literal["paper", "held_out", "cross_fit"]
"""Which rows a training learns from, and which are held out for thresholds.

``paper``: trained on training and validation rows, scored at the threshold 0.5. ``held_out``: trained on the training
rows; the validation rows are held out, or a part of the training rows where there are none. ``cross_fit``: trained on
training and validation rows; thresholds are fitted to out-of-fold predictions.
"""
BY_PROTOCOL: Mapping[str, Any] = MappingProxyType(
    {"thresholds": "fixed", "rule": "add_ancestors", "holdout": None, "cv": None, "guaranteed_recall": 0.9}
)
"""Settings that a spec replaces by protocol and decisions, with their values in a cell."""

NotNegative = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Published = NotNegative | tuple[NotNegative, NotNegative]
OF_PICTURES = ("factor", "fraction")
"""What a method may vary besides settings, and a sweep may sweep."""


def _known_decision(text: str) -> str:
    try:
        return strategy_text(*parse_strategy(text))
    except ArgumentError as error:
        raise ValueError(str(error)) from None


def _different(names: tuple[str, ...]) -> tuple[str, ...]:
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"the decision {name!r} is there twice")
    return names


Decision = Annotated[Name, AfterValidator(_known_decision)]
Decisions = Annotated[tuple[Decision, ...], AfterValidator(_different)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Method(_Part):
    """A way to train."""

    name: Name
    settings: dict[str, Any] = {}
    datasets: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    seeds: Count | None = None
    protocol: Protocol | None = None
    preset: Preset = "paper"
    """Where other settings come from: the paper's hyperparameters of a dataset, or the preset ``best``."""
    decisions: Decisions = ()
    """Threshold strategies besides those of the spec."""
    headline: Decision | None = None
    factor: Share | None = None
    """The training factor of an encoder: the share of its trained weights, the rest being random ones."""
    fraction: Annotated[float, Field(gt=0, le=1)] | None = None
    """How much of the training rows to use; None: all."""
    objective: InstanceOf[OwnCode] | None = None
    """Code, as in `own_methods`."""
    model: InstanceOf[OwnCode] | None = None
    resampler: InstanceOf[OwnCode] | None = None

    @property
    def codes(self) -> dict[str, OwnCode]:
        """Its code, by key."""
        return {key: code for key in CODE if (code := getattr(self, key)) is not None}

    def settings_for(
        self, dataset: str, common: Mapping[str, Any], seed: int = 0, *, is_own: bool = False
    ) -> Settings:
        """How to train on a dataset, in a spec whose methods have some settings in common.

        Raises:
            ArgumentError: something is not a setting, or out of range.
        """
        changes = {**BY_PROTOCOL, **changes_for(self, common), "seed": seed}
        if self.preset == "paper":
            return settings_for_own(**changes) if is_own else settings_for(dataset, **changes)
        return Settings.preset(self.preset, **changes)


class Sweep(_Part):
    """A method for each value of one setting."""

    series: Name
    setting: str
    label: Name | None = None
    """The setting's name in methods and figures."""
    values: Annotated[tuple[float | int | str, ...], Field(min_length=1)]
    settings: dict[str, Any] = {}
    datasets: tuple[str, ...] | None = None
    seeds: Count | None = None
    protocol: Protocol | None = None
    factor: Share | None = None
    """As in `Method`."""
    fraction: Annotated[float, Field(gt=0, le=1)] | None = None

    def method(self, value: float | int | str) -> Method:
        """The method of one value."""
        of_rows = self.setting in OF_PICTURES
        rest: dict[str, Any] = {"factor": self.factor, "fraction": self.fraction}
        return Method(
            name=f"{self.series}, {self.label or self.setting}={value}",
            settings=self.settings if of_rows else self.settings | {self.setting: value},
            datasets=self.datasets,
            seeds=self.seeds,
            protocol=self.protocol,
            **rest | ({self.setting: value} if of_rows else {}),
        )


class Reductions(_Part):
    """What one method saves or loses against another, in percent of the other, averaged over datasets."""

    of: Name
    against: Name
    measures: Annotated[tuple[Measure, ...], Field(min_length=1)]


class Spec(_Part):
    """An experiment."""

    title: Name
    about: str = ""
    datasets: Annotated[tuple[str, ...], Field(min_length=1)]
    seeds: Count = 3
    one_seed: tuple[str, ...] = ()
    protocol: Protocol = "paper"
    decisions: Decisions = ()
    """Threshold strategies, as `strategy_text` writes them."""
    headline: Decision = "expected_f1"
    """The strategy that the page compares with a threshold of 0.5."""
    bold: Literal["others"] | tuple[Name, ...] = ()
    settings: dict[str, Any] = {}
    methods: tuple[Method, ...] = ()
    sweeps: tuple[Sweep, ...] = ()
    panels: tuple[Panel, ...] = ()
    reductions: Reductions | None = None
    queued: bool = True
    """Whether `rarenode paper queue` trains it; not if the data are not to be had."""
    published: dict[str, dict[str, dict[Measure, Published]]] = {}
    data: dict[str, InstanceOf[OwnData]] = {}
    """Datasets of its own, by name."""

    @property
    def all_methods(self) -> tuple[Method, ...]:
        """Methods, and those of the sweeps."""
        return self.methods + tuple(sweep.method(value) for sweep in self.sweeps for value in sweep.values)

    def seeds_of(self, method: Method, dataset: str) -> int:
        """How many trainings of a method on a dataset there are."""
        return 1 if dataset in self.one_seed else method.seeds or self.seeds

    def protocol_of(self, method: Method) -> Protocol:
        """The method's own, or the spec's."""
        return method.protocol or self.protocol

    def decisions_of(self, method: str) -> tuple[str, ...]:
        """The strategies that are scored for a method."""
        return self.decisions + next((each.decisions for each in self.all_methods if each.name == method), ())

    def headline_of(self, method: str) -> str:
        """The strategy of a method that the page compares with a threshold of 0.5."""
        return next((each.headline for each in self.all_methods if each.name == method), None) or self.headline

    def published_for(self, dataset: str, method: str) -> Mapping[Measure, tuple[float, float | None]]:
        """What the paper has: measure -> (mean, deviation or None)."""
        row = self.published.get(dataset.removesuffix(REBUILT), {}).get(method, {})
        return {measure: v if isinstance(v, tuple) else (v, None) for measure, v in row.items()}

    @model_validator(mode="before")
    @classmethod
    def _with_its_own(cls, values: Any, info: ValidationInfo) -> Any:
        """Data and code, from the names of files; the context has the path of the spec, if it is a file."""
        return parse_own(values, (info.context or {}).get("path")) if isinstance(values, dict) else values

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [method.name for method in self.all_methods]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two methods are named {name!r}")
        if not names:
            raise ValueError("there is no method")
        for dataset in self.datasets:
            if dataset not in PICTURES and dataset not in self.data:
                find_entry(dataset)
            if self.datasets.count(dataset) > 1:
                raise ValueError(f"{dataset!r} is among the datasets twice")
        for name in self.data:
            _among(name, self.datasets, "[data.*]")
        for name in self.one_seed:
            _among(name, self.datasets, "one_seed")
        for method in self.all_methods:
            protocol = self.protocol_of(method)
            if protocol == "paper" and self.decisions:
                raise ValueError(
                    f"method {method.name!r}: decisions need held-out rows, which the protocol 'paper' does not have; "
                    "choose protocol = 'held_out' or 'cross_fit'"
                )
            if protocol != "paper" and not self.decisions:
                raise ValueError(
                    f"method {method.name!r}: the protocol {protocol!r} holds out rows for decisions, and the spec has "
                    "none; for example, decisions = ['fixed', 'expected_f1']"
                )
            if "seed" in self.settings | method.settings:
                raise ValueError(
                    f"method {method.name!r}: a spec cannot set seed; seeds is the number of seeds"
                )
            for name in sorted(BY_PROTOCOL.keys() & (self.settings | method.settings).keys()):
                raise ValueError(
                    f"method {method.name!r}: a spec cannot set {name}; protocol and decisions take its place"
                )
            try:
                first = self.datasets[0]
                settings = method.settings_for(first, self.settings, is_own=first in self.data)
                check_own(method, settings)
            except ValueError as error:
                raise ValueError(f"method {method.name!r}: {error}") from None
            if protocol != "cross_fit" and settings.patience is not None:
                use = "are used for training" if protocol == "paper" else "decisions are fitted to"
                raise ValueError(f"method {method.name!r}: patience needs validation rows, which {use}")
            if method.fraction is not None and protocol != "paper":
                raise ValueError(f"method {method.name!r}: a fraction needs protocol = 'paper'")
            if method.factor is not None and not set(method.datasets or self.datasets) <= PICTURES.keys():
                raise ValueError(f"method {method.name!r}: a training factor is for pictures")
            if method.factor is not None and settings.encoder.startswith(UNTRAINED):
                raise ValueError(
                    f"method {method.name!r}: a training factor mixes trained weights with random ones, and "
                    f"{settings.encoder} has only these"
                )
            for decision in method.decisions:
                if decision in self.decisions:
                    raise ValueError(f"method {method.name!r}: the decision {decision!r} is one of the spec's")
            if method.headline is not None:
                _among(method.headline, self.decisions_of(method.name), f"method {method.name!r}: headline")
            for dataset in method.datasets or ():
                _among(dataset, self.datasets, f"method {method.name!r}: datasets")
        for name in ("bold", "panels", "reductions", "published") if self.decisions else ():
            if getattr(self, name):
                raise ValueError(f"{name} is for specs without decisions")
        for baseline in () if isinstance(self.bold, str) else self.bold:
            _among(baseline, names, "bold")
        for dataset, rows in self.published.items():
            _among(dataset, [name.removesuffix(REBUILT) for name in self.datasets], "published")
            for method_name in rows:
                _among(method_name, names, f"published.{dataset}")
        if self.reductions is not None:
            for method_name in (self.reductions.of, self.reductions.against):
                _among(method_name, names, "reductions")
        for panel in self.panels:
            panel.check(names, [(sweep.setting, sweep.series) for sweep in self.sweeps])
        return self


def spec_names() -> tuple[str, ...]:
    """The specs that ship with the package."""
    files = (resources.files("rarenode.paper") / "specs").iterdir()
    return tuple(sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml")))


def load_spec(spec: str) -> Spec:
    """Read a spec by its name, or from a file.

    Raises:
        MissingFileError: there is none of that name.
        FileFormatError: the file is no spec; the message says what is wrong with it.
    """
    if spec in spec_names():
        text = (resources.files("rarenode.paper") / "specs" / f"{spec}.toml").read_text(encoding="utf-8")
        return _parse(text, f"{spec}.toml")
    try:
        text = Path(spec).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FileFormatError(spec, None, f"this is not UTF-8: {error}") from None
    except (OSError, ValueError):  # no file, a folder, or no name that a file could have
        near = difflib.get_close_matches(spec[:100], spec_names(), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(spec_names())}"
        raise MissingFileError(f"{spec[:200]} is neither a spec of rarenode nor a file; {hint}") from None
    return _parse(text, spec, Path(spec))


def _parse(text: str, name: str, path: Path | None = None) -> Spec:
    try:
        return Spec.model_validate(parse_toml(text), context={"path": path})
    except ValidationError as error:
        raise FileFormatError(name, None, _problem(error)) from None
    except ValueError as error:
        raise FileFormatError(name, None, f"this is not TOML: {error}") from None


def _problem(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    if first["loc"]:
        return explain(error, Spec)
    return first["msg"].removeprefix("Value error, ")  # of the whole spec, which would be no help if shown
