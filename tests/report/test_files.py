"""The report on disk: each file against the report, and what happens to files that were there before."""

from __future__ import annotations

import csv
import json
import os
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from rarenode import Hierarchy
from rarenode._io.cells import guarded
from rarenode._io.text import printable
from rarenode.errors import ArgumentError
from rarenode.report import Report, RunReport, folder_of, report_on_model, require_page_name, write_report
from rarenode.report.charts import make_charts
from rarenode.report.page import as_json, page_data, render
from rarenode.report.run_report import BandCurve
from rarenode.report.tables import TABLES
from rarenode.thresholds import Thresholds
from rarenode.training.model_card import Code, Heading, Paragraph, plain, to_markdown
from tests.report.drawings import Drawings
from tests.report.reading import Page, parse_json
from tests.report.runs import DAG, HISTORY, Counts, model_over, nodes_with, rows_over, run_of

Lines = list[dict[str, str]]
SCORED = np.array([node != "z" for node in DAG.nodes])
CSV = ("nodes.csv", *(f"{name}.csv" for name in TABLES))


@pytest.fixture(scope="module")
def runs() -> tuple[RunReport, RunReport]:
    """Two runs with everything; of the second neither deviations nor pictures are known."""
    values = np.array([0.3, 0.5, 0.2, 0.4, 0.1, np.inf, 0.3, 0.2])
    model = model_over(DAG, scored=SCORED).with_thresholds(Thresholds(values, "drop_orphans", "by hand"))
    rows = rows_over(DAG)
    one = report_on_model(model, *rows, name="first, of two", rows="my rows", pictures=Drawings(len(rows.Y)))
    two = report_on_model(model, *rows, name="second", rows="my rows", thresholds="fixed:0.1")
    return one, replace(two, deviations=None, history=())


@pytest.fixture(scope="module")
def folder(runs: tuple[RunReport, RunReport], tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "deep" / "mine.html"
    written = write_report(Report(runs), path)
    assert written[0] == path
    assert {path.parent for path in written[1:]} == {folder_of(path)}
    assert sorted(path.name for path in written[1:]) == sorted(path.name for path in folder_of(path).iterdir())
    return folder_of(path)


def read(path: Path) -> Lines:
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, strict=True))


def number(cell: str) -> float | None:
    return float(cell) if cell else None


def same(cell: str, value: Any) -> bool:
    """Whether a cell of CSV is what stands in JSON."""
    if value is None or isinstance(value, str):
        return cell == (value or "")
    return cell == str(value).lower() if isinstance(value, bool) else float(cell) == pytest.approx(value)


