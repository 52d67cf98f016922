"""Cells that a spreadsheet would take for formulas."""

from __future__ import annotations

import csv
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarenode._io.cells import guarded, guarded_frame, unguarded
from rarenode._io.delimited import read_records
from rarenode.data.readers.frames import read_table

SIGNS = "=+-@\t\r\n＝"  # noqa: RUF001
HOSTILE = [
    "=cmd|' /C calc'!A0",
    "+1+cmd|1",
    "-2+3",
    "@SUM(A1)",
    "\tx",
    "\r",
    "\nx",
    "\uff1d1",
    "'=1",
    "''+a",
    "=",
    "-1,a",
]

ORDINARY = ["Corals;Sponges", "a-b", "1,-2", "-1.5;2e-3|-4", "a; -b", "a, 'b'", "x|y=1", "it's;here", "a\r\nb\n\nc"]
WITHIN = [
    ("x;=1+1", "x;'=1+1"),
    ("Corals;=cmd|' /C calc'!A0", "Corals;'=cmd|' /C calc'!A0"),
    ("a,+b\t@c|-d\n=e", "a,'+b\t'@c|'-d\n'=e"),
    ('x;"=1"', 'x;\'"=1"'),
    ("=1;'=2", "'=1;''=2"),
    ("\t=1", "'\t'=1"),
    ("1;-2,a", "1;'-2,a"),
]


@pytest.mark.parametrize("text", HOSTILE)
def test_a_formula_gets_an_apostrophe(text: str) -> None:
    assert guarded(text) == f"'{text}"
    assert unguarded(guarded(text)) == text


@pytest.mark.parametrize(
    "text", ["", "a", "-0.5", "+1", "-1e-5", "-1,5", "-.5", "'quoted'", "'-0.5", "a=1", "1-2", *ORDINARY]
)
def test_all_else_stays_as_it_is(text: str) -> None:
    assert guarded(text) == unguarded(text) == text


@pytest.mark.parametrize(("text", "shown"), WITHIN)
def test_what_another_delimiter_would_make_a_cell_is_guarded(text: str, shown: str) -> None:
    assert guarded(text) == shown
    assert unguarded(shown) == text


@settings(max_examples=1000)
@given(st.text(st.sampled_from(f"{SIGNS}'\"a1.,;|e "), max_size=8))
def test_reading_is_the_inverse_of_writing(text: str) -> None:
    shown = guarded(text)
    assert unguarded(shown) == text
    assert guarded_frame(pl.DataFrame({"a": [text]}))["a"].to_list() == [shown]
    assert shown[:1] not in tuple("\t\r\n")
    numbers = set("+-0123456789.,;|e\t\r\n")
    for start in range(len(shown)):
        if start == 0 or shown[start - 1] in ";,|\t\r\n":
            cell = shown[start:].lstrip('"')
            assert cell[:1] not in tuple("=+-@＝") or set(cell) <= numbers  # noqa: RUF001


def test_a_long_list_of_numbers_is_not_read_to_its_end_for_each_of_them() -> None:
    text = "-1," * 100_000 + "x"  # which would take hours
    assert guarded(text) == text.replace("-", "'-")
    assert unguarded(guarded(text)) == text


def test_tables_are_read_without_apostrophes_within_cells(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": ["x;=1+1", "y"], "labels": ["Corals;=cmd|x", "Corals;Sponges"]})
    guarded_frame(frame).write_csv(tmp_path / "a.csv")
    assert '"' not in (tmp_path / "a.csv").read_text()  # so it is not read as one with quotes
    assert read_table([tmp_path / "a.csv"], lambda _: {"id": True, "labels": True}).frame.equals(frame)


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
