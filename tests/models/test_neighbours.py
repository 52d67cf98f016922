"""`Neighbours` against loops over rows, written from the formula."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rarenode import Hierarchy
from rarenode.errors import ArgumentError, DataError, LabelError
from rarenode.models import Neighbours, fit_neighbours, metric_learning, neighbour_fitting, neighbours
from rarenode.models.neighbours import Form, in_form, measure_widths
from tests import oracles
from tests.strategies import closed_labels, hierarchies

Floats = NDArray[np.float64]
CHAIN = Hierarchy.from_edges([("a", "b"), ("b", "c")])


# --- the formula, slowly ---------------------------------------------------------------------------------------------


def points_of(X: NDArray[Any], form: Form) -> Floats:
    points = np.array([[math.asinh(value) for value in row] for row in X.astype(np.float64)])
    if form == "values":
        return points
    return np.array([centred / max(np.linalg.norm(centred), 1e-6) for centred in (p - p.mean() for p in points)])


def distance(x: Floats, y: Floats) -> float:
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(x, y, strict=True)))


def width(x: Floats, others: list[Floats], least: float) -> float:
    return max(sorted(distance(x, other) for other in others)[: neighbours.NEIGHBOUR][-1], least)


def widths_of(points: Floats) -> list[float]:
    least = 1e-4 * math.sqrt(sum(float(p @ p) for p in points) / len(points)) or 1.0
    if len(points) == 1:
        return [least]
    return [width(p, [q for j, q in enumerate(points) if j != i], least) for i, p in enumerate(points)]


def probability(
    x: Floats, points: Floats, widths: list[float], scale: float, Y: Any, known: Any, weights: Any, overall: Any
) -> Floats:
    h = width(x, list(points), min(widths))
    nearness = [-distance(x, p) / (scale * math.sqrt(h * hp)) for p, hp in zip(points, widths, strict=True)]
    top = max(nearness)
    w = [v * math.exp(n - top) for v, n in zip(weights, nearness, strict=True)]
    result = np.zeros(Y.shape[1])
    for node in range(Y.shape[1]):
        telling = [r for r in range(len(points)) if known[r, node]]
        total = sum(w[r] for r in telling)
        result[node] = sum(w[r] for r in telling if Y[r, node]) / total if total > 0 else overall[node]
    return result


def expected(model: Neighbours, X: Any, Xtrain: Any, Y: Any, known: Any, weights: Any, hierarchy: Hierarchy) -> Floats:
    points = points_of(Xtrain, model.form) * model.metric
    widths = widths_of(points)
    counted = weights @ known
    overall = np.divide(weights @ (Y & known), counted, out=np.zeros(Y.shape[1]), where=counted > 0)
    rows = points_of(X, model.form) * model.metric
    probs = [probability(x, points, widths, model.scale, Y, known, weights, overall) for x in rows]
    return oracles.constrain(np.array(probs), hierarchy)


# --- probabilities ---------------------------------------------------------------------------------------------------


@settings(max_examples=30)
@given(data=st.data())
def test_probabilities_are_those_of_the_formula(data: st.DataObject) -> None:
    hierarchy = data.draw(hierarchies())
    rows, features = data.draw(st.integers(1, 25)), data.draw(st.integers(1, 5))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    X = rng.normal(size=(rows, features)).astype(np.float32)
    X[: rows // 3] = X[0]  # equal rows
    Y = data.draw(closed_labels(hierarchy, rows))
    weights = rng.choice([0.5, 1.0, 3.0], size=rows)
    known = np.ones(Y.shape, dtype=np.bool_)
    if data.draw(st.booleans()):
        known = Y | (rng.random(Y.shape) < 0.7)
    model = fit_neighbours(X, Y, sample_weight=weights.astype(np.float32), known=known, hierarchy=hierarchy, seed=0)
    form: Form = data.draw(st.sampled_from(["values", "shape"]))
    scale = data.draw(st.sampled_from([0.1, 0.5, 3.0]))
    metric = rng.choice([0.0, 0.5, 1.0, 2.0], size=features).astype(np.float32)
    model = replace(
        model,
        form=form,
        scale=scale,
        metric=metric,
        points=in_form(X, form) * metric,
        widths=np.array(widths_of(points_of(X, form) * metric), np.float32),
    )
    new = rng.normal(size=(4, features)).astype(np.float32)
    np.testing.assert_allclose(
        model.predict_proba(new), expected(model, new, X, Y, known, weights, hierarchy), rtol=2e-3, atol=1e-5
    )


@given(st.integers(1, 40), st.integers(1, 4), st.integers(0, 2**32))
def test_widths_are_distances_to_the_tenth_neighbour(rows: int, features: int, seed: int) -> None:
    X = np.random.default_rng(seed).normal(size=(rows, features)).astype(np.float32)
    model = fit_neighbours(X, np.ones((rows, 1), dtype=np.bool_))
    np.testing.assert_allclose(model.widths, widths_of(points_of(X, model.form)), rtol=1e-3, atol=1e-5)


def test_the_form_and_the_scale_are_those_with_the_least_loss_of_rows_left_out() -> None:
    rng = np.random.default_rng(3)
    X = rng.normal(size=(40, 6)).astype(np.float32)
    Y = oracles.close(np.column_stack([X[:, 0] > 0, X[:, 1] > 0, X[:, 2] > 1]), CHAIN)
    everything, ones = np.ones(Y.shape, dtype=np.bool_), np.ones(len(Y))
    share = Y.mean(axis=0)
    losses = {}
    forms: tuple[Form, ...] = ("values", "shape")
    for form in forms:
        points = points_of(X, form)
        widths = widths_of(points)
        for scale in neighbour_fitting.SCALES:
            loss = 0.0
            for row in range(len(X)):
                rest = [other for other in range(len(X)) if other != row]
                near = [widths[other] for other in rest]
                p = probability(points[row], points[rest], near, scale, Y[rest], everything[rest], ones[rest], share)
                p = (1 - metric_learning.PRIOR_SHARE) * p + metric_learning.PRIOR_SHARE * share
                loss -= np.where(Y[row], np.log(p), np.log1p(-p)).sum()
            losses[form, scale] = loss
    model = fit_neighbours(X, Y)
    best = min(losses, key=lambda pair: losses[pair])
    assert (model.form, model.scale) == best
    assert sorted(losses.values())[1] - losses[best] > 1e-3  # not by chance


def test_near_rows_count_more_and_all_rows_count() -> None:
    X = np.array([[0.0, 1.0], [0.1, 1.1], [9.0, -9.0]], dtype=np.float32)
    Y = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1]], dtype=np.bool_)
    probs = fit_neighbours(X, Y).predict_proba(X)
    assert probs[0, 2] < probs[2, 2]
    assert (probs[:, 2] > 0).all()
    assert (probs[:, 0] == 1).all()


def test_rows_that_count_0_are_left_out() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 3)).astype(np.float32), np.repeat(rng.random((30, 1)) < 0.5, 3, axis=1)
    weights = (np.arange(30) % 3 > 0).astype(np.float32)
    some = fit_neighbours(X, Y, sample_weight=weights)
    without = fit_neighbours(X[weights > 0], Y[weights > 0])
    np.testing.assert_array_equal(some.predict_proba(X), without.predict_proba(X))


@pytest.mark.parametrize("unequal", [1e17, 1e25])
def test_very_unequal_weights(unequal: float) -> None:
    """One row has nearly all the weight, and nodes that it has not are next to impossible."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2)).astype(np.float32)
    Y = np.column_stack([X[:, 0] > 0, X[:, 0] <= 0])
    weights = np.where(np.arange(60) == 0, unequal, 1).astype(np.float32)
    probs = fit_neighbours(X, Y, sample_weight=weights).predict_proba(X)
    assert np.isfinite(probs).all()
    np.testing.assert_allclose(probs[0], Y[0], atol=1e-3)


