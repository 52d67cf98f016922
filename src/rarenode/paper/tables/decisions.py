"""Specs with decisions as text: tables for the command line, JSON, and the page of docs/results.

All of it is arithmetic on records. Page and tables begin with the same summary: a threshold for each node against the
paper's 0.5, dataset by dataset; AP, which no threshold changes; and averages of every decision over the datasets of a
family (FunCat, GO, others). The page goes on with averages for bands of rarity, depths, rules of coherence, the rows
that thresholds are fitted to, and calibrations, the tables with every method under every decision.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from statistics import fmean
from typing import get_args

from rarenode._io.text import counted
from rarenode.metrics import RARITY_BANDS
from rarenode.paper.as_published import REBUILT, family_of
from rarenode.paper.comparison.decisions import (
    Average,
    DecisionComparison,
    DecisionRow,
    Way,
    average,
    compare_decisions,
    families,
    row_of,
)
from rarenode.paper.comparison.scores import Estimate
from rarenode.paper.judge import CALIBRATED, ON_TEST_ROWS
from rarenode.paper.record import CalibrationName, Decided, NodesFound, Record
from rarenode.paper.spec import Spec
from rarenode.paper.store import Records
from rarenode.paper.tables.markdown import NOTHING, REBUILT_SIGN, dataset_name, escape, line, recorded, times
from rarenode.paper.tables.ranking import ranking
from rarenode.thresholds import Rule

Part = Callable[[Decided], NodesFound | None]
"""Scores of some nodes."""
PAPER = Way("fixed")
"""What the page compares the headline of each method with, throughout."""
TOGETHER = Way("expected_f1", fitted_on="test_without_labels")
"""If all rows to decide are available at once."""
PLAIN = "None"
"""The method that others are compared with by the nodes found at 0.5."""
MUCH_F1, MUCH_RECALL, MUCH_FOUND = 1.3, 4.0, 2.0
"""Targets, in multiples of the best published F1, the published recall of None, and the nodes that it finds."""
ANOTHER_ROW_SIGN = "‡"
SCORES = ["Nodes found", "F1", "Precision", "Recall"]
LEGEND = (
    "Mean ± deviation over seeds. Nodes found: decided in at least one test row that has them. Published rows were "
    "decided at 0.5."
)


def decisions_as_markdown(
    spec: Spec,
    records: Records,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
) -> str:
    """The summary of the page, and a table for each dataset that has records; or of some datasets and methods.

    Raises:
        ArgumentError: the spec has no such dataset or method.
    """
    comparison = compare_decisions(spec, records, datasets, methods)
    return _joined([*_summary(spec, records, comparison, methods), _tables(comparison)])


def decisions_as_json(comparison: DecisionComparison) -> str:
    """Everything, unrounded."""
    content = asdict(comparison)
    for row, values in zip(comparison.rows, content["rows"], strict=True):
        values |= {"f1_ratio": row.f1_ratio, "recall_ratio": row.recall_ratio}
    return json.dumps(content, indent=2)


def missing_trainings(comparison: DecisionComparison) -> str:
    """How much is there, in a sentence."""
    return f"{recorded(comparison.trainings, comparison.missing, 'record of all decisions')}."


def _tables(comparison: DecisionComparison) -> Iterator[str]:
    if comparison.rows:
        yield "### Every method under every decision\n"
        yield LEGEND
    for dataset in dict.fromkeys(row.dataset for row in comparison.rows):
        yield from _dataset_table(dataset, [row for row in comparison.rows if row.dataset == dataset])


def _dataset_table(dataset: str, rows: list[DecisionRow]) -> Iterator[str]:
    best, recall = rows[0].best_published, rows[0].published_recall
    published = [f"best F1 {best:.2f}"] if best is not None else []
    published += [f"precision {rows[0].published_precision:.2f}"] if rows[0].published_precision is not None else []
    published += [f"recall of None {recall:.2f}"] if recall is not None else []
    yield f"\n#### {dataset_name(dataset)}\n"
    yield f"{counted(rows[0].nodes, 'node')}. Published: {', '.join(published) or 'nothing'}.\n"
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


# --- the page ------------------------------------------------------------------------------------------------------


def decisions_page(spec: Spec, records: Records) -> str:
    """The page in Markdown."""
    parts = [
        *_summary(spec, records, compare_decisions(spec, records)),
        _by_rarity(spec, records),
        _by_depth(spec, records),
        _rules(spec, records),
        _rows_fitted_on(records),
        _calibrations(records),
    ]
    return _joined(parts)


def _joined(parts: Iterable[Iterator[str]]) -> str:
    return "\n\n".join("\n".join(part) for part in map(list, parts) if part) + "\n"


def _summary(
    spec: Spec, records: Records, comparison: DecisionComparison, methods: Sequence[str] | None = None
) -> list[Iterator[str]]:
    shown = frozenset(method.name for method in spec.all_methods if method.name in (methods or (method.name,)))
    if not comparison.rows:
        return [_head(comparison)]
    return [
        _head(comparison),
        _headline(spec, records, shown),
        ranking(records, shown),
        _decisions(spec, {row: its for row, its in records.items() if row[1] in shown}),
    ]


def _head(comparison: DecisionComparison) -> Iterator[str]:
    yield f"## {escape(comparison.title)}\n"
    if comparison.about.strip():
        yield f"{escape(comparison.about.strip())}\n"
    yield f"{missing_trainings(comparison)}\n"
    yield (
        "Thresholds and calibrations are fitted on held-out rows, never on labels of the test rows. Scores are in "
        "percent, of scored nodes on the test rows, means over seeds; a node that is never found scores 0. Unless "
        "stated otherwise, ancestors of decided nodes are decided too (`add_ancestors`), probabilities are not "
        "calibrated, and *a → b* compares the paper's threshold of 0.5 with thresholds for each node, which the first "
        "table names."
    )


def _headline(spec: Spec, records: Records, shown: Collection[str]) -> Iterator[str]:
    rows = [
        (old, new, _row(row, TOGETHER))
        for row in records.items()
        if (old := _row(row, PAPER)) and (new := _row(row, _ours(spec, row[0][1])))
    ]
    plain = {old.dataset: old for old, *_ in rows if old.method == PLAIN}
    rows = [row for row in rows if row[0].method in shown]
    yield "### A threshold for each node against 0.5\n"
    for method in dict.fromkeys(new.method for _, new, _ in rows):
        its = [(new, together) for _, new, together in rows if new.method == method]
        yield f"- {escape(method)}: {_tally([new for new, _ in its], plain)}"
        if decided_together := [together for _, together in its if together is not None]:
            yield f"  - Decided together: {_tally(decided_together, plain)}"
    head = ["Dataset", "Method", "Thresholds", "Seeds", *SCORES, "Best F1 published", "its precision", "F1 / best"]
    yield "\n" + line([*head, "Recall / None", "Together: F1", "F1 / best"])
    yield line([":--", ":--", ":--", *["--:"] * 11])
    for old, new, together in rows:
        yield line(
            [
                dataset_name(new.dataset),
                escape(new.method),
                escape(new.way.strategy),
                str(new.seeds),
                f"{old.nodes_found.mean:.0f} → {new.nodes_found.mean:.0f} of {new.nodes}",
                *(
                    f"{before.mean:.2f} → {after.mean:.2f}"
                    for before, after in ((old.f1, new.f1), (old.precision, new.precision), (old.recall, new.recall))
                ),
                NOTHING if new.best_published is None else f"{new.best_published:.2f}",
                _published_precision(new),
                f"{times(old.f1_ratio)} → {times(new.f1_ratio)}",
                f"{times(old.recall_ratio)} → {times(new.recall_ratio)}",
                NOTHING if together is None else f"{together.f1.mean:.2f}",
                NOTHING if together is None else times(together.f1_ratio),
            ]
        )
    yield (
        "\nF1 / best: in multiples of the best F1 published for the dataset, ensembles included. Recall / None: in "
        "multiples of the published recall of a single model without weights. Published models were trained on "
        "validation rows too. Together: thresholds are fitted to the probabilities of all test rows, without labels."
    )
    if any(_is_of_another_row(new) for _, new, _ in rows):
        yield (
            f"{ANOTHER_ROW_SIGN} the row with the best F1 has no published precision; this is that of the best row "
            "with one, whose F1 is in brackets."
        )
    if any(new.dataset.endswith(REBUILT) for _, new, _ in rows):
        yield f"{REBUILT_SIGN} rebuilt dataset: published values are of the original files."


def _is_of_another_row(row: DecisionRow) -> bool:
    return row.published_precision is not None and row.f1_with_precision != row.best_published


def _published_precision(row: DecisionRow) -> str:
    if row.published_precision is None:
        return NOTHING
    shown = f"{row.published_precision:.2f}"
    return f"{shown} {ANOTHER_ROW_SIGN} ({row.f1_with_precision:.2f})" if _is_of_another_row(row) else shown


def _ours(spec: Spec, method: str) -> Way:
    return Way(spec.headline_of(method))


def _row(row: tuple[tuple[str, str], Sequence[Record]], way: Way) -> DecisionRow | None:
    (dataset, method), its = row
    return row_of(dataset, method, way, its)


def _tally(rows: Sequence[DecisionRow], plain: Mapping[str, DecisionRow]) -> str:
    """How many rows of a method reach the targets; ``plain`` has those of `PLAIN` at 0.5, by dataset."""
    f1 = [row.f1_ratio for row in rows if row.f1_ratio is not None]
    recall = [row.recall_ratio for row in rows if row.recall_ratio is not None and family_of(row.dataset) == "FUN"]
    shown = []
    if f1:
        shown.append(f"F1 at least {MUCH_F1:g} times the best published on {_reached(f1, MUCH_F1)} datasets")
    if precise := [row.is_as_precise for row in rows if row.is_as_precise is not None]:
        shown.append(f"precision at least the published one on {sum(precise)} of {len(precise)}")
    if recall:
        reached = _reached(recall, MUCH_RECALL)
        shown.append(f"recall at least {MUCH_RECALL:g} times that of None on {reached} FunCat datasets")
    found = [row.nodes_found.mean / max(plain[row.dataset].nodes_found.mean, 1) for row in rows if row.dataset in plain]
    if found:
        reached = _reached(found, MUCH_FOUND)
        shown.append(f"at least {MUCH_FOUND:g} times the nodes that None finds here at 0.5 on {reached}")
    return f"{'; '.join(shown) or 'nothing to compare with'}."


def _reached(values: Sequence[float], aim: float) -> str:
    return f"{sum(value >= aim for value in values)} of {len(values)}"


# --- averages over the datasets of a family ------------------------------------------------------------------------


def _decisions(spec: Spec, records: Records) -> Iterator[str]:
    yield "### All decisions\n"
    yield from _averages_head("Decision", SCORES)
    for family, method, its in families(records):
        for strategy in spec.decisions_of(method):
            shown = _average(its, Way(strategy), _of_all_nodes)
            yield from _averages_line(family, method, strategy, shown, None)


def _by_rarity(spec: Spec, records: Records) -> Iterator[str]:
    yield "### By rarity: the number of training rows that have a node\n"
    yield from _averages_head("Training rows", ["Nodes", *SCORES])
    for family, method, its in families(records):
        for band in RARITY_BANDS:
            yield from _pair_line(family, method, band, its, _ours(spec, method), _of_band(band))


def _by_depth(spec: Spec, records: Records) -> Iterator[str]:
    yield "### By depth\n"
    yield from _averages_head("Depth", ["Nodes", *SCORES])
    for family, method, its in families(records):
        depths = {depth for found in its for each in PAPER.in_records(found) for depth in each.by_depth}
        for depth in sorted(depths):
            yield from _pair_line(family, method, str(depth), its, _ours(spec, method), _of_depth(depth))


def _rules(spec: Spec, records: Records) -> Iterator[str]:
    yield "### Rules of coherence\n"
    yield "*a → b*: with `add_ancestors`, and with `drop_orphans`. On how many datasets F1 is higher with the former.\n"
    yield line(["Family", "Method", "Datasets", "Decision", *SCORES, "Higher with `add_ancestors`"])
    yield line([":--", ":--", "--:", ":--", *["--:"] * 5])
    adding, dropping = get_args(Rule)
    for family, method, its in families(records):
        for strategy in spec.decisions_of(method):
            ways = Way(strategy, adding), Way(strategy, dropping)
            old, new = (_average(its, way, _of_all_nodes) for way in ways)
            if old is None or new is None:
                continue
            means = [[_average([found], way, _of_all_nodes) for way in ways] for found in its]
            known = [(first.f1, second.f1) for first, second in means if first is not None and second is not None]
            more = f"{sum(first > second for first, second in known)} of {len(known)}"
            yield line([family, escape(method), str(old.datasets), escape(strategy), *_changes(old, new), more])


def _rows_fitted_on(records: Records) -> Iterator[str]:
    yield "### Thresholds from held-out rows, or from the test rows without labels\n"
    yield "*a → b*: fitted on held-out rows, and on the probabilities of the test rows.\n"
    yield from _averages_head("Decision", SCORES)
    for family, method, its in families(records):
        for strategy in ON_TEST_ROWS:
            old, new = (
                _average(its, Way(strategy, fitted_on=place), _of_all_nodes)
                for place in ("held_out", "test_without_labels")
            )
            yield from _averages_line(family, method, strategy, old, new)


def _calibrations(records: Records) -> Iterator[str]:
    yield "### Calibration\n"
    yield (
        "Expected F1 with calibrated probabilities, and the expected calibration error (ECE, in percent) of all cells "
        "and of nodes by the number of training rows that have them.\n"
    )
    yield line(
        ["Family", "Method", "Datasets", "Calibration", *SCORES, "ECE", *(f"ECE {band}" for band in RARITY_BANDS)]
    )
    yield line([":--", ":--", "--:", ":--", *["--:"] * (5 + len(RARITY_BANDS))])
    for family, method, its in families(records):
        for name in get_args(CalibrationName):
            shown = _average(its, Way(CALIBRATED, calibration=name), _of_all_nodes)
            if shown is None:
                continue
            errors = [_error(its, name, band) for band in (None, *RARITY_BANDS)]
            yield line([family, escape(method), str(shown.datasets), escape(name), *_values(shown), *errors])


def _error(its: Sequence[Sequence[Record]], calibration: CalibrationName, band: str | None) -> str:
    """The calibration error of a band, or of all nodes, averaged over the datasets that have nodes in it."""
    means = []
    for records in its:
        shown = [record.decided.reliability[calibration] for record in records]
        errors = [each.ece if band is None else each.ece_by_rarity.get(band) for each in shown]
        known = [error for error in errors if error is not None]
        means += [fmean(known)] if known else []
    return f"{100 * fmean(means):.2f}" if means else NOTHING


# --- lines ---------------------------------------------------------------------------------------------------------


def _of_all_nodes(decided: Decided) -> NodesFound:
    return decided.test


def _of_band(band: str) -> Part:
    return lambda decided: decided.by_rarity.get(band)


def _of_depth(depth: int) -> Part:
    return lambda decided: decided.by_depth.get(depth)


def _average(its: Sequence[Sequence[Record]], way: Way, part: Part) -> Average | None:
    return average([found for each in way.in_records(records) if (found := part(each)) is not None] for records in its)


def _averages_head(what: str, columns: Sequence[str]) -> Iterator[str]:
    yield line(["Family", "Method", "Datasets", what, *columns])
    yield line([":--", ":--", "--:", ":--", *["--:"] * len(columns)])


def _averages_line(family: str, method: str, what: str, old: Average | None, new: Average | None) -> Iterator[str]:
    if old is not None:
        scores = _values(old) if new is None else _changes(old, new)
        yield line([family, escape(method), str(old.datasets), escape(what), *scores])


def _pair_line(
    family: str,
    method: str,
    what: str,
    its: Sequence[Sequence[Record]],
    ours: Way,
    part: Part,
) -> Iterator[str]:
    old, new = _average(its, PAPER, part), _average(its, ours, part)
    if old is not None and new is not None:
        yield line([family, escape(method), str(old.datasets), what, f"{old.nodes:.0f}", *_changes(old, new)])


def _values(shown: Average) -> list[str]:
    return [f"{shown.found:.1f} %", *(f"{each:.2f}" for each in (shown.f1, shown.precision, shown.recall))]


def _changes(old: Average, new: Average) -> list[str]:
    return [f"{before} → {after}" for before, after in zip(_values(old), _values(new), strict=True)]
