"""Devices without the compiled loop go another way to the same maximisers; it runs, and is tested, on the CPU too."""

from __future__ import annotations

import shutil

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rarenode import Hierarchy
from rarenode.objective.constraint import has_gaps, maximisers_by_level
from rarenode.objective.kernels import find_maximisers
from tests.strategies import hierarchies

VALUES = st.sampled_from([-torch.inf, -1.0, 0.0, 0.5, 2.0, torch.inf, torch.nan])  # few, so that ties are common


@given(hierarchy=hierarchies(), data=st.data(), members=st.integers(1, 3), rows=st.integers(1, 3))
def test_both_ways_find_the_same_maximisers(hierarchy: Hierarchy, data: st.DataObject, members: int, rows: int) -> None:
    nodes = len(hierarchy)
    cells = st.lists(VALUES, min_size=members * rows * nodes, max_size=members * rows * nodes)
    scores = torch.tensor(data.draw(cells)).reshape(members, rows, nodes)
    flags = st.lists(st.booleans(), min_size=rows * nodes, max_size=rows * nodes)
    labels = hierarchy.close(np.array(data.draw(flags)).reshape(rows, nodes))

    best = np.empty((members * rows, nodes), dtype=np.int64)
    flat = scores.reshape(-1, nodes).numpy()
    assert find_maximisers(flat, labels, *hierarchy.families, hierarchy.edge_children, best)
    by_level = maximisers_by_level(scores, torch.from_numpy(labels), hierarchy)
    np.testing.assert_array_equal(by_level.reshape(-1, nodes).numpy(), best)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
@pytest.mark.filterwarnings("ignore")  # of torch.compile, about itself
def test_compiled_it_finds_the_same_maximisers() -> None:
    hierarchy = Hierarchy.from_edges([("a", "b"), ("a", "c"), ("x", "c"), ("b", "d")])
    rng = np.random.default_rng(0)
    for rows in (4, 4, 3):  # the last batch of an epoch has fewer rows
        labels = torch.from_numpy(hierarchy.close(rng.random((rows, 5)) < 0.3))
        scores = torch.tensor(rng.integers(-2, 3, (2, rows, 5)), dtype=torch.float32)
        eager, compiled = (maximisers_by_level(scores, labels, hierarchy, compiled=each) for each in (False, True))
        assert torch.equal(eager, compiled)


@given(hierarchy=hierarchies(), data=st.data(), rows=st.integers(1, 3))
def test_gaps_in_labels_are_found_on_the_device(hierarchy: Hierarchy, data: st.DataObject, rows: int) -> None:
    flags = st.lists(st.booleans(), min_size=rows * len(hierarchy), max_size=rows * len(hierarchy))
    labels = np.array(data.draw(flags)).reshape(rows, len(hierarchy))
    is_closed = bool((hierarchy.close(labels) == labels).all())
    assert bool(has_gaps(torch.from_numpy(labels), hierarchy)) != is_closed
