"""The report on disk: the page, and beside it a folder with all its numbers as CSV and JSON and each plot as SVG.

``report.html`` has ``report_files/``. Every file appears whole or not at all. A file of an earlier report that this
one does not have is removed; whatever else lies in the folder stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars

from rarenode._io.files import replacing
from rarenode._io.text import storable
from rarenode.errors import ArgumentError
from rarenode.report.charts import make_plots, plot_names
from rarenode.report.page import as_json, page_data, render
from rarenode.report.run_report import Report
from rarenode.report.svg import standalone
from rarenode.report.tables import TABLES, Row
from rarenode.training.card import plain, to_markdown


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
        possible = {*(f"{table}.csv" for table in TABLES), *(f"{plot}.svg" for plot in plot_names())}
        for name in possible - {file.name for file in written}:
            (folder / name).unlink(missing_ok=True)
        _write(path, render(report, plots))
    except OSError as error:
        raise ArgumentError(f"the report {path} cannot be written: {error.strerror or error}") from None
    return path, *written


def _write(path: Path, content: str) -> None:
    with replacing(path) as (part,):
        part.write_text(content, encoding="utf-8", errors="replace", newline="")


def _contents(report: Report) -> Iterator[tuple[str, str]]:
    """The tables that have rows, all of them in one JSON, and the model cards."""
    tables = {name: [_storable(row) for row in rows(report)] for name, rows in TABLES.items()}
    yield "report.json", as_json(page_data(report) | {"tables": tables})
    for name, rows in tables.items():
        if rows:
            yield f"{name}.csv", polars.DataFrame(rows, infer_schema_length=None).write_csv()
    nodes = [run.nodes.to_frame().insert_column(0, polars.lit(storable(run.name)).alias("run")) for run in report.runs]
    yield "nodes.csv", polars.concat(nodes).write_csv()
    yield "cards.md", "\n".join(to_markdown(plain(run.name), run.card) for run in report.runs)


def _storable(line: Row) -> Row:
    return {name: storable(value) if isinstance(value, str) else value for name, value in line.items()}
