"""`Spec`: an experiment as a TOML file, with the paper's numbers in it.

A spec says which methods are trained on which datasets with how many seeds, and what was published for them. Specs of
the paper's tables and figures ship with the package, under ``specs/``; a path to a file of one's own works as well, so
that a method of one's own is one more ``[[methods]]``. Nothing in a spec is executed.

    title = "..."                               what it shows
    about = "..."                               where it is in the paper, and what to know
    datasets = ["cellcycle_FUN", ...]           names of the catalogue
    seeds = 3                                   trainings of each method on each dataset, with the seeds 0, 1, 2
    bold = "others"                             or the names of the baselines to exceed
    settings = { members = 10 }                 of all methods, on top of the paper's hyperparameters of a dataset
    reductions = { of = "dropout", against = "GMU", measures = ["seconds_per_epoch", "f1"] }      see `Reductions`

    [[methods]]
    name = "GMU"
    settings = { focus = "gmu" }                on top of the spec's
    datasets = ["cellcycle_FUN"]                only these; all of the spec's if absent
    seeds = 1                                   instead of the spec's

    [[sweeps]]                                  one method for each value, named "GMU, members=2"
    series = "GMU"
    setting = "members"
    values = [1, 2, 5, 10]
    settings = { focus = "gmu" }

    [[panels]]                                  of the figure: see `Panel`
    kind = "sweep"
    setting = "members"
    measures = ["f1"]

    [published.cellcycle_FUN]                   [mean, deviation], or the mean alone; scores in percent
    GMU = { f1 = [7.31, 0.20], recall = [7.57, 0.21] }
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from rarenode.data.catalogue import find_entry
from rarenode.errors import ArgumentError, FileFormatError, MissingFileError
from rarenode.training.settings import Settings, explain

Measure = Literal["f1", "precision", "recall", "bin_ap", "ap", "seconds_per_epoch", "steps_per_second", "memory_mb"]
REBUILT = "_rebuilt"
"""Ends the name of a dataset that was put together again; the paper's numbers are of the original."""

Name = Annotated[str, Field(min_length=1, max_length=200)]
Count = Annotated[int, Field(ge=1)]
NotNegative = Annotated[float, Field(ge=0)]
Published = NotNegative | tuple[NotNegative, NotNegative]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Method(_Part):
    """One way to train."""

    name: Name
    settings: dict[str, Any] = {}
    datasets: Annotated[tuple[str, ...], Field(min_length=1)] | None = None
    seeds: Count | None = None


class Sweep(_Part):
    """A way to train for each value of one setting."""

    series: Name
    setting: str
    values: Annotated[tuple[float | int | str, ...], Field(min_length=1)]
    settings: dict[str, Any] = {}
    datasets: tuple[str, ...] | None = None
    seeds: Count | None = None

    def method(self, value: float | int | str) -> Method:
        """The way to train for one value."""
        return Method(
            name=f"{self.series}, {self.setting}={value}",
            settings=self.settings | {self.setting: value},
            datasets=self.datasets,
            seeds=self.seeds,
        )


