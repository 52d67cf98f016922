"""The report on disk: the page, and beside it a folder with its numbers as CSV and JSON and each chart as SVG.

``report.html`` has ``report_files/``. Files of an earlier report are replaced when all new ones are on the disk: what
cannot be written leaves the earlier report as it is. A file of an earlier report that this one does not have is
removed; other files in the folder are left alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from errno import EISDIR
from pathlib import Path

import polars

from rarenode._io.cells import guarded_frame
from rarenode._io.files import exists, is_dir, replacing
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
    """Require that the name of a report ends in ``.html`` and is one that files can have, before any work is done.

    Raises:
        ArgumentError: it is not.
    """
    if Path(path).suffix.lower() != ".html":
        raise ArgumentError(f"{path}: the name of a report must end in .html")
    try:
        with suppress(FileNotFoundError):
            os.lstat(path)
    except (OSError, ValueError) as error:
        raise ArgumentError(f"the report {path} cannot be written: {getattr(error, 'strerror', error)}") from None


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
        contents = {folder / name: content for name, content in _contents(report, data)}
        contents |= {folder / f"{chart.name}.svg": standalone(chart.svg) for chart in charts}
        for file in (page, *contents):
            if is_dir(file):  # before anything is replaced
                raise IsADirectoryError(EISDIR, os.strerror(EISDIR))
        with replacing(page) as (new_page,):  # replaced last: whoever finds it finds all that it refers to
            with replacing(*contents) as parts:
                for part, content in zip(parts, contents.values(), strict=True):
                    _write(part, content)
                _write(new_page, render(report, charts, data))
            possible = {*(f"{table}.csv" for table in TABLES), *(f"{chart}.svg" for chart in chart_names())}
            for name in possible - {file.name for file in contents}:
                (folder / name).unlink(missing_ok=True)
    except OSError as error:
        if is_new:
            with suppress(OSError):  # some files could be written
                folder.rmdir()
        raise ArgumentError(f"the report {page} cannot be written: {error.strerror or error}") from None
    return page, *contents


def _write(path: Path, content: str) -> None:
    path.write_text(content, encoding="utf-8", errors="replace", newline="")


def _contents(report: Report, data: str) -> Iterator[tuple[str, str]]:
    """The tables that have rows, all of them in one JSON together with the page's data, and the model cards."""
    tables = {name: [_storable(row) for row in rows(report)] for name, rows in TABLES.items()}
    yield "report.json", f'{data[:-1]},"tables":{as_json(tables)}}}'
    for name, rows in tables.items():
        if rows:
            yield f"{name}.csv", guarded_frame(polars.DataFrame(rows, infer_schema_length=None)).write_csv()
    yield "nodes.csv", guarded_frame(polars.concat(map(nodes_table, report.runs))).write_csv()
    yield "cards.md", "\n".join(to_markdown(plain(run.name), run.card) for run in report.runs)


def _storable(line: Row) -> Row:
    return {name: storable(value) if isinstance(value, str) else value for name, value in line.items()}
