"""Features on disk: what is read, prepared and trained from them is what arrays in memory give."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from numpy.typing import NDArray

from rarenode import Run, Settings, make_hierarchical
from rarenode.data.dataset import Dataset
from rarenode.data.preparation import Preparation
from rarenode.data.stored import StoredFeatures
from rarenode.diagnosis.data_checks import examine
from rarenode.errors import ArgumentError, DataError, RarenodeError
from rarenode.training import TrainedModel, fit_model, train_model
from rarenode.training.loop import BLOCK_ROWS, BLOCKS_MIXED, row_order
from tests.training.problem import rows, settings

Floats = NDArray[np.float64]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks even of a few rows."""
    monkeypatch.setattr("rarenode.data.stored.CELLS_AT_A_TIME", 40)
    monkeypatch.setattr("rarenode.data.readers.tables.STREAMED_CELLS", 250)


def table(count: int = 120) -> pl.DataFrame:
    """Rows with numbers, of which some are missing, a category, weights and labels."""
    made = make_hierarchical(rows=count, nodes=12, depth=3, features=5).train
    rng = np.random.default_rng(0)
    X = np.where(rng.random(made.X.shape) < 0.1, np.nan, made.X)
    tree = made.hierarchy
    return pl.DataFrame(
        {f"x{place}": X[:, place] for place in range(X.shape[1])}
        | {
            "where": [("reef", "reef", "sand", "mud", None)[place] for place in rng.integers(0, 5, len(made))],
            "id": [f"r{row}" for row in range(len(made))],
            "weight": rng.integers(1, 4, len(made)).astype(float),
            "taxa": [";".join(" > ".join([*tree.ancestors(n), n]) for n in row) for row in tree.decode(made.Y)],
        }
    ).with_columns(pl.col("x1").fill_nan(None))


def both(folder: Path, **options: Any) -> tuple[Dataset, Dataset]:
    """The same file streamed, and in memory."""
    path = folder / "rows.parquet"
    table().write_parquet(path)
    how = {"labels": "taxa", "id": "id", "weight": "weight", "path_separator": " > "} | options
    return Dataset.read(path, stream=True, **how), Dataset.read(path, **how)


def test_streamed_rows_are_those_of_the_file(tmp_path: Path) -> None:
    streamed, whole = both(tmp_path)
    assert isinstance(streamed.X, StoredFeatures)
    assert streamed.feature_names == whole.feature_names
    assert streamed.ids == whole.ids
    assert np.array_equal(streamed.Y, whole.Y)
    assert streamed.sample_weight is not None
    assert whole.sample_weight is not None
    assert np.array_equal(streamed.sample_weight, whole.sample_weight)
    assert pl.concat([block for _, block in streamed.X.blocks()]).equals(whole.X, null_equal=True)


def test_numbers_alone_have_the_fingerprint_of_an_array(tmp_path: Path) -> None:
    streamed, whole = both(tmp_path, ignore=["where"])
    assert np.array_equal(streamed.X[:], whole.X, equal_nan=True)
    assert streamed.fingerprint == whole.fingerprint
    some = np.array([2, 3, 50])
    assert streamed.take(some).fingerprint == whole.take(some).fingerprint
    assert streamed.take(some).take(np.array([1])).fingerprint == whole.take(np.array([3])).fingerprint


def test_preparation_is_that_of_rows_in_memory_but_for_rounding(tmp_path: Path) -> None:
    for streamed, whole in (both(tmp_path), both(tmp_path, ignore=["where"])):
        ours, theirs = Preparation.fit(streamed.X), Preparation.fit(whole.X)
        assert ours.categories == theirs.categories
        for name in ("fill", "mean", "deviation"):
            np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-12, atol=1e-12)
        prepared = theirs.apply(streamed.X)
        assert isinstance(prepared, StoredFeatures)
        assert np.array_equal(prepared[:], theirs.apply(whole.X))


def test_a_constant_column_has_a_deviation_of_1() -> None:
    stored = StoredFeatures(np.full((30, 2), 1e9 + 0.1))
    assert Preparation.fit(stored).deviation.tolist() == [1.0, 1.0]


def test_predictions_of_streamed_rows_are_those_of_rows_in_memory(tmp_path: Path) -> None:
    streamed, whole = both(tmp_path)
    model = train_model(
        whole,
        Settings(model="mlp+forest", n_trees=3, hidden_size=8, epochs=2, cv=None, patience=None, thresholds="fixed"),
    )
    assert np.array_equal(model.predict_proba(streamed.X), model.predict_proba(whole.X))
    ours, theirs = (model.compute(X, highest=True, uncertainty="gmu") for X in (streamed.X, whole.X))
    assert ours.uncertainty is not None
    assert theirs.uncertainty is not None
    assert np.array_equal(ours.uncertainty, theirs.uncertainty)
    for part, other in zip(model.predict_parts(streamed.X), model.predict_parts(whole.X), strict=True):
        assert np.array_equal(part, other)


