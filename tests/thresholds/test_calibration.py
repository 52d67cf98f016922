"""Calibration: temperatures, isotonic curves, reliability and its error, against slow versions of each."""

from __future__ import annotations

import math
import pickle
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from rarenode import Hierarchy
from rarenode.errors import ArgumentError, LabelError
from rarenode.metrics import RARITY_BANDS
from rarenode.thresholds import probabilities as blocks
from rarenode.thresholds.calibration import (
    HIGHEST_TEMPERATURE,
    LOWEST_TEMPERATURE,
    Calibration,
    Isotonic,
    Temperature,
    TemperatureByDepth,
)
from rarenode.thresholds.calibration_error import ece, ece_by_rarity, reliability
from tests import oracles
from tests.strategies import closed_labels, hierarchies, probabilities

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

coarse = st.sampled_from((0.0, 0.1, 0.25, 0.3, 0.5, 0.7, 1.0))
kinds: list[type[Calibration]] = [Temperature, TemperatureByDepth, Isotonic]


class Case(NamedTuple):
    hierarchy: Hierarchy
    probs: Floats
    Y: Bools


@st.composite
def cases(draw: st.DrawFn, most_rows: int = 8) -> Case:
    """Probabilities, coherent or not, with closed labels."""
    hierarchy = draw(hierarchies(6))
    rows = draw(st.integers(1, most_rows))
    elements = draw(st.sampled_from((coarse, probabilities())))
    probs = draw(hnp.arrays(np.float64, (rows, len(hierarchy)), elements=elements))
    return Case(hierarchy, probs, draw(closed_labels(hierarchy, rows)))


def fitted(kind: type[Calibration], case: Case, least: int = 2) -> Calibration:
    if kind is Temperature:
        return Temperature.fit(case.probs, case.Y, case.hierarchy)
    several = TemperatureByDepth if kind is TemperatureByDepth else Isotonic
    return several.fit(case.probs, case.Y, case.hierarchy, least=least)


def flat(nodes: int) -> Hierarchy:
    """Nodes without edges: nothing is above anything."""
    return Hierarchy.from_edges([], nodes=[f"n{number:03d}" for number in range(nodes)])


def sigmoid(z: Floats) -> Floats:
    return 1 / (1 + np.exp(-z))


def drawn(seed: int, shape: tuple[int, int], temperature: float, middle: float = -2.0) -> tuple[Floats, Bools]:
    """Probabilities, and labels that come true as if the logits were divided by the temperature."""
    rng = np.random.default_rng(seed)
    z = rng.normal(middle, 2.0, shape)
    return sigmoid(z), rng.random(shape) < sigmoid(z / temperature)


def log_loss(p: Floats, Y: Bools, temperature: float) -> float:
    """Mean over cells, of logits cut off at 17 as the module says."""
    total = 0.0
    for probability, label in zip(p.ravel().tolist(), Y.ravel().tolist(), strict=True):
        inner = min(max(probability, 1e-300), 1 - 1e-16)
        z = min(max(math.log(inner) - math.log1p(-inner), -17.0), 17.0) / temperature
        total += math.log1p(math.exp(-abs(z))) + max(z, 0.0) - z * label
    return total / p.size


# --- one temperature -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("truth", [0.5, 1.0, 2.5])
def test_the_temperature_that_made_the_labels_is_found(truth: float) -> None:
    probs, Y = drawn(0, (4000, 10), truth)
    assert Temperature.fit(probs, Y, flat(10)).value == pytest.approx(truth, rel=0.04)


@given(cases())
def test_no_other_temperature_has_a_lower_loss(case: Case) -> None:
    assume(0 < np.count_nonzero(case.Y) < case.Y.size)
    value = Temperature.fit(case.probs, case.Y, case.hierarchy).value
    assert LOWEST_TEMPERATURE <= value <= HIGHEST_TEMPERATURE
    best = min(log_loss(case.probs, case.Y, t) for t in np.geomspace(LOWEST_TEMPERATURE, HIGHEST_TEMPERATURE, 201))
    assert log_loss(case.probs, case.Y, value) <= best + 1e-4 * (1 + best)


