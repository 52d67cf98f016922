"""`ExpectedF`: the best ratio of expectations, and how far that is from the best expectation."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode.thresholds import ExpectedF
from tests.thresholds import oracles
from tests.thresholds.oracles import Bools, Floats, held_out

BETAS = (0.5, 1.0, 2.0)


@given(case=held_out(), beta=st.sampled_from(BETAS))
def test_no_threshold_has_a_better_ratio(case: tuple[Floats, Bools], beta: float) -> None:
    probs, _ = case
    values = ExpectedF(beta).fit(probs).values
    for p, value in zip(probs.T, values.tolist(), strict=True):
        ratios = {t: oracles.ratio_of_expectations(p, t, Fraction(beta)) for t in oracles.candidates(p)}
        if ratios:
            assert float(ratios[value]) == pytest.approx(float(max(ratios.values())), rel=1e-12)
        else:
            assert value == math.inf


def test_by_hand() -> None:
    # Sum 1.75. k = 1: 1.5 / 2.75; k = 2: 2.5 / 3.75 = 2 / 3; k = 3: 3 / 4.75; k = 4: 3.25 / 5.75.
    probs = np.array([[0.25], [0.5], [0.75], [0.125], [0.125]])
    assert ExpectedF().fit(probs).values.tolist() == [0.5]
    # Recall counts for more: k = 3: 5 x 1.5 / (4 x 1.75 + 3) = 0.75; k = 5: 5 x 1.75 / 12 = 0.73.
    assert ExpectedF(2.0).fit(probs).values.tolist() == [0.25]
    assert ExpectedF(0.1).fit(probs).values.tolist() == [0.75]


def test_all_equal_rows_are_taken_together() -> None:
    assert ExpectedF().fit(np.full((5, 1), 0.01)).values.tolist() == [0.01]


def test_a_rare_node_is_decided_far_below_one_half() -> None:
    probs = np.concatenate([np.full((5, 1), 0.08), np.full((95, 1), 0.001)])
    assert ExpectedF().fit(probs).values.tolist() == [0.08]


def test_a_node_without_any_probability_is_never_decided() -> None:
    probs = np.array([[0.0, 0.0, -0.0], [0.0, 1e-30, 0.0]])
    assert ExpectedF().fit(probs).values.tolist() == [math.inf, 1e-30, math.inf]


@pytest.mark.parametrize("beta", BETAS)
@given(labels=st.lists(st.booleans(), min_size=1, max_size=6))
def test_the_ratio_is_exact_for_certain_rows(beta: float, labels: list[bool]) -> None:
    p = np.array(labels, dtype=np.float64)
    for threshold in oracles.candidates(p):
        exact = oracles.expected_f(p, oracles.at_or_above(p, threshold), beta)
        assert float(oracles.ratio_of_expectations(p, threshold, Fraction(beta))) == pytest.approx(exact)


@pytest.mark.parametrize("beta", BETAS)
@pytest.mark.parametrize("shape", [0.3, 1.0, 3.0, 8.0])
def test_its_choice_costs_little_of_the_exact_expectation(beta: float, shape: float) -> None:
    """All label vectors are enumerated. The bound is what was found, rounded up: it documents, and guards."""
    rng = np.random.default_rng(7)
    for rows in (1, 2, 3, 5, 7):
        for _ in range(5):
            p = rng.random(rows) ** shape
            chosen = float(ExpectedF(beta).fit(p[:, None]).values[0])
            exact = {t: oracles.expected_f(p, oracles.at_or_above(p, t), beta) for t in oracles.candidates(p)}
            assert max(exact.values()) - exact[chosen] < 0.06


def test_the_ratio_approaches_the_expectation_with_more_rows() -> None:
    def error(times: int) -> float:
        p = np.tile([0.75, 0.5, 0.25, 0.125], times)
        exact = oracles.expected_f(p, oracles.at_or_above(p, 0.5), 1.0)
        return abs(float(oracles.ratio_of_expectations(p, 0.5, Fraction(1))) - exact)

    errors = [error(times) for times in (1, 2, 3)]
    assert errors[0] > errors[1] > errors[2]


def test_with_less_than_one_row_expected_it_takes_too_few() -> None:
    """Its known weakness: two rows would be better in expectation, and it takes one."""
    p = np.array([0.1, 0.07])
    assert ExpectedF().fit(p[:, None]).values.tolist() == [0.1]
    assert oracles.expected_f(p, [0, 1], 1.0) > oracles.expected_f(p, [0], 1.0) + 0.01
