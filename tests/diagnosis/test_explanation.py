"""Explanations and data frames of a diagnosis."""

from __future__ import annotations

import io
import re
from typing import Any

import numpy as np
import polars
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode import Hierarchy
from rarenode.diagnosis import REASONS, NodeDiagnosis, Reason, diagnose
from rarenode.diagnosis.node_diagnosis import Evidence, explain, ordinal, short_name
from rarenode.errors import ArgumentError
from rarenode.thresholds import Thresholds
from tests.diagnosis import oracles
from tests.diagnosis.oracles import Case
from tests.diagnosis.test_diagnose import diagnosis_of

COLUMNS = [
    "node", "depth", "state", "training_rows", "rows", "decided", "found", "precision", "recall", "f1", "threshold",
    "uncertainty", "reason", "explanation", "also", "best_rank", "auc", "cut", "decided_at_cut", "found_at_cut",
    "blocked_by", "confused_with", "member_rows",
]  # fmt: skip
HOSTILE = ("\x1b[2J\x00\n\r\t", "x" * 10_000, "\u202egod\u2066", "half \ud800 a character", "'; <script>")


def evidence(**changes: Any) -> Evidence:
    usual: dict[str, Any] = {
        "rows": 4, "all_rows": 1281, "threshold": 0.31, "promise": "", "drops_orphans": False,
        "best_rank": 640, "auc": 0.534, "rank_chance": 0.42,
        "cut_prob": 0.01234, "cut_next": 0.011, "cut_rank": 3, "cut_hits": 1, "blocked_rows": 2,
        "blocked_by": "animal", "member_rows": 1, "member_all_rows": 1006, "confused_rows": 3, "confused_with": "dog",
    }  # fmt: skip
    return Evidence(**{**usual, **changes})


@pytest.mark.parametrize(
    ("reason", "changes", "text"),
    [
        ("no_training_rows", {}, "No training rows: 4 rows here have this label, and none of the training rows."),
        (
            "no_training_rows",
            {"rows": 1},
            "No training rows: 1 row here has this label, and none of the training rows.",
        ),
        (
            "no_guarantee",
            {"promise": "precision:0.5"},
            "No guarantee: held-out rows do not prove precision:0.5 for its band, nodes that are about as rare, so it "
            "is never predicted.",
        ),
        (
            "no_guarantee",
            {"promise": "recall:0.9"},
            "No guarantee: too few held-out rows have it for recall:0.9, or the model gives too many of them a "
            "probability of 0, so it is never predicted.",
        ),
        (
            "blocked_by_ancestor",
            {},
            "Blocked by 'animal': in 2 of its 4 positives it reaches its threshold of 0.31 but is dropped, most often "
            "because that ancestor is below its own threshold.",
        ),
        (
            "hidden_by_threshold",
            {},
            "Hidden by the threshold: the model ranks a positive 3rd of 1,281 rows; a threshold of 0.012 instead of "
            "0.31 finds 1 of its 4 positives, with 2 false positives.",
        ),
        (
            "hidden_by_threshold",
            {"cut_rank": 2, "threshold": np.inf},
            "Hidden by the threshold: the model ranks a positive 2nd of 1,281 rows; a threshold of 0.012 (now it is "
            "never predicted) finds 1 of its 4 positives, with 1 false positive.",
        ),
        (
            "hidden_by_threshold",
            {"cut_rank": 2, "cut_hits": 2, "cut_next": 0.0123, "drops_orphans": True},
            "Hidden by the threshold: the model ranks 2 positives among the first 2 of 1,281 rows; a threshold of "
            "0.01234 instead of 0.31 finds 2 of its 4 positives, with no false positives, in rows where its ancestors "
            "are predicted.",
        ),
        (
            "hidden_by_threshold",
            {"rows": 1, "cut_rank": 1, "threshold": 0.012341, "cut_next": -1.0},
            "Hidden by the threshold: the model ranks a positive 1st of 1,281 rows; a threshold of 0.012 instead of "
            "0.012341 finds its only positive, with no false positives.",
        ),
        (
            "members_disagree",
            {},
            "The members disagree: in 1 of its 4 positives, and in 1,005 other rows, a single member or the forest "
            "reaches the threshold of 0.31; the combined probability does not.",
        ),
        (
            "members_disagree",
            {"rows": 1, "member_all_rows": 2, "threshold": 0.123456},
            "The members disagree: in its only positive, and in 1 other row, a single member or the forest reaches the "
            "threshold of 0.123; the combined probability does not.",
        ),
        (
            "confused_with_sibling",
            {},
            "Confused with 'dog', which is predicted instead in 3 of its 4 positives.",
        ),
        (
            "confused_with_sibling",
            {"rows": 1, "confused_rows": 1},
            "Confused with 'dog', which is predicted instead in its only positive.",
        ),
        (
            "too_few_rows",
            {"rows": 1, "best_rank": 1, "all_rows": 30, "auc": 1.0, "rank_chance": 1 / 30},
            "Too few rows to tell: its only positive ranks 1st of 30 rows; a random order does as well with a "
            "probability of 0.0333, and with so few rows no ranking would be evidence (0.01 or less).",
        ),
        (
            "not_separated",
            {},
            "Not separated: the best of its 4 positives ranks 640th of 1,281 rows, and they rank above 53 % of the "
            "negatives; a random order does as well with a probability of 0.42 (evidence would be 0.01 or less).",
        ),
        (
            "not_separated",
            {"rows": 1, "best_rank": 4, "all_rows": 382, "auc": 0.992, "rank_chance": 4 / 382},
            "Not separated: its only positive ranks 4th of 382 rows, and it ranks above 99 % of the negatives; a "
            "random order does as well with a probability of 0.0105 (evidence would be 0.01 or less).",
        ),
        (
            "not_separated",
            {"rows": 2, "best_rank": 1, "all_rows": 2, "auc": np.nan},
            "Not separated: the best of its 2 positives ranks 1st of 2 rows, and there are no negatives to compare "
            "with.",
        ),
    ],
)
def test_sentences(reason: Reason, changes: dict[str, Any], text: str) -> None:
    assert explain(reason, evidence(**changes)) == text


