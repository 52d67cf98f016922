"""Small datasets that ship with rarenode, made up for tutorials and the demo: `write_sample`.

======  ===============================================================================================================
survey  seafloor photographs: image features, depth, temperature, substrate, and the taxa that a biologist named, some
        only to the class. ``train.csv``, ``test.csv``, ``new.csv`` (without taxa), ``taxonomy.csv``
genes   genes: features, an ontology of functions in OBO, and annotations in GAF, some of them negative.
        ``genes.csv``, ``new_genes.csv``, ``functions.obo``, ``annotations.gaf``
topics  short documents with topics in a tree. ``train.csv``, ``test.csv``
reef    drawn pictures of echinoderms, with their taxa. ``labels.csv``, ``taxonomy.csv``, pictures in ``images``, and
        some without labels in ``new``; see `rarenode.data.reef`
======  ===============================================================================================================

The names are real, the rest is not: features, labels and texts are drawn from a random model with a seed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rarenode.data.sample_files import as_csv, write_files
from rarenode.data.sample_words import FUNCTIONS, TAXA, TOPICS
from rarenode.errors import ArgumentError

SampleName = Literal["survey", "genes", "topics", "reef"]
REEF_ROWS, REEF_SIZE = 600, 64
PATH = " > "
Tree = Mapping[str, Any]


@dataclass(frozen=True)
class _Nodes:
    """A nested mapping as paths, parents before children."""

    paths: tuple[str, ...]
    parent: NDArray[np.int64]
    """The place of each node's parent; -1 for a root."""
    is_leaf: NDArray[np.bool_]

    @classmethod
    def of(cls, tree: Tree) -> _Nodes:
        paths: list[str] = []
        parents: list[int] = []

        def add(below: Any, prefix: str, parent: int) -> None:
            names = below if isinstance(below, Mapping) else dict.fromkeys(below, ())
            for name, inner in names.items():
                place = len(paths)
                paths.append(f"{prefix}{PATH}{name}" if prefix else name)
                parents.append(parent)
                add(inner, paths[place], place)

        add(tree, "", -1)
        parent = np.array(parents, dtype=np.int64)
        is_leaf = np.ones(len(paths), dtype=np.bool_)
        is_leaf[parent[parent >= 0]] = False
        return cls(tuple(paths), parent, is_leaf)

    def lineage(self, node: int) -> list[int]:
        """The node and its ancestors, from the root down."""
        found = []
        while node >= 0:
            found.append(node)
            node = int(self.parent[node])
        return found[::-1]

    def directions(self, rng: np.random.Generator, width: int) -> NDArray[np.float64]:
        """A direction for each node: that of its parent, and something of its own."""
        own = rng.normal(size=(len(self.paths), width))
        result = np.zeros_like(own)
        for node in range(len(self.paths)):
            above = self.parent[node]
            result[node] = own[node] + (0.7 * result[above] if above >= 0 else 0)
        return result

    def frequencies(self, rng: np.random.Generator) -> NDArray[np.float64]:
        """How often each leaf appears: few often, most of them rarely."""
        leaves = np.flatnonzero(self.is_leaf)
        frequency = np.zeros(len(self.paths))
        frequency[rng.permutation(leaves)] = 1 / np.arange(1, len(leaves) + 1) ** 0.9
        shares: NDArray[np.float64] = frequency / frequency.sum()
        return shares


def write_sample(name: SampleName, folder: Path | str, *, seed: int = 0) -> list[Path]:
    """Write the files of a sample into a folder, which is created.

    Args:
        name: survey, genes, topics or reef.
        folder: where to.
        seed: decides everything random.

    Returns:
        The files.

    Raises:
        ArgumentError: there is no such sample, or a file cannot be written.
    """
    if name not in get_args(SampleName):
        raise ArgumentError(f"unknown sample {name!r}; choose one of {', '.join(get_args(SampleName))}")
    if name == "reef":
        from rarenode.data.reef import write_reef  # noqa: PLC0415 (the others do without Pillow)

        return write_reef(folder, REEF_ROWS, REEF_SIZE, seed)
    makers = {"survey": _survey, "genes": _genes, "topics": _topics}
    return write_files(folder, makers[name](np.random.default_rng(seed)).items())


