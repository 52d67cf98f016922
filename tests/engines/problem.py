"""A small problem that both engines can train on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rarenode import node_weights
from rarenode.data.dataset import DatasetSplits
from rarenode.engines import Adam, Objective
from rarenode.engines.engine import Engine
from rarenode.engines.fused_engine import FusedEngine
from rarenode.engines.torch_engine import TorchEngine
from rarenode.models import MlpEnsemble, initial_parameters

ADAM = Adam(learning_rate=1e-3, weight_decay=1e-2)
SEED = 7


def shape_of(data: DatasetSplits, **changes: Any) -> MlpEnsemble:
    settings = {"hidden": 16, "layers": 3, "dropout": 0.5} | changes
    return MlpEnsemble(data.train.X.shape[1], len(data.hierarchy), **settings)


def objective_of(data: DatasetSplits, **changes: Any) -> Objective:
    scored = np.arange(len(data.hierarchy)) != 0
    weights = node_weights(data.train.Y, data.hierarchy)
    return Objective(data.hierarchy, **({"weights": weights, "scored": scored, "reduction": "sum"} | changes))


def steps(engine: Engine, data: DatasetSplits, count: int, batch: int = 5) -> list[float]:
    losses = []
    for step in range(count):
        rows = np.random.default_rng(step).integers(len(data.train), size=batch)
        losses.append(float(engine.step(data.train.X[rows], data.train.Y[rows])))
    return losses


def assert_same_state(engines: Sequence[Engine], tolerance: float) -> None:
    first, second = (engine.state() for engine in engines)
    assert first.keys() == second.keys()
    for name, value in first.items():
        np.testing.assert_allclose(
            value, second[name], rtol=tolerance, atol=tolerance * np.abs(value).max(), err_msg=name
        )


def make_both(data: DatasetSplits, shape: MlpEnsemble, **changes: Any) -> list[Engine]:
    parameters = initial_parameters(shape, SEED)
    return [E(shape, parameters, objective_of(data, **changes), ADAM, SEED) for E in (TorchEngine, FusedEngine)]
