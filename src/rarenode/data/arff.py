"""Reader for ARFF with one hierarchical class attribute, the format of the hierarchical multi-label benchmarks.

::

    @RELATION yeast
    @ATTRIBUTE alpha   numeric
    @ATTRIBUTE strand  {w,c}
    @ATTRIBUTE class   hierarchical 01,01/01,01/01/03,02      % a tree: every entry is a path, its prefixes are nodes
    @DATA
    0.12,w,01/01/03@02
    ?,c,01/01                                                 % ? is missing; @ joins the labels of a row
    {0 1.5, 2 02}                                             % a sparse row: what is not named is 0

In a DAG every entry is a ``parent/child`` pair and the labels of rows are single names. A tree's nodes are named by
their whole path, and the benchmark's artificial ``root`` is added above its top level; a DAG has the nodes that its
pairs name.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from rarenode.data.arff_syntax import Header, Rows, meaningful_lines, read_header, read_rows
from rarenode.errors import ArgumentError, FileFormatError, HierarchyError
from rarenode.hierarchy import Hierarchy

Kind = Literal["auto", "tree", "dag"]

ROOT = "root"


@dataclass(frozen=True, eq=False)
class ArffFile:
    """What `read_arff` returns."""

    X: NDArray[np.float64]
    """(rows, features). NaN where a numeric value is missing; a missing nominal value has none of its columns set."""
    Y: NDArray[np.bool_]
    """(rows, nodes), closed under ancestors. A row whose class is ``?`` has no label."""
    hierarchy: Hierarchy
    feature_names: tuple[str, ...]
    """Distinct. A nominal attribute ``strand {w,c}`` has the columns ``strand=w`` and ``strand=c``; where the file
    declares a name twice (the benchmark's Expr does), the second is ``name#2``."""
    kind: Literal["tree", "dag"]


def read_arff(path: Path | str, kind: Kind = "auto") -> ArffFile:
    """Read an ARFF file with a hierarchical class attribute.

    Args:
        path: the file, UTF-8.
        kind: ``tree`` (entries are paths), ``dag`` (entries are parent/child pairs), or ``auto``: a DAG if every
            entry is a pair and all labels of rows are single names.

    Raises:
        MissingFileError: there is no such file.
        FileFormatError: it is malformed; the message names file, line and what was expected.
    """
    if kind not in get_args(Kind):
        raise ArgumentError(f"unknown kind {kind!r}; choose one of {', '.join(get_args(Kind))}")
    path = Path(path)
    lines = meaningful_lines(path)
    header = read_header(path, lines)
    rows = read_rows(path, lines, header)
    found = _detect_kind(header.entries, rows.labels) if kind == "auto" else kind
    hierarchy = _build_hierarchy(path, header, found)
    return ArffFile(
        X=_assemble(path, header, rows),
        Y=_encode_labels(path, rows, hierarchy),
        hierarchy=hierarchy,
        feature_names=_feature_names(header),
        kind=found,
    )


def _feature_names(header: Header) -> tuple[str, ...]:
    names: list[str] = []
    for attribute in header.attributes:
        if attribute.categories is None:
            names.append(attribute.name)
        else:
            names.extend(f"{attribute.name}={category}" for category in attribute.categories)
    distinct: dict[str, None] = {}
    seen: Counter[str] = Counter()
    for name in names:
        candidate = name
        while candidate in distinct:
            seen[name] += 1
            candidate = f"{name}#{seen[name] + 1}"
        distinct[candidate] = None
    return tuple(distinct)


def _assemble(path: Path, header: Header, rows: Rows) -> NDArray[np.float64]:
    """Numeric columns and one-hot columns, in the order of the attributes."""
    count = len(rows.lines)
    names = [attribute.name for attribute in header.attributes if attribute.categories is None]
    numeric = np.array(rows.numeric, dtype=np.float64).reshape(count, len(names))
    infinite = np.argwhere(np.isinf(numeric))
    if len(infinite):
        row, place = infinite[0].tolist()
        problem = f"attribute {names[place]!r}: expected a finite number, got {numeric[row, place]}"
        raise FileFormatError(path, rows.lines[row], problem)
    codes = np.array(rows.nominal, dtype=np.int64).reshape(count, len(header.attributes) - len(names))
    columns: list[NDArray[np.float64]] = []
    next_numeric, next_nominal = iter(numeric.T), iter(codes.T)
    for attribute in header.attributes:
        if attribute.categories is None:
            columns.append(next(next_numeric)[:, None])
        else:
            columns.append((next(next_nominal)[:, None] == np.arange(len(attribute.categories))).astype(np.float64))
    return np.hstack(columns) if columns else np.empty((count, 0))


def _detect_kind(entries: tuple[str, ...], labels: list[list[str]]) -> Literal["tree", "dag"]:
    pairs = all(entry.count("/") == 1 for entry in entries)
    single_names = not any("/" in label for row in labels for label in row)
    return "dag" if pairs and single_names else "tree"


def _build_hierarchy(path: Path, header: Header, kind: Literal["tree", "dag"]) -> Hierarchy:
    try:
        if kind == "dag":
            return Hierarchy.from_edges([_pair(entry) for entry in header.entries])
        tree = Hierarchy.from_paths(header.entries, separator="/")
        if ROOT not in tree:
            return Hierarchy.from_edges([*tree.edges, *((ROOT, top) for top in tree.roots)], nodes=(ROOT,))
        if tree.roots == (ROOT,):
            return tree
        raise HierarchyError(
            f"a class is named {ROOT!r}, as the node that stands above all classes, but is not above them"
        )
    except HierarchyError as error:
        raise FileFormatError(path, header.class_line, str(error)) from error


def _pair(entry: str) -> tuple[str, str]:
    parent, _, child = entry.partition("/")
    if not parent or not child or "/" in child:
        raise HierarchyError(f"expected a parent/child pair in a DAG, got {entry[:60]!r}")
    return parent, child


def _encode_labels(path: Path, rows: Rows, hierarchy: Hierarchy) -> NDArray[np.bool_]:
    Y = np.zeros((len(rows.labels), len(hierarchy)), dtype=np.bool_)
    for row, labels in enumerate(rows.labels):
        for label in labels:
            column = hierarchy.index.get(label)
            if column is None:
                raise FileFormatError(
                    path, rows.lines[row], f"label {label[:60]!r} is not in the hierarchy of the class attribute"
                )
            Y[row, column] = True
    return hierarchy.close(Y)
