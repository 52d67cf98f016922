from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, precision_recall_fscore_support

import rarenode.data.catalogue
from rarenode.data.dataset import DatasetSplits
from rarenode.errors import MissingFileError, TrainingError
from rarenode.paper import load_as_published
from rarenode.paper import measure as measuring
from rarenode.paper.grid import Cell
from rarenode.paper.measure import measure
from rarenode.paper.record import DatasetNodes, Record
from rarenode.resampling import make_resampler
from rarenode.training import TrainedModel, train_model
from tests.paper.small_grid import tiny_alone, tiny_cell

MEGABYTE = 2**20

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module", autouse=True)
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The catalogue has one dataset, named tiny; where its files are."""
    with tiny_alone(tmp_path_factory.mktemp("data")) as folder:
        yield folder


def cell(**changes: Any) -> Cell:
    return tiny_cell(**changes)


@pytest.fixture(scope="module")
def measured(root: Path) -> tuple[Record, DatasetNodes]:
    return measure(cell(), root)


@pytest.fixture(scope="module")
def data(root: Path) -> DatasetSplits:
    return load_as_published("tiny", root)


@pytest.fixture(scope="module")
def model(data: DatasetSplits) -> TrainedModel:
    return train_model(data.train_and_valid, cell().settings, prepare=False)


class TestScores:
    def test_the_five_figures_are_those_of_the_trained_model(
        self, measured: tuple[Record, DatasetNodes], data: DatasetSplits, model: TrainedModel
    ) -> None:
        Y, probs = data.test.Y[:, 1:], model.predict_proba(data.test.X)[:, 1:]
        predicted = probs >= 0.5
        by_hand = precision_recall_fscore_support(Y, predicted, average="macro", zero_division=0)
        found = measured[0].at_half.summary
        assert 0 < found.f1 < 1
        assert found.nodes == 5
        assert (found.precision, found.recall, found.f1) == pytest.approx(by_hand[:3], abs=1e-12)
        assert found.ap == pytest.approx(average_precision_score(Y, probs, average="micro"), abs=1e-12)
        assert found.bin_ap == pytest.approx(average_precision_score(Y, predicted, average="micro"), abs=1e-12)
        assert found.nodes_predicted == predicted.any(axis=0).sum()
        assert found.nodes_found == (predicted & Y).any(axis=0).sum()

    def test_precision_recall_and_f1_come_out_of_the_record_to_the_bit(
        self, measured: tuple[Record, DatasetNodes]
    ) -> None:
        record, nodes = measured
        support = np.array(nodes.test_rows)
        predicted, hits = np.zeros_like(support), np.zeros_like(support)
        predicted[list(record.at_half.nodes.column)] = record.at_half.nodes.predicted
        hits[list(record.at_half.nodes.column)] = record.at_half.nodes.true_positives
        scored = np.array(nodes.scored)
        for figure, over, under in (
            ("precision", hits, predicted),
            ("recall", hits, support),
            ("f1", 2 * hits, predicted + support),
        ):
            scores = np.divide(over, under, out=np.zeros(len(over)), where=under > 0)[scored]
            assert scores.mean() == getattr(record.at_half.summary, figure)

    def test_nodes_that_do_not_count_are_not_in_it(self, measured: tuple[Record, DatasetNodes]) -> None:
        record, nodes = measured
        assert nodes.scored == (False, True, True, True, True, True)
        assert 0 not in record.at_half.nodes.column
        assert len(record.at_half.nodes.column) == record.at_half.summary.nodes_predicted
        assert np.count_nonzero(record.at_half.nodes.true_positives) == record.at_half.summary.nodes_found

    def test_nodes(self, measured: tuple[Record, DatasetNodes], data: DatasetSplits) -> None:
        nodes = measured[1]
        assert nodes.names == data.hierarchy.nodes
        assert nodes.hierarchy == data.hierarchy.fingerprint
        assert data.valid is not None
        assert list(nodes.training_rows) == (data.train.Y.sum(axis=0) + data.valid.Y.sum(axis=0)).tolist()
        assert list(nodes.test_rows) == data.test.Y.sum(axis=0).tolist()

    def test_clones_do_not_change_the_nodes(self, measured: tuple[Record, DatasetNodes], root: Path) -> None:
        assert measure(cell(resampling="lpros", epochs=1), root)[1] == measured[1]

    def test_the_same_again(self, measured: tuple[Record, DatasetNodes], root: Path) -> None:
        again, _ = measure(cell(), root)
        assert (again.at_half.summary, again.at_half.nodes) == (
            measured[0].at_half.summary,
            measured[0].at_half.nodes,
        )


class TestCosts:
    def test_steps(self, measured: tuple[Record, DatasetNodes]) -> None:
        assert measured[0].at_half.steps_per_epoch == 7  # 40 + 15 rows in batches of 8

    def test_steps_count_clones(self, root: Path, data: DatasetSplits) -> None:
        resampler = make_resampler("lpros", data.hierarchy, seed=0)
        assert resampler is not None
        rows = len(resampler.resample(data.train.Y).rows) + 15
        assert rows > 55
        record, _ = measure(cell(resampling="lpros", epochs=1, batch_size=1), root)
        assert record.at_half.steps_per_epoch == rows

    def test_times_are_of_the_epochs(self, root: Path) -> None:
        record, _ = measure(cell(epochs=3), root)
        fixed = record.at_half
        assert record.seconds > 0
        assert fixed.seconds_per_epoch * 3 == pytest.approx(record.seconds, rel=0.9)
        assert fixed.steps_per_second * fixed.seconds_per_epoch == pytest.approx(fixed.steps_per_epoch, rel=0.05)

    def test_bytes_are_of_weights_and_their_moments(self, root: Path) -> None:
        record, _ = measure(cell(hidden_size=4, n_layers=2, n_members=3, epochs=1), root)
        parameters = 3 * ((3 * 4 + 4) + (4 * 6 + 6))
        assert record.at_half.training_bytes == parameters * 4 * 3

    @pytest.mark.skipif(sys.platform != "linux", reason="only Linux can start the count anew")
    def test_the_most_memory_is_of_this_training_and_not_of_one_before(self, root: Path) -> None:
        before = measure(cell(epochs=1), root)[0].at_half.peak_bytes
        much = np.ones(300 * MEGABYTE, dtype=np.uint8)
        held = measuring._peak_bytes()
        del much
        after = measure(cell(epochs=1), root)[0].at_half.peak_bytes
        assert before is not None
        assert held is not None
        assert after is not None
        assert held > before + 250 * MEGABYTE
        assert after < before + 50 * MEGABYTE

    def test_systems_that_do_not_tell_the_most_memory(
        self, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(measuring, "STATUS", tmp_path / "no" / "status")
        monkeypatch.setattr(measuring, "CLEAR", tmp_path / "no" / "clear_refs")
        assert measure(cell(epochs=1), root)[0].at_half.peak_bytes is None


class TestCircumstances:
    def test_who_computed_what_and_where(self, measured: tuple[Record, DatasetNodes]) -> None:
        record, _ = measured
        assert (record.dataset, record.settings, record.engine) == ("tiny", cell().settings, "torch")
        assert record.threads == 1
        assert record.versions["rarenode"] == rarenode.__version__

    def test_engine_auto_is_resolved(self, root: Path) -> None:
        record, _ = measure(cell(engine="auto", epochs=1), root)
        assert record.engine in ("fused", "torch")
        assert record.settings.engine == "auto"

    def test_a_training_that_comes_to_nothing(self, root: Path) -> None:
        with pytest.raises(TrainingError, match="learning_rate"):
            measure(cell(learning_rate=1e30), root)

    def test_data_that_are_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(MissingFileError, match=r"tiny\.train\.arff is not there"):
            measure(cell(), tmp_path)
