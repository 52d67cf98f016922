from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rarenode import load_dataset
from rarenode.errors import ArgumentError
from rarenode.resampling import LPROS
from rarenode.resampling.lp_ros import Rounding
from tests.resampling.oracles import EXACT_SHARES, Labelled, LabelSet, bags, lp_ros_clones, rare_and_common

# What the paper's compute table tells: iterations per second x seconds per epoch of its ensembles. Expr is left out, as
# its published training file could not be had.
STEPS_PER_EPOCH = {
    "cellcycle_FUN": 155.0 * 5.55,
    "derisi_FUN": 154.5 * 5.50,
    "eisen_FUN": 159.6 * 3.54,
    "gasch1_FUN": 130.5 * 6.61,
    "gasch2_FUN": 156.4 * 5.52,
    "seq_FUN": 80.0 * 11.13,
    "spo_FUN": 159.6 * 5.32,
}


def rows_in_bags(*sizes: int) -> NDArray[np.bool_]:
    """Rows of one label each, bag after bag."""
    return np.repeat(np.eye(len(sizes), dtype=np.bool_), sizes, axis=0)


def clones_by_bag(sampler: LPROS, Y: NDArray[np.bool_]) -> dict[LabelSet, int]:
    """Counted by the rows that were drawn."""
    of_row = {row: labels for labels, rows in bags(Y).items() for row in rows}
    return dict(Counter(of_row[row] for row in sampler.resample(Y).rows[len(Y) :].tolist()))


def clones_of(sampler: LPROS, *sizes: int) -> list[int]:
    clones = clones_by_bag(sampler, rows_in_bags(*sizes))
    return [clones.get(frozenset({bag}), 0) for bag in range(len(sizes))]


@given(rare_and_common(), st.sampled_from(EXACT_SHARES), st.sampled_from(("up", "textbook")), st.integers(0, 3))
def test_clones_per_bag_follow_the_formula(labelled: Labelled, share: float, rounding: Rounding, seed: int) -> None:
    Y = labelled.Y
    assert clones_by_bag(LPROS(share, rounding, seed), Y) == lp_ros_clones(Y, share, rounding)


@given(rare_and_common())
def test_clones_of_the_papers_share(labelled: Labelled) -> None:
    Y = labelled.Y
    assert clones_by_bag(LPROS(), Y) == lp_ros_clones(Y, 0.25, "up")
    assert clones_by_bag(LPROS(rounding="textbook"), Y) == lp_ros_clones(Y, 0.25, "textbook")


@given(rare_and_common(), st.sampled_from(EXACT_SHARES))
def test_the_textbook_creates_its_budget_unless_every_minority_bag_has_reached_the_mean(
    labelled: Labelled, share: float
) -> None:
    Y = labelled.Y
    after = LPROS(share, "textbook").resample(Y).Y
    created, budget = len(after) - len(Y), int(share * len(Y))
    assert created <= budget
    if created < budget:
        grown = bags(after)
        assert all(len(grown[labels]) * len(grown) >= len(Y) for labels in grown)


@given(rare_and_common())
def test_both_roundings_grow_minority_bags_only_and_less_than_a_row_beyond_the_mean(labelled: Labelled) -> None:
    Y = labelled.Y
    mean = len(Y) / max(1, len(bags(Y)))
    for sampler in (LPROS(2.0), LPROS(2.0, "textbook")):
        for labels, rows in bags(sampler.resample(Y).Y).items():
            before = len(bags(Y)[labels])
            assert len(rows) == before if before >= mean else len(rows) < mean + 1


