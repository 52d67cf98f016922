from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode.errors import ArgumentError, FileFormatError
from rarenode.metrics import Summary
from rarenode.paper.comparison.scores import (
    COSTS,
    SCORES,
    Comparison,
    Difference,
    Estimate,
    Figure,
    Row,
    Tally,
    compare,
    difference,
    estimate,
    marks,
    measures,
)
from rarenode.paper.grid import cell
from rarenode.paper.panel import Measure
from rarenode.paper.record import Record
from rarenode.paper.spec import Spec, load_spec
from rarenode.paper.store import gather, record_path, write_record
from tests.paper.small_grid import cell_of, made_up, small_spec

A, B, C = {"name": "A"}, {"name": "B", "settings": {"w0": 0.5}}, {"name": "C", "settings": {"w0": 1.0}}
CELLCYCLE, DERISI, REBUILT = "cellcycle_FUN", "derisi_FUN", "expr_FUN_rebuilt"
TENS: dict[str, Any] = {measure: [10.0, 1.0] for measure in SCORES}
NEAR: dict[str, float] = dict.fromkeys(SCORES, 12.0)
TWO_F1 = {CELLCYCLE: {"A": {"f1": [10.0, 1.0]}, "B": {"f1": [7.0, 2.0]}}}
A_AGAINST_B = {"of": "A", "against": "B", "measures": ["memory_mb", "f1"]}
PERCENT = Summary(0.01, 0.02, 0.03, 0.04, 0.05, nodes=9, nodes_predicted=5, nodes_found=4)


def about(value: float) -> Any:
    return pytest.approx(value, abs=1e-9)


def trained(spec: Spec, dataset: str, method: str, seed: int, **changes: Any) -> Record:
    """A record; scores are given in percent."""
    scores = {name: changes.pop(name) / 100 for name in SCORES if name in changes}
    counts = {name: changes.pop(name) for name in ("nodes_found",) if name in changes}
    record, _ = made_up(cell(spec, dataset, method, seed), summary=replace(PERCENT, **scores, **counts), **changes)
    return record


def with_f1(spec: Spec, values: Mapping[tuple[str, str], Sequence[float]]) -> dict[tuple[str, str], list[Record]]:
    return {row: [trained(spec, *row, seed, f1=f1) for seed, f1 in enumerate(its)] for row, its in values.items()}


def row_of(comparison: Comparison, method: str, dataset: str = CELLCYCLE) -> Row:
    (row,) = (row for row in comparison.rows if (row.dataset, row.method) == (dataset, method))
    return row


def spec_of(*methods: dict[str, Any], datasets: Sequence[str] = (CELLCYCLE,), **changes: Any) -> Spec:
    return small_spec(*methods, datasets=datasets, **({"seeds": 3} | changes))


class TestMeasures:
    def test_scores_are_percent_and_memory_is_megabytes(self) -> None:
        figures = Summary(0.5, 0.25, 0.125, 0.0625, 1.0, nodes=9, nodes_predicted=5, nodes_found=4)
        record, _ = made_up(
            cell_of(), summary=figures, seconds_per_epoch=2.5, steps_per_second=400.0, training_bytes=6_480_000
        )
        assert measures(record) == {
            "f1": 50.0,
            "precision": 25.0,
            "recall": 12.5,
            "bin_ap": 6.25,
            "ap": 100.0,
            "seconds_per_epoch": 2.5,
            "steps_per_second": 400.0,
            "memory_mb": 6.48,
        }

    def test_every_measure_of_a_spec_is_measured(self) -> None:
        record, _ = made_up(cell_of())
        assert set(measures(record)) == set(SCORES + COSTS) == set(get_args(Measure))


numbers = st.decimals(0, 100, places=2).map(float)


