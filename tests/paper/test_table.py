from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from rarenode.cli.paper import list_specs as specs
from rarenode.cli.paper import table
from rarenode.errors import ArgumentError, FileFormatError, MissingFileError
from rarenode.metrics import Summary
from rarenode.paper.comparison.scores import Comparison, Difference, Estimate, Figure, Reduction, Row
from rarenode.paper.grid import cell, tasks
from rarenode.paper.panel import Measure
from rarenode.paper.spec import load_spec, spec_names
from rarenode.paper.store import record_path, write_record
from rarenode.paper.tables.markdown import escape
from rarenode.paper.tables.scores import as_json, as_markdown
from tests.paper.small_grid import made_up

MEASURES: tuple[Measure, ...] = get_args(Measure)
NOTHING = Figure(None, None, None, None, None)
FIGURE = Figure(Estimate(2.614, 0.087), Estimate(2.546, 0.071), Difference(-0.64, "deviations"), False, False)


def row(dataset: str = "cellcycle_FUN", method: str = "GMU", seeds: int = 3, **figures: Figure) -> Row:
    return Row(dataset, method, seeds, {measure: figures.get(measure, NOTHING) for measure in MEASURES}, 110.0, 1234.5)


def comparison(*rows: Row, measures: tuple[Measure, ...] = ("f1", "ap"), **changes: Any) -> Comparison:
    values: dict[str, Any] = {"about": "", "trainings": 9, "missing": 0, "reductions": ()} | changes
    return Comparison(title="A title", measures=measures, rows=rows, **values)


def cells(line: str) -> list[str]:
    """The cells of a line as GitHub splits it."""
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def lines(text: str) -> list[list[str]]:
    return [cells(line) for line in text.splitlines() if line.startswith("|")]


def the_cell(figure: Figure) -> str:
    return lines(as_markdown(comparison(row(f1=figure), measures=("f1",))))[2][3]


class TestMarkdown:
    def test_a_line_for_each_row(self) -> None:
        text = as_markdown(comparison(row(f1=FIGURE), row(method="KL", seeds=1)))
        assert text.startswith("## A title\n")
        assert lines(text) == [
            ["Dataset", "Method", "Seeds", "F1", "AP", "Nodes found", "steps/s"],
            [":--", ":--", "--:", "--:", "--:", "--:", "--:"],
            ["cellcycle_FUN", "GMU", "3", "2.61 ± 0.09<br>2.55 ± 0.07<br>-0.6", "-", "110", "1,234"],
            ["cellcycle_FUN", "KL", "1", "-", "-", "110", "1,234"],
        ]

    def test_one_seed_has_no_deviation(self) -> None:
        assert the_cell(replace(FIGURE, ours=Estimate(2.5, None))) == "2.61 ± 0.09<br>2.50<br>-0.6"

    def test_marks_are_bold(self) -> None:
        assert the_cell(replace(FIGURE, published_mark=True)) == "**2.61** ± 0.09<br>2.55 ± 0.07<br>-0.6"
        assert the_cell(replace(FIGURE, mark=True)) == "2.61 ± 0.09<br>**2.55** ± 0.07<br>-0.6"
        assert "**" not in the_cell(replace(FIGURE, mark=None, published_mark=None))

    @pytest.mark.parametrize(
        ("value", "kind", "shown"),
        [
            (2.0, "deviations", "+2.0"),
            (2.04, "deviations", "✗ +2.0"),
            (-3.16, "deviations", "✗ -3.2"),
            (-0.01, "deviations", "+0.0"),
            (3.0, "relative", "+300 %"),
            (-0.127, "relative", "-13 %"),
        ],
    )
    def test_differences(self, value: float, kind: Any, shown: str) -> None:
        assert the_cell(replace(FIGURE, difference=Difference(value, kind))).split("<br>")[2] == shown

    def test_time_is_of_another_machine_and_no_miss(self) -> None:
        far = Figure(Estimate(5.55, 0.06), Estimate(3.0, 0.1), Difference(-21.9, "deviations"), False, False)
        text = as_markdown(comparison(row(seconds_per_epoch=far), measures=("seconds_per_epoch",)))
        assert lines(text)[2][3] == "5.55 ± 0.06<br>3.00 ± 0.10<br>-21.9"
        assert "another machine" in text

    def test_steps_per_second_stand_there_once(self) -> None:
        header, *_ = lines(as_markdown(comparison(row(), measures=("steps_per_second", "memory_mb"))))
        assert header == ["Dataset", "Method", "Seeds", "steps/s", "MB", "Nodes found"]

    def test_rebuilt_datasets_are_marked(self) -> None:
        text = as_markdown(comparison(row(dataset="expr_FUN_rebuilt"), row()))
        assert [line[0] for line in lines(text)[2:]] == ["expr_FUN_rebuilt †", "cellcycle_FUN"]
        assert "† rebuilt dataset" in text
        assert "†" not in as_markdown(comparison(row()))

    def test_rows_without_records_are_counted_and_left_out(self) -> None:
        text = as_markdown(comparison(row(seeds=0), row(method="KL"), missing=4))
        assert [line[1] for line in lines(text)[2:]] == ["KL"]
        assert "4 of 9 trainings have no record yet; 1 of 2 rows has none and is left out." in text
        assert "4 of 9 trainings have no record yet." in as_markdown(comparison(row(), missing=4))
        assert "All 9 trainings have a record." in as_markdown(comparison(row()))

    def test_without_any_record_the_published_numbers_are_shown_alone(self) -> None:
        text = as_markdown(comparison(row(seeds=0, f1=FIGURE), row(method="KL", seeds=0), missing=9))
        assert lines(text)[2:] == [["cellcycle_FUN", "GMU", "2.61 ± 0.09", "-"]]
        assert "9 of 9 trainings have no record yet" in text
        assert "Published (mean" in text

    def test_without_any_record_or_published_number_there_is_no_table(self) -> None:
        text = as_markdown(comparison(row(seeds=0), missing=9))
        assert lines(text) == []
        assert "9 of 9 trainings have no record yet" in text

    def test_the_summary(self) -> None:
        far = replace(FIGURE, difference=Difference(2.5, "deviations"))
        rows = row(f1=FIGURE, ap=FIGURE, precision=far), row(f1=far), row(f1=replace(FIGURE, difference=None))
        assert (
            "**1 of 2 rows within 2 combined deviations on F1 and AP.** "
            "Measure by measure: F1 1 of 2, precision 0 of 1, AP 1 of 1.\n"
        ) in as_markdown(comparison(*rows))

    def test_nothing_to_sum_up(self) -> None:
        assert "rows within" not in as_markdown(comparison(row()))

    def test_the_legend_tells_what_is_there(self) -> None:
        plain = as_markdown(comparison(row()))
        assert "Each cell: published, ours" not in plain
        assert "nothing was published" in plain
        assert "nothing was published" not in as_markdown(comparison(row(f1=FIGURE), measures=("f1",)))
        for told in ("combined deviations", "✗", "relative", "Bold", "another machine", "Adam"):
            assert told not in plain
        relative = replace(FIGURE, difference=Difference(0.1, "relative"), mark=True)
        full = as_markdown(comparison(row(f1=FIGURE, ap=relative), measures=("f1", "ap", "memory_mb")))
        for told in ("combined deviations", "✗", "relative", "Bold", "another machine", "Adam"):
            assert told in full

    def test_reductions(self) -> None:
        savings = (
            Reduction("drop|out", "ensemble", "memory_mb", Estimate(-66.374, 14.119), 8, Estimate(-90.0, None), 1),
            Reduction("drop|out", "ensemble", "f1", None, 0, None, 0),
        )
        text = as_markdown(comparison(row(), reductions=savings))
        assert "drop\\|out instead of ensemble" in text
        assert lines(text)[3:] == [
            ["Measure", "Published", "Datasets", "Ours", "Datasets"],
            [":--", "--:", "--:", "--:", "--:"],
            ["MB", "-66.4 ± 14.1", "8", "-90.0", "1"],
            ["F1", "-", "0", "-", "0"],
        ]


