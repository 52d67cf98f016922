"""`RareNodeLoss`: node weight x focal weight x the max-constraint loss."""

from __future__ import annotations

import copy
import tracemalloc
from typing import Any, Literal

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rarenode import Hierarchy, NodeWeights, RareNodeLoss, node_weights
from rarenode.errors import ArgumentError, LabelError, NotClosedError, RarenodeError
from tests import oracles
from tests.strategies import (
    TROUBLESOME_LOGITS,
    Graph,
    Problem,
    arrays_of,
    closed_labels,
    graphs,
    node_weight_pairs,
    plain_names,
    problems,
    tame_logits,
    three_valued,
    trees,
)

Focus = Literal["bbma", "gmu", "epistemic_kl", "epistemic_js", "predictive", "aleatoric", "focal"]
Reduction = Literal["mean", "sum", "none"]

FOCUSES: tuple[Focus, ...] = ("bbma", "gmu", "epistemic_kl", "epistemic_js", "predictive", "aleatoric", "focal")
REDUCTIONS: tuple[Reduction, ...] = ("mean", "sum", "none")
EPS = float(np.finfo(np.float64).eps)
every_focus = pytest.mark.parametrize("focus", FOCUSES)
reductions = st.sampled_from(REDUCTIONS)

#   a     columns a b c d; b and c below a, d below both
#  b c
#   d
DIAMOND = Hierarchy.from_edges([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])


def weights_of(positive: NDArray[np.float64], negative: NDArray[np.float64]) -> NodeWeights:
    return NodeWeights(positive=positive, negative=negative, w0=0.25, side="both")


def expected_loss(
    problem: Problem,
    weights: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None,
    focus: Focus | None = None,
    u0: float = 0.25,
    k: float = 1.0,
    focal_weight: NDArray[np.float64] | None = None,
    *,
    in_probabilities: bool = False,
) -> NDArray[np.float64]:
    """Before reduction. ``focal_weight`` holds U fixed, where it must not move with the logits."""
    hierarchy, logits, labels = problem
    formula = oracles.max_constraint_loss if in_probabilities else oracles.max_constraint_loss_of_logits
    loss = formula(logits, labels, hierarchy)
    if weights is not None:
        loss = loss * oracles.weight_of_each_cell(labels, *weights)
    if focal_weight is None:
        focal_weight = oracles.focal_weight(logits, labels, focus, u0, k, EPS)
    return loss * focal_weight


