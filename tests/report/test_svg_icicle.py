"""`icicle`: boxes where the leaves below them say, areas that are kept where nodes are gathered, and a bounded size."""

from __future__ import annotations

import math
import random
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rarenode.errors import ArgumentError
from rarenode.report.svg import CSS, MapNode, icicle
from rarenode.report.svg.icicle import HEIGHT, MOST_BOXES, MOST_LEVELS, MOST_PIECES
from rarenode.report.svg.stylesheet import DARK, LIGHT
from tests.report.svg_reading import HOSTILE, at, numbers, read, texts, tooltip, with_class
from tests.report.test_svg_documents import check
from tests.report.test_svg_stylesheet import SEEN, contrast, linear, oklab, rgb, themes
from tests.report.test_svg_text import ANY_TEXT

MOST_ELEMENTS = 6_000
LARGE = 45_000
VALUES = (None, 0.0, 5.0, 10.0, 30.0, 50.0, 70.0, 80.0, 95.0, 100.0)
ROUNDED = 0.011


@dataclass(frozen=True)
class Drawn:
    """A rectangle: a box, or a piece of a strip, whose class is all that is known of it."""

    left: float
    top: float
    right: float
    bottom: float
    look: str


def drawn(nodes: Sequence[MapNode]) -> ElementTree.Element:
    return read(icicle("Recall of every node", nodes))


def boxes(root: ElementTree.Element) -> dict[str, Drawn]:
    """The box of each node that has one, by its name; those of the legend have no tooltip."""
    found = {}
    for rect in with_class(root, "rn-cell"):
        if tooltip(rect):
            x, y, wide, tall = (at(rect, name) for name in ("x", "y", "width", "height"))
            found[tooltip(rect).rpartition(":")[0]] = Drawn(x, y, x + wide, y + tall, rect.attrib["class"].split()[1])
    return found


def pieces(root: ElementTree.Element) -> list[Drawn]:
    found = []
    for path in with_class(root, "rn-strip"):
        for piece in path.attrib["d"].removeprefix("M").split("M"):
            x, y, wide, tall, back = numbers(piece)
            assert back == -wide
            found.append(Drawn(x, y, x + wide, y + tall, path.attrib["class"].split()[1]))
    return found


def any_overlap(some: Sequence[Drawn]) -> bool:
    """Whether two of thousands of rectangles overlap: each is compared with all that come later."""
    left, top, right, bottom = np.array([(one.left, one.top, one.right, one.bottom) for one in some]).T
    for index in range(len(some)):
        rest = slice(index + 1, None)
        across = np.minimum(right[index], right[rest]) - np.maximum(left[index], left[rest])
        along = np.minimum(bottom[index], bottom[rest]) - np.maximum(top[index], top[rest])
        if np.any((across > 2 * ROUNDED) & (along > 2 * ROUNDED)):
            return True
    return False


def slow_leaves(nodes: Sequence[MapNode]) -> list[int]:
    """Each leaf counts for itself and for all that is above it."""
    counts, parents = [0] * len(nodes), {node.parent for node in nodes}
    for leaf in range(len(nodes)):
        above = -1 if leaf in parents else leaf
        while above >= 0:
            counts[above] += 1
            above = nodes[above].parent
    return counts


def slow_start(nodes: Sequence[MapNode], index: int) -> int:
    """Leaves before a node: those before its parent, and those of its elder siblings."""
    above, leaves = nodes[index].parent, slow_leaves(nodes)
    elder = sum(leaves[other] for other in range(index) if nodes[other].parent == above)
    return elder + (slow_start(nodes, above) if above >= 0 else 0)


def leaf_height(nodes: Sequence[MapNode]) -> float:
    return HEIGHT / (len(nodes) - len({node.parent for node in nodes} - {-1}))


