"""Untrusted text: printable, cut to its room, in a few lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode.report.svg.element import element, escaped
from rarenode.report.svg.text import ELLIPSIS, LONGEST, cut, halved, isolated, label, plain, width, wrapped
from tests.report.svg_reading import HOSTILE, read

ANY_TEXT = st.one_of(st.text(st.characters(exclude_categories=()), max_size=60), st.sampled_from(HOSTILE))
ROOM = st.floats(20, 400)
ELLIPSIS_ROOM = 16.0


def allowed_in_xml(character: str) -> bool:
    """Production 2 of XML 1.0, without line breaks."""
    code = ord(character)
    return 0x20 <= code <= 0xD7FF or 0xE000 <= code <= 0xFFFD or 0x10000 <= code <= 0x10FFFF


@given(ANY_TEXT)
def test_plain_text_is_one_line_that_xml_allows(text: str) -> None:
    shown = plain(text)
    assert all(map(allowed_in_xml, shown))
    assert len(shown) <= LONGEST
    assert shown == shown.strip() == plain(shown)
    assert not set(shown) & set("\u202a\u202b\u202d\u202e\u2066\u2067\u2068\u2069")


def test_words_stay_as_they_are() -> None:
    assert plain("Größe 01/02 猫 <b>") == "Größe 01/02 猫 <b>"
    assert isolated("\u202ename") == "\u2068name\u2069"


@given(ANY_TEXT)
def test_text_and_attributes_come_back_from_the_parser(text: str) -> None:
    shown = plain(text)
    root = read(element("text", escaped(shown), aria_label=shown))
    assert (root.text or "", root.get("aria-label")) == (shown, shown)


@given(ANY_TEXT, ROOM)
def test_a_cut_text_fits_and_is_the_beginning(text: str, room: float) -> None:
    shown = cut(text, room, 16)
    assert width(shown, 16) <= room
    if shown != plain(text):
        assert shown.endswith(ELLIPSIS)
        kept = shown.removesuffix(ELLIPSIS)
        assert plain(text).startswith(kept)
        longer = plain(text)[: len(kept) + 3].rstrip()  # what could be added does not fit
        assert longer == plain(text) or width(longer + ELLIPSIS, 16) > room


@given(ANY_TEXT, ROOM, st.integers(1, 3))
def test_wrapped_lines_fit_and_lose_nothing_without_an_ellipsis(text: str, room: float, most: int) -> None:
    lines = wrapped(text, room, 16, most)
    assert 1 <= len(lines) <= most
    assert all(width(line, 16) <= room for line in lines)
    if not any(line.endswith(ELLIPSIS) for line in lines):
        assert " ".join(lines) == plain(text)


@given(ANY_TEXT)
def test_halves_are_the_whole_and_no_other_blank_parts_it_better(text: str) -> None:
    lines = halved(text)
    words = plain(text).split()
    assert " ".join(lines) == " ".join(words)
    assert len(lines) == (2 if len(words) > 1 else 1)
    for index in range(1, len(words)):
        other = max(width(" ".join(words[:index]), 1), width(" ".join(words[index:]), 1))
        assert max(width(line, 1) for line in lines) <= other


def test_wide_letters_need_more_room() -> None:
    assert width("猫猫", 10) > width("oo", 10) > width("ll", 10)
    assert width("e\u0301", 10) == width("e", 10)


@pytest.mark.parametrize("text", ["short", "a name that is far too long for its room"])
def test_a_label_that_is_cut_has_a_tooltip(text: str) -> None:
    root = read(label(text, 100, 16, x=3.0))
    assert root.get("x") == "3"
    assert [child.text for child in root] == ([] if text == "short" else [text])