@pytest.mark.parametrize("truth", [0.3, 1.0, 4.0])
def test_counting_logits_in_bins_costs_no_accuracy(truth: float) -> None:
    probs, Y = drawn(2, (300, 4), truth)
    z = np.log(probs) - np.log1p(-probs)
    flattest, steepest = 1 / HIGHEST_TEMPERATURE, 1 / LOWEST_TEMPERATURE
    for _ in range(60):  # halve the slopes between which the exact loss stops falling
        middle = (flattest + steepest) / 2
        falls = (z * (sigmoid(middle * z) - Y)).sum() < 0
        flattest, steepest = (middle, steepest) if falls else (flattest, middle)
    assert Temperature.fit(probs, Y, flat(4)).value == pytest.approx(1 / flattest, rel=1e-5)


def test_a_temperature_by_hand() -> None:
    # Two of three rows at 0.8 are positive: the loss is least where 0.8 becomes 2/3, and logit(0.8) = 2 logit(2/3).
    hierarchy = flat(1)
    calibrated = Temperature.fit([[0.8], [0.8], [0.8]], [[1], [0], [1]], hierarchy)
    assert calibrated.value == pytest.approx(2.0)
    assert calibrated.apply([[0.8], [0.2]], hierarchy) == pytest.approx(np.array([[2 / 3], [1 / 3]]))


def test_labels_that_are_separated_or_contradicted_end_at_the_bounds() -> None:
    assert Temperature.fit([[0.9], [0.1]], [[1], [0]], flat(1)).value == LOWEST_TEMPERATURE
    assert Temperature.fit([[0.9], [0.1]], [[0], [1]], flat(1)).value == HIGHEST_TEMPERATURE


@pytest.mark.parametrize("Y", [[[0, 0], [0, 0]], [[1, 1], [1, 1]]])
def test_labels_of_one_kind_leave_the_probabilities_alone(Y: list[list[int]]) -> None:
    assert Temperature.fit([[0.9, 0.3], [0.1, 0.2]], Y, flat(2)).value == 1.0


def test_probabilities_that_are_all_one_half_have_nothing_to_temper() -> None:
    assert Temperature.fit([[0.5], [0.5]], [[1], [0]], flat(1)).value == 1.0


def test_one_wrong_cell_of_probability_0_does_not_decide_the_temperature() -> None:
    probs, Y = drawn(1, (2000, 5), 1.0)
    before = Temperature.fit(probs, Y, flat(5)).value
    probs[0, 0], Y[0, 0] = 0.0, True
    after = Temperature.fit(probs, Y, flat(5)).value
    assert before < after < before * 1.05


def test_0_and_1_stay() -> None:
    assert Temperature(3.0).apply([[0.0, 1.0]], flat(2)).tolist() == [[0.0, 1.0]]


# --- by depth ------------------------------------------------------------------------------------------------------


def three_deep() -> Hierarchy:
    return Hierarchy.from_edges([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("c", "e")])


def test_each_depth_has_the_temperature_of_its_own_nodes() -> None:
    hierarchy = three_deep()
    parts = [drawn(depth, (3000, count), t) for depth, count, t in ((0, 1, 0.6), (1, 2, 1.0), (2, 2, 2.0))]
    probs, Y = np.hstack([p for p, _ in parts]), np.hstack([y for _, y in parts])
    values = TemperatureByDepth.fit(probs, Y, hierarchy).values
    alone = [Temperature.fit(p, y, flat(p.shape[1])).value for p, y in parts]
    assert values == pytest.approx(alone)
    assert values == pytest.approx((0.6, 1.0, 2.0), rel=0.15)


def test_a_depth_with_too_few_cells_of_a_side_takes_the_temperature_of_all() -> None:
    hierarchy = three_deep()
    probs, Y = drawn(3, (500, 5), 2.0)
    Y[:, 0] = True
    Y[5:, 3:] = False
    Y[:5, 3], Y[:5, 4] = True, False
    overall = Temperature.fit(probs, Y, hierarchy).value
    at_six = TemperatureByDepth.fit(probs, Y, hierarchy, least=6).values
    assert at_six[0] == at_six[2] == overall
    assert at_six[1] != overall
    at_five = TemperatureByDepth.fit(probs, Y, hierarchy, least=5).values
    assert at_five[:2] == at_six[:2]
    assert at_five[2] != overall


def test_the_temperature_of_each_depth_is_applied_to_its_nodes() -> None:
    hierarchy = three_deep()
    probs = np.array([[0.9, 0.3, 0.3, 0.2, 0.1]])
    result = TemperatureByDepth((0.5, 1.0, 2.0)).apply(probs, hierarchy)
    wanted = [0.81 / 0.82, 1 / 3, 1 / 3, 1 / 3, 0.25]  # odds 81, then 0.3 raised to the 1/3 of d below, odds 1/2, 1/3
    assert result[0] == pytest.approx(wanted)