class TestEscape:
    @pytest.mark.parametrize(
        ("name", "shown"),
        [
            ("w0=0.25, as described", "w0=0.25, as described"),
            ("cellcycle_FUN", "cellcycle_FUN"),
            ("a|b", "a\\|b"),
            ("a\\|b", "a&#92;\\|b"),
            ("a\nb\r\x1b[1m\u202eb", "a b  \\[1m b"),
            ("`x`", "\\`x\\`"),
            ("<script>", "&lt;script>"),
            ("&lt;", "&amp;lt;"),
            ("**b** _i_ ~~s~~ $m$", "\\*\\*b\\*\\* \\_i\\_ \\~\\~s\\~\\~ \\$m\\$"),
            ("[a](http://x)", "\\[a\\](http://x)"),
        ],
    )
    def test_examples(self, name: str, shown: str) -> None:
        assert escape(name) == shown

    @given(st.text(st.sampled_from("ab|\\`<>&*_[]~$\n\r\u2028\x00\x1b"), min_size=1, max_size=8))
    def test_no_name_adds_a_line_a_cell_or_a_tag(self, name: str) -> None:
        text = as_markdown(comparison(row(method=name, dataset=name), about=name))
        plain = as_markdown(comparison(row(method="a", dataset="a"), about="a"))
        assert len([line for line in lines(text) if len(line) == 7]) == 3
        assert len(text.splitlines()) <= len(plain.splitlines())
        assert text.count("<") == plain.count("<")