class TestStatistics:
    @given(st.lists(numbers, min_size=1, max_size=6))
    def test_estimate_is_mean_and_sample_deviation(self, values: list[float]) -> None:
        found = estimate(values)
        assert found is not None
        total = 0.0
        for value in values:
            total += value
        mean = total / len(values)
        assert found.mean == pytest.approx(mean, abs=1e-9)
        if len(values) == 1:
            assert found.deviation is None
        else:
            squares = sum((one - other) ** 2 for one in values for other in values) / 2  # pairs need no mean
            assert found.deviation == pytest.approx((squares / len(values) / (len(values) - 1)) ** 0.5, abs=1e-9)

    def test_nothing_has_no_estimate(self) -> None:
        assert estimate([]) is None

    @given(numbers, st.none() | numbers, numbers, numbers, st.integers(1, 6))
    def test_difference(self, mean: float, sd: float | None, ours: float, our_sd: float, seeds: int) -> None:
        found = difference(Estimate(mean, sd), Estimate(ours, our_sd if seeds > 1 else None), seeds)
        variance = None if sd is None else sd * sd + (our_sd * our_sd if seeds in {3, 4, 5, 6} else sd * sd)
        if variance:
            assert found is not None
            assert found.kind == "deviations"
            assert found.value * variance**0.5 == pytest.approx(ours - mean, abs=1e-9)
        elif mean:
            assert found is not None
            assert found.kind == "relative"
            assert mean * (1 + found.value) == pytest.approx(ours, abs=1e-9)
        else:
            assert found is None

    def test_three_seeds_have_a_deviation_of_their_own_and_two_have_not(self) -> None:
        published, ours = Estimate(10.0, 3.0), Estimate(15.0, 4.0)
        assert difference(published, ours, seeds=3) == Difference(1.0, "deviations")
        assert difference(published, ours, seeds=2) == Difference(about(5 / (3 * 2**0.5)), "deviations")

    def test_nothing_to_compare(self) -> None:
        assert difference(None, Estimate(1.0, 1.0), seeds=3) is None
        assert difference(Estimate(1.0, 1.0), None, seeds=0) is None

    @pytest.mark.parametrize(
        ("value", "kind", "far"),
        [(2.0, "deviations", False), (2.01, "deviations", True), (-2.01, "deviations", True), (5.0, "relative", False)],
    )
    def test_a_miss_is_more_than_two_deviations_either_way(self, value: float, kind: Any, far: bool) -> None:
        assert Difference(value, kind).far is far


class TestMarks:
    def test_own_deviation_decides(self) -> None:
        wide, narrow = Estimate(10.0, 0.1), Estimate(9.7, 5.0)
        assert marks("others", {"a": wide, "b": narrow}) == {"a": True, "b": False}
        assert marks("others", {"a": Estimate(10.0, 0.2), "b": Estimate(9.7, 0.0)}) == {"a": False, "b": False}

    def test_exactly_two_deviations_are_not_enough(self) -> None:
        assert 10.3 - 10.1 > 2 * 0.1  # by rounding alone
        assert marks("others", {"a": Estimate(10.3, 0.1), "b": Estimate(10.1, 0.1)})["a"] is False

    def test_all_others_must_be_exceeded(self) -> None:
        means = {"a": Estimate(10.0, 0.1), "b": Estimate(5.0, 0.1), "c": Estimate(9.9, 0.1)}
        assert marks("others", means) == {"a": False, "b": False, "c": False}

    def test_only_baselines_must_be_exceeded_and_are_never_marked(self) -> None:
        means = {
            "base": Estimate(5.0, 0.1),
            "low": Estimate(1.0, 0.1),
            "a": Estimate(10.0, 0.1),
            "b": Estimate(9.9, 0.1),
        }
        assert marks(("base", "low"), means) == {"base": False, "low": False, "a": True, "b": True}
        assert marks(("low", "base"), means | {"a": Estimate(4.0, 0.1)})["a"] is False

    def test_without_a_rule_or_a_rival_nothing_is_marked(self) -> None:
        means = {"a": Estimate(10.0, 0.1), "b": Estimate(1.0, 0.1)}
        assert marks((), means) == {"a": False, "b": False}
        assert marks("others", {"a": Estimate(10.0, 0.1)}) == {"a": False}
        assert marks(("gone",), means) == {"a": False, "b": False}

    def test_unknown_as_long_as_a_rival_may_still_be_greater(self) -> None:
        high, low = Estimate(10.0, 0.1), Estimate(1.0, 0.1)
        assert marks("others", {"a": high, "b": low, "c": None}) == {"a": None, "b": False, "c": None}

    def test_unknown_without_a_deviation_unless_it_is_not_even_greater(self) -> None:
        assert marks("others", {"a": Estimate(10.0, None), "b": Estimate(1.0, None)}) == {"a": None, "b": False}


