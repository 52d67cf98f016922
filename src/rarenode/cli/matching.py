"""Whether rows fit a model: the same features and the same hierarchy, or a sentence that says what differs."""

from __future__ import annotations

from collections.abc import Sequence

from rarenode.errors import DataError
from rarenode.hierarchy import Hierarchy

MOST_NAMES = 3


def require_match(
    data: str,
    features: Sequence[str],
    hierarchy: Hierarchy,
    model_features: Sequence[str] | None,
    model_hierarchy: Hierarchy,
) -> None:
    """Raise a `DataError` unless ``data`` has the model's features and hierarchy."""
    if model_features is not None:
        difference = _difference(features, model_features, "features")
        if difference is not None:
            raise DataError(f"{data} does not fit the model: {difference}")
    difference = _difference(hierarchy.nodes, model_hierarchy.nodes, "nodes")
    if difference is None and hierarchy != model_hierarchy:
        difference = _difference(_edges(hierarchy), _edges(model_hierarchy), "edges")
    if difference is not None:
        raise DataError(f"{data} does not fit the model: {difference}")


def _edges(hierarchy: Hierarchy) -> list[str]:
    return [f"{parent} > {child}" for parent, child in hierarchy.edges]


def _difference(here: Sequence[str], there: Sequence[str], what: str) -> str | None:
    known_here, known_there = set(here), set(there)
    added = [name for name in here if name not in known_there]
    missing = [name for name in there if name not in known_here]
    if added or missing:
        told = [f"it has {what} that the model has not: {_some(added)}"] if added else []
        told += [f"it lacks {what} of the model: {_some(missing)}"] if missing else []
        return "; ".join(told)
    for place, (ours, theirs) in enumerate(zip(here, there, strict=True)):
        if ours != theirs:
            return f"its {what} have another order; number {place + 1} is {ours!r} and the model's is {theirs!r}"
    return None


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:MOST_NAMES])
    return shown if len(names) <= MOST_NAMES else f"{shown} and {len(names) - MOST_NAMES} more"
