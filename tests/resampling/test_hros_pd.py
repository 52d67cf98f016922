from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from rarenode import Hierarchy, load_dataset
from rarenode.errors import ArgumentError
from rarenode.resampling import HROSPD
from rarenode.resampling.hros_pd import Variant
from tests.resampling.oracles import (
    EXACT_SHARES,
    Labelled,
    Turn,
    hros_pd_turns,
    names_of,
    of_rows,
    rare_and_common,
    with_ancestors,
)

VARIANTS: tuple[Variant, ...] = ("as_described", "as_published")
COMMON = [("root", "b"), ("root", "p"), ("root", "q")]
"""Nodes to be rare beside."""


def check_turns(Y: NDArray[np.bool_], hierarchy: Hierarchy, share: float, variant: Variant, seed: int) -> list[Turn]:
    """Make sure that the clones are those of the oracle's turns, one turn after the other; the turns."""
    resampled = HROSPD(hierarchy, share, variant, seed).resample(Y)
    drawn = resampled.rows[len(Y) :].tolist()
    clones = resampled.Y[len(Y) :]
    turns = hros_pd_turns(Y, hierarchy, share, variant, drawn)
    assert len(drawn) == sum(turn.clones for turn in turns)
    place = 0
    for turn in turns:
        for _ in range(turn.clones):
            assert drawn[place] in turn.sources, turn
            if variant == "as_described":
                assert np.array_equal(clones[place], Y[drawn[place]]), turn
            else:
                assert names_of(hierarchy, clones[place]) == with_ancestors(hierarchy, turn.node), turn
            place += 1
    return turns


def clones_by_node(
    Y: NDArray[np.bool_], hierarchy: Hierarchy, share: float, variant: Variant, seed: int = 0
) -> dict[str, int]:
    return {turn.node: turn.clones for turn in check_turns(Y, hierarchy, share, variant, seed)}


# --- against the oracle --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
@settings(max_examples=50, suppress_health_check=[HealthCheck.filter_too_much])  # mostly nothing is rare enough
@given(labelled=rare_and_common(), share=st.sampled_from((*EXACT_SHARES, 0.1)), seed=st.integers(0, 3))
def test_clones_per_node_follow_the_formulas(labelled: Labelled, share: float, variant: Variant, seed: int) -> None:
    assume(check_turns(labelled.Y, labelled.hierarchy, share, variant, seed))


DEEP_TREE = Hierarchy.from_edges(
    [*COMMON, ("root", "a"), ("a", "c"), ("a", "d"), ("c", "e"), ("c", "f"), ("d", "g"), ("b", "h")]
)
DIAMONDS = Hierarchy.from_edges(
    [*COMMON, ("root", "a"), ("a", "c"), ("b", "c"), ("c", "e"), ("root", "e"), ("a", "d"), ("d", "f"), ("p", "f")]
)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("hierarchy", [DEEP_TREE, DIAMONDS], ids=["tree", "DAG"])
@given(data=st.data())
def test_clones_per_node_beside_common_nodes(hierarchy: Hierarchy, variant: Variant, data: st.DataObject) -> None:
    """Where most nodes are common, rare ones have turns on several levels."""
    labelled = data.draw(rare_and_common(hierarchy=hierarchy))
    Y = np.concatenate([labelled.Y, of_rows(hierarchy, ("b", 25), ("p", 20), ("q", 30))])
    check_turns(Y, hierarchy, data.draw(st.sampled_from((0.0, 0.1, 0.125, 0.5, 2.0))), variant, 0)


# --- by hand -------------------------------------------------------------------------------------------------------


def test_the_two_variants_count_differently() -> None:
    """Rows: a 2, b 8, c 2, d 1, mean ratio 17 / 4, so d. Occurrences: a 3, b 8, c 2, d 1, 47 / 12, so c and d."""
    tree = Hierarchy.from_edges([("root", "a"), ("root", "b"), ("a", "c"), ("a", "d")])
    Y = of_rows(tree, ("c d", 1), ("c", 1), ("b", 8))
    assert clones_by_node(Y, tree, 1.0, "as_described") == {"d": 2}
    assert clones_by_node(Y, tree, 1.0, "as_published") == {"c": 1, "d": 2}


