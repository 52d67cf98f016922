"""The map: every node has its area, in its colour, beside its parent; and no hierarchy makes a large drawing."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from numpy.typing import NDArray

from rarenode import Hierarchy
from rarenode.errors import ArgumentError
from rarenode.plots import plot_icicle
from rarenode.plots.icicle import drawn_parents
from rarenode.plots.style import LIGHT
from tests import oracles
from tests.plots.hostile import HOSTILE
from tests.strategies import hierarchies

BOUNDS = (10, 25, 40, 60, 75, 90)
Rectangles = dict[str, NDArray[np.float64]]


def colour_of(score: float) -> str:
    """The role of the colour of a score."""
    if np.isnan(score):
        return "r8"
    return "r0" if score == 0 else f"r{1 + sum(round(100 * score) >= bound for bound in BOUNDS)}"


def rectangles(ax: Axes) -> Rectangles:
    """Role of a colour -> left, top, right and bottom of its rectangles."""
    roles = {colour: role for role, colour in LIGHT.items()}
    found = {}
    for patch in ax.patches:
        assert isinstance(patch, PathPatch)
        corners = np.asarray(patch.get_path().vertices).reshape(-1, 5, 2)
        found[roles[to_hex(patch.get_facecolor())]] = np.concatenate([corners[:, 0], corners[:, 2]], axis=1)
    return found


def areas(ax: Axes) -> dict[str, float]:
    return {role: float(((r[:, 2] - r[:, 0]) * (r[:, 3] - r[:, 1])).sum()) for role, r in rectangles(ax).items()}


def leaves_below(hierarchy: Hierarchy, column: int) -> list[int]:
    """By following drawn parents up from every node without children."""
    above = drawn_parents(hierarchy).tolist()
    found = []
    for leaf in set(range(len(above))) - set(above):
        node = leaf
        while node not in (column, -1):
            node = above[node]
        if node == column:
            found.append(leaf)
    return found


@st.composite
def scored(draw: st.DrawFn) -> tuple[Hierarchy, NDArray[np.float64]]:
    hierarchy = draw(hierarchies())
    scores = draw(st.lists(st.integers(-1, 100), min_size=len(hierarchy), max_size=len(hierarchy)))
    return hierarchy, np.array([np.nan if score < 0 else score / 100 for score in scores])


@given(scored())
def test_a_node_is_as_high_as_its_leaves_are_many(case: tuple[Hierarchy, NDArray[np.float64]]) -> None:
    """Of few nodes each has a box, one column for each depth."""
    hierarchy, scores = case
    found = rectangles(plot_icicle(hierarchy, scores))
    every = np.concatenate(list(found.values()))
    assert len(every) == len(hierarchy)
    total = sum(
        len(leaves_below(hierarchy, column)) for column in range(len(hierarchy)) if hierarchy.depth[column] == 0
    )
    columns = dict(enumerate(sorted(set(every[:, 0].round(9)))))
    boxes = {}
    for role, some in found.items():
        mine = [column for column in range(len(hierarchy)) if colour_of(scores[column]) == role]
        assert len(some) == len(mine)
        for column, box in zip(mine, some, strict=True):
            boxes[column] = box
            assert box[0] == pytest.approx(columns[int(hierarchy.depth[column])])
            height = len(leaves_below(hierarchy, column)) / total
            assert box[3] - box[1] == pytest.approx(height, abs=0.006)  # a gap parts it from the next
            assert box[3] - box[1] <= height + 1e-9
    for column, parent in enumerate(drawn_parents(hierarchy).tolist()):
        if parent >= 0:
            assert boxes[parent][1] - 1e-9 <= boxes[column][1]
            assert boxes[column][3] <= boxes[parent][3] + 0.006
            assert boxes[column][0] >= boxes[parent][2]


def wide_tree(children: int, leaves: int) -> Hierarchy:
    return Hierarchy.from_edges(
        [("root", f"c{child}") for child in range(children)]
        + [(f"c{child}", f"c{child}.{leaf}") for child in range(children) for leaf in range(leaves)]
    )


def test_thin_nodes_share_bars_by_their_colours() -> None:
    """Areas of a level are shares of its nodes, however thin they are; the whole level is covered."""
    hierarchy = wide_tree(300, 20)
    rng = np.random.default_rng(0)
    scores = rng.choice([0.0, 0.05, 0.5, 1.0, np.nan], size=len(hierarchy), p=[0.4, 0.1, 0.2, 0.2, 0.1])
    ax = plot_icicle(hierarchy, scores)
    found = rectangles(ax)
    left, right = 2 * ax.get_xticks()[-1] - 1, max(r[:, 2].max() for r in found.values())  # a tick is in the middle
    level = {role: r[r[:, 0] >= left - 1e-9] for role, r in found.items()}
    drawn = {role: ((r[:, 2] - r[:, 0]) * (r[:, 3] - r[:, 1])).sum() / (right - left) for role, r in level.items()}
    assert sum(drawn.values()) == pytest.approx(1, abs=0.01)
    leaves = np.flatnonzero(hierarchy.depth == 2)
    for role in {colour_of(scores[column]) for column in leaves.tolist()}:
        share = np.mean([colour_of(scores[column]) == role for column in leaves.tolist()])
        assert drawn[role] == pytest.approx(share, abs=0.01)
    assert sum(len(r) for r in found.values()) < 3_000


@pytest.mark.parametrize("shape", ["wide", "deep", "star"])
def test_any_hierarchy_is_a_small_drawing(shape: str) -> None:
    edges = {
        "wide": [(f"n{(node - 1) // 3}", f"n{node}") for node in range(1, 20_000)],
        "deep": [(f"n{node - 1}", f"n{node}") for node in range(1, 400)]
        + [(f"n{node}", f"m{node}.{leaf}") for node in range(400) for leaf in range(25)],
        "star": [("n0", f"n{node}") for node in range(1, 20_000)],
    }[shape]
    hierarchy = Hierarchy.from_edges(edges)
    rng = np.random.default_rng(0)
    ax = plot_icicle(hierarchy, rng.integers(0, 5, len(hierarchy)) / 4)
    assert len(ax.patches) <= 9
    assert sum(len(r) for r in rectangles(ax).values()) < 40_000
    assert len(ax.texts) < 300
    for r in rectangles(ax).values():
        assert (r[:, :2] >= -1e-9).all()
        assert (r[:, 2:] <= 1 + 1e-9).all()


def test_names_and_scores_are_written_where_they_fit() -> None:
    hierarchy = Hierarchy.from_edges([("animal", "cat"), ("animal", "dog")])
    ax = plot_icicle(hierarchy, [1.0, 0.0, np.nan])
    assert [text.get_text() for text in ax.texts] == ["animal", "100 %", "cat", "missed", "dog", "no score"]
    small = plot_icicle(hierarchy, [1.0, 0.0, np.nan], ax=Figure(figsize=(1, 0.3)).add_subplot())
    assert len(small.texts) < 6
    assert ax.get_xlabel() == "depth"
    assert [label.get_text() for label in ax.get_xticklabels()] == ["0", "1"]


def test_the_legend_counts_what_is_missed() -> None:
    star = Hierarchy.from_edges([("root", f"leaf {number}") for number in range(1999)])
    ax = plot_icicle(star, [1.0, *[0.0] * 1234, *[np.nan] * 765], name="F1")
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()][:3] == ["missed: 1,234", "no score: 765", "F1 above 0"]


def test_hostile_names_are_plain_text() -> None:
    names = [name for name in HOSTILE if name.strip()]
    hierarchy = Hierarchy.from_edges([("root", name) for name in names])
    ax = plot_icicle(hierarchy, np.ones(len(hierarchy)), ax=Figure(figsize=(6, 9)).add_subplot())
    assert len(ax.texts) > len(names)
    for text in ax.texts:
        assert text.get_text().isprintable()
        assert len(text.get_text()) < 200
        assert not text.get_parse_math()


@pytest.mark.parametrize("scores", [[0.5], [0.5, 0.5, 1.5], [0.5, 0.5, -0.1]])
def test_what_is_refused(scores: list[float]) -> None:
    with pytest.raises(ArgumentError, match="scores must"):
        plot_icicle(Hierarchy.from_edges([("a", "b"), ("a", "c")]), scores)


@given(hierarchies())
def test_the_first_of_the_deepest_parents(hierarchy: Hierarchy) -> None:
    above = drawn_parents(hierarchy)
    for column, name in enumerate(hierarchy.nodes):
        parents = [place for place, other in enumerate(hierarchy.nodes) if (other, name) in hierarchy.edges]
        depths = [oracles.depth(hierarchy.edges, hierarchy.nodes[parent]) for parent in parents]
        expected = parents[depths.index(max(depths))] if parents else -1
        assert above[column] == expected
        assert expected == -1 or hierarchy.depth[expected] + 1 == hierarchy.depth[column]
