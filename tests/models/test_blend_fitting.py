"""`learn_weights` against a slow version, and what it leaves out."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.optimize import minimize

from rarenode.models import blend, blend_fitting, learn_weights, pool

Floats = NDArray[np.float64]


def problem(rows: int, nodes: int, noise: tuple[float, ...], seed: int) -> tuple[list[Any], Any, Floats]:
    """Labels drawn from probabilities, and models that know them with more or less noise on the logit scale."""
    rng = np.random.default_rng(seed)
    odds = rng.normal(-1, 1.5, size=(rows, nodes))
    Y = rng.random((rows, nodes)) < 1 / (1 + np.exp(-odds))
    Y[0], Y[1] = True, False  # every node has both
    parts = [(1 / (1 + np.exp(-odds - rng.normal(0, each, size=odds.shape)))).astype(np.float32) for each in noise]
    return parts, Y, Y.mean(axis=0)


def loss_of(weights: Any, parts: list[Any], Y: Any, shares: Floats, counts: Any) -> float:
    """The log loss of a row, from the formula; ``counts`` are the weights of cells."""
    z = np.zeros(Y.shape)
    for weight, p in zip(weights, parts, strict=True):
        q = np.minimum(0.98 * p.astype(np.float64) + 0.02 * shares, 1 - 1e-7)
        z += weight * np.log(q / (1 - q))
    cells = np.where(Y, np.logaddexp(0, -z), np.logaddexp(0, z))
    return float((cells * counts).sum() / counts[:, :1].sum())


def penalised(weights: Any, parts: list[Any], Y: Any, shares: Floats, rows: Floats) -> float:
    """What is minimised, from the formula; ``rows`` are sample weights."""
    n = rows.sum() ** 2 / (rows**2).sum()
    loss = loss_of(weights, parts, Y, shares, np.repeat(rows[:, None], Y.shape[1], axis=1))
    return float(n * loss + ((np.array(weights) - 1 / len(parts)) ** 2).sum())


@settings(max_examples=15)
@given(seed=st.integers(0, 2**31), weighted=st.booleans())
def test_they_have_the_smallest_penalised_log_loss(seed: int, weighted: bool) -> None:
    parts, Y, shares = problem(60, 8, (0.5, 1.0, 1.5), seed)
    sample_weight = np.random.default_rng(seed).choice([0.5, 1, 3], size=60) if weighted else np.ones(60)
    found = learn_weights(
        parts, Y, shares=shares, scored=np.ones(8, dtype=np.bool_), sample_weight=sample_weight.astype(np.float32)
    )
    counts = np.repeat(sample_weight[:, None], 8, axis=1)
    kept = [parts[place] for place in found.kept]
    its = [found.weights[place] for place in found.kept]
    assert loss_of(its, kept, Y, shares, counts) == pytest.approx(found.loss, rel=1e-4)
    if len(kept) > 1:
        slow = minimize(
            penalised, np.full(len(kept), 2.0), args=(kept, Y, shares, sample_weight), method="L-BFGS-B",
            bounds=[(0, 100)] * len(kept), options={"ftol": 1e-14},
        )  # fmt: skip
        np.testing.assert_allclose(its, slow.x, atol=3e-4)
    for place in found.kept if len(found.kept) > 1 else ():
        assert found.loss_without[place] > found.loss * (1 + blend_fitting.NEGLIGIBLE)


def test_few_rows_that_are_all_predicted_right_make_no_probability_certain() -> None:
    """Without a penalty the loss falls as long as weights grow."""
    Y = np.random.default_rng(1).random((60, 1)) < 0.4
    parts = [np.where(Y, a, b).astype(np.float32) for a, b in ((0.8, 0.3), (0.7, 0.2))]
    found = learn_weights(parts, Y, shares=Y.mean(axis=0), scored=np.ones(1, dtype=np.bool_))
    assert max(found.weights) < 5
    probs = pool(parts, found.weights, Y.mean(axis=0))
    assert 0.001 < probs.min() < 0.1
    assert 0.9 < probs.max() < 0.999


@settings(max_examples=10)
@given(seed=st.integers(0, 2**31), scale=st.sampled_from([1e-30, 1e-9, 1e-3, 7.0, 1e30]))
def test_only_ratios_of_sample_weights_matter(seed: int, scale: float) -> None:
    parts, Y, shares = problem(60, 4, (0.5, 1.0), seed)
    sample_weight = np.random.default_rng(seed).choice([0.5, 1, 3], size=60).astype(np.float32)
    one, other = (
        learn_weights(parts, Y, shares=shares, scored=np.ones(4, dtype=np.bool_), sample_weight=each)
        for each in (sample_weight, sample_weight * np.float32(scale))
    )
    np.testing.assert_allclose(one.weights, other.weights, atol=1.5e-4)  # they are rounded to 4 places
    assert one.loss == pytest.approx(other.loss, rel=1e-5)


def test_rows_of_weight_0_change_nothing() -> None:
    parts, Y, shares = problem(90, 4, (0.5, 1.0), 5)
    weights = (np.arange(90) < 60).astype(np.float32)
    scored = np.ones(4, dtype=np.bool_)
    found = learn_weights(parts, Y, shares=shares, scored=scored, sample_weight=weights)
    assert found.kept == (0, 1)
    without = learn_weights([part[:60] for part in parts], Y[:60], shares=shares, scored=scored)
    np.testing.assert_allclose(found.weights, without.weights, atol=1.5e-4)


def test_a_model_that_knows_nothing_is_left_out() -> None:
    parts, Y, shares = problem(300, 10, (0.5, 0.6), 0)
    nothing = np.random.default_rng(1).random(Y.shape).astype(np.float32)
    found = learn_weights([parts[0], nothing, parts[1]], Y, shares=shares, scored=np.ones(10, dtype=np.bool_))
    assert found.kept == (0, 2)
    assert found.weights[1] == 0
    required = learn_weights(
        [parts[0], nothing, parts[1]], Y, shares=shares, scored=np.ones(10, dtype=np.bool_), required=[1]
    )
    assert 1 in required.kept
    assert required.weights[1] > 0


def test_a_model_without_weight_is_left_out_before_others_are_compared() -> None:
    """Without one of the other two the loss would be lower still, which kept all three."""
    parts, Y, shares = problem(18, 1, (2.0, 2.0, 2.0), 64)
    found = learn_weights(parts, Y, shares=shares, scored=np.ones(1, dtype=np.bool_))
    assert found.weights[0] == 0
    assert found.kept == (1, 2)


def test_one_of_two_equal_models_is_left_out_and_the_other_is_taken_as_it_is() -> None:
    parts, Y, shares = problem(3000, 6, (0.0,), 0)
    found = learn_weights([parts[0], parts[0]], Y, shares=shares, scored=np.ones(6, dtype=np.bool_))
    assert sorted(found.weights) == [0.0, 1.0]
    (place,) = found.kept
    np.testing.assert_array_equal(pool([parts[0]], [found.weights[place]], shares), parts[0])


def test_cells_that_do_not_count_change_nothing() -> None:
    parts, Y, shares = problem(80, 6, (0.5, 1.0), 3)
    known = np.random.default_rng(0).random(Y.shape) < 0.7
    scored = np.array([True, True, False, True, True, True])
    found = learn_weights(parts, Y, shares=shares, scored=scored, known=known)
    other = [np.where(known & scored, p, np.float32(0.9)) for p in parts]
    labels = np.where(known & scored, Y, ~Y)
    assert learn_weights(other, labels, shares=shares, scored=scored, known=known) == found


def test_of_many_rows_some_are_drawn_by_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, Y, shares = problem(200, 5, (0.5, 1.0), 3)
    everything = np.ones(5, dtype=np.bool_)
    monkeypatch.setattr(blend_fitting, "MOST_CELLS", 100)
    found = [learn_weights(parts, Y, shares=shares, scored=everything, seed=seed) for seed in (0, 0, 1, 2)]
    assert found[0] == found[1]
    assert any(one != other for one, other in combinations(found[1:], 2))


def test_nothing_to_learn_from() -> None:
    parts, Y, shares = problem(10, 3, (0.5, 1.0), 0)
    found = learn_weights(parts, Y, shares=shares, scored=np.zeros(3, dtype=np.bool_))
    assert len(found.kept) >= 1


def test_a_blend_of_blocks_of_rows_has_the_same_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    parts, shares = [rng.random((30, 4), dtype=np.float32) for _ in range(3)], rng.random(4)
    whole = pool(parts, (0.5, 0.2, 1.0), shares)
    monkeypatch.setattr(blend, "CELLS_AT_A_TIME", 28)
    np.testing.assert_array_equal(pool(parts, (0.5, 0.2, 1.0), shares), whole)
