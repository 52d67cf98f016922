"""Training on sparse labels: the same model as with dense ones, without ever making them dense."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.sparse import csr_array

from rarenode import Hierarchy, RareNodeClassifier, Run, Settings
from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.data.split import HierarchicalSplit, folds
from rarenode.diagnosis.data_checks import examine
from rarenode.errors import RarenodeError
from rarenode.estimator.targets import read_targets
from rarenode.hierarchy.labels import MOST_DENSE_CELLS, is_sparse
from rarenode.metrics import count_parents_together
from rarenode.resampling import RESAMPLING, make_resampler
from rarenode.training import fit_model, train_model
from tests.training.problem import data, prepared, rows, same, settings, validation


def sparse(dense: Dataset) -> Dataset:
    return replace(dense, Y=csr_array(dense.Y))


def test_a_dataset_is_the_same_with_sparse_labels() -> None:
    ours = sparse(rows())
    assert is_sparse(ours.Y)
    assert len(ours) == len(rows())
    assert ours.fingerprint == rows().fingerprint
    some = np.array([5, 3, 8])
    assert ours.take(some).fingerprint == rows().take(some).fingerprint
    assert np.array_equal(ours.support, rows().Y.sum(axis=0))
    assert ours.counted_Y.shape[0] == len(rows().counted_Y)
    parts = data()
    valid = validation()
    joined = DatasetSplits("", sparse(parts.train), sparse(valid), sparse(parts.test)).train_and_valid
    assert joined.fingerprint == parts.train_and_valid.fingerprint


def test_splits_and_counts_are_the_same() -> None:
    given, Y = rows(), csr_array(rows().Y)
    for ours, theirs in zip(
        HierarchicalSplit(0.3, 1).split(Y, given.hierarchy),
        HierarchicalSplit(0.3, 1).split(given.Y, given.hierarchy),
        strict=True,
    ):
        assert np.array_equal(ours, theirs)
    for (kept, _), (expected, _) in zip(folds(Y, given.hierarchy, 3), folds(given.Y, given.hierarchy, 3), strict=True):
        assert np.array_equal(kept, expected)
    assert np.array_equal(count_parents_together(Y, given.hierarchy), count_parents_together(given.Y, given.hierarchy))


@pytest.mark.parametrize("name", RESAMPLING)
def test_clones_are_the_same(name: str) -> None:
    sampler = make_resampler(name, rows().hierarchy, 0)
    assert sampler is not None
    ours, theirs = sampler.resample(csr_array(rows().Y)), sampler.resample(rows().Y)
    assert is_sparse(ours.Y)
    assert np.array_equal(ours.rows, theirs.rows)
    assert np.array_equal(ours.Y.toarray(), theirs.Y)


@pytest.mark.parametrize("name", ["none", *RESAMPLING])
def test_a_network_is_the_same_bit_for_bit(name: str) -> None:
    with_name = settings(resampling=name, weighting="as_published")
    assert same(train_model(sparse(prepared()), with_name), train_model(prepared(), with_name))


def test_a_blend_with_thresholds_is_the_same_bit_for_bit() -> None:
    best = Settings(hidden_size=16, n_trees=5, epochs=3, batch_size=16, cv=2)
    ours, theirs = fit_model(sparse(rows()), best).model, fit_model(rows(), best).model
    assert ours.fingerprints == theirs.fingerprints
    assert same(ours, theirs)
    assert np.array_equal(ours.decides_with.values, theirs.decides_with.values)
    assert np.array_equal(ours.training_positives, theirs.training_positives)


def test_an_estimator_takes_sparse_labels_and_gives_the_same(tmp_path: Path) -> None:
    given = data().train
    made = RareNodeClassifier(given.hierarchy, hidden_size=8, n_trees=3, epochs=2, holdout=0.3, random_state=0)
    dense = made.fit(given.X, given.Y).predict_proba(given.X)
    assert np.array_equal(made.fit(given.X, csr_array(given.Y)).predict_proba(given.X), dense)
    assert np.array_equal(made.fit(given.X, csr_array(given.Y.astype(np.float64))).predict_proba(given.X), dense)


def test_an_examination_says_the_same() -> None:
    assert examine(sparse(rows())) == examine(rows())


WIDE = Hierarchy.from_edges([(f"n{node // 3}", f"n{node}") for node in range(1, 30_000)])


def wide_sets(rows: int) -> list[list[str]]:
    rng = np.random.default_rng(0)
    return [[WIDE.nodes[node] for node in row] for row in rng.integers(0, len(WIDE), (rows, 3))]


def test_many_cells_become_sparse_and_never_dense() -> None:
    count = MOST_DENSE_CELLS // len(WIDE) + 1
    X = np.random.default_rng(1).normal(size=(count, 4)).astype(np.float32)
    sets = wide_sets(count)
    tracemalloc.start()
    try:
        made = Dataset.from_arrays(X, sets, WIDE)
        HierarchicalSplit(0.01).split(made.Y, WIDE)
        train_model(made, Settings(model="forest", n_trees=1, cv=None, thresholds="fixed"))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert is_sparse(made.Y)
    assert peak < MOST_DENSE_CELLS // 2


# --- from tables -----------------------------------------------------------------------------------------------------

PETS = Hierarchy.from_edges([("pet", "cat"), ("pet", "dog"), ("cat", "siamese")])
TABLE = pl.DataFrame(
    {"id": ["a", "b", "c", "d"], "x": [1.0, 2.0, 3.0, 4.0], "what": ["siamese", "dog;cat", None, "cat"]}
)


def both_ways(monkeypatch: pytest.MonkeyPatch, table: pl.DataFrame, **options: Any) -> tuple[Dataset, Dataset]:
    dense = Dataset.read(table, hierarchy=PETS, **options)
    monkeypatch.setattr("rarenode.data.readers.labels.MOST_DENSE_CELLS", 0)
    return Dataset.read(table, hierarchy=PETS, **options), dense


def test_a_table_is_read_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = both_ways(monkeypatch, TABLE, labels="what", id="id")
    assert is_sparse(ours.Y)
    assert not is_sparse(theirs.Y)
    assert ours.fingerprint == theirs.fingerprint
    with_labels = ours.with_labels_only()
    assert with_labels.known is None
    assert with_labels.ids == ("a", "b", "d")
    assert with_labels.fingerprint == theirs.with_labels_only().fingerprint


def test_rows_without_labels_take_no_memory_for_each_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = both_ways(monkeypatch, TABLE, labels="what", id="id")
    for some, same_rows in ((ours, theirs), (ours.take(np.array([1, 2])), theirs.take(np.array([1, 2])))):
        assert some.known is not None
        assert same_rows.known is not None
        assert some.known.strides[1] == 0
        assert np.array_equal(some.known, same_rows.known)


def test_contradictions_are_refused_in_the_same_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    labels = tmp_path / "labels.csv"
    labels.write_text("id,label,value\na,siamese,1\nb,dog,0\nc,cat,1\nd,dog,0\nd,cat,0\nd,siamese,1\n")
    said = []
    for most in (MOST_DENSE_CELLS, 0):
        monkeypatch.setattr("rarenode.data.readers.labels.MOST_DENSE_CELLS", most)
        with pytest.raises(RarenodeError) as error:
            Dataset.read(TABLE, hierarchy=PETS, labels=str(labels), id="id", features="x")
        said.append(str(error.value))
    assert said[0] == said[1]
    assert "'siamese', which is below it, present" in said[0]


def test_label_sets_of_an_estimator_become_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    sets = [["siamese"], ["dog", "cat"], []]
    dense = read_targets(sets, PETS)
    monkeypatch.setattr("rarenode.estimator.targets.MOST_DENSE_CELLS", 0)
    assert np.array_equal(read_targets(sets, PETS).Y.toarray(), dense.Y)


def test_a_sparse_matrix_with_unknown_labels_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    given = csr_array([[1.0, 0, np.nan, 0], [1.0, 1.0, 0, 0]])
    ours, theirs = read_targets(given, PETS), read_targets(given.toarray(), PETS)
    assert ours.known is not None
    assert theirs.known is not None
    assert np.array_equal(ours.known, theirs.known)
    assert np.array_equal(ours.Y, theirs.Y)


def test_a_run_with_its_report(tmp_path: Path) -> None:
    chosen = Settings(hidden_size=8, epochs=2, n_trees=3, cv=2, n_jobs=1)
    ours, theirs = (Run.fit(each, tmp_path / name, chosen) for each, name in ((sparse(rows()), "a"), (rows(), "b")))
    pages = [(run.folder / "report.html").stat().st_size for run in (ours, theirs)]
    assert pages[0] == pytest.approx(pages[1], rel=0.01)
    assert str(ours.evaluate()) == str(theirs.evaluate())
