"""The report on disk: the page, and beside it a folder with all its numbers as CSV and JSON and each plot as SVG.

``report.html`` has ``report_files/``. Every file appears whole or not at all. A file of an earlier report that this
one does not have is removed; whatever else lies in the folder stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars

from rarenode.errors import ArgumentError
from rarenode.printable import storable
from rarenode.report.charts import RECALLS, make_plots, plot_names
from rarenode.report.comparison import compare_runs
from rarenode.report.groups import by_depth, by_rarity
from rarenode.report.page import as_json, page_data, render
from rarenode.report.run_report import Report
from rarenode.report.svg import standalone
from rarenode.training.atomic import replacing

TABLES = (
    "headline.csv",
    "nodes.csv",
    "groups.csv",
    "precision_recall.csv",
    "reliability.csv",
    "training.csv",
    "unsure_rows.csv",
    "changes.csv",
)


def folder_of(path: Path) -> Path:
    """The folder beside a page. Its name is no run's, whatever the page is called."""
    return path.with_name(f"{path.stem}_files")


def require_page_name(path: Path) -> None:
    """Refuse a name that no page should have, before work is done for it."""
    if path.suffix.lower() != ".html":
        raise ArgumentError(f"{path}: the name of a report must end in .html")


def write_report(report: Report, path: Path) -> tuple[Path, ...]:
    """Write the page to ``path``, which ends in ``.html``, and all else into the folder beside it.

    Returns:
        What was written, the page first.

    Raises:
        ArgumentError: the name does not end in .html, or something could not be written.
    """
    require_page_name(path)
    folder = folder_of(path)
    plots = make_plots(report)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for name, content in _contents(report):
            _write(folder / name, content)
            written.append(folder / name)
        for plot in plots:
            _write(folder / f"{plot.name}.svg", standalone(plot.svg))
            written.append(folder / f"{plot.name}.svg")
        for name in {*TABLES, *(f"{plot}.svg" for plot in plot_names())} - {file.name for file in written}:
            (folder / name).unlink(missing_ok=True)
        _write(path, render(report, plots))
    except OSError as error:
        raise ArgumentError(f"the report {path} cannot be written: {error}") from None
    return path, *written


def _write(path: Path, content: str) -> None:
    with replacing(path) as (part,):
        part.write_text(content, encoding="utf-8", errors="replace", newline="")


def _contents(report: Report) -> Iterator[tuple[str, str]]:
    """The tables that have rows, and the JSON."""
    yield "report.json", as_json(page_data(report) | {"headline": _headline(report)})
    for name, rows in (
        ("headline.csv", _headline(report)),
        ("groups.csv", _groups(report)),
        ("precision_recall.csv", _precision_recall(report)),
        ("reliability.csv", _reliability(report)),
        ("training.csv", _training(report)),
        ("unsure_rows.csv", _unsure_rows(report)),
        ("changes.csv", _changes(report)),
    ):
        lines = list(rows)
        if lines:
            yield name, polars.DataFrame([_storable(line) for line in lines], infer_schema_length=None).write_csv()
    nodes = [run.nodes.to_frame().insert_column(0, polars.lit(storable(run.name)).alias("run")) for run in report.runs]
    yield "nodes.csv", polars.concat(nodes).write_csv()


def _storable(line: dict[str, object]) -> dict[str, object]:
    return {name: storable(value) if isinstance(value, str) else value for name, value in line.items()}


def _headline(report: Report) -> list[dict[str, object]]:
    return [
        {"run": run.name, "about": run.about}
        | asdict(run.summary)
        | {f"{name}_deviation": value for name, value in (asdict(run.deviations) if run.deviations else {}).items()}
        for run in report.runs
    ]


def _groups(report: Report) -> Iterator[dict[str, object]]:
    for run in report.runs:
        for group in (*by_rarity(run.nodes), *by_depth(run.nodes)):
            yield {"run": run.name} | asdict(group)


def _precision_recall(report: Report) -> Iterator[dict[str, object]]:
    for run in report.runs:
        for band, curve in run.curves.items():
            for recall, precision in zip(RECALLS, curve.precision, strict=False):  # empty without a positive cell
                yield {"run": run.name, "training_rows": band, "recall": recall, "precision": precision}


def _reliability(report: Report) -> Iterator[dict[str, object]]:
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


def _training(report: Report) -> Iterator[dict[str, object]]:
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


def _unsure_rows(report: Report) -> Iterator[dict[str, object]]:
    names = report.hierarchy.nodes
    for run in report.runs:
        for unsure in run.unsure_rows:
            for doubt in unsure.doubts:
                yield {
                    "run": run.name,
                    "row": unsure.row,
                    "bits": unsure.bits,
                    "wrong": unsure.wrong,
                    "node": names[doubt.column],
                    "probability": doubt.probability,
                    "decided": doubt.decided,
                    "carried": doubt.carried,
                }


def _changes(report: Report) -> Iterator[dict[str, object]]:
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
