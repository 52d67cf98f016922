"""Cells that a spreadsheet would take for formulas."""

from __future__ import annotations

import csv
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode._io.cells import guarded, guarded_frame, unguarded
from rarenode._io.delimited import read_records

SIGNS = "=+-@\t\r\n＝"  # noqa: RUF001
HOSTILE = ["=cmd|' /C calc'!A0", "+1+cmd|1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "\uff1d1", "'=1", "''+a", "="]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_formula_gets_an_apostrophe(text: str) -> None:
    assert guarded(text) == f"'{text}"
    assert unguarded(guarded(text)) == text


@pytest.mark.parametrize("text", ["", "a", "-0.5", "+1", "-1e-5", "-1,5", "-.5", "'quoted'", "'-0.5", "a=1", "1-2"])
def test_all_else_stays_as_it_is(text: str) -> None:
    assert guarded(text) == unguarded(text) == text


@given(st.text(st.sampled_from(f"{SIGNS}'a1.,e "), max_size=6))
def test_reading_is_the_inverse_of_writing(text: str) -> None:
    assert unguarded(guarded(text)) == text
    assert guarded(text)[:1] not in tuple(SIGNS) or guarded(text).strip("+-0123456789.,e") == ""


def test_text_of_a_frame_is_guarded_in_cells_and_names_and_numbers_stay() -> None:
    frame = pl.DataFrame(
        {"=a": [-0.5, 1.0], "text": ["=1", None], "kind": pl.Series(["+x", "y"], dtype=pl.Enum(["+x", "y", "-z"]))}
    )
    shown = guarded_frame(frame)
    assert shown.to_dict(as_series=False) == {"'=a": [-0.5, 1.0], "text": ["'=1", None], "kind": ["'+x", "y"]}
    plain = frame.drop("=a", "text").filter(pl.col("kind") == "y")
    assert guarded_frame(plain).equals(plain)


def test_records_are_read_without_apostrophes(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([["id", "'=name"], ["'=1", "'-0.5"], ["''@a", "'it'"]])
    records = read_records(path)
    assert records.header == ("id", "=name")
    assert [fields for _, fields in records.rows] == [["=1", "'-0.5"], ["'@a", "'it'"]]
