"""The page: what it holds, and that nothing from outside becomes more than text in it."""

from __future__ import annotations

import base64
import hashlib
import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rarenode import Hierarchy
from rarenode._io.text import printable
from rarenode.diagnosis import REASONS, STATES, diagnose
from rarenode.metrics import CafaScores, HierarchicalScores
from rarenode.metrics.bootstrap import Deviations
from rarenode.report import Report, RunReport, report_on_model
from rarenode.report.charts import make_charts
from rarenode.report.html import LONGEST, text
from rarenode.report.page import MARKER, as_json, page_data, render
from rarenode.report.run_report import UnsureNode, UnsureRow
from rarenode.thresholds import Thresholds
from rarenode.training.model_card import Code, Heading, Paragraph, table
from tests.report.reading import Page, parse_json
from tests.report.runs import DAG, SUMMARY, Counts, model_over, nodes_over, nodes_with, rows_over, run_of
from tests.strategies import hierarchies

HOSTILE = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "' onmouseover='alert(3)",
    "<style>*{display:none}</style>",
    "<!-- never closed",
    "]]><![CDATA[",
    "<?php ?>",
    "\u202etxen eht nrut\u2066",
    "long " + "x" * 10_000,
    "bell\x07 escape\x1b[2J zero\x00 line\nfeed\r\n\u2028\u2029",
    "half \ud800 a character",
    "{{script}}{{data}}{{policy}}",
    "&lt;b&gt; &amp; &#60;i&#62; &",
    "`code` | cell |",
    "</title></head><body onload=alert(4)>",
    "<svg><a xlink:href='javascript:alert(5)'>",
    "\\u003c/script\\u003e \\",
    "__proto__",
    "https://example.org/?<a href='//example.org'>",
    " ",
)


def page_of(*runs: RunReport) -> tuple[str, Page]:
    report = Report(runs)
    source = render(report, make_charts(report), as_json(page_data(report)))
    return source, Page(source)


def runs_over(hierarchy: Hierarchy, names: tuple[str, ...], words: str) -> tuple[RunReport, ...]:
    """Full reports on models that say the words wherever a model may say something."""
    rows = rows_over(hierarchy, 60)
    runs = []
    for seed, name in enumerate(names):
        model = model_over(hierarchy, seed=seed, source=words, engine=words, versions={words: words})
        thresholds = "fixed:0.1" if seed else None
        runs.append(report_on_model(model, *rows, name=name, rows=words, thresholds=thresholds))
    return tuple(runs)


def tree_named(names: tuple[str, ...]) -> Hierarchy:
    """A tree two levels deep below its root."""
    half = len(names) // 2
    upper, lower = names[:half], names[half:]
    return Hierarchy.from_edges(
        [("top", name) for name in upper] + list(zip(upper, lower, strict=False)) + [(upper[0], lower[-1])]
    )


@pytest.fixture(scope="module", params=[1, 2], ids=["one run", "two runs"])
def hostile(request: pytest.FixtureRequest) -> tuple[str, Page, Report]:
    """A page all of whose names mean harm; what a browser would make of it."""
    hierarchy = tree_named(HOSTILE)
    words = " ".join(name for name in HOSTILE if len(name) < 1000)  # a card has all of what a model says
    names = (HOSTILE[0] + " ".join(HOSTILE), HOSTILE[10] + HOSTILE[11])[: request.param]
    report = Report(runs_over(hierarchy, names, words))
    # a row that names all nodes
    unsure = tuple(UnsureNode(column, 0.5, decided=True, labelled=False) for column in range(len(hierarchy)))
    runs = tuple(replace(run, unsure_rows=(UnsureRow(0, 1.0, 1, unsure), *run.unsure_rows)) for run in report.runs)
    source, page = page_of(*runs)
    return source, page, Report(runs)


@pytest.fixture(scope="module")
def harmless() -> Page:
    names = tuple(f"node {number} {'x' * 600}" for number in range(len(HOSTILE)))
    pages = [page_of(*runs_over(tree_named(names), which, "mine"))[1] for which in (("one",), ("one", "two"))]
    pages[0].elements += pages[1].elements
    return pages[0]


