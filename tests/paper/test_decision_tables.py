"""Records written by hand, and the tables, the page and the charts that come of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from rarenode.cli.paper import list_specs as specs_command
from rarenode.cli.paper import table as table_command
from rarenode.errors import ArgumentError
from rarenode.paper.comparison.decisions import (
    Way,
    average,
    compare_decisions,
    families,
    row_of,
)
from rarenode.paper.comparison.scores import Estimate
from rarenode.paper.figures import figure_of
from rarenode.paper.figures.drawing import draw
from rarenode.paper.grid import cell, tasks
from rarenode.paper.record import Decided, NodesFound
from rarenode.paper.spec import Spec, load_spec
from rarenode.paper.store import gather, write_record
from rarenode.paper.tables.decisions import decisions_as_json, decisions_as_markdown, decisions_page
from rarenode.paper.tables.ranking import ranking
from tests.paper.small_grid import cell_of, decided, decided_record, small_spec

FUN, REBUILT, ENRON = "cellcycle_FUN", "expr_FUN_rebuilt", "enron"
CELL = cell_of(protocol="held_out")
HOSTILE = "a|b\n<script>"


def spec_of(**changes: Any) -> Spec:
    return small_spec(
        {"name": "plain"},
        {"name": HOSTILE, "settings": {"w0": 0.5}},
        datasets=[FUN, REBUILT, ENRON],
        protocol="held_out",
        decisions=["fixed", "expected_f1"],
        seeds=2,
        one_seed=[ENRON],
        **changes,
    )


def keep(folder: Path, dataset: str, method: str, seed: int, *ways: Decided, **changes: Any) -> None:
    wanted = cell(spec_of(), dataset, method, seed)
    write_record(folder, decided_record(wanted, *ways, **changes))


def nodes(f1: float, found: int, count: int = 4) -> NodesFound:
    return NodesFound(nodes=count, nodes_found=found, f1=f1, precision=f1, recall=f1)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    keep(tmp_path, FUN, "plain", 0, decided("fixed", 0.10), decided("expected_f1", 0.20))
    keep(tmp_path, FUN, "plain", 1, decided("fixed", 0.12), decided("expected_f1", 0.24))
    keep(tmp_path, REBUILT, "plain", 0)
    keep(tmp_path, ENRON, HOSTILE, 0)
    return tmp_path


class TestGathering:
    def test_what_is_there(self, folder: Path) -> None:
        found = gather(spec_of(), folder)
        assert {row: len(records) for row, records in found.items()} == {
            (FUN, "plain"): 2,
            (FUN, HOSTILE): 0,
            (REBUILT, "plain"): 1,
            (REBUILT, HOSTILE): 0,
            (ENRON, "plain"): 0,
            (ENRON, HOSTILE): 1,
        }

    def test_seeds_beyond_the_specs_up_to_a_gap(self, folder: Path) -> None:
        for seed in (2, 3, 5):
            keep(folder, FUN, "plain", seed)
        assert [r.settings.seed for r in gather(spec_of(), folder)[FUN, "plain"]] == [0, 1, 2, 3]

    def test_a_seed_that_is_missing_hides_no_other(self, folder: Path) -> None:
        keep(folder, REBUILT, HOSTILE, 1)
        assert [r.settings.seed for r in gather(spec_of(), folder)[REBUILT, HOSTILE]] == [1]

    def test_a_file_is_no_folder(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("")
        with pytest.raises(ArgumentError, match="is a file"):
            gather(spec_of(), tmp_path / "file")


class TestComparison:
    def test_rows_and_ratios(self, folder: Path) -> None:
        compared = compare_decisions(spec_of(), gather(spec_of(), folder))
        first, second, *_ = compared.rows
        assert (first.dataset, first.method, first.way.strategy) == (FUN, "plain", "fixed")
        assert second.f1.mean == pytest.approx(22)
        assert second.f1.deviation == pytest.approx(2 * 2**0.5)
        assert (second.precision, second.nodes_found) == (Estimate(50, 0), Estimate(2, 0))
        assert second.f1_ratio == pytest.approx(22 / 7.46)
        assert second.recall_ratio == pytest.approx(12.5 / 1.74)
        assert [row.dataset for row in compared.rows] == [FUN, FUN, REBUILT, REBUILT, ENRON, ENRON]
        enron = compared.rows[-1]
        assert enron.f1_ratio == pytest.approx(50 / 15.40)
        assert enron.recall_ratio is None

    def test_what_is_missing(self, folder: Path) -> None:
        compared = compare_decisions(spec_of(), gather(spec_of(), folder))
        assert (compared.trainings, compared.missing) == (2 * (2 + 2 + 1), 10 - 4)

    def test_a_record_that_lacks_a_decision_is_missing_and_shown_as_far_as_it_goes(self, folder: Path) -> None:
        keep(folder, FUN, "plain", 1, decided("fixed", 0.3))
        compared = compare_decisions(spec_of(), gather(spec_of(), folder))
        assert compared.missing == 7
        assert [row.seeds for row in compared.rows[:2]] == [2, 1]

    def test_some_datasets_and_methods(self, folder: Path) -> None:
        compared = compare_decisions(spec_of(), gather(spec_of(), folder, [FUN]), [FUN], ["plain"])
        assert {(row.dataset, row.method) for row in compared.rows} == {(FUN, "plain")}
        assert (compared.trainings, compared.missing) == (2, 0)

    def test_no_row_without_the_way_to_decide(self) -> None:
        records = [decided_record(CELL)]
        assert row_of(FUN, "plain", Way("fixed"), records) is not None
        assert row_of(FUN, "plain", Way("fixed", "drop_orphans"), records) is None
        assert row_of(FUN, "plain", Way("fixed"), []) is None


class TestAverages:
    def test_a_dataset_with_more_seeds_counts_no_more(self) -> None:
        told = average([[nodes(0.1, 1), nodes(0.3, 3)], [nodes(0.6, 2)]])
        assert told is not None
        assert told.f1 == pytest.approx(100 * (0.2 + 0.6) / 2)
        assert told.found == pytest.approx(100 * (0.5 + 0.5) / 2)
        assert (told.datasets, told.nodes) == (2, 4)

    def test_where_there_are_no_nodes_there_is_nothing_to_average(self) -> None:
        assert average([[nodes(0, 0, 0)], []]) is None
        told = average([[nodes(0, 0, 0)], [nodes(0.5, 1)]])
        assert told is not None
        assert (told.f1, told.datasets) == (50, 1)

    def test_families(self, folder: Path) -> None:
        found = [(family, method, len(its)) for family, method, its in families(gather(spec_of(), folder))]
        assert found == [("FUN", "plain", 2), ("others", HOSTILE, 1)]


def cells(text: str, beginning: str) -> list[list[str]]:
    lines = [line for line in text.splitlines() if line.startswith(f"| {beginning} |")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


class TestText:
    def test_a_table_for_each_dataset(self, folder: Path) -> None:
        text = decisions_as_markdown(spec_of(), gather(spec_of(), folder))
        assert text.index("#### cellcycle_FUN") < text.index("#### expr_FUN_rebuilt †") < text.index("#### enron")
        assert "6 of 10 trainings have no record of all decisions yet." in text
        assert "4 nodes. Published: best F1 7.46, precision 9.47, recall of None 1.74." in text
        assert cells(text, "plain")[1] == [
            "plain", "expected_f1", "2", "22.00 ± 2.83", "50.00 ± 0.00", "12.50 ± 0.00", "2.0 ± 0.0", "2.95", "7.18",
        ]  # fmt: skip

    def test_they_begin_with_the_summary_of_the_page(self, folder: Path) -> None:
        records = gather(spec_of(), folder)
        page, tables = decisions_page(spec_of(), records), decisions_as_markdown(spec_of(), records)
        summary = page.split("### By rarity")[0]
        assert summary.count("###") == 2
        assert tables.startswith(summary)

    def test_some_methods_are_still_compared_with_the_others(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("rarenode.paper.tables.decisions.PLAIN", "plain")
        keep(folder, FUN, HOSTILE, 0)
        text = decisions_as_markdown(spec_of(), gather(spec_of(), folder), [FUN], [HOSTILE])
        assert "the nodes that None finds here at 0.5 on 0 of 1." in text
        assert "plain" not in text

    def test_names_stay_in_their_cells(self, folder: Path) -> None:
        records = gather(spec_of(), folder)
        for text in (decisions_as_markdown(spec_of(), records), decisions_page(spec_of(), records)):
            assert "<script>" not in text
            assert r"a\|b &lt;script>" in text

    def test_without_records(self, tmp_path: Path) -> None:
        text = decisions_as_markdown(spec_of(), gather(spec_of(), tmp_path))
        assert "10 of 10 trainings" in text
        assert "|" not in text

    def test_json_has_everything_unrounded(self, folder: Path) -> None:
        compared = compare_decisions(spec_of(), gather(spec_of(), folder))
        content = json.loads(decisions_as_json(compared))
        assert (content["trainings"], content["missing"]) == (10, 6)
        assert content["rows"][1]["f1"]["mean"] == compared.rows[1].f1.mean
        assert content["rows"][1]["f1_ratio"] == compared.rows[1].f1_ratio
        assert content["rows"][1]["way"]["strategy"] == "expected_f1"


class TestPage:
    def test_headline(self, folder: Path) -> None:
        text = decisions_page(spec_of(), gather(spec_of(), folder))
        assert (
            "- plain: F1 at least 1.3 times the best published on 2 of 2 datasets; precision at least the published "
            "one on 2 of 2; recall at least 4 times that of None on 1 of 2 FunCat datasets."
        ) in text
        assert cells(text, "cellcycle_FUN")[0] == [
            "cellcycle_FUN", "plain", "expected_f1", "2", "2 → 2 of 4", "11.00 → 22.00", "50.00 → 50.00",
            "12.50 → 12.50", "7.46", "9.47 ‡ (7.39)", "1.47 → 2.95", "7.18 → 7.18", "-", "-",
        ]  # fmt: skip
        assert cells(text, "enron")[0][9] == "20.21"
        assert text.count("‡") == 2
        assert "‡ the row with the best F1 has no published precision" in text
        assert "Decided together" not in text

    def test_decided_together(self, folder: Path) -> None:
        together = decided("expected_f1", 0.30, fitted_on="test_without_labels")
        keep(folder, FUN, "plain", 0, decided("fixed", 0.10), decided("expected_f1", 0.05), together)
        keep(folder, FUN, "plain", 1, decided("fixed", 0.10), decided("expected_f1", 0.05), together)
        text = decisions_page(spec_of(), gather(spec_of(), folder))
        assert "- plain: F1 at least 1.3 times the best published on 1 of 2" in text
        assert "  - Decided together: F1 at least 1.3 times the best published on 1 of 1" in text
        assert cells(text, "cellcycle_FUN")[0][-2:] == ["30.00", "4.02"]

    def test_nodes_found_are_held_against_none_at_one_half(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("rarenode.paper.tables.decisions.PLAIN", "plain")
        text = decisions_page(spec_of(), gather(spec_of(), folder))
        assert "FunCat datasets; at least 2 times the nodes that None finds here at 0.5 on 0 of 2.\n" in text

    def test_bands_and_depths_are_averaged_over_the_family(self, folder: Path) -> None:
        """11 and 25 at 0.5, 22 and 50 by expected F1; half of that in the rare band."""
        text = decisions_page(spec_of(), gather(spec_of(), folder))
        rarity, depth = text.split("### By rarity")[1].split("### By depth")
        rare, common = cells(rarity, "FUN")
        assert rare[2:6] == ["2", "1-4", "4", "25.0 % → 25.0 %"]
        assert rare[6] == "9.00 → 18.00"
        assert common[3:7] == ["5-19", "4", "50.0 % → 50.0 %", "18.00 → 36.00"]
        assert cells(depth, "FUN")[0][3:7] == ["1", "4", "50.0 % → 50.0 %", "18.00 → 36.00"]

    def test_rules(self, folder: Path) -> None:
        ways = [decided(name, 0.3) for name in ("fixed", "expected_f1")]
        ways += [decided("fixed", 0.3, rule="drop_orphans"), decided("expected_f1", 0.2, rule="drop_orphans")]
        keep(folder, ENRON, HOSTILE, 0, *ways)
        text = decisions_page(spec_of(), gather(spec_of(), folder))
        rules = cells(text.split("### Rules")[1].split("###")[0], "others")
        assert [(row[3], row[5], row[8]) for row in rules] == [
            ("fixed", "30.00 → 30.00", "0 of 1"),
            ("expected_f1", "30.00 → 20.00", "1 of 1"),
        ]

    def test_where_thresholds_are_fitted(self, folder: Path) -> None:
        other = decided("expected_f1", 0.4, fitted_on="test_without_labels")
        keep(folder, ENRON, HOSTILE, 0, decided(), decided("expected_f1", 0.3), other)
        text = decisions_page(spec_of(), gather(spec_of(), folder))
        rows = cells(text.split("### Thresholds from")[1].split("###")[0], "others")
        assert [(row[3], row[5]) for row in rows] == [("expected_f1", "30.00 → 40.00")]

    def test_calibrations(self, folder: Path) -> None:
        other = decided("expected_f1", 0.4, calibration="isotonic")
        keep(folder, ENRON, HOSTILE, 0, decided(), decided("expected_f1", 0.3), other)
        text = decisions_page(spec_of(), gather(spec_of(), folder))
        rows = cells(text.split("### Calibration")[1].split("###")[0], "others")
        assert [(row[3], row[5]) for row in rows] == [("none", "30.00"), ("isotonic", "40.00")]
        assert rows[0][8:] == ["2.00", "-", "1.00", "3.00", "-", "-"]

    def test_the_same_records_give_the_same_page(self, folder: Path) -> None:
        one, other = (decisions_page(spec_of(), gather(spec_of(), folder)) for _ in range(2))
        assert one == other


class TestFigure:
    def test_curves_are_means_over_datasets(self, folder: Path) -> None:
        keep(folder, REBUILT, "plain", 0, curves={"1-4": (0.25,) * 100, "5-19": None})
        numbers = figure_of(spec_of(), folder)
        assert (numbers.trainings, numbers.missing) == (10, 6)
        first = numbers.charts[0]
        assert (first.kind, first.title, first.note) == ("curves", "FUN, plain", "mean over 2 datasets")
        assert [line.label for line in first.lines] == ["1-4 training rows", "5-19 training rows"]
        assert [line.ours[49] for line in first.lines] == [Estimate(37.5, None), Estimate(75.0, None)]
        assert (first.positions[0], first.positions[-1], len(first.positions)) == (1, 100, 100)

    def test_reliability_is_of_all_cells(self, folder: Path) -> None:
        charts = [chart for chart in figure_of(spec_of(), folder).charts if chart.kind == "reliability"]
        assert [chart.title for chart in charts] == ["Reliability, plain", f"Reliability, {HOSTILE}"]
        line = charts[0].lines[0]
        assert line.label == "not calibrated"
        assert line.positions == pytest.approx((0.0005, 0.95))
        assert [point and point.mean for point in line.ours] == pytest.approx([0.001, 0.9])

    def test_some_datasets(self, folder: Path) -> None:
        numbers = figure_of(spec_of(), folder, [ENRON])
        assert [chart.title for chart in numbers.charts] == [f"others, {HOSTILE}", f"Reliability, {HOSTILE}"]
        assert numbers.charts[0].note == ENRON

    def test_nothing_to_draw(self, tmp_path: Path) -> None:
        with pytest.raises(ArgumentError, match="has no record of this spec yet"):
            figure_of(spec_of(), tmp_path)

    def test_it_is_drawn_the_same_each_time(self, folder: Path) -> None:
        numbers = figure_of(spec_of(), folder)
        one, other = (
            [path.read_bytes() for path in draw(numbers, folder / name, "x")] for name in ("first", "second")
        )
        assert one == other
        assert b"mathdefault" not in one[0]


TOML = f"""
title = "small"
datasets = ["{FUN}", "{REBUILT}", "{ENRON}"]
protocol = "held_out"
decisions = ["fixed:0.5", "expected_f1"]
seeds = 2
one_seed = ["{ENRON}"]
[[methods]]
name = "plain"
"""


def run(command: Any, *arguments: object) -> str:
    app = typer.Typer()
    app.command()(command)
    result = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


class TestCommands:
    def test_table(self, folder: Path) -> None:
        spec = folder / "small.toml"
        spec.write_text(TOML, encoding="utf-8")
        shown = run(table_command, spec, "--results", folder)
        assert "### cellcycle_FUN" in shown
        assert "| plain | expected_f1 | 2 | 22.00 ± 2.83 |" in shown
        assert "enron" not in run(table_command, spec, "--results", folder, "--datasets", FUN)
        assert json.loads(run(table_command, spec, "--results", folder, "--json"))["missing"] == 2

    def test_specs_count_what_is_decided(self, tmp_path: Path) -> None:
        def done() -> list[str]:
            lines = run(specs_command, "--results", tmp_path).splitlines()
            return next(line.split()[-2:] for line in lines if line.split()[:1] == ["decisions"])

        needed = str(len(tasks(load_spec("decisions"))))
        assert done() == [needed, "0"]
        wanted = cell(load_spec("decisions"), FUN, "None", 0)
        write_record(tmp_path, decided_record(wanted))  # without most of the decisions
        assert done() == [needed, "0"]
        ways = map(decided, ("fixed", "global", "expected_f1", "expected_f2", "prior", "tuned"))
        write_record(tmp_path, decided_record(wanted, *ways))
        assert done() == [needed, "1"]
        assert f"{int(needed) - 1} of {needed} trainings" in run(table_command, "decisions", "--results", tmp_path)


class TestRanking:
    @staticmethod
    def text(*aps: tuple[str, float, float | None]) -> list[str]:
        spec = load_spec("decisions")
        records = {
            ("cellcycle_FUN", method): [
                decided_record(cell(spec, "cellcycle_FUN", method, 0), ap=ap, macro_ap=macro)
            ]
            for method, ap, macro in aps
        }
        return list(ranking(records, [method for method, *_ in aps]))

    def test_methods_are_compared_with_the_network_alone_and_with_none_as_published(self) -> None:
        lines = self.text(("network alone", 0.26, 0.1), ("best", 0.2569, 0.2))
        assert lines[1] == (
            "- best: AP above that of the network alone on 0 of 1 datasets, macro AP on 1 of 1; above the published "
            "AP of None on 1 of 1."
        )
        assert "| cellcycle_FUN | best | 1 | 25.69 | 20.00 | 25.68 |" in lines

    def test_older_records_have_no_macro_ap(self) -> None:
        lines = self.text(("network alone", 0.26, None), ("best", 0.2601, 0.2))
        assert "on 1 of 1 datasets; above the published" in lines[1]
        assert "| cellcycle_FUN | network alone | 1 | 26.00 | - | 25.68 |" in lines

    def test_there_is_nothing_without_a_network_alone(self) -> None:
        assert self.text(("best", 0.26, 0.2)) == []
