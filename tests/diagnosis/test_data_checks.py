"""`examine`: each finding is there when its fault is planted, and only then."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

from rarenode import Dataset, Hierarchy
from rarenode.data.split import folds
from rarenode.data.table_options import TableOptions
from rarenode.diagnosis.copies import repeated_rows
from rarenode.diagnosis.data_checks import examine
from rarenode.diagnosis.examination import Examination

TREE = Hierarchy.from_paths(["Biota > Corals", "Biota > Sponges", "Rock"])
ROWS = 120
Change = Callable[[Dataset], Dataset]


def sound() -> Dataset:
    """Rows with nothing to find."""
    rng = np.random.default_rng(0)
    leaves = ["Biota > Corals", "Biota > Sponges", "Rock"]
    Y = TREE.close(TREE.encode([[leaves[row % 3]] for row in range(ROWS)]))
    frame = pl.DataFrame(
        {
            "depth": rng.normal(size=ROWS),
            "count": rng.integers(0, 9, ROWS),
            "ground": rng.choice(["sand", "mud", "rock"], ROWS),
        }
    )
    ids = tuple(f"i{row}" for row in range(ROWS))
    return replace(Dataset.from_arrays(frame, Y, TREE, name="survey.csv"), ids=ids)


def with_column(**values: Any) -> Change:
    def change(data: Dataset) -> Dataset:
        columns = {name: value(data) if callable(value) else value for name, value in values.items()}
        return replace(data, X=data.X.with_columns(**{k: pl.Series(v) for k, v in columns.items()}), feature_names=None)

    return change


def with_labels(change: Callable[[Any], None]) -> Change:
    def changed(data: Dataset) -> Dataset:
        Y = data.Y.copy()
        change(Y)
        return replace(data, Y=TREE.close(Y))

    return changed


def with_known(change: Callable[[Any], None]) -> Change:
    def changed(data: Dataset) -> Dataset:
        known = np.ones(data.Y.shape, dtype=np.bool_)
        change(known)
        return replace(data, known=known, Y=data.Y & known)

    return changed


def texts(found: Examination) -> list[str]:
    return [f"{each.severity}: {each.topic}: {each.text}" for each in found.findings]


CORALS, SPONGES = (TREE.index[node] for node in ("Biota > Corals", "Biota > Sponges"))


def set_rows(column: int, keep: int) -> Callable[[Any], None]:
    """Only so many rows have a leaf; the others have a sibling."""

    def change(Y: Any) -> None:
        rows = np.flatnonzero(Y[:, column])[keep:]
        Y[rows, column] = False
        Y[rows, CORALS if column == SPONGES else SPONGES] = True

    return change


def nothing(values: Any) -> None:
    values[:] = False


def no_rows(values: Any) -> None:
    values[3:7] = False


def everywhere(Y: Any) -> None:
    Y[:, CORALS] = True


def numbered(data: Dataset) -> Any:
    return np.arange(ROWS) + 1000


def shuffled(data: Dataset) -> Any:
    return np.random.default_rng(1).permutation(ROWS) + 1000


def mostly_missing(data: Dataset) -> Any:
    return np.where(np.arange(ROWS) % 4 == 0, np.random.default_rng(2).normal(size=ROWS), np.nan)


def like_corals(data: Dataset) -> Any:
    return data.Y[:, CORALS] * 3.0 + 1


def named_like_corals(data: Dataset) -> Any:
    return [("hard" if row % 2 else "softer") if has else "soft" for row, has in enumerate(data.Y[:, CORALS])]


PLANTED: dict[str, tuple[Change, str, tuple[str, ...]]] = {
    "no labels": (with_known(nothing), "error: labels: survey.csv: no row has labels", ()),
    "some rows without": (
        with_known(no_rows), "warning: labels: 4 rows of 120 have no labels, and are not used for training", (),
    ),
    "rows with nothing": (
        with_labels(no_rows), "note: labels: 4 rows have none of the nodes", ("i3", "i4", "i5", "i6"),
    ),
    "few rows": (
        lambda data: data.take(np.arange(99)), "warning: rows: there are only 99 labelled rows", (),
    ),
    "a node without rows": (
        with_labels(set_rows(SPONGES, 0)), "note: nodes: 1 node of 4 has no row", ("Sponges",),
    ),
    "a node with few": (
        with_labels(set_rows(SPONGES, 4)), "warning: nodes: 1 node has fewer than 5 rows", ("Sponges",),
    ),
    "a node with one": (with_labels(set_rows(SPONGES, 1)), "warning: splits: 1 node has one row", ("Sponges",)),
    "a node in every row": (
        with_labels(everywhere), "note: nodes: every row has 1 node, so there is nothing to learn about it",
        ("Corals",),
    ),
    "a constant": (with_column(zone=[5.0] * ROWS), "warning: features: 1 feature is constant", ("zone",)),
    "a constant category": (with_column(zone=["x"] * ROWS), "warning: features: 1 feature is constant", ("zone",)),
    "never known": (with_column(zone=[np.nan] * ROWS), "warning: features: 1 feature is constant", ("zone",)),
    "a copy": (
        with_column(deep=lambda data: data.X["depth"]), "warning: features: 1 feature repeats another one",
        ("deep = depth",),
    ),
    "a copied category": (
        with_column(substrate=lambda data: data.X["ground"].str.to_uppercase()),
        "warning: features: 1 feature repeats another one", ("substrate = ground",),
    ),
    "row numbers": (
        with_column(n=numbered), "warning: features: 1 feature looks like a row number or an id", ("n",),
    ),
    "shuffled numbers": (
        with_column(n=shuffled), "warning: features: 1 feature looks like a row number or an id", ("n",),
    ),
    "mostly missing": (
        with_column(t=mostly_missing), "note: features: 1 feature is missing in more than half of the rows",
        ("t (75%)",),
    ),
    "a leak": (
        with_column(hard=like_corals), "warning: features: 1 feature is almost the same as a label",
        ("hard ~ Corals",),
    ),
    "a leaking category": (
        with_column(hard=named_like_corals), "warning: features: 1 feature is almost the same as a label",
        ("hard ~ Corals",),
    ),
}  # fmt: skip


def test_nothing_to_find() -> None:
    found = examine(sound(), [replace(sound(), X=sound().X.with_columns(depth=pl.col("depth") + 9))])
    assert texts(found) == []
    assert found.worst is None
    assert (found.rows, found.labelled_rows, found.features, found.nodes) == (120, 120, 3, 4)


@pytest.mark.parametrize("fault", PLANTED)
def test_planted_faults(fault: str) -> None:
    change, told, examples = PLANTED[fault]
    found = examine(change(sound()))
    matching = [each for each in found.findings if f"{each.severity}: {each.topic}: {each.text}" == told]
    assert len(matching) == 1, texts(found)
    assert matching[0].examples == examples
    expected = {told} | {
        "a node without rows": set[str](),
        "a node with one": {"warning: nodes: 1 node has fewer than 5 rows"},
        "a node in every row": {"note: nodes: 1 node of 4"},
    }.get(fault, set())
    assert all(any(text.startswith(each) for each in expected) for text in texts(found)), texts(found)
    order = ["error", "warning", "note"]
    assert [order.index(each.severity) for each in found.findings] == sorted(
        order.index(each.severity) for each in found.findings
    )
    assert found.worst == found.findings[0].severity


def test_repeated_rows() -> None:
    data = sound()
    copied = replace(data, X=pl.concat([data.X[:-2], data.X[:2]]))  # the last two rows, with other labels
    assert texts(examine(copied)) == [
        "warning: rows: 2 rows have the same features as another row; 2 of them with other labels"
    ]
    assert examine(copied).findings[0].examples == ("i118 = i0", "i119 = i1")
    Y = data.Y.copy()
    Y[118:] = Y[:2]
    assert texts(examine(replace(copied, Y=Y))) == ["note: rows: 2 rows have the same features as another row"]
    known = np.ones(Y.shape, dtype=np.bool_)
    known[118:] = False
    unlabelled = replace(copied, Y=copied.Y & known, known=known)
    assert "note: rows: 2 rows have the same features as another row" in texts(examine(unlabelled))


def test_rows_that_are_in_two_files() -> None:
    data = sound()
    test = replace(data.take(np.array([5, 9])), name="test.csv")
    found = examine(data, [test])
    told = "warning: splits: 2 rows of test.csv have the same features as a row of survey.csv"
    assert texts(found) == [told]
    assert found.findings[0].examples == ("i5 = i5", "i9 = i9")


def test_rows_with_nothing_in_common_but_that_all_is_missing() -> None:
    data = sound()
    blank = pl.DataFrame({"depth": [np.nan] * 3, "count": [np.nan] * 3, "ground": [None] * 3}, schema=data.X.schema)
    frame = replace(data, X=pl.concat([data.X[:-3], blank]))
    numbers = replace(data, X=frame.X.select("depth", "count").to_numpy(), feature_names=None)
    for each in (frame, numbers):
        assert texts(examine(each, [replace(each.take(np.array([119])), name="test.csv")])) == []


def test_coarse_features_are_no_copies() -> None:
    data = sound()
    coarse = replace(data, X=np.arange(ROWS)[:, None] % 2, feature_names=None)
    found = examine(coarse, [replace(coarse, name="test.csv")])
    assert texts(found) == [
        "note: rows: 118 rows have the same features as another row; 80 of them with other labels",
        "note: splits: 120 rows of test.csv have the same features as a row of survey.csv",
    ]


def test_many_copies_are_no_chance_where_a_feature_is_fine() -> None:
    data = sound()
    doubled = data.take(np.arange(ROWS) // 2)
    assert "warning: rows: 60 rows have" not in texts(examine(doubled))[0]  # labels are the same
    others = replace(doubled, Y=doubled.Y & (np.arange(ROWS) % 2 == 0)[:, None])
    assert any(text.startswith("warning: rows: 60 rows have the same features") for text in texts(examine(others)))


def test_copies_that_change_thresholds() -> None:
    data = replace(sound(), name="survey.csv")
    assert repeated_rows(data) is None
    one = data.take(np.array([*range(ROWS - 1), 0]))
    assert repeated_rows(one) is None
    doubled = repeated_rows(data.take(np.arange(ROWS) // 2))
    assert doubled is not None
    assert doubled.startswith("survey.csv: 60 rows have the same features as another row (i0 = i0, i1 = i1,")
    assert doubled.endswith("keep one row of each")
    assert repeated_rows(replace(data, X=np.arange(ROWS)[:, None] % 2, feature_names=None)) is None


def weighted(weight: float) -> Dataset:
    weights = np.full(ROWS, weight, dtype=np.float32)
    return replace(sound(), sample_weight=weights, reading=TableOptions(labels=("taxa",), weight="effort"))


def large(values: Any) -> Dataset:
    return with_column(size=values)(sound())


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (weighted(0), "weights: survey.csv: all weights in column 'effort' are 0 in single precision; some rows must"),
        (weighted(1e-60), "weights: survey.csv: all weights in column 'effort' are 0 in single precision"),
        (
            weighted(1e-35),
            "weights: survey.csv: weights in column 'effort' are from 1e-35 to 1e-35; they must be 0, or from 1e-20 to",
        ),
        (weighted(1e38), "weights: survey.csv: weights in column 'effort' are from 1e+38 to 1e+38"),
        (sound().take(np.arange(1)), "rows: survey.csv: there is only 1 labelled row"),
        (sound().take(np.arange(2)), "rows: survey.csv: there are only 2 labelled rows"),
        (large([1e149] + [0.0] * (ROWS - 1)), "features: survey.csv: column 'size' has values as large as 1e+149"),
        (with_labels(nothing)(sound()), "labels: survey.csv: no row has any of the nodes"),
    ],
)
def test_what_stands_in_the_way_of_training(data: Dataset, told: str) -> None:
    found = examine(data)
    errors = [text for text in texts(found) if text.startswith("error")]
    assert len(errors) == 1
    assert errors[0].startswith(f"error: {told}")


def test_large_numbers_that_can_be_standardised() -> None:
    assert texts(examine(large(np.random.default_rng(3).normal(size=ROWS) * 1e149))) == []


def test_nodes_with_the_same_title() -> None:
    tree = Hierarchy.from_paths(["Algae > Brown", "Sponges > Brown", "Sponges > Red"])
    Y = tree.close(tree.encode([["Algae > Brown"], ["Sponges > Brown"]] + [["Sponges > Red"]] * 118))
    found = examine(Dataset.from_arrays(np.random.default_rng(0).normal(size=(ROWS, 2)), Y, tree))
    few = next(each for each in found.findings if each.topic == "nodes")
    assert few.examples == ("Algae", "Algae > Brown", "Sponges > Brown")


def test_what_folds_would_leave_uncovered() -> None:
    """Of every two rows that have a node of their own, some must be in one fold."""
    pairs = [(first, second) for second in range(6) for first in range(second)]
    flat = Hierarchy.from_edges([], nodes=[f"{first}{second}" for first, second in pairs])
    Y = flat.encode([[f"{first}{second}" for first, second in pairs if row in (first, second)] for row in range(6)])
    missing = np.zeros(len(flat), dtype=np.bool_)
    for kept, _ in folds(Y, flat, 3):
        missing |= ~Y[kept].any(axis=0)
    found = examine(Dataset.from_arrays(np.random.default_rng(0).normal(size=(6, 2)), Y, flat))
    told = next(each for each in found.findings if each.topic == "splits")
    nodes = "node" if missing.sum() == 1 else "nodes"
    assert told.text == f"{missing.sum()} {nodes} with several rows would be missing from a fold of cv=3"
    assert told.examples == tuple(np.array(flat.nodes)[missing][:5])


def test_counts_by_depth() -> None:
    data = with_labels(set_rows(SPONGES, 2))(sound())
    Y = data.Y.copy()
    Y[0] = [True, False, False, False]
    levels = examine(replace(data, Y=Y)).levels
    by_depth: list[tuple[int, ...]] = []
    for depth in range(2):
        support = [int(Y[:, place].sum()) for place in range(4) if TREE.depth[place] == depth]
        ends = sum(1 for row in Y if row.any() and max(TREE.depth[row]) == depth)
        by_depth.append((depth, len(support), sum(s > 0 for s in support), sum(0 < s < 5 for s in support), ends))
    assert [(each.depth, each.nodes, each.with_rows, each.few_rows, each.rows_ending) for each in levels] == by_depth
    assert levels[1].median_rows == np.median([s for s in Y.sum(axis=0)[[CORALS, SPONGES]] if s])


def test_features_of_every_kind() -> None:
    data = sound()
    X = data.X.select("depth", "count").to_numpy()
    for other in (X, csr_array(X), X.astype(np.float32)):
        assert texts(examine(replace(data, X=other, feature_names=None))) == []
    constant = replace(data, X=np.hstack([X, np.ones((ROWS, 1))]), feature_names=None)
    assert examine(constant).findings[0].examples == ("feature 2",)


def test_unknown_cells_are_counted() -> None:
    def half(known: Any) -> None:
        known[::2, CORALS] = False

    found = examine(with_known(half)(sound()))
    assert found.unknown == pytest.approx(0.125)
    assert found.labelled_rows == ROWS


def test_it_is_json() -> None:
    found = examine(PLANTED["a leak"][0](sound()))
    assert json.loads(json.dumps(found.to_dict()))["findings"][0]["examples"] == ["hard ~ Corals"]