class TestHostileNames:
    def test_there_are_two_scripts_and_one_is_data(self, hostile: tuple[str, Page, Report]) -> None:
        source, page, _ = hostile
        scripts = page.find("script")
        assert [element.attributes for element in scripts] == [{"type": "application/json", "id": "data"}, {}]
        assert len(page.scripts) == 2
        assert len(page.styles) == 1
        assert len(re.findall(r"<\s*/?\s*script", source, re.IGNORECASE)) == 4

    def test_they_make_no_element(self, hostile: tuple[str, Page, Report], harmless: Page) -> None:
        _, page, _ = hostile
        assert page.tags <= harmless.tags
        assert not page.tags & {"img", "iframe", "object", "embed", "base", "link", "i", "b", "foreignobject"}
        assert page.others == []
        assert page.doctypes == ["doctype html"]
        assert [len(page.find(tag)) for tag in ("html", "head", "body", "main")] == [1] * 4

    def test_they_make_no_attribute(self, hostile: tuple[str, Page, Report], harmless: Page) -> None:
        _, page, _ = hostile
        names = {name for element in page.elements for name in element.attributes}
        assert names <= {name for element in harmless.elements for name in element.attributes}
        assert not any(name.startswith("on") or name == "style" for name in names)

    def test_nothing_is_loaded(self, hostile: tuple[str, Page, Report]) -> None:
        _, page, _ = hostile
        for element in page.elements:
            for name, value in element.attributes.items():
                if name in ("href", "xlink:href", "src", "action", "srcset", "data", "formaction", "poster", "ping"):
                    assert (value or "").startswith("#"), element
                if name.startswith("xmlns"):
                    assert value == "http://www.w3.org/2000/svg"
        assert not page.find("meta", **{"http-equiv": "refresh"})
        assert not re.search(r"url\(\s*['\"]?(?!#|data:)|@import", page.styles[0])

    def test_the_policy_names_script_and_style(self, hostile: tuple[str, Page, Report]) -> None:
        _, page, _ = hostile

        def digest(content: str) -> str:
            return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode('utf-8')).digest()).decode()}'"

        (meta,) = page.find("meta", **{"http-equiv": "Content-Security-Policy"})
        parts = dict(part.strip().split(" ", 1) for part in (meta.attributes["content"] or "").split(";"))
        assert parts == {
            "default-src": "'none'",
            "script-src": digest(page.scripts[1]),
            "style-src": digest(page.styles[0]),
            "img-src": "data:",
        }
        before = page.elements.index(meta)
        assert not {element.tag for element in page.elements[:before]} & {"script", "style"}

    def test_data_are_the_names_as_they_can_be_shown(self, hostile: tuple[str, Page, Report]) -> None:
        _, page, report = hostile
        data = page.data
        assert data["hierarchy"]["names"] == [printable(name) for name in report.hierarchy.nodes]
        assert [run["name"] for run in data["runs"]] == [printable(run.name) for run in report.runs]
        assert [run["about"] for run in data["runs"]] == [printable(run.about) for run in report.runs]

    def test_the_page_is_utf8_without_what_turns_or_controls(self, hostile: tuple[str, Page, Report]) -> None:
        source, page, _ = hostile
        assert source.encode("utf-8").decode("utf-8") == source
        assert page.find("meta", charset="utf-8")
        shown = source.replace(page.scripts[1], "").replace(page.styles[0], "")
        assert {c for c in shown if not c.isprintable()} == {"\n"}

    def test_names_of_nodes_and_runs_are_cut_but_in_the_data(self, hostile: tuple[str, Page, Report]) -> None:
        source, page, _ = hostile
        assert "x" * 10_000 in page.scripts[0]
        assert "x" * 501 not in source.replace(page.scripts[0], "")

    def test_they_are_shown_as_they_are(self, hostile: tuple[str, Page, Report]) -> None:
        """Markers are not filled in again, and entities are not taken for what they stand for."""
        _, page, _ = hostile
        for name in (*HOSTILE[:7], *HOSTILE[11:18]):
            assert name in page.words, name


texts = st.text(st.characters(codec="utf-8") | st.sampled_from('<>&\u2028\ud800"'), max_size=8)
contents = st.recursive(texts | st.integers() | st.none(), lambda some: st.lists(some) | st.dictionaries(texts, some))


@pytest.mark.parametrize("name", [name for name in HOSTILE if len(name) < 100])
def test_a_title_that_means_harm(name: str, harmless: Page) -> None:
    report = Report((run_of(nodes_with(DAG, [Counts(1, 2, 2)] * 8), name),))
    page = Page(render(report, (), as_json(page_data(report))))
    assert page.words.count(f"rarenode: {printable(name)}") == 2  # the title and the heading
    assert page.tags <= harmless.tags
    assert len(page.scripts) == 2


@given(contents)
def test_json_that_no_text_can_end(content: Any) -> None:
    dumped = as_json(content)
    assert parse_json(dumped) == content
    assert dumped.isascii()
    assert not set(dumped) & set("<>&")


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_json_without_what_a_browser_cannot_read(value: float) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        as_json({"a": value})