class TestCompare:
    def test_ours_is_of_the_records_that_are_there(self) -> None:
        spec = spec_of(A, B)
        records = {
            (CELLCYCLE, "A"): [
                trained(spec, CELLCYCLE, "A", 0, f1=2.0, nodes_found=3, steps_per_second=100.0),
                trained(spec, CELLCYCLE, "A", 2, f1=4.0, nodes_found=6, steps_per_second=900.0),
            ]
        }
        row = row_of(compare(spec, records), "A")
        assert row.figures["f1"].ours == Estimate(about(3.0), about(2**0.5))
        assert (row.seeds, row.nodes_found, row.steps_per_second) == (2, 4.5, 500.0)
        other = row_of(compare(spec, records), "B")
        assert (other.seeds, other.nodes_found, other.steps_per_second) == (0, None, None)
        assert other.figures["f1"] == Figure(None, None, None, None, False)

    def test_steps_per_second_is_the_middle_one(self) -> None:
        spec = spec_of(A)
        paces = (1.0, 2.0, 900.0)
        records = {
            (CELLCYCLE, "A"): [trained(spec, CELLCYCLE, "A", i, steps_per_second=p) for i, p in enumerate(paces)]
        }
        assert row_of(compare(spec, records), "A").steps_per_second == 2.0

    def test_missing_trainings_are_counted_once_where_methods_share_them(self) -> None:
        same = {"name": "the same", "settings": {"w0": 0.25}}
        spec = spec_of(A, same, B)
        assert cell(spec, CELLCYCLE, "A", 0) == cell(spec, CELLCYCLE, "the same", 0)
        records = with_f1(spec, {(CELLCYCLE, "A"): [1.0], (CELLCYCLE, "the same"): [1.0]})
        comparison = compare(spec, records)
        assert (comparison.trainings, comparison.missing) == (6, 5)

    def test_seeds_beyond_the_plan_do_not_make_up_for_missing_ones(self) -> None:
        spec = spec_of(A, seeds=2)
        records = {(CELLCYCLE, "A"): [trained(spec, CELLCYCLE, "A", seed) for seed in (1, 2, 3)]}
        assert compare(spec, records).missing == 1

    def test_rows_are_in_the_order_of_the_spec(self) -> None:
        only = B | {"datasets": [DERISI]}
        rows = compare(spec_of(A, only, C, datasets=(DERISI, CELLCYCLE)), {}).rows
        places = [(row.dataset, row.method) for row in rows]
        assert places == [(DERISI, "A"), (DERISI, "B"), (DERISI, "C"), (CELLCYCLE, "A"), (CELLCYCLE, "C")]

    def test_some_datasets_and_methods(self) -> None:
        spec = spec_of(A, B, datasets=(DERISI, CELLCYCLE))
        comparison = compare(spec, {}, datasets=[CELLCYCLE], methods=["B"])
        assert [(row.dataset, row.method) for row in comparison.rows] == [(CELLCYCLE, "B")]
        assert (comparison.trainings, comparison.missing) == (3, 3)
        with pytest.raises(ArgumentError, match="no method 'D'; it has A; B"):
            compare(spec, {}, methods=["D"])
        with pytest.raises(ArgumentError, match="no dataset 'spo_FUN'"):
            compare(spec, {}, datasets=["spo_FUN"])

    def test_measures_are_those_published_in_one_order_or_the_scores(self) -> None:
        published = {CELLCYCLE: {"A": {"memory_mb": 1.0, "f1": 1.0}, "B": {"seconds_per_epoch": 1.0}}}
        assert compare(spec_of(A, B, published=published), {}).measures == ("f1", "seconds_per_epoch", "memory_mb")
        assert compare(spec_of(A, B), {}).measures == SCORES

    def test_rebuilt_data_are_compared_with_the_original_and_say_so(self) -> None:
        spec = spec_of(A, datasets=(REBUILT, CELLCYCLE), published={"expr_FUN": {"A": {"f1": [3.0, 1.0]}}})
        comparison = compare(spec, with_f1(spec, {(REBUILT, "A"): [1.0, 2.0, 3.0]}))
        row = row_of(comparison, "A", REBUILT)
        assert row.figures["f1"].published == Estimate(3.0, 1.0)
        assert row.figures["f1"].difference == Difference(about(-(2**-0.5)), "deviations")
        assert row.rebuilt
        assert not row_of(comparison, "A").rebuilt