def test_a_blend_is_trained_on_streamed_rows_with_thresholds_report_and_resume(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    table(200).write_parquet(path)
    how = {"labels": "taxa", "id": "id", "weight": "weight", "stream": True}
    small = Settings(hidden_size=8, n_trees=3, epochs=3, cv=2)
    run = Run.fit(path, tmp_path / "run", small, options=how)
    assert (tmp_path / "run" / "report.html").exists()
    assert run.model.reading is not None
    assert not run.model.reading.stream
    again = Run.fit(path, tmp_path / "again", small, options=how)
    assert all(np.array_equal(a, again.model.model.arrays()[name]) for name, a in run.model.model.arrays().items())
    assert run.evaluate().rows > 0


def test_many_rows_are_a_part_of_them_for_forest_and_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rarenode.training.train.MOST_CELLS_IN_MEMORY", 8 * 100)
    stored = replace(rows(), X=StoredFeatures(rows().X), n_counted=None)
    only = settings(model="forest+neighbours", n_trees=2)
    with pytest.warns(RuntimeWarning, match="forest and neighbours learn from 100 of "):
        model = train_model(stored, only)
    assert model.model.arrays()["forest.row_weights"].shape == (100,)


def test_the_order_of_an_epoch_mixes_blocks() -> None:
    count = 3 * BLOCK_ROWS * BLOCKS_MIXED + 100
    order = row_order(count, 0, 5, in_blocks=True)
    assert np.array_equal(np.sort(order), np.arange(count))
    assert not np.array_equal(order, row_order(count, 0, 6, in_blocks=True))
    first = order[: BLOCK_ROWS * BLOCKS_MIXED // 2]
    assert len(np.unique(first // BLOCK_ROWS)) > BLOCKS_MIXED // 2
    for block in range(count // BLOCK_ROWS + 1):
        places = np.flatnonzero(order // BLOCK_ROWS == block)
        assert np.ptp(places) < BLOCK_ROWS * BLOCKS_MIXED


def test_a_checkpoint_of_rows_in_memory_is_not_continued_with_streamed_ones(tmp_path: Path) -> None:
    whole = replace(rows(), X=np.nan_to_num(rows().X).astype(np.float32))
    stored = replace(whole, X=StoredFeatures(whole.X))
    for data in (whole, stored):
        train_model(data, settings(), prepare=False, folder=tmp_path / str(data is whole))
    with pytest.raises(RarenodeError, match="training rows"):
        train_model(whole, settings(), prepare=False, folder=tmp_path / "False", resume=True)


def test_text_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    table().write_csv(path)
    with pytest.raises(DataError, match=r"rows\.csv: only Parquet and Arrow files can be streamed"):
        Dataset.read(path, stream=True, labels="taxa")


def test_what_is_wrong_with_a_column_is_said_as_without_streaming(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    table().with_columns(pl.when(pl.col("id") == "r7").then(np.inf).otherwise(pl.col("x3")).alias("x3")).write_parquet(
        path
    )
    said = []
    for stream in (True, False):
        with pytest.raises(DataError) as error:
            Dataset.read(path, stream=stream, labels="taxa", id="id")
        said.append(str(error.value))
    assert said[0] == said[1]
    assert "row 8" in said[0]


def test_a_full_disk_is_said_before_anything_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.posix_fallocate", full)
    with pytest.raises(DataError, match=r"need 0\.7 GiB on disk, in .*: No space left on device; .*TMPDIR"):
        StoredFeatures.create(1_000_000, 100)


def test_features_are_never_in_memory_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rarenode.data.stored.CELLS_AT_A_TIME", 1 << 16)
    monkeypatch.setattr("rarenode.hierarchy.labels.CELLS_PER_BLOCK", 1 << 16)
    monkeypatch.setattr("rarenode.training.train.MOST_CELLS_IN_MEMORY", 1 << 16)
    count, width = 20_000, 200
    data = make_hierarchical(rows=200, nodes=5, depth=2, features=4).train
    stored = StoredFeatures.create(count, width)
    stored.file[:] = np.random.default_rng(0).normal(size=(count, width))
    many = Dataset(stored, np.resize(data.Y, (count, len(data.hierarchy))), data.hierarchy, data.scored)
    size = count * width * 4
    tracemalloc.start()
    try:
        fit_model(
            many, Settings(model="mlp", hidden_size=4, epochs=1, holdout=0.1, cv=None, patience=None, batch_size=512)
        )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < size


def test_a_model_of_streamed_rows_is_saved_and_loaded(tmp_path: Path) -> None:
    streamed, whole = both(tmp_path)
    model = train_model(streamed, settings())
    model.save(tmp_path / "model")
    assert np.array_equal(TrainedModel.load(tmp_path / "model").predict_proba(whole.X), model.predict_proba(streamed.X))


def test_an_examination_looks_at_some_of_the_streamed_rows(tmp_path: Path) -> None:
    streamed, whole = both(tmp_path)
    ours, theirs = examine(streamed), examine(whole)
    assert (ours.rows, ours.features, ours.levels) == (theirs.rows, theirs.features, theirs.levels)
    assert {found.topic for found in ours.findings} <= {found.topic for found in theirs.findings}


def test_streamed_rows_are_not_sent_to_other_processes(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    table().write_parquet(path)
    with pytest.raises(ArgumentError, match=r"features on disk .* cannot be sent to other processes"):
        Run.fit(path, tmp_path / "run", Settings(cv=2), options={"labels": "taxa", "id": "id", "stream": True}, jobs=2)
