"""Bars of groups: heights, labels and counts against the summaries they come from."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rarenode.errors import ArgumentError
from rarenode.metrics import RARITY_BANDS, Summary
from rarenode.plots import plot_scores_by_depth, plot_scores_by_rarity
from tests.plots.hostile import HOSTILE

fractions = st.integers(0, 100).map(lambda percent: percent / 100)


def group(nodes: int, f1: float = 0.5, precision: float = 0.5, recall: float = 0.5) -> Summary:
    return Summary(f1, precision, recall, 0.5, 0.5, nodes=nodes, nodes_predicted=0, nodes_found=0)


groups = st.builds(group, st.integers(0, 3), fractions, fractions, fractions)


def bars(ax: Axes) -> list[list[tuple[float, float]]]:
    """For each run the middles and heights of its bars."""
    return [[(bar.get_x() + bar.get_width() / 2, bar.get_height()) for bar in container] for container in ax.containers]


def written(ax: Axes) -> list[str]:
    return [text.get_text() for text in ax.texts]


@given(
    st.lists(st.dictionaries(st.sampled_from(list(RARITY_BANDS)), groups), min_size=1, max_size=8),
    st.sampled_from(("f1", "precision", "recall")),
)
def test_a_bar_for_each_run_and_band_that_has_nodes(runs: list[Mapping[str, Summary]], score: str) -> None:
    bands = [band for band in RARITY_BANDS if any(band in run and run[band].nodes for run in runs)]
    named = {f"run {number}": run for number, run in enumerate(runs)}
    if not bands:
        with pytest.raises(ArgumentError, match="no group has nodes"):
            plot_scores_by_rarity(named, score=score)  # type: ignore[arg-type]
        return
    ax = plot_scores_by_rarity(named, score=score)  # type: ignore[arg-type]
    assert [label.get_text() for label in ax.get_xticklabels()] == bands
    drawn = bars(ax)
    middles = sorted(x for run in drawn for x, _ in run)
    assert len(set(middles)) == len(middles)  # side by side
    for run, found in zip(drawn, runs, strict=True):
        known = {band: found[band] for band in bands if band in found and found[band].nodes}
        assert [bands[round(x)] for x, _ in run] == list(known)
        assert [height for _, height in run] == pytest.approx([100 * getattr(g, score) for g in known.values()])
    assert all(height <= ax.get_ylim()[1] for run in drawn for _, height in run)


def test_depths_are_sorted_as_numbers_with_their_counts_and_values() -> None:
    ax = plot_scores_by_depth({"one": {10: group(1234, f1=0.25), 9: group(2, f1=0.0), 2: group(1, f1=1.0)}}, score="f1")
    assert [label.get_text() for label in ax.get_xticklabels()] == ["2", "9", "10"]
    assert sorted(written(ax)) == sorted(["100", "0", "25.0", "1", "2", "1,234"])
    assert ax.get_ylabel() == "F1, percent"
    assert ax.get_legend() is None


def test_counts_that_differ_between_runs_are_a_range() -> None:
    ax = plot_scores_by_depth({"one": {0: group(3)}, "two": {0: group(5), 1: group(1)}})
    assert {"3\u20135", "0\u20131"} <= set(written(ax))
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["one", "two"]


def test_values_are_left_out_where_bars_are_too_narrow() -> None:
    runs = {f"run {number}": {depth: group(1, recall=0.123) for depth in range(20)} for number in range(8)}
    wide, narrow = plot_scores_by_depth({"run": runs["run 0"]}), plot_scores_by_depth(runs)
    assert written(wide).count("12") + written(wide).count("12.3") == 20
    assert not {"12", "12.3"} & set(written(narrow))


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_plain_text_in_the_legend(name: str) -> None:
    ax = plot_scores_by_depth({name: {0: group(1)}, "other": {0: group(1)}})
    legend = ax.get_legend()
    assert legend is not None
    label = legend.get_texts()[0]
    assert label.get_text().isprintable()
    assert len(label.get_text()) <= 49
    assert not label.get_parse_math()


def test_the_axes_of_the_caller_are_used() -> None:
    figure = Figure()
    ax = figure.add_subplot()
    assert plot_scores_by_depth({"one": {0: group(1)}}, ax=ax) is ax
    alone = plot_scores_by_depth({"one": {0: group(1)}})
    assert alone.figure is not figure


def test_what_is_refused() -> None:
    with pytest.raises(ArgumentError, match="1 to 8 runs, got 0"):
        plot_scores_by_depth({})
    with pytest.raises(ArgumentError, match="1 to 8 runs, got 9"):
        plot_scores_by_depth({str(number): {0: group(1)} for number in range(9)})
    with pytest.raises(ArgumentError, match="score must be one of f1, precision, recall, got 'auc'"):
        plot_scores_by_depth({"one": {0: group(1)}}, score="auc")  # type: ignore[arg-type]