# --- isotonic ------------------------------------------------------------------------------------------------------


def slow_isotonic(p: Sequence[float], y: Sequence[bool]) -> dict[float, float]:
    """At each distinct probability: the largest, over beginnings at or below, of the smallest mean up to an end."""
    points = sorted(set(p))

    def mean(first: float, last: float) -> float:
        inside = [label for probability, label in zip(p, y, strict=True) if first <= probability <= last]
        return sum(inside) / len(inside)

    return {
        x: max(min(mean(first, last) for last in points if last >= x) for first in points if first <= x) for x in points
    }


def slow_line(x: float, curve: dict[float, float]) -> float:
    """On the straight line between the neighbours, level beyond the ends."""
    below, above = [q for q in curve if q <= x], [q for q in curve if q >= x]
    if not below or not above:
        return curve[min(above) if above else max(below)]
    left, right = max(below), min(above)
    share = 0.0 if left == right else (x - left) / (right - left)
    return curve[left] + share * (curve[right] - curve[left])


@given(cases(), st.lists(st.floats(0, 1), min_size=1, max_size=5))
def test_curves_match_the_minmax_formula_and_lines(case: Case, others: list[float]) -> None:
    calibrated = Isotonic.fit(case.probs, case.Y, case.hierarchy, least=1)
    with_positives = [j for j in range(case.Y.shape[1]) if case.Y[:, j].any()]
    assert [curve.column for curve in calibrated.curves] == with_positives
    for curve in calibrated.curves:
        p, y = case.probs[:, curve.column].tolist(), case.Y[:, curve.column].tolist()
        slow = slow_isotonic(p, y)
        for x in [*p, *others]:
            assert np.interp(x, curve.probs, curve.frequencies) == pytest.approx(slow_line(x, slow), abs=1e-9)


def test_a_curve_by_hand() -> None:
    # In order of probability: 0, then (1, 0) pooled to 1/2, then two rows tied at 0.8 of which one, then 1.
    probs = np.array([[0.1], [0.2], [0.4], [0.8], [0.8], [0.9]])
    Y = np.array([[0], [1], [0], [1], [0], [1]])
    curve = Isotonic.fit(probs, Y, flat(1), least=3).curves[0]
    assert curve.probs.tolist() == [0.1, 0.2, 0.8, 0.9]
    assert curve.frequencies.tolist() == [0.0, 0.5, 0.5, 1.0]
    result = Isotonic.fit(probs, Y, flat(1), least=3).apply([[0.0], [0.15], [0.6], [0.85], [1.0]], flat(1))
    assert result[:, 0] == pytest.approx([0.0, 0.25, 0.5, 0.75, 1.0])


def test_a_node_with_too_few_positives_takes_the_temperature_of_its_depth() -> None:
    probs, Y = drawn(4, (400, 3), 2.0)
    Y[:, 1] = False
    Y[:19, 1] = True
    calibrated = Isotonic.fit(probs, Y, flat(3))
    assert [curve.column for curve in calibrated.curves] == [0, 2]
    tempered = TemperatureByDepth.fit(probs, Y, flat(3)).apply(probs, flat(3))
    result = calibrated.apply(probs, flat(3))
    assert (result[:, 1] == tempered[:, 1]).all()
    assert not np.allclose(result[:, 0], tempered[:, 0])
    Y[19, 1] = True
    assert [curve.column for curve in Isotonic.fit(probs, Y, flat(3)).curves] == [0, 1, 2]


def test_isotonic_mends_a_shift_that_no_temperature_can() -> None:
    rng = np.random.default_rng(5)
    z = rng.normal(-2.0, 1.5, (6000, 3))
    Y, shifted = rng.random(z.shape) < sigmoid(z), sigmoid(z + 2.0)
    learn, check = slice(0, 3000), slice(3000, None)
    errors = {
        kind: ece(kind.fit(shifted[learn], Y[learn], flat(3)).apply(shifted[check], flat(3)), Y[check])
        for kind in (Temperature, Isotonic)
    }
    assert errors[Isotonic] < 0.03
    assert errors[Temperature] > 0.1


