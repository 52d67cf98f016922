"""Synthetic data: shaped as requested, the same for the same seed, and hard in the way real data are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from rarenode import DatasetSplits, Hierarchy, constrain, make_hierarchical
from rarenode.errors import ArgumentError
from rarenode.metrics import summary_by_depth

DEEP = 3


@settings(max_examples=25)
@given(
    nodes=st.integers(6, 80),
    depth=st.integers(1, 6),
    shape=st.sampled_from(["tree", "dag"]),
    seed=st.integers(0, 1000),
)
def test_it_is_shaped_as_requested(nodes: int, depth: int, shape: Any, seed: int) -> None:
    data = make_hierarchical(60, nodes=nodes, depth=depth, shape=shape, features=7, seed=seed)
    assert len(data.hierarchy) == nodes
    assert int(data.hierarchy.depth.max()) == depth - 1
    assert shape == "dag" or data.hierarchy.is_tree
    assert data.valid is not None
    for split, rows in ((data.train, 30), (data.valid, 15), (data.test, 15)):
        assert split.X.shape == (rows, 7)
        assert split.X.dtype == np.float64
        assert data.hierarchy.is_closed(split.Y)
        assert split.Y.any(axis=1).all()
    assert data.scored.all()


def test_it_takes_a_given_hierarchy() -> None:
    own = Hierarchy.from_edges([("animal", "cat"), ("animal", "dog"), ("pet", "dog"), ("dog", "puppy")])
    data = make_hierarchical(200, hierarchy=own, stop=0.5)
    assert data.hierarchy == own
    assert data.train.Y.any(axis=0).all()


def test_a_dag_is_one() -> None:
    assert not make_hierarchical(20, shape="dag").hierarchy.is_tree


def test_the_seed_decides_everything() -> None:
    first, again, other = make_hierarchical(50, seed=1), make_hierarchical(50, seed=1), make_hierarchical(50, seed=2)
    assert first.hierarchy == again.hierarchy
    np.testing.assert_array_equal(first.train.X, again.train.X)
    np.testing.assert_array_equal(first.test.Y, again.test.Y)
    assert first.hierarchy != other.hierarchy


def test_frequencies_have_a_long_tail_rows_several_labels_and_labels_stop_half_way() -> None:
    data = make_hierarchical(4000, seed=3)
    Y, hierarchy = data.train.Y, data.hierarchy
    frequency = np.sort(Y.mean(axis=0))[::-1]
    assert frequency[:10].mean() > 20 * frequency[100:].mean()

    below = np.zeros_like(Y)
    for parent, child in zip(hierarchy.edge_parents, hierarchy.edge_children, strict=True):
        below[:, parent] |= Y[:, child]
    ends = Y & ~below  # the most specific labels of each row
    leaf = np.isin(hierarchy.nodes, hierarchy.leaves)
    assert 0.1 < ends[:, ~leaf].sum() / ends.sum() < 0.9
    assert 1.3 < ends.sum(axis=1).mean() < 2.5


def test_options_do_what_they_say() -> None:
    def end_depth(stop: float) -> float:
        data = make_hierarchical(1000, stop=stop)
        return float((data.train.Y * (data.hierarchy.depth + 1)).max(axis=1).mean())

    assert end_depth(1.0) == 1.0
    assert end_depth(0.0) > end_depth(0.5) > 1.5
    many = make_hierarchical(500, labels_per_row=6).train.Y.sum()
    assert many > 2 * make_hierarchical(500, labels_per_row=1).train.Y.sum()
    even, steep = (np.sort(make_hierarchical(2000, tail=tail).train.Y.mean(axis=0)) for tail in (0.0, 2.5))
    assert np.median(steep) < np.median(even)


@pytest.mark.parametrize("shape", ["tree", "dag"])
def test_a_plain_model_at_one_half_finds_few_deep_nodes_although_they_can_be_ranked(shape: Any) -> None:
    data = make_hierarchical(shape=shape)
    probs = _one_logistic_regression_for_each_node(data)
    by_depth = summary_by_depth(data.test.Y, probs, data.hierarchy)
    top = by_depth[0]
    deep = [s for depth, s in by_depth.items() if depth >= DEEP]
    found, nodes = sum(s.nodes_found for s in deep), sum(s.nodes for s in deep)
    assert top.nodes_found >= 0.8 * top.nodes
    assert found <= 0.25 * nodes

    deep_and_known = (data.hierarchy.depth >= DEEP) & (data.train.Y.sum(axis=0) >= 5) & data.test.Y.any(axis=0)
    ranked = [roc_auc_score(data.test.Y[:, i], probs[:, i]) for i in np.flatnonzero(deep_and_known)]
    assert np.mean(ranked) > 0.75

    harder = _one_logistic_regression_for_each_node(make_hierarchical(shape=shape, noise=6.0))
    assert harder[data.test.Y].mean() < probs[data.test.Y].mean()


def _one_logistic_regression_for_each_node(data: DatasetSplits) -> Any:
    """A model that has nothing of ours but the constraint."""
    probs = np.zeros(data.test.Y.shape)
    scaler = StandardScaler().fit(data.train.X)
    train, test = scaler.transform(data.train.X), scaler.transform(data.test.X)
    for node in np.flatnonzero(data.train.Y.any(axis=0) & ~data.train.Y.all(axis=0)):
        model = LogisticRegression(C=0.05).fit(train, data.train.Y[:, node])
        probs[:, node] = model.predict_proba(test)[:, 1]
    return constrain(probs, data.hierarchy)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"rows": 3}, "rows"),
        ({"nodes": 2, "depth": 3}, "nodes"),
        ({"depth": 0}, "depth"),
        ({"features": 0}, "features"),
        ({"labels_per_row": 0.5}, "labels_per_row"),
        ({"tail": -1.0}, "tail"),
        ({"stop": 1.5}, "stop"),
        ({"noise": -1.0}, "noise"),
        ({"noise": float("nan")}, "noise"),
        ({"shape": "graph"}, "shape"),
    ],
)
def test_bad_options_are_named(wrong: dict[str, Any], word: str) -> None:
    with pytest.raises(ArgumentError, match=word):
        make_hierarchical(**wrong)
