"""Whether validation rows are enough to fit thresholds to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from rarenode import Dataset, Hierarchy
from rarenode.diagnosis.data_checks import examine
from rarenode.diagnosis.examination import Finding
from rarenode.diagnosis.validation_checks import validation_findings

TREE = Hierarchy.from_edges([("a", name) for name in ("b", "c", "d")])


def rows(*counts: int) -> Dataset:
    """So many rows with each leaf."""
    labels = [name for name, count in zip("bcd", counts, strict=True) for _ in range(count)]
    X = np.random.default_rng(len(labels)).normal(size=(len(labels), 2))
    return Dataset.from_arrays(X, TREE.encode([[name] for name in labels]), TREE)


@pytest.mark.parametrize(
    ("valid", "severity", "text", "examples"),
    [
        (rows(60, 40, 9), None, "", ()),
        (rows(60, 3, 0), "warning", "1 of 4 nodes has no validation row, and thresholds are fitted to 63", ("d",)),
        (rows(2, 0, 0), "warning", "2 of 4 nodes have no validation row, and thresholds are fitted to 2", ("c", "d")),
        (rows(200, 3, 0), "warning", "1 of 4 nodes has no validation row, and thresholds are fitted to 203", ("d",)),
        (rows(9, 3, 1), "note", "thresholds are fitted to 13 validation rows alone", ()),
    ],
)
def test_few_validation_rows(valid: Dataset, severity: str | None, text: str, examples: tuple[str, ...]) -> None:
    found = list(validation_findings(rows(90, 20, 9), valid))
    if severity is None:
        assert found == []
        return
    assert [(each.severity, each.topic, each.examples) for each in found] == [(severity, "validation", examples)]
    assert found[0].text.startswith(text)
    assert "folds" in found[0].advice


def test_a_small_share_of_many_nodes_is_a_note() -> None:
    tree = Hierarchy.from_edges([("root", f"n{number}") for number in range(30)])
    labels = [[f"n{row % 30}"] for row in range(300)]
    data = Dataset.from_arrays(np.zeros((300, 1)), tree.encode(labels), tree)
    valid = data.take(np.array([row for row in range(300) if row % 30 != 4]))
    assert [(each.severity, each.examples) for each in validation_findings(data, valid)] == [("note", ("n4",))]


def test_rows_without_labels_and_nodes_without_training_rows_do_not_count() -> None:
    known = np.ones((120, 4), dtype=np.bool_)
    known[:30] = False
    valid = rows(60, 60, 0)
    valid = replace(valid, known=known, Y=valid.Y & known)
    (found,) = validation_findings(rows(50, 50, 0), valid)
    assert (found.severity, found.text) == ("note", "thresholds are fitted to 90 validation rows alone")


def test_folds_do_not_matter_where_there_are_validation_rows() -> None:
    data = rows(90, 20, 1)
    assert any(each.topic == "splits" for each in examine(data).findings)
    topics = {each.topic for each in examine(data, valid=rows(90, 20, 0)).findings}
    assert "splits" not in topics
    assert "validation" in topics


def test_how_many_examples_are_left_out() -> None:
    tree = Hierarchy.from_edges([("root", f"n{number}") for number in range(7)])
    Y = tree.encode([["n0"]] * 120)
    found = examine(Dataset.from_arrays(np.random.default_rng(0).normal(size=(120, 1)), Y, tree))
    (empty,) = [each for each in found.findings if "no row" in each.text]
    assert (len(empty.examples), empty.more) == (5, 1)
    assert empty.examples_in_words == "n1, n2, n3, n4, n5 and 1 more"
    assert Finding("note", "rows", "").examples_in_words == ""
