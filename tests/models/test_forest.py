"""Forests against a slow oracle and scikit-learn; coherence to the last bit; hostile arrays; degenerate data."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
import safetensors.numpy
import sklearn.tree
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from rarenode import Hierarchy, make_hierarchical
from rarenode.data.dataset import Dataset, DatasetSplits
from rarenode.errors import ArgumentError, DataError, LabelError, TrainingError
from rarenode.models.forest import ROWS_AT_A_TIME, Forest, ForestSizes, find_leaf
from rarenode.models.forest_growth import grow_forest
from tests import oracles
from tests.strategies import closed_labels, hierarchies, three_valued

Floats = NDArray[np.float32]
Bools = NDArray[np.bool_]


# --- slow and obvious ----------------------------------------------------------------------------------------------


def as_dicts(forest: Forest, place: int) -> dict[str, Any]:
    """A tree as nested dicts, down from a place."""
    if forest.feature[place] == -1:
        rows = forest.leaf_rows[forest.leaf_starts[place] : forest.leaf_starts[place + 1]]
        return {"rows": rows.tolist()}
    return {
        "feature": int(forest.feature[place]),
        "threshold": float(forest.threshold[place]),
        "left": as_dicts(forest, int(forest.left[place])),
        "right": as_dicts(forest, int(forest.right[place])),
    }


def leaves_of(tree: dict[str, Any]) -> Iterator[list[int]]:
    if "rows" in tree:
        yield tree["rows"]
    else:
        yield from leaves_of(tree["left"])
        yield from leaves_of(tree["right"])


def mean_of_leaf_shares(
    forest: Forest, X: Floats, Y: Bools, weights: NDArray[np.float64] | None = None
) -> NDArray[np.float64]:
    """The formula: the mean over trees of the share, by weight, of a leaf's rows that have a node."""
    trees = [as_dicts(forest, root) for root in forest.roots.tolist()]
    probs = np.zeros((len(X), Y.shape[1]))
    for row, x in enumerate(X.tolist()):
        for tree in trees:
            here = tree
            while "rows" not in here:
                here = here["left"] if x[here["feature"]] <= here["threshold"] else here["right"]
            leaf_weights = None if weights is None else weights[here["rows"]]
            probs[row] += np.average(Y[here["rows"]], axis=0, weights=leaf_weights) / len(trees)
    return probs


def standardised(Y: Bools, scored: Bools, rarity: float) -> NDArray[np.float64]:
    columns = [
        (Y[:, node] - Y[:, node].mean()) / np.sqrt(Y[:, node].mean() * (1 - Y[:, node].mean())) ** rarity
        for node in range(Y.shape[1])
        if scored[node] and Y[:, node].any() and not Y[:, node].all()
    ]
    return np.stack(columns, axis=1)


# --- what forests are grown from -----------------------------------------------------------------------------------


class Case(NamedTuple):
    hierarchy: Hierarchy
    X: Floats
    Y: Bools
    queries: Floats
    forest: Forest
    weights: NDArray[np.float64]


def features(rows: int, width: int) -> st.SearchStrategy[Floats]:
    """Many ties, and numbers that float32 and float64 do not agree on."""
    few = st.sampled_from([-2.0, 0.0, 1.0, 5.0])
    return hnp.arrays(np.float32, (rows, width), elements=st.one_of(few, st.floats(-9, 9, width=32)))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    hierarchy = draw(hierarchies(7))
    rows, width = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    X, Y = draw(features(rows, width)), draw(closed_labels(hierarchy, rows))
    some = st.sampled_from([0.0, 1.0, 1.0, 0.25, 3.0, 1e-6, 1e6])
    weights = draw(st.none() | hnp.arrays(np.float32, rows, elements=some).filter(lambda w: w.any()))
    forest = grow_forest(
        X,
        Y,
        scored=draw(hnp.arrays(np.bool_, len(hierarchy))),
        trees=draw(st.integers(1, 7)),
        seed=draw(st.integers(0, 2**40)),
        smallest_leaf=draw(st.integers(1, 4)),
        features=draw(st.sampled_from([0.01, 1 / 3, 1.0])),
        projection=draw(st.integers(1, 8)),
        rarity=draw(st.sampled_from([0.0, 0.5, 1.0])),
        sample_weight=weights,
    )
    counted = np.ones(rows) if weights is None else weights.astype(np.float64)
    kept = counted > 0
    return Case(hierarchy, X[kept], Y[kept], draw(features(draw(st.integers(0, 4)), width)), forest, counted[kept])


def grow(dataset: DatasetSplits, **options: Any) -> Forest:
    given: dict[str, Any] = {"scored": dataset.scored, "trees": 5, "seed": 1} | options
    return grow_forest(dataset.train.X, dataset.train.Y, **given)


