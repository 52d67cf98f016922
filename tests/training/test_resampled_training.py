from __future__ import annotations

import math
import signal
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from rarenode.engines import Adam, EngineName, Objective, make_engine
from rarenode.errors import ArgumentError, Interrupted, ResumeError
from rarenode.metrics import summary
from rarenode.models import initial_parameters
from rarenode.objective import node_weights
from rarenode.resampling import RESAMPLING, Resampled, make_resampler
from rarenode.training import Settings, TrainedModel, TrainingRows, train
from rarenode.training.loop import row_order
from tests.training.problem import Recorder, data, rows, same, settings

every_name = pytest.mark.parametrize("name", RESAMPLING)


@cache
def coarse_rows() -> TrainingRows:
    """Without the deepest labels rows are more alike, so that every resampler has a choice which to clone."""
    given = rows()
    nodes = given.hierarchy.nodes
    shallow = np.array([len(given.hierarchy.ancestors(node)) <= 1 for node in nodes])
    return replace(given, Y=given.Y & shallow)


def resample(given: TrainingRows, name: str, seed: int) -> Resampled:
    """Of the training split, by the resampler itself."""
    sampler = make_resampler(name, given.hierarchy, seed)
    assert sampler is not None
    return sampler.resample(given.Y[: given.split])


def same_parameters(ours: TrainedModel, theirs: TrainedModel) -> bool:
    return all(np.array_equal(array, theirs.parameters[name]) for name, array in ours.parameters.items())


# --- which rows ----------------------------------------------------------------------------------------------------


@every_name
def test_only_the_training_split_is_resampled(name: str) -> None:
    given = rows()
    split = given.split
    assert split is not None
    assert split < len(given)
    sampler = make_resampler(name, given.hierarchy, 2)
    assert sampler is not None
    resampled = given.resampled(sampler)
    chosen = resample(given, name, 2)
    new_split = resampled.split
    assert new_split is not None
    assert new_split == len(chosen.rows) > split
    assert len(resampled) - new_split == len(given) - split
    assert np.array_equal(resampled.X[:split], given.X[:split])
    assert np.array_equal(resampled.Y[:split], given.Y[:split])
    assert np.array_equal(resampled.X[split:new_split], given.X[chosen.rows[split:]])
    assert np.array_equal(resampled.Y[split:new_split], chosen.Y[split:])
    assert np.array_equal(resampled.X[new_split:], given.X[split:])
    assert np.array_equal(resampled.Y[new_split:], given.Y[split:])
    assert np.array_equal(resampled.split_Y, chosen.Y)
    assert resampled.hierarchy == given.hierarchy
    assert np.array_equal(resampled.scored, given.scored)
    of_the_others = {row.tobytes() for row in given.X[split:]}
    assert not any(row.tobytes() in of_the_others for row in resampled.X[split:new_split])


@every_name
def test_without_a_split_all_rows_are_resampled(name: str) -> None:
    everything = replace(rows(), split=None)
    sampler = make_resampler(name, everything.hierarchy, 0)
    assert sampler is not None
    resampled = everything.resampled(sampler)
    chosen = sampler.resample(everything.Y)
    assert resampled.split == len(resampled) == len(chosen.rows) > len(everything)
    assert np.array_equal(resampled.X, everything.X[chosen.rows])
    assert np.array_equal(resampled.Y, chosen.Y)


# --- training ------------------------------------------------------------------------------------------------------


@every_name
@pytest.mark.parametrize("engine", ["fused", "torch"])
def test_the_loop_takes_the_steps_that_one_would_take_by_hand(name: str, engine: EngineName) -> None:
    """Rows, clones, then rows outside the split; node weights of the split with its clones; the clones of the seed."""
    given = coarse_rows()
    chosen = settings(engine=engine, resample=name, seed=3, epochs=2)
    clones = resample(given, name, 3)
    assert clones.rows.tolist() != resample(given, name, 0).rows.tolist()
    X = np.concatenate([given.X[clones.rows], given.X[given.split :]])
    Y = np.concatenate([clones.Y, given.Y[given.split :]])
    weights = node_weights(clones.Y, given.hierarchy, 0.25)
    for others in (given.Y[: given.split], Y):  # else the losses would not tell which rows gave the weights
        assert not np.array_equal(weights.negative, node_weights(others, given.hierarchy, 0.25).negative)
    shape = chosen.shape(8, 20)
    objective = Objective(given.hierarchy, weights, None, 0.25, 1.0, given.scored, "mean")
    by_hand = make_engine(engine, shape, initial_parameters(shape, 3), objective, Adam(1e-3, 1e-5), 3)
    losses = []
    for epoch in range(2):
        order = row_order(len(X), 3, epoch)
        for start in range(0, len(X), 16):
            batch = order[start : start + 16]
            losses.append(by_hand.step(X[batch], Y[batch], None))

    watch = Recorder()
    model = train(given, chosen, watch=watch)
    assert watch.losses == losses
    assert all(np.array_equal(model.parameters[part], by_hand.state()[part]) for part in shape.parameter_shapes)