@pytest.mark.parametrize(
    ("number", "text"), [(4, "4th"), (12, "12th"), (13, "13th"), (21, "21st"), (102, "102nd"), (1013, "1,013th")]
)
def test_ordinals(number: int, text: str) -> None:
    assert ordinal(number) == text


floats = st.one_of(st.floats(0, 1, exclude_min=True), st.floats(0, 1, exclude_min=True, width=32))


@given(st.lists(floats, min_size=3, max_size=3, unique=True).map(sorted), st.booleans())
def test_the_suggested_threshold_separates_the_same_rows_as_the_cut(
    values: list[float], nothing_below: bool
) -> None:
    below, best, threshold = values
    below = -1.0 if nothing_below else below
    text = explain("hidden_by_threshold", evidence(cut_prob=best, cut_next=below, threshold=threshold))
    match = re.search(r"a threshold of (\S+) instead of (\S+) finds", text)
    assert match is not None
    assert below < float(match[1]) <= best < float(match[2])


def test_a_suggested_threshold_has_the_stated_effect() -> None:
    rng = np.random.default_rng(0)
    flat = Hierarchy.from_edges([], nodes=[f"n{number:02d}" for number in range(40)])
    Y = rng.random((500, 40)) < 0.004
    probs = (0.3 * rng.random((500, 40)) + 0.2 * Y).clip(0, 1).astype(np.float32)
    result = diagnose(Y, probs, flat, Thresholds(np.full(40, 0.9)), np.ones(40, dtype=int))
    hidden = [column for column, reason in enumerate(result.reason) if reason == "hidden_by_threshold"]
    assert len(hidden) > 10
    for column in hidden:
        match = re.search(r"threshold of (\S+) instead.* finds (.+), with (.+)\.$", result.explain(column))
        assert match is not None
        decided = Thresholds(np.full(40, float(match[1]))).decide(probs, flat)[:, column]
        found, rows = int((decided & Y[:, column]).sum()), int(Y[:, column].sum())
        others = int((decided & ~Y[:, column]).sum())
        assert match[2] == ("its only positive" if rows == 1 else f"{found} of its {rows} positives")
        assert match[3].startswith("no false" if not others else f"{others} false")


@given(st.text(min_size=1, max_size=200))
def test_a_name_is_shown_in_one_printable_line_of_bounded_length(name: str) -> None:
    shown = short_name(name)
    assert shown.isprintable()
    assert len(shown) <= 82
    assert shown[1:-1].endswith("…") if len(name) > 80 else len(shown) == len(name) + 2


