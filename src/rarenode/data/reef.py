"""Pictures of a reef that rarenode draws itself, with the taxa in them: `make_reef` and `draw_reef`.

Every picture is painted from scratch; nothing in it is a photograph. Sand or gravel gets rocks, weed and rubble, then
one to four echinoderms (`rarenode.data.reef_animals`), then rocks and weed that hide some of them. Water comes
last: haze that thickens with distance, lit particles, blur, a tint, a lamp, and grain (`rarenode.data.reef_scene`).
The taxa are those of BenthicNet-E, and hard to learn for the reasons that real ones are:

- **Shape tells, colour does not.** All kinds get colours, sizes and places from the same distributions. Arms, spines,
  feathers and webs tell them apart, and weed and rubble look a little like them.
- **The tail is long.** Sea stars are in about half of the pictures, swimming sea cucumbers in about one of a hundred.
- **Labels stop half-way.** The less clearly an animal can be seen, because it is small, hidden, far away in turbid
  water or blurred, the more often it is only labelled with its group, or just as an echinoderm.

A row's picture, labels and partition follow from the seed and its number alone, so more rows leave the first ones as
they are. The size changes how finely a scene is drawn, not what is in it. With the same versions of numpy and Pillow
all pixels are the same.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from rarenode.data.reef_scene import Seen, draw_scene
from rarenode.data.sample_files import as_csv, write_files
from rarenode.errors import ArgumentError
from rarenode.hierarchy import Hierarchy

TAXA = (
    "Echinoderms",
    "Echinoderms > Feather stars",
    "Echinoderms > Feather stars > Unstalked crinoids",
    "Echinoderms > Ophiuroids",
    "Echinoderms > Ophiuroids > Basket stars",
    "Echinoderms > Ophiuroids > Brittle/snake stars",
    "Echinoderms > Sea cucumbers",
    "Echinoderms > Sea cucumbers > Benthic sea cucumbers",
    "Echinoderms > Sea cucumbers > Pelagic/swimming sea cucumbers",
    "Echinoderms > Sea stars",
    "Echinoderms > Sea urchins",
    "Echinoderms > Sea urchins > Irregular urchins",
    "Echinoderms > Sea urchins > Regular urchins",
)
"""The nodes, as paths."""
PATHS = {path.rpartition(" > ")[2]: path for path in TAXA}
PARTITIONS = {"train": 0.6, "valid": 0.15, "test": 0.25}
"""About these shares of the rows; each row is assigned by chance, whatever its labels are."""
NEW_PICTURES = 12
"""Pictures without labels that `make_reef` adds, in a folder of their own."""
SMALLEST_SIZE = 16
ANNOTATED, NEW, LABELLING = range(3)
"""Streams of random numbers: for pictures with labels, for those without, and for labels and partitions."""


@dataclass(frozen=True, eq=False)
class Reef:
    """Pictures with labels."""

    pictures: NDArray[np.uint8]
    """(rows, size, size, 3): red, green and blue."""
    labels: tuple[tuple[str, ...], ...]
    """For each picture, the labels that were given, as paths; their ancestors are implied."""
    partition: tuple[str, ...]
    """For each picture: train, valid or test."""

    @cached_property
    def hierarchy(self) -> Hierarchy:
        """All 13 nodes, whether a picture has them or not."""
        return Hierarchy.from_paths(TAXA)

    @property
    def Y(self) -> NDArray[np.bool_]:  # noqa: N802 (the field's name for labels)
        """(rows, nodes): the labels with their ancestors, in the hierarchy's order."""
        closed: NDArray[np.bool_] = self.hierarchy.close(self.hierarchy.encode(self.labels))
        return closed


def draw_reef(rows: int = 600, size: int = 64, seed: int = 0) -> Reef:
    """Draw pictures of a reef.

    Args:
        rows: how many.
        size: pixels a side.
        seed: decides everything.

    Raises:
        ArgumentError: a number is too small.

    >>> reef = draw_reef(rows=3, size=32)
    >>> reef.pictures.shape, len(reef.hierarchy)
    ((3, 32, 32, 3), 13)
    """
    _check(rows, size, seed)
    pictures = np.empty((rows, size, size, 3), dtype=np.uint8)
    labels, partition = [], []
    for row in range(rows):
        pictures[row], taxa, part = _draw_row(seed, row, size)
        labels.append(taxa)
        partition.append(part)
    return Reef(pictures, tuple(labels), tuple(partition))


def make_reef(folder: Path | str, *, rows: int = 600, size: int = 64, seed: int = 0) -> Path:
    """Draw pictures of a reef and write them to a folder, which is created.

    The folder gets ``labels.csv`` with the columns image, partition (train, valid or test) and taxa, ``taxonomy.csv``
    with all taxa, the pictures ``images/0000.png`` and so on, and a few more without labels in ``new``. Files of the
    same name are replaced.

    Args:
        folder: where to.
        rows: how many pictures.
        size: pixels a side.
        seed: decides everything.

    Returns:
        The path of ``labels.csv``.

    Raises:
        ArgumentError: a number is too small, or a file cannot be written.
    """
    return write_reef(folder, rows, size, seed)[-1]


def write_reef(folder: Path | str, rows: int, size: int, seed: int) -> list[Path]:
    """What `make_reef` does; returns all files. The table of labels is written last, when all pictures are there."""
    _check(rows, size, seed)
    return write_files(folder, _files(rows, size, seed))


def _files(rows: int, size: int, seed: int) -> Iterator[tuple[str, str | bytes]]:
    table = []
    for row in range(rows):  # one at a time, so that any number fits in memory
        picture, taxa, part = _draw_row(seed, row, size)
        name = f"images/{row:04d}.png"
        yield name, _as_png(picture)
        table.append([name, part, "; ".join(taxa)])
    for row in range(NEW_PICTURES):
        yield f"new/{row:04d}.png", _as_png(draw_scene(_random(seed, NEW, row), size)[0])
    yield "taxonomy.csv", as_csv(["taxon"], [[path] for path in TAXA])
    yield "labels.csv", as_csv(["image", "partition", "taxa"], table)


def _draw_row(seed: int, row: int, size: int) -> tuple[NDArray[np.uint8], tuple[str, ...], str]:
    picture, seen = draw_scene(_random(seed, ANNOTATED, row), size)
    rng = _random(seed, LABELLING, row)
    partition = str(rng.choice(list(PARTITIONS), p=list(PARTITIONS.values())))
    return picture, tuple(dict.fromkeys(_name(rng, animal) for animal in seen)), partition


def _name(rng: np.random.Generator, animal: Seen) -> str:
    """The label that an annotator gives: down to where he or she can still tell."""
    root, *below = PATHS[animal.kind].split(" > ")
    sure = (0.7 + animal.clarity, 0.35 + 1.2 * animal.clarity)  # of the group, and then of the kind
    unsure = rng.random(len(below)) >= sure[: len(below)]
    steps = int(np.argmax(unsure)) if unsure.any() else len(below)
    return " > ".join([root, *below[:steps]])


def _random(seed: int, stream: int, row: int) -> np.random.Generator:
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(stream, row)))


def _as_png(picture: NDArray[np.uint8]) -> bytes:
    file = io.BytesIO()
    Image.fromarray(picture).save(file, "png")
    return file.getvalue()


def _check(rows: int, size: int, seed: int) -> None:
    for name, value, least in (("rows", rows, 1), ("size", size, SMALLEST_SIZE), ("seed", seed, 0)):
        if value < least:
            raise ArgumentError(f"{name} must be at least {least}, got {value}")
