"""`Dataset`: features and labels of rows over one hierarchy, the one record that readers return and training takes.

`DatasetSplits` is a dataset in three parts, as benchmarks come.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from rarenode._io.text import counted
from rarenode.data.catalogue import SPLITS, SplitName
from rarenode.data.features import as_features, content_arrays, stack_rows, take_rows
from rarenode.data.images import Images, as_images
from rarenode.data.table_options import TableOptions, table_options
from rarenode.errors import ArgumentError, DataError, LabelError
from rarenode.hierarchy import Hierarchy, HierarchyLike, as_hierarchy
from rarenode.hierarchy.labels import (
    MOST_DENSE_CELLS,
    Labels,
    as_known,
    as_label_sets,
    as_sparse_labels,
    count_labels,
    dense_rows,
    is_sparse,
    row_blocks,
    stack_labels,
    take_known,
)

ROOT = "root"
"""The name of the artificial root that tree-shaped benchmark files have."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows with features and labels over one hierarchy.

    Features are raw, as in the file: NaN where missing, not standardised. A model prepares them itself.
    """

    X: Any
    """(rows, features): a float array, NaN where a value is missing; a scipy sparse matrix; a polars data frame with
    numbers and categories; or `Images`. See `as_features` for what becomes one of these."""
    Y: Labels
    """(rows, nodes), closed under ancestors: an array of booleans, or a scipy CSR array of booleans, which readers make
    of labels that would take much memory. Training takes both and gives the same model."""
    hierarchy: Hierarchy
    scored: NDArray[np.bool_]
    """(nodes,): which nodes count in the loss and in the metrics; an artificial root does not."""
    feature_names: tuple[str, ...] | None = None
    ids: tuple[str, ...] | None = None
    """Names of the rows; None numbers them from 0."""
    known: NDArray[np.bool_] | None = None
    """(rows, nodes): where it is known whether a row has a node; None: everywhere, as a mask of True becomes too. What
    is unknown is not in Y."""
    sample_weight: NDArray[np.float32] | None = None
    """(rows,): how much each row counts in training; None: 1 each."""
    name: str = ""
    """Where the rows come from: a file, or a name of the catalogue."""
    n_counted: int | None = None
    """So many of the rows, the first ones, define the node weights and are resampled; None: all. The paper trains on
    training and validation rows, but counts and resamples only the former."""

    reading: TableOptions | None = None
    """How the rows were read, if they come from a table; a model keeps it."""

    notes: tuple[str, ...] = ()
    """What the reader noticed and `rarenode doctor` repeats."""

    partition: NDArray[np.str_] | None = None
    """(rows,): which part each row belongs to, ``train``, ``valid`` or ``test``, if the table says so; see `splits`."""

    def __post_init__(self) -> None:
        X, names = as_features(self.X)
        object.__setattr__(self, "X", X)
        object.__setattr__(self, "feature_names", names if self.feature_names is None else self.feature_names)
        sparse = is_sparse(self.Y)
        object.__setattr__(self, "Y", as_sparse_labels(self.Y, self.hierarchy.nodes) if sparse else np.asarray(self.Y))
        object.__setattr__(self, "scored", np.asarray(self.scored))
        nodes = len(self.hierarchy)
        if self.Y.dtype != np.bool_ or self.Y.ndim != 2 or self.Y.shape[1] != nodes:
            raise LabelError(
                f"Y must be boolean of the shape (rows, {nodes}); got {self.Y.dtype} {self.Y.shape}. "
                "Dataset.from_arrays also takes 0 and 1"
            )
        rows = len(self)
        if len(self.X.shape) != 2 or self.X.shape[0] != rows:
            raise DataError(
                f"X must have the shape ({rows}, features), as Y has {counted(rows, 'row')}; got {self.X.shape}"
            )
        if self.scored.dtype != np.bool_ or self.scored.shape != (nodes,) or not self.scored.any():
            raise ArgumentError(f"scored must be a boolean mask of {counted(nodes, 'node')} with at least one set")
        if self.feature_names is not None and len(self.feature_names) != self.X.shape[1]:
            raise DataError(
                f"there are {counted(len(self.feature_names), 'feature name')} "
                f"for {counted(self.X.shape[1], 'feature')}"
            )
        self._check_known()
        for what in ("ids", "sample_weight", "partition"):
            values = getattr(self, what)
            if values is not None and len(values) != rows:
                raise DataError(f"{what} has {counted(len(values), 'value')} for {counted(rows, 'row')}")
        first = self.n_counted
        if first is not None and not (isinstance(first, int) and 0 < first <= rows):
            raise ArgumentError(f"n_counted must be None or a whole number from 1 to {rows}, the rows; got {first!r}")

    def _check_known(self) -> None:
        known = as_known(self.known, self.Y.shape)
        object.__setattr__(self, "known", known)
        if known is None:
            return
        for rows, labels in row_blocks(self.Y):
            wrong = labels & ~known[rows]
            if wrong.any():
                row, node = np.argwhere(wrong)[0].tolist()
                name = self.hierarchy.nodes[node]
                raise LabelError(f"row {rows.start + row} has the label {name!r}, which known says is unknown")

    @classmethod
    def from_arrays(
        cls,
        X: Any,
        Y: Any,
        hierarchy: HierarchyLike,
        *,
        unscored: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
        sample_weight: Any = None,
        name: str = "",
    ) -> Self:
        """A dataset from arrays; ancestors of labels are added.

        Args:
            X: (rows, features), NaN where missing.
            Y: (rows, nodes) of 0 and 1, dense or sparse; or label sets, the names of the nodes of each row.
            hierarchy: of the labels, as in `read`.
            unscored: nodes that count neither in the loss nor in the metrics; None: an artificial root.
            feature_names: names of the columns of X.
            sample_weight: (rows,), how much each row counts in training.
            name: where the rows come from.

        >>> tree = Hierarchy.from_edges([("animal", "cat"), ("animal", "dog")])
        >>> Dataset.from_arrays([[0.5], [1.5]], [[0, 1, 0], [0, 0, 1]], tree).Y.astype(int)
        array([[1, 1, 0],
               [1, 0, 1]])
        """
        hierarchy = as_hierarchy(hierarchy)
        sets = as_label_sets(Y)
        if sets is not None:
            Y = hierarchy.encode(sets, sparse=len(sets) * len(hierarchy) > MOST_DENSE_CELLS)
        return cls(
            X=X,
            Y=hierarchy.close(Y).astype(np.bool_),
            hierarchy=hierarchy,
            scored=scored_nodes(hierarchy, unscored),
            feature_names=None if feature_names is None else tuple(feature_names),
            sample_weight=None if sample_weight is None else np.asarray(sample_weight, dtype=np.float32),
            name=name,
        )

    @classmethod
    def read(
        cls,
        *sources: Any,
        hierarchy: HierarchyLike | None = None,
        kind: Literal["auto", "tree", "dag"] = "auto",
        **options: Any,
    ) -> Dataset:
        """Read files, or a data frame, as one dataset.

        Args:
            sources: CSV, TSV, Parquet, Arrow or ARFF files with the same columns; or one pandas or polars data frame,
                whose index, if it has one, are the ids.
            hierarchy: of the labels: a `Hierarchy`, a file (see `rarenode.hierarchy.read_hierarchy`), nested names,
                (parent, child) pairs or a networkx graph; None: the one that paths or levels make.
            kind: of an ARFF file: whether its classes form a ``tree`` or a ``dag``.
            options: which columns are what, as in `TableOptions`: ``labels``, ``id``, ``features``, ...

        Raises:
            MissingFileError: there is no such file.
            FileFormatError: a file is malformed; the message names the line.
            DataError, ArgumentError: columns cannot be used, or are not there.

        >>> import polars as pl
        >>> table = pl.DataFrame({"image": ["a", "b"], "depth": [3, 5], "taxa": ["Biota > Corals", "Biota > Sponges"]})
        >>> Dataset.read(table, labels="taxa", id="image")
        <Dataset the data frame: 2 rows, 1 feature, <Hierarchy: tree of 3 nodes and 2 edges, depth 1>>
        """
        from rarenode.data.readers import read  # noqa: PLC0415 (readers return datasets)

        return read(sources, hierarchy=hierarchy, kind=kind, options=table_options(options))

    @classmethod
    def from_images(
        cls, images: Any, Y: Any, hierarchy: HierarchyLike, *, unscored: Sequence[str] | None = None, name: str = ""
    ) -> Self:
        """A dataset of pictures.

        Args:
            images: `Images`, paths of files, or a folder or zip archive, all pictures in which are taken.
            Y: (rows, nodes) of 0 and 1; or label sets, the names of the nodes of each row. Ancestors are added.
            hierarchy: of the labels, as in `read`.
            unscored: nodes that count neither in the loss nor in the metrics; None: an artificial root.
            name: where the rows come from.

        To read labels from a table or from folders, use `read`:
        ``Dataset.read("photos.csv", images="photos/", labels="taxa")``, or ``Dataset.read("photos/")``.
        """
        pictures = as_images(images)
        made = cls.from_arrays(pictures, Y, hierarchy, unscored=unscored, name=name)
        return replace(made, ids=pictures.names if len(set(pictures.names)) == len(pictures) else None)

    def __len__(self) -> int:
        return int(self.Y.shape[0])

    def __repr__(self) -> str:
        title = f"{self.name}: " if self.name else ""
        features = "pictures" if isinstance(self.X, Images) else counted(self.n_features, "feature")
        return f"<Dataset {title}{counted(len(self), 'row')}, {features}, {self.hierarchy!r}>"

    @property
    def n_features(self) -> int:
        """Columns of X."""
        return int(self.X.shape[1])

    @property
    def targets(self) -> Labels:
        """Y with NaN where it is unknown, or Y itself if everything is known: what `RareNodeClassifier.fit` takes.

        >>> import polars as pl
        >>> table = pl.DataFrame({"depth": [3, 5], "taxa": ["Biota > Corals", None]})
        >>> Dataset.read(table, labels="taxa").targets
        array([[ 1.,  1.],
               [nan, nan]], dtype=float32)
        """
        if self.known is None:
            return self.Y
        return np.where(self.known, dense_rows(self.Y), np.float32(np.nan)).astype(np.float32)

    @property
    def counted_Y(self) -> Labels:  # noqa: N802 (Y is the field's name for labels)
        """Labels of the rows that define the node weights."""
        return self.Y[: self.n_counted]

    @property
    def support(self) -> NDArray[np.int64]:
        """(nodes,): how many rows have each node."""
        return count_labels(self.Y)

    @property
    def counted_known(self) -> NDArray[np.bool_] | None:
        """Where labels of these rows are known; None: everywhere."""
        return None if self.known is None else self.known[: self.n_counted]

    @property
    def known_rows(self) -> NDArray[np.int64]:
        """(nodes,): in how many rows each node is known to be present or absent."""
        if self.known is None:
            return np.full(len(self.hierarchy), len(self), dtype=np.int64)
        counts: NDArray[np.int64] = self.known.sum(axis=0, dtype=np.int64)
        return counts

    @property
    def counting(self) -> NDArray[np.bool_] | None:
        """(rows,): which rows have a weight above 0; None: all."""
        if self.sample_weight is None or self.sample_weight.all():
            return None
        return self.sample_weight > 0

    def take(self, rows: NDArray[np.int64]) -> Self:
        """Some of the rows, in their order; if none of them is counted, all of them are."""
        chosen = np.sort(rows)
        counted = None if self.n_counted is None else int(np.count_nonzero(chosen < self.n_counted)) or None
        return replace(
            self,
            X=take_rows(self.X, chosen),
            Y=self.Y[chosen],
            ids=None if self.ids is None else tuple(self.ids[row] for row in chosen.tolist()),
            known=None if self.known is None else take_known(self.known, chosen),
            sample_weight=None if self.sample_weight is None else self.sample_weight[chosen],
            n_counted=counted,
            partition=None if self.partition is None else self.partition[chosen],
        )

    def splits(self) -> DatasetSplits:
        """The parts that ``partition`` names.

        Raises:
            DataError: there is no partition, or it lacks training or test rows.
        """
        name = self.name or "the data"
        if self.partition is None:
            raise DataError(f"{name}: nothing says which rows are for training and which for testing (--partition)")
        rows = {split: np.flatnonzero(self.partition == split) for split in SPLITS}
        for split in ("train", "test"):
            if not len(rows[split]):
                advice = "without --partition, some rows are held out"
                raise DataError(f"{name}: the column of parts has no {split} rows; {advice}")
        parts = {
            split: replace(self.take(its), partition=None, name=f"{self.name} ({split} rows)")
            for split, its in rows.items()
            if len(its)
        }
        return DatasetSplits(self.name, parts["train"], parts.get("valid"), parts["test"])

    def with_labels_only(self) -> Self:
        """The rows of which some label is known. If some are left out, rows without ids keep their numbers as ids."""
        if self.known is None or self.known.any(axis=1).all():
            return self
        ids = self.ids if self.ids is not None else tuple(str(row) for row in range(len(self)))
        return replace(self, ids=ids).take(np.flatnonzero(self.known.any(axis=1)))

    def with_dense_labels(self) -> Self:
        """The same rows with a dense Y, as metrics compare with probabilities, which are dense."""
        return replace(self, Y=dense_rows(self.Y)) if is_sparse(self.Y) else self

    @cached_property
    def fingerprint(self) -> str:
        """sha256 of everything that training depends on but the hierarchy, which has its own."""
        digest = hashlib.sha256()
        parts = content_arrays(self.X)
        known = () if self.known is None else (self.known,)
        for array in (*parts, self.Y, self.scored, np.array(self.counted_Y.shape[0]), self.sample_weight, *known):
            if array is None:
                digest.update(b"none;")
                continue
            digest.update(f"{array.dtype.str}{array.shape};".encode("ascii"))
            # Sparse labels have the fingerprint of dense ones.
            for part in (each for _, each in row_blocks(array)) if array.ndim == 2 else [array]:
                digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class DatasetSplits:
    """A dataset in parts: training, validation and test rows."""

    name: str
    train: Dataset
    valid: Dataset | None
    """None where the dataset has no validation rows."""
    test: Dataset

    @property
    def hierarchy(self) -> Hierarchy:
        """The hierarchy of all parts."""
        return self.train.hierarchy

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Which nodes count."""
        return self.train.scored

    @property
    def feature_names(self) -> tuple[str, ...] | None:
        """Names of the columns of X."""
        return self.train.feature_names

    def part(self, split: SplitName) -> Dataset:
        """The rows of a split.

        Raises:
            ArgumentError: there is no such split, or the dataset has no such rows.
        """
        if split not in SPLITS:
            raise ArgumentError(f"unknown split {split!r}; choose one of {', '.join(SPLITS)}")
        rows: Dataset | None = getattr(self, split)
        if rows is None:
            raise ArgumentError(f"{self.name} has no {split} rows")
        return rows

    def map_features(self, function: Callable[[Any], Any]) -> Self:
        """The same rows with features that a function computes from those of each part."""
        train, test = (replace(part, X=function(part.X)) for part in (self.train, self.test))
        valid = None if self.valid is None else replace(self.valid, X=function(self.valid.X))
        return replace(self, train=train, valid=valid, test=test)

    @property
    def train_and_valid(self) -> Dataset:
        """Training and validation rows together; only the former are counted, as in the paper."""
        train, valid = self.train, self.valid
        if valid is None:
            return train
        return replace(
            train,
            X=stack_rows(train.X, valid.X),
            Y=stack_labels([train.Y, valid.Y]),
            ids=None if train.ids is None or valid.ids is None else (*train.ids, *valid.ids),
            known=_joined(train, valid, "known", np.bool_),
            sample_weight=_joined(train, valid, "sample_weight", np.float32),
            n_counted=len(train),
        )

    def __repr__(self) -> str:
        rows = "/".join("-" if part is None else str(len(part)) for part in (self.train, self.valid, self.test))
        features = "pictures" if isinstance(self.train.X, Images) else counted(self.train.n_features, "feature")
        return f"<DatasetSplits {self.name}: {rows} rows, {features}, {self.hierarchy!r}>"


