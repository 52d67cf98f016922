"""Single voices that reach a threshold: counts by loops, the chance in exact fractions, and what luck is called."""

from __future__ import annotations

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rarenode import Hierarchy
from rarenode.diagnosis import NodeDiagnosis, diagnose
from rarenode.diagnosis.carried import carried_cells
from rarenode.diagnosis.voices import find_voices
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
        found = find_voices(highest, thresholds, carried_cells(labels, missed))
    for node in range(shape[1]):
        heard = {row for row in range(shape[0]) if float(highest[row, node]) >= thresholds[node]}
        carrying = {row for row in range(shape[0]) if labels[row, node] and missed[node]}
        hits = len(heard & carrying)
        assert found.carried_rows[node] == hits
        assert found.all_rows[node] == (len(heard) if hits else 0)
        chance = oracles.chance(shape[0], len(carrying), len(heard), hits) if hits else 1
        assert found.chance[node] == pytest.approx(float(chance), rel=1e-9)


def test_a_model_with_one_voice_has_nothing_to_tell() -> None:
    labels = np.ones((4, 3), dtype=np.bool_)
    found = find_voices(None, np.zeros(3), carried_cells(labels, np.ones(3, dtype=np.bool_)))
    assert not found.carried_rows.any()
    assert not found.all_rows.any()
    assert found.chance.tolist() == [1.0] * 3


def listen(knows: float) -> NodeDiagnosis:
    """Missed nodes, with a voice that speaks up in one row of fifty, and as often as told where a node is carried."""
    rng = np.random.default_rng(0)
    nodes, rows = 2000, 300
    flat = Hierarchy.from_edges([], nodes=[f"n{number:04d}" for number in range(nodes)])
    Y = rng.random((rows, nodes)) < rng.choice([0.004, 0.02, 0.1], nodes)
    voices = np.where(rng.random((rows, nodes)) < np.where(Y, knows, 0.02), 0.9, 0.0)
    thresholds = Thresholds(np.full(nodes, 0.5))
    return diagnose(Y, np.zeros((rows, nodes)), flat, thresholds, np.ones(nodes, dtype=int), highest_voice=voices)


def test_voices_that_know_nothing_are_seldom_said_to_disagree_and_those_that_know_often() -> None:
    lucky, knowing = listen(0.02), listen(0.5)
    missed = int((lucky.state == "missed").sum())
    assert (lucky.voice_rows > 0).sum() > 0.1 * missed  # that alone is no disagreement
    assert 0 < sum("members_disagree" in some for some in lucky.reasons) <= 0.01 * missed
    assert sum("members_disagree" in some for some in knowing.reasons) > 0.5 * missed
