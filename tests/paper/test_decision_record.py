from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rarenode.errors import FileFormatError
from rarenode.paper.grid import Cell
from rarenode.paper.record import Record
from rarenode.paper.store import read_record, record_path, write_record
from tests.paper.small_grid import cell_of, decided, decided_record

CELL = cell_of(protocol="held_out")


def problem(folder: Path, cell: Cell = CELL) -> str:
    with pytest.raises(FileFormatError) as caught:
        read_record(folder, cell)
    return str(caught.value)


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    write_record(tmp_path, decided_record(CELL))
    return record_path(tmp_path, CELL)


def test_what_is_written_is_read(kept: Path, tmp_path: Path) -> None:
    assert read_record(tmp_path, CELL) == decided_record(CELL)
    assert kept == tmp_path / "cellcycle_FUN" / "decisions" / f"{CELL.name}.json"


def test_a_line_for_each_way_to_decide(kept: Path) -> None:
    lines = kept.read_text(encoding="utf-8").splitlines()
    assert [json.loads(line.rstrip(","))["strategy"] for line in lines if line.startswith('{"strategy"')] == [
        "fixed",
        "expected_f1",
    ]


def test_there_may_be_none(tmp_path: Path) -> None:
    assert read_record(tmp_path, CELL) is None


def test_what_it_has_and_what_it_lacks() -> None:
    ways = decided("tuned"), decided("prior", rule="drop_orphans"), decided("tuned", rule="drop_orphans")
    record = decided_record(CELL, *ways)
    assert record.decided.strategies == ("tuned", "prior")
    assert not record.decided.lacks(["prior", "tuned"])
    assert record.decided.lacks(["prior", "fixed"])
    assert record.decided.find("tuned") == record.decided.decided[0]
    assert record.decided.find("tuned", "drop_orphans") == record.decided.decided[2]
    assert record.decided.find("prior") is None
    assert record.decided.find("tuned", calibration="isotonic") is None
    assert record.decided.find("tuned", fitted_on="test_without_labels") is None


@pytest.mark.parametrize("other", [cell_of(protocol="cross_fit"), cell_of(protocol="held_out", seed=1)])
def test_a_record_of_another_training(kept: Path, tmp_path: Path, other: Cell) -> None:
    kept.rename(record_path(tmp_path, other))
    assert "another training; remove it" in problem(tmp_path, other)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff", b"[" * 100_000])
def test_what_is_no_record(kept: Path, tmp_path: Path, content: bytes) -> None:
    kept.write_bytes(content)
    assert "this is not a record: " in problem(tmp_path)


def test_a_record_that_cannot_be_read(kept: Path, tmp_path: Path) -> None:
    kept.unlink()
    kept.mkdir()
    assert "it cannot be read" in problem(tmp_path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ap": 1.5}, "decisions.ap: Input should be less than or equal to 1"),
        ({"seconds": -1}, "seconds"),
        ({"format": "rarenode record"}, "fixed.steps_per_epoch: Field required"),
        ({"surprise": 1}, "'surprise'"),
        ({"protocol": "none"}, "protocol"),
        ({"curves": {"1-4": [0.5] * 99}}, "decisions.curves.1-4"),
        ({"decided": [{"strategy": "fixed"}]}, "decisions.decided.0"),
    ],
)
def test_fields_that_cannot_be(kept: Path, tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    kept.write_text(json.dumps(json.loads(kept.read_text(encoding="utf-8")) | changes), encoding="utf-8")
    assert message in problem(tmp_path)


def test_bins_are_of_one_number(kept: Path, tmp_path: Path) -> None:
    content = json.loads(kept.read_text(encoding="utf-8"))
    content["reliability"]["none"]["cells"].pop()
    kept.write_text(json.dumps(content), encoding="utf-8")
    assert "its lists must have 14 bins" in problem(tmp_path)


def test_settings_that_rarenode_gets_later_do_not_orphan_it(kept: Path, tmp_path: Path) -> None:
    content = json.loads(kept.read_text(encoding="utf-8"))
    del content["settings"]["mix"]
    kept.write_text(json.dumps(content), encoding="utf-8")
    assert isinstance(read_record(tmp_path, CELL), Record)
