"""`Settings`: everything that decides a training besides its rows, checked before anything is computed.

The same record is built from Python, from a TOML file and from a model folder, and each of them gets the same checks
and the same sentence about what is wrong. Defaults are the paper's, where the paper has one value for all its datasets.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from rarenode._io.text import explain
from rarenode.data.catalogue import Hyperparameters
from rarenode.engines import EngineName
from rarenode.errors import ArgumentError, FileFormatError, MissingFileError
from rarenode.models import MlpEnsemble
from rarenode.models.mlp import Activation, EnsembleKind
from rarenode.objective.schedule import By, Shape, Towards
from rarenode.objective.uncertainties import UNCERTAINTIES
from rarenode.objective.weights import Classes, Side
from rarenode.resampling import ResamplingName
from rarenode.thresholds.by_name import make_strategy
from rarenode.thresholds.coherence import Rule
from rarenode.thresholds.fixed import Fixed

Weighting = Literal["as_published", "as_described", "none"]
Reduction = Literal["auto", "mean", "sum"]

Count = Annotated[int, Field(ge=1)]
CountOrNone = Annotated[int, Field(ge=0)]
NotNegative = Annotated[float, Field(ge=0)]
Positive = Annotated[float, Field(gt=0)]

WITHOUT_INFLUENCE = frozenset({"checkpoint_epochs", "checkpoint_minutes"})
"""Settings that cannot change what is learnt, and so may differ when a training is resumed."""


class Settings(BaseModel):
    """How to train.

    >>> Settings(members=10, focus="gmu").members
    10
    >>> Settings(hidden=0)
    Traceback (most recent call last):
    rarenode.errors.ArgumentError: hidden: Input should be greater than or equal to 1; got 0
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, use_attribute_docstrings=True
    )

    hidden: Count = 500
    """Units in each hidden layer."""
    layers: Annotated[int, Field(ge=1, le=100)] = 3
    """Linear layers; 1 is a linear model."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.7
    """The chance that a hidden unit is dropped in training."""
    activation: Activation = "relu"
    """What follows a hidden layer: relu or tanh."""
    resample: ResamplingName = "none"
    """Rows trained on more than once: none, lpros, lpros-textbook, hros-pd or hros-pd-published."""
    members: Count = 1
    """Members of the ensemble."""
    ensemble: EnsembleKind = "independent"
    """independent (models of their own) or dropout (Monte-Carlo passes through one model, in training only)."""
    trees: CountOrNone = 0
    """Trees of a forest whose probabilities are joined with those of the network; 0 is no forest."""
    weighting: Weighting = "as_published"
    """Node weights: as_published (what produced the paper's tables), as_described (what the paper prints), none."""
    w0: NotNegative = 0.25
    """The gate of the node weights: the least weight."""
    side: Side | None = None
    """Which annotations carry node weights: negatives, positives or both; not set, the side of the weighting."""
    classes: Classes = "nodes"
    """N_classes of the node weights: all nodes, or binary (2)."""
    focus: str | None = None
    """Which uncertainty weighs the loss: gmu, bbma, epistemic_kl, epistemic_js, predictive, aleatoric, or focal."""
    u0: NotNegative = 0.25
    """The gate of the focus: the least focal weight."""
    k: NotNegative = 1.0
    """The exponent of the focus."""
    schedule: Shape = "constant"
    """How node weights move during training: constant, linear, exponential or alternating."""
    schedule_by: By = "batch"
    """What a step of the schedule is: a batch of each epoch, or an epoch of the training."""
    schedule_towards: Towards = 1
    """Where the schedule leads: 1 (the unweighted loss) or w0."""
    mix: Annotated[float, Field(ge=0, le=1)] = 1.0
    """The share of the weighted loss in the mixed loss."""
    reduction: Reduction = "auto"
    """mean or sum over rows and nodes; auto is the mean for one member and the sum for several, as published."""
    learning_rate: Positive = 1e-4
    """Of Adam."""
    weight_decay: NotNegative = 1e-5
    """Of Adam, the L2 kind."""
    batch_size: Count = 4
    """Rows in a batch; the last of an epoch may have fewer."""
    epochs: Count = 100
    """How often every row is seen; early stopping may end sooner."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    """Decides first weights, order of rows and dropout."""
    engine: EngineName = "auto"
    """What computes a step: auto, fused or torch."""
    early_stopping: Count | None = None
    """Epochs without a better validation AP after which to stop and keep the best; 0 trains to the end."""
    decision: str = "fixed"
    """How nodes are decided from probabilities: fixed, fixed:0.3, global, expected_f1, prior, tuned, ..."""
    rule: Rule = "add_ancestors"
    """How decisions are made coherent: add_ancestors or drop_orphans."""
    holdout: Annotated[float, Field(gt=0, lt=1)] | None = None
    """The share of rows to hold out, for decision and early stopping."""
    folds: Annotated[int, Field(ge=2)] | None = None
    """Instead, train once without each of so many folds, then once more on all rows; 0 is none."""
    checkpoint_epochs: Count | None = None
    """Save a checkpoint after every so many epochs."""
    checkpoint_minutes: Positive | None = 5.0
    """Save a checkpoint after every so many minutes."""

    if not TYPE_CHECKING:  # a type checker reads the fields, and knows their names and types

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                raise ArgumentError(explain(error, type(self))) from None

    @field_validator("*", mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        """Numbers out of numpy's arrays are numbers too; a search over a grid hands them in."""
        return value.item() if isinstance(value, np.generic) else value

    @field_validator("early_stopping", "folds", mode="before")
    @classmethod
    def _zero_is_none(cls, value: Any) -> Any:
        """None cannot be said in TOML, nor where it means what a preset says."""
        number = isinstance(value, int | np.integer) and not isinstance(value, bool)
        return None if number and value == 0 else value

    @field_validator("focus")
    @classmethod
    def _known_focus(cls, focus: str | None) -> str | None:
        if focus == "none":  # as the command line says it; TOML has no None
            return None
        if focus is not None and focus != "focal" and focus not in UNCERTAINTIES:
            raise ValueError(f"choose None, focal, {', '.join(UNCERTAINTIES)}")
        return focus

    @field_validator("decision")
    @classmethod
    def _known_decision(cls, decision: str) -> str:
        return make_strategy(decision).name

    @model_validator(mode="after")
    def _rows_to_decide_on(self) -> Self:
        if self.holdout is not None and self.folds is not None:
            raise ValueError("holdout and folds are two ways to the same rows; set one of them")
        if self.needs_unseen_rows and self.holdout is None and self.folds is None:
            raise ValueError(f"decision {self.decision} is found on rows that are not trained on; set holdout or folds")
        return self

    @property
    def needs_unseen_rows(self) -> bool:
        """Whether the decision is found on rows that the model was not trained on."""
        return not isinstance(make_strategy(self.decision), Fixed)

    @field_validator("schedule_towards", mode="after")
    @classmethod
    def _one(cls, towards: Towards) -> Towards:
        return 1 if towards == 1 else towards  # True and 1.0 equal 1, and would be written differently

    @classmethod
    def from_paper(cls, hyperparameters: Hyperparameters, **changes: Any) -> Self:
        """The paper's hyperparameters for a dataset of the catalogue, with changes.

        >>> from rarenode._io.text import explain
from rarenode.data.catalogue import find_entry
        >>> Settings.from_paper(find_entry("cellcycle_FUN").hyperparameters, members=10).epochs
        106
        """
        return cls(**(dataclasses.asdict(hyperparameters) | changes))

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; what is absent takes its default."""
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Every setting by its name, as JSON can hold it."""
        return self.model_dump()

    @classmethod
    def from_toml(cls, path: Path | str) -> Self:
        """Read settings from a file with lines such as ``members = 10``; what is absent takes its default.

        Raises:
            MissingFileError: there is no such file.
            FileFormatError: it is not TOML, or says something that is no setting.
        """
        try:
            values = tomllib.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise MissingFileError(f"{path} is not there; it should hold settings") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise FileFormatError(path, None, f"this is not TOML: {error}") from None
        try:
            return cls(**values)
        except ArgumentError as error:
            raise FileFormatError(path, None, str(error)) from None

    def to_toml(self) -> str:
        """The settings as text that `from_toml` reads, each under its description."""
        lines = []
        for name, value in self.to_dict().items():
            description = type(self).model_fields[name].description
            setting = f"# {name} is not set" if value is None else f"{name} = {json.dumps(value)}"
            lines.append(f"# {description}\n{setting}\n")
        return "\n".join(lines)

    @property
    def decisive(self) -> dict[str, Any]:
        """The settings that have a say in what is learnt."""
        return {name: value for name, value in self.to_dict().items() if name not in WITHOUT_INFLUENCE}

    @property
    def fingerprint(self) -> str:
        """sha256 of the decisive settings."""
        return hashlib.sha256(json.dumps(self.decisive, sort_keys=True).encode("ascii")).hexdigest()

    def shape(self, features: int, nodes: int) -> MlpEnsemble:
        """The ensemble that these settings describe, for data of that width."""
        return MlpEnsemble(
            features=features,
            nodes=nodes,
            hidden=self.hidden,
            layers=self.layers,
            dropout=self.dropout,
            activation=self.activation,
            members=self.members,
            ensemble=self.ensemble,
        )