def synthetic(**options: Any) -> DatasetSplits:
    """Synthetic data in single precision."""

    def single(part: Dataset) -> Dataset:
        return replace(part, X=part.X.astype(np.float32))

    drawn = make_hierarchical(**options)
    return replace(drawn, train=single(drawn.train), test=single(drawn.test))


@pytest.fixture(scope="module")
def data() -> DatasetSplits:
    return synthetic(rows=320, nodes=60, depth=4, shape="dag", features=9, seed=4)


@pytest.fixture(scope="module")
def forest(data: DatasetSplits) -> Forest:
    return grow(data, smallest_leaf=2, projection=16)


class Recorder(sklearn.tree.ExtraTreeRegressor):  # type: ignore[misc]
    """scikit-learn's tree, which records what it was fitted to."""

    grown: list[Recorder]
    targets: NDArray[np.float64]
    weights: NDArray[np.float64] | None

    def fit(self, X: Floats, y: NDArray[np.float64], sample_weight: Any = None) -> Any:
        self.targets = y
        self.weights = sample_weight
        self.grown.append(self)
        return super().fit(X, y, sample_weight)


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Recorder]:
    """The trees that scikit-learn grows in a test, in the order of the forest's."""
    grown: list[Recorder] = []
    monkeypatch.setattr(Recorder, "grown", grown, raising=False)
    monkeypatch.setattr(sklearn.tree, "ExtraTreeRegressor", Recorder)
    return grown


def assert_same(one: Forest, other: Forest) -> None:
    for name, array in one.arrays().items():
        np.testing.assert_array_equal(array, other.arrays()[name], err_msg=name)


# --- predictions ---------------------------------------------------------------------------------------------------


@given(cases())
def test_probabilities_are_the_mean_share_of_leaves(case: Case) -> None:
    for X in (case.X, case.queries):
        probs = case.forest.predict_proba(X)
        assert probs.dtype == np.float32
        expected = mean_of_leaf_shares(case.forest, X, case.Y, case.weights)
        np.testing.assert_allclose(probs, expected, rtol=0, atol=1e-7)


@given(cases())
def test_no_child_exceeds_its_parent_by_a_single_bit(case: Case) -> None:
    probs = case.forest.predict_proba(np.concatenate([case.X, case.queries]))
    parents, children = case.hierarchy.edge_parents, case.hierarchy.edge_children
    assert (probs[:, parents] >= probs[:, children]).all()
    assert (probs >= 0).all()
    assert (probs <= 1).all()


@pytest.mark.parametrize("smallest_leaf", [1, 3, 7])
def test_coherence_on_larger_leaves_and_more_trees(data: DatasetSplits, smallest_leaf: int) -> None:
    probs = grow(data, trees=30, smallest_leaf=smallest_leaf).predict_proba(data.test.X)
    assert (probs[:, data.hierarchy.edge_parents] >= probs[:, data.hierarchy.edge_children]).all()
    np.testing.assert_array_equal(probs[:, data.train.Y.all(axis=0)], 1)
    np.testing.assert_array_equal(probs[:, ~data.train.Y.any(axis=0)], 0)


def test_our_walk_is_that_of_scikit_learn(data: DatasetSplits, recorded: list[Recorder]) -> None:
    forest = grow(data, threads=1)
    assert len(recorded) == 5
    near = forest.threshold[forest.feature >= 0][:400].astype(np.float32)
    on_thresholds = np.stack([near, np.nextafter(near, np.float32(-99)), np.nextafter(near, np.float32(99))])
    X = np.concatenate([data.train.X, data.test.X, np.repeat(on_thresholds.reshape(-1, 1), forest.features, axis=1)])
    for root, theirs in zip(forest.roots.tolist(), recorded, strict=True):
        walk = (forest.feature, forest.threshold, forest.left, forest.right)
        ours = [find_leaf(x, root, *walk) - root for x in X]
        np.testing.assert_array_equal(ours, theirs.apply(X))


def test_each_tree_divides_the_rows_into_leaves_of_the_least_size(data: DatasetSplits) -> None:
    forest = grow(data, smallest_leaf=4)
    for root in forest.roots.tolist():
        leaves = list(leaves_of(as_dicts(forest, root)))
        assert sorted(row for leaf in leaves for row in leaf) == list(range(len(data.train)))
        assert min(map(len, leaves)) >= 4
        assert len(leaves) > 2


def test_leaves_of_single_rows_reproduce_the_training_labels(data: DatasetSplits) -> None:
    np.testing.assert_array_equal(grow(data).predict_proba(data.train.X), data.train.Y)


