"""`Card`: what a person wants to know of a model, in blocks that become Markdown beside the model and HTML in a report.

Text may hold names and paths from anywhere. Whoever makes a block passes them through `plain`, so that they can end
neither their line nor their cell nor their code; a text between backticks is code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rarenode._io.text import printable


@dataclass(frozen=True)
class Heading:
    """Begins a part."""

    text: str


@dataclass(frozen=True)
class Paragraph:
    """Some sentences."""

    text: str


@dataclass(frozen=True)
class Code:
    """Lines to copy."""

    text: str
    language: str


@dataclass(frozen=True)
class Table:
    """A head and rows of as many cells."""

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Card = tuple[Heading | Paragraph | Code | Table, ...]


def to_markdown(title: str, card: Card) -> str:
    """The card as the text of a file."""
    parts = [f"# {title}"]
    for block in card:
        match block:
            case Heading(text):
                parts.append(f"## {text}")
            case Paragraph(text):
                parts.append(text)
            case Code(text, language):
                parts.append(f"```{language}\n{text}\n```")
            case Table(head, rows):
                parts.append("\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)))
    return "\n\n".join(parts) + "\n"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    """A table of any sequences."""
    return Table(tuple(head), tuple(map(tuple, rows)))


def code(value: object) -> str:
    """A value as code within a sentence or a cell."""
    return f"`{plain(value)}`"


def plain(text: object) -> str:
    """Text that cannot end its line, its cell or its code."""
    return "".join(" " if c in "|`<>[]" else c for c in printable(text))