class TestContents:
    def test_the_page(self, folder: Path, runs: tuple[RunReport, RunReport]) -> None:
        report = Report(runs)
        page = folder.parent / "mine.html"
        assert page.read_bytes() == render(report, make_charts(report), as_json(page_data(report))).encode("utf-8")
        assert folder.name == "mine_files"

    def test_which_files_there_are(self, folder: Path, runs: tuple[RunReport, RunReport]) -> None:
        charts = {f"{chart.name}.svg" for chart in make_charts(Report(runs))}
        assert {path.name for path in folder.iterdir()} == {"report.json", "cards.md", *CSV, *charts}
        assert "map_1.svg" in charts

    def test_nodes(self, folder: Path, runs: tuple[RunReport, RunReport]) -> None:
        lines = read(folder / "nodes.csv")
        assert [line["run"] for line in lines] == ["first, of two"] * 8 + ["second"] * 8
        for run in runs:
            nodes, scores = run.nodes, run.nodes.scores
            for column, line in enumerate(line for line in lines if line["run"] == run.name):
                assert line["node"] == DAG.nodes[column]
                assert line["state"] == nodes.state[column]
                assert line["reason"] == nodes.reason[column]
                assert line["explanation"] == nodes.explain(column)
                whole = {
                    "depth": DAG.depth, "training_rows": nodes.training_rows, "rows": scores.support,
                    "decided": scores.predicted, "found": scores.true_positives,
                }  # fmt: skip
                assert {name: int(line[name]) for name in whole} == {name: v[column] for name, v in whole.items()}
                for name in ("precision", "recall", "f1"):
                    assert float(line[name]) == pytest.approx(getattr(scores, name)[column])
                threshold = nodes.thresholds[column]
                assert number(line["threshold"]) == (None if np.isinf(threshold) else pytest.approx(threshold))
        assert {line["threshold"] for line in lines if line["node"] == DAG.nodes[5]} == {"", "0.1"}

    def test_headline(self, folder: Path, runs: tuple[RunReport, RunReport]) -> None:
        first, second = read(folder / "headline.csv")
        for line, run in ((first, runs[0]), (second, runs[1])):
            assert (line["run"], line["about"]) == (run.name, run.about)
            assert {name: number(line[name]) for name in asdict(run.summary)} == pytest.approx(asdict(run.summary))
        known = runs[0].deviations
        assert known is not None
        for name, value in asdict(known).items():
            assert number(first[f"{name}_deviation"]) == pytest.approx(value)
            assert second[f"{name}_deviation"] == ""

    def test_groups(self, folder: Path, runs: tuple[RunReport, RunReport]) -> None:
        lines = read(folder / "groups.csv")
        for run in runs:
            mine = [line for line in lines if line["run"] == run.name]
            depths = {line["name"]: line for line in mine if line["by"] == "depth"}
            assert list(depths) == ["0", "1", "2", "3"]
            for depth, line in depths.items():
                here = SCORED & (DAG.depth == int(depth))
                assert int(line["nodes"]) == here.sum()
                assert int(line["found"]) == (run.nodes.scores.true_positives[here] > 0).sum()
                assert float(line["recall"]) == pytest.approx(run.nodes.scores.recall[here].mean())
            bands = [line["name"] for line in mine if line["by"] == "training rows"]
            assert bands == ["0", "1-4", "5-19", "20-99", "100+"]

    def test_precision_and_recall(self, folder: Path, runs: tuple[RunReport, RunReport]) -> None:
        content: dict[tuple[str, str, str], list[tuple[float, float]]] = {}
        for line in read(folder / "precision_recall.csv"):
            place = line["run"], line["training_rows"], line["what"]
            content.setdefault(place, []).append((float(line["recall"]), float(line["precision"])))
        curves = {(run.name, band): curve for run in runs for band, curve in run.curves.items()}
        best = {place for place, curve in curves.items() if curve.precision}
        decided = {place for place, curve in curves.items() if curve.decided is not None}
        assert set(content) == {(*place, "best") for place in best} | {(*place, "decided") for place in decided}
        assert decided
        for (run, band, what), points in content.items():
            curve = curves[run, band]
            if what == "decided":
                assert points == [pytest.approx(curve.decided)]
            else:
                recalls, precisions = zip(*points, strict=True)
                assert recalls == pytest.approx([percent / 100 for percent in range(1, 101)])
                assert precisions == pytest.approx(curve.precision)

    def test_a_curve_that_is_empty_or_never_decided(self, tmp_path: Path) -> None:
        nodes = nodes_with(DAG, [Counts(1, 2, 3)] * 8)
        curves = {"0": BandCurve((), None), "1-4": BandCurve((), (0.25, 0.5)), "5-19": BandCurve((0.5,) * 100, None)}
        write_report(Report((run_of(nodes, curves=curves),)), tmp_path / "page.html")
        lines = read(tmp_path / "page_files" / "precision_recall.csv")
        assert [(line["training_rows"], line["what"]) for line in lines] == [
            ("1-4", "decided"), *[("5-19", "best")] * 100,
        ]  # fmt: skip
        assert (lines[0]["recall"], lines[0]["precision"]) == ("0.25", "0.5")

    def test_calibration_error(self, folder: Path, runs: tuple[RunReport, RunReport], tmp_path: Path) -> None:
        """The mean distance, over cells, of probability and frequency of their bin."""
        content = {
            (line["run"], line["training_rows"]): (int(line["cells"]), float(line["error"]))
            for line in read(folder / "calibration_error.csv")
        }
        assert set(content) == {(run.name, band) for run in runs for band in run.reliability}
        for run in runs:
            for band, bins in run.reliability.items():
                cells = int(bins.count.sum())
                full = [place for place, count in enumerate(bins.count) if count]
                off = [bins.count[at] * abs(bins.frequency[at] - bins.mean_probability[at]) for at in full]
                assert content[run.name, band] == pytest.approx((cells, sum(off) / cells))
            assert content[run.name, "all"][0] == 40 * SCORED.sum()
        nothing = replace(runs[0].reliability["all"], count=np.zeros_like(runs[0].reliability["all"].count))
        without = replace(runs[0], reliability={"all": nothing})
        write_report(Report((without,)), tmp_path / "page.html")
        assert not (tmp_path / "page_files" / "calibration_error.csv").exists()

    def test_reasons(self, folder: Path, runs: tuple[RunReport, RunReport]) -> None:
        """As many as the table of nodes has, each once; states without a reason have an empty one."""
        nodes = read(folder / "nodes.csv")
        lines = read(folder / "reasons.csv")
        content = {(line["run"], line["state"], line["reason"]): int(line["nodes"]) for line in lines}
        assert len(content) == len(lines)
        expected: dict[tuple[str, str, str], int] = {}
        for line in nodes:
            which = line["run"], line["state"], line["reason"]
            expected[which] = expected.get(which, 0) + 1
        assert content == expected
        assert sum(content.values()) == 2 * len(DAG)
        assert any(state == "missed" and reason for _, state, reason in content)
        assert all(reason == "" for _, state, reason in content if state != "missed")

    def test_reliability(self, folder: Path, runs: tuple[RunReport, RunReport]) -> None:
        lines = read(folder / "reliability.csv")
        assert {(line["run"], line["training_rows"]) for line in lines} == {
            (run.name, band) for run in runs for band in run.reliability
        }
        for run in runs:
            for band, bins in run.reliability.items():
                mine = [line for line in lines if (line["run"], line["training_rows"]) == (run.name, band)]
                full = [place for place, count in enumerate(bins.count) if count]
                assert [int(line["cells"]) for line in mine] == [bins.count[place] for place in full]
                for line, place in zip(mine, full, strict=True):
                    assert (float(line["from"]), float(line["to"])) == (bins.edges[place], bins.edges[place + 1])
                    assert float(line["mean_probability"]) == pytest.approx(bins.mean_probability[place])
                    assert float(line["frequency"]) == pytest.approx(bins.frequency[place])

    def test_aspects(self, folder: Path, runs: tuple[RunReport, RunReport]) -> None:
        lines = read(folder / "aspects.csv")
        assert [(line["run"], line["aspect"]) for line in lines] == [(run.name, "all") for run in runs]
        for line, run in zip(lines, runs, strict=True):
            assert float(line["hierarchical_f1"]) == pytest.approx(run.hierarchical["all"].f1)
            assert float(line["f_max"]) == pytest.approx(run.cafa["all"].f_max)

    def test_training(self, folder: Path) -> None:
        lines = read(folder / "training.csv")
        assert [(line["run"], int(line["epoch"])) for line in lines] == [("first, of two", n) for n in (1, 2, 3)]
        assert [float(line["loss"]) for line in lines] == pytest.approx([epoch.loss for epoch in HISTORY])
        assert [number(line["validation_ap"]) for line in lines] == [None, 0.375, 0.375]
        assert [number(line["validation_f1"]) for line in lines] == [None, 0.25, 0.25]

    def test_unsure_rows(self, folder: Path, runs: tuple[RunReport, RunReport]) -> None:
        lines = read(folder / "unsure_rows.csv")
        expected = [(run.name, unsure, node) for run in runs for unsure in run.unsure_rows for node in unsure.nodes]
        assert len(lines) == len(expected) > 100
        for line, (name, unsure, node) in zip(lines, expected, strict=True):
            assert (line["run"], int(line["row"]), int(line["wrong"])) == (name, unsure.row, unsure.wrong)
            assert line["node"] == DAG.nodes[node.column]
            assert float(line["bits"]) == pytest.approx(unsure.bits)
            assert float(line["probability"]) == pytest.approx(node.probability)
            assert (line["decided"], line["labelled"]) == (str(node.decided).lower(), str(node.labelled).lower())

    def test_changes(self, tmp_path: Path) -> None:
        rows = [4, 3, 2, 1, 4, 3, 2, 1]

        def run(name: str, found: str, training: int) -> RunReport:
            counts = [Counts(int(node in found), 1, support) for node, support in zip(DAG.nodes, rows, strict=True)]
            return run_of(nodes_with(DAG, counts, training=[training] * 8), name)

        first, second, third = run("first", "ab", 5), run("second", "bcd", 6), run("third", "ab", 7)
        write_report(Report((first, second, third)), tmp_path / "page.html")
        lines = read(tmp_path / "page_files" / "changes.csv")
        content = {(line["after"], line["change"], line["node"]): line for line in lines}
        assert set(content) == {("second", "lost", "a"), ("second", "gained", "c"), ("second", "gained", "d")}
        assert {line["before"] for line in content.values()} == {"first"}
        for (_, change, node), line in content.items():
            support = rows[DAG.index[node]]
            assert (int(line["rows"]), int(line["training_rows"])) == (support, 6)
            before, after = float(line["f1_before"]), float(line["f1_after"])
            assert (before, after) == pytest.approx((0, 2 / (1 + support))[:: 1 if change == "gained" else -1])

    def test_json(self, folder: Path, runs: tuple[RunReport, RunReport]) -> None:
        content = parse_json((folder / "report.json").read_text(encoding="utf-8"))
        tables = content.pop("tables")
        assert content == json.loads(json.dumps(page_data(Report(runs))))
        assert content == Page((folder.parent / "mine.html").read_text(encoding="utf-8")).data
        assert set(tables) == {
            *("headline", "groups", "reasons", "precision_recall", "reliability", "calibration_error", "training"),
            *("unsure_rows", "changes", "aspects", "examples", "confused_pairs"),
        }
        for line, run in zip(tables["headline"], runs, strict=True):
            assert (line["run"], line["about"]) == (run.name, run.about)
            assert {name: line[name] for name in asdict(run.summary)} == asdict(run.summary)

    def test_tables_are_the_same_in_json_and_in_csv(self, folder: Path) -> None:
        tables = parse_json((folder / "report.json").read_text(encoding="utf-8"))["tables"]
        for name, rows in tables.items():
            lines = read(folder / f"{name}.csv")
            assert len(lines) == len(rows) > 0
            for line, row in zip(lines, rows, strict=True):
                assert set(row) <= set(line)
                for column, cell in line.items():
                    assert same(cell, row.get(column)), (name, column)

    def test_a_table_without_rows_is_a_list_without_rows_and_no_file(self, tmp_path: Path) -> None:
        nodes = nodes_with(DAG, [Counts(1, 2, 3)] * 8)
        write_report(Report((run_of(nodes),)), tmp_path / "page.html")
        beside = tmp_path / "page_files"
        tables = parse_json((beside / "report.json").read_text(encoding="utf-8"))["tables"]
        assert {name for name, rows in tables.items() if rows} == {"headline", "groups", "reasons"}
        assert {path.stem for path in beside.glob("*.csv")} == {"nodes", "headline", "groups", "reasons"}

    def test_no_spreadsheet_sees_a_formula(self, tmp_path: Path) -> None:
        write_report(Report((run_of(nodes_with(DAG, [Counts(1, 2, 3)] * 8), "=1+1"),)), tmp_path / "page.html")
        for file in (tmp_path / "page_files").glob("*.csv"):
            assert {line["run"] for line in read(file)} == {"'=1+1"}
        tables = parse_json((tmp_path / "page_files" / "report.json").read_text(encoding="utf-8"))["tables"]
        assert tables["headline"][0]["run"] == "=1+1"

    def test_cards(self, folder: Path, runs: tuple[RunReport, RunReport]) -> None:
        content = (folder / "cards.md").read_text(encoding="utf-8")
        assert content == "\n".join(to_markdown(run.name, run.card) for run in runs)
        headings = [line for line in content.splitlines() if line.startswith("# ")]
        assert headings == ["# first, of two", "# second"]

    def test_the_name_of_a_run_stays_in_the_heading_of_its_card(self, tmp_path: Path) -> None:
        name = "one\n# <b>two</b> `x` | \u202e"
        card = (Heading("Use"), Paragraph("Words."), Code("a = 1", "python"))
        write_report(Report((run_of(nodes_with(DAG, [Counts(1, 2, 3)] * 8), name, card=card),)), tmp_path / "page.html")
        content = (tmp_path / "page_files" / "cards.md").read_text(encoding="utf-8")
        assert content == f"# {plain(name)}\n\n## Use\n\nWords.\n\n```python\na = 1\n```\n"
        assert content.splitlines()[0] == "# one #  b two /b   x     "

    def test_each_chart_is_a_file(self, folder: Path, runs: tuple[RunReport, RunReport]) -> None:
        for chart in make_charts(Report(runs)):
            root = ElementTree.fromstring((folder / f"{chart.name}.svg").read_bytes())
            assert root.tag == "{http://www.w3.org/2000/svg}svg"
            texts = [text for text in ElementTree.fromstring(chart.svg).itertext() if text.strip()]
            assert len(texts) > 3
            assert set(texts) <= set(root.itertext())


