"""Pictures in a report: which are read, what the page shows of them, and the files beside it."""

from __future__ import annotations

import base64
import csv
import re
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from rarenode import Hierarchy
from rarenode._io.text import storable
from rarenode.diagnosis.confusion import confused_pairs
from rarenode.diagnosis.examples import choose_examples
from rarenode.errors import ArgumentError
from rarenode.models import Output
from rarenode.plots.svg import CSS
from rarenode.report import Report, RunReport, folder_of, report_on_model, report_on_predictions, write_report
from rarenode.report.charts import make_charts
from rarenode.report.page import ASSETS, as_json, page_data, render
from rarenode.report.pictures import PIXELS
from rarenode.thresholds import Thresholds
from tests.report.drawings import Drawings
from tests.report.reading import Element, Page
from tests.report.runs import DAG, model_over, rows_over
from tests.report.test_page import HOSTILE, page_of, tree_named

ROWS = 40
ONES = np.array([0.3, 0.5, 0.2, 0.4, 0.1, np.inf, 0.3, 0.2])


def run_with(pictures: Drawings | None, name: str = "mine", hierarchy: Hierarchy = DAG, **options: Any) -> RunReport:
    model = model_over(hierarchy)
    if hierarchy is DAG:
        model = model.with_thresholds(Thresholds(ONES, "drop_orphans", "by hand"))
    X, Y = rows_over(hierarchy, ROWS)
    return report_on_model(model, X, Y, name=name, rows="rows", pictures=pictures, **options)


@pytest.fixture(scope="module")
def run() -> RunReport:
    return run_with(Drawings(ROWS), ids=[f"id {row}" for row in range(ROWS)])


def images(page: Page) -> list[Element]:
    return page.find("img")


def repeated(page: Page) -> list[Element]:
    return [element for element in page.find("span") if "data-picture" in element.attributes]


def boxes(page: Page) -> int:
    return len(page.find("span", **{"class": "no-picture"})) - len(repeated(page))


def uses(*runs: RunReport) -> list[tuple[RunReport, int]]:
    """A run and a row for each place where the page shows a picture."""
    found = []
    for run in runs:
        shown = run.pictures
        assert shown is not None
        some = [e.row for node in shown.examples.nodes for e in (*node.found, *node.missed, *node.wrongly_found)]
        some += [e.row for pair in shown.pairs for e in (*pair.confused, *pair.found)]
        found += [(run, row) for row in (*some, *shown.unsure)]
    return found


class TestReading:
    def test_what_is_chosen(self, run: RunReport) -> None:
        X, Y = rows_over(DAG, ROWS)
        model = model_over(DAG).with_thresholds(Thresholds(ONES, "drop_orphans", "by hand"))
        probs = model.predict_proba(X)
        decided = model.decides_with.decide(probs, DAG)
        assert run.pictures is not None
        assert run.pictures.examples == choose_examples(Y, probs, decided, run.nodes)
        assert run.pictures.pairs == confused_pairs(Y, probs, decided, run.nodes)
        assert run.pictures.pairs
        assert [run.pictures.rows[row].row for row in run.pictures.unsure] == [row.row for row in run.unsure_rows]
        assert set(run.pictures.rows) == {row for _, row in uses(run)}

    def test_each_picture_is_read_once_and_what_matters_most_first(self) -> None:
        pictures = Drawings(ROWS)
        run = run_with(pictures)
        assert len(set(pictures.asked)) == len(pictures.asked)
        assert pictures.asked[: len(run.unsure_rows)] == [row.row for row in run.unsure_rows]
        with patch("rarenode.report.pictures.MOST_THUMBNAILS", 7):
            few = run_with(some := Drawings(ROWS, unreadable=pictures.asked[:3]))
        assert some.asked == pictures.asked[:10]  # those that cannot be read take no room
        assert few.pictures is not None
        shown = [(row.jpeg is None, row.unreadable) for row in few.pictures.rows.values()]
        assert shown == [(True, True)] * 3 + [(False, False)] * 7 + [(True, False)] * (len(shown) - 10)

    def test_pictures_are_those_of_the_given_rows_whatever_their_numbers(self) -> None:
        model, (X, Y) = model_over(DAG), rows_over(DAG, ROWS)
        numbers = np.arange(ROWS)[::-1] * 10 + 1000
        of_rows: dict[str, Any] = {"name": "mine", "rows": "held out", "thresholds": model.decides_with}
        run = report_on_predictions(
            model, Y, Output(model.predict_proba(X)), pictures=Drawings(ROWS), row_numbers=numbers, **of_rows
        )
        plain = report_on_predictions(model, Y, Output(model.predict_proba(X)), pictures=Drawings(ROWS), **of_rows)
        assert run.pictures is not None
        assert plain.pictures is not None
        assert run.pictures.unsure == plain.pictures.unsure
        assert run.pictures.examples == plain.pictures.examples
        for position, shown in run.pictures.rows.items():
            assert shown == replace(plain.pictures.rows[position], row=int(numbers[position]))

    def test_unknown_labels_are_shown_nowhere(self) -> None:
        known = np.ones((ROWS, len(DAG)), dtype=np.bool_)
        known[::2] = False
        run = run_with(Drawings(ROWS), known=known)
        assert run.pictures is not None
        shown = [e.row for node in run.pictures.examples.nodes for e in (*node.found, *node.missed)]
        assert shown
        assert all(row % 2 for row in shown)

    @pytest.mark.parametrize("rows", [0, ROWS - 1, ROWS + 1])
    def test_there_must_be_a_picture_for_each_row(self, rows: int) -> None:
        with pytest.raises(ArgumentError, match=f"a picture for each of 40 rows, got {rows}"):
            run_with(Drawings(rows))

    def test_what_is_no_jpeg_is_not_shown(self) -> None:
        class Harmful(Drawings):
            def thumbnail(self, row: int, size: int) -> bytes | None:
                return b'<svg xmlns="http://www.w3.org/2000/svg" onload="alert(1)"/>'

        run = run_with(Harmful(ROWS))
        source, page = page_of(run)
        assert not images(page)
        assert boxes(page) == len(uses(run))
        assert page.words.count("cannot be read") == len(uses(run))
        assert "data:image" not in source


