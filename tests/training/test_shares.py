"""Shares of rows, against loops; and networks that begin with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rarenode.training.loop import train_network
from rarenode.training.shares import node_shares, prior_of, smoothed_shares
from tests.training.problem import prepared, rows, settings, with_labels


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("partial", [False, True])
def test_shares_of_rows_where_a_node_is_known(weighted: bool, partial: bool) -> None:
    data = with_labels(rows(), np.arange(len(rows())) % 3 > 0) if partial else rows()
    weights = np.linspace(0, 2, len(data), dtype=np.float32)
    if weighted:
        data = replace(data, sample_weight=weights)
    expected, prior, counts = [], [], []
    for node in range(len(data.hierarchy)):
        has = knows = has_counting = knows_counting = 0.0
        for row in range(len(data)):
            weight = float(weights[row]) if weighted else 1.0
            if data.known is None or data.known[row, node]:
                has, knows = has + weight * data.Y[row, node], knows + weight
                has_counting += (weight > 0) * data.Y[row, node]
                knows_counting += weight > 0
        expected.append(has / knows)
        counts.append((has, knows))
        prior.append(has_counting / knows_counting)
    np.testing.assert_allclose(node_shares(data), expected, rtol=1e-6)
    np.testing.assert_allclose(prior_of(data), prior)
    mean = float(weights.mean()) if weighted else 1.0
    smoothed = [(positive / mean + 0.5) / (known / mean + 1) for positive, known in counts]
    for node in range(len(data.hierarchy)):  # parents come first
        for parent in data.hierarchy.parents(data.hierarchy.nodes[node]):
            smoothed[node] = min(smoothed[node], smoothed[data.hierarchy.index[parent]])
    np.testing.assert_allclose(smoothed_shares(data), smoothed, rtol=1e-6)


def test_shares_are_smoothed_away_from_0_and_1() -> None:
    Y = np.zeros_like(rows().Y)
    Y[:, 0] = True
    shares = smoothed_shares(replace(rows(), Y=Y))
    assert ((shares > 0) & (shares < 1)).all()


@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_a_network_that_has_learned_nothing_predicts_the_shares(engine: str) -> None:
    """With a learning rate near 0 and a layer whose weights count little."""
    X = np.zeros_like(prepared().X)
    data = replace(prepared(), X=X)
    chosen = settings(engine=engine, n_layers=1, epochs=1, learning_rate=1e-9, output_bias="prior")
    probs = train_network(data, chosen).model.compute(X).probs
    expected = smoothed_shares(data)  # closed labels: no child has a larger share than its parent
    np.testing.assert_allclose(probs, np.tile(expected, (len(X), 1)), rtol=1e-4)


def test_a_node_that_is_known_where_it_is_present_does_not_lift_its_ancestors() -> None:
    """Presence-only data: deepest nodes are present or unknown."""
    data = rows()
    tree = data.hierarchy
    leaves = np.setdiff1d(np.arange(len(tree)), tree.edge_parents)
    known = np.ones_like(data.Y)
    known[:, leaves] = data.Y[:, leaves]
    shares, expected = smoothed_shares(replace(data, known=known)), smoothed_shares(data)
    inner = np.unique(tree.edge_parents)
    np.testing.assert_allclose(shares[inner], expected[inner])
    for parent, child in zip(tree.edge_parents, tree.edge_children, strict=True):
        assert shares[child] <= shares[parent]
