"""Lines: the data of each, their legend, and values that cannot be drawn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from rarenode.errors import ArgumentError
from rarenode.metrics.average_precision import precision_at_recalls
from rarenode.plots import plot_precision_recall, plot_reliability, plot_training_curve
from rarenode.plots.style import SERIES
from rarenode.thresholds.calibration_error import BINS, Reliability, reliability
from tests.plots.hostile import HOSTILE


def legend(ax: Axes) -> list[str]:
    found = ax.get_legend()
    return [] if found is None else [text.get_text() for text in found.get_texts()]


class TestPrecisionRecall:
    def test_curves_in_percent_and_points_above_them(self) -> None:
        truth, scores = np.array([[True, False, True]]), np.array([[0.9, 0.5, 0.1]])
        precision = precision_at_recalls(truth, scores)
        assert precision is not None
        ax = plot_precision_recall({"one": precision, "two": [0.5, 0.25]}, points={"two": (0.75, 0.3)})
        one, two, point = ax.lines
        assert one.get_xdata() == pytest.approx(np.arange(1, 101))
        assert one.get_ydata() == pytest.approx(100 * precision)
        assert two.get_xdata() == pytest.approx([50, 100])
        assert (point.get_xdata()[0], point.get_ydata()[0]) == pytest.approx((75, 30))  # type: ignore[index]
        assert [line.get_color() for line in (one, two, point)] == [SERIES[0], SERIES[1], SERIES[1]]
        assert point.get_zorder() > two.get_zorder()
        assert legend(ax) == ["one", "two"]
        assert (ax.get_xlim(), ax.get_ylim()) == ((0, 100), (0, 100))

    def test_the_axes_of_the_caller_are_used(self) -> None:
        ax = Figure().add_subplot()
        assert plot_precision_recall({"one": [1.0]}, ax=ax) is ax

    def test_too_many_curves(self) -> None:
        with pytest.raises(ArgumentError, match="1 to 8 curves, got 9"):
            plot_precision_recall({str(number): [0.5] for number in range(9)})


class TestReliability:
    @given(st.integers(0, 2**32 - 1))
    def test_bins_that_a_logarithm_can_show(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        probs = rng.random((30, 4)) ** 4
        bins = reliability(probs, rng.random((30, 4)) < probs, BINS)
        places = [
            place for place in range(len(BINS) - 1) if bins.count[place] and bins.frequency[place] > 0
        ]  # no probability is 0
        if not places:
            return
        ax = plot_reliability({"one": bins})
        diagonal, line = ax.lines
        assert line.get_xdata() == pytest.approx(bins.mean_probability[places])
        assert line.get_ydata() == pytest.approx(bins.frequency[places])
        assert np.array_equal(diagonal.get_xdata(), diagonal.get_ydata())
        assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
        for low, values in ((ax.get_xlim()[0], line.get_xdata()), (ax.get_ylim()[0], line.get_ydata())):
            assert low <= np.min(np.asarray(values)) or low == 0.1
            assert low == pytest.approx(10.0 ** round(np.log10(low)))

    def test_a_line_without_such_a_bin_is_left_out(self) -> None:
        none = Reliability(np.array([0.0, 1.0]), np.array([0.5]), np.array([0.0]), np.array([4]))
        some = Reliability(np.array([0.0, 1.0]), np.array([0.5]), np.array([0.25]), np.array([4]))
        assert legend(plot_reliability({"none": none, "some": some})) == ["some"]
        with pytest.raises(ArgumentError, match="got 0"):
            plot_reliability({"none": none})

    def test_ticks_are_powers_of_ten_without_formulas(self) -> None:
        bins = Reliability(np.array([0.0, 1e-6, 1.0]), np.array([1e-7, 0.5]), np.array([1e-3, 0.25]), np.array([4, 4]))
        ax = plot_reliability({"one": bins})
        labels = ax.xaxis.get_major_formatter().format_ticks([1e-7, 1e-5, 1e-4, 0.1, 1.0])
        assert labels == ["10⁻⁷", "10⁻⁵", "0.0001", "0.1", "1"]


class TestTrainingCurve:
    def test_values_over_epochs(self) -> None:
        ax = plot_training_curve({"one": ([1, 2, 3], [0.5, np.nan, 0.25]), "two": ([2], [1.0])}, ylabel="AP, percent")
        one, two = ax.lines
        assert one.get_xdata() == pytest.approx([1, 2, 3])
        assert one.get_ydata() == pytest.approx([0.5, np.nan, 0.25], nan_ok=True)
        assert (one.get_marker(), two.get_marker()) == ("None", "s")  # a single value would not be seen as a line
        assert (ax.get_xlabel(), ax.get_ylabel()) == ("epoch", "AP, percent")
        assert legend(ax) == ["one", "two"]
        assert legend(plot_training_curve({"one": ([1], [1.0])})) == []

    def test_infinite_values_interrupt_the_line_and_leave_the_axis(self) -> None:
        ax = plot_training_curve({"one": ([1, 2, 3], [0.5, np.inf, 0.25])})
        assert np.isfinite(ax.get_ylim()).all()
        assert ax.get_ylim()[1] < 1

    def test_epochs_and_values_must_match(self) -> None:
        with pytest.raises(ArgumentError, match=r"'mine' has 2 epochs and 1 value$"):
            plot_training_curve({"mine": ([1, 2], [0.5])})

    @pytest.mark.parametrize("name", HOSTILE)
    def test_hostile_names_are_plain_text(self, name: str) -> None:
        ax = plot_training_curve({name: ([1], [1.0]), "other": ([1], [1.0])}, ylabel=name)
        found = ax.get_legend()
        assert found is not None
        for text in (*found.get_texts(), ax.yaxis.label):
            assert text.get_text().isprintable()
            assert len(text.get_text()) <= 49
            assert not text.get_parse_math()
