"""Trainings that give the same alone and divided among processes; as a program, what torchrun starts.

``python -m tests.engines.in_processes FOLDER`` writes what the first of several processes found into FOLDER.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save_file

from rarenode import NodeWeights, Settings, make_hierarchical
from rarenode.data.dataset import Dataset
from rarenode.engines import EncoderTraining, make_engine, several_processes
from rarenode.engines.engine import Engine
from rarenode.errors import Interrupted
from rarenode.models import initial_parameters
from rarenode.models.pixels import PixelEncoder, PixelInput
from rarenode.objective.uncertainties import UNCERTAINTIES
from rarenode.training.callbacks import Callback
from rarenode.training.loop import train_network
from tests.engines.problem import ADAM, SEED, objective_of, shape_of

Arrays = dict[str, NDArray[Any]]
DATA = make_hierarchical(200, nodes=30, depth=4, shape="dag", features=9)
X, Y = DATA.train.X.astype(np.float32), DATA.train.Y
KNOWN = Y | (np.random.default_rng(1).random(Y.shape) < 0.8)
PIXELS: NDArray[Any] = np.random.default_rng(2).integers(0, 256, (len(Y), 8 * 8 * 3), dtype=np.uint8)
SETTINGS = Settings(
    hidden_size=8,
    n_members=5,
    focus="gmu",
    model="mlp",
    epochs=4,
    batch_size=8,
    patience=2,
    holdout=0.2,
    engine="torch",
)


def batch(step: int, rows: int = 7) -> NDArray[np.int64]:
    return np.random.default_rng(step).integers(len(Y), size=rows)


def found_by(engine: Engine, losses: list[float], rows: NDArray[Any]) -> Arrays:
    return {"losses": np.array(losses), "probs": engine.probs(rows[:20]), **engine.state()}


def members(engine: str, focus: str | None, count: int = 5) -> Arrays:
    """An ensemble, with every argument that a step can have."""
    shape = shape_of(DATA, members=count)
    objective = objective_of(DATA, focus=focus, u0=0.3, k=1.5, reduction="mean")
    trained = make_engine(engine, shape, initial_parameters(shape, SEED), objective, ADAM, SEED)  # type: ignore[arg-type]
    nodes = len(DATA.hierarchy)
    weights = NodeWeights(np.linspace(0.1, 2, nodes), np.linspace(3, 0.5, nodes))
    losses = []
    for step in range(6):
        chosen = batch(step)
        given = (weights, np.linspace(0.5, 2, 7, dtype=np.float32), KNOWN[chosen]) if step == 3 else ()
        losses.append(float(trained.step(X[chosen], Y[chosen], *given)))
    found = found_by(trained, losses, X)
    np.testing.assert_allclose(
        trained.logits(X[:3])[:, :, 0], logits_by_hand(trained.parameters(), X[:3])[:, :, 0], rtol=1e-4, atol=1e-5
    )
    return found


def logits_by_hand(parameters: Arrays, rows: NDArray[np.float32]) -> NDArray[np.float32]:
    hidden = np.broadcast_to(rows, (len(parameters["layer0.bias"]), *rows.shape))
    for layer in range(3):
        weight, bias = parameters[f"layer{layer}.weight"], parameters[f"layer{layer}.bias"]
        hidden = np.einsum("mri,moi->mro", hidden, weight) + bias[:, None]
        hidden = np.maximum(hidden, 0) if layer < 2 else hidden
    return hidden


def restored(engine: str) -> Arrays:
    """An engine that goes on from the state of another."""
    shape = shape_of(DATA, members=5)
    objective, start = objective_of(DATA, focus="epistemic_kl"), initial_parameters(shape, SEED)
    first = make_engine(engine, shape, start, objective, ADAM, SEED)  # type: ignore[arg-type]
    losses = [float(first.step(X[batch(step)], Y[batch(step)])) for step in range(3)]
    state = first.state()
    again = make_engine(engine, shape, initial_parameters(shape, 99), objective, ADAM, SEED)  # type: ignore[arg-type]
    again.restore(state)
    losses += [float(again.step(X[batch(step)], Y[batch(step)])) for step in range(3, 6)]
    return found_by(again, losses, X)


def encoder(reduction: str, freezes: bool) -> Arrays:
    """An encoder that is trained, with images that are varied, and a batch with fewer rows than processes."""
    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU(), torch.nn.Conv2d(4, 6, 6)]
    module = torch.nn.Sequential(*layers, torch.nn.Flatten())
    pixels = PixelEncoder(module, PixelInput(8, (0.5, 0.4, 0.3), (0.5, 0.6, 0.7)))
    shape = replace(shape_of(DATA, members=3), features=pixels.width)
    objective = objective_of(DATA, focus="gmu", reduction=reduction)
    how = EncoderTraining(learning_rate=1e-3, freezes_batchnorm=freezes, augmentation=("flip", "crop", "colour"))
    start = initial_parameters(shape, SEED)
    trained = make_engine("auto", shape, start, objective, ADAM, SEED, encoder=pixels, encoder_training=how)
    losses = []
    for step, rows in enumerate((7, 8, 1, 6)):
        chosen = batch(step, rows)
        known = KNOWN[chosen] if step == 1 else None
        losses.append(float(trained.step(PIXELS[chosen], Y[chosen], None, None, known)))
    found = found_by(trained, losses, PIXELS)
    trained.restore(trained.state())
    found["next"] = np.array(float(trained.step(PIXELS[:5], Y[:5])))
    return found


class StopAt(Callback):
    """Ctrl-C after so many batches."""

    def __init__(self, batches: int) -> None:
        self.left = batches

    def on_batch(self, epoch: int, batch: int, loss: float) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


def rows(part: Dataset | None) -> Dataset:
    assert part is not None
    return replace(part, X=part.X.astype(np.float32))


def training(folder: Path | None = None, stop_after: int | None = None, resume: bool = False) -> Arrays:
    """A whole training with early stopping; one that is stopped leaves a checkpoint."""
    callback = None if stop_after is None else StopAt(stop_after)
    try:
        trained = train_network(
            rows(DATA.train), SETTINGS, valid=rows(DATA.valid), folder=folder, resume=resume, callback=callback
        )
    except Interrupted:
        return {}
    measured = [[record.loss, record.valid.ap] for record in trained.history if record.valid is not None]
    return {"history": np.array(measured), **trained.model.parameters}


CASES: dict[str, Callable[[], Arrays]] = {
    **{
        f"members {engine} {focus}": partial(members, engine, focus)
        for engine in ("torch", "fused")
        for focus in (None, "focal", *UNCERTAINTIES)
    },
    "fewer members than processes": partial(members, "fused", "gmu", 3),
    **{f"restored {engine}": partial(restored, engine) for engine in ("torch", "fused")},
    **{f"encoder {reduction}": partial(encoder, reduction, True) for reduction in ("mean", "sum")},
    "training": training,
}


def main(folder: Path) -> None:
    with several_processes() as is_first:
        if is_first:
            for name, case in CASES.items():
                save_file({key: np.ascontiguousarray(value) for key, value in case().items()}, folder / name)
            found = encoder("mean", False)
            save_file({key: np.ascontiguousarray(value) for key, value in found.items()}, folder / "batch statistics")
            save_file(training(folder / "alone", resume=True), folder / "resumed here")
            training(folder / "several", stop_after=20)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
