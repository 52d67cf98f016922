"""Both engines compute the same step; a naive dense training confirms what that step is; seeds and threads."""

from __future__ import annotations

import multiprocessing
from itertools import cycle
from typing import Any

import numba
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from rarenode import NodeWeights
from rarenode.data.dataset import DatasetSplits
from rarenode.engines import Objective, available_threads
from rarenode.engines.dropout import dropout_masks
from rarenode.engines.fused_engine import FusedEngine
from rarenode.engines.threads import ThreadChoice
from rarenode.engines.torch_engine import TorchEngine
from rarenode.errors import ArgumentError, NotClosedError, TrainingError
from rarenode.models import MlpEnsemble, initial_parameters
from rarenode.objective.uncertainties import UNCERTAINTIES
from tests.engines.problem import ADAM, SEED, assert_same_state, objective_of, shape_of, steps


@pytest.mark.parametrize("focus", [None, "focal", *UNCERTAINTIES])
def test_the_engines_agree_for_every_focus(data: DatasetSplits, focus: str | None) -> None:
    shape, objective = shape_of(data, members=3), objective_of(data, focus=focus, u0=0.3, k=1.5)
    parameters = initial_parameters(shape, SEED)
    engines = [E(shape, parameters, objective, ADAM, SEED) for E in (TorchEngine, FusedEngine)]
    losses = [steps(engine, data, 12) for engine in engines]
    np.testing.assert_allclose(losses[0], losses[1], rtol=2e-5)
    assert_same_state(engines, tolerance=5e-4)


@pytest.mark.parametrize(
    "changes",
    [
        {"members": 1},
        {"layers": 1},
        {"layers": 2},
        {"layers": 5, "members": 2},
        {"activation": "tanh", "members": 2},
        {"dropout": 0.0},
        {"ensemble": "dropout", "members": 4},
        {"ensemble": "dropout", "members": 3, "activation": "tanh", "layers": 2},
        {"hidden": 37, "members": 5},
    ],
)
@pytest.mark.parametrize("batch", [1, 4, 7])
def test_the_engines_agree_for_every_shape_and_batch(data: DatasetSplits, changes: dict[str, Any], batch: int) -> None:
    shape, objective = shape_of(data, **changes), objective_of(data, focus="gmu", reduction="mean")
    parameters = initial_parameters(shape, SEED)
    engines = [E(shape, parameters, objective, ADAM, SEED) for E in (TorchEngine, FusedEngine)]
    losses = [steps(engine, data, 8, batch) for engine in engines]
    np.testing.assert_allclose(losses[0], losses[1], rtol=2e-5)
    assert_same_state(engines, tolerance=5e-4)
    ours, theirs = (engine.logits(data.test.X) for engine in engines)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)


def test_weights_for_one_step(data: DatasetSplits) -> None:
    shape, objective = shape_of(data), objective_of(data)
    nodes = len(data.hierarchy)
    other = NodeWeights(positive=np.linspace(0.1, 2, nodes), negative=np.linspace(3, 0.5, nodes))
    engines = [E(shape, initial_parameters(shape, 0), objective, ADAM, 0) for E in (TorchEngine, FusedEngine)]
    X, Y = data.train.X[:4], data.train.Y[:4]
    plain = [float(engine.step(X, Y)) for engine in engines]
    changed = [float(engine.step(X, Y, other)) for engine in engines]
    np.testing.assert_allclose(changed[0], changed[1], rtol=2e-5)
    assert abs(plain[0] - changed[0]) > 0.01 * plain[0]
    assert_same_state(engines, tolerance=5e-4)