def test_threads_change_no_bit() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(100, 7)).astype(np.float32), np.repeat(rng.random((100, 1)) < 0.3, 3, axis=1)
    before, found = numba.get_num_threads(), []
    for threads in (1, before):
        numba.set_num_threads(threads)
        model = fit_neighbours(X, Y)
        found.append((model.form, model.scale, model.widths.tobytes(), model.predict_proba(X).tobytes()))
    numba.set_num_threads(before)
    assert found[0] == found[1]


def test_parts_of_rows_change_no_bit(monkeypatch: pytest.MonkeyPatch) -> None:
    """In parts so that Ctrl-C need not wait for all rows."""
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(100, 9)).astype(np.float32), np.repeat(rng.random((100, 1)) < 0.3, 3, axis=1)
    found = []
    for least in (neighbours.LEAST_AT_A_TIME, 7):
        monkeypatch.setattr(neighbours, "LEAST_AT_A_TIME", least)
        monkeypatch.setattr(neighbours, "NUMBERS_AT_A_TIME", 1 if least == 7 else 1 << 30)
        model = fit_neighbours(X, Y)
        found.append((model.form, model.scale, model.widths.tobytes(), model.predict_proba(X).tobytes()))
    assert found[0] == found[1]


def test_rows_to_compare_are_drawn_by_the_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbour_fitting, "MOST_COMPARED", 5)
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(60, 2)).astype(np.float32), np.repeat(rng.random((60, 1)) < 0.3, 3, axis=1)
    chosen = {(model.form, model.scale) for model in (fit_neighbours(X, Y, seed=seed) for seed in range(10))}
    assert len(chosen) > 1
    again = fit_neighbours(X, Y, seed=3)
    assert (again.form, again.scale) == (fit_neighbours(X, Y, seed=3).form, fit_neighbours(X, Y, seed=3).scale)