def judged(published: dict[str, Any], **ours: float) -> Comparison:
    spec = spec_of(A, published={CELLCYCLE: {"A": published}})
    return compare(spec, {(CELLCYCLE, "A"): [trained(spec, CELLCYCLE, "A", 0, **ours)]})


class TestWithin:
    def test_all_near(self) -> None:
        assert judged(TENS, **NEAR).rows[0].within is True

    @pytest.mark.parametrize("measure", ["f1", "recall", "bin_ap", "ap"])
    @pytest.mark.parametrize("value", [7.0, 13.0])
    def test_one_miss_is_enough(self, measure: str, value: float) -> None:
        assert judged(TENS, **NEAR | {measure: value}).rows[0].within is False

    def test_precision_does_not_decide(self) -> None:
        assert judged(TENS, **NEAR | {"precision": 50.0}).rows[0].within is True
        assert judged({"precision": [10.0, 1.0]}, precision=10.0).rows[0].within is None

    def test_without_a_published_deviation_it_is_not_counted(self) -> None:
        comparison = judged({"f1": 10.0, "recall": 10.0}, f1=99.0)
        assert comparison.rows[0].within is None
        assert comparison.tally == Tally(0, 0)
        assert judged({"f1": 10.0, "recall": [10.0, 1.0]}, f1=99.0, recall=10.0).rows[0].within is True

    def test_rows_without_records_are_not_counted(self) -> None:
        spec = spec_of(A, published={CELLCYCLE: {"A": TENS}})
        assert compare(spec, {}).tally == Tally(0, 0)

    def test_tallies(self) -> None:
        published = {name: {"f1": [10.0, 1.0], "recall": [10.0, 1.0]} for name in "ABC"}
        spec = spec_of(A, B, C, published={CELLCYCLE: published})
        found = {"A": (10.0, 10.0), "B": (10.0, 20.0), "C": (20.0, 20.0)}
        records = {
            (CELLCYCLE, name): [trained(spec, CELLCYCLE, name, 0, f1=f1, recall=recall)]
            for name, (f1, recall) in found.items()
        }
        comparison = compare(spec, records)
        assert comparison.tally == Tally(1, 3)
        assert (comparison.tally_of("f1"), comparison.tally_of("recall")) == (Tally(2, 3), Tally(1, 3))
        assert comparison.tally_of("ap") == Tally(0, 0)