def test_counts_follow_upwards() -> None:
    """a and c are both minority, but the clones of c are also of a, which then has 7 of 20."""
    tree = Hierarchy.from_edges([("root", "a"), ("root", "b"), ("a", "c")])
    Y = of_rows(tree, ("b", 20), ("c", 1))
    for variant in VARIANTS:
        assert clones_by_node(Y, tree, 1.0, variant) == {"c": 6}


def test_counts_follow_within_a_level() -> None:
    """The three clones for c carry d too, which is then as large as the mean; a label alone does nothing for d."""
    tree = Hierarchy.from_edges([("root", "a"), ("root", "b"), ("a", "c"), ("a", "d")])
    Y = of_rows(tree, ("c d", 1), ("b", 12))
    assert clones_by_node(Y, tree, 1.0, "as_described") == {"c": 3}
    assert clones_by_node(Y, tree, 1.0, "as_published") == {"c": 3, "d": 3}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seed", range(5))
def test_rows_that_end_at_the_node_come_first(variant: Variant, seed: int) -> None:
    tree = Hierarchy.from_edges([*COMMON, ("root", "s"), ("root", "a"), ("a", "c")])
    Y = of_rows(tree, ("b", 20), ("p", 20), ("q", 20), ("s", 20), ("a", 1), ("c", 1))
    assert check_turns(Y, tree, 1 / 64, variant, seed) == [
        Turn("c", 1, frozenset({81})),
        Turn("a", 1, frozenset({80})),
    ]


@pytest.mark.parametrize("variant", VARIANTS)
def test_rows_that_go_on_below_serve_where_none_end(variant: Variant) -> None:
    tree = Hierarchy.from_edges([*COMMON, ("root", "a"), ("a", "c")])
    Y = of_rows(tree, ("b", 20), ("p", 20), ("q", 20), ("c", 1))
    resampled = HROSPD(tree, 1 / 32, variant).resample(Y)
    assert resampled.rows[61:].tolist() == [60, 60]
    whole, without_c = {"root", "a", "c"}, {"root", "a"}
    assert [set(labels) for labels in tree.decode(resampled.Y[61:])] == [
        whole,
        whole if variant == "as_described" else without_c,
    ]


def test_a_published_clone_denies_the_other_labels_of_its_row() -> None:
    tree = Hierarchy.from_edges([*COMMON, ("root", "a"), ("a", "c")])
    Y = of_rows(tree, ("b", 20), ("p", 20), ("q", 20), ("a c q", 1))
    for variant, labels in (("as_described", {"root", "a", "c", "q"}), ("as_published", {"root", "a", "c"})):
        resampled = HROSPD(tree, 0.1, variant).resample(Y)  # type: ignore[arg-type]
        clones = tree.decode(resampled.Y[61:])
        assert clones
        assert all(set(clone) == labels for clone in clones)


def test_no_turn_goes_beyond_the_mean_size() -> None:
    """However large the share: 30 rows over 3 paths make 10."""
    tree = Hierarchy.from_edges([("root", "a"), ("root", "b"), ("root", "c")])
    Y = of_rows(tree, ("a", 20), ("b", 8), ("c", 2))
    for variant in VARIANTS:
        assert clones_by_node(Y, tree, 100.0, variant) == {"c": 8}


def test_the_increase_is_shared_by_the_minority_and_rounded_up() -> None:
    """Of 104 rows 10 are to be created for the four paths of one row, which is 3 for each of them."""
    tree = Hierarchy.from_edges([("root", name) for name in "bpqsacde"])
    Y = of_rows(tree, *((name, 25) for name in "bpqs"), *((name, 1) for name in "acde"))
    for variant in VARIANTS:
        assert clones_by_node(Y, tree, 0.1, variant) == dict.fromkeys("acde", 3)


def test_a_ratio_equal_to_the_mean_is_not_above_it() -> None:
    """Ratios 1, 3/2 and 2: the middle one is the mean."""
    tree = Hierarchy.from_edges([("root", "a"), ("root", "b"), ("root", "c")])
    Y = of_rows(tree, ("a", 12), ("b", 8), ("c", 6))
    for variant in VARIANTS:
        assert clones_by_node(Y, tree, 1.0, variant) == {"c": 3}