def test_no_row_depends_on_others_or_on_the_layout_of_memory(data: DatasetSplits, forest: Forest) -> None:
    X = np.concatenate([data.train.X, data.test.X])
    assert len(X) > 3 * ROWS_AT_A_TIME
    probs = forest.predict_proba(X)
    np.testing.assert_array_equal(forest.predict_proba(np.asfortranarray(X)), probs)
    one_by_one = [forest.predict_proba(X[row : row + 1])[0] for row in range(0, len(X), 17)]
    np.testing.assert_array_equal(one_by_one, probs[::17])
    assert forest.predict_proba(X[:0]).shape == (0, forest.nodes)


def test_the_number_of_threads_changes_no_bit_of_a_prediction(data: DatasetSplits, forest: Forest) -> None:
    before = numba.get_num_threads()
    if before < 2:
        pytest.skip("numba has one thread here")
    try:
        numba.set_num_threads(1)
        alone = forest.predict_proba(data.train.X)
        numba.set_num_threads(2)
        np.testing.assert_array_equal(forest.predict_proba(data.train.X), alone)
    finally:
        numba.set_num_threads(before)


def _predict_in_child(answers: Any, forest: Forest, X: Any) -> None:
    try:
        forest.predict_proba(X)
    except TrainingError as error:
        answers.put(str(error))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system does not fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_a_forked_process_gets_an_error_instead_of_being_killed(data: DatasetSplits, forest: Forest) -> None:
    forest.predict_proba(data.train.X)
    context = multiprocessing.get_context("fork")
    answers = context.SimpleQueue()
    child = context.Process(target=_predict_in_child, args=(answers, forest, data.train.X))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert "spawn" in answers.get()


@pytest.mark.parametrize(
    ("X", "word"),
    [
        (np.zeros((2, 9)), "float64"),
        (np.zeros((2, 8), np.float32), "8"),
        (np.zeros(9, np.float32), "shape"),
        (np.array([[0] * 9, [0] * 8 + [np.nan]], np.float32), "row 1, feature 8 is nan"),
    ],
)
def test_rows_that_do_not_fit_are_refused(forest: Forest, X: Any, word: str) -> None:
    with pytest.raises(DataError, match=word):
        forest.predict_proba(X)


# --- growing -------------------------------------------------------------------------------------------------------


def test_the_seed_decides_everything(data: DatasetSplits) -> None:
    assert_same(grow(data, projection=8), grow(data, projection=8))
    one, other = grow(data), grow(data, seed=2)
    assert one.sizes != other.sizes or (one.threshold != other.threshold).any()


def test_a_tree_depends_neither_on_other_trees_nor_on_threads(data: DatasetSplits) -> None:
    few = grow(data, trees=2, projection=8, threads=1)
    many = grow(data, trees=6, projection=8, threads=4)
    for name in ("roots", "feature", "threshold", "left", "right", "leaf_rows"):
        mine = few.arrays()[name]
        np.testing.assert_array_equal(mine, many.arrays()[name][: len(mine)], err_msg=name)
    first, second = (as_dicts(few, root) for root in few.roots.tolist())
    assert first != second


@pytest.mark.parametrize("rarity", [0.0, 0.3, 1.0])
def test_few_targets_are_the_standardised_labels(data: DatasetSplits, recorded: list[Recorder], rarity: float) -> None:
    scored = np.arange(len(data.hierarchy)) % 3 == 0
    grow(data, scored=scored, rarity=rarity)
    np.testing.assert_allclose(recorded[0].targets, standardised(data.train.Y, scored, rarity), atol=1e-12)


def test_a_projection_keeps_distances(recorded: list[Recorder]) -> None:
    data = synthetic(rows=60, nodes=200, depth=3, features=3, labels_per_row=6, seed=0)
    grow(data, trees=2, projection=100, threads=1)
    exact = standardised(data.train.Y, data.scored, 0.5)
    assert exact.shape[1] > 100
    projected = recorded[0].targets
    assert projected.shape == (30, 100)
    np.testing.assert_array_equal(projected, recorded[1].targets)
    pairs = np.triu_indices(30, 1)
    lengths = [((some[:, None] - some[None]) ** 2).sum(axis=2)[pairs] for some in (exact, projected)]
    ratios = lengths[1][lengths[0] > 0] / lengths[0][lengths[0] > 0]  # of mean 1 and variance 2 / 100
    assert abs(ratios.mean() - 1) < 0.1
    assert ratios.std() < 0.25


