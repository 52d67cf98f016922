"""The pictures of the page as HTML: examples of nodes, confused pairs, and thumbnails for other parts.

A thumbnail is embedded once, where it is shown first. Other places name it, and the script fills them. There are no
untrusted attributes here either: the alternative text has the number of a row, the caption has its id.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from itertools import chain, zip_longest

from rarenode._io.text import counted, printable
from rarenode.diagnosis.confusion import ConfusedPair
from rarenode.diagnosis.examples import Example, NodeExamples
from rarenode.diagnosis.titles import distinct_titles
from rarenode.report.html import text
from rarenode.report.pictures import MOST_THUMBNAILS, RunPictures
from rarenode.report.run_report import Report, RunReport

MOST_CHARACTERS = 4_000_000
"""Of all embedded thumbnails together, as base64."""
NODES_AT_ONCE = 8
"""Further nodes are folded away."""
LINK = '\n    <a href="#pictures">Pictures</a>'
EXPLANATION = (
    "<p>Missed nodes and nodes that are predicted take turns, of each the rarest first, by training rows. "
    "<em>Found</em> are the true positives with the highest probability; <em>missed</em> the false negatives with the "
    "lowest, where the model, or else the label, is most wrong; <em>wrongly found</em> the false positives with the "
    "highest. Below a picture are its row, and the probability of the node compared with its threshold. A node that "
    "does not reach its own is predicted all the same as an ancestor of one that does.</p>"
)
EXPLANATION_OF_PAIRS = (
    "<p>On the left, rows of the first node in which the second is predicted instead; on the right, rows that really "
    "have the second node, and in which it is found. Both are those with the highest probability of the second node, "
    "which is below each picture. Of mistakes that lie above one another only the most specific count: rows in which "
    "something below the second node is predicted are not counted here, while the reason why a node is missed "
    "(&ldquo;confused with&rdquo;) counts all rows in which its sibling is predicted.</p>"
)
WITHOUT_SCRIPT = "<noscript><p>Without scripts a picture is shown only in the first of its places.</p></noscript>"


class Gallery:
    """The thumbnails of one page. It remembers which of them have been shown, so a gallery makes one page only."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._titles = distinct_titles(report.hierarchy)
        self._embedded = _choose_embedded([run.pictures for run in report.runs if run.pictures is not None])
        self._shown: set[bytes] = set()

    def section(self) -> str:
        """Examples and confused pairs of all runs that have pictures."""
        parts = []
        for run in self._report.runs:
            if run.pictures is None:
                continue
            body = self._examples(run, run.pictures) + self._pairs(run, run.pictures)
            one = len(self._report.runs) == 1
            parts.append(body if one else f"<details><summary>{text(run.name)}</summary>{body}</details>")
        filled = f'<div class="filled">{WITHOUT_SCRIPT}{"".join(parts)}</div>'
        return f'\n\n  <section id="pictures">\n    <h2>Pictures</h2>\n    {filled}\n  </section>'

    def figure(self, pictures: RunPictures, position: int, words: str = "") -> str:
        """The picture of a row with its name, and words that are HTML already."""
        shown = pictures.rows[position]
        named = shown.id is not None and printable(shown.id).strip()
        name = text(shown.id) if named else f"row {shown.row:,}"
        caption = f'<figcaption><span class="row-name">{name}</span>{words}</figcaption>'
        return f'<figure class="pictured">{self._thumbnail(pictures, position)}{caption}</figure>'

    def _thumbnail(self, pictures: RunPictures, position: int) -> str:
        """The picture, or a box that says why there is none."""
        shown = pictures.rows[position]
        if shown.jpeg is None or shown.jpeg not in self._embedded:
            words = "cannot be read" if shown.unreadable else "left out, to keep the page small"
            return f'<span class="no-picture">{words}</span>'
        number, words = self._embedded[shown.jpeg], f"Picture of row {shown.row:,}"
        if shown.jpeg in self._shown:
            return f'<span class="no-picture" data-picture="{number}">{words}</span>'
        self._shown.add(shown.jpeg)
        source = f"data:image/jpeg;base64,{base64.b64encode(shown.jpeg).decode('ascii')}"
        return f'<img class="picture" id="picture-{number}" alt="{words}" src="{source}">'

    def _examples(self, run: RunReport, pictures: RunPictures) -> str:
        nodes = [self._node(run, pictures, node) for node in pictures.examples.nodes]
        if not nodes:
            return "<section><h3>Examples</h3><p>No node has rows or predictions.</p></section>"
        first, others = "".join(nodes[:NODES_AT_ONCE]), nodes[NODES_AT_ONCE:]
        body = f'<div class="pictured-nodes">{first}</div>'
        if others:
            more = f'<div class="pictured-nodes">{"".join(others)}</div>'
            body += f"<details><summary>{counted(len(others), 'more node')}</summary>{more}</details>"
        left_out = pictures.examples.left_out
        if left_out:
            body += f'<p class="notes">{counted(left_out, "further node")} left out, to keep the page small.</p>'
        return f"<section><h3>Examples</h3>{EXPLANATION}{body}</section>"

    def _node(self, run: RunReport, pictures: RunPictures, node: NodeExamples) -> str:
        column, nodes = node.column, run.nodes
        mark = "missed" if nodes.state[column] == "missed" else "found"
        counts = ", ".join(
            (
                counted(int(nodes.training_rows[column]), "training row"),
                counted(int(nodes.scores.support[column]), "row"),
                f"{nodes.scores.true_positives[column]:,} found",
            )
        )
        threshold = float(nodes.thresholds[column])

        def figures(some: Sequence[Example]) -> list[str]:
            return [self.figure(pictures, each.row, self._why(pictures, each, column, threshold)) for each in some]

        groups = "".join(
            self._group(name, figures(some))
            for name, some in (("Found", node.found), ("Missed", node.missed), ("Wrongly found", node.wrongly_found))
        )
        head = f'<h4><span class="mark mark-{mark}"></span>{self._link(column)}</h4><p class="quiet">{counts}</p>'
        return f'<div class="pictured-node">{head}{groups}</div>'

    def _why(self, pictures: RunPictures, example: Example, column: int, threshold: float) -> str:
        below = pictures.decided_with.get((example.row, column))
        words = "" if below is None else f", as an ancestor of {text(self._titles[below])}"
        return _compared(example, threshold) + words

    def _pairs(self, run: RunReport, pictures: RunPictures) -> str:
        if not pictures.pairs:
            return ""
        pairs = "".join(self._pair(pictures, pair) for pair in pictures.pairs)
        heading = "<h3>Most confused pairs</h3>"
        return f'<section>{heading}{EXPLANATION_OF_PAIRS}<div class="pictured-pairs">{pairs}</div></section>'

    def _pair(self, pictures: RunPictures, pair: ConfusedPair) -> str:
        confused, found = (
            [self.figure(pictures, each.row, f"{each.probability:.3g}") for each in some]
            for some in (pair.confused, pair.found)
        )
        one, other = (text(self._titles[column]) for column in (pair.labelled, pair.predicted))
        heading = f"<h4>{self._link(pair.labelled)} taken for {self._link(pair.predicted)}</h4>"
        counts = f'<p class="quiet">most specific mistake in {pair.rows:,} of {counted(pair.positives, "row")}</p>'
        left = self._group(f"Labelled {one}, which is missed", confused)
        right = self._group(f"Labelled {other}, and found", found or ['<p class="quiet">No such row.</p>'])
        return f'<div class="pictured-pair">{heading}{counts}<div class="sides">{left}{right}</div></div>'

    def _group(self, name: str, figures: Sequence[str]) -> str:
        if not figures:
            return ""
        return f'<div class="pictured-group"><h5>{name}</h5><div class="row-of-pictures">{"".join(figures)}</div></div>'

    def _link(self, column: int) -> str:
        return f'<a href="#node={column}">{text(self._titles[column])}</a>'


def _compared(example: Example, threshold: float) -> str:
    if math.isinf(threshold):
        return f"{example.probability:.3g}, never predicted"
    sign = "≥" if example.probability >= threshold else "&lt;"
    return f"{example.probability:.3g} {sign} {threshold:.3g}"


def _choose_embedded(runs: Sequence[RunPictures]) -> dict[bytes, int]:
    """The thumbnails that are embedded, numbered. Runs take turns, so that the first does not use all the room."""
    numbers: dict[bytes, int] = {}
    room = MOST_CHARACTERS
    for row in chain.from_iterable(zip_longest(*(run.rows.values() for run in runs))):
        if row is None or row.jpeg is None or row.jpeg in numbers:
            continue
        characters = 4 * math.ceil(len(row.jpeg) / 3)
        if len(numbers) < MOST_THUMBNAILS and characters <= room:
            numbers[row.jpeg] = len(numbers)
            room -= characters
    return numbers
