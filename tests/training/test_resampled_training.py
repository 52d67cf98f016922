from __future__ import annotations

import math
import signal
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from rarenode.config import Settings
from rarenode.data.dataset import Dataset
from rarenode.engines import Adam, EngineName, Objective, make_engine
from rarenode.errors import Interrupted, ResumeError
from rarenode.metrics import summary
from rarenode.models import MlpEnsemble, initial_parameters
from rarenode.objective import node_weights
from rarenode.resampling import RESAMPLING, Resampled, make_resampler
from rarenode.training import train_model
from rarenode.training.loop import row_order
from tests.training.problem import Recorder, prepared, rows, same, settings, validation

every_name = pytest.mark.parametrize("name", RESAMPLING)


@cache
def coarse_rows() -> Dataset:
    """Without the deepest labels rows are more alike, so that every resampler has a choice which to clone."""
    given = prepared()
    nodes = given.hierarchy.nodes
    shallow = np.array([len(given.hierarchy.ancestors(node)) <= 1 for node in nodes])
    return replace(given, Y=given.Y & shallow)


def resample(given: Dataset, name: str, seed: int) -> Resampled:
    """The counted rows, resampled by the resampler itself."""
    sampler = make_resampler(name, given.hierarchy, seed)
    assert sampler is not None
    return sampler.resample(given.Y[: given.n_counted])


def resampled_by_hand(given: Dataset, name: str) -> Dataset:
    """The counted rows with their clones, then the others; only the former are counted."""
    chosen, count = resample(given, name, 0), len(given.counted_Y)
    weights = given.sample_weight
    return replace(
        given,
        X=np.stack([given.X[row] for row in [*chosen.rows, *range(count, len(given))]]),
        Y=np.concatenate([chosen.Y, given.Y[count:]]),
        sample_weight=None if weights is None else np.concatenate([weights[chosen.rows], weights[count:]]),
        n_counted=len(chosen.rows),
    )


# --- training ---------------------------------------------------------------------------------------------------------


@every_name
@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_the_loop_takes_the_steps_that_one_would_take_by_hand(name: str, engine: EngineName) -> None:
    """Rows, clones, then uncounted rows; node weights of counted rows and clones; clones that follow from the seed."""
    given = coarse_rows()
    chosen = settings(engine=engine, resampling=name, seed=3, epochs=2)
    clones = resample(given, name, 3)
    assert clones.rows.tolist() != resample(given, name, 0).rows.tolist()
    X = np.concatenate([given.X[clones.rows], given.X[given.n_counted :]])
    Y = np.concatenate([clones.Y, given.Y[given.n_counted :]])
    weights = node_weights(clones.Y, given.hierarchy, 0.25)
    for others in (given.Y[: given.n_counted], Y):  # else the losses would not tell which rows gave the weights
        assert not np.array_equal(weights.negative, node_weights(others, given.hierarchy, 0.25).negative)
    shape = MlpEnsemble(8, 20, hidden=16)
    objective = Objective(given.hierarchy, weights, None, 0.25, 1.0, given.scored, "mean")
    by_hand = make_engine(engine, shape, initial_parameters(shape, 3), objective, Adam(1e-3, 1e-5), 3)
    losses = []
    for epoch in range(2):
        order = row_order(len(X), 3, epoch)
        for start in range(0, len(X), 16):
            batch = order[start : start + 16]
            losses.append(by_hand.step(X[batch], Y[batch], None))

    recorder = Recorder()
    model = train_model(given, chosen, callback=recorder, prepare=False)
    assert recorder.losses == losses
    arrays = model.model.arrays()
    assert all(np.array_equal(arrays[part], array) for part, array in by_hand.parameters().items())


@every_name
def test_an_epoch_goes_through_the_clones_too(name: str) -> None:
    recorder = Recorder()
    train_model(rows(), settings(resampling=name, batch_size=1, epochs=1), callback=recorder)
    clones = len(resample(rows(), name, 0).rows) - len(rows().counted_Y)
    assert recorder.plan is not None
    assert recorder.plan.batches == recorder.plan.steps == len(recorder.losses) == len(rows()) + clones
    recorder = Recorder()
    train_model(rows(), settings(resampling=name, epochs=1), callback=recorder)
    assert recorder.plan is not None
    assert recorder.plan.batches == math.ceil((len(rows()) + clones) / 16)