class Panel(_Part):
    """A drawing in the figure of a spec.

    ``sweep``: measures over a swept setting, a line for each series and measure. ``nodes``: a measure of the most
    frequent nodes, a line for each method. ``methods``: a measure of each method, averaged over datasets.
    """

    kind: Literal["sweep", "nodes", "methods"]
    title: str
    measures: Annotated[tuple[Measure, ...], Field(min_length=1)]
    setting: str | None = None
    nodes: Count = 20
    methods: tuple[str, ...] | None = None


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
    bold: Literal["others"] | tuple[Name, ...] = ()
    settings: dict[str, Any] = {}
    methods: tuple[Method, ...] = ()
    sweeps: tuple[Sweep, ...] = ()
    panels: tuple[Panel, ...] = ()
    reductions: Reductions | None = None
    published: dict[str, dict[str, dict[Measure, Published]]] = {}

    @property
    def all_methods(self) -> tuple[Method, ...]:
        """Methods, and those of the sweeps."""
        return self.methods + tuple(sweep.method(value) for sweep in self.sweeps for value in sweep.values)

    def published_for(self, dataset: str, method: str) -> Mapping[Measure, tuple[float, float | None]]:
        """What the paper has: measure -> (mean, deviation or None)."""
        row = self.published.get(dataset.removesuffix(REBUILT), {}).get(method, {})
        return {measure: v if isinstance(v, tuple) else (v, None) for measure, v in row.items()}

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        names = [method.name for method in self.all_methods]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"two methods are named {name!r}")
        if not names:
            raise ValueError("there is no method")
        for dataset in self.datasets:
            find_entry(dataset)
            if self.datasets.count(dataset) > 1:
                raise ValueError(f"{dataset!r} is among the datasets twice")
        for method in self.all_methods:
            if "early_stopping" in self.settings | method.settings:
                raise ValueError(f"method {method.name!r}: early_stopping needs validation rows, which are trained on")
            if "seed" in self.settings | method.settings:
                raise ValueError(
                    f"method {method.name!r}: seed is not for a spec to set; seeds says how many there are"
                )
            try:
                Settings.from_paper(find_entry(self.datasets[0]).hyperparameters, **(self.settings | method.settings))
            except ArgumentError as error:
                raise ValueError(f"method {method.name!r}: {error}") from None
            for dataset in method.datasets or ():
                _among(dataset, self.datasets, f"method {method.name!r}: datasets")
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
            for method_name in panel.methods or ():
                _among(method_name, names, f"panel {panel.title!r}")
            for measure in panel.measures:
                if panel.kind == "nodes":
                    _among(measure, ("precision", "recall", "f1"), f"panel {panel.title!r}")
            if panel.kind == "sweep":
                _among(panel.setting, [sweep.setting for sweep in self.sweeps], f"panel {panel.title!r}")
        return self


def spec_names() -> tuple[str, ...]:
    """The specs that ship with the package."""
    files = (resources.files("rarenode.experiments") / "specs").iterdir()
    return tuple(sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml")))


def load_spec(spec: str) -> Spec:
    """Read a spec by its name, or from a file.

    Raises:
        MissingFileError: there is none of that name.
        FileFormatError: the file is no spec; the message says what is wrong with it.
    """
    if spec in spec_names():
        text = (resources.files("rarenode.experiments") / "specs" / f"{spec}.toml").read_text(encoding="utf-8")
        return _parse(text, f"{spec}.toml")
    try:
        text = Path(spec).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FileFormatError(spec, None, f"this is not UTF-8: {error}") from None
    except (OSError, ValueError):  # no file, a folder, or no name that a file could have
        near = difflib.get_close_matches(spec[:100], spec_names(), n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(spec_names())}"
        raise MissingFileError(f"{spec[:200]} is neither a spec of rarenode nor a file; {hint}") from None
    return _parse(text, spec)


def _parse(text: str, path: str) -> Spec:
    try:
        return Spec.model_validate(tomllib.loads(text))
    except tomllib.TOMLDecodeError as error:
        raise FileFormatError(path, None, f"this is not TOML: {error}") from None
    except RecursionError:
        raise FileFormatError(path, None, "its values are nested too deeply") from None
    except ValidationError as error:
        raise FileFormatError(path, None, _problem(error)) from None


def _problem(error: ValidationError) -> str:
    first = error.errors(include_url=False)[0]
    if first["loc"]:
        return explain(error, Spec)
    return first["msg"].removeprefix("Value error, ")  # of the whole spec, which would be no help if shown


def _among(name: str | None, names: Any, what: str) -> None:
    if name not in names:
        raise ValueError(f"{what}: {name!r} is not one of {', '.join(map(str, names))}")