# --- survey ----------------------------------------------------------------------------------------------------------

SURVEY_ROWS = {"train": 1600, "test": 500, "new": 200}
IMAGE_FEATURES = 24
SUBSTRATES = ("sand", "mud", "gravel", "rock", "reef")


def _survey(rng: np.random.Generator) -> dict[str, str]:
    nodes = _Nodes.of(TAXA)
    width = IMAGE_FEATURES
    direction = nodes.directions(rng, width)
    frequency = nodes.frequencies(rng)
    home = {node: rng.uniform(2, 60) for node in range(len(nodes.paths))}
    ground = rng.integers(0, len(SUBSTRATES), len(nodes.paths))
    header = ["image", *(f"feature_{number:02d}" for number in range(1, width + 1)), "depth_m", "temperature_c"]
    header += ["substrate", "turbidity", "taxa"]
    files = {}
    number = 0
    for part, count in SURVEY_ROWS.items():
        rows = []
        for _ in range(count):
            number += 1
            seen = rng.choice(len(nodes.paths), size=rng.integers(1, 4), replace=False, p=frequency).tolist()
            image = direction[seen].sum(axis=0) + rng.normal(scale=1.6, size=width)
            depth = max(0.5, float(np.mean([home[node] for node in seen])) + rng.normal(scale=6))
            substrate = SUBSTRATES[ground[seen[0]] if rng.random() < 0.7 else rng.integers(0, len(SUBSTRATES))]
            turbidity = "" if rng.random() < 0.15 else f"{rng.gamma(2, 1.5):.2f}"
            taxa = [_as_seen(nodes, node, rng) for node in seen]
            cells = [f"IMG_{number:05d}", *(f"{value:.3f}" for value in image), f"{depth:.1f}"]
            cells += [f"{24 - 0.2 * depth + rng.normal():.1f}", substrate, turbidity, "; ".join(dict.fromkeys(taxa))]
            rows.append(cells if part != "new" else cells[:-1])
        files[f"{part}.csv"] = as_csv(header if part != "new" else header[:-1], rows)
    files["taxonomy.csv"] = as_csv(["taxon"], [[path] for path in nodes.paths])
    return files


def _as_seen(nodes: _Nodes, node: int, rng: np.random.Generator) -> str:
    """What a biologist writes down: often the species, sometimes only the group it belongs to."""
    lineage = nodes.lineage(node)
    steps = len(lineage) if rng.random() < 0.65 else rng.integers(min(2, len(lineage)), len(lineage) + 1)
    return nodes.paths[lineage[int(steps) - 1]]


# --- genes -----------------------------------------------------------------------------------------------------------

GENES = {"genes": 900, "new_genes": 60}
EXPERIMENTS = 30
NAMESPACES = ("biological_process", "molecular_function", "cellular_component")
ASPECTS = dict(zip(NAMESPACES, "PFC", strict=True))
CODES = ("IDA", "IMP", "IPI", "IEA", "ISS")


def _genes(rng: np.random.Generator) -> dict[str, str]:
    nodes = _Nodes.of(FUNCTIONS)
    direction = nodes.directions(rng, EXPERIMENTS)
    frequency = nodes.frequencies(rng)
    terms = [f"FN:{number:07d}" for number in range(1, len(nodes.paths) + 1)]
    annotations = ["!gaf-version: 2.2"]
    files = {}
    number = 0
    for part, count in GENES.items():
        rows = []
        for _ in range(count):
            number += 1
            gene, symbol = f"G{number:05d}", f"gen{number}"
            has = rng.choice(len(nodes.paths), size=rng.integers(1, 5), replace=False, p=frequency).tolist()
            levels = direction[has].sum(axis=0) + rng.normal(scale=1.5, size=EXPERIMENTS)
            rows.append([gene, *("" if rng.random() < 0.03 else f"{value:.3f}" for value in levels)])
            if part == "genes":
                annotations += _annotations(nodes, terms, gene, symbol, has, rng)
        header = ["gene", *(f"condition_{place:02d}" for place in range(1, EXPERIMENTS + 1))]
        files[f"{part}.csv"] = as_csv(header, rows)
    files["functions.obo"] = _obo(nodes, terms)
    files["annotations.gaf"] = "\n".join(annotations) + "\n"
    return files