def test_a_split_tries_the_given_share_of_features() -> None:
    """Only feature 2 separates the rows, so every tree that may look at it begins with it."""
    X = np.random.default_rng(0).uniform(size=(40, 5)).astype(np.float32)
    X[:20, 2] += 1000
    Y = X[:, 2:3] > 500
    first: list[set[int]] = []
    for share in (1.0, 0.2):
        forest = grow_forest(X, Y, scored=np.ones(1, np.bool_), trees=30, seed=0, features=share)
        first.append(set(forest.feature[forest.roots].tolist()))
    assert first == [{2}, {0, 1, 2, 3, 4}]


def test_nodes_that_are_not_scored_influence_no_split_and_are_predicted(data: DatasetSplits) -> None:
    scored = np.arange(len(data.hierarchy)) < 30
    Y = data.train.Y.copy()
    Y[:, 30:] = False
    full, empty = (
        grow_forest(data.train.X, labels, scored=scored, trees=3, seed=0, projection=8) for labels in (data.train.Y, Y)
    )
    np.testing.assert_array_equal(full.threshold, empty.threshold)
    assert full.predict_proba(data.test.X)[:, 30:].any()
    assert not empty.predict_proba(data.test.X)[:, 30:].any()


@pytest.mark.parametrize(
    ("X", "Y"),
    [
        ([[1.0, 2.0]], [[1, 0, 1]]),
        ([[1.0, 2.0], [3.0, 4.0]], [[1, 0, 1], [1, 0, 1]]),
        ([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]], [[1, 1, 0], [1, 0, 1], [0, 0, 0]]),
        ([[1.0, 2.0], [3.0, 4.0]], [[0, 0, 0], [0, 0, 0]]),
    ],
    ids=["one row", "equal labels", "constant features", "no labels"],
)
def test_where_no_node_distinguishes_rows_a_tree_is_one_leaf(X: Any, Y: Any) -> None:
    X, Y = np.array(X, np.float32), np.array(Y, np.bool_)
    forest = grow_forest(X, Y, scored=np.ones(3, np.bool_), trees=4, seed=0)
    assert forest.sizes == ForestSizes(4, 4, 4 * len(X), len(X), int(Y.sum()))
    expected = np.broadcast_to(Y.mean(axis=0).astype(np.float32), Y.shape)
    np.testing.assert_array_equal(forest.predict_proba(X), expected)


def test_without_a_scored_node_a_tree_is_one_leaf(data: DatasetSplits) -> None:
    forest = grow(data, scored=np.zeros(len(data.hierarchy), np.bool_))
    assert forest.sizes.places == 5
    np.testing.assert_allclose(forest.predict_proba(data.test.X)[0], data.train.Y.mean(axis=0), rtol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"trees": 0}, "trees"),
        ({"seed": -1}, "seed"),
        ({"smallest_leaf": 1.5}, "smallest_leaf"),
        ({"projection": 0}, "projection"),
        ({"features": 0.0}, "features"),
        ({"features": float("nan")}, "features"),
        ({"rarity": 1.1}, "rarity"),
        ({"scored": np.ones(3, np.bool_)}, "scored"),
        ({"trees": 2**29}, "fewer trees"),
    ],
)
def test_bad_options_are_named(data: DatasetSplits, wrong: dict[str, Any], word: str) -> None:
    with pytest.raises(ArgumentError, match=word):
        grow(data, **wrong)


@pytest.mark.parametrize(
    ("X", "Y", "error", "word"),
    [
        (np.zeros((2, 1), np.float32), np.zeros((3, 2), np.bool_), DataError, "X has 2 rows and Y 3"),
        (np.zeros((0, 1), np.float32), np.zeros((0, 2), np.bool_), DataError, "at least one row"),
        (np.zeros((2, 0), np.float32), np.zeros((2, 2), np.bool_), DataError, "features"),
        (np.full((2, 1), np.inf, np.float32), np.zeros((2, 2), np.bool_), DataError, "row 0, feature 0 is inf"),
        (np.zeros((2, 1), np.float32), np.zeros((2, 2)), LabelError, "float64"),
    ],
)
def test_data_that_do_not_fit_are_refused(X: Any, Y: Any, error: type[Exception], word: str) -> None:
    with pytest.raises(error, match=word):
        grow_forest(X, Y, scored=np.ones(2, np.bool_), trees=1, seed=0)


# --- sample weights ------------------------------------------------------------------------------------------------


def test_equal_weights_are_no_weights(data: DatasetSplits) -> None:
    rows = len(data.train)
    plain, doubled = grow(data), grow(data, sample_weight=np.full(rows, 2.0, dtype=np.float32))
    for name, array in plain.arrays().items():
        if name != "row_weights":
            np.testing.assert_array_equal(array, doubled.arrays()[name], err_msg=name)
    np.testing.assert_allclose(plain.predict_proba(data.test.X), doubled.predict_proba(data.test.X), rtol=1e-6)