class TestData:
    @given(st.data())
    def test_hierarchies_have_one_drawn_parent_and_others(self, data: st.DataObject) -> None:
        hierarchy = data.draw(hierarchies())
        shown = page_data(Report((run_of(data.draw(nodes_over(hierarchy))),)))["hierarchy"]
        assert shown["names"] == list(hierarchy.nodes)
        edges = set()
        for column, (name, depth, parent) in enumerate(
            zip(shown["names"], shown["depth"], shown["parent"], strict=True)
        ):
            others = shown["others"].get(str(column), [])
            assert others == sorted(set(others) - {parent})
            above = ([] if parent == -1 else [parent]) + others
            edges |= {(shown["names"][place], name) for place in above}
            assert depth == max((shown["depth"][place] + 1 for place in above), default=0)
            assert parent == -1 or shown["depth"][parent] == depth - 1
        assert edges == set(hierarchy.edges)
        assert all(shown["others"].values())

    def test_the_numbers_of_nodes(self) -> None:
        model = model_over(DAG, scored=np.array([node != "z" for node in DAG.nodes]))
        values = np.array([0.123456, 0.5, np.inf, 0.98765, 1e-7, 0.4, 2 / 3, np.inf])
        model = model.with_thresholds(Thresholds(values, "drop_orphans"))
        X, Y = rows_over(DAG)
        Y[:, DAG.index["g"]] = False
        run = report_on_model(model, X, Y, name="run", rows="some rows")
        data = parse_json(as_json(page_data(Report((run,)))))
        (of_run,) = data["runs"]
        nodes, scores = of_run["nodes"], run.nodes.scores
        assert [STATES[code] for code in nodes["state"]] == run.nodes.state.tolist()
        assert set(nodes["state"]) == {0, 1, 2, 3}
        assert nodes["training"] == model.training_positives.tolist()
        for key, counts in (("rows", "support"), ("decided", "predicted"), ("found", "true_positives")):
            assert nodes[key] == getattr(scores, counts).tolist()
        for key in ("precision", "recall", "f1"):
            assert nodes[key] == [float(f"{value:.4g}") for value in getattr(scores, key)]
        assert nodes["threshold"] == [0.1235, 0.5, None, 0.9877, 1e-7, 0.4, 0.6667, None]
        unsure = run.nodes.uncertainty.tolist()
        assert nodes["uncertainty"] == [None if math.isnan(u) else float(f"{u:.4g}") for u in unsure]
        assert None in nodes["uncertainty"]
        keys = [reason["key"] for reason in data["reasons"]]
        assert keys == list(REASONS)
        assert [reason["help"] for reason in data["reasons"]] == list(REASONS.values())
        assert all("_" not in reason["label"] for reason in data["reasons"])
        assert [keys[place] if place >= 0 else "" for place in nodes["reason"]] == list(run.nodes.reason)
        missed = [column for column, state in enumerate(run.nodes.state) if state == "missed"]
        assert of_run["explanations"] == {str(column): run.nodes.explain(column) for column in missed}
        assert missed
        also = {str(column): [keys.index(reason) for reason in run.nodes.reasons[column][1:]] for column in missed}
        assert of_run["also"] == {column: reasons for column, reasons in also.items() if reasons}

    def test_further_reasons_are_listed_after_the_first(self) -> None:
        """The cat, which nothing was learnt of, is taken for the dog; the dog has no reason but one."""
        pets = Hierarchy.from_edges([("pet", "cat"), ("pet", "dog")])
        Y = np.array([[1, 1, 0]] * 2 + [[1, 0, 1]], dtype=bool)
        probs = np.array([[0.9, 0.1, 0.9]] * 2 + [[0.9, 0.1, 0.1]])
        nodes = diagnose(Y, probs, pets, Thresholds(np.full(3, 0.5)), [3, 0, 0])
        (data,) = page_data(Report((run_of(nodes),)))["runs"]
        assert nodes.reasons == ((), ("no_training_rows", "confused_with_sibling"), ("no_training_rows",))
        assert data["nodes"]["reason"] == [-1, 0, 0]
        assert data["also"] == {"1": [list(REASONS).index("confused_with_sibling")]}

    def test_a_missed_node_without_a_reason_has_no_explanation(self) -> None:
        nodes = nodes_with(DAG, [Counts(0, 0, 1)] * 8, training=[0, *[1] * 7])
        (data,) = page_data(Report((run_of(nodes),)))["runs"]
        assert data["nodes"]["reason"] == [0, *[-1] * 7]
        assert list(data["explanations"]) == ["0"]
        assert data["also"] == {}
        assert data["nodes"]["uncertainty"] == [None] * 8


