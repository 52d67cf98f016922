"""What holds for every strategy, and what each of them looks for, against trying every threshold."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode import Hierarchy, node_scores
from rarenode.errors import ArgumentError, LabelError
from rarenode.thresholds import (
    ExpectedF,
    Fixed,
    GlobalThreshold,
    Midpoint,
    PrecisionGuarantee,
    PriorMatched,
    RecallGuarantee,
    Strategy,
    TunedPerNode,
)
from tests.thresholds import oracles
from tests.thresholds.oracles import Bools, Floats, held_out

EVERY: tuple[Strategy, ...] = (
    Fixed(),
    Fixed(0.25),
    GlobalThreshold(),
    GlobalThreshold("micro_f1"),
    ExpectedF(),
    ExpectedF(2.0),
    PriorMatched(),
    PriorMatched(1.5),
    TunedPerNode(),
    TunedPerNode(0.0),
    Midpoint(),
    RecallGuarantee(0.2),
    PrecisionGuarantee(0.1),
)
every_strategy = pytest.mark.parametrize("strategy", EVERY, ids=lambda s: s.name)
fitted_strategy = pytest.mark.parametrize("strategy", EVERY[2:], ids=lambda s: s.name)
not_of_bands = pytest.mark.parametrize("strategy", EVERY[2:-1], ids=lambda s: s.name)
"""Those that need no more than a few rows."""

Case = tuple[Floats, Bools]


def fit(strategy: Strategy, probs: Floats, Y: Bools) -> Floats:
    """Given all that any strategy may want. A labelled row of probability above 0 is added, as tuning needs one."""
    one, yes = np.full((1, probs.shape[1]), 0.375, dtype=probs.dtype), np.ones((1, probs.shape[1]), dtype=np.bool_)
    probs, Y = np.concatenate([probs, one]), np.concatenate([Y, yes])
    return strategy.fit(probs, Y, prior=Y.mean(axis=0)).values


# --- every strategy ------------------------------------------------------------------------------------------------


@every_strategy
@given(case=held_out(), seed=st.integers(0, 99))
def test_the_order_of_rows_does_not_matter(strategy: Strategy, case: Case, seed: int) -> None:
    probs, Y = case
    rows = np.random.default_rng(seed).permutation(len(probs))
    assert fit(strategy, probs[rows], Y[rows]).tolist() == fit(strategy, probs, Y).tolist()


@every_strategy
@given(case=held_out(), seed=st.integers(0, 99))
def test_the_order_of_nodes_does_not_matter(strategy: Strategy, case: Case, seed: int) -> None:
    probs, Y = case
    nodes = np.random.default_rng(seed).permutation(probs.shape[1])
    assert fit(strategy, probs[:, nodes], Y[:, nodes]).tolist() == fit(strategy, probs, Y)[nodes].tolist()


@every_strategy
def test_nodes_in_many_blocks_are_as_in_one(strategy: Strategy, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(3)
    probs = rng.random((20, 7)).astype(np.float32) ** 3
    Y = rng.random((20, 7)) < probs
    whole = fit(strategy, probs, Y)
    monkeypatch.setattr("rarenode.thresholds.probabilities.CELLS_PER_BLOCK", 21 * 3)  # blocks of 3, 3 and 1
    assert fit(strategy, probs, Y).tolist() == whole.tolist()
    monkeypatch.setattr("rarenode.thresholds.probabilities.CELLS_PER_BLOCK", 1)
    assert fit(strategy, probs, Y).tolist() == whole.tolist()


@every_strategy
@given(case=held_out())
def test_the_input_is_left_as_it_was(strategy: Strategy, case: Case) -> None:
    probs: Floats = np.asfortranarray(case[0])  # whose columns are contiguous: a careless view would sort them
    Y = case[1]
    Y[0], probs[0] = True, 0.5
    before = probs.copy(), Y.copy()
    strategy.fit(probs, Y, prior=Y.mean(axis=0))
    assert np.array_equal(probs, before[0])
    assert np.array_equal(Y, before[1])


@fitted_strategy
@given(case=held_out())
def test_a_threshold_is_above_0_and_a_row_is_at_it_or_never(strategy: Strategy, case: Case) -> None:
    values = fit(strategy, *case)
    assert (values > 0).all()
    if not isinstance(strategy, GlobalThreshold | PrecisionGuarantee | Midpoint) and strategy != TunedPerNode():
        for node, value in enumerate(values.tolist()):
            assert value == math.inf or value in {0.375, *case[0][:, node].tolist()}


@not_of_bands
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_row_at_the_threshold_is_decided_in_either_precision(strategy: Strategy, dtype: type) -> None:
    probs: Floats = np.array([[0.3], [0.3], [0.1], [0.1], [0.1], [0.01]], dtype=dtype)
    Y = np.array([[1], [1], [0], [0], [0], [0]], dtype=bool)
    decided = strategy.fit(probs, Y, prior=[2 / 6]).decide(probs, Hierarchy.from_edges([], nodes=["a"]))
    assert decided[:2].all()


@every_strategy
def test_its_name_is_on_its_thresholds_and_ancestors_are_added(strategy: Strategy) -> None:
    thresholds = strategy.fit([[0.5]], [[1]], prior=[0.5])
    assert thresholds.strategy == strategy.name
    assert thresholds.rule == "add_ancestors"


@every_strategy
def test_what_it_needs_it_asks_for(strategy: Strategy) -> None:
    needs = {"Y": strategy.needs_labels, "prior": strategy.needs_prior}
    everything: dict[str, Any] = {"Y": [[1]], "prior": [0.5]}
    for name, needed in needs.items():
        others = {key: value for key, value in everything.items() if key != name}
        if needed:
            with pytest.raises(ArgumentError, match=f"{strategy.name} needs {name}"):
                strategy.fit([[0.5]], **others)
        else:
            strategy.fit([[0.5]], **others)


def test_who_needs_what() -> None:
    assert {type(s) for s in EVERY if s.needs_labels} == {
        GlobalThreshold,
        TunedPerNode,
        RecallGuarantee,
        PrecisionGuarantee,
    }
    assert {type(s) for s in EVERY if s.needs_prior} == {PriorMatched, Midpoint}


@every_strategy
@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"probs": [[0.5, 1.1]]}, ArgumentError, "row 0, column 1"),
        ({"probs": [[0.5, math.nan]]}, ArgumentError, "row 0, column 1"),
        ({"probs": np.zeros((0, 2)), "Y": np.zeros((0, 2))}, ArgumentError, "at least one row"),
        ({"Y": [[1, 2]]}, LabelError, "0 or 1"),
        ({"Y": [[1, 0], [1, 0]]}, LabelError, "same shape"),
        ({"prior": [0.5]}, ArgumentError, "each of 2 nodes"),
        ({"prior": [0.5, 1.5]}, ArgumentError, "from 0 to 1"),
        ({"prior": [0.5, math.nan]}, ArgumentError, "from 0 to 1"),
    ],
)
def test_wrong_input_is_refused_by_all(
    strategy: Strategy, change: dict[str, Any], error: type[Exception], message: str
) -> None:
    right: dict[str, Any] = {"probs": [[0.5, 0.4]], "Y": [[1, 0]], "prior": [0.5, 0.5]}
    strategy.fit(**right)
    with pytest.raises(error, match=message):
        strategy.fit(**{**right, **change})


# --- one by one ----------------------------------------------------------------------------------------------------


def test_fixed_is_the_same_for_every_node() -> None:
    assert Fixed(0.3).fit([[0.1, 0.9]]).values.tolist() == [0.3, 0.3]


@pytest.mark.parametrize("metric", ["f1", "micro_f1"])
@given(case=held_out())
def test_no_single_threshold_beats_the_global_one(metric: Any, case: Case) -> None:
    probs, Y = case
    if not (Y & (probs > 0)).any():
        with pytest.raises(ArgumentError, match="needs a positive cell"):
            GlobalThreshold(metric).fit(probs, Y)
        return

    def score(threshold: float) -> Fraction:
        if metric == "micro_f1":
            return oracles.f1(probs.ravel(), Y.ravel(), threshold)
        return sum((oracles.f1(p, y, threshold) for p, y in zip(probs.T, Y.T, strict=True)), Fraction(0))

    values = GlobalThreshold(metric).fit(probs, Y).values
    assert values.tolist() == [oracles.best(oracles.candidates(probs.ravel()), score)] * probs.shape[1]


def test_with_many_candidates_the_global_threshold_is_close_to_the_best(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    probs = rng.random((300, 6)) ** 3
    Y = rng.random((300, 6)) < probs
    exact = GlobalThreshold().fit(probs, Y).values[0]
    monkeypatch.setattr("rarenode.thresholds.strategies.MOST_CANDIDATES", 32)
    near = GlobalThreshold().fit(probs, Y).values[0]
    assert near != exact
    best, found = (node_scores(Y, probs >= t).f1.mean() for t in (exact, near))
    assert best - 0.01 < found < best


@given(
    case=held_out(), factor=st.sampled_from((0.3, 1.0, 1.5, 5.0)), prior=st.sampled_from((0.0, 0.01, 0.25, 0.5, 1.0))
)
def test_the_prior_says_how_many_rows_are_decided(case: Case, factor: float, prior: float) -> None:
    probs, _ = case
    rows, nodes = probs.shape
    values = PriorMatched(factor).fit(probs, prior=np.full(nodes, prior)).values
    expected = Fraction(str(factor)) * Fraction(str(prior)) * rows
    wanted = min(rows, max(1, math.floor(expected + Fraction(1, 2)))) if prior else 0
    for p, value in zip(probs.T, values.tolist(), strict=True):
        possible = min(wanted, int((p > 0).sum()))
        assert int((p >= value).sum()) >= possible
        assert int((p > value).sum()) < max(possible, 1)
        assert (value == math.inf) == (possible == 0)


def test_a_prior_of_half_a_row_is_rounded_up_and_less_is_still_one() -> None:
    probs = np.array([[0.5], [0.4], [0.3], [0.2], [0.1]])
    wanted = {0.001: 0.5, 0.25: 0.5, 0.3: 0.4, 0.5: 0.3, 0.9: 0.1, 1.0: 0.1}
    assert {q: PriorMatched().fit(probs, prior=[q]).values[0] for q in wanted} == wanted


@given(case=held_out(), shrinkage=st.sampled_from((0.0, 1.0, 10.0)))
def test_tuned_thresholds_lie_between_the_two_by_positives(case: Case, shrinkage: float) -> None:
    probs, Y = case
    values = TunedPerNode(shrinkage).fit(probs, Y).values
    without_labels = ExpectedF().fit(probs).values
    for p, y, value, t0 in zip(probs.T, Y.T, values.tolist(), without_labels.tolist(), strict=True):
        t = oracles.best(oracles.candidates(p), lambda threshold, p=p, y=y: oracles.f1(p, y, threshold))  # type: ignore[misc]
        if t is None or t == t0:
            assert value == t0
        elif shrinkage == 0:
            assert value == t
        elif max(t, t0) < 1:
            n = int(y.sum())
            odds = (math.log(v / (1 - v)) for v in (t, t0))
            mean = sum(w * o for w, o in zip((n, shrinkage), odds, strict=True)) / (n + shrinkage)
            assert value == pytest.approx(1 / (1 + math.exp(-mean)), rel=1e-6)
        else:
            assert min(t, t0) <= value <= 1


def test_more_positives_pull_harder() -> None:
    # Positives at 0.125, negatives below, and a likely row without the label: tuned 0.125, expected from 0.5 on.
    def shrunken(times: int) -> float:
        probs = np.repeat(np.array([[0.9375], [0.125], [0.125], [0.015625]]), times, axis=0)
        Y = np.repeat(np.array([[0], [1], [1], [0]], dtype=bool), times, axis=0)
        return float(TunedPerNode().fit(probs, Y).values[0])

    few, some, many = shrunken(1), shrunken(10), shrunken(1000)
    assert 0.9375 > few > some > many > 0.125
    assert many == pytest.approx(0.125, abs=0.01)


@given(case=held_out(), share=st.sampled_from((0.0, 0.25, 0.5, 1.0)))
def test_half_way_between_expected_f1_and_the_prior(case: Case, share: float) -> None:
    probs, Y = case
    prior = Y.mean(axis=0)
    values = Midpoint(share).fit(probs, prior=prior).values
    ends = ExpectedF().fit(probs).values, PriorMatched().fit(probs, prior=prior).values
    for value, one, other in zip(values.tolist(), *(each.tolist() for each in ends), strict=True):
        if math.inf in (one, other):
            assert value == math.inf
        elif share in (0, 1) or one == other:
            assert value == (other if share else one)
        elif max(one, other) < 1:
            mean = (1 - share) * math.log(one / (1 - one)) + share * math.log(other / (1 - other))
            assert value == pytest.approx(1 / (1 + math.exp(-mean)), rel=1e-6)
        else:
            assert min(one, other) <= value <= 1