def test_a_row_that_counts_nothing_is_not_there(data: DatasetSplits) -> None:
    weights = (np.arange(len(data.train)) % 3 > 0).astype(np.float32)
    some = data.train.take(np.flatnonzero(weights))
    expected = grow_forest(some.X, some.Y, scored=data.scored, trees=5, seed=1)
    assert_same(grow(data, sample_weight=weights), expected)


def test_scikit_learn_gets_the_weights(data: DatasetSplits, recorded: list[Recorder]) -> None:
    weights = np.linspace(0.1, 2, len(data.train), dtype=np.float32)
    grow(data, sample_weight=weights)
    for tree in recorded:
        assert tree.weights is not None
        np.testing.assert_array_equal(tree.weights, weights)


@pytest.mark.parametrize("wrong", [[1.0], [-1.0] * 160, [np.nan] * 160, [0.0] * 160, [np.inf] * 160])
def test_bad_weights_are_refused(data: DatasetSplits, wrong: list[float]) -> None:
    with pytest.raises(ArgumentError, match="sample_weight must be 160 numbers of at least 0"):
        grow(data, sample_weight=np.array(wrong))


# --- files ---------------------------------------------------------------------------------------------------------


def test_saved_arrays_are_the_same_forest(data: DatasetSplits, forest: Forest) -> None:
    read = safetensors.numpy.load(safetensors.numpy.save(forest.arrays()))
    layout = Forest.layout(forest.describe())
    assert {name: (array.dtype, array.shape) for name, array in read.items()} == layout
    again = Forest.from_arrays(forest.describe(), read, data.hierarchy)
    assert_same(forest, again)
    np.testing.assert_array_equal(again.predict_proba(data.test.X), forest.predict_proba(data.test.X))


def test_the_arrays_of_a_forest_cannot_be_changed(forest: Forest) -> None:
    for array in forest.arrays().values():
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1


@pytest.mark.parametrize("wrong", [{"trees": 0}, {"places": -1}, {"labels": -1}, {"leaf_rows": 2**31}, {"trees": 1.0}])
def test_sizes_out_of_range_are_named(forest: Forest, wrong: dict[str, Any]) -> None:
    with pytest.raises(ArgumentError, match=next(iter(wrong))):
        replace(forest.sizes, **wrong)


SMALL = Hierarchy.from_edges([("a", "b"), ("b", "c"), ("d", "c")])
"""Its columns are a, d, b, c."""


def small_arrays() -> dict[str, NDArray[Any]]:
    """Two trees over three training rows, {a}, {} and {a, d, b, c}, and two features; the second tree is a leaf."""
    whole = {
        "roots": [0, 5],
        "feature": [1, -1, 0, -1, -1, -1],
        "left": [1, -1, 3, -1, -1, -1],
        "right": [2, -1, 4, -1, -1, -1],
        "leaf_starts": [0, 0, 1, 1, 2, 3, 6],
        "leaf_rows": [2, 0, 1, 0, 1, 2],
        "label_starts": [0, 1, 1, 5],
        "label_columns": [0, 0, 1, 2, 3],
    }
    arrays: dict[str, NDArray[Any]] = {name: np.array(values, dtype=np.int32) for name, values in whole.items()}
    arrays["threshold"] = np.array([0.5, 0.0, -1.0, 0.0, 0.0, 0.0])
    arrays["row_weights"] = np.ones(3)
    return arrays


DESCRIPTION = {"features": 2, "nodes": 4, "trees": 2, "places": 6, "leaf_rows": 6, "training_rows": 3, "labels": 5}


def test_the_small_forest_is_sound() -> None:
    forest = Forest.from_arrays(DESCRIPTION, small_arrays(), SMALL)
    probs = forest.predict_proba(np.array([[0, 0], [-1, 1]], np.float32))
    np.testing.assert_allclose(probs, [[5 / 6, 4 / 6, 4 / 6, 4 / 6], [5 / 6, 1 / 6, 1 / 6, 1 / 6]], rtol=1e-6)


def put(name: str, at: int, value: float) -> Callable[[dict[str, Any]], None]:
    def change(arrays: dict[str, Any]) -> None:
        arrays[name][at] = value

    return change


