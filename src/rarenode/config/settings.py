"""`Settings`: every setting of a training, declared once, with its type, range, meaning and default.

The estimator's parameters, the options of `rarenode fit`, TOML files, model files and the reference documentation all
follow from this record, so a new setting is added here and where it is used. Nothing here needs torch.

The defaults are what finds the most nodes at a good F1 (docs/guide/finding-rare-nodes.md has the evidence): an
unweighted network with early stopping, blended with a forest and nearest neighbours by weights that are learned, and
per-node thresholds fitted to out-of-fold predictions. ``Settings.preset("paper")`` has the values behind the paper's
tables instead.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from functools import reduce
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic.fields import FieldInfo

from rarenode._io.text import explain
from rarenode._io.toml import parse_toml
from rarenode.config.choices import (
    UNTRAINED,
    Activation,
    Augmentation,
    BatchNorm,
    BlendKind,
    Classes,
    EngineName,
    EnsembleKind,
    Focus,
    ModelKind,
    OutputBias,
    Precision,
    Reduction,
    Resampling,
    Rule,
    ScheduleShape,
    ScheduleTarget,
    ScheduleUnit,
    Side,
    Weighting,
    parse_augmentation,
    parse_model,
    parse_strategy,
    strategy_text,
)
from rarenode.config.fields import Count, NotNegative, Positive, setting
from rarenode.config.presets import PRESETS
from rarenode.errors import ArgumentError, FileFormatError, MissingFileError


class Settings(BaseModel):
    """How to train and how to decide.

    >>> Settings(n_members=10, focus="gmu").n_members
    10
    >>> Settings(hidden_size=0)
    Traceback (most recent call last):
    rarenode.errors.ArgumentError: hidden_size: Input should be greater than or equal to 1; got 0
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        allow_inf_nan=False,
        use_attribute_docstrings=True,
        protected_namespaces=(),
    )

    thresholds: str = setting("midpoint", "Decisions", main=True)
    """How per-node thresholds are chosen: expected_f1 (or expected_f2, expected_f0.5, ...), prior, midpoint (half-way
    between expected_f1 and prior), tuned, global, precision:0.5 (promised for bands of nodes that are about as
    frequent) or recall:0.9 (promised for each node), with a probability of 0.9, or fixed:0.3. A node is never predicted
    if a promise cannot be made for it. All but fixed are fitted to held-out rows, which cv or holdout provide."""
    rule: Rule = setting("add_ancestors", "Decisions")
    """How decisions become coherent: add_ancestors of decided nodes, or drop_orphans, whose parent is not decided."""
    cv: Annotated[int, Field(ge=2)] | None = setting(3, "Decisions", main=True)
    """Folds for out-of-fold predictions: train once without each fold, then once on all rows. 0: none."""
    holdout: Annotated[float, Field(gt=0, lt=1)] | None = setting(None, "Decisions", main=True)
    """The fraction of rows to hold out instead of cv: faster, but the model learns from fewer rows."""
    guaranteed_recall: Annotated[float, Field(gt=0, le=0.999)] = setting(0.9, "Decisions")
    """The share of a node's rows that guaranteed sets are to find, with a probability of 0.9."""

    model: str = setting("mlp+forest+neighbours", "Model", main=True)
    """What to train: mlp (an ensemble of perceptrons), forest, neighbours (nearest training rows), or several
    joined by +, such as mlp+forest: a blend of their probabilities."""
    blend: BlendKind = setting("learned", "Model")
    """How several models are blended: with weights that are learned from held-out rows, where a model that does not
    help is left out, or by the geometric mean of their probabilities, which also serves where no rows are held out."""
    n_members: Count = setting(1, "Model", main=True)
    """Members of the mlp ensemble. An epistemic focus needs at least 2."""
    ensemble: EnsembleKind = setting("independent", "Model")
    """What a member is: an independent network, or one Monte-Carlo dropout pass through a single network."""
    n_components: Count | None = setting(1000, "Model")
    """Sparse features with more columns, such as words, are projected on so many directions, in which training rows of
    length 1 vary most (truncated SVD). 0: they are not; every column is standardised."""
    hidden_size: Count = setting(500, "Model", main=True)
    """Units in each hidden layer."""
    n_layers: Annotated[int, Field(ge=1, le=100)] = setting(3, "Model")
    """Linear layers; 1 is a linear model."""
    dropout: Annotated[float, Field(ge=0, lt=1)] = setting(0.7, "Model")
    """The probability that a hidden unit is dropped during training."""
    activation: Activation = setting("relu", "Model")
    """The activation of hidden layers."""
    output_bias: OutputBias = setting("prior", "Model")
    """The biases of the output layer before the first step: prior, the log odds of each node's share of the training
    rows, so that no epoch is spent on learning how rare nodes are; or random, as in the paper."""
    n_trees: Count = setting(200, "Model", main=True)
    """Trees of the forest."""

    resampling: Resampling = setting("none", "Rare nodes", main=True)
    """Oversampling of rows with rare labels. lpros: label powerset random oversampling (LP-ROS), rounded up as in the
    paper; lpros-textbook: within its budget. hros-pd: hierarchical random oversampling of label paths (HROS-PD);
    hros-pd-published: the variant in the paper's code."""
    weighting: Weighting = setting("none", "Rare nodes", main=True)
    """Node weights by rarity: as_published (behind the paper's tables) or as_described (in its text)."""
    w0: NotNegative = setting(0.25, "Rare nodes", main=True)
    """The smallest node weight."""
    side: Literal["auto"] | Side = setting("auto", "Rare nodes")
    """Which labels node weights apply to; auto: negatives if weighting is as_published, positives if as_described."""
    classes: Classes = setting("nodes", "Rare nodes")
    """N_classes in the node weights: the number of nodes, or 2 (binary)."""
    focus: Focus = setting("none", "Rare nodes", main=True)
    """Focal weighting of each row and node: by the classic focal term (focal), or by an uncertainty of the ensemble.
    bbma (Bayesian model average): how close the mean probability is to 0.5. gmu (gated margin uncertainty): the same,
    larger where members disagree. epistemic_kl, epistemic_js: disagreement of members alone, the mean Kullback-Leibler
    or Jensen-Shannon divergence of their pairs. predictive: entropy of the mean. aleatoric: mean entropy of members."""
    u0: NotNegative = setting(0.25, "Rare nodes", main=True)
    """The smallest focal weight."""
    k: NotNegative = setting(1.0, "Rare nodes", main=True)
    """The exponent of the focal weight."""
    schedule: ScheduleShape = setting("constant", "Rare nodes")
    """How node weights change during training."""
    schedule_by: ScheduleUnit = setting("batch", "Rare nodes")
    """Whether the schedule runs over the batches of every epoch, or over the epochs."""
    schedule_towards: ScheduleTarget = setting(1, "Rare nodes")
    """Where the schedule ends: 1 (the unweighted loss) or w0."""
    mix: Annotated[float, Field(ge=0, le=1)] = setting(1.0, "Rare nodes")
    """The share of the weighted loss; the rest is the unweighted loss."""

    epochs: Count = setting(100, "Training", main=True)
    """Passes over the training rows, at most."""
    patience: Count | None = setting(5, "Training", main=True)
    """Early stopping: epochs without a better AP on held-out rows before training stops. 0: no early stopping."""
    batch_size: Count = setting(32, "Training", main=True)
    """Rows per training step."""
    learning_rate: Positive = setting(1e-3, "Training", main=True)
    """The learning rate of Adam."""
    weight_decay: NotNegative = setting(1e-5, "Training")
    """The L2 penalty of Adam."""
    reduction: Reduction = setting("auto", "Training")
    """Mean or sum of the loss over rows and nodes; auto: mean for one member, sum for several."""
    seed: Annotated[int, Field(ge=0, lt=2**63)] = setting(0, "Training", main=True)
    """Determines initial weights, order of rows, dropout, trees and folds."""

    encoder: Annotated[str, Field(min_length=1)] = setting("resnet50", "Images", main=True)
    """The image encoder: resnet18, resnet50, vit, dinov2, any image model of Hugging Face by name, a folder with one,
    or random:NAME, untrained."""
    image_size: Count | None = setting(None, "Images", main=True)
    """Height and width in pixels that images are scaled to; not set: what the encoder was made for."""
    train_encoder: bool = setting(False, "Images", main=True)
    """Train the encoder with the network, instead of using what it computes as it is."""
    encoder_learning_rate: Positive = setting(1e-4, "Images")
    """The learning rate of Adam for the encoder, if it is trained."""
    encoder_batchnorm: BatchNorm = setting("auto", "Images")
    """Statistics of batch normalisation in an encoder that is trained: frozen or trained; auto: frozen, but trained in
    a random encoder. Weights and biases learn in any case."""
    augmentation: str = setting("flip,crop,colour", "Images")
    """How images are varied while an encoder is trained: some of flip, crop, colour, separated by commas, or none."""
    precision: Precision = setting("auto", "Images")
    """What an encoder is trained in: float32, or bfloat16 where that suffices; auto: bfloat16 on GPUs made for it. A
    network without an encoder is trained in bfloat16 only if that is set, and on a GPU."""

    engine: EngineName = setting("auto", "Computation")
    """What computes a training step: fused (fast, CPU only) or torch."""
    device: str = setting("cpu", "Computation", main=True)
    """Where torch computes: cpu, cuda, cuda:1, mps, or auto, which is the best available."""
    compile: bool = setting(False, "Computation")
    """On a GPU, compile the constraint with torch.compile: few operations of many, but the first steps take longer. The
    CPU has compiled code for it anyway."""
    n_jobs: int | None = setting(None, "Computation", main=True)
    """Threads at most; not set or -1: all available cores."""
    checkpoint_epochs: Count | None = setting(None, "Computation")
    """Save a checkpoint every so many epochs."""
    checkpoint_minutes: Positive | None = setting(5.0, "Computation")
    """Save a checkpoint every so many minutes. 0: not by time."""

    if not TYPE_CHECKING:  # a type checker reads the fields, and knows their names and types

        def __init__(self, **values: Any) -> None:
            try:
                super().__init__(**values)
            except ValidationError as error:
                message = explain(error, type(self))
                if message.partition(":")[0] in ZERO_IS_NONE:
                    message = message.replace("; got", ", or 0; got")
                raise ArgumentError(message) from None

    @field_validator("patience", "cv", "checkpoint_minutes", "n_components", mode="before")
    @classmethod
    def _zero_is_none(cls, value: Any, info: ValidationInfo) -> Any:
        """TOML has no None, and neither has the command line."""
        numbers = (int, float) if info.field_name == "checkpoint_minutes" else (int,)
        return None if type(value) in numbers and value == 0 else value

    @field_validator("focus", mode="before")
    @classmethod
    def _no_focus(cls, focus: Any) -> Any:
        return "none" if focus is None else focus

    @field_validator("encoder", mode="before")
    @classmethod
    def _name_of_encoder(cls, encoder: Any) -> Any:
        if not isinstance(encoder, str):
            raise ValueError(
                "it should be a name or a folder; an Encoder or a torch module is given to what trains with it: "
                "Run.fit(..., encoder=module), fit_model(..., encoder=module) or RareNodeClassifier(encoder=module)"
            )
        return encoder

    @field_validator("*", mode="before")
    @classmethod
    def _plain(cls, value: Any) -> Any:
        """Numpy scalars, which a grid search passes in, are numbers too. Defined last, it runs before the others."""
        return value.item() if hasattr(value, "dtype") and hasattr(value, "item") else value

    @field_validator("n_jobs")
    @classmethod
    def _some_threads(cls, n_jobs: int | None) -> int | None:
        if n_jobs is not None and n_jobs < 1 and n_jobs != -1:
            raise ValueError("it should be at least 1, or -1 for all cores")
        return n_jobs

    @field_validator("model")
    @classmethod
    def _known_models(cls, model: str) -> str:
        return "+".join(parse_model(model))

    @field_validator("thresholds")
    @classmethod
    def _known_strategy(cls, thresholds: str) -> str:
        name, value = parse_strategy(thresholds)
        return strategy_text(name, value)

    @field_validator("augmentation")
    @classmethod
    def _known_augmentation(cls, augmentation: str) -> str:
        return ",".join(parse_augmentation(augmentation)) or "none"

    @field_validator("schedule_towards", mode="after")
    @classmethod
    def _one(cls, towards: ScheduleTarget) -> ScheduleTarget:
        return 1 if towards == 1 else towards  # True and 1.0 equal 1, but are written differently

    @model_validator(mode="before")
    @classmethod
    def _holdout_replaces_cv(cls, values: Any) -> Any:
        """The default of cv gives way to an explicit holdout."""
        if isinstance(values, dict) and values.get("holdout") is not None and "cv" not in values:
            return values | {"cv": None}
        return values

    @model_validator(mode="after")
    def _fits_together(self) -> Self:
        if self.holdout is not None and self.cv is not None:
            raise ValueError("holdout and cv are two ways to hold out rows; set one of them")
        if self.needs_held_out_rows and self.holdout is None and self.cv is None:
            raise ValueError(f"thresholds={self.thresholds} is fitted to held-out rows; set cv or holdout")
        if self.rule == "drop_orphans" and parse_strategy(self.thresholds)[0] == "recall":
            raise ValueError(
                f"rule=drop_orphans drops decisions that thresholds={self.thresholds} promises to find; choose "
                "rule=add_ancestors, or other thresholds"
            )
        return self

    @property
    def models(self) -> tuple[ModelKind, ...]:
        """The parts of ``model``."""
        return parse_model(self.model)

    @property
    def augmentations(self) -> tuple[Augmentation, ...]:
        """The parts of ``augmentation``."""
        return parse_augmentation(self.augmentation)

    @property
    def freezes_batchnorm(self) -> bool:
        """Whether batch normalisation in an encoder that is trained keeps its statistics."""
        auto = not self.encoder.startswith(UNTRAINED)
        return auto if self.encoder_batchnorm == "auto" else self.encoder_batchnorm == "frozen"

    @property
    def needs_held_out_rows(self) -> bool:
        """Whether the thresholds are fitted to rows that the model was not trained on."""
        return parse_strategy(self.thresholds)[0] != "fixed"

    @property
    def counts_labels(self) -> bool:
        """Whether training depends on how many rows have each node, other than by the loss."""
        return self.weighting != "none" or self.resampling != "none"

    @property
    def holds_out_rows(self) -> bool:
        """Whether some rows are predicted by a model that was not trained on them, without rows for validation."""
        learns_weights = self.blend == "learned" and len(self.models) > 1
        needed = self.needs_held_out_rows or self.patience is not None or learns_weights
        by_folds = self.cv is not None and needed
        return self.holdout is not None or by_folds

    @classmethod
    def preset(cls, name: str, /, **changes: Any) -> Self:
        """The settings of a preset, ``best`` or ``paper``, with changes.

        >>> Settings.preset("paper").thresholds
        'fixed'
        """
        if name not in PRESETS:
            raise ArgumentError(f"unknown preset {name!r}; choose one of {', '.join(PRESETS)}")
        return cls(**_merged(PRESETS[name], changes))

    def changed(self, *earlier: Mapping[str, Any], **changes: Any) -> Self:
        """These settings with changes, the last ones taking precedence over ``earlier`` ones.

        A new ``holdout`` replaces ``cv``, and the other way round.
        """
        return type(self)(**reduce(_merged, (*earlier, changes), self.to_dict()))

    def to_dict(self) -> dict[str, Any]:
        """Every setting by its name, as JSON can hold it; ``Settings(**values)`` is the inverse."""
        return self.model_dump()

    @classmethod
    def read_toml(cls, path: Path | str) -> dict[str, Any]:
        """The settings that a file with lines such as ``n_members = 10`` contains, each checked on its own.

        Raises:
            MissingFileError: there is no such file.
            FileFormatError: it is not TOML, or contains something that is not a setting.
        """
        try:
            values = parse_toml(Path(path).read_text(encoding="utf-8-sig"))
        except FileNotFoundError:
            raise MissingFileError(f"{path}: there is no such file of settings") from None
        except OSError as error:
            raise FileFormatError(path, None, f"it cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise FileFormatError(path, None, f"this is not TOML: {error}") from None
        for name, value in values.items():
            # Together they may still lack what options or a preset add, such as cv.
            alone = {} if name == "thresholds" else {"thresholds": "fixed", "cv": None}
            try:
                cls(**(alone | {name: value}))
            except ArgumentError as error:
                raise FileFormatError(path, None, str(error)) from None
        return values

    @classmethod
    def from_toml(cls, path: Path | str, absent: Mapping[str, Any] = MappingProxyType({})) -> Self:
        """Read a TOML file; what it does not mention takes the value in ``absent``, or its default.

        Raises:
            MissingFileError: there is no such file.
            FileFormatError: it is not TOML, or its settings are not valid.
        """
        values = {**absent, **cls.read_toml(path)}
        try:
            return cls(**values)
        except ArgumentError as error:
            raise FileFormatError(path, None, str(error)) from None

    def to_toml(self) -> str:
        """The settings as text that `from_toml` reads, each below its description."""
        lines = []
        zeros = {name: 0 for name in ZERO_IS_NONE if getattr(self, name) is None}
        for name, value in (self.to_dict() | zeros).items():
            line = f"# {name} is not set" if value is None else f"{name} = {json.dumps(value)}"
            lines.append(f"# {describe(name)}\n{line}\n")
        return "\n".join(lines)

    @property
    def decisive(self) -> dict[str, Any]:
        """The settings that influence the result."""
        return {name: value for name, value in self.to_dict().items() if name not in WITHOUT_INFLUENCE}

    @property
    def fingerprint(self) -> str:
        """sha256 of the decisive settings. Later ones count if they are set, so that older fingerprints stay valid."""
        before = {name: BEFORE.get(name, type(self).model_fields[name].default) for name in LATER}
        unset = {name for name, value in before.items() if getattr(self, name) == value}
        if len(self.models) == 1:
            unset.add("blend")  # nothing is blended
        counted = {name: value for name, value in self.decisive.items() if name not in unset}
        return hashlib.sha256(json.dumps(counted, sort_keys=True).encode("ascii")).hexdigest()


ZERO_IS_NONE = ("patience", "cv", "checkpoint_minutes", "n_components")
"""Settings whose 0 means not set: those that may be None, which is not their default. TOML has no None."""
WITHOUT_INFLUENCE = frozenset({"checkpoint_epochs", "checkpoint_minutes", "compile", "n_jobs"})
"""Settings that cannot change the result, and so may differ when a training is resumed."""
LATER = (
    "encoder", "image_size", "train_encoder", "encoder_learning_rate", "encoder_batchnorm", "augmentation", "precision",
    "blend", "guaranteed_recall", "output_bias", "n_components",
)  # fmt: skip
"""Settings that came after the first runs were saved, whose files know their fingerprint without them."""
BEFORE: Mapping[str, Any] = MappingProxyType({"blend": "geometric", "output_bias": "random", "n_components": None})
"""What files without a later setting mean, where that is not its default."""


def setting_fields() -> Iterator[tuple[str, FieldInfo, str, bool]]:
    """Name, field, group, and whether it is a main setting, in the order of documentation."""
    for name, field in Settings.model_fields.items():
        extra = field.json_schema_extra
        assert isinstance(extra, dict)  # noqa: S101 (`setting` puts it there)
        yield name, field, str(extra["group"]), bool(extra["main"])


def describe(name: str) -> str:
    """The description of a setting, in one line."""
    return " ".join((Settings.model_fields[name].description or "").split())


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Both, changes first; ``holdout`` and ``cv`` are alternatives, so a new one removes the other."""
    merged = dict(base) | dict(changes)
    if changes.get("holdout") is not None and not changes.get("cv"):
        merged["cv"] = None
    elif changes.get("cv") and changes.get("holdout") is None:
        merged["holdout"] = None
    return merged
