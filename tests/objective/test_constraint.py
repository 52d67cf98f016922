"""`constrain`: each node becomes the maximum over itself and its descendants."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rarenode import Hierarchy, constrain
from rarenode.errors import RarenodeError
from tests import oracles
from tests.strategies import (
    Graph,
    any_logits,
    arrays_of,
    distinct_logits,
    graphs,
    hierarchies,
    plain_names,
    tied_logits,
    trees,
)

#   a      b
#  / \    /
# c   d--'      c and d share the child e
#  \ /
#   e
DIAMOND = Hierarchy.from_edges([("a", "c"), ("a", "d"), ("b", "d"), ("c", "e"), ("d", "e")])  # columns a b c d e
LEADING = [(), (1,), (3,), (0,), (2, 3), (2, 0), (0, 2), (2, 1, 3), (1, 1, 1, 2)]


@st.composite
def scored_hierarchies(
    draw: st.DrawFn, elements: st.SearchStrategy[float] = any_logits
) -> tuple[Hierarchy, NDArray[np.float64]]:
    hierarchy = draw(hierarchies())
    leading = draw(st.lists(st.integers(1, 3), max_size=2))
    return hierarchy, draw(arrays_of(elements, (*leading, len(hierarchy))))


def test_an_example_by_eye() -> None:
    scores = np.array([[0.1, 0.9, 0.2, 0.3, 0.5], [0.8, 0.0, 0.1, 0.4, 0.2]])
    expected = [[0.5, 0.9, 0.5, 0.5, 0.5], [0.8, 0.4, 0.2, 0.4, 0.2]]
    assert constrain(scores, DIAMOND).tolist() == expected
    assert constrain(torch.tensor(scores), DIAMOND).tolist() == expected


@given(scored_hierarchies())
def test_numpy_matches_the_oracle(case: tuple[Hierarchy, NDArray[np.float64]]) -> None:
    hierarchy, scores = case
    before = scores.copy()
    result = constrain(scores, hierarchy)
    assert isinstance(result, np.ndarray)
    assert np.array_equal(result, oracles.constrain(scores, hierarchy))
    assert np.array_equal(scores, before)


@given(scored_hierarchies())
def test_torch_matches_the_oracle(case: tuple[Hierarchy, NDArray[np.float64]]) -> None:
    hierarchy, scores = case
    tensor = torch.tensor(scores)
    result = constrain(tensor, hierarchy)
    assert isinstance(result, torch.Tensor)
    assert np.array_equal(result.numpy(), oracles.constrain(scores, hierarchy))
    assert np.array_equal(tensor.numpy(), scores)


@given(scored_hierarchies())
def test_a_parent_scores_at_least_its_child(case: tuple[Hierarchy, NDArray[np.float64]]) -> None:
    hierarchy, scores = case
    result = constrain(scores, hierarchy)
    for parent, child in hierarchy.edges:
        assert (result[..., hierarchy.index[parent]] >= result[..., hierarchy.index[child]]).all()
    assert (result >= scores).all()


@given(scored_hierarchies())
def test_it_is_idempotent(case: tuple[Hierarchy, NDArray[np.float64]]) -> None:
    hierarchy, scores = case
    once = constrain(scores, hierarchy)
    assert np.array_equal(constrain(once, hierarchy), once)
    again = constrain(constrain(torch.tensor(scores), hierarchy), hierarchy)
    assert np.array_equal(again.numpy(), once)


@given(scored_hierarchies())
def test_it_is_the_identity_on_coherent_scores(case: tuple[Hierarchy, NDArray[np.float64]]) -> None:
    hierarchy, scores = case
    coherent = oracles.constrain(scores, hierarchy)
    assert np.array_equal(constrain(coherent, hierarchy), coherent)


@given(scored_hierarchies(tied_logits), st.data())
def test_the_gradient_goes_to_the_maximiser_and_to_the_lowest_column_of_equals(
    case: tuple[Hierarchy, NDArray[np.float64]], data: st.DataObject
) -> None:
    hierarchy, scores = case
    upstream = data.draw(arrays_of(st.integers(-4, 4).map(float), scores.shape))
    tensor = torch.tensor(scores, requires_grad=True)
    constrain(tensor, hierarchy).backward(torch.tensor(upstream))  # type: ignore[no-untyped-call]
    assert tensor.grad is not None
    assert np.array_equal(tensor.grad.numpy(), oracles.constrain_gradient(scores, upstream, hierarchy))


@given(hierarchies(), st.data())
def test_the_gradient_agrees_with_finite_differences(hierarchy: Hierarchy, data: st.DataObject) -> None:
    scores = data.draw(distinct_logits((2, len(hierarchy))))
    tensor = torch.tensor(scores, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: constrain(x, hierarchy), (tensor,))


def test_the_gradient_of_equal_scores_by_eye() -> None:
    scores = torch.zeros(5, requires_grad=True)
    constrain(scores, DIAMOND).backward(torch.tensor([1.0, 10.0, 100.0, 1000.0, 10000.0]))  # type: ignore[no-untyped-call]
    assert scores.grad is not None
    assert scores.grad.tolist() == [1.0, 10.0, 100.0, 1000.0, 10000.0]
    child = torch.tensor([0.0, 0.0, 1.0, 1.0, 1.0], requires_grad=True)  # a may follow c, d or e: c is the lowest
    constrain(child, DIAMOND)[0].backward()  # type: ignore[no-untyped-call]
    assert child.grad is not None
    assert child.grad.tolist() == [0.0, 0.0, 1.0, 0.0, 0.0]


@pytest.mark.parametrize("leading", LEADING)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_any_leading_dimensions_and_precision(leading: tuple[int, ...], dtype: torch.dtype) -> None:
    scores = torch.randn(*leading, 5, dtype=dtype, generator=torch.Generator().manual_seed(1), requires_grad=True)
    result = constrain(scores, DIAMOND)
    assert result.shape == scores.shape
    assert result.dtype == dtype
    assert np.array_equal(result.detach().numpy(), oracles.constrain(scores.detach().numpy(), DIAMOND))
    result.sum().backward()  # type: ignore[no-untyped-call]
    assert scores.grad is not None
    expected = oracles.constrain_gradient(scores.detach().numpy(), np.ones(scores.shape), DIAMOND)
    assert scores.grad.dtype == dtype
    assert np.array_equal(scores.grad.numpy(), expected)

    array = scores.detach().numpy()
    as_numpy = constrain(array, DIAMOND)
    assert as_numpy.shape == array.shape
    assert as_numpy.dtype == array.dtype
    assert np.array_equal(as_numpy, oracles.constrain(array, DIAMOND))


def layouts(base: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """The same (4, 5) numbers, held in memory in several ways."""
    wide = np.zeros((8, 10))
    wide[::2, ::2] = base
    return [np.asfortranarray(base), base[::-1][::-1], wide[::2, ::2], np.ascontiguousarray(base[:, ::-1])[:, ::-1]]


@pytest.mark.parametrize("which", range(4))
def test_memory_layout_does_not_matter(which: int) -> None:
    base = np.random.default_rng(0).normal(size=(4, 5))
    scores = layouts(base)[which]
    assert np.array_equal(scores, base)
    assert np.array_equal(constrain(scores, DIAMOND), oracles.constrain(base, DIAMOND))


def test_torch_views_and_expanded_tensors() -> None:
    base = np.random.default_rng(0).normal(size=(4, 5))
    transposed = torch.tensor(base.T.copy(), requires_grad=True)
    constrain(transposed.T, DIAMOND).sum().backward()  # type: ignore[no-untyped-call]
    assert transposed.grad is not None
    expected = oracles.constrain_gradient(base, np.ones_like(base), DIAMOND)
    assert np.array_equal(transposed.grad.numpy(), expected.T)
    one_row = torch.tensor(base[0], requires_grad=True)
    result = constrain(one_row.expand(3, 5), DIAMOND)
    result.sum().backward()  # type: ignore[no-untyped-call]
    assert one_row.grad is not None
    assert np.array_equal(result.detach().numpy(), np.tile(oracles.constrain(base[0], DIAMOND), (3, 1)))
    assert np.array_equal(one_row.grad.numpy(), 3 * expected[0])


def test_without_a_gradient_there_is_none() -> None:
    scores = torch.zeros(2, 5)
    assert not constrain(scores, DIAMOND).requires_grad
    with torch.no_grad():
        assert not constrain(torch.zeros(2, 5, requires_grad=True), DIAMOND).requires_grad


def test_nan_wins_and_moves_upwards() -> None:
    scores = np.array([[1.0, 2.0, 3.0, np.nan, 0.0], [9.0, np.nan, 0.0, 0.0, 0.0], [9.0, 9.0, 9.0, 9.0, np.nan]])
    for result in (constrain(scores, DIAMOND), constrain(torch.tensor(scores), DIAMOND).numpy()):
        assert np.isnan(result).tolist() == [
            [True, True, False, True, False],
            [False, True, False, False, False],
            [True, True, True, True, True],
        ]
        assert result[0, 2] == 3.0
        assert result[1].tolist()[2:] == [0.0, 0.0, 0.0]


def test_infinities_are_numbers() -> None:
    scores = np.array([-np.inf, 0.0, -np.inf, -np.inf, np.inf])
    assert constrain(scores, DIAMOND).tolist() == [np.inf] * 5
    low = np.full(5, -np.inf)
    assert constrain(torch.tensor(low), DIAMOND).tolist() == low.tolist()


@given(st.one_of(trees(), graphs()), st.data())
def test_names_and_input_order_do_not_matter(graph: Graph, data: st.DataObject) -> None:
    """Rename every node, shuffle the edges: each node's score stays what it was."""
    hierarchy = graph.build()
    scores = data.draw(arrays_of(any_logits, (2, len(hierarchy))))
    renamed = dict(zip(graph.nodes, data.draw(st.permutations(plain_names(len(graph.nodes)))), strict=True))
    edges = data.draw(st.permutations([(renamed[p], renamed[c]) for p, c in graph.edges]))
    other = Hierarchy.from_edges(edges, nodes=renamed.values())
    columns = [other.index[renamed[name]] for name in hierarchy.nodes]
    moved = np.empty_like(scores)
    moved[:, columns] = scores
    assert np.array_equal(constrain(moved, other)[:, columns], constrain(scores, hierarchy))