def test_a_constant_feature_and_a_single_row() -> None:
    X = np.ones((12, 1), dtype=np.float32)
    Y = np.array([[True, False, False]] * 12)
    for rows in (1, 12):
        np.testing.assert_array_equal(fit_neighbours(X[:rows], Y[:rows]).predict_proba(X[:1]), [[1, 0, 0]])


# --- the metric ------------------------------------------------------------------------------------------------------


def training_rows(rows: int, features: int, seed: int, unknown: bool) -> metric_learning.TrainingRows:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, features)).astype(np.float32)
    Y = oracles.close(rng.random((rows, 3)) < 0.4, CHAIN)
    known = Y | (rng.random(Y.shape) < 0.7) if unknown else np.ones(Y.shape, dtype=np.bool_)
    model = fit_neighbours(X, Y, sample_weight=rng.choice([0.5, 2.0], size=rows).astype(np.float32), known=known,
                           hierarchy=CHAIN)  # fmt: skip
    share = (model.row_weights @ Y) / (model.row_weights @ known)
    return metric_learning.TrainingRows.of(in_form(X, "values"), share, model.arrays())


@pytest.mark.parametrize("unknown", [False, True])
def test_the_gradient_is_the_slope_of_the_loss(unknown: bool) -> None:
    rows, queries = training_rows(40, 3, 5, unknown), np.arange(0, 40, 3)
    widths = measure_widths(rows.points)
    logs = np.log([0.7, 1.5, 1.0, 0.3])  # of the metric, and of the scale

    def loss(logs: Any) -> Floats:
        metric, scale = np.exp(logs[:-1]).astype(np.float32), float(np.exp(logs[-1]))
        found: Floats = rows.losses(queries, widths, metric, [scale])[0]
        return found

    metric, scale = np.exp(logs[:-1]).astype(np.float32), float(np.exp(logs[-1]))
    # The width of a query's own neighbourhood moves with the metric, which the gradient takes for constant.
    gradients = rows.gradients(queries, widths, metric, scale)
    step = np.zeros(4)
    step[3] = 1e-3
    np.testing.assert_allclose(gradients[:, 3], (loss(logs + step) - loss(logs - step)) / 2e-3, rtol=1e-2, atol=1e-3)
    for feature in range(3):
        expected = slope_with_constant_width(rows, queries, widths, metric, scale, feature)
        np.testing.assert_allclose(gradients[:, feature], expected, rtol=2e-2, atol=2e-3)


def test_several_scales_at_once_are_each_alone() -> None:
    rows, queries, metric = training_rows(40, 3, 6, unknown=False), np.arange(40), np.ones(3, dtype=np.float32)
    widths = measure_widths(rows.points)
    together = rows.losses(queries, widths, metric, [0.1, 1.0, 0.3])
    for losses, scale in zip(together, [0.1, 1.0, 0.3], strict=True):
        assert np.array_equal(losses, rows.losses(queries, widths, metric, [scale])[0])


