"""What holds for every resampler."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rarenode import Hierarchy
from rarenode.errors import ArgumentError, DataError, LabelError, NotClosedError
from rarenode.resampling import HROSPD, LPROS, RESAMPLING, Resampled, Resampler, make_resampler
from tests.oracles import close
from tests.resampling.oracles import Labelled, of_rows, rare_and_common

Make = Callable[[Hierarchy, int], Resampler]



def by_name(name: str, hierarchy: Hierarchy, seed: int) -> Resampler:
    made = make_resampler(name, hierarchy, seed)
    assert made is not None
    return made


SAMPLERS: dict[str, Make] = {
    **{name: partial(by_name, name) for name in RESAMPLING},
    "lpros, share 2": lambda hierarchy, seed: LPROS(2.0, seed=seed),
    "lpros-textbook, share 2": lambda hierarchy, seed: LPROS(2.0, "textbook", seed),
    "hros-pd, share 2": lambda hierarchy, seed: HROSPD(hierarchy, 2.0, seed=seed),
    "hros-pd-published, share 2": lambda hierarchy, seed: HROSPD(hierarchy, 2.0, "as_published", seed),
}
every_resampler = pytest.mark.parametrize("make", SAMPLERS.values(), ids=SAMPLERS)

TREE = Hierarchy.from_edges([("root", "a"), ("root", "b"), ("a", "c"), ("a", "d")])
SKEWED = of_rows(TREE, ("b", 30), ("c", 3), ("b d", 3), ("b", 30), ("", 2))
"""Every resampler clones some of these, and has a choice which."""


def clones(resampled: Resampled, Y: NDArray[np.bool_]) -> NDArray[np.int64]:
    return resampled.rows[len(Y) :]


def unchanged(resampled: Resampled, Y: NDArray[np.bool_]) -> bool:
    return resampled.rows.tolist() == list(range(len(Y))) and np.array_equal(resampled.Y, Y)


# --- rows and labels -----------------------------------------------------------------------------------------------


@every_resampler
@given(labelled=rare_and_common(), seed=st.integers(0, 2**63 - 1))
def test_rows_stand_first_and_clones_are_theirs(make: Make, labelled: Labelled, seed: int) -> None:
    hierarchy, Y = labelled
    given_labels = Y.copy()
    resampled = make(hierarchy, seed).resample(Y)
    rows, labels = resampled.rows, resampled.Y
    assert rows.dtype == np.int64
    assert labels.dtype == np.bool_
    assert labels.shape == (len(rows), len(hierarchy))
    assert rows[: len(Y)].tolist() == list(range(len(Y)))
    assert np.array_equal(labels[: len(Y)], given_labels)
    assert np.array_equal(Y, given_labels)
    assert all(0 <= row < len(Y) for row in rows)
    assert not (labels & ~Y[rows]).any()
    assert np.array_equal(close(labels, hierarchy), labels)


@every_resampler
def test_the_skewed_rows_are_cloned(make: Make) -> None:
    assert len(clones(make(TREE, 0).resample(SKEWED), SKEWED)) > 0


@every_resampler
def test_only_a_published_hros_pd_thins_labels_out(make: Make) -> None:
    sampler = make(TREE, 0)
    resampled = sampler.resample(SKEWED)
    whole = np.array_equal(resampled.Y, SKEWED[resampled.rows])
    assert whole != (isinstance(sampler, HROSPD) and sampler.variant == "as_published")


@pytest.mark.parametrize(
    "sampler",
    [LPROS(0.0), LPROS(0, "textbook"), HROSPD(TREE, 0.0), HROSPD(TREE, 0, "as_published")],
    ids=["lpros", "lpros-textbook", "hros-pd", "hros-pd-published"],
)
def test_a_share_of_nothing_creates_nothing(sampler: Resampler) -> None:
    assert unchanged(sampler.resample(SKEWED), SKEWED)


# --- chance --------------------------------------------------------------------------------------------------------


@every_resampler
def test_the_seed_decides_and_nothing_else(make: Make) -> None:
    sampler = make(TREE, 5)
    first = sampler.resample(SKEWED)
    for again in (sampler.resample(SKEWED), make(TREE, 5).resample(SKEWED), make(TREE, 5).resample(SKEWED.copy("F"))):
        assert np.array_equal(first.rows, again.rows)
        assert np.array_equal(first.Y, again.Y)


@every_resampler
def test_seeds_differ_in_rows_and_not_in_their_number(make: Make) -> None:
    drawn = [clones(make(TREE, seed).resample(SKEWED), SKEWED).tolist() for seed in (*range(8), 2**63 - 1)]
    assert len({tuple(rows) for rows in drawn}) > 4
    if make is SAMPLERS["hros-pd"] or make is SAMPLERS["hros-pd, share 2"]:
        return  # counts follow whole rows, so the number may depend on what was drawn
    assert len({len(rows) for rows in drawn}) == 1


# --- features ------------------------------------------------------------------------------------------------------


@every_resampler
@pytest.mark.parametrize("shape", [(), (2,), (0,), (2, 3)], ids=str)
def test_features_follow(make: Make, shape: tuple[int, ...]) -> None:
    X = np.random.default_rng(0).normal(size=(len(SKEWED), *shape)).astype(np.float32)
    sampler = make(TREE, 3)
    features, labels = sampler.fit_resample(X, SKEWED)
    expected = make(TREE, 3).resample(SKEWED)
    assert np.array_equal(sampler.sample_indices_, expected.rows)
    assert np.array_equal(labels, expected.Y)
    assert features.dtype == X.dtype
    assert np.array_equal(features, X[expected.rows])


@every_resampler
def test_features_may_be_lists_of_anything(make: Make) -> None:
    names = [f"picture {number}.png" for number in range(len(SKEWED))]
    sampler = make(TREE, 0)
    features, _ = sampler.fit_resample(names, SKEWED)
    assert features.tolist() == [names[row] for row in sampler.sample_indices_]


@every_resampler
@pytest.mark.parametrize("rows", [0, 1, len(SKEWED) - 1, len(SKEWED) + 1])
def test_features_of_another_number_of_rows(make: Make, rows: int) -> None:
    with pytest.raises(DataError, match=f"{len(SKEWED)} rows of Y; its shape is .{rows}, 2"):
        make(TREE, 0).fit_resample(np.zeros((rows, 2)), SKEWED)


# --- the smallest inputs -------------------------------------------------------------------------------------------


@every_resampler
@pytest.mark.parametrize(
    "Y",
    [
        np.zeros((0, 5), dtype=np.bool_),
        of_rows(TREE, ("", 1)),
        of_rows(TREE, ("c", 1)),
        of_rows(TREE, ("", 7)),
        of_rows(TREE, ("root", 7)),
        of_rows(TREE, ("b c d", 7)),
    ],
    ids=["no row", "one row without labels", "one row", "rows without labels", "rows of the root", "identical rows"],
)
def test_where_nothing_is_rarer_than_the_rest_nothing_is_cloned(make: Make, Y: NDArray[np.bool_]) -> None:
    assert unchanged(make(TREE, 0).resample(Y), Y)
    features, labels = make(TREE, 0).fit_resample(np.arange(len(Y)), Y)
    assert features.tolist() == list(range(len(Y)))
    assert np.array_equal(labels, Y)


@every_resampler
def test_one_node(make: Make) -> None:
    """To label powerset, rows without the node are a bag; a path has nothing to be rarer than."""
    alone = Hierarchy.from_edges([], ["alone"])
    Y = of_rows(alone, ("alone", 9), ("", 1))
    sampler = make(alone, 0)
    drawn = clones(sampler.resample(Y), Y).tolist()
    assert set(drawn) == ({9} if isinstance(sampler, LPROS) else set())


@every_resampler
def test_rows_without_labels_are_never_drawn_for_a_path(make: Make) -> None:
    Y = of_rows(TREE, ("b", 20), ("c", 2), ("", 1))
    sampler = make(TREE, 0)
    drawn = set(clones(sampler.resample(Y), Y).tolist())
    assert (22 in drawn) == isinstance(sampler, LPROS)
    assert drawn & {20, 21}


# --- refusals ------------------------------------------------------------------------------------------------------


@every_resampler
@pytest.mark.parametrize(
    "Y",
    [
        np.ones(5, dtype=np.bool_),
        np.ones((2, 5, 1), dtype=np.bool_),
        np.full((2, 5), 2),
        np.full((2, 5), 0.5),
        np.full((2, 5), np.nan),
        np.full((2, 5), "yes"),
        np.full((2, 5), None),
        None,
    ],
    ids=["a row", "a cube", "twos", "halves", "no numbers", "texts", "objects", "nothing"],
)
def test_what_is_no_label_matrix_is_refused(make: Make, Y: Any) -> None:
    with pytest.raises(LabelError, match=r"labels? must"):
        make(TREE, 0).resample(Y)
    with pytest.raises(LabelError, match=r"labels? must"):
        make(TREE, 0).fit_resample(np.zeros((2, 1)), Y)


@pytest.mark.parametrize("name", ["hros-pd", "hros-pd-published"])
def test_labels_that_are_not_of_the_hierarchy(name: str) -> None:
    Y = np.zeros((3, 5), dtype=np.bool_)
    Y[1, [0, TREE.index["c"]]] = True
    with pytest.raises(NotClosedError, match="row 1 has the label 'c' but not its parent 'a'"):
        by_name(name, TREE, 0).resample(Y)
    with pytest.raises(LabelError, match=r"\(rows, 5\)"):
        by_name(name, TREE, 0).resample(Y[:, :4])


@pytest.mark.parametrize("share", [-1, -1e-9, float("nan"), float("inf"), True, "0.25", None, 1j])
def test_what_is_no_share_is_refused(share: Any) -> None:
    for make in (lambda: LPROS(share=share), lambda: HROSPD(TREE, share=share)):
        with pytest.raises(ArgumentError, match="share must be a number of at least 0, got"):
            make()


# --- names ---------------------------------------------------------------------------------------------------------


def test_resamplers_by_name_are_the_papers() -> None:
    """Shares of 0.25 and 0.1, the rounding and the variant that the name says, and the seed."""
    rare = of_rows(TREE, ("b", 30), ("c", 10))
    by_hand: dict[str, Resampler] = {
        "lpros": LPROS(0.25, "up", 4),
        "lpros-textbook": LPROS(0.25, "textbook", 4),
        "hros-pd": HROSPD(TREE, 0.1, "as_described", 4),
        "hros-pd-published": HROSPD(TREE, 0.1, "as_published", 4),
    }
    assert tuple(by_hand) == RESAMPLING
    for name, expected in by_hand.items():
        made = by_name(name, TREE, 4)
        for Y in (SKEWED, rare):
            assert np.array_equal(made.resample(Y).rows, expected.resample(Y).rows)
            assert np.array_equal(made.resample(Y).Y, expected.resample(Y).Y)
    assert make_resampler("none", TREE, 4) is None


@pytest.mark.parametrize("name", ["", "None", "LPROS", "smote", "__class__"])
def test_an_unknown_name_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(ArgumentError, match=rf"unknown resampling {name!r}; choose one of none, lpros, "):
        make_resampler(name, TREE, 0)


@pytest.mark.parametrize("seed", [-1, 1.5, "a", None, True])
def test_a_seed_is_a_whole_number(seed: object) -> None:
    for make in (lambda: LPROS(seed=seed), lambda: HROSPD(TREE, seed=seed)):  # type: ignore[arg-type]
        with pytest.raises(ArgumentError, match="seed"):
            make()


def test_features_that_are_no_rows() -> None:
    with pytest.raises(DataError, match="its shape is"):
        LPROS().fit_resample(3, SKEWED)


def test_labels_may_be_numbers() -> None:
    for make in (LPROS(), HROSPD(TREE)):
        assert np.array_equal(make.resample(SKEWED.astype(int)).rows, make.resample(SKEWED).rows)


def test_a_share_is_the_decimal_that_was_written() -> None:
    """29 hundredths of 100 rows are 29, though the binary fraction is a little less."""
    Y = np.eye(60, dtype=bool)[np.r_[np.arange(60), np.zeros(40, dtype=int)]]
    assert len(LPROS(0.29, "textbook").resample(Y).rows) == 129
