"""Deviations over draws of rows, against summaries of the drawn rows themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode.metrics import bootstrap, summary
from rarenode.metrics.bootstrap import Deviations, deviations_over_rows

FIGURES = ("f1", "precision", "recall", "bin_ap", "ap", "nodes_found")


def slowly(Y: np.ndarray, probs: np.ndarray, decided: np.ndarray, draws: int, seed: int) -> dict[str, float]:
    """Each draw is a table of rows with its repetitions, and summarised like any other."""
    rows = len(Y)
    drawn = np.random.default_rng(seed).multinomial(rows, np.full(rows, 1 / rows), size=draws)
    told: dict[str, list[float]] = {name: [] for name in FIGURES}
    for counts in drawn:
        chosen = np.repeat(np.arange(rows), counts)
        of_decisions = summary(Y[chosen], decided[chosen].astype(float))
        for name in FIGURES:
            value = summary(Y[chosen], probs[chosen]).ap if name == "ap" else getattr(of_decisions, name)
            told[name].append(value)
    return {name: float(np.std(values)) for name, values in told.items()}


@given(st.integers(1, 12), st.integers(1, 6), st.integers(0, 1000))
def test_it_is_what_drawing_rows_gives(rows: int, nodes: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    Y = rng.random((rows, nodes)) < 0.4
    probs = rng.integers(0, 9, (rows, nodes)).astype(np.float32) / 8
    decided = rng.random((rows, nodes)) < 0.5
    found = deviations_over_rows(Y, probs, decided, draws=20, seed=seed)
    for name, value in slowly(Y, probs, decided, 20, seed).items():
        assert getattr(found, name) == pytest.approx(value, abs=1e-6), name


def test_nodes_are_taken_some_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    Y, decided = rng.random((9, 17)) < 0.4, rng.random((9, 17)) < 0.4
    probs = rng.random((9, 17))
    whole = deviations_over_rows(Y, probs, decided)
    monkeypatch.setattr(bootstrap, "CELLS_AT_A_TIME", 600)
    parts = deviations_over_rows(Y, probs, decided)
    for name in FIGURES:
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), abs=1e-9)


def test_many_probabilities_share_bins_and_the_deviation_stays_near() -> None:
    rng = np.random.default_rng(1)
    Y = rng.random((300, 40)) < 0.1
    probs = np.clip(0.3 * Y + 0.7 * rng.random((300, 40)), 0, 1)
    decided = probs >= 0.5
    assert len(np.unique(probs[Y])) > bootstrap.AP_BINS
    found = deviations_over_rows(Y, probs, decided, draws=50)
    assert found.ap == pytest.approx(slowly(Y, probs, decided, 50, 0)["ap"], rel=0.02)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_without_rows_or_nodes_nothing_deviates(shape: tuple[int, int]) -> None:
    nothing = np.zeros(shape, dtype=bool)
    assert deviations_over_rows(nothing, nothing.astype(float), nothing) == Deviations(0, 0, 0, 0, 0, 0)
