from __future__ import annotations

from typing import Any

import numpy as np
import polars
import pytest

from rarenode import Dataset
from rarenode.errors import HierarchyError, LabelError, UnknownLabelError
from rarenode.estimator.targets import read_targets
from rarenode.hierarchy import Hierarchy

pd = pytest.importorskip("pandas")
TREE = Hierarchy.from_edges([("animal", "cat"), ("animal", "dog"), ("plant", "rose")])
CAT_AND_ROSE = [[1, 1, 1, 0, 1], [1, 0, 0, 1, 0]]
"""Rows {cat, rose} and {dog}, closed; the columns are animal, plant, cat, dog, rose."""


@pytest.mark.parametrize(
    "given",
    [
        [{"cat", "rose"}, {"dog"}],
        [["cat", "rose"], ("dog",)],
        np.array([["cat", "rose"], ["dog"]], dtype=object),
        polars.Series([["cat", "rose"], ["dog"]]),
        [[0, 0, 1, 0, 1], [0, 0, 0, 1, 0]],
        np.array([[0, 0, 1, 0, 1], [0, 0, 0, 1, 0]], dtype=bool),
        np.array([[0, 0, 1, 0, 1], [0, 0, 0, 1, 0]], dtype=float),
        polars.DataFrame({"rose": [1, 0], "dog": [0, 1], "cat": [1, 0]}),
    ],
    ids=["sets", "lists", "array_of_lists", "series", "rows_of_numbers", "booleans", "floats", "frame"],
)
def test_every_form_means_the_same(given: Any) -> None:
    targets = read_targets(given, TREE)
    assert targets.hierarchy is TREE
    assert targets.Y.dtype == np.bool_
    assert targets.Y.astype(int).tolist() == CAT_AND_ROSE
    assert targets.classes.tolist() == list(TREE.nodes)
    assert not targets.one_class


def test_one_label_a_row_in_a_hierarchy_names_nodes() -> None:
    assert read_targets(["cat", "rose"], TREE).Y.astype(int).tolist() == [[1, 0, 1, 0, 0], [0, 1, 0, 0, 1]]


def test_rows_without_labels() -> None:
    assert read_targets([[], {"cat"}], TREE).Y.sum(axis=1).tolist() == [0, 2]
    assert not read_targets([[], []], TREE).Y.any()


class TestFlat:
    def test_columns_of_a_matrix_keep_their_order(self) -> None:
        Y = np.eye(12, dtype=int)
        targets = read_targets(Y, None)
        assert np.array_equal(targets.Y, Y == 1)
        assert targets.classes[[0, 2, 11]].tolist() == ["00", "02", "11"]

    def test_columns_of_a_frame_are_sorted_by_name(self) -> None:
        targets = read_targets(polars.DataFrame({"b": [1, 0], "a": [1, 1]}), None)
        assert targets.classes.tolist() == ["a", "b"]
        assert targets.Y.astype(int).tolist() == [[1, 1], [1, 0]]

    def test_label_sets_are_the_names_that_occur(self) -> None:
        targets = read_targets([{"b"}, {"c", "a"}], None)
        assert targets.classes.tolist() == ["a", "b", "c"]
        assert targets.Y.astype(int).tolist() == [[0, 1, 0], [1, 0, 1]]

    @pytest.mark.parametrize(
        ("given", "classes"), [([10, 2, 10], [2, 10]), (["b", "a", "b"], ["a", "b"]), ([True, False, True], [0, 1])]
    )
    def test_one_label_a_row_is_a_multi_class_problem(self, given: list[Any], classes: list[Any]) -> None:
        targets = read_targets(given, None)
        assert targets.one_class
        assert targets.classes.tolist() == classes
        column = [targets.hierarchy.index[str(targets.classes[i])] for i in (1, 0, 1)]
        assert targets.Y.argmax(axis=1).tolist() == column
        assert targets.Y.sum(axis=1).tolist() == [1, 1, 1]


