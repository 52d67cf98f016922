"""Bootstrap deviations, against summaries of the drawn rows themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode.metrics import bootstrap, summary
from rarenode.metrics.bootstrap import Deviations, deviations_over_rows

SCORES = ("f1", "precision", "recall", "bin_ap", "ap", "nodes_found")


def slowly(Y: np.ndarray, probs: np.ndarray, predicted: np.ndarray, draws: int, seed: int) -> dict[str, float]:
    """Each draw is a table of rows with repetitions, summarised by `summary`."""
    rows = len(Y)
    drawn = np.random.default_rng(seed).multinomial(rows, np.full(rows, 1 / rows), size=draws)
    values_of: dict[str, list[float]] = {name: [] for name in SCORES}
    for counts in drawn:
        chosen = np.repeat(np.arange(rows), counts)
        of_predictions = summary(Y[chosen], predicted[chosen].astype(float))
        for name in SCORES:
            value = summary(Y[chosen], probs[chosen]).ap if name == "ap" else getattr(of_predictions, name)
            values_of[name].append(value)
    return {name: float(np.std(values)) for name, values in values_of.items()}


@given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 1000))
def test_it_is_what_drawing_rows_gives(rows: int, nodes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    Y = rng.random((rows, nodes)) < 0.4
    probs = rng.integers(0, 9, (rows, nodes)).astype(np.float32) / 8
    predicted = rng.random((rows, nodes)) < 0.5
    found = deviations_over_rows(Y, probs, predicted, draws=20, seed=seed)
    for name, value in slowly(Y, probs, predicted, 20, seed).items():
        assert getattr(found, name) == pytest.approx(value, abs=1e-6), name


def test_nodes_are_taken_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    Y, predicted = rng.random((9, 17)) < 0.4, rng.random((9, 17)) < 0.4
    probs = rng.random((9, 17))
    whole = deviations_over_rows(Y, probs, predicted)
    monkeypatch.setattr(bootstrap, "CELLS_PER_BLOCK", 600)
    parts = deviations_over_rows(Y, probs, predicted)
    for name in SCORES:
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), abs=1e-9)


def test_many_probabilities_share_bins_and_the_deviation_stays_near() -> None:
    rng = np.random.default_rng(1)
    Y = rng.random((300, 40)) < 0.1
    probs = np.clip(0.3 * Y + 0.7 * rng.random((300, 40)), 0, 1)
    predicted = probs >= 0.5
    assert len(np.unique(probs[Y])) > bootstrap.AP_BINS
    found = deviations_over_rows(Y, probs, predicted, draws=50)
    assert found.ap == pytest.approx(slowly(Y, probs, predicted, 50, 0)["ap"], rel=0.02)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_without_rows_or_nodes_nothing_deviates(shape: tuple[int, int]) -> None:
    nothing = np.zeros(shape, dtype=bool)
    assert deviations_over_rows(nothing, nothing.astype(float), nothing) == Deviations(0, 0, 0, 0, 0, 0)