def slope_with_constant_width(
    rows: metric_learning.TrainingRows, queries: Any, widths: Any, metric: Any, scale: float, feature: int
) -> Floats:
    """By differences, from the formula, slowly."""
    Y, known = (np.zeros((len(rows.points), 3), dtype=np.bool_), np.ones((len(rows.points), 3), dtype=np.bool_))
    for row in range(len(rows.points)):
        Y[row, rows.label_columns[rows.label_starts[row] : rows.label_starts[row + 1]]] = True
        if len(rows.unknown_starts):
            known[row, rows.unknown_columns[rows.unknown_starts[row] : rows.unknown_starts[row + 1]]] = False
    result = []
    for row in queries.tolist():
        rest = np.array([other for other in range(len(rows.points)) if other != row])
        points = rows.points.astype(np.float64)
        h = width(points[row] * metric, list(points[rest] * metric), float(widths.min()))

        def loss(factor: float, row: int = row, rest: Any = rest, points: Any = points, h: float = h) -> float:
            a = metric.astype(np.float64)
            a[feature] *= factor
            d = np.sqrt((((points[rest] - points[row]) * a) ** 2).sum(axis=1))
            w = rows.row_weights[rest] * np.exp(-d / (scale * np.sqrt(h * widths[rest])))
            p = (w @ (Y & known)[rest]) / (w @ known[rest])
            p = (1 - metric_learning.PRIOR_SHARE) * p + metric_learning.PRIOR_SHARE * rows.share
            return float(-np.where(Y[row], np.log(p), np.log1p(-p))[known[row]].sum())

        result.append((loss(math.exp(1e-4)) - loss(math.exp(-1e-4))) / 2e-4)
    return np.array(result)


def test_a_feature_that_tells_nothing_counts_less() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 6)).astype(np.float32)
    Y = oracles.close(np.column_stack([X[:, 0] > -1, X[:, 0] > 0, (X[:, 0] > 0) & (X[:, 1] > 0)]), CHAIN)
    model = fit_neighbours(X, Y)
    assert model.metric[:2].min() > 1.5 * model.metric[2:].max()
    plain = replace(
        model, metric=np.ones(6, dtype=np.float32), points=in_form(X, model.form),
        widths=measure_widths(in_form(X, model.form)),
    )  # fmt: skip
    new = rng.normal(size=(300, 6)).astype(np.float32)
    truth = oracles.close(np.column_stack([new[:, 0] > -1, new[:, 0] > 0, (new[:, 0] > 0) & (new[:, 1] > 0)]), CHAIN)

    def loss(one: Neighbours) -> float:
        p = np.clip(one.predict_proba(new).astype(np.float64), 1e-3, 1 - 1e-3)
        return float(-np.where(truth, np.log(p), np.log1p(-p)).mean())

    assert loss(model) < loss(plain)


def test_of_few_rows_no_metric_is_learned_and_of_many_some_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = training_rows(40, 3, 0, False)
    metric, scale = metric_learning.learn_metric(rows, 0.2, np.random.default_rng(0))
    assert (metric.tolist(), scale) == ([1.0, 1.0, 1.0], 0.2)
    monkeypatch.setattr(metric_learning, "MOST_ROWS", 60)
    found = metric_learning.learn_metric(training_rows(200, 3, 0, True), 0.2, np.random.default_rng(0))
    assert found[0].shape == (3,)
    assert np.isfinite(found[0]).all()


# --- mistakes --------------------------------------------------------------------------------------------------------


def test_training_rows_that_cannot_be_used() -> None:
    X, Y = np.zeros((2, 1), dtype=np.float32), np.ones((2, 3), dtype=np.bool_)
    with pytest.raises(LabelError, match="Y must be boolean"):
        fit_neighbours(X, Y.astype(np.int8))
    with pytest.raises(DataError, match="X has 1 row and Y 2"):
        fit_neighbours(X[:1], Y)
    with pytest.raises(DataError, match="at least one training row"):
        fit_neighbours(X[:0], Y[:0])
    with pytest.raises(DataError, match="is nan"):
        fit_neighbours(np.full((2, 1), np.nan, dtype=np.float32), Y)
    with pytest.raises(ArgumentError, match="sample_weight"):
        fit_neighbours(X, Y, sample_weight=np.zeros(2, dtype=np.float32))