def scored_nodes(hierarchy: Hierarchy, unscored: Sequence[str] | None = None) -> NDArray[np.bool_]:
    """Which nodes count: all but ``unscored``; None leaves out an artificial root, the only root, named ``root``."""
    if unscored is None:
        unscored = [ROOT] if hierarchy.roots == (ROOT,) and len(hierarchy) > 1 else []
    if isinstance(unscored, str):
        raise ArgumentError(f"unscored must be a list of nodes, got the text {unscored!r}; write [{unscored!r}]")
    unknown = [node for node in unscored if node not in hierarchy]
    if unknown:
        raise ArgumentError(f"unscored: {unknown[0]!r} is not a node of the hierarchy")
    left_out = set(unscored)
    return np.array([node not in left_out for node in hierarchy.nodes])


def _joined(first: Dataset, second: Dataset, name: str, dtype: type[np.generic]) -> NDArray[Any] | None:
    """An attribute of the rows of both; where only one has it, it is 1 for the other."""
    values = [getattr(part, name) for part in (first, second)]
    if all(each is None for each in values):
        return None
    parts = zip(values, (first, second), strict=True)
    shape = values[0].shape[1:] if values[0] is not None else values[1].shape[1:]
    return np.concatenate([np.ones((len(part), *shape), dtype) if each is None else each for each, part in parts])


def require_match(
    data: str,
    features: Sequence[str] | None,
    hierarchy: Hierarchy | None,
    model_features: Sequence[str] | None,
    model_hierarchy: Hierarchy,
) -> None:
    """Raise a `DataError` unless ``data`` has the model's features and hierarchy, as far as they are known."""
    if model_features is not None and features is not None:
        difference = _difference(features, model_features, "features")
        if difference is not None:
            raise DataError(f"{data} does not fit the model: {difference}")
    if hierarchy is None:
        return
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
        problems = [f"it has {what} that the model does not have: {_some(added)}"] if added else []
        problems += [f"it lacks {what} of the model: {_some(missing)}"] if missing else []
        return "; ".join(problems)
    for place, (ours, theirs) in enumerate(zip(here, there, strict=True)):
        if ours != theirs:
            return f"its {what} have another order; number {place + 1} is {ours!r} and the model's is {theirs!r}"
    return None


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:3])
    return shown if len(names) <= 3 else f"{shown} and {len(names) - 3} more"
