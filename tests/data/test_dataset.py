"""`Dataset` and `DatasetSplits`: rows that are taken, joined, checked and compared."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csc_array, csr_array, issparse

from rarenode import Hierarchy, make_hierarchical
from rarenode.data.dataset import Dataset, DatasetSplits, scored_nodes
from rarenode.errors import ArgumentError, DataError, LabelError, UnknownLabelError

TREE = Hierarchy.from_edges([("animal", "cat"), ("animal", "dog"), ("dog", "puppy")])


@cache
def rows() -> Dataset:
    """Sixty rows with everything that a dataset may have."""
    base = make_hierarchical(rows=120, nodes=12, depth=3, features=4).train
    known = np.repeat((np.arange(60) % 4 > 0)[:, None], 12, axis=1)
    return replace(
        base,
        Y=base.Y & known,
        ids=tuple(f"row {number}" for number in range(60)),
        known=known,
        sample_weight=np.linspace(0, 2, 60, dtype=np.float32),
        n_counted=40,
        name="all of it",
    )


def dense(X: Any) -> Any:
    return X.toarray() if issparse(X) else X


# --- some of the rows ------------------------------------------------------------------------------------------------


@given(
    chosen=st.lists(st.integers(0, 59), min_size=1),
    n_counted=st.sampled_from([None, 1, 40, 59, 60]),
    sparse=st.booleans(),
)
def test_some_of_the_rows(chosen: list[int], n_counted: int | None, sparse: bool) -> None:
    base = replace(rows(), n_counted=n_counted, X=csr_array(rows().X) if sparse else rows().X)
    taken = base.take(np.array(chosen))
    assert len(taken) == len(chosen)
    in_order = sorted(chosen)
    assert np.array_equal(dense(taken.X), [rows().X[row] for row in in_order])
    assert np.array_equal(taken.Y, [base.Y[row] for row in in_order])
    assert taken.ids == tuple(f"row {row}" for row in in_order)
    known = np.ones(taken.Y.shape, dtype=np.bool_) if taken.known is None else taken.known
    assert known.tolist() == [[row % 4 > 0] * 12 for row in in_order]
    assert (taken.known is None) == all(row % 4 for row in in_order)
    assert taken.known_rows.tolist() == [sum(row % 4 > 0 for row in in_order)] * 12
    assert taken.sample_weight is not None
    assert taken.sample_weight.tolist() == [float(rows().sample_weight[row]) for row in in_order]  # type: ignore[index]
    counted = [row for row in in_order if n_counted is None or row < n_counted] or in_order
    assert np.array_equal(taken.counted_Y, [base.Y[row] for row in counted])
    assert taken.hierarchy is base.hierarchy
    assert (taken.name, taken.feature_names) == (base.name, base.feature_names)
    assert np.array_equal(taken.scored, base.scored)


def test_taking_rows_of_rows_is_taking_rows() -> None:
    once = rows().take(np.array([3, 10, 41, 50]))
    assert once.take(np.array([1, 3])).fingerprint == rows().take(np.array([10, 50])).fingerprint


def test_all_of_the_rows_are_the_same_rows() -> None:
    assert rows().take(np.arange(60)[::-1]).fingerprint == rows().fingerprint
    assert rows().take(np.arange(59)).fingerprint != rows().fingerprint


def test_none_of_the_rows() -> None:
    nothing = rows().take(np.array([], dtype=np.int64))
    assert len(nothing) == 0
    assert nothing.n_features == 4


def test_rows_with_labels() -> None:
    labelled = rows().with_labels_only()
    assert labelled.ids == tuple(f"row {row}" for row in range(60) if row % 4)
    assert len(labelled.counted_Y) == 30
    assert labelled.with_labels_only() is labelled
    assert labelled.known is None
    everything = replace(rows(), known=None)
    assert everything.with_labels_only() is everything


def test_rows_with_some_labels_are_kept() -> None:
    known = np.arange(60)[:, None] % 3 < np.array([1, 2] * 6)  # of three rows one knows all, one every other, one none
    some = replace(rows(), Y=rows().Y & known, known=known, sample_weight=None, n_counted=None)
    labelled = some.with_labels_only()
    assert labelled.ids == tuple(f"row {row}" for row in range(60) if row % 3 < 2)
    assert labelled.known is not None
    assert np.array_equal(labelled.known, known[known.any(axis=1)])
    assert labelled.known_rows.tolist() == [20, 40] * 6


# --- what is known ---------------------------------------------------------------------------------------------------


def test_a_mask_of_what_is_known_everywhere_is_none() -> None:
    base = replace(rows(), known=None)
    same = replace(base, known=np.ones(base.Y.shape, dtype=np.bool_))
    assert same.known is None
    assert same.fingerprint == base.fingerprint
    assert base.known_rows.tolist() == [60] * 12
    assert (base.counted_known, len(base.counted_Y)) == (None, 40)


def test_targets_are_labels_with_nan_where_unknown() -> None:
    some = rows()
    assert some.known is not None
    assert some.targets.dtype == np.float32
    assert np.array_equal(np.isnan(some.targets), ~some.known)
    assert np.array_equal(some.targets == 1, some.Y)
    everything = replace(some, known=None)
    assert everything.targets is everything.Y


def test_a_label_cannot_be_present_and_unknown() -> None:
    base = replace(rows(), known=None)
    row, node = np.argwhere(base.Y)[7].tolist()
    known = np.ones(base.Y.shape, dtype=np.bool_)
    known[row, node] = False
    with pytest.raises(LabelError, match=f"row {row} has the label {base.hierarchy.nodes[node]!r}, which known says"):
        replace(base, known=known)


@pytest.mark.parametrize("known", [np.ones((60, 11), dtype=np.bool_), np.ones(60, dtype=np.bool_), np.ones((60, 12))])
def test_what_is_known_must_be_boolean_and_fit(known: Any) -> None:
    with pytest.raises(LabelError, match=r"known must be boolean and have the shape of the labels, \(60, 12\)"):
        replace(rows(), known=known)


def test_counted_rows() -> None:
    assert np.array_equal(rows().counted_Y, rows().Y[:40])
    assert np.array_equal(replace(rows(), n_counted=None).counted_Y, rows().Y)


# --- fingerprints ----------------------------------------------------------------------------------------------------


def test_the_fingerprint_covers_all_that_training_depends_on() -> None:
    base = rows()
    scored = base.scored.copy()
    scored[0] = False
    others = [
        replace(base, X=base.X + 1),
        replace(base, X=base.X.astype(np.float32)),
        replace(base, Y=base.Y & (np.arange(12) != 5)),
        replace(base, known=None),
        replace(base, scored=scored),
        replace(base, n_counted=None),
        replace(base, sample_weight=None),
        replace(base, sample_weight=np.ones(60, dtype=np.float32)),
        base.take(np.arange(50)),
        replace(base, X=csr_array(base.X)),
    ]
    assert len({base.fingerprint, *(other.fingerprint for other in others)}) == len(others) + 1


def test_the_fingerprint_covers_nothing_else() -> None:
    base = rows()
    for same in (
        replace(base, X=np.asfortranarray(base.X)),
        replace(base, name="another", ids=None, feature_names=None),
    ):
        assert same.fingerprint == base.fingerprint
    assert replace(base, n_counted=60).fingerprint == replace(base, n_counted=None).fingerprint


def test_the_fingerprint_of_sparse_features() -> None:
    base = replace(rows(), X=csr_array(np.where(rows().X > 0, rows().X, 0)), feature_names=None)
    assert replace(base, X=base.X.tocsc()).fingerprint == base.fingerprint
    wider = csr_array((base.X.data, base.X.indices, base.X.indptr), shape=(60, 5))
    assert replace(base, X=wider).fingerprint != base.fingerprint
    changed = base.X.copy()
    changed.data[0] += 1
    assert replace(base, X=changed).fingerprint != base.fingerprint


# --- from arrays -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [np.array, list, csr_array, csc_array, coo_array])
def test_from_arrays(kind: Any) -> None:
    X = [[0.5, 0.0], [0.0, 2.0], [1.0, 1.0]]
    data = Dataset.from_arrays(
        kind(np.array(X)) if kind is not list else X,
        [[0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]],
        TREE,
        feature_names=["weight", "age"],
        sample_weight=[1, 2, 0.5],
        name="pets.csv",
    )
    assert data.Y.tolist() == [[True, False, True, False], [True, False, True, True], [False] * 4]
    assert data.Y.dtype == np.bool_
    assert np.array_equal(dense(data.X), X)
    assert data.feature_names == ("weight", "age")
    assert data.sample_weight is not None
    assert data.sample_weight.dtype == np.float32
    assert data.scored.all()
    assert repr(data).startswith("<Dataset pets.csv: 3 rows, 2 features, <Hierarchy: tree of 4 nodes")
    assert np.array_equal(dense(data.take(np.array([2, 0])).X), [X[0], X[2]])


@pytest.mark.parametrize(
    ("edges", "unscored", "expected"),
    [
        ([("root", "a"), ("a", "b")], None, {"a", "b"}),
        ([("root", "a"), ("other", "b")], None, {"root", "a", "other", "b"}),
        ([("top", "root")], None, {"top", "root"}),
        ([("root", "a"), ("a", "b")], (), {"root", "a", "b"}),
        ([("root", "a"), ("a", "b")], ("a", "root"), {"b"}),
    ],
)
def test_an_artificial_root_is_not_scored(
    edges: list[tuple[str, str]], unscored: tuple[str, ...] | None, expected: set[str]
) -> None:
    hierarchy = Hierarchy.from_edges(edges)
    scored = scored_nodes(hierarchy, unscored)
    assert {node for node, counts in zip(hierarchy.nodes, scored, strict=True) if counts} == expected
    Y = np.zeros((1, len(hierarchy)))
    assert np.array_equal(Dataset.from_arrays([[1.0]], Y, hierarchy, unscored=unscored).scored, scored)


def test_a_root_that_is_the_only_node_is_scored() -> None:
    assert scored_nodes(Hierarchy.from_edges([], nodes=["root"])).tolist() == [True]


def test_an_unscored_node_that_does_not_exist() -> None:
    with pytest.raises(ArgumentError, match="unscored: 'bird' is not a node"):
        scored_nodes(TREE, ["cat", "bird"])


# --- checks ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "error", "says"),
    [
        ({"X": np.zeros(60)}, DataError, r"\(60, features\)"),
        ({"X": np.zeros((59, 4))}, DataError, r"X must have the shape \(60, features\).*got \(59, 4\)"),
        ({"X": csr_array((59, 4))}, DataError, r"got \(59, 4\)"),
        ({"X": [[1.0]] * 30 + [[1.0, 2.0]] * 30}, DataError, "X must be an array of numbers"),
        ({"X": [["a"]] * 60}, DataError, "X must be an array of numbers.*'a'"),
        ({"Y": np.zeros((60, 12), dtype=int)}, LabelError, "Y must be boolean"),
        ({"Y": np.zeros((60, 11), dtype=bool)}, LabelError, r"\(rows, 12\); got bool \(60, 11\)"),
        ({"scored": np.zeros(12, dtype=bool)}, ArgumentError, "scored .* at least one set"),
        ({"scored": np.ones(11, dtype=bool)}, ArgumentError, "scored must be a boolean mask of 12 nodes"),
        ({"scored": np.ones(12)}, ArgumentError, "scored"),
        ({"feature_names": ("a",)}, DataError, "1 feature name for 4 features"),
        ({"ids": ("a",)}, DataError, "ids has 1 value for 60 rows"),
        ({"sample_weight": np.ones(2)}, DataError, "sample_weight has 2 values"),
        ({"n_counted": 0}, ArgumentError, "n_counted must be None or a whole number from 1 to 60"),
        ({"n_counted": 61}, ArgumentError, "n_counted"),
    ],
)
def test_parts_that_do_not_fit_are_named(changes: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        replace(rows(), **changes)


@pytest.mark.parametrize("kind", [list, torch.from_numpy, lambda X: X.astype(object), pd.DataFrame])
def test_features_may_be_any_array_of_numbers(kind: Any) -> None:
    data = rows()
    other = replace(data, X=kind(np.asarray(data.X)), Y=data.Y.tolist(), scored=data.scored.tolist())
    assert other.fingerprint == data.fingerprint


# --- splits ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def splits() -> DatasetSplits:
    return make_hierarchical(rows=40, nodes=8, depth=2, features=3)


def test_training_and_validation_rows_together(splits: DatasetSplits) -> None:
    """Only the former are counted, as in the paper."""
    assert splits.valid is not None
    both = splits.train_and_valid
    assert np.array_equal(both.X, np.concatenate([splits.train.X, splits.valid.X]))
    assert np.array_equal(both.Y, np.concatenate([splits.train.Y, splits.valid.Y]))
    assert (len(both), both.n_counted) == (30, 20)
    assert np.array_equal(both.counted_Y, splits.train.Y)
    assert (both.ids, both.known, both.sample_weight) == (None, None, None)
    without = replace(splits, valid=None)
    assert without.train_and_valid is splits.train


def test_what_belongs_to_rows_is_joined_too(splits: DatasetSplits) -> None:
    assert splits.valid is not None
    weights = np.full(10, 0.5, dtype=np.float32)
    known = np.repeat((np.arange(20) > 2)[:, None], len(splits.hierarchy), axis=1)
    train = replace(splits.train, Y=splits.train.Y & known, known=known, ids=tuple("abcdefghijklmnopqrst"))
    valid = replace(splits.valid, sample_weight=weights, ids=tuple("0123456789"))
    both = replace(splits, train=train, valid=valid).train_and_valid
    assert both.known is not None
    assert both.known.all(axis=1).tolist() == both.known.any(axis=1).tolist() == [False] * 3 + [True] * 27
    assert both.counted_known is not None
    assert np.array_equal(both.counted_known, known)
    assert both.sample_weight is not None
    assert both.sample_weight.tolist() == [1.0] * 20 + [0.5] * 10
    assert both.sample_weight.dtype == np.float32
    assert both.ids == tuple("abcdefghijklmnopqrst0123456789")
    assert replace(splits, train=train).train_and_valid.ids is None


def test_sparse_splits_are_joined(splits: DatasetSplits) -> None:
    sparse = splits.map_features(csr_array)
    both = sparse.train_and_valid
    assert issparse(both.X)
    assert np.array_equal(both.X.toarray(), splits.train_and_valid.X)
    assert len(both.take(np.array([0, 25]))) == 2


def test_parts_by_name(splits: DatasetSplits) -> None:
    assert splits.part("train") is splits.train
    assert splits.part("test") is splits.test
    with pytest.raises(ArgumentError, match="synthetic has no valid rows"):
        replace(splits, valid=None).part("valid")
    assert repr(splits).startswith("<DatasetSplits synthetic: 20/10/10 rows, 3 features, <Hierarchy")
    assert repr(replace(splits, valid=None)).startswith("<DatasetSplits synthetic: 20/-/10 rows")


def test_features_of_all_parts_are_mapped(splits: DatasetSplits) -> None:
    doubled = splits.map_features(lambda X: 2 * X)
    for name in ("train", "valid", "test"):
        assert np.array_equal(doubled.part(name).X, 2 * splits.part(name).X)
        assert np.array_equal(doubled.part(name).Y, splits.part(name).Y)
    assert replace(splits, valid=None).map_features(lambda X: X).valid is None


def test_label_sets_are_labels() -> None:
    tree = Hierarchy.from_edges([("animal", "cat"), ("animal", "dog")])
    expected = Dataset.from_arrays(np.zeros((3, 1)), [[0, 1, 0], [0, 1, 1], [0, 0, 0]], tree).Y
    for sets in ([["cat"], ("cat", "dog"), []], [{"cat"}, {"cat", "dog", "animal"}, set()]):
        assert np.array_equal(Dataset.from_arrays(np.zeros((3, 1)), sets, tree).Y, expected)
        pictures = Dataset.from_images(["a.png", "b.png", "c.png"], sets, tree)
        assert np.array_equal(pictures.Y, expected)
    with pytest.raises(UnknownLabelError, match="'bird'"):
        Dataset.from_images(["a.png"], [["bird"]], tree)
