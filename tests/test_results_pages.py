"""docs/results is made from records, and `make lint` notices when it is not what they say."""

from __future__ import annotations

from pathlib import Path

import pytest
from tools.write_results import find_stale, make_pages, write

from rarenode.paper.grid import cell
from rarenode.paper.spec import load_spec
from rarenode.paper.store import record_path, write_record
from tests.paper.small_grid import decided, decided_record, made_up


def keep(folder: Path, method: str, seed: int = 0) -> Path:
    training = cell(load_spec("imbalance_fun"), "cellcycle_FUN", method, seed)
    write_record(folder, *made_up(training))
    return record_path(folder, training)


@pytest.mark.slow
def test_pages_are_what_the_records_say_until_these_change(tmp_path: Path) -> None:
    records, pages = tmp_path / "results", tmp_path / "docs"
    keep(records, "w0=0.25")
    (tmp_path / "docs").mkdir()
    (pages / "README.md").write_text("by hand", encoding="utf-8")
    (pages / "gone.md").write_text("a spec that is no more", encoding="utf-8")
    write(records, pages)
    written = {page.name for page in pages.iterdir()}
    assert {"README.md", "tally.md", "imbalance_fun.md", "imbalance_fun.svg", "imbalance_fun.png"} <= written
    assert "gone.md" not in written
    assert find_stale(records, pages) == []
    keep(records, "w0=0.25", seed=1)
    assert "imbalance_fun.md" in find_stale(records, pages)
    write(records, pages)
    (pages / "gone.md").write_text("", encoding="utf-8")
    (pages / "tally.md").unlink()
    assert find_stale(records, pages) == ["gone.md", "tally.md"]


def test_rows_that_specs_share_are_counted_once(tmp_path: Path) -> None:
    """w0=0.25 stands in imbalance_fun and, as the best so far, in lpros_weighting, with the same published F1."""
    keep(tmp_path, "w0=0.25")
    pages = make_pages(tmp_path)
    assert {"imbalance_fun.md", "lpros_weighting.md"} <= pages.keys()
    assert "of 1 row within 2" in pages["tally.md"]


def test_decisions_have_a_page_of_their_own(tmp_path: Path) -> None:
    records, pages = tmp_path / "results", tmp_path / "docs"
    training = cell(load_spec("decisions"), "cellcycle_FUN", "None", 0)
    write_record(records, decided_record(training))
    write(records, pages)
    assert {page.name for page in pages.iterdir()} == {"decisions.md", "decisions.svg", "decisions.png"}
    text = (pages / "decisions.md").read_text(encoding="utf-8")
    assert "| cellcycle_FUN | None | 1 | 2 → 2 of 4 | 25.00 → 50.00 |" in text
    assert "(decisions.svg)" in text
    assert find_stale(records, pages) == []
    write_record(records, decided_record(training, decided("fixed", 0.1), decided("expected_f1", 0.2)))
    assert find_stale(records, pages) == ["decisions.md"]


def test_without_records_there_are_no_pages(tmp_path: Path) -> None:
    assert make_pages(tmp_path) == {}
