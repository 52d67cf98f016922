"""Pages to look at: invented hierarchies and scores, put into the template as the report does it.

``sample_page`` writes one; ``python -m tests.report.browser.sample FOLDER`` writes all that the tests use.
"""

from __future__ import annotations

import html
import math
import random
import sys
from functools import cache
from pathlib import Path
from typing import Any, Literal

from rarenode.report.page import as_json, fill

HOSTILE = (
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "quotes \" ' ` and, commas; =1+1",
    "\u202edetrevni\u202c and \u2067isolated",
    "long " + "x" * 10_000,
    " \u200b\t",
    "",
    "emoji 👩‍🔬🧬",
    "half \ud800 a character",
    "{{script}} {{data}} <!-- --> ]]>",
    "עברית then english",
    "line\nbreak\x07bell",
    "&lt;b&gt;bold&lt;/b&gt; & more",
    "__proto__",
)
REASONS = (
    ("no_training_rows", "no training rows", "No training row has the node, so nothing could be learned about it."),
    ("no_guarantee", "no guarantee", "Nothing can be promised about it, so it is never predicted."),
    ("blocked_by_ancestor", "blocked by an ancestor", "It passes its threshold, but an ancestor does not."),
    ("hidden_by_threshold", "hidden by the threshold", "The model ranks its rows high, but its threshold is higher."),
    ("members_disagree", "members disagree", "One member of the ensemble sees it; the others outvote it."),
    ("confused_with_sibling", "confused with a sibling", "A sibling is decided in most of the rows instead."),
    ("too_few_rows", "too few rows to tell", "So few rows that no ranking would show anything."),
    ("not_separated", "not separated", "The model gives its rows no more than others."),
)
FIGURES = (
    "state", "training", "rows", "decided", "found", "precision", "recall", "f1", "threshold", "uncertainty", "reason",
)  # fmt: skip
Kind = Literal["", "hostile", "bare", "star", "guaranteed"]
"""``hostile`` names, ``bare`` as records of trainings are (no thresholds, no uncertainties, few reasons), a ``star``:
all but one in one family, or with ``guaranteed`` sets in the first run."""
WORDS = (
    "binding", "transport", "regulation", "membrane", "kinase", "activity", "cell", "response", "nuclear", "ribosome",
    "lipid", "protein", "signal", "receptor", "assembly", "metabolic", "process", "transferase", "oxygen", "calcium",
)  # fmt: skip


Data = dict[str, Any]


def sample_page(folder: Path, nodes: int, runs: int, kind: Kind = "") -> Path:
    """A page about ``runs`` runs over a hierarchy of ``nodes`` nodes; one that is in the folder is left as it is."""
    path = folder / f"report-{nodes}-{runs}{kind and '-'}{kind}.html"
    if path.exists():
        return path
    title = f"{nodes:,} nodes, {runs} run{'s' * (runs > 1)}"
    path.write_text(assembled(sample_data(nodes, runs, kind), title), encoding="utf-8")
    return path


@cache
def sample_data(nodes: int, runs: int, kind: Kind = "") -> Data:
    """The data of that page, from which tests know what it has to show. Not to be changed."""
    chance = random.Random(nodes)
    hierarchy = sample_hierarchy(nodes, chance, star=kind == "star")
    kinds = ("unweighted, untrained", "weighted, untrained", "unweighted, trained", "weighted, trained")
    names = [kinds[run] if run < len(kinds) else f"another, {run}" for run in range(runs)]
    if kind == "hostile":
        hierarchy["names"][1 : 1 + len(HOSTILE)] = HOSTILE
        names[0] = HOSTILE[0]
    reasons = [{"key": key, "label": label, "help": text} for key, label, text in REASONS]
    training = sample_training(hierarchy, chance)
    made = [sample_run(name, hierarchy, training, skill, chance) for skill, name in enumerate(names)]
    if kind == "bare":
        for run in made:
            run["nodes"]["threshold"] = run["nodes"]["uncertainty"] = [None] * nodes
            run["nodes"]["reason"] = [0 if reason == 1 else -1 for reason in run["nodes"]["reason"]]
            run["explanations"] = {}
            del run["also"]
    if kind == "guaranteed":
        made[0]["guaranteed"] = sample_guaranteed(training)
    return {"hierarchy": hierarchy, "reasons": reasons, "runs": made}


