"""The page: one HTML file that needs no network, holds its data, and runs only one script.

Its Content-Security-Policy names script and style by their sha256, so no markup that is smuggled in with a name or a
file can run. Data are in a JSON element, in ASCII and without ``<``, ``>`` and ``&``: no text can end it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rarenode._io.text import counted, printable
from rarenode.diagnosis import NAMES, REASONS, STATES, NodeDiagnosis
from rarenode.hierarchy import Hierarchy
from rarenode.plots.icicle import drawn_parents
from rarenode.plots.svg import CSS
from rarenode.report import html
from rarenode.report.charts import Chart
from rarenode.report.gallery import LINK, Gallery
from rarenode.report.run_report import GuaranteedSets, Report, RunReport

DIGITS = 4
ASSETS = files("rarenode.report") / "assets"
MARKER = re.compile(r"\{\{([a-z]+)\}\}")


def render(report: Report, charts: Sequence[Chart], data: str) -> str:
    """The whole page. ``data`` is `page_data` as JSON."""
    first, *others = report.runs
    gallery = Gallery(report) if any(run.pictures is not None for run in report.runs) else None
    several = f"{counted(len(report.runs), 'run')} over a hierarchy of {counted(len(report.hierarchy), 'node')}"
    return fill(
        data,
        with_pictures=gallery is not None,
        title=escape(report.title),
        about=html.text(several if others else first.about),
        headline=html.headline(report),
        comparison=html.comparison(report, charts),
        picturelink="" if gallery is None else LINK,
        pictures="" if gallery is None else gallery.section(),
        charts=html.charts(charts),
        rows=html.unsure_rows(report, None if gallery is None else gallery.figure),
        examination=html.examinations(report),
        card=html.cards(report),
    )


def fill(data: str, *, with_pictures: bool = False, **parts: str) -> str:
    """The template with JSON data for the script, and parts that are HTML already."""
    style = "\n".join((_asset("style.css"), *((_asset("pictures.css"),) if with_pictures else ()), CSS))
    names = (*_asset("order.txt").split(), *(("pictures.js",) if with_pictures else ()))
    script = "\n".join(_asset(name) for name in names)
    filled = {
        "policy": f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:",
        "style": style,
        "script": script,
        "data": data,
        "picturelink": "",
        "pictures": "",
    } | parts
    # In one pass, so that markers in names are not filled.
    return MARKER.sub(lambda found: filled[found[1]], _asset("page.html"))


def page_data(report: Report) -> dict[str, Any]:
    """The data of the script, which are also written beside the page as JSON."""
    return {
        "hierarchy": _hierarchy(report.hierarchy),
        "reasons": [{"key": key, "label": NAMES[key], "help": explanation} for key, explanation in REASONS.items()],
        "runs": [_run(run) for run in report.runs],
    }


def as_json(content: Any) -> str:
    r"""JSON that no text in it can end: ``<``, ``>`` and ``&`` stand as ``\u003c`` and so on.

    >>> as_json({"a": "</script>"})
    '{"a":"\\u003c/script\\u003e"}'
    """
    dumped = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return dumped.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hierarchy(hierarchy: Hierarchy) -> dict[str, Any]:
    above = drawn_parents(hierarchy)
    others: dict[str, list[int]] = {}
    for parent, child in zip(hierarchy.edge_parents.tolist(), hierarchy.edge_children.tolist(), strict=True):
        if parent != above[child]:
            others.setdefault(str(child), []).append(parent)
    titles = {} if hierarchy.terms is None else {"titles": [printable(title) for title in hierarchy.titles]}
    return titles | {
        "names": [printable(name) for name in hierarchy.nodes],
        "depth": hierarchy.depth.tolist(),
        "parent": above.tolist(),
        "others": others,
    }


def _run(run: RunReport) -> dict[str, Any]:
    nodes, scores = run.nodes, run.nodes.scores
    keys = list(REASONS)
    return {
        "name": printable(run.name),
        "about": printable(run.about),
        "nodes": {
            "state": [STATES.index(state) for state in nodes.state.tolist()],
            "training": nodes.training_rows.tolist(),
            "rows": scores.support.tolist(),
            "decided": scores.predicted.tolist(),
            "found": scores.true_positives.tolist(),
            "precision": _rounded(scores.precision),
            "recall": _rounded(scores.recall),
            "f1": _rounded(scores.f1),
            "threshold": _rounded(nodes.thresholds),
            "uncertainty": _rounded(nodes.uncertainty),
            "reason": [keys.index(of[0]) if of else -1 for of in nodes.reasons],
        },
        "guaranteed": None if run.guaranteed is None else _guaranteed(run.guaranteed),
        "explanations": _explanations(nodes),
        "also": {str(column): [keys.index(r) for r in of[1:]] for column, of in enumerate(nodes.reasons) if of[1:]},
    }


def _guaranteed(sets: GuaranteedSets) -> dict[str, Any]:
    return {
        "needed": sets.promise.rows_needed,
        "rows": sets.promise.rows.tolist(),
        "threshold": _rounded(sets.promise.thresholds.values),
        "size": _rounded(sets.size),
        "recall": _rounded(sets.recall),
    }


def _explanations(nodes: NodeDiagnosis) -> dict[str, str]:
    missed = np.flatnonzero(nodes.state == "missed").tolist()
    return {str(column): words for column in missed if (words := nodes.explain(column))}


def _rounded(values: NDArray[np.float64]) -> list[float | None]:
    """To a few significant digits; None for what is not finite, which JSON cannot write."""
    size = np.abs(np.where(np.isfinite(values) & (values != 0), values, 1.0))
    # Both are whole numbers up to 10^22, so that their quotient is the float next to the decimal number.
    scale = 10.0 ** np.clip(DIGITS - 1 - np.floor(np.log10(size)), 0, 22)
    rounded = np.floor(values * scale + 0.5) / scale
    return [
        value if known else None for value, known in zip(rounded.tolist(), np.isfinite(values).tolist(), strict=True)
    ]


def _asset(name: str) -> str:
    return (ASSETS / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode('utf-8')).digest()).decode('ascii')}'"