class TestParts:
    NODES = nodes_with(
        DAG,
        [Counts(2, 2, 2), Counts(1, 3, 2), *[Counts(0, 1, 2)] * 4, Counts(0, 0, 0), Counts(1, 1, 1)],
        [True] * 7 + [False],
    )
    DEVIATIONS = Deviations(0.0111, 0.0222, 0.0333, 0.0444, 0.0555, 1.25)

    def test_the_figures_of_one_run(self) -> None:
        _, page = page_of(run_of(self.NODES, deviations=self.DEVIATIONS, deviations_of="ten <tries>"))
        for words in (
            "Nodes found 3 of 5 ± 1.2", "6 of 5 scored nodes have rows.",
            "F1 25.00 % ± 1.11", "Precision 50.00 % ± 2.22", "Recall 12.50 % ± 3.33", "Bin. AP 75.00 % ± 4.44",
            "AP 37.50 % ± 5.55", "± is the standard deviation over ten <tries>.",
        ):  # fmt: skip
            assert words in page.text
        assert len(page.find("div", **{"class": "figure"})) == 6

    def test_value_and_deviation_of_a_figure_stand_apart(self) -> None:
        source, _ = page_of(run_of(self.NODES, deviations=self.DEVIATIONS, deviations_of="tries"))
        parts = r'<span class="label">(.*?)</span><span class="value">(.*?)</span><span class="deviation">(.*?)</span>'
        assert re.findall(parts, source) == [
            ("Nodes found", "3 of 5", "± 1.2"), ("F1", "25.00 %", "± 1.11"), ("Precision", "50.00 %", "± 2.22"),
            ("Recall", "12.50 %", "± 3.33"), ("Bin. AP", "75.00 %", "± 4.44"), ("AP", "37.50 %", "± 5.55"),
        ]  # fmt: skip
        source, _ = page_of(run_of(self.NODES))
        assert {deviation for _, _, deviation in re.findall(parts, source)} == {""}

    def test_large_counts_have_commas(self) -> None:
        star = Hierarchy.from_edges([("root", f"leaf {number}") for number in range(1233)])
        nodes = nodes_with(star, [Counts(1, 1, 1)] * 1234)
        _, page = page_of(run_of(nodes, summary=replace(SUMMARY, nodes=1234, nodes_found=1200)))
        assert "Nodes found 1,200 of 1,234 F1" in page.text

    def test_the_figures_are_explained(self) -> None:
        _, page = page_of(run_of(self.NODES))
        assert (
            "AP is the average precision over all cells, a cell being a row and a node, ranked by their probabilities; "
            "Bin. AP is that of the decisions, which are 0 or 1."
        ) in page.text
        assert "F1, precision and recall are means over all scored nodes, 0 where they are undefined." in page.text

    def test_without_deviations_there_are_none(self) -> None:
        _, page = page_of(run_of(self.NODES))
        assert "±" not in page.text
        assert "Nodes found 3 of 5 F1 25.00 % Precision" in page.text

    def test_a_line_for_each_of_several_runs(self) -> None:
        known = run_of(self.NODES, "known", deviations=self.DEVIATIONS, deviations_of="draws")
        _, page = page_of(known, run_of(self.NODES, "plain"))
        assert "known 3 of 5 ± 1.2 25.00 % ± 1.11" in page.text
        assert "plain 3 of 5 25.00 % 50.00 %" in page.text
        assert not page.find("div", **{"class": "figure"})
        assert "2 runs over a hierarchy of 8 nodes" in page.text

    def test_a_notice_if_runs_were_evaluated_on_different_rows(self) -> None:
        rows = [Counts(1, 1, 3)] * len(DAG)
        same, other = nodes_with(DAG, rows), nodes_with(DAG, [*rows[1:], Counts(1, 1, 4)])
        _, page = page_of(run_of(same, "first"), run_of(same, "second"), run_of(other, "third"))
        assert "third and first were evaluated on different rows" in page.text
        _, page = page_of(run_of(same, "first"), run_of(same, "second"))
        assert "evaluated on different rows" not in page.text

    def test_what_was_gained_and_lost(self) -> None:
        first, second, third = (
            run_of(nodes_with(DAG, [Counts(int(node in found), 1, 1) for node in DAG.nodes]), name)
            for name, found in (("first", "abzc"), ("second", "abzde"), ("third", "abzc"))
        )
        _, page = page_of(first, second, third)
        assert "Compared with first , the first run: run nodes gained nodes lost found in both" in page.text
        assert "second 2 1 3 third 0 0 4" in page.text
        _, alone = page_of(first)
        assert "found in both" not in alone.text

    def test_the_rows_it_is_unsure_of(self) -> None:
        unsure = (
            UnsureNode(2, 0.25, decided=False, labelled=True),
            UnsureNode(3, 0.5, decided=True, labelled=True),
            UnsureNode(4, 0.75, decided=True, labelled=False),
            UnsureNode(5, 0.125, decided=False, labelled=False),
        )
        rows = (UnsureRow(1234, 2.625, 1, unsure), UnsureRow(9, 1.0, 0, unsure[:1], "<i>image 7"))
        _, page = page_of(run_of(self.NODES, unsure_rows=rows))
        b, c, d, e = DAG.nodes[2:6]
        assert (
            f"1,234 2.6 1 {b} not decided at 0.250, wrong {c} decided at 0.500, right "
            f"{d} decided at 0.750, wrong {e} not decided at 0.125, right "
            f"<i>image 7 1.0 0 {b} not decided"
        ) in page.text
        assert not page.find("details")
        _, without = page_of(run_of(self.NODES))
        assert "Records of trainings hold no probabilities." in without.text

    def test_the_measures_of_the_field(self) -> None:
        decided = {"<process>": HierarchicalScores(0.5, 0.25, 1 / 3)}
        best = {"<process>": CafaScores(1234, 0.375, 0.31, 0.9, None, None)}
        _, page = page_of(run_of(self.NODES, "it", hierarchical=decided, cafa=best))
        assert "it <process> 1,234 50.00 25.00 33.33 37.50 0.31 90.00" in page.text
        _, without = page_of(run_of(self.NODES, "it"))
        assert "F-max" in page.text
        assert "F-max" not in without.text

    def test_of_several_runs_they_are_folded_away(self) -> None:
        rows = (UnsureRow(7, 1.0, 1, (UnsureNode(2, 0.5, decided=True, labelled=True),)),)
        runs = [run_of(self.NODES, name, unsure_rows=rows if name != "none" else ()) for name in ("<one>", "none", "x")]
        source, page = page_of(*runs)
        summaries = re.findall(r"<details><summary><bdi>(.*?)</bdi></summary><div class=\"scrolls\">", source)
        assert summaries == ["&lt;one&gt;", "x"]
        assert len(page.find("details")) == 2 + len(runs)  # and a card for each
        assert source.count('<table class="plain rows">') == 2

    def test_the_card(self) -> None:
        card = (
            Heading("A <heading>"),
            Paragraph("Words and `code <b>` and more."),
            Code("a < b\nc", "sh"),
            table(("what", "value"), [("one", "`1`"), ("<two>", "2")]),
        )
        source, page = page_of(run_of(self.NODES, card=card))
        for part in (
            "<h3>A &lt;heading&gt;</h3>",
            "<p>Words and <code>code &lt;b&gt;</code> and more.</p>",
            "<pre><code>a &lt; b\nc</code></pre>",
            "<tr><td>one</td><td><code>1</code></td></tr><tr><td>&lt;two&gt;</td><td>2</td></tr>",
        ):
            assert part in source
        assert not page.find("details")
        _, two = page_of(run_of(self.NODES, "one", card=card), run_of(self.NODES, "two", card=card))
        assert len(two.find("details")) == 2

    def test_a_text_is_cut_and_isolated(self) -> None:
        assert text("a & b") == "<bdi>a &amp; b</bdi>"
        assert text("x" * LONGEST) == f"<bdi>{'x' * LONGEST}</bdi>"
        assert text("x" * (LONGEST + 1)) == f"<bdi>{'x' * (LONGEST - 1)}…</bdi>"
        assert text("<" * (LONGEST + 1)) == f"<bdi>{'&lt;' * (LONGEST - 1)}…</bdi>"

    def test_every_marker_of_the_template_is_filled(self) -> None:
        source, _ = page_of(run_of(self.NODES))
        assert not MARKER.search(source)

    def test_every_chart_is_in_the_page_with_its_caption(self) -> None:
        report = Report(runs_over(DAG, ("one", "two"), "mine"))
        charts = make_charts(report)
        source = render(report, charts, as_json(page_data(report)))
        maps = [chart for chart in charts if chart.section == "map"]  # the page has an interactive one
        shown = [chart for chart in charts if chart.section != "map"]
        assert len(maps) == 2
        assert not any(chart.svg in source for chart in maps)
        assert {chart.section for chart in shown} == {
            *("by depth and rarity", "precision and recall", "reliability", "training", "comparison"),
        }
        assert all(chart.svg in source for chart in shown)
        assert source.count("<figcaption>") == len(shown)
