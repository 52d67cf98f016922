"""Labels as people have them, read into one form: a hierarchy and a closed matrix of its nodes.

==================================  ====================================================================================
what is given                       what it means
==================================  ====================================================================================
a data frame of 0 and 1             its columns are named by nodes, in any order; a node without a column is in no row
a matrix of 0 and 1, dense or sparse  one column for each node, in the hierarchy's order
label sets, one for each row        names of nodes
one label for each row (1-D)        with a hierarchy, the name of a node; without one, the classes of an ordinary
                                    multi-class problem, which is what scikit-learn means by a 1-D target
==================================  ====================================================================================

In a data frame or matrix, what is missing (NaN, None, pandas.NA, masked) is unknown, 1 is present, and 0 is absent
unless a descendant is present. What follows from that is known too; see `rarenode.hierarchy.three_valued`.

Without a hierarchy the nodes are what is there: columns, or the names that occur. The columns of a bare matrix are then
named by their place, with as many digits as the last one needs, so that the order of names is that of the columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from rarenode.errors import LabelError, UnknownLabelError
from rarenode.hierarchy import Hierarchy
from rarenode.hierarchy.labels import MOST_DENSE_CELLS, Labels, as_label_sets
from rarenode.hierarchy.three_valued import complete_labels


@dataclass(frozen=True, eq=False)
class Targets:
    """Labels over a hierarchy."""

    hierarchy: Hierarchy
    Y: Labels
    """(rows, nodes), closed under ancestors; sparse if the labels were given so."""
    known: NDArray[np.bool_] | None
    """(rows, nodes): where labels are known; None: everywhere."""
    classes: NDArray[Any]
    """Names of the nodes in column order; for a multi-class problem the sorted classes, as they were given."""
    one_class: bool = False
    """Whether this is an ordinary multi-class problem: every row has exactly one class."""


def read_targets(given: Any, hierarchy: Hierarchy | None) -> Targets:
    """Read labels in any of the forms above; ``hierarchy`` None means that the nodes are flat.

    >>> tree = Hierarchy.from_edges([("animal", "cat"), ("animal", "dog")])
    >>> read_targets([{"cat"}, {"dog", "cat"}], tree).Y.astype(int)
    array([[1, 1, 0],
           [1, 1, 1]])
    """
    if given is None:
        raise LabelError("RareNodeClassifier requires y to be passed, but the target y is None")
    if issparse(given):
        return _from_sparse(given, hierarchy)
    if _is_frame(given):
        return _from_columns(_with_nan(given), [str(name) for name in given.columns], hierarchy)
    rows = as_label_sets(given)
    if rows is not None:
        return _from_label_sets(rows, hierarchy)
    values = _with_nan(given)
    if values.ndim == 2 and (values.shape[1] != 1 or hierarchy is not None):
        return _from_matrix(values, hierarchy)
    values = column_or_1d(values, warn=True)
    if hierarchy is not None:
        return _from_label_sets([[label] for label in values.tolist()], hierarchy)
    return _from_classes(values)


def class_names(classes: Sequence[Any]) -> list[str]:
    """The nodes that stand for the classes of an ordinary multi-class problem."""
    return [str(label) for label in classes]


def _from_columns(values: NDArray[Any], names: list[str], hierarchy: Hierarchy | None) -> Targets:
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise LabelError(f"two columns of labels are named {twice!r}")
    if hierarchy is None:
        hierarchy = Hierarchy.from_edges([], nodes=names)
    unknown = [name for name in names if name not in hierarchy]
    if unknown:
        raise UnknownLabelError(f"columns of labels that are not nodes of the hierarchy: {_some(unknown)}")
    Y = np.zeros((len(values), len(hierarchy)), dtype=values.dtype)
    Y[:, [hierarchy.index[name] for name in names]] = values
    return _over(hierarchy, Y)


def _from_matrix(values: NDArray[Any], hierarchy: Hierarchy | None) -> Targets:
    return _over(_flat(values.shape[1]) if hierarchy is None else hierarchy, values)


def _from_sparse(given: Any, hierarchy: Hierarchy | None) -> Targets:
    matrix = given.tocoo()
    if np.isnan(matrix.data.astype(np.float64)).any():  # unknown labels need a mask of all cells
        return _from_matrix(given.toarray(), hierarchy)
    tree = _flat(matrix.shape[1]) if hierarchy is None else hierarchy
    return Targets(tree, tree.close(given), None, np.array(tree.nodes))


def _flat(nodes: int) -> Hierarchy:
    """A hierarchy without edges, for the columns of a bare matrix."""
    digits = len(str(nodes - 1))
    return Hierarchy.from_edges([], nodes=[f"{column:0{digits}}" for column in range(nodes)])


def _from_label_sets(rows: Sequence[Iterable[str]], hierarchy: Hierarchy | None) -> Targets:
    if hierarchy is None:
        hierarchy = Hierarchy.from_edges([], nodes={label for row in rows for label in row})
        if not len(hierarchy):
            raise LabelError("no row has a label, and there is no hierarchy to say which there are")
    sparse = len(rows) * len(hierarchy) > MOST_DENSE_CELLS
    try:
        values = hierarchy.encode(rows, sparse=sparse)
    except UnknownLabelError as error:
        raise UnknownLabelError(f"{error}{_several_labels(rows, hierarchy)}") from None
    if sparse:
        return _from_sparse(values, hierarchy)
    return _over(hierarchy, values)


def _several_labels(rows: Sequence[Iterable[Any]], hierarchy: Hierarchy) -> str:
    """What to do if a label that is not in the hierarchy is a text of several."""
    unknown = (label for row in rows for label in row if isinstance(label, str) and label not in hierarchy)
    label = next(unknown, "")
    for separator in (";", ",", "|"):
        if separator in label and any(part.strip() in hierarchy for part in label.split(separator)):
            read = f"Dataset.read(..., separator={separator!r})"
            return f". It seems to be several labels: split it into a list, or read the table with {read}"
    return ""


def _from_classes(values: NDArray[Any]) -> Targets:
    assert_all_finite(values, input_name="y")
    check_classification_targets(values)
    classes, codes = np.unique(values, return_inverse=True)
    hierarchy = Hierarchy.from_edges([], nodes=class_names(classes.tolist()))
    columns = np.array([hierarchy.index[name] for name in class_names(classes.tolist())], dtype=np.int64)
    Y = np.zeros((len(values), len(hierarchy)), dtype=np.bool_)
    Y[np.arange(len(values)), columns[codes]] = True
    return Targets(hierarchy, Y, None, classes, one_class=True)


def _over(hierarchy: Hierarchy, values: NDArray[Any]) -> Targets:
    unknown = np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=np.bool_)
    Y, known = hierarchy.close(np.where(unknown, 0, values) if unknown.any() else values).astype(np.bool_), None
    if unknown.any():
        Y, known = complete_labels(hierarchy, Y, absent=~unknown & ~Y, unknown=unknown)
    return Targets(hierarchy, Y, known, np.array(hierarchy.nodes))


def _with_nan(given: Any) -> NDArray[Any]:
    """An array of what is given; a matrix of objects, or a masked one, becomes one of numbers, NaN where missing."""
    values = np.asarray(given)
    if values.ndim == 2 and values.dtype == object:
        values = np.frompyfunc(_as_number, 1, 1)(values).astype(np.float64)
    if values.ndim == 2 and np.ma.isMaskedArray(given):
        values = np.where(np.ma.getmaskarray(given), np.nan, values)
    return values


def _as_number(value: object) -> float:
    if value is None or type(value).__name__ == "NAType":  # that of pandas
        return np.nan
    if not isinstance(value, Real | np.bool_):
        raise LabelError(f"labels must be 0 or 1, or missing where they are unknown; got {value!r}")
    return float(value)


def _is_frame(given: Any) -> bool:
    """Whether it has named columns: pandas, polars and others, none of which has to be installed."""
    return hasattr(given, "columns") and hasattr(given, "shape") and len(given.shape) == 2


def _some(names: list[str]) -> str:
    shown = ", ".join(repr(name) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"