def slow_columns(nodes: Sequence[MapNode]) -> dict[int, tuple[float, float]]:
    """Where the boxes of each depth begin and end, by the part of its column that has boxes of 15 units and more."""
    unit, wanted = leaf_height(nodes), dict.fromkeys(sorted({node.depth for node in nodes}), 0.3)
    for node, leaves in zip(nodes, slow_leaves(nodes), strict=True):
        wanted[node.depth] += leaves * unit / HEIGHT if leaves * unit >= 15 else 0
    first = min(wanted)
    if sum(node.depth == first for node in nodes) == 1:
        wanted[first] = min(wanted[first], 0.9)
    found, left = {}, 0.0
    for depth, part in wanted.items():
        wide = 560 * part / sum(wanted.values())
        found[depth] = left, left + wide - min(1.0, wide / 8)
        left += wide
    return found


def slow_class(value: float | None) -> str:
    if value is None or not math.isfinite(value):
        return "rn-r8"
    return "rn-r0" if value == 0 else f"rn-r{1 + sum(value >= bound for bound in (10, 25, 40, 60, 75, 90))}"


def tree(parents: Sequence[int], steps: Sequence[int] | None = None, seed: int = 0) -> list[MapNode]:
    """Nodes below these parents, each so many levels deeper (1), with values at random."""
    pick = random.Random(seed)
    depths: list[int] = []
    for index, parent in enumerate(parents):
        depths.append(depths[parent] + (steps[index] if steps else 1) if parent >= 0 else 0)
    return [MapNode(f"n{k}", depths[k], parent, pick.choice(VALUES)) for k, parent in enumerate(parents)]


def any_tree(data: st.DataObject, most: int) -> list[MapNode]:
    parents = [data.draw(st.integers(-1, older - 1)) for older in range(data.draw(st.integers(1, most)))]
    return tree(parents, [data.draw(st.integers(1, 3)) for _ in parents], data.draw(st.integers(0, 99)))


def wide_tree(size: int, seed: int, near: int = 10**9) -> list[MapNode]:
    """A parent at random for each node, out of those that come not longer before it."""
    pick = random.Random(seed)
    return tree([pick.randrange(max(-1, index - near), index) for index in range(size)], seed=seed)


EXAMPLE = [
    MapNode("life", 1, -1, 100.0),
    MapNode("plant", 2, 0, 50.0),
    MapNode("animal", 2, 0, 0.0),
    MapNode("rock", 1, -1, None),
    MapNode("dog", 3, 2, 12.34),
    MapNode("cat", 3, 2, 0.01),
]


def test_a_node_is_beside_its_parent_and_as_high_as_its_leaves() -> None:
    found = boxes(drawn(EXAMPLE))
    top, leaf = found["life"].top, HEIGHT / 4  # plant, dog, cat, rock
    expected = {"life": (0, 3), "plant": (0, 1), "animal": (1, 2), "dog": (1, 1), "cat": (2, 1), "rock": (3, 1)}
    assert found.keys() == expected.keys()
    for name, (start, leaves) in expected.items():
        assert found[name].top == pytest.approx(top + start * leaf, abs=ROUNDED)
        assert found[name].bottom == pytest.approx(top + (start + leaves) * leaf - 1, abs=2 * ROUNDED)  # a thin line
    lefts = {name: box.left for name, box in found.items()}
    assert lefts["life"] == lefts["rock"] == 0 < lefts["plant"] == lefts["animal"] < lefts["dog"] == lefts["cat"]
    assert found["dog"].right == pytest.approx(559)


