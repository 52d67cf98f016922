"""`Thresholds`: from probabilities to decisions, and to JSON and back."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rarenode import Hierarchy
from rarenode.errors import ArgumentError
from rarenode.thresholds import Rule, Thresholds, make_strategy
from tests.strategies import hierarchies
from tests.thresholds import oracles

CHAIN = Hierarchy.from_edges([("a", "b"), ("b", "c")])
ANY_THRESHOLD = st.one_of(oracles.ANY_PROBABILITY, st.sampled_from((np.inf, 0.0, -0.0, 5e-324, 1.5)))


@st.composite
def thresholds(draw: st.DrawFn, nodes: int | None = None) -> Thresholds:
    values = draw(hnp.arrays(np.float64, nodes if nodes is not None else st.integers(0, 5), elements=ANY_THRESHOLD))
    rule: Rule | None = draw(st.sampled_from(("add_ancestors", "drop_orphans", None)))
    return Thresholds(values, rule, draw(st.sampled_from(("", "expected_f1", "tiefe Schwellen"))))


@given(data=st.data())
def test_decisions_are_those_of_a_loop_made_coherent(data: st.DataObject) -> None:
    hierarchy = data.draw(hierarchies())
    chosen = data.draw(thresholds(len(hierarchy)))
    dtype = data.draw(st.sampled_from((np.float32, np.float64)))
    shape = data.draw(st.integers(0, 4)), len(hierarchy)
    probs = data.draw(hnp.arrays(np.float64, shape, elements=oracles.ANY_PROBABILITY)).astype(dtype)
    passed = np.zeros(shape, dtype=np.bool_)
    for row, node in np.ndindex(shape):
        passed[row, node] = float(probs[row, node]) >= float(chosen.values[node])
    make = oracles.add_ancestors if chosen.rule == "add_ancestors" else oracles.drop_orphans
    decided = chosen.decide(probs, hierarchy)
    assert decided.dtype == np.bool_
    assert np.array_equal(decided, passed if chosen.rule is None else make(passed, hierarchy))
    assert chosen.rule is None or hierarchy.is_closed(decided)


def test_a_probability_equal_to_the_threshold_is_decided_and_infinity_never_is() -> None:
    chosen = Thresholds(np.array([0.1, 0.1, np.inf]), "drop_orphans")
    single = np.array([[0.1, 0.1, 1.0]], dtype=np.float32)  # a little above 0.1
    assert chosen.decide(single, CHAIN).tolist() == [[True, True, False]]
    assert chosen.decide(single.astype(np.float64) - 1e-8, CHAIN).tolist() == [[False, False, False]]


@given(thresholds())
def test_json_gives_the_same_back(chosen: Thresholds) -> None:
    text = json.dumps(chosen.to_dict(), allow_nan=False)
    again = Thresholds.from_dict(json.loads(text))
    assert again == chosen
    assert hash(again) == hash(chosen)
    assert again.values.tolist() == chosen.values.tolist()


def test_equal_means_the_same_values_rule_and_strategy() -> None:
    one = Thresholds(np.array([0.5, 0.0]), strategy="x")
    assert one == Thresholds(np.array([0.5, -0.0], dtype=np.float32), strategy="x")
    assert len({one, Thresholds(np.array([0.5, 0.0]), strategy="x")}) == 1
    assert one != replace(one, rule="drop_orphans")
    assert one != replace(one, strategy="y")
    assert one != replace(one, values=np.array([0.5, 0.1]))
    assert one != "x"


def test_they_cannot_be_changed_afterwards() -> None:
    mine = np.array([0.5])
    chosen = Thresholds(mine)
    mine[0] = 0.1
    assert chosen.values.tolist() == [0.5]
    with pytest.raises(ValueError, match="read-only"):
        chosen.values[0] = 0.2


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([0.5, np.nan], "column 1"),
        ([-0.1], "column 0.*at least 0"),
        ([-np.inf], "at least 0"),
        ([[0.5]], "one number for each node"),
        (0.5, "one number for each node"),
        (["0.5"], "one number for each node"),
        ([True], "one number for each node"),
    ],
)
def test_what_is_no_threshold_is_refused(values: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Thresholds(np.array(values))


@pytest.mark.parametrize("text", ["two\nlines", "\x1b[2J", "x" * 201, 5, None])
def test_a_strategy_that_is_not_one_short_line_is_refused(text: Any) -> None:
    with pytest.raises(ArgumentError, match="one printable line"):
        Thresholds(np.array([0.5]), strategy=text)


@pytest.mark.parametrize(
    "change",
    [
        {"values": [0.5, "0.5"]},
        {"values": [0.5, True]},
        {"values": [0.5, -1]},
        {"values": [0.5, float("nan")]},
        {"values": [0.5, float("inf")]},
        {"values": [0.5, 10**400]},
        {"values": [0.5, [0.5]]},
        {"values": "0.5"},
        {"values": {"0": 0.5}},
        {"rule": "prune"},
        {"rule": ["add_ancestors"]},
        {"strategy": "a\nb"},
        {"more": 1},
    ],
)
def test_damaged_content_is_refused(change: dict[str, Any]) -> None:
    whole = Thresholds(np.array([0.5, np.inf])).to_dict()
    assert Thresholds.from_dict(whole).values.tolist() == [0.5, np.inf]
    with pytest.raises(ArgumentError):
        Thresholds.from_dict({**whole, **change})


@pytest.mark.parametrize("content", [None, [], "values", {}, {"values": [0.5], "rule": "add_ancestors"}])
def test_content_without_its_keys_is_refused(content: Any) -> None:
    with pytest.raises(ArgumentError, match="exactly the keys rule, strategy, values"):
        Thresholds.from_dict(content)


def test_more_values_than_any_hierarchy_has_nodes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rarenode.thresholds.thresholds.MOST_NODES", 2)
    content = Thresholds(np.array([0.5, 0.5, 0.5])).to_dict()
    with pytest.raises(ArgumentError, match="at most 2 entries"):
        Thresholds.from_dict(content)


@pytest.mark.parametrize(
    ("probs", "message"),
    [
        ([[0.1, 0.2]], "thresholds for 3 nodes and probabilities for 2"),
        ([0.1, 0.2, 0.3], "rows, nodes"),
        ([["a", "b", "c"]], "must be numbers"),
        ([[0.1, 0.2, 0.3], [0.1, np.nan, 0.3]], "row 1, column 1.*nan"),
        ([[0.1, 0.2, 1.01]], "row 0, column 2"),
        ([[-0.01, 0.2, 1.0]], "row 0, column 0"),
    ],
)
def test_what_are_no_probabilities_is_refused(probs: Any, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        Thresholds(np.array([0.5, 0.5, 0.5])).decide(probs, CHAIN)


def test_thresholds_of_another_hierarchy_are_refused() -> None:
    with pytest.raises(ArgumentError, match="the hierarchy has 3"):
        Thresholds(np.array([0.5, 0.5])).decide([[0.1, 0.2]], CHAIN)


class TestInWords:
    @pytest.mark.parametrize(
        "name",
        ["fixed", "fixed:0.3", "expected_f1", "expected_f2", "prior", "tuned", "global", "midpoint"],
    )
    def test_it_says_whether_labels_had_a_say(self, name: str) -> None:
        """They had one, if other labels of the same rows give other thresholds."""
        rng = np.random.default_rng(0)
        probs = rng.random((40, 3))
        labels = [rng.random((40, 3)) < share for share in (0.2, 0.8)]
        fitted = [make_strategy(name).fit(probs, Y, prior=np.full(3, 0.3)) for Y in labels]
        probs_have_a_say = fitted[0] != make_strategy(name).fit(probs / 2, labels[0], prior=np.full(3, 0.3))
        assert probs_have_a_say == (not name.startswith("fixed"))
        strategy = {"fixed": "fixed at 0.5", "fixed:0.3": "fixed at 0.3"}.get(name, fitted[0].strategy)
        assert fitted[0].in_words() == strategy
        how = "with" if fitted[0] != fitted[1] else "without"
        told = f"{strategy}, fitted to these rows {how} their labels" if probs_have_a_say else strategy
        assert fitted[0].in_words(fitted_here=True) == told

    def test_thresholds_that_nothing_is_known_of(self) -> None:
        by_hand = Thresholds(np.array([0.5]))
        assert by_hand.in_words() == "custom"
        assert by_hand.in_words(fitted_here=True) == "custom, fitted to these rows with their labels"
