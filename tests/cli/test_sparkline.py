from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rarenode.cli.sparkline import BLOCKS, PLAIN, sparkline

counts = st.lists(st.integers(0, 10**12), max_size=15)


@given(counts)
def test_a_bar_is_as_high_as_its_count_in_eighths_of_the_most(values: list[int]) -> None:
    bars = sparkline(values)
    assert len(bars) == len(values)
    for bar, value in zip(bars, values, strict=True):
        if value == 0:
            assert bar == " "
        else:
            height = BLOCKS.index(bar) + 1
            assert (height - 1) * max(values) < 8 * value <= height * max(values)


@given(counts)
def test_without_blocks_there_are_as_many_heights(values: list[int]) -> None:
    assert sparkline(values, "ascii") == sparkline(values).translate(str.maketrans(BLOCKS, PLAIN))


def test_where_there_is_something_there_is_a_bar() -> None:
    assert sparkline([10**9, 1, 0]) == "█▁ "
    assert sparkline([0, 0]) == "  "
    assert sparkline([]) == ""


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "no-such-encoding"])
def test_encodings_that_have_no_blocks(encoding: str) -> None:
    assert sparkline([1, 8], encoding) == ".@"


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8", "utf-16", "gb18030"])
def test_encodings_that_have_them(encoding: str) -> None:
    assert sparkline([1, 8], encoding) == "▁█"


def test_there_are_eight_heights_of_each_kind() -> None:
    assert len(BLOCKS) == len(PLAIN) == len(set(BLOCKS)) == len(set(PLAIN)) == 8
    assert PLAIN.isascii()
    assert sparkline(range(9)) == " " + BLOCKS