@given(hierarchies(), st.data())
def test_rows_do_not_touch_each_other(hierarchy: Hierarchy, data: st.DataObject) -> None:
    scores = data.draw(arrays_of(any_logits, (3, 2, len(hierarchy))))
    whole = constrain(scores, hierarchy)
    for place in np.ndindex(3, 2):
        assert np.array_equal(constrain(scores[place], hierarchy), whole[place])


@pytest.mark.parametrize("shape", [(4,), (2, 6), (5, 2), (1,), ()])
def test_a_wrong_number_of_nodes_is_refused(shape: tuple[int, ...]) -> None:
    wrong: list[Any] = [np.zeros(shape), torch.zeros(shape)]
    for scores in wrong:
        with pytest.raises(RarenodeError):
            constrain(scores, DIAMOND)


def test_without_edges_it_is_the_identity() -> None:
    islands = Hierarchy.from_edges([], nodes=["x", "y", "z"])
    scores = np.array([[3.0, 1.0, 2.0]])
    assert constrain(scores, islands).tolist() == scores.tolist()
    tensor = torch.tensor(scores, requires_grad=True)
    constrain(tensor, islands).backward(torch.tensor([[5.0, 6.0, 7.0]], dtype=torch.float64))  # type: ignore[no-untyped-call]
    assert tensor.grad is not None
    assert tensor.grad.tolist() == [[5.0, 6.0, 7.0]]


def test_a_deep_chain() -> None:
    names = [f"{i:04d}" for i in range(3000)]
    chain = Hierarchy.from_edges(pairwise(names))
    scores = np.random.default_rng(5).normal(size=(2, 3000))
    expected = np.maximum.accumulate(scores[:, ::-1], axis=1)[:, ::-1]
    assert np.array_equal(constrain(scores, chain), expected)
    tensor = torch.tensor(scores, requires_grad=True)
    result = constrain(tensor, chain)
    assert np.array_equal(result.detach().numpy(), expected)
    result.sum().backward()  # type: ignore[no-untyped-call]
    assert tensor.grad is not None
    winners = np.zeros_like(scores)
    for row in range(2):
        for column in range(3000):
            winners[row, column + int(np.argmax(scores[row, column:]))] += 1
    assert np.array_equal(tensor.grad.numpy(), winners)


def test_a_hierarchy_without_nodes_has_nothing_to_constrain() -> None:
    nothing = Hierarchy.from_edges([])
    assert constrain(np.ones((3, 0)), nothing).shape == (3, 0)
    assert constrain(torch.ones(2, 3, 0), nothing).shape == (2, 3, 0)