def swap(name: str, make: Callable[[NDArray[Any]], Any]) -> Callable[[dict[str, Any]], None]:
    def change(arrays: dict[str, Any]) -> None:
        arrays[name] = make(arrays[name])

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays.pop("left"), "'left' is missing"),
        (lambda arrays: arrays.update(more=arrays["left"]), "'more' should not be there"),
        (swap("left", lambda a: a.astype(np.int64)), "'left' is int64"),
        (swap("left", lambda a: a.astype(">i4")), "'left' is >i4"),
        (swap("threshold", lambda a: a.astype(np.float32)), "'threshold' is float32"),
        (swap("leaf_rows", lambda a: a.astype(object)), "'leaf_rows' is object"),
        (swap("right", lambda a: a[:-1]), r"'right' is int32 \(5,\); int32 \(6,\)"),
        (swap("roots", lambda a: a.reshape(1, 2)), r"'roots' is int32 \(1, 2\)"),
        (swap("leaf_starts", lambda a: a[:-1]), "'leaf_starts' is int32"),
        (swap("roots", lambda a: a[:0]), r"'roots' is int32 \(0,\)"),
        (swap("feature", lambda a: a[:0]), r"'feature' is int32 \(0,\)"),
        (swap("label_starts", lambda a: a[:0]), r"'label_starts' is int32 \(0,\)"),
        (put("feature", 0, 2), "'feature' has 2 at 0: it must be from -1 to 1"),
        (put("feature", 2, -2), "'feature' has -2 at 2"),
        (put("feature", 2, -1), "'left' has 3 at 2: a leaf has no child"),
        (put("threshold", 0, np.nan), "'threshold' has nan at 0"),
        (put("threshold", 1, np.inf), "'threshold' has inf at 1"),
        (put("left", 2, 2), "'left' has 2 at 2: a child must lie after its parent"),
        (put("left", 2, 0), "'left' has 0 at 2: a child must lie after its parent"),
        (put("right", 2, 6), "'right' has 6 at 2: a child must lie after its parent and before 6"),
        (put("right", 2, -1), "'right' has -1 at 2"),
        (put("right", 1, 3), "'right' has 3 at 1: a leaf has no child"),
        (put("right", 2, 3), "place 3 in 2 ways"),
        (put("left", 0, 4), "place 1 in 0 ways"),
        (put("roots", 1, 6), "'roots' has 6 at 1"),
        (put("roots", 1, -1), "'roots' has -1 at 1"),
        (put("roots", 1, 0), "place 0 in 2 ways"),
        (put("leaf_starts", 0, -1), "'leaf_starts' goes from -1 to 6; it must go from 0 to 6"),
        (put("leaf_starts", 6, 7), "'leaf_starts' goes from 0 to 7"),
        (put("leaf_starts", 3, 2**31 - 1), "'leaf_starts' has 2 at 3: it must not fall"),
        (put("leaf_starts", 3, -(2**31)), "'leaf_starts' has -2147483648 at 2: it must not fall"),
        (put("leaf_starts", 2, 0), "'leaf_starts' is wrong at 1: the place is a leaf, and has no rows"),
        (put("leaf_starts", 1, 1), "'leaf_starts' is wrong at 0: the place is no leaf, and has rows"),
        (put("leaf_rows", 1, 3), "'leaf_rows' has 3 at 1: it must be from 0 to 2"),
        (put("leaf_rows", 1, -1), "'leaf_rows' has -1 at 1"),
        (put("leaf_rows", 4, 0), "'leaf_rows' has 0 at 4: it must be more than the value before"),
        (put("row_weights", 1, 0), "'row_weights' has 0.0 at 1: it must be from 1e-30 to 1e\\+30"),
        (put("row_weights", 1, -1), "'row_weights' has -1.0 at 1"),
        (put("row_weights", 1, 5e-324), "'row_weights' has 5e-324 at 1"),
        (put("row_weights", 1, 1e31), "'row_weights' has 1e\\+31 at 1"),
        (put("row_weights", 1, np.nan), "'row_weights' has nan at 1"),
        (swap("row_weights", lambda a: a[:-1]), "'row_weights' is float64"),
        (put("label_starts", 0, 1), "'label_starts' goes from 1 to 5"),
        (put("label_starts", 3, 4), "'label_starts' goes from 0 to 4"),
        (put("label_starts", 1, 2), "'label_starts' has 1 at 1: it must not fall"),
        (put("label_columns", 4, 4), "'label_columns' has 4 at 4: it must be from 0 to 3"),
        (put("label_columns", 4, -1), "'label_columns' has -1 at 4"),
        (put("label_columns", 4, 2), "'label_columns' has 2 at 4: it must be more than the value before"),
        (put("label_columns", 0, 2), "training row 0 has 'b' but not its parent 'a'"),
        (put("label_columns", 0, 3), "training row 0 has 'c' but not its parent 'd'"),
        (put("label_starts", 2, 2), "training row 2 has 'b' but not its parent 'a'"),
    ],
)
def test_arrays_that_are_no_forest_are_refused(change: Callable[[dict[str, Any]], None], message: str) -> None:
    arrays = small_arrays()
    change(arrays)
    with pytest.raises(ArgumentError, match=message):
        Forest.from_arrays(DESCRIPTION, arrays, SMALL)


