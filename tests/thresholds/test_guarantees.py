"""Promises of precision and recall: against formulas of scipy, against loops, and kept in simulations."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import beta, binom

from rarenode.errors import ArgumentError
from rarenode.thresholds import PrecisionGuarantee, RecallGuarantee, falling, guarantees, make_strategy
from rarenode.thresholds.guarantees import most_left_out

Floats = NDArray[np.float64]


# --- recall ----------------------------------------------------------------------------------------------------------


@given(st.integers(0, 400), st.sampled_from([0.05, 0.5, 0.8, 0.9, 0.95, 0.99]))
def test_rows_left_out_follow_from_the_distribution_of_order_statistics(n: int, recall: float) -> None:
    """The share above the r-th smallest of n is beta distributed, whatever the distribution of the values."""
    kept = [r for r in range(1, n + 1) if beta.sf(recall, n - r + 1, r) >= guarantees.CONFIDENCE]
    expected = max(kept) - 1 if kept else None
    found = most_left_out(n, recall)
    assert found == expected
    if found is not None:
        assert binom.cdf(found, n, 1 - recall) <= 0.1 + 1e-9


@given(st.integers(1, 60), st.integers(0, 2**32))
def test_recall_thresholds_are_those_of_a_loop(rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    probs, labels = rng.random((rows, 3)).round(1), rng.random((rows, 3)) < (0.2, 0.5, 0.9)
    found = RecallGuarantee(0.7).fit(probs, labels).values
    for node in range(3):
        positives = sorted(probs[labels[:, node], node])
        left_out = most_left_out(len(positives), 0.7)
        expected = math.inf if left_out is None else positives[left_out] or math.inf
        assert found[node] == expected


def test_a_promised_recall_is_kept_nine_times_in_ten() -> None:
    rng = np.random.default_rng(0)
    kept = []
    for _ in range(400):
        probs = rng.beta(2, 5, size=(60, 1)).round(2)
        threshold = RecallGuarantee(0.8).fit(probs, np.ones((60, 1))).values[0]
        kept.append(beta.sf(threshold - 0.005, 2, 5) >= 0.8)  # of all rows, as they are rounded
    assert np.mean(kept) > 0.87
    assert np.mean(kept) < 1  # nor is more given away than is needed


# --- precision -------------------------------------------------------------------------------------------------------


def evidence_by_loops(probs: Floats, labels: NDArray[np.bool_], threshold: float, precision: float) -> float:
    decided = probs >= threshold
    most = int(decided.sum(axis=1).max())
    total = 0.0
    for bet in guarantees.BETS:
        product = 1.0
        for row in range(len(probs)):
            gain = float((decided[row] & labels[row]).sum()) - precision * float(decided[row].sum())
            product *= 1 + bet * gain / (precision * most)
        total += product
    return total / len(guarantees.BETS)


@given(st.integers(0, 2**32), st.sampled_from([0.2, 0.5, 0.8]))
def test_a_chosen_threshold_has_the_evidence_and_a_lower_one_was_refused_or_is_none(
    seed: int, precision: float
) -> None:
    rng = np.random.default_rng(seed)
    probs = (rng.random((150, 6)) ** 2).round(2)
    labels = rng.random(probs.shape) < probs ** rng.choice([0.5, 1.0])
    values = PrecisionGuarantee(precision).fit(probs, labels).values
    expected = probs.sum(axis=0)
    bands: dict[int, list[int]] = {}
    for node in range(6):
        bands.setdefault(math.floor(math.log(expected[node], guarantees.BAND)), []).append(node)
    needed = 3 * len(bands) / 0.1
    for nodes in bands.values():
        (value,) = set(values[nodes].tolist())
        if value < math.inf:
            evidence = evidence_by_loops(probs[:, nodes], labels[:, nodes], value, precision)
            assert evidence >= needed * (1 - 1e-9)


def lowest_of_all_cells(
    strategy: PrecisionGuarantee, probs: Floats, labels: NDArray[np.bool_], needed: float, least: float
) -> float:
    """The search, with all cells of a band sorted at once."""
    row, column = np.nonzero(probs >= max(least, np.nextafter(0, 1)))
    order = np.argsort(-probs[row, column], kind="stable")
    row, column = row[order], column[order]
    falling, right = probs[row, column].astype(np.float64), labels[row, column]
    predicted, hits = np.zeros(len(probs)), np.zeros(len(probs))
    lowest, done, count = np.inf, 0, guarantees.STARTS[0]
    waiting, running = list(guarantees.STARTS), False
    while done < len(falling) and (waiting or running):
        value = falling[min(count, len(falling)) - 1]
        end = int(np.searchsorted(-falling, -value, side="right"))
        np.add.at(predicted, row[done:end], 1.0)
        np.add.at(hits, row[done:end], right[done:end])
        done = end
        begins = False
        while waiting and end >= waiting[0]:
            begins = bool(waiting.pop(0))
        if running or begins:
            running = strategy._evidence(predicted, hits) >= needed
            lowest = value if running else lowest
        count = max(end + 1, math.ceil(end * guarantees.GROWTH))
    return float(lowest)


@given(
    seed=st.integers(0, 2**32),
    precision=st.sampled_from([0.05, 0.3, 0.6]),
    digits=st.sampled_from([1, 3, 16]),
    single=st.booleans(),
    chunk=st.sampled_from([(1, 1, 1), (7, 2, 50), (64, 4, 1 << 20)]),
)
def test_chunks_of_cells_find_what_a_sort_of_all_finds(
    seed: int, precision: float, digits: int, single: bool, chunk: tuple[int, int, int]
) -> None:
    rng = np.random.default_rng(seed)
    probs, labels = rows_of(rng, 80, 1.0)
    probs = (probs if digits == 16 else probs.round(digits)).astype(np.float32 if single else np.float64)
    probs[:, 1:] *= rng.choice([1.0, 1e-3, 0.0, 1e-300], size=20).astype(probs.dtype)
    names = ("FIRST_CHUNK", "GROWTH", "MOST_CELLS")
    strategy = PrecisionGuarantee(precision)
    with pytest.MonkeyPatch.context() as patch:
        for name, size in zip(names, chunk, strict=True):
            patch.setattr(falling, name, size)
        found = strategy.fit(probs, labels).values
        patch.setattr(
            PrecisionGuarantee,
            "_lowest",
            lambda self, cells, needed: lowest_of_all_cells(
                self, cells.probs[:, cells.nodes], cells.labels[:, cells.nodes], needed, cells.least
            ),
        )
        np.testing.assert_array_equal(found, strategy.fit(probs, labels).values)


@given(seed=st.integers(0, 2**32), least=st.sampled_from([0.0, 0.2, 0.5]), size=st.integers(1, 40))
def test_falling_cells_are_all_cells_by_falling_probability(seed: int, least: float, size: int) -> None:
    rng = np.random.default_rng(seed)
    probs, labels = rng.random((30, 5)).round(rng.integers(1, 4)), rng.random((30, 5)) < 0.5
    nodes = np.flatnonzero(rng.random(5) < 0.7)
    cells = falling.FallingCells(probs, labels, nodes, least)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(falling, "FIRST_CHUNK", size)
        patch.setattr(falling, "MOST_CELLS", size)
        chunks = list(cells.chunks())
    wanted = [(probs[r, c], r, labels[r, c]) for r in range(30) for c in nodes if 0 < probs[r, c] >= least]
    found = [cell for chunk in chunks for cell in zip(chunk.probs, chunk.rows, chunk.right, strict=True)]
    assert len(cells) == len(wanted)
    assert sorted(found) == sorted(wanted)
    assert [p for p, _, _ in found] == sorted((p for p, _, _ in wanted), reverse=True)
    assert [chunk.last for chunk in chunks] == np.cumsum([len(chunk.rows) for chunk in chunks]).tolist()
    for one, after in itertools.pairwise(chunks):
        assert one.probs[-1] > after.probs[0]  # equal ones are together


def rows_of(rng: np.random.Generator, rows: int, truth: float) -> tuple[Floats, NDArray[np.bool_]]:
    """A frequent parent and 20 rare children, whose probabilities are right for ``truth`` = 1 and else too high."""
    parent = rng.beta(4, 1.5, size=(rows, 1))
    children = parent * rng.beta(0.05, 0.45, size=(rows, 20))
    probs = np.hstack([parent, children])
    has = rng.random((rows, 1)) < parent**truth
    below = has & (rng.random((rows, 20)) < (children / parent) ** truth)
    return probs, np.hstack([has, below])


@pytest.mark.slow
@pytest.mark.parametrize("truth", [1.0, 2.0])
def test_a_promised_precision_is_kept_nine_times_in_ten(truth: float) -> None:
    rng = np.random.default_rng(1)
    new, labels = rows_of(rng, 200_000, truth)
    kept, used = 0, 0
    for _ in range(100):
        thresholds = PrecisionGuarantee(0.5).fit(*rows_of(rng, 600, truth))
        decided = new >= thresholds.values
        both = []
        for nodes in (slice(0, 1), slice(1, 21)):
            predictions = decided[:, nodes].sum()
            both.append(predictions == 0 or (decided & labels)[:, nodes].sum() >= 0.5 * predictions)
        kept += all(both)
        used += bool(decided[:, 1:].any())
    assert kept >= 90
    assert used >= 50  # it does predict rare nodes


def test_probabilities_that_say_nothing_are_not_believed() -> None:
    rng = np.random.default_rng(0)
    probs = rng.random((500, 4))
    labels = rng.random((500, 4)) < 0.2
    assert np.isinf(PrecisionGuarantee(0.5).fit(probs, labels).values).all()
    assert np.isfinite(PrecisionGuarantee(0.1).fit(probs, labels).values).all()


def test_rarer_nodes_have_no_lower_thresholds_so_no_ancestor_is_added() -> None:
    rng = np.random.default_rng(2)
    probs, labels = rows_of(rng, 2000, 1.0)
    values = PrecisionGuarantee(0.3).fit(probs, labels).values
    assert values[0] <= values[1:].min() < math.inf


def test_few_rows_promise_nothing() -> None:
    probs = np.full((5, 2), 0.99)
    for strategy in (PrecisionGuarantee(0.5), RecallGuarantee(0.9)):
        assert np.isinf(strategy.fit(probs, np.ones((5, 2))).values).all()


def test_unknown_labels_count_neither_way() -> None:
    rng = np.random.default_rng(3)
    probs, labels = rows_of(rng, 1500, 1.0)
    known = rng.random(probs.shape) < 0.7
    spoilt: Any = np.where(known, labels, ~labels)
    for strategy in (PrecisionGuarantee(0.4), RecallGuarantee(0.9)):
        found = strategy.fit(probs, spoilt, known=known).values
        np.testing.assert_array_equal(found, strategy.fit(probs * known, labels & known).values)


@pytest.mark.parametrize("text", ["precision:0.5", "recall:0.9"])
def test_names(text: str) -> None:
    strategy = make_strategy(text)
    assert strategy.name == text
    with pytest.raises(ArgumentError, match="needs Y"):
        strategy.fit([[0.5]])
    for wrong in (":0", ":1", ":nan", ":-1", ""):
        with pytest.raises(ArgumentError):
            make_strategy(text.partition(":")[0] + wrong)