class TestJson:
    def test_everything_unrounded(self) -> None:
        savings = (Reduction("a", "b", "f1", Estimate(-1 / 3, None), 1, None, 0),)
        exact = replace(FIGURE, ours=Estimate(1 / 3, 1 / 7))
        rows = row(dataset="expr_FUN_rebuilt", f1=exact), row(seeds=0)
        found = json.loads(as_json(comparison(*rows, missing=4, reductions=savings)))
        assert (found["title"], found["trainings"], found["missing"]) == ("A title", 9, 4)
        first, second = found["rows"]
        assert first["figures"]["f1"] == {
            "published": {"mean": 2.614, "deviation": 0.087},
            "ours": {"mean": 1 / 3, "deviation": 1 / 7},
            "difference": {"value": -0.64, "kind": "deviations"},
            "published_mark": False,
            "mark": False,
        }
        assert (first["rebuilt"], first["within"]) == (True, True)
        assert (second["rebuilt"], second["within"], second["seeds"]) == (False, None, 0)
        assert found["within"]["rows"] == {"within": 1, "of": 1}
        assert found["within"]["measures"]["f1"] == {"within": 1, "of": 1}
        assert found["reductions"][0]["published"] == {"mean": -1 / 3, "deviation": None}


SPEC = """
title = "Mine"
datasets = ["cellcycle_FUN", "derisi_FUN"]
seeds = 2

[[methods]]
name = "plain"

[[methods]]
name = "a|b"
settings = { w0 = 0.5 }

[published.cellcycle_FUN]
plain = { f1 = [4.00, 0.50], recall = [4.50, 0.10] }
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    """A spec, and the records of one of its rows."""
    path = tmp_path / "mine.toml"
    path.write_text(SPEC, encoding="utf-8")
    experiment = load_spec(str(path))
    for seed, f1 in enumerate((0.04, 0.06)):
        task = cell(experiment, "cellcycle_FUN", "plain", seed)
        scores = Summary(f1, 0.1, 0.05, 0.1, 0.25, nodes=499, nodes_predicted=130, nodes_found=100 + seed)
        write_record(tmp_path / "results", *made_up(task, summary=scores, steps_per_second=1000.0))
    return path


def run(command: Any, *arguments: object) -> Result:
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


class TestTableCommand:
    def test_markdown(self, spec: Path) -> None:
        result = run(table, spec, "--results", spec.parent / "results")
        assert result.exit_code == 0, result.output
        head, ruler, row = lines(result.stdout)
        measures = ["F1", "precision", "recall", "Bin. AP", "AP"]
        assert head == ["Dataset", "Method", "Seeds", *measures, "Nodes found", "steps/s"]
        assert ruler == [":--", ":--", *["--:"] * 8]
        assert row[:4] == ["cellcycle_FUN", "plain", "2", "4.00 ± 0.50<br>5.00 ± 1.41<br>+1.4"]
        assert row[4] == "10.00 ± 0.00"  # nothing is published, and ours is shown all the same
        assert row[5] == "4.50 ± 0.10<br>5.00 ± 0.00<br>✗ +3.5"
        assert row[8:] == ["100.5", "1,000"]
        assert "**0 of 1 row within" in result.stdout
        assert "6 of 8 trainings have no record yet; 3 of 4 rows" in result.stdout

    def test_json(self, spec: Path) -> None:
        result = run(table, spec, "--results", spec.parent / "results", "--json")
        found = json.loads(result.stdout)
        assert [(row["dataset"], row["method"], row["seeds"]) for row in found["rows"]] == [
            ("cellcycle_FUN", "plain", 2),
            ("cellcycle_FUN", "a|b", 0),
            ("derisi_FUN", "plain", 0),
            ("derisi_FUN", "a|b", 0),
        ]
        assert found["rows"][0]["figures"]["f1"]["difference"]["value"] == pytest.approx(2**0.5)

    def test_some_datasets_and_methods(self, spec: Path) -> None:
        options = "--datasets", "derisi_FUN", "--methods", "a|b", "--methods", "plain"
        found = json.loads(run(table, spec, *options, "--json", "--results", spec.parent).stdout)
        assert [(row["dataset"], row["method"]) for row in found["rows"]] == [
            ("derisi_FUN", "plain"),
            ("derisi_FUN", "a|b"),
        ]
        assert found["missing"] == 4

    def test_errors_are_rarenode_errors(self, spec: Path) -> None:
        results = spec.parent / "results"
        assert isinstance(run(table, "nowhere").exception, MissingFileError)
        assert isinstance(run(table, spec, "--methods", "c").exception, ArgumentError)
        assert isinstance(run(table, spec, "--results", spec).exception, ArgumentError)
        record_path(results, cell(load_spec(str(spec)), "cellcycle_FUN", "plain", 1)).write_text("[]", encoding="ascii")
        assert isinstance(run(table, spec, "--results", results).exception, FileFormatError)


class TestSpecsCommand:
    def test_every_spec_and_what_is_done_of_it(self, tmp_path: Path) -> None:
        def shown() -> dict[str, list[str]]:
            result = run(specs, "--results", tmp_path)
            assert result.exit_code == 0, result.output
            return {line.split()[0]: line.split()[1:] for line in result.stdout.splitlines() if line.split()}

        before = shown()
        assert set(spec_names()) <= set(before)
        name = "imbalance_fun"
        spec = load_spec(name)
        needed = {task.cell.fingerprint for task in tasks(spec)}
        assert before[name] == [*spec.title.split(), str(len(needed)), "0"]
        task = cell(spec, "cellcycle_FUN", "None", 0)
        write_record(tmp_path, *made_up(task))
        assert shown()[name][-1] == "1"