def tensors(
    problem: Problem, dtype: torch.dtype = torch.float64, grad: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.tensor(problem.logits, dtype=dtype, requires_grad=grad), torch.tensor(problem.labels)


def gradient_of(loss: RareNodeLoss, problem: Problem, dtype: torch.dtype = torch.float64) -> NDArray[Any]:
    logits, labels = tensors(problem, dtype, grad=True)
    loss(logits, labels).sum().backward()
    assert logits.grad is not None
    return logits.grad.numpy()


# --- values --------------------------------------------------------------------------------------------------------


@given(problems(tame_logits), reductions)
def test_plain_it_is_the_papers_max_constraint_loss(problem: Problem, reduction: Reduction) -> None:
    result = RareNodeLoss(problem.hierarchy, reduction=reduction)(*tensors(problem))
    expected = expected_loss(problem, in_probabilities=True)
    np.testing.assert_allclose(result.numpy(), oracles.reduce(expected, None, reduction), rtol=1e-8, atol=1e-10)


@given(problems())
def test_it_is_exact_where_probabilities_are_not(problem: Problem) -> None:
    result = RareNodeLoss(problem.hierarchy, reduction="none")(*tensors(problem))
    np.testing.assert_allclose(result.numpy(), expected_loss(problem), rtol=1e-12)


@given(problems(tame_logits))
def test_the_two_oracles_agree(problem: Problem) -> None:
    one = expected_loss(problem, in_probabilities=True)
    np.testing.assert_allclose(one, expected_loss(problem), rtol=1e-8, atol=1e-10)


@given(problems(), reductions, st.data())
def test_node_weights_multiply_by_the_kind_of_annotation(
    problem: Problem, reduction: Reduction, data: st.DataObject
) -> None:
    pair = data.draw(node_weight_pairs(len(problem.hierarchy)))
    expected = oracles.reduce(expected_loss(problem, pair), None, reduction)
    at_construction = RareNodeLoss(problem.hierarchy, weights=weights_of(*pair), reduction=reduction)
    np.testing.assert_allclose(at_construction(*tensors(problem)).numpy(), expected, rtol=1e-10)
    at_call = RareNodeLoss(problem.hierarchy, reduction=reduction)
    logits, labels = tensors(problem)
    np.testing.assert_allclose(at_call(logits, labels, weights=weights_of(*pair)).numpy(), expected, rtol=1e-10)


@given(problems(), st.data())
def test_the_calls_weights_replace_the_constructors_for_that_call_only(problem: Problem, data: st.DataObject) -> None:
    first = data.draw(node_weight_pairs(len(problem.hierarchy)))
    second = data.draw(node_weight_pairs(len(problem.hierarchy)))
    loss = RareNodeLoss(problem.hierarchy, weights=weights_of(*first), reduction="none")
    logits, labels = tensors(problem)
    once = loss(logits, labels, weights=weights_of(*second)).numpy()
    np.testing.assert_allclose(once, expected_loss(problem, second), rtol=1e-10)
    np.testing.assert_allclose(loss(logits, labels).numpy(), expected_loss(problem, first), rtol=1e-10)


@given(problems(tame_logits), st.sampled_from(("as_published", "as_described")), st.data())
def test_weights_from_data_work_as_they_come(
    problem: Problem, form: Literal["as_published", "as_described"], data: st.DataObject
) -> None:
    weights = node_weights(data.draw(closed_labels(problem.hierarchy, 5)), problem.hierarchy, form=form)
    result = RareNodeLoss(problem.hierarchy, weights=weights)(*tensors(problem))
    expected = expected_loss(problem, (weights.positive, weights.negative))
    np.testing.assert_allclose(result.numpy(), oracles.reduce(expected, None, "mean"), rtol=1e-10)


@given(problems(), reductions, st.sampled_from([None, *FOCUSES]), st.data())
def test_row_weights_multiply_the_terms_of_a_row(
    problem: Problem, reduction: Reduction, focus: Focus | None, data: st.DataObject
) -> None:
    """The divisor of the mean stays the number of rows x nodes; tensors and lists are the same."""
    rows = len(problem.labels)
    factors = data.draw(st.lists(st.sampled_from([0.0, 0.3, 1.0, 2.0, 7.5]), min_size=rows, max_size=rows))
    terms = expected_loss(problem, focus=focus) * np.array(factors)[:, None]
    loss = RareNodeLoss(problem.hierarchy, focus=focus, reduction=reduction)
    logits, labels = tensors(problem)
    for row_weights in (factors, torch.tensor(factors)):
        result = loss(logits, labels, row_weights=row_weights).numpy()
        np.testing.assert_allclose(result, oracles.reduce(terms, None, reduction), rtol=1e-6, atol=1e-9)


@given(problems(), reductions)
def test_unit_weights_are_no_weights(problem: Problem, reduction: Reduction) -> None:
    ones = np.ones(len(problem.hierarchy))
    weighted = RareNodeLoss(problem.hierarchy, weights=weights_of(ones, ones), reduction=reduction)
    plain = RareNodeLoss(problem.hierarchy, reduction=reduction)
    np.testing.assert_allclose(weighted(*tensors(problem)).numpy(), plain(*tensors(problem)).numpy(), rtol=1e-12)


@every_focus
@given(data=st.data())
def test_focus_multiplies_by_the_gate_plus_the_uncertainty(focus: Focus, data: st.DataObject) -> None:
    problem = data.draw(problems(tame_logits))
    u0 = data.draw(st.sampled_from((0.0, 0.25, 1.5)))
    k = data.draw(st.sampled_from((0.0, 0.5, 1.0, 2.0, 3.5)))
    reduction = data.draw(reductions)
    pair = data.draw(node_weight_pairs(len(problem.hierarchy)))
    loss = RareNodeLoss(problem.hierarchy, weights_of(*pair), focus=focus, u0=u0, k=k, reduction=reduction)
    expected = oracles.reduce(expected_loss(problem, pair, focus, u0, k), None, reduction)
    # A tiny U to the power 1/2 keeps half of its digits.
    np.testing.assert_allclose(loss(*tensors(problem)).numpy(), expected, rtol=1e-5, atol=1e-5)


@every_focus
def test_the_default_gate_and_exponent(focus: Focus) -> None:
    rng = np.random.default_rng(2)
    labels = DIAMOND.close(rng.random((3, 4)) < 0.3)
    problem = Problem(DIAMOND, rng.normal(size=(3, 3, 4)), labels)
    result = RareNodeLoss(DIAMOND, focus=focus, reduction="none")(*tensors(problem))
    np.testing.assert_allclose(result.numpy(), expected_loss(problem, None, focus, 0.25, 1.0), rtol=1e-9)


def test_the_focus_looks_at_unconstrained_probabilities() -> None:
    """The parent alone is unsure (p = 1/2) though its child lifts it to near certainty: U is 1 there, not near 0."""
    pair = Hierarchy.from_edges([("up", "down")])
    logits = torch.tensor([[[0.0, 9.0]]], dtype=torch.float64)
    labels = torch.tensor([[True, True]])
    result = RareNodeLoss(pair, focus="bbma", u0=0.0, reduction="none")(logits, labels)
    assert result[0, 0, 0].item() == pytest.approx(np.log1p(np.exp(-9.0)))
    focal = RareNodeLoss(pair, focus="focal", u0=0.0, reduction="none")(logits, labels)
    assert focal[0, 0, 0].item() == pytest.approx(0.5 * np.log1p(np.exp(-9.0)))


def test_a_positive_node_follows_its_positive_descendants_only() -> None:
    """By hand: a and b present; d, below both b and c, scores high but is absent."""
    logits = torch.tensor([[-1.0, 0.5, 2.0, 3.0]], dtype=torch.float64)
    labels = torch.tensor([[True, True, False, False]])
    result = RareNodeLoss(DIAMOND, reduction="none")(logits, labels)
    assert result.tolist()[0] == pytest.approx(
        [np.log1p(np.exp(-0.5)), np.log1p(np.exp(-0.5)), np.log1p(np.exp(3.0)), np.log1p(np.exp(3.0))]
    )


# --- shapes, reductions, scored nodes ------------------------------------------------------------------------------


@given(problems(tame_logits, most_members=1), reductions, st.sampled_from((None, *FOCUSES)))
def test_two_dimensions_count_as_one_member(problem: Problem, reduction: Reduction, focus: Focus | None) -> None:
    loss = RareNodeLoss(problem.hierarchy, focus=focus, reduction=reduction)
    logits, labels = tensors(problem)
    flat, stacked = loss(logits[0], labels), loss(logits, labels)
    if reduction == "none":
        assert flat.shape == logits.shape[1:]
        assert stacked.shape == logits.shape
        stacked = stacked[0]
    np.testing.assert_allclose(flat.numpy(), stacked.numpy(), rtol=1e-12)


@given(problems(), reductions, st.data())
def test_unscored_nodes_cost_nothing_but_still_hold_their_ancestors_up(
    problem: Problem, reduction: Reduction, data: st.DataObject
) -> None:
    nodes = len(problem.hierarchy)
    scored = np.array(data.draw(st.lists(st.booleans(), min_size=nodes, max_size=nodes).filter(any)))
    pair = data.draw(node_weight_pairs(nodes))
    loss = RareNodeLoss(problem.hierarchy, weights_of(*pair), scored=scored, reduction=reduction)
    result = loss(*tensors(problem)).numpy()
    expected = expected_loss(problem, pair)
    np.testing.assert_allclose(result, oracles.reduce(expected, scored, reduction), rtol=1e-10)
    if reduction == "none":
        assert (result[..., ~scored] == 0).all()


@given(problems(), st.data())
def test_unscored_nodes_send_no_gradient_of_their_own(problem: Problem, data: st.DataObject) -> None:
    nodes = len(problem.hierarchy)
    scored = np.array(data.draw(st.lists(st.booleans(), min_size=nodes, max_size=nodes).filter(any)))
    distinct = problem._replace(logits=np.arange(problem.logits.size).reshape(problem.logits.shape) / 8 - 2.0)
    gradient = gradient_of(RareNodeLoss(problem.hierarchy, scored=scored, reduction="sum"), distinct)
    factor = np.broadcast_to(scored.astype(float), distinct.logits.shape)
    expected = oracles.loss_gradient(distinct.logits, distinct.labels, problem.hierarchy, factor)
    np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-12)