def sample_hierarchy(nodes: int, chance: random.Random, *, star: bool) -> Data:
    """A random tree of at most 13 levels: some with second parents, some with three roots; a star is one family."""
    roots = 3 if nodes in (13, 500) else 1
    parent = [-1] * roots
    depth = [0] * roots
    for column in range(roots, nodes):
        above = max(chance.randrange(max(1, column // 2)), chance.randrange(max(1, column // 3)))
        while depth[above] >= (1 if star else 12):
            above = parent[above]
        parent.append(above)
        depth.append(depth[above] + 1)
    others: dict[str, list[int]] = {}
    if nodes >= 500:
        for column in range(roots, nodes, 7):
            other = chance.randrange(column)
            if other != parent[column] and depth[other] < depth[column]:
                others[str(column)] = [other]
    names = [f"GO:{column:07d} {' '.join(chance.sample(WORDS, 3))}" for column in range(nodes)]
    names[0] = "root" if roots == 1 else "biological process"
    return {"names": names, "depth": depth, "parent": parent, "others": others}


def sample_training(hierarchy: Data, chance: random.Random) -> list[int]:
    parent = hierarchy["parent"]
    training = [0] * len(parent)
    for column, above in enumerate(parent):
        most = 3000 if above < 0 else training[above]
        training[column] = int(most * chance.random() ** 1.3) if above >= 0 else most
    return training


def sample_run(name: str, hierarchy: Data, training: list[int], skill: int, chance: random.Random) -> Data:
    nodes: dict[str, list[Any]] = {key: [] for key in FIGURES}
    explanations = {}
    also = {}
    luck = random.Random(7)
    for column, positives in enumerate(training):
        rows = positives // 3 + (1 if luck.random() < 0.5 and positives else 0)
        mean = 0.12 * math.log1p(positives) + 0.06 * skill
        recall = min(1.0, max(0.0, luck.gauss(mean, 0.22) + chance.gauss(0, 0.03)))
        found = round(rows * recall)
        decided = found + round(found * chance.random() * 0.8 + chance.random() * 2)
        state = 2 if rows == 0 else 0 if found else 1
        if luck.random() < 0.02:
            state = 3
        precision = found / decided if decided else 0.0
        recall = found / rows if rows else 0.0
        f1 = 2 * precision * recall / (precision + recall) if found else 0.0
        never = luck.random() < 0.05
        reason = (0 if positives == 0 else 1 + int(6.9 * luck.random() ** 1.5)) if state == 1 else -1
        if state == 1:
            explanations[str(column)] = explanation(reason, hierarchy["names"], column)
            if further := [other for other in range(reason + 1, 6) if (column + other) % 2 == 0]:
                also[str(column)] = further
        values = {
            "state": state, "training": positives, "rows": rows, "decided": decided, "found": found,
            "precision": short(precision), "recall": short(recall), "f1": short(f1),
            "threshold": None if never else short(0.5 * luck.random() ** 2 + 0.001),
            "uncertainty": None if state >= 2 else short(0.25 * luck.random() * (1.2 - recall)),
            "reason": reason,
        }  # fmt: skip
        for key, value in values.items():
            nodes[key].append(value)
    about = "ensemble of 5, thresholds tuned per node on held-out rows"
    return {"name": name, "about": about, "nodes": nodes, "explanations": explanations, "also": also}


def sample_guaranteed(training: list[int]) -> Data:
    """Nodes with enough rows have a guarantee, but for one in ten, some of whose rows have a probability of 0."""
    has = [rows >= 22 and column % 10 != 3 for column, rows in enumerate(training)]
    return {
        "needed": 22,
        "rows": training,
        "threshold": [short(1 / (3 + column)) if each else None for column, each in enumerate(has)],
        "size": [short(1 / (2 + column % 7)) if each else None for column, each in enumerate(has)],
        "recall": [short(1 - 0.01 * (column % 9)) if each else None for column, each in enumerate(has)],
    }


def short(value: float) -> float:
    return float(f"{value:.4g}")


def explanation(reason: int, names: list[str], column: int) -> str:
    other = names[column - 1][:80]
    return (
        "No training row has it.",
        "Held-out rows do not prove the precision for nodes that are as rare.",
        f"It passes its threshold in 1 of its 3 rows, but its ancestor '{other}' does not.",
        "Of 1,281 rows the model ranks one of its rows 3rd; a threshold of 0.012 finds 1 of its 4 rows.",
        "In 2 of its 3 rows one member alone would decide for it.",
        f"'{other}' is decided instead in 3 of 4 rows.",
        "Its only row is 3rd of 30.",
        "The likeliest of its rows is 412th of 1,281.",
    )[reason]


def assembled(data: Data, title: str) -> str:
    """The template as the report fills it, with parts that only look real."""
    return fill(
        as_json(data),
        title=title,
        about="An invented hierarchy with invented scores, to look at the page.",
        headline=headline(data),
        comparison=comparison(data) if len(data["runs"]) > 1 else "",
        charts=charts(),
        rows=unsure_rows(),
        examination="<p>1,000 rows, 20 features.</p>",
        card=card(),
    )


def headline(data: Data) -> str:
    if len(data["runs"]) == 1:
        figures = (
            ("Nodes found", "3,912", "of 4,125"),
            ("Missed nodes", "213", "5.2% of those with rows"),
            ("Micro F1", "54.3", "± 0.4"),
            ("Macro F1", "21.7", "± 0.9"),
            ("Recall, rare nodes", "8.4", "± 1.2"),
            ("Average precision", "61.0", "± 0.3"),
        )
        cards = "".join(
            f'<div class="figure{" missed" * label.startswith("Missed")}"><span class="label">{label}</span>'
            f'<span class="value">{value}</span><span class="deviation">{deviation}</span></div>'
            for label, value, deviation in figures
        )
        return f'<div class="figures">{cards}</div>'
    head = heads("Run", "Nodes found", "Missed", "Micro F1", "Macro F1", "Recall, rare")
    body = "".join(
        f"<tr><td><bdi>{html.escape(run['name'])}</bdi></td>"
        f"<td>{3712 + 60 * at:,}</td><td>{413 - 60 * at}</td>"
        f"<td>{51.2 + at:.1f} ± 0.4</td><td>{17.9 + at:.1f} ± 0.9</td><td>{4.1 + 2 * at:.1f} ± 1.1</td></tr>"
        for at, run in enumerate(data["runs"])
    )
    return table(head, body)


def comparison(data: Data) -> str:
    rows = "".join(
        f"<tr><td><bdi>{html.escape(run['name'])}</bdi></td><td>{60 * at}</td><td>{12 * at}</td></tr>"
        for at, run in enumerate(data["runs"][1:], start=1)
    )
    head = heads("Against the first run", "gained", "lost")
    return table(head, rows)


def table(head: str, body: str) -> str:
    inner = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="scrolls"><table class="plain numbers">{inner}</table></div>'


def heads(*labels: str) -> str:
    return "".join(f'<th scope="col">{label}</th>' for label in labels)


def charts() -> str:
    """Stand-ins with the size of the real charts."""
    bars = "".join(
        f'<rect x="{60 + 80 * at}" y="{40 + 30 * at}" width="50" height="{220 - 30 * at}" fill="#4d8fc4"/>'
        for at in range(7)
    )
    svg = f'<svg viewBox="0 0 720 300" role="img"><title>Recall by depth</title>{bars}</svg>'
    chart = f'<figure class="chart">{svg}<figcaption>Recall by depth, with deviations.</figcaption></figure>'
    return "".join(
        f'<section><h3>{title}</h3><div class="charts">{chart * 2}</div></section>'
        for title in ("By depth", "Reliability")
    )


def unsure_rows() -> str:
    body = "".join(
        f"<tr><td>{17 * at}</td><td>{0.24 - 0.01 * at:.3f}</td><td>{5 + at}</td><td>{7 + at}</td><td>{4 + at}</td></tr>"
        for at in range(8)
    )
    head = heads("Row", "Uncertainty", "Nodes decided", "Nodes labelled", "In common")
    return table(head, body)


def card() -> str:
    settings = "<details><summary>Settings</summary><pre><code>epochs = 200\nseed = 1</code></pre></details>"
    rows = "<tr><td>data</td><td>invented</td></tr><tr><td>model</td><td>five perceptrons</td></tr>"
    inner = f"<thead><tr>{heads('what', 'which')}</tr></thead><tbody>{rows}</tbody>"
    facts = f'<div class="scrolls"><table class="plain">{inner}</table></div>'
    return f"{facts}{settings}<h3>Limits</h3><p>A likely reason is a hint, no proof.</p>"


if __name__ == "__main__":
    for size, count in ((13, 1), (13, 4), (500, 2), (4000, 1), (4000, 4), (45_000, 2)):
        sample_page(Path(sys.argv[1]), size, count)
    sample_page(Path(sys.argv[1]), 500, 2, "hostile")
    sample_page(Path(sys.argv[1]), 13, 1, "bare")
    sample_page(Path(sys.argv[1]), 400, 1, "star")
