"""`WeightSchedule`: how node weights move during training."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rarenode import Hierarchy, NodeWeights, RareNodeLoss, WeightSchedule, node_weights
from rarenode.errors import ArgumentError
from tests import oracles
from tests.strategies import Problem, closed_labels, problems, tame_logits

Shape = Literal["constant", "linear", "exponential", "alternating"]
By = Literal["batch", "epoch"]
Towards = Literal[1, "w0"]
SHAPES: tuple[Shape, ...] = ("constant", "linear", "exponential", "alternating")
BYS: tuple[By, ...] = ("batch", "epoch")
TOWARDS: tuple[Towards, ...] = (1, "w0")

TREE = Hierarchy.from_edges([("r", "a"), ("r", "b"), ("a", "c")])
LABELS = TREE.close(TREE.encode([["c"], ["a"], ["b"], ["r"], []]))


moments = st.builds(
    lambda batches, epochs, b, e: {"batch": b % batches, "batches": batches, "epoch": e % epochs, "epochs": epochs},
    st.integers(1, 30),
    st.integers(1, 30),
    st.integers(0, 900),
    st.integers(0, 900),
)


@given(st.sampled_from(SHAPES), st.sampled_from(BYS), moments)
def test_share_matches_the_oracle(shape: Shape, by: By, moment: dict[str, int]) -> None:
    share = WeightSchedule(shape=shape, by=by).share(**moment)
    t, T = (moment["batch"], moment["batches"]) if by == "batch" else (moment["epoch"], moment["epochs"])
    assert isinstance(share, float)
    assert share == pytest.approx(oracles.share(shape, t, T), abs=1e-12)
    assert 0 <= share <= 1


@pytest.mark.parametrize("by", BYS)
def test_shares_by_hand(by: By) -> None:
    def shares(shape: Shape) -> list[float]:
        schedule = WeightSchedule(shape=shape, by=by)
        if by == "batch":
            return [schedule.share(batch=t, batches=5, epoch=3, epochs=9) for t in range(5)]
        return [schedule.share(batch=3, batches=9, epoch=t, epochs=5) for t in range(5)]

    assert shares("constant") == [0, 0, 0, 0, 0]
    assert shares("linear") == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert shares("exponential") == pytest.approx([0, 1 / 64, 1 / 8, 27 / 64, 1])
    assert shares("alternating") == [0, 1, 0, 1, 0]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_single_batch_or_epoch_does_not_move(shape: Shape) -> None:
    assert WeightSchedule(shape=shape, by="batch").share(batch=0, batches=1, epoch=4, epochs=8) == 0
    assert WeightSchedule(shape=shape, by="epoch").share(batch=4, batches=8, epoch=0, epochs=1) == 0


def expected_side(
    w: np.ndarray[Any, Any], carries: bool, share: float, target: float, mix: float
) -> np.ndarray[Any, Any]:
    moved = w + share * (target - w) if carries else w
    return mix * moved + (1 - mix) * 1.0


@given(
    st.sampled_from(SHAPES),
    st.sampled_from(BYS),
    st.sampled_from(TOWARDS),
    st.sampled_from((0.0, 0.3, 1.0)),
    st.sampled_from(("negatives", "positives", "both")),
    st.sampled_from((0.0, 0.25, 1.5)),
    moments,
)
def test_weights_match_the_formula(
    shape: Shape, by: By, towards: Towards, mix: float, side: oracles.Side, w0: float, moment: dict[str, int]
) -> None:
    start = node_weights(LABELS, TREE, w0=w0, side=side)
    before = start.positive.copy(), start.negative.copy()
    moved = WeightSchedule(shape=shape, by=by, towards=towards, mix=mix).weights(start, **moment)
    assert isinstance(moved, NodeWeights)
    t, T = (moment["batch"], moment["batches"]) if by == "batch" else (moment["epoch"], moment["epochs"])
    share = oracles.share(shape, t, T)
    target = 1.0 if towards == 1 else w0
    np.testing.assert_allclose(
        moved.positive, expected_side(start.positive, side in ("positives", "both"), share, target, mix), atol=1e-12
    )
    np.testing.assert_allclose(
        moved.negative, expected_side(start.negative, side in ("negatives", "both"), share, target, mix), atol=1e-12
    )
    assert np.array_equal(start.positive, before[0])
    assert np.array_equal(start.negative, before[1])


def test_the_default_leaves_the_weights_as_they_are() -> None:
    start = node_weights(LABELS, TREE)
    for batch in range(3):
        moved = WeightSchedule().weights(start, batch=batch, batches=3, epoch=0, epochs=1)
        assert moved.positive.tolist() == start.positive.tolist()
        assert moved.negative.tolist() == start.negative.tolist()


@pytest.mark.parametrize("shape", ["linear", "exponential"])
def test_towards_one_ends_at_the_unweighted_objective(shape: Shape) -> None:
    start = node_weights(LABELS, TREE, side="both")
    moved = WeightSchedule(shape=shape).weights(start, batch=9, batches=10, epoch=0, epochs=2)
    assert moved.positive == pytest.approx([1.0] * 4)
    assert moved.negative == pytest.approx([1.0] * 4)


def test_towards_w0_ends_at_the_gate_on_the_weighted_side_only() -> None:
    start = node_weights(LABELS, TREE, w0=0.25)
    moved = WeightSchedule("linear", towards="w0").weights(start, batch=9, batches=10, epoch=0, epochs=2)
    assert moved.negative == pytest.approx([0.25] * 4)
    assert moved.positive.tolist() == [1.0] * 4


def test_alternating_takes_turns_with_the_unweighted_objective() -> None:
    start = node_weights(LABELS, TREE)
    schedule = WeightSchedule("alternating")
    even = schedule.weights(start, batch=4, batches=10, epoch=1, epochs=2)
    odd = schedule.weights(start, batch=5, batches=10, epoch=1, epochs=2)
    assert even.negative.tolist() == start.negative.tolist()
    assert odd.negative == pytest.approx([1.0] * 4)


@given(problems(tame_logits), st.sampled_from((0.0, 0.2, 0.5, 1.0)), st.data())
def test_mix_gives_the_mixed_loss(problem: Problem, mix: float, data: st.DataObject) -> None:
    """lambda x weighted + (1 - lambda) x unweighted."""
    start = node_weights(data.draw(closed_labels(problem.hierarchy, 4)), problem.hierarchy)
    mixed = WeightSchedule(mix=mix).weights(start, batch=0, batches=2, epoch=0, epochs=2)
    loss = RareNodeLoss(problem.hierarchy, start)
    logits, labels = torch.tensor(problem.logits), torch.tensor(problem.labels)
    weighted = loss(logits, labels)
    plain = RareNodeLoss(problem.hierarchy)(logits, labels)
    assert loss(logits, labels, weights=mixed).item() == pytest.approx((mix * weighted + (1 - mix) * plain).item())


@pytest.mark.parametrize(
    "wrong",
    [{"shape": "cubic"}, {"by": "minute"}, {"towards": "zero"}, {"mix": -0.1}, {"mix": 1.1}, {"mix": float("nan")}],
)
def test_options_that_mean_nothing_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        WeightSchedule(**wrong)