def test_mean_is_over_rows_and_scored_nodes_and_a_sum_over_members() -> None:
    logits, labels = torch.zeros(5, 3, 4), torch.zeros(3, 4, dtype=torch.bool)
    assert RareNodeLoss(DIAMOND)(logits, labels).item() == pytest.approx(5 * np.log(2))
    assert RareNodeLoss(DIAMOND, reduction="sum")(logits, labels).item() == pytest.approx(60 * np.log(2))
    scored = np.array([False, True, True, False])
    assert RareNodeLoss(DIAMOND, scored=scored)(logits, labels).item() == pytest.approx(5 * np.log(2))
    some = RareNodeLoss(DIAMOND, scored=scored, reduction="sum")(logits, labels)
    assert some.item() == pytest.approx(30 * np.log(2))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("focus", [None, "gmu", "focal"])
def test_the_result_has_the_type_of_the_logits(dtype: torch.dtype, focus: Focus | None) -> None:
    weights = node_weights(DIAMOND.encode([["a"], ["a", "b"]]), DIAMOND)
    logits = torch.randn(2, 3, 4, dtype=dtype, generator=torch.Generator().manual_seed(0), requires_grad=True)
    labels = torch.zeros(3, 4, dtype=torch.bool)
    for reduction in REDUCTIONS:
        result = RareNodeLoss(DIAMOND, weights, focus=focus, reduction=reduction)(logits, labels)
        assert result.dtype == dtype
        assert result.shape == (logits.shape if reduction == "none" else ())
    result.sum().backward()
    assert logits.grad is not None
    assert logits.grad.dtype == dtype