def test_a_ratio_equal_to_the_mean_is_not_above_it_whatever_the_digits() -> None:
    """Ratios four times 4, 10/3, 3 and 1: their mean is 10/3."""
    tree = Hierarchy.from_edges([("root", name) for name in "abcdefg"])
    Y = of_rows(tree, *((name, 15) for name in "abcd"), ("e", 18), ("f", 20), ("g", 60))
    for variant in VARIANTS:
        assert clones_by_node(Y, tree, 1.0, variant) == dict.fromkeys("abcd", 8)


def test_paths_without_rows_count_for_nothing() -> None:
    small = Hierarchy.from_edges([("root", "a"), ("root", "b"), ("a", "c")])
    large = Hierarchy.from_edges([*small.edges, ("c", "x"), ("root", "y"), ("b", "z")])
    rows = ("b", 12), ("a", 7), ("c", 1)
    for variant in VARIANTS:
        clones = clones_by_node(of_rows(small, *rows), small, 0.5, variant)
        assert clones_by_node(of_rows(large, *rows), large, 0.5, variant) == clones == {"c": 6}


def test_a_node_that_several_paths_lead_to_has_one_turn_after_all_below_it() -> None:
    """x hangs under the root and under c; its turn is at the longer way, before c's."""
    dag = Hierarchy.from_edges([*COMMON, ("root", "s"), ("root", "a"), ("a", "c"), ("c", "x"), ("root", "x")])
    Y = of_rows(dag, ("b", 40), ("p", 40), ("q", 40), ("s", 40), ("a", 1), ("c", 1), ("x", 1))
    for variant in VARIANTS:
        assert [turn.node for turn in check_turns(Y, dag, 1 / 128, variant, 0)] == ["x", "c"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_clones_are_drawn_from_all_rows_alike_and_with_replacement(variant: Variant) -> None:
    tree = Hierarchy.from_edges([("root", "a"), ("root", "b")])
    Y = of_rows(tree, ("b", 27), ("a", 3))
    drawn = Counter[int]()
    repeated = 0
    for seed in range(100):
        clones = HROSPD(tree, 0.1, variant, seed).resample(Y).rows[30:].tolist()
        assert len(clones) == 3
        drawn.update(clones)
        repeated += len(set(clones)) < 3
    assert drawn.keys() == {27, 28, 29}
    assert min(drawn.values()) > 70
    assert 60 < repeated < 95  # 7 in 9


@pytest.mark.parametrize("variant", ["published", "As_published", "", None])
def test_an_unknown_variant(variant: str) -> None:
    with pytest.raises(ArgumentError, match=r"variant .*as_described, as_published"):
        HROSPD(DEEP_TREE, variant=variant)  # type: ignore[arg-type]


# --- real data -----------------------------------------------------------------------------------------------------


@pytest.mark.real_data
@pytest.mark.parametrize("variant", VARIANTS)
def test_clones_on_a_tree_of_genes(variant: Variant) -> None:
    dataset = load_dataset("eisen_FUN")
    turns = check_turns(dataset.train.Y, dataset.hierarchy, 0.1, variant, 0)
    assert len(turns) > 10
    assert len({len(with_ancestors(dataset.hierarchy, turn.node)) for turn in turns}) > 1


@pytest.mark.real_data
def test_clones_on_a_dag_of_genes() -> None:
    """There are more paths than rows, so the mean size is 1 and whole rows are never cloned; occurrences are more."""
    dataset = load_dataset("cellcycle_GO")
    hierarchy, Y = dataset.hierarchy, dataset.train.Y
    assert len(Y) == 1625 < Y.any(axis=0).sum() - 1
    assert HROSPD(hierarchy).resample(Y).rows.tolist() == list(range(1625))
    published = HROSPD(hierarchy, variant="as_published").resample(Y)
    drawn, clones = published.rows[1625:], published.Y[1625:]
    assert len(clones) > 0
    assert not (clones & ~Y[drawn]).any()
    above = {node: len(hierarchy.ancestors(node)) for node in hierarchy.nodes}
    for labels in hierarchy.decode(hierarchy.require_closed(clones)):
        assert len(labels) == 1 + max(above[node] for node in labels)  # one node with its ancestors