@pytest.mark.parametrize(
    ("share", "sizes", "up", "textbook"),
    [
        # 20 rows in 4 bags: the mean is 5, three bags are smaller, the budget is 5, a bag's share 5 / 3.
        (0.25, (14, 1, 2, 3), [0, 2, 2, 2], [0, 2, 2, 1]),
        # A share of 10 / 3, but the bag of 4 is a row short of the mean; the textbook hands its rest on.
        (0.5, (14, 1, 1, 4), [0, 4, 4, 1], [0, 4, 4, 1]),
        # The mean is 4.5 and not reached by whole rows: the bag of 3 may have 1.5, the bag of 1 may have 3.5.
        (1.0, (11, 3, 3, 1), [0, 2, 2, 4], [0, 2, 2, 4]),
        # Everything is as large as the mean: nobody is in the minority.
        (1.0, (3, 3, 3), [0, 0, 0], [0, 0, 0]),
        # As on genes: the mean is 10 / 7, six bags of one row, 2.5 / 6 of a clone each.
        (0.25, (1, 1, 4, 1, 1, 1, 1), [1, 1, 0, 1, 1, 1, 1], [1, 1, 0, 0, 0, 0, 0]),
        (0.0, (9, 1, 2), [0, 0, 0], [0, 0, 0]),
    ],
)
def test_clones_by_hand(share: float, sizes: tuple[int, ...], up: list[int], textbook: list[int]) -> None:
    assert clones_of(LPROS(share), *sizes) == up
    assert clones_of(LPROS(share, "textbook"), *sizes) == textbook


def test_what_does_not_divide_evenly_goes_to_the_smallest_and_of_equal_ones_to_the_first() -> None:
    sampler = LPROS(0.25, "textbook")
    assert clones_of(sampler, 2, 12, 1, 1) == [1, 0, 2, 1]
    shuffled = rows_in_bags(1, 4, 1, 1, 1)[[7, 1, 2, 3, 4, 6, 5, 0]]  # label sets appear as 4, 1, 3, 2, 0
    assert clones_by_bag(sampler, shuffled) == {frozenset({4}): 1, frozenset({3}): 1}


def test_rows_without_labels_are_a_bag_like_any_other() -> None:
    Y = np.zeros((10, 2), dtype=np.bool_)
    Y[:9, 0] = True
    assert clones_by_bag(LPROS(), Y) == {frozenset(): 3}


def test_a_bag_is_of_exactly_the_same_labels() -> None:
    Y = np.array([[1, 0]] * 9 + [[1, 1]], dtype=np.bool_)
    assert LPROS().resample(Y).rows[10:].tolist() == [9, 9, 9]


def test_clones_are_drawn_from_all_rows_of_the_bag_alike_and_with_replacement() -> None:
    Y = rows_in_bags(90, 3)
    drawn = Counter[int]()
    repeated = 0
    for seed in range(100):
        clones = LPROS(share=3 / 93, seed=seed).resample(Y).rows[93:].tolist()
        assert len(clones) == 3
        drawn.update(clones)
        repeated += len(set(clones)) < 3
    assert drawn.keys() == {90, 91, 92}
    assert min(drawn.values()) > 70
    assert 60 < repeated < 95  # 7 in 9


@pytest.mark.parametrize("rounding", ["down", "Up", "", None])
def test_an_unknown_rounding(rounding: str) -> None:
    with pytest.raises(ArgumentError, match=r"rounding .*up, textbook"):
        LPROS(rounding=rounding)  # type: ignore[arg-type]


# --- real data -----------------------------------------------------------------------------------------------------


@pytest.mark.real_data
def test_clones_on_cellcycle() -> None:
    Y = load_dataset("cellcycle_FUN").train.Y
    groups = bags(Y)
    minority = [labels for labels, rows in groups.items() if len(rows) * len(groups) < len(Y)]
    assert (len(Y), len(groups), len(minority)) == (1628, 1154, 965)
    assert clones_by_bag(LPROS(), Y) == dict.fromkeys(minority, 1)
    assert clones_by_bag(LPROS(rounding="textbook"), Y) == dict.fromkeys(minority[:407], 1)


@pytest.mark.real_data
@pytest.mark.parametrize("name", STEPS_PER_EPOCH)
def test_an_epoch_has_as_many_steps_as_the_paper_timed(name: str) -> None:
    """Batches of 4 over training and validation rows and clones; without clones there would be a quarter fewer."""
    dataset = load_dataset(name)
    assert dataset.valid is not None
    timed = STEPS_PER_EPOCH[name]
    unrepeated = (len(dataset.train.Y) + len(dataset.valid.Y)) / 4
    clones = len(LPROS().resample(dataset.train.Y).rows) - len(dataset.train.Y)
    assert unrepeated + clones / 4 == pytest.approx(timed, rel=0.005)
    textbook = len(LPROS(rounding="textbook").resample(dataset.train.Y).rows) - len(dataset.train.Y)
    assert unrepeated + textbook / 4 < 0.9 * timed