class TestMarksOfRows:
    def marked(self, a: list[float], b: list[float], methods: list[str] | None = None, **changes: Any) -> list[Any]:
        spec = spec_of(A, B, **{"bold": "others", "published": TWO_F1} | changes)
        comparison = compare(spec, with_f1(spec, {(CELLCYCLE, "A"): a, (CELLCYCLE, "B"): b}), methods=methods)
        return [(row.figures["f1"].published_mark, row.figures["f1"].mark) for row in comparison.rows]

    def test_published_and_ours(self) -> None:
        assert self.marked([5.0, 5.1, 5.2], [9.0, 9.1, 9.2]) == [(True, False), (False, True)]

    def test_three_seeds_have_their_own_deviation(self) -> None:
        assert self.marked([8.0, 10.0, 12.0], [7.0]) == [(True, False), (False, False)]
        assert self.marked([9.9, 10.0, 10.1], [9.0]) == [(True, True), (False, False)]

    def test_with_fewer_the_published_deviation_stands_in(self) -> None:
        assert self.marked([9.9, 10.1], [9.0]) == [(True, False), (False, False)]
        assert self.marked([7.0, 13.0], [7.0]) == [(True, True), (False, False)]
        assert self.marked([10.0], [7.0], published={}) == [(None, None), (None, False)]

    def test_other_methods_count_even_if_they_are_not_shown(self) -> None:
        assert self.marked([10.0], [9.0], methods=["A"]) == [(True, False)]

    def test_missing_records_leave_it_open(self) -> None:
        assert self.marked([10.0], []) == [(True, None), (False, None)]

    def test_a_method_that_is_not_in_the_paper_is_no_rival_there(self) -> None:
        spec = spec_of(A, B, C, bold="others", published=TWO_F1)
        figures = [row.figures["f1"] for row in compare(spec, {}).rows]
        assert [figure.published_mark for figure in figures] == [True, False, None]

    def test_costs_are_not_marked(self) -> None:
        published = {CELLCYCLE: {"A": {"memory_mb": [9.0, 0.1]}, "B": {"memory_mb": [1.0, 0.1]}}}
        spec = spec_of(A, B, bold="others", published=published)
        assert row_of(compare(spec, {}), "A").figures["memory_mb"].published_mark is False


@pytest.mark.parametrize(
    ("spec", "dataset", "method", "marked"),
    [
        ("imbalance_fun", CELLCYCLE, "w0=0.25", {"f1", "recall", "bin_ap"}),
        ("imbalance_fun", DERISI, "w0=0.25", {"f1", "precision", "recall", "bin_ap"}),
        ("imbalance_fun", "seq_FUN", "LPROS", {"precision"}),
        ("imbalance_fun", CELLCYCLE, "w0=0.50", set()),
        ("focal_fun", CELLCYCLE, "GMU", {"f1", "recall"}),
        ("focal_fun", CELLCYCLE, "Epistemic KL", {"ap"}),
        ("focal_fun", CELLCYCLE, "Baseline", set()),
    ],
)
def test_the_rule_gives_the_marks_of_the_paper(spec: str, dataset: str, method: str, marked: set[str]) -> None:
    row = row_of(compare(load_spec(spec), {}), method, dataset)
    assert {measure for measure, figure in row.figures.items() if figure.published_mark} == marked


