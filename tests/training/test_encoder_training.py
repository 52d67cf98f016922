"""Images from pixels to a trained network: it learns, stops at the best epoch, and resumes to the last bit."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors import safe_open

from rarenode._io.arrays import read_note, write_arrays
from rarenode.config import Settings
from rarenode.engines import Adam, EncoderTraining, Objective, make_engine
from rarenode.errors import ArgumentError, DataError, Interrupted, ResumeError, TrainingError
from rarenode.metrics import summary
from rarenode.models import initial_parameters
from rarenode.models.pixels import PixelEncoder, PixelInput
from rarenode.resampling import make_resampler
from rarenode.training.checkpoint import FILE
from rarenode.training.loop import TrainedNetwork, row_order, train_network
from tests.pictures import PIXELS, pictures, tiny_encoder, tiny_module
from tests.training.problem import Recorder

ROWS, VALID = pictures(60), pictures(40, seed=1)


def settings(**changes: Any) -> Settings:
    small: dict[str, Any] = {
        "hidden_size": 12, "n_layers": 2, "dropout": 0.2, "batch_size": 16, "epochs": 3, "learning_rate": 1e-2,
        "encoder_learning_rate": 1e-2, "encoder": "random:tiny", "train_encoder": True, "weighting": "none",
        "augmentation": "none", "checkpoint_minutes": None,
    }  # fmt: skip
    return Settings.preset("paper", **(small | changes))


def features(encoder: PixelEncoder, X: NDArray[np.uint8]) -> NDArray[np.float32]:
    with torch.no_grad():
        return np.asarray(encoder(torch.tensor(X)).numpy())


def learned_encoder(network: TrainedNetwork) -> PixelEncoder:
    assert network.encoder_state is not None
    module = tiny_module(seed=99)
    module.load_state_dict({name: torch.tensor(array) for name, array in network.encoder_state.items()})
    return PixelEncoder(module, PIXELS)


def probs(network: TrainedNetwork, X: NDArray[np.uint8]) -> NDArray[np.float32]:
    return network.model.compute(features(learned_encoder(network), X)).probs


def same(ours: TrainedNetwork, theirs: TrainedNetwork) -> bool:
    assert ours.encoder_state is not None
    assert theirs.encoder_state is not None
    arrays = [(network.model.arrays() | dict(network.encoder_state or {})) for network in (ours, theirs)]
    outcomes = [[(r.epoch, r.loss, r.valid) for r in network.history] for network in (ours, theirs)]
    equal = all(np.array_equal(array, arrays[1][name]) for name, array in arrays[0].items())
    return equal and arrays[0].keys() == arrays[1].keys() and outcomes[0] == outcomes[1]


def press_ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def test_a_network_learns_from_pixels() -> None:
    encoder = tiny_encoder()
    before = encoder.fingerprint
    network = train_network(ROWS, settings(epochs=40, augmentation="flip,crop,colour"), encoder=encoder)
    assert network.engine == "torch"
    assert network.model.shape.features == 6
    assert ((probs(network, VALID.X) > 0.5) == VALID.Y).mean() > 0.95
    assert encoder.fingerprint == before  # a copy was trained
    assert network.encoder_state is not None
    assert network.encoder_state.keys() == encoder.module.state_dict().keys()


def test_the_loop_takes_the_same_steps_as_a_loop_by_hand() -> None:
    chosen = settings(augmentation="flip,colour", encoder_batchnorm="frozen", encoder_learning_rate=3e-3, seed=4)
    network = train_network(ROWS, chosen, encoder=tiny_encoder())
    how = EncoderTraining(3e-3, True, ("flip", "colour"), "auto")
    shape = network.model.shape
    by_hand = make_engine(
        "torch",
        shape,
        initial_parameters(shape, 4),
        Objective(ROWS.hierarchy, scored=ROWS.scored),
        Adam(1e-2, 1e-5),
        4,
        encoder=tiny_encoder(),
        encoder_training=how,
    )
    for epoch in range(3):
        order = row_order(60, 4, epoch)
        for begin in range(0, 60, 16):
            chosen_rows = order[begin : begin + 16]
            by_hand.step(ROWS.X[chosen_rows], ROWS.Y[chosen_rows])
    arrays = network.model.arrays() | {f"encoder.module.{n}": a for n, a in (network.encoder_state or {}).items()}
    assert all(np.array_equal(arrays.pop(name), array) for name, array in by_hand.parameters().items())
    assert not arrays
    free = network.model.logits(features(learned_encoder(network), VALID.X))
    np.testing.assert_allclose(free, by_hand.logits(VALID.X), rtol=1e-4, atol=1e-5)


def test_a_frozen_encoder_is_not_part_of_the_result() -> None:
    encoder = tiny_encoder()
    encoder.requires_grad_(False)
    network = train_network(ROWS, settings(), encoder=encoder)
    assert network.encoder_state is None
    plain = train_network(replace(ROWS, X=features(encoder, ROWS.X)), settings(engine="torch"))
    for name, array in plain.model.arrays().items():
        np.testing.assert_allclose(network.model.arrays()[name], array, rtol=1e-3, atol=1e-4)


def test_early_stopping_keeps_the_best_encoder_too() -> None:
    chosen = settings(epochs=40, patience=2, learning_rate=0.03, encoder_learning_rate=0.03)
    network = train_network(ROWS, chosen, encoder=tiny_encoder(), valid=VALID)
    aps = [record.valid.ap for record in network.history if record.valid is not None]
    best = int(np.argmax(aps)) + 1
    assert len(aps) == best + 2 < 40
    assert summary(VALID.Y, probs(network, VALID.X), scored=VALID.scored).ap == pytest.approx(max(aps), abs=1e-6)
    until_then = train_network(ROWS, chosen.changed(epochs=best, patience=None), encoder=tiny_encoder())
    assert same(replace(network, history=()), replace(until_then, history=()))


@pytest.mark.parametrize("batch", [2, 4, 9])
def test_resuming_is_never_having_stopped(tmp_path: Path, batch: int) -> None:
    chosen = settings(patience=3, augmentation="flip,crop,colour", dropout=0.5, resampling="lpros")

    def train(**how: Any) -> TrainedNetwork:
        return train_network(ROWS, chosen, encoder=tiny_encoder(dropout=0.3), valid=VALID, **how)

    with pytest.raises(Interrupted):
        train(folder=tmp_path, callback=Recorder(batch, press_ctrl_c))
    torch.manual_seed(123)
    assert same(train(folder=tmp_path, resume=True), train())


def test_clones_of_rows_are_the_rows() -> None:
    """Resampling points to pixels, and does not copy them; the steps are those on copies."""
    rare = np.flatnonzero(ROWS.Y[:, -1])
    uneven = ROWS.take(np.setdiff1d(np.arange(len(ROWS)), rare[2:]))
    resampler = make_resampler("lpros", ROWS.hierarchy, 0)
    assert resampler is not None
    chosen = resampler.resample(uneven.Y)
    assert len(chosen.rows) > len(uneven)
    copies = replace(uneven, X=uneven.X[chosen.rows], Y=chosen.Y)
    ours = train_network(uneven, settings(resampling="lpros"), encoder=tiny_encoder())
    assert same(ours, train_network(copies, settings(), encoder=tiny_encoder()))


def test_another_encoder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Interrupted):
        train_network(ROWS, settings(), encoder=tiny_encoder(), folder=tmp_path, callback=Recorder(2, press_ctrl_c))
    told = "another training: the encoder that training begins with is not the same$"
    with pytest.raises(ResumeError, match=told):
        train_network(ROWS, settings(), encoder=tiny_encoder(1), folder=tmp_path, resume=True)
    with pytest.raises(ResumeError, match=r"encoder_learning_rate was 0\.01 and is now 0\.1"):
        changed = settings(encoder_learning_rate=0.1)
        train_network(ROWS, changed, encoder=tiny_encoder(), folder=tmp_path, resume=True)


def rewrite(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    with safe_open(path, framework="numpy") as content:
        arrays = {name: content.get_tensor(name) for name in content.keys()}  # noqa: SIM118 (no dict)
    header = json.loads(read_note(path))
    change(header["key"])
    write_arrays(path, arrays, json.dumps(header))


def test_a_checkpoint_from_before_there_were_encoders_is_resumed(tmp_path: Path) -> None:
    rows = replace(ROWS, X=ROWS.X[:, :5].astype(np.float32))
    plain = Settings.preset("paper", hidden_size=4, batch_size=16, epochs=2, checkpoint_minutes=None)
    with pytest.raises(Interrupted):
        train_network(rows, plain, folder=tmp_path, callback=Recorder(2, press_ctrl_c))

    def as_before(key: dict[str, Any]) -> None:
        del key["encoder"]
        for name in ("encoder", "image_size", "train_encoder", "encoder_learning_rate", "encoder_batchnorm"):
            del key["settings"][name]
        del key["settings"]["augmentation"], key["settings"]["precision"]

    rewrite(tmp_path / FILE, as_before)
    with pytest.raises(ResumeError, match="encoder was 'resnet50' and is now 'vit'"):
        train_network(rows, plain.changed(encoder="vit"), folder=tmp_path, resume=True)
    resumed = train_network(rows, plain, folder=tmp_path, resume=True)
    expected = train_network(rows, plain).model.arrays()
    assert all(np.array_equal(array, expected[name]) for name, array in resumed.model.arrays().items())


def test_the_fused_engine_has_no_encoders() -> None:
    with pytest.raises(ArgumentError, match="with an encoder choose engine 'torch' or 'auto'"):
        train_network(ROWS, settings(engine="fused"), encoder=tiny_encoder())


def test_rows_that_are_no_pixels() -> None:
    told = r"images must be uint8 of the shape \(rows, 192 \(8 x 8 x 3\)\)"
    with pytest.raises(DataError, match=told):
        train_network(replace(ROWS, X=ROWS.X.astype(np.float32)), settings(), encoder=tiny_encoder())
    with pytest.raises(DataError, match=told):
        valid = replace(VALID, X=VALID.X[:, :-3])
        train_network(ROWS, settings(), encoder=tiny_encoder(), valid=valid)
    larger = PixelEncoder(tiny_module(), PixelInput(9, PIXELS.mean, PIXELS.deviation))
    with pytest.raises(DataError, match=r"243 \(9 x 9 x 3\)\); got uint8 \(60, 192\)"):
        train_network(ROWS, settings(), encoder=larger)
    with pytest.raises(DataError, match="float32"):
        train_network(ROWS, settings())


def test_a_loss_that_is_no_number_names_the_encoders_learning_rate() -> None:
    with pytest.raises(TrainingError, match=r"weight_decay \(1e-05\), encoder_learning_rate \(1e\+30\)\. Use"):
        train_network(ROWS, settings(encoder_learning_rate=1e30, epochs=9), encoder=tiny_encoder())


def test_bfloat16_learns_as_well() -> None:
    chosen = settings(epochs=40, precision="bfloat16")
    network = train_network(ROWS, chosen, encoder=tiny_encoder())
    assert ((probs(network, VALID.X) > 0.5) == VALID.Y).mean() > 0.95
