"""Thresholds and calibrations are fitted to the cells whose label is known, and to no other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rarenode import Hierarchy
from rarenode.errors import LabelError
from rarenode.thresholds import (
    ExpectedF,
    Fixed,
    GlobalThreshold,
    Isotonic,
    Midpoint,
    PriorMatched,
    Strategy,
    Temperature,
    TemperatureByDepth,
    TunedPerNode,
    ece,
    ece_by_rarity,
    reliability,
)
from tests.strategies import hierarchies, three_valued
from tests.thresholds import oracles
from tests.thresholds.oracles import ANY_PROBABILITY, EIGHTHS, Bools, Floats

ONE = Hierarchy.from_edges([], nodes=["one"])
OF_EACH_NODE: tuple[Strategy, ...] = (
    Fixed(0.25),
    ExpectedF(),
    ExpectedF(2.0),
    PriorMatched(),
    PriorMatched(1.5),
    TunedPerNode(),
    TunedPerNode(0.0),
    Midpoint(),
)


class Case(NamedTuple):
    hierarchy: Hierarchy
    probs: Floats
    Y: Bools
    known: Bools


@st.composite
def cases(draw: st.DrawFn, most_rows: int = 9) -> Case:
    hierarchy = draw(hierarchies(6))
    Y, known = draw(three_valued(hierarchy, draw(st.integers(1, most_rows))))
    elements = draw(st.sampled_from((EIGHTHS, ANY_PROBABILITY)))
    dtype = draw(st.sampled_from((np.float32, np.float64)))
    return Case(hierarchy, draw(hnp.arrays(np.float64, Y.shape, elements=elements)).astype(dtype), Y, known)


def known_cells(case: Case, columns: Bools | slice = slice(None)) -> tuple[Floats, Bools]:
    """Probabilities and labels of the known cells of some columns, as one node."""
    known = case.known[:, columns]
    return case.probs[:, columns][known][:, np.newaxis], case.Y[:, columns][known][:, np.newaxis]


# --- strategies ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", OF_EACH_NODE, ids=lambda s: s.name)
@given(case=cases(), prior=EIGHTHS)
def test_a_node_is_fitted_to_the_rows_where_it_is_known(strategy: Strategy, case: Case, prior: float) -> None:
    _, probs, Y, known = case
    found = strategy.fit(probs, Y, known=known, prior=np.full(Y.shape[1], prior)).values
    for node in range(Y.shape[1]):
        rows = known[:, node]
        if rows.any():
            alone = strategy.fit(probs[rows, node : node + 1], Y[rows, node : node + 1], prior=[prior])
            assert found[node] == alone.values[0]
        elif not isinstance(strategy, Fixed):
            assert found[node] == np.inf


@pytest.mark.parametrize("strategy", [ExpectedF()], ids=lambda s: s.name)
@given(case=cases())
def test_and_without_labels(strategy: Strategy, case: Case) -> None:
    found = strategy.fit(case.probs, known=case.known).values
    for node in np.flatnonzero(case.known.any(axis=0)):
        rows = case.known[:, node]
        assert found[node] == strategy.fit(case.probs[rows, node : node + 1]).values[0]


@given(cases())
def test_the_threshold_of_all_nodes_is_the_best_on_known_cells(case: Case) -> None:
    _, probs, Y, known = case
    candidates = sorted({float(p) for p in probs[Y & known] if p > 0}, reverse=True)
    assume(candidates)
    rows = [known[:, node] for node in range(Y.shape[1])]
    means = [
        sum(oracles.f1(probs[some, node], Y[some, node], t) for node, some in enumerate(rows)) for t in candidates
    ]
    assert set(GlobalThreshold().fit(probs, Y, known=known).values) == {candidates[means.index(max(means))]}
    p, y = known_cells(case)
    micro = [oracles.f1(p[:, 0], y[:, 0], t) for t in candidates]
    assert set(GlobalThreshold("micro_f1").fit(probs, Y, known=known).values) == {candidates[micro.index(max(micro))]}


@pytest.mark.parametrize("strategy", [*OF_EACH_NODE, GlobalThreshold()], ids=lambda s: s.name)
@given(case=cases(), data=st.data())
def test_what_is_predicted_at_unknown_cells_does_not_matter(
    strategy: Strategy, case: Case, data: st.DataObject
) -> None:
    _, probs, Y, known = case
    assume((probs[Y & known] > 0).any())  # a threshold of all nodes needs a positive
    other = np.where(known, probs, data.draw(hnp.arrays(np.float64, Y.shape, elements=EIGHTHS)).astype(probs.dtype))
    prior = np.full(Y.shape[1], 0.3)
    assert strategy.fit(probs, Y, known=known, prior=prior) == strategy.fit(other, Y, known=known, prior=prior)
    everywhere = np.ones_like(known)
    assert strategy.fit(probs, Y, known=everywhere, prior=prior) == strategy.fit(probs, Y, prior=prior)


# --- calibration ---------------------------------------------------------------------------------------------------


@given(cases())
def test_a_temperature_is_that_of_known_cells(case: Case) -> None:
    assume(case.known.any())
    hierarchy, probs, Y, known = case
    alone = Temperature.fit(*known_cells(case), ONE)
    assert Temperature.fit(probs, Y, hierarchy, known=known).value == pytest.approx(alone.value, rel=1e-6)
    by_depth = TemperatureByDepth.fit(probs, Y, hierarchy, least=1, known=known)
    for depth, value in enumerate(by_depth.values):
        p, y = known_cells(case, hierarchy.depth == depth)
        expected = Temperature.fit(p, y, ONE) if y.any() and not y.all() else alone
        assert value == pytest.approx(expected.value, rel=1e-6)


@given(cases(most_rows=12))
def test_an_isotonic_curve_is_that_of_known_rows(case: Case) -> None:
    hierarchy, probs, Y, known = case
    found = {curve.column: curve for curve in Isotonic.fit(probs, Y, hierarchy, least=2, known=known).curves}
    assert set(found) == set(np.flatnonzero((Y & known).sum(axis=0) >= 2).tolist())
    for column, curve in found.items():
        rows = known[:, column]
        (alone,) = Isotonic.fit(probs[rows, column : column + 1], Y[rows, column : column + 1], ONE, least=2).curves
        assert curve.probs.tolist() == alone.probs.tolist()
        assert curve.frequencies.tolist() == alone.frequencies.tolist()


@given(cases())
def test_reliability_is_that_of_known_cells(case: Case) -> None:
    _, probs, Y, known = case
    found, alone = reliability(probs, Y, 4, known=known), reliability(*known_cells(case), 4)
    np.testing.assert_array_equal(found.count, alone.count)
    np.testing.assert_array_equal(found.frequency, alone.frequency)
    np.testing.assert_allclose(found.mean_probability, alone.mean_probability)
    np.testing.assert_allclose(ece(probs, Y, 4, known=known), alone.ece)
    first = np.arange(Y.shape[1]) == 0
    by_rarity = ece_by_rarity(probs, Y, np.where(first, 0, 7), 4, known=known)
    np.testing.assert_allclose(by_rarity["0"], ece(*known_cells(case, first), 4))
    np.testing.assert_allclose(by_rarity["5-19"], ece(*known_cells(case, ~first), 4))


def test_what_is_known_must_fit() -> None:
    for known in ([[1, 0]], np.ones((1, 2), dtype=np.bool_)):
        for fit in (ExpectedF().fit, reliability):
            with pytest.raises(LabelError, match="known must be boolean"):
                fit([[0.5], [0.5]], [[1], [0]], known=known)
        with pytest.raises(LabelError, match="known must be boolean"):
            Temperature.fit([[0.5], [0.5]], [[1], [0]], ONE, known=known)
