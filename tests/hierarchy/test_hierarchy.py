"""Hierarchy on examples small enough to check by eye, and on one large enough to notice a bad algorithm."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from rarenode import Hierarchy
from rarenode.errors import (
    CycleError,
    HierarchyError,
    LabelError,
    NotClosedError,
    RarenodeError,
    UnknownLabelError,
)

#     a     b
#    / \   /
#   c   d      e stands alone
#    \ / \
#     f   g        and a -> f directly
EDGES = [("d", "g"), ("a", "d"), ("c", "f"), ("a", "f"), ("b", "d"), ("d", "f"), ("a", "c")]


@pytest.fixture
def dag() -> Hierarchy:
    return Hierarchy.from_edges(EDGES, nodes=["e"])


class TestShape:
    def test_columns_go_by_depth_then_name(self, dag: Hierarchy) -> None:
        assert dag.nodes == ("a", "b", "e", "c", "d", "f", "g")
        assert dag.depth.tolist() == [0, 0, 0, 1, 1, 2, 2]
        assert np.issubdtype(dag.depth.dtype, np.integer)

    def test_depth_is_the_longest_path(self) -> None:
        hierarchy = Hierarchy.from_edges([("top", "low"), ("top", "mid"), ("mid", "low")])
        assert dict(zip(hierarchy.nodes, hierarchy.depth.tolist(), strict=True)) == {"top": 0, "mid": 1, "low": 2}

    def test_index_is_the_inverse_of_nodes(self, dag: Hierarchy) -> None:
        assert dict(dag.index) == {name: column for column, name in enumerate(dag.nodes)}

    def test_edges_are_those_given(self, dag: Hierarchy) -> None:
        assert sorted(dag.edges) == sorted(EDGES)
        assert len(dag.edges) == len(EDGES)

    def test_roots_and_leaves(self, dag: Hierarchy) -> None:
        assert dag.roots == ("a", "b", "e")
        assert dag.leaves == ("e", "f", "g")

    def test_relatives_exclude_the_node_itself(self, dag: Hierarchy) -> None:
        assert dag.parents("f") == ("a", "c", "d")
        assert dag.children("a") == ("c", "d", "f")
        assert dag.ancestors("g") == ("a", "b", "d")
        assert dag.descendants("a") == ("c", "d", "f", "g")
        assert dag.parents("a") == dag.ancestors("a") == dag.children("g") == dag.descendants("e") == ()

    def test_is_tree(self, dag: Hierarchy) -> None:
        assert not dag.is_tree
        assert Hierarchy.from_edges([("a", "b"), ("a", "c"), ("x", "y")]).is_tree
        assert not Hierarchy.from_edges([("a", "c"), ("b", "c")]).is_tree

    def test_a_single_node_and_nothing_at_all(self) -> None:
        alone = Hierarchy.from_edges([], nodes=["only"])
        assert (alone.nodes, alone.edges, alone.roots, alone.leaves) == (("only",), (), ("only",), ("only",))
        empty = Hierarchy.from_edges([])
        assert len(empty) == 0
        assert empty.close(np.zeros((3, 0), dtype=bool)).shape == (3, 0)

    def test_length_and_membership(self, dag: Hierarchy) -> None:
        assert len(dag) == 7
        assert "c" in dag
        assert "z" not in dag

    @pytest.mark.parametrize("question", ["parents", "children", "ancestors", "descendants"])
    def test_an_unknown_name_is_named(self, dag: Hierarchy, question: str) -> None:
        with pytest.raises(UnknownLabelError, match="'nowhere'"):
            getattr(dag, question)("nowhere")


class TestPaths:
    def test_prefixes_become_nodes(self) -> None:
        hierarchy = Hierarchy.from_paths(["a > b > c", "a > d", "x"])
        assert hierarchy.nodes == ("a", "x", "a > b", "a > d", "a > b > c")
        assert hierarchy.edges == (("a", "a > b"), ("a", "a > d"), ("a > b", "a > b > c"))
        assert hierarchy.is_tree

    def test_equal_steps_in_different_places_are_different_nodes(self) -> None:
        assert Hierarchy.from_paths(["a > x", "b > x"]).nodes == ("a", "b", "a > x", "b > x")

    def test_another_separator(self) -> None:
        hierarchy = Hierarchy.from_paths(["01/01/03", "02"], separator="/")
        assert hierarchy.nodes == ("01", "02", "01/01", "01/01/03")
        assert hierarchy.parents("01/01/03") == ("01/01",)

    def test_a_path_may_be_given_again_or_as_a_prefix_of_another(self) -> None:
        assert Hierarchy.from_paths(["a", "a > b", "a > b"]) == Hierarchy.from_paths(["a > b"])

    @pytest.mark.parametrize(("paths", "place"), [(["a", "a >  > b"], "1"), ([""], "0"), (["a", "b", " > a"], "2")])
    def test_an_empty_step_is_refused_with_its_place(self, paths: list[str], place: str) -> None:
        with pytest.raises(HierarchyError, match=place):
            Hierarchy.from_paths(paths)

    @pytest.mark.parametrize(
        ("paths", "separator"),
        [
            (["a/b/c"], "/"),
            (["a/b/c", "a/d", "x"], "/"),
            (["a / b", "a / c"], " / "),
            (["a / b", "a/c"], "/"),
            (["a>b"], ">"),
            (["a|b", "a|c"], "|"),
            (["a::b"], "::"),
            (["a;b"], ";"),
            (["a\\b"], "\\"),
            (["1.14.13", "2"], "."),
            (["a/b", "a/c", "x|y"], "/"),
        ],
    )
    def test_paths_with_another_separator_are_refused_and_the_message_says_how_to_split_them(
        self, paths: list[str], separator: str
    ) -> None:
        with pytest.raises(HierarchyError, match=re.escape(f"Pass separator={separator!r}")) as caught:
            Hierarchy.from_paths(paths)
        assert repr(paths[0]) in str(caught.value)
        assert Hierarchy.from_paths(paths, separator=separator).depth.max() >= 1
        assert Hierarchy.from_paths(paths, separator=" > ").nodes == tuple(sorted(set(paths)))

    @pytest.mark.parametrize(
        "paths",
        [
            [],
            ["a", "b"],
            ["Acropora sp.", "Acropora sp. 1", "GO:0008150", "half-way", "snake_case", "/", "a/", "..."],
            ["stars > Brittle/snake stars", "Worms/leeches"],
        ],
    )
    def test_names_that_only_resemble_paths_are_accepted(self, paths: list[str]) -> None:
        assert set(paths) <= set(Hierarchy.from_paths(paths).nodes)

    @given(st.lists(st.text(min_size=1, max_size=12), max_size=6), st.sampled_from((" > ", "/", ".", "x")))
    def test_a_separator_that_is_given_is_never_questioned(self, names: list[str], separator: str) -> None:
        paths = [name for name in names if all(name.split(separator))]
        assert set(paths) <= set(Hierarchy.from_paths(paths, separator=separator).nodes)

    def test_an_empty_separator_is_refused(self) -> None:
        with pytest.raises(HierarchyError, match="separator"):
            Hierarchy.from_paths(["a"], separator="")

    def test_one_text_is_not_a_list_of_paths(self) -> None:
        with pytest.raises(HierarchyError):
            Hierarchy.from_paths("a > b")


class TestRefusedEdges:
    def test_a_cycle_is_printed(self) -> None:
        with pytest.raises(CycleError) as caught:
            Hierarchy.from_edges([("top", "b"), ("b", "c"), ("c", "d"), ("d", "b"), ("d", "leaf")])
        assert "b -> c -> d -> b" in str(caught.value)
        assert "top" not in str(caught.value)
        assert "leaf" not in str(caught.value)

    def test_a_cycle_of_two(self) -> None:
        with pytest.raises(CycleError, match=re.escape("x -> y -> x")):
            Hierarchy.from_edges([("y", "x"), ("x", "y")])

    def test_a_very_long_cycle_does_not_fill_the_screen(self) -> None:
        with pytest.raises(CycleError) as caught:
            Hierarchy.from_edges([(str(i), str((i + 1) % 5000)) for i in range(5000)])
        assert len(str(caught.value)) < 1000

    def test_a_repeated_edge_names_both_places(self) -> None:
        with pytest.raises(HierarchyError, match=r"(?=.*\b3\b)(?=.*\b1\b)(?=.*'a')(?=.*'c')"):
            Hierarchy.from_edges([("a", "b"), ("a", "c"), ("b", "d"), ("a", "c")])

    def test_a_self_loop_names_its_place(self) -> None:
        with pytest.raises(HierarchyError, match=r"(?=.*\b2\b)(?=.*'loop')"):
            Hierarchy.from_edges([("a", "b"), ("a", "c"), ("loop", "loop")])

    @pytest.mark.parametrize("edge", ["ab", ("a",), ("a", "b", "c"), ("a", 1), (None, "b"), ("", "b"), ("a", ""), 7])
    def test_what_is_not_a_pair_of_names_is_refused_with_its_place(self, edge: object) -> None:
        with pytest.raises(HierarchyError, match=r"\b1\b"):
            Hierarchy.from_edges([("x", "y"), edge])  # type: ignore[list-item]

    @pytest.mark.parametrize("node", ["", 3, None])
    def test_a_node_without_a_name_is_refused(self, node: object) -> None:
        with pytest.raises(HierarchyError):
            Hierarchy.from_edges([], nodes=["fine", node])  # type: ignore[list-item]

    def test_every_error_is_ours_and_a_value_error(self) -> None:
        for error in (CycleError, UnknownLabelError, HierarchyError, LabelError, NotClosedError):
            assert issubclass(error, RarenodeError)
            assert issubclass(error, ValueError)


class TestLabels:
    def test_encode_does_not_close(self, dag: Hierarchy) -> None:
        Y = dag.encode([["g"], [], {"e", "a"}])
        assert Y.dtype == np.bool_
        assert Y.tolist() == [
            [False, False, False, False, False, False, True],
            [False] * 7,
            [True, False, True, False, False, False, False],
        ]

    def test_encode_takes_generators_and_repeated_labels(self, dag: Hierarchy) -> None:
        Y = dag.encode(labels for labels in (["a", "a"], ("b",)))
        assert dag.decode(Y) == [frozenset({"a"}), frozenset({"b"})]

    def test_encoding_no_rows_keeps_the_columns(self, dag: Hierarchy) -> None:
        assert dag.encode([]).shape == (0, 7)

    def test_an_unknown_label_names_row_and_label(self, dag: Hierarchy) -> None:
        with pytest.raises(UnknownLabelError, match=r"(?=.*\brow 2\b)(?=.*'zebra')"):
            dag.encode([["a"], ["b"], ["a", "zebra"]])

    def test_text_in_place_of_a_set_is_refused(self, dag: Hierarchy) -> None:
        with pytest.raises(UnknownLabelError, match="row 1"):
            dag.encode([["a"], "ab"])
        with pytest.raises(UnknownLabelError):
            dag.encode("ab")

    def test_close_adds_all_ancestors_and_nothing_else(self, dag: Hierarchy) -> None:
        closed = dag.decode(dag.close(dag.encode([["g"], ["f"], ["c"], []])))
        assert closed == [frozenset("gdab"), frozenset("fcdab"), frozenset("ca"), frozenset()]

    @pytest.mark.parametrize("dtype", [np.bool_, np.int8, np.int64, np.uint8, np.float32, np.float64])
    def test_close_keeps_the_type_and_the_input(self, dag: Hierarchy, dtype: type) -> None:
        Y: NDArray[Any] = dag.encode([["g"]]).astype(dtype)
        before = Y.copy()
        closed = dag.close(Y)
        assert closed.dtype == dtype
        assert closed.sum() == 4
        assert np.array_equal(Y, before)

    def test_is_closed(self, dag: Hierarchy) -> None:
        assert dag.is_closed(dag.encode([["a"], [], ["a", "b", "d", "g"]]))
        assert not dag.is_closed(dag.encode([["a"], ["a", "d"]]))

    def test_require_closed_names_row_node_and_missing_parent(self, dag: Hierarchy) -> None:
        with pytest.raises(NotClosedError, match=r"(?=.*\brow 1\b)(?=.*'d')(?=.*'b')"):
            dag.require_closed(dag.encode([["a"], ["a", "d"]]))
        closed = dag.require_closed(dag.encode([["a"]]).astype(np.float32))
        assert closed.dtype == np.bool_

    @pytest.mark.parametrize("shape", [(2, 6), (2, 8), (7,), (1, 2, 7)])
    def test_a_matrix_of_the_wrong_shape_is_refused(self, dag: Hierarchy, shape: tuple[int, ...]) -> None:
        ask: list[Callable[[object], object]] = [dag.close, dag.is_closed, dag.decode, dag.require_closed]
        for question in ask:
            with pytest.raises(LabelError, match="7"):
                question(np.zeros(shape, dtype=bool))

    @pytest.mark.parametrize("wrong", [2, -1, 0.5, np.nan, np.inf])
    def test_values_other_than_0_and_1_are_refused_with_row_and_node(self, dag: Hierarchy, wrong: float) -> None:
        Y = np.zeros((3, 7))
        Y[2, 4] = wrong
        with pytest.raises(LabelError, match=r"(?=.*\brow 2\b)(?=.*'d')"):
            dag.close(Y)

    def test_sum_over_descendants_counts_each_descendant_once(self, dag: Hierarchy) -> None:
        sums = dag.sum_over_descendants(np.array([1, 10, 100, 1000, 10_000, 100_000, 1_000_000]))
        assert sums.tolist() == [1_111_001, 1_110_010, 100, 101_000, 1_110_000, 100_000, 1_000_000]

    def test_sum_over_descendants_leaves_its_input_alone(self, dag: Hierarchy) -> None:
        values = np.arange(7.0)
        dag.sum_over_descendants(values)
        assert values.tolist() == [0, 1, 2, 3, 4, 5, 6]

    def test_sum_over_descendants_wants_one_value_a_node(self, dag: Hierarchy) -> None:
        with pytest.raises(RarenodeError):
            dag.sum_over_descendants(np.zeros(6))


class TestIdentity:
    def test_fingerprint_is_a_sha256_that_stays_the_same_between_versions(self, dag: Hierarchy) -> None:
        assert dag.fingerprint == "9192bc7e05f2db8a7959ab81bed638b4c31181ac17a82b74f4537e2e941116d8"
        assert dag.fingerprint == Hierarchy.from_edges(EDGES[::-1], nodes=["e"]).fingerprint

    @pytest.mark.parametrize(
        "other",
        [
            Hierarchy.from_edges(EDGES),
            Hierarchy.from_edges(EDGES, nodes=["E"]),
            Hierarchy.from_edges([*EDGES, ("b", "g")], nodes=["e"]),
            Hierarchy.from_edges(EDGES[1:], nodes=["e", "g"]),
        ],
    )
    def test_other_content_is_another_hierarchy(self, dag: Hierarchy, other: Hierarchy) -> None:
        assert dag != other
        assert dag.fingerprint != other.fingerprint

    def test_it_is_not_equal_to_something_else(self, dag: Hierarchy) -> None:
        assert dag != dag.nodes
        assert dag != "a"

    def test_equal_hierarchies_are_one_key(self, dag: Hierarchy) -> None:
        assert {dag: 1}[Hierarchy.from_edges(EDGES[::-1], nodes=["e"])] == 1

    def test_nothing_can_be_changed(self, dag: Hierarchy) -> None:
        with pytest.raises(AttributeError):
            dag.nodes = ()
        with pytest.raises(AttributeError):
            dag.novelty = 1
        with pytest.raises(AttributeError):
            del dag.nodes
        with pytest.raises(TypeError):
            dag.index["a"] = 3  # type: ignore[index]
        for array in (dag.depth, dag.edge_parents, dag.edge_children):
            with pytest.raises(ValueError, match="read-only"):
                array[0] = 1

    @pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
    def test_pickle_gives_it_back_frozen(self, dag: Hierarchy, protocol: int) -> None:
        again = pickle.loads(pickle.dumps(dag, protocol))
        assert again == dag
        assert (again.nodes, again.edges, dict(again.index)) == (dag.nodes, dag.edges, dict(dag.index))
        assert again.depth.tolist() == dag.depth.tolist()
        with pytest.raises(AttributeError):
            again.nodes = ()
        with pytest.raises(ValueError, match="read-only"):
            again.depth[0] = 1

    def test_copies_are_equal(self, dag: Hierarchy) -> None:
        assert copy.copy(dag) == dag
        assert copy.deepcopy(dag) == dag
        assert copy.deepcopy({"inside": [dag]})["inside"][0].ancestors("g") == dag.ancestors("g")

    def test_repr_says_what_it_is(self, dag: Hierarchy) -> None:
        assert "7" in repr(dag)
        assert len(repr(dag)) < 200


class TestLarge:
    """As many nodes and edges as the whole Gene Ontology."""

    NODES = 45_000
    EDGES = 100_000

    def test_it_builds_with_the_right_depths(self) -> None:
        random = np.random.default_rng(7)
        pairs: dict[tuple[int, int], None] = {}
        for child in range(1, self.NODES):
            pairs[int(random.integers(child)), child] = None
        while len(pairs) < self.EDGES:
            parent, child = sorted(random.integers(self.NODES, size=2).tolist())
            if parent != child:
                pairs[parent, child] = None
        code = random.permutation(self.NODES)  # so that names say nothing about the order
        shuffled = list(pairs)
        random.shuffle(shuffled)
        hierarchy = Hierarchy.from_edges((f"t{code[p]:05d}", f"t{code[c]:05d}") for p, c in shuffled)

        assert len(hierarchy) == self.NODES
        assert len(hierarchy.edges) == self.EDGES
        depth = [0] * self.NODES
        above: list[list[int]] = [[] for _ in range(self.NODES)]
        for parent, child in pairs:
            above[child].append(parent)
        for child in range(self.NODES):
            depth[child] = max((depth[parent] + 1 for parent in above[child]), default=0)
        for node in random.integers(self.NODES, size=200).tolist():
            name = f"t{code[node]:05d}"
            assert hierarchy.depth[hierarchy.index[name]] == depth[node]
            assert set(hierarchy.parents(name)) == {f"t{code[p]:05d}" for p in above[node]}
        assert hierarchy.roots == (f"t{code[0]:05d}",)

    def test_a_deep_chain_needs_no_deep_stack(self) -> None:
        names = [f"{i:05d}" for i in range(20_000)]
        hierarchy = Hierarchy.from_edges(pairwise(names))
        assert hierarchy.depth[-1] == 19_999
        assert len(hierarchy.ancestors(names[-1])) == 19_999
        assert hierarchy.close(hierarchy.encode([[names[-1]]])).all()
        assert pickle.loads(pickle.dumps(hierarchy)) == hierarchy


def test_what_the_kernels_walk_on_cannot_be_changed() -> None:
    hierarchy = Hierarchy.from_edges([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    arrays = [*hierarchy.families, *(array for level in hierarchy.levels_upwards for array in level)]
    for array in (hierarchy.depth, hierarchy.edge_parents, hierarchy.edge_children, *arrays):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 7


@pytest.mark.parametrize("edge", [{"a", "b"}, frozenset("ab"), {"a": 1, "b": 2}, "ab", ("a",), 3])
def test_an_edge_must_say_which_end_is_the_parent(edge: Any) -> None:
    with pytest.raises(HierarchyError, match="edge 1"):
        Hierarchy.from_edges([("x", "y"), edge])


def test_a_row_without_a_set_of_labels_is_named() -> None:
    with pytest.raises(UnknownLabelError, match="row 1"):
        Hierarchy.from_edges([("a", "b")]).encode([["a"], None])  # type: ignore[list-item]
