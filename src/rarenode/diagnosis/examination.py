"""`Examination`: what was found in data before training, as a list of `Finding`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from rarenode._io.text import counted

Severity = Literal["error", "warning", "note"]

FEW_ROWS = 5
"""A node with fewer rows is hard to learn."""
FEW_TO_JUDGE = 100
"""With fewer labelled rows, what is measured or chosen by them varies a lot."""
MOST_EXAMPLES = 5


@dataclass(frozen=True)
class Finding:
    """One thing to know about data."""

    severity: Severity
    topic: str
    """One word or two: labels, nodes, features, rows, splits."""
    text: str
    advice: str = ""
    examples: tuple[str, ...] = ()
    more: int = 0
    """How many further examples there are."""

    @classmethod
    def of(cls, severity: Severity, topic: str, text: str, advice: str, examples: Sequence[str]) -> Self:
        """A finding with the first `MOST_EXAMPLES` of its examples."""
        more = max(0, len(examples) - MOST_EXAMPLES)
        return cls(severity, topic, text, advice, tuple(examples[:MOST_EXAMPLES]), more)

    @property
    def examples_in_words(self) -> str:
        """The examples, and how many others there are; empty if there are none.

        >>> Finding.of("note", "nodes", "6 nodes have no row", "", "abcdef").examples_in_words
        'a, b, c, d, e and 1 more'
        """
        return ", ".join(self.examples) + (f" and {self.more:,} more" if self.more else "")


@dataclass(frozen=True)
class Level:
    """The nodes of one depth."""

    depth: int
    nodes: int
    with_rows: int
    """Nodes that some row has."""
    few_rows: int
    """Of these, nodes with fewer than `FEW_ROWS`."""
    median_rows: float
    """Rows of a node that has any."""
    rows_ending: int
    """Rows whose deepest label is here."""


@dataclass(frozen=True)
class Examination:
    """What `examine` found."""

    name: str
    rows: int
    labelled_rows: int
    features: int
    nodes: int
    nodes_with_rows: int
    unknown: float
    """The share of cells of labelled rows of which it is unknown whether the row has the node."""
    levels: tuple[Level, ...]
    findings: tuple[Finding, ...]
    pictures: bool = False
    """Whether rows are pictures, which have no features."""

    @property
    def rows_in_words(self) -> str:
        """How many rows there are, and of which kind."""
        if self.pictures:
            return counted(self.rows, "picture")
        return f"{counted(self.rows, 'row')}, {counted(self.features, 'feature')}"

    @property
    def worst(self) -> Severity | None:
        """The worst severity; None if nothing was found."""
        order: tuple[Severity, ...] = ("error", "warning", "note")
        return next((each for each in order if any(found.severity == each for found in self.findings)), None)

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds it."""
        return asdict(self)