class TestPage:
    def test_without_pictures_it_has_no_trace_of_them(self) -> None:
        run = run_with(None)
        source, page = page_of(run)
        assert run.pictures is None
        style, script = ((ASSETS / name).read_text(encoding="utf-8") for name in ("style.css", "order.txt"))
        assert page.styles == [f"{style}\n{CSS}"]
        assert page.scripts[1] == "\n".join((ASSETS / name).read_text(encoding="utf-8") for name in script.split())
        assert not images(page)
        assert "picture" not in source.replace(page.scripts[1], "").lower()

    def test_every_use_is_an_image_or_the_number_of_one(self, run: RunReport) -> None:
        source, page = page_of(run)
        used = uses(run)
        assert len(images(page)) == len({row for _, row in used})
        assert len(images(page)) + len(repeated(page)) == len(used)
        assert boxes(page) == 0
        ids = {image.attributes["id"] for image in images(page)}
        assert {f"picture-{place.attributes['data-picture']}" for place in repeated(page)} <= ids
        assert len(ids) == len(images(page))
        embedded = [image.attributes["src"] or "" for image in images(page)]
        assert len(set(embedded)) == len(embedded)
        assert run.pictures is not None
        for image in images(page):
            row = int((image.attributes["alt"] or "").removeprefix("Picture of row "))
            content = base64.b64decode((image.attributes["src"] or "").removeprefix("data:image/jpeg;base64,"))
            assert content == run.pictures.rows[row].jpeg
        assert source.count('href="#pictures"') == source.count('id="pictures"') == 1

    def test_only_pictures_are_allowed_in_addition(self, run: RunReport) -> None:
        """The policy has named pictures before; it stays as strict as it is without them."""
        _, page = page_of(run)
        _, without = page_of(run_with(None))
        policies = []
        for each in (page, without):
            (meta,) = each.find("meta", **{"http-equiv": "Content-Security-Policy"})
            policies.append(re.sub(r"sha256-[^']*", "", meta.attributes["content"] or ""))
        assert policies[0] == policies[1] == "default-src 'none'; script-src ''; style-src ''; img-src data:"

    def test_captions(self, run: RunReport) -> None:
        _, page = page_of(run)
        assert run.pictures is not None
        for node in run.pictures.examples.nodes:
            threshold = ONES[node.column]
            for example in (*node.found, *node.missed, *node.wrongly_found):
                p = example.probability
                compared = f"{p:.3g} {'≥' if p >= threshold else '<'} {threshold:.3g}"
                words = f"{p:.3g}, never predicted" if np.isinf(threshold) else compared
                assert f"id {example.row} {words}" in page.text
        for pair in run.pictures.pairs:
            one, other = DAG.nodes[pair.labelled], DAG.nodes[pair.predicted]
            assert f"{one} taken for {other} most specific mistake in {pair.rows} of {pair.positives} row" in page.text
        assert "never predicted" in page.text
        row = run.pictures.pairs[0].confused[0]
        for ids in (None, [" \u200b"] * ROWS):  # an id that nobody can see is none
            _, unnamed = page_of(run_with(Drawings(ROWS), ids=ids))
            assert f"row {row.row} {row.probability:.3g}" in unnamed.text

    def test_a_node_below_its_threshold_is_decided_with_a_descendant(self) -> None:
        model = model_over(DAG)
        X, Y = rows_over(DAG, ROWS)
        probs = model.predict_proba(X)
        thresholds = Thresholds(np.where(DAG.depth <= 1, 0.999, 0.1), "add_ancestors", "by hand")
        run = report_on_model(
            model.with_thresholds(thresholds), X, Y, name="mine", rows="rows", pictures=Drawings(ROWS)
        )  # fmt: skip
        assert run.pictures is not None
        _, page = page_of(run)
        seen = 0
        for node in run.pictures.examples.nodes:
            below = [DAG.index[name] for name in DAG.descendants(DAG.nodes[node.column])]
            for example in (*node.found, *node.missed, *node.wrongly_found):
                found = run.pictures.decided_with.get((example.row, node.column))
                able = {c: probs[example.row, c] for c in below if probs[example.row, c] >= thresholds.values[c]}
                is_decided = example not in node.missed and example.probability < thresholds.values[node.column]
                assert (found is not None) == is_decided
                if found is not None:
                    seen += 1
                    assert able[found] == max(able.values())
                    p, t = example.probability, thresholds.values[node.column]
                    assert f"{p:.3g} < {t:.3g}, as an ancestor of {DAG.nodes[found]}" in page.text
        assert seen > 0

    def test_nodes_that_are_left_out_are_counted(self, run: RunReport) -> None:
        assert run.pictures is not None
        nodes = run.pictures.examples.nodes
        _, page = page_of(run)
        assert "left out" not in page.text
        assert "more node" not in page.text
        fewer = replace(run.pictures, examples=replace(run.pictures.examples, nodes=nodes[:4], left_out=1200))
        with patch("rarenode.report.gallery.NODES_AT_ONCE", 3):
            _, page = page_of(replace(run, pictures=fewer))
        assert "1 more node" in page.text
        assert "1,200 further nodes left out, to keep the page small." in page.text

    def test_pictures_that_cannot_be_read_are_empty_boxes(self) -> None:
        gone = set(range(0, ROWS, 2))
        run = run_with(Drawings(ROWS, unreadable=gone))
        _, page = page_of(run)
        assert boxes(page) == page.words.count("cannot be read") == sum(row in gone for _, row in uses(run)) > 0
        assert len(images(page)) == len({row for _, row in uses(run)} - gone)

    def test_there_is_room_for_some_and_runs_take_turns(self) -> None:
        X, Y = rows_over(DAG, ROWS)
        runs = [
            report_on_model(model_over(DAG, seed=seed), X, Y, name=f"run {seed}", rows="rows", pictures=Drawings(ROWS))
            for seed in (0, 5)
        ]
        _, page = page_of(*runs)
        assert len(images(page)) == len(
            {row for _, row in uses(*runs)}
        )  # equal pictures of both runs are embedded once
        sizes = [len(image.attributes["src"] or "") - len("data:image/jpeg;base64,") for image in images(page)]
        for limit, value in (("MOST_THUMBNAILS", 9), ("MOST_CHARACTERS", 5 * max(sizes))):
            with patch(f"rarenode.report.gallery.{limit}", value):
                _, page = page_of(*runs)
            shown = images(page)
            rows = {int((image.attributes["alt"] or "").removeprefix("Picture of row ")) for image in shown}
            assert 5 <= len(shown) <= 9
            if limit == "MOST_THUMBNAILS":
                order = [[row.row for row in run.pictures.rows.values()] for run in runs if run.pictures is not None]
                turns = dict.fromkeys(row for pair in zip(*order, strict=False) for row in pair)
                assert rows == set(list(turns)[:9])
            else:
                used = sum(len(image.attributes["src"] or "") - len("data:image/jpeg;base64,") for image in shown)
                assert used <= value
            assert page.words.count("left out, to keep the page small") == boxes(page) > 0

    def test_a_run_without_pictures_beside_one_with(self, run: RunReport) -> None:
        source, page = page_of(run_with(None, "plain"), run)
        section = source[source.index('<section id="pictures">') : source.index('<section id="charts">')]
        assert section.startswith('<section id="pictures">')
        assert section.count("<details><summary>") == 1
        assert page.text.count("row entropy, bits") == 2
        rows = source[source.index('<section id="rows">') :]
        assert rows.count('<td><figure class="pictured">') == len(run.unsure_rows)
        assert f"<td>{run.unsure_rows[0].row}</td>" in rows

    def test_nothing_to_show(self) -> None:
        X, Y = rows_over(DAG, ROWS)
        model = model_over(DAG, thresholds=Thresholds(np.full(len(DAG), np.inf), strategy="fixed"))
        run = report_on_model(model, X, np.zeros_like(Y), name="it", rows="rows", pictures=Drawings(ROWS))
        _, page = page_of(run)
        assert "No node has rows or predictions." in page.text
        assert "Most confused pairs" not in page.text

    def test_names_that_mean_harm(self) -> None:
        hierarchy = tree_named(HOSTILE)
        ids = [HOSTILE[row % len(HOSTILE)] for row in range(ROWS)]
        tame = tree_named(tuple(f"node {number}" for number in range(len(HOSTILE))))
        source, page = page_of(run_with(Drawings(ROWS), HOSTILE[0], hierarchy, ids=ids))
        _, harmless = page_of(run_with(Drawings(ROWS), "mine", tame, ids=[f"id {row}" for row in range(ROWS)]))
        assert page.tags == harmless.tags
        assert {name for e in page.elements for name in e.attributes} == {
            name for e in harmless.elements for name in e.attributes
        }
        assert len(page.scripts) == 2
        for image in images(page):
            assert set(image.attributes) == {"class", "id", "alt", "src"}
            assert re.fullmatch(r"data:image/jpeg;base64,[A-Za-z0-9+/]+=*", image.attributes["src"] or "")
            assert re.fullmatch(r"Picture of row [\d,]+", image.attributes["alt"] or "")
        assert {c for c in source.replace(page.scripts[1], "").replace(page.styles[0], "") if not c.isprintable()} == {
            "\n"
        }
        for name in (HOSTILE[0], HOSTILE[1], HOSTILE[11]):
            assert name in page.words


