from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode.errors import ArgumentError, DataError, LabelError, NotClosedError
from rarenode.training import TrainingRows
from tests.training.problem import data, rows


def test_from_a_dataset_as_in_the_paper() -> None:
    dataset = data()
    assert dataset.valid is not None
    both = TrainingRows.from_dataset(dataset)
    assert len(both) == len(dataset.train) + len(dataset.valid)
    assert both.split == len(dataset.train.Y)
    train_only = TrainingRows.from_dataset(dataset, with_valid=False)
    assert len(train_only) == len(dataset.train)
    assert train_only.split is None


def test_the_fingerprint_knows_every_part() -> None:
    base = rows()
    scored = base.scored.copy()
    scored[0] = False
    others = [
        replace(base, X=base.X + np.float32(1)),
        replace(base, Y=base.Y[::-1]),
        replace(base, scored=scored),
        replace(base, split=None),
        replace(base, X=base.X[:120], Y=base.Y[:120]),
    ]
    assert len({base.fingerprint, *(other.fingerprint for other in others)}) == 6
    assert replace(base, X=np.asfortranarray(base.X)).fingerprint == base.fingerprint


@given(st.sets(st.integers(0, 149), min_size=1).flatmap(lambda some: st.permutations(sorted(some))), st.data())
def test_some_of_the_rows(chosen: list[int], draw: st.DataObject) -> None:
    base = replace(rows(), split=draw.draw(st.sampled_from([None, 1, 100, 149, 150])))
    in_split = [row for row in chosen if base.split is None or row < base.split] or chosen
    taken = base.take(np.array(chosen))
    assert np.array_equal(taken.X, [base.X[row] for row in sorted(chosen)])
    assert np.array_equal(taken.Y, [base.Y[row] for row in sorted(chosen)])
    assert np.array_equal(taken.split_Y, [base.Y[row] for row in sorted(in_split)])
    assert taken.hierarchy is base.hierarchy
    assert np.array_equal(taken.scored, base.scored)


def test_all_of_the_rows_are_the_same_rows() -> None:
    assert rows().take(np.arange(150)[::-1]).fingerprint == rows().fingerprint
    assert rows().take(np.arange(149)).fingerprint != rows().fingerprint


def test_none_of_the_rows() -> None:
    with pytest.raises(DataError, match="at least one row"):
        replace(rows(), split=None).take(np.array([], dtype=np.int64))


def test_rows_that_cannot_be_learnt_from() -> None:
    base = rows()
    holes = base.X.copy()
    holes[3, 2] = np.nan
    open_labels = np.zeros_like(base.Y)
    open_labels[0, -1] = True
    for changes, error, says in [
        ({"X": base.X.astype(np.float64)}, DataError, "float32"),
        ({"X": holes}, DataError, "row 3, feature 2 is nan"),
        ({"X": base.X[:, :0]}, DataError, "shape"),
        ({"X": base.X[1:]}, DataError, "rows"),
        ({"X": base.X[:0], "Y": base.Y[:0]}, DataError, "at least one row"),
        ({"Y": base.Y.astype(int)}, LabelError, "boolean"),
        ({"Y": open_labels}, NotClosedError, "parent"),
        ({"split": 0}, ArgumentError, "split"),
        ({"split": len(base) + 1}, ArgumentError, "split"),
        ({"scored": ~base.scored}, ArgumentError, "scored"),
    ]:
        with pytest.raises(error, match=says):
            replace(base, **changes)  # type: ignore[arg-type]