class TestReductions:
    def test_mean_and_population_deviation_over_datasets(self) -> None:
        published = {
            CELLCYCLE: {"A": {"f1": 9.0}, "B": {"f1": [10.0, 1.0]}},
            DERISI: {"A": {"f1": 6.0}, "B": {"f1": 5.0}},
            "expr_FUN": {"A": {"f1": 3.0}},
        }
        spec = spec_of(A, B, C, datasets=(CELLCYCLE, DERISI, REBUILT), reductions=A_AGAINST_B, published=published)
        records = with_f1(
            spec,
            {
                (CELLCYCLE, "A"): [1.0, 3.0],
                (CELLCYCLE, "B"): [4.0],
                (DERISI, "A"): [3.0],
                (REBUILT, "A"): [3.0],
                (REBUILT, "B"): [2.0],
            },
        )
        memory, f1 = compare(spec, records).reductions
        assert (f1.of, f1.against, f1.measure, memory.measure) == ("A", "B", "f1", "memory_mb")
        assert f1.published == Estimate(about(5.0), about(15.0))  # of -10 % and +20 %
        assert f1.ours == Estimate(about(0.0), about(50.0))  # of -50 % and +50 %
        assert (f1.published_datasets, f1.datasets) == (2, 2)
        assert (memory.published, memory.published_datasets, memory.datasets) == (None, 0, 2)

    def test_nothing_is_divided_by_nothing(self) -> None:
        spec = spec_of(A, B, reductions=A_AGAINST_B, published={CELLCYCLE: {"A": {"f1": 1.0}, "B": {"f1": 0.0}}})
        records = with_f1(spec, {(CELLCYCLE, "A"): [1.0], (CELLCYCLE, "B"): [0.0]})
        f1 = compare(spec, records).reductions[1]
        assert (f1.published, f1.ours) == (None, None)

    def test_methods_count_that_are_not_shown_and_datasets_that_one_lacks_do_not(self) -> None:
        spec = spec_of(A, B | {"datasets": [DERISI]}, C, datasets=(CELLCYCLE, DERISI), reductions=A_AGAINST_B)
        records = with_f1(spec, {(CELLCYCLE, "A"): [1.0], (DERISI, "A"): [1.0], (DERISI, "B"): [4.0]})
        f1 = compare(spec, records, methods=["C"]).reductions[1]
        assert f1.ours == Estimate(about(-75.0), 0.0)

    def test_without_them_there_are_none(self) -> None:
        assert compare(spec_of(A, B), {}).reductions == ()

    def test_the_paper_savings_follow_from_its_rows(self) -> None:
        found = {
            reduction.measure: reduction.published for reduction in compare(load_spec("dropout_compute"), {}).reductions
        }
        printed: dict[Measure, tuple[float, float]] = {
            "seconds_per_epoch": (-68.1, 5.2),
            "memory_mb": (-66.4, 13.2),
            "f1": (-6.06, 5.48),
        }
        assert found.keys() == printed.keys()
        for measure, (mean, deviation) in printed.items():
            change = found[measure]
            assert change is not None
            assert change.mean == pytest.approx(mean, abs=0.05)
            assert change.deviation == pytest.approx(deviation, abs=0.05)


class TestGather:
    def keep(self, folder: Path, spec: Spec, dataset: str, method: str, seed: int) -> None:
        task = cell(spec, dataset, method, seed)
        write_record(folder, *made_up(task))

    def test_the_records_of_every_row(self, tmp_path: Path) -> None:
        spec = spec_of(A, B, datasets=(CELLCYCLE, DERISI))
        for dataset, method, seed in ((CELLCYCLE, "A", 0), (CELLCYCLE, "A", 2), (DERISI, "B", 1)):
            self.keep(tmp_path, spec, dataset, method, seed)
        found = gather(spec, tmp_path)
        seeds = {row: [record.settings.seed for record in its] for row, its in found.items()}
        assert seeds == {(CELLCYCLE, "A"): [0, 2], (CELLCYCLE, "B"): [], (DERISI, "A"): [], (DERISI, "B"): [1]}
        assert {record.dataset for record in found[DERISI, "B"]} == {DERISI}

    def test_seeds_beyond_the_plan_up_to_the_first_gap(self, tmp_path: Path) -> None:
        spec = spec_of(A, seeds=2)
        for seed in (0, 2, 3, 5):
            self.keep(tmp_path, spec, CELLCYCLE, "A", seed)
        assert [record.settings.seed for record in gather(spec, tmp_path)[CELLCYCLE, "A"]] == [0, 2, 3]

    def test_only_some_datasets(self, tmp_path: Path) -> None:
        spec = spec_of(A, datasets=(CELLCYCLE, DERISI))
        broken = record_path(tmp_path, cell(spec, CELLCYCLE, "A", 0))
        broken.parent.mkdir()
        broken.write_text("{", encoding="ascii")
        assert gather(spec, tmp_path, [DERISI]) == {(DERISI, "A"): []}
        with pytest.raises(FileFormatError):
            gather(spec, tmp_path)

    def test_no_folder_has_no_records_and_a_file_is_refused(self, tmp_path: Path) -> None:
        assert gather(spec_of(A), tmp_path / "none") == {(CELLCYCLE, "A"): []}
        file = tmp_path / "file"
        file.touch()
        with pytest.raises(ArgumentError, match="is a file"):
            gather(spec_of(A), file)