@given(problems(tame_logits), st.sampled_from((None, *FOCUSES)))
def test_single_precision_agrees_with_double(problem: Problem, focus: Focus | None) -> None:
    loss = RareNodeLoss(problem.hierarchy, focus=focus, reduction="none")
    single, double = loss(*tensors(problem, torch.float32)), loss(*tensors(problem))
    np.testing.assert_allclose(single.numpy(), double.numpy(), rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.uint8, torch.float32, torch.float64])
def test_labels_may_be_booleans_or_numbers(dtype: torch.dtype) -> None:
    logits = torch.tensor([[[0.3, -0.2, 1.0, 0.1]]])
    labels = torch.tensor([[1, 1, 0, 0]])
    loss = RareNodeLoss(DIAMOND, reduction="none")
    assert torch.equal(loss(logits, labels.to(dtype)), loss(logits, labels.bool()))


def test_logits_need_not_be_contiguous() -> None:
    base = torch.randn(4, 3, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(1), requires_grad=True)
    labels = torch.tensor(DIAMOND.close(np.eye(3, 4, dtype=bool)))
    loss = RareNodeLoss(DIAMOND)
    view = base.permute(2, 1, 0)
    assert not view.is_contiguous()
    loss(view, labels).backward()
    whole = base.detach().permute(2, 1, 0).contiguous().requires_grad_()
    loss(whole, labels.T.contiguous().T).backward()
    assert base.grad is not None
    assert whole.grad is not None
    assert torch.equal(base.grad.permute(2, 1, 0), whole.grad)


def test_logits_and_labels_are_left_alone() -> None:
    logits, labels = torch.tensor([[[3.0, -1.0, 0.0, 5.0]]]), torch.tensor([[True, False, True, False]])
    before = logits.clone(), labels.clone()
    RareNodeLoss(DIAMOND, focus="gmu")(logits, labels)
    assert torch.equal(logits, before[0])
    assert torch.equal(labels, before[1])


def test_it_is_a_module_that_can_be_copied() -> None:
    weights = node_weights(DIAMOND.encode([["a"], ["a", "b"]]), DIAMOND)
    loss = RareNodeLoss(DIAMOND, weights, focus="bbma", scored=np.array([False, True, True, True]))
    assert isinstance(loss, torch.nn.Module)
    assert not list(loss.parameters())
    logits, labels = torch.randn(2, 3, 4, generator=torch.Generator().manual_seed(3)), torch.zeros(3, 4)
    assert torch.equal(copy.deepcopy(loss)(logits, labels), loss(logits, labels))


# --- gradients -----------------------------------------------------------------------------------------------------


@given(problems(distinct=True), st.data())
def test_the_gradient_is_that_of_the_maximiser(problem: Problem, data: st.DataObject) -> None:
    pair = data.draw(node_weight_pairs(len(problem.hierarchy)))
    gradient = gradient_of(RareNodeLoss(problem.hierarchy, weights_of(*pair), reduction="sum"), problem)
    factor = np.broadcast_to(oracles.weight_of_each_cell(problem.labels, *pair), problem.logits.shape)
    expected = oracles.loss_gradient(problem.logits, problem.labels, problem.hierarchy, factor)
    np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-12)


