"""The report on disk: the page, and beside it a folder with its numbers as CSV and JSON and each chart as SVG.

``report.html`` has ``report_files/``. Every file is replaced as a whole. A file of an earlier report that this one does
not have is removed; other files in the folder are left alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import polars

from rarenode._io.files import exists, replacing
from rarenode._io.text import storable
from rarenode.errors import ArgumentError
from rarenode.plots.svg import standalone
from rarenode.report.charts import chart_names, make_charts
from rarenode.report.page import as_json, page_data, render
from rarenode.report.run_report import Report
from rarenode.report.tables import TABLES, Row, nodes_table
from rarenode.training.model_card import plain, to_markdown


def folder_of(path: str | os.PathLike[str]) -> Path:
    """The folder beside a page."""
    page = Path(path)
    return page.with_name(f"{page.stem}_files")


def require_page_name(path: str | os.PathLike[str]) -> None:
    """Require that the name of a report ends in ``.html``, before any work is done.

    Raises:
        ArgumentError: it does not.
    """
    if Path(path).suffix.lower() != ".html":
        raise ArgumentError(f"{path}: the name of a report must end in .html")


def write_report(report: Report, path: str | os.PathLike[str]) -> tuple[Path, ...]:
    """Write the page to ``path``, which ends in ``.html``, and everything else into the folder beside it.

    Returns:
        The files written, the page first.

    Raises:
        ArgumentError: the name does not end in .html, or a file cannot be written.
    """
    require_page_name(path)
    page, folder = Path(path), folder_of(path)
    charts = make_charts(report)
    data = as_json(page_data(report))
    is_new = not exists(folder)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        written = []
        for name, content in _contents(report, data):
            _write(folder / name, content)
            written.append(folder / name)
        for chart in charts:
            _write(folder / f"{chart.name}.svg", standalone(chart.svg))
            written.append(folder / f"{chart.name}.svg")
        possible = {*(f"{table}.csv" for table in TABLES), *(f"{chart}.svg" for chart in chart_names())}
        for name in possible - {file.name for file in written}:
            (folder / name).unlink(missing_ok=True)
        _write(page, render(report, charts, data))  # last: whoever finds it finds all that it refers to
    except OSError as error:
        if is_new:
            with suppress(OSError):  # some files could be written
                folder.rmdir()
        raise ArgumentError(f"the report {page} cannot be written: {error.strerror or error}") from None
    return page, *written


def _write(path: Path, content: str) -> None:
    with replacing(path) as (part,):
        part.write_text(content, encoding="utf-8", errors="replace", newline="")


def _contents(report: Report, data: str) -> Iterator[tuple[str, str]]:
    """The tables that have rows, all of them in one JSON together with the page's data, and the model cards."""
    tables = {name: [_storable(row) for row in rows(report)] for name, rows in TABLES.items()}
    yield "report.json", f'{data[:-1]},"tables":{as_json(tables)}}}'
    for name, rows in tables.items():
        if rows:
            yield f"{name}.csv", polars.DataFrame(rows, infer_schema_length=None).write_csv()
    yield "nodes.csv", polars.concat(map(nodes_table, report.runs)).write_csv()
    yield "cards.md", "\n".join(to_markdown(plain(run.name), run.card) for run in report.runs)


def _storable(line: Row) -> Row:
    return {name: storable(value) if isinstance(value, str) else value for name, value in line.items()}