@given(st.data())
def test_boxes_of_any_tree_are_where_the_slow_way_puts_them(data: st.DataObject) -> None:
    nodes = any_tree(data, 30)
    root = drawn(nodes)
    found, unit, columns = boxes(root), leaf_height(nodes), slow_columns(nodes)
    top = min(box.top for box in found.values())
    assert len(found) == len(nodes)
    assert not pieces(root)
    for index, (node, leaves) in enumerate(zip(nodes, slow_leaves(nodes), strict=True)):
        box = found[node.name]
        assert (box.left, box.right) == pytest.approx(columns[node.depth], abs=2 * ROUNDED)
        assert box.top == pytest.approx(top + slow_start(nodes, index) * unit, abs=2 * ROUNDED)
        assert leaves * unit - 1 - 2 * ROUNDED <= box.bottom - box.top <= leaves * unit + 2 * ROUNDED
        assert box.look == slow_class(node.value)


@given(st.data())
def test_children_fill_the_height_of_their_parent_and_nothing_overlaps(data: st.DataObject) -> None:
    nodes = any_tree(data, 40)
    root = drawn(nodes)
    found = boxes(root)
    _, _, wide, tall = numbers(root.get("viewBox"))
    for parent, node in enumerate(nodes):
        above = found[node.name]
        edge = above.top
        children = [found[child.name] for child in nodes if child.parent == parent]
        for child in children:
            assert edge - ROUNDED <= child.top <= edge + 1 + 3 * ROUNDED
            assert child.left >= above.right
            edge = child.bottom
        assert not children or edge == pytest.approx(above.bottom, abs=1 + 3 * ROUNDED)
    assert not any_overlap([*found.values()])
    assert all(0 <= box.left < box.right <= wide and 0 <= box.top < box.bottom <= tall for box in found.values())


GATHERED: dict[str, Callable[[], list[MapNode]]] = {
    "few levels": lambda: wide_tree(2_000, 1),
    "more levels": lambda: wide_tree(2_000, 2, near=150),
    "families": lambda: tree([-1] * 3 + [k % 3 for k in range(30)] + [3 + k % 30 for k in range(2_000)], seed=3),
    "gaps": lambda: tree([-1, *(parent for k in range(700) for parent in (0, 3 * k + 1, 0))], seed=4),
}


@pytest.mark.parametrize("make", GATHERED.values(), ids=GATHERED)
def test_where_nodes_are_gathered_every_class_keeps_its_area_and_nothing_overlaps(
    make: Callable[[], list[MapNode]],
) -> None:
    nodes = make()
    root = drawn(nodes)
    found, strips, unit, columns = boxes(root), pieces(root), leaf_height(nodes), slow_columns(nodes)
    heights = {node.name: leaves * unit for node, leaves in zip(nodes, slow_leaves(nodes), strict=True)}
    assert {name for name, height in heights.items() if height >= 0.8} == found.keys()
    wanted: dict[tuple[int, str], float] = defaultdict(float)
    for node in nodes:
        if node.name not in found:
            left, right = columns[node.depth]
            wanted[node.depth, slow_class(node.value)] += heights[node.name] * (right - left)
    top = min(one.top for one in [*found.values(), *strips])
    together: dict[int, list[Drawn]] = {depth: [] for depth in columns}
    for one in [*found.values(), *strips]:
        (depth,) = [d for d, (left, right) in columns.items() if left - 0.02 <= one.left and one.right <= right + 0.02]
        assert top <= one.top <= one.bottom <= top + HEIGHT + ROUNDED
        together[depth].append(one)
    assert not any_overlap([*found.values(), *strips])
    in_strips = set(strips)
    got: dict[tuple[int, str], float] = defaultdict(float)
    for depth, column in together.items():
        for piece in column:
            if piece in in_strips:
                got[depth, piece.look] += (piece.bottom - piece.top) * (piece.right - piece.left)
    assert len(wanted) > 5
    assert got.keys() == wanted.keys()
    for key, area in wanted.items():
        assert got[key] == pytest.approx(area, rel=0.01, abs=0.5), key