class TestRefusals:
    def test_no_labels(self) -> None:
        with pytest.raises(LabelError, match="y is None"):
            read_targets(None, TREE)
        with pytest.raises(LabelError, match="no row has a label"):
            read_targets([[], []], None)

    def test_unknown_names(self) -> None:
        with pytest.raises(UnknownLabelError, match=r"row 1: label 'cow'"):
            read_targets([{"cat"}, {"cow"}], TREE)
        with pytest.raises(UnknownLabelError, match="'cow'"):
            read_targets(["cat", "cow"], TREE)
        with pytest.raises(UnknownLabelError, match=r"'0', '1', '2', '3', '4' and 2 more"):
            read_targets(polars.DataFrame({str(i): [0] for i in range(7)}), TREE)

    @pytest.mark.parametrize("separator", [";", ",", "|"])
    def test_several_labels_in_one_text(self, separator: str) -> None:
        told = rf"row 1: .*several labels: split it into a list, or .*Dataset\.read\(\.\.\., separator='\{separator}'\)"
        for given in (["cat", f"cat{separator} dog"], [{"cat"}, {f"dog{separator}rose"}]):
            with pytest.raises(UnknownLabelError, match=told):
                read_targets(given, TREE)

    def test_columns_of_the_same_name(self) -> None:
        class Frame:
            columns = ("cat", "dog", "cat")
            shape = (1, 3)

            def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
                return np.zeros((1, 3))

        with pytest.raises(LabelError, match="two columns of labels are named 'cat'"):
            read_targets(Frame(), TREE)

    def test_matrices(self) -> None:
        with pytest.raises(LabelError, match=r"\(rows, 5\)"):
            read_targets(np.zeros((2, 3)), TREE)
        with pytest.raises(LabelError, match="got 2"):
            read_targets([[0, 2], [1, 0]], None)

    def test_numbers_that_are_no_classes(self) -> None:
        with pytest.raises(ValueError, match="Unknown label type"):
            read_targets([0.1, 0.2, 0.3], None)
        with pytest.raises(HierarchyError, match="must not be empty"):
            read_targets(["", "a"], None)


class TestUnknown:
    """1 is present, 0 absent, and what is missing unknown. Columns: animal, plant, cat, dog, rose."""

    def test_targets_of_a_dataset(self) -> None:
        table = polars.DataFrame({"x": range(4), "kind": ["cat", "animal", "plant; dog", None]})
        data = Dataset.read(table, labels="kind", hierarchy=TREE, unknown="below")
        targets = read_targets(data.targets, TREE)
        assert np.array_equal(targets.Y, data.Y)
        assert targets.known is not None
        assert data.known is not None
        assert np.array_equal(targets.known, data.known)

    ROWS = ((np.nan, 0, 1, np.nan, np.nan), (1, np.nan, np.nan, 0, np.nan), (0, 0, np.nan, 0, 1))
    Y = ((1, 0, 1, 0, 0), (1, 0, 0, 0, 0), (0, 1, 0, 0, 1))
    KNOWN = ((1, 1, 1, 0, 1), (1, 0, 0, 1, 0), (1, 1, 1, 1, 1))

    @pytest.mark.parametrize(
        "given",
        [
            np.array(ROWS),
            np.array(ROWS, dtype=np.float32),
            [list(row) for row in ROWS],
            np.array([[None if v != v else v for v in row] for row in ROWS], dtype=object),
            np.ma.masked_invalid(np.array(ROWS)),
            np.ma.array(np.nan_to_num(np.array(ROWS), nan=1).astype(int), mask=np.isnan(np.array(ROWS))),
            pd.DataFrame(np.array(ROWS), columns=list(TREE.nodes)),
            pd.DataFrame(np.array(ROWS), columns=list(TREE.nodes)).astype("Int64"),
            pd.DataFrame(np.array(ROWS), columns=list(TREE.nodes)).astype("boolean"),
            polars.DataFrame(np.array(ROWS), list(TREE.nodes)).fill_nan(None).cast(polars.Int64),
            polars.DataFrame(np.array(ROWS), list(TREE.nodes)).fill_nan(None).cast(polars.Boolean),
        ],
        ids=["float", "single", "lists", "objects", "masked", "ints", "pandas", "Int64", "boolean", "polars", "bool"],
    )
    def test_every_form_means_the_same(self, given: Any) -> None:
        targets = read_targets(given, TREE)
        assert targets.Y.astype(int).tolist() == [list(row) for row in self.Y]
        assert targets.known is not None
        assert targets.known.astype(int).tolist() == [list(row) for row in self.KNOWN]

    def test_nothing_is_missing(self) -> None:
        assert read_targets([{"cat"}], TREE).known is None
        assert read_targets(np.ma.array([[1, 0, 1, 0, 0]]), TREE).known is None
        assert read_targets(np.array([[1, 0, 1, 0, 0]], dtype=object), TREE).Y.astype(int).tolist() == [[1, 0, 1, 0, 0]]
        assert read_targets([[np.nan, np.nan, 1, 0, 0], [0, np.nan, 0, 0, 1]], TREE).known is not None
        assert read_targets([[np.nan, 0, 1, 0, 0], [0, np.nan, 0, 0, 1]], TREE).known is None  # as all follows

    def test_other_objects_are_refused(self) -> None:
        with pytest.raises(LabelError, match="missing where they are unknown; got 'yes'"):
            read_targets(np.array([[1, None, "yes", 0, 0]], dtype=object), TREE)
        with pytest.raises(LabelError, match="must be 0 or 1, got 2"):
            read_targets([[np.nan, 2, 0, 0, 0]], TREE)
        with pytest.raises(ValueError, match="NaN"):
            read_targets([1.0, np.nan, 0.0], None)