def naive_training(
    data: DatasetSplits, shape: MlpEnsemble, objective: Objective, count: int
) -> list[NDArray[np.float64]]:
    """The same network in float64 with the paper's dense formula, one member after another, Adam written out."""
    parameters = [
        [torch.tensor(v[m], dtype=torch.float64, requires_grad=True) for v in initial_parameters(shape, SEED).values()]
        for m in range(shape.members)
    ]
    moments = [[(torch.zeros_like(p), torch.zeros_like(p)) for p in member] for member in parameters]
    nodes = len(data.hierarchy)
    reach = torch.eye(nodes, dtype=torch.float64)
    for name in data.hierarchy.nodes:
        for below in data.hierarchy.descendants(name):
            reach[data.hierarchy.index[name], data.hierarchy.index[below]] = 1
    assert objective.weights is not None
    assert objective.scored is not None
    positive, negative = torch.tensor(objective.weights.positive), torch.tensor(objective.weights.negative)
    for step in range(count):
        rows = np.random.default_rng(step).integers(len(data.train), size=5)
        X = torch.tensor(data.train.X[rows], dtype=torch.float64)
        y = torch.tensor(data.train.Y[rows], dtype=torch.float64)
        masks = [
            torch.tensor(dropout_masks(SEED, step, layer, shape.members, 5, shape.hidden, shape.dropout)).double()
            for layer in range(shape.layers - 1)
        ]
        probs = []
        for m, member in enumerate(parameters):
            h = X
            for layer in range(shape.layers):
                h = h @ member[2 * layer].T + member[2 * layer + 1]
                if layer < shape.layers - 1:
                    h = h.relu() * masks[layer][m] / (1 - shape.dropout)
            probs.append(h.sigmoid())
        p = torch.stack(probs).detach()
        mean, sigma = p.mean(0), p.std(0)
        margin = 2 * torch.maximum(mean, 1 - mean) - 1
        U = 1 - margin * (1 - torch.exp(-margin / (2 * sigma + 1e-10)))
        total = torch.zeros((), dtype=torch.float64)
        for prob in probs:
            over_all = (reach * prob.unsqueeze(1)).max(dim=2).values
            over_positive = (reach * (y * prob).unsqueeze(1)).max(dim=2).values
            constrained = (1 - y) * over_all + y * over_positive
            bce = -(y * constrained.log() + (1 - y) * (1 - constrained).log())
            weight = torch.where(y == 1, positive, negative) * torch.tensor(objective.scored)
            total = total + (weight * (objective.u0 + U**objective.k) * bce).sum()
        gradients = torch.autograd.grad(total, [p for member in parameters for p in member])
        flat = [
            (p, mv) for member, mvs in zip(parameters, moments, strict=True) for p, mv in zip(member, mvs, strict=True)
        ]
        with torch.no_grad():
            for (p, (m1, m2)), gradient in zip(flat, gradients, strict=True):
                g = gradient + ADAM.weight_decay * p
                m1.mul_(ADAM.beta1).add_((1 - ADAM.beta1) * g)
                m2.mul_(ADAM.beta2).add_((1 - ADAM.beta2) * g * g)
                first = m1 / (1 - ADAM.beta1 ** (step + 1))
                second = m2 / (1 - ADAM.beta2 ** (step + 1))
                p.sub_(ADAM.learning_rate * first / (second.sqrt() + ADAM.epsilon))
    return [np.stack([member[i].detach().numpy() for member in parameters]) for i in range(len(parameters[0]))]


@pytest.mark.parametrize("make", [TorchEngine, FusedEngine])
def test_an_engine_trains_as_the_naive_dense_formula_does(data: DatasetSplits, make: Any) -> None:
    shape, objective = shape_of(data, members=3), objective_of(data, focus="gmu")
    engine = make(shape, initial_parameters(shape, SEED), objective, ADAM, SEED)
    for count in (1, 2, 10):
        while engine.steps < count:
            rows = np.random.default_rng(engine.steps).integers(len(data.train), size=5)
            engine.step(data.train.X[rows], data.train.Y[rows])
        naive = naive_training(data, shape, objective, count)
        for name, expected in zip(shape.parameter_shapes, naive, strict=True):
            np.testing.assert_allclose(engine.state()[name], expected, rtol=1e-3, atol=2e-5, err_msg=f"{name}, {count}")


class Prescribed(ThreadChoice):
    """Uses given numbers of threads in turn."""

    def __init__(self, most: int, numbers: list[int]) -> None:
        super().__init__(most)
        self.left = cycle(numbers)
        self.threads = next(self.left)

    def record(self, seconds: float) -> None:
        self.threads = next(self.left)


@pytest.mark.parametrize(
    ("members", "ensemble"), [(1, "independent"), (2, "independent"), (5, "independent"), (3, "dropout")]
)
def test_the_number_of_threads_changes_no_bit_of_fused(data: DatasetSplits, members: int, ensemble: Any) -> None:
    shape = shape_of(data, members=members, ensemble=ensemble, hidden=33)
    most = numba.get_num_threads()
    states = []
    for numbers in ([1], [2], [most], [1, 2, 2, most, 1]):
        engine = FusedEngine(shape, initial_parameters(shape, 3), objective_of(data, focus="gmu"), ADAM, 3)
        engine._available = most
        engine._choice = Prescribed(most, [min(number, most) for number in numbers])
        steps(engine, data, 10)
        assert numba.get_num_threads() == most  # as it was
        states.append(engine.state())
    for state in states[1:]:
        for name, value in states[0].items():
            np.testing.assert_array_equal(value, state[name])


def test_fused_stays_within_the_limits_of_its_caller(data: DatasetSplits) -> None:
    shape = shape_of(data)
    free, limited = (
        FusedEngine(shape, initial_parameters(shape, 3), objective_of(data), ADAM, 3, n_jobs) for n_jobs in (None, 1)
    )
    most = numba.get_num_threads()
    try:
        for limit in range(1, most + 1):
            numba.set_num_threads(limit)
            for engine, expected in ((free, min(limit, available_threads())), (limited, 1)):
                steps(engine, data, 2)
                assert engine._choice.most == expected
                assert numba.get_num_threads() == limit
    finally:
        numba.set_num_threads(most)