def _annotations(
    nodes: _Nodes, terms: list[str], gene: str, symbol: str, has: list[int], rng: np.random.Generator
) -> list[str]:
    lines = []
    stated = [(node, "involved_in") for node in has]
    implied = {above for node in has for above in nodes.lineage(node)}
    other = int(rng.choice(np.flatnonzero(nodes.is_leaf)))
    if other not in implied and rng.random() < 0.1:
        stated.append((other, "NOT|involved_in"))
    for node, qualifier in stated:
        lineage = nodes.lineage(node)
        vague = "NOT" not in qualifier and rng.random() < 0.25 and len(lineage) > 2
        term = terms[lineage[-2] if vague else node]  # sometimes only the more general function is known
        namespace = nodes.paths[lineage[0]]
        fields = [
            "SAMPLE",
            gene,
            symbol,
            qualifier,
            term,
            "REF:1",
            str(rng.choice(CODES)),
            "",
            ASPECTS[namespace],
        ]
        lines.append("\t".join([*fields, "", "", "protein", "taxon:0", "20260101", "SAMPLE", "", ""]))
    return lines


def _obo(nodes: _Nodes, terms: list[str]) -> str:
    lines = ["format-version: 1.2", "ontology: sample"]
    for place, path in enumerate(nodes.paths):
        lineage = nodes.lineage(place)
        lines += ["", "[Term]", f"id: {terms[place]}", f"name: {path.rpartition(PATH)[2]}"]
        lines += [f"namespace: {nodes.paths[lineage[0]]}"]
        lines += [f"is_a: {terms[lineage[-2]]}"] if len(lineage) > 1 else []
    return "\n".join(lines) + "\n"


# --- topics ----------------------------------------------------------------------------------------------------------

DOCUMENTS = {"train": 900, "test": 300}
WORDS = 40
COMMON = ("the", "a", "of", "and", "to", "in", "is", "it", "was", "for", "on", "with", "as", "by", "at", "from", "this")


def _topics(rng: np.random.Generator) -> dict[str, str]:
    nodes = _Nodes.of(TOPICS)
    frequency = nodes.frequencies(rng)
    vocabulary = [path.rpartition(PATH)[2].lower().split() for path in nodes.paths]
    syllables = ("ba", "co", "di", "fe", "gu", "la", "mo", "ni", "pe", "ro", "sa", "ti", "vu", "za")
    own = [["".join(rng.choice(syllables, 3)) for _ in range(6)] for _ in nodes.paths]
    files = {}
    number = 0
    for part, count in DOCUMENTS.items():
        rows = []
        for _ in range(count):
            number += 1
            about = rng.choice(len(nodes.paths), size=rng.integers(1, 3), replace=False, p=frequency).tolist()
            pool = [word for node in about for step in nodes.lineage(node) for word in vocabulary[step] + own[step]]
            words = rng.choice(pool, size=rng.integers(12, WORDS)).tolist() + rng.choice(COMMON, size=WORDS).tolist()
            text = " ".join(words[place] for place in rng.permutation(len(words)))
            rows.append([f"doc{number:04d}", text.capitalize() + ".", "; ".join(nodes.paths[node] for node in about)])
        files[f"{part}.csv"] = as_csv(["document", "text", "topics"], rows)
    return files