@given(problems(distinct=True, most_members=2, most_rows=2, most_nodes=5), reductions, st.data())
def test_gradcheck_without_focus(problem: Problem, reduction: Reduction, data: st.DataObject) -> None:
    pair = data.draw(st.one_of(st.none(), node_weight_pairs(len(problem.hierarchy))))
    weights = None if pair is None else weights_of(*pair)
    loss = RareNodeLoss(problem.hierarchy, weights, reduction=reduction)
    logits, labels = tensors(problem, grad=True)
    assert torch.autograd.gradcheck(lambda x: loss(x, labels), (logits,))


@every_focus
@given(data=st.data())
def test_with_focus_finite_differences_at_fixed_uncertainty_give_the_gradient(
    focus: Focus, data: st.DataObject
) -> None:
    """U carries no gradient, so the differences are those of a loss whose U stays that of the starting point."""
    problem = data.draw(problems(distinct=True, most_members=2, most_rows=2, most_nodes=5))
    pair = data.draw(node_weight_pairs(len(problem.hierarchy)))
    k = data.draw(st.sampled_from((0.5, 1.0, 2.0)))
    loss = RareNodeLoss(problem.hierarchy, weights_of(*pair), focus=focus, k=k)
    fixed = oracles.focal_weight(problem.logits, problem.labels, focus, 0.25, k, EPS)
    step = 1e-5
    differences = np.empty_like(problem.logits)
    for place in np.ndindex(problem.logits.shape):
        ends = []
        for sign in (1, -1):
            moved = problem.logits.copy()
            moved[place] += sign * step
            value = expected_loss(problem._replace(logits=moved), pair, focal_weight=fixed)
            ends.append(oracles.reduce(value, None, "mean"))
        differences[place] = (ends[0] - ends[1]) / (2 * step)
    np.testing.assert_allclose(gradient_of(loss, problem), differences, rtol=1e-4, atol=1e-6)


def test_a_hopelessly_wrong_logit_still_learns() -> None:
    """At p = 0 for a present node and p = 1 for an absent one the slope is -1 and +1, not 0 or nothing."""
    islands = Hierarchy.from_edges([], nodes=["absent", "present"])
    for size in (50.0, 500.0, 1e4, 1e15):
        problem = Problem(islands, np.array([[[size, -size]]]), np.array([[False, True]]))
        for dtype in (torch.float32, torch.float64):
            gradient = gradient_of(RareNodeLoss(islands, reduction="sum"), problem, dtype)
            assert gradient.tolist() == [[[1.0, -1.0]]]


# --- extremes ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("focus", [None, *FOCUSES])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@given(data=st.data())
def test_it_is_finite_at_every_logit_and_so_is_its_gradient(
    focus: Focus | None, dtype: torch.dtype, data: st.DataObject
) -> None:
    problem = data.draw(problems())
    k = data.draw(st.sampled_from((0.0, 0.5, 1.0, 3.5)))
    logits, labels = tensors(problem, dtype, grad=True)
    result = RareNodeLoss(problem.hierarchy, focus=focus, k=k, u0=data.draw(st.sampled_from((0.0, 0.25))))(
        logits, labels
    )
    assert torch.isfinite(result)
    assert result >= 0
    result.backward()
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("focus", [None, *FOCUSES])
def test_the_largest_number_there_is(dtype: torch.dtype, focus: Focus | None) -> None:
    huge = torch.finfo(dtype).max
    logits = torch.tensor([[[huge, -huge, huge, -huge]], [[-huge, huge, huge, -huge]]], dtype=dtype, requires_grad=True)
    for labels in (torch.tensor([[True, False, True, False]]), torch.tensor([[True, True, False, False]])):
        for reduction in REDUCTIONS:
            result = RareNodeLoss(DIAMOND, focus=focus, reduction=reduction)(logits, labels)
            assert torch.isfinite(result).all()
            (gradient,) = torch.autograd.grad(result, logits, torch.ones_like(result))
            assert torch.isfinite(gradient).all()


def test_each_extreme_by_itself() -> None:
    one = Hierarchy.from_edges([], nodes=["only"])
    loss = RareNodeLoss(one)
    for z in TROUBLESOME_LOGITS:
        for y in (False, True):
            value = loss(torch.tensor([[z]], dtype=torch.float64), torch.tensor([[y]])).item()
            assert value == pytest.approx(float(np.logaddexp(0.0, -z if y else z)), rel=1e-12)