@pytest.mark.parametrize(("features", "nodes"), [(0, 4), (2, 0), (2.0, 4)])
def test_a_forest_without_features_or_nodes_is_refused(features: Any, nodes: Any) -> None:
    with pytest.raises(ArgumentError, match="whole number"):
        Forest(features=features, nodes=nodes, hierarchy=None, **small_arrays())


@settings(max_examples=200)
@given(st.data())
def test_damaged_arrays_are_refused_or_harmless(drawn: st.DataObject) -> None:
    description, arrays = drawn.draw(st.sampled_from([lambda: (DESCRIPTION, small_arrays()), small_and_unknown]))()
    for _ in range(drawn.draw(st.integers(1, 3))):
        array = arrays[drawn.draw(st.sampled_from(sorted(arrays)))]
        at = drawn.draw(st.integers(0, len(array) - 1))
        if array.dtype == np.float64:
            array[at] = drawn.draw(st.floats())
        else:
            array[at] = drawn.draw(st.one_of(st.integers(-2, 8), st.sampled_from([-(2**31), 2**31 - 1])))
    try:
        forest = Forest.from_arrays(description, arrays, SMALL)
    except ArgumentError:
        return
    probs = forest.predict_proba(drawn.draw(features(3, 2)))
    assert ((probs >= 0) & (probs <= 1)).all()
    assert (probs[:, SMALL.edge_parents] >= probs[:, SMALL.edge_children]).all()


# --- unknown labels --------------------------------------------------------------------------------------------------


class HalfKnown(NamedTuple):
    hierarchy: Hierarchy
    X: Floats
    Y: Bools
    known: Bools
    queries: Floats
    weights: Floats | None

    def grow(self, **options: Any) -> Forest:
        given: dict[str, Any] = {"scored": np.ones(len(self.hierarchy), dtype=np.bool_), "trees": 3, "seed": 5}
        given |= {"sample_weight": self.weights, "known": self.known, "hierarchy": self.hierarchy}
        return grow_forest(self.X, self.Y, **(given | options))


@st.composite
def half_known(draw: st.DrawFn) -> HalfKnown:
    hierarchy = draw(hierarchies(7))
    rows, width = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    Y, known = draw(three_valued(hierarchy, rows))
    some = st.sampled_from([0.0, 1.0, 0.25, 3.0])
    weights = draw(st.none() | hnp.arrays(np.float32, rows, elements=some).filter(lambda w: w.any()))
    return HalfKnown(hierarchy, draw(features(rows, width)), Y, known, draw(features(4, width)), weights)


def shares_of_known_rows(forest: Forest, case: HalfKnown, X: Floats) -> NDArray[np.float64]:
    """The formula, before the constraint: rows count as often as leaves hold them, by weight, if the node is known."""
    weights = np.ones(len(case.X)) if case.weights is None else case.weights.astype(np.float64)
    kept = weights > 0
    Y, known, weights = case.Y[kept], case.known[kept], weights[kept]
    trees = [as_dicts(forest, root) for root in forest.roots.tolist()]
    probs = np.zeros((len(X), Y.shape[1]))
    for row, x in enumerate(X.tolist()):
        near = np.zeros(len(Y))
        for tree in trees:
            here = tree
            while "rows" not in here:
                here = here["left"] if x[here["feature"]] <= here["threshold"] else here["right"]
            near[here["rows"]] += weights[here["rows"]] / weights[here["rows"]].sum() / len(trees)
        for node in range(Y.shape[1]):
            rows = known[:, node]
            counts = near if near[rows].any() else weights
            if rows.any():
                probs[row, node] = counts[rows & Y[:, node]].sum() / counts[rows].sum()
    return probs


@given(half_known(), st.integers(1, 4), st.sampled_from([1, 64]))
def test_rows_where_a_node_is_unknown_say_nothing_about_it(case: HalfKnown, smallest_leaf: int, targets: int) -> None:
    forest = case.grow(smallest_leaf=smallest_leaf, projection=targets)
    for X in (case.X, case.queries):
        probs = forest.predict_proba(X)
        assert (probs[:, case.hierarchy.edge_parents] >= probs[:, case.hierarchy.edge_children]).all()
        assert ((probs >= 0) & (probs <= 1)).all()
        expected = oracles.constrain(shares_of_known_rows(forest, case, X), case.hierarchy)
        np.testing.assert_allclose(probs, expected, rtol=0, atol=1e-6)


