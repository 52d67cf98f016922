"""Rows that are pictures: which of them a report shows, and their thumbnails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from rarenode._io.text import counted
from rarenode.diagnosis import NodeDiagnosis
from rarenode.diagnosis.confusion import ConfusedPair, confused_pairs
from rarenode.diagnosis.examples import Example, Examples, choose_examples
from rarenode.errors import ArgumentError
from rarenode.report.jpeg import plain_jpeg

SIDE = 96
"""Pixels of the page that the longer side of a thumbnail takes."""
PIXELS = 2 * SIDE
"""Its pixels, so that it is sharp on dense screens; nearly all of the work is to read the picture, not to encode it."""
MOST_THUMBNAILS = 200
Bools = NDArray[np.bool_]


class Pictures(Protocol):
    """Rows as pictures, in the order of the rows that are reported on."""

    def __len__(self) -> int:
        """How many rows there are."""
        ...

    def thumbnail(self, row: int, size: int) -> bytes | None:
        """A small RGB picture as JPEG without metadata; None if the picture cannot be read.

        Args:
            row: the position of the row, from 0.
            size: the most pixels of its longer side.
        """
        ...


@dataclass(frozen=True)
class PicturedRow:
    """A row that is shown."""

    row: int
    """Its number, as in `UnsureRow`."""
    id: str | None
    """Its name, if rows have any."""
    jpeg: bytes | None
    """Its thumbnail; None if it cannot be read, or was left out."""
    unreadable: bool


@dataclass(frozen=True, eq=False)
class RunPictures:
    """What a run shows of its pictures. Rows are positions among the rows that were evaluated, and keys of ``rows``."""

    examples: Examples
    pairs: tuple[ConfusedPair, ...]
    unsure: tuple[int, ...]
    """The positions of `RunReport.unsure_rows`."""
    rows: Mapping[int, PicturedRow]
    """By position; what matters most comes first, for there may be no room for all."""
    decided_with: Mapping[tuple[int, int], int]
    """For a position and a column that is decided there although it is below its threshold: the descendant with which
    it is decided."""


def collect_pictures(
    pictures: Pictures,
    Y: Bools,
    probs: NDArray[Any],
    decided: Bools,
    nodes: NodeDiagnosis,
    *,
    unsure: Sequence[int],
    row_numbers: NDArray[np.int64] | None = None,
    known: Bools | None = None,
    ids: Sequence[str] | None = None,
) -> RunPictures:
    """Choose rows and read their thumbnails, at most `MOST_THUMBNAILS`.

    Args:
        pictures: of the rows of ``Y``, by their position in it.
        Y: labels (rows, nodes).
        probs: probabilities (rows, nodes).
        decided: decisions (rows, nodes).
        nodes: the diagnosis of these rows.
        unsure: the positions of the rows that the model is least sure of.
        row_numbers: the number of each row, as it is shown; by default its position.
        known: (rows, nodes), where labels are known; None: everywhere.
        ids: the names of the rows.

    Raises:
        ArgumentError: there are not as many pictures as rows.
    """
    if len(pictures) != len(Y):
        raise ArgumentError(f"there must be a picture for each of {counted(len(Y), 'row')}, got {len(pictures):,}")
    examples = choose_examples(Y, probs, decided, nodes, known=known)
    pairs = confused_pairs(Y, probs, decided, nodes, known=known)
    rows: dict[int, PicturedRow] = {}
    read = 0
    for row in dict.fromkeys((*unsure, *(example.row for example in _in_order(examples, pairs)))):
        thumbnail = pictures.thumbnail(row, PIXELS) if read < MOST_THUMBNAILS else None
        jpeg = None if thumbnail is None else plain_jpeg(thumbnail, PIXELS)
        rows[row] = PicturedRow(
            row=row if row_numbers is None else int(row_numbers[row]),
            id=None if ids is None else ids[row],
            jpeg=jpeg,
            unreadable=jpeg is None and read < MOST_THUMBNAILS,
        )
        read += jpeg is not None
    decided_with = {
        (example.row, node.column): found
        for node in examples.nodes
        for example in (*node.found, *node.wrongly_found)
        if example.probability < nodes.thresholds[node.column]
        and (found := _decided_descendant(nodes, probs[example.row], decided[example.row], node.column)) is not None
    }
    return RunPictures(examples, pairs, tuple(unsure), rows, decided_with)


def _decided_descendant(nodes: NodeDiagnosis, p: NDArray[Any], decided: Bools, column: int) -> int | None:
    """Of the descendants that reach their own threshold in a row the most probable one, the first of equal ones."""
    hierarchy = nodes.hierarchy
    below = np.array([hierarchy.index[name] for name in hierarchy.descendants(hierarchy.nodes[column])], dtype=np.int64)
    able = np.sort(below[decided[below] & (p[below] >= nodes.thresholds[below])])
    return int(able[np.argmax(p[able])]) if len(able) else None


def _in_order(examples: Examples, pairs: Sequence[ConfusedPair]) -> Iterator[Example]:
    """Pairs first, which mean nothing if one side is not shown; then nodes, whose order is that of their importance."""
    for pair in pairs:
        yield from (*pair.confused, *pair.found)
    for node in examples.nodes:
        yield from (*node.found, *node.missed, *node.wrongly_found)