# --- order ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("focus", [None, "gmu", "epistemic_js", "focal"])
@given(data=st.data())
def test_nothing_depends_on_the_order_of_nodes_members_or_rows(focus: Focus | None, data: st.DataObject) -> None:
    graph: Graph = data.draw(st.one_of(trees(7), graphs(most_nodes=7)))
    hierarchy = graph.build()
    logits = data.draw(arrays_of(tame_logits, (3, 3, len(hierarchy))))
    labels = data.draw(closed_labels(hierarchy, 3))
    pair = data.draw(node_weight_pairs(len(hierarchy)))
    renamed = dict(zip(graph.nodes, data.draw(st.permutations(plain_names(len(graph.nodes)))), strict=True))
    edges = data.draw(st.permutations([(renamed[p], renamed[c]) for p, c in graph.edges]))
    other = Hierarchy.from_edges(edges, nodes=renamed.values())
    columns = [other.index[renamed[name]] for name in hierarchy.nodes]
    members, rows = data.draw(st.permutations(range(3))), data.draw(st.permutations(range(3)))

    moved_logits, moved_labels = np.empty_like(logits), np.empty_like(labels)
    moved_logits[:, :, columns] = logits[members][:, rows]
    moved_labels[:, columns] = labels[rows]
    moved_pair = np.empty((2, len(hierarchy)))
    moved_pair[:, columns] = pair
    there = RareNodeLoss(other, weights_of(*moved_pair), focus=focus, reduction="none")
    here = RareNodeLoss(hierarchy, weights_of(*pair), focus=focus, reduction="none")
    moved = there(torch.tensor(moved_logits), torch.tensor(moved_labels)).numpy()[:, :, columns]
    expected = here(torch.tensor(logits), torch.tensor(labels)).numpy()[members][:, rows]
    np.testing.assert_allclose(moved, expected, rtol=1e-7, atol=1e-9)


# --- refusals ------------------------------------------------------------------------------------------------------


def test_unclosed_labels_are_refused_with_row_and_node() -> None:
    labels = torch.tensor(DIAMOND.close(DIAMOND.encode([["a"], ["b"], ["d"]])))
    loss = RareNodeLoss(DIAMOND)
    assert torch.isfinite(loss(torch.zeros(2, 3, 4), labels))
    labels[2, DIAMOND.index["c"]] = False
    for logits in (torch.zeros(3, 4), torch.zeros(2, 3, 4)):
        with pytest.raises(NotClosedError, match=r"(?=.*\brow 2\b)(?=.*'d')(?=.*'c')"):
            loss(logits, labels)


@given(problems(), st.data())
def test_unclosed_labels_are_refused_wherever_they_are(problem: Problem, data: st.DataObject) -> None:
    if not problem.hierarchy.edges:
        return
    parent, child = data.draw(st.sampled_from(problem.hierarchy.edges))
    row = data.draw(st.integers(0, len(problem.labels) - 1))
    labels = problem.labels.copy()
    labels[row, problem.hierarchy.index[child]] = True
    labels[row, problem.hierarchy.index[parent]] = False
    with pytest.raises(NotClosedError):
        RareNodeLoss(problem.hierarchy)(torch.tensor(problem.logits), torch.tensor(labels))


@pytest.mark.parametrize("value", [0.5, 2.0, -1.0, float("nan")])
def test_labels_other_than_0_and_1_are_refused(value: float) -> None:
    labels = torch.zeros(2, 4)
    labels[1, 0] = value
    with pytest.raises(LabelError):
        RareNodeLoss(DIAMOND)(torch.zeros(2, 4), labels)


@pytest.mark.parametrize(
    ("logits", "labels"),
    [
        ((3, 5), (3, 5)),
        ((3, 4), (2, 4)),
        ((2, 3, 4), (2, 4)),
        ((2, 3, 4), (2, 3, 4)),
        ((4,), (4,)),
        ((1, 2, 3, 4), (3, 4)),
    ],
)
def test_shapes_that_do_not_fit_are_refused(logits: tuple[int, ...], labels: tuple[int, ...]) -> None:
    with pytest.raises(RarenodeError):
        RareNodeLoss(DIAMOND)(torch.zeros(logits), torch.zeros(labels))