def named(name: str) -> NodeDiagnosis:
    """One whose parent's only other child, missed, is confused with a node of that name."""
    hierarchy = Hierarchy.from_edges([("top", name), ("top", "missed")])
    Y = hierarchy.close(hierarchy.encode([["missed"]]))
    probs = hierarchy.close(hierarchy.encode([[name]])).astype(np.float64)
    return diagnose(Y, probs, hierarchy, Thresholds(np.full(3, 0.5)), [1, 1, 1])


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_made_harmless(name: str) -> None:
    result = named(name)
    column = result.hierarchy.index["missed"]
    assert result.reason[column] == "confused_with_sibling"
    text = result.explain(column)
    assert text.isprintable()
    assert len(text) < 200
    frame = result.to_frame()
    assert frame["explanation"].to_list()[column] == text
    written = io.BytesIO()
    frame.write_csv(written)
    assert polars.read_csv(io.BytesIO(written.getvalue()), eol_char="\n")["state"].len() == 3


def test_a_name_in_the_table_is_the_name_unless_no_file_can_hold_it() -> None:
    assert named("\u202e\n").to_frame()["confused_with"].to_list().count("\u202e\n") == 1
    assert "half \\ud800" in named("half \ud800").to_frame()["node"].to_list()


@pytest.mark.parametrize("column", [-1, 3, 10**30])
def test_a_column_that_is_not_there_is_refused(column: int) -> None:
    with pytest.raises(ArgumentError, match=f"no column {column}; columns are from 0 to 2"):
        named("dog").explain(column)


def test_the_table_by_hand() -> None:
    chain = Hierarchy.from_edges([("a", "b"), ("a", "c")])
    Y = np.array([[1, 1, 0], [1, 0, 1], [1, 1, 0]], dtype=bool)
    probs = np.array([[0.9, 0.2, 0.9], [0.9, 0.1, 0.9], [0.9, 0.3, 0.9]])
    thresholds = Thresholds(np.array([0.5, np.inf, 0.5]))
    result = diagnose(Y, probs, chain, thresholds, [3, 0, 1], uncertainty=probs)
    frame = result.to_frame()
    assert frame.columns == COLUMNS
    missed = frame.row(1, named=True)
    assert missed == {
        "node": "b", "depth": 1, "state": "missed", "training_rows": 0, "rows": 2, "decided": 0, "found": 0,
        "precision": 0.0, "recall": 0.0, "f1": 0.0, "threshold": None, "uncertainty": 0.25,
        "reason": "no_training_rows", "explanation": result.explain(1), "also": "confused_with_sibling",
        "best_rank": 1, "auc": 1.0, "cut": 0.2, "decided_at_cut": 2, "found_at_cut": 2, "blocked_by": None,
        "confused_with": "c", "member_rows": 0,
    }  # fmt: skip
    found = frame.row(2, named=True)
    assert (found["precision"], found["recall"], found["found"], found["decided"]) == (1 / 3, 1.0, 1, 3)
    assert (found["reason"], found["explanation"], found["also"], found["best_rank"]) == ("", "", "", 0)
    assert (found["cut"], found["confused_with"], found["threshold"]) == (None, None, 0.5)


@given(case=oracles.cases())
def test_the_table_says_what_the_record_says(case: Case) -> None:
    result = diagnosis_of(case)
    frame = result.to_frame()
    nodes = case.hierarchy.nodes
    assert frame["node"].to_list() == list(nodes)
    assert frame["depth"].to_list() == case.hierarchy.depth.tolist()
    assert frame["state"].to_list() == result.state.tolist()
    assert frame["reason"].to_list() == list(result.reason)
    assert frame["also"].to_list() == ["; ".join(some[1:]) for some in result.reasons]
    assert frame["explanation"].to_list() == [result.explain(column) for column in range(len(nodes))]
    for name, values in (
        ("threshold", result.thresholds),
        ("uncertainty", result.uncertainty),
        ("auc", result.auc),
        ("cut", result.cut_prob),
    ):
        assert frame[name].dtype == polars.Float64
        assert frame[name].to_list() == [value if np.isfinite(value) else None for value in values.tolist()]
    for name in ("blocked_by", "confused_with"):
        columns = getattr(result, name).tolist()
        assert frame[name].dtype == polars.String
        assert frame[name].to_list() == [None if column < 0 else nodes[column] for column in columns]
    assert set(frame["reason"].to_list()) <= {"", *REASONS}
