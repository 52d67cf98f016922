"""`node_weights`: what each kind of annotation weighs, in both forms."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rarenode import Hierarchy, node_weights
from rarenode.errors import ArgumentError, LabelError, NotClosedError
from rarenode.objective.weights import rarity
from tests import oracles
from tests.strategies import Graph, closed_labels, graphs, hierarchies, plain_names, three_valued, trees

Form = Literal["as_published", "as_described"]
Classes = Literal["nodes", "binary"]

SIDES: tuple[oracles.Side, ...] = ("negatives", "positives", "both")
RESCALINGS: tuple[oracles.Rescaling, ...] = ("published", "printed")
PRESETS: dict[Form, tuple[oracles.Side, oracles.Rescaling]] = {
    "as_published": ("negatives", "published"),
    "as_described": ("positives", "printed"),
}

TREE = Hierarchy.from_edges([("r", "a"), ("r", "b"), ("a", "c")])  # columns r a b c
# Column sums 4 2 1 1, so n = 8 3 1 1 with 5 rows, and w = 5 / (4 n) = 5/32, 5/12, 5/4, 5/4.
LABELS = TREE.close(TREE.encode([["c"], ["a"], ["b"], ["r"], []]))


@st.composite
def labelled(draw: st.DrawFn) -> tuple[Hierarchy, NDArray[np.bool_]]:
    hierarchy = draw(hierarchies())
    return hierarchy, draw(closed_labels(hierarchy, draw(st.integers(1, 6))))


w0s = st.sampled_from((0.0, 0.25, 0.5, 1.0, 1.5))


def test_the_published_form_by_hand() -> None:
    weights = node_weights(LABELS, TREE, w0=0.25)
    low, high = 5 / 32, 5 / 4
    middle = 0.25 + high * (5 / 12 - low) / (high - low)
    assert weights.negative == pytest.approx([0.25, middle, 0.25 + high, 0.25 + high])
    assert weights.positive.tolist() == [1.0] * 4


def test_the_described_form_by_hand() -> None:
    weights = node_weights(LABELS, TREE, w0=0.5, form="as_described")
    low, high = 5 / 32, 5 / 4
    middle = 0.5 + 5 / 12 * (5 / 12 - low) / (high - low)
    assert weights.positive == pytest.approx([0.5, middle, 0.5 + high, 0.5 + high])
    assert weights.negative.tolist() == [1.0] * 4


def test_two_classes_by_hand() -> None:
    weights = node_weights(LABELS, TREE, w0=0.0, classes="binary")
    low, high = 5 / 16, 5 / 2
    assert weights.negative == pytest.approx([0.0, high * (5 / 6 - low) / (high - low), high, high])


def test_the_defaults_are_the_published_ones() -> None:
    one = node_weights(LABELS, TREE)
    other = node_weights(LABELS, TREE, w0=0.25, form="as_published", classes="nodes")
    assert one.negative.tolist() == other.negative.tolist()
    assert one.positive.tolist() == other.positive.tolist()


def test_a_row_counts_once_for_each_labelled_descendant() -> None:
    """On a DAG, n sums the columns of distinct descendants: e is below a twice over and counts once."""
    dag = Hierarchy.from_edges([("a", "c"), ("a", "d"), ("c", "e"), ("d", "e"), ("x", "y")])
    Y = dag.close(dag.encode([["e"], ["c"], ["x"], [], [], [], []]))
    counts = dict(zip(dag.nodes, oracles.multi_count(Y, dag), strict=True))
    assert counts == {"a": 2 + 2 + 1 + 1, "x": 1, "c": 3, "d": 2, "y": 0, "e": 1}
    raw = {name: 7 / (6 * n) if n else 1.0 for name, n in counts.items()}
    span = max(raw.values()) - min(raw.values())
    expected = [0.25 + max(raw.values()) * (raw[name] - min(raw.values())) / span for name in dag.nodes]
    assert node_weights(Y, dag).negative == pytest.approx(expected)


def test_a_node_never_seen_and_one_counted_once_a_row_weigh_1_before_rescaling() -> None:
    forest = Hierarchy.from_edges([("p", "q")], nodes=["always", "never", "sometimes"])
    Y = forest.encode([["always", "sometimes"], ["always"], ["always"], ["always", "p"]])
    # w: always 1, never 1, p 4/5, q 1, sometimes 4/5
    weights = node_weights(Y, forest, w0=0.25)
    by_name = dict(zip(forest.nodes, weights.negative.tolist(), strict=True))
    assert by_name == pytest.approx({"always": 1.25, "never": 1.25, "q": 1.25, "p": 0.25, "sometimes": 0.25})


@pytest.mark.parametrize("form", ["as_published", "as_described"])
def test_equal_weights_everywhere_leave_the_gate_alone(form: Form) -> None:
    islands = Hierarchy.from_edges([], nodes=["x", "y", "z"])
    Y = islands.encode([["x", "y", "z"], []])
    weights = node_weights(Y, islands, w0=0.25, form=form)
    assert (weights.negative if form == "as_published" else weights.positive).tolist() == [0.25] * 3


@given(labelled(), w0s, st.sampled_from(sorted(PRESETS)), st.sampled_from(("nodes", "binary")))
def test_both_forms_match_the_oracle(
    case: tuple[Hierarchy, NDArray[np.bool_]], w0: float, form: Form, classes: Classes
) -> None:
    hierarchy, Y = case
    weights = node_weights(Y, hierarchy, w0=w0, form=form, classes=classes)
    side, rescaling = PRESETS[form]
    expected = oracles.node_weights(Y, hierarchy, w0, side, rescaling, len(hierarchy) if classes == "nodes" else 2)
    np.testing.assert_allclose(weights.positive, expected.positive, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(weights.negative, expected.negative, rtol=1e-12, atol=1e-12)
    assert weights.positive.dtype == weights.negative.dtype == np.float64
    assert weights.positive.shape == weights.negative.shape == (len(hierarchy),)
    assert weights.w0 == w0
    assert weights.side == side


@given(labelled(), st.sampled_from(sorted(PRESETS)), st.sampled_from(SIDES), st.sampled_from(RESCALINGS))
def test_side_and_rescaling_replace_what_the_form_says(
    case: tuple[Hierarchy, NDArray[np.bool_]], form: Form, side: oracles.Side, rescaling: oracles.Rescaling
) -> None:
    hierarchy, Y = case
    weights = node_weights(Y, hierarchy, form=form, side=side, rescaling=rescaling)
    expected = oracles.node_weights(Y, hierarchy, 0.25, side, rescaling, len(hierarchy))
    np.testing.assert_allclose(weights.positive, expected.positive, rtol=1e-12)
    np.testing.assert_allclose(weights.negative, expected.negative, rtol=1e-12)
    assert weights.side == side

    only_side = node_weights(Y, hierarchy, form=form, side=side)
    expected = oracles.node_weights(Y, hierarchy, 0.25, side, PRESETS[form][1], len(hierarchy))
    np.testing.assert_allclose(only_side.positive, expected.positive, rtol=1e-12)
    np.testing.assert_allclose(only_side.negative, expected.negative, rtol=1e-12)

    only_rescaling = node_weights(Y, hierarchy, form=form, rescaling=rescaling)
    expected = oracles.node_weights(Y, hierarchy, 0.25, PRESETS[form][0], rescaling, len(hierarchy))
    np.testing.assert_allclose(only_rescaling.positive, expected.positive, rtol=1e-12)
    np.testing.assert_allclose(only_rescaling.negative, expected.negative, rtol=1e-12)


@given(st.one_of(trees(), graphs()), st.data())
def test_names_and_row_order_do_not_matter(graph: Graph, data: st.DataObject) -> None:
    hierarchy = graph.build()
    Y = data.draw(closed_labels(hierarchy, 5))
    renamed = dict(zip(graph.nodes, data.draw(st.permutations(plain_names(len(graph.nodes)))), strict=True))
    other = Hierarchy.from_edges([(renamed[p], renamed[c]) for p, c in graph.edges[::-1]], nodes=renamed.values())
    columns = [other.index[renamed[name]] for name in hierarchy.nodes]
    moved = np.empty_like(Y)
    moved[:, columns] = Y[data.draw(st.permutations(range(5)))]
    np.testing.assert_allclose(
        node_weights(moved, other).negative[columns], node_weights(Y, hierarchy).negative, rtol=1e-12
    )


@pytest.mark.parametrize("dtype", [np.bool_, np.int64, np.float32])
def test_any_type_of_label_matrix(dtype: type) -> None:
    assert node_weights(LABELS.astype(dtype), TREE).negative.tolist() == node_weights(LABELS, TREE).negative.tolist()


def test_unclosed_labels_are_refused_with_row_and_node() -> None:
    Y = LABELS.copy()
    Y[3, TREE.index["c"]] = True
    with pytest.raises(NotClosedError, match=r"(?=.*\brow 3\b)(?=.*'c')"):
        node_weights(Y, TREE)


def test_labels_of_the_wrong_shape_are_refused() -> None:
    with pytest.raises(LabelError):
        node_weights(LABELS[:, :3], TREE)


@pytest.mark.parametrize(
    "wrong", [{"form": "as_guessed"}, {"classes": "three"}, {"side": "left"}, {"rescaling": "none"}]
)
def test_unknown_options_are_refused_by_name(wrong: dict[str, str]) -> None:
    (value,) = wrong.values()
    with pytest.raises(ArgumentError, match=value):
        node_weights(LABELS, TREE, **wrong)  # type: ignore[arg-type]


# --- unknown labels ------------------------------------------------------------------------------------------------


@given(hierarchies(), st.integers(1, 6), w0s, st.sampled_from(SIDES), st.sampled_from(RESCALINGS), st.data())
def test_a_node_counts_among_the_rows_where_it_is_known(
    hierarchy: Hierarchy,
    rows: int,
    w0: float,
    side: oracles.Side,
    rescaling: oracles.Rescaling,
    data: st.DataObject,
) -> None:
    Y, known = data.draw(three_valued(hierarchy, rows))
    found = node_weights(Y, hierarchy, w0, side=side, rescaling=rescaling, known=known)
    expected = oracles.node_weights(Y, hierarchy, w0, side, rescaling, len(hierarchy), known)
    np.testing.assert_allclose(found.positive, expected.positive, rtol=1e-9)
    np.testing.assert_allclose(found.negative, expected.negative, rtol=1e-9)


@given(labelled(), st.sampled_from(("nodes", "binary")))
def test_a_mask_of_what_is_known_everywhere_is_none(
    case: tuple[Hierarchy, NDArray[np.bool_]], classes: Classes
) -> None:
    hierarchy, Y = case
    everywhere = np.ones(Y.shape, dtype=np.bool_)
    assert np.array_equal(node_weights(Y, hierarchy, known=everywhere).negative, node_weights(Y, hierarchy).negative)
    shares = rarity(Y, hierarchy, classes, everywhere)  # by shares, although all is known
    np.testing.assert_allclose(shares, rarity(Y, hierarchy, classes), rtol=1e-12)


def test_unknown_labels_by_hand() -> None:
    """Columns r a b c; a is in 2 of the 4 rows where it is known, c in 1 of 2."""
    Y = LABELS
    known = np.array([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 1, 1], [1, 0, 1, 0], [1, 1, 1, 0]], dtype=np.bool_)
    expected = [1 / (4 * (4 / 5 + 2 / 4 + 1 / 5 + 1 / 2)), 1.0, 1 / (4 * (1 / 5)), 1 / (4 * (1 / 2))]
    np.testing.assert_allclose(rarity(Y, TREE, "nodes", known), expected)


def test_what_is_known_must_fit() -> None:
    with pytest.raises(LabelError, match="known must be boolean"):
        node_weights(LABELS, TREE, known=np.ones((5, 3), dtype=np.bool_))