class TestHostileNames:
    NAMES = ("=1+1", '"quoted", and', "line\nfeed\r\n", "\u202e", "half \ud800", "<b>&</b>]]>", "x" * 10_000, "é\x00")

    def test_tables_hold_all_of_a_name_and_the_page_opens(self, tmp_path: Path) -> None:
        hierarchy = Hierarchy.from_edges([("top", name) for name in self.NAMES])
        model, rows = model_over(hierarchy), rows_over(hierarchy)
        runs = tuple(
            report_on_model(
                model,
                *rows,
                name=f"{name}{words}",
                rows=words,
                thresholds=f"fixed:{at}",
                pictures=Drawings(len(rows.Y)),
            )
            for name, at, words in (("a", 0.05, " ".join(self.NAMES)), ("b", 0.95, "\ud800"))
        )
        write_report(Report(runs), tmp_path / "page.html")
        folder = tmp_path / "page_files"
        assert {*CSV, "cards.md"} <= {path.name for path in folder.iterdir()}
        whole = [name.replace("\ud800", "\\ud800") for name in hierarchy.nodes]
        lines = read(folder / "nodes.csv")
        assert [line["node"] for line in lines] == [guarded(name) for name in whole] * 2
        assert [line["run"] for line in lines[:: len(whole)]] == [run.name.replace("\ud800", "\\ud800") for run in runs]
        for name in CSV:
            read(folder / name)
        content = parse_json((folder / "report.json").read_text(encoding="utf-8"))
        assert {row["node"] for row in content["tables"]["unsure_rows"]} <= set(whole)
        assert [row["run"] for row in content["tables"]["headline"]] == [
            run.name.replace("\ud800", "\\ud800") for run in runs
        ]
        cards = (folder / "cards.md").read_text(encoding="utf-8")
        assert [line for line in cards.splitlines() if line.startswith("# ")] == [
            f"# {plain(run.name)}" for run in runs
        ]
        assert content["hierarchy"]["names"] == [printable(name) for name in hierarchy.nodes]
        for path in folder.glob("*.svg"):
            ElementTree.fromstring(path.read_bytes())
        (tmp_path / "page.html").read_text(encoding="utf-8")