@every_name
@pytest.mark.parametrize("case", ["some are counted", "all are counted", "with weights"])
def test_training_on_resampled_rows_is_resampling_first(name: str, case: str) -> None:
    given = {
        "some are counted": prepared(),
        "all are counted": replace(prepared(), n_counted=None),
        "with weights": replace(prepared(), sample_weight=np.linspace(0.1, 2, 150, dtype=np.float32)),
    }[case]
    first = resampled_by_hand(given, name)
    assert len(first) > len(given)
    ours = train_model(given, settings(resampling=name, epochs=2), prepare=False)
    assert same(ours, train_model(first, settings(epochs=2), prepare=False))


@every_name
def test_clones_do_not_change_the_preparation(name: str) -> None:
    """Its statistics are those of the rows that exist."""
    model = train_model(rows(), settings(resampling=name, epochs=1))
    assert model.preparation is not None
    np.testing.assert_allclose(model.preparation.mean, rows().X.mean(axis=0))


@every_name
def test_a_model_knows_the_rows_that_it_was_given(name: str) -> None:
    """Positives are of rows that exist, and the fingerprint is of the rows before resampling."""
    plain, resampled = train_model(rows(), settings(epochs=1)), train_model(rows(), settings(epochs=1, resampling=name))
    assert resampled.training_positives.tolist() == [int(rows().Y[:, node].sum()) for node in range(20)]
    assert resampled.fingerprints["rows"] == plain.fingerprints["rows"] == rows().fingerprint
    assert resampled.fingerprints["hierarchy"] == plain.fingerprints["hierarchy"]
    assert resampled.fingerprints["settings"] != plain.fingerprints["settings"]
    assert resampled.settings.resampling == name


def test_every_way_of_resampling_is_another_training() -> None:
    names = ("none", *RESAMPLING)
    models = {name: train_model(rows(), settings(epochs=1, resampling=name)) for name in names}
    assert same(models["none"], train_model(rows(), settings(epochs=1)))
    assert not any(same(models[a], models[b]) for a in names for b in names if a != b)
    assert len({model.fingerprints["settings"] for model in models.values()}) == len(names)


@every_name
def test_the_seed_decides(name: str) -> None:
    first = train_model(rows(), settings(resampling=name, epochs=1))
    assert same(first, train_model(rows(), settings(resampling=name, epochs=1)))
    assert not same(first, train_model(rows(), settings(resampling=name, epochs=1, seed=1)))


def test_validation_rows_are_not_resampled() -> None:
    model = train_model(rows(), settings(resampling="lpros"), valid=validation())
    assert model.history[-1].valid == summary(validation().Y, model.predict_proba(validation().X))
    plain = train_model(rows(), settings(resampling="lpros"))
    assert same(replace(model, history=()), replace(plain, history=()))


# --- stopping and resuming -----------------------------------------------------------------------------------------


def stop_at(batch: int, folder: Path, chosen: Settings) -> None:
    with pytest.raises(Interrupted):
        train_model(rows(), chosen, folder=folder, callback=Recorder(batch, lambda: signal.raise_signal(signal.SIGINT)))


@every_name
@pytest.mark.parametrize("place", ["in an epoch", "between epochs"])
def test_resuming_is_never_having_stopped(tmp_path: Path, name: str, place: str) -> None:
    chosen = settings(resampling=name, schedule="linear", seed=5)
    recorder = Recorder()
    undisturbed = train_model(rows(), chosen, callback=recorder)
    assert recorder.plan is not None
    batches = recorder.plan.batches
    done = batches + 4 if place == "in an epoch" else batches
    stop_at(done, tmp_path, chosen)
    rest = Recorder()
    resumed = train_model(rows(), chosen, folder=tmp_path, resume=True, callback=rest)
    assert rest.losses == recorder.losses[done:]
    assert same(resumed, undisturbed)


@pytest.mark.parametrize(
    ("before", "after"), [("none", "lpros"), ("lpros", "none"), ("lpros", "lpros-textbook"), ("hros-pd", "lpros")]
)
def test_a_training_on_other_clones_is_refused(tmp_path: Path, before: str, after: str) -> None:
    stop_at(4, tmp_path, settings(resampling=before))
    with pytest.raises(ResumeError, match=f"resampling was '{before}' and is now '{after}'$"):
        train_model(rows(), settings(resampling=after), folder=tmp_path, resume=True)
