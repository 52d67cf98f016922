"""The numbers of a report as tables: rows of plain values, the same for CSV and JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict
from types import MappingProxyType

import numpy as np
import polars
from numpy.typing import NDArray

from rarenode._io.text import storable
from rarenode.diagnosis.examples import Example
from rarenode.report.charts import RECALLS
from rarenode.report.pictures import RunPictures
from rarenode.report.run_report import Report, RunReport, by_depth, by_rarity, compare_runs

Row = dict[str, object]


def _headline(report: Report) -> Iterator[Row]:
    for run in report.runs:
        deviations = asdict(run.deviations) if run.deviations else {}
        shown: Row = {"run": run.name, "about": run.about} | asdict(run.summary)
        shown["nodes_with_rows"] = run.nodes_with_rows
        yield shown | {f"{name}_deviation": value for name, value in deviations.items()}


def _aspects(report: Report) -> Iterator[Row]:
    for run in report.runs:
        for aspect, best in run.cafa.items():
            decided = {f"hierarchical_{name}": value for name, value in asdict(run.hierarchical[aspect]).items()}
            yield {"run": run.name, "aspect": aspect} | decided | asdict(best)


def _groups(report: Report) -> Iterator[Row]:
    for run in report.runs:
        for group in (*by_rarity(run.nodes), *by_depth(run.nodes)):
            yield {"run": run.name} | asdict(group)


def _precision_recall(report: Report) -> Iterator[Row]:
    for run in report.runs:
        for band, curve in run.curves.items():
            of_band: Row = {"run": run.name, "training_rows": band}
            for recall, precision in zip(RECALLS, curve.precision, strict=False):  # empty without a positive cell
                yield of_band | {"what": "best", "recall": recall, "precision": precision}
            if curve.decided is not None:
                yield of_band | {"what": "decided", "recall": curve.decided[0], "precision": curve.decided[1]}


def _reliability(report: Report) -> Iterator[Row]:
    for run in report.runs:
        for band, bins in run.reliability.items():
            for place in np.flatnonzero(bins.count).tolist():
                yield {
                    "run": run.name,
                    "training_rows": band,
                    "from": float(bins.edges[place]),
                    "to": float(bins.edges[place + 1]),
                    "cells": int(bins.count[place]),
                    "mean_probability": float(bins.mean_probability[place]),
                    "frequency": float(bins.frequency[place]),
                }


def _calibration_error(report: Report) -> Iterator[Row]:
    for run in report.runs:
        for band, bins in run.reliability.items():
            if np.isfinite(bins.ece):
                yield {"run": run.name, "training_rows": band, "cells": int(bins.count.sum()), "error": bins.ece}


def _reasons(report: Report) -> Iterator[Row]:
    for run in report.runs:
        states, reasons = run.nodes.state.tolist(), run.nodes.reason
        for (state, reason), nodes in sorted(Counter(zip(states, reasons, strict=True)).items()):
            yield {"run": run.name, "state": state, "reason": reason, "nodes": nodes}


def nodes_table(run: RunReport) -> polars.DataFrame:
    """The table of all nodes: `NodeDiagnosis.to_frame`, and the guaranteed sets."""
    sets, nodes = run.guaranteed, len(run.hierarchy)
    values = {
        "guaranteed_threshold": None if sets is None else sets.promise.thresholds.values,
        "guaranteed_size": None if sets is None else sets.size,
        "guaranteed_recall": None if sets is None else sets.recall,
    }
    found = run.nodes.to_frame().with_columns(
        polars.Series("held_out_rows", [None] * nodes if sets is None else sets.promise.rows, dtype=polars.Int64),
        polars.Series(
            "no_guarantee",
            [None if sets is None else sets.promise.reason(node) or None for node in range(nodes)],
            dtype=polars.String,
        ),
        *(
            polars.Series(name, [None] * nodes if each is None else _or_null(each), dtype=polars.Float64)
            for name, each in values.items()
        ),
    )
    return found.insert_column(0, polars.lit(storable(run.name)).alias("run"))


def _or_null(values: NDArray[np.float64]) -> list[float | None]:
    return [value if np.isfinite(value) else None for value in values.tolist()]


def _training(report: Report) -> Iterator[Row]:
    for run in report.runs:
        for epoch in run.history:
            valid = epoch.valid
            yield {
                "run": run.name,
                "epoch": epoch.epoch,
                "loss": epoch.loss,
                "seconds": epoch.seconds,
                "validation_ap": None if valid is None else valid.ap,
                "validation_f1": None if valid is None else valid.f1,
            }


def _unsure_rows(report: Report) -> Iterator[Row]:
    names = report.hierarchy.nodes
    for run in report.runs:
        for unsure in run.unsure_rows:
            for node in unsure.nodes:
                yield {
                    "run": run.name,
                    "row": unsure.row,
                    "id": unsure.id,
                    "bits": unsure.bits,
                    "wrong": unsure.wrong,
                    "node": names[node.column],
                    "probability": node.probability,
                    "decided": node.decided,
                    "labelled": node.labelled,
                }


def _examples(report: Report) -> Iterator[Row]:
    names = report.hierarchy.nodes
    for run, pictures in _with_pictures(report):
        for node in pictures.examples.nodes:
            threshold = float(run.nodes.thresholds[node.column])
            for kind, some in (("found", node.found), ("missed", node.missed), ("wrongly found", node.wrongly_found)):
                for example in some:
                    below = pictures.decided_with.get((example.row, node.column))
                    yield {
                        "run": run.name,
                        **_row_of(pictures, example),
                        "node": names[node.column],
                        "kind": kind,
                        "probability": example.probability,
                        "threshold": threshold if np.isfinite(threshold) else None,
                        "as_an_ancestor_of": None if below is None else names[below],
                    }


def _confused_pairs(report: Report) -> Iterator[Row]:
    names = report.hierarchy.nodes
    for run, pictures in _with_pictures(report):
        for pair in pictures.pairs:
            for kind, some in (("confused", pair.confused), ("found", pair.found)):
                for example in some:
                    yield {
                        "run": run.name,
                        **_row_of(pictures, example),
                        "labelled": names[pair.labelled],
                        "predicted": names[pair.predicted],
                        "confused_rows": pair.rows,
                        "kind": kind,
                        "probability": example.probability,
                    }


def _with_pictures(report: Report) -> Iterator[tuple[RunReport, RunPictures]]:
    for run in report.runs:
        if run.pictures is not None:
            yield run, run.pictures


def _row_of(pictures: RunPictures, example: Example) -> Row:
    shown = pictures.rows[example.row]
    return {"row": shown.row, "id": shown.id}


def _changes(report: Report) -> Iterator[Row]:
    first, names = report.runs[0], report.hierarchy.nodes
    for run in report.runs[1:]:
        changes = compare_runs(first, run)
        for change, columns in (("gained", changes.gained), ("lost", changes.lost)):
            for column in columns.tolist():
                yield {
                    "before": first.name,
                    "after": run.name,
                    "change": change,
                    "node": names[column],
                    "rows": int(first.nodes.scores.support[column]),
                    "training_rows": int(run.nodes.training_rows[column]),
                    "f1_before": float(first.nodes.scores.f1[column]),
                    "f1_after": float(run.nodes.scores.f1[column]),
                }


TABLES: Mapping[str, Callable[[Report], Iterator[Row]]] = MappingProxyType(
    {
        "headline": _headline,
        "aspects": _aspects,
        "groups": _groups,
        "reasons": _reasons,
        "precision_recall": _precision_recall,
        "reliability": _reliability,
        "calibration_error": _calibration_error,
        "training": _training,
        "unsure_rows": _unsure_rows,
        "examples": _examples,
        "confused_pairs": _confused_pairs,
        "changes": _changes,
    }
)
"""Name -> the rows of a report's table, which may have none. The table of all nodes is `nodes_table`."""
