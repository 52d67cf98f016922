"""`summarize_groups`: the summaries of predictions, with AP of probabilities, and histograms of recalls."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from rarenode import Hierarchy
from rarenode.metrics import GroupedSummary, Summary, summarize_groups, summary, summary_by_depth, summary_by_rarity
from rarenode.metrics.summaries import RECALL_BINS
from tests import oracles
from tests.strategies import closed_labels, hierarchies

Bools = NDArray[np.bool_]
BANDS = {"0": (0, 0), "1-4": (1, 4), "5-19": (5, 19), "20-99": (20, 99), "100+": (100, 10**9)}


class Case(NamedTuple):
    Y: Bools
    probs: NDArray[np.float64]
    predicted: Bools
    hierarchy: Hierarchy
    training: NDArray[np.int64]
    scored: Bools


@st.composite
def cases(draw: st.DrawFn) -> Case:
    hierarchy = draw(hierarchies())
    nodes, rows = len(hierarchy), draw(st.integers(1, 12))
    training = draw(st.lists(st.sampled_from((0, 1, 4, 5, 19, 20, 99, 100, 7000)), min_size=nodes, max_size=nodes))
    return Case(
        Y=draw(closed_labels(hierarchy, rows)),
        probs=draw(hnp.arrays(np.float64, (rows, nodes), elements=st.integers(0, 8).map(lambda n: n / 8))),
        predicted=draw(hnp.arrays(np.bool_, (rows, nodes))),
        hierarchy=hierarchy,
        training=np.array(training, dtype=np.int64),
        scored=draw(hnp.arrays(np.bool_, nodes)),
    )


def recall_histogram(case: Case, columns: list[int]) -> tuple[int, ...]:
    """Nodes with positives, by recall: none, or above (k - 1) tenths and at most k tenths."""
    counts = [0] * 11
    for column in columns:
        positives = [row for row in range(len(case.Y)) if case.Y[row, column]]
        if not positives:
            continue
        recall = Fraction(sum(bool(case.predicted[row, column]) for row in positives), len(positives))
        (place,) = [0] if recall == 0 else [k for k in range(1, 11) if Fraction(k - 1, 10) < recall <= Fraction(k, 10)]
        counts[place] += 1
    return tuple(counts)


def groups(case: Case) -> dict[str, list[int]]:
    """All groups that have scored nodes, and their columns."""
    scored = [column for column in range(len(case.hierarchy)) if case.scored[column]]
    depth = {column: oracles.depth(case.hierarchy.edges, case.hierarchy.nodes[column]) for column in scored}
    parts = {"all": scored}
    for band, (least, most) in BANDS.items():
        parts[f"{band} training rows"] = [column for column in scored if least <= case.training[column] <= most]
    for level in sorted(set(depth.values())):
        parts[f"depth {level}"] = [column for column in scored if depth[column] == level]
    return {name: columns for name, columns in parts.items() if columns or name == "all"}


@given(cases())
def test_groups_come_with_their_histograms_of_recalls(case: Case) -> None:
    expected = groups(case)
    parts = list(summarize_groups(*case).groups())
    assert [part.group for part in parts] == list(expected)
    for part in parts:
        assert part.recall_histogram == recall_histogram(case, expected[part.group]), part.group
        assert part.summary.nodes == len(expected[part.group])
    ends = [part.group for part in parts if part.ends_section]
    last = {group.split()[-1] if "training" in group else group.split()[0]: group for group in expected}
    assert ends == list(last.values())


@given(cases())
def test_summaries_are_of_predictions_but_for_ap(case: Case) -> None:
    def joined(of_predictions: Summary, of_probabilities: Summary) -> Summary:
        return replace(of_predictions, ap=of_probabilities.ap)

    result = summarize_groups(*case)
    predictions = case.predicted.astype(np.float64)
    every, every_p = (summary(case.Y, values, scored=case.scored) for values in (predictions, case.probs))
    assert result.all == joined(every, every_p)
    rarity, rarity_p = (
        summary_by_rarity(case.Y, values, case.training, scored=case.scored) for values in (predictions, case.probs)
    )
    assert result.by_rarity == {name: joined(rarity[name], rarity_p[name]) for name in rarity}
    depth, depth_p = (
        summary_by_depth(case.Y, values, case.hierarchy, scored=case.scored) for values in (predictions, case.probs)
    )
    assert result.by_depth == {level: joined(depth[level], depth_p[level]) for level in depth}


@pytest.mark.parametrize("tenths", range(11))
def test_a_recall_of_exactly_some_tenths_belongs_to_the_lower(tenths: int) -> None:
    """As 3 of 10 rows, and 21 of 70, do to the third."""
    flat = Hierarchy.from_edges([], nodes=["few", "many"])
    Y, predicted = np.zeros((70, 2), dtype=np.bool_), np.zeros((70, 2), dtype=np.bool_)
    Y[:10, 0], Y[:, 1] = True, True
    predicted[:tenths, 0], predicted[: 7 * tenths, 1] = True, True
    result = summarize_groups(Y, predicted.astype(float), predicted, flat, np.array([1, 1]), np.ones(2, dtype=np.bool_))
    expected = [0] * RECALL_BINS
    expected[tenths] = 2
    assert result.recall_histograms["all"] == tuple(expected)


def test_a_little_more_than_some_tenths_belongs_to_the_upper() -> None:
    only = Hierarchy.from_edges([], nodes=["only"])
    Y = np.ones((1001, 1), dtype=np.bool_)
    predicted = np.arange(1001)[:, None] < 301  # 0.3007
    result = summarize_groups(Y, predicted.astype(float), predicted, only, np.array([1]), np.ones(1, dtype=np.bool_))
    assert result.recall_histograms["all"].index(1) == 4
    once = np.arange(1001)[:, None] < 1
    result = summarize_groups(Y, once.astype(float), once, only, np.array([1]), np.ones(1, dtype=np.bool_))
    assert result.recall_histograms["all"].index(1) == 1


def test_bands_without_nodes_are_left_out() -> None:
    nothing = Summary(0.0, 0.0, 0.0, 0.0, 0.0, nodes=0, nodes_predicted=0, nodes_found=0)
    one = replace(nothing, nodes=1)
    flat = (0,) * RECALL_BINS
    histograms = dict.fromkeys(("all", "0 training rows", "1-4 training rows", "depth 0"), flat)
    result = GroupedSummary(one, {"0": nothing, "1-4": one}, {0: one}, histograms)
    assert [(part.group, part.ends_section) for part in result.groups()] == [
        ("all", True), ("1-4 training rows", True), ("depth 0", True),
    ]  # fmt: skip
