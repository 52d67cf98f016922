"""Untrusted text: one printable line, cut to its room."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode.plots.text import ELLIPSIS, cut, legend_label, percent, plain, text_width
from tests.plots.hostile import HOSTILE

any_text = st.text() | st.sampled_from(HOSTILE)


@given(any_text, st.integers(1, 60))
def test_plain_text_is_one_short_printable_line(text: str, longest: int) -> None:
    shown = plain(text, longest)
    assert len(shown) <= longest
    assert shown.isprintable()
    assert shown == " ".join(shown.split()) or shown.endswith(ELLIPSIS)
    assert plain(shown, longest) == shown


@given(any_text)
def test_a_legend_shows_every_label(text: str) -> None:
    assert not legend_label(text).startswith("_")
    assert legend_label(text).strip() == plain(text)


@given(any_text, st.floats(20, 500), st.floats(5, 20))
def test_a_cut_text_fits(text: str, room: float, size: float) -> None:
    shown = cut(text, room, size)
    if shown != ELLIPSIS:
        assert text_width(shown, size) <= room
    whole = plain(text, 192)
    assert shown == whole or whole.startswith(shown.removesuffix(ELLIPSIS))
    assert (shown == whole) == (text_width(whole, size) <= room or shown == whole)


def test_wide_characters_are_wide_and_accents_are_not() -> None:
    assert text_width("\u6f22", 10) > text_width("m", 10) > text_width("a", 10) > text_width("i", 10)
    assert text_width("e\u0301", 10) == text_width("e", 10)


@pytest.mark.parametrize(
    ("value", "shown"), [(0.0, "0"), (0.04, "<0.1"), (0.05, "0.1"), (99.94, "99.9"), (99.95, "100")]
)
def test_percentages(value: float, shown: str) -> None:
    assert percent(value) == shown
