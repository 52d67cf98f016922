"""A `Comparison` as text: Markdown to read, JSON to compute with.

Each method on a dataset is one line of the table. The cell of a measure has three floors, published, ours and the
difference, so that columns stay narrow enough for a page; where nothing was published it is ours alone. Titles and
names come from files that anyone may have written: they are escaped, so that none of them ends a cell or becomes
markup.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict

from rarenode._io.text import counted
from rarenode.paper.comparison.scores import COSTS, DECISIVE, SCORES, Comparison, Difference, Estimate, Figure, Row
from rarenode.paper.panel import Measure
from rarenode.paper.tables.markdown import NOTHING, REBUILT_SIGN, dataset_name, escape, line, recorded

HEADINGS: dict[Measure, str] = {
    "f1": "F1",
    "precision": "precision",
    "recall": "recall",
    "bin_ap": "Bin. AP",
    "ap": "AP",
    "seconds_per_epoch": "s/epoch",
    "steps_per_second": "steps/s",
    "memory_mb": "MB",
}
MISS_SIGN = "✗"
FLOOR = "<br>"


def as_markdown(comparison: Comparison) -> str:
    """Title, summary, table and legend; rows without records are only counted, unless there are no others."""
    return "\n".join(_paragraphs(comparison)) + "\n"


def as_json(comparison: Comparison) -> str:
    """Everything, unrounded; rows without records as well."""
    content = asdict(comparison)
    for row, values in zip(comparison.rows, content["rows"], strict=True):
        values |= {"rebuilt": row.rebuilt, "within": row.within}
    content["within"] = {
        "rows": asdict(comparison.tally),
        "measures": {measure: asdict(comparison.tally_of(measure)) for measure in SCORES},
    }
    return json.dumps(content, indent=2)


def _paragraphs(comparison: Comparison) -> Iterator[str]:
    yield f"## {escape(comparison.title)}"
    if comparison.about.strip():
        yield f"\n{escape(comparison.about.strip())}"
    yield f"\n{_missing(comparison)}"
    rows = [row for row in comparison.rows if row.seeds]
    if not rows:
        yield from _published(comparison)
        return
    if comparison.tally.of:
        yield f"\n{_summary(comparison)}"
    yield ""
    yield from _table(rows, comparison.measures)
    yield f"\n{_legend(rows, comparison.measures)}"
    if comparison.reductions:
        yield ""
        yield from _reductions(comparison)


def _missing(comparison: Comparison) -> str:
    shown = recorded(comparison.trainings, comparison.missing)
    left_out = sum(not row.seeds for row in comparison.rows)
    if not left_out:
        return f"{shown}."
    if left_out == len(comparison.rows):
        return f"{shown}."
    have, are = ("has", "is") if left_out == 1 else ("have", "are")
    return f"{shown}; {left_out} of {len(comparison.rows)} rows {have} none and {are} left out."


def _published(comparison: Comparison) -> Iterator[str]:
    """What was published, while nothing is measured."""
    rows = [row for row in comparison.rows if any(row.figures[m].published for m in comparison.measures)]
    if not rows:
        return
    yield "\nPublished (mean ± deviation over seeds; scores in percent):\n"
    yield line(["Dataset", "Method", *(HEADINGS[measure] for measure in comparison.measures)])
    yield line([":--", ":--", *["--:"] * len(comparison.measures)])
    for row in rows:
        figures = [(measure, row.figures[measure]) for measure in comparison.measures]
        cells = [_estimate(measure, figure.published, bool(figure.published_mark)) for measure, figure in figures]
        yield line([dataset_name(row.dataset), escape(row.method), *cells])


def _summary(comparison: Comparison) -> str:
    tally = comparison.tally
    *most, last = (HEADINGS[measure] for measure in DECISIVE if comparison.tally_of(measure).of)
    each = ", ".join(
        f"{HEADINGS[measure]} {of_measure.within} of {of_measure.of}"
        for measure in SCORES
        if (of_measure := comparison.tally_of(measure)).of
    )
    return (
        f"**{tally.within} of {counted(tally.of, 'row')} within 2 combined deviations on {', '.join(most)}"
        f"{' and ' if most else ''}{last}.** "
        f"Measure by measure: {each}."
    )


def _table(rows: Iterable[Row], measures: tuple[Measure, ...]) -> Iterator[str]:
    with_pace = "steps_per_second" not in measures
    pace = ["steps/s"] if with_pace else []
    yield line(["Dataset", "Method", "Seeds", *(HEADINGS[measure] for measure in measures), "Nodes found", *pace])
    yield line([":--", ":--", *["--:"] * (len(measures) + 2 + len(pace))])
    for row in rows:
        cells = [_cell(measure, row.figures[measure]) for measure in measures]
        found = NOTHING if row.nodes_found is None else f"{row.nodes_found:.1f}".removesuffix(".0")
        steps = NOTHING if row.steps_per_second is None else _pace(row.steps_per_second)
        name = dataset_name(row.dataset)
        yield line([name, escape(row.method), str(row.seeds), *cells, found, *([steps] if with_pace else [])])


def _pace(steps: float) -> str:
    return f"{steps:,.0f}" if steps >= 1 else f"{steps:.1f}"


def _cell(measure: Measure, figure: Figure) -> str:
    if figure.published is None:
        return _estimate(measure, figure.ours, bool(figure.mark))
    floors = (
        _estimate(measure, figure.published, bool(figure.published_mark)),
        _estimate(measure, figure.ours, bool(figure.mark)),
        _difference(figure.difference, judged=measure in SCORES),
    )
    return FLOOR.join(floors)


def _estimate(measure: Measure, estimate: Estimate | None, marked: bool = False) -> str:
    if estimate is None:
        return NOTHING
    places = 2 if measure in SCORES or measure == "seconds_per_epoch" else 1
    deviation = "" if estimate.deviation is None else f" ± {estimate.deviation:.{places}f}"
    mean = f"{estimate.mean:.{places}f}"
    return f"**{mean}**{deviation}" if marked else f"{mean}{deviation}"


def _difference(difference: Difference | None, judged: bool) -> str:
    if difference is None:
        return NOTHING
    if difference.kind == "relative":
        return f"{100 * difference.value:+z.0f} %"
    return f"{MISS_SIGN if judged and difference.far else ''} {difference.value:+z.1f}".lstrip()


def _legend(rows: Iterable[Row], measures: tuple[Measure, ...]) -> str:
    rows = list(rows)
    figures = [row.figures[measure] for row in rows for measure in measures]
    kinds = {figure.difference.kind for figure in figures if figure.difference is not None}
    alone = [figure.published is None for figure in figures]
    parts = [] if all(alone) else ["Each cell: published, ours (mean ± deviation over seeds), difference."]
    if any(alone):
        parts.append("A single number is ours (mean ± deviation over seeds): nothing was published.")
    if any(measure in SCORES for measure in measures):
        parts.append("Scores are in percent.")
    if "deviations" in kinds:
        parts.append(
            "The difference is in combined deviations, sqrt(published² + ours²); with fewer than three seeds the "
            f"published deviation stands in for ours. {MISS_SIGN} is a miss: more than 2."
        )
    if "relative" in kinds:
        parts.append("A difference in % is relative: no deviation was published.")
    if any(figure.mark or figure.published_mark for figure in figures):
        parts.append("Bold follows the paper's rule: greater than its rivals by more than two of its deviations.")
    if any(row.rebuilt for row in rows):
        parts.append(f"{REBUILT_SIGN} rebuilt dataset: published values are of the original files.")
    parts.append("Nodes found: predicted in at least one test row that has them, mean over seeds.")
    parts.append("Steps/s depend on the machine and on what else was running.")
    if any(measure in COSTS for measure in measures):
        parts.append("Published times and memory are of another machine, so these differences are never a miss.")
    if "memory_mb" in measures:
        parts.append("Our MB are computed, not measured: parameters and the two moments of Adam.")
    return " ".join(parts)


def _reductions(comparison: Comparison) -> Iterator[str]:
    first = comparison.reductions[0]
    yield f"{escape(first.of)} instead of {escape(first.against)}, change in percent, mean ± deviation over datasets:\n"
    yield line(["Measure", "Published", "Datasets", "Ours", "Datasets"])
    yield line([":--", *["--:"] * 4])
    for change in comparison.reductions:
        numbers = _change(change.published), change.published_datasets, _change(change.ours), change.datasets
        yield line([HEADINGS[change.measure], *map(str, numbers)])


def _change(change: Estimate | None) -> str:
    if change is None:
        return NOTHING
    return f"{change.mean:+z.1f}" + ("" if change.deviation is None else f" ± {change.deviation:.1f}")