class TestWriting:
    @pytest.fixture
    def small(self) -> Report:
        return Report((run_of(nodes_with(DAG, [Counts(1, 2, 3)] * 8)),))

    def test_what_an_earlier_report_had_is_removed_and_other_files_stay(
        self, runs: tuple[RunReport, RunReport], small: Report, tmp_path: Path
    ) -> None:
        path = tmp_path / "page.html"
        write_report(Report(runs), path)
        folder = folder_of(path)
        for name in ("mine.csv", "mine.svg", "notes.txt"):
            (folder / name).write_text(name)
        (folder / "more").mkdir()
        (folder / "more" / "changes.csv").write_text("mine")
        written = write_report(small, path)
        assert {each.name for each in folder.iterdir()} == {
            *(each.name for each in written[1:]), *("mine.csv", "mine.svg", "notes.txt", "more"),
        }  # fmt: skip
        assert not {"changes.csv", "training.csv", "node_scores.svg"} & {each.name for each in written}
        assert (folder / "more" / "changes.csv").read_text() == "mine"
        assert (folder / "mine.csv").read_text() == "mine.csv"
        assert "first, of two" not in path.read_text(encoding="utf-8")
        assert {each.name for each in tmp_path.iterdir()} == {"page.html", "page_files"}

    def test_reports_beside_each_other_do_not_share_a_folder(self, small: Report, tmp_path: Path) -> None:
        for name in ("one.html", "two.html", "a.b.HTML"):
            write_report(small, tmp_path / name)
        assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"one_files", "two_files", "a.b_files"}

    @pytest.mark.parametrize("name", ["report", "report.htm", "report.pdf", ".html", "html"])
    def test_a_name_that_no_page_should_have(self, small: Report, tmp_path: Path, name: str) -> None:
        for refuse in (lambda path: write_report(small, path), require_page_name):
            with pytest.raises(ArgumentError, match=rf"{name}: the name of a report must end in \.html"):
                refuse(tmp_path / name)
        assert list(tmp_path.iterdir()) == []

    @pytest.mark.parametrize("where", ["file/page.html", "taken.html", "blocked.html", "table.html"])
    def test_a_place_where_nothing_can_be_written(self, small: Report, tmp_path: Path, where: str) -> None:
        """Below a file; where a folder has the page's name; where a file has the folder's; or a folder a table's."""
        (tmp_path / "file").write_text("")
        (tmp_path / "taken.html").mkdir()
        (tmp_path / "blocked_files").write_text("")
        (tmp_path / "table_files" / "nodes.csv").mkdir(parents=True)
        with pytest.raises(ArgumentError) as caught:
            write_report(small, tmp_path / where)
        content = str(caught.value)
        # the reason, and no name of a file beside that the user does not know
        assert re.fullmatch(rf"the report {re.escape(str(tmp_path / where))} cannot be written: [A-Za-z ]+", content), (
            content
        )

    @pytest.mark.parametrize("fails_at", ["report.json", "nodes.csv", "cards.md", "recall_by_depth.svg", "page.html"])
    def test_a_full_disk_leaves_the_earlier_page(
        self,
        runs: tuple[RunReport, RunReport],
        small: Report,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        fails_at: str,
    ) -> None:
        path = tmp_path / "page.html"
        write_report(Report(runs), path)
        before = {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}
        write_text = Path.write_text

        def half(self: Path, content: str, **how: Any) -> int:
            if fails_at not in self.name:
                return write_text(self, content, **how)
            write_text(self, content[:100], **how)
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(Path, "write_text", half)
        with pytest.raises(ArgumentError, match=r"page\.html cannot be written: No space left on device$"):
            write_report(small, path)
        monkeypatch.undo()
        assert {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()} == before
        assert not list(tmp_path.rglob(".*"))

    def test_a_folder_in_the_way_leaves_the_earlier_files(
        self, runs: tuple[RunReport, RunReport], small: Report, tmp_path: Path
    ) -> None:
        path = tmp_path / "page.html"
        write_report(Report(runs), path)
        path.unlink()
        path.mkdir()
        before = {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()}
        with pytest.raises(ArgumentError, match=r"page\.html cannot be written: Is a directory$"):
            write_report(small, path)
        assert {each: each.read_bytes() for each in tmp_path.rglob("*") if each.is_file()} == before

    def test_the_page_comes_last(self, small: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whoever finds it finds all that it speaks of."""
        appeared = []
        rename = os.replace

        def watched(part: Any, target: Any) -> None:
            appeared.append(Path(target).name)
            rename(part, target)

        monkeypatch.setattr(Path, "replace", watched)
        written = write_report(small, tmp_path / "page.html")
        assert appeared[-1] == "page.html"
        assert set(appeared) == {path.name for path in written}

    @pytest.mark.parametrize("kind", [str, Path])
    def test_a_path_may_be_text(self, small: Report, tmp_path: Path, kind: type) -> None:
        page, *beside = write_report(small, kind(tmp_path / "page.html"))
        assert page == tmp_path / "page.html"
        assert page.exists()
        assert {file.parent for file in beside} == {folder_of(str(page))} == {tmp_path / "page_files"}


def test_a_name_that_no_file_can_have_is_refused_before_any_work() -> None:
    with pytest.raises(ArgumentError, match="cannot be written: File name too long"):
        require_page_name(f"{'n' * 300}.html")
    require_page_name("nowhere/page.html")


def test_a_full_disk_leaves_no_empty_folder(
    runs: tuple[RunReport, RunReport], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rarenode.report.files._write", full)
    with pytest.raises(ArgumentError, match="cannot be written: No space left"):
        write_report(Report(runs[:1]), tmp_path / "report.html")
    assert not list(tmp_path.iterdir())
    folder_of(tmp_path / "report.html").mkdir()
    with pytest.raises(ArgumentError, match="cannot be written: No space left"):
        write_report(Report(runs[:1]), tmp_path / "report.html")
    assert folder_of(tmp_path / "report.html").is_dir()  # it is not ours