def test_thin_neighbours_under_one_parent_are_one_strip_split_by_class_missed_first() -> None:
    nodes = [MapNode("a", 0, -1, 50.0), MapNode("b", 0, -1, 50.0)]
    nodes += [MapNode(f"a{k}", 1, 0, (0.0, 0.0, 100.0, None)[k % 4]) for k in range(1_000)]
    nodes += [MapNode(f"b{k}", 1, 1, 30.0) for k in range(1_000)]
    root = drawn(nodes)
    above, below = boxes(root)["a"], boxes(root)["b"]
    strips = sorted(pieces(root), key=lambda piece: (piece.top, piece.left))
    assert [piece.look for piece in strips] == ["rn-r0", "rn-r7", "rn-r8", "rn-r3"]
    for piece, box in zip(strips, (above, above, above, below), strict=True):
        assert (piece.top, piece.bottom) == pytest.approx((box.top, box.bottom + 1), abs=2 * ROUNDED)
    wide = strips[3].right - strips[3].left
    assert [piece.right - piece.left for piece in strips[:3]] == pytest.approx([wide / 2, wide / 4, wide / 4], abs=0.01)
    assert [piece.left for piece in strips[1:3]] == pytest.approx([piece.right for piece in strips[:2]], abs=0.01)


def test_a_strip_that_is_too_thin_goes_on_under_the_next_parent() -> None:
    parents = [-1] * 2_000 + [k // 2 for k in range(4_000)]  # 2 leaves are 0.16 units high
    nodes = [MapNode(f"{k}", int(parent >= 0), parent, 50.0) for k, parent in enumerate(parents)]
    strips = [piece for piece in pieces(drawn(nodes)) if piece.left > 0]
    assert len(strips) == 334
    high = 12 * HEIGHT / 4_000  # six families; the last strip has two
    assert [piece.bottom - piece.top for piece in strips[:-1]] == pytest.approx([high] * 333, abs=ROUNDED)


def test_strips_end_at_wide_gaps() -> None:
    parents = [-1] * 1_000 + [0, 1, 998, 999]
    nodes = [MapNode(f"{k}", int(parent >= 0), parent, 50.0) for k, parent in enumerate(parents)]
    root = drawn(nodes)
    (roots, first, last) = sorted(pieces(root), key=lambda piece: (piece.left, piece.top))
    high = 2 * HEIGHT / 1_000
    assert (first.top, first.bottom) == pytest.approx((roots.top, roots.top + high), abs=ROUNDED)
    assert (last.top, last.bottom) == pytest.approx((roots.bottom - high, roots.bottom), abs=ROUNDED)


SHAPES: dict[str, Callable[[], list[MapNode]]] = {
    "star": lambda: tree([-1] + [0] * (LARGE - 1)),
    "chain of 200": lambda: tree(range(-1, 199)),
    "chain": lambda: tree(range(-1, LARGE - 1)),
    "roots": lambda: tree([-1] * LARGE),
    "few levels": lambda: wide_tree(LARGE, 1),
    "many levels": lambda: wide_tree(LARGE, 2, near=900),
    "comb": lambda: tree([-1 if k % 200 == 0 else k - 1 for k in range(LARGE)]),
    "just too thin": lambda: tree([-1] * 397 + list(range(397 * 112))),
    "just high enough": lambda: tree([-1] * 380 + list(range(380 * 6))),
    "gaps": lambda: tree([-1, *(parent for k in range(LARGE // 3) for parent in (0, 3 * k + 1, 0))]),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_map_of_any_hierarchy_has_few_elements(shape: str) -> None:
    nodes = SHAPES[shape]()
    svg = icicle("t", nodes)
    root = read(svg)
    found, strips = boxes(root), pieces(root)
    assert len(list(root.iter())) < MOST_ELEMENTS
    assert len(found) <= MOST_BOXES
    assert len(strips) <= MOST_PIECES
    assert len(svg) < 500_000
    assert found or strips
    assert not any_overlap([*found.values(), *strips])


def test_all_that_is_high_enough_has_a_box_unless_there_are_too_many() -> None:
    assert len(boxes(drawn(tree(range(-1, 199))))) == 200
    assert len(boxes(drawn(tree([-1] * 390)))) == 390  # 0.815 units each
    assert not boxes(drawn(tree([-1] * 400)))
    many = tree([-1] * 30 + list(range(2_400)))  # 30 chains of 81 nodes, all as high
    assert not boxes(drawn(many))
    assert len(boxes(drawn(many[:MOST_BOXES]))) == MOST_BOXES


def test_where_strips_are_too_many_the_highest_nodes_keep_their_boxes() -> None:
    nodes = SHAPES["many levels"]()
    unit, found = leaf_height(nodes), boxes(drawn(nodes))
    heights = {node.name: leaves * unit for node, leaves in zip(nodes, slow_leaves(nodes), strict=True)}
    assert 100 < len(found) < len([height for height in heights.values() if height >= 0.8])
    assert min(heights[name] for name in found) > max(heights[name] for name in heights.keys() - found.keys())


def test_levels_beyond_the_last_column_are_left_out_and_it_says_so() -> None:
    nodes = tree(range(-1, MOST_LEVELS + 49))
    root = drawn(nodes)
    assert boxes(root).keys() == {node.name for node in nodes[:MOST_LEVELS]}
    assert f"What is deeper than {MOST_LEVELS - 1} is not drawn." in texts(root)
    assert not any("not drawn" in text for text in texts(drawn(nodes[:MOST_LEVELS])))


@pytest.mark.parametrize(
    ("value", "look", "said"),
    [
        (0.0, "rn-r0", "missed"),
        (5e-324, "rn-r1", "recall <0.1 %"),
        (9.99, "rn-r1", "recall 10.0 %"),
        (10.0, "rn-r2", "recall 10.0 %"),
        (25.0, "rn-r3", "recall 25.0 %"),
        (50.0, "rn-r4", "recall 50.0 %"),
        (60.0, "rn-r5", "recall 60.0 %"),
        (89.9, "rn-r6", "recall 89.9 %"),
        (100.0, "rn-r7", "recall 100 %"),
        (None, "rn-r8", "nothing to find"),
        (math.nan, "rn-r8", "nothing to find"),
        (math.inf, "rn-r8", "nothing to find"),
    ],
)
def test_a_box_has_the_class_of_its_recall_and_says_it(value: float | None, look: str, said: str) -> None:
    root = drawn([MapNode("oak", 0, -1, value)])
    (rect,) = [rect for rect in with_class(root, "rn-cell") if tooltip(rect)]
    assert rect.attrib["class"] == f"rn-cell {look}"
    assert tooltip(rect) == f"oak: {said}"
    (name, recall) = with_class(root, "rn-within")
    assert (name.text, recall.text) == ("oak", said.removeprefix("recall "))
    assert look in name.attrib["class"]


def test_names_are_in_boxes_with_room_for_them_and_cut() -> None:
    root = drawn([MapNode("short", 0, -1, 1.0), MapNode("long " * 200, 0, -1, 1.0), *tree([-1] * 38)])
    rects = {tooltip(rect): rect for rect in with_class(root, "rn-cell") if tooltip(rect)}
    assert len(rects) == 40
    assert not with_class(root, "rn-within")  # 40 boxes of 8 units
    root = drawn([MapNode("long " * 200, k, k - 1, 1.0) for k in range(5)])
    (first, second, recall) = [text.text or "" for text in with_class(root, "rn-within")][:3]
    assert first.startswith("long long") and second.endswith("…") and recall == "1.0 %"
    assert max(len(tooltip(rect)) for rect in with_class(root, "rn-cell")) <= 500 + len(": recall 1.0 %")
    root = drawn([MapNode("an unbroken" + "x" * k, k, k - 1, 1.0) for k in range(10)])
    assert [text.text for text in with_class(root, "rn-within")].count("an") == 10  # a short word is not a cut one
    root = drawn([MapNode("incomprehensibilities", k, k - 1, 1.0) for k in range(7)])
    assert [text.text for text in with_class(root, "rn-within")] == ["inco…", "1.0 %", *["incompr…", "1.0 %"] * 6]
    root = drawn([MapNode("incomprehensibilities", k, k - 1, 1.0) for k in range(14)])
    assert not with_class(root, "rn-within")  # two letters at most


@given(st.data())
def test_letters_are_inside_their_box(data: st.DataObject) -> None:
    nodes = any_tree(data, 30)
    named = [MapNode(f"{node.name} {'some words ' * (k % 4)}", *_rest(node)) for k, node in enumerate(nodes)]
    root = drawn(named)
    found = list(boxes(root).values())
    letters = with_class(root, "rn-within")
    for text in letters:
        x, y, long = at(text, "x"), at(text, "y"), 7 * len(text.text or "")  # a common width of letters of 14 units
        assert any(box.left < x and x + long <= box.right + 14 and box.top + 9 <= y < box.bottom for box in found)
    assert letters or len(nodes) > 8


def _rest(node: MapNode) -> tuple[int, int, float | None]:
    return node.depth, node.parent, node.value


def test_the_legend_counts_nodes_and_names_the_bounds_of_the_scale() -> None:
    root = drawn(EXAMPLE)
    assert {"missed: 1", "nothing to find: 1", "found: 4, by recall"} <= set(texts(root))
    steps = [rect for rect in with_class(root, "rn-cell") if not tooltip(rect)]
    assert [rect.attrib["class"].split()[1] for rect in steps] == ["rn-r0", "rn-r8", *(f"rn-r{k}" for k in range(1, 8))]
    ticks = {text.text: at(text, "x") for text in with_class(root, "rn-small", "rn-muted")}
    for step, bound in zip(steps[3:], ("10", "25", "40", "60", "75", "90"), strict=True):
        assert at(step, "x") == ticks[bound]
    assert (ticks[">0"], ticks["100 %"]) == (at(steps[2], "x"), at(steps[-1], "x") + at(steps[-1], "width"))
    bottom = max(box.bottom for box in boxes(root).values())
    assert all(at(rect, "y") > bottom for rect in steps)
    assert root.attrib["aria-label"].endswith("Map of 6 nodes, depth 1 to 3: 1 missed, 1 with nothing to find.")


def test_depths_stand_above_their_columns() -> None:
    root = drawn(EXAMPLE)
    places = {text.text: at(text, "x") for text in with_class(root, "rn-small", "rn-muted")}
    found = boxes(root)
    assert places["depth 1"] == found["life"].left
    assert places["2"] == found["plant"].left
    assert places["3"] == found["dog"].left
    chain = drawn(tree(range(-1, 199)))
    labels = [text for text in with_class(chain, "rn-small", "rn-muted") if at(text, "y") < 50]
    assert 10 < len(labels) < 30
    assert all(at(after, "x") - at(before, "x") >= 7 * len(before.text or "") for before, after in pairwise(labels))


def test_boxes_with_nothing_to_find_are_hatched_and_missed_ones_in_print() -> None:
    root = drawn(EXAMPLE)
    found = boxes(root)
    for look, name in (("rn-hatch", "rock"), ("rn-texture", "animal")):
        path, in_legend = with_class(root, look)
        box, strokes = found[name], [numbers(stroke) for stroke in path.attrib["d"].split("M")[1:]]
        assert len(strokes) > 20
        for x, y, right, down in strokes:
            assert abs(down) == right
            assert box.left - 0.02 <= x <= x + right <= box.right + 0.02
            assert box.top - 0.02 <= min(y, y + down) <= max(y, y + down) <= box.bottom + 0.02
            assert (down > 0) == (name == "animal")
        offsets = [x - y if name == "animal" else x + y for x, y, *_ in strokes]
        assert all(after - before == pytest.approx(6, abs=0.05) for before, after in pairwise(offsets))
        assert in_legend.attrib["d"]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_names_stay_text(text: str) -> None:
    nodes = [MapNode(text, node.depth, node.parent, node.value) for node in EXAMPLE]
    root = check(icicle(text, nodes))
    assert len([rect for rect in with_class(root, "rn-cell") if tooltip(rect)]) == len(nodes)
    assert max(len(each.text or "") for each in root.iter()) <= 520


@settings(max_examples=40)
@given(st.lists(ANY_TEXT, min_size=7, max_size=7))
def test_any_text_makes_a_map_of_the_same_boxes(some: list[str]) -> None:
    nodes = [MapNode(text, node.depth, node.parent, node.value) for text, node in zip(some[1:], EXAMPLE, strict=True)]
    root, usual = check(icicle(some[0], nodes)), drawn(EXAMPLE)
    assert Counter(rect.get("class") for rect in with_class(root, "rn-cell")) == Counter(
        rect.get("class") for rect in with_class(usual, "rn-cell")
    )


def test_large_maps_are_charts_too_and_the_same_every_time() -> None:
    nodes = wide_tree(5_000, 5)
    svg = icicle("t", nodes)
    root = check(svg)
    assert svg == icicle("t", nodes)
    known = set(re.findall(r"\.(rn-[a-z0-9-]+)", CSS))
    assert {name for each in root.iter() for name in each.get("class", "").split()} <= known
    assert "Nodes too thin to draw are gathered in bars of their shares." in texts(root)
    assert not any("too thin" in text for text in texts(drawn(EXAMPLE)))
    _, _, wide, tall = numbers(root.get("viewBox"))
    assert wide == 560
    assert 380 <= tall <= 480


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([], "without nodes"),
        ([MapNode("a", 0, 0, 1.0)], "parent of the node 'a', number 0, is number 0, not before it"),
        ([MapNode("a", 1, 1, 1.0), MapNode("b", 0, -1, 1.0)], "parent of the node 'a', number 0, is number 1"),
        ([MapNode("a", 0, -2, 1.0)], "parent of the node 'a', number 0, is number -2"),
        ([MapNode("a", 1, -1, 1.0), MapNode("b", 1, 0, 1.0)], "'b' is not deeper than its parent 'a'"),
        ([MapNode("a", 0, -1, -0.5)], "recall of the node 'a' is -0.5"),
        ([MapNode("a", 0, -1, 100.5)], "recall of the node 'a' is 100.5"),
    ],
)
def test_what_is_not_a_hierarchy_is_refused(nodes: list[MapNode], message: str) -> None:
    with pytest.raises(ArgumentError, match=message):
        icicle("t", nodes)


@themes
@pytest.mark.parametrize("eyes", SEEN)
def test_classes_can_be_told_apart_by_everyone_and_missed_at_once(theme: dict[str, str], eyes: str) -> None:
    seen = [oklab(np.array(SEEN[eyes]) @ linear(rgb(theme[f"r{index}"]))) for index in range(9)]
    for one, other in combinations(range(9), 2):
        distance = float(np.linalg.norm(seen[one] - seen[other]))
        assert distance > (0.16 if one == 0 else 0.045 if other == 8 else 0.07), (one, other)
    lightness = [float(colour[0]) for colour in seen[1:8]]
    assert lightness == sorted(lightness, reverse=theme is LIGHT)  # away from the paper


@themes
def test_letters_on_the_map_can_be_read_and_a_page_can_set_its_colours(theme: dict[str, str]) -> None:
    for index in range(9):
        assert contrast(rgb(theme[f"r{index}"]), rgb(theme[f"on-r{index}"])) >= 4.5, index
        for name in (f"r{index}", f"on-r{index}"):
            assert f"--rn-{name}:{theme[name]};" in CSS
            assert f"var(--rn-{name})" in CSS
    assert LIGHT.keys() == DARK.keys()
