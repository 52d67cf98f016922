"""Nodes as a tree with boxes: order, indentation, scores and signs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from rarenode import Hierarchy
from rarenode.errors import ArgumentError
from rarenode.plots import plot_node_scores
from rarenode.plots.icicle import drawn_parents
from rarenode.plots.node_scores import STRONGEST, WEAKEST
from rarenode.plots.style import LIGHT
from tests.plots.hostile import HOSTILE
from tests.strategies import hierarchies

PETS = Hierarchy.from_edges([("pet", "cat"), ("pet", "dog"), ("dog", "poodle")])


def names(ax: Axes) -> dict[str, tuple[float, float]]:
    """Names of nodes, which begin where they are placed; all else in their lines is centred."""
    return {text.get_text(): text.get_position() for text in ax.texts if is_name(text) and text.get_position()[1] >= 0}


def is_name(text: Text) -> bool:
    return text.get_horizontalalignment() == "left" and text.get_fontweight() != "bold"


def boxes(ax: Axes) -> dict[tuple[int, int], Rectangle]:
    """(line, run) -> box."""
    found = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    columns = sorted({patch.get_x() for patch in found})
    return {(round(patch.get_y() + 0.42), columns.index(patch.get_x())): patch for patch in found}


def values(ax: Axes, runs: int) -> list[list[str]]:
    """What stands in the boxes, line by line."""
    lines: dict[int, list[tuple[float, str]]] = {}
    for text in ax.texts:
        x, y = text.get_position()
        if y >= 0 and not is_name(text) and text.get_text() not in "+\u2212":
            lines.setdefault(int(y), []).append((x, text.get_text()))
    assert all(len(line) == runs for line in lines.values())
    return [[text for _, text in sorted(lines[line])] for line in sorted(lines)]


def test_boxes_stand_beside_the_names() -> None:
    ax = plot_node_scores(PETS, {"before": [1, 0, 1, 0], "after": [1, 1, 1, 0]})
    ends = {text.get_text(): text.get_window_extent().x1 for text in ax.texts if text.get_text() in PETS.nodes}
    first = min(box.get_window_extent().x0 for box in boxes(ax).values())
    letters = next(text.get_window_extent().height for text in ax.texts if text.get_text() == "poodle")
    assert 0 < first - max(ends.values()) < 4 * letters


def test_letters_are_no_higher_than_their_lines() -> None:
    star = Hierarchy.from_edges([("root", f"leaf {number}") for number in range(20)])
    ax = plot_node_scores(star, {"mine": np.ones(21)}, ax=Figure(figsize=(3, 2)).add_subplot())
    assert {float(text.get_fontsize()) * 23 <= 2 * 72 for text in ax.texts} == {True}


@given(st.data())
def test_parents_stand_above_their_children_and_are_less_indented(data: st.DataObject) -> None:
    hierarchy = data.draw(hierarchies())
    chosen = data.draw(st.lists(st.sampled_from(range(len(hierarchy))), min_size=1, unique=True))
    places = names(plot_node_scores(hierarchy, {"one": np.zeros(len(hierarchy))}, nodes=chosen))
    assert sorted(places) == sorted(hierarchy.nodes[column] for column in chosen)
    assert sorted(y for _, y in places.values()) == list(range(len(chosen)))
    above = drawn_parents(hierarchy).tolist()
    for column in chosen:
        x, y = places[hierarchy.nodes[column]]
        if above[column] in chosen:
            x_above, y_above = places[hierarchy.nodes[above[column]]]
            assert x_above < x
            assert y_above < y
        same = [places[hierarchy.nodes[c]][0] for c in chosen if hierarchy.depth[c] == hierarchy.depth[column]]
        assert same == pytest.approx([x] * len(same))


def test_scores_and_tints() -> None:
    """The order of lines is that of the tree: pet, cat, dog, poodle."""
    scores = {
        node: (first, last)
        for node, first, last in zip(PETS.nodes, (1, 0.5, 0, np.nan), (0.25, 0, 0.001, 0.0004), strict=True)
    }
    ax = plot_node_scores(PETS, {"one": [s[0] for s in scores.values()], "two": [s[1] for s in scores.values()]})
    order = sorted(names(ax), key=lambda name: names(ax)[name][1])
    assert order == ["pet", "cat", "dog", "poodle"]
    shown = {
        name: [
            "\u2013" if np.isnan(v) else {1: "100", 0.5: "50.0", 0: "0", 0.25: "25.0", 0.001: "0.1", 0.0004: "<0.1"}[v]
            for v in scores[name]
        ]
        for name in order
    }
    assert values(ax, 2) == [shown[name] for name in order]
    drawn = boxes(ax)
    for line, name in enumerate(order):
        for run, value in enumerate(scores[name]):
            if np.isnan(value):
                assert (line, run) not in drawn
            elif value == 0:
                assert not drawn[line, run].get_fill()
            else:
                box = drawn[line, run]
                assert to_hex(box.get_facecolor()) == LIGHT["tint"]
                assert box.get_alpha() == pytest.approx(WEAKEST + (STRONGEST - WEAKEST) * value)


def test_signs_of_what_the_last_run_finds_and_the_first_does_not() -> None:
    ax = plot_node_scores(PETS, {"1st": [0, 0.5, np.nan, 0.5], "2nd": [0.9] * 4, "3rd": [0.5, 0, 0.5, np.nan]})
    signs = {text.get_text(): text for text in ax.texts if text.get_text() in ("+", "\u2212")}
    lines = {name: y for name, (_, y) in names(ax).items()}
    assert signs["+"].get_position()[1] == lines[PETS.nodes[0]]
    assert signs["\u2212"].get_position()[1] == lines[PETS.nodes[1]]
    assert sum(text.get_text() in ("+", "\u2212") for text in ax.texts) == 2
    assert signs["+"].get_color() != signs["\u2212"].get_color()


def test_runs_are_numbered_and_named() -> None:
    ax = plot_node_scores(PETS, {"plain": [0.5] * 4, "weighted": [0.5] * 4})
    assert [text.get_text() for text in ax.texts if is_name(text) and text.get_position()[1] < 0] == [
        "plain",
        "weighted",
    ]
    numbers = [text.get_text() for text in ax.texts if text.get_position()[1] < 0 and not is_name(text)]
    assert sorted(numbers) == ["1", "1", "2", "2"]


def test_hostile_names_are_plain_text() -> None:
    some = [name for name in HOSTILE if name.strip()]
    hierarchy = Hierarchy.from_edges([("root", name) for name in some])
    ax = plot_node_scores(hierarchy, {name: np.ones(len(hierarchy)) for name in some[:8]})
    for text in ax.texts:
        assert text.get_text().isprintable()
        assert len(text.get_text()) < 200
        if is_name(text):
            assert not text.get_parse_math()


def test_what_is_refused() -> None:
    with pytest.raises(ArgumentError, match="'one' must have one score for each of 4 nodes"):
        plot_node_scores(PETS, {"one": [0.5]})
    with pytest.raises(ArgumentError, match="there is no node to draw"):
        plot_node_scores(PETS, {"one": [0.5] * 4}, nodes=[])
    with pytest.raises(ArgumentError, match="1 to 8 runs, got 0"):
        plot_node_scores(PETS, {})
