"""TOML that would cost very much is refused."""

from __future__ import annotations

import pytest

from rarenode._io.toml import MOST_DOTS, parse_toml


def test_values() -> None:
    dots = "." * MOST_DOTS
    assert parse_toml(f'a.b = 1\nc = "{dots}"\n') == {"a": {"b": 1}, "c": dots}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = 1\n" + "a." * 50_000 + "a = 1", "line 2 has more than 1,000 dots"),
        ("[" + "a." * 50_000 + "a]", "line 1 has more than 1,000 dots"),
        ("a = " + "[" * 100_000, "nested too deeply"),
        ("a = ", "Invalid value"),
    ],
)
def test_what_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_toml(text)
