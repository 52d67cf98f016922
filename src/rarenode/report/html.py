"""Parts of the page that need no script: headline, charts, rows, comparison and card, as HTML.

All untrusted text, such as names of nodes and paths, goes through `text`. There are no untrusted attributes, no style
attributes and no event handlers: the page's policy forbids them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from html import escape

from rarenode._io.text import counted, printable
from rarenode.diagnosis.examination import FEW_ROWS
from rarenode.report.charts import Chart, Section
from rarenode.report.pictures import RunPictures
from rarenode.report.run_report import Report, RunReport, UnsureNode, compare_runs, same_support
from rarenode.training.model_card import Card, Code, Heading, Paragraph, Table

LONGEST = 200
"""Characters of a name that are shown; the files beside the page have all of them."""
FIGURES = (
    ("f1", "F1"),
    ("precision", "Precision"),
    ("recall", "Recall"),
    ("bin_ap", "Bin. AP"),
    ("ap", "AP"),
)
SECTIONS: dict[Section, str] = {
    "by depth and rarity": "By depth and rarity",
    "precision and recall": "Precision and recall",
    "reliability": "Reliability",
    "training": "Training",
}


def text(value: object) -> str:
    """Untrusted text for the page: shortened, printable, and with a direction that does not affect its neighbours."""
    shown = printable(value)
    cut = shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"
    return f"<bdi>{escape(cut)}</bdi>"


def headline(report: Report) -> str:
    """The scores over all scored nodes."""
    if len(report.runs) == 1:
        (run,) = report.runs
        cards = "".join(
            f'<div class="figure"><span class="label">{label}</span><span class="value">{value}</span>'
            f'<span class="deviation">{deviation}</span></div>'
            for label, value, deviation in _figures(run)
        )
        return f'<div class="figures">{cards}</div>{_notes([run])}{_aspects(report)}'
    names = [label for label, _, _ in _figures(report.runs[0])]
    rows = [
        [text(run.name), *(f"{value} <small>{deviation}</small>" for _, value, deviation in _figures(run))]
        for run in report.runs
    ]
    return _table(["run", *names], rows, classes="plain numbers") + _notes(report.runs) + _aspects(report)


def _aspects(report: Report) -> str:
    """The measures of the field, for each aspect that rows have labels in."""
    rows = [
        [
            text(run.name),
            text(aspect),
            f"{best.rows:,}",
            *(f"{100 * value:.2f}" for value in (decided.precision, decided.recall, decided.f1, best.f_max)),
            _two_decimals(best.f_max_threshold),
            f"{100 * best.coverage:.2f}",
            _two_decimals(best.s_min),
            _two_decimals(best.s_min_threshold),
        ]
        for run in report.runs
        for aspect, best in run.cafa.items()
        for decided in [run.hierarchical[aspect]]
    ]
    if not rows:
        return ""
    head = ["run", "aspect", "rows", "hP", "hR", "hF", "F-max", "at", "coverage", "S-min", "at"]
    return _table(head, rows, classes="plain numbers") + (
        '<p class="notes">hP, hR and hF are hierarchical precision, recall and F1 of the decisions: labels of all rows '
        "together, each with its ancestors. F-max is the highest F1, and S-min the least semantic distance in bits, "
        "that a common threshold reaches, as in the CAFA challenges; coverage is the share of rows with a prediction "
        "there. All but S-min and thresholds are in percent.</p>"
    )


def _two_decimals(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _figures(run: RunReport) -> list[tuple[str, str, str]]:
    """Label, value and deviation, ready to be shown."""
    s, d = run.summary, run.deviations
    shown = [
        (label, f"{100 * getattr(s, name):.2f} %", "" if d is None else f"± {100 * getattr(d, name):.2f}")
        for name, label in FIGURES
    ]
    found = "" if d is None else f"± {d.nodes_found:.1f}"
    return [("Nodes found", f"{s.nodes_found:,} of {s.nodes:,}", found), *shown]


def _notes(runs: Iterable[RunReport]) -> str:
    lines = []
    for run in runs:
        over = f" ± is the standard deviation over {escape(run.deviations_of)}." if run.deviations else ""
        with_rows = f" {run.nodes_with_rows:,} of {run.summary.nodes:,} scored nodes have rows."
        sets = ""
        if run.guaranteed is not None:
            sets = f" Guaranteed sets: {escape(run.guaranteed.promise.in_words(run.nodes.scored))}."
        lines.append(f"<li>{text(run.name)}: {text(run.about)}.{with_rows}{over}{sets}</li>")
    return (
        f'<ul class="notes">{"".join(lines)}</ul><p class="notes">A node is found if it is decided in at least one row '
        "that is labelled with it; a node without rows cannot be found. F1, precision and recall are means over all "
        "scored nodes, 0 where they are undefined. AP is the average precision over all cells, a cell being a row and "
        "a node, ranked by their probabilities; Bin. AP is that of the decisions, which are 0 or 1.</p>"
    )


def charts(drawn: Sequence[Chart]) -> str:
    """All charts but those of the comparison, by section."""
    parts = []
    for section, title in SECTIONS.items():
        figures = "".join(_figure(chart) for chart in drawn if chart.section == section)
        if figures:
            parts.append(f'<section><h3>{title}</h3><div class="charts">{figures}</div></section>')
    return "".join(parts)


def comparison(report: Report, drawn: Sequence[Chart]) -> str:
    """How many nodes each run gained and lost against the first, and a chart of nodes; empty for one run."""
    if len(report.runs) == 1:
        return ""
    rows = []
    for run in report.runs[1:]:
        changes = compare_runs(report.runs[0], run)
        rows.append([text(run.name), *(f"{len(part):,}" for part in (changes.gained, changes.lost, changes.kept))])
    first = report.runs[0]
    words = f"<p>Compared with {text(first.name)}, the first run:</p>"
    others = [text(run.name) for run in report.runs[1:] if not same_support(first, run)]
    if others:
        words = (
            f'<p class="notice">{", ".join(others)} and {text(first.name)} were evaluated on different rows, so '
            f"differences may come from the rows as well as from the models.</p>{words}"
        )
    table = _table(["run", "nodes gained", "nodes lost", "found in both"], rows, classes="plain numbers")
    return words + table + "".join(_figure(chart) for chart in drawn if chart.section == "comparison")


def unsure_rows(report: Report, figure: Callable[[RunPictures, int], str] | None = None) -> str:
    """The rows of which each run is least sure; ``figure`` shows those that are pictures, with their names."""
    nodes = report.hierarchy.titles
    parts = []
    for run in report.runs:
        if not run.unsure_rows:
            continue
        rows = [
            [
                f"{row.row:,}" if row.id is None else text(row.id),
                f"{row.bits:.1f}",
                f"{row.wrong:,}",
                "<br>".join(_unsure_node(nodes, node) for node in row.nodes),
            ]
            for row in run.unsure_rows
        ]
        head = ["row", "entropy, bits", "wrong nodes", "the most uncertain nodes"]
        if run.pictures is not None and figure is not None:
            shown = [figure(run.pictures, position) for position in run.pictures.unsure]
            rows = [[picture, *row[1:]] for picture, row in zip(shown, rows, strict=True)]
        table = _table(head, rows, classes="plain rows")
        one = len(report.runs) == 1
        parts.append(table if one else f"<details><summary>{text(run.name)}</summary>{table}</details>")
    if not parts:
        return "<p>Records of trainings hold no probabilities.</p>"
    return (
        "<p>Rows without ids are numbered from 0, in the order of the data. The entropy of a row is the sum over its "
        "nodes. Check the labels of these rows first.</p>" + "".join(parts)
    )


def _unsure_node(names: Sequence[str], node: UnsureNode) -> str:
    decision = "decided" if node.decided else "not decided"
    right = "right" if node.decided == node.labelled else "wrong"
    return f"{text(names[node.column])} <small>{decision} at {node.probability:.3f}, {right}</small>"


def examinations(report: Report) -> str:
    """What was found in the training rows of each run."""
    parts = []
    for run in report.runs:
        found = run.examination
        if found is None:
            continue
        head = ["depth", "nodes", "with rows", f"with fewer than {FEW_ROWS}", "median rows"]
        rows = [
            [f"{count:,g}" for count in (level.depth, level.nodes, level.with_rows, level.few_rows, level.median_rows)]
            for level in found.levels
        ]
        lines = "".join(
            f"<li><strong>{each.severity}</strong> {text(each.topic)}: {text(each.text)}"
            + (f" ({text(each.examples_in_words)})" if each.examples else "")
            + (f"; {text(each.advice)}" if each.advice else "")
            + "</li>"
            for each in found.findings
        )
        about = f"{found.rows_in_words}, {found.nodes_with_rows:,} of {counted(found.nodes, 'node')}"
        body = f"<p>{about} with rows.</p>{_table(head, rows, classes='plain numbers')}<ul>{lines}</ul>"
        one = len(report.runs) == 1
        parts.append(body if one else f"<details><summary>{text(run.name)}</summary>{body}</details>")
    return "".join(parts)


def cards(report: Report) -> str:
    """The model card of each run."""
    parts = []
    for run in report.runs:
        body = _card(run.card)
        one = len(report.runs) == 1
        parts.append(body if one else f"<details><summary>{text(run.name)}</summary>{body}</details>")
    return "".join(parts)


def _card(card: Card) -> str:
    parts = []
    for block in card:
        match block:
            case Heading(words):
                parts.append(f"<h3>{escape(words)}</h3>")
            case Paragraph(words):
                parts.append(f"<p>{_with_code(words)}</p>")
            case Code(words, _):
                parts.append(f"<pre><code>{escape(words)}</code></pre>")
            case Table(head, rows):
                parts.append(_table(head, [[_with_code(cell) for cell in row] for row in rows], classes="plain"))
    return "".join(parts)


def _with_code(words: str) -> str:
    """Text between backticks becomes code."""
    return re.sub(r"`([^`]*)`", r"<code>\1</code>", escape(words))


def _figure(chart: Chart) -> str:
    return f'<figure class="chart">{chart.svg}<figcaption>{escape(printable(chart.caption))}</figcaption></figure>'


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], classes: str) -> str:
    """A table whose cells are HTML already."""
    top = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    table = f'<table class="{classes}"><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>'
    return f'<div class="scrolls">{table}</div>'
