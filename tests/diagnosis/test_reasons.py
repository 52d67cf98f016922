"""Each reason by an example, their order, and the chance of a rank."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode import Hierarchy
from rarenode.diagnosis import REASONS, STATES, NodeDiagnosis, Reason, State, diagnose
from rarenode.diagnosis.ranks import are_too_few, chance_of_hits
from rarenode.diagnosis.reasons import UNLIKELY, reasons_that_apply
from rarenode.thresholds import Thresholds
from tests.diagnosis import oracles

PETS = Hierarchy.from_edges([("pet", "cat"), ("pet", "dog")])
CAT = 1


def cats(
    rows: int = 8,
    *,
    pet: float = 0.9,
    cat: float = 0.2,
    elsewhere: float = 0.3,
    dog: float = 0.1,
    member: float | None = None,
    elsewhere_reached: int = 0,
    training: int = 5,
    drop: bool = False,
    never: str = "",
) -> NodeDiagnosis:
    """Rows of which the first is a cat, with the probabilities there and of the cat elsewhere.

    A single member has the probability ``member`` of the cat there, and in so many rows elsewhere. A strategy that
    ``never`` predicts the cat is named.
    """
    Y = np.zeros((rows, 3), dtype=bool)
    Y[:, 0], Y[0, CAT] = True, True
    probs = np.full((rows, 3), [0.9, elsewhere, 0.1])
    probs[0] = pet, cat, dog
    highest = None if member is None else np.zeros((rows, 3))
    if highest is not None:
        highest[: 1 + elsewhere_reached, CAT] = member
    values = np.array([0.5, np.inf if never else 0.5, 0.5])
    thresholds = Thresholds(values, "drop_orphans" if drop else "add_ancestors", never)
    return diagnose(Y, probs, PETS, thresholds, [9, training, 9], highest_member_probs=highest)


def test_the_names_are_those_of_the_types() -> None:
    assert tuple(REASONS) == get_args(Reason)
    assert get_args(State) == STATES
    assert all(text.endswith(".") and text.isprintable() for text in REASONS.values())


@pytest.mark.parametrize(
    ("situation", "reasons"),
    [
        ({}, ("too_few_rows",)),
        ({"rows": 99}, ("too_few_rows",)),
        ({"rows": 100}, ("not_separated",)),
        ({"training": 0}, ("no_training_rows",)),
        ({"pet": 0.4, "cat": 0.6, "drop": True}, ("blocked_by_ancestor",)),
        ({"rows": 100, "elsewhere": 0.1}, ("hidden_by_threshold",)),
        ({"rows": 99, "elsewhere": 0.1}, ("too_few_rows",)),
        ({"rows": 100, "elsewhere": 0.1, "never": "prior"}, ("hidden_by_threshold",)),
        ({"rows": 100, "elsewhere": 0.1, "never": "precision:0.5"}, ("no_guarantee",)),
        ({"rows": 8, "never": "guaranteed, recall:0.9"}, ("no_guarantee",)),
        ({"training": 0, "never": "recall:0.9"}, ("no_training_rows", "no_guarantee")),
        ({"rows": 100, "member": 0.5}, ("members_disagree",)),
        ({"rows": 99, "member": 0.5}, ("too_few_rows",)),
        ({"rows": 100, "member": 0.49}, ("not_separated",)),
        ({"rows": 300, "member": 0.5, "elsewhere_reached": 2}, ("members_disagree",)),
        ({"rows": 300, "member": 0.5, "elsewhere_reached": 3}, ("not_separated",)),
        ({"rows": 300, "member": 0.5, "elsewhere_reached": 299}, ("not_separated",)),
        ({"dog": 0.6}, ("confused_with_sibling",)),
        (
            {"rows": 100, "training": 0, "member": 0.6, "dog": 0.6},
            ("no_training_rows", "members_disagree", "confused_with_sibling"),
        ),
        (
            {"rows": 100, "elsewhere": 0.1, "member": 0.6, "dog": 0.6},
            ("hidden_by_threshold", "members_disagree", "confused_with_sibling"),
        ),
    ],
)
def test_examples(situation: dict[str, Any], reasons: tuple[Reason, ...]) -> None:
    result = cats(**situation)
    assert result.state[CAT] == "missed"
    assert result.reasons[CAT] == reasons
    assert result.reason[CAT] == reasons[0]


def test_a_sibling_in_half_of_the_rows_is_enough_and_in_fewer_is_not() -> None:
    for wrong, reason in ((2, "confused_with_sibling"), (1, "not_separated")):
        Y = np.array([[1, 1, 0]] * 4, dtype=bool)
        probs = np.full((4, 3), [0.9, 0.2, 0.1])
        probs[:wrong, 2] = 0.6
        result = diagnose(Y, probs, PETS, Thresholds(np.full(3, 0.5)), [4, 4, 4])
        assert result.reason[CAT] == reason
        assert result.confused_rows[CAT] == wrong


counts = st.integers(0, 3)
chances = st.sampled_from((0.0, 0.01, 0.0101, 1.0))


@given(
    st.lists(
        st.tuples(st.booleans(), counts, counts, chances, chances, counts, counts, st.booleans(), st.booleans()),
        max_size=5,
    )
)
def test_all_that_apply_are_there_in_order(
    nodes: list[tuple[bool, int, int, float, float, int, int, bool, bool]],
) -> None:
    table = np.array(nodes, dtype=np.float64).reshape(-1, 9)
    columns = table.astype(np.int64).T
    result = reasons_that_apply(
        columns[0].astype(bool),
        training_rows=columns[1],
        given_up=columns[8].astype(bool),
        blocked_rows=columns[2],
        rank_chance=table[:, 3],
        member_chance=table[:, 4],
        confused_rows=columns[5],
        rows=columns[6] + 1,
        too_few=columns[7].astype(bool),
    )
    expected = []
    for missed, training, blocked, chance, member_chance, confused, rows, too_few, given_up in nodes:
        holds = {
            "no_training_rows": training == 0,
            "no_guarantee": given_up,
            "blocked_by_ancestor": blocked > 0,
            "hidden_by_threshold": chance <= 0.01 and blocked == 0 and not given_up,
            "members_disagree": member_chance <= 0.01,
            "confused_with_sibling": confused >= (rows + 1) / 2,
        }
        some = tuple(reason for reason, applies in holds.items() if applies)
        last = "too_few_rows" if too_few else "not_separated"
        expected.append((some or (last,)) if missed else ())
    assert result == tuple(expected)


@st.composite
def rankings(draw: st.DrawFn) -> tuple[int, int, int, int]:
    """Numbers of rows, of positives, of first rows, and of positives among the first rows."""
    rows = draw(st.integers(1, 2000))
    positives = draw(st.one_of(st.integers(1, rows), st.integers(1, min(rows, 5))))
    rank = draw(st.one_of(st.integers(1, rows), st.integers(1, min(rows, 30))))
    return rows, positives, rank, draw(st.integers(max(1, rank + positives - rows), min(rank, positives)))


@given(rankings())
def test_the_chance_of_hits_is_that_of_exact_fractions(ranking: tuple[int, int, int, int]) -> None:
    rows, positives, rank, hits = ranking
    chance = float(chance_of_hits(rows, np.array([positives]), np.array([rank]), np.array([hits]))[0])
    assert chance == pytest.approx(float(oracles.chance(rows, positives, rank, hits)), rel=1e-6, abs=1e-12)


@given(st.integers(1, 60), st.data())
def test_too_few_rows_are_those_where_no_ranking_is_evidence(rows: int, data: st.DataObject) -> None:
    positives = data.draw(st.integers(1, rows))
    best = [1.0] * positives + [0.0] * (rows - positives)
    is_evidence = positives == rows or oracles.rank_chance(best, best[:positives]) <= Fraction(1, 100)
    assert are_too_few(np.array([rows]), np.array([positives]), UNLIKELY).tolist() == [not is_evidence]


@pytest.mark.parametrize("times", [1, 2, 3, 7, 30, 129])
def test_exactly_one_in_a_hundred_is_not_rounded_away(times: int) -> None:
    one, several = np.array([1]), np.array([times])
    assert oracles.chance(100 * times, times, 1, 1) == Fraction(1, 100)
    assert chance_of_hits(100 * times, several, one, one)[0] == 0.01
    assert chance_of_hits(100 * times, one, several, one)[0] == 0.01


def test_a_model_that_knows_nothing_is_seldom_reported_to_rank_well() -> None:
    rng = np.random.default_rng(0)
    nodes, rows = 2000, 300
    flat = Hierarchy.from_edges([], nodes=[f"n{number:04d}" for number in range(nodes)])
    Y = rng.random((rows, nodes)) < rng.choice([0.004, 0.02, 0.1], nodes)
    probs = np.round(rng.random((rows, nodes)), 1) * 0.9  # with many ties
    result = diagnose(Y, probs, flat, Thresholds(np.full(nodes, 0.95)), np.ones(nodes, dtype=int))
    hidden = sum("hidden_by_threshold" in some for some in result.reasons)
    assert 0 < hidden <= 0.01 * (result.state == "missed").sum()


def test_many_rows_that_lean_upwards_are_seen_even_if_none_stands_out() -> None:
    flat = Hierarchy.from_edges([], nodes=["n"])
    probs = np.linspace(0.4, 0.1, 300)[:, None]
    Y = np.zeros((300, 1), dtype=bool)
    Y[20:150:3] = True  # in the upper half, and not among the first
    result = diagnose(Y, probs, flat, Thresholds(np.full(1, 0.5)), [50])
    assert result.reason == ("hidden_by_threshold",)
    assert (result.best_rank[0], result.cut_hits[0]) == (21, Y.sum())