@pytest.mark.parametrize("make", [TorchEngine, FusedEngine])
def test_a_restored_engine_goes_on_to_the_last_bit(data: DatasetSplits, make: Any) -> None:
    shape, objective = shape_of(data, members=2), objective_of(data, focus="bbma")
    engine = make(shape, initial_parameters(shape, 1), objective, ADAM, 1)
    steps(engine, data, 5)
    again = make(shape, initial_parameters(shape, 99), objective, ADAM, 1)
    again.restore(engine.state())
    assert again.steps == 5
    assert steps(engine, data, 5) == steps(again, data, 5)
    assert_same_state([engine, again], tolerance=0)
    wrong = engine.state() | {"layer0.weight": np.zeros((1, 2, 3), dtype=np.float32)}
    with pytest.raises(ArgumentError, match=r"layer0\.weight"):
        again.restore(wrong)


def test_the_seed_decides(data: DatasetSplits) -> None:
    shape, objective = shape_of(data), objective_of(data)
    runs = []
    for seed in (1, 1, 2):
        engine = FusedEngine(shape, initial_parameters(shape, seed), objective, ADAM, seed)
        runs.append(steps(engine, data, 5))
    assert runs[0] == runs[1] != runs[2]


@pytest.mark.parametrize("make", [TorchEngine, FusedEngine])
def test_unclosed_labels_are_refused(data: DatasetSplits, make: Any) -> None:
    shape = shape_of(data)
    engine = make(shape, initial_parameters(shape, 0), objective_of(data), ADAM, 0)
    Y = np.zeros((1, len(data.hierarchy)), dtype=bool)
    Y[0, -1] = True
    with pytest.raises(NotClosedError, match="row 0"):
        engine.step(data.train.X[:1], Y)


def test_a_loss_that_is_not_finite_changes_nothing_in_fused(data: DatasetSplits) -> None:
    shape = shape_of(data)
    engine = FusedEngine(shape, initial_parameters(shape, 0), objective_of(data), ADAM, 0)
    before = engine.state()
    X = data.train.X[:4].copy()
    X[0, 0] = np.nan
    assert not np.isfinite(engine.step(X, data.train.Y[:4]))
    for name, value in engine.state().items():
        if name != "steps":
            np.testing.assert_array_equal(value, before[name])


def test_masks_keep_the_right_share_and_differ() -> None:
    masks = dropout_masks(seed=3, step=5, layer=1, members=4, rows=50, width=200, dropout=0.7)
    assert abs(masks.mean() - 0.3) < 0.01
    assert np.abs(masks.mean(axis=(0, 1)) - 0.3).max() < 0.15
    flat = masks.reshape(4, -1)
    assert np.abs(np.corrcoef(flat) - np.eye(4)).max() < 0.05
    for change in ({"seed": 4}, {"step": 6}, {"layer": 0}):
        other = dropout_masks(
            **({"seed": 3, "step": 5, "layer": 1} | change), members=4, rows=50, width=200, dropout=0.7
        )
        assert abs(np.corrcoef(flat.ravel(), other.ravel())[0, 1]) < 0.05
    assert dropout_masks(0, 0, 0, 1, 9, 9, 0.0).all()


def test_fused_checks_shapes_before_it_trusts_them(data: DatasetSplits) -> None:
    shape, objective = shape_of(data), objective_of(data)
    engine = FusedEngine(shape, initial_parameters(shape, 0), objective, ADAM, 0)
    X, Y = data.train.X[:4], data.train.Y[:4]
    for wrong_X, wrong_Y in ((X[:, 1:], Y), (X, Y[:, 1:]), (X[:3], Y), (X.ravel(), Y)):
        with pytest.raises(ArgumentError, match=r"\(rows, 9\) and \(rows, 30\)"):
            engine.step(wrong_X, wrong_Y)
    other = MlpEnsemble(9, 29, hidden=4)
    with pytest.raises(ArgumentError, match="29 nodes"):
        FusedEngine(other, initial_parameters(other, 0), objective, ADAM, 0)


def _step_in_child(answers: Any, engine: FusedEngine, X: NDArray[np.float32], Y: NDArray[np.bool_]) -> None:
    try:
        engine.step(X, Y)
    except TrainingError as error:
        answers.put(str(error))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_process_gets_an_error_instead_of_being_killed(data: DatasetSplits) -> None:
    shape = shape_of(data)
    engine = FusedEngine(shape, initial_parameters(shape, 0), objective_of(data), ADAM, 0)
    engine.step(data.train.X[:4], data.train.Y[:4])
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=_step_in_child, args=(answers, engine, data.train.X[:4], data.train.Y[:4]))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert "spawn" in answers.get()


@pytest.mark.parametrize("make", [TorchEngine, FusedEngine])
def test_parameters_are_copies_of_what_was_learned(data: DatasetSplits, make: Any) -> None:
    shape = shape_of(data, members=2)
    start = initial_parameters(shape, 0)
    kept = {name: array.copy() for name, array in start.items()}
    engine = make(shape, start, objective_of(data), ADAM, 0)
    steps(engine, data, 3)
    parameters, state = engine.parameters(), engine.state()
    assert parameters.keys() == shape.parameter_shapes.keys()
    for name, array in parameters.items():
        np.testing.assert_array_equal(array, state[name])
        np.testing.assert_array_equal(start[name], kept[name])  # the caller's arrays are not trained
        array[...] = 0
    for name, array in engine.parameters().items():
        np.testing.assert_array_equal(array, state[name])