def test_a_record_that_cannot_be_used() -> None:
    X = np.arange(4, dtype=np.float32)[:, None]
    Y = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 1, 1]], dtype=np.bool_)
    model = fit_neighbours(X, Y, hierarchy=CHAIN)
    cases: list[tuple[dict[str, Any], str]] = [
        ({"scale": 0.0}, "scale must be"),
        ({"scale": math.nan}, "scale must be"),
        ({"form": "other"}, "unknown form 'other'"),
        ({"nodes": 0}, "nodes must be"),
        ({"widths": np.zeros(4, dtype=np.float32)}, "'widths' has 0.0 at 0"),
        ({"points": np.full_like(model.points, 1e20)}, r"'points' has 1.*e\+20 at 0: it must be from -1e\+12 to"),
        ({"metric": -np.ones(1, dtype=np.float32)}, "'metric' has -1.0 at 0"),
        ({"row_weights": np.array([1.0, 1, -1, 1])}, "'row_weights' has -1.0 at 2"),
        ({"label_columns": model.label_columns + np.int32(7)}, "'label_columns' has 7 at 0"),
        ({"unknown_starts": np.array([0, 1, 1, 1, 1], dtype=np.int32), "unknown_columns": np.zeros(1, dtype=np.int32),
          "hierarchy": None}, "need the hierarchy"),
    ]  # fmt: skip
    for changes, says in cases:
        with pytest.raises(ArgumentError, match=says):
            replace(model, **changes)
    open_labels = model.arrays() | {"label_columns": np.array([0, 2, 0, 0, 1, 2], dtype=np.int32)}
    with pytest.raises(ArgumentError, match="training row 0 has 'c' but not its parent 'b'"):
        Neighbours.from_arrays(model.describe(), open_labels, CHAIN)


@pytest.mark.parametrize("scale", [1.0, 0.3, 0.1, 0.03, 0.003, 0.0003])
def test_rows_that_know_a_node_count_however_small_their_weight(scale: float) -> None:
    """Near rows do not know it. The weight of the far ones is below rounding first, and then below any float."""
    X = np.zeros((60, 1), dtype=np.float32)
    X[:40, 0], X[40:50, 0], X[50:, 0] = np.linspace(-0.5, 0.5, 40), np.linspace(5, 5.2, 10), np.linspace(5.02, 5.3, 10)
    points = np.arcsinh(X)
    Y, known = np.zeros((60, 2), dtype=np.bool_), np.ones((60, 2), dtype=np.bool_)
    Y[40:50, 1], known[:40, 1], known[:, 0] = True, False, False  # and no row knows the other node
    hierarchy = Hierarchy.from_edges([], ["a", "b"])
    model = replace(
        fit_neighbours(X, Y, known=known, hierarchy=hierarchy),
        form="values", scale=scale, metric=np.ones(1, dtype=np.float32), points=points,
        widths=np.full(60, 0.1, dtype=np.float32),
    )  # fmt: skip
    x = points[20].astype(np.float64)
    gaps = np.abs(points[:, 0].astype(np.float64) - x)
    h = max(np.sort(gaps)[neighbours.NEIGHBOUR - 1], 0.1)
    exponents = (-gaps / (scale * math.sqrt(h * 0.1)))[40:]
    weights = np.exp(exponents - exponents.max())
    found = model.predict_proba(X[20:21])[0]
    assert found[1] == pytest.approx(weights[:10].sum() / weights.sum(), rel=1e-3)
    assert found[0] == 0


def test_compiled_code_from_the_cache_gives_the_same_bits(tmp_path: Path) -> None:
    """Without vectors, a sum in any order was rounded in one way by a fresh compilation and in another by the cache."""
    script = """
import numpy as np
from rarenode.models.neighbours import measure_widths
for features in (2, 3, 5, 7):
    points = np.random.default_rng(0).normal(size=(300, features)).astype(np.float32)
    print(measure_widths(points).tobytes().hex())
"""
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    fresh, cached = (
        subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True).stdout
        for _ in range(2)
    )
    assert len(fresh) > 8 * 1200
    assert fresh == cached
