"""The parts of ``model.json``, each with a strict schema, as a folder may come from anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from rarenode.config.choices import Rule
from rarenode.data.preparation import Categories, Preparation
from rarenode.data.projection import SMALLEST, Projection
from rarenode.hierarchy import Hierarchy, Terms
from rarenode.models.encoder import SUMS
from rarenode.models.model import Layout
from rarenode.thresholds import GuaranteedRecall, Thresholds

MOST_STRATEGY_CHARACTERS = 100
DIRECTIONS = "preparation.directions"
"""The array of a `Projection`, beside those of the model."""

Count = Annotated[int, Field(ge=0, lt=2**63)]
Share = Annotated[float, Field(ge=0, le=1)]
_Deviation = Annotated[float, Field(gt=0)]
_Threshold = Annotated[float, Field(ge=0)] | None
"""null is never."""


class TermsRecord(BaseModel):
    """The content of `Terms`."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    titles: tuple[str, ...]
    namespaces: tuple[str, ...] | None = None
    aliases: dict[str, str] = {}
    obsolete: tuple[str, ...] = ()
    excluded: tuple[str, ...] = ()

    def as_terms(self) -> Terms:
        """As a `Terms`."""
        return Terms(self.titles, self.namespaces, self.aliases, frozenset(self.obsolete), frozenset(self.excluded))


class HierarchyRecord(BaseModel):
    """A hierarchy: names in column order, and edges as pairs of columns, the parent's first."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    nodes: tuple[str, ...]
    edges: tuple[tuple[Count, Count], ...]
    terms: TermsRecord | None = None

    @classmethod
    def describe(cls, hierarchy: Hierarchy) -> Self:
        """The record of a hierarchy."""
        edges = zip(hierarchy.edge_parents.tolist(), hierarchy.edge_children.tolist(), strict=True)
        terms = hierarchy.terms
        if terms is None:
            return cls(nodes=hierarchy.nodes, edges=tuple(edges))
        described = TermsRecord(
            titles=terms.titles,
            namespaces=terms.namespaces,
            aliases=dict(terms.aliases),
            obsolete=tuple(sorted(terms.obsolete)),
            excluded=tuple(sorted(terms.excluded)),
        )
        return cls(nodes=hierarchy.nodes, edges=tuple(edges), terms=described)


class CategoriesRecord(BaseModel):
    """The content of `Categories`."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    levels: tuple[str, ...]
    pooled: bool


class ProjectionRecord(BaseModel):
    """The content of a `Projection`; its directions are in ``model.safetensors``."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    largest: tuple[Annotated[float, Field(ge=SMALLEST)], ...]
    components: Annotated[int, Field(ge=1, lt=2**31)]


class PreparationRecord(BaseModel):
    """The statistics of a `Preparation`."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    fill: tuple[float, ...]
    mean: tuple[float, ...]
    deviation: tuple[Annotated[float, Field(gt=0)], ...]
    categories: tuple[CategoriesRecord | None, ...] | None = None
    projection: ProjectionRecord | None = None

    @model_validator(mode="after")
    def _of_numbers(self) -> Self:
        if self.projection is not None and self.categories is not None:
            raise ValueError("features with categories are not projected")
        return self

    @classmethod
    def describe(cls, preparation: Preparation) -> Self:
        """The record of a preparation."""
        categories, projection = preparation.categories, preparation.projection
        return cls(
            fill=tuple(preparation.fill.tolist()),
            mean=tuple(preparation.mean.tolist()),
            deviation=tuple(preparation.deviation.tolist()),
            categories=None if categories is None else tuple(map(_described, categories)),
            projection=None
            if projection is None
            else ProjectionRecord(largest=tuple(projection.largest.tolist()), components=projection.n_components),
        )

    @property
    def n_features(self) -> int:
        """Features, before categories become columns."""
        return len(self.fill) if self.categories is None else len(self.categories)

    @property
    def width(self) -> int:
        """Columns that features become."""
        if self.projection is not None:
            return self.projection.components
        if self.categories is None:
            return len(self.fill)
        return sum(1 if one is None else len(one.levels) + one.pooled for one in self.categories)

    def layout(self) -> Layout:
        """Arrays that are beside those of the model."""
        if self.projection is None:
            return {}
        return {DIRECTIONS: (np.dtype(np.float32), (len(self.projection.largest), self.projection.components))}

    def as_preparation(self, arrays: Mapping[str, NDArray[Any]]) -> Preparation:
        """As arrays; ``arrays`` are those of `layout`."""
        fill, mean, deviation = (np.array(each, dtype=np.float64) for each in (self.fill, self.mean, self.deviation))
        if self.projection is not None:
            return Preparation(
                fill, mean, deviation, projection=Projection(np.array(self.projection.largest), arrays[DIRECTIONS])
            )
        if self.categories is None:
            return Preparation(fill, mean, deviation)
        each = (None if one is None else Categories(one.levels, one.pooled) for one in self.categories)
        return Preparation(fill, mean, deviation, tuple(each))


def _described(categories: Categories | None) -> CategoriesRecord | None:
    return None if categories is None else CategoriesRecord(levels=categories.levels, pooled=categories.pooled)


def _one_line(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it must be one printable line")
    return text


class ThresholdsRecord(BaseModel):
    """The content of `Thresholds`."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    rule: Rule
    strategy: Annotated[str, Field(max_length=MOST_STRATEGY_CHARACTERS), AfterValidator(_one_line)]
    values: tuple[_Threshold, ...]

    def as_thresholds(self) -> Thresholds:
        """As an array."""
        return Thresholds(_array(self.values), self.rule, self.strategy)


class GuaranteedRecord(BaseModel):
    """The content of `GuaranteedRecall`."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    recall: Annotated[float, Field(gt=0, le=0.999)]
    values: tuple[Share | None, ...]
    """null for a node without a guarantee."""
    rows: tuple[Count, ...]

    @classmethod
    def describe(cls, guaranteed: GuaranteedRecall) -> Self:
        """The record of guaranteed sets."""
        values = guaranteed.thresholds.to_dict()["values"]
        return cls(recall=guaranteed.recall, values=tuple(values), rows=tuple(guaranteed.rows.tolist()))

    def as_guaranteed(self) -> GuaranteedRecall:
        """As arrays."""
        return GuaranteedRecall.of(self.recall, _array(self.values), np.array(self.rows, dtype=np.int64))

    def contradiction(self) -> str:
        """What no fit would have written; empty if there is nothing."""
        needed = self.as_guaranteed().rows_needed
        if any(value is not None and rows < needed for value, rows in zip(self.values, self.rows, strict=True)):
            return f"a node has a threshold and fewer than {needed} rows"
        return ""


def _array(values: tuple[float | None, ...]) -> NDArray[np.float64]:
    return np.array([np.inf if value is None else value for value in values], dtype=np.float64)


class EncoderRecord(BaseModel):
    """The content of `Encoder.describe`; the weights are in ``encoder.safetensors``."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid", allow_inf_nan=False)

    name: Annotated[str, AfterValidator(_one_line)]
    config: dict[str, Any] | None
    resize: Annotated[int, Field(ge=1)]
    size: Annotated[int, Field(ge=1)]
    mean: tuple[float, float, float]
    deviation: tuple[_Deviation, _Deviation, _Deviation]
    width: Annotated[int, Field(ge=1, lt=2**31)]
    is_pretrained: bool
    response: tuple[Annotated[tuple[float, ...], Field(min_length=SUMS, max_length=SUMS)], ...] | None = None
    """`Encoder.response`; None for an encoder of the transformers library, and in files of an older rarenode."""