def test_thumbnails_are_asked_for_at_twice_their_size_on_the_page() -> None:
    style = (ASSETS / "pictures.css").read_text(encoding="utf-8")
    assert f"width: {PIXELS // 2}px; height: {PIXELS // 2}px" in style


def test_the_files(tmp_path: Path) -> None:
    ids = [HOSTILE[row % len(HOSTILE)] for row in range(ROWS)]
    run = run_with(Drawings(ROWS, unreadable={3}), ids=ids)
    report = Report((run,))
    page, *_ = write_report(report, tmp_path / "mine.html")
    assert page.read_text(encoding="utf-8") == render(report, make_charts(report), as_json(page_data(report)))
    assert run.pictures is not None

    def lines(name: str) -> list[dict[str, str]]:
        with (folder_of(page) / name).open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file, strict=True))

    expected = [
        (str(e.row), storable(ids[e.row]), DAG.nodes[node.column], kind, e.probability)
        for node in run.pictures.examples.nodes
        for kind, some in (("found", node.found), ("missed", node.missed), ("wrongly found", node.wrongly_found))
        for e in some
    ]
    content = lines("examples.csv")
    for line, (*words, p) in zip(content, expected, strict=True):
        assert [line[name] for name in ("row", "id", "node", "kind")] == words
        assert float(line["probability"]) == pytest.approx(p)
        threshold = ONES[DAG.index[line["node"]]]
        assert line["threshold"] == ("" if np.isinf(threshold) else str(threshold))
    pairs = [
        (DAG.nodes[pair.labelled], DAG.nodes[pair.predicted], str(pair.rows), kind, str(e.row), e.probability)
        for pair in run.pictures.pairs
        for kind, some in (("confused", pair.confused), ("found", pair.found))
        for e in some
    ]
    for line, (*words, p) in zip(lines("confused_pairs.csv"), pairs, strict=True):
        assert [line[name] for name in ("labelled", "predicted", "confused_rows", "kind", "row")] == words
        assert float(line["probability"]) == pytest.approx(p)
    write_report(Report((run_with(None),)), page)
    assert not {"examples.csv", "confused_pairs.csv"} & {path.name for path in folder_of(page).iterdir()}
