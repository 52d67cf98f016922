"""Reader for ARFF files with one hierarchical class attribute, the format of the hierarchical multi-label benchmarks.

::

    @RELATION yeast
    @ATTRIBUTE alpha   numeric
    @ATTRIBUTE strand  {w,c}
    @ATTRIBUTE class   hierarchical 01,01/01,01/01/03,02      % a tree: each entry is a path, its prefixes are nodes
    @DATA
    0.12,w,01/01/03@02
    ?,c,01/01                                                 % ? is missing; @ separates the labels of a row
    {0 1.5, 2 02}                                             % a sparse row: omitted values are 0

In a DAG, each entry is a ``parent/child`` pair and rows are labelled with single names. The nodes of a tree are named
by their full path, and an artificial ``root`` is added above the top level, as in the benchmark. A DAG has exactly the
nodes that its pairs name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from rarenode.data.dataset import ROOT, Dataset, scored_nodes
from rarenode.data.features import LARGEST
from rarenode.data.readers.arff_syntax import Header, Rows, meaningful_lines, read_header, read_rows
from rarenode.data.table_options import Expected, TableOptions
from rarenode.errors import ArgumentError, DataError, FileFormatError, HierarchyError
from rarenode.hierarchy import Hierarchy, HierarchyLike
from rarenode.hierarchy.labels import MOST_DENSE_CELLS, Labels, sparse_labels

Kind = Literal["auto", "tree", "dag"]

MAX_LEVELS = 1000
"""Levels of a path. Nodes are named by their full path, so the size of all names is quadratic in the depth."""
MOST_DENSE_FEATURES, MOST_NAME_CHARACTERS = 2**24, 2**26
"""Features of more cells are sparse, if that takes less memory: a small file can have categories by the thousand. Their
names contain that of their attribute, and may have so many characters in all."""


def read_arff(path: Path | str, kind: Kind = "auto", *, hierarchy: Hierarchy | None = None) -> Dataset:
    """Read an ARFF file with a hierarchical class attribute.

    A missing numeric value is NaN; a nominal attribute ``strand {w,c}`` gives the features ``strand=w`` and
    ``strand=c``, both 0 where it is missing. Very many features, most of them 0, are a sparse matrix. If the file
    declares a name twice (the benchmark's Expr does), the second is ``name#2``. A row whose class is ``?`` is not
    labelled.

    Args:
        path: the file, in UTF-8.
        kind: ``tree`` (entries are paths), ``dag`` (entries are parent/child pairs), or ``auto``: a DAG if every
            entry is a pair and all row labels are single names.
        hierarchy: of rows whose labels are of no interest; the file then needs no class attribute.

    Raises:
        MissingFileError: the file does not exist.
        FileFormatError: the file is malformed, or too large once expanded; the message names the file, the line and
            what was expected.
    """
    if kind not in get_args(Kind):
        raise ArgumentError(f"unknown kind {kind!r}; choose one of {', '.join(get_args(Kind))}")
    path = Path(path)
    lines = meaningful_lines(path)
    header = read_header(path, lines, needs_class=hierarchy is None)
    rows = read_rows(path, lines, header)
    if hierarchy is not None:
        nothing = np.broadcast_to(np.False_, (len(rows.lines), len(hierarchy)))
        return Dataset(
            X=_build_features(path, header, rows),
            Y=nothing,
            known=nothing,
            hierarchy=hierarchy,
            scored=scored_nodes(hierarchy),
            feature_names=_feature_names(path, header),
            name=str(path),
        )
    found = _detect_kind(header.entries, rows.labels) if kind == "auto" else kind
    hierarchy = _build_hierarchy(path, header, found)
    Y = _encode_labels(path, rows, hierarchy)
    # Only a row whose class is ? has an empty list of labels; an empty class is a syntax error.
    labelled = np.array([bool(labels) for labels in rows.labels], dtype=np.bool_)
    return Dataset(
        X=_build_features(path, header, rows),
        Y=Y,
        known=None if labelled.all() else np.broadcast_to(labelled[:, None], Y.shape),
        hierarchy=hierarchy,
        scored=scored_nodes(hierarchy),
        feature_names=_feature_names(path, header),
        name=str(path),
    )


def read_arff_files(
    sources: Sequence[Path | str],
    *,
    options: TableOptions,
    hierarchy: HierarchyLike | None,
    kind: Kind,
    expected: Expected | None,
    labels: bool,
) -> Dataset:
    """Read an ARFF file; see `rarenode.data.readers.read` for the arguments.

    Rows for a model need no class attribute, if their labels do not matter, and have the model's features, whatever
    else the file contains.
    """
    path, *others = sources
    if others:
        raise ArgumentError(f"{others[0]}: only one ARFF file can be read at a time")
    if hierarchy is not None or (options != TableOptions() and options != (expected and expected.reading)):
        raise ArgumentError(f"{path}: an ARFF file declares its own labels and hierarchy; leave out options of tables")
    if expected is not None and kind == "auto":
        kind = "tree" if any("/" in node for node in expected.hierarchy.nodes) else "auto"
    data = read_arff(path, kind, hierarchy=None if expected is None or labels else expected.hierarchy)
    if expected is None or expected.features is None or data.feature_names is None:
        return data
    place = {name: column for column, name in enumerate(data.feature_names)}
    missing = [name for name in expected.features if name not in place]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise DataError(f"{path} lacks features of the model: {missing[0]!r}{more}")
    chosen = [place[name] for name in expected.features]
    return replace(data, X=data.X[:, chosen], feature_names=expected.features)


def _feature_names(path: Path, header: Header) -> tuple[str, ...]:
    for attribute in header.attributes:
        if len(attribute.name) * len(attribute.categories or ()) > MOST_NAME_CHARACTERS:
            problem = f"attribute {attribute.name[:40]!r}...: too long a name for that many categories; shorten it"
            raise FileFormatError(path, None, problem)
    names: list[str] = []
    for attribute in header.attributes:
        if attribute.categories is None:
            names.append(attribute.name)
        else:
            names.extend(f"{attribute.name}={category}" for category in attribute.categories)
    unique: dict[str, None] = {}
    repeats: Counter[str] = Counter()
    for name in names:
        candidate = name
        while candidate in unique:
            repeats[name] += 1
            candidate = f"{name}#{repeats[name] + 1}"
        unique[candidate] = None
    return tuple(unique)


def _build_features(path: Path, header: Header, rows: Rows) -> Any:
    """Numeric columns and one-hot columns, in the order of the attributes; sparse if they are large and mostly 0."""
    count = len(rows.lines)
    names = [attribute.name for attribute in header.attributes if attribute.categories is None]
    numeric = np.asarray(rows.numeric, dtype=np.float64).reshape(count, len(names))
    too_large = np.argwhere(np.abs(numeric) > LARGEST)
    if len(too_large):
        row, position = too_large[0].tolist()
        problem = f"expected a finite number up to {LARGEST:.0e}, got {numeric[row, position]}"
        raise FileFormatError(path, rows.lines[row], f"attribute {names[position]!r}: {problem}")
    codes = np.asarray(rows.nominal, dtype=np.int64).reshape(count, len(header.attributes) - len(names))
    widths = [1 if attribute.categories is None else len(attribute.categories) for attribute in header.attributes]
    shape = count, sum(widths)
    if shape[0] * shape[1] > MOST_DENSE_FEATURES:
        present = np.count_nonzero(numeric) + np.count_nonzero(codes >= 0)
        if 2 * present < shape[0] * shape[1]:  # a cell that is stored takes 12 bytes or 16, others take 8
            return _sparse_features(header, numeric, codes, shape)
    X = np.zeros(shape)
    column = 0
    next_numeric, next_nominal = iter(numeric.T), iter(codes.T)
    for attribute, width in zip(header.attributes, widths, strict=True):
        if attribute.categories is None:
            X[:, column] = next(next_numeric)
        else:
            code = next(next_nominal)
            known = np.flatnonzero(code >= 0)
            X[known, column + code[known]] = 1.0
        column += width
    return X


def _sparse_features(header: Header, numeric: NDArray[Any], codes: NDArray[Any], shape: tuple[int, int]) -> Any:
    """The same columns as a sparse matrix."""
    is_numeric = np.array([attribute.categories is None for attribute in header.attributes], dtype=np.bool_)
    widths = np.array([len(attribute.categories or "1") for attribute in header.attributes])
    first = np.cumsum(widths) - widths
    rows, columns = np.nonzero(numeric)
    values = numeric[rows, columns]
    rows_of_codes, places = np.nonzero(codes >= 0)
    hot = first[~is_numeric][places] + codes[rows_of_codes, places]
    cells = np.concatenate([rows, rows_of_codes]), np.concatenate([first[is_numeric][columns], hot])
    return csr_array((np.concatenate([values, np.ones(len(hot))]), cells), shape=shape)


def _detect_kind(entries: tuple[str, ...], labels: list[list[str]]) -> Literal["tree", "dag"]:
    pairs = all(entry.count("/") == 1 for entry in entries)
    single_names = not any("/" in label for row in labels for label in row)
    return "dag" if pairs and single_names else "tree"


def _build_hierarchy(path: Path, header: Header, kind: Literal["tree", "dag"]) -> Hierarchy:
    try:
        if kind == "dag":
            return Hierarchy.from_edges([_pair(entry) for entry in header.entries])
        deepest = max(header.entries, key=lambda entry: entry.count("/"))
        levels = deepest.count("/") + 1
        if levels > MAX_LEVELS:
            raise HierarchyError(f"the path {deepest[:60]!r}... has {levels:,} levels; at most {MAX_LEVELS:,} are read")
        tree = Hierarchy.from_paths(header.entries, separator="/")
        if ROOT not in tree:
            return Hierarchy.from_edges([*tree.edges, *((ROOT, top) for top in tree.roots)], nodes=(ROOT,))
        if tree.roots == (ROOT,):
            return tree
        raise HierarchyError(f"the name {ROOT!r} is reserved for a node above all others, but a class has this name")
    except HierarchyError as error:
        raise FileFormatError(path, header.class_line, str(error)) from error


def _pair(entry: str) -> tuple[str, str]:
    parent, _, child = entry.partition("/")
    if not parent or not child or "/" in child:
        raise HierarchyError(f"expected a parent/child pair in a DAG, got {entry[:60]!r}")
    return parent, child


def _encode_labels(path: Path, rows: Rows, hierarchy: Hierarchy) -> Labels:
    shape = len(rows.labels), len(hierarchy)
    cells: list[tuple[int, int]] = []
    for row, labels in enumerate(rows.labels):
        for label in labels:
            column = hierarchy.index.get(label)
            if column is None:
                raise FileFormatError(
                    path, rows.lines[row], f"label {label[:60]!r} is not in the hierarchy of the class attribute"
                )
            cells.append((row, column))
    places = np.array(cells, dtype=np.int64).reshape(-1, 2).T
    if shape[0] * shape[1] > MOST_DENSE_CELLS:
        return hierarchy.close(sparse_labels(places[0], places[1], shape))
    Y = np.zeros(shape, dtype=np.bool_)
    Y[places[0], places[1]] = True
    return hierarchy.close(Y)