@pytest.mark.parametrize("wrong", [{"focus": "attention"}, {"focus": "BBMA"}, {"reduction": "median"}, {"focus": ""}])
def test_unknown_options_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError):
        RareNodeLoss(DIAMOND, **wrong)


def test_a_mask_or_weights_of_the_wrong_length_are_refused() -> None:
    with pytest.raises(RarenodeError):
        RareNodeLoss(DIAMOND, scored=np.ones(5, dtype=bool))
    with pytest.raises(RarenodeError):
        RareNodeLoss(DIAMOND, weights_of(np.ones(3), np.ones(3)))(torch.zeros(1, 4), torch.zeros(1, 4))


# --- cost ----------------------------------------------------------------------------------------------------------


class LargestTensor(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Remembers how many cells the largest tensor had that any operation returned."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.cells = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.cells = max(self.cells, leaf.numel(), leaf.untyped_storage().nbytes() // leaf.element_size())
        return result


def large_dag(nodes: int, edges_per_node: int) -> Hierarchy:
    rng = np.random.default_rng(11)
    pairs = {(int(parent), child) for child in range(1, nodes) for parent in rng.integers(child, size=edges_per_node)}
    return Hierarchy.from_edges(sorted((f"{parent:05d}", f"{child:05d}") for parent, child in pairs))


def batch_for(hierarchy: Hierarchy, members: int, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    rng = np.random.default_rng(12)
    leaves = rng.choice(len(hierarchy), size=(rows, 2))
    labels = hierarchy.close(hierarchy.encode([[hierarchy.nodes[i] for i in row] for row in leaves.tolist()]))
    logits = torch.tensor(rng.normal(size=(members, rows, len(hierarchy))), dtype=torch.float32, requires_grad=True)
    return logits, torch.tensor(labels)


@pytest.mark.parametrize("focus", [None, *FOCUSES])
@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_no_tensor_of_nodes_by_nodes(focus: Focus | None, reduction: Reduction) -> None:
    hierarchy = large_dag(600, 3)
    members, rows = 3, 4
    logits, labels = batch_for(hierarchy, members, rows)
    weights = node_weights(labels.numpy(), hierarchy)
    with LargestTensor() as largest:
        loss = RareNodeLoss(hierarchy, weights, focus=focus, reduction=reduction)
        loss(logits, labels).sum().backward()
    assert logits.grad is not None
    assert largest.cells >= members * rows * len(hierarchy)  # it did watch
    allowed = 2 * members * rows * max(len(hierarchy), len(hierarchy.edges))
    assert largest.cells <= allowed < len(hierarchy) ** 2


def test_no_array_of_nodes_by_nodes_outside_of_torch_either() -> None:
    """What numpy and Python allocate, from construction to gradient. A small hierarchy warms the kernels up."""
    small = large_dag(50, 2)
    RareNodeLoss(small, focus="gmu")(*batch_for(small, 2, 2)).backward()
    hierarchy = large_dag(3000, 2)
    logits, labels = batch_for(hierarchy, 2, 2)
    tracemalloc.start()
    try:
        RareNodeLoss(hierarchy, focus="gmu")(logits, labels).backward()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < len(hierarchy) ** 2 / 2
    assert logits.grad is not None


def test_labels_may_be_any_array_and_other_types_are_refused_by_name() -> None:
    hierarchy = Hierarchy.from_edges([("a", "b")])
    loss = RareNodeLoss(hierarchy)
    logits = torch.tensor([[1.0, 2.0], [3.0, -1.0]])
    Y = np.array([[True, False], [True, True]])
    expected = loss(logits, torch.from_numpy(Y.copy()))
    backwards = Y[::-1][::-1]
    backwards.flags.writeable = False
    torch.testing.assert_close(loss(logits, backwards), expected)
    torch.testing.assert_close(loss(logits, Y.tolist()), expected)
    with pytest.raises(ArgumentError, match="ndarray"):
        loss(logits.numpy(), torch.from_numpy(Y))
    with pytest.raises(ArgumentError, match="NodeWeights"):
        RareNodeLoss(hierarchy, weights=np.ones(2))  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="u0"):
        RareNodeLoss(hierarchy, u0="x")  # type: ignore[arg-type]


def test_weights_of_your_own() -> None:
    hierarchy = Hierarchy.from_edges([("a", "b")])
    weights = NodeWeights(positive=np.array([2.0, 3.0]), negative=np.array([5.0, 7.0]))
    loss = RareNodeLoss(hierarchy, weights, reduction="none")
    labels = torch.tensor([[True, False]])
    torch.testing.assert_close(loss(torch.zeros(1, 2), labels), np.log(2) * torch.tensor([[2.0, 7.0]]))


# --- unknown labels ------------------------------------------------------------------------------------------------


@st.composite
def half_known(draw: st.DrawFn, distinct: bool = False) -> tuple[Problem, NDArray[np.bool_]]:
    problem = draw(problems(distinct=distinct))
    labels, known = draw(three_valued(problem.hierarchy, problem.logits.shape[1]))
    return problem._replace(labels=labels), known


@given(half_known(), reductions, st.sampled_from((None, *FOCUSES)), st.data())
def test_unknown_cells_add_nothing(
    case: tuple[Problem, NDArray[np.bool_]], reduction: Reduction, focus: Focus | None, data: st.DataObject
) -> None:
    problem, known = case
    nodes = len(problem.hierarchy)
    pair, rows = data.draw(node_weight_pairs(nodes)), np.linspace(0.5, 2, len(known))
    scored = np.array([True, *data.draw(st.lists(st.booleans(), min_size=nodes - 1, max_size=nodes - 1))])
    loss = RareNodeLoss(problem.hierarchy, weights_of(*pair), focus, scored=scored, reduction=reduction)
    expected = oracles.reduce(expected_loss(problem, pair, focus) * rows[:, None], scored, reduction, known)
    for mask in (known, torch.tensor(known)):
        found = loss(*tensors(problem), row_weights=rows, known=mask).numpy()
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-10)