# --- every calibration ---------------------------------------------------------------------------------------------


def slow_apply(calibrated: Calibration, probs: Floats, hierarchy: Hierarchy) -> Floats:
    """Cell by cell, then the maximum over descendants."""
    corrected = np.empty(probs.shape)
    tempering = calibrated.by_depth if isinstance(calibrated, Isotonic) else calibrated
    curves = {c.column: c for c in calibrated.curves} if isinstance(calibrated, Isotonic) else {}
    for row, column in np.ndindex(probs.shape):
        p = float(probs[row, column])
        if column in curves:
            points = dict(zip(curves[column].probs.tolist(), curves[column].frequencies.tolist(), strict=True))
            corrected[row, column] = slow_line(p, points)
            continue
        if isinstance(tempering, Temperature):
            temperature = tempering.value
        else:
            assert isinstance(tempering, TemperatureByDepth)
            temperature = tempering.values[oracles.depth(hierarchy.edges, hierarchy.nodes[column])]
        # Powers of p and 1 - p, over the larger of the two so that they do not both vanish.
        up, down = (max(p, 1 - p) ** -1 * side for side in (p, 1 - p))
        up, down = up ** (1 / temperature), down ** (1 / temperature)
        corrected[row, column] = up / (up + down)
    return oracles.constrain(corrected, hierarchy)


@pytest.mark.parametrize("kind", kinds)
@given(data=st.data())
def test_applying_matches_the_oracle_and_is_coherent(kind: type[Calibration], data: st.DataObject) -> None:
    case = data.draw(cases())
    calibrated = fitted(kind, case)
    others = data.draw(hnp.arrays(np.float64, (3, len(case.hierarchy)), elements=probabilities()))
    before = others.copy()
    result = calibrated.apply(others, case.hierarchy)
    assert (others == before).all()
    np.testing.assert_allclose(result, slow_apply(calibrated, others, case.hierarchy), rtol=1e-6, atol=1e-9)
    assert (result[:, case.hierarchy.edge_parents] >= result[:, case.hierarchy.edge_children]).all()
    assert ((result >= 0) & (result <= 1)).all()


