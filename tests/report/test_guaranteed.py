"""Guaranteed sets in a report: their size and recall against loops, and what page and files say of them."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rarenode.report import Report, RunReport, report_on_model, write_report
from rarenode.report.page import page_data
from rarenode.thresholds import GuaranteedRecall, Thresholds
from tests.report.reading import Page
from tests.report.runs import DAG, model_over, rows_over

ROWS = rows_over(DAG, rows=60)
VALUES = np.where(np.arange(len(DAG)) < 4, [0.6, 0.5, 0.1, 0.55, 0, 0, 0, 0], np.inf)
PROMISE = GuaranteedRecall(0.9, Thresholds(VALUES, None, "recall:0.9"), np.array([40, 30, 22, 25, 24, 21, 7, 0]))
"""The node of column 4 has enough rows, and no guarantee."""


def report_on(known: Any = None) -> RunReport:
    model = model_over(DAG, guaranteed=PROMISE, scored=np.arange(len(DAG)) > 0)
    return report_on_model(model, *ROWS, name="mine", rows="rows", known=known)


@pytest.fixture(scope="module", params=[False, True], ids=["all known", "some unknown"])
def known(request: pytest.FixtureRequest) -> Any:
    return np.random.default_rng(5).random(ROWS.Y.shape) < 0.7 if request.param else None


def test_size_and_recall_are_those_of_loops(known: Any) -> None:
    found = report_on(known).guaranteed
    assert found is not None
    sets = model_over(DAG, guaranteed=PROMISE).predict_proba(ROWS.X) >= VALUES
    for column in range(len(DAG)):
        if column >= 4:
            assert math.isnan(found.size[column])
            assert math.isnan(found.recall[column])
            continue
        inside = [row for row in range(60) if sets[row, column]]
        own = [row for row in range(60) if ROWS.Y[row, column] and (known is None or known[row, column])]
        assert found.size[column] == pytest.approx(len(inside) / 60)
        assert found.recall[column] == pytest.approx(len(set(own) & set(inside)) / len(own))
    assert 0 < np.nanmin(found.size) < np.nanmax(found.size)
    assert np.nanmin(found.recall) < 1


def test_a_node_without_rows_has_no_recall() -> None:
    model = model_over(DAG, guaranteed=PROMISE)
    nothing = report_on_model(model, ROWS.X, ROWS.Y & False, name="mine", rows="rows").guaranteed
    assert nothing is not None
    assert np.isnan(nothing.recall).all()
    assert np.isnan(nothing.size).tolist() == [False] * 4 + [True] * 4


def test_the_page_tells_of_them() -> None:
    found = report_on()
    assert found.guaranteed is not None
    (run,) = page_data(Report((found,)))["runs"]
    assert run["guaranteed"]["needed"] == 22
    assert run["guaranteed"]["rows"] == [40, 30, 22, 25, 24, 21, 7, 0]
    assert run["guaranteed"]["threshold"] == [0.6, 0.5, 0.1, 0.55, None, None, None, None]
    for name, values in (("size", found.guaranteed.size), ("recall", found.guaranteed.recall)):
        assert run["guaranteed"][name][4:] == [None] * 4
        assert run["guaranteed"][name][:4] == pytest.approx(values[:4].tolist(), rel=1e-3)


def test_the_overview_and_the_card_have_a_sentence(tmp_path: Path) -> None:
    page, *_ = write_report(Report((report_on(),)), tmp_path / "page.html")
    words = (
        "3 of 7 nodes have a guaranteed recall of 0.9 (with a probability of 0.9); left out: 3 with fewer than 22 "
        "held-out rows and 1 whose probability is 0 in held-out rows that have them."
    )
    assert f"Guaranteed sets: {words}" in Page(page.read_text()).text
    assert words in (tmp_path / "page_files" / "cards.md").read_text()


def test_the_table_of_nodes_has_columns_for_them_also_beside_a_run_without(tmp_path: Path) -> None:
    with_sets = report_on()
    without = report_on_model(model_over(DAG), *ROWS, name="without", rows="rows")
    assert without.guaranteed is None
    page, *_ = write_report(Report((without, with_sets)), tmp_path / "page.html")
    assert Page(page.read_text()).text.count("Guaranteed sets:") == 1
    with (tmp_path / "page_files" / "nodes.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    first, second = lines[: len(DAG)], lines[len(DAG) :]
    names = ("held_out_rows", "guaranteed_threshold", "guaranteed_size", "guaranteed_recall")
    assert {line[name] for line in first for name in names} == {""}
    assert [int(line["held_out_rows"]) for line in second] == PROMISE.rows.tolist()
    assert {line["no_guarantee"] for line in (*first, *second[:4])} == {""}
    assert [line["no_guarantee"] for line in second[4:6]] == [
        "its probability is 0 in held-out rows that have it",
        "21 of 22 held-out rows that it takes",
    ]
    assert with_sets.guaranteed is not None
    for name, values in zip(names[1:], (VALUES, with_sets.guaranteed.size, with_sets.guaranteed.recall), strict=True):
        shown = [float(line[name]) if line[name] else None for line in second]
        assert shown == [pytest.approx(value) if np.isfinite(value) else None for value in values.tolist()]