@every_name
def test_an_epoch_goes_through_the_clones_too(name: str) -> None:
    watch = Recorder()
    train(rows(), settings(resample=name, batch_size=1, epochs=1), watch=watch)
    clones = len(resample(rows(), name, 0).rows) - len(rows().split_Y)
    assert watch.outlook is not None
    assert watch.outlook.batches == watch.outlook.steps == len(watch.losses) == len(rows()) + clones
    watch = Recorder()
    train(rows(), settings(resample=name, epochs=1), watch=watch)
    assert watch.outlook is not None
    assert watch.outlook.batches == math.ceil((len(rows()) + clones) / 16)


@every_name
def test_training_on_resampled_rows_is_resampling_first(name: str) -> None:
    sampler = make_resampler(name, rows().hierarchy, 0)
    assert sampler is not None
    assert same(train(rows(), settings(resample=name)), train(rows().resampled(sampler), settings()))


@every_name
def test_a_model_knows_the_rows_that_it_was_given(name: str) -> None:
    """Positives are of rows that exist, and the fingerprint is of the rows before resampling."""
    plain, resampled = train(rows(), settings(epochs=1)), train(rows(), settings(epochs=1, resample=name))
    assert resampled.training_positives.tolist() == [int(rows().Y[:, node].sum()) for node in range(20)]
    assert resampled.fingerprints["rows"] == plain.fingerprints["rows"] == rows().fingerprint
    assert resampled.fingerprints["hierarchy"] == plain.fingerprints["hierarchy"]
    assert resampled.fingerprints["settings"] != plain.fingerprints["settings"]
    assert resampled.settings.resample == name


def test_every_way_of_resampling_is_a_training_of_its_own() -> None:
    names = ("none", *RESAMPLING)
    models = {name: train(rows(), settings(epochs=1, resample=name)) for name in names}
    assert same(models["none"], train(rows(), settings(epochs=1)))
    assert not any(same(models[a], models[b]) for a in names for b in names if a != b)
    assert len({model.fingerprints["settings"] for model in models.values()}) == len(names)


@every_name
def test_the_seed_decides(name: str) -> None:
    first = train(rows(), settings(resample=name, epochs=1))
    assert same(first, train(rows(), settings(resample=name, epochs=1)))
    assert not same(first, train(rows(), settings(resample=name, epochs=1, seed=1)))


def test_validation_rows_are_measured_as_they_are() -> None:
    valid = data().valid
    assert valid is not None
    model = train(rows(), settings(resample="lpros"), valid=valid)
    assert model.history[-1].valid == summary(valid.Y, model.predict_proba(valid.X))
    assert same_parameters(model, train(rows(), settings(resample="lpros")))


# --- stopping and going on -----------------------------------------------------------------------------------------


def stop_at(batch: int, folder: Path, chosen: Settings) -> None:
    with pytest.raises(Interrupted):
        train(rows(), chosen, folder=folder, watch=Recorder(batch, lambda: signal.raise_signal(signal.SIGINT)))


@every_name
@pytest.mark.parametrize("place", ["in an epoch", "between epochs"])
def test_resuming_is_never_having_stopped(tmp_path: Path, name: str, place: str) -> None:
    chosen = settings(resample=name, schedule="linear", seed=5)
    watch = Recorder()
    undisturbed = train(rows(), chosen, watch=watch)
    assert watch.outlook is not None
    batches = watch.outlook.batches
    done = batches + 4 if place == "in an epoch" else batches
    stop_at(done, tmp_path, chosen)
    rest = Recorder()
    resumed = train(rows(), chosen, folder=tmp_path, resume=True, watch=rest)
    assert rest.losses == watch.losses[done:]
    assert same(resumed, undisturbed)


@pytest.mark.parametrize(
    ("before", "after"), [("none", "lpros"), ("lpros", "none"), ("lpros", "lpros-textbook"), ("hros-pd", "lpros")]
)
def test_a_training_on_other_clones_is_refused(tmp_path: Path, before: str, after: str) -> None:
    stop_at(4, tmp_path, settings(resample=before))
    with pytest.raises(ResumeError, match=f"resample was '{before}' and is now '{after}'$"):
        train(rows(), settings(resample=after), folder=tmp_path, resume=True)


# --- settings ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "LPROS", "smote", None, 1])
def test_an_unknown_name_is_refused_before_anything_is_computed(name: object) -> None:
    with pytest.raises(ArgumentError, match=r"resample: .*'none', 'lpros', 'lpros-textbook', 'hros-pd'"):
        settings(resample=name)


@pytest.mark.parametrize("name", ["none", *RESAMPLING])
def test_the_name_survives_a_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / "settings.toml"
    path.write_text(settings(resample=name).to_toml(), encoding="utf-8")
    assert Settings.from_toml(path).resample == name