@pytest.mark.parametrize("kind", kinds)
@given(data=st.data())
def test_the_order_of_rows_does_not_matter(kind: type[Calibration], data: st.DataObject) -> None:
    case = data.draw(cases())
    order = data.draw(st.permutations(range(len(case.probs))))
    shuffled = Case(case.hierarchy, case.probs[order], case.Y[order])
    one = fitted(kind, case).apply(case.probs, case.hierarchy)
    other = fitted(kind, shuffled).apply(shuffled.probs, case.hierarchy)
    np.testing.assert_allclose(one[order], other, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", kinds)
def test_small_blocks_give_the_same(kind: type[Calibration], monkeypatch: pytest.MonkeyPatch) -> None:
    probs, Y = drawn(6, (300, 5), 2.0)
    case = Case(three_deep(), probs, three_deep().close(Y))
    counts = np.array([0, 3, 3, 50, 500])
    whole = fitted(kind, case).apply(probs, case.hierarchy), ece_by_rarity(probs, case.Y, counts)
    monkeypatch.setattr(blocks, "CELLS_PER_BLOCK", 700)
    parts = fitted(kind, case).apply(probs, case.hierarchy), ece_by_rarity(probs, case.Y, counts)
    np.testing.assert_allclose(parts[0], whole[0], rtol=1e-9)
    assert parts[1] == pytest.approx(whole[1], nan_ok=True)


@pytest.mark.parametrize("kind", kinds)
def test_the_float_type_is_kept_and_stays_coherent(kind: type[Calibration]) -> None:
    probs, Y = drawn(7, (200, 5), 2.0)
    hierarchy = three_deep()
    case = Case(hierarchy, probs, hierarchy.close(Y))
    result = fitted(kind, case).apply(probs.astype(np.float32), hierarchy)
    assert result.dtype == np.float32
    np.testing.assert_allclose(result, fitted(kind, case).apply(probs, hierarchy), atol=1e-5)
    assert (result[:, hierarchy.edge_parents] >= result[:, hierarchy.edge_children]).all()


@pytest.mark.parametrize("kind", kinds)
def test_calibrating_what_is_too_sure_lowers_the_error_on_other_rows(kind: type[Calibration]) -> None:
    probs, Y = drawn(8, (4000, 6), 2.5)
    learn, check = slice(0, 2000), slice(2000, None)
    after = kind.fit(probs[learn], Y[learn], flat(6)).apply(probs[check], flat(6))
    assert ece(after, Y[check]) < 0.25 * ece(probs[check], Y[check])


@pytest.mark.parametrize("kind", kinds)
def test_a_calibration_survives_pickling(kind: type[Calibration]) -> None:
    probs, Y = drawn(9, (200, 2), 2.0)
    calibrated = kind.fit(probs, Y, flat(2))
    again: Calibration = pickle.loads(pickle.dumps(calibrated))
    assert (again.apply(probs, flat(2)) == calibrated.apply(probs, flat(2))).all()


@pytest.mark.parametrize("kind", kinds)
def test_no_rows_can_be_corrected_but_not_fitted_on(kind: type[Calibration]) -> None:
    nothing = np.zeros((0, 2))
    with pytest.raises(ArgumentError, match="at least one row"):
        kind.fit(nothing, nothing, flat(2))
    probs, Y = drawn(9, (200, 2), 2.0)
    assert kind.fit(probs, Y, flat(2)).apply(nothing, flat(2)).shape == (0, 2)


# --- reliability ---------------------------------------------------------------------------------------------------


def slow_bins(p: Floats, Y: Bools, edges: Sequence[float]) -> list[list[tuple[float, bool]]]:
    """The cells of each bin."""
    full: list[list[tuple[float, bool]]] = [[] for _ in edges[1:]]
    for probability, label in zip(p.ravel().tolist(), Y.ravel().tolist(), strict=True):
        last = len(edges) - 2
        place = next(b for b in range(last + 1) if probability < edges[b + 1] or b == last)
        full[place].append((probability, label))
    return full


def slow_ece(full: list[list[tuple[float, bool]]]) -> float:
    cells = sum(len(cell) for cell in full)
    gaps = (abs(sum(p for p, _ in cell) - sum(y for _, y in cell)) for cell in full)
    return sum(gaps) / cells


bin_choices = st.one_of(st.integers(1, 12), st.sampled_from(((0.0, 1.0), (0.0, 0.1, 0.3, 1.0), (0.0, 0.01, 0.5, 1.0))))


@given(cases(), bin_choices)
def test_reliability_and_ece_match_counting(case: Case, bins: int | tuple[float, ...]) -> None:
    edges = [k / bins for k in range(bins + 1)] if isinstance(bins, int) else list(bins)
    result, full = reliability(case.probs, case.Y, bins), slow_bins(case.probs, case.Y, edges)
    assert result.edges.tolist() == edges
    assert result.count.tolist() == [len(cell) for cell in full]
    for place, cell in enumerate(full):
        if not cell:
            assert np.isnan(result.mean_probability[place]) and np.isnan(result.frequency[place])
            continue
        assert result.mean_probability[place] == pytest.approx(sum(p for p, _ in cell) / len(cell))
        assert result.frequency[place] == pytest.approx(sum(y for _, y in cell) / len(cell))
    assert ece(case.probs, case.Y, bins) == pytest.approx(slow_ece(full))
    assert result.ece == pytest.approx(slow_ece(full))


def test_a_probability_on_an_edge_is_in_the_upper_bin_and_1_in_the_last() -> None:
    probs = np.array([[0.0, 0.1, 0.3, 0.6, 0.7, 1.0]])
    assert reliability(probs, probs > 0.5).count.tolist() == [1, 1, 0, 1, 0, 0, 1, 1, 0, 1]


def test_probabilities_that_come_true_have_no_error() -> None:
    probs = np.repeat([[0.25], [0.75]], 4, axis=0)
    Y = np.array([[1], [0], [0], [0], [1], [1], [1], [0]])
    assert ece(probs, Y) == 0.0
    assert ece(1 - probs, Y) == pytest.approx(0.5)


def test_the_error_of_no_cells_is_not_a_number() -> None:
    assert np.isnan(ece(np.zeros((0, 3)), np.zeros((0, 3))))


@given(cases(), st.data())
def test_ece_by_rarity_is_that_of_the_bands_columns(case: Case, data: st.DataObject) -> None:
    values = st.sampled_from((0, 1, 4, 5, 19, 20, 99, 100, 10_000))
    counts = data.draw(hnp.arrays(np.int64, len(case.hierarchy), elements=values))
    result = ece_by_rarity(case.probs, case.Y, counts, bins=5)
    assert list(result) == list(RARITY_BANDS)
    for band, (fewest, most) in RARITY_BANDS.items():
        columns = [j for j, count in enumerate(counts.tolist()) if fewest <= count <= most]
        if columns:
            assert result[band] == pytest.approx(ece(case.probs[:, columns], case.Y[:, columns], bins=5)), band
        else:
            assert np.isnan(result[band]), band


# --- what is refused -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("wrong", [np.nan, -0.1, 1.1, np.inf])
def test_what_is_no_probability_is_named_by_its_place(wrong: float) -> None:
    probs, Y = np.full((3, 2), 0.5), np.zeros((3, 2))
    probs[2, 1] = wrong
    with pytest.raises(ArgumentError, match="row 2, column 1"):
        ece(probs, Y)
    with pytest.raises(ArgumentError, match="row 2, column 1"):
        ece_by_rarity(probs, Y, [1, 1])
    with pytest.raises(ArgumentError, match="row 2, column 1"):
        Temperature(1.0).apply(probs, flat(2))
    for kind in kinds:
        with pytest.raises(ArgumentError, match="row 2, column 1"):
            kind.fit(probs, Y, flat(2))


@pytest.mark.parametrize("probs", [np.zeros(3), np.array([["0.5"]]), np.zeros((1, 1, 1)), 0.5])
def test_what_is_no_matrix_of_numbers_is_refused(probs: Any) -> None:
    with pytest.raises(ArgumentError, match="probabilities must"):
        Temperature(1.0).apply(probs, flat(1))


@pytest.mark.parametrize("kind", kinds)
def test_shapes_that_do_not_fit_are_refused(kind: type[Calibration]) -> None:
    probs, Y = drawn(0, (50, 2), 1.0)
    with pytest.raises(LabelError, match="same shape"):
        kind.fit(probs, Y[:, :1], flat(2))
    with pytest.raises(LabelError, match="2 columns and the hierarchy 3 nodes"):
        kind.fit(probs, Y, flat(3))
    with pytest.raises(LabelError, match="2 columns and the hierarchy 3 nodes"):
        kind.fit(probs, Y, flat(2)).apply(probs, flat(3))
    with pytest.raises(LabelError, match="same shape"):
        ece(probs, Y[:40])
    with pytest.raises(ArgumentError, match="each of 2 nodes"):
        ece_by_rarity(probs, Y, [1, 2, 3])


def test_a_hierarchy_of_another_shape_is_refused() -> None:
    probs, Y = drawn(0, (50, 2), 1.0)
    chain, triple = Hierarchy.from_edges([("a", "b")]), np.full((1, 3), 0.5)
    with pytest.raises(ArgumentError, match="temperatures for 1 depth and the hierarchy has 2"):
        TemperatureByDepth.fit(probs, Y, flat(2)).apply(probs, chain)
    with pytest.raises(ArgumentError, match="temperatures for 1 depth and the hierarchy has 2"):
        Isotonic.fit(probs, Y, flat(2)).apply(probs, chain)
    with pytest.raises(ArgumentError, match="fitted to 2 nodes and the hierarchy has 3"):
        Isotonic.fit(probs, Y, flat(2)).apply(triple, flat(3))


@pytest.mark.parametrize("value", [0.0, -1.0, np.nan, np.inf, True, "2"])
def test_a_temperature_is_a_number_above_0(value: Any) -> None:
    with pytest.raises(ArgumentError, match="above 0"):
        Temperature(value)
    with pytest.raises(ArgumentError, match="above 0"):
        TemperatureByDepth((1.0, value))


@pytest.mark.parametrize("least", [0, -1, 1.5, True, "20"])
def test_least_is_a_whole_number_from_1(least: Any) -> None:
    probs, Y = drawn(0, (50, 2), 1.0)
    for kind in (TemperatureByDepth, Isotonic):
        with pytest.raises(ArgumentError, match="least must be"):
            kind.fit(probs, Y, flat(2), least=least)


@pytest.mark.parametrize("bins", [0, -3, True, 2.5, "10", (0.0, 0.5), (0.1, 1.0), (0.0, 0.5, 0.5, 1.0), (), (0, "1")])
def test_bins_are_a_count_or_edges_from_0_to_1(bins: Any) -> None:
    with pytest.raises(ArgumentError, match="bin"):
        reliability([[0.5]], [[1]], bins)
