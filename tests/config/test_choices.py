"""How composed choices are written: models and threshold strategies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode.config.choices import STRATEGIES, parse_model, parse_strategy, strategy_text
from rarenode.errors import ArgumentError

small = st.floats(0, 1, allow_subnormal=True)
positive = st.floats(0, 1e6, exclude_min=True, allow_subnormal=True)
strategies = st.one_of(
    st.tuples(st.just("expected_f"), positive),
    st.tuples(st.just("prior"), positive),
    st.tuples(st.just("tuned"), st.floats(0, 1e6)),
    st.tuples(st.just("global"), st.sampled_from(["f1", "micro_f1"])),
    st.tuples(st.just("midpoint"), small),
    st.tuples(st.just("fixed"), small),
)


@given(strategies)
def test_a_strategy_is_read_as_it_is_written(strategy: tuple[str, str | float]) -> None:
    text = strategy_text(*strategy)
    assert parse_strategy(text) == strategy
    assert strategy_text(*parse_strategy(text)) == text


@given(st.one_of(st.text(), st.builds("{}{}{}".format, st.sampled_from([*STRATEGIES]), st.sampled_from([":", ""]),
                                      st.one_of(st.text(max_size=6), st.floats().map(str)))))  # fmt: skip
def test_any_text_is_a_strategy_or_refused(text: str) -> None:
    try:
        name, argument = parse_strategy(text)
    except ArgumentError as error:
        assert len(str(error)) < 1000
        return
    assert name in STRATEGIES
    assert parse_strategy(strategy_text(name, argument)) == (name, argument)


def test_defaults() -> None:
    found = {text: parse_strategy(text) for text in ("prior", "tuned", "global", "fixed")}
    assert found == {
        "prior": ("prior", 1.0),
        "tuned": ("tuned", 10.0),
        "global": ("global", "f1"),
        "fixed": ("fixed", 0.5),
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        *[(text, "unknown threshold strategy") for text in ("", "guess", "fixed:", "fixed:half", " fixed", "Fixed")],
        *[(text, "unknown threshold strategy") for text in ("expected_f", "precision", "x" * 500)],
        ("global:f2", "unknown metric 'f2'; choose one of f1, micro_f1"),
        ("prior:nan", "factor must be a number above 0 and at most 1e\\+06, got nan"),
        ("prior:0", "factor"),
        ("tuned:inf", "shrinkage"),
        ("expected_f0", "beta"),
        ("precision:0", "precision must be a number above 0 and at most 0.99"),
        ("fixed:-1", "threshold must be a number of at least 0 and at most 1"),
    ],
)
def test_what_is_no_strategy_is_refused(text: str, says: str) -> None:
    with pytest.raises(ArgumentError, match=says) as caught:
        parse_strategy(text)
    assert len(str(caught.value)) < 300


@given(st.permutations(["mlp", "forest"]))
def test_models_have_one_order(parts: list[str]) -> None:
    assert parse_model("+".join(parts)) == ("mlp", "forest")
