"""Single members that reach a threshold: counts by loops, the chance in exact fractions, and false alarms."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rarenode import Hierarchy
from rarenode.diagnosis import NodeDiagnosis, diagnose
from rarenode.diagnosis.evidence import Positives, member_predictions
from rarenode.thresholds import Thresholds
from tests.diagnosis import oracles
from tests.thresholds.oracles import EIGHTHS


@given(st.data(), st.sampled_from((1, 5, 1 << 20)))
def test_counts_and_chance_are_those_of_loops_and_fractions(data: st.DataObject, cells: int) -> None:
    shape = data.draw(st.integers(0, 30)), data.draw(st.integers(1, 4))
    highest = data.draw(hnp.arrays(np.float32, shape, elements=EIGHTHS))
    labels, missed = data.draw(hnp.arrays(np.bool_, shape)), data.draw(hnp.arrays(np.bool_, shape[1]))
    thresholds = data.draw(hnp.arrays(np.float64, shape[1], elements=st.sampled_from((0.0, 0.25, 0.5, 1.0, np.inf))))
    with patch("rarenode.thresholds.probabilities.CELLS_PER_BLOCK", cells):
        found = member_predictions(highest, thresholds, Positives.of(labels, missed))
    for node in range(shape[1]):
        reached = {row for row in range(shape[0]) if float(highest[row, node]) >= thresholds[node]}
        positives = {row for row in range(shape[0]) if labels[row, node] and missed[node]}
        hits = len(reached & positives)
        assert found.positives[node] == hits
        assert found.rows[node] == (len(reached) if hits else 0)
        chance = oracles.chance(shape[0], len(positives), len(reached), hits) if hits else 1
        assert found.chance[node] == pytest.approx(float(chance), rel=1e-9)


def test_a_model_with_one_member_has_no_evidence() -> None:
    labels = np.ones((4, 3), dtype=np.bool_)
    found = member_predictions(None, np.zeros(3), Positives.of(labels, np.ones(3, dtype=np.bool_)))
    assert not found.positives.any()
    assert not found.rows.any()
    assert found.chance.tolist() == [1.0] * 3


def diagnose_members(recall: float) -> NodeDiagnosis:
    """Missed nodes, with a member that reaches thresholds in one of fifty negatives and with this recall."""
    rng = np.random.default_rng(0)
    nodes, rows = 2000, 300
    flat = Hierarchy.from_edges([], nodes=[f"n{number:04d}" for number in range(nodes)])
    Y = rng.random((rows, nodes)) < rng.choice([0.004, 0.02, 0.1], nodes)
    highest = np.where(rng.random((rows, nodes)) < np.where(Y, recall, 0.02), 0.9, 0.0)
    thresholds, training = Thresholds(np.full(nodes, 0.5)), np.ones(nodes, dtype=int)
    return diagnose(Y, np.zeros((rows, nodes)), flat, thresholds, training, highest_member_probs=highest)


def test_members_that_know_nothing_are_seldom_reported_to_disagree_and_those_that_know_often() -> None:
    lucky, knowing = diagnose_members(0.02), diagnose_members(0.5)
    missed = int((lucky.state == "missed").sum())
    assert (lucky.member_rows > 0).sum() > 0.1 * missed  # that alone is no disagreement
    assert 0 < sum("members_disagree" in some for some in lucky.reasons) <= 0.01 * missed
    assert sum("members_disagree" in some for some in knowing.reasons) > 0.5 * missed
