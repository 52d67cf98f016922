"""A `DecisionComparison` as text: Markdown to read, a table for each dataset, and JSON to compute with."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict

from rarenode.paper.comparison import Estimate
from rarenode.paper.decision_comparison import DecisionComparison, DecisionRow
from rarenode.paper.spec import REBUILT
from rarenode.paper.table import NOTHING, REBUILT_SIGN, escape, line

LEGEND = (
    "Scores are in percent, mean ± deviation over seeds, of scored nodes on the test rows. Thresholds come from "
    "held-out rows; a decided node brings its ancestors with it. Nodes found: decided in at least one test row that "
    "carries them. F1 / best: times the best F1 that was published for the dataset, whatever the method. Recall / "
    "None: times the published recall of a single model without weights. What was published was decided at 0.5."
)


def decisions_as_markdown(comparison: DecisionComparison) -> str:
    """Title, how much is there, and a table for each dataset that has records."""
    return "\n".join(_paragraphs(comparison)) + "\n"


def decisions_as_json(comparison: DecisionComparison) -> str:
    """Everything, unrounded."""
    content = asdict(comparison)
    for row, told in zip(comparison.rows, content["rows"], strict=True):
        told |= {"f1_ratio": row.f1_ratio, "recall_ratio": row.recall_ratio}
    return json.dumps(content, indent=2)


def missing_trainings(comparison: DecisionComparison) -> str:
    """How much is there, in a sentence."""
    if not comparison.missing:
        return f"All {comparison.trainings} trainings have a record."
    return f"{comparison.missing} of {comparison.trainings} trainings have no record of all decisions yet."


def dataset_name(dataset: str) -> str:
    """A dataset, with a sign where it was put together again."""
    return f"{escape(dataset)} {REBUILT_SIGN}" if dataset.endswith(REBUILT) else escape(dataset)


def times(value: float | None) -> str:
    """A ratio.

    >>> times(1.3), times(None)
    ('1.30', '-')
    """
    return NOTHING if value is None else f"{value:.2f}"


def _paragraphs(comparison: DecisionComparison) -> Iterator[str]:
    yield f"## {escape(comparison.title)}"
    if comparison.about.strip():
        yield f"\n{escape(comparison.about.strip())}"
    yield f"\n{missing_trainings(comparison)}"
    for dataset in dict.fromkeys(row.dataset for row in comparison.rows):
        yield from _table(dataset, [row for row in comparison.rows if row.dataset == dataset])
    if comparison.rows:
        yield f"\n{LEGEND}"
    if any(row.dataset.endswith(REBUILT) for row in comparison.rows):
        yield f"{REBUILT_SIGN} rebuilt dataset: what was published is of the original files."


def _table(dataset: str, rows: list[DecisionRow]) -> Iterator[str]:
    best, recall = rows[0].best_published, rows[0].published_recall
    published = [f"best F1 {best:.2f}"] if best is not None else []
    published += [f"recall of None {recall:.2f}"] if recall is not None else []
    yield f"\n### {dataset_name(dataset)}\n"
    yield f"{rows[0].nodes} nodes. Published: {', '.join(published) or 'nothing'}.\n"
    yield line(
        ["Method", "Decision", "Seeds", "F1", "Precision", "Recall", "Nodes found", "F1 / best", "Recall / None"]
    )
    yield line([":--", ":--", *["--:"] * 7])
    for row in rows:
        scores = [_estimate(each, 2) for each in (row.f1, row.precision, row.recall)]
        ratios = [times(row.f1_ratio), times(row.recall_ratio)]
        found = _estimate(row.nodes_found, 1)
        yield line([escape(row.method), escape(row.way.strategy), str(row.seeds), *scores, found, *ratios])


def _estimate(each: Estimate, places: int) -> str:
    return f"{each.mean:.{places}f}" + ("" if each.deviation is None else f" ± {each.deviation:.{places}f}")
