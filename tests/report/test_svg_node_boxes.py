"""`node_boxes`: a line for each node, parents above children, boxes in a grid."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode.errors import ArgumentError
from rarenode.report.svg import BoxedNode, node_boxes
from tests.report.svg_reading import SVG, at, numbers, read, texts, tooltip, with_class

RUNS = ["plain", "weighted", "trained", "both"]
NODES = [
    BoxedNode("plant", 0, -1, (0.0, 10.0, 20.0, 30.0)),
    BoxedNode("animal", 0, -1, (50.0, 60.0, None, 100.0)),
    BoxedNode("oak", 1, 0, (0.01, 0.0, 0.0, 0.0)),
    BoxedNode("dog", 1, 1, (0.0, 0.0, math.nan, 0.0)),
    BoxedNode("elm", 1, 0, (None, 5.0, 5.0, 5.0)),
]


def drawn(nodes: list[BoxedNode] = NODES, runs: list[str] = RUNS, columns: int = 2) -> ElementTree.Element:
    return read(node_boxes("F1", nodes, runs, columns=columns))


def boxes(root: ElementTree.Element) -> dict[str, ElementTree.Element]:
    """What is drawn for a node and a run, by its tooltip up to the value."""
    found = [group for group in root.iter(f"{SVG}g") if tooltip(group)]
    return {tooltip(group).rpartition(":")[0]: group for group in found}


def lines(root: ElementTree.Element, names: set[str]) -> list[tuple[float, str, float]]:
    """Height, name and indentation of the nodes, from the top."""
    found = [each for each in root.iter(f"{SVG}text") if each.text in names]
    return sorted((at(each, "y"), each.text or "", at(each, "x")) for each in found)


def test_children_stand_below_their_parent_further_right() -> None:
    found = lines(drawn(), {node.name for node in NODES})
    assert [name for _, name, _ in found] == ["plant", "oak", "elm", "animal", "dog"]
    indent = {name: x for _, name, x in found}
    assert indent["plant"] == indent["animal"] == 0 < indent["oak"] == indent["elm"] == indent["dog"]


@given(st.data())
def test_any_tree_is_drawn_parents_first_and_families_together(data: st.DataObject) -> None:
    depths, parents = [0], [-1]
    for older in range(1, data.draw(st.integers(1, 12))):
        parents.append(data.draw(st.integers(-1, older - 1)))
        depths.append(depths[parents[-1]] + data.draw(st.integers(1, 3)) if parents[-1] >= 0 else 0)
    order = data.draw(st.permutations(range(len(parents))))
    place = {old: new for new, old in enumerate(order)} | {-1: -1}
    nodes = [BoxedNode(f"n{old}", depths[old], place[parents[old]], (50.0,)) for old in order]
    found = lines(drawn(nodes, ["run"], 1), {node.name for node in nodes})
    names = [name for _, name, _ in found]
    assert sorted(names) == sorted(node.name for node in nodes)
    for new, node in enumerate(nodes):
        below = {new}
        while True:  # the slow way to all descendants
            grown = below | {index for index, other in enumerate(nodes) if other.parent in below}
            if grown == below:
                break
            below = grown
        start = names.index(node.name)
        assert set(names[start : start + len(below)]) == {nodes[index].name for index in below}


def test_boxes_of_a_node_are_a_grid_in_the_order_of_the_runs() -> None:
    found = boxes(drawn())
    corners = []
    for run in RUNS:
        rect = found[f"plant, {run}"].find(f"{SVG}rect")
        assert rect is not None
        corners.append((at(rect, "x"), at(rect, "y")))
    (a, b, c, d) = corners
    assert a[1] == b[1] < c[1] == d[1]
    assert a[0] == c[0] < b[0] == d[0]


def test_boxes_of_all_nodes_are_in_the_same_columns_and_do_not_touch() -> None:
    nodes = [BoxedNode(f"n{k}", k, k - 1, (10.0,) * 8) for k in range(4)]
    root = drawn(nodes, [f"r{k}" for k in range(8)], 4)
    rects = [(at(r, "x"), at(r, "y"), at(r, "width"), at(r, "height")) for r in root.iter(f"{SVG}rect")][64:]
    assert len(rects) == 8 * 4
    assert len({x for x, *_ in rects}) == 4
    assert len({y for _, y, *_ in rects}) == 8
    for index, (x, y, wide, tall) in enumerate(rects):
        for other_x, other_y, *_ in rects[:index]:
            assert abs(x - other_x) >= wide or abs(y - other_y) >= tall


def test_what_is_written_in_boxes() -> None:
    found = boxes(drawn())
    written = {key: "".join(texts(group)) for key, group in found.items()}
    assert written["animal, plain"] == "50.0"
    assert written["animal, both"] == "100"
    assert written["oak, plain"] == "<0.1"
    assert written["plant, plain"] == "0"
    assert written["animal, trained"] == written["dog, trained"] == "\u2013"
    assert tooltip(found["animal, plain"]) == "animal, plain: 50.0 %"
    assert tooltip(found["animal, trained"]) == "animal, trained: not known"


def test_boxes_are_tinted_by_value_and_empty_at_zero() -> None:
    values = (0.0, 0.001, 20.0, 70.0, 100.0, 130.0)
    found = boxes(drawn([BoxedNode("n", 0, -1, values)], [f"r{k}" for k in range(6)], 6))
    rects = [found[f"n, r{k}"].find(f"{SVG}rect") for k in range(6)]
    looks = [(rect.get("class"), float(rect.get("fill-opacity", 0))) for rect in rects if rect is not None]
    assert [look for look, _ in looks] == ["rn-box rn-empty"] + ["rn-box"] * 5
    tints = [tint for _, tint in looks]
    assert 0 == tints[0] < tints[1] < tints[2] < tints[3] < tints[4] == tints[5] < 1
    assert tints[3] - tints[2] == pytest.approx(0.5 * (tints[4] - tints[1]), abs=0.02)


def test_gained_and_lost_nodes_have_signs_on_their_line_and_a_word_of_what_they_mean() -> None:
    root = drawn()
    height = {name: y for y, name, _ in lines(root, {node.name for node in NODES})}
    gained, lost = with_class(root, "rn-gained"), with_class(root, "rn-lost")
    assert [sign.text for sign in gained] == ["+"] * 2
    assert [sign.text for sign in lost] == ["\u2212"] * 2
    assert at(gained[0], "y") == pytest.approx(height["plant"], abs=3)
    assert at(lost[0], "y") == pytest.approx(height["oak"], abs=3)
    assert {"0 in the first run, above 0 in the last", "above 0 in the first run, 0 in the last"} <= set(texts(root))
    same = drawn([NODES[1]])
    assert not with_class(same, "rn-gained") and not with_class(same, "rn-lost")
    assert not any("first run" in text for text in texts(same))


def test_the_key_shows_each_run_its_place() -> None:
    root = drawn()
    names = [at(each, "x") for each in root.iter(f"{SVG}text") if each.text in RUNS]
    assert len(names) == 4
    icons = [rect for rect in root.iter(f"{SVG}rect") if at(rect, "width") < 10]
    assert len(icons) == 16
    for run in range(4):
        grid = icons[4 * run : 4 * run + 4]
        assert [rect.get("class") == "rn-box" for rect in grid] == [other == run for other in range(4)]
        assert at(grid[0], "x") == at(grid[2], "x") < at(grid[1], "x") < names[run]


def test_branches_go_from_each_child_up_to_its_parent() -> None:
    root = drawn()
    (tree,) = with_class(root, "rn-branch")
    height = {name: y for y, name, _ in lines(root, {node.name for node in NODES})}
    found = [numbers(part) for part in tree.attrib["d"].split("M")[1:]]
    ends = [(start, end) for _, start, end, _ in found]
    expected = [("plant", "oak"), ("plant", "elm"), ("animal", "dog")]
    assert len(ends) == 3
    for (start, end), (parent, child) in zip(ends, expected, strict=True):
        assert height[parent] < start < height[parent] + 10
        assert end == pytest.approx(height[child], abs=6)


def test_deep_trees_and_long_names_stay_left_of_the_boxes() -> None:
    nodes = [BoxedNode(f"{'long name ' * 9}{k}", 5 * k, k - 1, (1.0,) * 8) for k in range(30)]
    root = drawn(nodes, [f"r{k}" for k in range(8)], 8)
    names = [each for each in root.iter(f"{SVG}text") if tooltip(each).startswith("long name")]
    assert len(names) == 30
    first_box = min(at(rect, "x") for rect in root.iter(f"{SVG}rect") if at(rect, "width") > 20)
    assert all((name.find(f"{SVG}title")).tail.endswith("…") for name in names)  # type: ignore[union-attr]
    assert all(at(name, "x") < first_box - 60 for name in names)


@pytest.mark.parametrize(
    ("nodes", "runs", "columns", "message"),
    [
        (NODES, [], 2, "without runs"),
        (NODES, [f"run {k}" for k in range(9)], 2, "these are 9, and 'run 8' is"),
        ([], RUNS, 2, "without nodes"),
        (NODES, RUNS[:3], 2, "'plant' has 4 values for 3 runs"),
        (NODES, RUNS, 0, "not for 0"),
        (NODES, RUNS, 9, "not for 9"),
        ([BoxedNode("a", 0, 1, (1.0,))], ["r"], 1, "parent of the node 'a' is number 1 of 1"),
        ([BoxedNode("a", 0, -2, (1.0,))], ["r"], 1, "parent of the node 'a' is number -2"),
        ([BoxedNode("a", 0, 0, (1.0,))], ["r"], 1, "'a' is not deeper than its parent 'a'"),
        (
            [BoxedNode("a", 1, 1, (1.0,)), BoxedNode("b", 2, 0, (1.0,))],
            ["r"],
            1,
            "'a' is not deeper than its parent 'b'",
        ),
    ],
)
def test_what_does_not_fit_is_refused(nodes: list[BoxedNode], runs: list[str], columns: int, message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        drawn(nodes, runs, columns)
