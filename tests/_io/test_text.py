from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from rarenode._io.text import explain, printable, storable


@given(st.text())
def test_printable_text_keeps_its_length_and_what_can_be_shown(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert len(shown) == len(text)
    for before, after in zip(text, shown, strict=True):
        assert after == (before if before.isprintable() else " ")
    assert printable(shown) == shown


@given(st.text(st.characters(codec=None)))
def test_storable_text_can_be_encoded(text: str) -> None:
    stored = storable(text)
    stored.encode("utf-8")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        assert stored != text
    else:
        assert stored == text


class Record(BaseModel):
    model_config = ConfigDict(extra="forbid")

    count: int = Field(ge=1)
    names: list[str] = []


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"count": 0}, "count: Input should be greater than or equal to 1; got 0"),
        ({}, "count: Field required"),
        ({"count": 1, "name": 2}, "unknown setting 'name'; did you mean 'names'?"),
        ({"count": 1, "zzzzz": 2}, "unknown setting 'zzzzz'"),
        ({"count": 1, "names": ["a", 3]}, "names.1: Input should be a valid string; got 3"),
    ],
)
def test_explanations_are_sentences(values: dict[str, object], sentence: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Record.model_validate_json(json.dumps(values))
    assert explain(caught.value, Record) == sentence


def test_a_long_value_is_cut() -> None:
    with pytest.raises(ValidationError) as caught:
        Record.model_validate({"count": "x" * 10_000})
    assert len(explain(caught.value, Record)) < 200