@given(half_known())
def test_a_forest_with_unknown_labels_is_saved_with_them(case: HalfKnown) -> None:
    forest = case.grow()
    again = Forest.from_arrays(forest.describe(), forest.arrays(), case.hierarchy)
    assert_same(forest, again)
    np.testing.assert_array_equal(again.predict_proba(case.queries), forest.predict_proba(case.queries))
    counted = case.known if case.weights is None else case.known[case.weights > 0]
    assert forest.describe().get("unknown", 0) == (~counted).sum()
    assert ("unknown" in forest.describe()) == ("unknown_columns" in forest.arrays()) == (not counted.all())


def test_a_mask_of_what_is_known_everywhere_is_none(data: DatasetSplits) -> None:
    masked = grow(data, known=np.ones(data.train.Y.shape, dtype=np.bool_), hierarchy=data.hierarchy)
    plain = grow(data)
    assert masked.arrays().keys() == plain.arrays().keys()
    assert_same(masked, plain)
    np.testing.assert_array_equal(masked.predict_proba(data.test.X), plain.predict_proba(data.test.X))


def test_splits_take_the_nodes_share_for_what_is_unknown(recorded: list[Recorder]) -> None:
    """As if a column were standardised over its known rows, and 0, its mean, elsewhere; then centred."""
    rng = np.random.default_rng(3)
    flat = Hierarchy.from_edges([], nodes=list("abc"))
    X, known = rng.standard_normal((30, 2), dtype=np.float32), rng.random((30, 3)) < 0.7
    Y = (rng.random((30, 3)) < 0.4) & known
    scored = np.ones(3, dtype=np.bool_)
    grow_forest(X, Y, scored=scored, trees=1, seed=0, rarity=1.0, known=known, hierarchy=flat)
    share = np.array([Y[known[:, node], node].mean() for node in range(3)])
    expected = np.where(known, Y - share, 0) / np.sqrt(share * (1 - share))
    np.testing.assert_allclose(recorded[0].targets, expected - expected.mean(axis=0), atol=1e-12)


def test_a_child_that_is_known_more_often_raises_its_parent() -> None:
    chain = Hierarchy.from_edges([("a", "b")])
    Y = np.array([[1, 1], [0, 0], [0, 0]], dtype=np.bool_)
    known = np.array([[1, 1], [1, 0], [1, 0]], dtype=np.bool_)  # no completed labels: b is unknown where a is absent
    X = np.zeros((3, 1), dtype=np.float32)
    forest = grow_forest(X, Y, scored=np.ones(2, dtype=np.bool_), trees=2, seed=0, known=known, hierarchy=chain)
    assert forest.predict_proba(X[:1]).tolist() == [[1.0, 1.0]]


def test_unknown_labels_need_a_hierarchy(data: DatasetSplits) -> None:
    known = data.train.Y | (np.arange(len(data.train)) > 3)[:, None]
    with pytest.raises(ArgumentError, match="needs the hierarchy"):
        grow(data, known=known)
    with pytest.raises(LabelError, match="known must be boolean"):
        grow(data, known=known[1:], hierarchy=data.hierarchy)


def small_and_unknown() -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The small forest, where b and c are unknown in row 0."""
    arrays = small_arrays()
    arrays["unknown_starts"] = np.array([0, 2, 2, 2], dtype=np.int32)
    arrays["unknown_columns"] = np.array([2, 3], dtype=np.int32)
    return DESCRIPTION | {"unknown": 2}, arrays


def test_the_small_forest_with_unknown_labels() -> None:
    """Row 2 weighs 4/6, the others 1/6 each: of 5/6 that know b and c, 4/6 have them. The constraint raises d."""
    forest = Forest.from_arrays(*small_and_unknown(), SMALL)
    probs = forest.predict_proba(np.array([[0, 0]], np.float32))
    np.testing.assert_allclose(probs, [[5 / 6, 4 / 5, 4 / 5, 4 / 5]], rtol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays.pop("unknown_starts"), "'unknown_starts' is missing"),
        (swap("unknown_columns", lambda a: a[:-1]), r"'unknown_columns' is int32 \(1,\)"),
        (put("unknown_starts", 3, 1), "'unknown_starts' goes from 0 to 1"),
        (put("unknown_starts", 1, 3), "'unknown_starts' has 2 at 1: it must not fall"),
        (put("unknown_columns", 1, 4), "'unknown_columns' has 4 at 1: it must be from 0 to 3"),
        (put("unknown_columns", 1, 2), "'unknown_columns' has 2 at 1: it must be more than the value before"),
    ],
)
def test_unknown_labels_that_are_none_are_refused(change: Callable[[dict[str, Any]], None], message: str) -> None:
    description, arrays = small_and_unknown()
    change(arrays)
    with pytest.raises(ArgumentError, match=message):
        Forest.from_arrays(description, arrays, SMALL)