@given(half_known(distinct=True))
def test_unknown_cells_have_no_gradient(case: tuple[Problem, NDArray[np.bool_]]) -> None:
    problem, known = case
    logits, labels = tensors(problem, grad=True)
    RareNodeLoss(problem.hierarchy)(logits, labels, known=known).backward()
    assert logits.grad is not None
    factor = np.broadcast_to(known / max(1, known.sum()), problem.logits.shape)
    expected = oracles.loss_gradient(problem.logits, problem.labels, problem.hierarchy, factor)
    np.testing.assert_allclose(logits.grad.numpy(), expected, rtol=1e-8, atol=1e-12)
    assert not logits.grad.numpy()[:, ~known].any()


@given(half_known(), st.sampled_from((None, *FOCUSES)), st.data())
def test_what_is_predicted_at_unknown_cells_does_not_matter(
    case: tuple[Problem, NDArray[np.bool_]], focus: Focus | None, data: st.DataObject
) -> None:
    problem, known = case
    others = data.draw(arrays_of(tame_logits, problem.logits.shape))
    changed = problem._replace(logits=np.where(known, problem.logits, others))
    losses, gradients = [], []
    for one in (problem, changed):
        logits, labels = tensors(one, grad=True)
        loss = RareNodeLoss(problem.hierarchy, focus=focus)(logits, labels, known=known)
        loss.backward()
        assert logits.grad is not None
        losses.append(float(loss.detach()))
        gradients.append(logits.grad.numpy())
    assert losses[0] == losses[1]
    assert np.array_equal(gradients[0], gradients[1])


@given(problems(), reductions)
def test_if_all_is_known_nothing_changes(problem: Problem, reduction: Reduction) -> None:
    loss = RareNodeLoss(problem.hierarchy, reduction=reduction)
    everywhere = np.ones(problem.labels.shape, dtype=np.bool_)
    assert torch.equal(loss(*tensors(problem), known=everywhere), loss(*tensors(problem)))


def test_if_nothing_is_known_the_loss_is_0() -> None:
    for reduction in ("mean", "sum"):
        loss = RareNodeLoss(DIAMOND, reduction=reduction)
        assert float(loss(torch.ones(2, 4), torch.zeros(2, 4), known=np.zeros((2, 4), dtype=np.bool_))) == 0


@pytest.mark.parametrize("known", [np.ones((2, 4)), np.ones((1, 4), dtype=np.bool_), np.ones(4, dtype=np.bool_)])
def test_what_is_known_must_be_boolean_and_have_the_shape_of_the_labels(known: Any) -> None:
    with pytest.raises(LabelError, match=r"known must be boolean of the shape \(2, 4\)"):
        RareNodeLoss(DIAMOND)(torch.zeros(2, 4), torch.zeros(2, 4), known=known)
