"""`Panel`: what the figure of a spec draws, and whether the spec has what a panel needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Measure = Literal["f1", "precision", "recall", "bin_ap", "ap", "seconds_per_epoch", "steps_per_second", "memory_mb"]
OF_NODES: tuple[Measure, ...] = ("precision", "recall", "f1")
"""Measures that a single node has."""
COMPARED = ("difference", "advantage")
"""Kinds of panels that compare pairs of series."""
SWEPT = ("sweep", *COMPARED)
"""Kinds of panels over a swept setting."""
MOST_CELLS = 8
"""Methods whose scores fit beside the name of a node."""

Name = Annotated[str, Field(min_length=1, max_length=200)]
Count = Annotated[int, Field(ge=1)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Pair(_Part):
    """Two series of a sweep to compare."""

    label: Name
    of: Name
    against: Name


class Panel(_Part):
    """A drawing in the figure of a spec.

    ``sweep``: measures over a swept setting, a line for each series and measure. ``nodes``: a measure of the most
    frequent nodes, a line for each method. ``methods``: a measure of each method, averaged over datasets.
    ``difference``: one series minus another over a swept setting, a line for each pair. ``advantage``: that divided by
    the other. ``hierarchy``: the tree, with a measure of every method in each node.
    """

    kind: Literal["sweep", "nodes", "methods", "difference", "advantage", "hierarchy"]
    title: str
    measures: Annotated[tuple[Measure, ...], Field(min_length=1)]
    setting: str | None = None
    nodes: Count = 20
    methods: tuple[str, ...] | None = None
    pairs: tuple[Pair, ...] = ()
    by_dataset: bool = False
    """One chart for each dataset, where it would otherwise be an average."""

    def check(self, methods: Collection[str], series: Iterable[tuple[str, str]]) -> None:
        """Require a spec to have what the panel shows.

        Args:
            methods: the names of all methods of the spec.
            series: (setting, series) of all of its sweeps.

        Raises:
            ValueError: it has not.
        """
        what, swept = f"panel {self.title!r}", list(series)
        for name in self.methods or ():
            require_among(name, methods, what)
        if self.kind in ("nodes", "hierarchy"):
            for measure in self.measures:
                require_among(measure, OF_NODES, what)
        if self.kind in SWEPT:
            require_among(self.setting, dict.fromkeys(setting for setting, _ in swept), what)
        elif self.setting is not None:
            raise ValueError(f"{what}: a panel of the kind {self.kind!r} has no setting")
        if self.kind == "hierarchy" and not 1 <= len(self.methods or ()) <= MOST_CELLS:
            raise ValueError(f"{what}: a hierarchy needs methods, 1 to {MOST_CELLS} of them")
        if self.kind not in COMPARED:
            if self.pairs:
                raise ValueError(f"{what}: pairs are for panels of the kinds {' and '.join(COMPARED)}")
            return
        if not self.pairs:
            raise ValueError(f"{what}: a panel of the kind {self.kind!r} needs pairs of series")
        if self.methods is not None:
            raise ValueError(f"{what}: a panel of the kind {self.kind!r} has pairs of series, and no methods")
        names = list(dict.fromkeys(name for setting, name in swept if setting == self.setting))
        labels = [pair.label for pair in self.pairs]
        for pair in self.pairs:
            for name in (pair.of, pair.against):
                require_among(name, names, f"{what}: the series of {self.setting}")
            if pair.of == pair.against:
                raise ValueError(f"{what}: {pair.of!r} is compared with itself")
            if labels.count(pair.label) > 1:
                raise ValueError(f"{what}: two pairs are labelled {pair.label!r}")


def require_among(name: str | None, names: Collection[Any], what: str) -> None:
    """Require a name to be one of some.

    Raises:
        ValueError: it is not; the message begins with ``what``.
    """
    if name not in names:
        raise ValueError(f"{what}: {name!r} is not one of {', '.join(map(str, names))}")
