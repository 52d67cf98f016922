"""Shapes and first parameters of ensembles, and the torch module that holds them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

from rarenode import Hierarchy
from rarenode.errors import ArgumentError, DataError
from rarenode.models import MlpEnsemble, initial_parameters
from rarenode.models.mlp import Mlp
from rarenode.models.network import MlpNetwork


@pytest.mark.parametrize("use", [Mlp.member_probs, Mlp.compute])
def test_weights_that_are_too_large_are_an_error_and_no_nan(use: Any) -> None:
    shape = MlpEnsemble(7, 2, hidden=3, members=2)
    parameters = {name: np.full_like(each, 3e38) for name, each in initial_parameters(shape, 0).items()}
    parameters["layer2.weight"][:, :, 1] *= -1  # the sum is infinity minus infinity
    with pytest.raises(DataError, match="returned NaN: its weights, or the features, are too large"):
        use(Mlp(shape, parameters, Hierarchy.from_edges([("a", "b")])), np.ones((1, 7), dtype=np.float32))


def test_shapes_of_independent_and_dropout_members() -> None:
    independent = MlpEnsemble(7, 5, hidden=3, layers=3, members=4)
    assert (independent.models, independent.passes) == (4, 1)
    assert independent.sizes == ((7, 3), (3, 3), (3, 5))
    assert independent.parameter_shapes["layer2.weight"] == (4, 5, 3)
    assert independent.parameter_shapes["layer2.bias"] == (4, 5)
    dropout = MlpEnsemble(7, 5, hidden=3, layers=1, members=4, ensemble="dropout")
    assert (dropout.models, dropout.passes) == (1, 4)
    assert dropout.sizes == ((7, 5),)


def test_parameters_begin_as_linear_layers_of_pytorch_do() -> None:
    shape = MlpEnsemble(400, 50, hidden=300, members=2)
    parameters = initial_parameters(shape, seed=0)
    for layer, (inputs, outputs) in enumerate(shape.sizes):
        torch.manual_seed(0)
        theirs = torch.nn.Linear(inputs, outputs)
        for part, reference in (("weight", theirs.weight), ("bias", theirs.bias)):
            ours = parameters[f"layer{layer}.{part}"]
            assert ours.dtype == np.float32
            assert np.abs(ours).max() <= 1 / np.sqrt(inputs)
            if part == "weight":
                assert ours.std() == pytest.approx(float(reference.detach().std()), rel=0.02)
                assert abs(ours.mean()) < 0.02 / np.sqrt(inputs)


def test_output_biases_may_begin_as_log_odds() -> None:
    shape = MlpEnsemble(4, 3, hidden=5, members=2)
    random, prior = initial_parameters(shape, 0), initial_parameters(shape, 0, np.array([0.5, 1e-5, 0.9]))
    np.testing.assert_allclose(prior["layer2.bias"], [[0, math.log(1e-5 / (1 - 1e-5)), math.log(9)]] * 2, rtol=1e-6)
    assert all(np.array_equal(random[name], prior[name]) for name in random.keys() - {"layer2.bias"})


def test_a_model_does_not_depend_on_how_many_others_there_are() -> None:
    few, many = (initial_parameters(MlpEnsemble(4, 3, hidden=5, members=n), seed=9) for n in (2, 6))
    for name, value in few.items():
        np.testing.assert_array_equal(value, many[name][:2])
        assert (value[0] != value[1]).any()
    other = initial_parameters(MlpEnsemble(4, 3, hidden=5, members=2), seed=10)
    assert (few["layer0.weight"] != other["layer0.weight"]).all()


def test_the_module_is_one_perceptron_for_each_member() -> None:
    shape = MlpEnsemble(4, 3, hidden=5, members=3, activation="tanh")
    parameters = initial_parameters(shape, 1)
    X = torch.randn(6, 4)
    logits = MlpNetwork(shape, parameters)(X)
    for member in range(3):
        h = X
        for layer in range(3):
            h = h @ torch.tensor(parameters[f"layer{layer}.weight"][member]).T
            h = h + torch.tensor(parameters[f"layer{layer}.bias"][member])
            h = h.tanh() if layer < 2 else h
        torch.testing.assert_close(logits[member], h)


def test_the_module_uses_the_arrays_as_they_are() -> None:
    """Without a copy and, though files are often mapped read-only, without a warning."""
    shape = MlpEnsemble(4, 3, hidden=5, members=3)
    parameters = initial_parameters(shape, 1)
    parameters["layer1.weight"].flags.writeable = False
    parameters["layer0.weight"] = np.asfortranarray(parameters["layer0.weight"])
    parameters["layer2.bias"] = parameters["layer2.bias"].astype(np.float64)
    network = MlpNetwork(shape, parameters)
    for name, array in parameters.items():
        tensor = network.parameter(name).detach()
        np.testing.assert_array_equal(tensor.numpy(), array)
        assert tensor.dtype == torch.float32
        is_shared = tensor.data_ptr() == array.ctypes.data
        assert is_shared == (name not in ("layer0.weight", "layer2.bias"))


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"hidden": 0}, "hidden"),
        ({"layers": 1.5}, "layers"),
        ({"members": -1}, "members"),
        ({"dropout": 1.0}, "dropout"),
        ({"activation": "gelu"}, "gelu"),
        ({"ensemble": "both"}, "both"),
    ],
)
def test_bad_shapes_are_named(wrong: dict[str, Any], word: str) -> None:
    with pytest.raises(ArgumentError, match=word):
        MlpEnsemble(4, 3, **wrong)


def test_weights_that_are_too_large_are_named() -> None:
    shape = MlpEnsemble(4, 3, hidden=5, members=3)
    parameters = initial_parameters(shape, 1)
    parameters["layer0.weight"] = np.clip(parameters["layer0.weight"] * np.float32(3e38), -3e38, 3e38)
    model = Mlp(shape, parameters, Hierarchy.from_edges([("a", "b"), ("a", "c")]))
    with pytest.raises(DataError, match="NaN: its weights, or the features, are too large"):
        model.compute(np.full((1, 4), 100, dtype=np.float32))
