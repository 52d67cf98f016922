"""What holds for every kind of model, tested on each of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rarenode import Hierarchy, uncertainty
from rarenode.errors import ArgumentError, DataError
from rarenode.models import (
    MODELS,
    Blend,
    Forest,
    Mlp,
    MlpEnsemble,
    Model,
    Neighbours,
    fit_neighbours,
    grow_forest,
    initial_parameters,
    mlp,
)
from rarenode.objective.uncertainties import UNCERTAINTIES
from tests import oracles
from tests.strategies import closed_labels, hierarchies


class Problem(NamedTuple):
    hierarchy: Hierarchy
    features: int
    hidden: int
    size: float
    """Of parameters, from those that make every probability one half to those that make it 0 or 1."""
    Y: Any
    X: Any
    """(rows, features)"""


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    hierarchy: Hierarchy = draw(hierarchies())
    features = draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return Problem(
        hierarchy,
        features,
        hidden=draw(st.integers(1, 40)),
        size=draw(st.sampled_from((0.1, 1.0, 10.0, 1000.0))),
        Y=draw(closed_labels(hierarchy, 8)),
        X=rng.normal(size=(21, features)).astype(np.float32),
    )


def network(problem: Problem, **shape: Any) -> Mlp:
    ensemble = MlpEnsemble(problem.features, len(problem.hierarchy), hidden=problem.hidden, **shape)
    parameters = initial_parameters(ensemble, 1)
    return Mlp(
        ensemble, {name: np.float32(problem.size) * array for name, array in parameters.items()}, problem.hierarchy
    )


def forest(problem: Problem) -> Forest:
    everywhere = np.ones(len(problem.hierarchy), dtype=np.bool_)
    weights = np.linspace(0.5, 2, 8, dtype=np.float32)
    return grow_forest(
        problem.X[:8], problem.Y, scored=everywhere, trees=3, seed=0, smallest_leaf=2, sample_weight=weights
    )


def nearest(problem: Problem) -> Neighbours:
    return fit_neighbours(problem.X[:8], problem.Y, sample_weight=np.linspace(0.5, 2, 8, dtype=np.float32))


def shares(problem: Problem) -> NDArray[np.float64]:
    found: NDArray[np.float64] = np.linspace(0.5, 2, 8) @ problem.Y / np.linspace(0.5, 2, 8).sum()
    return found


KINDS: dict[str, Callable[[Problem], Model]] = {
    "mlp": network,
    "mlp with tanh": lambda p: network(p, activation="tanh"),
    "linear mlp": lambda p: network(p, layers=1),
    "mlp of 3 members": lambda p: network(p, members=3),
    "dropout ensemble": lambda p: network(p, members=4, ensemble="dropout"),
    "forest": forest,
    "neighbours": nearest,
    "blend": lambda p: Blend((network(p), forest(p))),
    "blend of 3 models": lambda p: Blend((network(p), forest(p), nearest(p))),
    "blend with 3 members": lambda p: Blend((network(p, members=3), forest(p))),
    "blend with weights": lambda p: Blend((network(p), forest(p), nearest(p)), (0.4, 0.1, 0.6), shares(p)),
}
every_kind = pytest.mark.parametrize("kind", KINDS)
SMALL = Hierarchy.from_edges([("a", "b"), ("a", "c"), ("c", "d"), ("e", "d")])
EXAMPLE = Problem(
    SMALL,
    features=3,
    hidden=4,
    size=1.0,
    Y=oracles.close(np.eye(8, 5, dtype=np.bool_), SMALL),
    X=np.random.default_rng(0).normal(size=(21, 3)).astype(np.float32),
)


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def parts_of(model: Model) -> tuple[Model, ...]:
    return model.models if isinstance(model, Blend) else (model,)


# --- output ----------------------------------------------------------------------------------------------------------


@every_kind
@settings(max_examples=25)
@given(problem=problems())
def test_probabilities_are_coherent_to_the_last_bit(kind: str, problem: Problem) -> None:
    model, hierarchy = KINDS[kind](problem), problem.hierarchy
    before = problem.X.copy()
    output = model.compute(problem.X, highest=True, uncertainty="gmu")
    assert (model.n_features, model.n_nodes) == (problem.features, len(hierarchy))
    for array in (output.probs, output.highest, output.uncertainty):
        if array is not None:
            assert array.dtype == np.float32
            assert array.shape == (21, len(hierarchy))
            assert ((array >= 0) & (array <= 1)).all()
    assert output.uncertainty is not None
    assert (output.probs[:, hierarchy.edge_parents] >= output.probs[:, hierarchy.edge_children]).all()
    np.testing.assert_array_equal(problem.X, before)


@every_kind
@settings(max_examples=25)
@given(problem=problems(), draw=st.data())
def test_a_row_does_not_depend_on_the_rows_that_are_computed_with_it(
    kind: str, problem: Problem, draw: st.DataObject
) -> None:
    """Bit for bit, whatever their number, their order, their layout in memory and the number of threads."""
    model = KINDS[kind](problem)
    name = draw.draw(st.sampled_from([*UNCERTAINTIES]))
    together = model.compute(problem.X, highest=True, uncertainty=name)
    chosen = draw.draw(st.lists(st.integers(0, 20), max_size=40))
    in_memory = draw.draw(st.sampled_from([np.ascontiguousarray, np.asfortranarray]))
    torch.set_num_threads(draw.draw(st.integers(1, 2)))
    some = model.compute(in_memory(problem.X[chosen]), highest=True, uncertainty=name)
    for part in ("probs", "highest", "uncertainty"):
        ours, theirs = getattr(some, part), getattr(together, part)
        assert (ours is None) == (theirs is None)
        if ours is not None:
            np.testing.assert_array_equal(ours, theirs[chosen])


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize(
    ("features", "hidden", "nodes", "members", "layers"),
    [(77, 500, 130, 1, 3), (13, 11, 17, 1, 3), (242, 30, 386, 4, 2), (1, 1, 507, 4, 3), (63, 100, 47, 10, 3)],
)
def test_a_row_of_larger_networks_does_not_depend_on_the_others_either(
    features: int, hidden: int, nodes: int, members: int, layers: int, activation: Any
) -> None:
    hierarchy = Hierarchy.from_edges([(f"n{(i - 1) // 3}", f"n{i}") for i in range(1, nodes)], nodes=["n0"])
    shape = MlpEnsemble(features, nodes, hidden=hidden, members=members, layers=layers, activation=activation)
    model = Mlp(shape, initial_parameters(shape, 0), hierarchy)
    X = np.random.default_rng(0).normal(size=(140, features)).astype(np.float32)
    torch.set_num_threads(1)
    together = model.compute(X, uncertainty="gmu")
    assert together.uncertainty is not None
    for threads in (1, 2):
        torch.set_num_threads(threads)
        for first, count in ((0, 1), (39, 1), (1, 2), (5, 3), (17, 7), (3, 33), (1, 139), (0, 140)):
            some = model.compute(X[first : first + count], uncertainty="gmu")
            assert some.uncertainty is not None
            np.testing.assert_array_equal(some.probs, together.probs[first : first + count])
            np.testing.assert_array_equal(some.uncertainty, together.uncertainty[first : first + count])


@every_kind
def test_blocks_of_rows_change_no_bit(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = KINDS[kind](EXAMPLE)
    whole = model.compute(EXAMPLE.X, highest=True, uncertainty="gmu")
    monkeypatch.setattr(mlp, "CELLS_AT_A_TIME", 3 * 5 * 7)
    in_blocks = model.compute(EXAMPLE.X, highest=True, uncertainty="gmu")
    for part in ("probs", "highest", "uncertainty"):
        np.testing.assert_array_equal(getattr(in_blocks, part), getattr(whole, part))


@every_kind
@settings(max_examples=25)
@given(problem=problems())
def test_the_highest_probability_is_that_of_a_member(kind: str, problem: Problem) -> None:
    model = KINDS[kind](problem)
    output = model.compute(problem.X, highest=True)
    members: list[Any] = []
    for part in parts_of(model):
        members += list(part.member_probs(problem.X)) if isinstance(part, Mlp) else [part.compute(problem.X).probs]
    if len(members) == 1:
        assert output.highest is None
        return
    assert output.highest is not None
    if isinstance(model, Blend) and model.weights:
        members.append(output.probs)
    np.testing.assert_array_equal(output.highest, np.max(members, axis=0))
    # No mean exceeds all of its parts. Only the product of a blend that is no normal number of float32 is rounded so
    # coarsely that its root may.
    normal = output.probs**2 >= np.finfo(np.float32).tiny
    assert (output.highest >= output.probs)[normal].all()
    if not isinstance(model, Blend):
        assert (output.highest >= output.probs).all()
        np.testing.assert_allclose(output.probs, np.mean(members, axis=0, dtype=np.float64), rtol=1e-6)


@pytest.mark.parametrize("name", UNCERTAINTIES)
@every_kind
def test_uncertainty_is_that_of_the_members_unconstrained_probabilities(kind: str, name: str) -> None:
    model = KINDS[kind](EXAMPLE)
    first = parts_of(model)[0]
    if isinstance(first, Mlp):
        free = oracles.sigmoid(first.logits(EXAMPLE.X).astype(np.float64))
        assert len(free) == first.shape.models
    else:
        free = first.compute(EXAMPLE.X).probs.astype(np.float64)[None]
    found = model.compute(EXAMPLE.X, uncertainty=name).uncertainty
    assert found is not None
    np.testing.assert_allclose(found, uncertainty(free, name), rtol=1e-3, atol=1e-5)
    assert model.compute(EXAMPLE.X).uncertainty is None


@every_kind
def test_a_blend_without_weights_is_the_geometric_mean_and_others_are_not_blended(kind: str) -> None:
    model = KINDS[kind](EXAMPLE)
    if isinstance(model, Blend) and model.weights:
        return
    product = np.ones((21, 5))
    for part in parts_of(model):
        product *= part.compute(EXAMPLE.X).probs
    np.testing.assert_allclose(
        model.compute(EXAMPLE.X).probs, product ** (1 / len(parts_of(model))), rtol=1e-6, atol=1e-19
    )


@every_kind
def test_no_rows(kind: str) -> None:
    model = KINDS[kind](EXAMPLE)
    output = model.compute(EXAMPLE.X[:0], highest=True, uncertainty="gmu")
    assert output.probs.shape == (0, 5)
    assert output.uncertainty is not None
    assert output.uncertainty.shape == (0, 5)


@every_kind
def test_rows_that_do_not_fit_are_refused(kind: str) -> None:
    model = KINDS[kind](EXAMPLE)
    for X, says in [
        (EXAMPLE.X.astype(np.float64), "float64"),
        (EXAMPLE.X[:, 1:], r"\(21, 2\)"),
        (EXAMPLE.X[0], "shape"),
        (np.array([[0, 0, 0], [0, np.nan, 0]], dtype=np.float32), "row 1, feature 1 is nan"),
        (np.array([[np.inf, 0, 0]], dtype=np.float32), "row 0, feature 0 is inf"),
    ]:
        with pytest.raises(DataError, match=says):
            model.compute(X)
    for rows in (EXAMPLE.X, EXAMPLE.X[:0]):
        with pytest.raises(ArgumentError, match="unknown uncertainty"):
            model.compute(rows, uncertainty="doubt")


@every_kind
def test_arrays_that_cannot_be_written_to(kind: str) -> None:
    model = KINDS[kind](EXAMPLE)
    X, arrays = EXAMPLE.X.copy(), {name: array.copy() for name, array in model.arrays().items()}
    for array in (X, *arrays.values()):
        array.flags.writeable = False
    again = type(model).from_arrays(model.describe(), arrays, EXAMPLE.hierarchy)
    np.testing.assert_array_equal(again.compute(X).probs, model.compute(EXAMPLE.X).probs)


# --- description and arrays ------------------------------------------------------------------------------------------


@every_kind
@settings(max_examples=25)
@given(problem=problems())
def test_a_model_is_its_description_and_its_arrays(kind: str, problem: Problem) -> None:
    model = KINDS[kind](problem)
    assert MODELS[model.kind] is type(model)
    description, arrays = json.loads(json.dumps(model.describe())), model.arrays()
    assert "kind" not in description
    layout = type(model).layout(description)
    assert layout == {name: (array.dtype, array.shape) for name, array in arrays.items()}
    again = type(model).from_arrays(description, arrays, problem.hierarchy)
    assert again.describe() == model.describe()
    ours, theirs = (each.compute(problem.X, highest=True, uncertainty="bbma") for each in (again, model))
    for part in ("probs", "highest", "uncertainty"):
        np.testing.assert_array_equal(getattr(ours, part), getattr(theirs, part))


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 9),
    st.sampled_from([2**31, 2**31 - 1, 2**40, 10**30, 1e300, float("nan"), float("inf"), 2.5, -0.5]),
    st.sampled_from(["", "3", "relu", "forest", [], [3], {}, {"kind": "mlp"}]),
)


@every_kind
@settings(max_examples=100)
@given(draw=st.data())
def test_a_hostile_description_is_refused(kind: str, draw: st.DataObject) -> None:
    """Or describes other arrays, which a reader compares with the file before anything is allocated."""
    model = KINDS[kind](EXAMPLE)
    description: dict[str, Any] = json.loads(json.dumps(model.describe()))
    inner = description
    if isinstance(model, Blend) and draw.draw(st.booleans()):
        inner = draw.draw(st.sampled_from(description["models"]))
    key = draw.draw(st.sampled_from([*inner, "more"]))
    if draw.draw(st.booleans()):
        assume(key in inner)
        del inner[key]
    else:
        inner[key] = draw.draw(JUNK)
    try:
        layout = type(model).layout(description)
        again = type(model).from_arrays(description, model.arrays(), EXAMPLE.hierarchy)
    except ArgumentError:
        return
    assert layout == type(model).layout(model.describe())
    assume(again.n_features <= 1000)  # a forest of more features is a forest too, but this test has no memory for them
    X = np.resize(EXAMPLE.X, (21, again.n_features))
    output = again.compute(X)
    assert (output.probs[:, EXAMPLE.hierarchy.edge_parents] >= output.probs[:, EXAMPLE.hierarchy.edge_children]).all()


@every_kind
def test_other_arrays_are_refused(kind: str) -> None:
    model = KINDS[kind](EXAMPLE)
    description, arrays = model.describe(), model.arrays()
    for name, array in arrays.items():
        wrong = array.astype(np.float16)
        for changed, says in [
            ({other: arrays[other] for other in arrays if other != name}, f"'{name}' is missing"),
            (arrays | {f"{name}2": array}, f"'{name}2' should not be there"),
            (arrays | {name: wrong}, f"'{name}' is float16"),
            (arrays | {name: array[None]}, rf"'{name}' is .* was expected"),
            (arrays | {name: array[..., :-1]}, rf"'{name}' is .* was expected"),
        ]:
            with pytest.raises(ArgumentError, match=says):
                type(model).from_arrays(description, changed, EXAMPLE.hierarchy)
        if array.dtype.kind == "f":
            for value in (np.nan, np.inf):
                spoilt = array.copy()
                spoilt.flat[0] = value
                with pytest.raises(ArgumentError):
                    type(model).from_arrays(description, arrays | {name: spoilt}, EXAMPLE.hierarchy)


@every_kind
def test_another_hierarchy_is_refused(kind: str) -> None:
    model = KINDS[kind](EXAMPLE)
    more = Hierarchy.from_edges(EXAMPLE.hierarchy.edges, nodes=["z"])
    with pytest.raises(ArgumentError, match="5 nodes, and the hierarchy 6"):
        type(model).from_arrays(model.describe(), model.arrays(), more)


# --- single kinds ----------------------------------------------------------------------------------------------------


def test_a_single_network_cannot_disagree_with_itself() -> None:
    for kind in ("mlp", "dropout ensemble"):
        model = KINDS[kind](EXAMPLE)

        def of(name: str, model: Model = model) -> Any:
            return model.compute(EXAMPLE.X, uncertainty=name).uncertainty

        assert not of("epistemic_js").any()
        assert not of("epistemic_kl").any()
        np.testing.assert_array_equal(of("gmu"), of("bbma"))
        np.testing.assert_array_equal(of("predictive"), of("aleatoric"))


def test_a_blend_needs_different_models_of_the_same_size() -> None:
    mlp, trees = network(EXAMPLE), forest(EXAMPLE)
    for models, says in [
        ((mlp,), "at least two models of different kinds"),
        ((mlp, mlp), "at least two models of different kinds"),
        ((mlp, forest(EXAMPLE._replace(features=2, X=EXAMPLE.X[:, :2]))), "the same features and nodes"),
        ((replace(mlp, shape=replace(mlp.shape, nodes=4)), trees), "the same features and nodes"),
    ]:
        with pytest.raises(ArgumentError, match=says):
            Blend(models)


@settings(max_examples=25)
@given(problem=problems())
def test_a_blend_with_weights_adds_log_odds(problem: Problem) -> None:
    model = KINDS["blend with weights"](problem)
    assert isinstance(model, Blend)
    total = np.zeros((len(problem.X), model.n_nodes))
    for part, weight in zip(model.models, model.weights, strict=True):
        q = np.minimum(0.98 * part.compute(problem.X).probs.astype(np.float64) + 0.02 * model.shares, 1 - 1e-7)
        with np.errstate(divide="ignore"):
            total += weight * (np.log(q) - np.log1p(-q))
    np.testing.assert_allclose(model.compute(problem.X).probs, 1 / (1 + np.exp(-total)), rtol=1e-5, atol=1e-12)


def test_weights_and_shares_that_cannot_be() -> None:
    models, right = (network(EXAMPLE), forest(EXAMPLE)), shares(EXAMPLE)
    for weights, its, says in [
        ((0.5,), right, "must be 2 numbers above 0"),
        ((0.5, 0.0), right, "must be 2 numbers above 0"),
        ((0.5, float("nan")), right, "must be 2 numbers above 0"),
        ((0.5, 0.5), right[:-1], "'shares' is"),
        ((0.5, 0.5), right + 1, "from 0 to 1"),
        ((), right, "'shares' is"),
    ]:
        with pytest.raises(ArgumentError, match=says):
            Blend(models, weights, its)
    weighted = Blend(models, (0.5, 0.5), right)
    wrong = weighted.arrays() | {"shares": right[::-1].copy()}
    with pytest.raises(ArgumentError, match="must not be above its parent's"):
        Blend.from_arrays(weighted.describe(), wrong, EXAMPLE.hierarchy)
